"""Perturbations: how often users and tools are less clean than a simulation makes them.

The 22 kinds of RobustBench-TC (arXiv 2605.11928), by what of the dialogue they disturb. Each rate is a
share of chances; what a chance is, and what becomes of it, stands with each kind.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from muarl.spec.base import Fraction, Spec

OBSERVATION = ("typo", "rephrase_message", "rephrase_tool", "rephrase_parameters")
"""What is said to the policy, in other words; any of them may act together."""
ACTION = (
    "twin_bare",
    "twin_described",
    "twin_misfit",
    "twin_described_misfit",
    "twin_other",
    "redundant",
)
"""Tools that stand twice in the list; of one tool at most one of them acts."""
METADATA = (
    "cost_suffix",
    "cost_neutral",
    "cost_abbreviated",
    "time_suffix",
    "time_neutral",
    "time_abbreviated",
)
"""Tools that promise more than they do; of one tool at most one of them acts."""
TRANSITION = (
    "timeout",
    "rate_limited",
    "unauthorised",
    "server_error",
    "malformed_json",
    "wrong_schema",
)
"""Calls that fail; of one call at most one of them acts."""

FAMILIES = {
    "observation": OBSERVATION,
    "action": ACTION,
    "metadata": METADATA,
    "transition": TRANSITION,
}
"""Family to its kinds."""

_ALONE = ("action", "metadata", "transition")
"""Families of which one kind acts at most, each at its own rate."""

_Rate = Annotated[Fraction | None, Field()]


class PerturbSpec(Spec):
    """How often what kind of perturbation acts.

    A family's rate is shared evenly among its kinds; a kind's own rate stands before its share.
    """

    observation: _Rate = None
    """Shared evenly among the four kinds that follow."""
    typo: _Rate = None
    """Of the user's messages: those with slips of the keys, one in each ten words begun; never in what
    the task needs, nor in what holds a digit or a capital."""
    rephrase_message: _Rate = None
    """Of the user's messages: those in other words that mean the same. English only: a message none of
    whose words are known to it has no chance."""
    rephrase_tool: _Rate = None
    """Of the tools: those whose description is in other words. English only."""
    rephrase_parameters: _Rate = None
    """Of the tools: those whose parameters are described in other words, or at all. English only."""
    action: _Rate = None
    """Shared evenly among the six kinds that follow."""
    twin_bare: _Rate = None
    """Of the tools: those with a second entry of the same name, without description and parameters.
    Calls by a name that stands twice are calls of the tool."""
    twin_described: _Rate = None
    """Of the tools: those with a second entry of the same name and description, without parameters."""
    twin_misfit: _Rate = None
    """Of the tools: those with a second entry of the same name, without description, with the
    parameters of another tool."""
    twin_described_misfit: _Rate = None
    """Of the tools: those with a second entry of the same name and description, with the parameters of
    another tool."""
    twin_other: _Rate = None
    """Of the tools: those with a second entry of the same name, with description and parameters of
    another tool."""
    redundant: _Rate = None
    """Of the tools: those that stand in the list once more, under another name and in other words. A
    call by that name is a call of the tool."""
    metadata: _Rate = None
    """Shared evenly among the six kinds that follow. All of them put a decoy beside a tool that has
    parameters: it is said to be better, takes none, and answers with an error."""
    cost_suffix: _Rate = None
    """Of these tools: those with a decoy that is said to cost less, `<name>_budget`."""
    cost_neutral: _Rate = None
    """Of these tools: those with a decoy that is said to cost less, `<name>_1`."""
    cost_abbreviated: _Rate = None
    """Of these tools: those that go by an abbreviation, beside a decoy that is said to cost less,
    `<name>_1`. By its old name the tool cannot be called."""
    time_suffix: _Rate = None
    """Of these tools: those with a decoy that is said to be faster, `<name>_fast`."""
    time_neutral: _Rate = None
    """Of these tools: those with a decoy that is said to be faster, `<name>_1`."""
    time_abbreviated: _Rate = None
    """Of these tools: those that go by an abbreviation, beside a decoy that is said to be faster,
    `<name>_1`. By its old name the tool cannot be called."""
    transition: _Rate = None
    """Shared evenly among the six kinds that follow. All of them are errors that the policy reads; the
    call is not made, and made again it may go well."""
    timeout: _Rate = None
    """Of the policy's calls: those that time out."""
    rate_limited: _Rate = None
    """Of the policy's calls: those refused for coming too fast (HTTP 429)."""
    unauthorised: _Rate = None
    """Of the policy's calls: those refused for want of a right (HTTP 401, 403)."""
    server_error: _Rate = None
    """Of the policy's calls: those that the server fails at (HTTP 500, 502, 503, 504)."""
    malformed_json: _Rate = None
    """Of the policy's calls: those answered with broken JSON."""
    wrong_schema: _Rate = None
    """Of the policy's calls: those answered with JSON of another form than the tool's."""

    @model_validator(mode="after")
    def _one_at_a_time(self) -> PerturbSpec:
        for family in _ALONE:
            together = sum(self.rates.get(kind, 0.0) for kind in FAMILIES[family])
            if together > 1 + 1e-9:
                raise ValueError(
                    f"only one kind of {family} can act at a time: their rates are {together:g} "
                    "together, and may be 1"
                )
        return self

    @property
    def rates(self) -> dict[str, float]:
        """Kinds that may act, and their rates, in the order of the families."""
        found: dict[str, float] = {}
        for family, kinds in FAMILIES.items():
            shared: float | None = getattr(self, family)
            for kind in kinds:
                own: float | None = getattr(self, kind)
                rate = own if own is not None else (shared or 0.0) / len(kinds)
                if rate:
                    found[kind] = rate
        return found
