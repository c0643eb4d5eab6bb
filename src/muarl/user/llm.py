"""A user played by an LLM.

She sees her goal, her manner, what was said aloud and her own device, if she has one; never the
policy's tool calls, their results or reasoning.
Only she ends the dialogue (law L4): by the stop marker at the end of what she says, outside her
own reasoning. What cannot be a user's message, or breaks her contract, is sampled again, and after
that it is her fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from muarl.errors import UserError
from muarl.http.chat_client import ChatClient, ChatMessage, ChatReply, strip_reasoning
from muarl.record import UserReply
from muarl.seeds import derive_seed, generator
from muarl.spec import KnobsSpec, PersonaSpec, UserScriptSpec
from muarl.spec.user import LlmUserSpec, SpokenUserSpec
from muarl.spoken import may_say
from muarl.user.candidates import Candidate, ask_for, candidates_in, draw
from muarl.user.contract import Contract
from muarl.user.guards import Said, breach_of
from muarl.user.handling import speak
from muarl.user.knobs import Dice
from muarl.user.knobs.slips import slip
from muarl.user.protocol import Device
from muarl.user.role import ACTING_RULES, RULES, STOP, role_of
from muarl.user.speaker import Speaker
from muarl.user.steering import PLAIN, Direction, Steering

_EXCERPT = 200
_CUE = "(The chat is open. Write your first message.)"
_SILENCE = "(The assistant sent an empty message.)"
_DIRECTION = "\n\n(For your next message only: {words})"


class LlmUser:
    """One dialogue's LLM user.

    Args:
        spec: Sampling and guards.
        persona: How she is.
        goal: What she wants, in words.
        seed: Her draws follow from it, as far as who is asked honours seeds.
        client: Who is asked.
        contract: What she is held to; by default, that she knows no more than her goal.
        script: Understands the policy, for knobs that depend on what it does.
        knobs: What she is steered to; by default the persona's.
    """

    def __init__(
        self,
        spec: SpokenUserSpec,
        *,
        persona: PersonaSpec,
        goal: str,
        seed: int,
        client: Speaker,
        contract: Contract | None = None,
        script: UserScriptSpec | None = None,
        knobs: KnobsSpec | None = None,
    ) -> None:
        self._spec = spec
        self._seed = seed
        self._client = client
        self._contract = contract or Contract(known=(goal, persona.style, *persona.goals))
        self._dice = Dice(persona.knobs if knobs is None else knobs, seed)
        self._steering = Steering(self._dice, self._contract, script)
        self._role = partial(role_of, persona, goal, self._steering.always())
        self._device: Device | None = None
        self._acted = False
        # Her own lines are the model's ("assistant"), the agent's are the other side's ("user").
        self._said = [self._system()]
        self._heard: list[str] = []

    def take(self, device: Device) -> None:
        self._device = device
        self._said[0] = self._system()

    def _system(self) -> ChatMessage:
        role = self._role(acts=self._device is not None)
        if self._spec.candidates > 1:
            role = f"{role}\n\n{ask_for(self._spec.candidates)}"
        return ChatMessage("system", role)

    async def open(self) -> UserReply:
        return await self._speak(_CUE, PLAIN)

    async def reply(self, agent_text: str) -> UserReply:
        # Only she may know the marker: an agent that could teach it to her could end the dialogue.
        heard = agent_text.replace(STOP, "").strip()
        self._heard.append(heard)
        return await self._speak(heard or _SILENCE, self._steering.hear(heard))

    async def _speak(self, heard: str, direction: Direction) -> UserReply:
        before = self._said
        self._said = [*before, ChatMessage("user", heard)]
        if direction.exactly is not None:
            return self._deliver(direction.exactly, direction.stop, direction.act, ())
        asked = self._said
        if direction.words:
            note = _DIRECTION.format(words=direction.words)
            asked = [*before, ChatMessage("user", heard + note)]
        breaches: list[str] = []
        kind = why = excerpt = ""
        for attempt in range(self._spec.tries):
            answer, deeds = await self._ask(asked, attempt)
            asked = [*asked, *deeds]
            self._said += deeds
            sound: list[Candidate] = []
            for candidate in self._candidates(answer):
                text, stop = split_stop(candidate.text)
                kind, why = self._breach(answer, text, stop, direction)
                if not kind:
                    sound.append(candidate)
                else:
                    breaches.append(kind)
                    excerpt = answer.text[:_EXCERPT]
            if sound:
                rng = generator(self._seed, len(self._said), attempt, "candidate")
                text, stop = split_stop(draw(sound, self._spec.draw, rng))
                text = slip(text, (fact.value for fact in self._contract.facts), self._dice)
                act = direction.act or ("stop" if stop else "" if self._heard else "open")
                return self._deliver(text, stop, act, tuple(breaches))
        raise UserError(
            f"the user model {self._client.model!r} gave no usable message in {self._spec.tries} "
            f"tries: the last {why}: {excerpt!r}",
            kind,
        )

    async def _ask(
        self, asked: list[ChatMessage], attempt: int
    ) -> tuple[ChatReply, list[ChatMessage]]:
        """Her next message, and what she did on her device before it."""
        first = derive_seed(self._seed, len(self._said), attempt)
        temperature = self._spec.temperature
        max_tokens = self._spec.max_tokens * self._spec.candidates
        if self._device is None:
            answer = await self._client.complete(
                asked, seed=first, temperature=temperature, max_tokens=max_tokens
            )
            return answer, []
        answer, deeds = await speak(
            self._client,
            asked,
            self._device,
            rounds=self._spec.tool_rounds,
            seed=lambda number: derive_seed(first, number),
            temperature=temperature,
            max_tokens=max_tokens,
        )
        if deeds:
            self._acted = True
            # What her device told her is no invention.
            told = (deed.content for deed in deeds if deed.role == "tool")
            self._contract = replace(self._contract, known=(*self._contract.known, *told))
        return answer, deeds

    def _candidates(self, answer: ChatReply) -> Iterator[Candidate]:
        """What she might say by an answer; one that is none of its form is a single message."""
        text = strip_reasoning(answer.text)
        found = candidates_in(text, self._spec.candidates) if self._spec.candidates > 1 else []
        yield from found or [Candidate(text, 1.0)]

    def _deliver(self, text: str, stop: bool, act: str, breaches: tuple[str, ...]) -> UserReply:
        self._said.append(ChatMessage("assistant", text))
        knobs, chances = self._dice.taken()
        return UserReply(text, stop, act, knobs, chances, breaches)

    def _breach(
        self, answer: ChatReply, text: str, stop: bool, direction: Direction
    ) -> tuple[str, str]:
        """Why this is no message of hers: the kind, and in words; two empty texts if it is one."""
        if why := _misshapen(answer, text, stop, self._spec.max_chars):
            return "format", why
        if self._spec.candidates > 1 and text.startswith(("{", "```")):
            return "format", "was not of the form that was asked for"
        for value in direction.hidden:
            if may_say(text, value):
                return "steering", f"tells {value!r}, which she was to keep in this message"
        if direction.act and stop:
            return "steering", f"ended the dialogue where she was to {direction.act}"
        said = Said(
            text,
            stop,
            heard=self._heard,
            before=[
                message.content
                for message in self._said
                if message.role == "assistant" and not message.tool_calls
            ],
            contract=self._contract,
            instructions=RULES if self._device is None else ACTING_RULES,
            acted=self._acted,
            withheld=self._steering.withheld,
            may_change=direction.may_change,
        )
        return breach_of(said, self._spec.guards)


def chat_client(spec: LlmUserSpec) -> ChatClient:
    """Whoever answers at the endpoint that a run names.

    Raises:
        SetupError: The endpoint's URL or key is missing.
    """
    return ChatClient(
        spec.base_url, spec.model, api_key_env=spec.api_key_env, timeout_s=spec.timeout_s
    )


def split_stop(text: str) -> tuple[str, bool]:
    r"""What is delivered, and whether the marker ends it.

    Example:
        >>> split_stop("Thank you, bye.\n###STOP###")
        ('Thank you, bye.', True)
        >>> split_stop("When do I write ###STOP### here?")
        ('When do I write ###STOP### here?', False)
    """
    text = text.strip()
    if not text.endswith(STOP):
        return text, False
    return text.removesuffix(STOP).strip(), True


def _misshapen(answer: ChatReply, text: str, stop: bool, max_chars: int) -> str:
    """Why this cannot be anybody's message, or ""."""
    if answer.cut:
        return "was cut off by max_tokens"
    if len(answer.text) > max_chars:
        return f"had {len(answer.text)} characters, more than max_tokens allows"
    if not text and not stop:
        return "was empty"
    return "had the stop marker inside" if STOP in text else ""
