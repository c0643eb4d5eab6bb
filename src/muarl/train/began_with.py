"""That the weights which GRPO began with are still the same when a run is taken up.

A divergence is measured from them, and adapters stand on them, so a run that goes on with others comes to
other weights than it would have, and nothing of it shows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muarl.errors import RecordError
from muarl.kernel.model import RESTORE

COUNTER = "began_with"
"""Name of the checksum among a checkpoint's counters."""


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
