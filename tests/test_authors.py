"""What an author's code raises is said of it, with its line; what a person types is never swallowed."""

from __future__ import annotations

import functools
import os
import signal
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muarl.authors import MAX_CHARS, PACKAGES, RAISED, blame, let_others_pass, place
from muarl.world import World

SOURCE = """\
import json

def inside():
    raise LookupError("no row")

def wrapped():
    try:
        inside()
    except LookupError as error:
        raise RuntimeError("no order\\nby that number") from error

def library():
    json.loads("{")

def world(orders):
    return orders["W9"]

def stop():
    raise KeyboardInterrupt

def framework():
    json.wrapping()
"""


@pytest.fixture
def hers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Python of a domain in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(SOURCE)
    module = types.ModuleType(f"{PACKAGES}shop_1234.shop")
    exec(compile(SOURCE, tmp_path / "shop.py", "exec"), vars(module))  # noqa: S102
    return module


def raised(call: Callable[..., Any], *arguments: Any) -> BaseException:
    try:
        call(*arguments)
    except BaseException as error:  # noqa: BLE001
        return error
    pytest.fail("nothing was raised")


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("inside", [], "LookupError: no row (shop.py:4, in inside)"),
        ("wrapped", [], "RuntimeError: no order by that number (shop.py:10, in wrapped)"),
        ("world", [World({})], "KeyError: 'W9' (shop.py:16, in world)"),
        ("stop", [], "KeyboardInterrupt (shop.py:19, in stop)"),
    ],
)
def test_the_line_is_the_authors_whoever_raised(
    name: str, arguments: list[Any], says: str, hers: types.ModuleType
) -> None:
    assert blame(raised(getattr(hers, name), *arguments)) == says


def test_a_line_of_hers_stands_before_one_of_a_library(hers: types.ModuleType) -> None:
    assert place(raised(hers.library)) == " (shop.py:13, in library)"


def test_what_a_framework_wraps_is_said_with_the_line_of_hers_that_called_it(
    hers: types.ModuleType,
) -> None:
    def wrapping() -> None:
        try:
            raise LookupError("refused")
        except LookupError as error:
            raise RuntimeError("the step failed") from error

    hers.json = types.SimpleNamespace(wrapping=wrapping)
    said = blame(raised(hers.framework))
    assert said == "LookupError: refused (shop.py:22, in framework)"


def test_code_that_does_not_compile_is_named_by_its_own_line(tmp_path: Path) -> None:
    error = raised(compile, "x = 1\ndef (", str(tmp_path / "shop.py"), "exec")
    assert blame(error) == f"SyntaxError: invalid syntax ({tmp_path / 'shop.py'}:2)"


def test_what_was_never_raised_has_no_place() -> None:
    assert blame(ValueError("odd")) == "ValueError: odd"


def survives(call: Callable[[], Any]) -> bool:
    """Whether a boundary takes what is raised for the author's."""
    try:
        call()
    except RAISED as error:
        let_others_pass(error)
        return True
    pytest.fail("nothing was raised")


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(10_000_000):  # the signal is heard between two instructions
        pass


class Handler:
    def hear(self, number: int, frame: types.FrameType | None, extra: int = 0) -> None:
        self.cry()

    def cry(self) -> None:
        raise KeyboardInterrupt


HANDLERS: list[Any] = [
    signal.default_int_handler,
    Handler().hear,
    functools.partial(Handler().hear, extra=1),
]


@pytest.fixture(params=range(len(HANDLERS)))
def handled(request: pytest.FixtureRequest) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, HANDLERS[request.param])
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("handled")
def test_a_raise_in_her_code_is_hers_and_ctrl_c_is_not(hers: types.ModuleType) -> None:
    assert survives(hers.stop)
    assert survives(lambda: sys.exit(3))
    with pytest.raises(KeyboardInterrupt):
        survives(press_ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        survives(lambda: signal.raise_signal(signal.SIGINT))


def test_the_end_of_a_coroutine_is_nobodys_error() -> None:
    @types.coroutine
    def switch() -> Iterator[None]:
        yield

    async def called() -> None:
        try:
            await switch()
        except RAISED as error:
            let_others_pass(error)
            pytest.fail("taken for the author's")

    coroutine = called()
    coroutine.send(None)
    coroutine.close()


@pytest.mark.usefixtures("handled")
def test_of_a_group_only_what_is_not_hers_passes(hers: types.ModuleType) -> None:
    typed = raised(press_ctrl_c)
    mixed = BaseExceptionGroup("both", [raised(hers.inside), typed, raised(hers.stop)])
    with pytest.raises(KeyboardInterrupt) as passed:
        let_others_pass(mixed)
    assert passed.value is typed
    let_others_pass(BaseExceptionGroup("hers", [raised(hers.stop), raised(hers.inside)]))


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Mute(), "Mute: (its message cannot be had: ValueError)"),
        (RuntimeError("a" * 5_000_000), f"RuntimeError: {'a' * MAX_CHARS}…"),
    ],
    ids=["none", "long"],
)
def test_whatever_an_error_says_is_said_shortly(error: Exception, said: str) -> None:
    assert blame(error) == said
