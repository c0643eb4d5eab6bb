r"""Any model's own chat template, where `renderers` knows no family of it.

The template (Jinja, sandboxed: it is text from outside) is shown marks in place of messages, and what it
writes around them is cut at the marks:

    [system ⟨0⟩] [user ⟨1⟩] -> "<|im_start|>system\n" ⟨0⟩ "<|im_end|>\n<|im_start|>user\n" ⟨1⟩ ...

What the template writes may hold control tokens, what messages say never does: whoever writes
`<|im_end|>` in a message ends nothing.

Few templates know tools, and those that do know them each in its own way. So here they are text: schemas
in the system message, `<tool_call>{"name": ..., "arguments": ...}</tool_call>` in what the policy says,
`<tool_response>` in what answers it, as Hermes and its many descendants have it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from renderers.base import ParsedResponse, ParsedToolCall, RenderedTokens, ToolCallParseStatus

from muarl.errors import SetupError
from muarl.render.tokenizer import TextTokenizer

_TOOLS = """

# Tools

You may call one or more functions. Their signatures are within <tools></tools>:
<tools>
{schemas}
</tools>

For each call return a JSON object with the function's name and arguments within
<tool_call></tool_call>:
<tool_call>
{{"name": <name>, "arguments": <object>}}
</tool_call>"""
_CALL = re.compile(r"<tool_call>(.*?)(</tool_call>|\Z)", re.DOTALL)
_MARK = re.compile("\ue000(\\d+)\ue001")


class Part(NamedTuple):
    """A piece of text.

    Attributes:
        text: Its text.
        markup: Whether it may hold control tokens.
    """

    text: str
    markup: bool = False


class Spoken(NamedTuple):
    """A message as the template sees it.

    Attributes:
        role: `system`, `user` or `assistant`.
        parts: What it says.
    """

    role: str
    parts: list[Part]


class ChatTemplate:
    """A template over its tokenizer, in the shape of the `renderers` library's own.

    Raises:
        SetupError: The template cannot be read, fails on a plain dialogue, does not end a message with
            a control token, or its tokenizer encodes a text in pieces otherwise than whole.
    """

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self._named = f"the chat template of {tokenizer.name_or_path}"
        self._template = self._compiled()
        self._has_system = self._takes_system()
        closing = self._after_assistant([])
        if not closing or not tokenizer.is_control(closing[0]):
            raise SetupError(
                f"{self._named} does not end what the policy says with a control token, so that it "
                "cannot be sampled where it would stop"
            )
        self._stop = closing[0]
        self._prove_pieces()

    def get_stop_token_ids(self) -> list[int]:
        """What ends a message, and what the tokenizer ends texts with."""
        ends = {self._stop, self._tokenizer.eos_token_id}
        return sorted(end for end in ends if end is not None)

    def render_ids(
        self,
        messages: Sequence[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] | None = None,
        add_generation_prompt: bool = False,
    ) -> list[int]:
        """Ids of a whole conversation."""
        spoken = self._spoken(messages, tools)
        return self._encode(self._pieces(spoken, prompt=add_generation_prompt))

    def render(self, messages: Sequence[dict[str, Any]]) -> RenderedTokens:
        """Ids of a conversation that a policy's message ends, and which of them it samples."""
        before = self.render_ids(messages[:-1], add_generation_prompt=True)
        said = [*self._encode(_spoken(messages[-1]).parts), self._stop]
        return RenderedTokens(
            token_ids=before + said,
            message_indices=[-1] * len(before) + [len(messages) - 1] * len(said),
            sampled_mask=[False] * len(before) + [True] * len(said),
        )

    def bridge_to_next_turn(
        self,
        previous_prompt_ids: list[int],
        previous_completion_ids: list[int],
        new_messages: Sequence[dict[str, Any]],
    ) -> RenderedTokens:
        """What was sent, what was sampled, and what the template writes from there on."""
        after = self._after_assistant(self._spoken(new_messages, None))
        if previous_completion_ids[-1:] == after[:1]:
            after = after[1:]
        return RenderedTokens(token_ids=previous_prompt_ids + previous_completion_ids + after)

    def parse_response(
        self, token_ids: list[int], *, prompt_ids: list[int] | None = None
    ) -> ParsedResponse:
        """What is said, and the calls in it, readable or not."""
        del prompt_ids
        stops = self.get_stop_token_ids()
        end = next((i for i, token in enumerate(token_ids) if token in stops), len(token_ids))
        text = self._tokenizer.decode(token_ids[:end])
        calls = [_read(match) for match in _CALL.finditer(text)]
        return ParsedResponse(content=_CALL.sub("", text).strip(), tool_calls=calls)

    def _compiled(self) -> Any:
        from jinja2 import TemplateError
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        def refuse(message: str) -> None:
            raise TemplateError(message)

        jinja = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
        )
        jinja.globals["raise_exception"] = refuse
        try:
            return jinja.from_string(self._tokenizer.chat_template or "")
        except TemplateError as error:
            raise SetupError(f"{self._named} cannot be read: {error}") from error

    def _takes_system(self) -> bool:
        try:
            self._pieces([Spoken("system", [Part("s")]), Spoken("user", [Part("u")])])
        except SetupError:
            return False
        return True

    def _pieces(self, spoken: Sequence[Spoken], *, prompt: bool = False) -> list[Part]:
        """What the template writes, with each message's parts in place of its mark."""
        from jinja2 import TemplateError

        messages = [
            {"role": message.role, "content": f"\ue000{number}\ue001"}
            for number, message in enumerate(spoken)
        ]
        try:
            text: str = self._template.render(
                messages=messages,
                add_generation_prompt=prompt,
                enable_thinking=False,
                **self._tokenizer.named_tokens,
            )
        except (TemplateError, TypeError, ValueError, LookupError) as error:
            raise SetupError(f"{self._named} fails on a plain dialogue: {error}") from error
        pieces: list[Part] = []
        for place, piece in enumerate(_MARK.split(text)):
            if place % 2 == 0:
                pieces.append(Part(piece, markup=True))
            elif int(piece) < len(spoken):
                pieces += spoken[int(piece)].parts
        return pieces

    def _after_assistant(self, answers: Sequence[Spoken]) -> list[int]:
        """Ids from the end of what the policy says to where it speaks again."""
        mark = Part("\ue002")
        before = [Spoken("user", [Part("u")]), Spoken("assistant", [mark])]
        if self._has_system:
            before.insert(0, Spoken("system", [Part("s")]))
        pieces = self._pieces([*before, *answers], prompt=bool(answers))
        if mark not in pieces:
            raise SetupError(f"{self._named} does not show what the policy said")
        return self._encode(pieces[pieces.index(mark) + 1 :])

    def _spoken(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] | None
    ) -> list[Spoken]:
        """Messages in the roles that every template knows."""
        spoken = [*_with_answers_joined(messages)]
        if tools:
            if not spoken or spoken[0].role != "system":
                spoken.insert(0, Spoken("system", []))
            schemas = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
            spoken[0].parts.append(Part(_TOOLS.format(schemas=schemas)))
        if spoken and spoken[0].role == "system" and not self._has_system:
            system, *spoken = spoken
            parts = spoken[0].parts if spoken else []
            first = Spoken("user", [*system.parts, Part("\n\n"), *parts])
            spoken = [first, *spoken[1:]]
        return spoken

    def _encode(self, parts: Sequence[Part]) -> list[int]:
        ids: list[int] = []
        for markup, group in groupby(parts, key=lambda part: part.markup):
            text = "".join(part.text for part in group)
            ids += self._tokenizer.encode_markup(text) if markup else self._tokenizer.encode(text)
        return ids

    def _prove_pieces(self) -> None:
        """Whether a plain dialogue has the ids that the tokenizer gives its whole text."""
        plain = [
            Spoken("user", [Part("What is 17 + 4, please?")]),
            Spoken("assistant", [Part("21.")]),
            Spoken("user", [Part("Thank you, that is all")]),
        ]
        pieces = self._pieces(plain, prompt=True)
        whole = "".join(part.text for part in pieces)
        if self._encode(pieces) != self._tokenizer.encode_markup(whole):
            raise SetupError(
                f"{self._named} cannot be used: its tokenizer encodes a message otherwise where it "
                "stands alone than where it stands in the dialogue"
            )


def _with_answers_joined(messages: Sequence[dict[str, Any]]) -> Iterator[Spoken]:
    """Answers of tools that follow one another are one message of the user."""
    for is_tool, group in groupby(messages, key=lambda message: message["role"] == "tool"):
        if not is_tool:
            yield from map(_spoken, group)
            continue
        texts = [f"<tool_response>\n{message['content']}\n</tool_response>" for message in group]
        yield Spoken("user", [Part("\n".join(texts))])


def _spoken(message: dict[str, Any]) -> Spoken:
    parts = [Part(message["content"])] if message["content"] else []
    for call in message.get("tool_calls", ()):
        function = call["function"]
        body = function["arguments"]
        if not isinstance(body, str):
            named = {"name": function["name"], "arguments": body}
            body = json.dumps(named, ensure_ascii=False)
        lead = "\n" if parts else ""
        parts += [
            Part(f"{lead}<tool_call>\n", markup=True),
            Part(body),
            Part("\n</tool_call>", markup=True),
        ]
    return Spoken(message["role"], parts)


def _read(match: re.Match[str]) -> ParsedToolCall:
    raw = match[0]
    if not match[2]:
        return ParsedToolCall(raw, status=ToolCallParseStatus.UNCLOSED_BLOCK)
    try:
        call = json.loads(match[1])
    except json.JSONDecodeError:
        return ParsedToolCall(raw, status=ToolCallParseStatus.INVALID_JSON)
    if not isinstance(call, dict) or not call.get("name"):
        return ParsedToolCall(raw, status=ToolCallParseStatus.MISSING_NAME)
    return ParsedToolCall(raw, name=call["name"], arguments=call.get("arguments", {}))
