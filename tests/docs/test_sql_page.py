"""The clinic of its page is sound, and plays as it is shown; what the page says of answers is so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from documents import Block, blocks

from muarl.cli import main
from muarl.messages import ToolCall
from muarl.spec import load_domain_spec, load_task_files
from muarl.spec.sql import SqlToolSpec
from muarl.tools.memory import MemoryToolServer
from muarl.tools.sql import sql_server
from muarl.world import plain
from muarl.world.sql import Database, SqlWorld

PAGE = [block for block in blocks() if block.place.startswith("sql-tools.md")]
DOMAIN, TASKS, HALLS = [block.text for block in PAGE if block.language == "yaml"]
(TRANSCRIPT,) = [block.text for block in PAGE if block.language == "text"]


@pytest.fixture(autouse=True)
def _clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "clinic").mkdir()
    (tmp_path / "clinic" / "domain.yaml").write_text(DOMAIN, encoding="utf-8")
    (tmp_path / "clinic" / "tasks.yaml").write_text(TASKS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def commands(block: Block) -> list[str]:
    return [command for command in block.commands if "clinic" in command]


def test_it_is_sound_and_plays_as_it_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (typed,) = filter(None, map(commands, PAGE))
    check, play = (command.removeprefix(".venv/bin/muarl ").split() for command in typed)
    assert main(check) == 0
    assert capsys.readouterr().out.rstrip().endswith("sound")
    said = [line.removeprefix("you: ") for line in TRANSCRIPT.splitlines() if "you: " in line]
    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in said))
    with (tmp_path / "lines").open() as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        assert main(play) == 0
    assert capsys.readouterr().out.endswith(TRANSCRIPT)


def test_keys_are_written_as_the_page_says(tmp_path: Path) -> None:
    clinic = tmp_path / "clinic" / "domain.yaml"
    before, _, rest = DOMAIN.partition("world:\n")
    tools = "tools: {sql: {call: {description: Call.}}}\n"
    after = rest[rest.index("tasks:") :].replace("{files: [tasks.yaml]}", "{files: [none.yaml]}")
    (tmp_path / "clinic" / "none.yaml").write_text(
        "version: 1\ndomain: clinic\ntasks: [{id: a, goal: b, gold: []}]\n"
    )
    clinic.write_text(f"{before}{HALLS}{tools}{after}")
    assert load_task_files(load_domain_spec(clinic))


@pytest.mark.parametrize(
    ("tool", "answer"),
    [
        ({"query": "SELECT * FROM t"}, '[{"id":1,"what":null},{"id":2,"what":"x"}]'),
        ({"query": "SELECT * FROM t", "result": "{id}: {what}"}, "1: none\n2: x"),
        ({"query": "SELECT * FROM t WHERE id > 2"}, "none"),
        ({"query": "SELECT * FROM t WHERE id > 2", "empty": "nothing"}, "nothing"),
        ({}, "ok"),
        ({"result": "done"}, "done"),
        ({"guards": [{"query": "SELECT 1 FROM t WHERE id = 3", "error": "no 3"}]}, "no 3"),
    ],
)
@pytest.mark.anyio
async def test_tools_answer_as_the_page_says(tool: dict[str, object], answer: str) -> None:
    database = Database()
    database.define("CREATE TABLE t (id INTEGER PRIMARY KEY, what TEXT)")
    database.define("INSERT INTO t VALUES (1, NULL), (2, 'x')")
    database.ready()
    spec = SqlToolSpec.model_validate({"description": "Ask.", **tool})
    server = MemoryToolServer(sql_server({"ask": spec}), stateless=True)
    async with server.session(SqlWorld(database)) as session:
        assert (await session.call(ToolCall("1", "ask", {}))).content == answer
    assert plain(SqlWorld(database)["t"]["1"]) == {"id": 1, "what": None}
