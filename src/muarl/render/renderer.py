"""Messages to token ids and back, by the chat template of a model family.

Rendering itself is the `renderers` library's. What is ours: the sampled ids are never decoded and
encoded again (law L1). A prompt grows by the delta ids of what answered, or, where the template
rewrites history, is rendered anew and reported as a fork.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from renderers import (
    BaseRendererConfig,
    Llama3RendererConfig,
    Qwen3RendererConfig,
    create_renderer,
)
from renderers.base import ToolCallParseStatus

from muarl.errors import SetupError
from muarl.json_values import json_problem
from muarl.messages import Message, ToolCall, ToolSpec
from muarl.render.chat_template import ChatTemplate
from muarl.render.tokenizer import TextTokenizer

# Nesting this deep is far from where Python's JSON parser runs out of stack, wherever it is called.
_MAX_BRACKETS = 400


class Renderer:
    """One model family's template over one tokenizer.

    Raises:
        SetupError: There is no template for it; or it has one of its own that is not fit.
    """

    def __init__(self, tokenizer: TextTokenizer, template: Any = None) -> None:
        """Find the template.

        Args:
            tokenizer: The tokenizer.
            template: Its template, where it is known already.
        """
        self.tokenizer = tokenizer
        self._template: Any = template or _template_of(tokenizer)
        self.stop_token_ids: tuple[int, ...] = tuple(self._template.get_stop_token_ids())
        self._stops = frozenset(self.stop_token_ids)

    def start(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[int]:
        """Ids of a whole conversation, ready for the policy to speak."""
        ids: list[int] = self._template.render_ids(
            [_to_wire(m) for m in messages],
            tools=[t.as_function() for t in tools] or None,
            add_generation_prompt=True,
        )
        return ids

    def bridge(
        self, prompt_ids: list[int], sampled_ids: list[int], answers: Sequence[Message]
    ) -> list[int] | None:
        """The next prompt: what was sent, what was sampled, and what answered it.

        p what was sent, a sampled, e what answered:

            prompt_ids [p p p]   sampled_ids [a a]   ->  [p p p a a e e e]

        The template looks back to where the last message began and no further, and is shown no
        more: what a turn costs does not grow with the dialogue, but for the copy of its ids.

        Returns:
            The ids, which begin with exactly `prompt_ids + sampled_ids`; None where the template
            would rewrite history, so that the caller must render anew and fork.
        """
        begun = self._last_message(prompt_ids)
        recent = prompt_ids[begun:]
        bridged = self._template.bridge_to_next_turn(
            recent, sampled_ids, [_to_wire(m) for m in answers]
        )
        if bridged is None:
            return None
        ids: list[int] = bridged.token_ids
        known = len(recent) + len(sampled_ids)
        kept = ids[: len(recent)] == recent and ids[len(recent) : known] == sampled_ids
        return prompt_ids + ids[len(recent) :] if kept else None

    def _last_message(self, prompt_ids: list[int]) -> int:
        """Where the stop token stands that ended the last message of a prompt; 0 if none did."""
        places = (i for i in range(len(prompt_ids) - 1, -1, -1) if prompt_ids[i] in self._stops)
        return next(places, 0)

    def parse(self, sampled_ids: list[int], prompt_ids: list[int], *, turn: int) -> Message:
        """Read what the policy said. Calls that cannot be read are kept, with the reason.

        Where one call would break the parser, no call of the message is read.
        """
        text = self.tokenizer.decode(sampled_ids)
        if text.count("{") + text.count("[") > _MAX_BRACKETS:
            return _unreadable(text, turn, f"the message has more than {_MAX_BRACKETS} brackets")
        try:
            parsed = self._template.parse_response(sampled_ids, prompt_ids=prompt_ids)
        except ValueError:  # Python reads no integer of thousands of digits
            return _unreadable(text, turn, "the call holds a number that is too long")
        reasoning, content = without_reasoning(parsed.content)
        return Message(
            role="assistant",
            content=content,
            tool_calls=tuple(
                _read_call(call, f"call_{turn}_{index}")
                for index, call in enumerate(parsed.tool_calls)
            ),
            reasoning="\n".join(filter(None, [parsed.reasoning_content, *reasoning])),
        )

    def encode_reply(self, message: Message) -> list[int]:
        """Ids a policy would have sampled to say `message`; for scripted policies only."""
        lead = Message(role="user", content="x")
        rendered = self._template.render([_to_wire(lead), _to_wire(message)])
        ids = [
            token
            for token, index, sampled in zip(
                rendered.token_ids, rendered.message_indices, rendered.sampled_mask, strict=True
            )
            if index == 1 and sampled
        ]
        # The generation prompt already holds the empty reasoning block.
        close = self.tokenizer.convert_tokens_to_ids("</think>")
        blank = self.tokenizer.encode("\n\n")
        if close in ids:
            at = ids.index(close) + 1
            ids = ids[at + len(blank) :] if ids[at : at + len(blank)] == blank else ids[at:]
        return ids

    def forks(self) -> list[str]:
        """Kinds of turn after which this template rewrites history; empty if append-only."""
        call = ToolCall(id="c", name="t", arguments={"a": 1.0})
        system = Message(role="system", content="rules")
        asked = Message(role="user", content="hello")
        probes = {
            "user": (Message(role="assistant", content="hi"), Message(role="user", content="more")),
            "tool": (
                Message(role="assistant", content="", tool_calls=(call,)),
                Message(role="tool", content="ok", tool_call_id="c", name="t"),
            ),
        }
        broken = []
        for kind, (said, answer) in probes.items():
            prompt = self.start([system, asked], [])
            sampled = self.encode_reply(said)
            bridged = self.bridge(prompt, sampled, [answer])
            if bridged is None or bridged != self.start([system, asked, said, answer], []):
                broken.append(kind)
        return broken


_FAMILIES: dict[tuple[str, ...], BaseRendererConfig] = {
    ("<|im_start|>", "<think>", "<tool_call>"): Qwen3RendererConfig(enable_thinking=False),
    ("<|start_header_id|>", "<|eot_id|>", "<|python_tag|>"): Llama3RendererConfig(),
}
"""Control tokens that tell a family whose template the `renderers` library knows."""


def _template_of(tokenizer: TextTokenizer) -> Any:
    for tokens, config in _FAMILIES.items():
        if None not in tokenizer.convert_tokens_to_ids(tokens):
            return create_renderer(tokenizer, config)
    if tokenizer.chat_template:
        return ChatTemplate(tokenizer)
    raise SetupError(
        f"no chat template for {tokenizer.name_or_path}: its tokenizer is of neither family that is "
        "known (Qwen3, Llama 3), and its folder has no `chat_template`. Use an instruction-tuned model"
    )


def _unreadable(text: str, turn: int, why: str) -> Message:
    call = ToolCall(id=f"call_{turn}_0", name="", error=why, raw=text)
    return Message(role="assistant", content="", tool_calls=(call,))


def without_reasoning(content: str) -> tuple[list[str], str]:
    """Reasoning that stands where the template has none, and what is left to be said aloud.

    The template knows one block of reasoning, at the start. A policy may close a block it never
    opened, or open another later; the user hears neither (law L4).
    """
    before, closed, content = content.rpartition("</think>")
    content, opened, after = content.partition("<think>")
    reasoning = [part.strip() for part, mark in ((before, closed), (after, opened)) if mark]
    return reasoning, content.strip() if reasoning else content


def _read_call(call: Any, call_id: str) -> ToolCall:
    if call.status != ToolCallParseStatus.OK:
        reason = {
            ToolCallParseStatus.INVALID_JSON: "the call is not valid JSON",
            ToolCallParseStatus.UNCLOSED_BLOCK: "the call has no closing tag",
            ToolCallParseStatus.MISSING_NAME: "the call names no tool",
        }.get(call.status, f"the call could not be read ({call.status})")
        return ToolCall(id=call_id, name="", error=reason, raw=call.raw)
    if not isinstance(call.name, str) or json_problem(call.name):
        return ToolCall(id=call_id, name="", error="the call names no tool", raw=call.raw)
    problem = (
        json_problem(call.arguments)
        if isinstance(call.arguments, dict)
        else "they must be a JSON object"
    )
    if problem:
        error = f"wrong arguments: {problem}"
        return ToolCall(id=call_id, name=call.name, error=error, raw=call.raw)
    return ToolCall(id=call_id, name=call.name, arguments=call.arguments)


def _to_wire(message: Message) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "type": "function",
                "id": call.id,
                "function": {"name": call.name, "arguments": call.raw or call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        wire["name"] = message.name
    if message.reasoning:
        wire["reasoning_content"] = message.reasoning
    return wire
