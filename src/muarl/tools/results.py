"""From what a tool server answers to the text the policy reads.

Texts are joined by newlines; where there is no text, structured content is written as JSON. Tokens
matter, so JSON loses the white space the SDK indents it with; numbers, keys and their order stay as
the server wrote them. What the SDK writes around errors is taken off again.
"""

from __future__ import annotations

import re

import msgspec
from mcp_types import CallToolResult, ContentBlock, EmbeddedResource, ResourceLink, TextContent
from mcp_types import TextResourceContents as TextResource

_WRONG_ARGUMENTS = re.compile(r"^\d+ validation errors? for \w+\n")
_ARGUMENT = re.compile(r"^(\S.*)\n  (.+?)(?: \[type=.*)?$", re.MULTILINE)


def result_text(result: CallToolResult, max_chars: int, *, verbatim: bool = False) -> str:
    """The text of a successful result, compact unless `verbatim`, and cut to `max_chars`."""
    texts = map(_block_text, result.content)
    text = "\n".join(texts if verbatim else map(_compact, texts))
    if not text and result.structured_content is not None:
        text = msgspec.json.encode(_unwrapped(result.structured_content)).decode()
    return cut(text, max_chars)


def error_text(tool: str, result: CallToolResult, max_chars: int) -> str:
    """The text of an error result: the tool's own message, or a short list of wrong arguments."""
    text = "\n".join(_block_text(block) for block in result.content)
    text = text.removeprefix(f"Error executing tool {tool}: ")
    if _WRONG_ARGUMENTS.match(text):
        text = "wrong arguments: " + "; ".join(
            f"{name}: {problem}" for name, problem in _ARGUMENT.findall(text.partition("\n")[2])
        )
    elif is_crash(tool, result) or not text:
        text = f"tool {tool!r} failed"
    return cut(text, max_chars)


def is_crash(tool: str, result: CallToolResult) -> bool:
    """Whether the SDK answered for a tool that raised something it did not mean to."""
    return bool(
        result.is_error
        and len(result.content) == 1
        and _block_text(result.content[0]) == f"Error executing tool {tool}"
    )


def _block_text(block: ContentBlock) -> str:
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResource):
        return block.resource.text
    if isinstance(block, ResourceLink):
        return str(block.uri)
    return f"[{block.type} not shown]"


def _compact(text: str) -> str:
    """JSON objects and arrays without white space; any other text as it is."""
    if not text.startswith(("{", "[")):
        return text
    try:
        return msgspec.json.format(text, indent=-1)
    except (msgspec.DecodeError, RecursionError):
        return text


def _unwrapped(structured: object) -> object:
    """The SDK wraps a result that is not an object as `{"result": ...}`."""
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        return structured["result"]
    return structured


def cut(text: str, max_chars: int) -> str:
    """A text that can be encoded, of at most `max_chars` and a line that says what was cut."""
    text = text.encode("utf-8", "replace").decode()  # half a surrogate pair has no tokens
    if len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}\n[cut: the first {max_chars} of {len(text)} characters]"
