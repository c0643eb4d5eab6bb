"""What a vLLM server must be before anything is sampled from it, found out by asking it."""

from __future__ import annotations

from typing import NamedTuple

import anyio
import msgspec

from muarl.errors import SetupError
from muarl.http.call import Call, Refused
from muarl.http.retry import PassingFailure
from muarl.policy.vllm_versions import OLDEST, check_version
from muarl.policy.vllm_wire import GENERATE, best_token_body, read_best, read_label

_DEADLINE_S = 30.0
_HOT = 8.0
"""A temperature that flattens any distribution visibly."""
_FLATTER = 0.01
"""By so much at least is the best token less probable at `_HOT`, in log-probs, than at 1."""
HOW_TO_SERVE = "vllm serve MODEL --logprobs-mode processed_logprobs"
HOW_TO_SYNC = f"VLLM_SERVER_DEV_MODE=1 {HOW_TO_SERVE}"


class ServerFacts(NamedTuple):
    """What a server is.

    Attributes:
        label: What it calls the weights it has.
        takes_weights: It has the routes by which weights are exchanged.
    """

    label: str | None
    takes_weights: bool


class _Version(msgspec.Struct):
    version: str


async def look_at(call: Call, url: str) -> ServerFacts:
    """Ask a server what it is.

    Its log-probs are looked at rather than its settings, which it does not tell: of the most
    probable token after a fixed prompt, at two temperatures. By vLLM's default both are the
    log-prob at temperature 1, with which no ratio of a tempered policy is right.

    Raises:
        SetupError: It is not there, too old, or not started as it must be.
    """
    where = f"the vLLM server at {url}"
    with anyio.move_on_after(_DEADLINE_S):
        try:
            check_version(await _version(call, url), where)
            plain = await call("POST", url + GENERATE, best_token_body(1.0))
            hot = await call("POST", url + GENERATE, best_token_body(_HOT))
            if read_best(plain) - read_best(hot) < _FLATTER:
                raise SetupError(
                    f"{where} reports log-probs that do not heed the temperature; start it with "
                    f"`{HOW_TO_SERVE}`"
                )
            return ServerFacts(read_label(plain), await _takes_weights(call, url))
        except PassingFailure as failure:
            raise SetupError(f"{where} {failure}; start it with `{HOW_TO_SERVE}`") from failure
        except Refused as refusal:
            hint = ""
            if refusal.status == 404:
                oldest = ".".join(map(str, OLDEST))
                hint = f"; expected a vLLM of version {oldest} or newer: `{HOW_TO_SERVE}`"
            raise SetupError(f"{where} {refusal}{hint}") from refusal
    raise SetupError(f"{where} did not answer within {_DEADLINE_S:g} s; is it still starting?")


async def _version(call: Call, url: str) -> str:
    body = await call("GET", f"{url}/version")
    try:
        return msgspec.json.decode(body, type=_Version).version
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PassingFailure(f"does not say its version, as vLLM does: {error}") from error


async def _takes_weights(call: Call, url: str) -> bool:
    try:
        await call("GET", f"{url}/weight_info")
    except Refused:
        return False
    return True
