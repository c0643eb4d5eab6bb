"""What a text says, whatever the spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.spoken import MAX_CHARS, says, tokens


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("It costs $1,234.50.", "1234.5"),
        ("It costs 1234.5 dollars.", "$1,234.50"),
        ("It costs USD 1,234.50", "$1234.5"),
        ("It costs $ 5", "5 USD"),
        ("minus -$5.00", "-5"),
        ("Come on March 3rd 2026.", "2026-03-03"),
        ("Come on March 3rd, 2026!", "2026-03-03"),
        ("Come on the 3rd of March 2026.", "2026/03/03"),
        ("Come on 3 Mar 2026.", "March 3, 2026"),
        ("Come on 3/13/2026.", "2026-03-13"),
        ("Come on 13/3/2026.", "2026-03-13"),
        ("Come on 13.3.2026.", "2026-03-13"),
        ("Since 2026-03-03T10:00", "3 March"),
        ("Refund:  ISSUED, today", "refund issued"),
        ("Don’t worry", "don't"),
        ("10 percent off", "10%"),
        ("ＦＵＬＬ width １２", "full width 12"),
        ("需要五天。", "五天"),
        ("5.", "5.00"),
    ],
)
def test_spellings_of_the_same(text: str, wanted: str) -> None:
    assert says(text, wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("It costs 15 dollars.", "5 dollars"),
        ("It costs 5.50", "5"),
        ("It costs €5", "$5"),
        ("It costs 5", "-5"),
        ("Come on March 3rd.", "2026-03-03"),
        ("Come on March 3rd 2025.", "2026-03-03"),
        ("Come on March 13th 2026.", "March 3 2026"),
        ("There is no 2026-02-30.", "February 30"),
        ("order W41731", "W4173"),
        ("number 007", "7"),
        ("restart", "art"),
        ("refund was not issued", "refund issued"),
        ("anything", "..."),
    ],
)
def test_what_is_not_the_same(text: str, wanted: str) -> None:
    assert not says(text, wanted)


@given(st.text(max_size=60))
def test_any_text_says_itself_whatever_surrounds_it(text: str) -> None:
    if tokens(text):
        assert says(text, text)
        assert says(f"hello! | {text} | bye", text)


@given(st.text(alphabet="0123456789/.-,$ ()marjun3rdth%'", max_size=60))
def test_any_text_of_dates_and_numbers_can_be_read(text: str) -> None:
    for token in tokens(text):
        assert token[0] in ("word", "number", "date", "minus")


def test_what_lies_beyond_the_cap_is_not_looked_at() -> None:
    assert says("a " * (MAX_CHARS // 2 - 1) + "b", "b")
    assert not says("a " * (MAX_CHARS // 2) + "b", "b")
