"""What a model wrote never costs an episode its place in the journal."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.errors import RecordError
from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import PredicateResult, Turn, changes_of
from muarl.record.codec import decode_episode, decode_head, encode_episode
from muarl.testing import build_episode
from muarl.world import Change

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def calling(arguments: dict[str, Any], content: str = "") -> Any:
    message = Message("assistant", content, (ToolCall("c1", "find", arguments),))
    return build_episode(turns=[Turn(message, 0, 12, 17, "stop", 0)])


def arguments_of(episode: Any) -> Any:
    return episode.turns[0].message.tool_calls[0].arguments


@settings(deadline=None)
@given(arguments=st.dictionaries(st.text(), JSON, max_size=4), text=st.text())
def test_any_json_in_a_call_survives(arguments: dict[str, Any], text: str) -> None:
    episode = calling(arguments, text)
    got = decode_episode(encode_episode(episode))
    if all(-(2**63) <= n < 2**64 for n in integers(arguments)):
        assert got == episode
    assert got.samples == episode.samples


def integers(value: Any) -> list[int]:
    if isinstance(value, int):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [n for item in items for n in integers(item)]


def test_half_a_surrogate_pair_is_stored_as_the_replacement_character() -> None:
    arguments = json.loads('{"\\ud83d": "a\\ud83d", "whole": "\\ud83d\\ude00"}')
    got = decode_episode(encode_episode(calling(arguments, "\udc00.")))
    assert arguments_of(got) == {"\ufffd": "a\ufffd", "whole": "\U0001f600"}
    assert got.turns[0].message.content == "\ufffd."


def test_an_integer_beyond_64_bits_is_stored_as_its_hexadecimal_text() -> None:
    got = decode_episode(encode_episode(calling({"n": [2**64, -(2**63) - 1, 2**64 - 1]})))
    assert arguments_of(got) == {
        "n": ["0x10000000000000000", "-0x8000000000000001", 18446744073709551615]
    }


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [101, 900, 20_000])
def test_nesting_that_a_reader_might_not_follow_is_cut(depth: int) -> None:
    episode = calling({"list": nested(depth)})
    episode.changes = [Change("a.b", {"k": nested(depth)}, None, "removed")]
    got = decode_episode(encode_episode(episode))
    assert "(a list, nested too deeply to store)" in json.dumps(arguments_of(got))
    assert "(a list, nested too deeply to store)" in json.dumps(got.changes[0].before)
    assert got.samples == episode.samples


def test_nesting_of_any_sense_is_kept() -> None:
    episode = calling({"list": nested(99)})
    assert decode_episode(encode_episode(episode)) == episode


def test_the_version_is_in_every_record() -> None:
    record = msgspec.msgpack.decode(encode_episode(build_episode()))
    assert record["record_version"] == 6


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x80", msgspec.msgpack.encode({"a": 1})])
def test_what_is_no_episode_is_a_record_error(data: bytes) -> None:
    with pytest.raises(RecordError, match="not an episode"):
        decode_episode(data)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e300, -0.5, 1.5])
def test_a_reward_or_score_that_is_no_share_is_a_record_error(number: float) -> None:
    found = [PredicateResult("p", number, "")]
    for fields in ({"reward": number}, {"rewards": found}, {"metrics": found}):
        data = encode_episode(build_episode(**fields))
        with pytest.raises(
            RecordError, match=r"not an episode: Expected `float` .*(reward|metric)"
        ):
            decode_episode(data)
    with pytest.raises(RecordError, match=r"not an episode: Expected `float` .*reward"):
        decode_head(encode_episode(build_episode(reward=number)))


def test_a_record_of_version_5_is_read_and_knows_only_what_calls_changed_together() -> None:
    results = [ToolResult("1", "a", "o"), ToolResult("2", "b", "o")]
    changes = [Change("x", 1, 2, "changed")]
    message = Message("assistant", "", (ToolCall("1", "a"), ToolCall("2", "b")))
    turn = Turn(message, 0, 0, 0, "stop", 0, results=results, changes=changes)
    record = msgspec.msgpack.decode(encode_episode(build_episode(turns=[turn])))
    record["record_version"] = 5
    (got,) = decode_episode(msgspec.msgpack.encode(record)).turns
    assert [changes_of(got, call) for call in range(3)] == [None, None, None]
    got.results.pop()
    assert changes_of(got, 0) == changes, "of one call alone it is known"


def test_what_each_call_changed_is_stored() -> None:
    message = Message("assistant", "", (ToolCall("1", "a"), ToolCall("2", "b")))
    turn = Turn(message, 0, 0, 0, "stop", 0)
    turn.answered(ToolResult("1", "a", "o"), [Change("x", 1, 2, "changed")])
    turn.answered(ToolResult("2", "b", "o"), [])
    (got,) = decode_episode(encode_episode(build_episode(turns=[turn]))).turns
    assert [changes_of(got, call) for call in range(3)] == [turn.changes, [], None]


def test_a_newer_version_is_named_before_anything_else_is_looked_at() -> None:
    data = msgspec.msgpack.encode({"record_version": 7, "unheard_of": True})
    with pytest.raises(RecordError, match="version 7; this muarl reads up to version 6"):
        decode_episode(data)
