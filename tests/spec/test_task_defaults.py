"""What the tasks of a file share, and texts in files of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from spec_files import DOMAIN, said, spoil

from muarl.errors import SpecError
from muarl.spec import TasksFile, TaskSpec, dump_spec, load_domain_spec, load_tasks_file
from muarl.spec.schema import schema_files
from muarl.spec.task import TaskDefaultsSpec, UserDefaultsSpec, UserGoalSpec

TASKS = """\
version: 1
domain: shop
defaults:
  split: dev
  personas: [plain]
  user: {facts: [{id: account, value: A1}]}
  world: {orders: {W1: {status: late}}, day: 3}
  gold: []
  reward: [{gold_world: true}]
tasks:
  - id: one
    goal: Cancel W1.
    user: {requests: [{ask: cancel, facts: [{id: order_id, value: W1}]}]}
  - id: two
    goal: Nothing.
    split: train
    personas: [terse, plain]
    user: null
    world: {orders: {W1: {by: ann}}}
    gold: [{tool: cancel, arguments: {order_id: W1}}]
    reward: []
"""


def tasks_of(folder: Path, text: str = TASKS) -> TasksFile:
    (folder / "tasks.yaml").write_text(text)
    return load_tasks_file(folder / "tasks.yaml", load_domain_spec(folder).spec).spec


def refused(folder: Path, *changes: str) -> list[str]:
    text = TASKS
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text
        text = text.replace(old, new, 1)
    with pytest.raises(SpecError) as caught:
        tasks_of(folder, text)
    return said(caught.value)


def test_what_a_task_does_not_say_the_defaults_say(folder: Path) -> None:
    one, two = tasks_of(folder).tasks
    assert (one.split, one.personas, one.gold) == ("dev", ["plain"], [])
    assert one.user is not None
    assert [fact.id for fact in one.user.facts] == ["account"]
    assert [request.ask for request in one.user.requests] == ["cancel"]
    assert (two.split, two.personas, two.user, two.reward) == (
        "train",
        ["terse", "plain"],
        None,
        [],
    )
    assert two.world == {"orders": {"W1": {"status": "late", "by": "ann"}}, "day": 3}


def test_tasks_made_whole_are_written_whole(folder: Path) -> None:
    file = tasks_of(folder)
    assert file.defaults is None
    assert tasks_of(folder, dump_spec(file)) == file


def test_the_python_twin_gives_defaults_likewise(folder: Path) -> None:
    file = tasks_of(folder)
    defaults = TaskDefaultsSpec.model_validate(
        {
            "split": "dev",
            "personas": ["plain"],
            "user": {"facts": [{"id": "account", "value": "A1"}]},
            "world": {"orders": {"W1": {"status": "late"}}, "day": 3},
            "gold": [],
            "reward": [{"gold_world": True}],
        }
    )
    two = TaskSpec.model_validate(
        {
            "id": "two",
            "goal": "Nothing.",
            "split": "train",
            "personas": ["terse", "plain"],
            "user": None,
            "world": {"orders": {"W1": {"by": "ann"}}},
            "gold": [{"tool": "cancel", "arguments": {"order_id": "W1"}}],
            "reward": [],
        }
    )
    one: Any = {
        "id": "one",
        "goal": "Cancel W1.",
        "user": {
            "requests": [{"ask": "cancel", "facts": [{"id": "order_id", "value": "W1"}]}],
        },
    }
    assert TasksFile(version=1, domain="shop", defaults=defaults, tasks=[one, two]) == file


def test_a_problem_stands_where_it_is_written_and_once(folder: Path) -> None:
    assert refused(folder, "personas: [plain]", "personas: [plan]") == [
        "5:14: unknown persona 'plan'; did you mean 'plain'?"
    ]
    assert refused(folder, "split: dev", "split: 3") == [
        "4:10: 'split' must be text, got 3; put it in quotes"
    ]
    assert refused(folder, "split: dev", "splt: dev")[0] == (
        "4:3: unknown field 'splt'; did you mean 'split'?"
    )
    assert refused(folder, "  gold: []\n", "") == ["10:5: missing field 'gold'"]
    assert refused(folder, "[terse", "[ters") == [
        "17:16: unknown persona 'ters'; did you mean 'terse'?"
    ]
    found = refused(folder, "  split: dev", "  id: x\n  split: dev")
    assert found[0].startswith("4:3: unknown field 'id'")


@pytest.mark.parametrize("defaults", ["3", "[]", "null", "x"])
def test_defaults_that_are_none(folder: Path, defaults: str) -> None:
    text = TASKS[: TASKS.index("defaults")] + f"defaults: {defaults}\ntasks: []\n"
    if defaults == "null":
        assert tasks_of(folder, text).tasks == []
    else:
        with pytest.raises(SpecError, match="'defaults' must be a mapping"):
            tasks_of(folder, text)


def test_all_of_a_task_but_its_id_may_be_a_default() -> None:
    assert TaskDefaultsSpec.model_fields.keys() == TaskSpec.model_fields.keys() - {"id"}
    assert UserDefaultsSpec.model_fields.keys() == UserGoalSpec.model_fields.keys()


def test_the_schema_asks_a_task_for_what_the_defaults_do_not_give() -> None:
    schema = json.loads(schema_files()["tasks.v1.json"])
    validator = jsonschema.Draft202012Validator(schema)
    task: dict[str, Any] = {"id": "a", "goal": "g"}
    file: dict[str, Any] = {"version": 1, "domain": "d", "tasks": [task]}
    assert not validator.is_valid(file)
    file["defaults"] = {"personas": ["p"], "gold": []}
    assert validator.is_valid(file)
    task["user"] = {"facts": []}
    assert not validator.is_valid(file)
    file["defaults"]["user"] = {"requests": [{"ask": "x"}]}
    assert validator.is_valid(file)
    del file["defaults"]["gold"]
    assert not validator.is_valid(file)


def test_a_text_may_stand_in_a_file_of_its_own(folder: Path) -> None:
    plain = load_domain_spec(folder).spec
    (folder / "rules.md").write_text("Be kind.\n")
    (folder / "texts").mkdir()
    (folder / "texts" / "terse.txt").write_text("terse")
    spoil(folder / "domain.yaml", "rules: Be kind.", "rules: {file: rules.md}")
    spoil(folder / "domain.yaml", "style: terse", "style: {file: texts/terse.txt}")
    assert load_domain_spec(folder).spec == plain


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{file: rule.md}", "4:15: no such file: 'rule.md'; did you mean 'rules.md'?"),
        ("{file: .}", "4:15: '.' is there, but is no file that can be read"),
        ("{file: 3}", "4:8: 'rules' must be text, got a mapping"),
        ("{files: rules.md}", "4:8: 'rules' must be text, got a mapping"),
        ("{file: bytes.md}", "bytes.md:1:1: byte 0xff is not UTF-8; save the file as UTF-8"),
    ],
)
def test_a_text_that_cannot_be_read_is_said(folder: Path, text: str, problem: str) -> None:
    (folder / "rules.md").write_text("Be kind.\n")
    (folder / "bytes.md").write_bytes(b"\xff")
    (folder / "domain.yaml").write_text(DOMAIN.replace("rules: Be kind.", f"rules: {text}"))
    with pytest.raises(SpecError) as caught:
        load_domain_spec(folder)
    assert str(caught.value).endswith(problem)
    assert len(caught.value.problems) == 1
