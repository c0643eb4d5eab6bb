"""LoRA: only adapters learn, all that holds of the kernel holds with them, and they can be merged."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import torch
from kernel_kit import (
    distance,
    gradients,
    in_float64,
    random_samples,
    reference_logprobs,
    tiny_model,
)
from lora_kit import SMALL, adapted_model, needs_peft
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from muarl.errors import RecordError, SetupError
from muarl.kernel import logprobs
from muarl.kernel.checkpoint import load_checkpoint, save_checkpoint
from muarl.kernel.logprobs import scored
from muarl.kernel.lora import (
    adapter_weights,
    adapters_off,
    add_adapters,
    merge_adapters,
    require_peft,
)
from muarl.kernel.model import load_model, save_model, weights_checksum
from muarl.kernel.scoring import sample_logprobs
from muarl.kernel.step import Trainer
from muarl.kernel.ways import way_for
from muarl.record import Sample
from muarl.spec.grpo import GrpoSpec
from muarl.spec.kernel import KernelSpec
from muarl.spec.lora import LoraSpec

pytestmark = needs_peft
GRPO = GrpoSpec(iterations=4)


def said(model: PreTrainedModel, samples: list[Sample]) -> Tensor:
    rows = sample_logprobs(model, samples)
    return torch.tensor([value for row in rows for value in row])


def test_fresh_adapters_change_nothing_and_are_the_same_for_the_same_seed() -> None:
    samples = random_samples(3)
    plain, model = tiny_model(), adapted_model(learned=False)
    assert torch.equal(said(model, samples), said(plain, samples))
    again, other = adapted_model(learned=False), tiny_model()
    add_adapters(other, SMALL, seed=1)
    assert weights_checksum(again) == weights_checksum(model)
    assert weights_checksum(other) != weights_checksum(model)


def test_adapters_compute_what_their_formula_says() -> None:
    model, samples = in_float64(adapted_model()), random_samples(3)
    by_hand = in_float64(tiny_model())
    for name, module in by_hand.named_modules():
        if isinstance(module, torch.nn.Linear) and module is not by_hand.get_output_embeddings():
            with_adapter = model.get_submodule(name)
            a, b = with_adapter.lora_A["default"].weight, with_adapter.lora_B["default"].weight
            module.weight.data += 8 / 4 * b @ a
    for found, expected in zip(
        reference_logprobs(model, samples), reference_logprobs(by_hand, samples), strict=True
    ):
        assert torch.allclose(found, expected, atol=1e-9)


def test_the_saved_model_is_plain_and_says_what_the_adapters_say(tmp_path: Path) -> None:
    model, samples = adapted_model(), random_samples(4)
    before = weights_checksum(model)
    save_model(model, tmp_path)
    assert weights_checksum(model) == before, "the model keeps its adapters"
    plain = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    assert type(plain) is type(model)
    assert {n for n, _ in plain.named_parameters()} == {
        n for n, _ in tiny_model().named_parameters()
    }
    assert torch.allclose(said(plain, samples), said(model, samples), atol=1e-5)
    assert not torch.allclose(said(plain, samples), said(tiny_model(), samples), atol=0.1)
    head, embedding = plain.get_output_embeddings(), plain.get_input_embeddings()
    assert head.weight is embedding.weight, "tied as before"


def test_with_adapters_off_it_is_the_model_it_was_and_merged_it_stays_what_it_became() -> None:
    model, samples = adapted_model(), random_samples(4)
    became = said(model, samples)
    with adapters_off(model):
        assert torch.equal(said(model, samples), said(tiny_model(), samples))
    assert torch.equal(said(model, samples), became)
    merge_adapters(model, seed=3)
    assert torch.allclose(said(model, samples), became, atol=1e-5)
    with adapters_off(model):
        assert torch.allclose(said(model, samples), became, atol=1e-5)


def test_a_model_merged_in_place_is_the_one_saved_before_to_the_last_bit_L9(tmp_path: Path) -> None:
    model = adapted_model()
    save_model(model, tmp_path)
    merge_adapters(model, seed=3)
    loaded = load_model(tmp_path)
    add_adapters(loaded, SMALL, seed=3)
    assert weights_checksum(loaded) == weights_checksum(model)


@pytest.mark.parametrize("stage", ["cold start", "grpo"])
def test_only_adapters_get_gradients_and_optimizer_states(stage: str) -> None:
    model, samples = adapted_model(learned=False), random_samples(4)
    base = {n: p.clone() for n, p in model.named_parameters() if n not in adapter_weights(model)}
    old = {n: p.clone() for n, p in adapter_weights(model).items()}
    trainer = Trainer.for_grpo(model, GRPO) if stage == "grpo" else Trainer.for_cold_start(model)
    for _ in range(2):  # the gradient of A is zero as long as B is
        if stage == "grpo":
            trainer.grpo_update(samples, [1.0, -1.0, 0.5, -0.5], spec=GRPO, lr=1e-2)
        else:
            trainer.sft_step(samples, 1e-2)
    names = {key.split("/")[1] for key in trainer.optimizer.state()}
    assert names == set(adapter_weights(model)) == set(old)
    assert {n for n, p in model.named_parameters() if p.requires_grad} == names
    assert all(torch.equal(p, base[n]) for n, p in model.named_parameters() if n in base)
    assert not any(torch.equal(p, old[n]) for n, p in adapter_weights(model).items())


@pytest.mark.parametrize(("max_tokens", "checkpointing"), [(1, False), (60, True), (9999, False)])
def test_L6_adapters_get_the_gradient_of_the_textbook(
    max_tokens: int, checkpointing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prefix shared, rows packed, head in chunks: against whole samples in double precision."""
    monkeypatch.setattr(logprobs, "ROWS_PER_CHUNK", 3)
    model, samples = adapted_model(), random_samples(6, seed=2)
    Trainer.for_grpo(model, GRPO)
    way = way_for(model, KernelSpec(checkpointing=checkpointing)).way
    assert way.masks, "prefixes and rows are shared"
    double = in_float64(model)
    expected = gradients(double, lambda: torch.cat(reference_logprobs(double, samples)).sin().sum())
    model.zero_grad(set_to_none=True)
    for _, scores in scored(model, samples, way, max_tokens=max_tokens):
        scores.logprobs.sin().sum().backward()
    found = {n: p.grad.double() for n, p in model.named_parameters() if p.grad is not None}
    assert found.keys() == set(adapter_weights(model))
    assert distance(found, expected) < 1e-4


def test_on_policy_the_first_ratio_is_1_L6() -> None:
    model, samples = adapted_model(), random_samples(4)
    rows = sample_logprobs(model, samples)
    samples = [Sample(s.token_ids, s.spans, row) for s, row in zip(samples, rows, strict=True)]
    trainer = Trainer.for_grpo(model, GRPO)
    metrics = trainer.grpo_update(samples, [1.0, -1.0, 0.0, 1.0], spec=GRPO, lr=1e-2)
    assert metrics.ratio_mean == pytest.approx(1, abs=1e-5)
    assert metrics.ratio_max == pytest.approx(1, abs=1e-5)


def test_a_checkpoint_holds_adapters_alone_and_goes_on_to_the_same_weights_L9(
    tmp_path: Path,
) -> None:
    samples = random_samples(4)

    def step(trainer: Trainer) -> None:
        trainer.grpo_update(samples, [1.0, -1.0, 0.5, -0.5], spec=GRPO, lr=1e-2)

    unbroken = Trainer.for_grpo(adapted_model(learned=False), GRPO)
    step(unbroken)
    folder = save_checkpoint(tmp_path, unbroken, {"iteration": 1})
    step(unbroken)
    assert sorted(file.name for file in folder.iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
        "optimizer.safetensors",
        "state.json",
    ]
    resumed = Trainer.for_grpo(adapted_model(spec=SMALL, learned=False), GRPO)
    assert load_checkpoint(tmp_path, resumed) == {"iteration": 1}
    step(resumed)
    assert weights_checksum(resumed.model) == weights_checksum(unbroken.model)


def test_a_checkpoint_of_other_adapters_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    trainer = Trainer.for_grpo(adapted_model(), GRPO)
    folder = save_checkpoint(tmp_path, trainer, {})
    other = Trainer.for_grpo(adapted_model(spec=LoraSpec(rank=2)), GRPO)
    with pytest.raises(RecordError, match="of another shape"):
        load_checkpoint(tmp_path, other)
    fewer = Trainer.for_grpo(adapted_model(spec=LoraSpec(rank=4, targets=["q_proj"])), GRPO)
    with pytest.raises(RecordError, match="checkpoint"):
        load_checkpoint(tmp_path, fewer)
    (folder / "adapter_model.safetensors").write_bytes(b"")
    with pytest.raises(RecordError, match="is damaged"):
        load_checkpoint(tmp_path, trainer)


def test_peft_itself_reads_the_saved_adapters(tmp_path: Path) -> None:
    from peft import PeftModel

    model, samples = adapted_model(), random_samples(2)
    folder = save_checkpoint(tmp_path, Trainer.for_grpo(model, GRPO), {})
    loaded = PeftModel.from_pretrained(copy.deepcopy(tiny_model()), folder)
    assert torch.equal(said(loaded.base_model.model.eval(), samples), said(model, samples))
    config = json.loads((folder / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["peft_type"]) == (4, 8, "LORA")
    assert all(
        n.startswith("base_model.model.") for n in load_file(folder / "adapter_model.safetensors")
    )


def test_targets_that_the_model_has_not_are_named_with_those_that_it_has() -> None:
    with pytest.raises(
        SetupError, match=r"no linear layer 'q_prj'.*did you mean 'q_proj'.*up_proj"
    ):
        add_adapters(tiny_model(), LoraSpec(targets=["q_prj"]), seed=0)
    with pytest.raises(SetupError, match="no linear layer 'lm_head'"):
        add_adapters(tiny_model(), LoraSpec(targets=["lm_head"]), seed=0)


def test_chosen_targets_alone_have_adapters() -> None:
    names = adapter_weights(adapted_model(spec=LoraSpec(targets=["q_proj", "down_proj"])))
    assert {name.split(".lora_")[0].rpartition(".")[2] for name in names} == {"q_proj", "down_proj"}


def test_without_peft_the_command_that_installs_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(SetupError, match=r"need peft.*pip install 'muarl\[lora\]'"):
        require_peft()
