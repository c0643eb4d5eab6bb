"""A domain at work: worlds and tasks are JSON, gold worlds are right, what lacks is named."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from proof_shop import generated
from spec_files import said, spoil, write_all

from muarl.domain import load_domain
from muarl.errors import SpecError, ToolServerError
from muarl.seeds import generator
from muarl.spec.user import ScriptedUserSpec, UserSpec
from muarl.user.scripted import ScriptedUser
from muarl.world import plain


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    write_all(tmp_path)
    return tmp_path


SOURCE = "  data:\n    orders:\n      W1: {status: pending}\n"


def world_from(folder: Path, source: str) -> None:
    spoil(folder / "domain.yaml", SOURCE, source)


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        ("{'orders': {7: {}}}", "the world must be JSON: orders has the key 7; keys are text"),
        ("{'a': {'b': float('nan')}}", "the world must be JSON: a.b is nan"),
        ("{'a': {1, 2}}", "the world must be JSON: a is of type set"),
        ("{'a': 2**70}", "the world must be JSON: a is an integer beyond 64 bits"),
        ("[]", "the world must be a mapping"),
        ("__import__('sys').exit(0)", "world.py:build raised SystemExit: 0"),
        ("1 / 0", "world.py:build raised ZeroDivisionError: division by zero"),
    ],
)
def test_a_world_that_is_no_json_is_refused_at_its_place_L3(
    shop: Path, made: str, problem: str
) -> None:
    (shop / "world.py").write_text(f"def build():\n    return {made}\n")
    world_from(shop, "  python: world.py:build\n")
    with pytest.raises(SpecError) as caught:
        _ = load_domain(shop).base
    (message,) = said(caught.value)
    assert problem in message
    assert not message.startswith("0:0"), "it has a line"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "cannot be read"),
        ('{"a": ' + "[" * 100_000, "cannot be read: "),
        ('{"a": NaN}', "the world in 'world.json' must be JSON: a is nan"),
        ('{"b": {"a": 1, "c": 2, "a": 3}}', "the key 'a' stands twice in one mapping"),
    ],
)
def test_a_world_file_that_is_no_json_is_refused(shop: Path, text: str, problem: str) -> None:
    (shop / "world.json").write_text(text)
    world_from(shop, "  file: world.json\n")
    with pytest.raises(SpecError, match=problem):
        _ = load_domain(shop).base


def test_a_world_comes_from_a_file(shop: Path) -> None:
    text = json.dumps({"orders": {"W1": {"status": "é"}}})
    (shop / "world.json").write_text(text, encoding="utf-8-sig")  # as some editors do
    world_from(shop, "  file: world.json\n")
    assert plain(load_domain(shop).base) == {"orders": {"W1": {"status": "é"}}}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('{"status": "pending"}', "{1: 2}", "task 'train-0': world must be JSON: orders.W0 has"),
        ('{"order_id": order}', '{"order_id": float("inf")}', "task 'train-0': gold must be JSON"),
        ("for index in range(count)", "for index in range(1)", "must return 3 TaskSpec"),
        ("return [task", "return 5\n    [task", "must return a list, it returned int"),
        ("return [task", "yield [task", r"it returned generator; return list\(...\)"),
        (
            "TaskSpec(",
            "TaskSpec(persona=[], ",
            r"generate: TaskSpec: unknown field 'persona'; did you mean 'personas'\? \(",
        ),
        (
            "def generate(split, seed, count)",
            "def generate(split)",
            r"as generate\(split, seed, count\)",
        ),
    ],
)
def test_generated_tasks_must_be_what_was_asked_for(
    shop: Path, old: str, new: str, problem: str
) -> None:
    generated(shop, old, new)
    with pytest.raises(SpecError, match=problem):
        load_domain(shop).tasks("train")


def test_a_split_that_is_not_there_is_named(shop: Path) -> None:
    with pytest.raises(SpecError, match="there is no split 'trian'; splits: train"):
        load_domain(shop).tasks("trian")


@pytest.mark.anyio
async def test_the_gold_world_is_the_world_after_the_gold_calls_and_made_once(shop: Path) -> None:
    domain = load_domain(shop)
    (task,) = domain.tasks("train")
    gold = await domain.gold_world(task)
    assert gold["orders"]["W1"]["status"] == "cancelled"
    assert domain.world_for(task)["orders"]["W1"]["status"] == "pending"
    assert domain.base["orders"]["W1"]["status"] == "pending"
    assert await domain.gold_world(task) is gold
    renamed = task.model_copy(update={"id": "other", "world": {"orders": {"W2": {}}}})
    assert "W2" in (await domain.gold_world(renamed))["orders"]


@pytest.mark.anyio
async def test_a_gold_call_that_fails_is_named(shop: Path) -> None:
    spoil(shop / "tasks.yaml", "arguments: {order_id: W1}", "arguments: {order_id: W9}")
    domain = load_domain(shop)
    with pytest.raises(
        ToolServerError, match=r"gold call 0 of task 'cancel-1', cancel, .*no order W9"
    ):
        await domain.gold_world(domain.tasks("train")[0])


def test_personas_are_drawn_by_weight(shop: Path) -> None:
    domain = load_domain(shop)
    (task,) = domain.tasks("train")
    drawn = Counter(domain.draw_persona(task, generator(i)) for i in range(50))
    assert drawn == {"plain": 50}, "the other has weight 0"
    only = task.model_copy(update={"personas": ["terse"]})
    assert domain.draw_persona(only, generator(0)) == "terse"


def test_a_scripted_user_needs_a_script_and_a_goal(shop: Path) -> None:
    domain, who = load_domain(shop), UserSpec(scripted=ScriptedUserSpec())
    (task,) = domain.tasks("train")
    assert isinstance(domain.user(who, task, "plain", 0), ScriptedUser)
    with pytest.raises(SpecError, match="task 'cancel-1' has no `user` goal"):
        domain.user(who, task.model_copy(update={"user": None}), "plain", 0)


def test_two_domains_with_files_of_the_same_names_do_not_mix(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for number, folder in enumerate(folders):
        folder.mkdir()
        write_all(folder)
        (folder / "names.py").write_text(f"NUMBER = {number}\n")
        (folder / "world.py").write_text(
            "from .names import NUMBER\n\n\ndef build():\n    return {'n': NUMBER}\n"
        )
        world_from(folder, "  python: world.py:build\n")
    assert [load_domain(folder).base["n"] for folder in folders] == [0, 1]
