"""Dialogues through all stages: which are kept, and of the others why they are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import anyio
import msgspec

from muarl.data.stored import StoredTasks
from muarl.errors import SpecError
from muarl.record import Episode, EpisodeKey
from muarl.spec.verify import VerifySpec
from muarl.suite import AnyDomain
from muarl.synth.candidate import Candidate, Ruling
from muarl.synth.duplicates import Copies
from muarl.synth.graph import GraphFigures
from muarl.synth.stages import Flaw, OnRuling, Stage, flaw_at, stages_of

SELECT = "select"
"""Name of the last stage, which is about the others rather than about a dialogue; see
`muarl.synth.select`."""

REVIEW = "review"
"""Name of the stage that people are; see `muarl.synth.review`."""

_EXAMPLES = 3
"""Kinds of flaws of a stage that are shown with one; `yield.json` has one of each."""

_AT_ONCE = 32
"""Dialogues that are looked at together: a replay may wait for a tool server."""


class Review(msgspec.Struct, frozen=True):
    """What a person found.

    Attributes:
        reviewer: Her name.
        accepts: Whether it is to be learned from.
        comment: Why.
    """

    reviewer: str
    accepts: bool
    comment: str = ""


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one dialogue.

    Attributes:
        key: Of the dialogue.
        passed: Stages that it passed, in order.
        stage: The one that it failed; "" if it is kept.
        kind: What was wrong, in a word or two.
        reason: What exactly.
        rulings: Of judges.
        reviews: Of people.
    """

    key: EpisodeKey
    passed: tuple[str, ...] = ()
    stage: str = ""
    kind: str = ""
    reason: str = ""
    rulings: tuple[Ruling, ...] = ()
    reviews: tuple[Review, ...] = ()

    @property
    def kept(self) -> bool:
        """It passed all stages."""
        return not self.stage


class StageYield(msgspec.Struct):
    """What one stage let pass.

    Attributes:
        stage: Its name.
        seen: Dialogues that came to it.
        passed: Those that passed.
        reasons: Kind of flaw to how many had it.
        examples: Kind of flaw to the first that had it, in full.
    """

    stage: str
    seen: int = 0
    passed: int = 0
    reasons: Counter[str] = msgspec.field(default_factory=Counter)
    examples: dict[str, str] = {}


class Yield:
    """What all stages let pass, stage by stage.

    Args:
        stages: Names, in order.

    Attributes:
        graph: What the merged graph of all that was made is like, and with what is kept of it.
    """

    def __init__(self, stages: Iterable[str]) -> None:
        self.stages = {name: StageYield(name) for name in stages}
        self.made = 0
        self.kept = 0
        self.graph: dict[str, GraphFigures] = {}

    def count(self, verdict: Verdict) -> None:
        """Take in one more dialogue."""
        self.made += 1
        self.kept += verdict.kept
        passed = list(verdict.passed)
        if verdict.reviews and verdict.stage in ("", SELECT):
            passed.append(REVIEW)
        if verdict.kept and SELECT in self.stages:
            passed.append(SELECT)
        for name in passed:
            stage = self._stage(name)
            stage.seen += 1
            stage.passed += 1
        if not verdict.kept:
            failed = self._stage(verdict.stage)
            failed.seen += 1
            failed.reasons[verdict.kind] += 1
            failed.examples.setdefault(verdict.kind, f"{verdict.key}: {verdict.reason}")

    def _stage(self, name: str) -> StageYield:
        """Of that name; people come before the selection, and everything else in its order."""
        if name == REVIEW and name not in self.stages and SELECT in self.stages:
            last = self.stages.pop(SELECT)
            self.stages |= {name: StageYield(name), SELECT: last}
        return self.stages.setdefault(name, StageYield(name))

    def as_json(self) -> dict[str, object]:
        """The table, for `yield.json`."""
        stages = [msgspec.to_builtins(stage) for stage in self.stages.values()]
        graph = msgspec.to_builtins(self.graph)
        return {"made": self.made, "kept": self.kept, "stages": stages, "graph": graph}

    def lines(self) -> Iterator[str]:
        """The table, for people."""
        yield f"{self.kept} of {self.made} dialogues kept"
        for stage in self.stages.values():
            yield f"  {stage.stage:<12} {stage.passed:>6} of {stage.seen:>6} passed"
            for place, (kind, count) in enumerate(stage.reasons.most_common()):
                yield f"    {count:>6}  {kind}"
                if place < _EXAMPLES:
                    yield f"            such as {stage.examples[kind]}"
        for which, figures in self.graph.items():
            yield f"  {which}: {figures}"


class Verifier:
    """The stages that a spec asks for, over dialogues of one domain or several.

    Args:
        domain: That the dialogues were played in.
        spec: What they have to stand.
        known: Rulings of an earlier time, which judges are not asked for again.
        on_ruling: Told of new ones, as they come.

    Raises:
        SpecError: The domain's tools change what outlives a dialogue, so that no replay may be made.
    """

    def __init__(
        self,
        domain: AnyDomain,
        spec: VerifySpec,
        known: Mapping[EpisodeKey, Sequence[Ruling]] | None = None,
        on_ruling: OnRuling = lambda _key, _ruling: None,
    ) -> None:
        if spec.replay:
            _refuse_harmful_replays(domain)
        self._domain = domain
        self._tasks = StoredTasks(domain)
        self._stages = stages_of(spec, known or {}, on_ruling)
        self._copies = None if spec.near is None else Copies(spec.near)

    @property
    def names(self) -> list[str]:
        """Names of the stages, in order."""
        return [stage.name for stage in self._all()]

    def _all(self) -> Iterator[Stage]:
        yield from self._stages
        if self._copies is not None:
            yield self._copies

    async def verdicts(
        self, episodes: Iterable[Episode]
    ) -> AsyncGenerator[tuple[Episode, Verdict], None]:
        """Look at dialogues in order, some at a time; gone through once, with flat memory."""
        remaining = iter(episodes)
        async with self._domain.sharing():
            while batch := list(islice(remaining, _AT_ONCE)):
                candidates = [
                    Candidate(self._domain.of(episode.key.task_id), self._tasks, episode)
                    for episode in batch
                ]
                found = await self._looked_at(candidates)
                for candidate, (passed, flaw) in zip(candidates, found, strict=True):
                    if flaw is None and self._copies is not None:
                        flaw = await flaw_at(self._copies, candidate)
                        if flaw is None:
                            passed.append(self._copies.name)
                    yield candidate.episode, self._verdict(candidate, passed, flaw)

    async def _looked_at(
        self, candidates: Sequence[Candidate]
    ) -> list[tuple[list[str], Flaw | None]]:
        """What each of some dialogues passed, and what was wrong with it."""
        found: list[tuple[list[str], Flaw | None]] = [([], None) for _ in candidates]

        async def look(place: int, candidate: Candidate) -> None:
            passed: list[str] = []
            flaw = None
            for stage in self._stages:
                flaw = await flaw_at(stage, candidate)
                if flaw is not None:
                    break
                passed.append(stage.name)
            found[place] = passed, flaw

        async with anyio.create_task_group() as group:
            for place, candidate in enumerate(candidates):
                group.start_soon(look, place, candidate)
        return found

    def _verdict(self, candidate: Candidate, passed: list[str], flaw: Flaw | None) -> Verdict:
        key, rulings = candidate.episode.key, tuple(candidate.rulings)
        if flaw is None:
            return Verdict(key, tuple(passed), rulings=rulings)
        failed = next(name for name in self.names if name not in passed)
        return Verdict(key, tuple(passed), failed, flaw.kind, flaw.words, rulings)


def _refuse_harmful_replays(domain: AnyDomain) -> None:
    for one in domain.members:
        if one.spec.is_simulated:
            message = (
                "an LLM simulates its tools, and need not say the same again; what contradicts their "
                "memory is found as they are called. Verify without replay: `replay: false`"
            )
        elif one.spec.writes_outside:
            message = (
                "its tools change something outside the dialogue's own world (tools.external), which "
                "a replay would do again; verify without it: `replay: false`"
            )
        else:
            continue
        raise SpecError([one.located.problem(("tools",), message)])
