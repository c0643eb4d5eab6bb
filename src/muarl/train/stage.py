"""How far a run is, as its newest checkpoint says."""

from __future__ import annotations

from pathlib import Path

from muarl.errors import RecordError
from muarl.kernel.checkpoint import read_counters
from muarl.synth.demonstrations import PHASE as COLD_START


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
