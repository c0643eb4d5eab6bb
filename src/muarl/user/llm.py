"""A user played by an LLM.

She sees her goal, her manner and what was said aloud; never tool calls, tool results or reasoning.
Only she ends the dialogue (law L4): by the stop marker at the end of what she says, outside her
own reasoning. What cannot be a user's message is sampled again, and after that it is her fault.
"""

from __future__ import annotations

import re

from muarl.errors import UserError
from muarl.http.chat_client import ChatClient, ChatMessage, ChatReply, strip_reasoning
from muarl.record import UserReply
from muarl.seeds import derive_seed
from muarl.spec import PersonaSpec
from muarl.spec.user import LlmUserSpec

STOP = "###STOP###"
_TRIES = 3
_EXCERPT = 200
_CHARS_PER_TOKEN = 32
"""More than any text has on average; tokens have 4."""
_OTHER_ROLE = re.compile(r"\s*\W*(assistant|agent)\W*:", re.IGNORECASE)
_CUE = "(The chat is open. Write your first message.)"
_SILENCE = "(The assistant sent an empty message.)"

_ROLE = """\
You play a person who writes to a company's chat service. The other side is its assistant. Stay \
this person until the chat ends, and never write the assistant's part.

Your manner: {manner}

Why you write:
{goal}

How you write:
- One short chat message at a time, only the words you send: no label, no quotes, no comments.
- Begin with what you want, in your own words. Do not give everything at once: a detail is told \
when you are asked for it, or when it is plainly needed.
- What stands above is all you know. Make nothing up; asked for anything else, say that you don't \
know.
- You can only talk. You cannot look anything up or do the assistant's work.
- As soon as all you want is done, or has been refused for good, say so briefly and write {stop} \
alone on the last line. Write it nowhere else and never before."""


class LlmUser:
    """One dialogue's LLM user.

    Args:
        spec: Endpoint, model and sampling.
        persona: How she is.
        goal: What she wants, in words.
        seed: Her draws follow from it, as far as the endpoint honours seeds.
        client: Who is asked; by default one made from `spec`.

    Raises:
        SetupError: The endpoint's URL or key is missing.
    """

    def __init__(
        self,
        spec: LlmUserSpec,
        *,
        persona: PersonaSpec,
        goal: str,
        seed: int,
        client: ChatClient | None = None,
    ) -> None:
        self._spec = spec
        self._seed = seed
        self._client = client or chat_client(spec)
        role = _ROLE.format(
            manner=manner_of(persona), goal="\n".join([goal, *persona.goals]), stop=STOP
        )
        # Her own lines are the model's ("assistant"), the agent's are the other side's ("user").
        self._said = [ChatMessage("system", role)]

    async def open(self) -> UserReply:
        return await self._speak(_CUE, opening=True)

    async def reply(self, agent_text: str) -> UserReply:
        # Only she may know the marker: an agent that could teach it to her could end the dialogue.
        heard = agent_text.replace(STOP, "").strip()
        return await self._speak(heard or _SILENCE, opening=False)

    async def _speak(self, heard: str, *, opening: bool) -> UserReply:
        self._said.append(ChatMessage("user", heard))
        why = ""
        for attempt in range(_TRIES):
            answer = await self._client.complete(
                self._said,
                seed=derive_seed(self._seed, len(self._said), attempt),
                temperature=self._spec.temperature,
                max_tokens=self._spec.max_tokens,
            )
            text, stop = split_stop(strip_reasoning(answer.text))
            why = _fault(answer, text, stop, opening, _CHARS_PER_TOKEN * self._spec.max_tokens)
            if not why:
                self._said.append(ChatMessage("assistant", text))
                return UserReply(text, stop, "open" if opening else "stop" if stop else "")
        raise UserError(
            f"the user model {self._spec.model!r} gave no usable message in {_TRIES} tries: the "
            f"last {why}: {answer.text[:_EXCERPT]!r}"
        )


_LENGTHS = {"usual": "", "terse": "You use few words.", "talkative": "You use many words."}


def manner_of(persona: PersonaSpec) -> str:
    """How a persona is, in words.

    Example:
        "Friendly. You use few words. You write in a formal tone. You write in this language: fr."
    """
    said = [persona.style, _LENGTHS[persona.verbosity]]
    if persona.tone is not None:
        said.append(f"You write in a {persona.tone} tone.")
    if persona.language is not None:
        said.append(f"You write in this language: {persona.language}.")
    if persona.knowledge:
        said.append(f"What you know of such things: {persona.knowledge}")
    return " ".join(filter(None, said))


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
    if not text.endswith(STOP):
        return text, False
    return text.removesuffix(STOP).strip(), True


def _fault(answer: ChatReply, text: str, stop: bool, opening: bool, max_chars: int) -> str:
    """Why this is no user's message, or ""."""
    if answer.cut:
        return "was cut off by max_tokens"
    if len(answer.text) > max_chars:
        return f"had {len(answer.text)} characters, more than max_tokens allows"
    if not text and not stop:
        return "was empty"
    if STOP in text:
        return "had the stop marker inside"
    if _OTHER_ROLE.match(text):
        return "spoke as the assistant"
    if stop and opening:
        return "ended the dialogue before it began"
    return ""
