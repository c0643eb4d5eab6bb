"""A task that passes the check of wordings never leaves its scripted user without words."""

from __future__ import annotations

import random
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.spec import (
    FactSpec,
    PersonaSpec,
    RequestSpec,
    TaskSpec,
    UserGoalSpec,
    UserScriptSpec,
)
from muarl.spec.wording import unsayable, unworded
from muarl.user.scripted import ScriptedUser

FACTS = ("a", "b")
ASKED = ("shall I", "what is a", "what is b", "cannot", "done", "hm")
UNDERSTANDS = {
    "confirm": ["shall I"],
    "ask:a": ["what is a"],
    "ask:b": ["what is b"],
    "refuse": ["cannot"],
    "done": ["done"],
}
ACTS = ["open", "next", "change", "confirm", "deny", "unknown", "unclear", "stop", "abandon"]
ACTS += ["tell:a", "tell:b", "ask:buy", "ask:sell"]
ALWAYS_SAYABLE = {act: ["Well."] for act in ACTS}

disclosures = st.sampled_from(["volunteer", "on_request", "never"])
wishes = st.sampled_from(["Well.", "{a}", "{b}", "{a} {b}"])
templates = wishes | st.sampled_from(["{request}", "{request} {a}"])
acts = st.sampled_from(ACTS).flatmap(
    lambda act: st.tuples(
        st.just(act),
        st.lists(wishes if act.startswith("ask:") else templates, min_size=1, max_size=2),
    )
)
phrasings = st.dictionaries(
    st.sampled_from(["train", "any", "held_out"]), st.lists(acts, max_size=5).map(dict), max_size=3
)


def with_base(spoken: dict[str, Any], base: bool) -> dict[str, Any]:
    """Mostly sayable scripts, or nothing would ever pass the check."""
    return {**spoken, "any": {**ALWAYS_SAYABLE, **spoken.get("any", {})}} if base else spoken


scripts = st.builds(
    lambda spoken, base, acts: UserScriptSpec(
        understands={act: UNDERSTANDS[act] for act in acts}, phrasings=with_base(spoken, base)
    ),
    phrasings,
    st.sampled_from([True, True, False]),
    st.lists(st.sampled_from(list(UNDERSTANDS)), unique=True),
)
personas = st.builds(
    PersonaSpec,
    style=st.just(""),
    patience=st.integers(0, 1),
    changes_mind=st.booleans(),
    disclose=st.dictionaries(st.sampled_from(FACTS), disclosures, max_size=2),
    phrasings=phrasings,
)
ledgers = st.lists(
    st.builds(FactSpec, id=st.sampled_from(FACTS), value=st.just("v"), disclose=disclosures),
    max_size=2,
    unique_by=lambda fact: fact.id,
)
plain_requests = st.builds(RequestSpec, ask=st.sampled_from(["buy", "sell"]), facts=ledgers)
requests = plain_requests | st.builds(
    RequestSpec, ask=st.just("buy"), facts=ledgers, instead=plain_requests
)
goals = st.builds(UserGoalSpec, requests=st.lists(requests, min_size=1, max_size=2), facts=ledgers)


def talk(script: UserScriptSpec, persona: PersonaSpec, goal: UserGoalSpec, seed: int) -> None:
    """Say random things to the user until she leaves."""

    async def dialogue() -> None:
        rng = random.Random(seed)
        user = ScriptedUser(script, persona, goal, "train", rng)
        reply = await user.open()
        for _ in range(12):
            if reply.stop:
                return
            reply = await user.reply(f"{rng.choice(ASKED)} v")

    anyio.run(dialogue)


@settings(max_examples=150, deadline=None)
@given(script=scripts, persona=personas, goal=goals, seed=st.integers(0, 99))
def test_a_user_that_passes_always_finds_words(
    script: UserScriptSpec, persona: PersonaSpec, goal: UserGoalSpec, seed: int
) -> None:
    task = TaskSpec(id="t", goal="", personas=["p"], user=goal, gold=[])
    of_all = {"p": persona}
    if not [*unsayable(task, script, of_all), *unworded([task], script, of_all)]:
        talk(script, persona, goal, seed)


def test_the_message_names_every_act_that_lacks_words() -> None:
    script = UserScriptSpec(understands=UNDERSTANDS, phrasings={"any": {"open": ["{a}"]}})
    goal = UserGoalSpec(requests=[RequestSpec(ask="buy")])
    task = TaskSpec(id="t", goal="", personas=["p"], user=goal, gold=[])
    personas = {"p": PersonaSpec(style="")}
    (message,) = unsayable(task, script, personas)
    assert message == (
        "persona 'p' has no wording in split 'train' for `open` that needs only what she may tell; "
        "add one under user.phrasings"
    )
    assert unworded([task], script, personas) == (
        "users may have to say what they have no words for: `unclear`, `abandon`, `unknown`, "
        "`confirm`, `deny`, `stop`; give each a template, under `any` or under each split"
    )
