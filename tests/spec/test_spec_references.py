"""Names that refer to nothing are problems at their place, with the name that was meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from spec_files import RUN, TASKS, said, spoil

from muarl.errors import SpecError
from muarl.spec import RunSpec, load_domain_spec, load_run, load_task_files, load_tasks_file
from muarl.spec.split_references import split_findings


def problems(path: Path) -> list[str]:
    load = {
        "domain": load_domain_spec,
        "run": load_run,
        "tasks": lambda path: load_tasks_file(path, load_domain_spec(path.parent).spec),
    }[path.stem]
    with pytest.raises(SpecError) as caught:
        load(path)
    return said(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("[plain, terse]", "[plain, ters]", "6:23: unknown persona 'ters'; did you mean 'terse'?"),
        ("[plain, terse]", "[zed]", "6:16: unknown persona 'zed'; known: plain, terse"),
        (
            "[plain, terse]",
            "[terse]",
            "6:15: all these personas have weight 0, so none can be drawn",
        ),
        ("domain: shop", "domain: ship", "2:9: these tasks are for domain 'ship', not 'shop'"),
        (
            "facts: [",
            "facts: [{id: order_id, value: W2}, ",
            "10:51: fact 'order_id' is given twice",
        ),
    ],
)
def test_a_dangling_name_in_a_task(folder: Path, old: str, new: str, problem: str) -> None:
    path = folder / "tasks.yaml"
    spoil(path, old, new)
    assert problem in problems(path)


def test_a_query_needs_a_world_of_tables(folder: Path) -> None:
    said = "the world is no database; use a `world` predicate"
    spoil(
        folder / "tasks.yaml", "    gold:", "    metrics: [{sql: {query: a, equals: 1}}]\n    gold:"
    )
    assert problems(folder / "tasks.yaml") == [f"11:16: {said}"]
    spoil(folder / "domain.yaml", "- gold_world: true", "- not: {sql: {query: a, equals: 1}}")
    assert problems(folder / "domain.yaml") == [f"38:11: {said}"]


def test_python_that_cannot_be_read_is_named_with_its_line(folder: Path) -> None:
    spoil(folder / "tools.py", "def serve(world):", "def serve(world:")
    said = "6:11: tools.py is not readable Python: '(' was never closed"
    assert problems(folder / "domain.yaml") == [f"{said} ({folder / 'tools.py'}:5:10)"]


def test_a_task_id_given_twice(folder: Path) -> None:
    path = folder / "tasks.yaml"
    path.write_text(TASKS + TASKS.partition("tasks:\n")[2])
    assert problems(path) == ["14:9: task id 'cancel-1' is also item 1; ids are unique"]


def test_a_task_id_in_two_files_of_one_domain(folder: Path) -> None:
    spoil(folder / "domain.yaml", "[tasks.yaml]", "['task*.yaml']")
    (folder / "tasks2.yaml").write_text(TASKS)
    with pytest.raises(SpecError) as caught:
        load_task_files(load_domain_spec(folder))
    first = folder / "tasks.yaml"
    assert [str(p) for p in caught.value.problems] == [
        f"{folder / 'tasks2.yaml'}:4:9: task id 'cancel-1' is also in {first}; ids are unique"
    ]


TASK = TASKS.partition("tasks:\n")[2]


def with_splits(folder: Path, *splits: str) -> list[str]:
    """Problems of as many tasks, one of each split."""
    tasks = [
        TASK.replace("cancel-1", f"task-{i}").replace(
            "    goal", f"    split: {split}\n    goal", 1
        )
        for i, split in enumerate(splits)
    ]
    (folder / "tasks.yaml").write_text(TASKS.replace(TASK, "".join(tasks)))
    try:
        load_task_files(load_domain_spec(folder))
    except SpecError as error:
        return said(error)
    return []


def test_a_split_that_is_a_slip_of_the_pen_is_refused(folder: Path) -> None:
    assert with_splits(folder, "train", "train", "trian") == [
        (
            "27:12: split 'trian' has 1 task, 'train' has 2; did you mean 'train'? "
            "Else choose a name that is less like it"
        )
    ]
    assert len(with_splits(folder, "held-out", "held_out", "held_out")) == 1


@pytest.mark.parametrize("split", ["trian", "Train", "train"])
def test_words_for_a_split_that_no_task_is_of_are_a_slip_if_it_looks_like_one(
    folder: Path, split: str
) -> None:
    """Else nobody would say them, and held-out users would speak as those to train on do."""
    words = f"    {split}:\n      open: ['Good day.']\n    any:\n"
    spoil(folder / "domain.yaml", "    any:\n", words)
    found = [problem.partition(": ")[2] for problem in with_splits(folder, "train")]
    named = [] if split == "train" else [f"no task is of split {split!r}; did you mean 'train'?"]
    assert found == named


@pytest.mark.parametrize(
    "splits",
    [
        ("train", "train2", "train_hard"),
        ("trian", "trian"),
        ("test_a", "test_a", "test_b"),
        ("train", "held_out", "dev"),
    ],
)
def test_other_names_of_splits_are_as_good_as_any(folder: Path, splits: tuple[str, ...]) -> None:
    assert with_splits(folder, *splits) == []


def test_problems_of_several_task_files_come_together(folder: Path) -> None:
    spoil(folder / "domain.yaml", "[tasks.yaml]", "[tasks.yaml, more.yaml]")
    (folder / "more.yaml").write_text("x: 1")
    spoil(folder / "tasks.yaml", "goal:", "gaol:")
    with pytest.raises(SpecError) as caught:
        load_task_files(load_domain_spec(folder))
    assert {Path(p.path).name for p in caught.value.problems} == {"tasks.yaml", "more.yaml"}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("tools.py:serve", "tools.py:serv", "6:11: tools.py has no 'serv'; did you mean 'serve'?"),
        ("tools.py:", "tool.py:", "6:11: no such file: 'tool.py'; did you mean 'tools.py'?"),
        ("[tasks.yaml]", "[task.yaml]", "13:11: no such file: 'task.yaml'; did you mean"),
        ("[tasks.yaml]", "['nowhere/*.yaml']", "13:11: nothing matches 'nowhere/*.yaml'"),
        (
            "[tasks.yaml]",
            "[/tmp/x.yaml]",
            "13:11: '/tmp/x.yaml' leads out of the folder of this file",
        ),
        (
            "disclose: {order_id:",
            "disclose: {order_idd:",
            "20:16: unknown fact 'order_idd'; did you mean 'order_id'?",
        ),
        ("    confirm: [", "    confrm: [", "23:5: unknown act 'confrm'; did you mean 'confirm'?"),
        ("      stop:", "      stopp:", "36:7: unknown act 'stopp'; did you mean 'stop'?"),
        ('stop: ["Thanks."]', "stop: []", "36:13: act 'stop' has no templates; give at least one"),
        (
            "cancel an order",
            "{request} now",
            "29:41: 'ask:cancel' is what {request} stands for; it cannot hold it",
        ),
        ("[shall I]", "[shall I, ' ']", "23:24: an empty phrase is in every message; write words"),
    ],
)
def test_a_dangling_name_in_a_domain(folder: Path, old: str, new: str, problem: str) -> None:
    path = folder / "domain.yaml"
    spoil(path, old, new)
    found = problems(path)
    assert any(message.startswith(problem) for message in found), found


@pytest.mark.parametrize("kind", ["folder", "fifo", "loop"])
def test_a_file_that_is_none_is_not_said_to_be_missing(folder: Path, kind: str) -> None:
    tasks = folder / "tasks.yaml"
    tasks.unlink()
    make = {
        "folder": tasks.mkdir,
        "fifo": lambda: os.mkfifo(tasks),
        "loop": lambda: tasks.symlink_to(tasks),
    }
    make[kind]()
    assert problems(folder / "domain.yaml") == [
        "13:11: 'tasks.yaml' is there, but is no file that can be read"
    ]


@pytest.mark.parametrize(
    "reference", ["./tools.py", "../t.py", "/t.py", "x.y/t.py", "a//t.py", "b.c.py"]
)
def test_python_that_could_not_be_imported_as_a_module_is_refused(
    folder: Path, reference: str
) -> None:
    path = folder / "domain.yaml"
    spoil(path, "tools.py:serve", f"{reference}:serve")
    (message,) = problems(path)
    assert message.startswith("6:11: ")
    assert "file.py:name" in message


def test_a_path_that_is_too_long_is_not_there(folder: Path) -> None:
    path = folder / "run.yaml"
    spoil(path, "domain: domain.yaml", f"domain: {'x' * 5_000}")
    with pytest.raises(SpecError, match="2:9: no such file"):
        load_run(path)


def test_personas_that_can_never_be_drawn(folder: Path) -> None:
    path = folder / "domain.yaml"
    spoil(path, "style: plain", "style: plain\n    weight: 0")
    assert problems(path) == ["14:1: every persona has weight 0, so none can be drawn"]


def test_wording_for_a_split_that_the_generator_does_not_have(folder: Path) -> None:
    path = folder / "domain.yaml"
    spoil(path, "files: [tasks.yaml]", "python: tools.py:serve\n  splits: {train: 3, held_out: 2}")
    spoil(path, "    any:\n", "    heldout: {}\n    any:\n")
    assert problems(path) == ["28:5: unknown split 'heldout'; did you mean 'held_out'?"]


def test_python_that_does_not_parse_is_found_without_importing_it(folder: Path) -> None:
    (folder / "tools.py").write_text("raise SystemExit('imported')\ndef serve(:")
    (message,) = problems(folder / "domain.yaml")
    assert message.startswith("6:11: tools.py is not readable Python: invalid syntax")


@pytest.mark.parametrize(
    "source",
    [
        "from elsewhere import serve",
        "from elsewhere import x as serve",
        "from elsewhere import *",
        "serve = make()",
        "serve: int = 1",
        "class serve: ...",
        "async def serve(world): ...",
        "try:\n  import serve\nexcept ImportError:\n  serve = None",
        "if 1:\n  def serve(world): ...",
    ],
)
def test_a_name_counts_however_it_is_bound(folder: Path, source: str) -> None:
    (folder / "tools.py").write_text(source)
    load_domain_spec(folder)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "domain: domain.yaml",
            "domain: domian.yaml",
            "2:9: no such file: 'domian.yaml'; did you mean 'domain.yaml'?",
        ),
        ("domain: domain.yaml", "domain: empty", "2:9: the folder 'empty' has no domain.yaml"),
        ("{tiny: {}}", "{path: weights}", "3:15: no such file: 'weights'"),
        (
            "iterations: 3",
            "split: held_out",
            "4:15: split 'held_out' is evaluated, so it cannot be trained on",
        ),
    ],
)
def test_a_dangling_name_in_a_run(folder: Path, old: str, new: str, problem: str) -> None:
    (folder / "empty").mkdir()
    path = folder / "run.yaml"
    spoil(path, old, new)
    assert problems(path) == [problem]


def test_splits_of_a_run_are_checked_against_its_domain() -> None:
    run = RunSpec.model_validate(
        {"version": 1, "domain": "d", "model": {"tiny": {}}, "grpo": {"split": "trian"}}
    )
    (finding,) = split_findings(run, ["train", "held_out"])
    assert finding.loc == ("grpo", "split")
    assert finding.message == "unknown split 'trian'; did you mean 'train'?"


def test_a_user_must_have_words_for_all_that_may_happen(folder: Path) -> None:
    """`order_id` is told on request only by `terse`, so her opening may not need it."""
    spoil(folder / "domain.yaml", ', "cancel an order"', "")
    (message,) = problems(folder / "tasks.yaml")
    assert message.startswith("7:5: persona 'terse' has no wording in split 'train' for `ask:")


def test_words_are_needed_for_what_she_changes_her_mind_to(folder: Path) -> None:
    spoil(folder / "domain.yaml", "style: plain", "style: plain\n    changes_mind: true")
    spoil(
        folder / "tasks.yaml",
        "facts: [{id: order_id, value: W1}]",
        "facts: [{id: order_id, value: W1}]\n          instead: {ask: track}",
    )
    (message,) = problems_of_all(folder)
    assert message.startswith(
        "domain.yaml:27:3: users may have to say what they have no words for: "
    )
    assert "`change` (persona 'plain'), `ask:track` (persona 'plain'); give each a temp" in message


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('      unclear: ["Sorry?"]\n', "", "`unclear`;"),
        ("    any:\n", "    held_out:\n", "`open` (split 'train'), `ask:cancel` (split 'train'), "),
        (
            "ask:cancel",
            "ask:cancle",
            "`ask:cancel` (is 'ask:cancle' a slip of the pen?);",
        ),
        ("tell:order_id", "tell:order", "`tell:order_id` (is 'tell:order' a slip of the pen?);"),
    ],
    ids=["no words", "none in this split", "a misspelt intent", "a misspelt fact"],
)
def test_acts_without_words_are_said_once_where_the_words_belong(
    folder: Path, old: str, new: str, said: str
) -> None:
    task = (folder / "tasks.yaml").read_text().partition("tasks:\n")[2]
    with (folder / "tasks.yaml").open("a") as file:
        file.write(task.replace("cancel-1", "cancel-2"))
    spoil(folder / "domain.yaml", old, new)
    (message,) = problems_of_all(folder)
    assert message.startswith(
        "domain.yaml:26:3: users may have to say what they have no words for: "
    )
    assert said in message


def problems_of_all(folder: Path) -> list[str]:
    """What is wrong with a domain and all its tasks."""
    with pytest.raises(SpecError) as refused:
        load_task_files(load_domain_spec(folder))
    return [str(problem).removeprefix(f"{folder}/") for problem in refused.value.problems]


def test_a_model_from_a_folder_is_not_run_by_the_defaults_of_a_tiny_one(folder: Path) -> None:
    (folder / "model").mkdir()
    path = folder / "run.yaml"
    path.write_text(RUN.replace("{tiny: {}}", "{path: model}") + "rollout: {max_tokens: 512}\n")
    with pytest.raises(SpecError) as caught:
        load_run(path)
    assert [problem.partition("; left")[0] for problem in said(caught.value)] == [
        "4:7: say grpo.lr for the model that model.path names",
        "5:10: say rollout.context_tokens for the model that model.path names",
    ]
    run = load_run(path, settings=["grpo.lr=1e-6", "rollout.context_tokens=8192"]).spec
    assert run.rollout.max_tokens == 512
    path.write_text(RUN)
    load_run(path)
