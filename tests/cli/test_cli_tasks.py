"""`muarl tasks`: tasks of a domain's goals as a file, with what became of all that was drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bad_input import InProcess
from goal_kit import CANCEL, shop

from muarl.goals import apart
from muarl.http.chat_client import ChatClient, ChatReply
from muarl.spec import load_domain_spec, load_tasks_file

GOALS = (
    "OPTIONS = {'wishes': {1: 0.5, 2: 0.5}}"
    + CANCEL
    + """
others = Goals()

@others.goal()
def nick(scene):
    name = scene.name(lambda rng: f"nick{rng.randrange(10_000)}")
    return Wish(
        ask="rename",
        words="you want account {account} to be called {nick}",
        facts={"account": "A1", "nick": name},
        gold=[call("rename", account="A1", nick=name)],
    )
"""
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    shop(tmp_path / "shop", GOALS)
    return tmp_path


def test_a_file_of_tasks_that_the_domain_can_load_and_what_they_are_like(
    muarl: InProcess, folder: Path
) -> None:
    made = muarl("tasks", "shop", "--count", 10, "--out", "more.yaml")
    assert made.code == 0
    first, *lines = made.out.splitlines()
    assert first.startswith("10 tasks of ")
    assert "  wishes   1: 5, 2: 5" in lines
    assert "  writes   1: 5, 2: 5" in lines
    tasks = load_tasks_file(folder / "more.yaml", load_domain_spec("shop").spec).spec.tasks
    assert [task.id for task in tasks] == [f"train-{i:04d}" for i in range(10)]
    assert [task.axes["wishes"] for task in tasks].count(2) == 5
    refused = muarl("tasks", "shop", "--count", 10, "--out", "more.yaml")
    assert refused.code == 1
    before = (folder / "more.yaml").read_bytes()
    assert muarl("tasks", "shop", "--count", 10, "--out", "more.yaml", "--overwrite").code == 0
    assert (folder / "more.yaml").read_bytes() == before
    again = ("tasks", "shop", "--count", 10, "--out", "more.yaml", "--overwrite", "--seed", 1)
    assert muarl(*again).code == 0
    assert (folder / "more.yaml").read_bytes() != before


def test_other_goals_of_the_folder_can_be_named(muarl: InProcess, folder: Path) -> None:
    made = muarl(
        "tasks", "shop", "--goals", "goals.py:others", "--count", 2, "--out", "x.yaml", "--json"
    )
    assert json.loads(made.out)["tasks"] == 2
    assert "to be called nick" in (folder / "x.yaml").read_text()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["--split", "trian"], 2, "there is no split 'trian'; splits: train"),
        (["--goals", "goals.py:more"], 2, "has no 'more'"),
        (["--llm", "http://127.0.0.1:1/v1"], 2, "--llm and --model go together"),
    ],
)
def test_what_is_not_there_is_named(
    muarl: InProcess, words: list[str], code: int, why: str
) -> None:
    muarl("tasks", "shop", "--out", "x.yaml", *words).refuses(code, why)


@pytest.mark.parametrize("name", ["domain.yaml", "goals.py"])
def test_tasks_do_not_replace_what_they_are_made_of(
    muarl: InProcess, folder: Path, name: str
) -> None:
    file = folder / "shop" / name
    before = file.read_bytes()
    made = muarl("tasks", "shop", "--count", 2, "--out", file, "--overwrite")
    made.refuses(1, "would replace", "which is read")
    assert file.read_bytes() == before


ENDLESS = {
    "goal": ("goals.py", 'return Wish(\n        ask="cancel"', "in cancel)"),
    "tool": ("tools.py", 'order["status"] = "cancelled"', "in cancel)"),
}


@pytest.mark.parametrize("where", ENDLESS)
def test_a_loop_without_an_end_is_blamed_on_its_line(
    where: str, muarl: InProcess, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "_ENDLESS_S", 0.3)
    monkeypatch.setattr(apart, "_LAST_S", 0.1)
    file, before, name = ENDLESS[where]
    code = folder / "shop" / file
    text = code.read_text()
    ended = folder / "ended"  # by the test, or the loop would spin until the last test is over
    loop = f"while not __import__('os').path.exists({str(ended)!r}): pass"
    assert before in text
    indent = " " * (4 if where == "goal" else 8)
    code.write_text(text.replace(before, f"{loop}\n{indent}{before}", 1))
    line = next(n for n, row in enumerate(code.read_text().splitlines(), 1) if loop in row)
    try:
        refused = muarl("tasks", "shop", "--count", 3, "--out", "x.yaml")
    finally:
        ended.touch()
    refused.refuses(2, f"has not ended within 0.3 s (shop/{file}:{line}, {name}")
    assert not (folder / "x.yaml").exists()


def test_a_domain_without_goals_has_none_to_make_tasks_of(muarl: InProcess, run_file: Path) -> None:
    refused = muarl("tasks", run_file.parent, "--out", "x.yaml")
    refused.refuses(2, "the domain names no goals to make tasks of")


def test_an_llm_words_them_and_what_it_gets_wrong_is_counted(
    muarl: InProcess, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def complete(self: ChatClient, messages: Any, **_: Any) -> ChatReply:
        goal = messages[-1].content
        lost = goal.count("order") > 1  # it gets those with two wishes wrong
        return ChatReply("You want something." if lost else goal.replace("want", "need"), False)

    monkeypatch.setattr(ChatClient, "complete", complete)
    llm = ("--llm", "http://127.0.0.1:1/v1", "--model", "m")
    made = muarl("tasks", "shop", "--count", 10, "--out", "more.yaml", "--json", *llm)
    told = json.loads(made.out)
    assert told["reworded"] == 5
    assert sum(told["kept"].values()) == 5
    assert (folder / "more.yaml").read_text().count("You need order") == 5
