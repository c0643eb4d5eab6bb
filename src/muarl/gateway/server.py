"""One listener for all episodes of a run that ask for it: chat completions, responses, and tools over MCP.

It listens on the loopback only. Each episode has a key of its own, which dies with its dialogue; what a
request may say, how much, how slowly, and how many of them at once, is bounded; errors are typed JSON,
and a client that hangs up cancels its request down to the engine.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import Any, Self

import anyio
import msgspec
from aiohttp import web

from muarl.errors import SetupError
from muarl.gateway import chat, mcp, responses
from muarl.gateway.asked import Asked
from muarl.gateway.guest import Guest
from muarl.gateway.held_up import held_up_told
from muarl.gateway.line import Line, WireError
from muarl.http.descriptors import allow_many_connections
from muarl.http.listening import HOST, asyncio_only, listening
from muarl.record import Turn

MODEL = "policy"
"""The only model there is."""
_MAX_BODY = 4 << 20
_BODY_S = 20.0
"""Seconds that a client may take to send the body of a request."""
_READ_S = 60.0
"""Seconds that a client may take to read the events of an answer."""

logger = logging.getLogger(__name__)


class Endpoint(msgspec.Struct, frozen=True):
    """Where one episode's agent finds the policy, and the domain's tools.

    Attributes:
        url: Base URL of the OpenAI-compatible endpoint, `http://127.0.0.1:41000/v1`.
        mcp_url: URL of the domain's tools, as an MCP server over streamable HTTP.
        key: What both ask for, as `Authorization: Bearer KEY`. Of this episode alone, and worthless
            once its dialogue is over.
        model: The policy's name.
    """

    url: str
    mcp_url: str
    key: str
    model: str = MODEL

    @property
    def headers(self) -> dict[str, str]:
        """The key, as clients of MCP send it."""
        return {"Authorization": f"Bearer {self.key}"}

    def __repr__(self) -> str:
        return f"Endpoint({self.url})"


class Gateway:
    """Listens from the first need on, until whoever has entered it has left."""

    def __init__(self, *, body_s: float = _BODY_S) -> None:
        """Prepare; nothing listens yet.

        Args:
            body_s: Seconds that a client may take to send the body of a request.
        """
        self._body_s = body_s
        self._holders = 0
        self._guests: dict[bytes, Guest] = {}
        self._numbers = count(1)
        self._listening = AsyncExitStack()
        self._port = 0
        self._held_up = ""
        self._opening = anyio.Lock()

    async def __aenter__(self) -> Self:
        self._holders += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self._holders -= 1
        if not self._holders:
            self._port, held = 0, self._listening.pop_all()
            await held.aclose()

    @asynccontextmanager
    async def admitted(self, line: Line) -> AsyncIterator[Endpoint]:
        """A key for a dialogue, while the block is open; then it is dead, and nothing under way.

        Raises:
            SetupError: On trio; or an agent held up the loop, by a client that is not async.
        """
        async with self._opening:
            if not self._port:
                asyncio_only("the endpoint for agents (context.endpoint)")
                allow_many_connections()
                self._port = await self._listening.enter_async_context(listening(self._app()))
                self._listening.enter_context(held_up_told(self._port, self._is_held_up))
        key = secrets.token_urlsafe(32)
        guest = self._guests[_digest(key)] = Guest(line, next(self._numbers))
        place = f"http://{HOST}:{self._port}"
        try:
            yield Endpoint(f"{place}/v1", f"{place}/mcp", key)
        finally:
            del self._guests[_digest(key)]
            await guest.leave()
            if self._held_up:  # whatever the agent made of it
                raise SetupError(self._held_up)

    def _is_held_up(self, where: str) -> None:
        if self._held_up:
            return
        self._held_up = (
            f"the agent holds up all dialogues{where}: its client is not async, and waits in the event loop "
            "for an answer that comes out of the same loop. Use the client's async form (AsyncOpenAI, "
            "ainvoke, acompletion), or run the agent in a thread, as docs/embedding.md shows"
        )
        logger.error("%s", self._held_up)

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=_MAX_BODY, middlewares=[_typed_errors])
        app.router.add_get("/v1/models", self._for_guests(_models))
        app.router.add_get("/v1/models/{model}", self._for_guests(_model))
        app.router.add_post("/v1/chat/completions", self._for_guests(self._chat))
        app.router.add_post("/v1/responses", self._for_guests(self._responses))
        app.router.add_post("/mcp", self._for_guests(self._mcp))
        app.router.add_route("*", "/{other:.*}", self._for_guests(_nothing))
        return app

    def _for_guests(self, handler: _ForGuest) -> Callable[[web.Request], Awaitable[Any]]:
        """Let nobody in without a key.

        Keys are looked up by their hashes: how long that takes says nothing about a key.
        """

        async def guarded(request: web.Request) -> web.StreamResponse:
            given = request.headers.get("Authorization", "")
            scheme, _, key = given.rpartition(" ")
            guest = self._guests.get(_digest(key)) if scheme.lower() == "bearer" else None
            if guest is None:
                raise WireError(
                    "send the key of a dialogue that goes on, as `Authorization: Bearer <key>`",
                    code="invalid_api_key",
                    status=401,
                )
            return await handler(request, guest)

        return guarded

    async def _chat(self, request: web.Request, guest: Guest) -> web.StreamResponse:
        with guest.at_work():
            asked = chat.read_request(await self._body(request), guest.line.temperature)
            turn = await _say(guest, asked)
        form: Any = {"model": MODEL, "answer_id": guest.new_id()}
        if asked.stream:
            return await _told(request, chat.events(turn, usage=asked.usage, **form))
        return _json(200, chat.answer(turn, **form))

    async def _responses(self, request: web.Request, guest: Guest) -> web.StreamResponse:
        temperature = guest.line.temperature
        with guest.at_work():
            body = await self._body(request)
            asked, told = responses.read_request(body, temperature, guest.conversations)
            turn = await _say(guest, asked)
        answer_id = guest.new_id()
        guest.keep(responses.response_id(answer_id), [*told, turn.message])
        form: Any = {"model": MODEL, "answer_id": answer_id, "temperature": temperature}
        if asked.stream:
            return await _told(request, responses.events(turn, asked, **form))
        return _json(200, responses.answer(turn, asked, **form))

    async def _mcp(self, request: web.Request, guest: Guest) -> web.StreamResponse:
        with guest.at_work():
            body = await self._body(request)
            return await guest.to_its_end(mcp.answer(request, body, guest.line, self._port))

    async def _body(self, request: web.Request) -> bytes:
        with anyio.move_on_after(self._body_s):
            try:
                return await request.read()
            except web.RequestPayloadError as error:
                raise WireError("the body is not encoded as its headers say") from error
        raise WireError(
            f"the rest of the request did not come within {self._body_s:g} s",
            code="request_timeout",
            status=408,
        )


_ForGuest = Callable[[web.Request, Guest], Awaitable[web.StreamResponse]]


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


async def _say(guest: Guest, asked: Asked) -> Turn:
    if asked.model != MODEL:
        raise WireError(
            f"no model {asked.model[:80]!r} here, only {MODEL!r}",
            code="model_not_found",
            status=404,
        )
    return await guest.line.say(asked.messages, guest.shown(asked.tools), asked.max_tokens)


async def _models(_request: web.Request, _guest: Guest) -> web.StreamResponse:
    return _json(200, {"object": "list", "data": [_ABOUT]})


async def _model(request: web.Request, _guest: Guest) -> web.StreamResponse:
    if request.match_info["model"] != MODEL:
        raise WireError(f"no such model here, only {MODEL!r}", code="model_not_found", status=404)
    return _json(200, _ABOUT)


async def _nothing(request: web.Request, _guest: Guest) -> web.StreamResponse:
    known = request.path in ("/mcp", "/v1/chat/completions", "/v1/responses")
    raise WireError(
        "there are POST /v1/chat/completions, POST /v1/responses, GET /v1/models and POST /mcp",
        code="method_not_allowed" if known else "not_found",
        status=405 if known else 404,
    )


_ABOUT = {"id": MODEL, "object": "model", "created": 0, "owned_by": "muarl"}


async def _told(request: web.Request, events: Iterable[bytes]) -> web.StreamResponse:
    """The answer as events. It is whole before the first of them comes, so that an error has its status."""
    headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
    response = web.StreamResponse(headers=headers)
    with anyio.move_on_after(_READ_S):
        await response.prepare(request)
        await response.write(b"".join(events))
        await response.write_eof()
    return response


@web.middleware
async def _typed_errors(request: web.Request, handler: Any) -> web.StreamResponse:
    try:
        answered: web.StreamResponse = await handler(request)
        return answered
    except WireError as error:
        return _error(error.status, error.code, str(error), again=error.again)
    except RecursionError:  # wherever it came up: in reading it, or in rendering it
        return _error(400, "invalid_request", "the request is nested too deeply")
    except web.HTTPException as error:  # aiohttp's own: body too large
        return _error(error.status, error.reason.lower().replace(" ", "_"), error.reason)
    except Exception:  # the boundary: a bug answers one client and is logged, with its traceback
        logger.exception("the gateway could not answer %s %s", request.method, request.path)
        return _error(500, "internal_error", "the gateway failed; its log says why")


def _error(status: int, code: str, message: str, *, again: bool = False) -> web.Response:
    """An error. Clients that would try again of their own accord are told whether it is of use."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    response = _json(
        status, {"error": {"message": message, "type": kind, "param": None, "code": code}}
    )
    response.headers["x-should-retry"] = "true" if again else "false"
    return response


def _json(status: int, body: Any) -> web.Response:
    return web.Response(
        status=status, body=msgspec.json.encode(body), content_type="application/json"
    )
