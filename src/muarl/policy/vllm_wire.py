"""What goes over the wire to a vLLM server: `/inference/v1/generate`, token ids in and out.

That route neither tokenizes nor detokenizes, takes every sampling parameter as it is and fills in
none from the model's folder, and labels what it samples with the version of the weights.
(`/v1/completions` can take and return ids too, but renders text beside them.)
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import msgspec

from muarl.http.retry import PassingFailure
from muarl.policy.protocol import FinishReason, GenerateRequest

GENERATE = "/inference/v1/generate"
LOOK_PROMPT = [1, 2, 3, 4]
"""Ids that every vocabulary has."""
_OURS = "muarl-"


class _Token(msgspec.Struct):
    logprob: float


class _Logprobs(msgspec.Struct):
    content: list[_Token]


class _VersionSpan(msgspec.Struct):
    version: str
    start: int
    end: int


class _Choice(msgspec.Struct):
    token_ids: list[int]
    logprobs: _Logprobs
    finish_reason: str
    weight_versions: list[_VersionSpan] | None = None


class _Reply(msgspec.Struct):
    choices: list[_Choice]
    request_id: str = ""
    prompt_logprobs: list[dict[str, _Token] | None] | None = None


_decoder = msgspec.json.Decoder(_Reply)


def new_request_id() -> str:
    """A name for a request that nothing hangs on."""
    return _OURS + secrets.token_hex(8)


def message_id(request: GenerateRequest) -> str:
    """The name of a message: the same each time it is asked for, and that of no other."""
    whose = f"{request.dialogue}\0{request.seed}".encode()
    return _OURS + hashlib.blake2b(whose, digest_size=12).hexdigest()


def generate_body(request: GenerateRequest, request_id: str, model: str | None = None) -> bytes:
    """Ask for one message, of an adapter by its name; None: of the model without one."""
    return _body(
        request_id,
        request.prompt_ids,
        model,
        temperature=request.temperature,
        seed=request.seed & (2**63 - 1),  # vLLM takes signed 64-bit seeds and reads -1 as none
        max_tokens=request.max_tokens,
        stop_token_ids=list(request.stop_token_ids),
        logprobs=0,
    )


def score_body(token_ids: list[int], request_id: str, model: str | None = None) -> bytes:
    """Ask for the log-prob of each of some tokens, under an adapter; None: under none."""
    return _body(
        request_id, token_ids, model, temperature=0.0, max_tokens=1, logprobs=0, prompt_logprobs=0
    )


def look_body(temperature: float, count: int, request_id: str) -> bytes:
    """Ask for tokens after a fixed prompt, to see what log-probs come with them."""
    sampling: dict[str, Any] = {"temperature": temperature, "max_tokens": count}
    return _body(request_id, LOOK_PROMPT, None, seed=0, logprobs=0, **sampling)


def _body(request_id: str, token_ids: list[int], model: str | None, **sampling: Any) -> bytes:
    # What stops a message is the request's stop_token_ids alone.
    sampling |= {"ignore_eos": True, "detokenize": False}
    asked = {"request_id": request_id, "token_ids": token_ids, "sampling_params": sampling}
    return msgspec.json.encode(asked if model is None else asked | {"model": model})


class Sampled(msgspec.Struct, frozen=True):
    """A message as the server gave it.

    Attributes:
        token_ids: Sampled ids.
        logprobs: One per id.
        finish_reason: Why it ended.
        spans: Label of the weights and half-open range of tokens, one after the other from first
            to last; empty if the server says nothing.
    """

    token_ids: list[int]
    logprobs: list[float]
    finish_reason: FinishReason
    spans: list[tuple[str, int, int]]


def read_sampled(body: bytes, request_id: str) -> Sampled:
    """The message in an answer to the request of that name.

    Raises:
        PassingFailure: It holds no whole message, or answers another request.
    """
    choice = _choice(_decode(body, request_id))
    logprobs = [token.logprob for token in choice.logprobs.content]
    finish_reason: FinishReason
    match choice.finish_reason:
        case "stop" | "length" as finish_reason:
            pass
        case other:
            raise PassingFailure(f"ended a message as {other!r}")
    if len(logprobs) != len(choice.token_ids):
        raise PassingFailure(
            f"answered with {len(choice.token_ids)} tokens and {len(logprobs)} log-probs"
        )
    spans = [(span.version, span.start, span.end) for span in choice.weight_versions or ()]
    bounds = [0, *(end for _, _, end in spans)]
    if spans and (
        [start for _, start, _ in spans] != bounds[:-1]
        or sorted(bounds) != bounds
        or bounds[-1] != len(logprobs)
    ):
        raise PassingFailure("answered with labels of weights that do not fit its tokens")
    return Sampled(choice.token_ids, logprobs, finish_reason, spans)


def read_scores(body: bytes, request_id: str) -> list[float]:
    """[T-1] log-probs of the prompt's tokens but the first, before which nothing comes."""
    scored = _decode(body, request_id).prompt_logprobs
    if not scored or any(not at for at in scored[1:]):
        raise PassingFailure("answered without the prompt's log-probs")
    return [next(iter(at.values())).logprob for at in scored[1:] if at]


def _decode(body: bytes, request_id: str) -> _Reply:
    try:
        reply = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PassingFailure(f"answered with no generated tokens: {error}") from error
    # vLLM puts a word before the name. A proxy may have given the request another name altogether.
    if _OURS in reply.request_id and not reply.request_id.endswith(request_id):
        raise PassingFailure("answered another request than it was asked")
    return reply


def _choice(reply: _Reply) -> _Choice:
    if len(reply.choices) != 1:
        raise PassingFailure(f"answered with {len(reply.choices)} messages; expected one")
    return reply.choices[0]
