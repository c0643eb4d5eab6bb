"""Where a run's figures go beside its folder: TensorBoard, Weights & Biases, Trackio, a package's own."""

from muarl.observe.sinks.sinks import Sinks as Sinks
