"""How an episode's advantage is shared out among its turns; docs/credit.md has the equations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from muarl.errors import did_you_mean
from muarl.spec.base import Fraction, Id, OneOf, Spec
from muarl.spec.predicate import PredicateSpec

Weight = Annotated[float, Field(ge=0)]
Discount = Annotated[float, Field(gt=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Polarity = Annotated[int, Field(ge=-1, le=1)]
Normalised = Literal["std", "mean"]


POLARITY: Mapping[str, int] = {
    **dict.fromkeys(("confirm", "tell", "accept_refusal", "next", "stop", "did"), 1),
    **dict.fromkeys(("open", "partly", "silence", "digress", "unavailable", "pass"), 0),
    **dict.fromkeys(("unclear", "deny", "change", "refuse", "push_back", "challenge"), -1),
    **dict.fromkeys(("failed", "abandon"), -1),
}
"""A user's act, without what follows its colon, to what it says of what was done before it."""


class OutcomeCredit(Spec):
    """Each turn has the advantage of its episode: plain GRPO."""


class DiscountedCredit(Spec):
    """Early success is worth more, late turns count more, or both (UserRL, arXiv 2509.19736)."""

    score: Literal["sum", "to_go"] = "to_go"
    """What an episode of T turns is compared by: its reward (`sum`), or its reward as seen from the
    first turn, `discount ** (T - 1)` of it (`to_go`)."""
    turns: Literal["equal", "to_go"] = "equal"
    """Share of turn t in the advantage: the same for all, or proportional to `discount ** (T - 1 - t)`."""
    discount: Discount = 0.8
    """What one further turn makes of a reward."""
    weight: Fraction = 1.0
    """0 is plain GRPO, 1 the whole method."""

    @model_validator(mode="after")
    def _does_something(self) -> DiscountedCredit:
        if self.score == "sum" and self.turns == "equal":
            raise ValueError("score: sum with turns: equal is plain GRPO; write `outcome: {}`")
        return self


class GigpoCredit(Spec):
    """Turns that began in the same state are compared with each other (GiGPO, arXiv 2505.10978)."""

    weight: Weight = 1.0
    """Of the comparison within a state, beside the episode's advantage."""
    discount: Discount = 0.95
    """What one further turn makes of a reward."""
    anchor: Literal["world", "world_and_answer"] = "world"
    """What makes two turns comparable: the world before them is the same; or also what they answer is,
    the user's message or the tools' results."""
    baseline: Normalised = "std"
    """Whether what is above the mean is divided by the deviation."""


class InformationCredit(Spec):
    """A turn earns what its answer tells the policy for its next message (InfoPO, arXiv 2603.00656)."""

    weight: Weight = 0.1
    """Of the gain, beside the episode's advantage."""
    gate: Positive = 0.05
    """Deviation of the group's rewards at which the gain's weight falls to a quarter; it is a half
    where all earned the same."""
    instead: str = ""
    """Stands for an answer where the policy is asked what it would have said without one."""


class ReactionCredit(Spec):
    """Turns up to a user's reaction earn by what she did (FACA, arXiv 2608.17499).

    Needs a user whose replies carry acts.
    """

    weight: Annotated[float, Field(ge=0, le=0.5)] = 0.3
    """Of the reaction, beside the episode's advantage; at most a half, so that the outcome leads."""
    limit: Positive = 1.0
    """Most that a reaction counts, above or below the group's mean, before it is weighted."""
    polarity: dict[str, Polarity] = {}
    """Act to 1, 0 or -1, where it is to be another than in docs/credit.md: `change: 0`, or
    `tell:city: 0` for one kind of it."""

    @model_validator(mode="after")
    def _known_acts(self) -> ReactionCredit:
        for act in self.polarity:
            kind = act.partition(":")[0]
            if kind not in POLARITY:
                known = ", ".join(POLARITY)
                hint = did_you_mean(kind, list(POLARITY))
                raise ValueError(f"{act!r} is no act of a user{hint}; acts are {known}")
        return self


class InfluenceCredit(Spec):
    """Turns whose results were used count more, for good or ill (IAPO, arXiv 2608.24588)."""

    weight: Fraction = 1.0
    """0 is plain GRPO, 1 the whole method."""
    clip: Positive = 0.25
    """Most that a turn's influence counts, in deviations from the episode's mean."""
    penalty: Weight = 0.05
    """How much failed use takes from a turn of an episode that did well."""


class ChecklistItem(Spec):
    """One thing to get done in a dialogue."""

    id: Id
    """Its name."""
    when: PredicateSpec
    """Holds as soon as it is done; looked at after every turn."""
    weight: Positive = 1.0
    """What it is worth."""
    after: list[Id] = []
    """Items that must be done before it counts."""


class ChecklistCredit(Spec):
    """Turns earn by items they get done, each when it first holds (CM2, arXiv 2602.12268)."""

    weight: Weight = 0.5
    """Of the items, beside the episode's advantage."""
    items: Annotated[list[ChecklistItem], Field(min_length=1)] | None = None
    """The list; left out: each change that the gold calls make, and whatever else the task's reward
    asks for."""
    level: Literal["turn", "exchange", "episode"] = "exchange"
    """Who earns an item: the turn that got it done, all turns since the user last spoke, or all."""

    @model_validator(mode="after")
    def _in_order(self) -> ChecklistCredit:
        _refuse_disorder(self.items or ())
        return self


def _refuse_disorder(items: Sequence[ChecklistItem]) -> None:
    known: set[str] = set()
    for item in items:
        if item.id in known:
            raise ValueError(f"two items are called {item.id!r}")
        for name in item.after:
            if name not in known:
                raise ValueError(
                    f"{item.id!r} comes after {name!r}, which is no item above it in the list"
                )
        known.add(item.id)


class CreditSpec(OneOf):
    """Who of an episode's turns earned its advantage: one of these."""

    outcome: OutcomeCredit | None = None
    """All alike."""
    discounted: DiscountedCredit | None = None
    """By distance from the end."""
    gigpo: GigpoCredit | None = None
    """By what others made of the same state."""
    information: InformationCredit | None = None
    """By what their answers told."""
    reaction: ReactionCredit | None = None
    """By what the user did next."""
    influence: InfluenceCredit | None = None
    """By what was made of their results."""
    checklist: ChecklistCredit | None = None
    """By items done."""

    @property
    def name(self) -> str:
        """Which it is."""
        return next(name for name in type(self).model_fields if getattr(self, name) is not None)

    @property
    def weight(self) -> float:
        """Of what is not plain GRPO; 0 makes every choice plain GRPO."""
        found: float = getattr(getattr(self, self.name), "weight", 0.0)
        return found

    @property
    def tells_turns_apart(self) -> bool:
        """Whether turns of one episode may have different advantages."""
        alike = self.discounted is not None and self.discounted.turns == "equal"
        return not alike and self.weight > 0
