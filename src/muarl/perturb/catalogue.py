"""The list of tools that a policy is shown, and what a name in it stands for."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.perturb.decoys import with_decoys
from muarl.perturb.dice import Dice
from muarl.perturb.entry import Entry
from muarl.perturb.twins import with_twins
from muarl.perturb.wording import with_other_words
from muarl.record import UNLISTED, Perturbed

_NAME_CHARS = 80


class Catalogue:
    """A server's tools, perturbed: first their words, then decoys, then twins.

    Each step sees what those before it made: a twin copies the words and the tags that its tool has
    by then, and stands under the name that it goes by.

    Attributes:
        tools: What the policy is shown.
        acted: What acted on which tool.
    """

    def __init__(self, tools: Sequence[ToolSpec], dice: Dice) -> None:
        """Draw.

        Args:
            tools: The server's.
            dice: Draws.
        """
        self.acted: list[Perturbed] = []
        names = {tool.name for tool in tools}
        entries = [Entry(tool, tool.name) for tool in tools]
        entries = with_other_words(entries, dice, self.acted)
        entries = with_decoys(entries, dice, self.acted, names)
        entries = with_twins(entries, dice, self.acted, names)
        self.tools = tuple(entry.shown for entry in entries)
        self._entries = {entry.shown.name: entry for entry in entries if not entry.twin}
        self._changed = {entry.shown.name for entry in entries} != names

    def true_name(self, name: str) -> str:
        """The server's name of the tool that a name stands for; as it is if it stands for none."""
        entry = self._entries.get(name)
        return name if entry is None or entry.decoy else entry.tool

    def refusal(self, call: ToolCall) -> ToolResult | None:
        """What answers a call that is not for the server: of a decoy, or of a name not in the list."""
        if call.error is not None:
            return None  # the server says what is wrong with it
        entry = self._entries.get(call.name)
        if entry is not None and entry.decoy:
            text = f"{call.name} is not available; nothing was done"
            return ToolResult(call.id, call.name, text, is_error=True, instead=entry.decoy)
        if entry is not None or not self._changed:
            return None
        offered = ", ".join(dict.fromkeys(tool.name for tool in self.tools))
        text = f"unknown tool {call.name[:_NAME_CHARS]!r}; tools: {offered}"
        return ToolResult(call.id, call.name, text, is_error=True, instead=UNLISTED)
