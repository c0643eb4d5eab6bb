"""The example on the page of robustness prints what stands below it; its YAML is what may be written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from documents import ROOT, blocks
from ruamel.yaml import YAML

from muarl.spec import load_run
from muarl.spec.perturb import FAMILIES
from muarl.spec.run import EvalSpec, RolloutSpec

PAGE = [block for block in blocks() if block.place.startswith("robustness.md")]
TEXT = (ROOT / "docs" / "robustness.md").read_text(encoding="utf-8")


def _of(language: str) -> Iterator[str]:
    return (block.text for block in PAGE if block.language == language)


def test_the_example_prints_what_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (example,), (shown,) = _of("python"), _of("text")
    exec(compile(example, "robustness.md", "exec"), {"__name__": "example"})  # noqa: S102
    assert capsys.readouterr().out == shown


def test_the_settings_shown_are_settings() -> None:
    overlay, training = (YAML(typ="safe", pure=True).load(text) for text in _of("yaml"))
    assert EvalSpec.model_validate(overlay["eval"]).perturb["transition"].rates
    assert RolloutSpec.model_validate(training["rollout"]).perturb.rates
    specs = ROOT / "specs"
    laid_over = load_run(specs / "quickstart.yaml", specs / "overlays" / "perturbed.yaml")
    assert laid_over.spec.eval.perturb["all"].rates


@pytest.mark.parametrize("kind", [kind for kinds in FAMILIES.values() for kind in kinds])
def test_every_kind_has_a_row(kind: str) -> None:
    assert f"| `{kind}` |" in TEXT
