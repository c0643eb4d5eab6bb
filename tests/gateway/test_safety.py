"""The endpoint's bounds: who is let in, how much, how slowly, how many at once; and that it lets go."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
import threading
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import anyio
import anyio.from_thread
import anyio.to_thread
import httpx2
import pytest
from dialogue_kit import led, says
from gateway_kit import Answer, Wire, as_chat, wire

from muarl import DialogueOver, SetupError
from muarl.domain import Domain
from muarl.errors import PolicyError
from muarl.gateway.guest import MOST_AT_ONCE
from muarl.gateway.held_up import _read_in
from muarl.gateway.server import Endpoint, Gateway
from muarl.http.listening import listening
from muarl.own_loop import AgentContext
from muarl.policy import GenerateRequest, Generation
from muarl.record import Episode, Outcome
from muarl.record.codec import encode_episode

pytestmark = pytest.mark.anyio

HELLO = {"role": "user", "content": "hello"}


class Stuck:
    """A policy that never answers; it notes who asked, and who was cancelled."""

    policy_version = 0

    def __init__(self) -> None:
        self.asked = 0
        self.cancelled = 0
        self.changed = anyio.Event()

    async def generate(self, request: GenerateRequest) -> Generation:
        self.asked += 1
        self._tell()
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled += 1
            self._tell()
        raise AssertionError

    def _tell(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()

    async def until(self, *, asked: int = 0, cancelled: int = 0) -> None:
        while self.asked < asked or self.cancelled < cancelled:
            await self.changed.wait()


async def with_endpoint(notes: Domain, use: Any, *said: str, **limits: Any) -> Episode:
    async def agent(context: AgentContext) -> None:
        async with wire(await context.endpoint()) as client:
            await use(client)

    return await led(notes, agent, says(*said), **limits).run()


@pytest.mark.parametrize("key", ["", "wrong", "ключ", "\udcff"])
@pytest.mark.parametrize("path", ["chat/completions", "responses", "nothing"])
async def test_nobody_gets_in_without_a_key(notes: Domain, key: str, path: str) -> None:
    async def use(client: Wire) -> None:
        given = key.encode("utf-8", "surrogateescape").decode("latin-1")
        answer = await client.post(path, b"x" * 10, key=given)
        assert (answer.status, answer.code) == (401, "invalid_api_key")

    episode = await with_endpoint(notes, use, "never")
    assert not episode.outcome.is_fault, episode.error
    assert not episode.turns


async def test_it_listens_on_the_loopback_only(notes: Domain) -> None:
    async def use(client: Wire) -> None:
        place = urlsplit(client.endpoint.url)
        assert place.hostname == "127.0.0.1"
        with pytest.raises(OSError, match=r"refused|111"):
            await asyncio.open_connection("127.0.0.2", place.port)

    episode = await with_endpoint(notes, use)
    assert not episode.outcome.is_fault, episode.error


async def test_the_key_of_one_episode_opens_no_other(notes: Domain) -> None:
    async with Gateway() as gateway:
        places: dict[str, Endpoint] = {}
        ready, done = anyio.Event(), anyio.Event()

        async def waits(context: AgentContext) -> None:
            places["waits"] = await context.endpoint()
            ready.set()
            await done.wait()

        async def asks(context: AgentContext) -> None:
            await ready.wait()
            mine = await context.endpoint()
            assert mine.url == places["waits"].url
            assert mine.key != places["waits"].key
            async with wire(mine) as client:
                assert (await client.chat(HELLO)).status == 200
            done.set()

        first, second = led(notes, waits, says()), led(notes, asks, says("hello"))
        first._gateway = second._gateway = gateway
        episodes: dict[str, Episode] = {}

        async def run(name: str, dialogue: Any) -> None:
            episodes[name] = await dialogue.run()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, "waits", first)
            tasks.start_soon(run, "asks", second)
    assert (len(episodes["waits"].turns), len(episodes["asks"].turns)) == (0, 1)


async def test_a_key_dies_with_its_dialogue(notes: Domain) -> None:
    async with Gateway() as gateway:
        places: list[Endpoint] = []

        async def agent(context: AgentContext) -> None:
            places.append(await context.endpoint())

        dialogue = led(notes, agent, says("hello"))
        dialogue._gateway = gateway
        await dialogue.run()
        async with wire(places[0]) as client:
            answer = await client.chat(HELLO)
    assert (answer.status, answer.code) == (401, "invalid_api_key")
    async with wire(places[0]) as client:
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.chat(HELLO)


async def test_too_large_a_body_is_refused(notes: Domain) -> None:
    async def use(client: Wire) -> None:
        answer = await client.post("chat/completions", b"x" * (5 << 20))
        assert (answer.status, answer.headers["x-should-retry"]) == (413, "false")

    episode = await with_endpoint(notes, use)
    assert not episode.outcome.is_fault, episode.error


async def test_more_requests_at_once_than_one_episode_may_have_are_told_to_come_again(
    notes: Domain,
) -> None:
    policy = Stuck()

    async def agent(context: AgentContext) -> None:
        async with wire(await context.endpoint()) as client, anyio.create_task_group() as tasks:
            for _ in range(MOST_AT_ONCE):
                tasks.start_soon(client.chat, HELLO)
            await policy.until(asked=MOST_AT_ONCE)
            answer = await client.chat(HELLO)
            assert (answer.status, answer.code) == (429, "too_many_requests")
            assert answer.headers["x-should-retry"] == "true"
            tasks.cancel_scope.cancel()

    with anyio.fail_after(60):
        episode = await led(notes, agent, policy, max_turns=100).run()
        assert not episode.outcome.is_fault, episode.error
        await policy.until(cancelled=MOST_AT_ONCE)


async def raw(endpoint: Endpoint, data: bytes) -> bytes:
    """What a client is answered that sends this and then waits."""
    port = urlsplit(endpoint.url).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    with anyio.fail_after(60):
        answer = await reader.read()
    writer.close()
    return answer


async def test_a_sender_of_half_a_body_is_told_that_it_is_late(notes: Domain) -> None:
    async def agent(context: AgentContext) -> None:
        endpoint = await context.endpoint()
        head = (
            "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            f"Authorization: Bearer {endpoint.key}\r\nContent-Length: 100\r\n\r\n"
        )
        answer = await raw(endpoint, head.encode() + b"{")
        assert b" 408 " in answer.split(b"\r\n")[0]
        assert b"request_timeout" in answer

    dialogue = led(notes, agent, says())
    dialogue._gateway = Gateway(body_s=0.05)
    episode = await dialogue.run()
    assert not episode.outcome.is_fault, episode.error


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ("Content-Length: 2\r\nContent-Encoding: gzip", "{}"),
        ("Transfer-Encoding: chunked", "zz\r\n"),
        ("Transfer-Encoding: chunked", "5\r\nhello\r\nzz\r\n"),
        ("Content-Length: 2\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
        ("Content-Length: -5", ""),
        ("Authorization: Bearer {key}\x01", ""),
        ("Authorization: Bearer {key}" + "x" * 10_000, ""),
    ],
)
async def test_what_is_no_http_is_answered_and_repeated_in_no_log(
    notes: Domain, headers: str, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def agent(context: AgentContext) -> None:
        endpoint = await context.endpoint()
        head = (
            "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            f"Authorization: Bearer {endpoint.key}\r\n{headers.format(key=endpoint.key)}\r\n\r\n"
        )
        answer = await raw(endpoint, (head + body).encode("latin-1"))
        assert b" 400 " in answer.split(b"\r\n")[0]

    episode = await led(notes, agent, says()).run()
    assert not episode.outcome.is_fault, episode.error
    assert not caplog.records


async def test_the_scheme_of_a_key_may_be_written_in_any_case(notes: Domain) -> None:
    async def agent(context: AgentContext) -> None:
        endpoint = await context.endpoint()
        for head, status in (("bearer", 200), ("BEARER", 200), ("Basic", 401), ("", 401)):
            headers = {"Authorization": f"{head} {endpoint.key}".strip()}
            url = f"{endpoint.url}/models"
            async with (
                aiohttp.ClientSession() as session,
                session.get(url, headers=headers) as answer,
            ):
                assert answer.status == status, head

    episode = await led(notes, agent, says()).run()
    assert not episode.outcome.is_fault, episode.error


async def test_a_sender_of_half_a_head_is_hung_up_on() -> None:
    from aiohttp import web

    async with listening(web.Application(), head_s=0.05) as port:
        assert not await raw(Endpoint(f"http://127.0.0.1:{port}/v1", "", ""), b"POST /v1/chat")


async def test_a_client_that_hangs_up_cancels_down_to_the_engine_and_may_ask_again(
    notes: Domain,
) -> None:
    stuck, scripted = Stuck(), says("hello", "there")

    class Policy:
        policy_version = 0

        async def generate(self, request: GenerateRequest) -> Generation:
            sticks = bool(scripted.requests) and not stuck.asked
            return await (stuck if sticks else scripted).generate(request)

    async def agent(context: AgentContext) -> None:
        async with wire(await context.endpoint()) as client:
            first = await client.chat(HELLO)
            longer = [HELLO, first.said, {"role": "user", "content": "and"}]
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.chat, *longer)
                await stuck.until(asked=1)
                tasks.cancel_scope.cancel()
            await stuck.until(cancelled=1)
            assert (await client.chat(*longer)).said["content"] == "there"

    with anyio.fail_after(60):
        episode = await led(notes, agent, Policy()).run()
    assert not episode.outcome.is_fault, episode.error
    assert [turn.sample for turn in episode.turns] == [0, 0]
    assert (episode.forks, len(episode.samples)) == (0, 1)


async def test_what_a_client_did_not_wait_for_was_no_turn(notes: Domain) -> None:
    """A client with less patience than the engine needs tries again: that is no cap of the policy's."""
    stuck = Stuck()

    class Policy:
        policy_version = 0

        async def generate(self, request: GenerateRequest) -> Generation:
            return await (stuck if stuck.asked < 3 else says("hello")).generate(request)

    async def agent(context: AgentContext) -> None:
        async with wire(await context.endpoint()) as client:
            for number in range(3):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(client.chat, HELLO)
                    await stuck.until(asked=number + 1)
                    tasks.cancel_scope.cancel()
                await stuck.until(cancelled=number + 1)
            assert (await client.chat(HELLO)).status == 200
            assert (await client.chat(HELLO)).code == "dialogue_over"

    with anyio.fail_after(60):
        episode = await led(notes, agent, Policy(), max_turns=1).run()
    assert (episode.outcome, len(episode.turns)) == (Outcome.TRUNCATED_TURNS, 1)


async def test_a_dialogue_that_is_cut_off_cancels_its_requests(notes: Domain) -> None:
    policy = Stuck()

    async def agent(context: AgentContext) -> None:
        async with wire(await context.endpoint()) as client:
            await client.chat(HELLO)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(led(notes, agent, policy).run)
            await policy.until(asked=1)
            tasks.cancel_scope.cancel()
    assert policy.cancelled == 1


async def test_an_agent_that_returns_cancels_its_requests(notes: Domain) -> None:
    policy = Stuck()
    clients = []

    async def agent(context: AgentContext) -> None:
        async def ask() -> None:
            async with wire(await context.endpoint()) as client:
                clients.append(await client.chat(HELLO))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await policy.until(asked=1)
            tasks.cancel_scope.cancel()

    with anyio.fail_after(60):
        episode = await led(notes, agent, policy).run()
    assert (episode.outcome, policy.cancelled) == (Outcome.LEFT, 1)


async def test_a_client_that_asks_for_ever_is_ended_with_the_dialogue(notes: Domain) -> None:
    answers: list[Answer] = []

    async def stubborn(context: AgentContext) -> None:
        async with wire(await context.endpoint()) as client:
            while True:
                answers.append(await client.chat(HELLO))

    with anyio.fail_after(60):
        episode = await led(notes, stubborn, says(*["hello"] * 9), max_turns=2).run()
    assert episode.outcome is Outcome.TRUNCATED_TURNS
    assert [answer.status for answer in answers[:3]] == [200, 200, 410]
    assert answers[2].code == "dialogue_over"
    assert answers[2].headers["x-should-retry"] == "false"


async def test_what_a_client_makes_of_the_end_is_no_fault(notes: Domain) -> None:
    async def agent(context: AgentContext) -> None:
        async with wire(await context.endpoint()) as client:
            while (answer := await client.chat(HELLO)).status == 200:
                pass
            raise RuntimeError(answer.code)

    episode = await led(notes, agent, says("hello", "hello"), max_turns=1).run()
    assert (episode.outcome, episode.fault) == (Outcome.TRUNCATED_TURNS, None)


async def test_what_an_agent_raises_for_another_reason_is_one(notes: Domain) -> None:
    async def agent(context: AgentContext) -> None:
        async with wire(await context.endpoint()) as client:
            raise RuntimeError((await client.chat(HELLO, top_p=0.3)).code)

    episode = await led(notes, agent, says("hello")).run()
    assert (episode.outcome, episode.fault) == (Outcome.INFRA_FAULT, "AgentError")


async def test_a_fault_of_the_engine_is_told_and_stays_one(notes: Domain) -> None:
    class Down:
        policy_version = 0

        async def generate(self, request: GenerateRequest) -> Generation:
            raise PolicyError("the engine is gone")

    answers: list[Answer] = []

    async def agent(context: AgentContext) -> None:
        async with wire(await context.endpoint()) as client:
            answers.append(await client.chat(HELLO))
            answers.append(await client.chat(HELLO))

    episode = await led(notes, agent, Down()).run()
    assert [(a.status, a.code, a.headers["x-should-retry"]) for a in answers] == [
        (503, "episode_fault", "false")
    ] * 2
    assert "the engine is gone" in answers[0].body["error"]["message"]
    assert (episode.outcome, episode.fault) == (Outcome.INFRA_FAULT, "PolicyError")


async def test_a_bug_is_logged_and_tells_the_client_nothing(
    notes: Domain, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        policy_version = 0

        async def generate(self, request: GenerateRequest) -> Generation:
            raise KeyError("inner secret")

    async def agent(context: AgentContext) -> None:
        async with wire(await context.endpoint()) as client:
            answer = await client.chat(HELLO)
            assert answer.status == 500
            assert "inner secret" not in json.dumps(answer.body)

    await led(notes, agent, Broken()).run()
    assert "inner secret" in caplog.text


async def test_a_key_is_in_no_repr_log_error_or_record(
    notes: Domain, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    keys: list[str] = []

    async def agent(context: AgentContext) -> None:
        endpoint = await context.endpoint()
        keys.append(endpoint.key)
        assert endpoint.key not in repr(endpoint) + str(endpoint)
        async with wire(endpoint) as client:
            await client.chat(HELLO)
            bad = await client.chat(HELLO, temperature=9)
            assert endpoint.key not in json.dumps(bad.body) + str(bad.headers)
        raise RuntimeError(f"cannot go on with {endpoint.headers}")

    episode = await led(notes, agent, says("hello")).run()
    assert episode.fault == "AgentError"
    assert keys[0].encode() not in encode_episode(episode)
    assert keys[0] not in caplog.text


async def test_the_users_leaving_reaches_an_agent_that_is_told_of_it_by_the_context(
    notes: Domain,
) -> None:
    seen = []

    async def agent(context: AgentContext) -> None:
        async with wire(await context.endpoint()) as client:
            said = (await client.chat(*map(as_chat, context.opening))).said
            try:
                await context.tell_user(said["content"])
            except DialogueOver:
                seen.append(await client.chat(HELLO))

    episode = await led(notes, agent, says("hello"), ["note it"]).run()
    assert (episode.outcome, seen[0].status) == (Outcome.COMPLETED, 410)


def by_urllib(url: str, headers: dict[str, str]) -> None:
    asked = urllib.request.Request(url, headers=headers)
    urllib.request.urlopen(asked).read()


def by_httpx(url: str, headers: dict[str, str]) -> None:
    httpx2.get(url, headers=headers, timeout=600)


@pytest.mark.parametrize("ask", [by_urllib, by_httpx])
@pytest.mark.parametrize("swallows", [False, True])
async def test_a_client_that_is_not_async_does_not_wait_for_itself_for_ever(
    notes: Domain, ask: Any, swallows: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def agent(context: AgentContext) -> None:
        endpoint = await context.endpoint()
        try:
            ask(f"{endpoint.url}/models", endpoint.headers)
        except Exception:
            if not swallows:
                raise

    with pytest.raises(SetupError, match=r"test_safety\.py:\d+, in by_.*is not async.*in a thread"):
        await led(notes, agent, says()).run()
    assert caplog.text.count("holds up all dialogues") == 1


@pytest.mark.parametrize(("timeout", "is_found"), [(0.0, False), (None, True), (600.0, True)])
def test_only_a_read_that_waits_holds_up_the_loop(timeout: float | None, is_found: bool) -> None:
    """asyncio reads from its clients' sockets too, and a look may come at that moment again and again."""

    class Reader:
        def __init__(self, one: socket.socket) -> None:
            self._sock = one

        def read(self) -> bool:
            frame = sys._current_frames()[threading.get_ident()]
            return _read_in(frame, port) is not None or not self._sock.recv

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.settimeout(timeout)
            assert Reader(client).read() is is_found
            port += 1
            assert not Reader(client).read()


async def test_an_agent_that_is_not_async_runs_in_a_thread(notes: Domain) -> None:
    def serve(context: AgentContext, endpoint: Endpoint) -> None:
        text = context.opening[-1].content
        while True:
            body = {"model": "policy", "messages": [{"role": "user", "content": text}]}
            url = f"{endpoint.url}/chat/completions"
            answer = httpx2.post(url, json=body, headers=endpoint.headers, timeout=60).json()
            said = answer["choices"][0]["message"]["content"]
            text = anyio.from_thread.run(context.tell_user, said).content

    async def agent(context: AgentContext) -> None:
        await anyio.to_thread.run_sync(serve, context, await context.endpoint())

    episode = await led(notes, agent, says("hello", "there"), ["note it", "yes"]).run()
    assert (episode.outcome, episode.error) == (Outcome.COMPLETED, None)
    assert len(episode.turns) == 2


def test_trio_is_told_what_to_do(notes: Domain) -> None:
    async def agent(context: AgentContext) -> None:
        await context.endpoint()

    with pytest.raises(SetupError, match=r"asyncio only.*anyio\.run"):
        anyio.run(led(notes, agent, says()).run, backend="trio")
