"""What one dialogue has to stand, one stage after another; none needs a model or a user.

A stage looks at a dialogue by itself and says what is wrong with it, or nothing. Copies are found by
`muarl.synth.duplicates`, which has to know the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from muarl.data.replay import replay_problem
from muarl.data.stored import judged_again
from muarl.errors import EpisodeError, RecordError
from muarl.evaluate.identifiers import first_unsaid
from muarl.measure.contract import FAMILIES
from muarl.measure.episodes import EpisodeReader
from muarl.measure.view import View
from muarl.record import EpisodeKey, Outcome
from muarl.reward import evaluate
from muarl.spec import PredicateSpec
from muarl.spec.verify import OtherJudgeSpec, VerifySpec
from muarl.synth.candidate import Candidate, Ruling

_WHOLE = 1 - 1e-6

OnRuling = Callable[[EpisodeKey, Ruling], None]
"""Told of what a judge found about a dialogue."""


class Flaw(NamedTuple):
    """What is wrong with a dialogue.

    Attributes:
        kind: In a word or two, alike for dialogues that fail alike.
        words: What exactly, for a person.
    """

    kind: str
    words: str


class Stage(Protocol):
    """One thing that a dialogue has to stand."""

    @property
    def name(self) -> str:
        """As reports call it."""
        ...

    async def flaw(self, candidate: Candidate) -> Flaw | None:
        """What is wrong with a dialogue; None if it passes.

        Raises:
            EpisodeError: It cannot be told.
            RecordError: Likewise.
        """
        ...


class Ended:
    """It came to an end: no fault and, unless `only_faults`, by the user or a terminal tool."""

    name = "ended"

    def __init__(self, *, only_faults: bool) -> None:
        self._only_faults = only_faults

    async def flaw(self, candidate: Candidate) -> Flaw | None:
        episode = candidate.episode
        if episode.outcome.is_fault:
            return Flaw(episode.fault or episode.outcome.value, episode.error or "it broke off")
        if self._only_faults or episode.outcome == Outcome.COMPLETED:
            return None
        return Flaw(episode.outcome.value, f"it ended as {episode.outcome.value}")


class Replays:
    """Its calls, made again, answer as recorded and lead to the recorded world."""

    name = "replay"

    async def flaw(self, candidate: Candidate) -> Flaw | None:
        found = await replay_problem(candidate.domain, candidate.task, candidate.episode)
        return None if found is None else Flaw("differs", found)


class Earns:
    """What it led to is what the task's and the domain's predicates ask for."""

    name = "reward"

    def __init__(self, least: float) -> None:
        self._least = least

    async def flaw(self, candidate: Candidate) -> Flaw | None:
        verdict = await judged_again(
            candidate.domain, candidate.task, candidate.episode, candidate.worlds
        )
        if verdict.reward >= self._least - (1 - _WHOLE):
            return None
        lowest = min(
            (result for result in verdict.rewards if result.score is not None),
            key=lambda result: result.score or 0.0,
            default=None,
        )
        if lowest is None:
            return Flaw("no predicate", "no predicate of the reward applies")
        return Flaw(lowest.name, lowest.reason)


class Identified:
    """Every identifier it called with was told to it."""

    name = "identifiers"

    async def flaw(self, candidate: Candidate) -> Flaw | None:
        found = first_unsaid(candidate.episode)
        if found is None:
            return None
        return Flaw(
            f"{found.tool}.{found.path}",
            f"turn {found.turn}: {found.tool} was called with {found.path} {found.value!r}, which "
            "nobody had told",
        )


class KeepsRules:
    """The rules that are written as predicates hold, or do not apply."""

    name = "rules"

    def __init__(self, rules: Sequence[PredicateSpec]) -> None:
        self._rules = rules

    async def flaw(self, candidate: Candidate) -> Flaw | None:
        evidence = await candidate.evidence()
        for rule in self._rules:
            found = await evaluate(rule, evidence)
            if found.score is not None and found.score < _WHOLE:
                return Flaw(found.name, found.reason)
        return None


class UserKept:
    """The user kept her contract; see `muarl.measure.contract`."""

    name = "user"

    def __init__(self) -> None:
        self._readers: dict[Path, EpisodeReader] = {}

    async def flaw(self, candidate: Candidate) -> Flaw | None:
        domain = candidate.domain
        reader = self._readers.setdefault(domain.located.path, EpisodeReader(domain))
        view = View(reader.transcript(candidate.episode, candidate.task))
        for family, (says, criterion) in FAMILIES.items():
            if criterion(view) is False:
                return Flaw(family, f"it does not hold that {says}")
        return None


class Judged:
    """LLMs of another family than the agent's find that each criterion holds, and show by what.

    Args:
        judges: What is asked, and whom.
        known: Rulings of an earlier time, by dialogue; they are not asked for again.
        on_ruling: Told of each that is not known, as soon as it is there.
    """

    name = "judged"

    def __init__(
        self,
        judges: Sequence[OtherJudgeSpec],
        known: Mapping[EpisodeKey, Sequence[Ruling]],
        on_ruling: OnRuling,
    ) -> None:
        self._judges = judges
        self._known = known
        self._on_ruling = on_ruling

    async def flaw(self, candidate: Candidate) -> Flaw | None:
        evidence = await candidate.evidence()
        known = {
            (one.judge, one.family, one.criterion): one
            for one in self._known.get(candidate.episode.key, ())
        }
        for judge in self._judges:
            ruling = known.get((judge.model, judge.family, judge.criterion))
            if ruling is None:
                found = await candidate.domain.judges.rule(judge, evidence)
                ruling = Ruling(
                    *(judge.model, judge.family, judge.criterion),
                    holds=found.score == 1.0,
                    evidence=found.evidence,
                    reason=found.reason,
                )
                self._on_ruling(candidate.episode.key, ruling)
            candidate.rulings.append(ruling)
            if not ruling.holds:
                return Flaw(judge.criterion, f"{judge.model}: {ruling.reason}; {ruling.evidence!r}")
        return None


def stages_of(
    spec: VerifySpec,
    known: Mapping[EpisodeKey, Sequence[Ruling]],
    on_ruling: OnRuling = lambda _key, _ruling: None,
) -> list[Stage]:
    """The stages that a spec asks for, cheapest first as far as they do not build on each other.

    Args:
        spec: Asks for them.
        known: Rulings of an earlier time.
        on_ruling: Told of new ones.
    """
    stages: list[Stage] = [Ended(only_faults=not spec.ended)]
    if spec.replay:
        stages.append(Replays())
    if spec.min_reward is not None:
        stages.append(Earns(spec.min_reward))
    if spec.identifiers:
        stages.append(Identified())
    if spec.rules:
        stages.append(KeepsRules(spec.rules))
    if spec.user:
        stages.append(UserKept())
    if spec.judged is not None:
        stages.append(Judged(spec.judged.judges, known, on_ruling))
    return stages


async def flaw_at(stage: Stage, candidate: Candidate) -> Flaw | None:
    """As `Stage.flaw`; what cannot be told about a dialogue is wrong with it."""
    try:
        return await stage.flaw(candidate)
    except (EpisodeError, RecordError) as error:
        return Flaw(type(error).__name__, str(error))
