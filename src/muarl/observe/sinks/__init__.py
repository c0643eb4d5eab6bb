"""Where a run's figures go beside its folder: TensorBoard, Weights & Biases, Trackio."""

from muarl.observe.sinks.sink import Figures as Figures
from muarl.observe.sinks.sink import Sink as Sink
from muarl.observe.sinks.sinks import Sinks as Sinks
