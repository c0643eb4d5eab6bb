"""Knobs, guards and candidates of an LLM user, with a model that answers from a script."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from test_guards import CONTRACT, PERSONA, TASK
from test_scripted_user import script

from muarl.errors import UserError
from muarl.http.chat_client import ChatClient, ChatMessage, ChatReply
from muarl.record import UserReply
from muarl.spec import KnobsSpec
from muarl.spec.user import LlmUserSpec
from muarl.user.candidates import Candidate, candidates_in, draw
from muarl.user.llm import LlmUser
from muarl.user.steering import NEED_SCRIPT

SPEC = LlmUserSpec(base_url="http://127.0.0.1:1/v1", model="tiny", max_tokens=50)
ALL = "Send W41 to Rome and cancel W42."


class Model(ChatClient):
    """Answers from a script, the last answer again and again; notes what it was asked."""

    def __init__(self, answers: Sequence[str]) -> None:
        super().__init__(SPEC.base_url, SPEC.model)
        self._answers = list(answers)
        self.asked: list[list[ChatMessage]] = []
        self.max_tokens = 0

    async def complete(
        self, messages: Sequence[ChatMessage], *, seed: int, temperature: float, max_tokens: int
    ) -> ChatReply:
        self.asked.append(list(messages))
        self.max_tokens = max_tokens
        return ChatReply(
            self._answers.pop(0) if len(self._answers) > 1 else self._answers[0], False
        )


def user(
    *answers: str, spec: dict[str, Any] | None = None, seed: int = 1, **knobs: float
) -> tuple[LlmUser, Model]:
    model = Model(answers)
    her = LlmUser(
        SPEC.model_copy(update=spec or {}),
        persona=PERSONA,
        goal=TASK.goal,
        seed=seed,
        client=model,
        contract=CONTRACT,
        script=script(),
        knobs=KnobsSpec.model_validate(knobs),
    )
    return her, model


def talk(her: LlmUser, *heard: str) -> list[UserReply]:
    async def run() -> list[UserReply]:
        return [await her.open(), *[await her.reply(text) for text in heard]]

    return anyio.run(run)


# --- guards ---------------------------------------------------------------------------------------


def test_a_breach_is_sampled_again_and_noted() -> None:
    her, model = user(ALL, "It is W99.", "How can I help you?", "It is W41.")
    reply = talk(her, "Which order?")[1]
    assert (reply.text, reply.breaches) == ("It is W41.", ("invented_fact", "role_flip"))
    assert model.asked[1] == model.asked[3], "what was thrown away leaves no trace"


def test_a_breach_that_stays_is_a_fault_of_its_kind() -> None:
    her, _ = user(ALL, "It is W99.", spec={"tries": 2})
    with pytest.raises(UserError, match="in 2 tries: the last names 'W99'") as error:
        talk(her, "Which order?")
    assert error.value.breach == "invented_fact"


def test_a_run_may_leave_guards_out() -> None:
    her, _ = user(ALL, "It is W99.", spec={"guards": []})
    assert talk(her, "Which order?")[1].text == "It is W99."


# --- steering -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("knob", "heard", "act", "says"),
    [
        ("digress", "Hello.", "digress", "nothing to do with"),
        ("partial", "Which order?", "partly:order", "only a part"),
        ("unsure", "Which order?", "unknown", "Say that you don't know what"),
        ("refuse", "Which order?", "refuse", "Decline"),
        ("push_back", "We cannot.", "push_back", "Insist"),
        ("challenge_done", "Done.", "challenge", "never asked for a yes"),
        ("unavailable", "Done.", "unavailable", "does not do"),
        ("accept_false", "Cancel W7, ok?", "confirm", "Say yes"),
        ("change_request", "Send W41 to rome, ok?", "change", "the other thing first"),
    ],
)
def test_she_is_told_what_to_do_in_one_message(knob: str, heard: str, act: str, says: str) -> None:
    her, model = user(ALL, "Hm.", **{knob: 1.0})
    reply = talk(her, heard, "And so on.")[1]
    assert (reply.act, reply.knobs, reply.chances) == (act, (knob,), (knob,))
    assert says in model.asked[1][-1].content
    assert all(says not in message.content for message in model.asked[2]), "and only in that one"


@pytest.mark.parametrize("knob", ["partial", "unsure", "refuse", "digress"])
def test_what_she_is_to_keep_is_looked_for(knob: str) -> None:
    her, _ = user(ALL, "It is W41.", "Well.", **{knob: 1.0})
    reply = talk(her, "Which order?")[1]
    assert (reply.text, reply.breaches) == ("Well.", ("steering",))
    her, _ = user(ALL, "It is W41.", **{knob: 1.0})
    with pytest.raises(UserError) as error:
        talk(her, "Which order?")
    assert error.value.breach == "steering"


def test_a_directed_message_does_not_end_the_dialogue() -> None:
    her, _ = user(ALL, "No. ###STOP###", "No!", push_back=1.0)
    reply = talk(her, "We cannot.")[1]
    assert (reply.text, reply.stop, reply.breaches) == ("No!", False, ("steering",))


def test_asked_again_she_may_tell() -> None:
    her, _ = user(ALL, "No idea.", "It is W41.", unsure=1.0)
    _, first, second = talk(her, "Which order?", "Which order?")
    assert (first.act, second.act, second.text) == ("unknown", "", "It is W41.")


def test_silence_leaving_and_typos_are_done_for_her() -> None:
    her, model = user(ALL, "Yes, certainly.", silence=1.0)
    assert [r.text for r in talk(her, "Well?", "Well?")] == [ALL, "...", "Yes, certainly."]
    assert [m.content for m in model.asked[1]][-4:] == [ALL, "Well?", "...", "Well?"]
    her, model = user(ALL, abandon=1.0, abandon_after=0)
    (_, left) = talk(her, "Well?")
    assert (left.stop, left.act, left.knobs) == (True, "abandon", ("abandon",))
    assert len(model.asked) == 1
    her, _ = user(ALL, "certainly", typos=1.0)
    reply = talk(her, "Well?")[1]
    assert reply.text != "certainly"
    assert sorted(reply.text) == sorted("certainly")


def test_what_is_withheld_stands_in_her_role_and_is_guarded() -> None:
    her, model = user(ALL, "I have an order.", withhold=1.0)
    (opening,) = talk(her)
    assert (opening.text, opening.breaches) == ("I have an order.", ("premature_disclosure",))
    assert Counter(opening.knobs) == Counter(opening.chances) == {"withhold": 4}
    assert "Keep these to yourself until you are asked for them: W41" in model.asked[0][0].content


def test_knobs_at_0_tell_her_nothing_and_count_their_chances() -> None:
    names = {n for n in KnobsSpec.model_fields if n != "abandon_after"}
    her, model = user(ALL, "Hm.", **dict.fromkeys(names, 0.0))
    plain, plainly = user(ALL, "Hm.")
    heard = ["Which order?", "Cancel W7, ok?", "Send W41 to rome, ok?", "We cannot.", "Done."]
    replies = talk(her, *heard)
    assert [r.text for r in replies] == [r.text for r in talk(plain, *heard)]
    assert model.asked == plainly.asked
    assert not any(r.knobs for r in replies)
    seen = {name for r in replies for name in r.chances}
    assert seen >= NEED_SCRIPT - {"challenge_done"} | {"silence", "digress", "withhold", "typos"}


def test_rates_of_a_steered_user_are_recovered() -> None:
    acted: Counter[str] = Counter()
    chances: Counter[str] = Counter()
    for seed in range(200):
        her, _ = user(ALL, "Hm.", seed=seed, unsure=0.3, refuse=0.3, digress=0.3)
        for reply in talk(her, "Which order?", "Which city?"):
            acted.update(reply.knobs)
            chances.update(reply.chances)
    # 260 chances and more, four deviations, fixed seeds.
    assert all(abs(acted[n] / chances[n] - 0.3) < 0.12 for n in ("unsure", "refuse", "digress"))


# --- candidates -----------------------------------------------------------------------------------


def answer(**weights: float) -> str:
    messages = [{"text": text.replace("_", " "), "probability": w} for text, w in weights.items()]
    return json.dumps({"messages": messages})


def test_one_of_several_candidates_is_drawn_and_it_alone_is_remembered() -> None:
    several = {"candidates": 3}
    drawn = Counter()
    for seed in range(60):
        her, model = user(answer(yes=0.6, sure=0.3, fine=0.1), spec=several, seed=seed)
        opening, second = talk(her, "Well?")
        drawn[opening.text] += 1
        assert model.asked[1][-2].content == opening.text
        assert model.max_tokens == 150
        assert "3 different messages" in model.asked[0][0].content
        assert (
            talk(user(answer(yes=0.6, sure=0.3, fine=0.1), spec=several, seed=seed)[0])[0]
            == opening
        ), "the draw is seeded (L5)"
        assert second.act == ""
    assert drawn["yes"] > drawn["sure"] > drawn["fine"] > 0


def test_verbalized_sampling_undoes_the_collapse_of_a_model_that_always_says_the_same() -> None:
    def repeat_share(spec: dict[str, Any], said: str) -> float:
        first = Counter(talk(user(said, spec=spec, seed=seed)[0])[0].text for seed in range(100))
        return first.most_common(1)[0][1] / 100

    assert 1 - repeat_share({}, "yes") <= 0.05
    several = {
        "messages": [
            {"text": t, "probability": p} for t, p in (("a", 0.4), ("b", 0.35), ("c", 0.25))
        ]
    }
    assert 1 - repeat_share({"candidates": 3}, json.dumps(several)) >= 0.4  # 0.6 expected


def test_the_draw_may_be_uniform() -> None:
    found = [Candidate("a", 0.99), Candidate("b", 0.01)]

    rng = random.Random(0)
    drawn = Counter(draw(found, "uniform", rng) for _ in range(200))
    assert 70 < drawn["b"] < 130  # four deviations
    assert Counter(draw(found, "probability", rng) for _ in range(200))["b"] < 20
    never = [Candidate("a", 0.0), Candidate("b", 0.0)]
    assert Counter(draw(never, "probability", rng) for _ in range(200))["b"] > 70


def test_candidates_that_break_her_contract_are_left_out() -> None:
    text = json.dumps({"messages": [{"text": "It is W99."}, {"text": "It is W41."}]})
    her, model = user(text, spec={"candidates": 2})
    (opening,) = talk(her)
    assert (opening.text, opening.breaches) == ("It is W41.", ("invented_fact",))
    assert len(model.asked) == 1


def test_an_answer_with_one_plain_message_is_taken_and_a_broken_form_is_not() -> None:
    her, _ = user("It is W41.", spec={"candidates": 2})
    assert talk(her)[0].text == "It is W41."
    her, _ = user(
        '{"messages": [{"text": "It is', '```json\n{"a": 1}\n```', ALL, spec={"candidates": 2}
    )
    (opening,) = talk(her)
    assert (opening.text, opening.breaches) == (ALL, ("format", "format"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('```json\n{"messages": [{"text": "a", "probability": 0.2}]}\n```', [("a", 0.2)]),
        ('{"messages": [{"text": "a", "probability": "high"}, {"text": "b"}]}', [("a", 1), ("b", 1)]),
        ('{"messages": [{"text": "a", "probability": -1}, {"text": "b", "probability": 7}]}', [("a", 7), ("b", 7)]),
        ('{"messages": [{"text": "a", "probability": 70}, {"text": "b", "probability": 10}]}', [("a", 70), ("b", 10)]),
        ('{"messages": [{"text": "a", "probability": "70%"}, {"text": "b", "probability": "nan"}]}', [("a", 70), ("b", 70)]),
        ('{"messages": [{"text": "a", "probability": 0}, {"text": "b", "probability": 0.5}]}', [("a", 0), ("b", 0.5)]),
        ('{"messages": [{"text": "a", "probability": 1%s}]}' % ("0" * 400), [("a", 1)]),
        ('{"messages": [{"text": "a", "probability": true}]}', [("a", 1)]),
        (json.dumps({"messages": [{"text": str(i)} for i in range(9)]}), [(str(i), 1) for i in range(4)]),
        ('{"messages": "a"}', []),
        ("[" * 100_000, []),
        ("nothing", []),
        ("", []),
    ],
)  # fmt: skip
def test_candidates_are_read_from_whatever_a_model_writes(
    text: str, found: list[tuple[str, float]]
) -> None:
    assert candidates_in(text, 4) == [Candidate(*each) for each in found]
