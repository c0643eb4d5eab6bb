"""What fails on purpose fails as it says, by a plan that can be run again."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream
from hypothesis import given
from hypothesis import strategies as st

from muarl.errors import PolicyError, RecordError
from muarl.http.transport import HttpReply, HttpRequest, Unreachable, send
from muarl.policy import GenerateRequest
from muarl.record import Episode
from muarl.testing import (
    FaultPlan,
    FaultyPolicy,
    FullDisk,
    ScriptedPolicy,
    build_episode,
    chat_answer,
    http_server,
)
from muarl.testing.http_server import HttpFault, HttpServer


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# --- plans --------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32), calls=st.permutations(range(12)))
def test_what_fails_depends_on_the_call_and_not_on_what_came_before(
    seed: int, calls: list[int]
) -> None:
    def drawn(order: Any) -> dict[int, str | None]:
        plan = FaultPlan(["a", "b"], rate=0.5, seed=seed)
        return {call: plan.draw(call) for call in order}

    assert drawn(calls) == drawn(range(12))


def test_a_plan_keeps_to_its_rate_and_draws_each_retry_anew() -> None:
    plan = FaultPlan(["a", "b"], rate=0.2, seed=1)
    drawn = Counter(plan.draw("the same call") for _ in range(2_000))
    assert 300 < drawn["a"] + drawn["b"] < 500
    assert 120 < drawn["a"] < 280
    assert plan.drawn == {"a": drawn["a"], "b": drawn["b"]}
    assert plan.calls == 2_000


@pytest.mark.parametrize(("faults", "rate"), [([], 0.5), (["a"], -0.1), (["a"], 1.1)])
def test_a_plan_that_makes_no_sense_is_refused(faults: list[str], rate: float) -> None:
    with pytest.raises(ValueError, match=r"faults and a rate in \[0, 1\]"):
        FaultPlan(faults, rate=rate)


# --- the engine, and the disk ---------------------------------------------------------------


@pytest.mark.anyio
async def test_a_faulty_policy_counts_what_is_live_and_passes_on_what_is_sound() -> None:
    sound = ScriptedPolicy(lambda _: "hello", lambda text: [ord(letter) for letter in text])
    plan = FaultPlan(["hang", "error"], rate=0.0)
    policy = FaultyPolicy(sound, plan)
    request = GenerateRequest([1], "d", 0, 64, 1.0, (999,))
    assert (await policy.generate(request)).token_ids[-1] == 999
    plan.rate = 1.0
    raised = 0

    async def ask() -> None:
        nonlocal raised
        try:
            await policy.generate(request)
        except PolicyError:
            raised += 1

    for _ in range(8):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert plan.drawn == {"hang": 8 - raised, "error": raised}
    assert min(plan.drawn.values()) > 0
    assert policy.live == 0


def test_a_full_disk_takes_what_fits_and_says_so() -> None:
    kept: list[Episode] = []

    class Kept:
        append = staticmethod(kept.append)

    disk = FullDisk(Kept(), room=1)
    disk.append(build_episode())
    with pytest.raises(RecordError, match="No space left on device"):
        disk.append(build_episode())
    assert (len(kept), disk.room, disk.refused) == (1, 0, 1)
    disk.room = 1
    disk.append(build_episode())
    assert len(kept) == 2


# --- the endpoint ---------------------------------------------------------------------------

ASK = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()


def repeat(messages: list[dict[str, Any]]) -> str:
    return "You said: " + messages[-1]["content"]


async def asked_once(fault: HttpFault | None, **settings: Any) -> HttpReply | str:
    """What a client sees: the reply, or why there was none."""
    plan = FaultPlan([fault], rate=1.0) if fault else None
    async with http_server(chat_answer(repeat), plan, **settings) as server:
        with anyio.fail_after(60):
            try:
                return await send(HttpRequest("POST", f"{server.url}/v1/chat", {}, ASK))
            except Unreachable as error:
                return str(error)


@pytest.mark.anyio
async def test_a_sound_endpoint_answers_as_a_chat_model_and_remembers_what_it_was_asked() -> None:
    async with http_server(chat_answer(repeat)) as server:
        reply = await send(HttpRequest("POST", f"{server.url}/v1/chat", {"X-A": "b"}, ASK))
    assert json.loads(reply.body)["choices"][0]["message"]["content"] == "You said: hi"
    (request,) = server.requests
    assert (request.method, request.path, request.headers["x-a"]) == ("POST", "/v1/chat", "b")
    assert server.live == 0


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("fault", "status", "retry_after"),
    [
        (None, 200, None),
        ("slow", 200, None),
        ("rate_limit", 429, None),
        ("rate_limit_wait", 429, "7"),
        ("server_error", 500, None),
        ("garbage", 200, None),
        ("wrong_form", 200, None),
    ],
)
async def test_an_endpoint_misbehaves_as_planned(
    fault: HttpFault | None, status: int, retry_after: str | None
) -> None:
    reply = await asked_once(fault, slow_s=0.05, retry_after_s=7)
    assert isinstance(reply, HttpReply)
    assert (reply.status, reply.retry_after) == (status, retry_after)
    if fault == "garbage":
        with pytest.raises(ValueError, match="codec can't decode"):
            json.loads(reply.body)
    if fault == "wrong_form":
        assert json.loads(reply.body)["choices"] == []


@pytest.mark.anyio
@pytest.mark.parametrize("fault", ["reset", "refused", "cut"])
async def test_an_endpoint_breaks_off_as_planned(fault: HttpFault) -> None:
    assert isinstance(await asked_once(fault), str)


@pytest.mark.anyio
async def test_an_endpoint_hangs_as_planned() -> None:
    plan = FaultPlan(["hang"], rate=1.0)
    ended = anyio.Event()

    async def ask(url: str) -> None:
        try:
            await send(HttpRequest("POST", f"{url}/v1/chat", {}, ASK))
        finally:
            ended.set()

    async with (
        http_server(chat_answer(repeat), plan) as server,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(ask, server.url)
        with anyio.fail_after(60):
            while not server.requests:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        with anyio.move_on_after(0.3):
            await ended.wait()
        assert not ended.is_set()
        assert server.live == 1
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_an_endpoint_that_is_down_refuses_everybody_and_comes_back_at_the_same_port() -> None:
    plan = FaultPlan(["refused"], rate=1.0)
    async with http_server(chat_answer(repeat), plan, down_s=1e6) as server:
        for _ in range(3):
            with pytest.raises(Unreachable):
                await send(HttpRequest("POST", server.url, {}, ASK))
        assert len(server.requests) == 1, "the others were not even let in"
    async with http_server(chat_answer(repeat), plan, down_s=0.1) as server:
        ask = HttpRequest("POST", server.url, {}, ASK)
        with pytest.raises(Unreachable):
            await send(ask)
        plan.rate = 0.0
        with anyio.fail_after(60):
            while True:
                try:
                    assert (await send(ask)).status == 200
                    break
                except Unreachable:
                    await anyio.sleep(0.01)


@pytest.mark.anyio
async def test_a_door_that_is_closed_just_as_the_next_may_come_in_is_opened_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    as_usual = HttpServer._connected
    closed: list[str] = []

    async def closes(server: HttpServer, stream: SocketStream) -> None:
        if closed:
            await as_usual(server, stream)
        else:
            closed.append(server.url)
            await server.close_door()
            await stream.aclose()

    monkeypatch.setattr(HttpServer, "_connected", closes)
    async with http_server(lambda _: "well", down_s=0.001) as server:
        with anyio.fail_after(60):
            while True:
                try:
                    reply = await send(HttpRequest("GET", server.url))
                    break
                except Unreachable:
                    await anyio.sleep(0.001)
    assert reply.body == b'"well"'
    assert closed
