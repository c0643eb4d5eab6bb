"""What a guard looks at: one message that a user is about to send, and all that went before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muarl.spoken import may_say
from muarl.user.contract import Contract, ContractFact


@dataclass(frozen=True)
class Said:
    """A message of hers that is not sent yet.

    Attributes:
        text: What she is about to say, without the stop marker.
        stop: She ends the dialogue with it.
        heard: Messages of the policy, in order; none at the opening.
        before: What she said before, in order.
        contract: Hers.
        instructions: What she was told about how to write.
        withheld: Facts that she keeps until she is asked, whatever the contract says.
        acted: She has used a tool of her own.
        may_change: She may change her mind in this message.
    """

    text: str
    stop: bool
    heard: Sequence[str]
    before: Sequence[str]
    contract: Contract
    instructions: str = ""
    withheld: frozenset[str] = frozenset()
    acted: bool = False
    may_change: bool = False

    def heard_says(self, value: str) -> bool:
        """The policy said it."""
        return any(may_say(text, value) for text in self.heard)

    def is_asked(self, fact: ContractFact) -> bool:
        """The policy asked for it, now or before."""
        return any(fact.is_asked(text) for text in self.heard)

    def on_request(self, fact: ContractFact) -> bool:
        """She tells it only when she is asked."""
        return fact.disclose == "on_request" or fact.id in self.withheld
