"""The chat client: what is tried again and when, what is not, and what is never said."""

import json
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_endpoint import HANG, SLAM, completion, endpoint, response
from trio.testing import MockClock

from muarl.errors import EndpointError, EpisodeTimeout, SetupError
from muarl.http.chat_client import ChatClient, ChatMessage, ChatReply
from muarl.http.transport import MAX_BYTES, HttpReply, HttpRequest, Unreachable

HELLO = [ChatMessage("user", "hello")]
GOOD = msgspec.json.encode({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]})


async def ask(client: ChatClient) -> ChatReply:
    return await client.complete(HELLO, seed=5, temperature=0.7, max_tokens=64)


class TestOverSockets:
    pytestmark = pytest.mark.anyio

    async def test_a_completion_is_asked_for_and_read(self) -> None:
        async with endpoint(completion("hi there")) as server:
            reply = await ask(ChatClient(server.url, "tiny"))
        assert reply == ChatReply("hi there", cut=False)
        assert server.heads[0].startswith("POST /v1/chat/completions ")
        assert "authorization" not in server.heads[0].lower()
        assert server.bodies == [
            {
                "model": "tiny",
                "messages": [{"role": "user", "content": "hello"}],
                "seed": 5,
                "temperature": 0.7,
                "max_tokens": 64,
                "stream": False,
            }
        ]

    async def test_the_key_goes_into_one_header(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("THE_KEY", "sk-secret")
        async with endpoint(completion("hi")) as server:
            client = ChatClient(server.url, "tiny", api_key_env="THE_KEY")
            await ask(client)
        assert "Bearer sk-secret" in server.heads[0]
        assert "sk-secret" not in repr(client) + repr(server.bodies)

    @pytest.mark.parametrize(
        "bad", [response(503), response(200, "<html>"), SLAM], ids=["503", "garbage", "slam"]
    )
    async def test_what_may_pass_is_tried_again(self, bad: bytes) -> None:
        async with endpoint(bad, completion("hi")) as server:
            assert (await ask(ChatClient(server.url, "tiny"))).text == "hi"
        assert len(server.bodies) == 2

    async def test_a_hanging_endpoint_is_a_named_timeout_and_is_hung_up_on(self) -> None:
        async with endpoint(HANG) as server:
            with pytest.raises(EpisodeTimeout, match=r"a reply of 'tiny' at http.* within 0\.3 s"):
                await ask(ChatClient(server.url, "tiny", timeout_s=0.3))
            with anyio.fail_after(60):
                while server.open:
                    await anyio.lowlevel.checkpoint()

    async def test_a_cancelled_call_hangs_up(self) -> None:
        async with endpoint(HANG) as server, anyio.create_task_group() as tasks:
            tasks.start_soon(ask, ChatClient(server.url, "tiny"))
            with anyio.fail_after(60):
                while not server.bodies:
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        assert server.open == 0

    async def test_a_redirect_is_not_followed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("THE_KEY", "sk-secret")
        async with (
            endpoint(completion("hi")) as elsewhere,
            endpoint(response(307, "", Location=elsewhere.url)) as server,
        ):
            with pytest.raises(EndpointError, match="answered 307"):
                await ask(ChatClient(server.url, "tiny", api_key_env="THE_KEY"))
        assert not elsewhere.heads

    async def test_an_endless_answer_is_cut_off(self) -> None:
        flood = f"HTTP/1.1 200 OK\r\nContent-Length: {MAX_BYTES + 1}\r\n\r\n".encode()
        flood += b"x" * (MAX_BYTES + 1)
        async with endpoint(flood, response(400)) as server:
            with pytest.raises(EndpointError, match="answered 400"):
                await ask(ChatClient(server.url, "tiny"))
        assert len(server.bodies) == 2


class Clocked:
    """Answers from a script and notes when it was asked."""

    def __init__(self, *answers: HttpReply | Unreachable) -> None:
        self._answers = list(answers)
        self.asked: list[float] = []

    async def __call__(self, request: HttpRequest) -> HttpReply:
        del request
        self.asked.append(anyio.current_time())
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Unreachable):
            raise answer
        return answer

    @property
    def waits(self) -> list[float]:
        return [b - a for a, b in zip(self.asked, self.asked[1:], strict=False)]


def in_virtual_time(run: Callable[[], Any]) -> Any:
    clock = MockClock(autojump_threshold=0)
    return anyio.run(run, backend="trio", backend_options={"clock": clock})


def client(answers: Clocked, timeout_s: float = 60.0) -> ChatClient:
    return ChatClient("http://127.0.0.1:1/v1", "tiny", timeout_s=timeout_s, send=answers)


@given(st.integers(0, 4), st.sampled_from([408, 429, 500, 502, 503, 504, 529]))
def test_waits_double_with_jitter_and_never_pass_eight_seconds(failures: int, status: int) -> None:
    answers = Clocked(*[HttpReply(status, b"")] * failures, HttpReply(200, GOOD))
    assert in_virtual_time(lambda: ask(client(answers))).text == "hi"
    for wait, backoff in zip(answers.waits, [0.5, 1, 2, 4], strict=False):
        assert backoff / 2 <= wait <= backoff
    assert len(answers.asked) == failures + 1


def test_retry_after_in_seconds_is_honoured() -> None:
    answers = Clocked(HttpReply(429, b"", "17"), HttpReply(200, GOOD))
    in_virtual_time(lambda: ask(client(answers)))
    assert answers.waits == [pytest.approx(17)]


def test_retry_after_as_a_date_is_honoured() -> None:
    begun = datetime.now(UTC)
    when = begun.replace(microsecond=0) + timedelta(seconds=30)
    answers = Clocked(HttpReply(503, b"", format_datetime(when, usegmt=True)), HttpReply(200, GOOD))
    in_virtual_time(lambda: ask(client(answers)))
    least, most = ((when - then).total_seconds() for then in (datetime.now(UTC), begun))
    assert least - 1e-6 <= answers.waits[0] <= most + 1e-6


@pytest.mark.parametrize("nonsense", ["soon", "", "nan", "inf", "Wed, 99 Foo", "-5"])
def test_a_retry_after_that_is_none_does_no_harm(nonsense: str) -> None:
    answers = Clocked(HttpReply(429, b"", nonsense), HttpReply(200, GOOD))
    in_virtual_time(lambda: ask(client(answers)))
    assert answers.waits[0] <= 0.5


def test_a_retry_after_beyond_the_deadline_fails_at_once() -> None:
    answers = Clocked(HttpReply(429, b"full", "3600"))
    with pytest.raises(EndpointError, match=r"answered 429: full; it asks to wait 3600 s"):
        in_virtual_time(lambda: ask(client(answers)))
    assert len(answers.asked) == 1


def test_what_the_endpoint_asks_for_is_told_from_our_own_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("muarl.http.retry._FIRST_WAIT_S", 1000.0)
    with pytest.raises(
        EndpointError,
        match=r"it asks to wait 100 s, longer than is left of the \d+ s that a reply may take",
    ):
        in_virtual_time(lambda: ask(client(Clocked(HttpReply(429, b"full", "100")))))
    with pytest.raises(EpisodeTimeout, match=r"last try: answered 429: full"):
        in_virtual_time(lambda: ask(client(Clocked(HttpReply(429, b"full", "0.5")))))


def test_an_endpoint_that_asks_for_no_wait_is_not_asked_at_once() -> None:
    answers = Clocked(HttpReply(429, b"", "0"), HttpReply(200, GOOD))
    in_virtual_time(lambda: ask(client(answers)))
    assert answers.waits[0] >= 0.25


def test_five_tries_and_no_more() -> None:
    answers = Clocked(Unreachable("connection refused"))
    with pytest.raises(EndpointError, match=r"cannot be reached: connection refused \(5 tries\)"):
        in_virtual_time(lambda: ask(client(answers)))
    assert len(answers.asked) == 5


def test_all_tries_together_stay_within_one_deadline() -> None:
    answers = Clocked(Unreachable("connection refused"))
    with pytest.raises(EpisodeTimeout, match=r"within 2 s"):
        in_virtual_time(lambda: ask(client(answers, timeout_s=2)))


def test_an_endpoint_that_is_down_is_asked_by_few_of_many_dialogues() -> None:
    answers = Clocked(*[Unreachable("connection refused")] * 10, HttpReply(200, GOOD))
    one = client(answers, timeout_s=120)
    replies: list[ChatReply | EndpointError] = []

    async def dialogue() -> None:
        try:
            replies.append(await ask(one))
        except EndpointError as error:
            replies.append(error)

    async def many() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(100):
                tasks.start_soon(dialogue)

    in_virtual_time(many)
    assert len(replies) == 100
    failed = [reply for reply in replies if isinstance(reply, EndpointError)]
    assert all("cannot be reached: connection refused (5 tries)" in str(e) for e in failed)
    # Eight fail; then the endpoint is left alone, but for one on trial after each rest.
    since = [at - answers.asked[0] for at in answers.asked]
    assert since[7] == 0
    assert since[8] >= 1
    assert since[9] - since[8] >= 2
    assert len(answers.asked) <= 8 + 3 + len(replies) - len(failed)


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 422])
def test_what_will_not_pass_is_not_tried_again(status: int) -> None:
    answers = Clocked(HttpReply(status, b'{"error": "no such model"}'))
    with pytest.raises(EndpointError, match=rf"answered {status}: .*no such model"):
        in_virtual_time(lambda: ask(client(answers)))
    assert len(answers.asked) == 1


@given(
    st.one_of(
        st.binary(max_size=50),
        st.sampled_from(
            [
                b"[]",
                b"null",
                b"{}",
                b'{"choices": []}',
                b'{"choices": [{}]}',
                b'{"choices": [{"message": {"content": 3}}]}',
                b"[" * 100_000,
            ]
        ),
    )
)
def test_garbage_is_an_endpoint_error_whatever_it_is(body: bytes) -> None:
    answers = Clocked(HttpReply(200, body))
    with pytest.raises(EndpointError, match="no chat completion"):
        in_virtual_time(lambda: ask(client(answers)))


def test_the_key_is_cut_from_what_the_endpoint_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "sk-secret")
    answers = Clocked(HttpReply(401, b"bad key sk-secret"))
    told = ChatClient("http://127.0.0.1:1/v1", "tiny", api_key_env="THE_KEY", send=answers)
    with pytest.raises(EndpointError, match=r"bad key \[key\] \(the key in \$THE_KEY\)") as error:
        in_virtual_time(lambda: ask(told))
    assert "sk-secret" not in str(error.value)


KEY = 'sk-a/"b"\\c-0123456789'
ECHOES = {
    "at the cut of the excerpt": b"x" * 190 + KEY.encode() + b" is wrong",
    "past the cut of what is read": b" " * 790 + KEY.encode(),
    "as JSON": json.dumps({"error": f"bad key {KEY}"}).encode(),
    "as JSON in JSON": json.dumps({"error": json.dumps(f"bad key {KEY}")}).encode(),
    "as JSON with more escapes than it needs": b'{"error": "bad key %s"}'
    % b"".join(b"\\u%04X" % byte if byte % 2 else b"\\u%04x" % byte for byte in KEY.encode()),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_no_part_of_the_key_is_in_what_is_said_however_it_is_echoed(
    echo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    answers = Clocked(HttpReply(400, ECHOES[echo]))
    told = ChatClient("http://127.0.0.1:1/v1", "tiny", api_key_env="THE_KEY", send=answers)
    with pytest.raises(EndpointError, match=r"answered 400: .*\[key\]") as error:
        in_virtual_time(lambda: ask(told))
    for part in ("sk-a", "0123", "\\u00"):
        assert part not in str(error.value)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("sk-secret-1234", "I was told [key], and [key]."),
        ("EMPTY", "I was told EMPTY, and EMPTY."),  # what servers without keys are given
    ],
)
def test_a_key_that_the_model_says_is_not_delivered(
    key: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", key)
    content = f"I was told {key}, and {key}."
    body = msgspec.json.encode({"choices": [{"message": {"content": content}}]})
    answers = Clocked(HttpReply(200, body))
    told = ChatClient("http://127.0.0.1:1/v1", "tiny", api_key_env="THE_KEY", send=answers)
    assert in_virtual_time(lambda: ask(told)) == ChatReply(said, cut=False)


def test_a_missing_key_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THE_KEY", raising=False)
    with pytest.raises(SetupError, match=r"THE_KEY.* is not set: export THE_KEY="):
        ChatClient("http://127.0.0.1:1/v1", "tiny", api_key_env="THE_KEY")


def test_a_key_that_would_break_the_header_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "a\r\nX-Evil: 1")
    with pytest.raises(SetupError, match="cannot be a key"):
        ChatClient("http://127.0.0.1:1/v1", "tiny", api_key_env="THE_KEY")


@pytest.mark.parametrize("url", ["localhost:8000", "", "ftp://x", "file:///etc/passwd"])
def test_what_is_no_url_is_said_at_once(url: str) -> None:
    with pytest.raises(SetupError, match="no endpoint"):
        ChatClient(url, "tiny")


@pytest.mark.anyio
async def test_a_refused_connection_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muarl.http.chat_client._TRIES", 1)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen
        port = held.getsockname()[1]
        with pytest.raises(EndpointError, match=rf"127.0.0.1:{port}.*cannot be reached"):
            await ask(ChatClient(f"http://127.0.0.1:{port}/v1", "tiny"))
