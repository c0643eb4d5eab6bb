"""What is wrong with goals themselves, so that no other draw would help."""

from __future__ import annotations


class GoalError(ValueError):
    """A goal breaks its contract, or goals cannot give the tasks that are asked for."""
