"""Calls that a model writes into its text, where its chat template shows it no tools.

A convention says what the model is told, how it writes its calls, and how that is read:

    system     rules, and the tools in words
    assistant  [find_order(order_id='W1'), list_orders()]
    tool       ...

What is here is muarl's own convention, for domains that say `calls: text`; benchmarks have theirs.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from msgspec import structs

from muarl.json_values import json_problem
from muarl.messages import Message, ToolCall, ToolSpec

LONGEST = 200_000
"""Characters of a text that is looked at for calls."""
_TOLD = """\
You have these tools, one a line, each described in JSON:
{tools}

To call some of them write their calls as Python has them, with named arguments, and nothing else: \
[first_tool(name='value', number=2), second_tool(items=['a', 'b'])]
A message of any other form is read by the user."""


class Convention(Protocol):
    """How a model writes calls into its text.

    Attributes:
        stops_at_error: Calls of a message that follow one that failed are not made.
    """

    stops_at_error: bool

    def told(self, history: Sequence[Message], tools: Sequence[ToolSpec]) -> Sequence[Message]:
        """A conversation as the model is shown it.

        Args:
            history: All of it, calls and answers included.
            tools: Those that are offered.

        Returns:
            Messages without calls; the tools are described in one of them.
        """
        ...

    def answers(self, answers: Sequence[Message]) -> Sequence[Message] | None:
        """What follows a message of the model's, likewise; None where `told` says it all anew."""
        ...

    def read(self, text: str) -> Sequence[ToolCall]:
        """The calls of a text, in order; none if it is for the user. Ids are given elsewhere."""
        ...

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The text that makes some calls."""
        ...


class PythonCalls:
    """muarl's own convention: a list of calls as Python has them, with literals by name.

    A text that opens a list of calls and cannot be read is a call that cannot be read: it is answered with
    why.
    """

    stops_at_error = False

    def told(self, history: Sequence[Message], tools: Sequence[ToolSpec]) -> list[Message]:
        described = "\n".join(
            json.dumps(structs.asdict(tool), ensure_ascii=False) for tool in tools
        )
        return with_system(_TOLD.replace("{tools}", described), as_texts(history, self))

    def answers(self, answers: Sequence[Message]) -> Sequence[Message]:
        return answers

    def read(self, text: str) -> list[ToolCall]:
        text = text.strip("`\n ")
        if not (text.startswith("[") and "(" in text):
            return []
        try:
            return list(_read(text))
        except SyntaxError as error:
            why = error.msg
        except (ValueError, RecursionError, MemoryError) as error:
            why = str(error) or "they are nested too deep"
        return [ToolCall("", "", error=f"the calls cannot be read: {why}", raw=text)]

    def write(self, calls: Sequence[ToolCall]) -> str:
        return written(calls)


def written(calls: Sequence[ToolCall]) -> str:
    """Calls as a list of Python's.

    Example:
        >>> written([ToolCall("1", "wc", {"file": "a", "lines": True}), ToolCall("2", "ls")])
        "[wc(file='a', lines=True), ls()]"
    """
    texts = []
    for call in calls:
        given = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
        texts.append(call.raw or f"{call.name}({given})")
    return f"[{', '.join(texts)}]"


def as_texts(history: Sequence[Message], convention: Convention) -> list[Message]:
    """A conversation whose calls stand in the text: as they were written, if a model wrote them."""
    return [
        Message(message.role, message.content or convention.write(message.tool_calls))
        if message.tool_calls
        else message
        for message in history
    ]


def with_system(text: str, messages: Sequence[Message]) -> list[Message]:
    """A conversation with a text at the end of its system prompt, which is made if it has none."""
    first, *rest = messages
    if first.role != "system":
        return [Message("system", text), *messages]
    return [Message("system", f"{first.content}\n\n{text}"), *rest]


def _read(text: str) -> Iterator[ToolCall]:
    if len(text) > LONGEST:
        raise ValueError(f"they are longer than {LONGEST} characters")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes that Python does not know
        body = ast.parse(text, mode="eval").body
    for item in body.elts if isinstance(body, ast.List) else [body]:
        if not (isinstance(item, ast.Call) and isinstance(item.func, ast.Name)):
            raise ValueError("expected a list of calls, [name(argument=value)]")  # noqa: TRY004 - of a text
        if item.args or any(keyword.arg is None for keyword in item.keywords):
            raise ValueError(f"{item.func.id}: expected arguments by name, (argument=value)")
        arguments = {str(one.arg): _literal(one) for one in item.keywords}
        if problem := json_problem(arguments):
            raise ValueError(f"{item.func.id}: wrong arguments: {problem}")
        yield ToolCall("", item.func.id, arguments)


def _literal(argument: ast.keyword) -> Any:
    try:
        return ast.literal_eval(argument.value)
    except (ValueError, TypeError):  # whose words would show where in memory the tree lies
        raise ValueError(f"{argument.arg}: expected a literal") from None
