"""What a user's turn costs: milliseconds of CPU in this process, by kind of user.

    python benchmarks/user_cost.py --json

Users of the desk are talked with directly, many at once, without a policy, tools or a renderer: each
opens and answers five messages. A turn is one of these six. LLM users ask a chat endpoint that answers
at once, in a process of its own whose time does not count; what is left is the prompt, HTTP, the
guards and the draw. `ms` is the median over rounds, `spread` their lowest and highest.

| kind         | who                                                                        |
|--------------|----------------------------------------------------------------------------|
| `scripted`   | the scripted user                                                          |
| `knobs`      | the same with every knob at 0.2                                            |
| `mixture`    | a pool, drawn for each dialogue: scripted, with knobs, and an LLM, 2 : 1 : 1 |
| `llm`        | an LLM, with all guards                                                    |
| `verbalized` | an LLM that gives five candidates, all of them guarded, of which one is drawn |
| `worded`     | the scripted user in the words of an LLM                                   |
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import anyio
from _chat_server import chat_server

from muarl.domain import Domain, load_domain
from muarl.seeds import generator
from muarl.spec import KnobsSpec, TaskSpec
from muarl.spec.user import UserSpec
from muarl.user import User

DESK = Path(__file__).resolve().parent.parent / "domains" / "desk"
HEARD = (
    "Which order is it?",
    "And what is your account?",
    "Let me see. Which order was it, please?",
    "I have found it. One moment.",
    "Shall I go ahead?",
)
LIVE = 64


def kinds(url: str) -> dict[str, UserSpec]:
    """The users that are measured."""
    llm = {"base_url": url, "model": "tiny"}
    rates = {name: 0.2 for name in KnobsSpec.model_fields if not name.startswith("abandon")}
    scripted: dict[str, Any] = {"scripted": {}}
    knobs: dict[str, Any] = {"scripted": {"knobs": rates}}
    pool = {
        "plain": {"weight": 2, "user": scripted},
        "hard": {"user": knobs},
        "model": {"user": {"llm": llm}},
    }
    given: dict[str, Any] = {
        "scripted": scripted,
        "knobs": knobs,
        "mixture": {"pool": pool},
        "llm": {"llm": llm},
        "verbalized": {"llm": {**llm, "candidates": 5}},
        "worded": {"worded": {"llm": llm}},
    }
    return {name: UserSpec.model_validate(spec) for name, spec in given.items()}


class Talks:
    """Users that are talked with, so many at once, and the turns they took."""

    def __init__(self, domain: Domain, who: UserSpec, dialogues: int) -> None:
        self._domain = domain
        self._who = who
        tasks = domain.tasks("train")
        self._tasks = [tasks[number % len(tasks)] for number in range(dialogues)]
        self.turns = 0

    async def hold(self, round_: int) -> float:
        """Hold all dialogues of a round; milliseconds of CPU for each turn."""
        limiter = anyio.CapacityLimiter(LIVE)
        began, self.turns = time.process_time(), 0
        async with anyio.create_task_group() as tasks:
            for number, task in enumerate(self._tasks):
                await limiter.acquire_on_behalf_of(number)
                tasks.start_soon(self._talk, task, round_, number, limiter)
        return 1000 * (time.process_time() - began) / self.turns

    async def _talk(
        self, task: TaskSpec, round_: int, number: int, limiter: anyio.CapacityLimiter
    ) -> None:
        rng = generator("user_cost", round_, number)
        _, kind = self._who.draw(rng)
        user: User = self._domain.user(kind, task, task.personas[0], rng.getrandbits(62))
        reply = await user.open()
        self.turns += 1
        for heard in HEARD:
            if reply.stop:
                break
            reply = await user.reply(heard)
            self.turns += 1
        limiter.release_on_behalf_of(number)


async def measure(url: str, dialogues: int, rounds: int) -> dict[str, Any]:
    """All kinds."""
    domain = load_domain(DESK)
    found: dict[str, Any] = {}
    for name, who in kinds(url).items():
        talks = Talks(domain, who, dialogues)
        await talks.hold(-1)  # imports, connections, caches
        took = [await talks.hold(round_) for round_ in range(rounds)]
        found[name] = {
            "ms": round(statistics.median(took), 4),
            "spread": [round(min(took), 4), round(max(took), 4)],
            "turns": talks.turns,
        }
        print(f"{name}: {found[name]}", file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--dialogues", type=int, default=400, help="of each kind and round")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with chat_server() as url:
        found = anyio.run(measure, url, args.dialogues, args.rounds)
    figures = {
        "benchmark": "user_cost",
        "python": platform.python_version(),
        "machine": platform.machine(),
        "dialogues": args.dialogues,
        "ms_per_turn": {name: kind["ms"] for name, kind in found.items()},
        "kinds": found,
    }
    print(json.dumps(figures, indent=None if args.json else 2))


if __name__ == "__main__":
    main()
