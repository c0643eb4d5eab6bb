"""Both sides of a dialogue of tau2-bench, and the state a task begins with."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from muarl.compat.tau.toolkit import Answer, Toolkit
from muarl.world.compare import is_map

Task = Mapping[str, Any]
"""A task as published."""


class Tau2Environment:
    """Whose call it is decides whose tools it meets.

    Attributes:
        agent: The agent's tools, with the agent's database.
        user: The user's, with hers; None where she has none.
    """

    def __init__(self, agent: Toolkit, user: Toolkit | None = None) -> None:
        """Join the sides, whose databases are as the domain's are before any task."""
        self.agent = agent
        self.user = user

    def call(self, name: str, arguments: Mapping[str, Any], requestor: str = "assistant") -> Answer:
        """Call a tool of a side, and bring both in step if it succeeded."""
        kit = self.agent if requestor == "assistant" else self.user
        if kit is None:
            return Answer("Error: User tools not available", is_error=True)
        answer = kit.call(name, arguments)
        if not answer.is_error:
            self.sync()
        return answer

    def writes(self, name: str, requestor: str) -> bool:
        """Whether a call is one that the evaluator does again."""
        kit = self.agent if requestor == "assistant" else self.user
        return kit is not None and kit.writing.get(name, False)

    def sync(self) -> None:
        """Copy from side to side what follows; most domains have nothing that does."""

    def begin(self, task: Task) -> None:
        """Bring the databases to where a task begins."""
        state = task.get("initial_state") or {}
        data = state.get("initialization_data") or {}
        for side, kit in (("agent_data", self.agent), ("user_data", self.user)):
            if data.get(side) and kit is not None:
                _merge(kit.db, data[side])
        for action in state.get("initialization_actions") or ():
            self.function(action)(**action["arguments"])
            self.sync()
        for message in state.get("message_history") or ():
            self.again(message.get("tool_calls") or ())
        self.sync()

    def again(self, calls: Sequence[Mapping[str, Any]]) -> None:
        """Do the writing ones of some calls."""
        for call in calls:
            requestor = call.get("requestor") or "assistant"
            if self.writes(call["name"], requestor):
                self.call(call["name"], call["arguments"], requestor)

    def function(self, action: Mapping[str, Any]) -> Any:
        """What a task names to prepare or to judge a side: tools, and functions that are none."""
        kit = self.agent if action["env_type"] == "assistant" else self.user
        return getattr(kit, action["func_name"])


def _merge(db: MutableMapping[str, Any], data: Mapping[str, Any]) -> None:
    for key, value in data.items():
        if is_map(value) and is_map(db.get(key)):
            _merge(db[key], value)
        else:
            db[key] = value
