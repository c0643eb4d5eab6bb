"""Models that are only prompted: what they are told of an entry's functions, and what they write.

The words are upstream's, read from the user's copy; a copy without upstream's Python has none, and then
muarl's own stand for them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import structs

from muarl.compat.bfcl.text_calls import decoded
from muarl.compat.bfcl.toolkit import Version
from muarl.compat.python_calls import NotCalls, as_tool_call
from muarl.compat.python_text import constants, filled, functions, parsed
from muarl.compat.upstream import Upstream
from muarl.messages import Message, ToolCall, ToolSpec
from muarl.text_calls import as_texts, with_system, written

PROMPT = "prompt.json"
"""Beside the domain's files: the words."""
_PROMPTS = "constants/default_prompts.py"
_UTILS: Mapping[Version, str] = {"v3": "model_handler/utils.py", "v4": "utils.py"}
_HINTS = "_get_language_specific_hint"
_OWN = """\
You solve what the user asks for with functions. Call them like this, and write nothing beside the calls: \
[first_function(name='value', number=2), second_function(items=['a', 'b'])]

Their results are shown to you, and you may call more. When all is done that the user asked for in this \
turn, or if it cannot be done, say so without a call: then the next turn begins.

The functions, in JSON:
{functions}
"""


class Prompt(msgspec.Struct, frozen=True):
    """What a model is told.

    Attributes:
        system: The system prompt; `{functions}` stands for the functions.
        hint: Stands at the end of each function's description.
        official: Whether the words are upstream's.
    """

    system: str = _OWN
    hint: str = ""
    official: bool = False


def read_prompt(copy: Upstream, version: Version) -> Prompt:
    """The words of a copy, or muarl's own if it has none.

    Raises:
        SetupError: Its Python cannot be read.
    """
    if not copy.has(_PROMPTS):
        return Prompt()
    words = constants(parsed(copy.text(None, _PROMPTS), _PROMPTS))
    try:
        system = words["DEFAULT_SYSTEM_PROMPT"] if version == "v3" else _composed(words)
    except (KeyError, TypeError, AttributeError):
        return Prompt()
    return Prompt(system, _hint(copy, _UTILS[version]), official=True)


def _composed(words: Mapping[str, Any]) -> str:
    """V4's prompt, which is put together of parts, in the form that it has unless another is asked for."""
    form = dict(parse_qsl(words["DEFAULT_SYSTEM_PROMPT_FORMAT"]))
    style: Mapping[str, str] = words["PROMPT_STYLE_TEMPLATES"][form["style"]]
    format_of = {
        "output_format": words["OUTPUT_FORMAT_MAPPING"][form["ret_fmt"]],
        "param_types": words["PARAM_TYPE_MAPPING"][form["ret_fmt"]],
        "format": form["func_doc_fmt"],
    }
    parts = {name: filled(text, format_of) for name, text in style.items()}
    parts["tool_call_format"] = parts["tool_call_no_tag"]
    return filled(words["PROMPT_TEMPLATE_MAPPING"][form["prompt_fmt"]], parts)


def _hint(copy: Upstream, name: str) -> str:
    """The text that upstream puts behind the description of a function of Python."""
    if not copy.has(name):
        return ""
    for function, body in functions(parsed(copy.text(None, name), name)):
        if function == _HINTS:
            returned = [
                node.value
                for node in ast.walk(body)
                if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant)
            ]
            last = max(returned, key=lambda node: node.lineno, default=None)
            return "" if last is None else str(last.value)
    return ""


class BfclCalls:
    """How a model that is prompted is told of functions, calls them, and is answered.

    Answers are messages of tools, as upstream's handlers of local models have it.

    Args:
        version: Of the benchmark.
        docs: The functions as they are published, by name.
        prompt: What the model is told.
    """

    stops_at_error = False

    def __init__(
        self, version: Version, docs: Mapping[str, Mapping[str, Any]], prompt: Prompt
    ) -> None:
        self._version = version
        self._docs = docs
        self._prompt = prompt

    def told(self, history: Sequence[Message], tools: Sequence[ToolSpec]) -> list[Message]:
        shown = [self._described(tool) for tool in tools]
        text = json.dumps(shown, indent=4) if self._version == "v4" else str(shown)
        system = self._prompt.system.replace("{functions}", text)
        return with_system(system, as_texts(history, self))

    def _described(self, tool: ToolSpec) -> dict[str, Any]:
        doc = self._docs.get(tool.name)
        if doc is None:  # under another name, where tools are perturbed
            return structs.asdict(tool)
        return {**doc, "description": doc["description"] + self._prompt.hint}

    def answers(self, answers: Sequence[Message]) -> Sequence[Message]:
        return answers

    def read(self, text: str) -> list[ToolCall]:
        try:
            calls = decoded(text, self._version)
        except NotCalls:
            return []
        return [as_tool_call(name, arguments, text) for name, arguments in calls]

    def write(self, calls: Sequence[ToolCall]) -> str:
        return written(calls)
