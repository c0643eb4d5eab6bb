"""A draft that an LLM writes as JSON: read, checked, and sent back with what is wrong, a few times."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from muarl.errors import SetupError, SpecError
from muarl.http.chat_client import ChatMessage, ChatReply, strip_reasoning
from muarl.seeds import derive_seed

Made = TypeVar("Made")

_SHOWN = 12
"""Problems that are sent back at once."""
_MAX_CHARS = 200_000
"""Of an answer; no domain of ours has a tenth of it."""


class Drafter(Protocol):
    """Who drafts: a `muarl.http.chat_client.ChatClient`, say."""

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        seed: int,
        temperature: float,
        max_tokens: int,
    ) -> ChatReply:
        """The next message."""
        ...


class Unfit(Exception):
    """What is wrong with a draft, each in words that its author can act on."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__("; ".join(self.problems))


async def drafted(
    client: Drafter,
    system: str,
    asked: str,
    build: Callable[[Any], Awaitable[Made]],
    *,
    repairs: int,
    seed: int,
    max_tokens: int,
    on_unfit: Callable[[str], None] = lambda _: None,
) -> tuple[Made, int]:
    """What is built of the first draft that is fit, and how many repairs that took.

    Args:
        client: Who drafts.
        system: What drafts are to be like.
        asked: For what.
        build: Makes something of a draft's JSON, or raises `Unfit` or `SpecError`.
        repairs: How often a draft that is unfit is sent back.
        seed: Of the sampling.
        max_tokens: Of one draft; what is longer is asked for again, as if nothing had been said.
        on_unfit: Told of each draft that cannot be used, and why.

    Raises:
        SetupError: After all repairs it is still unfit; says what is wrong with the last.
        EndpointError: The endpoint fails.
        EpisodeTimeout: It does not answer in time.
    """
    asking = [ChatMessage("system", system), ChatMessage("user", asked)]
    talk = asking
    problems: list[str] = []
    for attempt in range(repairs + 1):
        answer = await client.complete(
            talk,
            seed=derive_seed(seed, asked, attempt),
            temperature=0.0 if attempt == 0 else 0.7,  # the same again would be as unfit
            max_tokens=max_tokens,
        )
        text = "" if answer.cut else strip_reasoning(answer.text)
        try:
            if answer.cut:
                raise Unfit([f"it was cut off after {max_tokens} tokens (--max-tokens)"])
            return await build(_json(text)), attempt
        except Unfit as unfit:
            problems = unfit.problems
        except SpecError as error:
            problems = [problem.message for problem in error.problems]
        on_unfit(f"draft {attempt + 1} of {repairs + 1} cannot be used: {_shown(problems)}")
        said = "\n".join(f"- {problem}" for problem in problems[:_SHOWN])
        more = f"\n({len(problems) - _SHOWN} more)" if len(problems) > _SHOWN else ""
        complaint = f"That cannot be used:\n{said}{more}\nSend the whole JSON object again, mended."
        # The last draft alone: older ones only cost room, and one that was cut off costs most.
        last = [ChatMessage("assistant", text), ChatMessage("user", complaint)]
        talk = [*asking, *last] if text else asking
    raise SetupError(
        f"after {repairs} repairs the draft still cannot be used: {_shown(problems)}. Try again with "
        "--repairs, another --seed, or another model"
    )


def _shown(problems: Sequence[str]) -> str:
    """Problems in one line, for a person."""
    more = f"; {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return "; ".join(problems[:_SHOWN]) + more


def _json(text: str) -> Any:
    """The JSON object of an answer, whatever is said around it.

    Raises:
        Unfit: There is none.
    """
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start or len(text) > _MAX_CHARS:
        raise Unfit(["the answer holds no JSON object"])
    try:
        found = json.loads(text[start : end + 1])
    except (ValueError, RecursionError) as error:
        raise Unfit([f"the answer is no JSON: {error}"]) from error
    return found
