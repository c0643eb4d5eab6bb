"""A local HTTP server that answers `/v1/models` and `/v1/chat/completions` from a policy.

It listens on the loopback address only and asks every caller for the run's key. Bodies have a cap,
errors are typed JSON, and a client that hangs up cancels its request down to the engine.

aiohttp's server is asyncio-only, so this adapter is too.
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
from aiohttp import web

from muarl.errors import PolicyError, SetupError
from muarl.gateway.wire import (
    BadRequest,
    ChatRequest,
    completion,
    read_messages,
    read_request,
    read_tools,
)
from muarl.policy import GenerateRequest, Policy
from muarl.policy.flaws import sound_message
from muarl.render import Renderer

_HOST = "127.0.0.1"
_MAX_BODY = 4 << 20
_GOODBYE_S = 1.0
"""Seconds that requests may still take when the gateway closes."""

logger = logging.getLogger(__name__)


class Gateway(msgspec.Struct, frozen=True):
    """Where it listens.

    Attributes:
        url: Base URL, `http://127.0.0.1:41000/v1`.
        key: Bearer key that every request must carry.
    """

    url: str
    key: str

    def __repr__(self) -> str:
        return f"Gateway({self.url})"


@asynccontextmanager
async def open_gateway(
    policy: Policy,
    renderer: Renderer,
    *,
    model: str,
    context_tokens: int,
    key: str | None = None,
    port: int = 0,
) -> AsyncIterator[Gateway]:
    """Serve until the block ends.

    Args:
        policy: Answers.
        renderer: Of the policy's model.
        model: Name that clients ask for.
        context_tokens: Prompt and completion together.
        key: Bearer key; None makes a fresh one.
        port: 0 takes a free one.

    Raises:
        SetupError: On trio, or the port is taken.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise SetupError(
            "the gateway runs on asyncio only. Start it with anyio.run(main, backend='asyncio')."
        ) from None
    key = key or secrets.token_urlsafe(32)
    answers = _Answers(policy, renderer, model, context_tokens)
    app = web.Application(client_max_size=_MAX_BODY, middlewares=[_typed_errors, _guard(key)])
    app.router.add_get("/v1/models", answers.models)
    app.router.add_post("/v1/chat/completions", answers.chat)
    runner = web.AppRunner(
        app, handler_cancellation=True, access_log=None, shutdown_timeout=_GOODBYE_S
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, _HOST, port).start()
        except OSError as error:
            raise SetupError(
                f"the gateway cannot listen on {_HOST}:{port}: {error.strerror}. "
                "Name another port, or 0 for a free one."
            ) from error
        yield Gateway(f"http://{_HOST}:{runner.addresses[0][1]}/v1", key)
    finally:
        with anyio.CancelScope(shield=True):
            await runner.cleanup()


class _Answers:
    def __init__(self, policy: Policy, renderer: Renderer, model: str, context_tokens: int) -> None:
        self._policy = policy
        self._renderer = renderer
        self._model = model
        self._context_tokens = context_tokens
        self._numbers = itertools.count(1)

    async def models(self, _request: web.Request) -> web.Response:
        model = {"id": self._model, "object": "model", "created": 0, "owned_by": "muarl"}
        return _json(200, {"object": "list", "data": [model]})

    async def chat(self, request: web.Request) -> web.Response:
        asked = read_request(await request.read())
        if asked.model != self._model:
            raise BadRequest(
                f"no model {asked.model!r} here, only {self._model!r}",
                code="model_not_found",
                status=404,
            )
        number = next(self._numbers)
        wanted = self._to_policy(asked, number)
        vocab_size = self._renderer.tokenizer.vocab_size
        generation = await sound_message(self._policy, wanted, vocab_size)
        turn = sum(message.role == "assistant" for message in wanted.history)
        message = self._renderer.parse(generation.token_ids, wanted.prompt_ids, turn=turn)
        answer = completion(
            message,
            generation,
            model=self._model,
            number=number,
            prompt_tokens=len(wanted.prompt_ids),
        )
        return _json(200, answer)

    def _to_policy(self, asked: ChatRequest, number: int) -> GenerateRequest:
        messages = read_messages(asked)
        prompt = self._renderer.start(messages, read_tools(asked))
        room = self._context_tokens - len(prompt)
        if room < 1:
            raise BadRequest(
                f"the prompt has {len(prompt)} tokens; prompt and completion together may have "
                f"{self._context_tokens}",
                code="context_length_exceeded",
            )
        cap = asked.max_completion_tokens or asked.max_tokens or room
        return GenerateRequest(
            prompt_ids=prompt,
            dialogue=f"gateway:{number}",
            seed=secrets.randbits(63) if asked.seed is None else asked.seed,
            max_tokens=min(cap, room),
            temperature=1.0 if asked.temperature is None else asked.temperature,
            stop_token_ids=self._renderer.stop_token_ids,
            history=tuple(messages),
        )


_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _guard(key: str) -> Any:
    """Let nobody in without the key."""
    expected = f"Bearer {key}".encode()

    @web.middleware
    async def guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, expected):
            raise BadRequest(
                "send the gateway's key as `Authorization: Bearer <key>`",
                code="invalid_api_key",
                status=401,
            )
        return await handler(request)

    return guard


@web.middleware
async def _typed_errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadRequest as error:
        return _error(error.status, error.code, str(error))
    except PolicyError as error:
        return _error(503, "policy_failed", str(error))
    except web.HTTPException as error:  # aiohttp's own: no such route, body too large
        return _error(error.status, error.reason.lower().replace(" ", "_"), error.reason)
    except Exception:  # the boundary: a bug answers one client and is logged, with its traceback
        logger.exception("the gateway could not answer %s %s", request.method, request.path)
        return _error(500, "internal_error", "the gateway failed; its log says why")


def _error(status: int, code: str, message: str) -> web.Response:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return _json(status, {"error": {"message": message, "type": kind, "code": code}})


def _json(status: int, body: Any) -> web.Response:
    return web.Response(
        status=status, body=msgspec.json.encode(body), content_type="application/json"
    )
