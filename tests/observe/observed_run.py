"""Dialogues of the domain `notes`, run by the scheduler under an observer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dialogue_kit import called, ids_of, note_task, renderer

from muarl.domain import Domain
from muarl.policy import Policy
from muarl.record import Episode, EpisodeKey, UserReply
from muarl.scheduler import Group, Limits, Observer
from muarl.scheduler.dialogues import DialogueRunner, episode_keys
from muarl.scheduler.rounds import run_round
from muarl.spec import TaskSpec
from muarl.spec.run import RolloutSpec
from muarl.spec.user import ScriptedUserSpec, UserSpec
from muarl.testing import ScriptedPolicy, ScriptedUserStub

PUT = called('{"name": "put", "arguments": {"key": "a", "value": 1}}')
GET = called('{"name": "get", "arguments": {"key": "missing"}}')
SCRIPT = ("Shall I?", PUT, GET, "Done.")
"""Four messages: two to the user, two tool calls, of which the second is answered with an error."""


class ListJournal:
    def __init__(self) -> None:
        self.episodes: list[Episode] = []

    def append(self, episode: Episode) -> None:
        self.episodes.append(episode)


def says(*texts: str) -> ScriptedPolicy:
    return ScriptedPolicy(texts, encode=ids_of)


def fresh_user(*_args: Any) -> ScriptedUserStub:
    return ScriptedUserStub(["hello", "yes", UserReply("bye", stop=True, act="stop")])


async def observed_round(
    domain: Domain,
    observer: Observer,
    *,
    policy_for: Callable[[TaskSpec, EpisodeKey], Policy] = lambda _task, _key: says(*SCRIPT),
    num_tasks: int = 2,
    group_size: int = 2,
    attempts: int = 2,
    journal: ListJournal | None = None,
    **more: Any,
) -> list[Group]:
    """A round whose users say hello, yes and bye. The domain's own `user` is replaced."""
    tasks: Sequence[TaskSpec] = [note_task(id=f"note-{i}") for i in range(num_tasks)]
    domain.user = fresh_user  # type: ignore[method-assign]
    runner = DialogueRunner(
        domain=domain,
        tasks=tasks,
        renderer=renderer(),
        limits=RolloutSpec(max_tokens=400, context_tokens=8_000),
        user=UserSpec(scripted=ScriptedUserSpec()),
        policy_for=policy_for,
        observer=observer,
    )
    keys = episode_keys(tasks, run_seed=0, phase="train", iteration=3, group_size=group_size)
    return await run_round(
        keys,
        runner,
        limits=Limits(attempts=attempts, max_fault_rate=1.0, deadline_s=60.0),
        journal=journal or ListJournal(),
        observer=observer,
        **more,
    )
