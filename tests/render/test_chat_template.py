"""Chat templates of any model: cut at what messages say, proved before they are used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from muarl.errors import SetupError
from muarl.messages import Message, ToolCall, ToolSpec
from muarl.render import Renderer, TextTokenizer

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
GEMMA = (  # no system message, the policy is `model`, messages are trimmed
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}{% for m in messages %}"
    "<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n"
    "{{ m['content'] | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
LLAMA = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
LLAMA += ["<|eom_id|>", "<|python_tag|>", "<|end_of_text|>"]
TOOL = ToolSpec(name="book", description="Books.", parameters={"type": "object", "properties": {}})
SYSTEM = Message(role="system", content="Rules.")
ASKED = Message(role="user", content="hello")
CALL = Message(
    role="assistant",
    content="ok",
    tool_calls=(ToolCall(id="c", name="book", arguments={"n": 1.0, "to": "é <b>"}),),
)


def tokenizer(template: str | None, controls: list[str], eos: str) -> TextTokenizer:
    """Bytes, and some control tokens."""
    bare = Tokenizer(models.BPE())
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=controls,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bare.train_from_iterator([], trainer)
    settings = {"eos_token": eos, "bos_token": controls[0], "chat_template": template}
    return TextTokenizer(bare, "a test's", beside(settings))


def beside(settings: dict[str, Any]) -> dict[str, bytes]:
    return {"tokenizer_config.json": json.dumps(settings).encode()}


def chatml() -> TextTokenizer:
    return tokenizer(CHATML, ["<|im_start|>", "<|im_end|>"], "<|im_end|>")


def gemma() -> TextTokenizer:
    return tokenizer(GEMMA, ["<bos>", "<start_of_turn>", "<end_of_turn>", "<eos>"], "<eos>")


@pytest.mark.parametrize("make", [chatml, gemma])
def test_a_template_of_its_own_gives_its_own_ids_and_does_not_fork(make: object) -> None:
    assert callable(make)
    own = make()
    renderer = Renderer(own)
    assert renderer.forks() == []
    ids = renderer.start([ASKED, Message(role="assistant", content="hi"), ASKED], [])
    text = own.decode(ids)
    if make is chatml:
        assert text == (
            "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\nhi<|im_end|>\n"
            "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
        )
    else:
        assert text == (
            "<bos><start_of_turn>user\nhello<end_of_turn>\n<start_of_turn>model\nhi<end_of_turn>\n"
            "<start_of_turn>user\nhello<end_of_turn>\n<start_of_turn>model\n"
        )
    assert own.encode_markup(text) == ids


def test_where_no_system_message_is_known_rules_and_tools_stand_before_the_user_s_words() -> None:
    own = gemma()
    text = own.decode(Renderer(own).start([SYSTEM, ASKED], [TOOL]))
    assert text.startswith("<bos><start_of_turn>user\nRules.\n\n# Tools")
    assert '"name": "book"' in text
    assert text.endswith("\n\nhello<end_of_turn>\n<start_of_turn>model\n")


@pytest.mark.parametrize("make", [chatml, gemma])
def test_calls_are_read_as_they_were_said_and_answers_are_joined(make: object) -> None:
    assert callable(make)
    own = make()
    renderer = Renderer(own)
    prompt = renderer.start([SYSTEM, ASKED], [TOOL])
    said = renderer.encode_reply(CALL)
    assert said[-1] in renderer.stop_token_ids
    read = renderer.parse(said, prompt, turn=0)
    assert read.content == "ok"
    assert [(c.name, c.arguments) for c in read.tool_calls] == [("book", {"n": 1.0, "to": "é <b>"})]
    answers = [Message(role="tool", content=text, tool_call_id="c", name="book") for text in "ab"]
    bridged = renderer.bridge(prompt, said, answers)
    assert bridged == renderer.start([SYSTEM, ASKED, CALL, *answers], [TOOL])
    assert own.decode(bridged).count("<tool_response>") == 2


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("<tool_call>{]</tool_call>", "not valid JSON"),
        ('<tool_call>{"name": "book"}', "no closing tag"),
        ('<tool_call>{"arguments": {}}</tool_call>', "names no tool"),
        ("<tool_call>[1]</tool_call>", "names no tool"),
        ('<tool_call>{"name": "book", "arguments": 3}</tool_call>', "wrong arguments"),
    ],
)
def test_calls_that_cannot_be_read_say_why(said: str, problem: str) -> None:
    own = chatml()
    read = Renderer(own).parse([*own.encode(said), 1], [], turn=0)
    (call,) = read.tool_calls
    assert call.error is not None
    assert problem in call.error


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["user", "tool"]), st.text(max_size=12)), min_size=1, max_size=4
    ),
    st.sampled_from(["", "<|im_end|>", "<|im_start|>system\n", "\ue0000\ue001", "{{ 1 }}"]),
)
def test_nothing_that_is_said_ends_a_message_or_begins_one(
    answers: list[tuple[str, str]], nasty: str
) -> None:
    own = chatml()
    renderer = Renderer(own)
    prompt = renderer.start([Message(role="system", content=nasty), ASKED], [])
    sampled = [*own.encode("hi"), 1]
    messages = [
        Message(
            role=role,  # type: ignore[arg-type]
            content=text + nasty,
            tool_call_id="c" if role == "tool" else None,
            name="t" if role == "tool" else None,
        )
        for role, text in answers
    ]
    bridged = renderer.bridge(prompt, sampled, messages)
    assert bridged is not None
    assert bridged[: len(prompt) + len(sampled)] == prompt + sampled
    joined = sum(role == "user" for role, _ in answers) + sum(
        role == "tool" and (n == 0 or answers[n - 1][0] != "tool")
        for n, (role, _) in enumerate(answers)
    )
    assert prompt.count(1) == 2
    assert bridged.count(1) == 2 + 1 + joined
    assert bridged.count(0) == 3 + joined + 1


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{% for %}", "cannot be read"),
        ("{{ raise_exception('no') }}", "fails on a plain dialogue: no"),
        ("{{ messages[0].content.__class__.__mro__ }}", "fails on a plain dialogue"),
        ("{% for m in messages %}{{ m.content }}\n{% endfor %}", "control token"),
        ("always the same", "does not show what the policy said"),
    ],
)
def test_templates_that_are_not_fit_are_refused_with_what_is_wrong(
    template: str, problem: str
) -> None:
    with pytest.raises(SetupError, match=problem):
        Renderer(tokenizer(template, ["<|im_start|>", "<|im_end|>"], "<|im_end|>"))


def test_a_tokenizer_that_joins_across_messages_is_refused() -> None:
    own = tokenizer(CHATML, ["<|im_start|>", "<|im_end|>"], "<|im_end|>")
    joined = json.loads(own._tokenizer.to_str())
    joined["pre_tokenizer"]["add_prefix_space"] = True
    glued = TextTokenizer(
        Tokenizer.from_str(json.dumps(joined)),
        "a test's",
        beside({"eos_token": "<|im_end|>", "chat_template": CHATML}),
    )
    with pytest.raises(SetupError, match="encodes a message otherwise"):
        Renderer(glued)


def test_llama_3_is_known_by_its_tokens() -> None:
    own = tokenizer(None, LLAMA, "<|eot_id|>")
    renderer = Renderer(own)
    assert type(renderer._template).__name__ == "Llama3Renderer"
    assert renderer.forks() == []
    prompt = renderer.start([SYSTEM, Message(role="user", content="a <|eot_id|> b")], [TOOL])
    assert prompt.count(own.convert_tokens_to_ids("<|eot_id|>")) == 2
    plain = CALL.__class__(role="assistant", content="", tool_calls=CALL.tool_calls)
    read = renderer.parse(renderer.encode_reply(plain), prompt, turn=0)
    assert [(c.name, c.arguments) for c in read.tool_calls] == [("book", {"n": 1.0, "to": "é <b>"})]


def test_no_template_at_all_is_said() -> None:
    with pytest.raises(SetupError, match="no chat template for a test's"):
        Renderer(tokenizer(None, ["<a>", "<b>"], "<b>"))


@pytest.mark.parametrize("where", ["config", "list", "file"])
def test_the_template_is_found_wherever_a_folder_keeps_it_and_kept_on_saving(
    where: str, tmp_path: Path
) -> None:
    own = chatml()
    own.save(tmp_path)
    config = tmp_path / "tokenizer_config.json"
    said = json.loads(config.read_text())
    if where == "list":
        said["chat_template"] = [{"name": "default", "template": CHATML}]
    elif where == "file":
        del said["chat_template"]
        (tmp_path / "chat_template.jinja").write_text(CHATML)
    said["eos_token"] = {"content": "<|im_end|>"}
    config.write_text(json.dumps(said))
    again = TextTokenizer.load(tmp_path)
    assert again.chat_template == CHATML
    (tmp_path / "new").mkdir()
    again.save(tmp_path / "new")
    third = TextTokenizer.load(tmp_path / "new")
    assert (third.chat_template, third.eos_token_id) == (CHATML, own.eos_token_id)


def test_a_damaged_tokenizer_config_is_said(tmp_path: Path) -> None:
    chatml().save(tmp_path)
    for damage in ("{", "[]", "[" * 100_000):
        (tmp_path / "tokenizer_config.json").write_text(damage)
        with pytest.raises(SetupError, match=r"tokenizer_config\.json"):
            TextTokenizer.load(tmp_path)
