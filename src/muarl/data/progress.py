"""What of a checklist was done after each turn of a stored dialogue, by its record alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import anyio

from muarl.credit.checklist import Tally
from muarl.data.stored import StoredTasks
from muarl.domain import Domain
from muarl.errors import EpisodeError, RewardError
from muarl.record import Episode, EpisodeKey, UserReply
from muarl.reward import evaluate
from muarl.spec import PredicateSpec, TaskSpec
from muarl.spec.calls import Who
from muarl.spec.credit import ChecklistCredit, ChecklistItem
from muarl.spec.declared_tools import tools_in
from muarl.spec.finding import Finding, unknown
from muarl.spec.predicate_kinds import WorldAt
from muarl.suite import AnyDomain
from muarl.world import Change, World, apply_changes, canonical_diff

_AT_ONCE = 64
"""Dialogues that are looked through at once, as a judge's endpoint has to answer for each."""


class Progress:
    """Points of turns, with what could not be found out.

    Attributes:
        points: Of each turn of each episode that could be looked through.
        failed: Episodes that could not, and why.
    """

    def __init__(self) -> None:
        self.points: dict[EpisodeKey, list[float]] = {}
        self.failed: dict[EpisodeKey, str] = {}


async def look_through(
    domain: AnyDomain, episodes: Iterable[Episode], spec: ChecklistCredit
) -> Progress:
    """Evaluate a checklist before the first turn and after every turn of scored episodes.

    Turn for turn the recorded changes are made in the world that an episode began in; no tool is
    called. An item is looked at until it is done, and never again.

    Raises:
        RecordError: A task or the domain's world are not those that an episode was played in.
    """
    tasks = StoredTasks(domain)
    found = Progress()
    limiter = anyio.CapacityLimiter(_AT_ONCE)

    async def one(episode: Episode) -> None:
        async with limiter:
            try:
                found.points[episode.key] = await _points(domain, tasks, episode, spec)
            except EpisodeError as error:  # a judge that does not answer, a check that trips
                found.failed[episode.key] = str(error)

    async with anyio.create_task_group() as group:
        for episode in episodes:
            group.start_soon(one, episode)
    return found


async def unfit_items(domain: Domain, items: Sequence[ChecklistItem]) -> list[Finding]:
    """What is wrong with a list in this domain: tools it does not have, checks that trip.

    Each is tried once, at the beginning of a dialogue; nobody is asked to judge.

    Raises:
        ToolServerError: The tool server does not start.
    """
    sides: dict[Who, Collection[str]] = {
        "agent": [tool.name for tool in await domain.tools()],
        "user": [tool.name for tool in await domain.user_tools()],
    }
    task = domain.tasks(domain.splits[0])[0]
    initial = domain.world_for(task)
    gold = await domain.gold_world(task)
    evidence = domain.evidence(initial.fork(), gold, [], UserReply("hello"), initial)
    found: list[Finding] = []
    for number, item in enumerate(items):
        for loc, by, tool in tools_in([item.when]):
            if tool not in sides[by]:
                found.append(Finding((number, "when", *loc[1:]), unknown("tool", tool, sides[by])))
        if any(part.judge is not None for _, part in item.when.walk()):
            continue
        try:
            await evaluate(item.when, evidence)
        except RewardError as error:
            found.append(Finding((number, "when"), str(error)))
    return found


async def _points(
    several: AnyDomain, tasks: StoredTasks, episode: Episode, spec: ChecklistCredit
) -> list[float]:
    task, domain = tasks.of(episode), several.of(episode.key.task_id)
    initial, final = tasks.worlds(episode)
    gold = await domain.gold_world(task)
    items = spec.items or items_of(domain, task, initial, gold, training=episode.key.trains)
    tally = Tally(items, len(episode.turns))
    for moment, world in enumerate(_worlds(episode, initial, final)):
        turns = episode.turns[:moment]
        evidence = domain.evidence(world, gold, turns, episode.opening, initial)
        tally.take({item.id: (await evaluate(item.when, evidence)).score for item in tally.due()})
    return tally.points


def items_of(
    domain: Domain, task: TaskSpec, initial: World, gold: World, *, training: bool
) -> list[ChecklistItem]:
    """A task's own checklist: what its gold calls change, and whatever else its reward asks for."""
    found: list[PredicateSpec] = []
    for predicate in domain.reward_for(task, training=training):
        for part in _parts(predicate):
            if part.gold_world:
                found += map(_as_predicate, canonical_diff(initial, gold, gold.unordered))
            else:
                found.append(part)
    return [ChecklistItem(id=f"item-{n}", when=part) for n, part in enumerate(found)]


def _parts(predicate: PredicateSpec) -> Iterator[PredicateSpec]:
    """A predicate that asks for several things, taken apart."""
    if predicate.all is None and predicate.weighted is None:
        yield predicate
        return
    for _, part in predicate.parts():
        yield from _parts(part)


def _as_predicate(change: Change) -> PredicateSpec:
    """That a change of the gold calls was made."""
    if change.kind == "removed":
        return PredicateSpec(world=WorldAt(path=change.path, changed=True))
    return PredicateSpec(world=WorldAt(path=change.path, one_of=[change.after]))


def _worlds(episode: Episode, initial: World, final: World) -> Iterator[World]:
    """The world before the first turn, and after each.

    The last is the final one, which a server that keeps its own state has the last word on.
    """
    world = initial.fork()
    apply_changes(world, episode.opening.changes)
    for turn in episode.turns:
        yield world.fork()
        replied: Sequence[Change] = turn.reply.changes if turn.reply is not None else ()
        apply_changes(world, [*turn.changes])
        apply_changes(world, replied)
    yield final
