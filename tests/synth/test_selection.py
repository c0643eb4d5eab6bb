"""The merged graph of rollouts, and which dialogues are handed over."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from bad_input import InProcess
from synth_kit import own, write_synth

from muarl.domain import load_domain
from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import Episode, EpisodeKey, StoredEpisodes, Turn, UserReply
from muarl.spec.select import SelectSpec
from muarl.synth.graph import Shape, StateGraph
from muarl.synth.select import Selected, select
from muarl.testing import build_episode
from muarl.world import Change


@pytest.fixture
def muarl(capfd: pytest.CaptureFixture[str]) -> InProcess:
    return InProcess(capfd)


def does(tool: str, *changes: Change, fails: bool = False) -> Turn:
    """A turn that calls a tool."""
    call = ToolCall("c", tool, {})
    message = Message("assistant", "", (call,))
    result = ToolResult("c", tool, "no" if fails else "ok", is_error=fails)
    return Turn(message, 0, 0, 0, "stop", 0, results=[result], changes=list(changes))


SPEAKS = Turn(Message("assistant", "Done."), 0, 0, 0, "stop", 0, reply=UserReply("bye", act="stop"))
ON, OFF = Change("x", 0, 1, "changed"), Change("x", 1, 0, "changed")


def rollout(number: int, reward: float, *turns: Turn, persona: str = "plain") -> Episode:
    episode = own(build_episode())
    episode.key = EpisodeKey(0, "synth", 0, "task", number)
    episode.turns, episode.reward, episode.persona = list(turns), reward, persona
    return episode


def test_rollouts_are_merged_and_error_branches_found() -> None:
    """Three look first and succeed, one writes at once and fails."""
    graph = StateGraph()
    good = [rollout(n, 1.0, does("look"), does("write", ON), SPEAKS) for n in range(3)]
    bad = rollout(3, 0.0, does("write", ON), SPEAKS)
    for episode in (*good, bad):
        graph.add(episode)
    figures = graph.figures()
    # The start, after the look, after the write: of which the last is met with the same by all.
    assert (figures.steps, figures.states, figures.branches) == (11, 3, 1)
    assert figures.error_branch_ratio == 0.5
    shape, other = graph.shape(good[0].key), graph.shape(bad.key)
    assert shape.error_branches == 1
    assert other.error_branches == 0
    assert shape.diversity == pytest.approx(-math.log(3 / 4) / 3)
    assert other.diversity == pytest.approx(-math.log(1 / 4) / 2)


def test_rollouts_that_do_the_same_are_no_branch() -> None:
    graph = StateGraph()
    for number in range(4):
        graph.add(rollout(number, 1.0, does("look"), SPEAKS))
    figures = graph.figures()
    assert (figures.branches, figures.error_branch_ratio, figures.diversity) == (0, None, 0.0)


@pytest.mark.parametrize(
    ("turns", "reward", "recovers"),
    [
        ([does("look", fails=True), does("look"), SPEAKS], 1.0, True),
        ([does("look", fails=True), does("look"), SPEAKS], 0.0, False),
        ([does("write", ON), does("write", OFF), SPEAKS], 1.0, True),
        ([does("write", ON), does("look"), SPEAKS], 1.0, False),
        ([does("look"), SPEAKS], 1.0, False),
    ],
)
def test_a_success_after_a_failure_recovers(
    turns: list[Turn], reward: float, recovers: bool
) -> None:
    graph = StateGraph()
    graph.add(episode := rollout(0, reward, *turns))
    assert graph.shape(episode.key).recovers is recovers


def chosen(spec: SelectSpec, *rollouts: tuple[Episode, Shape]) -> list[int]:
    candidates = [Selected(episode, spec.axes) for episode, _ in rollouts]
    shapes = {episode.key: shape for episode, shape in rollouts}
    return sorted(key.sample for key in select(candidates, shapes, spec))


def test_cells_take_turns_and_what_is_rare_comes_first() -> None:
    plain = [(rollout(n, 1.0, SPEAKS), Shape(n / 10, 0, False)) for n in range(6)]
    terse = [(rollout(n, 1.0, SPEAKS, persona="terse"), Shape(0.0, n, False)) for n in (6, 7)]
    spec = SelectSpec(at_most=4, axes=["persona"], recoveries=0.0)
    assert chosen(spec, *plain, *terse) == [4, 5, 6, 7], "two of each; the rarest of the plain ones"
    spec = SelectSpec(at_most=6, axes=["persona"], recoveries=0.0)
    assert chosen(spec, *plain, *terse) == [2, 3, 4, 5, 6, 7], (
        "a cell that is empty waits for nobody"
    )
    assert len(chosen(SelectSpec(at_most=99), *plain, *terse)) == 8


def test_composed_tasks_are_spread_by_what_they_were_balanced_by() -> None:
    common = [(rollout(n, 1.0, SPEAKS), Shape(1.0, 0, False)) for n in range(6)]
    refused = [(rollout(n, 1.0, SPEAKS), Shape(0.0, 0, False)) for n in (6, 7)]
    for episode, _ in common:
        episode.axes = {"refusals": 0}
    for episode, _ in refused:
        episode.axes = {"refusals": 1}
    spec = SelectSpec(at_most=4, axes=["refusals"], recoveries=0.0)
    assert {6, 7} <= set(chosen(spec, *common, *refused))


def test_recoveries_are_kept_whatever_is_rarer() -> None:
    common = [(rollout(n, 1.0, SPEAKS), Shape(1.0, 3, False)) for n in range(8)]
    healed = [(rollout(n, 1.0, SPEAKS), Shape(0.0, 0, True)) for n in (8, 9)]
    spec = SelectSpec(at_most=5, axes=["persona"], recoveries=0.4)
    assert {8, 9} <= set(chosen(spec, *common, *healed))
    assert len(chosen(spec, *common, *healed)) == 5


def test_what_is_not_chosen_is_left_out_and_says_so(muarl: InProcess, tmp_path: Path) -> None:
    spec = write_synth(tmp_path, "select: {at_most: 4, axes: [writes, turns]}")
    out = tmp_path.parent / f"{tmp_path.name}-out"
    done = muarl("synth", spec, "--out", out, "--json")
    assert done.code == 0, done.lines
    table = json.loads(done.out)
    assert (table["made"], table["kept"]) == (6, 4)
    last = table["stages"][-1]
    assert (last["stage"], last["seen"], last["passed"]) == ("select", 6, 4)
    assert last["reasons"] == {"1, 0": 2}
    assert table["graph"]["made"]["steps"] == 18
    assert load_domain(tmp_path).splits == ("train",)


def test_a_tasks_axes_reach_its_dialogues_and_change_nothing_else(
    muarl: InProcess, tmp_path: Path
) -> None:
    write_synth(tmp_path)
    path = tmp_path / "tasks.yaml"
    plain = load_domain(tmp_path).tasks("train")[0]
    path.write_text(path.read_text().replace("tasks:", "defaults: {axes: {finds: 2}}\ntasks:"))
    told = load_domain(tmp_path).tasks("train")[0]
    assert told.axes == {"finds": 2}
    assert (told.situation_hash, told.content_hash) == (plain.situation_hash, plain.content_hash)
    out = tmp_path.parent / f"{tmp_path.name}-out"
    assert muarl("synth", tmp_path / "synth.yaml", "--out", out).code == 0
    assert [one.axes for one in StoredEpisodes([out / "episodes.journal"])] == [{"finds": 2}] * 6
