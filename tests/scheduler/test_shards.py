"""The shards of a rollout are the rollout: nothing twice, nothing left out, groups whole."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.scheduler.shards import Shard, keys_of_shard, rollout_keys
from muarl.spec import TaskSpec

TASKS = [TaskSpec(id=f"t{n}", goal="Note it.", personas=["plain"], gold=[]) for n in range(7)]


@given(
    tasks=st.integers(1, 7), groups=st.integers(1, 40), size=st.integers(1, 5), seed=st.integers()
)
def test_a_rollout_is_so_many_dialogues_in_whole_groups_spread_over_the_tasks(
    tasks: int, groups: int, size: int, seed: int
) -> None:
    keys = rollout_keys(TASKS[:tasks], groups * size, group_size=size, run_seed=seed)
    assert len(set(keys)) == len(keys) == groups * size
    assert {key.run_seed for key in keys} == {seed}
    by_group = Counter(key.group for key in keys)
    assert set(by_group.values()) == {size}
    by_task = Counter(task for _, _, task in by_group)
    played = [by_task[task.id] for task in TASKS[:tasks]]
    assert max(played) - min(played) <= 1
    longer = rollout_keys(TASKS[:tasks], (groups + 3) * size, group_size=size, run_seed=seed)
    assert longer[: len(keys)] == keys, "asking for more adds to what there was"


@given(groups=st.integers(1, 40), size=st.integers(1, 5), count=st.integers(1, 12), data=st.data())
def test_shards_partition_a_rollout(
    groups: int, size: int, count: int, data: st.DataObject
) -> None:
    keys = rollout_keys(TASKS, groups * size, group_size=size, run_seed=0)
    parts = [keys_of_shard(keys, Shard(number, count)) for number in range(1, count + 1)]
    assert Counter(chain(*parts)) == Counter(keys), "no overlap and no gap"
    sizes = [len(part) // size for part in parts]
    assert max(sizes) - min(sizes) <= 1
    homes = {key.group: number for number, part in enumerate(parts) for key in part}
    for number, part in enumerate(parts):
        assert all(homes[key.group] == number for key in part), "groups stay whole"
        assert part == [key for key in keys if homes[key.group] == number], "in the same order"


def test_one_shard_of_one_is_all() -> None:
    keys = rollout_keys(TASKS, 9, group_size=3, run_seed=0)
    assert keys_of_shard(keys, Shard()) == keys
    assert str(Shard(2, 4)) == "2/4"


@pytest.mark.parametrize(("number", "count"), [(0, 4), (5, 4), (-1, 4), (1, 0)])
def test_a_shard_that_is_not_there_is_refused(number: int, count: int) -> None:
    with pytest.raises(ValueError, match="there is no shard"):
        Shard(number, count)


def test_half_a_group_is_refused() -> None:
    with pytest.raises(ValueError, match="7 dialogues are no whole number of groups of 2"):
        rollout_keys(TASKS, 7, group_size=2, run_seed=0)
