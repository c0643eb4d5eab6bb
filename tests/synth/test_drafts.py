"""Domains and tasks that an LLM drafts: data, checked like a person's, mended a bounded number of times."""

from __future__ import annotations

import copy
import json
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bad_input import InProcess
from chat_kit import completion, served
from synth_kit import write_synth

from muarl.cli import main
from muarl.domain import load_domain
from muarl.spec.tools import SimulatedToolsSpec
from muarl.testing.http_server import HttpRequest

DOMAIN: dict[str, Any] = {
    "summary": "Desk of a bicycle workshop.",
    "rules": "Look an appointment up before you move it. Ask for a yes before you change anything.",
    "tables": "CREATE TABLE slots (id TEXT PRIMARY KEY, day TEXT NOT NULL, name TEXT NOT NULL);",
    "rows": {"slots": {f"S{n}1": {"day": f"2026-05-0{n}", "name": f"Ann{n}"} for n in range(1, 6)}},
    "tools": {
        "find_slot": {
            "description": "An appointment.",
            "parameters": {"id": {"type": "string"}},
            "query": "SELECT day, name FROM slots WHERE id = :id",
            "result": "{day}, {name}",
        },
        "move_slot": {
            "description": "Move an appointment to another day.",
            "parameters": {"id": {"type": "string"}, "day": {"type": "string"}},
            "guards": [{"query": "SELECT 1 FROM slots WHERE id = :id", "error": "no slot {id}"}],
            "statements": ["UPDATE slots SET day = :day WHERE id = :id"],
        },
    },
    "writes": ["move_slot"],
    "personas": {"plain": {"style": "Friendly."}},
}


def task(number: int) -> dict[str, Any]:
    day = f"2026-06-1{number}"
    return {
        "id": f"move-{number}",
        "goal": f"You are Ann{number} and want appointment S{number}1 moved to {day}.",
        "gold": [{"tool": "move_slot", "arguments": {"id": f"S{number}1", "day": day}}],
    }


TASKS = {"tasks": [task(1), task(2)]}


@pytest.fixture
def muarl(capfd: pytest.CaptureFixture[str]) -> InProcess:
    return InProcess(capfd)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("brief.txt").write_text("A bicycle workshop where people move appointments.")


def says(*answers: Any) -> Callable[[HttpRequest], Any]:
    """Answers in order."""
    left = list(answers)

    def answer(_: HttpRequest) -> Any:
        said = left.pop(0)
        return completion(said if isinstance(said, str) else json.dumps(said))

    return answer


def draft(muarl: InProcess, server: Any, *more: object) -> Any:
    return muarl(
        "draft", *more, "--base-url", f"{server.url}/v1", "--model", "m", "--tasks", 2, "--json"
    )


def spoiled(change: Callable[[Any], object]) -> Any:
    found = copy.deepcopy(DOMAIN)
    change(found)
    return found


def test_a_brief_becomes_a_domain_that_holds(muarl: InProcess) -> None:
    with served(says("Here it is:\n" + json.dumps(DOMAIN), TASKS)) as server:
        done = draft(muarl, server, "brief.txt", "--out", "bikes")
    assert done.code == 0, done.lines
    assert json.loads(done.out) == {"out": "bikes", "tasks": 2, "repairs": 0}
    domain = load_domain("bikes")
    assert domain.spec.id == "bikes"
    assert [one.id for one in domain.tasks("train")] == ["move-1", "move-2"]
    checked = muarl("check", "bikes")
    assert checked.code == 0, (checked.out, checked.lines)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("rows"), "expected exactly the keys"),
        (lambda d: d.update(extra=1), "expected exactly the keys"),
        (lambda d: d.update(tables="CREATE TABEL x"), "syntax error"),
        (lambda d: d["tools"]["find_slot"].update(query="SELECT nothing FROM slots"), "nothing"),
        (lambda d: d["writes"].append("fly"), "fly"),
        (lambda d: d["personas"]["plain"].pop("style"), "style"),
        (lambda d: d["rows"]["slots"]["S11"].update(dya=1), "dya"),
        (lambda d: d.update(tools={}), "needs at least 1 entry"),
    ],
)
def test_what_is_wrong_with_a_domain_is_sent_back(
    muarl: InProcess, change: Callable[[Any], object], words: str
) -> None:
    with served(says(spoiled(change), DOMAIN, TASKS)) as server:
        done = draft(muarl, server, "brief.txt", "--out", "bikes")
        assert done.code == 0, done.lines
        complaint = json.loads(server.requests[1].body)["messages"][-1]["content"]
    assert json.loads(done.out)["repairs"] == 1
    assert "That cannot be used:" in complaint
    assert words in complaint


def gold(**arguments: Any) -> dict[str, Any]:
    return {**task(1), "gold": [{"tool": "move_slot", "arguments": arguments}]}


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ({**task(1), "gold": []}, "gold is empty"),
        (gold(id="S99", day="2026-06-11"), "no slot S99"),
        (gold(id="S11", day="2026-05-01"), "its gold calls change nothing"),
        ({**task(2), "id": "twin"}, "tasks 'twin' and 'move-2' are nearly the same"),
        ({**task(1), "gold": [{"tool": "fly", "arguments": {}}]}, "unknown tool 'fly'"),
        ({**task(1), "golden": 1}, "golden"),
        ("move it", "task"),
    ],
)
def test_what_is_wrong_with_tasks_is_sent_back(muarl: InProcess, first: Any, words: str) -> None:
    with served(says(DOMAIN, {"tasks": [first, task(2)]}, TASKS)) as server:
        done = draft(muarl, server, "brief.txt", "--out", "bikes")
        assert done.code == 0, done.lines
        complaint = json.loads(server.requests[2].body)["messages"][-1]["content"]
    assert json.loads(done.out)["repairs"] == 1
    assert words in complaint


@pytest.mark.parametrize("answer", ["I cannot.", "{", "[1]", json.dumps({"tasks": []}), "{" * 5000])
def test_after_so_many_repairs_it_ends_and_leaves_nothing(muarl: InProcess, answer: str) -> None:
    with served(says(*[answer] * 3)) as server:
        done = draft(muarl, server, "brief.txt", "--out", "bikes", "--repairs", 2)
        done.refuses(1, "after 2 repairs the draft still cannot be used")
        assert len(server.requests) == 3
    assert not Path("bikes").exists()
    assert [path.name for path in Path().iterdir()] == ["brief.txt"]


def test_queries_alone_are_drafted_for_a_domain_that_there_is(
    muarl: InProcess, tmp_path: Path
) -> None:
    (tmp_path / "shop").mkdir()
    write_synth(tmp_path / "shop")
    made = [
        {
            "id": f"drop-{order}",
            "goal": f"You want order {order} cancelled.",
            "gold": [{"tool": "cancel", "arguments": {"order_id": order}}],
        }
        for order in ("W3", "W4")
    ]
    with served(says({"tasks": made})) as server:
        done = draft(muarl, server, "--domain", "shop", "--out", "more.yaml")
        assert done.code == 0, done.lines
        asked = json.loads(server.requests[0].body)["messages"][1]["content"]
    assert "Tools that change the data: cancel" in asked
    assert '"W3": {"status": "pending"}' in asked
    assert "drop-W4" in Path("more.yaml").read_text()
    with served(says({"tasks": made})) as server:
        draft(muarl, server, "--domain", "shop", "--out", "more.yaml").refuses(
            1, "is there already; name another place"
        )
    with served(says()) as server:
        draft(muarl, server, "gone.txt", "--out", "x").refuses(
            2, "gone.txt: cannot be read: No such file"
        )


def test_a_simulated_domain_is_played_without_replay(muarl: InProcess, tmp_path: Path) -> None:
    """Pipeline one from end to end: an LLM plays the tools over the dialogue's own memory."""
    (tmp_path / "shop").mkdir()
    spec = write_synth(tmp_path / "shop")

    def tools(request: HttpRequest) -> Any:
        asked = json.loads(request.json()["messages"][1]["content"])
        order = asked["arguments"]["order_id"]
        path = f"orders.{order}.status"
        change = {"path": path, "before": "pending", "after": "cancelled"}
        return completion(json.dumps({"answer": "ok", "reads": [], "changes": [change]}))

    with served(tools) as server:
        text = (tmp_path / "shop" / "domain.yaml").read_text()
        simulated = (
            f"tools:\n  simulated:\n    base_url: {server.url}/v1\n    model: m\n    tools:\n"
            "      cancel: {description: Cancel an order., parameters: {order_id: {}}, writes: true}\n"
        )
        (tmp_path / "shop" / "domain.yaml").write_text(
            text.replace("tools:\n  python: tools.py:serve\n", simulated)
        )
        muarl("synth", spec, "--out", "made").refuses(2, "Verify without replay: `replay: false`")
        spec.write_text(spec.read_text() + "verify: {replay: false}\n")
        done = muarl("synth", spec, "--out", "made", "--json")
    assert done.code == 0, (done.out, done.lines)
    assert json.loads(done.out)["kept"] == 6


def test_a_simulator_that_may_try_longer_than_a_call_may_take_is_refused() -> None:
    """Its call was ended after 30 s, in the middle of the first of three tries of 60 s."""
    simulated = {"base_url": "http://a/v1", "model": "m", "tools": {"look": {"description": "It."}}}
    assert SimulatedToolsSpec.model_validate({"simulated": simulated}).call_timeout_s >= 3 * 60
    with pytest.raises(ValueError, match=r"a call may take 30 s .* 3 tries 180 s; raise the one"):
        SimulatedToolsSpec.model_validate({"simulated": simulated, "call_timeout_s": 30.0})


def test_a_brief_becomes_a_domain_whose_tools_are_simulated(muarl: InProcess) -> None:
    drafts = says(
        {
            **{key: DOMAIN[key] for key in ("summary", "rules", "personas")},
            "data": {"slots": {f"S{n}1": {"day": f"2026-05-0{n}"} for n in range(1, 6)}},
            "tools": {
                name: {
                    "description": "It.",
                    "parameters": DOMAIN["tools"][name]["parameters"],
                    **more,
                }
                for name, more in (("find_slot", {}), ("move_slot", {"writes": True}))
            },
        },
        TASKS,
    )

    def answer(request: HttpRequest) -> Any:
        system, asked, *_ = request.json()["messages"]
        if not system["content"].startswith("You are the back end"):
            return drafts(request)
        call = json.loads(asked["content"])
        path = f"slots.{call['arguments']['id']}.day"
        before = call["memory"]["slots"][call["arguments"]["id"]]["day"]
        change = {"path": path, "before": before, "after": call["arguments"]["day"]}
        return completion(json.dumps({"answer": "Moved.", "changes": [change]}))

    with served(answer) as server:
        done = draft(muarl, server, "brief.txt", "--out", "bikes", "--simulated")
        assert done.code == 0, done.lines
        assert len(server.requests) == 4, "two drafts, and the gold call of each task"
    domain = load_domain("bikes")
    assert domain.spec.is_simulated
    assert domain.spec.writes == ["move_slot"]


def test_a_draft_that_was_cut_off_is_asked_for_again(capfd: pytest.CaptureFixture[str]) -> None:
    """A model that rambles at temperature 0 may not the next time; its ramblings are not sent back."""
    cut = completion("{" + "ramble " * 50)
    cut["choices"][0]["finish_reason"] = "length"
    answers = iter([cut, completion(json.dumps(DOMAIN)), completion(json.dumps(TASKS))])
    with served(lambda _: next(answers)) as server:
        words = ["draft", "brief.txt", "--out", "bikes", "--base-url", f"{server.url}/v1"]
        assert main([*words, "--model", "m", "--tasks", "2", "--max-tokens", "50", "--json"]) == 0
        again = json.loads(server.requests[1].body)["messages"]
    captured = capfd.readouterr()
    assert json.loads(captured.out)["repairs"] == 1
    assert [message["role"] for message in again] == ["system", "user"]
    assert "draft 1 of 4 cannot be used: it was cut off after 50 tokens" in captured.err


@pytest.mark.parametrize(
    ("brief", "out", "words"),
    [
        (b"Bikes.", "my bikes!", "my bikes!: a domain is called as its folder"),
        (b"\xff\xfe", "bikes", "brief.txt: is no text: expected UTF-8"),
        (b" \n", "bikes", "brief.txt: is empty"),
    ],
)
def test_what_no_drafter_could_mend_is_said_before_one_is_asked(
    muarl: InProcess, brief: bytes, out: str, words: str
) -> None:
    Path("brief.txt").write_bytes(brief)
    with served(says()) as server:
        draft(muarl, server, "brief.txt", "--out", out).refuses(2, words)
        assert not server.requests


def test_a_draft_that_takes_too_long_says_what_to_do(muarl: InProcess) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        there = SimpleNamespace(url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        done = draft(muarl, there, "brief.txt", "--out", "bikes", "--timeout", 1)
        done.refuses(1, "did not finish within 1 s", "raise --timeout")
