"""Names that a user's language has of its own are problems at their place, and so are untold facts."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_files import spoil

from muarl.errors import SpecError
from muarl.spec import load_domain_spec, load_task_files
from muarl.spec.speech import language_findings, untold_findings


def found(folder: Path) -> list[str]:
    """Problems of the domain's language, as `line:column: message`; file names for tasks."""
    domain = load_domain_spec(folder)
    (file,) = load_task_files(domain)
    problems = [
        domain.problem(f.loc, f.message, at_key=f.at_key)
        for f in language_findings(domain.spec, file.spec.tasks)
    ]
    for index, task in enumerate(file.spec.tasks):
        problems += [
            file.problem(("tasks", index, *f.loc), f.message)
            for f in untold_findings(task, domain.spec)
        ]
    return [f"{Path(p.path).name}:{p.line}:{p.column}: {p.message}" for p in problems]


def test_a_sound_language_has_no_findings(folder: Path) -> None:
    assert found(folder) == []


SLOT = "unknown fact 'order_idd'; did you mean 'order_id'? (so these words are never said)"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('["cancel {order_id}",', '["cancel {order_idd}", "cancel {order_id}",', f":29:20: {SLOT}"),
        ('["It is {order_id}."]', '["It is {order_id}.", "{order_idd}"]', f":30:44: {SLOT}"),
        ('confirm: ["Yes."]', 'confirm: ["Yes {color}.", "Yes."]', ":31:17: unknown fact 'color'"),
        (
            "    ask:order_id: [",
            "    ask:order_idd: [number]\n    ask:order_id: [",
            ":24:5: unknown fact 'order_idd'; did you mean 'order_id'?",
        ),
        (
            "      tell:order_id:",
            '      tell:oder_id: ["It is."]\n      tell:order_id:',
            ":30:7: unknown fact 'oder_id'; did you mean 'order_id'?",
        ),
        (
            "      tell:order_id:",
            '      ask:cancle: ["stop it"]\n      tell:order_id:',
            ":30:7: unknown intent 'cancle'; did you mean 'cancel'?",
        ),
        (
            "    weight: 0\n",
            "    weight: 0\n    phrasings: {any: {ask:cancel: ['cancel {order_id}', 'no {orderid}', 'no']}}\n",
            ":20:57: unknown fact 'orderid'; did you mean 'order_id'?",
        ),
        (
            "    weight: 0\n",
            "    weight: 0\n    phrasings: {any: {tell:orderid: ['it is that']}}\n",
            ":20:23: unknown fact 'orderid'; did you mean 'order_id'?",
        ),
    ],
)
def test_a_typo_in_words_is_found_where_it_is(
    folder: Path, old: str, new: str, problem: str
) -> None:
    spoil(folder / "domain.yaml", old, new)
    assert [message for message in found(folder) if message.startswith(f"domain.yaml{problem}")]


def test_what_the_agent_may_ask_in_vain_is_no_typo(folder: Path) -> None:
    spoil(
        folder / "domain.yaml", "    ask:order_id: [", "    ask:email: [mail]\n    ask:order_id: ["
    )
    assert found(folder) == []


@pytest.mark.parametrize(
    ("words", "is_refused"),
    [
        ("Yes {order id}", True),
        ("Yes { order_id }", True),
        ("Yes {}", True),
        ("Yes {_x}", True),
        ("Yes {order_id}", False),
        ("Yes {order.id-2}", False),
        ("Yes {a: 1}", False),
        ("Yes } {", False),
    ],
)
def test_braces_that_are_almost_a_fact_are_found(
    folder: Path, words: str, is_refused: bool
) -> None:
    spoil(folder / "domain.yaml", 'confirm: ["Yes."]', f'confirm: ["{words}", "Yes."]')
    if not is_refused:
        load_domain_spec(folder)
        return
    with pytest.raises(SpecError, match="is no fact's name in braces, and is said as it stands"):
        load_domain_spec(folder)


ASKED = "    ask:order_id: [which order]\n"


@pytest.mark.parametrize(
    ("spoilt", "problem"),
    [
        (
            [("domain.yaml", ASKED, "")],
            (
                "tasks.yaml:10:19: persona 'terse' can never tell the fact 'order_id': she waits to be "
                "asked, and user.understands has no `ask:order_id`"
            ),
        ),
        (
            [
                (
                    "tasks.yaml",
                    "{id: order_id, value: W1}",
                    "{id: order_id, value: W1}, {id: why, value: x}",
                )
            ],
            (
                "tasks.yaml:10:46: persona 'plain' can never tell the fact 'why': no wording in split "
                "'train' of `open`, `ask:cancel`, `unclear`, `unknown`, `confirm`, `deny` holds `{why}`"
            ),
        ),
        (
            [("domain.yaml", '["It is {order_id}."]', '["It is that."]')],
            (
                "tasks.yaml:10:19: persona 'terse' can never tell the fact 'order_id': no wording in "
                "split 'train' of `tell:order_id` holds `{order_id}`"
            ),
        ),
        (
            [("tasks.yaml", "    user:\n", "    user:\n      facts: [{id: why, value: x}]\n")],
            "tasks.yaml:8:15: persona 'plain' can never tell the fact 'why': no wording in split",
        ),
    ],
)
def test_a_fact_that_no_words_tell_is_found_with_its_persona(
    folder: Path, spoilt: list[tuple[str, str, str]], problem: str
) -> None:
    for file, old, new in spoilt:
        spoil(folder / file, old, new)
    assert any(message.startswith(problem) for message in found(folder)), found(folder)


def test_a_fact_kept_for_good_need_not_be_told(folder: Path) -> None:
    spoil(folder / "domain.yaml", ASKED, "")
    spoil(folder / "domain.yaml", "on_request", "never")
    assert found(folder) == []


def test_a_fact_of_her_own_may_be_told_at_any_of_her_requests(folder: Path) -> None:
    spoil(folder / "domain.yaml", '["cancel {order_id}",', '["cancel {order_id} {why}",')
    spoil(
        folder / "domain.yaml",
        "      tell:",
        '      next: ["And {request}"]\n      ask:look: ["look"]\n      tell:',
    )
    spoil(folder / "tasks.yaml", "personas: [plain, terse]", "personas: [plain]")
    spoil(
        folder / "tasks.yaml",
        "      requests:\n",
        "      facts: [{id: why, value: x}]\n      requests:\n        - ask: look\n",
    )
    assert found(folder) == []


def test_a_fact_may_have_any_id_that_ids_may_have(folder: Path) -> None:
    for file in ("domain.yaml", "tasks.yaml"):
        text = (folder / file).read_text()
        (folder / file).write_text(
            text.replace("order_id: W1", "id: W1").replace("order_id", "order.id-2")
        )
    assert found(folder) == []
