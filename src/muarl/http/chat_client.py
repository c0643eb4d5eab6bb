"""A chat model behind an OpenAI-compatible endpoint: messages in, text out.

Owns: retries, waits, the deadline, the key. Does not own: what is said.

What may pass by itself is tried again (refused or broken connections, 408, 429, 5xx, an answer
that is no chat completion), after a jittered wait that doubles, or as long as Retry-After asks.
What cannot (another 4xx, a redirect) is not. Everything together stays within one deadline.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import anyio
import msgspec

from muarl.errors import EndpointError, EpisodeTimeout, SetupError
from muarl.http.breaker import Breaker
from muarl.http.call import Refused, call, reported
from muarl.http.key import ApiKey
from muarl.http.retry import Backoff, PassingFailure, wait_of
from muarl.http.transport import Send, send

_TRIES = 5
_THINK = re.compile(r"<think>", re.IGNORECASE)
_THINK_END = re.compile(r"</think>", re.IGNORECASE)


class ChatFunction(msgspec.Struct, frozen=True):
    """What is called, with arguments as the JSON text that the model wrote."""

    name: str
    arguments: str


class ChatCall(msgspec.Struct, frozen=True):
    """One tool call as the endpoint sees it."""

    id: str
    function: ChatFunction
    type: str = "function"


class ChatMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message as the endpoint sees it.

    Attributes:
        role: Who speaks.
        content: Its text.
        tool_calls: What a message of the model's calls.
        tool_call_id: Of a tool's answer, the call that it answers.
    """

    role: str
    content: str
    tool_calls: tuple[ChatCall, ...] = ()
    tool_call_id: str | None = None


class ChatReply(msgspec.Struct, frozen=True):
    """What the model wrote.

    Attributes:
        text: Its content, reasoning between tags included; "" if it only called tools.
        cut: The token cap ended it.
        calls: Tools it called.
        prompt_tokens: Tokens it was sent, as the endpoint counts; None where it does not say.
        completion_tokens: Tokens it wrote, likewise.
    """

    text: str
    cut: bool
    calls: tuple[ChatCall, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Content(msgspec.Struct):
    content: str | None = None
    tool_calls: Any = None


class _Choice(msgspec.Struct):
    message: _Content
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: Any = None


_decoder = msgspec.json.Decoder(_Completion)


class ChatClient:
    """One model at one endpoint, for any number of dialogues. Holds nothing open between calls.

    When the endpoint fails again and again, whoever asks it, it is left alone for a while.

    Args:
        base_url: `http://127.0.0.1:8000/v1`.
        model: Model name sent along.
        api_key_env: Environment variable that holds the key, read now; None sends none.
        timeout_s: Seconds one reply may take, with all its tries.
        send: Sends one request.

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
        send: Send = send,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise SetupError(
                f"{base_url!r} is no endpoint: expected a URL such as http://127.0.0.1:8000/v1"
            )
        self._url = base_url.rstrip("/") + "/chat/completions"
        self.model = model
        self._key = ApiKey(api_key_env)
        self._timeout_s = timeout_s
        self._send = send
        self._breaker = Breaker()
        self._last_failure = ""  # anybody's

    def __repr__(self) -> str:
        return f"ChatClient({self.model!r} at {self._url})"

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        seed: int,
        temperature: float,
        max_tokens: int,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> ChatReply:
        """One completion.

        Args:
            messages: What was said so far.
            seed: Of the sampling.
            temperature: Likewise.
            max_tokens: Cap on the answer.
            tools: What the model may call, each as `{"type": "function", "function": ...}`.

        Raises:
            EndpointError: It refuses us, or failed at every try.
            EpisodeTimeout: No reply within `timeout_s`.
        """
        asked = {
            "model": self.model,
            "messages": messages,
            "seed": seed & (2**31 - 1),  # what every server can hold
            "temperature": temperature,
            "max_tokens": max_tokens,
            "stream": False,
        }
        body = msgspec.json.encode({**asked, "tools": tools} if tools else asked)
        failures: list[PassingFailure] = []
        with anyio.move_on_after(self._timeout_s) as deadline:
            return await self._try(body, deadline, failures)
        tried = f" (last try: {failures[-1]})" if failures else ""
        raise EpisodeTimeout(f"a reply of {self.model!r} at {self._url}{tried}", self._timeout_s)

    async def _try(
        self, body: bytes, deadline: anyio.CancelScope, failures: list[PassingFailure]
    ) -> ChatReply:
        """Try until it goes well; what goes wrong on the way is added to `failures`."""
        backoff = Backoff()
        for tried in range(1, _TRIES + 1):
            try:
                return await self._ask(body)
            except PassingFailure as error:
                failure = error
            except Refused as refusal:
                raise self._error(str(refusal)) from refusal
            failures.append(failure)
            if tried == _TRIES:
                break
            wait_s = wait_of(failure, backoff)
            asked_s = failure.wait_s
            if asked_s is not None and anyio.current_time() + asked_s > deadline.deadline:
                raise self._error(
                    f"{failure}; it asks to wait {asked_s:g} s, longer than is left of the "
                    f"{self._timeout_s:g} s that a reply may take"
                )
            await anyio.sleep(wait_s)
        raise self._error(f"{failure} ({_TRIES} tries)")

    async def _ask(self, body: bytes) -> ChatReply:
        """One try; none at all while the endpoint is left alone, which counts as one that failed."""
        permit = self._breaker.admit(anyio.current_time())
        if permit is None:
            raise PassingFailure(self._last_failure)
        try:
            with reported(self._breaker, permit):
                answer = await call(self._send, self._key, "POST", self._url, body)
                return _read(answer, self._key)
        except PassingFailure as failure:
            self._last_failure = str(failure)
            raise

    def _error(self, words: str) -> EndpointError:
        return EndpointError(f"{self._url} (model {self.model!r}) {words}")


def _read(body: bytes, key: ApiKey) -> ChatReply:
    try:
        completion = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PassingFailure(f"answered with no chat completion: {error}") from error
    if not completion.choices:
        raise PassingFailure("answered with no chat completion: `choices` is empty")
    choice = completion.choices[0]
    said = key.hide_in_speech(choice.message.content or "")
    calls = tuple(_calls(choice.message.tool_calls, key))
    counts = [_count(completion.usage, of) for of in ("prompt_tokens", "completion_tokens")]
    return ChatReply(said, choice.finish_reason == "length", calls, *counts)


def _count(usage: Any, of: str) -> int | None:
    """A count that an endpoint gives; what is none is as good as left out."""
    count = usage.get(of) if isinstance(usage, dict) else None
    return count if type(count) is int and 0 <= count < 2**53 else None


def _calls(calls: Any, key: ApiKey) -> Iterator[ChatCall]:
    """Calls, without the key that a model could have been made to repeat; what is none is left out.

    Some servers give arguments as an object, and no id.
    """
    for value in calls if isinstance(calls, list) else ():
        function = value.get("function") if isinstance(value, dict) else None
        if not isinstance(function, dict) or not isinstance(name := function.get("name"), str):
            continue
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else _as_text(arguments)
        hidden = ChatFunction(key.hide_in_speech(name), key.hide_in_speech(text))
        yield ChatCall(str(value.get("id") or ""), hidden)


def _as_text(arguments: Any) -> str:
    return "" if arguments is None else msgspec.json.encode(arguments).decode()


def strip_reasoning(text: str) -> str:
    """What a reasoning model says aloud.

    Example:
        >>> strip_reasoning("<think>Should I stop? ###STOP###</think>Yes, please.")
        'Yes, please.'
    """
    *closed, last = _THINK_END.split(text)
    aloud: list[str] = []
    for part in closed:
        before, *reasoning = _THINK.split(part, maxsplit=1)
        # Templates that open the block themselves leave only its end; a cap leaves only its start.
        if reasoning:
            aloud.append(before)
        else:
            aloud.clear()
    aloud.append(_THINK.split(last, maxsplit=1)[0])
    return "".join(aloud).strip()
