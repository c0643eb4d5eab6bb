"""Weights & Biases."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muarl.figures import Figures
from muarl.spec.sinks import WandbSpec


class WandbSink:
    """Sends figures to Weights & Biases, or keeps them for `wandb sync`.

    Args:
        spec: Where to.
        folder: Of the run, whose name the run there bears.
        config: The run's spec.
    """

    def __init__(self, spec: WandbSpec, folder: Path, config: Mapping[str, Any]) -> None:
        import wandb

        self._run: Any = wandb.init(
            project=spec.project,
            entity=spec.entity,
            mode=spec.mode,
            name=folder.resolve().name,
            dir=str(folder),
            config=dict(config),
            reinit="create_new",
            settings=wandb.Settings(console="off", silent=True, save_code=False, disable_git=True),
        )
        for axis in ("iteration", "step"):
            self._run.define_metric(f"at/{axis}")
        for kind, axis in (("cold_start", "step"), ("user_cold_start", "step"), ("*", "iteration")):
            pattern = "*" if kind == "*" else f"{kind}/*"
            self._run.define_metric(pattern, step_metric=f"at/{axis}")

    def write(self, figures: Figures) -> None:
        self._run.log({f"at/{figures.axis}": figures.at, **figures.values})

    def rewind(self, kept: list[Figures]) -> None:
        """What it has been sent stays: what is done again appears there in a run of its own."""

    def close(self) -> None:
        self._run.finish()
