"""What somebody does with an imported tau-bench: its tasks, its two rules, `muarl eval` without a model."""

from __future__ import annotations

import re

import pytest

from muarl.cli import main
from muarl.messages import Message
from muarl.record import Turn, UserReply

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_the_splits_are_the_published_ones(retail1, airline1):
    sizes = {split: len(retail1.tasks(split)) for split in retail1.splits}
    assert sizes == {"train": 500, "dev": 20, "test": 115}
    assert {split: len(airline1.tasks(split)) for split in airline1.splits} == {"test": 50}


@pytest.mark.parametrize(
    ("name", "evaluated", "trained"), [("retail1", 7, 11), ("airline1", 19, 20)]
)
async def test_what_must_be_said_counts_when_evaluated_and_not_in_training(
    name, evaluated, trained, request
):
    """A policy that says it is done and does nothing: the paper's training rule pays for more of it."""
    domain = request.getfixturevalue(name)
    idle = Turn(Message("assistant", "Done."), 0, 0, 0, "stop", 0)
    idle.reply = UserReply("###STOP###", stop=True, act="stop")
    earned = {True: 0.0, False: 0.0}
    for task in domain.tasks("test"):
        world = domain.world_for(task)
        for training in earned:
            verdict = await domain.judge(
                task, world, [idle], UserReply(task.goal), initial=world, training=training
            )
            earned[training] += verdict.reward
    assert earned == {False: evaluated, True: trained}


GRID = """\
version: 1
run: run.yaml
policies:
  gold: {expert: {}}
  idle: {trivial: do_nothing}
users:
  teller: {teller: {}}
tasks: 20
trials: 2
"""
RUN = """\
version: 1
domain: DOMAIN
engine: embedded
threads: 1
model: {tiny: {}}
user: {teller: {}}
rollout: {max_turns: 30, max_tokens: 64, context_tokens: 100000}
eval: {split: test}
"""


def test_gold_calls_and_doing_nothing_in_whole_dialogues_with_pass_hat_k(
    airline1, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(RUN.replace("DOMAIN", str(airline1.folder)))
    (tmp_path / "grid.yaml").write_text(GRID)
    assert main(["eval", "grid.yaml"]) == 0
    said = [re.split(r"  +", line.strip()) for line in capsys.readouterr().out.splitlines()]
    head = next(line for line in said if line[0] == "policy")
    rows = {line[0]: dict(zip(head, line, strict=True)) for line in said if len(line) == len(head)}
    shown = {
        policy: {name: cell.split()[0] for name, cell in rows[policy].items()}
        for policy in ("gold", "idle")
    }
    assert (shown["gold"]["success"], shown["gold"]["pass^2"]) == ("1.000", "1.000")
    assert 0 < float(shown["idle"]["success"]) < 1  # of the first twenty, those of inaction
    assert shown["idle"]["pass^2"] == shown["idle"]["success"]  # it does the same each time
    assert {cells["faults"] for cells in shown.values()} == {"0"}
