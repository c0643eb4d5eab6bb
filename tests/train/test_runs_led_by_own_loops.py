"""`rollout.loop`: a run whose dialogues are led by an agent's own loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from short_run import SHORT, carry_out, ready_model, write_run

from muarl.cli import main
from muarl.errors import SpecError
from muarl.kernel.model import load_model, weights_checksum
from muarl.record import Episode, read_journal
from muarl.spec import load_run
from muarl.suite import load_domain_of
from muarl.train.run_domain import refuse_unfit
from muarl.train.run_folder import RunFolder
from muarl.train.run_loop import loop_of

PLAIN = """
async def agent(context):
    history = list(context.opening)
    while True:
        message = await context.generate(history)
        history.append(message)
        for call in message.tool_calls:
            history.append(await context.call_tool(call))
        if not message.tool_calls:
            history.append(await context.tell_user(message.content))
"""
CAREFUL = """
from muarl import Message

async def agent(context):
    history = list(context.opening)
    while True:
        asked = Message("user", "Name the order.")
        plan = await context.generate([Message("system", "You plan."), asked], tools=[])
        context.note(plans=plan.content[:10])
        message = await context.generate(history)
        history.append(message)
        for call in message.tool_calls:
            history.append(await context.call_tool(call))
        if not message.tool_calls:
            history.append(await context.tell_user(message.content))
"""


def write_led_run(folder: Path, loop: str, **changes: Any) -> Path:
    """A run file in a folder, and the loop in another beside it."""
    rollout = {**SHORT["rollout"], "context_tokens": 1000, "loop": "../agents/mine.py:agent"}
    path = write_run(folder / "runs", **{"rollout": rollout, **changes})
    (folder / "agents").mkdir()
    (folder / "agents" / "mine.py").write_text(loop)
    return path


def episodes(folder: Path) -> dict[str, Episode]:
    return {str(episode.key): episode for episode in read_journal(RunFolder(folder).journal)}


def test_a_run_led_by_the_plain_loop_is_bitwise_that_of_muarl_s_own(tmp_path: Path) -> None:
    changes = {"cold_start": {"episodes": 24, "steps": 12}}
    rollout = {**SHORT["rollout"], "context_tokens": 1000}
    carry_out(write_run(tmp_path / "own", rollout=rollout, **changes), tmp_path / "a")
    carry_out(write_led_run(tmp_path / "led", PLAIN, **changes), tmp_path / "b")
    ours, theirs = episodes(tmp_path / "a"), episodes(tmp_path / "b")
    assert ours.keys() == theirs.keys()
    for key, episode in ours.items():
        assert [s.token_ids for s in episode.samples] == [s.token_ids for s in theirs[key].samples]
        assert [s.spans for s in episode.samples] == [s.spans for s in theirs[key].samples]
    trained = [weights_checksum(load_model(tmp_path / name / "model")) for name in "ab"]
    assert trained[0] == trained[1]


def test_what_sub_agents_sample_is_learned_from_too(tmp_path: Path) -> None:
    run = write_led_run(tmp_path, CAREFUL, model=ready_model())
    lines = carry_out(run, tmp_path / "out")
    assert len(lines) == 3
    led = [episode for episode in episodes(tmp_path / "out").values() if episode.notes]
    assert led
    for episode in led:
        assert episode.forks == len(episode.samples) - 1 >= 1
        assert all(any(sample.loss_mask()) for sample in episode.samples)


def test_floors_are_played_in_muarl_s_own_loop(tmp_path: Path) -> None:
    run = write_led_run(tmp_path, CAREFUL, model=ready_model())
    carry_out(run, tmp_path / "out")
    floors = [e for e in episodes(tmp_path / "out").values() if e.key.phase.startswith("floor:")]
    assert floors
    assert not any(episode.notes for episode in floors)


def test_a_person_talks_with_the_loop_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_led_run(tmp_path, PLAIN, model=ready_model(), grpo=None)
    carry_out(run, tmp_path / "out")
    spec = tmp_path / "out" / "spec.resolved.yaml"
    spec.write_text(spec.read_text().replace("mine.py", "raises.py"))  # mine.py is imported already
    (tmp_path / "agents" / "raises.py").write_text(
        "async def agent(context):\n    raise ValueError(context.opening[-1].content)\n"
    )
    (tmp_path / "said").write_text("hello there\n")
    with (tmp_path / "said").open() as lines:
        monkeypatch.setattr("sys.stdin", lines)
        assert main(["play", str(run.parent / "desk"), "--run", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err
    assert "the agent raised ValueError: hello there" in told
    assert "agents/raises.py:2, in agent" in told


def test_a_run_s_folder_follows_the_loop_to_where_it_is(tmp_path: Path) -> None:
    run = load_run(write_led_run(tmp_path, PLAIN))
    moved = run.spec.moved(run.path.parent, tmp_path / "deep" / "er")
    assert moved.rollout.loop == "../../agents/mine.py:agent"


@pytest.mark.parametrize(
    ("loop", "said"),
    [
        ("def agent(context): ...", "is no async function of one argument"),
        ("async def agent(): ...", "is no async function of one argument"),
        ("async def agent(context, other): ...", "is no async function of one argument"),
        ("agent = 3", "is no async function of one argument"),
        ("import nowhere_to_be_found\nasync def agent(context): ...", "nowhere_to_be_found"),
        ("agent = 1 / 0", "importing mine.py raised ZeroDivisionError"),
    ],
)
def test_what_is_no_loop_is_refused_where_it_is_named(loop: str, said: str, tmp_path: Path) -> None:
    run = load_run(write_led_run(tmp_path, loop))
    with pytest.raises(SpecError, match=said) as raised:
        loop_of(run)
    (problem,) = raised.value.problems
    assert Path(problem.path).name == "run.yaml"
    text = run.path.read_text().splitlines()[problem.line - 1]
    assert text[problem.column - 1 :].strip('"') == "../agents/mine.py:agent"


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("../agents/other.py:agent", "no such file"),
        ("../agents/mine.py:agnet", "did you mean 'agent'"),
        ("../agents/mine.py", "file.py:name"),
    ],
)
def test_a_loop_that_is_not_there_is_refused_as_the_run_is_read(
    named: str, said: str, tmp_path: Path
) -> None:
    run = write_led_run(tmp_path, PLAIN)
    run.write_text(run.read_text().replace("../agents/mine.py:agent", named))
    with pytest.raises(SpecError, match=said):
        load_run(run)


def test_an_expert_can_try_a_loop_before_there_is_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_led_run(tmp_path, CAREFUL)
    out = tmp_path / "out"
    assert main(["rollout", str(run), "--expert", "--out", str(out)]) == 0
    played = episodes(out).values()
    assert {str(episode.outcome) for episode in played} == {"completed"}
    assert all(episode.notes for episode in played)
    capsys.readouterr()


def test_check_looks_at_the_loop_too(tmp_path: Path) -> None:
    run = load_run(write_led_run(tmp_path, "def agent(context): ..."))
    with pytest.raises(SpecError, match="is no async function of one argument"):
        refuse_unfit(run, load_domain_of(run))  # what `muarl check RUN.yaml` ends with
