"""A user who trains adapters: merged where her GRPO begins and where it ends, and taken up exactly."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from lora_kit import needs_peft
from short_run import carry_out
from test_grpo_runs import TOLERANCE, needs_vllm
from test_user_training import (
    FAST,
    HERS,
    TINY,
    UNGUARDED,
    broken_off_twice,
    same_rounds_of_hers,
    trained,
    write_shop,
)
from transformers import AutoModelForCausalLM

from muarl.errors import RecordError
from muarl.kernel.model import load_model, weights_checksum

pytestmark = needs_peft
KEPT = ("user_base", "user_cold_start", "user_model")


def weights(folder: Path) -> str:
    return weights_checksum(load_model(folder))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A run of seconds whose user alone has adapters, and its iterations."""
    model = {"tiny": TINY, "lora": {"rank": 4, "alpha": 32}}
    hers = {**HERS, "model": model, "cold_start": FAST, "past": {"size": 1, "every": 1}}
    run_file = write_shop(tmp_path_factory.mktemp("shop"), user=UNGUARDED, user_model=hers)
    return run_file, carry_out(run_file, run_file.parent / "out")


def test_her_adapters_are_trained_and_what_is_kept_of_her_is_plain(
    whole: tuple[Path, list[dict[str, Any]]],
) -> None:
    run_file, rounds = whole
    out = run_file.parent / "out"
    hers = [line["user_model"] for line in rounds]
    assert [line["met"] for line in hers] == [1, 2]
    for line in hers:
        assert line["token_drift"] == 0
        assert line["episodes"] > 0
        if "trained_tokens" not in line:  # a round in which all earned the same
            continue
        assert line["first_ratio_mean"] == pytest.approx(1, abs=1e-4)
        assert line["max_logprob_gap"] <= 1e-4
    assert hers[0]["kl"] == pytest.approx(0, abs=1e-6), "the reference is she without adapters"
    assert weights(out / "user_base") != weights(out / "user_cold_start"), (
        "the cold start is merged"
    )
    plain = AutoModelForCausalLM.from_pretrained(out / "user_model")
    assert not [name for name, _ in plain.named_parameters() if "lora" in name]
    newest = max((out / "user_checkpoint").iterdir())
    assert (newest / "adapter_model.safetensors").is_file()
    assert not (newest / "model.safetensors").exists()


@pytest.mark.vllm
@pytest.mark.slow
@needs_vllm
@pytest.mark.timeout(1800)
def test_on_vllm_she_says_what_her_newest_adapters_would(tmp_path: Path) -> None:
    model = {"tiny": TINY, "lora": {"rank": 8, "alpha": 32}}
    hers = {**HERS, "model": model, "cold_start": FAST, "engine": "vllm"}
    run_file = write_shop(tmp_path, user=UNGUARDED, user_model=hers)
    rounds = carry_out(run_file, tmp_path / "out")
    for line in (line["user_model"] for line in rounds):
        assert line["token_drift"] == 0
        assert line["sync_gap"] <= TOLERANCE["vllm"]
        if "trained_tokens" in line:
            assert line["first_ratio_mean"] == pytest.approx(1, abs=TOLERANCE["vllm"])
            assert line["max_logprob_gap"] <= TOLERANCE["vllm"]
    spans = [
        s
        for e in trained(run_file)
        for sample in (*e.user_samples, *e.user_rejected)
        for s in sample.spans
    ]
    assert {span.policy_version for span in spans} == {0, 1}


@pytest.mark.parametrize("ahead", [False, True])
def test_L9_a_user_with_adapters_goes_on_to_the_same_weights(
    ahead: bool, tmp_path: Path, whole: tuple[Path, list[dict[str, Any]]]
) -> None:
    run_file, rounds = whole
    out = tmp_path / "broken"
    same_rounds_of_hers(broken_off_twice(run_file, out, ahead=ahead), rounds)
    for name in KEPT[:2]:
        assert weights(out / name) == weights(run_file.parent / "out" / name), name


def test_without_the_weights_that_her_adapters_stand_on_a_run_does_not_go_on(
    tmp_path: Path, whole: tuple[Path, list[dict[str, Any]]]
) -> None:
    run_file, _ = whole
    out = tmp_path / "out"
    shutil.copytree(run_file.parent / "out", out)
    shutil.rmtree(out / "user_cold_start")
    with pytest.raises(RecordError, match="user_cold_start is gone: GRPO has begun"):
        carry_out(run_file, out, resume=True)
