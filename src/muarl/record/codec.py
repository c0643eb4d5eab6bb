"""Episodes as bytes (msgpack), and back.

What a model or a server wrote may hold values that msgpack has no form for: half of a surrogate
pair, an integer beyond 64 bits, a hundred nested lists. Such a value never costs the episode: it
is stored as text that says what it was.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from muarl.errors import RecordError
from muarl.record.episode import RECORD_VERSION, Episode, EpisodeHead

_log = logging.getLogger(__name__)

T = TypeVar("T")

# Far above any tool argument of sense, far below where encoder and decoder give up.
_MAX_NESTING = 100

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Episode)


_head_decoder = msgspec.msgpack.Decoder(EpisodeHead)


class _Version(msgspec.Struct):
    """The one field whose meaning no version of the record changes."""

    record_version: int


_version_decoder = msgspec.msgpack.Decoder(_Version)


def encode_episode(episode: Episode) -> bytes:
    """An episode as msgpack."""
    try:
        if not any(_is_deep(value) for value in _foreign(episode)):
            return _encoder.encode(episode)
        problem = "nested too deeply"
    except (UnicodeEncodeError, OverflowError) as error:
        problem = str(error)
    _log.warning("stored as text what msgpack cannot hold: episode=%s %s", episode.key, problem)
    return _encoder.encode(_storable(episode))


def decode_episode(data: bytes) -> Episode:
    """The episode that `encode_episode` wrote.

    Raises:
        RecordError: The record is of a newer version, or no episode.
    """
    return _decode(data, _decoder)


def decode_head(data: bytes) -> EpisodeHead:
    """What identifies the episode that `encode_episode` wrote, at a fraction of the cost.

    Raises:
        RecordError: The record is of a newer version, or no episode.
    """
    return _decode(data, _head_decoder)


def _decode(data: bytes, decoder: msgspec.msgpack.Decoder[T]) -> T:
    try:
        version = _version_decoder.decode(data).record_version
        if version > RECORD_VERSION:
            raise RecordError(
                f"the record has version {version}; this muarl reads up to version "
                f"{RECORD_VERSION}. Upgrade muarl to read it"
            )
        return decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise RecordError(f"the record is not an episode: {problem}") from problem


def _foreign(episode: Episode) -> Iterator[Any]:
    """Every value whose shape a model or a server chose."""
    changes = list(episode.changes)
    for turn in episode.turns:
        yield from (call.arguments for call in turn.calls)
        changes += turn.changes
    for reply in episode.replies():
        yield from (call.arguments for call in reply.calls)
        changes += reply.changes
    for change in changes:
        yield change.before
        yield change.after


def _is_deep(value: Any, depth: int = 0) -> bool:
    """True if a decoder that is itself deep in the stack might not follow."""
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return False
    return depth == _MAX_NESTING or any(_is_deep(item, depth + 1) for item in value)


def _storable(value: Any, depth: int = 0) -> Any:
    """`value` as plain data that msgpack can hold."""
    if isinstance(value, str):
        # U+FFFD where half of a surrogate pair stood.
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return hex(value)
    if depth > _MAX_NESTING:
        return f"(a {type(value).__name__}, nested too deeply to store)"
    if isinstance(value, msgspec.Struct):
        fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
        return {name: _storable(item, depth + 1) for name, item in fields}
    if isinstance(value, Mapping):
        return {str(_storable(key)): _storable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_storable(item, depth + 1) for item in value]
    return value
