"""`muarl view`: a run's episodes, to be searched and read in a browser on this machine.

Only this machine can reach it, and of what runs here only who has the address: it listens on the
loopback, every path begins with a random token, and a request must name the host that we are (a page
elsewhere whose name was made to point here does not). It answers GET and HEAD, and changes nothing.

Model text is data from first to last: JSON of one content type, drawn as text nodes by a page whose
policy runs our script only (`muarl.report.html_page`).

aiohttp's server is asyncio-only, so this is too.
"""

from __future__ import annotations

import hmac
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from aiohttp import web
from msgspec import structs

from muarl.errors import MuarlError, RecordError
from muarl.http.listening import HOST, asyncio_only, listening
from muarl.own_folder import own_folder
from muarl.record import read_at
from muarl.record.learned import FILE as LEARNED
from muarl.record.learned import Learned, read_learned
from muarl.report.forms import dialogue_form, samples_form, tools_form
from muarl.report.html_page import html_page
from muarl.report.index import EpisodeIndex, Query
from muarl.report.page import about
from muarl.report.run_folder import RunFolder, read_run_folder
from muarl.report.tokens import token_texts

_MOST_ROWS = 500
_LOOK_S = 1.0
"""Seconds between two looks at a journal that may grow."""
_READING_S = 60.0

_SCRIPTS = (
    "dom.js",
    "tokens.js",
    "dialogue.js",
    "compare.js",
    "episodes.js",
    "served.js",
    "view.js",
)

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

logger = logging.getLogger(__name__)


class BadQuestion(MuarlError):
    """What was asked cannot be answered; the message says why."""


@asynccontextmanager
async def open_view(
    run_folder: Path, *, port: int = 0, token: str | None = None
) -> AsyncIterator[str]:
    """Serve until the block ends; the address of the page.

    Args:
        run_folder: Of a run, which may still be going on.
        port: 0 takes a free one.
        token: In every path; None makes a fresh one.

    Raises:
        RecordError: The folder is no run, or a file in it is damaged.
        SetupError: On trio, or the port is taken.
    """
    asyncio_only("muarl view")
    token = token or secrets.token_urlsafe(24)
    folder = await anyio.to_thread.run_sync(read_run_folder, run_folder)
    with own_folder() as place:
        index = EpisodeIndex(folder.journal, place / "episodes.sqlite")
        try:
            async with anyio.create_task_group() as tasks:
                view = _View(folder, index)
                tasks.start_soon(view.follow)
                advice = "choose another with --port"
                async with listening(view.application(token), port, advice=advice) as bound:
                    yield f"http://{HOST}:{bound}/{token}/"
                tasks.cancel_scope.cancel()
        finally:
            index.close()


class _View:
    """Answers about one run."""

    def __init__(self, folder: RunFolder, index: EpisodeIndex) -> None:
        self._folder = folder
        self._index = index
        self._problem = ""
        self._read_on = anyio.Event()
        self._texts: dict[int, str] = {}
        self._learned: tuple[float, dict[str, Learned]] = (0.0, {})

    def application(self, token: str) -> web.Application:
        app = web.Application(middlewares=[_guarded(token), _told])
        app.router.add_get(f"/{token}/", self._page)
        app.router.add_get(f"/{token}/run", self._run)
        app.router.add_get(f"/{token}/episodes", self._episodes)
        app.router.add_get(f"/{token}/episode", self._episode)
        return app

    async def follow(self) -> None:
        """Keep the index with the journal, for as long as nobody cancels it."""
        while True:
            try:
                found = await anyio.to_thread.run_sync(self._index.refresh)
                self._problem = ""
            except (RecordError, OSError) as error:
                self._problem, found = str(error), False
            self._read_on.set()
            self._read_on = anyio.Event()
            if not found:
                await anyio.sleep(_LOOK_S)

    async def _page(self, _request: web.Request) -> web.Response:
        run = about(self._folder, "")
        title = f"{run['name']} · muarl view"
        text = html_page(title, _SCRIPTS, {"run": run}, connects=True)
        return web.Response(text=text, content_type="text/html", charset="utf-8")

    async def _run(self, _request: web.Request) -> web.Response:
        facets = await anyio.to_thread.run_sync(self._index.facets)
        return _json({"facets": facets, "progress": self._index.progress, "problem": self._problem})

    async def _episodes(self, request: web.Request) -> web.Response:
        asked = dict(request.query)
        offset = _whole(asked.pop("offset", "0"), "offset")
        limit = min(_whole(asked.pop("limit", "200"), "limit"), _MOST_ROWS)
        query = _query(asked)
        total, rows = await anyio.to_thread.run_sync(self._index.find, query, offset, limit)
        facets = await anyio.to_thread.run_sync(self._index.facets)
        return _json({"total": total, "of": facets["total"], "rows": rows})

    async def _episode(self, request: web.Request) -> web.Response:
        if not (key := request.query.get("id", "")):
            raise BadQuestion("say which episode: ?id=PHASE/ITERATION/TASK/SAMPLE")
        with anyio.move_on_after(_READING_S):
            while self._index.progress < 1 and not (self._problem or self._index.has(key)):
                await self._read_on.wait()  # a link may be opened before all of the journal is read
        return _json(await anyio.to_thread.run_sync(self._open, key))

    def _open(self, key: str) -> dict[str, Any]:
        start, row = self._index.place(key)
        episode = read_at(self._folder.journal, start)
        if str(episode.key) != key:
            raise RecordError(f"{self._folder.journal} is being written anew; load the page again")
        group, across = self._index.beside(row)
        learned = self._learned_of(key)
        return {
            "row": row,
            "episode": dialogue_form(episode, learned),
            "system": episode.system,
            "toolset": tools_form(episode),
            "samples": samples_form(episode, learned),
            "tokens": self._texts_of({i for s in episode.samples for i in s.token_ids}),
            "group": group,
            "across": across,
        }

    def _texts_of(self, ids: set[int]) -> Mapping[int, str]:
        if self._folder.tokenizer.exists() and (fresh := ids - self._texts.keys()):
            self._texts |= token_texts(self._folder.tokenizer, fresh)
        return {i: self._texts[i] for i in ids if i in self._texts}

    def _learned_of(self, key: str) -> Learned | None:
        path = self._folder.path / LEARNED
        if not path.exists():
            return None
        written = path.stat().st_mtime
        if self._learned[0] != written:
            self._learned = (written, read_learned(path))
        return self._learned[1].get(key)


def _query(asked: dict[str, str]) -> Query:
    given = {name: value for name, value in asked.items() if value != ""}
    try:
        query = msgspec.convert(given, Query, strict=False)
    except msgspec.ValidationError as error:
        names = ", ".join(field.name for field in structs.fields(Query))
        raise BadQuestion(f"{error}; episodes are looked for by {names}") from error
    return query


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 12:
        raise BadQuestion(f"{name} must be a whole number, got {text[:20]!r}")
    return int(text)


def _json(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _guarded(token: str) -> Any:
    """Answer only who has the address, by the name of this machine's loopback."""
    expected = token.encode()

    @web.middleware
    async def guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
        port = request.transport and request.transport.get_extra_info("sockname")[1]
        first = (
            request.raw_path.removeprefix("/").partition("/")[0].encode("utf-8", "surrogateescape")
        )
        if request.headers.getall("Host", []) not in ([f"{HOST}:{port}"], [f"localhost:{port}"]):
            response: web.StreamResponse = web.Response(status=421, text="not the host you ask for")
        elif not hmac.compare_digest(first, expected):
            response = web.Response(status=404, text="use the address that `muarl view` printed")
        elif request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            response = web.Response(status=403, text="another page may not ask")
        else:
            response = await handler(request)
        response.headers.update(_HEADERS)
        return response

    return guard


@web.middleware
async def _told(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadQuestion as error:
        return _problem(400, str(error))
    except RecordError as error:
        return _problem(404, str(error))
    except web.HTTPException as error:  # aiohttp's own: no such route
        return _problem(error.status, error.reason)
    except Exception:  # the boundary: a bug answers one request and is logged, with its traceback
        logger.exception("view: %s failed", request.rel_url.path.rpartition("/")[2])
        return _problem(500, "something went wrong; `muarl view` has printed what")


def _problem(status: int, text: str) -> web.Response:
    response = _json({"error": text})
    response.set_status(status)
    return response
