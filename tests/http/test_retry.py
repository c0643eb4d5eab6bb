"""Waits, Retry-After, keys, and which failures pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from muarl.errors import SetupError
from muarl.http.call import Refused, call, persistently
from muarl.http.key import ApiKey
from muarl.http.retry import Backoff, PassingFailure, excerpt, may_pass, seconds_of, wait_of
from muarl.http.transport import HttpReply, HttpRequest


@pytest.mark.parametrize("day", ["Wed, 21 Oct 9999999999999999999", "Wed, 21 Oct 2025"])
def test_an_absurd_date_is_no_retry_after(day: str) -> None:
    assert seconds_of(f"{day} 07:28:00 +999999999999999999") is None
    assert seconds_of("Wed, 21 Oct 9999999999999999999 07:28:00 GMT") is None


def test_who_asks_for_no_wait_at_all_is_not_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muarl.http.retry._FIRST_WAIT_S", 1.0)
    assert wait_of(PassingFailure("busy", 0.0), Backoff()) >= 0.5
    assert wait_of(PassingFailure("busy", 30.0), Backoff()) == 30.0


def test_waits_double_with_jitter_and_never_pass_eight_seconds() -> None:
    backoff = Backoff()
    for longest in [0.5, 1, 2, 4, 8, 8, 8]:
        assert longest / 2 <= backoff.next_s() <= longest


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("17", 17.0),
        ("0.5", 0.5),
        ("-5", 0.0),
        *((none, None) for none in ("soon", "", "inf", "nan", "Wed, 99 Foo", None)),
    ],
)
def test_retry_after_is_seconds_or_nothing(text: str | None, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


def test_retry_after_may_be_a_date() -> None:
    begun = datetime.now(UTC)
    when = begun.replace(microsecond=0) + timedelta(seconds=30)
    seconds = seconds_of(format_datetime(when, usegmt=True))
    assert seconds is not None
    assert (when - datetime.now(UTC)).total_seconds() <= seconds <= (when - begun).total_seconds()


@given(st.text(max_size=40))
def test_any_retry_after_is_a_wait_or_nothing(text: str) -> None:
    seconds = seconds_of(text)
    assert seconds is None or 0 <= seconds < float("inf")


def test_which_statuses_pass() -> None:
    assert [s for s in (200, 301, 400, 404, 408, 422, 429, 500, 503) if may_pass(s)] == [
        408,
        429,
        500,
        503,
    ]


@given(st.text(max_size=2000))
def test_an_excerpt_is_short_and_one_line(body: str) -> None:
    said = excerpt(body)
    assert len(said) <= 201
    assert "\n" not in said


def test_a_key_is_read_sent_and_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", " sk-secret\n")
    key = ApiKey("THE_KEY")
    assert key.headers == {"Authorization": "Bearer sk-secret"}
    assert key.hide("bad key sk-secret") == "bad key [key]"
    assert "sk-secret" not in repr(key)
    assert key.hide("\\" * 1_000_000) == "\\" * 1_000_000, "and at once, whatever is said"
    assert ApiKey(None).headers == {}


def test_of_an_answer_only_its_beginning_is_searched_for_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("THE_KEY", "sk-secret")
    key = ApiKey("THE_KEY")
    searched: list[int] = []
    hide = key.hide
    monkeypatch.setattr(key, "hide", lambda words: searched.append(len(words)) or hide(words))
    said = "no sk-secret " * 2_000_000
    beginning = key.hide_in_beginning(said, 800)
    assert max(searched) < 10_000
    assert "no [key] " * 4 in beginning
    assert key.hide_in_beginning("bad key sk-secret", 800) == "bad key [key]"


@given(before=st.integers(0, 3000), times=st.integers(1, 200))
def test_no_part_of_a_key_is_left_where_an_answer_is_cut(before: int, times: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("THE_KEY", "0123456789")
        key = ApiKey("THE_KEY")
    beginning = key.hide_in_beginning("x" * before + "0123456789" * times + "y" * 5000, 800)
    assert not set("0123456789") & set(beginning)


def test_what_is_said_of_a_failure_is_cut_whatever_the_endpoint_said() -> None:
    for failure in (PassingFailure("x" * 1_000_000), Refused("x" * 1_000_000, 400)):
        assert len(str(failure)) < 1100


def test_a_key_that_is_missing_or_breaks_the_header_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("THE_KEY", raising=False)
    with pytest.raises(SetupError, match="export THE_KEY="):
        ApiKey("THE_KEY")
    monkeypatch.setenv("THE_KEY", "a\r\nX-Evil: 1")
    with pytest.raises(SetupError, match="cannot be a key"):
        ApiKey("THE_KEY")


class Script:
    def __init__(self, *replies: HttpReply) -> None:
        self._replies = list(replies)
        self.asked_at: list[float] = []

    async def __call__(self, request: HttpRequest) -> HttpReply:
        del request
        self.asked_at.append(anyio.current_time())
        return self._replies.pop(0)


def ask(script: Script, *, again: bool) -> bytes:
    async def main() -> bytes:
        async def once(method: str, url: str, body: bytes = b"") -> bytes:
            return await call(script, ApiKey(None), method, url, body)

        return await (persistently if again else once)(
            *([once] if again else []), "GET", "http://x"
        )

    clock = MockClock(autojump_threshold=0)
    return anyio.run(main, backend="trio", backend_options={"clock": clock})


def test_a_busy_endpoint_is_told_from_a_broken_one() -> None:
    with pytest.raises(PassingFailure) as busy:
        ask(Script(HttpReply(429, b"full", "9")), again=False)
    assert (busy.value.is_busy, busy.value.wait_s) == (True, 9.0)
    with pytest.raises(PassingFailure) as broken:
        ask(Script(HttpReply(503, b"down")), again=False)
    assert (broken.value.is_busy, broken.value.wait_s) == (False, None)


@pytest.mark.parametrize("status", [301, 400, 401, 404, 422])
def test_a_refusal_carries_its_status_and_words(status: int) -> None:
    with pytest.raises(Refused, match=rf"answered {status}: no such model") as refusal:
        ask(Script(HttpReply(status, b"no such model")), again=True)
    assert refusal.value.status == status


def test_persistence_is_three_tries() -> None:
    script = Script(HttpReply(500, b""), HttpReply(503, b"", "7"), HttpReply(200, b"done"))
    assert ask(script, again=True) == b"done"
    first, second, third = script.asked_at
    assert 0.25 <= second - first <= 0.5
    assert third - second == pytest.approx(7)
    with pytest.raises(PassingFailure):
        ask(Script(*[HttpReply(500, b"")] * 3), again=True)


def test_persistence_waits_where_the_endpoint_asks_for_no_wait() -> None:
    script = Script(*[HttpReply(429, b"", "0")] * 2, HttpReply(200, b"done"))
    assert ask(script, again=True) == b"done"
    first, second, third = script.asked_at
    assert second - first >= 0.25
    assert third - second >= 0.5
