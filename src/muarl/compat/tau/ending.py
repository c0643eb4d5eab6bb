"""Whether a dialogue ended as one must that the official runners score."""

from __future__ import annotations

from muarl.reward import Evidence

TAU1_ACTIONS = 30
"""Calls and messages of the agent, together; the last one must end the dialogue."""
TAU2_STEPS = 200
TAU2_ERRORS = 10
"""Calls of either side that were answered with an error; with the last of them the dialogue is over."""

_TRANSFER = "transfer_to_human_agents"


def tau1_unscored(evidence: Evidence) -> str:
    """Why tau-bench gives 0 whatever was done; "" if it looks at what was."""
    actions = sum(max(1, len(turn.message.tool_calls)) for turn in evidence.turns)
    if actions > TAU1_ACTIONS:
        return f"{actions} actions, of which tau-bench allows {TAU1_ACTIONS}"
    handed_over = any(call.name == _TRANSFER and not call.is_error for call in evidence.calls())
    return "" if handed_over or _she_ended(evidence) else "nobody ended the dialogue"


def tau2_unscored(evidence: Evidence) -> str:
    """Likewise of tau2-bench."""
    if not _she_ended(evidence):
        return "the user did not end the dialogue"
    errors = sum(call.is_error for call in evidence.all_calls())
    if errors >= TAU2_ERRORS:
        return f"{errors} calls were answered with an error; tau2-bench stops at {TAU2_ERRORS}"
    steps = tau2_steps(evidence)
    return f"{steps} steps, of which tau2-bench allows {TAU2_STEPS}" if steps > TAU2_STEPS else ""


def tau2_steps(evidence: Evidence) -> int:
    """Messages that were delivered: each side's, and the answers to its calls.

    Calls of the user count as one message each, for how many were in one is not recorded.
    """
    steps = 2 * len(evidence.opening.calls) + 1
    for turn in evidence.turns:
        steps += 2 if turn.message.tool_calls else 1
        if turn.reply is not None:
            steps += 2 * len(turn.reply.calls) + 1
    return steps


def _she_ended(evidence: Evidence) -> bool:
    if not evidence.turns:
        return evidence.opening.stop
    last = evidence.turns[-1].reply
    return last is not None and last.stop
