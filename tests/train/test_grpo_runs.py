"""Short GRPO runs on each engine, from one spec that differs in one line."""

from __future__ import annotations

import importlib.util
import json
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from short_run import SHORT, carry_out, ready_model, write_run

from muarl.domain import load_domain
from muarl.errors import NonFiniteLoss
from muarl.kernel.model import load_model, weights_checksum
from muarl.policy.torch_engine import Engine, Row
from muarl.record import EpisodeKey, read_journal
from muarl.record.learned import read_learned
from muarl.spec import load_run
from muarl.testing.vllm_serve import vllm_servers
from muarl.train.grpo import TrainingSet, training_set
from muarl.train.models import open_model

needs_vllm = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None and not os.environ.get("MUARL_REQUIRE_VLLM"),
    reason="vLLM is not installed: `make vllm`",
)

# Largest |sampler - trainer| log-prob gap that rounding explains, both in fp32.
TOLERANCE = {"embedded": 1e-4, "vllm": 1e-3, "vllm_server": 1e-3}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[list[str]]:
    """Two servers on a model of the run's form with other weights."""
    run = load_run(write_run(tmp_path / "other", seed=77))
    domain = load_domain(tmp_path / "other" / "desk")
    anyio.run(open_model, domain, run, tmp_path / "model")
    with vllm_servers(tmp_path / "model", 2) as urls:
        yield urls


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "engine",
    [
        "embedded",
        *(
            pytest.param(name, marks=[pytest.mark.vllm, pytest.mark.slow, needs_vllm])
            for name in ("vllm", "vllm_server")
        ),
    ],
)
def test_three_iterations_stay_on_policy_across_weight_syncs(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    setting: Any = engine
    if engine == "vllm_server":
        endpoints = request.getfixturevalue("served")
        setting = {engine: {"endpoints": endpoints, "logprob_tolerance": TOLERANCE[engine]}}
    rounds = carry_out(write_run(tmp_path, engine=setting), tmp_path / "out")

    assert [line["policy_version"] for line in rounds] == [0, 1, 2]
    for line in rounds:
        assert line["trained_tokens"] > 0
        # Each round is sampled after a sync; its first update sees how far the engine is off.
        assert line["max_logprob_gap"] <= TOLERANCE[engine]
        assert line["first_ratio_mean"] == pytest.approx(1, abs=TOLERANCE[engine])
        assert line["first_ratio_max"] == pytest.approx(1, abs=2 * TOLERANCE[engine])
        assert line["token_drift"] == 0
        observed = line["observed"]
        assert observed["attempts"] == line["episodes"] == 16, "of this round alone"
        tokens = line["sampled_tokens_per_s"] * line["rollout_s"]
        assert observed["sampled_tokens"] == observed["kept_tokens"] == pytest.approx(tokens)
        if engine != "embedded":
            assert line["sync_gap"] <= TOLERANCE[engine]
        assert set(line["distinct"]) == {"1", "2", "3"}
        assert line["tool_errors"].keys() == line["tool_calls"].keys()
    _each_episode_says_what_it_taught(tmp_path / "out", TOLERANCE[engine])

    # The weights did move, by more than rounding: agreement above is not that of a frozen model.
    before, after = load_model(tmp_path / "out/cold_start"), load_model(tmp_path / "out/model")
    assert weights_checksum(before) != weights_checksum(after)
    versions = {
        span.policy_version
        for episode in read_journal(tmp_path / "out/episodes.journal")
        if episode.key.phase == "train"
        for sample in episode.samples
        for span in sample.spans
    }
    assert versions == {0, 1, 2}


def _each_episode_says_what_it_taught(run: Path, tolerance: float) -> None:
    learned = read_learned(run / "learned.jsonl")
    episodes = [e for e in read_journal(run / "episodes.journal") if e.key.trains]
    assert learned.keys() == {str(e.key) for e in episodes if e.reward is not None}
    looked_at = 0
    for episode in episodes:
        found = learned[str(episode.key)]
        assert len(found.turns) == len(episode.turns)
        for sample, logprobs in zip(episode.samples, found.trainer_logprobs, strict=False):
            if logprobs is not None:
                looked_at += 1
                assert logprobs == pytest.approx(sample.logprobs, abs=tolerance)
    assert looked_at > 0
    assert any(any(found.turns) for found in learned.values())


def test_all_pieces_at_once_run_and_show_in_the_log(tmp_path: Path) -> None:
    grpo = {
        "iterations": 2,
        "tasks_per_iteration": 3,
        "lr": 3e-3,
        "baseline": "leave_one_out",
        "ratio": "sequence",
        "aggregation": "sequence",
        "kl_coef": 0.01,
        "kl_in": "reward",
        "entropy_coef": 0.001,
        "correction": {"level": "geometric", "reject_above": 2.0},
        "dynamic_sampling": {"max_rounds": 4},
        "overlong": {"max_tokens": 400, "buffer_tokens": 390, "penalty": 0.1},
        "drop": ["void_turns"],
        "weight_decay": 0.01,
    }
    run_file = write_run(tmp_path, grpo=grpo, tasks=2400)  # whose vocabulary makes long replies
    rounds = carry_out(run_file, tmp_path / "out")
    assert [line["iteration"] for line in rounds] == [0, 1]
    for line in rounds:
        assert line["trained_tokens"] > 0
        assert line["first_ratio_mean"] == pytest.approx(1, abs=1e-4)
        assert 0 <= line["mismatch_kl"] < 1e-4
        assert line["importance_rejected"] == 0
        assert 1 <= line["rollout_rounds"] <= 4
        assert line["groups_missing"] == 0, "lengths are punished, so all groups differ"
    before, after = load_model(tmp_path / "out/cold_start"), load_model(tmp_path / "out/model")
    assert weights_checksum(before) != weights_checksum(after)


def test_one_step_off_learns_from_what_the_weights_before_sampled(tmp_path: Path) -> None:
    grpo = {**SHORT["grpo"], "mode": "one_step_off"}
    rounds = carry_out(write_run(tmp_path, grpo=grpo, model=ready_model()), tmp_path / "out")
    assert [line["lag_max"] for line in rounds] == [0, 1, 1]
    assert [line["lag_mean"] for line in rounds] == [0, 1, 1]
    assert all(line["trained_tokens"] > 0 for line in rounds)
    assert rounds[0]["mismatch"]["kl"] < 1e-6
    assert [line["mismatch"] for line in rounds[1:]] == [None, None], "of other weights"
    assert rounds[1]["overlap"] > 0, "the next iteration's dialogues go on meanwhile"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "engine",
    ["embedded", pytest.param("vllm", marks=[pytest.mark.vllm, pytest.mark.slow, needs_vllm])],
)
def test_asynchronous_training_keeps_its_bound_and_trains_each_group_once(
    engine: str, tmp_path: Path
) -> None:
    mode = {"asynchronous": {"max_lag": 1, "stale": "drop"}}
    grpo = {**SHORT["grpo"], "iterations": 5, "mode": mode, "correction": {"level": "token"}}
    rounds = carry_out(
        write_run(tmp_path, grpo=grpo, model=ready_model(), engine=engine), tmp_path / "out"
    )
    assert [line["iteration"] for line in rounds] == [0, 1, 2, 3, 4]
    for line in rounds:
        assert line["lag_max"] <= 1
        assert line["groups_stale"] == 0
        assert line["token_drift"] == 0
        assert line["trained_tokens"] > 0
        assert 0 <= line["overlap"] <= 1
    groups = 5 * 4 + sum(line["groups_dropped"] for line in rounds)
    assert sum(line["episodes"] for line in rounds) == 4 * groups
    records = [json.loads(line) for line in (tmp_path / "out/batches.jsonl").open()]
    learned = [tuple(group[:2]) for record in records for group in record["groups"]]
    assert len(learned) == len(set(learned)) == 5 * 4
    assert {cohort for cohort, _ in learned} == set(range(5))
    assert max(line["lag_max"] for line in rounds) == 1


def poison(monkeypatch: pytest.MonkeyPatch, poisoned: Callable[[EpisodeKey], bool]) -> None:
    """Have what some episodes sampled come to the trainer with a log-prob that is no number."""

    def made(*args: Any, **how: Any) -> TrainingSet:
        found = training_set(*args, **how)
        for owner, sample in zip(found.owners, found.samples, strict=True):
            if poisoned(owner):
                sample.logprobs[0] = float("nan")
        return found

    monkeypatch.setattr("muarl.train.learning.training_set", made)


def test_updates_that_are_not_finite_are_skipped_and_the_culprits_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    poison(monkeypatch, lambda key: key.iteration == 1 and key.sample == 2)
    grpo = {**SHORT["grpo"], "updates_per_iteration": 1}
    run_file = write_run(tmp_path, grpo=grpo, model=ready_model())
    first, second, third = carry_out(run_file, tmp_path / "out")
    assert not first["skipped"]
    assert not third["skipped"]
    (skipped,) = second["skipped"]
    assert skipped["episodes"]
    assert all(name.startswith("train/1/") for name in skipped["episodes"])
    assert all(name.endswith("/2") for name in skipped["episodes"])
    assert "the loss is nan" in skipped["why"]
    assert f"update skipped: {skipped['why']}" in caplog.text
    assert skipped["episodes"][0] in caplog.text
    assert "trained_tokens" not in second
    assert [line["skipped_in_a_row"] for line in (first, second, third)] == [0, 1, 0]
    assert third["trained_tokens"] > 0


def test_too_many_updates_in_a_row_that_are_not_finite_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(monkeypatch, lambda _key: True)
    run_file = write_run(tmp_path, grpo={**SHORT["grpo"], "max_skipped": 2}, model=ready_model())
    with pytest.raises(NonFiniteLoss, match=r"3 updates in a row .* not finite: train/"):
        carry_out(run_file, tmp_path / "out")


def test_a_sampler_that_says_other_log_probs_than_the_trainer_raises_an_alarm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sampled = Engine._draw

    def off(engine: Engine, logits: Any, rows: list[Row]) -> Any:
        tokens, logprobs = sampled(engine, logits, rows)
        return tokens, [value - 0.3 for value in logprobs]

    monkeypatch.setattr(Engine, "_draw", off)
    grpo = {**SHORT["grpo"], "iterations": 1}
    (line,) = carry_out(write_run(tmp_path, grpo=grpo, model=ready_model()), tmp_path / "out")
    assert line["mismatch"]["kl"] == pytest.approx(math.exp(0.3) - 1.3, rel=1e-3)
    (alarm,) = line["alarms"]
    assert "does not sample what the trainer believes" in alarm
    assert alarm in caplog.text


def test_dynamic_sampling_ends_where_no_task_teaches_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """DAPO#22: resampling without a bound, and a run that ends in it."""
    grpo = {
        "iterations": 1,
        "tasks_per_iteration": 2,
        "lr": 3e-3,
        "dynamic_sampling": {"max_rounds": 2},
    }
    rollout = {**SHORT["rollout"], "max_tokens": 1, "context_tokens": 1000}
    run_file = write_run(tmp_path, grpo=grpo, rollout=rollout, model=ready_model())
    (line,) = carry_out(run_file, tmp_path / "out")
    assert (line["rollout_rounds"], line["groups_missing"]) == (2, 2)
    assert line["episodes"] == 4 * 4, "other tasks in the second round"
    assert "trained_tokens" not in line
    assert "iteration 0 gives 0 groups to learn from of 2 wanted" in caplog.text
