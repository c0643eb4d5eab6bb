"""Models that are only prompted: what they are told, how their text is read, what that earns."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompted_kit import ANY_TEXT, Writer, calls, evaluated

from muarl.compat.bfcl.importer import write_domains
from muarl.compat.bfcl.official import NOTHING, trusted
from muarl.compat.bfcl.prompting import BfclCalls, Prompt, read_prompt
from muarl.compat.bfcl.text_calls import decoded, execution_text
from muarl.compat.python_calls import NotCalls
from muarl.compat.upstream import Upstream
from muarl.domain import load_domain
from muarl.errors import SetupError
from muarl.messages import Message, ToolCall, ToolSpec
from muarl.testing import play_agents

PROMPTS = {
    "v3": """\
raise SystemExit("executed")
WORDS = "Do it."
DEFAULT_SYSTEM_PROMPT = WORDS + "\\nUse {functions}, {0.__class__}"
""",
    "v4": """\
raise SystemExit("executed")
OUTPUT_FORMAT_MAPPING = {"python": "[f()]"}
PARAM_TYPE_MAPPING = {"python": "all"}
PROMPT_STYLE_TEMPLATES = {"terse": {
    "persona": "Be.", "tool_call_no_tag": "As {output_format}, {param_types}.",
    "available_tools": "In {format}: {functions} {persona!r:>9}",
}}
_PLAIN = "{persona} {tool_call_format} {available_tools}"
PROMPT_TEMPLATE_MAPPING = {"plain": _PLAIN}
DEFAULT_SYSTEM_PROMPT_FORMAT = "ret_fmt=python&func_doc_fmt=json&prompt_fmt=plain&style=terse"
""",
}
HINT = """\
def _get_language_specific_hint(language):
    if language == "java":
        return " Java."
    return " Python."
"""


@pytest.fixture(scope="session")
def prompted(fixtures, tmp_path_factory):
    made = write_domains(fixtures / "data" / "bfcl" / "v4", tmp_path_factory.mktemp("prompted"))
    return {folder.name: folder for folder, _ in made}


async def written(domain, task, *texts):
    (episode,) = await play_agents(domain, [task], lambda *_: Writer(*texts, last="Done."))
    return episode


@pytest.mark.parametrize(
    ("text", "version", "made"),
    [
        ("[cd(folder='a'), ls()]", "v4", ["cd(folder='a')", "ls()"]),
        ("cd(folder='a'), ls()", "v4", ["cd(folder='a')", "ls()"]),
        ("```\n[ls(a=True)]\n```", "v4", ["ls(a=True)"]),
        ("```python\n[ls()]\n```", "v4", None),
        ("'[ls()]'", "v4", None),
        ("[[ls()]]", "v4", None),
        ("[[ls()]]", "v3", ["ls()"]),
        ("[]", "v4", []),
        ("[]", "v3", None),
        ("add(1, 2)", "v4", ["add()"]),
        ("add(a=double(x=1), b=double(1))", "v4", ["add(a=double(x=1), b='double(1)')"]),
        ("f(a={'k': 1}, b={'g': {'x': 2}})", "v4", ["f(a={'k': 1}, b=g(x=2))"]),
        ("f(a={})", "v4", None),
        ("f(a=+2, b=-1.5, c=east, d=1 + 2)", "v4", ["f(a=-2, b=-1.5, c='east', d=3)"]),
        ("f(a=9**9**9)", "v4", None),
        ("f(a=__import__('os'))", "v4", ["f(a=\"__import__('os')\")"]),
        ("__import__('os').system(command='rm')", "v4", ["system(command='rm')"]),
        ("Which file do you mean?", "v4", None),
    ],
)
def test_a_text_is_decoded_as_upstream_does(text, version, made):
    try:
        assert [execution_text(*call) for call in decoded(text, version)] == made
    except NotCalls:
        assert made is None


@settings(max_examples=200, deadline=None)
@given(made=calls("ls", "cd", "place_order", dicts=False), version=st.sampled_from(["v3", "v4"]))
def test_what_is_written_is_read_back_and_evaluates_to_itself(made, version):
    convention = BfclCalls(version, {}, Prompt())
    assert convention.read(convention.write(made)) == made
    for call in made:
        ((name, arguments),) = decoded(execution_text(call.name, call.arguments), version)
        assert (name, arguments) == (call.name, call.arguments)


@settings(max_examples=300, deadline=None)
@given(
    text=ANY_TEXT,
    version=st.sampled_from(["v3", "v4"]),
)
def test_no_text_breaks_the_reader_and_what_it_makes_is_json(text, version):
    for call in BfclCalls(version, {}, Prompt()).read(text):
        json.dumps(call.arguments, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "is_safe"),
    [
        ("ls(a=[1, -2.5, {'k': None}])", True),
        ("cd(folder=ls(a=1))", True),
        ("cd(folder=__import__(name='os'))", False),
        ("cd(folder=ls.__class__)", False),
        ("cd(folder=ls)", False),
        ("cd(**{'folder': 'x'})", False),
        ("cd(folder='x').y()", False),
        ("[cd(folder=x) for x in ls()]", False),
        ("rm(file_name='x')", False),
        ("cd(", False),
    ],
)
def test_the_official_checker_is_trusted_with_literals_and_calls_of_an_entry(text, is_safe):
    assert trusted(text, {"ls", "cd"}) == (text if is_safe else NOTHING)


@pytest.mark.parametrize("version", ["v3", "v4"])
def test_words_are_read_from_the_copys_python_and_nothing_is_executed(tmp_path, version):
    (tmp_path / "constants").mkdir()
    (tmp_path / "constants" / "default_prompts.py").write_text(PROMPTS[version])
    utils = tmp_path / {"v3": "model_handler/utils.py", "v4": "utils.py"}[version]
    utils.parent.mkdir(exist_ok=True)
    utils.write_text(HINT)
    prompt = read_prompt(Upstream(tmp_path, ["."], {}), version)
    system = {
        "v3": "Do it.\nUse {functions}, {0.__class__}",
        "v4": "Be. As [f()], all. In json: {functions} {persona!r:>9}",
    }[version]
    assert prompt == Prompt(system, " Python.", official=True)
    doc = {"name": "ls", "description": "Lists.", "response": 1}
    convention = BfclCalls(version, {"ls": doc}, prompt)
    history = [Message("user", "Look."), Message("assistant", "", (ToolCall("c", "ls"),))]
    told = convention.told(history, [ToolSpec("ls", "", {}), ToolSpec("other", "Else.", {})])
    assert [message.role for message in told] == ["system", "user", "assistant"]
    assert told[2].content == "[ls()]"
    assert "Lists. Python." in told[0].content
    assert "Else." in told[0].content
    if version == "v4":
        assert '"response": 1' in told[0].content
    else:
        assert "'response': 1" in told[0].content


@pytest.mark.parametrize("text", ["WORDS = 1\n", "DEFAULT_SYSTEM_PROMPT = open('x')\n"])
def test_a_copy_without_such_words_has_muarls_own(tmp_path, text):
    (tmp_path / "constants").mkdir()
    for version in ("v3", "v4"):
        assert not read_prompt(Upstream(tmp_path, ["."], {}), version).official
        (tmp_path / "constants" / "default_prompts.py").write_text(text)
    (tmp_path / "constants" / "default_prompts.py").write_text("def broken(:\n")
    with pytest.raises(SetupError, match=r"constants/default_prompts\.py: no Python that can be"):
        read_prompt(Upstream(tmp_path, ["."], {}), "v4")


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["base", "miss-func", "miss-param", "long-context"])
async def test_an_expert_who_writes_its_calls_solves_the_entries(prompted, name):
    domain = load_domain(prompted[name] / "prompted.yaml")
    tasks = domain.tasks("test")[::40]
    episodes = await play_agents(domain, tasks, lambda task, rng: domain.expert(task, {}, rng))
    assert [episode.reward for episode in episodes] == [1.0] * len(tasks)
    assert {episode.forks for episode in episodes} == {0}


@pytest.mark.anyio
async def test_a_text_without_calls_ends_the_turn_and_nested_calls_are_made(prompted):
    domain = load_domain(prompted["base"] / "prompted.yaml")
    task = domain.tasks("test")[0]
    episode = await written(
        domain,
        task,
        "cd(folder='document')",
        "[ls(), find(path='.', name=pwd(x=1))]",
        "[echo(content={'k': 1}), no_such(a=1), cd(folder=(1, 2)), cd(1e999)]",
        "echo(content=1e999)",
        "Now [I am done.",
        "[]",
        "ls(",
    )
    turns = episode.turns
    assert [len(turn.results) for turn in turns[:7]] == [1, 2, 4, 1, 0, 0, 0]
    assert turns[1].message.content == "[ls(), find(path='.', name=pwd(x=1))]"
    assert turns[1].message.tool_calls[1].arguments == {"path": ".", "name": {"pwd": {"x": 1}}}
    answers = [result.as_message().content for turn in turns[:4] for result in turn.results]
    assert answers[0] == '{"current_working_directory": "document"}'
    assert re.match("Error during execution: .*pwd", answers[2])
    assert answers[4] == "Error during execution: name 'no_such' is not defined"
    assert answers[7].startswith("Error: the call cannot be made: 1.content is inf")
    assert all(turn.reply is not None for turn in turns[4:7])


@pytest.mark.anyio
async def test_functions_that_were_held_back_are_told_of_by_the_user(prompted):
    domain = load_domain(prompted["miss-func"] / "prompted.yaml")
    task = domain.tasks("test")[0]
    (turn,) = [turn for turn in task.turns if "more functions" in turn.says]
    assert turn.says.startswith("[{'name': 'sort', 'description': ")
    assert not turn.shows
    episode = await written(domain, task)
    assert episode.forks == 0
    assert "sort" not in {tool.name for tool in episode.tools}


RUN = """\
domain: base/prompted.yaml
user: {fixed: {}}
rollout: {max_turns: 180, max_tokens: 1024, context_tokens: 40960}
eval: {split: test, episodes: 3}
"""


def test_eval_plays_it_and_says_whose_words_they_are(prompted, tmp_path, capsys):
    shutil.copytree(prompted["base"], tmp_path / "base")
    _, beside = evaluated(tmp_path, RUN, "fixed: {fixed: {}}", 3, capsys)
    assert "bfcl-v4-base-prompted: What a prompted model is told is worded by muarl" in beside
