"""What a person sees of a run: the same few lines for eight dialogues and for eight thousand."""

from __future__ import annotations

import io
import threading
import time

import pytest
from rich.console import Console
from rich.console import Group as Lines

from muarl.cli import _display, _telling
from muarl.cli._display import LiveProgress, PlainProgress, display, drawn
from muarl.cli._grid import grid_lines
from muarl.cli._standing import Course
from muarl.cli._status import above, beside, brief, in_words, removals, status, status_lines
from muarl.evaluate import summarise
from muarl.evaluate.grid import Cell, GridFound
from muarl.evaluate.removal import Removal
from muarl.observe import Counters
from muarl.policy import EngineLoad
from muarl.record import Outcome, PredicateResult
from muarl.scheduler import EpisodePlan, Group
from muarl.spec.grid import GridSpec
from muarl.testing import build_episode, build_key


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def busy(num_live: int, clock: Clock) -> Counters:
    """A run with so many live dialogues, a few that ended, and faults of many kinds."""
    counters = Counters(clock=clock)
    plan = EpisodePlan(build_key())
    faults = [
        build_episode(
            outcome=Outcome.INFRA_FAULT,
            fault=f"Kind{i}Error",
            error="[bold]no policy answered[/bold] at \x1b[2J http://me:pw@host/v1 " + "x" * 500,
        )
        for i in range(9)
    ]
    good = [build_episode(reward=float(i)) for i in range(2)]
    for _ in range(2 * num_live):
        counters.attempt_started(plan)
    for i in range(num_live):
        if i % 8 == 0:
            counters.attempt_ended(plan, faults[i % 9], 1.0)
        else:
            counters.attempt_ended(plan, good[i % 2], None)
    counters.group_whole(Group(plan.key.group, ()))
    counters.window_set(EngineLoad(512, 3300, 0.873, 3), 4096)
    for _ in range(99):
        counters.tick(0.002)
    counters.tick(0.5)
    clock.now = 10.0
    return counters


def rendered(counters: Counters, width: int) -> list[str]:
    console = Console(record=True, width=width, file=io.StringIO(), color_system=None)
    snapshot = counters.snapshot()
    console.print(Lines(status(status_lines(snapshot, snapshot))))
    return console.export_text().rstrip("\n").split("\n")


def phases_shown(width: int, height: int) -> list[str]:
    course = Course(Counters())
    for name in ("floor", "cold start", "evaluate cold, T=1", "GRPO"):
        course.phase(name, 3000)
    course.advance(816, reward=0.5)
    console = Console(
        width=width, height=height, file=io.StringIO(), record=True, force_terminal=True
    )
    console.print(drawn(course.standing()))
    return [line.rstrip() for line in console.export_text().rstrip("\n").split("\n")]


@pytest.mark.parametrize("width", [40, 60])
def test_in_a_narrow_terminal_a_phase_keeps_its_numbers(width: int) -> None:
    lines = phases_shown(width, 24)
    assert lines[0] == "floor 3,000/3,000 0:00:00"
    assert lines[-1] == "GRPO 816/3,000 0:00:00 reward 0.500"


@pytest.mark.parametrize(("height", "names"), [(24, 4), (3, 2), (1, 1)])
def test_in_a_low_terminal_the_last_phases_are_shown(height: int, names: int) -> None:
    lines = phases_shown(100, height)
    assert len(lines) == names
    assert lines[-1].startswith("GRPO")


def test_beside_a_success_stands_what_it_leaves_out_and_what_else_was_found() -> None:
    rewards = [PredicateResult("python tools.py:reward", 1.0, "", caveat="nobody judged it")]
    metrics = [PredicateResult("share", 0.5, "")]
    episodes = [
        build_episode(build_key(sample=sample), rewards=rewards, metrics=metrics)
        for sample in range(2)
    ]
    assert beside(summarise(episodes)) == [
        "2 of 2 scores leave something out: nobody judged it",
        "pass^2 1.000 [0.207, 1.000]",
        "pass@2 1.000 [0.207, 1.000]",
        "share 0.500 (no interval: it is of one task)",
    ]


def test_beside_a_success_that_too_few_tasks_decide_stands_that_they_do() -> None:
    episodes = [build_episode(build_key(f"task {n}"), reward=float(n > 1)) for n in range(30)]
    line, *_ = beside(summarise(episodes))
    assert line.startswith("2 of 30 tasks ever failed, too few for an interval of 95 %")


def test_a_grid_says_what_its_scores_leave_out() -> None:
    rewards = [PredicateResult("python tools.py:reward", 1.0, "", caveat="nobody judged it")]
    summary = summarise([build_episode(rewards=rewards)])
    grid = GridSpec.model_construct(policies={"p": None}, users={"u": None}, trials=1, gain=None)
    cell = Cell("p", "u", summary.success, {}, {}, summary)
    found = GridFound(cells=[cell], policies=[], users=[], kept={}, verdict=None)
    lines = list(grid_lines(grid, 1, "held_out", found))
    assert "some scores leave something out: nobody judged it" in lines


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("num_live", [8, 4096, 20_000])
def test_the_status_is_as_many_lines_for_any_number_of_dialogues_and_fits_any_terminal(
    width: int, num_live: int
) -> None:
    lines = rendered(busy(num_live, Clock()), width)
    names = ["live", "ended", "rates", "engine", "loop lag", "success", "faults", "last fault"]
    assert [line[:10].strip() for line in lines] == names
    assert all(len(line) <= width for line in lines)


def test_at_eighty_columns_four_thousand_dialogues_are_read_whole() -> None:
    lines = rendered(busy(4096, Clock()), 80)
    assert lines[:-2] == [
        "live       4,096: 0 at the policy, 0 at tools, 0 at users, 4,096 between",
        "ended      3,584, 1 groups whole, 512 attempts tried again",
        "rates      0 tokens/s, 0.0 messages/s, 358.4 dialogues/s",
        "engine     512 running, 3,300 waiting, memory 87%, 3 preempted, window 4,096",
        "loop lag   median 2.3 ms, 99th percentile 2.3 ms, most 579.3 ms",
        "success    0.571 of 3,584 scored",
    ]
    assert lines[-2].startswith("faults     57 Kind")
    assert lines[-2].endswith("…")
    assert lines[-1].startswith(
        "last fault Kind2Error: [bold]no policy answered[/bold] at [2J http"
    )
    assert "me:pw" not in lines[-1]
    assert len(lines[-1]) == 80


def test_without_dialogues_nothing_is_shown_of_them() -> None:
    nothing = Counters().snapshot()
    assert status_lines(nothing, nothing) == {}
    assert brief(nothing) == ""


def test_when_all_have_ended_rates_are_those_of_the_phase() -> None:
    clock = Clock()
    counters = Counters(clock=clock)
    plan = EpisodePlan(build_key())
    counters.attempt_started(plan)
    counters.attempt_ended(plan, build_episode(plan.key), None)
    clock.now = 4.0
    phase, recent = counters.snapshot(), counters.snapshot().since(counters.snapshot())
    text = status(status_lines(phase, recent)).plain
    assert "live" not in text
    assert "0.2 dialogues/s" in text


def test_figures_in_words() -> None:
    figures = busy(4096, Clock()).snapshot().figures()
    assert in_words(figures | {"in_flight_mean": 3.0, "faults_by_kind": {"PolicyError": 2}}) == (
        "0 tokens/s, 0.0 messages/s, 3.0 messages in flight, engine memory 87%, "
        "99th percentile of loop lag 2.3 ms, faults: 2 PolicyError; 512 tried again"
    )
    nothing = Counters(clock=Clock()).snapshot().figures()
    assert in_words(nothing) == "0 tokens/s, 0.0 messages/s"


def live(counters: Counters, out: io.StringIO) -> LiveProgress:
    return LiveProgress(Course(counters), Console(file=out, force_terminal=True, width=100))


def test_the_live_view_shows_bars_notes_and_the_status_of_the_present_phase() -> None:
    clock, out = Clock(), io.StringIO()
    counters = busy(64, clock)
    progress = live(counters, out)
    with progress.view.shown():
        progress.phase("floor", 3)
        progress.advance(3, nothing=0.25)
        progress.phase("GRPO", 40)
        plan = EpisodePlan(build_key("new", 0))
        counters.attempt_started(plan)
        counters.attempt_ended(plan, build_episode(plan.key), None)
        progress.note("[1] kept on the screen")
        progress.advance(12, reward=0.5)
    last = out.getvalue().rpartition("floor")[2]
    assert "3/3" in last
    assert "nothing 0.250" in last
    assert "12/40" in last
    assert "1, 0 groups whole, 0 attempts tried again" in last, "of this phase alone"
    assert "[1] kept" in out.getvalue()


def test_drawing_takes_no_more_than_its_share_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spent = 0.0
    pauses: list[float] = []

    class Ended(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            pauses.append(timeout)
            return len(pauses) == 3

    class SlowTime:
        @staticmethod
        def thread_time() -> float:
            return spent

    view = live(Counters(), io.StringIO()).view

    def slow_refresh() -> None:
        nonlocal spent
        spent += 0.020

    monkeypatch.setattr(view, "refresh", slow_refresh)
    monkeypatch.setattr(_display, "time", SlowTime)
    view.draw_until(Ended())
    assert pauses == pytest.approx([0.5, 2.0, 2.0])


def test_what_goes_to_no_terminal_is_plain_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    counters = busy(64, clock)
    with display(Course(counters)) as progress:
        assert isinstance(progress, PlainProgress)
        progress.phase("rollout, T=1", 4)
        plan = EpisodePlan(build_key("new", 0))
        counters.attempt_started(plan)
        progress.advance(2, reward=0.5)
        counters.attempt_ended(plan, build_episode(plan.key), None)
        clock.now += 2.0
        progress.advance(4, reward=0.5, loss=None)
        progress.note("done")
    lines = [line.partition("] ")[2] for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "rollout, T=1: 4",
        "rollout, T=1: 4/4  reward 0.500  live 64  0 tokens/s  success 1.000",
        "done",
    ]


class Stream(io.StringIO):
    """Stands for stderr; `tty` is whether it is a terminal."""

    def __init__(self, tty: bool) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


@pytest.mark.parametrize(
    ("tty", "environment", "is_live"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {"TERM": "dumb"}, False),
        (False, {"TERM": "xterm", "FORCE_COLOR": "1"}, False),
        (False, {"TERM": "xterm", "TTY_COMPATIBLE": "1"}, False),
    ],
)
def test_only_a_terminal_that_can_is_drawn_over(
    monkeypatch: pytest.MonkeyPatch, tty: bool, environment: dict[str, str], is_live: bool
) -> None:
    """A log that asks for colours, as many do, is a log."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stderr", stream := Stream(tty))
    with display(Course(Counters())) as progress:
        assert isinstance(progress, LiveProgress) == is_live
        progress.phase("rollout", 4)
        progress.advance(4)
        _telling.show_step("a step")
    assert ("\x1b" in stream.getvalue()) == is_live
    assert "rollout" in stream.getvalue()


def test_lines_of_a_run_go_on_with_the_seconds_that_were_told_before(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_telling, "_BEGUN", time.monotonic() - 1000)
    _telling.tell("reading the domain")
    with display(Course(Counters())) as progress:
        progress.phase("rollout", 4)
    said = capsys.readouterr().err.splitlines()
    assert [line[:5] for line in said] == ["[1000", "[1000"]


def test_drawing_four_thousand_dialogues_takes_as_long_as_drawing_eight() -> None:
    def least_s(num_live: int) -> float:
        view = live(busy(num_live, Clock()), io.StringIO()).view
        seconds = []
        with view.shown():
            for _ in range(20):
                before = time.thread_time()
                view.refresh()
                seconds.append(time.thread_time() - before)
        # The least of them: what else this machine does is not drawing's doing.
        return min(seconds)

    assert least_s(4096) < 5 * least_s(8)


def test_what_user_faults_took_out_is_said_and_nothing_where_they_took_nothing() -> None:
    assert removals(Removal()) == []
    removed = Removal(
        by_persona={"plain": {"format": 1, "leak": 2}, "fickle/gpt": {"early_stop": 1}},
        by_task={"a": 0.25, "b": 0.5},
        resampled={"leak": 1_200},
    )
    assert removals(removed) == [
        "user faults: plain: 1 format, 2 leak; fickle/gpt: 1 early_stop",
        "  taken out: at most 0.500 of a task's dialogues (b), of 2 tasks some",
        "messages of users sampled again: 1,200 leak",
    ]


def test_what_stands_beside_a_success_is_said_and_of_each_domain() -> None:
    floor = {"value": 0.1, "low": 0.05, "high": 0.2, "n": 40, "method": "wilson"}
    share = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 40, "method": "ratio of both"}
    fields = {
        "floor": floor,
        "above_floor": share,
        "contamination": {"says": "none found"},
        "floor_by_row": {
            "shop": {"floor": floor, "above_floor": None},
            "bank": {"floor": None, "above_floor": None},
        },
    }
    assert above(fields) == [
        "above the floor 0.500 [0.400, 0.600]; the floor is 0.100 [0.050, 0.200]",
        "trained on: none found",
        "shop: above the floor unknown; the floor is 0.100 [0.050, 0.200]",
    ]
