"""What differs between the users of a group: `rollout.vary`."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import anyio
import pytest
from dialogue_kit import Sampler
from seeded_desk import desk, renderer

from muarl.messages import Message
from muarl.record import Episode
from muarl.scheduler import Limits, run_groups
from muarl.scheduler.dialogues import DialogueRunner, episode_keys
from muarl.scheduler.journal import Unjournaled
from muarl.spec.run import RolloutSpec
from muarl.spec.user import UserSpec

POOL = {
    "pool": {
        "one": {"user": {"scripted": {}}},
        "other": {"weight": 3, "user": {"scripted": {}}},
    }
}


def asks() -> Sampler:
    """Asks the same two questions in every dialogue."""
    said = iter(["Which order is it?", "What is your account?", "Done."] * 3)
    return Sampler(
        lambda _: (list(renderer().encode_reply(Message("assistant", next(said)))[:-1]), True)
    )


def groups(user: dict[str, Any] | None = None, **limits: Any) -> list[list[Episode]]:
    """Eight groups of six dialogues, with personas that tell and that withhold."""
    tasks = [
        task.model_copy(update={"personas": ["plain", "terse"]}) for task in desk().tasks("dev")[:8]
    ]
    runner = DialogueRunner(
        domain=desk(),
        tasks=tasks,
        renderer=renderer(),
        limits=RolloutSpec(max_turns=3, max_tokens=200, context_tokens=20_000, **limits),
        user=UserSpec.model_validate(user or {"scripted": {}}),
        policy_for=lambda _task, _key: asks(),
    )
    keys = episode_keys(tasks, run_seed=3, phase="train", group_size=6)
    found: dict[str, list[Episode]] = defaultdict(list)

    async def play() -> None:
        bounds = Limits(concurrency=8)
        async with run_groups(keys, runner, limits=bounds, journal=Unjournaled()) as played:
            async for group in played:
                found[group.key[2]] += group.episodes

    anyio.run(play)
    return list(found.values())


def said(episode: Episode) -> tuple[str, ...]:
    replies = [episode.opening, *(turn.reply for turn in episode.turns if turn.reply)]
    return tuple(reply.text for reply in replies)


def test_with_nothing_all_episodes_of_a_group_meet_the_same_user_draws() -> None:
    played = groups(POOL, vary="nothing")
    for group in played:
        assert len({(e.persona, e.user, said(e)) for e in group}) == 1
    assert len({said(group[0]) for group in played}) == len(played), "groups still differ"


def test_with_seed_they_meet_the_same_persona_with_other_wording() -> None:
    played = groups(POOL, vary="seed")
    for group in played:
        assert len({(e.persona, e.user) for e in group}) == 1
        assert len({said(e) for e in group}) > 1
    assert {e.persona for group in played for e in group} == {"plain", "terse"}


def test_with_persona_they_meet_other_personas_and_other_users_of_the_pool() -> None:
    played = groups(POOL, vary="persona")
    assert any(len({e.persona for e in group}) == 2 for group in played)
    assert any(len({e.user for e in group}) == 2 for group in played)


def test_left_out_the_seed_varies_and_a_single_user_has_no_name() -> None:
    assert groups() == groups(vary="seed")
    assert {e.user for group in groups() for e in group} == {""}


@pytest.mark.parametrize("vary", ["persona", "seed", "nothing"])
def test_the_draw_of_a_pool_is_seeded_and_follows_its_weights_L5(vary: str) -> None:
    played = groups(POOL, vary=vary)
    assert played == groups(POOL, vary=vary)
    drawn = [e.user for group in played for e in group]
    assert {*drawn} == {"one", "other"}
    assert drawn.count("other") > drawn.count("one")
