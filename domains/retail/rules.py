"""Rules that the reward asks about, beside the state in which things end."""

from __future__ import annotations

from muarl.reward import Evidence

IDENTIFY = ("find_customer_by_email", "find_customer_by_name")


def identified(evidence: Evidence) -> tuple[bool, str]:
    """The customer was identified, and before anything was changed."""
    for call in evidence.calls():
        if call.name in IDENTIFY and not call.is_error:
            return True, f"{call.name} came first"
        if call.name in evidence.writes and not call.is_error:
            return False, f"{call.name} came before the customer was identified"
    return False, "the customer was never identified"
