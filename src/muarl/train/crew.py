"""What the ranks of a run exchange beside gradients: dialogues, and who has come how far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import anyio.to_thread
import msgspec

from muarl.kernel.ranks import Ranks
from muarl.record import Episode, EpisodeKey
from muarl.record.codec import decode_episode, encode_episode
from muarl.scheduler import Group
from muarl.scheduler.journal import Journal

T = TypeVar("T")
_Said = list[list[bytes]]


class RankCrew:
    """The ranks of a run that play its dialogues: a `muarl.scheduler.crew.Crew`.

    Each rank journals what it plays at once, in a file of its own. What is exchanged the first rank puts
    into the run's journal, which so holds all that was ever used.

    Args:
        ranks: Who they are.
        journal: This rank's.
        done: Episodes that the run's journal held when the run was taken up.
    """

    def __init__(self, ranks: Ranks, journal: Journal, done: Mapping[EpisodeKey, Episode]) -> None:
        self._ranks = ranks
        self._journal = journal
        self._done = done

    @property
    def rank(self) -> int:
        return self._ranks.rank

    @property
    def size(self) -> int:
        return self._ranks.size

    async def exchange(self, groups: Sequence[Group]) -> list[Group]:
        """Wait until each rank gives whole groups; all of them."""
        said = await in_thread(self._ranks.gather, _encoded(groups))
        found: list[Group] = []
        for rank, data in enumerate(said):
            if rank == self.rank:
                found += groups
                continue
            theirs = _decoded(data)
            if self._ranks.is_first:
                self._keep(episode for group in theirs for episode in group.episodes)
            found += theirs
        return found

    def _keep(self, episodes: Iterable[Episode]) -> None:
        for episode in episodes:
            if episode.key not in self._done:
                self._journal.append(episode)


async def in_thread(wait: Callable[..., T], *args: object) -> T:
    """Wait for other ranks beside the event loop; left alone if this rank ends meanwhile."""
    return await anyio.to_thread.run_sync(wait, *args, abandon_on_cancel=True)


def _encoded(groups: Sequence[Group]) -> bytes:
    said: _Said = [[encode_episode(episode) for episode in group.episodes] for group in groups]
    return msgspec.msgpack.encode(said)


def _decoded(data: bytes) -> list[Group]:
    found = []
    for encoded in msgspec.msgpack.decode(data, type=_Said):
        episodes = tuple(map(decode_episode, encoded))
        found.append(Group(episodes[0].key.group, episodes))
    return found
