"""Which weights a server's labels stand for, and which labels are of old.

vLLM labels each run of sampled tokens with the name of the weights that sampled it. The names given
here are this run's alone, so that a server that was started anew, or that somebody else gave other
weights, is found out by the first message that it samples.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import uuid4


class _Weights(NamedTuple):
    order: int
    version: int


class WeightLabels:
    """The labels of one policy's weights.

    Args:
        run: Begins them; policies of one run that say the same, and the same versions, agree on them.

    Example:
        >>> labels = WeightLabels()
        >>> labels.found("default", version=0)
        >>> new = labels.issue(version=1)  # from now on known
        >>> sent_at = labels.required
        >>> labels.require(new)  # messages sent from now on must end under it
        >>> labels.is_enough("default", sent_at), labels.is_enough("default", labels.required)
        (True, False)
    """

    def __init__(self, run: str | None = None) -> None:
        self._run = run or uuid4().hex[:12]
        self._known: dict[str, _Weights] = {}
        self._issued = 0
        self.required = 0

    def found(self, label: str, version: int) -> None:
        """A server came with it."""
        self._known[label] = _Weights(0, version)

    def issue(self, version: int) -> str:
        """A new label for weights that are about to be sent."""
        self._issued += 1
        label = f"{self._run}-{self._issued}"
        self._known[label] = _Weights(self._issued, version)
        return label

    def require(self, label: str) -> None:
        """All servers in use hold these weights now."""
        self.required = self._known[label].order

    def is_enough(self, label: str, required: int) -> bool:
        """Whether weights are known, and not older than was `required` when a message was sent."""
        return self.knows(label) and self._known[label].order >= required

    def version(self, label: str) -> int:
        """Version of known weights."""
        return self._known[label].version

    def knows(self, label: str) -> bool:
        """Whether it was found or issued."""
        return label in self._known
