"""One side of a dialogue in tokens: what it was sent, what it sampled, what answered it (law L1).

The agent has one, and so has a user who is a model: there the same dialogue is told the other way
round, the agent's messages as those of her user, and her own as what she samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from muarl.messages import Message, ToolSpec
from muarl.policy import Generation
from muarl.record import Sample, Span
from muarl.render import Renderer


class Mark(NamedTuple):
    """Where a side stood."""

    prompt: list[int]
    running: int | None
    forks: int


class Side:
    """What one side samples, as samples for training.

        begin                    prompt  [P P P]
        keep  sampled [A A]      sample  [P P P A A]          mask [0 0 0 1 1]
        answer  by [E E]         prompt  [P P P A A E E]
        keep  sampled [A]        sample  [P P P A A E E A]    mask [0 0 0 1 1 0 0 1]

    Attributes:
        prompt: Ids to be sent for the next message.
        samples: One per unbroken prefix.
        forks: How often the prefix broke after the beginning.
    """

    def __init__(self, renderer: Renderer, samples: list[Sample] | None = None) -> None:
        """Prepare.

        Args:
            renderer: Of the model that samples.
            samples: Shared with other sides of the same episode; None: a list of its own.
        """
        self._renderer = renderer
        self._said: list[int] = []
        self._running: int | None = None
        self.prompt: list[int] = []
        self.samples = [] if samples is None else samples
        self.forks = 0

    def begin(self, history: Sequence[Message], tools: Sequence[ToolSpec]) -> None:
        """Take a whole conversation for the next prompt; again: the prefix breaks."""
        self.forks += self._running is not None
        self.prompt = self._renderer.start(history, tools)
        self._running = len(self.samples)
        self.samples.append(Sample(list(self.prompt)))

    def read(self, generation: Generation, *, turn: int) -> Message:
        """What was sampled for the present prompt, as a message; `turn` names its calls."""
        if generation.message is not None:
            return generation.message
        if generation.finish_reason == "length":  # half a message is never taken for a call
            return Message("assistant", self._renderer.tokenizer.decode(generation.token_ids))
        return self._renderer.parse(generation.token_ids, self.prompt, turn=turn)

    def keep(self, generation: Generation) -> tuple[int, int, int]:
        """Append the present prompt and what was sampled for it to the running sample.

        Returns:
            Index of the sample, first sampled token in it, and one past the last.
        """
        assert self._running is not None  # it has begun
        sample = self.samples[self._running]
        start = len(self.prompt)
        sample.token_ids.extend(self.prompt[len(sample.token_ids) :])
        append_sampled(sample, generation)
        self._said = generation.token_ids
        return self._running, start, start + len(generation.token_ids)

    def mark(self) -> Mark:
        """Where it stands, to come back to."""
        return Mark(self.prompt, self._running, self.forks)

    def back_to(self, mark: Mark) -> None:
        """Stand where it stood: what came since answered nothing that was sampled."""
        if self._running != mark.running and self._running == len(self.samples) - 1:
            self.samples.pop()
        self.prompt, self._running, self.forks = mark

    def answer(
        self, answers: Sequence[Message], history: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> None:
        """Go on from what was kept last.

        Args:
            answers: What came since.
            history: The whole conversation with them, for a template that rewrites it.
            tools: As at the beginning.
        """
        bridged = self._renderer.bridge(self.prompt, self._said, answers)
        if bridged is None:
            self.begin(history, tools)
        else:
            self.prompt = bridged


def append_sampled(sample: Sample, generation: Generation) -> None:
    """Append sampled ids to a sample that ends with the prompt that was sent for them."""
    start = len(sample.token_ids)
    sample.token_ids.extend(generation.token_ids)
    for first, last, version in generation.version_ranges():
        sample.spans.append(Span(start + first, start + last, version))
    sample.logprobs.extend(generation.logprobs)
