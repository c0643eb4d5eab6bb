"""Where the figures of a run go beside its folder."""

from __future__ import annotations

from typing import Literal

from muarl.spec.base import OneOrName, Spec
from muarl.spec.plugged import PluggedSink


class TensorboardSpec(Spec):
    """Event files in `tensorboard/` of the run's folder, for `tensorboard --logdir RUN`."""


class WandbSpec(Spec):
    """A run of Weights & Biases; its key is read from WANDB_API_KEY, as its own programs do."""

    project: str = "muarl"
    """Project there."""
    entity: str | None = None
    """Whose project; left out, that of the key."""
    mode: Literal["online", "offline"] = "online"
    """`offline` writes to `wandb/` of the run's folder alone; `wandb sync` brings it there later."""


class TrackioSpec(Spec):
    """A run of Trackio, in its database on this machine: `trackio show` shows it."""

    project: str = "muarl"
    """Project there."""


class SinkSpec(OneOrName):
    """One of these, or the name of one; each needs the extra of its name."""

    tensorboard: TensorboardSpec | None = None
    """TensorBoard."""
    wandb: WandbSpec | None = None
    """Weights & Biases."""
    trackio: TrackioSpec | None = None
    """Trackio."""
    plugin: PluggedSink | None = None
    """One of an installed package, which needs no extra: `{name: options}`; see docs/plugins.md."""
