"""Agents of three clients, trained through the gateway: success before and after a short GRPO run.

    python benchmarks/clients.py --json

Each of `specs/agents/` leads the desk's dialogues in a run of its own: the openai SDK over chat completions,
pydantic-ai over chat completions with its tools over MCP, openai-agents over responses with its tools over
MCP. All begin from the same cold start, the quickstart's, which is made once and kept with `--cold-start`.
The last line is one JSON object; intervals are Wilson's, of 95 %.

`--small` makes runs of seconds, to see that everything works; their figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quickstart import SPEC, evaluation, share

from muarl.train.run_folder import RunFolder

ROOT = Path(__file__).resolve().parent.parent
AGENTS = ROOT / "specs" / "agents"
CLIENTS = {
    "openai": "openai_sdk.py",
    "pydantic_ai": "pydantic_ai_desk.py",
    "openai_agents": "openai_agents_desk.py",
}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def train(out: Path, settings: Mapping[str, Any]) -> dict[str, float]:
    """Run `muarl train` in a process of its own; wall seconds and peak memory."""
    started = time.monotonic()
    command = [sys.executable, "-m", "muarl.cli", "train", str(SPEC), "--out", str(out)]
    command += [f"--set={name}={json.dumps(value)}" for name, value in settings.items()]
    pid = os.posix_spawn(sys.executable, command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed with {os.waitstatus_to_exitcode(status)}")
    return {"wall_s": time.monotonic() - started, "peak_rss_mb": usage.ru_maxrss / 1024}


def client_row(run: Path, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """One client's run."""
    loop = f"{AGENTS / CLIENTS[name]}:agent"
    cost = train(run, {**settings, "rollout.loop": loop})
    first, last = (share(evaluation(run, phase, 1.0)) for phase in ("cold", "final"))
    assert first is not None
    assert last is not None
    rounds = [line for line in RunFolder(run).lines() if line["kind"] == "iteration"]
    return {
        "before": first,
        "after": last,
        "improved": first[2] < last[1],
        "rewards": [round(line["reward_mean"], 3) for line in rounds],
        "fork_rate": max(line["fork_rate"] for line in rounds),
        "token_drift": sum(line["token_drift"] for line in rounds),
        **{key: round(value, 1) for key, value in cost.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="only the last line on stdout")
    parser.add_argument(
        "--cold-start", type=Path, help="a model to begin from, or to be kept there"
    )
    parser.add_argument("--clients", nargs="+", default=list(CLIENTS), choices=list(CLIENTS))
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--episodes", type=int, default=200, help="of each evaluation")
    parser.add_argument("--small", action="store_true", help="see that it works")
    args = parser.parse_args()
    settings: dict[str, Any] = {
        "grpo.iterations": args.iterations,
        "grpo.lr_decay_iterations": 0,
        "eval.episodes": args.episodes,
        "eval.temperatures": [1.0],
        # Frameworks take tens of milliseconds a turn: hundreds that begin at once would all be late.
        "rollout.concurrency": 48,
        "rollout.deadline_s": 600,
    }
    begun = {"cold_start.episodes": 32, "cold_start.steps": 4} if args.small else {}
    if args.small:
        settings |= {"grpo.iterations": 1, "grpo.tasks_per_iteration": 2, "eval.episodes": 8}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = args.cold_start or folder / "model"
        if not model.exists():
            train(folder / "cold", {**begun, "grpo": None})
            shutil.copytree(folder / "cold" / "cold_start", model)
        settings |= {
            "model": {"path": str(model.resolve())},
            "cold_start": None,
            # What a tiny model has by default, and one that is named must be given.
            "rollout.max_tokens": 64,
            "grpo.lr": 0.001,
        }
        rows = {}
        for client in args.clients:
            rows[client] = client_row(folder / client, client, settings)
            say(f"{client}: {json.dumps(rows[client])}")
    figures = {
        "cores": os.cpu_count(),
        "all_improved": all(row["improved"] for row in rows.values()),
        "clients": rows,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
