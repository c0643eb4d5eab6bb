"""Guards: what an LLM user must not say, kind by kind, and what is said and is none."""

from __future__ import annotations

from typing import Any

import pytest
from test_scripted_user import UNDERSTANDS, fact, script

from muarl.spec import FactSpec, GoldCallSpec, PersonaSpec, RequestSpec, TaskSpec, UserGoalSpec
from muarl.spec.user import GUARD_NAMES, GuardName
from muarl.user.contract import Contract
from muarl.user.guards import GUARDS, Said, breach_of
from muarl.user.role import RULES

PERSONA = PersonaSpec(style="Curt; born in 1962.")
TASK = TaskSpec(
    id="t",
    goal="Have order W41 sent to Rome, and order W42 cancelled. Your mail is ann@b.net.",
    personas=["plain"],
    user=UserGoalSpec(
        requests=[
            RequestSpec(
                ask="send",
                facts=[fact("order", "W41"), fact("city", "rome")],
                instead=RequestSpec(ask="send", facts=[fact("order", "W41"), fact("city", "oslo")]),
            ),
            RequestSpec(ask="cancel", facts=[fact("order", "W42")]),
        ],
        facts=[
            FactSpec(id="email", value="ann@b.net", disclose="on_request"),
            FactSpec(id="pin", value="7781", disclose="never"),
        ],
        never_says=["store credit"],
    ),
    gold=[GoldCallSpec(tool="send", arguments={"order": "W41", "line": {"id": "L-900"}})],
)
CONTRACT = Contract.of(TASK, PERSONA, script())


def breach(
    text: str,
    *heard: str,
    stop: bool = False,
    before: tuple[str, ...] = ("Hello.",),
    contract: Contract = CONTRACT,
    guards: tuple[GuardName, ...] = GUARD_NAMES,
    **more: Any,
) -> str:
    said = Said(text, stop, heard, before if heard else (), contract, RULES, **more)
    return breach_of(said, guards)[0]


@pytest.mark.parametrize(
    ("kind", "text", "heard"),
    [
        ("invented_fact", "My order is W99.", ["Which order?"]),
        ("invented_fact", "Write to bob@c.org.", ["Your email?"]),
        ("invented_fact", "It cost $1,250.", ["How much was it?"]),
        ("premature_disclosure", "Send W41, my mail is ann@b.net.", []),
        ("premature_disclosure", "ann@b.net", ["Hello, what can we do?"]),
        ("leak", "My pin is 7781.", ["What is your pin?"]),
        ("leak", "That is line L-900.", ["Which line?"]),
        ("leak", "One short chat message at a time, only words.", ["Hello."]),
        ("leak", TASK.goal, []),
        ("forbidden", "I take Store Credit, then.", ["We have nothing else."]),
        ("role_flip", "How can I help you today?", ["Hello."]),
        ("role_flip", "Assistant: it is done.", ["Hello."]),
        ("role_flip", "I've cancelled your order.", ["Hello."]),
        ("role_flip", "Your request has been processed.", ["Hello."]),
        ("role_flip", '<tool_call>{"name": "x"}', ["Hello."]),
        (
            "role_flip",
            "Please tell me the number of the order that you want",
            ["Please tell me the number of the order that you want to be sent."],
        ),
        ("unexecuted_action", "I have just restarted the phone.", ["Restart your phone, please."]),
        ("unexecuted_action", "I’ve already clicked it.", ["Click it."]),
        ("change_of_mind", "Send it to Oslo.", ["Send W41 to Rome. OK?"]),
        ("change_of_mind", "I changed my mind about it.", ["Send W41 to Rome. OK?"]),
        ("change_of_mind", "Actually no, keep it.", ["Send W41 to Rome. OK?"]),
    ],
)
def test_a_breach_is_found_and_named(kind: str, text: str, heard: list[str]) -> None:
    assert breach(text, *heard) == kind


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("Send W41 to Rome and cancel W42, please.", []),
        ("it's w-41... I mean W41", ["Which order?"]),
        ("I have 2 questions, and 15 minutes.", ["Yes?"]),
        ("I was born in 1962.", ["How old are you?"]),
        ("ann@b.net", ["And your email?"]),
        ("ann@b.net", ["Is it ann@b.net?"]),
        ("Yes, W77 is fine.", ["May I use W77 instead?"]),
        ("No credit from a store, please.", ["We have nothing else."]),
        ("Can you help me with my order?", []),
        ("Has my order been sent?", ["Hello."]),
        ("I cannot find it.", ["Look for the number."]),
        ("Yes, send W41 to Rome.", ["Send W41 to Rome. Shall I?"]),
        ("Oslo? No, Rome.", ["Send W41 to Oslo. Shall I?"]),
        ("I would rather not say.", ["Your email?"]),
        ("Thanks.", ["Done."]),
    ],
)
def test_what_is_no_breach_passes(text: str, heard: list[str]) -> None:
    assert breach(text, *heard) == ""


def test_a_guard_that_is_not_asked_for_finds_nothing() -> None:
    assert breach("My order is W99.", "Which order?", guards=("leak", "role_flip")) == ""
    assert set(GUARDS) == set(GUARD_NAMES)


def test_what_is_withheld_for_this_dialogue_is_premature_until_it_is_asked_for() -> None:
    withheld = frozenset({"city"})
    assert breach("To Rome.", "Hello.", withheld=withheld) == "premature_disclosure"
    assert breach("To Rome.", "Which city?", withheld=withheld) == ""


def test_asking_is_known_by_the_script_and_by_the_facts_name() -> None:
    (email,) = (fact for fact in CONTRACT.facts if fact.id == "email")
    assert email.phrases == tuple(UNDERSTANDS["ask:email"])
    asked = ["WHICH EMAIL", "What is your email?", "So it is ann@b.net."]
    assert all(email.is_asked(text) for text in asked)
    assert not any(email.is_asked(text) for text in ["Which order?", "We sent an email.", ""])
    assert email.is_asked("お客様のemailは？"), "a question has other marks elsewhere"
    unnamed = Contract.of(TASK, PERSONA, None).facts
    assert all(not fact.phrases for fact in unnamed)


def test_what_she_did_with_a_tool_of_hers_she_may_say() -> None:
    assert breach("I have restarted it.", "Restart it.", acted=True) == ""


def test_a_scripted_change_of_mind_is_none_of_hers() -> None:
    fickle = Contract.of(TASK, PERSONA.model_copy(update={"changes_mind": True}), script())
    heard = "Send W41 to Rome. OK?"
    assert breach("Actually no, send it to Oslo.", heard, contract=fickle) == ""
    assert breach("I changed my mind.", heard, may_change=True) == ""


@pytest.mark.parametrize(
    ("heard", "before", "kind"),
    [
        ([], (), "early_stop"),
        (["W41 goes to Rome now."], ("Hi.",), "early_stop"),
        (["W41 goes to Rome, and W42 is cancelled."], ("Hi.",), ""),
        (["W41 goes to Rome.", "Done."], ("Hi.", "And cancel W42."), ""),
        (["W41 goes to Oslo, W42 is cancelled."], ("Hi.",), ""),
        (["I'm afraid I cannot do that."], ("Hi.",), ""),
        (["That’s not possible, I can’t."], ("Hi.",), ""),
    ],
)
def test_she_stops_when_all_is_dealt_with_or_something_was_refused(
    heard: list[str], before: tuple[str, ...], kind: str
) -> None:
    assert breach("Bye.", *heard, before=before, stop=True) == kind


def test_closing_for_ever_is_a_late_stop() -> None:
    thanks = ("Hi.", "Thank you.", "Thanks again.")
    heard = ["Done.", "You are welcome.", "Have a nice day."]
    assert breach("You too!", *heard, before=thanks) == "late_stop"
    assert breach("You too!", *heard, before=thanks, stop=True, guards=("late_stop",)) == ""
    assert breach("And W42?", *heard, before=thanks) == ""
    assert breach("You too!", *heard[:2], before=thanks[:2]) == ""
    for question in ("And the other one?", "ほかには？", "هل هناك شيء آخر؟"):
        assert breach("Yes.", "Done.", question, "Hm.", before=thanks) == ""


def test_the_contract_of_a_task_without_a_ledger_is_its_goal() -> None:
    bare = TASK.model_copy(update={"user": None})
    contract = Contract.of(bare, PERSONA, None)
    assert breach("Send W41.", contract=contract) == ""
    assert breach("Send W43.", contract=contract) == "invented_fact"
    assert breach("It is L-900.", "Which?", contract=contract) == "leak"
    assert breach("Bye.", contract=contract, stop=True) == "early_stop"
    assert breach("Bye.", "Done.", contract=contract, stop=True) == ""
