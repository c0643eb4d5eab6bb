"""Dialogues in a few words, and any of them, for tests of credit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from hypothesis import strategies as st

from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import Episode, Outcome, Sample, Span, Turn, UserReply
from muarl.spec import GrpoSpec
from muarl.testing.episodes import build_episode, build_key
from muarl.world import Change

METHODS: dict[str, dict[str, Any]] = {
    "outcome": {},
    "discounted": {"turns": "to_go", "score": "to_go"},
    "gigpo": {},
    "information": {},
    "reaction": {},
    "influence": {},
    "checklist": {},
}


class T(NamedTuple):
    """A turn.

    Attributes:
        act: Of the user's reply; None: there is none.
        says: What she says.
        call: Arguments of a tool call; None: none was made.
        answer: The tool's.
        fails: The answer is an error.
        sets: Place of the world to its new value, which was "old" before.
        tokens: Sampled.
    """

    act: str | None = None
    says: str = "well"
    call: dict[str, Any] | None = None
    answer: str = "ok"
    fails: bool = False
    sets: Mapping[str, str] = MappingProxyType({})
    tokens: int = 2


def dialogue(
    turns: Sequence[T], reward: float | None = 1.0, number: int = 0, opening: str = "hello"
) -> Episode:
    """An episode of these turns."""
    ids, spans, made = [1, 2, 3], [], []
    for place, turn in enumerate(turns):
        start, end = len(ids), len(ids) + turn.tokens
        ids += [*range(10, 10 + turn.tokens), 5, 6]
        spans.append(Span(start, end, 0))
        calls = [] if turn.call is None else [ToolCall(f"c{place}", "tool", turn.call)]
        results = [ToolResult(c.id, "tool", turn.answer, turn.fails) for c in calls]
        made.append(
            Turn(
                message=Message("assistant", "text", tool_calls=tuple(calls)),
                sample=0,
                start=start,
                end=end,
                finish_reason="stop",
                policy_version=0,
                results=results,
                reply=None if turn.act is None else UserReply(turn.says, act=turn.act),
                changes=[Change(p, "old", v, "changed") for p, v in turn.sets.items()],
            )
        )
    logprobs = [-0.5] * sum(turn.tokens for turn in turns)
    return build_episode(
        build_key("task-1", number),
        reward=reward,
        outcome=Outcome.INFRA_FAULT if reward is None else Outcome.COMPLETED,
        turns=made,
        samples=[Sample(ids, spans, logprobs)],
        opening=UserReply(opening),
    )


def spec_of(method: str, *, baseline: str = "std", shuffled: bool = False, **keys: Any) -> GrpoSpec:
    """GRPO with one credit; keys over those of METHODS."""
    return GrpoSpec.model_validate(
        {
            "baseline": baseline,
            "credit": {method: METHODS[method] | keys},
            "shuffled_credit": shuffled,
        }
    )


_turns = st.builds(
    T,
    act=st.sampled_from([None, "confirm", "tell:order_id", "unclear", "silence", "", "next"]),
    says=st.sampled_from(["it is A17", "yes", "no", "A17 and B4"]),
    call=st.sampled_from([None, {"id": "A17"}, {"id": "B4", "deep": [{"n": 3}]}, {"on": True}]),
    answer=st.sampled_from(["found A17", "3 of B4", "no such thing"]),
    fails=st.booleans(),
    sets=st.sampled_from([{}, {}, {"a": "new"}, {"b": "new"}]),
    tokens=st.integers(1, 4),
)


@st.composite
def groups(draw: st.DrawFn, *, faults: bool = True) -> list[Episode]:
    """Episodes of one task."""
    rewards = st.sampled_from([0.0, 0.25, 1.0, *([None] if faults else [])])
    return [
        dialogue(draw(st.lists(_turns, min_size=1, max_size=5)), draw(rewards), number)
        for number in range(draw(st.integers(1, 5)))
    ]


def measured_of(episodes: Sequence[Episode]) -> dict[Any, list[float | None]]:
    """A made-up measurement of every turn, by its tokens; the last has none."""
    return {e.key: [*(0.1 * (t.end - t.start) for t in e.turns[:-1]), None] for e in episodes}


def rewards_of(episodes: Sequence[Episode]) -> list[float | None]:
    """What each earned."""
    return [e.reward for e in episodes]
