"""Who she is: not the assistant, not its echo, and nobody who can do things by saying so."""

from __future__ import annotations

import itertools
import re

from muarl.user.guards.said import Said

_LABEL = re.compile(r"\s*\W*(assistant|agent)\W*:", re.IGNORECASE)
_AGENT = re.compile(
    r"\bhow (?:can|may) i (?:help|assist)"
    r"|\b(?:anything|something) else (?:that )?i can (?:help|assist|do)"
    r"|\bi(?:'ve| have)(?: now| just| successfully)? (?:cancel+ed|refunded|processed|issued|redirected"
    r"|rebooked|reserved|renewed) (?:your|the)\b"
    r"|\byour (?:order|request|account|booking|refund) (?:has|have) (?:now )?been\b"
    r"|\b(?:let me|i'll|i will) (?:look up|pull up|check) (?:that|it|your|the) [^.?!]{0,40}for you"
    r"|\b(?:according to|per) our polic"
    r"|<tool_call>|\"arguments\"\s*:",
    re.IGNORECASE,
)
_DEED = re.compile(
    r"\bi(?:'ve| have|) (?:just |now |already )*(?:restarted|rebooted|reset|toggled|switched|turned|"
    r"unplugged|plugged|re-?inserted|clicked|pressed|opened|closed|enabled|disabled|installed|"
    r"uninstalled|updated|uploaded|downloaded|logged (?:in|out)|entered|submitted|paid|transferred|"
    r"e-?mailed|forwarded|checked)\b",
    re.IGNORECASE,
)
_ECHO_WORDS = 8
_ECHO_SHARE = 0.8


def role_flip(said: Said) -> str:
    """She speaks as the assistant would, or repeats it."""
    if _LABEL.match(said.text):
        return "spoke as the assistant"
    if found := _AGENT.search(said.text.replace("’", "'")):
        return f"spoke as the assistant: {found[0]!r}"
    words = re.findall(r"\w+", said.text.casefold())
    if said.heard and len(words) >= _ECHO_WORDS:
        heard = re.findall(r"\w+", said.heard[-1].casefold())
        pairs = set(itertools.pairwise(heard))
        hers = list(itertools.pairwise(words))
        if sum(pair in pairs for pair in hers) > _ECHO_SHARE * len(hers):
            return "repeats the assistant's message"
    return ""


def unexecuted_action(said: Said) -> str:
    """She claims to have done something, and has used no tool of hers."""
    if said.acted:
        return ""
    found = _DEED.search(said.text.replace("’", "'"))
    return f"claims what she has not done: {found[0]!r}" if found else ""
