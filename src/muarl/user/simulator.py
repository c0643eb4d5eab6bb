"""An LLM user in her domain's own words: prompts, strategy and stop tokens as a benchmark has them.

Unlike `LlmUser` she is held to nothing but that she says something, since a public benchmark's score
is one with that user and no other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from muarl.errors import UserError
from muarl.http.chat_client import ChatClient, ChatMessage, strip_reasoning
from muarl.record import UserReply
from muarl.seeds import derive_seed
from muarl.spec.simulator import SimulatorSpec, Strategy
from muarl.spec.user import SimulatorUserSpec
from muarl.user.handling import speak
from muarl.user.protocol import Device

_NEEDS: dict[Strategy, tuple[str, ...]] = {
    "llm": (),
    "react": ("react",),
    "verify": ("verify",),
    "reflection": ("verify", "reflect"),
}
_SLOT = re.compile(r"\{transcript\}|\{response\}")
_SAID_AFTER = "User Response:"
_THOUGHT = "Thought:"
_REFLECTED = "Response:"
_PASSES = "true"
_LABELS = {"user": "Customer", "assistant": "Agent"}
"""By role of the user's own chat, where she is the assistant: so the two are the wrong way round.

tau-bench's supervisors read them like that, and so ours do."""


def lacking(prompts: SimulatorSpec, strategy: Strategy) -> list[str]:
    """Which prompts a strategy needs and the domain does not have."""
    return [name for name in _NEEDS[strategy] if getattr(prompts, name) is None]


class Simulator:
    """One dialogue's user.

    Args:
        prompts: The domain's; those that the strategy needs are there (`lacking`).
        who: Model, sampling and strategy.
        goal: The task's.
        seed: Her draws follow from it, as far as the endpoint honours seeds.
        client: Who is asked.
    """

    def __init__(
        self,
        prompts: SimulatorSpec,
        who: SimulatorUserSpec,
        *,
        goal: str,
        seed: int,
        client: ChatClient,
    ) -> None:
        self._prompts = prompts
        self._who = who
        self._seed = seed
        self._client = client
        self._asked = 0
        self._device: Device | None = None
        prompt = prompts.react if who.strategy == "react" else prompts.prompt
        assert prompt is not None  # the strategy's prompts are there
        # Her own lines are the model's ("assistant"), the agent's are the other side's ("user").
        self._said = [ChatMessage("system", prompt.replace("{goal}", goal))]

    def take(self, device: Device) -> None:
        self._device = device

    async def open(self) -> UserReply:
        return await self._answer(self._prompts.greeting, "open")

    async def reply(self, agent_text: str) -> UserReply:
        if any(text in agent_text for text in self._prompts.leaves):
            return UserReply("", stop=True, act="stop")
        # Only she may know the tokens: an agent that teaches her one could end the dialogue.
        for stop in self._prompts.stops:
            agent_text = agent_text.replace(stop, "")
        return await self._answer(agent_text, "")

    async def _answer(self, heard: str, act: str) -> UserReply:
        self._said.append(ChatMessage("user", heard))
        text = await self._message()
        self._said.append(ChatMessage("assistant", text))
        stop = any(token in text for token in self._prompts.stops)
        return UserReply(text, stop, "stop" if stop else act)

    async def _message(self) -> str:
        strategy = self._who.strategy
        first = text = await self._sample()
        if strategy not in ("verify", "reflection"):
            return text
        for attempt in range(1, self._who.attempts + 1):
            if await self._passes(text):
                return text
            if attempt == self._who.attempts:
                break
            if strategy == "verify":
                text = await self._sample()
            else:
                better = await self._supervisor(self._prompts.reflect, text)
                text = better.rpartition(_REFLECTED)[2].strip() or text
        return text if strategy == "verify" else first

    async def _sample(self) -> str:
        """Her next message, after what she does on her device.

        Raises:
            UserError: She says nothing, however often she is asked.
        """
        llm = self._who.llm
        for _ in range(llm.tries):
            if self._device is None:
                answer = await self._client.complete(
                    self._said,
                    seed=self._next_seed(),
                    temperature=llm.temperature,
                    max_tokens=llm.max_tokens,
                )
            else:
                answer, deeds = await speak(
                    self._client,
                    self._said,
                    self._device,
                    rounds=llm.tool_rounds,
                    seed=lambda _: self._next_seed(),
                    temperature=llm.temperature,
                    max_tokens=llm.max_tokens,
                )
                self._said += deeds
            is_whole = not answer.cut and len(answer.text) <= llm.max_chars
            if is_whole and (text := self._spoken(strip_reasoning(answer.text))):
                return text
        raise UserError(
            f"the user model {llm.model!r} gave no whole message in {llm.tries} tries", "format"
        )

    def _spoken(self, text: str) -> str:
        """What of a message is said; a token that ends the dialogue counts wherever it stands."""
        if self._who.strategy != "react":
            return text.strip()
        for stop in self._prompts.stops:
            if stop in text:
                return stop
        mark = _SAID_AFTER if _SAID_AFTER in text else _THOUGHT
        return text.rpartition(mark)[2].strip()

    async def _passes(self, text: str) -> bool:
        return _PASSES in (await self._supervisor(self._prompts.verify, text)).lower()

    async def _supervisor(self, prompt: str | None, text: str) -> str:
        assert prompt is not None  # the strategy's prompts are there
        # In one pass: what is said in the dialogue is never taken for a slot.
        filled = {"{transcript}": _transcript(self._said), "{response}": text}
        asked = [ChatMessage("user", _SLOT.sub(lambda slot: filled[slot[0]], prompt))]
        llm = self._who.llm
        answer = await self._client.complete(
            asked,
            seed=self._next_seed(),
            temperature=llm.temperature,
            max_tokens=llm.max_tokens,
        )
        return strip_reasoning(answer.text)

    def _next_seed(self) -> int:
        self._asked += 1
        return derive_seed(self._seed, self._asked)


def _transcript(said: Sequence[ChatMessage]) -> str:
    return "\n".join(
        f"{_LABELS.get(message.role, message.role.capitalize())}: {message.content}"
        for message in said
    )
