"""Upstream's Python is read, never run."""

from __future__ import annotations

import ast

import pytest

from muarl.compat.python_text import described, functions, lists, literal, parsed, template, texts
from muarl.errors import SetupError


def value(source: str) -> object:
    return literal(ast.parse(source, mode="eval").body)


def test_literals_and_calls_with_keywords_are_read():
    source = "[Task(user='a' 'b', actions=[Action(name='x', kwargs={'n': [-1, 2.5, None]})])]"
    assert value(source) == [
        {"user": "ab", "actions": [{"name": "x", "kwargs": {"n": [-1, 2.5, None]}}]}
    ]
    assert value("'a' + 'b'") == "ab"


@pytest.mark.parametrize(
    "source",
    ["open('/etc/passwd').read()", "os.environ", "[x for x in y]", "f(1)", "2 ** 9", "b'x'", "x"],
)
def test_what_is_no_literal_is_refused_with_its_line(source):
    with pytest.raises(ValueError, match=r"line 1: .* is no literal"):
        value(source)


def test_a_deep_nest_is_refused():
    with pytest.raises((ValueError, SetupError), match=r"nested too deep|no Python"):
        literal(parsed("x = " + "[" * 150 + "]" * 150, "x.py").body[0].value)


def test_what_is_no_python_is_an_error_that_names_the_file():
    with pytest.raises(SetupError, match=r"tasks\.py: no Python"):
        parsed("a b", "tasks.py")


def test_names_at_the_top_are_found_with_lists_and_texts():
    module = parsed('A = [1]\nB: list = [2]\nC = " x "\nD = """ y """.strip()\nE = f()', "x.py")
    assert [name for name, _ in lists(module)] == ["A", "B"]
    assert texts(module) == {"C": " x ", "D": "y"}


def test_a_prompt_keeps_its_slots():
    module = parsed(
        'class A:\n  def f(self, b):\n    c = f"{b}"\n    return f"say {b} twice"', "x.py"
    )
    ((name, function),) = functions(module)
    assert name == "A.f"
    assert template(function) == "say {b} twice"


def test_a_docstring_says_what_a_function_and_its_parameters_are():
    docstring = (
        "Looks.\nIn a drawer.\n\nArgs:\n    key: Which one,\n      as written: a word.\n"
        "    far (int): How far.\n\nReturns:\n    Something: or nothing."
    )
    assert described(docstring) == (
        "Looks.\n\nIn a drawer.",
        {"key": "Which one,\nas written: a word.", "far": "How far."},
    )
