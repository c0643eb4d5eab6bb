"""Credit of turns against the truth, on dialogues of which it is known.

    python benchmarks/credit.py --json

Three things have to be set right in ten turns; the reward is 1 if all three are. Each turn asks for a
value, sets something right with a value that was asked for, sets something wrong, has a call refused,
or chats, at fixed odds. How likely success is from where a dialogue stands follows exactly (by going
back from the end), and what a turn really did is by how much it changed that: `truth`.

For each method: `correlation` of the turns' advantages with the truth, over all turns of groups whose
rewards differ; `shuffled`, that of its control; `within`, the mean correlation inside episodes, where
plain GRPO has none at all. The toy's users react to what was done, and the toy plants gains for
`information` (1 where the next message used the answer); the other methods see the record alone.
Made-up dialogues say which turn a method finds, and not that a policy learns faster by it.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from muarl.credit import turn_advantages
from muarl.credit.checklist import Tally
from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import Episode, Turn, UserReply
from muarl.spec import GrpoSpec
from muarl.spec.credit import ChecklistItem
from muarl.testing.episodes import build_episode, build_key
from muarl.world import Change

TURNS = 10
GOALS = 3
ODDS = {"ask": 0.35, "right": 0.4, "wrong": 0.08, "refused": 0.07, "chat": 0.1}
CREDITS: dict[str, dict[str, Any]] = {
    "outcome": {},
    "discounted": {"score": "sum", "turns": "to_go"},
    "gigpo": {},
    "information": {"weight": 1.0, "gate": 10.0},
    "reaction": {"weight": 0.5},
    "influence": {},
    "checklist": {"level": "turn"},
}


class State(NamedTuple):
    """Where a dialogue stands.

    Attributes:
        right: Things set right.
        asked: A value was asked for, and not used yet.
    """

    right: int
    asked: bool


class Step(NamedTuple):
    """What a turn does: where it leads, and what of it is done."""

    state: State
    deed: str


def steps(state: State) -> list[tuple[float, Step]]:
    """What may happen next, and how likely each is. What cannot be done is chat."""
    right, asked = state
    found = []
    for deed, odds in ODDS.items():
        if deed == "ask" and not asked:
            found.append((odds, Step(State(right, True), deed)))
        elif deed == "right" and asked and right < GOALS:
            found.append((odds, Step(State(right + 1, False), deed)))
        elif deed == "wrong" and right > 0:
            found.append((odds, Step(State(right - 1, asked), deed)))
        elif deed == "refused":
            found.append((odds, Step(state, deed)))
        else:
            found.append((odds, Step(state, "chat")))
    return found


@cache
def value(state: State, left: int) -> float:
    """How likely success is with so many turns left."""
    if not left:
        return float(state.right == GOALS)
    return sum(odds * value(step.state, left - 1) for odds, step in steps(state))


class Planted(NamedTuple):
    """A dialogue, what each turn really did, and what was planted for methods to measure."""

    episode: Episode
    truth: list[float]
    gains: list[float | None]
    points: list[float]


def planted(group: int, number: int, rng: random.Random) -> Planted:
    """One dialogue."""
    state, world, stored, code = State(0, False), [False] * GOALS, ["old"] * GOALS, 0
    turns: list[Turn] = []
    truth: list[float] = []
    deeds: list[str] = []
    items = [ChecklistItem.model_validate({"id": f"goal-{n}", "when": {"gold_world": True}})
             for n in range(GOALS)]  # fmt: skip
    tally = Tally(items, TURNS)
    tally.take({item.id: 0.0 for item in items})
    start = 3
    for turn in range(TURNS):
        chances = steps(state)
        step = rng.choices([s for _, s in chances], [odds for odds, _ in chances])[0]
        truth.append(value(step.state, TURNS - turn - 1) - value(state, TURNS - turn))
        call: dict[str, str] | None = None
        reply: UserReply | None = None
        changes: list[Change] = []
        if step.deed == "ask":
            code += 1
            reply = UserReply(f"it is number{number}x{code}", act="tell:code")
        elif step.deed in ("right", "wrong"):
            good = step.deed == "right"
            place = world.index(not good)
            world[place] = good
            call = {"value": f"number{number}x{code}" if good else f"guess{turn}"}
            changes = [Change(f"goal{place}", stored[place], step.deed, "changed")]
            stored[place] = step.deed
            reply = UserReply("well", act="next" if good else "challenge")
        elif step.deed == "refused":
            call = {"value": f"guess{turn}"}
        else:
            reply = UserReply("hm", act="silence")
        calls = () if call is None else (ToolCall(f"c{turn}", "set", call),)
        refused = step.deed == "refused"
        turns.append(
            Turn(
                message=Message("assistant", "text", tool_calls=calls),
                sample=0,
                start=start,
                end=start + 4,
                finish_reason="stop",
                policy_version=0,
                results=[
                    ToolResult(c.id, "set", "no" if refused else "ok", refused) for c in calls
                ],
                reply=reply,
                changes=changes,
            )
        )
        start += 6
        state = step.state
        deeds.append(step.deed)
        tally.take({item.id: float(world[int(item.id[-1])]) for item in tally.due()})
    gains: list[float | None] = [
        float(now == "ask" and after == "right") for now, after in pairwise(deeds)
    ]
    key = build_key("toy", number, iteration=group)
    reward = float(state.right == GOALS)
    episode = build_episode(key, reward=reward, turns=turns, opening=UserReply("hello"))
    return Planted(episode, truth, [*gains, None], tally.points)


def correlation(ours: Sequence[float], truth: Sequence[float]) -> float | None:
    """Pearson's; None where one of them is constant."""
    if len(ours) < 2 or min(ours) == max(ours) or min(truth) == max(truth):
        return None
    return statistics.correlation(ours, truth)


def measure(groups: Sequence[Sequence[Planted]], credit: str, *, shuffled: bool) -> dict[str, Any]:
    """How a method's advantages go with the truth."""
    spec = GrpoSpec.model_validate(
        {"credit": {credit: CREDITS[credit]}, "shuffled_credit": shuffled}
    )
    ours: list[float] = []
    truth: list[float] = []
    within: list[float] = []
    for group in groups:
        measured: dict[Any, Sequence[float | None]] = {
            p.episode.key: p.gains if credit == "information" else p.points for p in group
        }
        found = turn_advantages(
            [p.episode for p in group],
            [p.episode.reward for p in group],
            spec,
            measured=measured,
        )
        for one, credited in zip(group, found, strict=True):
            assert credited is not None
            ours += credited.turns
            truth += one.truth
            inside = correlation(credited.turns, one.truth)
            within.append(0.0 if inside is None else inside)
    return {"correlation": correlation(ours, truth), "within": statistics.fmean(within)}


def main() -> None:
    """Print correlations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--groups", type=int, default=600, help="groups of eight dialogues")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    groups = [[planted(group, number, rng) for number in range(8)] for group in range(args.groups)]
    groups = [g for g in groups if len({p.episode.reward for p in g}) > 1]
    found: dict[str, Any] = {"groups_that_differ": len(groups)}
    for credit in CREDITS:
        row = measure(groups, credit, shuffled=False)
        if credit != "outcome":
            control = measure(groups, credit, shuffled=True)
            row |= {"shuffled": control["correlation"], "shuffled_within": control["within"]}
        found[credit] = {name: round(figure, 3) for name, figure in row.items()}
    if args.json:
        print(json.dumps(found))
        return
    for name, row in found.items():
        print(f"{name:20} {row}")


if __name__ == "__main__":
    main()
