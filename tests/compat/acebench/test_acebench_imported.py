"""Imported domains at work: what the agent is offered and told, how dialogues end, what they earn."""

import json
import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from muarl.cli import main
from muarl.compat.acebench.environment import NO_QUESTIONS
from muarl.compat.acebench.importer import FINISHED, write_domains
from muarl.domain import load_domain
from muarl.errors import SetupError
from muarl.messages import Message, ToolCall
from muarl.spec.user import UserSpec
from muarl.testing import chat_answer, http_server, play_agents

PROMPTS = """\
raise SystemExit("executed")
SYSTEM_PROMPT_BASE_EN = "Be a user. {instruction}"
SYSTEM_PROMPT_TRAVEL_EN = "Be a passenger. {instruction}"


class User:
    def get_init_prompt(self):
        return [{"role": "user", "content": "你好"}, {"role": "user", "content": "Good day."}]
"""
RULES = (
    'raise SystemExit("executed")\nBASE_PROMPT_EN = "Mind the phone."\nTRAVEL_PROMPT_EN = "Fly."\n'
)


@pytest.fixture(scope="session")
def copy(published, tmp_path_factory):
    """A copy of ACEBench as a checkout has it, its prompts not upstream's."""
    copy = tmp_path_factory.mktemp("checkout")
    shutil.copytree(published, copy / "data_all", copy_function=shutil.copyfile)
    (copy / "model_inference" / "multi_turn").mkdir(parents=True)
    (copy / "model_inference" / "multi_turn" / "APIModel_user.py").write_text(PROMPTS)
    (copy / "model_inference" / "prompt_en.py").write_text(RULES)
    return copy


@pytest.fixture(scope="session")
def written(copy, tmp_path_factory):
    written = {p.name: p for p in write_domains(copy, tmp_path_factory.mktemp("domains"))}
    assert len(written) == 22
    return written


@pytest.fixture(scope="session")
def domain(written):
    return cache(lambda name: load_domain(written[name] / "domain.yaml"))


class Agent:
    """Makes calls one by one, says what it has to say, and gives up its turn."""

    def __init__(self, calls, *said):
        self._script = [
            *(Message("assistant", text) for text in said[:-1]),
            *(
                Message("assistant", "", (ToolCall(f"c{i}", call.tool, call.arguments),))
                for i, call in enumerate(calls)
            ),
            Message("assistant", said[-1]),
        ]

    def act(self, history):
        return self._script.pop(0)


@pytest.mark.anyio
async def test_without_a_user_questions_are_told_off_and_gold_calls_earn_1(domain):
    made = domain("en-multi-step-base-message-15")
    tasks = made.tasks("test")
    agents = {task.id: Agent(task.gold, "Which one?", f"Done: {FINISHED}") for task in tasks}
    episodes = await play_agents(made, tasks, lambda task, _rng: agents[task.id])
    for task, episode in zip(tasks, episodes, strict=True):
        opening, reply = [reply.text for reply in episode.replies()][:2]
        assert opening == task.goal
        assert reply == NO_QUESTIONS
        assert episode.reward == 1.0


@pytest.mark.anyio
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_the_expert_solves_every_entry_without_a_user(domain, language, written):
    names = [name for name in written if name.startswith(f"{language}-multi-step")]
    rewards = []
    for made in map(domain, names):
        tasks = made.tasks("test")
        episodes = await play_agents(made, tasks, lambda t, rng, d=made: d.expert(t, {}, rng))
        rewards += [episode.reward for episode in episodes]
    assert rewards == [1.0] * 20


@pytest.mark.anyio
async def test_a_user_plays_by_the_copys_prompt_until_she_finishes(domain):
    made = domain("en-multi-turn-base-message-reminder-food-15")
    assert made.spec.rules == "Mind the phone."
    heard = []

    def say(messages):
        heard.extend(message["content"] for message in messages)
        return "Please do it." if len(messages) == 2 else FINISHED

    async with http_server(chat_answer(say)) as server:
        llm = {"base_url": f"{server.url}/v1", "model": "tiny"}
        user = UserSpec.model_validate({"simulator": {"llm": llm}})
        task = made.tasks("test")[0]
        agent = Agent(task.gold, "It is done.")
        (episode,) = await play_agents(made, [task], lambda *_: agent, user=user)
    assert heard[:2] == [f"Be a user. {task.goal}", "Good day."]
    assert episode.reward == 1.0
    assert [metric.score for metric in episode.metrics] == [1.0] * 3


@pytest.mark.anyio
async def test_a_dialogue_in_which_nothing_ran_or_too_late_earns_0(domain):
    made = domain("en-multi-step-base-food-15")
    task = made.tasks("test")[0]
    idle = [type(task.gold[0])(tool="check_balance", arguments={"user_name": "Eve"})] * 20
    for calls in ([], [*idle, *task.gold]):
        agent = Agent(calls, FINISHED)
        (episode,) = await play_agents(made, [task], lambda *_, a=agent: a)
        assert episode.reward == 0.0


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "reads"),
    [
        (
            "en-multi-step-base-food-15",
            "[\"Error during execution: FoodPlatform.check_balance() got an unexpected keyword argument 'nobody'\"]",
        ),
        ("en-multi-turn-base-message-food-15", str(list("Error during execution: {str(e)}"))),
    ],
)
async def test_an_error_is_read_as_upstream_words_it_and_nothing_stands_before_it(
    domain, name, reads
):
    made = domain(name)
    async with made.server.session(made.world_for(made.tasks("test")[0])) as session:
        result = await session.call(ToolCall("c", "check_balance", {"nobody": 1}))
    assert result.as_message().content == reads


@pytest.mark.anyio
async def test_functions_are_offered_with_json_schemas_as_published(domain):
    tools = {tool.name: tool for tool in await domain("en-multi-step-base-food-15").tools()}
    assert len(tools) == 15
    items = tools["add_food_delivery_order"].parameters["properties"]["items"]
    assert (items["type"], items["items"]["type"]) == ("array", "object")


def test_the_verb_writes_the_folders_and_replaces_none_unasked(copy, tmp_path, capsys):
    importing = ["import", "acebench", "--from", str(copy), "--to", str(tmp_path / "out")]
    assert main(importing) == 0
    folders = capsys.readouterr().out.split()
    origin = json.loads((Path(folders[0]) / "origin.json").read_text())
    assert {file["version"] for file in origin["files"].values()} == {"56dd66c"}
    assert len(folders) == 22
    assert main(importing) != 0
    assert "--overwrite" in capsys.readouterr().err
    assert main([*importing, "--overwrite", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [one["folder"] for one in said["domains"]] == folders
    assert main([*importing, "--domain", "retail"]) != 0


def test_a_copy_of_an_unknown_version_or_without_data_is_refused(tmp_path, copy, published):
    with pytest.raises(SetupError, match=re.escape("has no data_en/data_agent_multi_turn.json")):
        write_domains(tmp_path, tmp_path)
    changed = tmp_path / "changed"
    for language in ("data_en", "data_zh"):
        (changed / language / "possible_answer").mkdir(parents=True)
        for file in (published / language).rglob("*.json"):
            text = file.read_text(encoding="utf-8")
            (changed / file.relative_to(published)).write_text(text + "\n", encoding="utf-8")
    with pytest.raises(SetupError, match=r"(?s)no version that is known here: .*--accept-unknown"):
        write_domains(changed, tmp_path / "out")
    assert not (tmp_path / "out").exists()
