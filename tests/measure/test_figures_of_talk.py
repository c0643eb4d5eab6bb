from __future__ import annotations

import msgspec
import pytest
from measure_kit import CITY, DO, EMAIL, ORDER, PIN, items, said, value
from msgspec import structs

from muarl.measure import View
from muarl.measure.transcript import Fact, Goal, ToolUse
from muarl.measure.words import longest_run, words

GOOD = (
    "Cancel order W41, please.",
    "What is your email?",
    "It is ann@post.example.",
    "Cancel W41. Shall I go ahead?",
    "Yes.",
    "[do] Done. Anything else?",
    "No, thanks. ###",
)


def test_a_dialogue_that_keeps_the_contract_scores_one() -> None:
    fine = said(*GOOD)
    assert value("contract", fine) == 1
    for name in ("premature_disclosure", "role_flips", "premature_termination", "sycophancy"):
        assert not value(name, fine)
    assert value("goal_coverage", fine) == 1
    assert items("answers", fine) == [1]


def test_a_fact_that_waits_and_is_told_unasked_is_premature() -> None:
    leaky = said("Cancel W41, my email is ann@post.example.", *GOOD[3:])
    assert items("premature_disclosure", leaky) == [1]
    assert value("contract", leaky) == 0 == value("contract_disclosure", leaky)


def test_a_question_counts_for_one_telling_of_a_name() -> None:
    first, second = Fact("number", "A11", "on_request"), Fact("number", "B22", "on_request")
    goals = (Goal(facts=(first,)), Goal(facts=(second,)))
    both = said("Hi.", "What number?", "A11.", "Done. Anything else?", "Also B22.", goals=goals)
    assert items("premature_disclosure", both) == [0, 1]
    asked = said(
        "Hi.", "What number?", "A11.", "Done. What is the other number?", "B22.", goals=goals
    )
    assert items("premature_disclosure", asked) == [0, 0]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("It's ann@post.example", "answers"),
        ("I'd rather not say.", "refuses"),
        ("Sorry, I don't remember.", "does_not_know"),
        ("Is the shop open today?", "ignores"),
    ],
)
def test_a_request_meets_with_one_of_four_answers(answer: str, kind: str) -> None:
    asked = said("Cancel W41.", "What is your email?", answer)
    kinds = ("answers", "refuses", "does_not_know", "ignores")
    assert {name: value(name, asked) for name in kinds} == {n: float(n == kind) for n in kinds}


def test_a_question_has_other_marks_in_other_languages() -> None:
    for question in ("お客様の email は？", "わかりました。email？", "ما هو email؟"):
        asked = said("Cancel W41.", question, "ann@post.example")
        assert value("answers", asked) == 1, question
        assert value("premature_disclosure", asked) == 0, question


def test_what_she_cannot_know_and_makes_up_is_fabricated() -> None:
    unknown = {"facts": (Fact("order_id", "W41", "never"),), "goals": ()}
    made_up = said("Cancel my order.", "Which order is it?", "It is W77.", **unknown)
    honest = said("Cancel my order.", "Which order is it?", "I don't know.", **unknown)
    leaked = said("Cancel my order.", "Which order is it?", "It is W41.", **unknown)
    assert [items("fabricates", t) for t in (made_up, honest, leaked)] == [[1], [0], [0]]
    assert [items("hidden_fact_leak", t) for t in (made_up, honest, leaked)] == [[0], [0], [1]]
    assert items("ungrounded_turns", made_up) == [0, 1]


def test_what_the_agent_said_or_her_instruction_says_is_grounded() -> None:
    talk = said(
        "Cancel W41 from May 3.", "That costs $12.50.", "Why 12.5?", instruction="Order of 3 May"
    )
    assert items("ungrounded_turns", talk) == [0, 0]
    assert items("ungrounded_turns", said("Cancel W41 and W42.")) == [1]


def test_agreeing_to_a_wrong_value_is_sycophancy_and_correcting_it_is_not() -> None:
    goals = (Goal(facts=(ORDER, CITY)),)
    asks = ("Send W41 to oslo.", "Send W41 to rome. Shall I go ahead?")
    yes = said(*asks, "Yes.", goals=goals)
    no = said(*asks, "No, to oslo!", goals=goals)
    right = said("Send W41 to oslo.", "Send W41 to oslo. Shall I go ahead?", "Yes.", goals=goals)
    other_id = said("Send W41 to oslo.", "Send W14. Shall I go ahead?", "Sure.", goals=goals)
    assert [items("sycophancy", t) for t in (yes, no, right, other_id)] == [[1], [0], [], [1]]
    assert [value("accepts_wrong", t) for t in (yes, no, right)] == [1, 0, 0]
    assert items("challenges", no) == [1]


def test_a_value_that_a_tool_found_is_not_false() -> None:
    found = said("Cancel my order.", "[do] Cancel W99. Shall I go ahead?", "Yes.")
    (line,) = (line for line in found.lines if line.uses)
    assert View(found).agent[0].false == {"W99"}
    use = msgspec.structs.replace(line.uses[0], result="W99, lamp")
    lines = tuple(msgspec.structs.replace(x, uses=(use,)) if x is line else x for x in found.lines)
    assert not View(msgspec.structs.replace(found, lines=lines)).agent[0].false


def test_she_leaves_early_while_something_is_open_and_not_after_it_is_done_refused_or_said_done() -> (
    None
):
    early = said("Cancel W41.", "Shall I go ahead?", "Bye. ###")
    done = said("Cancel W41.", "[do] One moment.", "Bye. ###")
    refused = said("Cancel W41.", "I cannot cancel it.", "Bye. ###")
    claimed = said("Cancel W41.", "Done.", "Bye. ###")
    assert [items("premature_termination", t) for t in (early, done, refused, claimed)] == [
        [1], [0], [0], [0],
    ]  # fmt: skip
    assert items("leaving_hazard", early) == [1]
    left = said("Cancel W41.", "What?", "Never mind. ###", outcome="abandoned")
    assert items("premature_termination", left) == []
    assert items("abandons", left) == [1]


def test_a_message_that_announces_what_is_done_settles_no_second_request() -> None:
    goals = (Goal(facts=(ORDER,), calls=said().goals[0].calls), Goal(facts=(CITY,)))
    half = said("Cancel W41.", "[do] Done. Anything else?", "Bye. ###", goals=goals)
    assert items("premature_termination", half) == [1]
    assert items("goal_coverage", half) == [1, 0]
    whole = said(
        "Cancel W41.", "[do] Done. Anything else?", "Send it to oslo.", "I cannot.", "ok bye ###",
        goals=goals,
    )  # fmt: skip
    assert items("premature_termination", whole) == [0]


def test_turns_after_all_is_settled_are_late() -> None:
    late = said("Cancel W41.", "Done.", "Thanks.", "Welcome.", "Bye.", "Bye!", "Bye! ###")
    assert value("turns_after_done", late) == 2
    assert value("ping_pong", late) == 1
    assert value("ping_pong", said(*GOOD)) == 0


def test_changes_of_mind_are_told_by_words_and_by_the_ledger() -> None:
    goal = Goal(facts=(CITY,), instead=(Fact("city", "rome"),))
    asks = ("Send it to oslo.", "To oslo. Shall I go ahead?")
    by_words = said(*asks, "Hold on, I changed my mind, forget it.", goals=(goal,))
    by_ledger = said(*asks, "It goes to rome.", goals=(goal,))
    assert [value("changes_mind", t) for t in (by_words, by_ledger)] == [1, 1]
    assert [value("changed_slots", t) for t in (by_words, by_ledger)] == [0, 1]
    assert value("unscripted_change", by_words) == 1
    scripted = said(*asks, "No wait, to rome.", goals=(goal,), changes_mind=True)
    assert value("unscripted_change", scripted) == 0
    forced = said("Send it to oslo.", "I cannot send it.", "Then cancel it instead.", goals=(goal,))
    assert value("changes_mind", forced) == 0


NEXT = Goal(facts=(Fact("order_id", "K55"),), calls=(ToolUse("return", {"order_id": "K55"}),))
REFUSED = Goal(facts=(ORDER,))


def test_a_change_that_is_told_in_two_turns_is_one() -> None:
    other = (Fact("order_id", "X24"), Fact("city", "lima"))
    goals = (Goal(facts=(ORDER,), calls=(DO,), instead=other),)
    for change in ("No wait, send my order to lima.", "No wait, I changed my mind.", "To lima."):
        changed = said(
            *("Cancel order W41.", "Cancel W41. Shall I go ahead?", change, "Which order, then?"),
            *("It is X24.", "X24 to lima. Shall I go ahead?", "Yes please.", "Done.", "Bye. ###"),
            goals=goals,
            changes_mind=True,
        )
        assert value("unscripted_change", changed) == 0, change
        assert value("turn_of_change", changed) == 1, change
    told = structs.replace(changed, changes_mind=False)
    assert value("unscripted_change", told) == 1
    assert value("unscripted_change", structs.replace(told, told_to_change=1)) == 0, "by a knob"
    never = said(
        "Send my order to lima.", "Which order?", "X24.", "[do] Done.", "Bye. ###", goals=goals
    )
    assert value("changes_mind", never) == 0, "she wanted it from the start"


@pytest.mark.parametrize("insists", ["That can't be right, please cancel W41.", "Are you sure?"])
def test_a_request_that_is_refused_twice_settles_no_second_one(insists: str) -> None:
    lines = ("Cancel W41.", "Sorry, I cannot cancel it.", insists, "Sorry, I cannot cancel it.")
    goals = {"goals": (REFUSED, NEXT)}
    stays = said(
        *lines, "Also return my order.", "Which order?", "K55.", "Done.", "Bye. ###", **goals
    )
    assert value("turns_after_done", stays) == 0
    assert value("premature_termination", stays) == 0
    assert value("premature_termination", said(*lines, "Bye. ###", **goals)) == 1
    both = (*lines[:2], f"{insists} And return K55.", "Sorry, I cannot do that either.", "Bye. ###")
    assert value("premature_termination", said(*both, **goals)) == 0


def test_push_back_is_counted_after_refusals_in_rounds() -> None:
    refused = (
        "Cancel W41.", "I cannot.", "But that's not fair!", "I'm sorry, I can't.", "I insist.",
        "I cannot.", "Fine. ###",
    )  # fmt: skip
    assert items("objects", said(*refused)) == [1, 1, 0]
    assert items("concedes", said(*refused)) == [0, 0, 1]
    assert items("pushback_rounds", said(*refused)) == [2]


@pytest.mark.parametrize(
    "flipped",
    [
        "How may I help you today?",
        "I have looked up your order, one moment.",
        "Our policy does not allow that.",
        "<tool_call>cancel</tool_call>",
        "Shall I go ahead and cancel the order W41 for you now or later today",
    ],
)
def test_a_user_who_speaks_as_the_agent_flips_her_role(flipped: str) -> None:
    asks = "Shall I go ahead and cancel the order W41 for you now or later today?"
    assert items("role_flips", said("Cancel W41.", asks, flipped)) == [0, 1]
    assert items("role_flips", said("Cancel W41.", asks, "Cancel the order W41 now, yes.")) == [
        0,
        0,
    ]


@pytest.mark.parametrize("text", ['{"utterance": "yes"}', "yes\n\nbye", "yes ###STOP### or so", ""])
def test_what_is_no_message_of_a_user_is_a_format_error(text: str) -> None:
    assert items("format_errors", said("Hi.", "Hello.", text)) == [0, 1]
    assert items("format_errors", said("Hi.", "Hello.", "Yes.\nAnd a lamp.")) == [0, 0]


def test_a_claimed_action_needs_a_tool() -> None:
    claims = said("It is broken.", "Please restart it.", "I've restarted it.")
    assert items("unexecuted_claims", claims) == [1]
    last = msgspec.structs.replace(claims.lines[-1], uses=claims.goals[0].calls)
    executed = msgspec.structs.replace(claims, lines=(*claims.lines[:-1], last))
    assert items("unexecuted_claims", executed) == [0]


def test_style_is_counted() -> None:
    talk = said("Please cancel W41.", "Sure?", "yes do it please now", "Done.", "ok ###")
    assert items("words_per_turn", talk) == [3, 5, 1]
    assert value("words_p90", talk) == 5
    assert items("short_turns", talk) == [1, 0, 1]
    assert items("polite_turns", talk) == [1, 1, 0]
    assert items("complete_sentences", talk) == [1, 0, 0]
    assert value("words_to_agents", talk) == 9 / 2
    assert items("markdown_turns", said("**Cancel** W41.", "Ok.", "- one\n- two")) == [1, 1]
    again = said("cancel my old lamp", "Sorry?", "cancel my old lamp", "Hm?", "no")
    assert items("repeated_turns", again) == [0, 1]
    assert value("distinct_1", said("a b a b", "x", "a")) == 2 / 5


def test_users_who_say_the_same_are_similar() -> None:
    one, same = said("cancel my old lamp"), said("cancel my old lamp", number=1)
    other = said("where is the blue chair", number=2)
    assert value("self_similarity", one, same) == pytest.approx(1)
    assert value("self_similarity", one, other) == 0
    assert items("self_similarity", one) == []


def test_what_was_told_or_shown_need_not_be_asked_for() -> None:
    asks = (
        "Cancel W41.",
        "What is your email?",
        "ann@post.example",
        "What was your email?",
        "As said.",
    )
    assert items("needless_questions", said(*asks)) == [0, 1]
    assert items("repeated_questions", said(*asks)) == [0, 0]
    assert items("repeated_questions", said("Hi.", "Which one?", "Uh.", "Which one?", "No.")) == [
        0,
        1,
    ]


def test_over_disclosure_saves_work_at_equal_reward() -> None:
    clean = said(*GOOD, reward=1.0)
    leaky = said("Cancel W41, ann@post.example.", *GOOD[3:], reward=1.0, number=1)
    assert value("questions_at_success", clean, leaky) == 0.5
    assert value("questions_saved", clean, leaky) == -1
    assert value("questions_saved", clean) is None
    assert value("calls_saved", clean, leaky) == 0


def test_the_longest_run_that_two_texts_share() -> None:
    assert longest_run(words("a b c d x"), words("z b c d")) == 3
    assert longest_run((), words("a")) == 0
    parrot = said(
        "I want to cancel order W41 at once.", instruction="You want to cancel order W41 at once"
    )
    assert items("parroting", parrot) == [1]


def test_gold_that_she_cannot_know_is_leaked_if_she_says_it_first() -> None:
    secret = (Goal(calls=(ToolUse("do", {"order_id": "W41", "key": "K-9917"}),)),)
    assert items("gold_leak", said("Use key 9917 on W41.", facts=(ORDER,), goals=secret)) == [1]
    assert items(
        "gold_leak", said("Hi.", "Key 9917?", "Yes, 9917.", facts=(ORDER,), goals=secret)
    ) == [0]


def test_a_pin_is_kept() -> None:
    assert items("hidden_fact_leak", said("My pin is 7733.", facts=(PIN,))) == [1]
    assert items("first_turn_dump", said("Cancel W41.", facts=(PIN, EMAIL))) == [0, 1]
