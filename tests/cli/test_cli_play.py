"""`muarl play`: a person as the user or as the agent, her lines from a pipe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from bad_input import SOURCE, Ending, InProcess

Play = Callable[..., Ending]


@pytest.fixture
def play(
    muarl: InProcess, run_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Play]:
    """Plays the small shop with the given lines on stdin."""
    with ExitStack() as files:

        def with_lines(*arguments: str, lines: str) -> Ending:
            script = tmp_path / "lines"
            script.write_text(lines, encoding="utf-8")
            stdin = files.enter_context(script.open(encoding="utf-8"))
            monkeypatch.setattr(sys, "stdin", stdin)
            return muarl("play", *arguments)

        yield with_lines


def test_as_the_user_she_talks_with_the_expert_and_sees_what_it_earned(play: Play) -> None:
    ended = play("shop/cancel-1", "--calls", lines="please cancel W1\nYes.\n/bye thanks\n")
    assert ended.code == 0, ended.lines
    assert "Cancel W1." in ended.out
    assert "you: please cancel W1\n" in ended.out
    assert '[cancel {"order_id": "W1"}: ' in ended.out
    assert "the dialogue is completed; reward 1\n" in ended.out
    assert "  gold_world: 1; " in ended.out
    assert "  orders.W1.status: 'pending' -> 'cancelled'\n" in ended.out


def test_without_calls_she_sees_what_a_user_sees(play: Play) -> None:
    ended = play("shop/cancel-1", lines="please cancel W1\n/bye\n")
    assert ended.code == 0
    assert "[cancel" not in ended.out


def test_the_end_of_her_lines_is_the_end_of_the_dialogue(play: Play) -> None:
    ended = play("shop/cancel-1", lines="")
    assert ended.code == 0
    assert "the dialogue is abandoned; reward 0\n" in ended.out
    assert "nothing is changed in the world\n" in ended.out


def test_as_the_agent_she_is_given_what_a_model_is_given(play: Play) -> None:
    lines = '/call cancel {"order_id": "W1"}\nAnything else?\n'
    ended = play("shop/cancel-1", "--as", "agent", lines=lines)
    assert ended.code == 0, ended.lines
    assert "system: " in ended.out
    assert '"order_id"' in ended.out
    assert "cancel: " in ended.out
    assert "reward 1\n" in ended.out


def test_an_agent_who_leaves_is_not_scored(play: Play) -> None:
    ended = play("shop/cancel-1", "--as", "agent", lines="/quit\n")
    assert ended.code == 0
    assert ended.out.endswith("you left before the end: nothing is scored\n")


def test_the_same_seed_draws_the_same_task_and_user(play: Play) -> None:
    first, again = (play("shop", "--as", "agent", "--seed", "3", lines="/q\n") for _ in range(2))
    assert first == again


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["shop/cancel-9"], ["shop/domain.yaml", "no task 'cancel-9'", "did you mean 'cancel-"]),
        (["shop", "--persona", "plane"], ["no persona 'plane'", "did you mean 'plain'?"]),
        (["nowhere"], ["nowhere"]),
        (["shop", "--run", "nowhere"], ["no run in nowhere", "muarl train"]),
    ],
)
def test_what_is_not_there_is_named(play: Play, arguments: list[str], words: list[str]) -> None:
    play(*arguments, lines="").refuses(2, *words)


def test_without_an_expert_she_is_told_whom_else_to_talk_with(play: Play) -> None:
    domain = Path("shop/domain.yaml")
    domain.write_text(domain.read_text().replace("expert: expert.py:Expert\n", ""))
    ending = play("shop", lines="hello\n")
    ending.refuses(2, "names no `expert`", "--run", "--as agent")
    assert ending.out == ""


def test_a_terminal_obeys_nothing_that_is_said(play: Play) -> None:
    expert = Path("shop/expert.py")
    expert.write_text(expert.read_text() + "\n\nBELL = '\\x1b[2J\\nuser: me'\n")
    text = expert.read_text()
    at = text.index("    def act(self")
    end = text.index("\n", text.index(":\n", at)) + 1
    expert.write_text(f"{text[:end]}        return Message('assistant', BELL)\n{text[end:]}")
    ended = play("shop/cancel-1", lines="hello\n\x1b]0;x\x07\n/q\n")
    assert ended.code == 0, ended.lines
    assert "\x1b" not in ended.out
    assert "\x07" not in ended.out
    assert "agent: \\x1b[2J\n  user: me\n" in ended.out


def test_ctrl_c_ends_it_with_130(run_file: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "muarl.cli", "play", "shop/cancel-1"],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as playing:
        assert playing.stdin is not None
        assert playing.stdout is not None
        playing.stdin.write("hello\n")
        playing.stdin.flush()
        while not playing.stdout.readline().startswith("agent: "):
            pass  # it now waits, or is about to, for the next line
        playing.send_signal(signal.SIGINT)
        _, errors = playing.communicate(timeout=60)
    assert playing.returncode == 130
    assert errors == "muarl: interrupted\n"


def test_a_run_lends_its_user_to_who_plays_the_agent(play: Play, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    user = {"llm": {"base_url": "http://127.0.0.1:9/v1", "model": "m", "api_key_env": "NO_KEY"}}
    spec = Path("shop/run.yaml").read_text().replace("domain.yaml", "../shop/domain.yaml")
    (folder / "spec.resolved.yaml").write_text(f"{spec}user: {json.dumps(user)}\n")
    ended = play("shop", "--as", "agent", "--run", str(folder), lines="/q\n")
    ended.refuses(1, "NO_KEY")


def test_a_domain_without_tasks_is_told_so(play: Play, run_file: Path) -> None:
    for file in run_file.parent.glob("*.yaml"):
        if file.read_text().startswith("version: 1\ndomain: shop\ntasks:"):
            file.write_text("version: 1\ndomain: shop\ntasks: []\n")
    play(str(run_file.parent), lines="").refuses(2, "there are no tasks")
