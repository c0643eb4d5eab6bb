"""Rollouts of one task as paths through one graph, where what came to the same is one state.

A state is what of the world is other than at the start (`muarl.credit.states`), who is to speak, and what
the agent was last told, in kind: a call's tool and whether it failed, the user's act. An action is what the
agent did next: the calls it made, or that it spoke. Merged over rollouts, a state with several actions is a
branch; an action after which no rollout succeeds, beside one after which some do, is an error branch
(after TopoCurate, arXiv 2603.01714, of which the abstract was read).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from statistics import fmean

import msgspec

from muarl.credit.states import states_before_turns
from muarl.record import Episode, EpisodeKey, Turn

_SUCCESS = 1 - 1e-6

Step = tuple[Hashable, Hashable]
"""A state, and the action that was taken in it."""


class Shape(msgspec.Struct, frozen=True):
    """What a dialogue is among the rollouts of its task.

    Attributes:
        diversity: Mean over its turns of how seldom what it did was done there, in nats: 0 where all
            rollouts did the same.
        error_branches: States that it came through in which others took an error branch.
        recovers: It succeeded although a call of its own failed, or it took an action back that had changed
            the world.
    """

    diversity: float
    error_branches: int
    recovers: bool


class GraphFigures(msgspec.Struct, frozen=True):
    """What the graphs of all tasks are like.

    Attributes:
        steps: Turns of all rollouts.
        states: States, merged.
        branches: States with more than one action.
        error_branch_ratio: Actions that are error branches, of all in branches; None where there is none.
        diversity: Mean of the dialogues'.
        recoveries: Dialogues that recover.
    """

    steps: int
    states: int
    branches: int
    error_branch_ratio: float | None
    diversity: float
    recoveries: int

    def __str__(self) -> str:
        wrong = self.error_branch_ratio
        errors = "none" if wrong is None else f"{wrong:.2f} of their actions err"
        return (
            f"diversity {self.diversity:.3f}, {self.recoveries} recover; {self.states} states of "
            f"{self.steps} turns, {self.branches} branch, {errors}"
        )


class StateGraph:
    """All rollouts, merged task by task."""

    def __init__(self) -> None:
        self._paths: dict[EpisodeKey, list[Step]] = {}
        self._recovers: dict[EpisodeKey, bool] = {}
        self._taken: defaultdict[Hashable, defaultdict[Hashable, list[bool]]] = defaultdict(
            lambda: defaultdict(list)
        )

    def add(self, episode: Episode) -> None:
        """Take in a rollout; one that ended in a fault says nothing."""
        if episode.outcome.is_fault:
            return
        success = (episode.reward or 0.0) >= _SUCCESS
        path = list(_steps(episode))
        self._paths[episode.key] = path
        self._recovers[episode.key] = success and _recovers(episode)
        for state, action in path:
            self._taken[state][action].append(success)

    def shape(self, key: EpisodeKey) -> Shape:
        """Of a rollout that was taken in."""
        path = self._paths[key]
        rarities = [self._rarity(*step) for step in path]
        beside = sum(
            any(self._is_error(state, other) for other in self._taken[state] if other != action)
            for state, action in path
        )
        return Shape(fmean(rarities) if rarities else 0.0, beside, self._recovers[key])

    def figures(self, keys: Iterable[EpisodeKey] | None = None) -> GraphFigures:
        """Of the whole graph; diversity and recoveries of some rollouts, or of all."""
        chosen = [key for key in (self._paths if keys is None else keys) if key in self._paths]
        branches = {s: actions for s, actions in self._taken.items() if len(actions) > 1}
        actions = [(state, action) for state, found in branches.items() for action in found]
        wrong = sum(self._is_error(*step) for step in actions)
        shapes = [self.shape(key) for key in chosen]
        return GraphFigures(
            steps=sum(map(len, self._paths.values())),
            states=len(self._taken),
            branches=len(branches),
            error_branch_ratio=wrong / len(actions) if actions else None,
            diversity=fmean(shape.diversity for shape in shapes) if shapes else 0.0,
            recoveries=sum(shape.recovers for shape in shapes),
        )

    def _rarity(self, state: Hashable, action: Hashable) -> float:
        taken = self._taken[state]
        return -math.log(len(taken[action]) / sum(map(len, taken.values())))

    def _is_error(self, state: Hashable, action: Hashable) -> bool:
        """No rollout that took it there succeeded, and one that took another did."""
        taken = self._taken[state]
        return not any(taken[action]) and any(map(any, taken.values()))


def _steps(episode: Episode) -> Iterable[Step]:
    told: Hashable = ("opening",)
    for state, turn in zip(states_before_turns(episode), episode.turns, strict=True):
        yield (episode.key.task_id, state, told), _action(turn)
        told = _told(turn)


def _action(turn: Turn) -> Hashable:
    """What the agent did: its calls with their arguments, or that it spoke."""
    calls = [
        (call.name, msgspec.json.encode(call.arguments, order="deterministic"))
        for call in turn.calls
    ]
    return tuple(calls) or "speaks"


def _told(turn: Turn) -> Hashable:
    if turn.reply is not None:
        return ("user", turn.reply.act)
    return tuple((result.name, result.is_error) for result in turn.results)


def _recovers(episode: Episode) -> bool:
    """A call failed, or a change was taken back: a state came again after another one."""
    if any(result.is_error for turn in episode.turns for result in turn.results):
        return True
    return _comes_back(states_before_turns(episode))


def _comes_back(states: Sequence[Hashable]) -> bool:
    seen: set[Hashable] = set()
    for before, now in zip([None, *states], states, strict=False):
        if now != before and now in seen:
            return True
        seen.add(now)
    return False
