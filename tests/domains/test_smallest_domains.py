"""The smallest useful domains: few lines, sound, and users who talk although they were given no words."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from muarl.domain import load_domain
from muarl.errors import SpecError
from muarl.spec.user import ScriptedUserSpec, UserKindSpec

ROOT = Path(__file__).resolve().parents[2]
SMALLEST = ROOT / "benchmarks" / "authoring"
SCRIPTED = UserKindSpec(scripted=ScriptedUserSpec())


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_they_take_no_more_than_45_lines_and_are_sound() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "authoring.py"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["python_lines"] <= 45
    assert figures["sql_lines"] <= 45


async def heard(persona: str, *agent: str) -> list[str]:
    domain = load_domain(SMALLEST / "sql")
    user = domain.user(SCRIPTED, domain.tasks("train")[0], persona, seed=1)
    return [(await user.open()).text, *[(await user.reply(text)).text for text in agent]]


@pytest.mark.anyio
async def test_without_phrasings_a_user_says_what_she_wants_in_plain_english() -> None:
    opening, yes, bye = await heard(
        "plain", "Shall I cancel order W17?", "It is cancelled. Anything else?"
    )
    assert "cancel W17" in opening
    assert yes.startswith("yes")
    assert bye == "thanks, bye"


@pytest.mark.anyio
async def test_plain_english_tells_no_more_than_she_would() -> None:
    opening, told, no, sorry = await heard(
        "terse", "Which order is it?", "Shall I cancel order W99?", "Hm."
    )
    assert "cancel" in opening
    assert "W17" not in opening
    assert told == "W17"
    assert no == "no, cancel"
    assert sorry == "sorry?"


def changed(tmp_path: Path, name: str, old: str, new: str) -> Path:
    for file in (SMALLEST / "sql").glob("*.yaml"):
        (tmp_path / file.name).write_text(file.read_text())
    text = (tmp_path / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new))
    return tmp_path


def test_a_task_that_names_no_personas_is_for_all_of_them(tmp_path: Path) -> None:
    folder = changed(
        tmp_path, "tasks.yaml", "  - id: pan-is-gone", "  - id: pan-is-gone\n    personas: [terse]"
    )
    first, second = load_domain(folder).tasks("train")
    assert first.personas == ["plain", "terse"]
    assert second.personas == ["terse"]


def test_phrasings_that_are_given_must_be_whole(tmp_path: Path) -> None:
    own = '{understands: {"ask:order_id": [which]}, phrasings: {any: {open: ["{request}"]}}}'
    old = '{understands: {"ask:order_id": [which order]}}'
    folder = changed(tmp_path, "domain.yaml", old, own)
    with pytest.raises(SpecError, match=r"no words for: .*`confirm`"):
        load_domain(folder).tasks("train")


def test_what_shows_a_yes_is_wanted_is_known_unless_the_domain_says_so_itself(
    tmp_path: Path,
) -> None:
    script = load_domain(SMALLEST / "sql").spec.user
    assert script is not None
    assert list(script.understands) == ["ask:order_id", "confirm", "refuse", "done"]
    own = '{understands: {done: [ready], "ask:order_id": [which order]}}'
    folder = changed(tmp_path, "domain.yaml", '{understands: {"ask:order_id": [which order]}}', own)
    script = load_domain(folder).spec.user
    assert script is not None
    assert list(script.understands) == ["done", "ask:order_id"]
