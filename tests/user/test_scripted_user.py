"""The scripted user: what she tells, when she changes her mind, and when she leaves."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.errors import UserError
from muarl.record import UserReply
from muarl.spec import FactSpec, PersonaSpec, RequestSpec, UserGoalSpec, UserScriptSpec
from muarl.user.scripted import ScriptedUser

IDS = ("order", "city", "email", "name")
DISCLOSURES = ("volunteer", "on_request", "never")

PHRASINGS: dict[str, list[str]] = {
    "open": ["hello, {request}", "{request} please", "i am {name}, {request}"],
    "next": ["also {request}", "and {request}"],
    "change": ["no, {request} instead"],
    "confirm": ["yes", "ok"],
    "deny": ["no, {request}", "wrong"],
    "unknown": ["i don't know", "no idea"],
    "unclear": ["what?", "sorry?"],
    "stop": ["thanks, bye"],
    "abandon": ["never mind"],
    "ask:cancel": ["cancel {order}", "cancel {order} in {city}", "cancel it", "cancel mine"],
    "ask:send": ["send {order} to {city}", "send it"],
    **{f"tell:{key}": [f"it is {{{key}}}", f"{{{key}}}, i think"] for key in IDS},
}
UNDERSTANDS = {
    "confirm": ["shall i", "ok?"],
    **{f"ask:{key}": [f"which {key}"] for key in IDS},
    "refuse": ["cannot"],
    "done": ["done"],
}


def script(**changes: list[str]) -> UserScriptSpec:
    return UserScriptSpec(understands=UNDERSTANDS, phrasings={"any": PHRASINGS | changes})


def user(
    *requests: RequestSpec,
    facts: list[FactSpec] | None = None,
    seed: int = 0,
    phrases: UserScriptSpec | None = None,
    split: str = "train",
    **persona: Any,
) -> ScriptedUser:
    return ScriptedUser(
        phrases or script(),
        PersonaSpec(style="plain", **persona),
        UserGoalSpec(requests=list(requests), facts=facts or []),
        split,
        random.Random(seed),
    )


def fact(key: str, value: str, disclose: Any = "volunteer") -> FactSpec:
    return FactSpec(id=key, value=value, disclose=disclose)


CANCEL = RequestSpec(ask="cancel", facts=[fact("order", "W1")])
SEND = RequestSpec(ask="send", facts=[fact("order", "W2"), fact("city", "rome")])


# --- disclosure -----------------------------------------------------------------------------------


@st.composite
def ledgers(draw: st.DrawFn) -> tuple[dict[str, FactSpec], dict[str, FactSpec], dict[str, str]]:
    """Facts of the request, her own, and what the persona makes of them."""
    kind = st.sampled_from(DISCLOSURES)

    def facts(owner: str) -> dict[str, FactSpec]:
        ids = draw(st.sets(st.sampled_from(IDS)))
        return {key: fact(key, f"{owner}-{key}-value", draw(kind)) for key in sorted(ids)}

    return (
        facts("asked"),
        facts("own"),
        draw(st.dictionaries(st.sampled_from(IDS), kind, max_size=2)),
    )


AGENT = st.lists(
    st.sampled_from(["shall i?", "hello", "Done.", "cannot", *(f"Which {key}?" for key in IDS)]),
    max_size=8,
)


async def _conversation(talk: ScriptedUser, messages: list[str]) -> list[UserReply]:
    replies = [await talk.open()]
    for text in messages:
        if replies[-1].stop:
            break
        replies.append(await talk.reply(text))
    return replies


def converse(talk: ScriptedUser, messages: list[str]) -> list[UserReply]:
    """No user here waits for anything, so no event loop is needed."""
    coroutine = _conversation(talk, messages)
    try:
        coroutine.send(None)
    except StopIteration as ended:
        replies: list[UserReply] = ended.value
        return replies
    raise AssertionError("a scripted user waited")


def test_a_persona_may_know_an_act_by_phrases_of_her_own_only() -> None:
    """One who is told in plain words what others know by its name."""
    ask = RequestSpec(ask="cancel", facts=[FactSpec(id="order", value="K4", disclose="on_request")])
    plain = user(ask, understands={"ask:order": ["number on the box"]})
    assert [reply.act for reply in converse(plain, ["Which order?", "The number on the box?"])] == [
        "open",
        "unclear",
        "tell:order",
    ]


@settings(max_examples=150, deadline=None)
@given(ledger=ledgers(), messages=AGENT, seed=st.integers(0, 2**32))
def test_she_tells_what_is_asked_and_nothing_she_must_not(
    ledger: Any, messages: list[str], seed: int
) -> None:
    asked_facts, own_facts, persona = ledger
    talk = user(
        RequestSpec(ask="cancel", facts=list(asked_facts.values())),
        facts=list(own_facts.values()),
        seed=seed,
        disclose=persona,
        patience=9,
    )
    facts = own_facts | asked_facts
    how = {key: persona.get(key, f.disclose) for key, f in facts.items()}
    hidden = {f.value for f in own_facts.values()} - {f.value for f in facts.values()}
    replies = converse(talk, messages)
    for text, reply in zip(["", *messages], replies, strict=False):
        asked = text.removeprefix("Which ").rstrip("?") if text.startswith("Which") else None
        for key, f in facts.items():
            if how[key] == "never" or (how[key] == "on_request" and asked != key):
                assert f.value not in reply.text, f"she told {key} unasked"
        assert not any(value in reply.text for value in hidden), "a fact that another stands before"
        if asked is not None:
            tells = how.get(asked, "never") != "never"
            assert reply.act == (f"tell:{asked}" if tells else "unknown")
            assert not tells or facts[asked].value in reply.text
    if how.get("order") == "volunteer":
        assert facts["order"].value in replies[0].text, "what may be told is told at once"


def test_of_what_may_be_told_the_most_telling_wording_is_chosen() -> None:
    facts = [fact("order", "W1"), fact("city", "rome")]
    talk = user(RequestSpec(ask="cancel", facts=facts), facts=[fact("name", "ann")])
    (opening,) = converse(talk, [])
    assert opening.text == "i am ann, cancel W1 in rome"


def test_a_fact_that_must_not_be_told_hides_her_own_of_the_same_name() -> None:
    asked = RequestSpec(ask="cancel", facts=[fact("order", "SECRET", "never")])
    talk = user(asked, facts=[fact("order", "W7", "on_request")])
    told = converse(talk, ["Which order?"])
    assert not any("SECRET" in reply.text or "W7" in reply.text for reply in told)
    assert told[1].act == "unknown"


@pytest.mark.parametrize(
    "value", ["{email}", "{request}", "{", "}{", "{0}", "%s", "\\1", "{nothing}"]
)
def test_braces_in_a_fact_are_not_filled_in_again(value: str) -> None:
    asked = RequestSpec(ask="cancel", facts=[fact("order", value)])
    talk = user(asked, facts=[fact("email", "a@b.net", "on_request")])
    replies = converse(talk, ["Which order?"])
    assert f"cancel {value}" in replies[0].text
    assert value in replies[1].text
    assert "a@b.net" not in "".join(reply.text for reply in replies)


# --- seeds ----------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(messages=AGENT, seed=st.integers(0, 2**32))
def test_the_same_seed_and_the_same_messages_give_the_same_user_L5(
    messages: list[str], seed: int
) -> None:
    one, two = (converse(user(CANCEL, SEND, seed=seed), messages) for _ in range(2))
    assert one == two


def test_other_seeds_give_other_wordings_L5() -> None:
    openings = {converse(user(CANCEL, seed=seed), [])[0].text for seed in range(20)}
    assert openings == {"hello, cancel W1", "cancel W1 please"}


# --- confirmations --------------------------------------------------------------------------------


def acts(talk: ScriptedUser, *messages: str) -> list[str]:
    return [reply.act for reply in converse(talk, list(messages))][1:]


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("Send W2 to Rome, shall I?", "confirm"),
        ("send w2 to ROME. ok?", "confirm"),
        ("(W2, rome) ok?", "confirm"),
        ("Shall I go ahead?", "deny"),
        ("Send W2. Shall I?", "deny"),
        ("Send W22 to Rome, shall I?", "deny"),
        ("Send AW2 to Rome, shall I?", "deny"),
        ("Send W2 to Jerome, shall I?", "deny"),
        ("Send W1 to Rome, shall I?", "deny"),
    ],
)
def test_she_confirms_only_what_names_the_facts_of_her_request(text: str, act: str) -> None:
    assert acts(user(SEND), text) == [act]


def test_a_fact_of_signs_is_named_wherever_it_stands() -> None:
    talk = user(RequestSpec(ask="cancel", facts=[fact("order", "#12")]))
    assert acts(talk, "order#12: shall i?", "order #123: shall i?") == ["confirm", "deny"]


CHANGING = CANCEL.model_copy(update={"instead": SEND})


def test_she_changes_her_mind_once_at_the_first_valid_confirmation() -> None:
    talk = user(CHANGING, changes_mind=True)
    assert acts(talk, "ok?", "Cancel W1, ok?", "Cancel W1, ok?", "Send W2 to Rome, ok?") == [
        *("deny", "change", "deny", "confirm")
    ]


def test_she_changes_her_mind_only_if_that_is_her_manner() -> None:
    assert acts(user(CHANGING), "Cancel W1, ok?") == ["confirm"]
    assert acts(user(CANCEL, changes_mind=True), "Cancel W1, ok?") == ["confirm"]


def test_she_changes_her_mind_once_for_each_request() -> None:
    talk = user(CHANGING, CHANGING, changes_mind=True)
    heard = ["Cancel W1, ok?", "Send W2 to rome, ok?", "Done.", "Cancel W1, ok?"]
    assert acts(talk, *heard) == ["change", "confirm", "next", "change"]


def test_what_she_changed_to_may_not_change_again() -> None:
    nested = CANCEL.model_copy(update={"instead": CHANGING})
    talk = user(nested, changes_mind=True)
    assert acts(talk, "Cancel W1, ok?", "Cancel W1, ok?") == ["change", "confirm"]


# --- the flow -------------------------------------------------------------------------------------


def test_she_goes_from_request_to_request_and_leaves() -> None:
    replies = converse(user(CANCEL, SEND), ["Done.", "I cannot do that."])
    assert [(r.act, r.stop) for r in replies] == [("open", False), ("next", False), ("stop", True)]
    assert "send W2 to rome" in replies[1].text


def test_a_refusal_is_taken_in_its_own_words_where_there_are_some() -> None:
    plain = converse(user(CANCEL, SEND), ["I cannot."])[1]
    assert (plain.act, plain.text.startswith(("also", "and"))) == ("accept_refusal", True)
    phrases = script(accept_refusal=["a pity. {request}"])
    worded = converse(user(CANCEL, SEND, phrases=phrases), ["I cannot."])[1]
    assert (worded.act, worded.text) == ("accept_refusal", "a pity. send W2 to rome")


def test_the_first_act_that_a_message_shows_counts() -> None:
    assert acts(user(CANCEL), "Cancel W1, shall i, or have you done it?") == ["confirm"]


@pytest.mark.parametrize("patience", [0, 1, 2, 5])
def test_out_of_patience_she_leaves(patience: int) -> None:
    talk = user(CANCEL, patience=patience)
    replies = converse(talk, ["..."] * 9)
    assert [r.act for r in replies[1:]] == ["unclear"] * patience + ["abandon"]
    assert replies[-1].stop
    assert not any(reply.stop for reply in replies[:-1])


def test_patience_comes_back_with_every_message_that_helps() -> None:
    talk = user(CANCEL, patience=1)
    assert acts(talk, "...", "Which order?", "...", "Which order?", "...", "...") == [
        *("unclear", "tell:order", "unclear", "tell:order", "unclear", "abandon")
    ]


# --- wordings -------------------------------------------------------------------------------------


def test_a_personas_wording_replaces_the_domains_and_a_splits_own_comes_with_any() -> None:
    phrases = UserScriptSpec(
        understands=UNDERSTANDS,
        phrasings={"any": PHRASINGS | {"unclear": ["any"]}, "train": {"unclear": ["train"]}},
    )
    said = {converse(user(CANCEL, phrases=phrases, seed=s), ["..."])[1].text for s in range(20)}
    assert said == {"any", "train"}
    held_out = user(CANCEL, phrases=phrases, split="held_out")
    assert converse(held_out, ["..."])[1].text == "any"
    own = {"train": {"unclear": ["eh?"]}}
    said = {
        converse(user(CANCEL, phrases=phrases, seed=s, phrasings=own), ["..."])[1].text
        for s in range(20)
    }
    assert said == {"eh?"}


@pytest.mark.parametrize(
    ("phrases", "messages", "act"),
    [
        ({"open": ["it is {email}, {request}"]}, [], "'open'"),
        ({"unclear": []}, ["..."], "'unclear'"),
        ({"ask:cancel": ["cancel {city}"]}, [], "'ask:cancel'"),
        ({"ask:cancel": ["please {request}"]}, [], "'ask:cancel'"),
        ({"tell:order": ["{order} of {email}"]}, ["Which order?"], "'tell:order'"),
    ],
)
def test_a_user_without_words_is_a_fault_that_names_the_act(
    phrases: dict[str, list[str]], messages: list[str], act: str
) -> None:
    with pytest.raises(UserError, match=f"no phrasing for act {act} in split 'train'"):
        converse(user(CANCEL, phrases=script(**phrases)), messages)
