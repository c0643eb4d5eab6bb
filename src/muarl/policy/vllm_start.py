"""What a vLLM server must be before anything is sampled from it, found out by asking it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import anyio
import msgspec

from muarl.errors import SetupError
from muarl.http.call import Call, Refused
from muarl.http.retry import PassingFailure, shortly
from muarl.policy.vllm_served_adapters import LOAD
from muarl.policy.vllm_versions import OLDEST, check_version
from muarl.policy.vllm_wire import (
    GENERATE,
    LOOK_PROMPT,
    look_body,
    new_request_id,
    read_sampled,
    read_scores,
    score_body,
)

_DEADLINE_S = 30.0
_HOT = 2.0
"""The highest temperature that vLLM takes."""
_LOOK_TOKENS = 16
_VERSION_CHARS = 80
_ROUNDING = 0.05
"""By more than this differs a tempered log-prob of one of the tokens at least."""
HOW_TO_SERVE = "vllm serve MODEL --enable-scale-out --logprobs-mode processed_logprobs"
HOW_TO_SYNC = f"VLLM_SERVER_DEV_MODE=1 {HOW_TO_SERVE}"
HOW_TO_ADAPT = f"VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 {HOW_TO_SERVE} --enable-lora --max-loras 2 --max-lora-rank N"


class ServerFacts(NamedTuple):
    """What a server is.

    Attributes:
        label: What it calls the weights it has.
        takes_weights: It has the routes by which weights are exchanged.
        takes_adapters: It has the routes by which adapters are loaded.
    """

    label: str | None
    takes_weights: bool
    takes_adapters: bool


class _Version(msgspec.Struct):
    version: str


class _Model(msgspec.Struct):
    max_model_len: int | None = None


class _Models(msgspec.Struct):
    data: list[_Model]


async def look_at_all(
    call: Call, urls: Sequence[str], context_tokens: int | None = None
) -> list[ServerFacts]:
    """Look at several servers at once.

    Raises:
        SetupError: What is wrong with each of them, a line a server.
    """
    facts: list[ServerFacts] = []
    problems: list[str] = []

    async def one(url: str) -> None:
        try:
            facts.append(await look_at(call, url, context_tokens))
        except SetupError as problem:
            problems.append(str(problem))

    async with anyio.create_task_group() as tasks:
        for url in urls:
            tasks.start_soon(one, url)
    if problems:
        raise SetupError("\n".join(sorted(problems)))
    return facts


async def look_at(call: Call, url: str, context_tokens: int | None = None) -> ServerFacts:
    """Ask a server what it is.

    Its log-probs are looked at, not its settings, which it does not tell: tokens are sampled at a
    high temperature, and then scored as a prompt. By vLLM's default both are log-probs at
    temperature 1, with which no ratio of a tempered policy is right.

    Args:
        call: Asks it.
        url: Its base URL.
        context_tokens: What a context must be able to hold; None: anything.

    Raises:
        SetupError: It is not there, too old, or not started as it must be.
    """
    where = f"the vLLM server at {url}"
    with anyio.move_on_after(_DEADLINE_S):
        try:
            check_version(await _version(call, url), where)
            name = new_request_id()
            look = look_body(_HOT, _LOOK_TOKENS, name)
            sampled = read_sampled(await call("POST", url + GENERATE, look), name)
            name = new_request_id()
            whole = score_body([*LOOK_PROMPT, *sampled.token_ids], name)
            plain = read_scores(await call("POST", url + GENERATE, whole), name)
            pairs = zip(sampled.logprobs, plain[len(LOOK_PROMPT) - 1 :], strict=True)
            if max(abs(hot - cold) for hot, cold in pairs) < _ROUNDING:
                raise SetupError(
                    f"{where} reports log-probs that do not heed the temperature; start it with "
                    f"`{HOW_TO_SERVE}`"
                )
            label = sampled.spans[0][0] if sampled.spans else None
            holds = await _context_tokens(call, url)
            if holds is not None and holds < (context_tokens or 0):
                raise SetupError(
                    f"{where} holds contexts of {holds} tokens; the run's dialogues may have "
                    f"{context_tokens} (rollout.context_tokens). Start it with `{HOW_TO_SERVE} "
                    f"--max-model-len {context_tokens}`"
                )
            return ServerFacts(
                label, await _takes_weights(call, url), await _takes_adapters(call, url)
            )
        except ValueError as error:  # other numbers of tokens than were asked for
            raise SetupError(f"{where} is no vLLM: {error}") from error
        except PassingFailure as failure:
            raise SetupError(f"{where} {failure}; start it with `{HOW_TO_SERVE}`") from failure
        except Refused as refusal:
            oldest = ".".join(map(str, OLDEST))
            raise SetupError(
                f"{where} {refusal}; expected vLLM {oldest} or newer, started with `{HOW_TO_SERVE}`"
            ) from refusal
    raise SetupError(f"{where} did not answer within {_DEADLINE_S:g} s; is it still starting?")


async def _version(call: Call, url: str) -> str:
    body = await call("GET", f"{url}/version")
    try:
        return shortly(msgspec.json.decode(body, type=_Version).version, _VERSION_CHARS)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PassingFailure(f"does not say its version, as vLLM does: {error}") from error


async def _context_tokens(call: Call, url: str) -> int | None:
    try:
        models = msgspec.json.decode(await call("GET", f"{url}/v1/models"), type=_Models).data
    except (Refused, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return models[0].max_model_len if models else None


async def _takes_weights(call: Call, url: str) -> bool:
    try:
        await call("GET", f"{url}/weight_info")
    except Refused:
        return False
    return True


async def _takes_adapters(call: Call, url: str) -> bool:
    try:
        await call("POST", url + LOAD, b"{}")  # no adapter is named: the route itself refuses that
    except Refused as refusal:
        return refusal.status not in (404, 405)
    return True
