"""Problems alike stand together, and none is left out without being counted."""

from __future__ import annotations

from muarl.cli._problems import in_lines
from muarl.errors import Problem


def of_task(number: int, message: str) -> Problem:
    return Problem("d.yaml", number, 1, f"task 'cancel-{number}': {message}")


def test_what_differs_only_in_task_place_and_numbers_is_alike() -> None:
    problems = [of_task(n, f"no order W{n}") for n in range(1, 6)]
    problems.insert(2, Problem("d.yaml", 9, 9, "unknown field 'x'"))
    assert in_lines(problems, "; see --json") == [
        "d.yaml:1:1: task 'cancel-1': no order W1",
        "d.yaml:2:1: task 'cancel-2': no order W2",
        "d.yaml:3:1: task 'cancel-3': no order W3",
        "  and 2 more like these; see --json",
        "d.yaml:9:9: unknown field 'x'",
    ]


def test_what_differs_in_words_is_not_alike() -> None:
    problems = [of_task(1, f"unknown tool {name!r}") for name in "abcdefgh"]
    assert in_lines(problems) == [str(problem) for problem in problems]


def test_many_kinds_are_cut_and_counted() -> None:
    problems = [of_task(1, f"unknown tool {chr(97 + n % 26)!r}") for n in range(52)]
    lines = in_lines(problems)
    assert len(lines) == 2 * 20 + 1
    assert lines[-1] == "and 12 more problems of other kinds"
