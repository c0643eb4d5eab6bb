"""Calls that a policy writes into its text: what it is sent, what it makes, and law L1 with both."""

from __future__ import annotations

import random
from pathlib import Path

import anyio
import pytest
from dialogue_kit import (
    DOMAIN,
    Sampler,
    TalkingUser,
    check_tokens,
    dialogue,
    ids_of,
    renderer,
    write_notes,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.data.expert import ExpertPolicy
from muarl.domain import Domain, load_domain
from muarl.errors import SpecError
from muarl.http.chat_client import ChatClient
from muarl.messages import Message, ToolCall
from muarl.policy.chat import ChatPolicy
from muarl.record import NOT_MADE, Outcome
from muarl.render import in_convention
from muarl.testing import chat_answer, http_server
from muarl.text_calls import PythonCalls

TOKENIZER = renderer().tokenizer
OWN = """\
from muarl.text_calls import PythonCalls


class Careful(PythonCalls):
    stops_at_error = True


class Retold(PythonCalls):
    def answers(self, answers):
        return None


careful, retold = Careful(), Retold()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notes")
    write_notes(folder)
    (folder / "own.py").write_text(OWN)
    for name in ("careful", "retold"):
        calls = f"calls: {{text: {{convention: own.py:{name}}}}}\n"
        (folder / f"{name}.yaml").write_text(DOMAIN + calls)
    (folder / "text.yaml").write_text(DOMAIN + "calls: text\n")
    return folder


@pytest.fixture(scope="module")
def domain(folder: Path) -> Domain:
    return load_domain(folder / "text.yaml")


def saying(*texts: str) -> Sampler:
    coming = iter(texts)
    return Sampler(lambda _request: (ids_of(next(coming, "Anything else?")), True))


@pytest.mark.anyio
async def test_calls_in_a_text_are_made_and_answered_and_the_user_hears_none_of_them(
    domain: Domain,
) -> None:
    text = "[put(key='a', value=1), get(key='old')]"
    policy, user = saying(text, "It is noted."), TalkingUser(["Note it."])
    episode = await dialogue(domain, policy, user).run()
    assert (episode.outcome, episode.reward) == (Outcome.COMPLETED, 1.0)
    first = episode.turns[0]
    assert first.message.content == text
    assert [(c.id, c.name, c.arguments) for c in first.message.tool_calls] == [
        ("call_0_0", "put", {"key": "a", "value": 1}),
        ("call_0_1", "get", {"key": "old"}),
    ]
    assert [result.content for result in first.results] == ["ok", "1"]
    assert user.heard == ["It is noted."]
    check_tokens(episode, policy)
    sent = [TOKENIZER.decode(request.prompt_ids) for request in policy.requests]
    assert "Keep notes. Ask first." in sent[0]
    assert '"name": "put"' in sent[0]
    assert "<tools>" not in sent[0], "the template's own list of tools"
    assert text in sent[1]
    assert "ok" in sent[1].partition(text)[2]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("[put(1)]", "Error: the calls cannot be read: put: expected arguments by name"),
        ("[put(key=open('x'))]", "Error: the calls cannot be read: key: expected a literal"),
        ("[put(key='a'", "Error: the calls cannot be read: '(' was never closed"),
        ("[no_such_tool()]", "Error: unknown tool 'no_such_tool'"),
        ("[put(key=1e999)]", "Error: the calls cannot be read: put: wrong arguments: key is inf"),
    ],
)
async def test_calls_that_cannot_be_read_are_answered_with_why(
    domain: Domain, text: str, reads: str
) -> None:
    episode = await dialogue(domain, saying(text), TalkingUser(["Note it."])).run()
    (result,) = episode.turns[0].results
    assert result.as_message().content.startswith(reads)


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["put(key='a')", "I call [put(key='a')]", "[Done]", "<tool_call>"])
async def test_other_texts_are_for_the_user(domain: Domain, text: str) -> None:
    user = TalkingUser(["Note it."])
    policy = Sampler(lambda _request: (TOKENIZER.encode(text), True))
    episode = await dialogue(domain, policy, user).run()
    assert user.heard == [text]
    assert not episode.turns[0].results


@pytest.mark.anyio
async def test_an_expert_writes_its_calls_into_its_text(domain: Domain) -> None:
    class Expert:
        def act(self, history: list[Message]) -> Message:
            if history[-1].role == "tool":
                return Message("assistant", "Noted.")
            call = ToolCall("c", "put", {"key": "a", "value": 1})
            return Message("assistant", "Let me see.", (call,))

    policy = ExpertPolicy(Expert(), in_convention(renderer(), domain.convention))
    episode = await dialogue(domain, policy, TalkingUser(["Note it."])).run()
    assert episode.reward == 1.0
    assert episode.turns[0].message.content == "[put(key='a', value=1)]"


@pytest.mark.anyio
async def test_a_convention_may_stop_at_an_error(folder: Path) -> None:
    text = "[get(key='none'), put(key='a', value=1)]"
    careful, plain = (load_domain(folder / f"{name}.yaml") for name in ("careful", "text"))
    stopped = await dialogue(careful, saying(text), TalkingUser(["Note it."])).run()
    went_on = await dialogue(plain, saying(text), TalkingUser(["Note it."])).run()
    assert [r.is_error for r in stopped.turns[0].results] == [True, True]
    assert [r.instead for r in stopped.turns[0].results] == ["", NOT_MADE]
    assert (stopped.reward, went_on.reward) == (0.0, 1.0)
    assert not stopped.perturbations()


@pytest.mark.anyio
async def test_a_convention_that_tells_all_anew_forks_and_keeps_what_was_written_L1(
    folder: Path,
) -> None:
    retold = load_domain(folder / "retold.yaml")
    written = "[put( key = 'a', value=1 )]"
    policy = saying(written, "It is noted.")
    episode = await dialogue(retold, policy, TalkingUser(["Note it."])).run()
    assert (episode.reward, episode.forks, len(episode.samples)) == (1.0, 1, 2)
    check_tokens(episode, policy)
    assert written in TOKENIZER.decode(policy.requests[1].prompt_ids)


def test_a_convention_that_is_not_there_is_refused_with_its_place(tmp_path: Path) -> None:
    write_notes(tmp_path)
    path = tmp_path / "domain.yaml"
    path.write_text(DOMAIN + "calls: {text: {convention: none.py:calls}}\n")
    with pytest.raises(SpecError, match=r"domain.yaml:13:28: no such file: 'none.py'"):
        load_domain(tmp_path)
    path.write_text(DOMAIN + "calls: texts\n")
    with pytest.raises(SpecError, match="must be template or text, got 'texts'"):
        load_domain(tmp_path)


TEXTS = [
    "[put(key='a', value=1)]",
    "[put(key='a', value={'deep': [1, 2.5, None]}), get(key='old')]",
    "```\n[echo(text='</tool_call> <|im_end|>')]\n```",
    "[echo(text='')]",
    "[get(key='missing')]",
    "[no_such_tool()]",
    "[put(key=",
    "[put(1)]",
    "[leave()]",
    "hello",
    "[",
    "",
    "naïve Ω 日本語",
    "[echo(text='\\ud800')]",
]


@settings(max_examples=100, deadline=None)
@given(
    texts=st.lists(
        st.sampled_from(TEXTS) | st.text("[]()='\",:{}ab1 \n`", max_size=20), max_size=6
    ),
    seed=st.none() | st.integers(0, 2**31),
    says=st.lists(st.sampled_from(["hello", "[put(key='a')]", "<|im_end|>"]), max_size=4),
    name=st.sampled_from(["text", "careful", "retold"]),
    backend=st.sampled_from(["asyncio", "trio"]),
)
def test_a_sample_is_what_was_sent_sampled_and_answered_L1(
    folder: Path, texts: list[str], seed: int | None, says: list[str], name: str, backend: str
) -> None:
    rng = random.Random(seed)
    garbage = [[rng.randrange(TOKENIZER.vocab_size) for _ in range(12)]] if seed else []
    coming = iter([*(TOKENIZER.encode(text) for text in texts), *garbage])
    policy = Sampler(lambda _request: (next(coming, TOKENIZER.encode("Anything else?")), True))
    domain = load_domain(folder / f"{name}.yaml")
    episode = anyio.run(dialogue(domain, policy, TalkingUser(says)).run, backend=backend)
    assert not episode.outcome.is_fault, episode.error
    check_tokens(episode, policy)
    for turn in episode.turns:
        assert len(turn.results) == len(turn.message.tool_calls)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=6),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text("ab'", max_size=2), v, max_size=3),
    max_leaves=6,
)
calls = st.builds(
    ToolCall,
    id=st.just(""),
    name=st.sampled_from(["put", "get_order", "größe"]),
    arguments=st.dictionaries(st.sampled_from(["a", "b_1", "ö"]), values, max_size=3),
)


@settings(max_examples=200, deadline=None)
@given(made=st.lists(calls, min_size=1, max_size=3))
def test_what_is_written_is_read_back(made: list[ToolCall]) -> None:
    convention = PythonCalls()
    assert convention.read(convention.write(made)) == made


@settings(max_examples=200, deadline=None)
@given(text=st.text("[]()='\",:{}*.f1+- \n`", max_size=60) | st.text(max_size=30))
def test_no_text_breaks_the_reader(text: str) -> None:
    for call in PythonCalls().read(f"[f({text}"):
        assert call.error is not None or call.name


def test_a_text_without_end_is_not_looked_at_for_long() -> None:
    for hostile in (
        "[f(a=" + "-" * 100_000 + "1)]",
        "[" * 100_000 + "(",
        "[f(" + "9" * 10_000 + ")]",
    ):
        (call,) = PythonCalls().read(hostile)
        assert call.error is not None


@pytest.mark.anyio
async def test_a_model_behind_an_endpoint_is_told_in_words_and_answered_by_the_user(
    domain: Domain,
) -> None:
    """No endpoint takes answers to calls that nobody made in its own form."""
    asked = []

    def say(messages: list[dict[str, str]]) -> str:
        asked.append(messages)
        return "[get(key='old'), put(key='a', value=1)]" if len(asked) == 1 else "Noted."

    async with http_server(chat_answer(say)) as server:
        client = ChatClient(f"{server.url}/v1", "tiny")
        policy = ChatPolicy(
            client, renderer(), temperature=0, max_tokens=400, convention=domain.convention
        )
        episode = await dialogue(domain, policy, TalkingUser(["Note it."])).run()
    assert (episode.outcome, episode.reward) == (Outcome.COMPLETED, 1.0)
    assert [message["role"] for message in asked[1]] == ["system", "user", "assistant", "user"]
    assert asked[1][2]["content"] == "[get(key='old'), put(key='a', value=1)]"
    assert asked[1][3]["content"] == "1\nok"
    assert "tool_calls" not in asked[1][2]
