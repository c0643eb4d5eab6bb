"""Our verdict on BFCL's multi-turn entries beside that of the official checker, dialogue by dialogue.

    pip install --no-deps bfcl-eval==2026.3.23
    python benchmarks/bfcl_official.py --json

It judges the version whose entries the installed package has. Each entry is played with its gold calls, by
doing nothing, and `--dialogues` times with gold calls that are left out, repeated, put in another order or
given other values, beside random calls and hostile ones.

- `gold`: set to entries that gold calls solve; `do_nothing` likewise.
- `judged`: set to dialogues; `solved`: to those of them that the official checker finds valid.
- `same_verdict`, `same_error`: shares of all dialogues in which both say so, and name the same error.
- `differ`: the first that do not, if any.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio

from muarl.compat.bfcl.importer import VERSIONS, write_domains
from muarl.compat.bfcl.official import installed
from muarl.data.trivial import DoNothing
from muarl.domain import Domain, load_domain
from muarl.messages import Message, ToolCall, ToolSpec
from muarl.record import Episode
from muarl.spec import TaskSpec
from muarl.testing import play_agents

_VALUES: Sequence[Any] = (
    *("a", "", "file (1).txt", "document", "NVDA", "Zeta Corp", "USR001", "2024-10-01", "economy"),
    *(0, 1, 2, -1, 12345, 3.5, True, None, [1, 2], ["AAPL"], {"k": 1}),
)
_HOSTILE = "__import__('os').system('false')"
_HOSTILE_CALLS: Sequence[tuple[str, dict[str, Any]]] = (
    (_HOSTILE, {}),
    ("ls", {f"a={_HOSTILE},b": 1}),
    ("kill", {}),
    ("no_such_function", {"a b": 1}),
)


class Spoiler:
    """Plays gold calls, some of them spoiled, and others beside them."""

    def __init__(self, task: TaskSpec, tools: Sequence[ToolSpec], rng: random.Random) -> None:
        self._rng = rng
        self._often = rng.choice([0.08, 0.08, 0.5])
        self._messages = self._played(task, [t for t in tools if t.name in (task.tools or ())])

    def act(self, history: Sequence[Message]) -> Message:
        del history
        return next(self._messages, Message("assistant", "Done."))

    def _played(self, task: TaskSpec, tools: Sequence[ToolSpec]) -> Iterator[Message]:
        number = 0
        for turn in range(len(task.turns)):
            calls = list(self._spoiled(task, turn))
            calls += self._others(tools)
            if self._chance():
                self._rng.shuffle(calls)
            while calls:
                size = self._rng.randint(1, 3)
                step, calls = calls[:size], calls[size:]
                made = []
                for name, arguments in step:
                    number += 1
                    made.append(ToolCall(f"call_{number}", name, arguments))
                yield Message("assistant", "", tuple(made))
            yield Message("assistant", "Done.")

    def _spoiled(self, task: TaskSpec, turn: int) -> Iterator[tuple[str, dict[str, Any]]]:
        for gold in task.gold:
            if gold.turn != turn or self._chance(0.25):
                continue
            arguments = dict(gold.arguments)
            if arguments and self._chance(0.25):
                arguments[self._rng.choice(list(arguments))] = self._rng.choice(_VALUES)
            for _ in range(2 if self._chance(0.25) else 1):
                yield gold.tool, arguments

    def _others(self, tools: Sequence[ToolSpec]) -> Iterator[tuple[str, dict[str, Any]]]:
        while self._chance():
            if self._chance(0.25):
                yield self._rng.choice(_HOSTILE_CALLS)
                continue
            tool = self._rng.choice(tools)
            names = tool.parameters.get("properties", {})
            yield tool.name, {name: self._rng.choice(_VALUES) for name in names}

    def _chance(self, part: float = 1.0) -> bool:
        return self._rng.random() < self._often * part


async def dialogues(domain: Domain, spoiled: int) -> dict[str, list[Episode]]:
    """All dialogues of a set, by who plays."""
    tasks, tools = domain.tasks("test"), await domain.tools()
    return {
        "gold": await play_agents(domain, tasks, lambda t, rng: domain.expert(t, {}, rng)),
        "do_nothing": await play_agents(domain, tasks, lambda *_: DoNothing()),
        "spoiled": await play_agents(
            domain, tasks, lambda t, rng: Spoiler(t, tools, rng), group_size=spoiled
        ),
    }


def both(episode: Episode) -> tuple[tuple[float | None, str], tuple[float | None, str]]:
    """Verdict and error, ours and the official checker's; ours names the turn as well."""
    ours = episode.rewards[0]
    theirs = next(metric for metric in episode.metrics if "official" in metric.name)
    reason = (ours.reason or "").partition(" in turn ")[0]
    return (ours.score, reason), (theirs.score, theirs.reason or "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dialogues", type=int, default=2, help="spoiled dialogues of each entry")
    parser.add_argument("--only", default="", help="one of the sets, such as miss-func")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    there = {version: at for version in VERSIONS if (at := installed(version)) is not None}
    if not there:
        print("bfcl-eval is not installed, so nothing can be compared with it", file=sys.stderr)
        return 2
    begin = time.perf_counter()
    summary: dict[str, Any] = {"gold": {}, "do_nothing": {}, "judged": {}, "solved": {}}
    same: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    differ: list[str] = []
    for version, copy in there.items():
        with tempfile.TemporaryDirectory() as folder:
            for at, _ in write_domains(copy, Path(folder), version=version, official_checker=True):
                if args.only not in ("", at.name):
                    continue
                name = f"{version.upper()} {at.name}"
                played = anyio.run(dialogues, load_domain(at), args.dialogues)
                for who in ("gold", "do_nothing"):
                    summary[who][name] = sum(e.reward == 1 for e in played[who])
                episodes = [episode for of in played.values() for episode in of]
                summary["judged"][name] = len(episodes)
                verdicts = [both(episode) for episode in episodes]
                summary["solved"][name] = sum(theirs[0] == 1 for _, theirs in verdicts)
                for episode, (ours, theirs) in zip(episodes, verdicts, strict=True):
                    errors[theirs[1]] += 1
                    same["verdict"] += ours[0] == theirs[0]
                    same["error"] += ours == theirs
                    if ours != theirs and len(differ) < 5:
                        differ.append(f"{name} {episode.key}: {ours}, official {theirs}")
    total = sum(summary["judged"].values())
    summary |= {
        "same_verdict": same["verdict"] / total,
        "same_error": same["error"] / total,
        "errors": dict(errors),
        "differ": differ,
        "seconds": round(time.perf_counter() - begin, 1),
    }
    print(json.dumps(summary, indent=None if args.json else 2))
    return 0 if not differ else 1


if __name__ == "__main__":
    sys.exit(main())
