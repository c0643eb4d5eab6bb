"""A round that keeps nothing takes no more memory for more dialogues."""

from __future__ import annotations

import tracemalloc
from contextlib import nullcontext

import anyio
import anyio.lowlevel

from muarl.errors import EpisodeError
from muarl.record import Episode
from muarl.scheduler import EpisodePlan, Group, Limits, blank_fault
from muarl.scheduler.journal import Unjournaled
from muarl.scheduler.rounds import stream_round
from muarl.testing import build_episode, build_key


class Talks:
    """Gives an episode of a thousand tokens for every plan."""

    max_live = None
    load = None
    sharing = nullcontext

    async def __call__(self, plan: EpisodePlan) -> Episode:
        await anyio.lowlevel.checkpoint()
        return build_episode(plan.key, num_answer_tokens=1_000)

    def fault_episode(self, plan: EpisodePlan, error: EpisodeError) -> Episode:
        return blank_fault(plan, error)


def peak(num_groups: int) -> int:
    keys = [build_key(f"t{i // 4}", i % 4) for i in range(4 * num_groups)]
    seen = 0

    def count(group: Group) -> None:
        nonlocal seen
        seen += len(group.episodes)

    async def main() -> None:
        await stream_round(
            keys,
            Talks(),  # type: ignore[arg-type]
            limits=Limits(concurrency=16),
            journal=Unjournaled(),
            on_group=count,
        )

    tracemalloc.start()
    anyio.run(main)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen == len(keys)
    return peak


def test_a_streamed_round_keeps_no_episode() -> None:
    peak(4)  # what is imported and made once
    few, many = peak(80), peak(210)  # with 80 as many are alive at once as ever will be
    per_episode = (many - few) / (130 * 4)
    assert per_episode < 2_000, "an episode is 8 kB of token ids alone"
