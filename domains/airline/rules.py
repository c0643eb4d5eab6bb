"""Rules that the reward asks about, beside the state in which things end."""

from __future__ import annotations

from muarl.reward import Evidence


def verified(evidence: Evidence) -> tuple[bool, str]:
    """The traveller was verified, and before anything was changed."""
    for call in evidence.calls():
        if call.name == "verify_traveller" and not call.is_error:
            return True, "the traveller was verified first"
        if call.name in evidence.writes and not call.is_error:
            return False, f"{call.name} came before the traveller was verified"
    return False, "the traveller was never verified"
