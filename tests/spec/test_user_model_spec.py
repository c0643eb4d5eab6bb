"""What a run file says of a user who is a model, and what does not go together."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_files import said, write_all

from muarl.errors import SpecError
from muarl.spec import load_run
from muarl.spec.split_references import split_findings

SOUND = """\
version: 1
domain: domain.yaml
model: {tiny: {}}
user: {model: {}}
user_model: {model: {tiny: {}}, grpo: {}}
grpo: {}
eval: {user: {scripted: {}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_all(tmp_path)
    (tmp_path / "weights").mkdir()
    return tmp_path


def problems(folder: Path, text: str) -> list[str]:
    (folder / "run.yaml").write_text(text)
    with pytest.raises(SpecError) as caught:
        load_run(folder / "run.yaml")
    return said(caught.value)


def test_a_run_that_trains_its_user(folder: Path) -> None:
    (folder / "run.yaml").write_text(SOUND)
    spec = load_run(folder / "run.yaml").spec
    assert spec.user_model is not None
    assert spec.eval_user.scripted is not None
    assert [loc for loc, _ in spec.trained_on()] == [("grpo",)]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "user_model: {model: {tiny: {}}, grpo: {}}\n",
            "",
            "4:7: a user is a `model`, and the run has none for her; say which: `user_model`",
        ),
        ("\ngrpo: {}", "", "she learns from the policy's rounds; the run has no `grpo`"),
        ("\ngrpo: {}", "\ngrpo: {mode: one_step_off}", "let grpo.mode be on_policy"),
        ("user: {model: {}}\n", "", "she is trained on what she says; let `user` be a `model`"),
        (
            "user: {model: {}}",
            "user: {pool: {a: {user: {model: {}}}, b: {user: {model: {temperature: 0.5}}}}}",
            "she is trained as she was sampled; give all her temperatures in `user` alike",
        ),
        ("user: {model: {}}", "user: {model: {temperature: 0}}", "at temperature 0 she says the"),
        (
            "eval: {user: {scripted: {}}}\n",
            "",
            "evaluations before and after would meet different ones",
        ),
        ("scripted: {}", "model: {}", "evaluations before and after would meet different ones"),
        ("grpo: {}}", "past: {}}", "past goes with grpo: without it there is only one user"),
        (
            "grpo: {}}",
            "grpo: {}, past: {}, engine: vllm}",
            "past goes with engine: embedded; each past user needs one of her own",
        ),
        ("grpo: {}}", "grpo: {kl_in: reward}}", "kl_in"),
        ("{model: {tiny: {}}, grpo", "{model: {path: nowhere}, grpo", "no such file: 'nowhere'"),
        (
            "{model: {tiny: {}}, grpo",
            "{model: {path: weights}, grpo",
            "say user_model.grpo.lr for the model that user_model.model.path names",
        ),
        (
            "grpo: {}}",
            "grpo: {}, cold_start: {user: {model: {}}}}",
            "an expert's dialogues are there before the user's model; say another user",
        ),
        (
            "grpo: {}}",
            "grpo: {}, cold_start: {split: held_out}}",
            "split 'held_out' is evaluated, so it cannot be trained on",
        ),
    ],
)
def test_what_does_not_go_together(folder: Path, old: str, new: str, problem: str) -> None:
    assert old in SOUND
    (found,) = problems(folder, SOUND.replace(old, new, 1))
    assert problem in found


def test_her_split_is_one_of_the_domain(folder: Path) -> None:
    (folder / "run.yaml").write_text(
        SOUND.replace("grpo: {}}", "grpo: {}, cold_start: {split: trian}}")
    )
    (finding,) = split_findings(load_run(folder / "run.yaml").spec, ["train", "held_out"])
    assert finding.loc == ("user_model", "cold_start", "split")


def test_her_folder_follows_the_run(folder: Path, tmp_path: Path) -> None:
    text = SOUND.replace("{model: {tiny: {}}, grpo: {}}", "{model: {path: weights}}", 1)
    (folder / "run.yaml").write_text(text)
    moved = load_run(folder / "run.yaml").spec.moved(folder, folder / "runs" / "out")
    assert moved.user_model is not None
    assert moved.user_model.model.path == "../../weights"
