"""How far a run is, as its newest checkpoint says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from muarl.errors import RecordError
from muarl.kernel.checkpoint import read_counters
from muarl.synth.demonstrations import PHASE as COLD_START


def refuse_lost_checkpoint(
    checkpoint: Path, every: int, lines: Iterable[Mapping[str, Any]]
) -> None:
    """Refuse to take up a run whose checkpoints are gone: its weights are no beginning any more.

    Args:
        checkpoint: Where they were.
        every: After so many iterations there was one.
        lines: The metrics so far.

    Raises:
        RecordError: More iterations than that are told of.
    """
    made = max((line["iteration"] + 1 for line in lines if line["kind"] == "iteration"), default=0)
    # The last may not have been saved yet, nor any before the first that was due.
    if made > every and read_counters(checkpoint) is None:
        raise RecordError(
            f"the run has learned in {made} iterations, and `{checkpoint}` holds nothing to go on from; "
            "restore it from a copy, or use --overwrite to start anew"
        )


def stage_of(checkpoint: Path) -> tuple[str, int]:
    """The stage of the newest checkpoint, and how many of its steps or iterations are done.

    Raises:
        RecordError: It does not say.
    """
    counters = read_counters(checkpoint)
    match counters:
        case None:
            return COLD_START, 0
        case {"stage": str(stage), "step": int(done)} if stage == COLD_START:
            return COLD_START, done
        case {"stage": "grpo", "iteration": int(done)}:
            return "grpo", done
    raise RecordError(
        f"checkpoint `{checkpoint}` is damaged: it does not say how far the run is, but {counters}. "
        "Remove its newest folder to resume from the one before"
    )
