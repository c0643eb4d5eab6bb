"""What bounds a run of dialogues."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds a run of dialogues.

    Attributes:
        concurrency: Dialogues live at once, at most.
        deadline_s: Seconds an attempt may take.
        attempts: How often a dialogue is tried that ends in a fault.
        max_fault_rate: Share of faulty attempts, of the last 64 or more, that stops the run.
        buffer_groups: Whole groups that may wait for the consumer; beyond it dialogues that finish
            a group hold their place, so that a slow consumer slows the dialogues down.
        retry_wait_s: Seconds before the second attempt, at most; see `muarl.scheduler.backoff`.
    """

    concurrency: int = 256
    deadline_s: float = 120.0
    attempts: int = 3
    max_fault_rate: float = 0.2
    buffer_groups: int = 8
    retry_wait_s: float = 0.5

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.attempts < 1 or self.deadline_s <= 0:
            raise ValueError(f"concurrency, attempts and deadline_s must be positive: {self}")
