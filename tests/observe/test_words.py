"""Words of errors, as they may be shown and kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.observe.words import _LOOKED_AT, MAX_CHARS, plain_words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cannot reach https://me:pw@host:8000/v1", "cannot reach https://***@host:8000/v1"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer ***"),
        (
            "headers {'authorization': 'Basic dXNlcjpwdw=='}",
            "headers {'authorization': 'Basic ***'}",
        ),
        ("GET /v1?api_key=abc123&n=1", "GET /v1?api_key=***&n=1"),
        ('{"api-key": "abc 1"}', '{"api-key": "*** 1"}'),
        ("PASSWORD=hunter2 failed", "PASSWORD=*** failed"),
        ("key sk-abcdefghijk was refused", "key *** was refused"),
        ("asked for max_tokens: 64, got 65", "asked for max_tokens: 64, got 65"),
        ("a\x1b[31mred\x07\r\n  line", "a [31mred line"),
        ("", ""),
    ],
)
def test_what_looks_like_a_secret_or_commands_a_terminal_is_taken_out(text: str, said: str) -> None:
    assert plain_words(text) == said


def test_what_is_known_to_be_secret_is_taken_out_wherever_it_stands() -> None:
    assert plain_words("x=ABCDEF;/ABCDEF/", ["ABCDEF", ""]) == "x=***;/***/"


@given(text=st.text(max_size=1000))
def test_any_text_becomes_one_short_printable_line(text: str) -> None:
    said = plain_words(text)
    assert said.isprintable()
    assert len(said) <= MAX_CHARS


def test_a_key_that_is_cut_in_two_is_not_said_in_part() -> None:
    said = plain_words(
        " " * (_LOOKED_AT - 20) + "api_key = sk-abcdefghijklmnopqrstuvwxyz" + "b" * 9_999
    )
    assert "sk-" not in said
