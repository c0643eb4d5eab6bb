from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measure_kit import said

from muarl.evaluate.statistics import wilson
from muarl.measure import CATALOGUE, Line, Transcript, View, measure
from muarl.measure.catalogue import METRICS
from muarl.measure.cues import AGENT, USER


def talk(task: str, number: int, text: str) -> Transcript:
    return said(text, "Shall I go ahead?", "Yes.", task=task, number=number)


def test_intervals_draw_whole_tasks() -> None:
    # Forty dialogues on two tasks know as little of other tasks as two dialogues do.
    talks = [
        talk(task, number, "please cancel it" if task == "a" else "cancel it")
        for task in "ab"
        for number in range(20)
    ]
    found = measure(talks).figures["polite_turns"]
    assert found.n == 80
    by_two = wilson(1, 2)
    assert found.high - found.low > 0.7 * (by_two.high - by_two.low)
    entropy = measure(talks).figures["act_entropy"]
    assert entropy.method == "bootstrap by task"


def test_the_same_seed_gives_the_same_table() -> None:
    talks = [talk(f"t{i}", 0, "please " * (i % 3) + "cancel it") for i in range(9)]
    assert measure(talks, seed=3) == measure(talks, seed=3)
    assert measure(talks, seed=3) != measure(talks, seed=4)


def test_faults_are_in_no_figure_but_their_own_rate() -> None:
    fault = said("please", task="x", outcome="user_fault")
    found = measure([talk("a", 0, "cancel it"), fault])
    assert (found.dialogues, found.faults, found.user_faults, found.fault_rate) == (1, 1, 1, 0.5)
    assert found.figures["polite_turns"].value == 0
    assert measure([]).fault_rate is None
    assert measure([]).figures == {}


def test_every_metric_has_a_figure_or_needs_a_reference() -> None:
    assert {figure.number for figure in CATALOGUE.values()} | {27, 28} == set(METRICS)
    assert list(METRICS) == list(range(1, 32))
    for name, figure in CATALOGUE.items():
        assert name == figure.name
        assert figure.says
        assert figure.source


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(max_size=60), min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from(["completed", "abandoned", "truncated_turns"]),
)
def test_any_text_can_be_measured(texts: list[str], stop: bool, outcome: str) -> None:
    lines = tuple(
        Line("agent" if i % 2 else "user", text, stop=stop and i == len(texts) - 1 and not i % 2)
        for i, text in enumerate(texts)
    )
    hostile = Transcript("a", "t", lines, outcome=outcome, reward=0.5)
    for name, estimate in measure([hostile], resamples=2).figures.items():
        if CATALOGUE[name].unit == "share":
            assert estimate.value is not None
            assert 0 <= estimate.value <= 1


@pytest.mark.parametrize(
    "piece", ["please ", "i'd rather ", "no, ", "wait, ", "a", "1", "1,", "a.a@"]
)
def test_a_long_hostile_text_is_read_in_the_time_of_its_length(piece: str) -> None:
    # Whatever went with the square of it would take minutes, and meet the timeout of the suite.
    text = piece * (20_000 // len(piece))
    assert len(View(said(*[text] * 5)).user) == 3


def test_every_pattern_is_told_apart() -> None:
    assert not set(USER) & {"ask", "close"}
    assert len(USER) == 12
    assert set(AGENT) == {"confirm", "refuse", "done", "offer", "transfer"}
