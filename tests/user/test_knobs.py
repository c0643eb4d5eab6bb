"""Behaviour knobs: what each makes a user do, how often, and that an oracle gets through all the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle_desk import desk, play
from test_scripted_user import CANCEL, SEND, converse, fact, script

from muarl.errors import UserError
from muarl.record import Episode, UserReply
from muarl.spec import KnobsSpec, PersonaSpec, RequestSpec, UserGoalSpec
from muarl.spec.knobs import ANSWERS, INTERRUPTIONS
from muarl.user.knobs.answering import part_of
from muarl.user.knobs.dice import Dice
from muarl.user.knobs.slips import slip
from muarl.user.scripted import ScriptedUser

HARMLESS = [n for n in KnobsSpec.model_fields if n not in ("abandon", "abandon_after")]


def user(
    *requests: RequestSpec, seed: int = 0, persona: dict[str, Any] | None = None, **knobs: float
) -> ScriptedUser:
    return ScriptedUser(
        script(),
        PersonaSpec(style="plain", **(persona or {})),
        UserGoalSpec(requests=list(requests)),
        "train",
        random.Random(seed),
        knobs=KnobsSpec.model_validate(knobs),
        seed=seed,
    )


def acts(replies: Iterable[UserReply]) -> list[str]:
    return [reply.act for reply in replies]


def replies_of(episode: Episode) -> list[UserReply]:
    return [episode.opening, *(turn.reply for turn in episode.turns if turn.reply is not None)]


# --- all of them, with an oracle ------------------------------------------------------------------


@st.composite
def knob_sets(draw: st.DrawFn) -> KnobsSpec:
    rates = {
        name: draw(st.sampled_from([0.0, 0.3, 1.0]))
        for name in draw(st.sets(st.sampled_from(HARMLESS)))
    }
    for together in (ANSWERS, INTERRUPTIONS):
        most = sum(rates.get(name, 0.0) for name in together)
        rates |= {name: rates[name] / max(1.0, most) for name in together if name in rates}
    return KnobsSpec.model_validate(rates)


@settings(max_examples=25, deadline=None)
@example(knobs=KnobsSpec(typos=0.3, no_follow_up=0.3), first=208, seed=1519)  # "all rihgt"
@given(knobs=knob_sets(), first=st.integers(0, 590), seed=st.integers(0, 2**32))
def test_under_all_knobs_but_abandonment_an_oracle_still_scores_1(
    knobs: KnobsSpec, first: int, seed: int
) -> None:
    for split in ("train", "held_out"):
        for episode in play(desk().tasks(split)[first : first + 3], knobs, seed=seed):
            assert episode.reward == 1, (episode.key, episode.persona, episode.error)


@pytest.mark.parametrize("name", HARMLESS)
def test_at_rate_1_an_oracle_still_scores_1_on_every_kind_of_task(name: str) -> None:
    episodes = play(desk().tasks("dev")[:24], KnobsSpec.model_validate({name: 1.0}))
    assert {episode.reward for episode in episodes} == {1.0}


def test_a_knob_at_rate_0_leaves_the_very_dialogues_that_none_gives() -> None:
    tasks = desk().tasks("train")[:12]
    # A persona that changes her mind does so where `change_request` is left out, and not at 0.
    names = {*HARMLESS, "abandon"} - {"change_request"}
    off = KnobsSpec.model_validate(dict.fromkeys(names, 0.0))
    for plain, zero in zip(play(tasks, KnobsSpec()), play(tasks, off), strict=True):
        assert [(r.text, r.act) for r in replies_of(plain)] == [
            (r.text, r.act) for r in replies_of(zero)
        ]
        assert not any(r.knobs or r.chances for r in replies_of(plain))
        assert not any(r.knobs for r in replies_of(zero))
        assert any(r.chances for r in replies_of(zero))


def test_one_knob_does_not_change_what_another_draws_L5() -> None:
    tasks = desk().tasks("train")[:12]
    alone = play(tasks, KnobsSpec(withhold=0.5))
    beside = play(tasks, KnobsSpec(withhold=0.5, push_back=0.0, typos=0.0, partial=0.0))
    for one, other in zip(alone, beside, strict=True):
        assert [r.text for r in replies_of(one)] == [r.text for r in replies_of(other)]


def rate_of(episodes: Iterable[Episode], name: str) -> float:
    acted: Counter[str] = Counter()
    chances: Counter[str] = Counter()
    for episode in episodes:
        for reply in replies_of(episode):
            acted.update(reply.knobs)
            chances.update(reply.chances)
    return acted[name] / chances[name]


@pytest.mark.parametrize("name", ["withhold", "silence", "unsure", "typos"])
def test_a_rate_is_recovered_from_the_episodes(name: str) -> None:
    # 200 chances and more: 0.15 is four deviations, and the seed is fixed.
    episodes = play(desk().tasks("train")[:150], KnobsSpec.model_validate({name: 0.5}))
    assert abs(rate_of(episodes, name) - 0.5) < 0.15


# --- each of them ---------------------------------------------------------------------------------


def test_what_is_withheld_is_told_when_asked_for_and_only_then() -> None:
    opening, asked, denied = converse(user(CANCEL, withhold=1.0), ["Which order?", "ok?"])
    assert "W1" not in opening.text
    assert (opening.knobs, opening.chances) == (("withhold",), ("withhold",))
    assert (asked.act, "W1" in asked.text) == ("tell:order", True)
    assert (denied.act, "W1" in denied.text) == ("deny", False)


def test_what_she_could_not_do_without_is_not_withheld() -> None:
    phrases = script(**{"ask:cancel": ["cancel {order}"]})
    goal = UserGoalSpec(requests=[CANCEL])
    persona = PersonaSpec(style="plain")
    her = ScriptedUser(
        phrases, persona, goal, "train", random.Random(0), knobs=KnobsSpec(withhold=1.0)
    )
    (opening,) = converse(her, [])
    assert "W1" in opening.text
    assert opening.chances == ()


@pytest.mark.parametrize(
    ("knob", "act"), [("partial", "partly:order"), ("unsure", "unknown"), ("refuse", "refuse")]
)
def test_a_first_question_may_be_evaded_and_the_second_is_answered(knob: str, act: str) -> None:
    asked = CANCEL.model_copy(update={"facts": [fact("order", "W17", "on_request")]})
    _, first, second = converse(user(asked, **{knob: 1.0}), ["Which order?"] * 2)
    assert (first.act, first.knobs, first.chances) == (act, (knob,), (knob,))
    assert "W17" not in first.text
    assert (second.act, second.knobs, second.chances) == ("tell:order", (), ())
    assert "W17" in second.text
    if knob == "partial":
        assert "W1" in first.text


def test_what_she_does_not_know_is_no_chance_to_evade() -> None:
    unknown = CANCEL.model_copy(update={"facts": [fact("order", "W17", "never")]})
    reply = converse(user(unknown, refuse=1.0), ["Which order?"])[1]
    assert (reply.act, reply.chances) == ("unknown", ())


def test_a_value_of_one_sign_has_no_part() -> None:
    assert [part_of(v) for v in ("7", "42", "A10", "Ada Byron", "the old mill")] == [
        *("", "4", "A1", "Ada", "the old")
    ]
    one = RequestSpec(ask="cancel", facts=[fact("order", "7", "on_request")])
    reply = converse(user(one, partial=1.0), ["Which order?"])[1]
    assert (reply.act, reply.chances) == ("tell:order", ())


CHANGING = CANCEL.model_copy(update={"instead": SEND})


def test_who_may_change_her_mind_and_does_not_wants_the_same_from_the_start() -> None:
    changing = {"changes_mind": True}
    heard = ["Cancel W1, ok?", "Send W2 to rome, ok?"]
    changed = converse(user(CHANGING, persona=changing, change_request=1.0), heard)
    assert acts(changed) == ["open", "change", "confirm"]
    assert changed[1].knobs == ("change_request",)
    settled = converse(user(CHANGING, persona=changing, change_request=0.0), heard[1:])
    assert acts(settled) == ["open", "confirm"]
    assert "W2" in settled[0].text
    assert (settled[1].knobs, settled[1].chances) == ((), ("change_request",))


def test_others_put_the_next_request_first_once_and_come_back() -> None:
    third = RequestSpec(ask="cancel", facts=[fact("order", "W3")])
    heard = ["Cancel W1, ok?", "Send W2 to rome, ok?", "Done.", "Cancel W1, ok?", "Done."]
    replies = converse(user(CANCEL, SEND, third, change_request=1.0), heard)
    assert acts(replies) == ["open", "change", "confirm", "next", "confirm", "next"]
    assert "W2" in replies[1].text
    assert "W1" in replies[3].text
    assert "W3" in replies[5].text
    assert Counter(c for r in replies for c in r.chances) == {"change_request": 1}


@pytest.mark.parametrize("knob", ["silence", "digress"])
def test_an_interruption_leaves_what_was_said_unheard_and_never_follows_another(knob: str) -> None:
    heard = ["Cancel W1, ok?"] * 2 + ["Done."] * 2
    replies = converse(user(CANCEL, **{knob: 1.0}), heard)
    assert acts(replies) == ["open", knob, "confirm", knob, "stop"]
    assert [r.chances for r in replies] == [(), (knob,), (), (knob,), ()]


def test_interruptions_do_not_cost_patience() -> None:
    replies = converse(user(CANCEL, persona={"patience": 0}, silence=1.0), ["...", "..."])
    assert acts(replies) == ["open", "silence", "abandon"]


def test_the_unavailable_is_asked_for_once_and_its_refusal_is_not_that_of_a_request() -> None:
    heard = ["Done.", "I cannot do that.", "Done.", "Done."]
    replies = converse(user(CANCEL, SEND, unavailable=1.0, push_back=1.0), heard)
    assert acts(replies) == ["open", "unavailable", "next", "stop"]
    assert replies[1].knobs == ("unavailable",)


def test_she_pushes_back_on_a_refusal_and_takes_the_second() -> None:
    heard = ["I cannot."] * 4
    replies = converse(user(CANCEL, SEND, push_back=1.0), heard)
    assert acts(replies) == ["open", "push_back", "accept_refusal", "push_back", "stop"]
    assert "W1" in replies[1].text


def test_a_false_claim_is_accepted_at_its_rate_and_else_challenged() -> None:
    assert acts(converse(user(CANCEL, accept_false=1.0), ["Cancel W9, ok?"])) == ["open", "confirm"]
    denied = converse(user(CANCEL, accept_false=0.0), ["Cancel W9, ok?", "Cancel W1, ok?"])
    assert acts(denied) == ["open", "deny", "confirm"]
    assert [r.chances for r in denied] == [(), ("accept_false",), ()], "a true one is no chance"


def test_a_claim_to_be_done_that_she_never_said_yes_to_is_challenged_once() -> None:
    never = converse(user(CANCEL, challenge_done=1.0), ["Done.", "Done."])
    assert acts(never) == ["open", "challenge", "stop"]
    agreed = converse(user(CANCEL, challenge_done=1.0), ["Cancel W1, ok?", "Done."])
    assert acts(agreed) == ["open", "confirm", "stop"]
    assert agreed[2].chances == ()


def test_without_follow_ups_all_is_asked_for_at_once_and_nothing_is_asked_back() -> None:
    heard = ["...", "Send W2 to rome, ok?", "Done.", "Cancel W1, ok?", "Done."]
    replies = converse(user(CANCEL, SEND, no_follow_up=1.0), heard)
    assert acts(replies) == ["open", "pass", "confirm", "pass", "confirm", "stop"]
    assert all(value in replies[0].text for value in ("W1", "W2", "rome"))
    assert not any("?" in reply.text for reply in replies[1:])
    assert replies[0].knobs == ("no_follow_up",)
    alone = converse(user(CANCEL, no_follow_up=1.0), [])
    assert alone[0].chances == (), "who has one request makes it at once anyway"


def test_she_leaves_after_so_many_replies() -> None:
    leaving = converse(user(CANCEL, abandon=1.0, abandon_after=2), ["Cancel W1, ok?"] * 5)
    assert acts(leaving) == ["open", "confirm", "confirm", "abandon"]
    assert leaving[-1].stop
    assert leaving[-1].knobs == ("abandon",)
    staying = converse(user(CANCEL, abandon=0.0, abandon_after=2), ["Cancel W1, ok?"] * 5)
    assert [r.chances for r in staying].count(("abandon",)) == 1


@given(seed=st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_a_typo_swaps_two_letters_of_a_word_that_tells_nothing(seed: int) -> None:
    text = "please send order Walter-17 to osaka tomorrow"
    slipped = slip(text, ["Walter-17", "osaka"], Dice(KnobsSpec(typos=1.0), seed))
    assert slipped != text
    assert sorted(slipped) == sorted(text)
    assert "Walter-17 to osaka" in slipped
    changed = [(a, b) for a, b in zip(text.split(), slipped.split(), strict=True) if a != b]
    assert len(changed) == 1
    assert changed[0][0][0] == changed[0][1][0], "first letters stay"


def test_where_nothing_can_slip_there_is_no_chance() -> None:
    dice = Dice(KnobsSpec(typos=1.0), 0)
    assert slip("ok, yes", [], dice) == "ok, yes"
    assert slip("osaka", ["osaka"], dice) == "osaka"
    assert dice.taken() == ((), ())


# --- rates and personas ---------------------------------------------------------------------------


def test_rates_that_cannot_hold_together_are_refused() -> None:
    with pytest.raises(ValueError, match="only one of partial, unsure and refuse can act"):
        KnobsSpec(partial=0.5, unsure=0.4, refuse=0.2)
    with pytest.raises(ValueError, match="silence and digress"):
        KnobsSpec(silence=0.6, digress=0.6)


def test_a_runs_knobs_stand_before_a_personas_of_the_same_name() -> None:
    hers = KnobsSpec(withhold=0.1, typos=0.2, abandon=0.3, abandon_after=9)
    assert hers.under(KnobsSpec(typos=0.0)).rates == {"withhold": 0.1, "typos": 0.0, "abandon": 0.3}
    assert hers.under(KnobsSpec(typos=0.0)).abandon_after == 9
    assert hers.under(KnobsSpec(abandon=1.0)).abandon_after == KnobsSpec().abandon_after


@pytest.mark.parametrize(
    ("persona", "said"),
    [
        ({"verbosity": "terse"}, {"short"}),
        ({"verbosity": "talkative"}, {"very long words"}),
        ({"tone": "formal"}, {"I beg your pardon?"}),
        ({"language": "fr", "tone": "formal"}, {"pardon ?"}),
    ],
)
def test_a_persona_speaks_in_her_length_tone_and_language(
    persona: dict[str, Any], said: set[str]
) -> None:
    phrases = script(unclear=["short", "very long words"]).model_copy(
        update={
            "voices": {
                "formal": {"any": {"unclear": ["I beg your pardon?"]}},
                "fr": {"any": {"unclear": ["pardon ?"]}},
            }
        }
    )
    goal = UserGoalSpec(requests=[CANCEL])
    manner = PersonaSpec(style="plain", **persona)
    heard = set()
    for seed in range(12):
        her = ScriptedUser(phrases, manner, goal, "train", random.Random(seed))
        heard.add(converse(her, ["..."])[1].text)
    assert heard == said


def test_words_that_a_task_forbids_are_her_fault() -> None:
    goal = UserGoalSpec(requests=[CANCEL], never_says=["cancel W1"])
    her = ScriptedUser(script(), PersonaSpec(style="plain"), goal, "train", random.Random(0))
    with pytest.raises(UserError, match="her words for 'open' hold 'cancel W1'") as error:
        converse(her, [])
    assert error.value.breach == "forbidden"
