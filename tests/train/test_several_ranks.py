"""A run by several ranks: it dies with a rank, says so, and any number of ranks goes on with it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from short_run import SHORT, carry_out, ready_model, write_run
from torchrun import torchrun

from muarl.cli import main
from muarl.errors import SetupError, SpecError
from muarl.kernel.model import load_model
from muarl.kernel.ranks import Ranks
from muarl.record import Episode, EpisodeKey, read_journal
from muarl.spec import load_run
from muarl.testing.vllm_serve import vllm_servers
from muarl.train.rank_folder import collect_logs
from muarl.train.ready import refuse_for_many, refuse_other_runs
from muarl.train.run_folder import RunFolder

needs_vllm = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None and not os.environ.get("MUARL_REQUIRE_VLLM"),
    reason="vLLM is not installed: `make vllm`",
)

DIES = """
import os
import signal
from pathlib import Path

ONCE = Path(__file__).parent.parent / "dies"
calls = 0


def an_e(evidence):
    global calls
    calls += 1
    if os.environ.get("RANK") == "1" and calls > {calls} and ONCE.exists():
        ONCE.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return any("e" in text for _, text in evidence.heard())
"""
"""Rewards as of a short run; and in the middle of the second iteration rank 1 is killed, once."""

EVERY = 1  # iteration has a checkpoint
PLAYED_BY_ONE = 5 * 4 // 2 + 4 // 2  # floors and the cold evaluation, by one of two ranks
GROUPS, SIZE = 4, 4


def episodes(folder: Path) -> dict[EpisodeKey, Episode]:
    return {episode.key: episode for episode in read_journal(folder / "episodes.journal")}


@pytest.mark.timeout(600)
def test_L9_a_rank_that_dies_ends_the_run_which_one_and_four_go_on_with(tmp_path: Path) -> None:
    run_file = write_run(
        tmp_path,
        model=ready_model(),
        grpo={**SHORT["grpo"], "tasks_per_iteration": GROUPS, "mode": "one_step_off"},
        eval={"episodes": 4, "temperatures": [1.0]},
    )
    calls = PLAYED_BY_ONE + GROUPS * SIZE // 2 + 3
    (tmp_path / "desk" / "pays.py").write_text(DIES.replace("{calls}", str(calls)))
    undisturbed = carry_out(run_file, tmp_path / "one")

    (tmp_path / "dies").touch()
    command = ("-m", "muarl.cli", "train", run_file, "--out")
    code, said = torchrun(2, *command, tmp_path / "two", cwd=tmp_path)
    assert code == 1, said
    assert not (tmp_path / "dies").exists(), said
    assert re.search(
        r"muarl: rank 1 of 2 has ended: process \d+ on \S+ is gone .*--resume", said
    ), said
    assert "Traceback" not in said.partition("torch/distributed/elastic")[0]
    left = list(read_journal(tmp_path / "two" / "episodes.rank1.journal"))
    assert any(episode.key.trains for episode in left), "what rank 1 had played is on disk"

    shutil.copytree(tmp_path / "two", tmp_path / "two-one")
    by_one = carry_out(run_file, tmp_path / "two-one", resume=True)
    code, said = torchrun(4, *command, tmp_path / "two", "--resume", cwd=tmp_path)
    assert code == 0, said
    by_four = [line for line in RunFolder(tmp_path / "two").lines() if line["kind"] == "iteration"]

    expected = episodes(tmp_path / "one")
    weights = dict(load_model(tmp_path / "one" / "model").named_parameters())
    for folder, lines in (("two-one", by_one), ("two", by_four)):
        assert [line["iteration"] for line in lines] == [0, 1, 2]
        assert [line["reward_mean"] for line in lines] == [
            line["reward_mean"] for line in undisturbed
        ]
        for line, one in zip(lines, undisturbed, strict=True):
            assert line["loss"] == pytest.approx(one["loss"], rel=1e-3, abs=1e-5)
        played = Counter(e.key for e in read_journal(tmp_path / folder / "episodes.journal"))
        assert set(played.values()) == {1}, "no dialogue is had twice"
        found = episodes(tmp_path / folder)
        assert found.keys() == expected.keys()
        for key, episode in found.items():
            assert [s.token_ids for s in episode.samples] == [
                s.token_ids for s in expected[key].samples
            ], key
        for name, weight in load_model(tmp_path / folder / "model").named_parameters():
            torch.testing.assert_close(weight, weights[name], rtol=1e-3, atol=1e-4)
        assert not list((tmp_path / folder).glob("episodes.rank*")), "all is in the run's journal"


@pytest.mark.vllm
@pytest.mark.slow
@pytest.mark.timeout(1200)
@needs_vllm
def test_two_ranks_sample_from_servers_that_the_first_one_syncs(tmp_path: Path) -> None:
    model = ready_model()
    with vllm_servers(Path(model["path"]), 2) as urls:
        server = {"endpoints": urls, "logprob_tolerance": 1e-3}
        run_file = write_run(
            tmp_path,
            model=model,
            engine={"vllm_server": server},
            eval={"episodes": 4, "temperatures": [1.0]},
        )
        code, said = torchrun(
            2, "-m", "muarl.cli", "train", run_file, "--out", tmp_path / "out", cwd=tmp_path
        )
    assert code == 0, said
    rounds = [line for line in RunFolder(tmp_path / "out").lines() if line["kind"] == "iteration"]
    assert [line["policy_version"] for line in rounds] == [0, 1, 2]
    for line in rounds:
        assert line["episodes"] == 16
        assert line["max_logprob_gap"] <= 1e-3, "sampled by the weights that learn, by both ranks"
        assert line["sync_gap"] <= 1e-3
        assert line["lag_max"] == 0


USER = {"model": {"tiny": {"num_layers": 2}}, "cold_start": {"episodes": 300}}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"engine": "vllm"}, "engine: vllm runs in one process"),
    ({"grpo": {**SHORT["grpo"], "mode": "asynchronous"}}, "asynchronous is not carried out"),
    ({"kernel": {"optimizer_bits": 8}}, "8-bit states are not shared out"),
    ({"user": {"model": {}}, "user_model": USER}, "a user who is a model is not played"),
    ({"grpo": {**SHORT["grpo"], "credit": {"checklist": {}}}}, "checklist credit is not measured"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_what_several_ranks_do_not_do_is_refused_with_its_key(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    located = load_run(write_run(tmp_path, **changes))
    refuse_for_many(located, Ranks())
    with pytest.raises(SpecError) as caught:
        refuse_for_many(located, Ranks(0, 2))
    (problem,) = caught.value.problems
    assert message in problem.message
    assert problem.line > 1


class Heard(Ranks):
    """One of two ranks, which hears the other's words."""

    def __init__(self, other: bytes | None = None) -> None:
        super().__init__(1, 2)
        self._other = other
        self.said = b""

    def gather(self, data: bytes) -> list[bytes]:
        self.said = data
        return [self._other or data, data]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 9}, "run.seed: 5 -> 9"),
        ({"grpo": {**SHORT["grpo"], "lr": 0.5}}, r"run.grpo.lr: .* -> 0.5"),
        ({"threads": 2}, None),
    ],
)
def test_ranks_that_were_started_with_different_runs_are_told_what_differs(
    changes: dict[str, Any], words: str | None, tmp_path: Path
) -> None:
    for folder in ("first", "other"):
        (tmp_path / folder).mkdir()
    run = load_run(write_run(tmp_path / "first")).spec
    other = load_run(write_run(tmp_path / "other", **changes)).spec
    first = Heard()
    refuse_other_runs(run, {"tasks": {"a": "1"}}, first)
    with pytest.raises(SetupError, match=r"rank 1 .* another run than rank 0[^$]*domain.tasks.a"):
        refuse_other_runs(run, {"tasks": {"a": "2"}}, Heard(first.said))
    if words is None:
        refuse_other_runs(other, {"tasks": {"a": "1"}}, Heard(first.said))
        return
    with pytest.raises(SetupError, match=words):
        refuse_other_runs(other, {"tasks": {"a": "1"}}, Heard(first.said))


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ({}, True),
        ({"TORCHELASTIC_RUN_ID": "1", "LOCAL_RANK": "0"}, True),
        ({"TORCHELASTIC_RUN_ID": "1", "LOCAL_RANK": "1"}, False),
        ({"LOCAL_RANK": "1"}, True),
    ],
)
def test_what_is_wrong_with_files_is_said_once_by_the_ranks_of_a_machine(
    beside: dict[str, str],
    said: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("TORCHELASTIC_RUN_ID", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in beside.items():
        monkeypatch.setenv(name, value)
    run_file = write_run(tmp_path, engine="vllm")
    assert main(["train", str(run_file), "--set", "grpo.lrr=1", "--dry-run"]) == 2
    assert bool(capsys.readouterr().err) == said


def test_logs_of_ranks_that_are_no_more_are_put_into_the_runs(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.events.write_text('{"at": 1}\n')
    (tmp_path / "log.rank1.jsonl").write_text('{"at": 2}\n')
    (tmp_path / "log.rank2.jsonl").write_text('{"at": 3}\n')
    collect_logs(folder)
    assert folder.events.read_text() == '{"at": 1}\n{"at": 2}\n{"at": 3}\n'
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]
    collect_logs(folder)
