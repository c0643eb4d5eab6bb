"""YAML 1.2 as plain data with places; hostile text is refused with one clear problem."""

from __future__ import annotations

from typing import Any

import pytest
from spec_files import said

from muarl.errors import SpecError
from muarl.spec.document import MAX_DEPTH, Place, parse_document


def read(text: str) -> Any:
    root, problems = parse_document(text, "x.yaml")
    assert problems == []
    return root.data


def refused(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        parse_document(text, "x.yaml")
    return said(caught.value)


def noted(text: str) -> list[str]:
    _, problems = parse_document(text, "x.yaml")
    return said(SpecError(problems))


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("12:30", "12:30"),
        ("yes", "yes"),
        ("off", "off"),
        ("2024-01-01", "2024-01-01"),
        ("1_000", "1_000"),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("-3", -3),
        ("1.0", 1.0),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("true", True),
        ("~", None),
        ("", None),
        ("null", None),
        ("'12'", "12"),
        ('"true"', "true"),
        ("W1", "W1"),
        ('"\\ud83d\\ude00"', "😀"),
        ("|\n  two\n  lines", "two\nlines"),
    ],
)
def test_a_scalar_means_what_yaml_1_2_says(scalar: str, value: Any) -> None:
    found = read(f"a: {scalar}")["a"]
    assert found == value
    assert type(found) is type(value)


def test_every_key_and_value_has_a_place() -> None:
    root, _ = parse_document("a:\n  - x\n  - {b: 1, c: 2}\n", "x.yaml")
    assert root.find(("a", 1, "c")).place == Place("x.yaml", 3, 15)
    assert root.key_place(("a", 1, "c")) == Place("x.yaml", 3, 12)
    assert root.key_place(("a", 0)) == Place("x.yaml", 2, 5)
    assert root.find(("a", 1, "nowhere", "c")).place == Place("x.yaml", 3, 5)


def test_an_alias_repeats_its_anchor() -> None:
    assert read("a: &x {n: 1}\nb: [*x, *x]") == {"a": {"n": 1}, "b": [{"n": 1}, {"n": 1}]}


def test_the_first_of_a_duplicate_key_counts_and_the_second_is_a_problem() -> None:
    root, problems = parse_document("a: 1\nb: 2\na: 3\n", "x.yaml")
    assert root.data == {"a": 1, "b": 2}
    assert said(SpecError(problems)) == ["3:1: duplicate key 'a'; first given on line 1"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: !!python/object:os.system {}", "1:4: tag 'tag:yaml.org,2002:python/object:os.system'"),
        ("a: !thing x", "1:4: tag '!thing' is not allowed; write plain data"),
        ("1: x", "1:1: keys are text; put it in quotes: '1'"),
        ("? [a]\n: x", "1:3: keys are text, not lists or mappings"),
        ("a: &a {b: 1}\nc:\n  <<: *a", "3:3: merge keys (<<) are not YAML 1.2; write the fields"),
        ("a: .nan", "1:4: .nan is not a finite number; write a finite one, or quote it as text"),
        ("a: [-.inf]", "1:5: -.inf is not a finite number"),
        ("a: 1e999", "1:4: 1e999 is not a finite number"),
        ("a: 9223372036854775808", "1:4: 9223372036854775808 does not fit into 64 bits"),
        (f"a: {'9' * 5000}", f"1:4: {'9' * 40} does not fit into 64 bits"),
        ('a: "\\ud800"', "1:4: half of a surrogate pair is not a character"),
        ("%YAML 1.1\n---\na: 1", "2:1: specs are YAML 1.2; remove the %YAML line"),
    ],
)
def test_what_a_spec_cannot_hold_is_noted_at_its_place(text: str, problem: str) -> None:
    (message,) = noted(text)
    assert message.startswith(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [1", "1:6: not valid YAML: while parsing a flow sequence that begins on line 1: "),
        ("a: 1\n b: 2", "2:3: not valid YAML: mapping values are not allowed here; indent it like"),
        ("a:\n\tb: 1", "2:1: not valid YAML: "),
        ("a: 1\n---\nb: 2", "2:1: a second document begins here; a spec file holds one"),
        ("a: *x", "1:4: alias *x names no anchor that ends before it"),
        ("a: &x [*x]", "1:8: alias *x names no anchor that ends before it"),
        ("a: b\0c", "1:5: the character '\\x00' is not allowed in YAML"),
        ('a: "\\UFFFFFFFF"', "1:2: not valid YAML: what follows holds an escape of no character: "),
        ("[" * 70 + "]" * 70, f"1:65: nested more than {MAX_DEPTH} levels deep"),
    ],
)
def test_what_cannot_be_read_is_refused_with_one_problem(text: str, problem: str) -> None:
    (message,) = refused(text)
    assert message.startswith(problem)


def test_a_tab_in_the_indentation_says_so() -> None:
    assert refused("a:\n\tb: 1")[0].endswith("indent with spaces, not tabs")


def test_a_bomb_of_aliases_is_refused_before_it_expands() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    (message,) = refused("\n".join(lines))
    assert "aliases expand to more than 2,000,000 values" in message


def test_aliases_cannot_nest_deeper_than_text_can() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 70)]
    (message,) = refused("\n".join(lines))
    assert "aliases expand to more than 64 levels" in message
