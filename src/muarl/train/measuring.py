"""What credits need to know of turns beyond their record: items done, and what answers told."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from transformers import PreTrainedModel

from muarl.credit import Measured
from muarl.credit.information import information_gains
from muarl.data.progress import look_through
from muarl.kernel.scoring import sample_logprobs
from muarl.kernel.shards import whole
from muarl.record import Episode
from muarl.scheduler import Group
from muarl.train.at_work import RunAtWork

_log = logging.getLogger(__name__)


async def items_done(at: RunAtWork, groups: Sequence[Group]) -> Measured:
    """Points of turns, where the run's credit is a checklist.

    Episodes that could not be looked through (a judge does not answer) are left out and said.
    """
    assert at.run.grpo is not None
    credit = at.run.grpo.credit
    if credit.checklist is None or not credit.weight:
        return {}
    episodes = _scored(groups)
    progress = await look_through(at.domain, episodes, credit.checklist)
    if progress.failed:
        key, why = next(iter(progress.failed.items()))
        _log.warning(
            "%d of %d episodes have the credit of their outcome alone, since the checklist could not "
            "be looked through; the first is %s: %s",
            len(progress.failed),
            len(episodes),
            key,
            why,
        )
    return progress.points


def answers_told(at: RunAtWork, groups: Sequence[Group], model: PreTrainedModel) -> Measured:
    """Gains of turns under the weights to be trained, where the run's credit is information."""
    assert at.run.grpo is not None
    credit = at.run.grpo.credit
    if credit.information is None or not credit.weight:
        return {}
    score = partial(sample_logprobs, model, temperature=at.run.rollout.temperature)
    with whole(model):  # each rank measures all by itself
        return information_gains(
            _scored(groups), credit.information, score=score, bridge=at.renderer.bridge
        )


def _scored(groups: Sequence[Group]) -> list[Episode]:
    return [e for group in groups for e in group.episodes if e.reward is not None]
