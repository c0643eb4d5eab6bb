"""A scripted user in the words of an LLM: the flow decides what is done and told, a model words it.

What the wording tells is compared with the script's own: the same facts of hers, and nothing else that
could be one. A wording that differs is asked for again; after that she says the script's words, so that
a dialogue never fails for its wording, and rates of knobs are exactly those of a scripted user.
"""

from __future__ import annotations

from msgspec import structs

from muarl.http.chat_client import ChatClient, ChatMessage, strip_reasoning
from muarl.record import UserReply
from muarl.seeds import derive_seed
from muarl.spec import PersonaSpec
from muarl.spec.user import LlmUserSpec
from muarl.spoken import says
from muarl.user.contract import Contract
from muarl.user.guards import Said, breach_of
from muarl.user.protocol import Device
from muarl.user.role import STOP, manner_of
from muarl.user.scripted import ScriptedUser

_ROLE = """\
You word the chat messages of a person who writes to a company's assistant. You are given what she \
wants to say, in plain words, and what the assistant said before. Say the same in her manner.

Her manner: {manner}

- Answer with her message alone: no quotes, no label, no comment.
- Every name, number and identifier stays as it is given; leave none out and add none.
- Add nothing that she does not say, and ask nothing that she does not ask."""
_PROMPT = "The assistant said: {heard}\nShe wants to say: {draft}"
_MAX_LONGER = 400
"""Characters by which a wording may be longer than what it words."""


class WordedUser:
    """One dialogue's scripted user, worded by an LLM.

    Args:
        scripted: Decides what is done and told.
        spec: Who words it.
        persona: How she is.
        contract: Her facts.
        seed: Its draws follow from it, as far as the endpoint honours seeds.
        client: Who is asked.
    """

    def __init__(
        self,
        scripted: ScriptedUser,
        spec: LlmUserSpec,
        *,
        persona: PersonaSpec,
        contract: Contract,
        seed: int,
        client: ChatClient,
    ) -> None:
        self._scripted = scripted
        self._spec = spec
        self._contract = contract
        self._seed = seed
        self._client = client
        self._role = ChatMessage("system", _ROLE.format(manner=manner_of(persona)))
        self._turn = 0

    def take(self, device: Device) -> None:
        self._scripted.take(device)

    async def open(self) -> UserReply:
        return await self._word(await self._scripted.open(), "(nothing yet)")

    async def reply(self, agent_text: str) -> UserReply:
        return await self._word(await self._scripted.reply(agent_text), agent_text)

    async def _word(self, draft: UserReply, heard: str) -> UserReply:
        self._turn += 1
        # A slip of the keys would be mended, and a silence talked over.
        if not draft.text or draft.act == "silence" or "typos" in draft.knobs:
            return draft
        prompt = ChatMessage("user", _PROMPT.format(heard=heard, draft=draft.text))
        breaches: list[str] = []
        for attempt in range(self._spec.tries):
            answer = await self._client.complete(
                [self._role, prompt],
                seed=derive_seed(self._seed, self._turn, attempt),
                temperature=self._spec.temperature,
                max_tokens=self._spec.max_tokens,
            )
            text = strip_reasoning(answer.text)
            breach = "format" if answer.cut else self._differs(text, draft.text, heard)
            if not breach:
                return _with_text(draft, text, breaches)
            breaches.append(breach)
        return _with_text(draft, draft.text, breaches)

    def _differs(self, text: str, draft: str, heard: str) -> str:
        """What a wording does that the draft does not, as the kind of breach; "" for nothing."""
        if not text or STOP in text or len(text) > len(draft) + _MAX_LONGER:
            return "format"
        for fact in self._contract.facts:
            if says(draft, fact.value) != says(text, fact.value):
                return "leak" if says(text, fact.value) else "untold_fact"
        said = Said(text, False, [heard], [], Contract(known=(draft,)))
        # What the assistant named is not hers to repeat as her own; what the draft names is.
        return breach_of(said, ("role_flip", "invented_fact"))[0]


def _with_text(draft: UserReply, text: str, breaches: list[str]) -> UserReply:
    return structs.replace(draft, text=text, breaches=tuple(breaches))
