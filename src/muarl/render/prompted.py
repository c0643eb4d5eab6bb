"""A renderer for models that write their calls into their text.

The chat template sees plain messages only; what they say is the convention's (`muarl.text_calls`).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from muarl.messages import Message, ToolSpec
from muarl.render.renderer import Renderer, without_reasoning
from muarl.text_calls import Convention


def in_convention(renderer: Renderer, convention: Convention | None) -> Renderer:
    """The same model's, with calls as a convention has them; None: as its chat template does."""
    return renderer if convention is None else Prompted(renderer, convention)


class Prompted(Renderer):
    """A model's template, with calls in the text.

    Args:
        renderer: The model's.
        convention: How calls are written.
    """

    def __init__(self, renderer: Renderer, convention: Convention) -> None:
        super().__init__(renderer.tokenizer, renderer._template)
        self._convention = convention

    def start(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[int]:
        return super().start(self._convention.told(messages, tools), [])

    def bridge(
        self, prompt_ids: list[int], sampled_ids: list[int], answers: Sequence[Message]
    ) -> list[int] | None:
        told = self._convention.answers(answers)
        return None if told is None else super().bridge(prompt_ids, sampled_ids, told)

    def parse(self, sampled_ids: list[int], prompt_ids: list[int], *, turn: int) -> Message:
        """Read what the policy said. Its text stays as it is, also where it makes calls."""
        del prompt_ids
        end = next((i for i, token in enumerate(sampled_ids) if token in self._stops), None)
        reasoning, text = without_reasoning(self.tokenizer.decode(sampled_ids[:end]))
        text = text.strip()
        calls = tuple(
            structs.replace(call, id=f"call_{turn}_{index}")
            for index, call in enumerate(self._convention.read(text))
        )
        return Message("assistant", text, calls, reasoning="\n".join(reasoning))

    def encode_reply(self, message: Message) -> list[int]:
        calls = message.tool_calls
        text = self._convention.write(calls) if calls else message.content
        return super().encode_reply(Message("assistant", text))
