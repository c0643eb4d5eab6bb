"""Names, descriptions and answers that would command a terminal are shown, and command nothing."""

from __future__ import annotations

import io
import logging
import os
from pathlib import Path

import pytest
from bad_input import InProcess
from rich.console import Console
from spec_files import spoil

from muarl.cli._display import LiveProgress, PlainProgress
from muarl.cli._printable import in_one_line, printable
from muarl.cli._standing import Course
from muarl.cli._telling import remark, tell
from muarl.observe import Counters

HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m"
COMMANDS = [chr(code) for code in (*range(9), *range(11, 32), 127, *range(128, 160))] + ["\u202e"]

PEEK = """\
    @server.tool(name=NAME + HOSTILE, description=HOSTILE)
    async def peek() -> str:
        return HOSTILE

    return server"""


@pytest.fixture
def shop(run_file: Path) -> Path:
    """A sound shop all whose foreign text is hostile."""
    folder = run_file.parent
    tools = folder / "tools.py"
    text = tools.read_text().replace("    return server", PEEK)
    text = text.replace('return "ok"', 'return "ok" + HOSTILE')
    tools.write_text(f"NAME = 'peek'\nHOSTILE = {HOSTILE!r}\n{text}")
    # YAML spells what is not printable.
    written = "".join(f"\\u{ord(sign):04x}" if not sign.isprintable() else sign for sign in HOSTILE)
    spoil(folder / "tasks.yaml", "goal: Cancel W1.", f'goal: "Cancel W1. {written}"')
    spoil(folder / "domain.yaml", "summary: A shop.", f'summary: "{written}"')
    return folder


def harmless(text: str) -> bool:
    return not any(sign in text for sign in COMMANDS)


@pytest.mark.parametrize(
    "command",
    [
        ["check", "shop"],
        ["check", "shop", "--json"],
        ["check", "shop", "--offline"],
        ["rollout", "shop/run.yaml", "--expert", "--episodes", "4", "--out", "out"],
        ["rollout", "shop/run.yaml", "--dry-run"],
        ["play", "shop/cancel-1", "--calls"],
        ["play", "shop/cancel-1", "--as", "agent"],
        ["init", "a\x1b[2Jb/c"],
        ["check", "no\x1b[2J"],
        ["check", "--limit", "\x1b[2J", "shop"],
        ["check", "shop", "--set", "a\x1b[2J=1"],
        ["\x1b[2J"],
    ],
)
def test_what_a_server_or_a_file_says_commands_no_terminal(
    muarl: InProcess, shop: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    with open(os.devnull) as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        ended = muarl(*command)
    said = ended.out + "".join(f"{line}\n" for line in ended.lines)
    assert said
    assert harmless(said), said
    assert "Traceback" not in said


def test_what_a_file_names_commands_no_terminal_where_it_is_refused(
    muarl: InProcess, shop: Path
) -> None:
    for file, good in (("tasks.yaml", "id: cancel-1"), ("domain.yaml", "id: shop")):
        before = (shop / file).read_text()
        spoil(shop / file, good, 'id: "x\\e[2J\\u202e"')
        ended = muarl("check", "shop", "--offline")
        ended.refuses(2, "\\x1b[2J")
        assert harmless("".join(ended.lines))
        (shop / file).write_text(before)


def test_a_name_with_a_line_end_begins_no_line(muarl: InProcess, shop: Path) -> None:
    spoil(shop / "tools.py", "NAME = 'peek'", "NAME = 'x\\nsound\\nmuarl: all is well'")
    lines = muarl("check", "shop").out.splitlines()
    assert any("x\\nsound\\nmuarl: all is well" in line for line in lines)
    assert not any(line.startswith("muarl: all is well") for line in lines)


def test_progress_in_a_log_and_on_a_screen_commands_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain = PlainProgress(Course(Counters()))
    plain.phase(HOSTILE, 3)
    plain.note(HOSTILE)
    tell(HOSTILE)
    remark(HOSTILE)
    assert harmless(capsys.readouterr().err)
    screen = io.StringIO()
    live = LiveProgress(Course(Counters()), Console(file=screen, force_terminal=True))
    with live.view.shown():
        live.phase(HOSTILE + "[red]", 3)
        live.note(HOSTILE)
    assert "\x1b[2J" not in screen.getvalue()
    assert "\x1b]0;" not in screen.getvalue()
    assert "[red]" in screen.getvalue()


def test_what_a_library_logs_commands_nothing(muarl: InProcess, shop: Path) -> None:
    spoil(
        shop / "tools.py",
        "def serve(world):",
        f"import logging\nlogging.getLogger('theirs').warning({HOSTILE!r})\n\n\ndef serve(world):",
    )
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, []
    try:
        ended = muarl("check", "shop")
    finally:
        root.handlers = handlers
    said = "\n".join(ended.lines)
    assert "theirs: " in said
    assert harmless(said)


def test_text_is_spelled_so_that_it_can_be_read() -> None:
    assert printable("a\x1b[2J\tb\n\u202e") == "a\\x1b[2J\tb\n\\u202e"
    assert in_one_line("a\nb") == "a\\nb"
