"""Figures of a run in TensorBoard, Weights & Biases and Trackio, read back by their own libraries."""

from __future__ import annotations

import json
import logging
import sqlite3
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muarl.errors import SetupError
from muarl.figures import Figures
from muarl.observe.sinks import Sinks
from muarl.observe.sinks.apart import SinkApart
from muarl.observe.sinks.sink import figures_of
from muarl.spec.sinks import SinkSpec
from muarl.train.run_folder import RunFolder


def spec(value: Any) -> SinkSpec:
    return SinkSpec.model_validate(value)


def iteration(number: int, reward: float) -> dict[str, Any]:
    return {"kind": "iteration", "iteration": number, "reward_mean": reward, "skipped": []}


LINES = [
    {"kind": "floor", "name": "do_nothing", "success": {"value": 0.09, "method": "wilson"}},
    {"kind": "cold_start", "step": 10, "loss": 4.5},
    *(iteration(number, number / 4) for number in range(3)),
    {"kind": "eval", "phase": "final", "temperature": 1.0, "success": {"value": 0.75}, "ok": True},
]


@pytest.mark.parametrize(
    ("line", "axis", "at", "values"),
    [
        (LINES[0], "iteration", 7, {"floor/do_nothing/success/value": 0.09}),
        (LINES[1], "step", 10, {"cold_start/loss": 4.5}),
        (LINES[3], "iteration", 1, {"iteration/reward_mean": 0.25}),
        (LINES[-1], "iteration", 7, {"eval/final/T1/success/value": 0.75}),
        (
            {
                "kind": "users",
                "phase": "eval",
                "temperature": 1.0,
                "figures": {"asks": {"value": 0.5}},
            },
            "iteration",
            7,
            {"users/eval/T1/figures/asks/value": 0.5},
        ),
        (
            {"kind": "users", "policy": "mine", "user": "hers", "dialogues": 3},
            "iteration",
            7,
            {"users/mine/hers/dialogues": 3.0},
        ),
        ({"kind": "overlap", "against": "x"}, "iteration", 7, {}),
    ],
)
def test_the_numbers_of_a_line_have_paths_and_lie_on_an_axis(
    line: dict[str, Any], axis: str, at: int, values: dict[str, float]
) -> None:
    assert figures_of(line, 7) == Figures(axis, at, values)


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard itself reads."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    read = EventAccumulator(str(folder / "tensorboard"), size_guidance={"tensors": 0})
    read.Reload()
    return {
        tag: [(event.step, float(make_ndarray(event.tensor_proto))) for event in read.Tensors(tag)]
        for tag in read.Tags()["tensors"]
    }


def write_lines(folder: Path, sinks: list[Any], lines: list[dict[str, Any]]) -> RunFolder:
    run = RunFolder(folder)
    with Sinks([spec(sink) for sink in sinks], folder, {"seed": 3}) as opened:
        run.sinks = opened
        for line in lines:
            run.log(**line)
    return run


def test_tensorboard_reads_every_figure_of_a_run(tmp_path: Path) -> None:
    write_lines(tmp_path, ["tensorboard"], LINES)
    found = scalars(tmp_path)
    assert found["cold_start/loss"] == [(10, 4.5)]
    assert found["iteration/reward_mean"] == [(0, 0.0), (1, 0.25), (2, 0.5)]
    assert found["eval/final/T1/success/value"] == [(3, 0.75)]


def test_what_a_resumed_run_does_again_replaces_what_it_did(tmp_path: Path) -> None:
    run = write_lines(tmp_path, ["tensorboard"], LINES)
    with Sinks([spec("tensorboard")], tmp_path, {}) as opened:
        run.sinks = opened
        run.keep_lines(lambda line: line.get("iteration", 0) < 2 and line["kind"] != "eval")
        run.log(**iteration(2, 1.0))
        run.log(**LINES[-1])
    found = scalars(tmp_path)
    assert found["iteration/reward_mean"] == [(0, 0.0), (1, 0.25), (2, 1.0)]
    assert found["cold_start/loss"] == [(10, 4.5)]
    assert found["eval/final/T1/success/value"] == [(3, 0.75)]


def logged(file: bytes) -> Iterator[bytes]:
    """The records of a LevelDB log, which a `.wandb` file is: blocks of 32 KiB, of records in parts."""
    record, at = b"", 7  # behind the file's own header
    while at < len(file):
        if 32_768 - at % 32_768 < 7:  # the block has no room for another header
            at += 32_768 - at % 32_768
            continue
        _, size, kind = struct.unpack("<IHB", file[at : at + 7])
        record += file[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield record
            record = b""


def test_weights_and_biases_gets_them_offline_with_an_axis_for_each_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    import wandb
    from wandb.proto.wandb_internal_pb2 import Record

    write_lines(tmp_path, [{"wandb": {"mode": "offline", "project": "p"}}], LINES)
    wandb.teardown()  # as at the end of a process: what writes the file does so in its own time
    (file,) = (tmp_path / "wandb").glob("offline-run-*/run-*.wandb")
    rows, axes = [], {}
    for data in logged(file.read_bytes()):
        record = Record()
        record.ParseFromString(data)
        if record.HasField("history"):
            items = record.history.item
            rows.append(
                {
                    item.key or "/".join(item.nested_key): json.loads(item.value_json)
                    for item in items
                }
            )
        if record.HasField("metric") and record.metric.step_metric:
            axes[record.metric.glob_name] = record.metric.step_metric
        if record.HasField("run"):
            assert record.run.project == "p"
    assert [row["iteration/reward_mean"] for row in rows if row.get("at/iteration") in (1, 2)] == [
        0.25,
        0.5,
    ]
    assert axes["cold_start/*"] == "at/step"
    assert axes["*"] == "at/iteration"


def test_trackio_has_them_in_its_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import trackio.sqlite_storage as storage

    for module in (storage, __import__("trackio.utils", fromlist=["utils"])):
        monkeypatch.setattr(module, "TRACKIO_DIR", tmp_path / "db", raising=False)
    (tmp_path / "run").mkdir()
    write_lines(tmp_path / "run", [{"trackio": {"project": "p"}}], LINES)
    capsys.readouterr()
    (database,) = (tmp_path / "db").glob("p*.db")
    with sqlite3.connect(database) as opened:
        rows = [json.loads(row[0]) for row in opened.execute("select metrics from metrics")]
    assert [
        row["iteration/reward_mean"] for row in rows if row.get("iteration/reward_mean") is not None
    ] == [0.0, 0.25, 0.5]


class Broken:
    """A sink whose service goes away."""

    def __init__(self) -> None:
        self.told = 0

    def write(self, figures: Figures) -> None:
        self.told += 1
        raise ConnectionError("the service is gone")

    def rewind(self, kept: list[Figures]) -> None:
        raise AssertionError

    def close(self) -> None:
        raise AssertionError("it has been given up")


def test_a_sink_that_raises_is_told_no_more_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Broken()
    monkeypatch.setattr(Sinks, "_opened", lambda self, spec: broken)
    with caplog.at_level(logging.WARNING, logger="muarl"):
        run = write_lines(tmp_path, ["tensorboard"], LINES)
    assert broken.told == 1
    assert [record.getMessage() for record in caplog.records] == [
        "the sink 'tensorboard' is told no more: the service is gone"
    ]
    assert len(list(run.lines())) == len(LINES)


class Slow:
    """A sink that takes nothing before the run has gone on.

    Args:
        taken: What it was told.
        released: Before that it waits.
    """

    def __init__(self, taken: list[Any], released: threading.Event) -> None:
        self.taken = taken
        self.released = released

    def write(self, figures: Figures) -> None:
        assert self.released.wait(60), "the run waits for its sink"
        self.taken.append(figures.at)

    def rewind(self, kept: list[Figures]) -> None:
        self.taken.clear()

    def close(self) -> None:
        self.taken.append("closed")


def test_a_slow_sink_holds_no_run_up_and_gets_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Any] = []
    released = threading.Event()
    monkeypatch.setattr(Sinks, "_opened", lambda self, spec: Slow(taken, released))
    run = RunFolder(tmp_path)
    with Sinks([spec("tensorboard")], tmp_path, {}) as opened:
        run.sinks = opened
        for number in range(3):
            run.log(**iteration(number, 0.5))
        assert taken == []
        released.set()
    assert taken == [0, 1, 2, "closed"]


def test_a_sink_that_hangs_does_not_keep_a_run_from_ending(
    caplog: pytest.LogCaptureFixture,
) -> None:
    never = threading.Event()
    sink = SinkApart("mine", lambda: Slow([], never), patience_s=0.1)
    sink.open()
    sink.tell(lambda slow: slow.write(Figures("iteration", 0, {})))
    with caplog.at_level(logging.WARNING, logger="muarl"):
        sink.close()
    assert "the sink 'mine' has taken nothing for 0 s: the run ends without it" in caplog.text
    never.set()


def test_a_sink_is_opened_told_and_closed_in_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A connection to SQLite, for one, is of the thread that opened it."""

    class Kept:
        def __init__(self) -> None:
            self.database = sqlite3.connect(":memory:")

        def write(self, figures: Figures) -> None:
            self.database.execute("select 1")

        def rewind(self, kept: list[Figures]) -> None:
            self.database.execute("select 1")

        def close(self) -> None:
            self.database.close()

    monkeypatch.setattr(Sinks, "_opened", lambda self, spec: Kept())
    write_lines(tmp_path, ["tensorboard"], LINES)
    assert caplog.text == ""


def test_a_sink_that_would_end_the_process_ends_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def leave(*_: Any) -> None:
        raise SystemExit(3)

    monkeypatch.setattr(Broken, "write", leave)
    monkeypatch.setattr(Sinks, "_opened", lambda self, spec: Broken())
    run = write_lines(tmp_path, ["tensorboard"], LINES)
    assert "the sink 'tensorboard' is told no more: SystemExit: 3" in caplog.text
    assert len(list(run.lines())) == len(LINES)
    monkeypatch.setattr(Sinks, "_opened", leave)
    with pytest.raises(SetupError, match="cannot be opened: SystemExit: 3"):
        write_lines(tmp_path, ["tensorboard"], LINES)


def test_a_sink_that_cannot_be_opened_refuses_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Sinks, spec: SinkSpec) -> Broken:
        raise PermissionError("no key")

    monkeypatch.setattr(Sinks, "_opened", refuse)
    with pytest.raises(SetupError, match="'tensorboard' cannot be opened: no key"):
        write_lines(tmp_path, ["tensorboard"], LINES)
