"""Groups, work and cost: metrics 24, 30 and 31."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from muarl.measure.disclosure import is_premature
from muarl.measure.figure import Figure, each
from muarl.measure.view import View


def groups(views: Sequence[View]) -> list[list[float]]:
    """Rewards of each group that has two or more."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for view in views:
        reward = view.transcript.reward
        if view.transcript.group and reward is not None:
            found[view.transcript.group].append(reward)
    return [rewards for rewards in found.values() if len(rewards) > 1]


def is_flat(rewards: Sequence[float]) -> bool:
    """All earned the same: nothing is learnt from the group."""
    return min(rewards) == max(rewards)


def _share(holds: Callable[[Sequence[float]], bool]) -> Callable[[Sequence[View]], list[float]]:
    return lambda views: [float(holds(rewards)) for rewards in groups(views)]


def _effort(of: Callable[[View], int]) -> Callable[[View], Iterator[tuple[bool, int]]]:
    """Of a success: whether she disclosed too much, and what it took."""

    def observe(view: View) -> Iterator[tuple[bool, int]]:
        if view.succeeded:
            yield any(map(is_premature, view.user)), of(view)

    return observe


def _calls(view: View) -> int:
    return sum(len(turn.uses) for turn in view.agent)


def _questions(view: View) -> int:
    return sum("ask" in turn.cues for turn in view.agent)


def _saved(items: Sequence[tuple[bool, int]]) -> float | None:
    """Mean where she told too much less mean where she did not; None without both."""
    leaky = [work for over, work in items if over]
    clean = [work for over, work in items if not over]
    return fmean(leaky) - fmean(clean) if leaky and clean else None


def _work(name: str, of: Callable[[View], int], what: str) -> tuple[Figure, Figure]:
    return (
        Figure(
            name=f"{name}_at_success",
            number=30,
            says=f"{what} of the agent in a dialogue of reward 1",
            source="UserProxyBench",
            unit=name,
            better="compare",
            items=each(_effort(of)),
            statistic=lambda items: fmean(work for _, work in items),
        ),
        Figure(
            name=f"{name}_saved",
            number=30,
            says=f"the same where she disclosed prematurely less that where she did not: {what} that "
            "over-disclosure saves at equal reward, as a negative number",
            source="UserProxyBench (-1.06 calls, -0.26 questions)",
            unit=name,
            better="compare",
            items=each(_effort(of)),
            statistic=_saved,
        ),
    )


def _p95(items: Sequence[float]) -> float:
    return sorted(items)[-(-95 * len(items) // 100) - 1]


def _seconds(view: View) -> Iterator[float]:
    lines = view.transcript.lines
    yield from (x.seconds for x in lines if x.speaker == "user" and x.seconds is not None)


def _cost(view: View) -> Iterator[float]:
    known = [x.cost for x in view.transcript.lines if x.speaker == "user" and x.cost is not None]
    if known:
        yield sum(known)


FIGURES = (
    Figure(
        name="flat_groups",
        number=24,
        says="share of the groups in which all earned the same",
        source="SCOPE (60 to 85 % as a simulator collapses)",
        unit="share",
        better="lower",
        items=_share(is_flat),
    ),
    Figure(
        name="all_fail_groups",
        number=24,
        says="share of the groups in which all earned 0",
        source="SCOPE",
        unit="share",
        better="lower",
        items=_share(lambda rewards: max(rewards) == 0),
    ),
    Figure(
        name="all_pass_groups",
        number=24,
        says="share of the groups in which all earned 1",
        source="MUA-RL",
        unit="share",
        better="compare",
        items=_share(lambda rewards: min(rewards) >= 1),
    ),
    *_work("calls", _calls, "tool calls"),
    *_work("questions", _questions, "questions"),
    Figure(
        name="policy_tokens",
        number=31,
        says="tokens the policy sampled in a dialogue",
        source="muarl",
        unit="tokens",
        better="compare",
        items=each(
            lambda view: (
                []
                if view.transcript.sampled_tokens is None
                else [float(view.transcript.sampled_tokens)]
            )
        ),
    ),
    Figure(
        name="user_cost",
        number=31,
        says="what the user's lines of a dialogue cost, where the corpus says it",
        source="muarl",
        unit="money",
        better="lower",
        items=each(_cost),
    ),
    Figure(
        name="latency_p95",
        number=31,
        says="seconds that 95 % of the user's lines did not exceed, where the corpus says it",
        source="muarl",
        unit="seconds",
        better="lower",
        items=each(_seconds),
        statistic=_p95,
    ),
)
