"""What sampling and learning at once gains where a few dialogues take much longer than the others.

    python benchmarks/async_training.py --json

Trains the quickstart's model on desk dialogues with the whole of `muarl train`'s GRPO stage (embedded
engine, scripted users, in-memory tool servers), once for each mode, from the same weights after a short
cold start. One dialogue in twenty is slow: its user takes `--tail` seconds over each of her messages, in
real time; which ones is drawn from the episode's key, so that all modes meet the same. Groups of 8 make it
likely that an iteration has some: on policy all wait for the slowest. A divergence of weight 0.001 is in the
loss, so that all that is sampled is trained on and both modes do the same work.

    speedup               Trained tokens per second, asynchronous over on policy.
    lag_max, lag_mean     Versions between what sampled and what learned, asynchronous.
    overlap               Share of the seconds of updates and weight syncs in which dialogues were under way.
    tokens per second     Of all iterations, from the first dialogue's beginning to the last update's end;
                          sampled are those of the dialogues that the iterations took.

`threads` is 1: on two cores sampler and trainer have one each, whatever the mode.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import anyio
from quickstart import small_desk

from muarl.cli._running import prepare_torch
from muarl.observe import Observation
from muarl.record import UserReply
from muarl.scheduler import EpisodePlan, Observer
from muarl.scheduler.rounds import StopSignal
from muarl.seeds import generator
from muarl.spec import RunSpec, load_run
from muarl.spec.located import Located
from muarl.user import User

ROOT = Path(__file__).resolve().parent.parent
SLOW = 0.05
MODES: dict[str, Any] = {
    "on_policy": "on_policy",
    "one_step_off": "one_step_off",
    "asynchronous": {"asynchronous": {"max_lag": 2}},
}


class SlowUser:
    """A user who takes her time."""

    def __init__(self, user: User, seconds: float) -> None:
        self._user = user
        self._seconds = seconds

    async def open(self) -> UserReply:
        return await self._user.open()

    async def reply(self, agent_text: str) -> UserReply:
        await anyio.sleep(self._seconds)
        return await self._user.reply(agent_text)


class SlowTail(Observer):
    """Makes the users of some training dialogues slow."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def user(self, plan: EpisodePlan, user: User) -> User:
        is_slow = plan.key.trains and generator(0, "slow", str(plan.key)).random() < SLOW
        return SlowUser(user, self._seconds) if is_slow else user


def _run(located: Located[RunSpec], out: Path, tail_s: float) -> list[dict[str, Any]]:
    from muarl.train.loop import train
    from muarl.train.progress import Silent
    from muarl.train.run_folder import RunFolder

    moved = located.spec.moved(located.path.parent, out)
    folder = RunFolder.create(out, moved, resume=False, overwrite=False)

    async def main() -> None:
        observation = Observation(SlowTail(tail_s))
        await train(located, folder, Silent(), StopSignal(), observation=observation)

    anyio.run(main)
    return [line for line in folder.lines() if line["kind"] == "iteration"]


def _changed(located: Located[RunSpec], **changes: Any) -> Located[RunSpec]:
    from dataclasses import replace

    spec = located.spec.model_dump(mode="json", exclude_none=True) | changes
    return replace(located, spec=RunSpec.model_validate(spec))


def _rates(lines: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = sum(line["wall_s"] for line in lines)
    sampled = sum((line["sampled_tokens_per_s"] or 0) * line["rollout_s"] for line in lines)
    trained = sum(line.get("trained_tokens", 0) for line in lines)
    learning = sum(line["learn_s"] + line["sync_s"] for line in lines)
    return {
        "seconds": round(seconds, 1),
        "sampled_tokens_per_s": round(sampled / seconds, 1),
        "trained_tokens_per_s": round(trained / seconds, 1),
        "trained_tokens": trained,
        "waited_s": round(sum(line["wait_s"] for line in lines), 1),
        "learned_s": round(sum(line["learn_s"] for line in lines), 1),
        "overlap": round(
            sum(line["overlap"] * (line["learn_s"] + line["sync_s"]) for line in lines) / learning,
            3,
        ),
        "lag_max": max(line["lag_max"] or 0 for line in lines),
        "lag_mean": round(sum(line["lag_mean"] or 0 for line in lines) / len(lines), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="nothing but the figures")
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=12, help="groups of 8 in an iteration")
    parser.add_argument("--tail", type=float, default=3.0, help="seconds of a slow user's message")
    parser.add_argument("--cold-start", type=int, default=120, help="steps before")
    parser.add_argument("--modes", nargs="+", default=["on_policy", "asynchronous"], choices=MODES)
    parser.add_argument("--small", action="store_true", help="see that it works, in seconds")
    args = parser.parse_args()
    if args.small:
        args.iterations, args.tasks, args.tail, args.cold_start = 1, 1, 0.01, 2
    prepare_torch(1)
    quickstart = load_run(ROOT / "specs" / "quickstart.yaml")
    played = {"episodes": 8, "temperatures": [1.0]}
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if args.small:
            desk = os.path.relpath(small_desk(folder), quickstart.path.parent)
            quickstart = _changed(quickstart, domain=desk)
        cold_start = {"episodes": 16 if args.small else 400, "steps": args.cold_start}
        cold = _changed(quickstart, cold_start=cold_start, grpo=None, eval=played)
        _run(cold, folder / "cold", 0.0)
        model = {"path": os.path.relpath(folder / "cold" / "model", quickstart.path.parent)}
        for mode in args.modes:
            grpo = {
                "iterations": args.iterations,
                "tasks_per_iteration": args.tasks,
                "mode": MODES[mode],
                "lr": 1e-4,
                "kl_coef": 0.001,
                # An update is then made whatever few dialogues earn.
                "entropy_coef": 0.001 if args.small else 0.0,
            }
            located = _changed(quickstart, model=model, cold_start=None, grpo=grpo, eval=played)
            found[mode] = _rates(_run(located, folder / mode, args.tail))
            if not args.json:
                print(mode, found[mode], file=sys.stderr)
    result = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "dialogues_per_iteration": 8 * args.tasks,
        "slow_share": SLOW,
        "tail_s": args.tail,
        **found,
    }
    if {"on_policy", "asynchronous"} <= found.keys():
        free, sync = found["asynchronous"], found["on_policy"]
        result["speedup"] = round(free["trained_tokens_per_s"] / sync["trained_tokens_per_s"], 2)
        result |= {name: free[name] for name in ("lag_max", "lag_mean", "overlap")}
    print(json.dumps(result, indent=None if args.json else 1))


if __name__ == "__main__":
    main()
