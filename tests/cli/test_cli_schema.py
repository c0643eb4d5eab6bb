"""`muarl schema` writes the schemas, and tells when they are stale."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from muarl.cli import VERBS, main, parser_of
from muarl.cli.schema import documents


def test_it_writes_the_schemas_and_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "schemas"
    assert main(["schema", "--out", str(out)]) == 0
    kinds = ["domain", "tasks", "run", "reward", "grid", "suite", "synth", "overlay"]
    names = [f"{kind}.v1.json" for kind in kinds]
    assert capsys.readouterr().out.split() == [str(out / name) for name in names]
    assert main(["schema", "--out", str(out), "--check"]) == 0


def test_check_names_what_is_stale_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["schema", "--out", str(tmp_path)])
    (tmp_path / "run.v1.json").write_text("{}")
    capsys.readouterr()
    assert main(["schema", "--out", str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().out == (
        f"{tmp_path / 'run.v1.json'}: not what the models say; run `muarl schema --out {tmp_path}`\n"
    )
    assert (tmp_path / "run.v1.json").read_text() == "{}"


def test_a_folder_that_cannot_be_written_is_one_clear_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["schema", "--out", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err == (
        f"muarl: cannot write to {tmp_path / 'file'}: File exists; name another folder with --out or "
        "--docs\n"
    )


def test_docs_are_written_and_checked_beside_the_schemas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["schema", "--out", str(tmp_path / "schemas"), "--docs", str(tmp_path / "docs")]
    assert main(arguments) == 0
    assert main([*arguments, "--check"]) == 0
    (tmp_path / "docs" / "cli.md").write_text("# Commands\n")
    (tmp_path / "docs" / "reference" / "run.md").unlink()
    capsys.readouterr()
    assert main([*arguments, "--check"]) == 1
    again = f"not what the models say; run `muarl {' '.join(arguments)}`"
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path / 'docs' / 'cli.md'}: {again}",
        f"{tmp_path / 'docs' / 'reference' / 'run.md'}: {again}",
    ]


def test_the_committed_reference_of_verbs_is_fresh() -> None:
    committed = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    assert committed == documents()["cli.md"], "run `muarl schema --docs docs`"


@pytest.mark.parametrize("verb", VERBS)
def test_every_argument_of_a_verb_is_in_the_reference(verb: str) -> None:
    _, _, section = documents()["cli.md"].partition(f"\n## muarl {verb}\n")
    section = section.partition("\n## ")[0]
    helped = re.findall(r"^  (--?[\w-]+)", parser_of(verb).format_help(), re.MULTILINE)
    assert helped
    assert [option for option in helped if option != "-h" and f"`{option}" not in section] == []
    assert "| |" not in section, "an argument without help"


def test_the_committed_reference_of_figures_is_fresh() -> None:
    page = Path(__file__).parents[2] / "docs" / "user-figures.md"
    fresh = documents()["user-figures.md"]
    assert page.read_text(encoding="utf-8") == fresh, "run `muarl schema --docs docs`"
