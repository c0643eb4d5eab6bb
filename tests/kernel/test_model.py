from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from kernel_kit import TINY, VOCAB
from transformers import AutoModelForCausalLM

from muarl.errors import SetupError
from muarl.kernel.model import build_tiny_model, load_model, save_model, weights_checksum
from muarl.spec.model import TinyModelSpec


def test_equal_seeds_give_equal_weights_and_leave_other_draws_alone() -> None:
    torch.manual_seed(3)
    undisturbed = torch.rand(1)
    torch.manual_seed(3)
    first = build_tiny_model(TINY, seed=7)
    assert torch.equal(torch.rand(1), undisturbed)
    torch.manual_seed(99)
    assert weights_checksum(build_tiny_model(TINY, seed=7)) == weights_checksum(first)
    assert weights_checksum(build_tiny_model(TINY, seed=8)) != weights_checksum(first)


def test_the_default_is_the_model_of_the_quickstart() -> None:
    model = build_tiny_model(TinyModelSpec(), seed=0, context_tokens=1024, eos_token_id=5)
    assert sum(p.numel() for p in model.parameters()) == 771_136
    assert model.config.tie_word_embeddings
    assert model.config.rope_parameters["rope_theta"] == 10_000
    assert (model.config.max_position_embeddings, model.config.eos_token_id) == (1024, 5)
    assert model.dtype == torch.float32
    assert not model.training


def test_a_saved_model_comes_back_bit_by_bit_and_transformers_reads_it(tmp_path: Path) -> None:
    model = build_tiny_model(TINY, seed=1)
    save_model(model, tmp_path / "new" / "model")
    again = load_model(tmp_path / "new" / "model")
    assert weights_checksum(again) == weights_checksum(model)
    ids = torch.tensor([[1, 2, 3]])
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "new" / "model")
    assert torch.equal(theirs(ids).logits, model(ids).logits)
    config = json.loads((tmp_path / "new" / "model" / "config.json").read_text())
    assert config["architectures"] == ["Qwen3ForCausalLM"]
    assert config["vocab_size"] == VOCAB


def test_the_checksum_sees_a_single_changed_number() -> None:
    model = build_tiny_model(TINY, seed=1)
    before = weights_checksum(model)
    with torch.no_grad():
        model.base_model.norm.weight[3] += 1e-6
    assert weights_checksum(model) != before


def test_loading_and_saving_draw_nothing_on_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    save_model(build_tiny_model(TINY, seed=1), tmp_path)
    load_model(tmp_path)
    assert capfd.readouterr() == ("", "")


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"no model at .*expected a folder with config\.json"):
        load_model(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "config", ["null", "3", "[]", "{", '{"model_type": "qwen3", "num_hidden_layers": null}']
)
def test_a_config_that_is_none_is_no_traceback(tmp_path: Path, config: str) -> None:
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(SetupError, match=r"cannot load the model at .*copy the folder anew"):
        load_model(tmp_path)


@pytest.mark.parametrize("damage", ["weights", "config", "kind", "shape", "depth", "none"])
def test_a_damaged_model_is_one_clear_error(tmp_path: Path, damage: str) -> None:
    save_model(build_tiny_model(TINY, seed=1), tmp_path)
    weights, config = tmp_path / "model.safetensors", tmp_path / "config.json"
    if damage == "weights":
        weights.write_bytes(weights.read_bytes()[:200])
    elif damage == "config":
        config.write_text("{")
    elif damage == "kind":
        config.write_text('{"model_type": "no_such_model"}')
    elif damage == "shape":
        config.write_text(
            config.read_text().replace('"intermediate_size": 24', '"intermediate_size": 25')
        )
    elif damage == "depth":
        save_model(
            build_tiny_model(TINY.model_copy(update={"num_layers": 3}), seed=1), tmp_path / "deep"
        )
        config.write_text((tmp_path / "deep" / "config.json").read_text())
    else:
        weights.unlink()
    with pytest.raises(SetupError, match=r"cannot load the model at .*copy the folder anew"):
        load_model(tmp_path)
