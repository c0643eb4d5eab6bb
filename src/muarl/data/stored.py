"""The tasks behind stored episodes, and the worlds that they ended with."""

from __future__ import annotations

from collections.abc import Iterable

from muarl.errors import RecordError, SetupError
from muarl.record import Episode, EpisodeHead
from muarl.reward import Verdict
from muarl.spec import RewardFile, TaskSpec
from muarl.suite import AnyDomain
from muarl.world import World, apply_changes


class StoredTasks:
    """Finds the task of a stored episode, and makes sure that it is still the same."""

    def __init__(self, domain: AnyDomain) -> None:
        self._domain = domain
        self._by_split: dict[str, dict[str, TaskSpec]] = {}

    def of(self, episode: Episode | EpisodeHead) -> TaskSpec:
        """The task an episode was played on.

        Gold calls, reward and metrics may be other ones by now: they only judge what happened.

        Raises:
            RecordError: The domain has no such task, or another one by that name.
        """
        task_id = episode.key.task_id
        try:
            domain = self._domain.of(task_id).spec.id
        except KeyError:  # of no member of this suite
            domain = self._domain.name
        if episode.domain != domain:
            raise RecordError(
                f"{episode.key} was played in domain {episode.domain!r}; this one is {domain!r}. "
                "Name the other with --domain"
            )
        task = self._tasks(episode.split).get(task_id)
        if task is None:
            raise RecordError(
                f"{episode.key}: domain {domain!r} has no task {task_id!r} in its split "
                f"{episode.split!r} any more. Use the version of the domain that it was played with"
            )
        if task.situation_hash != episode.task_hash:
            raise RecordError(
                f"{episode.key}: task {task_id!r} is not the one that was played (hash "
                f"{task.situation_hash}, recorded {episode.task_hash}): its goal, personas, ledger "
                "or world changed. Use the version of the domain that it was played with"
            )
        return task

    def worlds(self, episode: Episode) -> tuple[World, World]:
        """The worlds an episode began and ended with, by its recorded changes; no tool is called.

        Raises:
            RecordError: The task or the domain's world are not those that it was played in.
        """
        task = self.of(episode)
        world = self._domain.of(task.id).world_for(task)
        try:
            apply_changes(world, episode.start)
            initial = world.fork()
            apply_changes(world, episode.changes)
        except ValueError as problem:
            raise RecordError(
                f"{episode.key}: the domain's world is not the one that it was played in: at "
                f"{problem}. Use the version of the domain that it was played with"
            ) from problem
        return initial, world

    def _tasks(self, split: str) -> dict[str, TaskSpec]:
        if split not in self._by_split:
            self._by_split[split] = {task.id: task for task in self._domain.own_tasks(split)}
        return self._by_split[split]


async def judged_again(
    domain: AnyDomain,
    task: TaskSpec,
    episode: Episode,
    worlds: tuple[World, World],
    predicates: RewardFile | None = None,
) -> Verdict:
    """What a stored episode earns by what counts today.

    Args:
        domain: The domain.
        task: The episode's.
        episode: One that was scored.
        worlds: Those that it began and ended with, recorded or found anew.
        predicates: As of `Domain.judge`.

    Raises:
        EpisodeError: As of `Domain.judge`.
    """
    initial, final = worlds
    return await domain.of(task.id).judge(
        task,
        final,
        episode.turns,
        episode.opening,
        initial=initial,
        training=episode.key.trains,
        predicates=predicates,
    )


def refuse_another_domain(domain: AnyDomain, episodes: Iterable[Episode | EpisodeHead]) -> None:
    """Make sure that episodes a run wants to count again were played as they would be played now.

    Raises:
        SetupError: Rules or a task changed since; says which.
    """
    tasks = StoredTasks(domain)
    same: set[tuple[str, str, str]] = set()
    for episode in episodes:
        played = (episode.split, episode.key.task_id, episode.task_hash)
        try:
            if played not in same:
                tasks.of(episode)
                same.add(played)
            if episode.system != domain.of(episode.key.task_id).spec.rules:
                raise RecordError(f"{episode.key} was played under other `rules`")
        except RecordError as changed:
            raise SetupError(
                "the domain is not the one that the run was begun with; cannot resume. Restore it "
                f"as it was, or use --overwrite to start anew. {changed}"
            ) from changed
