"""Users in spec files: personas' voices and knobs, a run's kinds and pools, and their mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_files import said, spoil

from muarl.domain import load_domain
from muarl.errors import SpecError
from muarl.spec import KnobsSpec, load_domain_spec, load_run
from muarl.spec.speech import language_findings
from muarl.spec.wording import BUILT_IN, templates
from muarl.train.ready import files_of_run

USER = """\
user:
  pool:
    plain: {weight: 2, user: {scripted: {}}}
    hard: {user: {scripted: {knobs: {withhold: 0.5, push_back: 1}}}}
    model:
      user:
        llm:
          base_url: http://127.0.0.1:8001/v1
          model: user
          candidates: 5
          guards: [leak, role_flip]
          knobs: {unsure: 0.2}
    person: {user: {replay: {file: people.jsonl}}}
rollout: {vary: persona}
"""


def problems(path: Path) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_run(path) if path.stem == "run" else load_domain(path).tasks("train")
    return said(caught.value)


def with_user(folder: Path, old: str = "", new: str = "") -> Path:
    path = folder / "run.yaml"
    path.write_text(path.read_text() + USER.replace(old, new))
    return path


def test_a_pool_of_all_kinds_is_read(folder: Path) -> None:
    run = load_run(with_user(folder))
    users = dict(run.spec.user.users())
    assert list(users) == ["plain", "hard", "model", "person"]
    assert run.spec.rollout.vary == "persona"
    assert users["model"].llm is not None
    assert users["model"].llm.guards == ["leak", "role_flip"]
    assert folder / "people.jsonl" in files_of_run(run), "and nothing is written over it"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("push_back", "push_bak", "unknown field 'push_bak'; did you mean 'push_back'?"),
        ("push_back: 1", "silence: 0.9, digress: 0.9", "only one of silence and digress can act"),
        ("withhold: 0.5", "withhold: 2", "'withhold'"),
        ("weight: 2, user", "weight: 0, user", "'weight'"),
        ("candidates: 5", "candidates: 0", "'candidates'"),
        ("[leak, role_flip]", "[leak, rude]", "'rude'"),
        ("vary: persona", "vary: all", "'vary'"),
        ("{scripted: {}}", "{}", "exactly one of scripted"),
    ],
)
def test_a_mistake_in_a_user_is_named(folder: Path, old: str, new: str, problem: str) -> None:
    assert any(problem in found for found in problems(with_user(folder, old, new)))


def test_what_a_persona_alone_understands_is_an_act_of_the_domains_users(folder: Path) -> None:
    path = folder / "domain.yaml"
    spoil(path, "    style: plain\n", "    style: plain\n    understands: {reboot: [off and on]}\n")
    assert any("unknown act 'reboot'" in found for found in problems(path))


def test_a_voice_that_nobody_wrote_is_no_way_to_speak(folder: Path) -> None:
    path = folder / "domain.yaml"
    spoil(path, "    style: plain\n", "    style: plain\n    tone: formal\n")
    assert any("unknown voice 'formal'" in found for found in problems(path))
    spoil(path, "user:\n", "user:\n  voices: {formal: {any: {confirm: [Indeed.]}}}\n")
    load_domain(path).tasks("train")


@pytest.mark.parametrize(
    ("wording", "problem"),
    [
        ('deny: ["No, {part}."]', "{part} is a part of a value"),
        ('digres: ["Well."]', "unknown act 'digres'; did you mean 'digress'?"),
    ],
)
def test_wordings_of_knobs_are_looked_at_like_others(
    folder: Path, wording: str, problem: str
) -> None:
    path = folder / "domain.yaml"
    spoil(
        path, 'deny: ["No."]', wording + ('\n      deny: ["No."]' if "deny" not in wording else "")
    )
    assert any(problem in found for found in problems(path))


def test_a_part_of_a_fact_that_no_task_has_is_never_told(folder: Path) -> None:
    path = folder / "domain.yaml"
    spoil(path, 'deny: ["No."]', 'deny: ["No."]\n      "partly:order": ["{part}?"]')
    domain = load_domain(path)
    found = [f.message for f in language_findings(domain.spec, domain.tasks("train"))]
    assert found == ["unknown fact 'order'; did you mean 'order_id'?"]


def test_a_domain_may_word_what_knobs_do_and_need_not(folder: Path) -> None:
    path = folder / "domain.yaml"
    spec = load_domain_spec(path).spec
    assert spec.user is not None
    plain = spec.personas["plain"]
    assert templates("partly:order_id", "train", spec.user, plain) == BUILT_IN["partly"]
    spoil(path, 'deny: ["No."]', 'deny: ["No."]\n      "partly:order_id": ["{part}-something"]')
    spec = load_domain_spec(path).spec
    assert spec.user is not None
    assert templates("partly:order_id", "train", spec.user, plain) == ["{part}-something"]


def test_knobs_that_are_left_out_are_not_there() -> None:
    assert KnobsSpec().rates == {}
    assert KnobsSpec(typos=0.0, abandon_after=2).rates == {"typos": 0.0}
