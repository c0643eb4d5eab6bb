"""Models that write calls into their text: what they are told, how it is read, what that earns."""

import json
import shutil
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompted_kit import ANY_TEXT, Writer, calls, evaluated

from muarl.compat.acebench.environment import ANY_ERROR, NO_QUESTIONS
from muarl.compat.acebench.importer import FINISHED, write_domains
from muarl.compat.acebench.prompting import AceCalls, Prompt
from muarl.domain import load_domain
from muarl.messages import Message, ToolCall, ToolSpec
from muarl.record import NOT_MADE, Outcome
from muarl.spec.user import UserSpec
from muarl.testing import chat_answer, http_server, play_agents

AGENT = """\
raise SystemExit("executed")
MULTI_TURN_AGENT_PROMPT_SYSTEM_EN = "Call so: [f(a='b')]\\n"
MULTI_TURN_AGENT_PROMPT_USER_EN = "APIs: {functions} History: {history} {history.__class__}"
"""
RULES = 'BASE_PROMPT_EN = "Mind the phone."\n'
WORDS = Prompt("Do.", "{functions}\n{history}", official=True)
TOOL = ToolSpec("f", "", {})
TELLER = UserSpec.model_validate({"teller": {}})


@pytest.fixture(scope="session")
def written(published, tmp_path_factory):
    copy = tmp_path_factory.mktemp("checkout")
    shutil.copytree(published, copy / "data_all", copy_function=shutil.copyfile)
    for kind in ("multi_turn", "multi_step"):
        (copy / "model_inference" / kind).mkdir(parents=True)
        (copy / "model_inference" / kind / "APIModel_agent.py").write_text(AGENT)
    (copy / "model_inference" / "prompt_en.py").write_text(RULES)
    return {p.name: p for p in write_domains(copy, tmp_path_factory.mktemp("prompted"))}


@pytest.fixture(scope="session")
def domain(written):
    return cache(lambda name: load_domain(written[name] / "prompted.yaml"))


async def play(domain, task, *texts, user=None):
    (episode,) = await play_agents(
        domain, [task], lambda *_: Writer(*texts, last=FINISHED), user=user
    )
    return episode


def test_the_agents_words_are_read_from_the_copy_and_nothing_is_executed(written, domain):
    made = domain("en-multi-turn-base-message-food-15")
    history = [
        Message("user", "Order {functions}."),
        Message("assistant", "[f( a=1)]", (ToolCall("c", "f", {"a": 1}),)),
        Message("tool", '[{"status": True}]', tool_call_id="c", name="f"),
        Message("assistant", "Which one?"),
        Message("user", "That."),
    ]
    system, user = made.convention.told(history, [TOOL])
    assert system == Message("system", "Call so: [f(a='b')]\nMind the phone.")
    assert user.role == "user"
    shown, _, happened = user.content.partition(" History: ")
    assert shown.startswith("APIs: [{'name': 'f'")
    assert happened == (
        'user:Order {functions}.\nagent:[f( a=1)]\nexecution:[{"status": True}]\n'
        "agent:Which one?\nuser:That.\n {history.__class__}"
    )
    assert not made.spec.rules
    assert made.spec.benchmark.differs == []
    chinese = domain(next(name for name in written if name.startswith("zh-multi-turn")))
    assert "worded by muarl" in chinese.spec.benchmark.differs[0]


def test_without_a_user_the_agent_is_not_shown_what_it_said_itself():
    history = [
        Message("user", "Do it."),
        Message("assistant", "[f()]", (ToolCall("c", "f"),)),
        Message("tool", "[1]"),
        Message("tool", "['a', \"b\"]"),
        Message("assistant", "Really?"),
        Message("user", NO_QUESTIONS),
    ]
    told = AceCalls("multi_step", [], WORDS).told(history, [])[1].content
    assert told == (
        f"[]\nuser:Do it.\nexecution result:[1, 'a', \"b\"]\nexecution result:{NO_QUESTIONS}\n"
    )


@pytest.mark.parametrize(
    ("text", "with_a_user", "without"),
    [
        ("[f(a='x'), g()]", ["f", "g"], ["f", "g"]),
        ("f(a='x')", [], ["f"]),
        ("Sure: [f(a='x')]", [], []),
        ("[f(a='x')", [], ["f"]),
        (" [f(a=[1])]", ["f"], ["f"]),
        ("[Done]", [""], [""]),
        ("Which one?", [], []),
        ("[f(a={'k': 1})]", [], []),
        ("[f(a=1e999)]", ["f"], ["f"]),
    ],
)
def test_a_text_goes_where_upstream_sends_it(text, with_a_user, without):
    for kind, names in (("multi_turn", with_a_user), ("multi_step", without)):
        assert [call.name for call in AceCalls(kind, [], WORDS).read(text)] == names


kinds = st.sampled_from(["multi_turn", "multi_step"])


@settings(max_examples=200, deadline=None)
@given(made=calls("f", "send_message", dicts=True), kind=kinds)
def test_what_is_written_is_read_back(made, kind):
    convention = AceCalls(kind, [], WORDS)
    text = convention.write(made)
    if "\n" not in text:  # upstream looks for both brackets in one line
        assert convention.read(text) == made


@settings(max_examples=300, deadline=None)
@given(text=ANY_TEXT, kind=kinds)
def test_no_text_breaks_the_reader_and_what_it_makes_is_json(text, kind):
    for call in AceCalls(kind, [], WORDS).read(text):
        json.dumps(call.arguments, allow_nan=False)


@pytest.mark.anyio
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", ["multi-turn", "multi-step"])
async def test_an_expert_who_writes_its_calls_solves_every_entry(domain, written, language, kind):
    rewards, forks = [], 0
    for name in written:
        if name.startswith(f"{language}-{kind}"):
            made = domain(name)
            episodes = await play_agents(
                made,
                made.tasks("test"),
                lambda task, rng, made=made: made.expert(task, {}, rng),
                user=TELLER if kind == "multi-turn" else None,
            )
            rewards += [episode.reward for episode in episodes]
            rewards += [metric.score for e in episodes for metric in e.metrics[:1]]
            forks += sum(episode.forks for episode in episodes)
    assert rewards == [1.0] * (60 if kind == "multi-turn" else 40)
    assert forks > 100, "each message answers a prompt of its own"


@pytest.mark.anyio
async def test_with_a_user_calls_after_one_that_failed_are_not_made(domain):
    made = domain("en-multi-turn-base-message-food-15")
    task = made.tasks("test")[0]
    text = "[turn_on_wifi(), check_balance(nobody=1), login_device()]"
    episode = await play(made, task, text, "[Done]", "So?", user=TELLER)
    first, second = episode.turns[:2]
    assert [result.instead for result in first.results] == ["", "", NOT_MADE]
    assert [change.path for change in first.changes if "logged_in" in change.path] == []
    assert any("wifi" in change.path for change in first.changes)
    assert first.results[1].content == str(ANY_ERROR)
    assert [result.is_error for result in second.results] == [True]
    assert episode.metrics[0].score == 0.0


@pytest.mark.anyio
async def test_without_a_user_an_error_is_the_answer_to_its_call_alone(domain):
    made = domain("en-multi-step-base-food-15")
    task = made.tasks("test")[0]
    text = "[turn_on_wifi(), check_balance(nobody=1), login_device()]"
    episode = await play(made, task, text, "Which one?", FINISHED)
    assert [result.is_error for result in episode.turns[0].results] == [False, True, False]
    assert episode.turns[1].reply.text == NO_QUESTIONS
    assert episode.outcome is Outcome.COMPLETED


@pytest.mark.anyio
@pytest.mark.parametrize("file", ["domain.yaml", "prompted.yaml"])
async def test_an_agent_who_says_that_it_is_done_ends_the_dialogue(written, file):
    made = load_domain(written["en-multi-turn-base-message-food-15"] / file)
    asked = []

    def say(messages):
        asked.append(messages[-1]["content"])
        return "Please do it."

    async with http_server(chat_answer(say)) as server:
        llm = {"base_url": f"{server.url}/v1", "model": "tiny"}
        user = UserSpec.model_validate({"simulator": {"llm": llm}})
        episode = await play(made, made.tasks("test")[0], "What?", f"Done. {FINISHED}", user=user)
    assert episode.outcome is Outcome.COMPLETED
    assert len(asked) == 2
    assert len(episode.turns) == 2


RUN = """\
domain: FOLDER/prompted.yaml
rollout: {max_turns: 40, max_tokens: 1024, context_tokens: 40960}
eval: {split: test}
"""


def test_eval_plays_it_with_strict_metrics_and_says_whose_words_they_are(written, tmp_path, capsys):
    folder = next(at for name, at in written.items() if name.startswith("zh-multi-step"))
    run = RUN.replace("FOLDER", str(folder))
    found, beside = evaluated(tmp_path, run, "own: {scripted: {}}", 2, capsys)
    assert found["gold"]["metrics"]["python tools.py:process"]["value"] == 1.0
    assert "python tools.py:strict" in found["gold"]["metrics"]
    assert "-prompted: What a prompted model is told is worded by muarl, in English" in beside
