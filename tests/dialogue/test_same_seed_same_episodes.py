"""Law L5: the same seed gives the same episodes, whatever runs beside them and on any event loop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seeded_desk import play

from muarl.dialogue import episode_seed
from muarl.record import Episode, EpisodeKey
from muarl.record.codec import encode_episode
from muarl.seeds import derive_seed, generator


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
