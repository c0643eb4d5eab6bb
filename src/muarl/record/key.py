"""Which dialogue a record is of, and how it ended."""

from __future__ import annotations

from enum import StrEnum

import msgspec

TRAIN = "train"
"""Phase of the episodes that a policy is trained on."""


class Outcome(StrEnum):
    """Why a dialogue ended (law L2)."""

    COMPLETED = "completed"
    """The user ended it, or a declared terminal tool was called."""
    LEFT = "left"
    """The agent's own loop returned before the user had ended; scored like any other end."""
    ABANDONED = "abandoned"
    """The user lost patience and left; scored like any other end."""
    TRUNCATED_TURNS = "truncated_turns"
    TRUNCATED_CONTEXT = "truncated_context"
    TRUNCATED_LENGTH = "truncated_length"
    """The policy's message hit its token cap: nothing in it is executed."""
    USER_FAULT = "user_fault"
    """The simulator broke its contract: not scored, not trained."""
    INFRA_FAULT = "infra_fault"
    """Endpoint, tool server, predicate or deadline failed: not scored, not trained."""

    @property
    def is_truncated(self) -> bool:
        """A cap ended the dialogue; it is scored by the state it reached."""
        return self.value.startswith("truncated")

    @property
    def is_fault(self) -> bool:
        """Not the policy's doing: leaves reward, baseline and loss alike."""
        return self in (Outcome.USER_FAULT, Outcome.INFRA_FAULT)


class EpisodeKey(msgspec.Struct, frozen=True, gc=False):
    """What identifies an episode within a run, and seeds every draw in it (law L5).

    Attributes:
        run_seed: The run's seed.
        phase: "cold_start", "train", "eval:cold", ... one name per use of the same tasks.
        iteration: Which round of rollouts it belongs to (0 before training).
        task_id: The task.
        sample: Index within the group.
    """

    run_seed: int
    phase: str
    iteration: int
    task_id: str
    sample: int

    @property
    def trains(self) -> bool:
        """The policy is trained on the episode, so that the training reward counts."""
        return self.phase == TRAIN

    @property
    def group(self) -> tuple[str, int, str]:
        """Episodes with equal groups share a baseline."""
        return (self.phase, self.iteration, self.task_id)

    def __str__(self) -> str:
        return f"{self.phase}/{self.iteration}/{self.task_id}/{self.sample}"
