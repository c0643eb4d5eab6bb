"""What an author writes: goals, each a function that draws one thing a user may want."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from muarl.goals.axes import AXES
from muarl.spec import FactSpec, GoldCallSpec, PredicateSpec, RequestSpec
from muarl.spec.task import Disclosure

if TYPE_CHECKING:
    from muarl.goals.scene import Scene

Calls = Sequence[GoldCallSpec]

Words = str | Sequence[str]
"""A sentence about the user, or several of which one is drawn; `{order_id}` stands for a fact."""


class Unfit(Exception):
    """What was drawn makes no task, for a reason that is counted; something else is drawn instead."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """One thing that a user wants, as a goal has drawn it.

    Attributes:
        ask: Her intent, in a word that the domain's wordings know.
        words: It in a sentence, for LLM users and readers: "you want order {order_id} cancelled".
        facts: What she knows of it, id to value. Each stands in `words`.
        disclose: How she tells a fact; `volunteer` where nothing is said.
        gold: Calls that fulfil it, in order; or several lists of calls that can be made in any order.
        forbidden: What she asks for although the rules forbid it: the calls that would be wrong.
            Such a wish is a refusal, and its gold calls write nothing.
        say: What the agent must have told her in the end.
        reward: What else a dialogue must fulfil for reward 1.
        follows: It makes sense only once her earlier wishes are fulfilled, and she says so; else
            wishes must lead to the same world in whatever order they are fulfilled.
        instead: What she changes her mind to when she is asked to confirm. Only its gold calls are
            made then, so give none beside it.
        personas: Those that may have it; all where none are named.
    """

    ask: str
    words: Words
    facts: Mapping[str, str] = field(default_factory=dict)
    disclose: Mapping[str, Disclosure] = field(default_factory=dict)
    gold: Calls | Sequence[Calls] = ()
    forbidden: Calls = ()
    say: Sequence[str] = ()
    reward: Sequence[PredicateSpec] = ()
    follows: bool = False
    instead: Wish | None = None
    personas: Sequence[str] = ()

    @property
    def final(self) -> Wish:
        """What she wants in the end."""
        return self if self.instead is None else self.instead.final

    @property
    def blocks(self) -> list[list[GoldCallSpec]]:
        """Its gold calls: lists whose order is free, of calls in order."""
        if self.gold and isinstance(self.gold[0], GoldCallSpec):
            return [list(self.gold)]  # type: ignore[arg-type]
        return [list(block) for block in self.gold if block]  # type: ignore[arg-type]

    def all_facts(self) -> Iterator[FactSpec]:
        """Its facts, and those of what may replace it."""
        yield from self._facts()
        if self.instead is not None:
            yield from self.instead.all_facts()

    def request(self) -> RequestSpec:
        """It as an entry of her ledger."""
        return RequestSpec(
            ask=self.ask,
            facts=list(self._facts()),
            instead=None if self.instead is None else self.instead.request(),
        )

    def _facts(self) -> Iterator[FactSpec]:
        for name, value in self.facts.items():
            yield FactSpec(id=name, value=value, disclose=self.disclose.get(name, "volunteer"))


def call(tool: str, /, **arguments: Any) -> GoldCallSpec:
    """A call of the agent's.

    Example:
        >>> call("cancel_order", order_id="W17").arguments
        {'order_id': 'W17'}
    """
    return GoldCallSpec(tool=tool, arguments=arguments)


def user_call(tool: str, /, **arguments: Any) -> GoldCallSpec:
    """A call that the user makes on her own device."""
    return GoldCallSpec(tool=tool, arguments=arguments, by="user")


Draw = Callable[["Scene"], Wish]
"""A goal: draws a wish in a scene, or raises `Unfit` where there is nothing to want."""


@dataclass(frozen=True)
class Goal:
    """One goal of a domain.

    Attributes:
        name: Of its function.
        draw: Its function.
        weight: How often it is drawn, beside the others.
        first: It can only be the first wish of a dialogue.
        last: It can only be the last one.
    """

    name: str
    draw: Draw
    weight: float
    first: bool = False
    last: bool = False


Shares = Mapping[int, float]
"""Value on an axis to the share of tasks that have it, each in [0, 1], together 1."""


class Goals:
    """The goals of a domain, and how tasks are made of them.

    Args:
        wishes: How many wishes a task has: number to share.
        balance: Axis (one of `AXES`) to the shares of its values; values that are not named do not
            occur. The others come as they are drawn.
        idle: Largest share of tasks that are solved by doing nothing; left out, two thirds of the
            domain's `floor`.
        begin: Called before the first goal of each task; who the user is, say. What it returns is
            the `Scene.who` of all goals.
        joins: What stands before the second wish and those after it in the words of a task.
        joins_after: Likewise, where the wish `follows`.

    Raises:
        ValueError: An axis is unknown, or shares are none.
    """

    def __init__(
        self,
        *,
        wishes: Shares | None = None,
        balance: Mapping[str, Shares] | None = None,
        idle: float | None = None,
        begin: Callable[[Scene], Any] | None = None,
        joins: Sequence[str] = ("Also, ", "Besides, ", "In addition, "),
        joins_after: Sequence[str] = ("After that, ", "Once that is done, "),
    ) -> None:
        self.wishes = dict(wishes or {1: 1.0})
        self.balance = {axis: dict(shares) for axis, shares in (balance or {}).items()}
        self.idle = idle
        self.begin = begin
        self.joins = tuple(joins)
        self.joins_after = tuple(joins_after)
        self.goals: list[Goal] = []
        if unknown := sorted(set(self.balance) - set(AXES)):
            raise ValueError(f"unknown axes {unknown} in balance; there are {', '.join(AXES)}")
        for name, shares in (("wishes", self.wishes), *self.balance.items()):
            if abs(sum(shares.values()) - 1) > 1e-6 or min(shares.values()) < 0:
                raise ValueError(f"the shares of {name} must be positive and add up to 1: {shares}")
        if min(self.wishes) < 1:
            raise ValueError(f"a task has at least one wish: {self.wishes}")

    def goal(
        self, *, weight: float = 1.0, first: bool = False, last: bool = False
    ) -> Callable[[Draw], Draw]:
        """Declare the function below as a goal.

        Args:
            weight: How often it is drawn, beside the others.
            first: It can only be the first wish of a dialogue.
            last: It can only be the last one, as what ends the dialogue is.
        """

        def declared(draw: Draw) -> Draw:
            self.goals.append(Goal(getattr(draw, "__name__", "goal"), draw, weight, first, last))
            return draw

        return declared
