"""An agent by rules: looks the line up, mends it, then has the customer mend her phone."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.messages import Message, ToolCall
from muarl.spec import TaskSpec

_NUMBER = re.compile(r"\b\d{7}\b")


class Expert:
    """Plays the support desk for one dialogue."""

    def __init__(
        self, task: TaskSpec, imperfections: Mapping[str, float], rng: random.Random
    ) -> None:
        if imperfections:
            raise ValueError("this expert has no bad habits")
        del task, rng
        self._number = ""
        self._line: dict[str, Any] = {}
        self._to_restart = False
        self._offered = False
        self._looked = False
        self._calls = 0

    def act(self, history: Sequence[Message]) -> Message:
        """The next message."""
        last = history[-1]
        if last.role == "tool":
            return self._read(last)
        return self._hear(last.content)

    def _hear(self, text: str) -> Message:
        """Answer the customer: what she says of her phone is all that is known of it."""
        if not self._number:
            found = _NUMBER.search(text)
            if found is None:
                return _say("Which number is it?")
            self._number = found[0]
            return self._call("get_line")
        if self._offered:
            self._offered = False
            return self._call("add_data")
        if not self._looked:
            self._looked = True
            return _say("What does your status bar say?")
        if "airplane mode on" in text:
            return _say("Please turn airplane mode off.")
        if "mobile data off" in text:
            return _say("Please turn mobile data on.")
        if self._to_restart:
            self._to_restart = False
            return _say("Your line is active again. Please restart the phone.")
        if "airplane mode off" in text and "mobile data on" in text:
            return _say("All done. Anything else?")
        return _say("Please look at the status bar again.")

    def _read(self, result: Message) -> Message:
        """Go on after a tool's answer: the line first, then the phone."""
        if result.name == "get_line":
            self._line = json.loads(result.content)
            if self._line["status"] == "suspended":
                if self._line["bill"] == "open":
                    return _say("Sorry, your line is suspended; I cannot resume it unpaid.")
                self._to_restart = True
                return self._call("resume_line")
        if self._line["gb_left"] == 0:
            self._line["gb_left"] = 2
            self._offered = True
            return _say(f"All data of {self._number} is used; 2 GB cost 5 euros. Shall I go ahead?")
        return self._hear("")

    def _call(self, tool: str) -> Message:
        self._calls += 1
        call = ToolCall(id=f"expert_{self._calls}", name=tool, arguments={"number": self._number})
        return Message(role="assistant", content="", tool_calls=(call,))


def _say(text: str) -> Message:
    return Message(role="assistant", content=text)
