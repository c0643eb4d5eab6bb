from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kernel_kit import random_samples, tiny_model
from safetensors.torch import save_file
from transformers import PreTrainedModel

from muarl.errors import RecordError
from muarl.kernel import checkpoint
from muarl.kernel.checkpoint import load_checkpoint, read_counters, save_checkpoint
from muarl.kernel.model import load_model, weights_checksum
from muarl.kernel.scoring import sample_logprobs
from muarl.kernel.step import Trainer
from muarl.spec.run import GrpoSpec

SPEC = GrpoSpec(freeze_embeddings=False)


def cold_start(model: PreTrainedModel) -> Trainer:
    return Trainer.for_cold_start(model)


def grpo(model: PreTrainedModel) -> Trainer:
    return Trainer.for_grpo(model, SPEC)


def sft_step(trainer: Trainer, seed: int) -> object:
    return trainer.sft_step(random_samples(3, seed=seed), 0.01)


def grpo_update(trainer: Trainer, seed: int) -> object:
    samples = random_samples(3, seed=seed)
    for sample, logprobs in zip(samples, sample_logprobs(trainer.model, samples), strict=True):
        sample.logprobs = logprobs
    return trainer.grpo_update(samples, [1.0, -1.0, 0.5], spec=SPEC, lr=0.01)


@pytest.mark.parametrize(("kind", "update"), [(cold_start, sft_step), (grpo, grpo_update)])
def test_a_resumed_run_makes_the_very_same_next_updates(
    tmp_path: Path,
    kind: Callable[[PreTrainedModel], Trainer],
    update: Callable[[Trainer, int], object],
) -> None:
    trainer = kind(tiny_model(seed=0))
    for seed in range(3):
        update(trainer, seed)
    save_checkpoint(tmp_path, trainer, {"iteration": 3, "phase": "train"})
    expected = [update(trainer, seed) for seed in (3, 4)]

    resumed = kind(tiny_model(seed=1))
    assert load_checkpoint(tmp_path, resumed) == {"iteration": 3, "phase": "train"}
    assert resumed.num_updates == 3
    assert [update(resumed, seed) for seed in (3, 4)] == expected
    assert weights_checksum(resumed.model) == weights_checksum(trainer.model)


def test_weights_are_loaded_in_place(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, cold_start(tiny_model(seed=0)), {})
    trainer = cold_start(tiny_model(seed=1))
    shared_with_a_sampler = list(trainer.model.parameters())
    load_checkpoint(tmp_path, trainer)
    ours = trainer.model.parameters()
    assert all(a is b for a, b in zip(ours, shared_with_a_sampler, strict=True))
    assert weights_checksum(trainer.model) == weights_checksum(tiny_model(seed=0))


def test_the_newest_counts_and_few_are_kept(tmp_path: Path) -> None:
    trainer = cold_start(tiny_model())
    assert read_counters(tmp_path / "none") is None
    paths = [save_checkpoint(tmp_path, trainer, {"step": step}) for step in range(12)]
    assert read_counters(tmp_path) == {"step": 11}
    assert sorted(tmp_path.iterdir()) == paths[-2:]


def test_a_checkpoint_is_a_model_folder_and_holds_no_pickle(tmp_path: Path) -> None:
    trainer = cold_start(tiny_model())
    sft_step(trainer, 0)
    path = save_checkpoint(tmp_path, trainer, {})
    assert weights_checksum(load_model(path)) == weights_checksum(trainer.model)
    assert {file.suffix for file in path.iterdir()} == {".json", ".safetensors"}


@pytest.mark.parametrize("dies_in", ["save_model", "save_file", "tensors_checksum"])
def test_killed_while_saving_the_one_before_is_still_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_in: str
) -> None:
    trainer = cold_start(tiny_model())
    sft_step(trainer, 0)
    save_checkpoint(tmp_path, trainer, {"step": 1})
    good = weights_checksum(trainer.model)
    sft_step(trainer, 1)

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, dies_in, die)
        with pytest.raises(Killed):
            save_checkpoint(tmp_path, trainer, {"step": 2})
    resumed = cold_start(tiny_model(seed=1))
    assert load_checkpoint(tmp_path, resumed) == {"step": 1}
    assert weights_checksum(resumed.model) == good
    save_checkpoint(tmp_path, trainer, {"step": 2})
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["000001", "000002"]
    assert read_counters(tmp_path) == {"step": 2}


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors", "state.json"])
def test_a_damaged_file_is_one_clear_error(tmp_path: Path, file: str) -> None:
    trainer = cold_start(tiny_model())
    sft_step(trainer, 0)
    path = save_checkpoint(tmp_path, trainer, {}) / file
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(RecordError, match=r"is damaged.*Remove that folder to resume") as caught:
        load_checkpoint(tmp_path, cold_start(tiny_model()))
    assert "copy the folder" not in str(caught.value), "one thing to do"


@pytest.mark.parametrize(
    "file", ["config.json", "model.safetensors", "optimizer.safetensors", "state.json"]
)
def test_a_file_that_is_gone_is_one_clear_error(tmp_path: Path, file: str) -> None:
    (save_checkpoint(tmp_path, cold_start(tiny_model()), {}) / file).unlink()
    with pytest.raises(RecordError, match=r"is damaged.*Remove that folder to resume"):
        load_checkpoint(tmp_path, cold_start(tiny_model()))


@pytest.mark.parametrize(
    "content", ["{}", '{"version": 1}', "[1]", "5", '{"version": 1, "counters": {}}']
)
def test_a_state_that_lacks_something_is_one_clear_error(tmp_path: Path, content: str) -> None:
    path = save_checkpoint(tmp_path, cold_start(tiny_model()), {"step": 1}) / "state.json"
    path.write_text(content)
    with pytest.raises(RecordError, match=r"000001` (is damaged: state.json: |has version None)"):
        read_counters(tmp_path)


def test_moments_that_are_gone_are_noticed(tmp_path: Path) -> None:
    trainer = cold_start(tiny_model())
    sft_step(trainer, 0)
    save_file({}, save_checkpoint(tmp_path, trainer, {}) / "optimizer.safetensors")
    with pytest.raises(RecordError, match="its optimizer state is not what it was saved with"):
        load_checkpoint(tmp_path, cold_start(tiny_model()))


def test_flipped_weights_are_noticed(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, cold_start(tiny_model()), {}) / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 0x40
    path.write_bytes(content)
    with pytest.raises(RecordError, match="weights are not what"):
        load_checkpoint(tmp_path, cold_start(tiny_model()))


def test_another_optimizer_s_state_is_refused_before_anything_changes(tmp_path: Path) -> None:
    trainer = cold_start(tiny_model(seed=0))
    sft_step(trainer, 0)
    save_checkpoint(tmp_path, trainer, {})
    other = grpo(tiny_model(seed=1))
    before = weights_checksum(other.model)
    with pytest.raises(RecordError, match="another optimizer"):
        load_checkpoint(tmp_path, other)
    assert weights_checksum(other.model) == before


def test_a_newer_form_is_refused_by_its_number(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, cold_start(tiny_model()), {}) / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 99}))
    with pytest.raises(RecordError, match="version 99"):
        read_counters(tmp_path)


def test_nothing_to_resume_is_said(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="nothing to resume"):
        load_checkpoint(tmp_path, cold_start(tiny_model()))
