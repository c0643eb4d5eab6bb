"""Lines from a terminal, a pipe or a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from muarl.cli._lines import Lines

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with suppress(OSError):  # the test closed it
            os.close(end)


async def test_lines_come_as_they_are_written_however_they_are_cut(pipe: tuple[int, int]) -> None:
    lines = Lines(pipe[0])
    os.write(pipe[1], b"one\ntw")
    assert await lines.next() == "one"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.lowlevel.checkpoint)
        os.write(pipe[1], b"o\r\n\n\xff end")
        assert await lines.next() == "two"
    os.close(pipe[1])
    assert [line async for line in lines] == ["", "\ufffd end"]
    assert await lines.next() is None


async def test_a_file_and_a_device_have_lines_too(tmp_path: Path) -> None:
    (tmp_path / "script").write_bytes(b"a\nb")
    with (tmp_path / "script").open("rb") as file:
        assert [line async for line in Lines(file.fileno())] == ["a", "b"]
    nothing = os.open(os.devnull, os.O_RDONLY)
    assert await Lines(nothing).next() is None
    os.close(nothing)
    assert await Lines(None).next() is None


async def test_cancelled_while_it_waits_it_loses_nothing(pipe: tuple[int, int]) -> None:
    lines = Lines(pipe[0])
    os.write(pipe[1], b"half")
    with anyio.move_on_after(0.05):
        await lines.next()
    os.write(pipe[1], b" and half\n")
    assert await lines.next() == "half and half"
