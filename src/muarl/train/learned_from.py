"""What an update was made from, episode by episode, for those who read single dialogues."""

from __future__ import annotations

import math
from collections.abc import Sequence

from muarl.record import Episode, Sample
from muarl.record.learned import Learned as LearnedEpisode
from muarl.record.learned import LearnedLine
from muarl.scheduler import Group
from muarl.train.learning import Learned

_DIGITS = 6


def learned_line(iteration: int, groups: Sequence[Group], learned: Learned) -> LearnedLine:
    """The line of an iteration.

    Args:
        iteration: Its number.
        groups: What it learned from.
        learned: What became of them.
    """
    seen = {id(sample): logprobs for sample, logprobs in learned.looked_at}
    episodes = [
        LearnedEpisode(
            id=str(episode.key),
            turns=[round(advantage, _DIGITS) for advantage in learned.credited[episode.key].turns],
            trainer_logprobs=_rows(episode, seen),
        )
        for group in groups
        for episode in group.episodes
        if episode.key in learned.credited
    ]
    return LearnedLine(iteration, episodes)


def _rows(episode: Episode, seen: dict[int, list[float]]) -> list[list[float] | None]:
    """Log-probs of each sample that was looked at, if they are numbers; empty where none was."""

    def row(sample: Sample) -> list[float] | None:
        found = seen.get(id(sample))
        if found is None or not all(map(math.isfinite, found)):
            return None
        return [round(logprob, _DIGITS) for logprob in found]

    rows = [row(sample) for sample in episode.samples]
    return rows if any(found is not None for found in rows) else []
