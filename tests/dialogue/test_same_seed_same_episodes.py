"""Law L5: the same seed gives the same episodes, whatever runs beside them and on any event loop."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from dialogue_kit import Sampler
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.data.demonstrations import Unjournaled
from muarl.dialogue import episode_seed
from muarl.domain import Domain, load_domain
from muarl.messages import Message, ToolCall
from muarl.policy import GenerateRequest, Generation
from muarl.record import Episode, EpisodeKey
from muarl.record.codec import encode_episode
from muarl.render import Renderer, train_tokenizer
from muarl.scheduler import Limits, run_groups
from muarl.scheduler.dialogues import DialogueRunner, episode_keys
from muarl.seeds import derive_seed, generator
from muarl.spec.run import RolloutSpec, ScriptedUserSpec, UserSpec

DESK = Path(__file__).parents[2] / "domains" / "desk"


@cache
def desk() -> Domain:
    return load_domain(DESK)


@cache
def renderer() -> Renderer:
    return Renderer(train_tokenizer([], vocab_size=400))


def seeded_policy() -> Sampler:
    """Says and calls what its request's seed and context make it; waits as long as that takes."""

    def draw(request: GenerateRequest) -> tuple[list[int], bool]:
        rng = random.Random(request.seed)
        words = " ".join(message.content for message in request.history[1:]).split()
        tool, argument = rng.choice(
            [("get_order", "order_id"), ("cancel_order", "order_id"), ("find_orders", "email")]
        )
        call = ToolCall("", tool, {argument: rng.choice(words).strip(",.?")})
        text = rng.choice(["Which order?", "Done.", f"{rng.choice(words)}. Shall I go ahead?"])
        message = rng.choice(
            [
                Message("assistant", text),
                Message("assistant", "", tool_calls=(call,) * rng.randint(1, 2)),
            ]
        )
        garbage = [rng.randrange(9, 250) for _ in range(rng.choice([0, 0, 0, 3]))]
        return [*renderer().encode_reply(message)[:-1], *garbage], True

    class Slow(Sampler):
        async def generate(self, request: GenerateRequest) -> Generation:
            for _ in range(request.seed % 5):
                await anyio.lowlevel.checkpoint()
            return await super().generate(request)

    return Slow(draw)


def play(backend: str, concurrency: int, *, seed: int = 0, first: int = 0) -> dict[str, Episode]:
    tasks = desk().tasks("train")[first:16]
    runner = DialogueRunner(
        domain=desk(),
        tasks=tasks,
        renderer=renderer(),
        limits=RolloutSpec(max_turns=8, max_tokens=300, context_tokens=20_000),
        user=UserSpec(scripted=ScriptedUserSpec()),
        policy_for=lambda _task, _key: seeded_policy(),
    )
    keys = episode_keys(tasks, run_seed=seed, phase="train", group_size=4)
    limits = Limits(concurrency=concurrency)

    async def main() -> dict[str, Episode]:
        async with run_groups(keys, runner, limits=limits, journal=Unjournaled()) as groups:
            return {str(e.key): e async for group in groups for e in group.episodes}

    return anyio.run(main, backend=backend)


def as_bytes(episodes: dict[str, Episode]) -> dict[str, bytes]:
    return {key: encode_episode(episode) for key, episode in sorted(episodes.items())}


@cache
def expected(seed: int = 0, first: int = 0) -> dict[str, bytes]:
    return as_bytes(play("asyncio", 1, seed=seed, first=first))


@pytest.mark.parametrize("concurrency", [1, 3, 64])
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_on_any_event_loop_and_among_any_number_an_episode_is_the_same_L5(
    backend: str, concurrency: int
) -> None:
    assert as_bytes(play(backend, concurrency)) == expected()


@settings(max_examples=12, deadline=None)
@given(
    backend=st.sampled_from(["asyncio", "trio"]),
    concurrency=st.sampled_from([1, 3, 64]),
    seed=st.integers(0, 3),
    first=st.integers(13, 15),
)
def test_whatever_the_seed_an_episode_is_the_same_L5(
    backend: str, concurrency: int, seed: int, first: int
) -> None:
    assert as_bytes(play(backend, concurrency, seed=seed, first=first)) == expected(seed, first)


def test_an_episode_does_not_depend_on_what_else_is_planned_L5() -> None:
    part = as_bytes(play("trio", 3, first=12))
    assert len(part) == 16
    assert part == {key: expected()[key] for key in part}


def test_other_seeds_give_other_episodes_L5() -> None:
    other = as_bytes(play("asyncio", 64, seed=1))
    assert len(other) == len(expected()) == 64
    same = [a == b for a, b in zip(other.values(), expected().values(), strict=True)]
    assert not any(same)


def test_the_episodes_of_a_group_differ_L5() -> None:
    groups: dict[str, set[tuple[int, ...]]] = {}
    for key, episode in play("asyncio", 64).items():
        ids = tuple(episode.samples[-1].token_ids)
        groups.setdefault(key.rpartition("/")[0], set()).add(ids)
    assert all(len(members) >= 3 for members in groups.values())


def test_a_group_shares_its_persona_L5() -> None:
    personas: dict[str, set[str]] = {}
    for episode in play("asyncio", 64).values():
        personas.setdefault(episode.key.task_id, set()).add(episode.persona)
    assert all(len(names) == 1 for names in personas.values())


# --- seeds ----------------------------------------------------------------------------------------


def test_a_seed_is_the_same_on_every_machine_L5() -> None:
    assert derive_seed(0, "user", "cancel-1") == 487960101221553586
    assert generator(0, "user", "cancel-1").random() == generator(0, "user", "cancel-1").random()


def test_seeds_differ_with_each_part_and_their_borders_L5() -> None:
    parts: Sequence[Sequence[object]] = [
        *([0, "a"], [0, "b"], [1, "a"], ["a", 0], [0, "a", ""], ["", 0, "a"]),
        *(["0a"], [0, "a", 0], ["ab", "c"], ["a", "bc"], [10, 1], [1, 1], [11], []),
    ]
    seeds = {derive_seed(*p) for p in parts}
    assert len(seeds) == len(parts)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_every_field_of_a_key_tells_episodes_apart_L5() -> None:
    key = EpisodeKey(0, "train", 0, "t", 0)
    others = [
        EpisodeKey(1, "train", 0, "t", 0),
        EpisodeKey(0, "eval", 0, "t", 0),
        EpisodeKey(0, "train", 1, "t", 0),
        EpisodeKey(0, "train", 0, "u", 0),
        EpisodeKey(0, "train", 0, "t", 1),
    ]
    purposes = [
        (k, purpose, n) for k in (key, *others) for purpose in ("user", "policy") for n in (1, 2)
    ]
    assert len({episode_seed(*purpose) for purpose in purposes}) == len(purposes)
