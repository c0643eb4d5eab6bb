"""The quickstart, measured: does a tiny agent learn, how fast, and is every token accounted for.

    python benchmarks/quickstart.py --json

Runs the quickstart on three training seeds that were not used for tuning, each in a process of its own, then
an ablation on the first of them, then samples with the embedded engine and with vLLM. The last line
is one JSON object.

`--small` makes runs of seconds, to see that everything works; their figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from muarl.spec import RunSpec, dump_spec, load_run
from muarl.train.run_folder import RunFolder, versions

ROOT = Path(__file__).resolve().parent.parent
SPEC = ROOT / "specs" / "quickstart.yaml"
SEEDS = (1010, 1111, 1212)
"""Settings were chosen on seeds 0 to 9 and 606 and the desk's `dev` tasks. Seeds that ran before the
last changes no longer count, for their held-out results led to changes: 303, 404, 505 and 606, and 707,
808 and 909, which showed that some held-out wordings of one thing were training wordings of another."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def train(spec: Path, out: Path) -> dict[str, float]:
    """Run `muarl train` in a process of its own; wall seconds and peak memory."""
    started = time.monotonic()
    command = [sys.executable, "-m", "muarl.cli", "train", str(spec), "--out", str(out)]
    pid = os.posix_spawn(sys.executable, command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed with {os.waitstatus_to_exitcode(status)}")
    return {"wall_s": time.monotonic() - started, "peak_rss_mb": usage.ru_maxrss / 1024}


def spec_file(folder: Path, name: str, **changes: Any) -> Path:
    """The quickstart's spec with changes, as a file."""
    located = load_run(SPEC)
    changes.setdefault("domain", str(located.resolve(located.spec.domain).resolve()))
    spec = RunSpec.model_validate(located.spec.model_copy(update=changes).model_dump())
    path = folder / f"{name}.yaml"
    path.write_text(dump_spec(spec), encoding="utf-8")
    return path


def small(spec: RunSpec) -> dict[str, Any]:
    """Changes that make a run one of seconds, which shows that all works and no more."""
    assert spec.cold_start is not None
    assert spec.grpo is not None
    few = {"iterations": 1, "tasks_per_iteration": 2, "lr_decay_iterations": 0}
    return {
        "cold_start": spec.cold_start.model_copy(update={"episodes": 32, "steps": 4}),
        # With these in the loss, groups that all earned the same are learned from as well.
        "grpo": spec.grpo.model_copy(update={**few, "kl_coef": 0.01, "entropy_coef": 0.001}),
        "eval": spec.eval.model_copy(update={"episodes": 8}),
    }


def small_desk(folder: Path) -> Path:
    """A copy of the desk with few tasks, which are made and compared in no time."""
    desk = folder / "desk"
    shutil.copytree(ROOT / "domains" / "desk", desk, ignore=shutil.ignore_patterns("__pycache__"))
    shrink(desk)
    return desk


def shrink(desk: Path) -> None:
    """Leave a copy of the desk few tasks."""
    file = desk / "domain.yaml"
    splits = "splits: {train: 2400, dev: 600, held_out: 600}"
    text = file.read_text()
    assert splits in text
    file.write_text(text.replace(splits, "splits: {train: 48, dev: 12, held_out: 12}"))


def evaluation(run: Path, phase: str, temperature: float) -> dict[str, Any] | None:
    """The last evaluation of a phase."""
    found = None
    for line in RunFolder(run).lines():
        if line["kind"] == "eval" and (line["phase"], line["temperature"]) == (phase, temperature):
            found = line
    return found


def share(line: dict[str, Any] | None, field: str = "success") -> list[float] | None:
    """Value, low, high."""
    if line is None or line[field]["value"] is None:
        return None
    return [round(line[field][name], 4) for name in ("value", "low", "high")]


def seed_row(run: Path, cost: dict[str, float]) -> dict[str, Any]:
    """Everything one seed shows."""
    cold, final = evaluation(run, "cold", 1.0), evaluation(run, "final", 1.0)
    greedy_cold, greedy_final = evaluation(run, "cold", 0.0), evaluation(run, "final", 0.0)
    assert cold is not None
    assert final is not None
    lines = list(RunFolder(run).lines())
    rounds = [line for line in lines if line["kind"] == "iteration"]
    # A round in which all episodes of each group earn the same updates nothing.
    updates = [line for line in rounds if "max_logprob_gap" in line]
    return {
        **{name: round(value, 1) for name, value in cost.items()},
        "n": final["n"],
        "success_cold": share(cold),
        "success_final": share(final),
        "greedy_cold": share(greedy_cold),
        "greedy_final": share(greedy_final),
        "by_persona_cold": {p: round(v["value"], 3) for p, v in cold["by_persona"].items()},
        "by_persona_final": {p: round(v["value"], 3) for p, v in final["by_persona"].items()},
        "confirmed_cold": share(cold, "confirmed"),
        "confirmed_final": share(final, "confirmed"),
        "floor": max(line["success"]["value"] for line in lines if line["kind"] == "floor"),
        "token_drift": sum(line["token_drift"] for line in rounds),
        "max_logprob_gap": max(line["max_logprob_gap"] or 0.0 for line in updates),
        "first_ratio_max": max(line["first_ratio_max"] for line in updates),
    }


def ablation(folder: Path, both: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Base, cold start only, RL only, both, on the first seed."""
    changes = {"seed": SEEDS[0], **changes, "cold_start": None}
    base_run, rl_run = folder / "base", folder / "rl_only"
    train(spec_file(folder, "base", **{**changes, "grpo": None}), base_run)
    train(spec_file(folder, "rl_only", **changes), rl_run)
    table = {
        "base": share(evaluation(base_run, "cold", 1.0)),
        "cold_start_only": both["success_cold"],
        "rl_only": share(evaluation(rl_run, "final", 1.0)),
        "both": both["success_final"],
    }
    scores = {name: row[0] for name, row in table.items() if row}
    return {**table, "both_is_best": max(scores, key=lambda name: scores[name]) == "both"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="only the last line on stdout")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--skip", nargs="*", default=[], choices=["ablation", "engines"])
    parser.add_argument("--small", action="store_true", help="see that it works")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        changes: dict[str, Any] = {}
        if args.small:
            changes = {**small(load_run(SPEC).spec), "domain": str(small_desk(folder))}
        rows = {}
        for seed in args.seeds:
            run = folder / f"seed{seed}"
            rows[seed] = seed_row(
                run, train(spec_file(folder, f"seed{seed}", seed=seed, **changes), run)
            )
            say(f"seed {seed}: {json.dumps(rows[seed])}")
        worst_low = min(row["success_final"][1] for row in rows.values())
        best_high = max(row["success_cold"][2] for row in rows.values())
        result: dict[str, Any] = {
            "wall_s": max(row["wall_s"] for row in rows.values()),
            "peak_rss_mb": max(row["peak_rss_mb"] for row in rows.values()),
            "success_cold": max(row["success_cold"][0] for row in rows.values()),
            "success_final": min(row["success_final"][0] for row in rows.values()),
            "greedy_cold": max(row["greedy_cold"][0] for row in rows.values()),
            "intervals_overlap": worst_low <= best_high,
            "floor": max(row["floor"] for row in rows.values()),
            "token_drift": sum(row["token_drift"] for row in rows.values()),
            "max_logprob_gap": max(row["max_logprob_gap"] for row in rows.values()),
            "seeds": rows,
        }
        if "ablation" not in args.skip:
            result["ablation"] = ablation(folder, rows[args.seeds[0]], changes)
            say(f"ablation: {json.dumps(result['ablation'])}")
        if "engines" not in args.skip:
            from engines import sampled_tokens_per_s

            result["sampled_tokens_per_s"] = sampled_tokens_per_s(folder / f"seed{args.seeds[0]}")
        result["machine"] = {"cores": os.cpu_count(), "cpu": platform.processor(), **versions()}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
