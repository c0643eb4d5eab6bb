"""A domain that `muarl import` wrote, at work: what its `tools.py` gives to its `domain.yaml`."""

from __future__ import annotations

import json
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from mcp.server import Server

from muarl.compat.tau.databases import tau1_kit, tau2_made
from muarl.compat.tau.ending import tau1_unscored, tau2_unscored
from muarl.compat.tau.environment import Task, Tau2Environment
from muarl.compat.tau.evaluator import Tau2Verdict, judged, must_be_said, reward_basis
from muarl.compat.tau.expert import GoldExpert
from muarl.compat.tau.hashing import TAU1, TAU2
from muarl.compat.tau.published import (
    as_id,
    asks,
    begun,
    judged_by,
    scenario,
    tau1_gold,
    tau2_gold,
)
from muarl.compat.tau.serving import served
from muarl.compat.tau.toolkit import Refused
from muarl.errors import SetupError
from muarl.reward import Evidence
from muarl.spec import PredicateSpec, TaskSpec
from muarl.spec.device import DEVICE
from muarl.world import World

WORLD, TASKS, SPLITS, TOOLS, DEVICE_WORLD, ORIGIN = (
    "world.json",
    "published.json",
    "splits.json",
    "tools.json",
    "device.json",
    "origin.json",
)
"""Files beside the domain's: its world, tasks and splits as published, schemas, what was imported."""

_SAID = ("COMMUNICATE", "NL_ASSERTION")
"""Components that ask what was said, which the paper's training rule drops."""

Scored = tuple[float, str, str]
"""A score, why, and what it leaves out."""


class _Imported(ABC):
    """What the domains of both generations share."""

    def __init__(self, domain: str, tools_py: str) -> None:
        """Find the domain's files.

        Args:
            domain: Its name upstream.
            tools_py: The file that makes this, which lies beside them.
        """
        self.domain = domain
        self.folder = Path(tools_py).parent

    def _json(self, name: str) -> Any:
        path = self.folder / name
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise SetupError(f"{path} cannot be read ({error}); import the domain anew") from error

    @cached_property
    def published(self) -> Mapping[str, Task]:
        """Tasks as published, by their published ids."""
        tasks: Mapping[str, Task] = self._json(TASKS)
        return tasks

    @cached_property
    def _base(self) -> World:
        return World(self._json(WORLD))

    def tasks(self, split: str, _seed: int, _count: int) -> list[TaskSpec]:
        """The published tasks of a split, in their order."""
        return [self._task(split, name) for name in self._json(SPLITS)[split]]

    def expert(
        self, task: TaskSpec, imperfections: Mapping[str, float], _rng: random.Random
    ) -> GoldExpert:
        """Who plays the gold calls; a domain whose user acts as well has none."""
        return GoldExpert(task, imperfections)

    @abstractmethod
    def _task(self, split: str, name: str) -> TaskSpec:
        """One of them, by its published id."""


class Tau1(_Imported):
    """A domain of tau-bench."""

    def __init__(self, domain: str, tools_py: str) -> None:
        super().__init__(domain, tools_py)
        self._kit = tau1_kit(domain)
        self._hash = TAU1()

    def serve(self, world: World) -> Server[Any]:
        """The agent's tools."""
        return served(world, self._json(TOOLS)["assistant"], self._kit)

    def _task(self, split: str, name: str) -> TaskSpec:
        task = self.published[name]
        return TaskSpec(
            id=as_id(name),
            split=split,
            goal=task["instruction"],
            gold=tau1_gold(self._kit(self._base.fork()), task),
            reward=[asks("reward", name, task["outputs"])],
            training_reward=[asks("training_reward", name)],
        )

    def reward(self, evidence: Evidence, task: str) -> tuple[float, str]:
        """tau-bench's reward: the database is that of the gold run, and what must be said was."""
        score, why = self.training_reward(evidence, task)
        said = [text.lower().replace(",", "") for _, text in evidence.heard()]
        for output in self.published[task]["outputs"]:
            if score and not any(output.lower() in text for text in said):
                return 0.0, f"{output!r} was not said"
        return score, why

    def training_reward(self, evidence: Evidence, task: str) -> tuple[float, str]:
        """The rule that the paper trains with: what must be said does not count."""
        if unscored := tau1_unscored(evidence):
            return 0.0, unscored
        gold = self._kit(evidence.initial)
        for action in self.published[task]["actions"]:
            gold.call(action["name"], action["kwargs"])
        same = self._hash.of(evidence.world) == self._hash.of(gold.db)
        return float(same), f"the database is {'' if same else 'not '}that of the gold run"


class Tau2(_Imported):
    """A domain of tau2-bench; with a device where its user has tools."""

    NOT_JUDGED: ClassVar[str] = "NL_ASSERTION was not judged and counts as 1"

    def __init__(self, domain: str, tools_py: str) -> None:
        super().__init__(domain, tools_py)
        self._made = tau2_made(domain)
        self._hashes = TAU2(), TAU2()

    @cached_property
    def _device(self) -> World | None:
        return World(self._json(DEVICE_WORLD)) if (self.folder / DEVICE_WORLD).exists() else None

    def _fresh(self) -> Tau2Environment:
        """Both sides before any task."""
        return self._made.over(
            self._base.fork(), None if self._device is None else self._device.fork()
        )

    def serve(self, world: World) -> Server[Any]:
        """The agent's tools."""
        return served(world, self._json(TOOLS)["assistant"], self._made.agent)

    def serve_user(self, world: World) -> Server[Any]:
        """The user's tools, over her part of the world."""
        assert self._made.user is not None  # only domains with a device declare this
        return served(world, self._json(TOOLS)["user"], self._made.user)

    def sync(self, world: World) -> None:
        """Bring both sides in step."""
        self._made.over(world, world[DEVICE]).sync()

    def _task(self, split: str, name: str) -> TaskSpec:
        task = self.published[name]
        env = self._fresh()
        env.begin(task)
        patch = begun(env, (self._base, self._device))
        return TaskSpec(
            id=as_id(name),
            split=split,
            goal=scenario(task),
            world=patch,
            gold=tau2_gold(env, task),
            reward=[asks("reward", name, must_be_said(task)), *self._assertions(task)],
            training_reward=[asks("training_reward", name)],
            metrics=[asks("partial", name)],
        )

    def _assertions(self, task: Task) -> Sequence[PredicateSpec]:
        judge = self._json(ORIGIN)["judge"]
        if judge is None or "NL_ASSERTION" not in reward_basis(task):
            return ()
        return list(judged_by(judge, task["evaluation_criteria"].get("nl_assertions") or ()))

    def reward(self, evidence: Evidence, task: str) -> Scored:
        """tau2-bench's reward but for NL_ASSERTION, for which there are judges."""
        return self._scored(evidence, task, ())

    def training_reward(self, evidence: Evidence, task: str) -> Scored:
        """The same where what must be said does not count."""
        return self._scored(evidence, task, _SAID)

    def partial(self, evidence: Evidence, task: str) -> tuple[float | None, str]:
        """Share of the task's assertions and gold calls that are met, however the dialogue ended."""
        try:
            verdict = self._verdict(evidence, self.published[task])
        except Refused as refused:
            return None, f"an assertion raised: {refused}"
        met = [*verdict.assertions, *verdict.actions]
        told = f"{sum(met)} of {len(met)} assertions and gold calls are met"
        return (sum(met) / len(met) if met else None), told

    def _scored(self, evidence: Evidence, name: str, without: Sequence[str]) -> Scored:
        task = self.published[name]
        if unscored := tau2_unscored(evidence):
            return 0.0, unscored, ""
        try:
            verdict = self._verdict(evidence, task)
        except Refused as refused:  # upstream's evaluation stops here, and gives no reward
            return 0.0, f"an assertion raised: {refused}", ""
        basis = [part for part in reward_basis(task) if part not in without]
        told = ", ".join(
            f"{part} {score:g}" for part, score in verdict.components().items() if part in basis
        )
        open_ = "NL_ASSERTION" in basis and self._json(ORIGIN)["judge"] is None
        unjudged = open_ and task["evaluation_criteria"].get("nl_assertions")
        return verdict.reward(basis), told, self.NOT_JUDGED if unjudged else ""

    def _verdict(self, evidence: Evidence, task: Task) -> Tau2Verdict:
        calls = [
            {
                "name": call.name,
                "arguments": call.arguments,
                "requestor": "user" if call.by == "user" else "assistant",
            }
            for call in evidence.all_calls()
        ]
        # Text beside calls counts upstream, though nobody reads it here.
        said = [turn.message.content for turn in evidence.turns if turn.message.content]
        return judged(task, calls, said, self._fresh, self._hashes)
