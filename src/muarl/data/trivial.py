"""Trivial policies: what a domain pays for no skill at all. They set the floor under every score."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from muarl.domain import Agent, Domain
from muarl.messages import Message, ToolCall, ToolSpec
from muarl.spec import DomainSpec

TRIVIAL = ("do_nothing", "refuse_all", "transfer_at_once", "random_write", "empty_reply")
"""Names of the trivial policies of every domain."""

_SAID = tuple(Message("assistant", text) for text in ("Done.", "0", "1", "yes", "no", "a"))
"""What is said where nothing is known to be an action."""

OF_ENVIRONMENT = ("do_nothing", "empty_reply", "random_action")
"""Those where an environment answers; the last draws among what is known to be an action there."""

ASK_FOR_EVERYTHING = "ask_for_everything"
"""One more, where the user can act: it has her do all there is to do, whatever is wrong."""


class DoNothing:
    """Claims that all is done and touches nothing."""

    def act(self, history: Sequence[Message]) -> Message:
        del history
        return Message(role="assistant", content="Done.")


class RefuseAll:
    """Refuses whatever is asked."""

    def act(self, history: Sequence[Message]) -> Message:
        del history
        return Message(role="assistant", content="Sorry, I cannot do that.")


class EmptyReply:
    """Says nothing."""

    def act(self, history: Sequence[Message]) -> Message:
        del history
        return Message(role="assistant", content="")


class CallOnce:
    """Makes one call of a fixed tool at once, then behaves like DoNothing."""

    def __init__(self, tool: str) -> None:
        self._tool = tool

    def act(self, history: Sequence[Message]) -> Message:
        if any(message.role == "tool" for message in history):
            return Message(role="assistant", content="Done.")
        call = ToolCall(id="only", name=self._tool, arguments={})
        return Message(role="assistant", content="", tool_calls=(call,))


class RandomWrite:
    """After each user message calls a random write tool with words the user said, then "done"."""

    def __init__(self, tools: Sequence[ToolSpec], rng: random.Random) -> None:
        self._tools = tools
        self._rng = rng
        self._calls = 0

    def act(self, history: Sequence[Message]) -> Message:
        if history[-1].role == "tool" or not self._tools:
            return Message(role="assistant", content="Done.")
        said = " ".join(m.content for m in history if m.role == "user")
        words = [word.strip(".,;:!?") for word in said.split()] or [""]
        tool = self._rng.choice(self._tools)
        properties: dict[str, Any] = tool.parameters.get("properties", {})
        arguments = {name: self._rng.choice(words) for name in properties}
        self._calls += 1
        call = ToolCall(id=f"random_{self._calls}", name=tool.name, arguments=arguments)
        return Message(role="assistant", content="", tool_calls=(call,))


class AskForEverything:
    """Asks the user for each of her actions once, then claims that all is done."""

    def __init__(self, understands: Mapping[str, Sequence[str]]) -> None:
        acts = (phrases for act, phrases in understands.items() if act.startswith("do:"))
        self._phrases = [phrases[0] for phrases in acts if phrases]

    def act(self, history: Sequence[Message]) -> Message:
        del history
        said = self._phrases.pop(0) if self._phrases else "Done."
        return Message(role="assistant", content=said)


class RandomAction:
    """Says or calls any of some messages."""

    def __init__(self, actions: Sequence[Message], rng: random.Random) -> None:
        self._actions = actions
        self._rng = rng
        self._turn = 0

    def act(self, history: Sequence[Message]) -> Message:
        del history
        self._turn += 1
        return numbered(self._rng.choice(self._actions), self._turn)


def actions_of(domain: Domain) -> Sequence[Message]:
    """Messages that may be actions of a domain's environment."""
    known = domain.environments.actions if domain.environments is not None else ()
    return known or _SAID


def numbered(message: Message, turn: int) -> Message:
    """The same, with ids of its calls that no other turn has."""
    calls = tuple(
        structs.replace(call, id=f"call_{turn}_{index}")
        for index, call in enumerate(message.tool_calls)
    )
    return structs.replace(message, tool_calls=calls)


def trivial_policies(spec: DomainSpec) -> tuple[str, ...]:
    """Names of the trivial policies of a domain."""
    if spec.environment is not None:
        return OF_ENVIRONMENT
    acts = spec.user is not None and bool(spec.user.actions)
    return (*TRIVIAL, ASK_FOR_EVERYTHING) if acts else TRIVIAL


def trivial_agent(
    name: str, domain: Domain, tools: Sequence[ToolSpec], rng: random.Random
) -> Agent:
    """A trivial agent for one dialogue, by name (one of `trivial_policies`).

    Where a domain has no terminal tool, `transfer_at_once` does nothing.
    """
    spec = domain.spec
    agents: dict[str, Agent] = {
        "do_nothing": DoNothing(),
        "refuse_all": RefuseAll(),
        "transfer_at_once": CallOnce(spec.terminal[0]) if spec.terminal else DoNothing(),
        "random_write": RandomWrite([tool for tool in tools if tool.name in spec.writes], rng),
        "empty_reply": EmptyReply(),
        "random_action": RandomAction(actions_of(domain), rng),
        ASK_FOR_EVERYTHING: AskForEverything(spec.user.understands if spec.user else {}),
    }
    return agents[name]
