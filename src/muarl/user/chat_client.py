"""A chat model behind an OpenAI-compatible endpoint: messages in, text out.

Owns: retries, waits, the deadline, the key. Does not own: what is said.

What may pass by itself is tried again (refused or broken connections, 408, 429, 5xx, an answer
that is no chat completion), after a jittered wait that doubles, or as long as Retry-After asks.
What cannot (another 4xx, a redirect) is not. Everything together stays within one deadline.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import anyio
import msgspec

from muarl.errors import EndpointError, EpisodeTimeout, SetupError
from muarl.user.http import HttpReply, Post, Unreachable, post

_TRIES = 5
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 8.0
_EXCERPT = 200


class ChatMessage(msgspec.Struct, frozen=True):
    """One message as the endpoint sees it."""

    role: str
    content: str


class ChatReply(msgspec.Struct, frozen=True):
    """What the model wrote.

    Attributes:
        text: Its content, reasoning between tags included; "" if it only called tools.
        cut: The token cap ended it.
    """

    text: str
    cut: bool


class _Content(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Content
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]


_decoder = msgspec.json.Decoder(_Completion)


class _PassingFailure(Exception):
    """May go better next time. `wait_s` is how long the endpoint asks us to wait, if it does."""

    def __init__(self, words: str, wait_s: float | None = None) -> None:
        self.wait_s = wait_s
        super().__init__(words)


class ChatClient:
    """One model at one endpoint. Holds nothing open between calls.

    Args:
        base_url: `http://127.0.0.1:8000/v1`.
        model: Model name sent along.
        api_key_env: Environment variable that holds the key, read now; None sends none.
        timeout_s: Seconds one reply may take, with all its tries.
        post: Sends one request.

    Raises:
        SetupError: The URL is none, or the variable is not set.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key_env: str | None = None,
        timeout_s: float = 60.0,
        post: Post = post,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise SetupError(
                f"{base_url!r} is no endpoint: expected a URL such as http://127.0.0.1:8000/v1"
            )
        self._url = base_url.rstrip("/") + "/chat/completions"
        self.model = model
        self._key_name = api_key_env
        self._key = _key_from(api_key_env) if api_key_env else None
        self._timeout_s = timeout_s
        self._post = post
        # Waits are spread so that refused dialogues do not come back all at once; nothing that is
        # recorded depends on them.
        self._jitter = random.Random()

    def __repr__(self) -> str:
        return f"ChatClient({self.model!r} at {self._url})"

    async def complete(
        self, messages: Sequence[ChatMessage], *, seed: int, temperature: float, max_tokens: int
    ) -> ChatReply:
        """One completion.

        Raises:
            EndpointError: It refuses us, or failed at every try.
            EpisodeTimeout: No reply within `timeout_s`.
        """
        body = msgspec.json.encode(
            {
                "model": self.model,
                "messages": messages,
                "seed": seed & (2**31 - 1),  # what every server can hold
                "temperature": temperature,
                "max_tokens": max_tokens,
                "stream": False,
            }
        )
        failures: list[_PassingFailure] = []
        with anyio.move_on_after(self._timeout_s) as deadline:
            return await self._try(body, deadline, failures)
        tried = f" (last try: {self._safe(str(failures[-1]))})" if failures else ""
        raise EpisodeTimeout(f"a reply of {self.model!r} at {self._url}{tried}", self._timeout_s)

    async def _try(
        self, body: bytes, deadline: anyio.CancelScope, failures: list[_PassingFailure]
    ) -> ChatReply:
        """Try until it goes well; what goes wrong on the way is added to `failures`."""
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        for tried in range(1, _TRIES + 1):
            try:
                return self._read(await self._post(self._url, headers, body))
            except Unreachable as error:
                failure = _PassingFailure(f"cannot be reached: {error}")
            except _PassingFailure as error:
                failure = error
            failures.append(failure)
            if tried == _TRIES:
                break
            wait_s = failure.wait_s
            if wait_s is None:
                backoff = min(_FIRST_WAIT_S * 2 ** (tried - 1), _LONGEST_WAIT_S)
                wait_s = backoff * self._jitter.uniform(0.5, 1.0)
            elif anyio.current_time() + wait_s > deadline.deadline:
                raise self._error(
                    f"{failure}; it asks to wait {wait_s:g} s, longer than a reply may take"
                )
            await anyio.sleep(wait_s)
        raise self._error(f"{failure} ({_TRIES} tries)")

    def _read(self, reply: HttpReply) -> ChatReply:
        if reply.status == 200:
            try:
                choice = _decoder.decode(reply.body).choices[0]
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, IndexError) as error:
                raise _PassingFailure(f"answered with no chat completion: {error}") from error
            return ChatReply(choice.message.content or "", choice.finish_reason == "length")
        said = f"answered {reply.status}: {_excerpt(reply.body)}"
        if reply.status in (408, 429) or reply.status >= 500:
            raise _PassingFailure(said, _seconds(reply.retry_after))
        if reply.status in (401, 403):
            key = f"the key in ${self._key_name}" if self._key_name else "no api_key_env is set"
            said += f" ({key})"
        raise self._error(said)

    def _error(self, words: str) -> EndpointError:
        return EndpointError(f"{self._url} (model {self.model!r}) {self._safe(words)}")

    def _safe(self, words: str) -> str:
        return words.replace(self._key, "[key]") if self._key else words


def _key_from(variable: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key:
        raise SetupError(
            f"the environment variable {variable} (`api_key_env`) is not set: "
            f"export {variable}=<the endpoint's key>"
        )
    if not key.isascii() or not key.isprintable():
        raise SetupError(f"the value of the environment variable {variable} cannot be a key")
    return key


def _seconds(retry_after: str | None) -> float | None:
    """Retry-After as seconds from now: a number or a date; None if it is neither."""
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            when: Any = parsedate_to_datetime(retry_after)
            seconds = (when - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):  # no date, or one without a zone
            return None
    return max(seconds, 0.0) if seconds < float("inf") else None


def _excerpt(body: bytes) -> str:
    text = " ".join(body[: 4 * _EXCERPT].decode("utf-8", "replace").split())
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"
