"""Gold runs with a mistake in them must not pass.

One call is left out, made with another argument, made although nobody asked, or made too early. Where
the world comes out as it should all the same it was no mistake, and does not count.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.data.proof.gold import run_calls, scored
from muarl.data.proof.values import values_of
from muarl.reward import reward_of
from muarl.seeds import generator
from muarl.spec import GoldCallSpec, TaskSpec
from muarl.world import canonical_diff

_NAMED = 20
"""Runs that are named; a reward that sees nothing lets all pass."""

Calls = list[GoldCallSpec]


@dataclass
class Fuzzed:
    """What became of mutated gold runs.

    Attributes:
        runs: How many were made.
        counted: Those that left the world otherwise than the gold calls do.
        passed: Those of them that earned 1 all the same.
    """

    runs: int = 0
    counted: int = 0
    passed: int = 0


async def fuzz_findings(subject: Subject, runs: int) -> tuple[Fuzzed, list[ProofFinding]]:
    """Make mutated gold runs of tasks drawn at random; those that pass are findings.

    Raises:
        ToolServerError: The server did not start, or died.
        RewardError: A predicate could not be evaluated.
    """
    tasks = list(subject.all_tasks())
    mutator = _Mutator(tasks, subject.domain.spec.writes)
    tally = Fuzzed()
    found: list[ProofFinding] = []
    for number in range(runs):
        rng = generator("fuzz", number)
        task = rng.choice(tasks)
        mutant = mutator.mutate(task, rng)
        if mutant is None:
            continue
        calls, words = mutant
        tally.runs += 1
        run = await run_calls(subject, task, calls, strict=False)
        gold = await subject.domain.gold_world(task)
        changes = canonical_diff(gold, run.world, gold.unordered)
        if not changes:
            continue
        tally.counted += 1
        earned = [
            reward_of(await scored(subject, task, gold, run, wanted))
            for wanted in (
                subject.domain.reward_for(task, training=False),
                subject.domain.reward_for(task, training=True),
            )
        ]
        if max(earned) < 1:
            continue
        tally.passed += 1
        if len(found) < _NAMED:
            message = (
                f"the gold calls with a mistake earn 1 ({words}); the {'' if earned[0] == 1 else 'training '}reward does not see "
                f"`{changes[0]}`"
            )
            found.append(subject.about_task(Check.FUZZ, task, ("gold",), message))
    return tally, found


class _Mutator:
    """Makes mistakes that could be made: with tools and values that tasks of the domain have."""

    def __init__(self, tasks: Sequence[TaskSpec], writes: Sequence[str]) -> None:
        made = [call for task in tasks for call in task.gold]
        self._pool: dict[str, list[Any]] = {}
        for call in made:
            for name, value in call.arguments.items():
                self._pool.setdefault(name, []).append(value)
        self._writes = [call for call in made if call.tool in writes] or made

    def mutate(self, task: TaskSpec, rng: random.Random) -> tuple[Calls, str] | None:
        """Calls with one mistake, and it in words; None if none can be made."""
        kinds: list[Callable[[TaskSpec, random.Random], tuple[Calls, str] | None]]
        kinds = [self._drop, self._change, self._extra, self._swap]
        rng.shuffle(kinds)
        return next((mutant for kind in kinds if (mutant := kind(task, rng))), None)

    def _drop(self, task: TaskSpec, rng: random.Random) -> tuple[Calls, str] | None:
        if not task.gold:
            return None
        at = rng.randrange(len(task.gold))
        return [*task.gold[:at], *task.gold[at + 1 :]], f"{task.gold[at].tool} left out"

    def _change(self, task: TaskSpec, rng: random.Random) -> tuple[Calls, str] | None:
        places = [(i, name) for i, call in enumerate(task.gold) for name in call.arguments]
        if not places:
            return None
        at, name = rng.choice(places)
        call = task.gold[at]
        old = call.arguments[name]
        known = [value for value in self._pool[name] if value != old]
        new = rng.choice(known) if known and rng.random() < 0.75 else _other(old)
        changed = call.model_copy(update={"arguments": {**call.arguments, name: new}})
        words = f"{call.tool} with {name}={new!r} instead of {old!r}"
        return [*task.gold[:at], changed, *task.gold[at + 1 :]], words

    def _extra(self, task: TaskSpec, rng: random.Random) -> tuple[Calls, str] | None:
        if not self._writes:
            return None
        call = rng.choice(self._writes)
        mine = values_of(task)
        arguments = {
            name: rng.choice(mine[name]) if name in mine else value
            for name, value in call.arguments.items()
        }
        at = rng.randint(0, len(task.gold))
        extra = call.model_copy(update={"arguments": arguments})
        given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        words = f"{call.tool}({given}) made besides"
        return [*task.gold[:at], extra, *task.gold[at:]], words

    def _swap(self, task: TaskSpec, rng: random.Random) -> tuple[Calls, str] | None:
        if len(task.gold) < 2:
            return None
        at = rng.randrange(len(task.gold) - 1)
        first, second = task.gold[at : at + 2]
        swapped = [*task.gold[:at], second, first, *task.gold[at + 2 :]]
        return swapped, f"{second.tool} made before {first.tool}"


def _other(value: Any) -> Any:
    """A value of the same kind that is another."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return f"{value}x"
    return [*value, value] if isinstance(value, list) else None
