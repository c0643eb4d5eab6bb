"""What is exported of agents' own loops has the tokens that our own trainer learns, and no others (law L1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from dialogue_kit import ids_of, renderer
from environment_kit import CAPS, write_walk

from muarl import AgentContext, Rollouts
from muarl.data.export.for_trainers import NOT_LEARNED, trl_rows
from muarl.data.export.rows import sample_rows
from muarl.domain import load_domain
from muarl.kernel.batch import make_micro_batches
from muarl.messages import Message
from muarl.own_loop import AgentLoop
from muarl.testing import ScriptedPolicy


async def forks(context: AgentContext) -> None:
    """Asks twice, asks somebody else, trims, goes on, and is cut."""
    opening = list(context.opening)
    first = await context.generate(opening)
    await context.generate(opening)
    await context.generate([Message("system", "Plan."), Message("user", "How?")], tools=())
    reply = await context.tell_user("right")
    await context.generate([opening[0], reply])
    await context.generate([*opening, first, reply], max_tokens=2)


async def says_nothing(context: AgentContext) -> None:
    """Ends at once: an episode without a sample."""
    del context


@pytest.mark.anyio
@pytest.mark.parametrize(("loop", "samples"), [(forks, 4), (says_nothing, 0)])
async def test_a_trainer_learns_what_ours_does_of_forks_and_of_nothing_L1(
    tmp_path: Path, loop: AgentLoop, samples: int
) -> None:
    domain = load_domain(write_walk(tmp_path))
    policy = ScriptedPolicy(["right", "no idea", "Ask, then walk."] * 5, ids_of)
    async with Rollouts(
        domain, policy, renderer(), loop=loop, limits=CAPS, group_size=2
    ) as rollouts:
        episodes = [episode async for group in rollouts for episode in group.episodes]
    assert {len(episode.samples) for episode in episodes} == {samples}
    rows = list(trl_rows(episodes, {}))
    masks = [row["loss_mask"] for row in sample_rows(episodes, {})]
    ours = [sample for episode in episodes for sample in episode.samples if sample.spans]
    assert len(rows) == len(masks) == len(ours)
    assert sum(map(sum, masks)) == sum(episode.num_sampled for episode in episodes)
    for batch in make_micro_batches(ours):
        targets = iter(batch.targets.tolist())
        for index, count in zip(batch.samples, batch.counts, strict=True):
            learned = [next(targets) for _ in range(count)]
            # A trainer predicts each label from the token before it: the first one is lost.
            assert learned == [t for t in rows[index]["labels"][1:] if t != NOT_LEARNED]
            assert rows[index]["labels"][0] == NOT_LEARNED
