"""Runs that train adapters: on policy on each engine, resumed exactly, and a plain model at the end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from lora_kit import needs_peft
from short_run import SHORT, carry_out, write_run
from test_grpo_runs import TOLERANCE, needs_vllm
from test_resume import COLD, break_off
from transformers import AutoModelForCausalLM

from muarl.domain import load_domain
from muarl.errors import RecordError
from muarl.kernel.model import load_model, weights_checksum
from muarl.record import read_journal
from muarl.spec import load_run
from muarl.testing.vllm_serve import vllm_servers
from muarl.train.models import open_model

pytestmark = needs_peft
MODEL = {**SHORT["model"], "lora": {"rank": 8, "alpha": 64}}
GRPO = {**SHORT["grpo"], "iterations": 2, "lr": 1e-2}
EVAL = {"episodes": 2, "temperatures": [1.0]}


def write_lora_run(folder: Path, **changes: Any) -> Path:
    return write_run(folder, **{"model": MODEL, "grpo": GRPO, "eval": EVAL, **changes})


@pytest.fixture
def served(tmp_path: Path) -> Iterator[list[str]]:
    """A server on the weights that the run begins with."""
    run = load_run(write_lora_run(tmp_path / "other"))
    domain = load_domain(tmp_path / "other" / "desk")
    anyio.run(open_model, domain, run, tmp_path / "model")
    adapters = ["--enable-lora", "--max-lora-rank", "8", "--max-loras", "2"]
    length = run.spec.rollout.context_tokens
    with vllm_servers(tmp_path / "model", max_model_len=length, arguments=adapters) as urls:
        yield urls


def versions_in(out: Path) -> set[int]:
    return {
        span.policy_version
        for episode in read_journal(out / "episodes.journal")
        if episode.key.phase == "train"
        for sample in episode.samples
        for span in sample.spans
    }


def weights(folder: Path) -> str:
    return weights_checksum(load_model(folder))


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
def test_adapters_are_sampled_with_trained_and_merged_at_the_end(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    out, setting = tmp_path / "out", cast("Any", engine)
    if engine == "vllm_server":
        endpoints = request.getfixturevalue("served")
        setting = {engine: {"endpoints": endpoints, "logprob_tolerance": TOLERANCE[engine]}}
    rounds = carry_out(write_lora_run(tmp_path, engine=setting), out)
    assert [line["policy_version"] for line in rounds] == [0, 1]
    for line in rounds:
        assert line["trained_tokens"] > 0
        assert line["max_logprob_gap"] <= TOLERANCE[engine]
        assert line["first_ratio_mean"] == pytest.approx(1, abs=TOLERANCE[engine])
        assert line["sync_gap"] is None or line["sync_gap"] <= TOLERANCE[engine]
    assert versions_in(out) == {0, 1}
    # The reference is the model without adapters: no distance before the first update, some after.
    assert rounds[0]["kl"] == pytest.approx(0, abs=1e-6)
    assert rounds[1]["kl"] > 1e-6
    assert weights(out / "cold_start") == weights(out / "base"), "nothing was learned before GRPO"
    assert weights(out / "model") != weights(out / "base")
    plain = AutoModelForCausalLM.from_pretrained(out / "model")
    assert not [name for name, _ in plain.named_parameters() if "lora" in name]
    newest = max((out / "checkpoint").iterdir())
    assert (newest / "adapter_model.safetensors").is_file()
    assert not (newest / "model.safetensors").exists()


@pytest.mark.parametrize(("phase", "done"), [("cold start", 6), ("GRPO", 1)])
def test_L9_a_run_with_adapters_broken_off_goes_on_to_the_same_weights(
    phase: str, done: int, tmp_path: Path, whole: Path
) -> None:
    out = tmp_path / "broken"
    break_off(whole.parent / "run.yaml", out, phase, done)
    carry_out(whole.parent / "run.yaml", out, resume=True)
    for name in ("base", "cold_start", "model"):
        assert weights(out / name) == weights(whole / name), name
    assert weights(out / "cold_start") != weights(out / "base"), "the cold start's adapters merged"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with a cold start that nothing broke off."""
    folder = tmp_path_factory.mktemp("runs")
    # One dialogue at a time, so that what is sampled beside it rounds nothing otherwise.
    rollout = {**SHORT["rollout"], "concurrency": 1}
    grpo = {**GRPO, "validation": {"every": 1, "episodes": 2}}
    carry_out(write_lora_run(folder, cold_start=COLD, rollout=rollout, grpo=grpo), folder / "whole")
    return folder / "whole"


def test_the_weights_that_did_best_are_kept_with_their_adapters(whole: Path) -> None:
    (best,) = (whole / "best").iterdir()
    assert weights(best) == weights(whole / "model")
    assert (best / "adapters" / "adapter_model.safetensors").is_file()


def test_an_ended_run_taken_up_again_changes_nothing(whole: Path) -> None:
    before = {name: weights(whole / name) for name in ("base", "cold_start", "model")}
    carry_out(whole.parent / "run.yaml", whole, resume=True)
    assert {name: weights(whole / name) for name in before} == before


def test_without_the_weights_that_adapters_stand_on_a_run_does_not_go_on(
    tmp_path: Path, whole: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    shutil.rmtree(out / "cold_start")
    with pytest.raises(RecordError, match="cold_start is gone: GRPO has begun"):
        carry_out(whole.parent / "run.yaml", out, resume=True)
