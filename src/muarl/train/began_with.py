"""That a run is taken up from what is its own: weights that GRPO began with, those it came to, episodes.

A divergence is measured from the first, and adapters stand on them; the second are what it has learned. A run
that goes on with others comes to other weights than it would have, and nothing of it shows. Episodes of
another seed are none that it would ask for: it would play on behind them, and count them in its report.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from muarl.errors import RecordError
from muarl.kernel.model import RESTORE
from muarl.record import Episode, EpisodeHead
from muarl.train.plan import BatchRecord

COUNTER = "began_with"
"""Name of the checksum among a checkpoint's counters."""

LEARNED = "learned_last"
"""Name of the checksum of the groups that a checkpoint learned from last."""

E = TypeVar("E", Episode, EpisodeHead)


def began_with(folder: Path) -> str:
    """Sixteen hex digits that change when the folder's config or any byte of its weights does."""
    digest = hashlib.blake2b(digest_size=8)
    for path in [folder / "config.json", *sorted(folder.glob("*.safetensors"))]:
        with path.open("rb") as file:
            digest.update(f"{path.name} {path.stat().st_size}\n".encode())
            while part := file.read(1 << 20):
                digest.update(part)
    return digest.hexdigest()


def refuse_another_beginning(folder: Path, now: str, counters: Mapping[str, Any]) -> None:
    """Refuse to go on from a checkpoint whose run began with other weights than the folder holds.

    Args:
        folder: Of the weights that GRPO began with.
        now: What `began_with` says of it.
        counters: The checkpoint's. One of an earlier version does not say: it passes.

    Raises:
        RecordError: They differ.
    """
    if counters.get(COUNTER, now) != now:
        raise RecordError(
            f"{folder} does not hold the weights that GRPO began with: it is damaged, or was changed. "
            f"{RESTORE}"
        )


def learned_last(record: BatchRecord) -> str:
    """Sixteen hex digits that change when another group is learned from."""
    return hashlib.blake2b(msgspec.json.encode(record.groups), digest_size=8).hexdigest()


def refuse_another_run(
    checkpoint: Path, batches: Path, records: Iterable[BatchRecord], counters: Mapping[str, Any]
) -> None:
    """Refuse to go on from a checkpoint that learned last from other groups than the run did.

    Args:
        checkpoint: Folder of the checkpoints.
        batches: File that the records were read from.
        records: What the run learned from.
        counters: The checkpoint's. One of an earlier version does not say: it passes.

    Raises:
        RecordError: They differ.
    """
    last = counters["iteration"] - 1
    for record in records:
        said = learned_last(record)
        if record.iteration == last and counters.get(LEARNED, said) != said:
            raise RecordError(
                f"the checkpoint of iteration {last + 1} in {checkpoint} learned from other groups than "
                f"{batches} says: one of them is of another run. Restore it from a copy, or use "
                "--overwrite to start anew"
            )


def of_own_seed(journal: Path, episodes: Iterable[E], seeds: Collection[int]) -> Iterator[E]:
    """A run's stored episodes, as they are read; one of another run's seed is refused.

    Args:
        journal: File that they are read from.
        episodes: All that it holds, or what identifies each.
        seeds: Those that the run plays with.

    Raises:
        RecordError: One has another seed.
    """
    for episode in episodes:
        if episode.key.run_seed not in seeds:
            own = ", ".join(map(str, sorted(seeds)))
            raise RecordError(
                f"{journal} holds an episode of seed {episode.key.run_seed} ({episode.key}), and this run "
                f"plays with seed {own}: it is of another run. Restore it from a copy, or use --overwrite "
                "to start anew"
            )
        yield episode
