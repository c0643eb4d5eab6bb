"""Proofs of what a domain's tasks, tools and rewards are worth, each with a shop that breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest
from proof_shop import generated, with_expert
from spec_files import spoil, write_all

from muarl.data.proof import Check, Fuzzed, Proof, prove
from muarl.domain import load_domain
from muarl.record import UserReply

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_all(tmp_path)
    return tmp_path


def said(proof: Proof) -> list[str]:
    return [f"{f.check} {f.problem.message}" for f in proof.findings]


def no_crash(folder: Path) -> None:
    """Let the shop answer also where an order is not there."""
    spoil(
        folder / "tools.py",
        'return world["orders"][order_id]["status"]',
        'return world["orders"].get(order_id, {"status": "unknown"})["status"]',
    )


async def test_near_duplicates_are_named_in_pairs_L10(folder: Path) -> None:
    goal = (
        "Ask about W1, which you ordered by mistake last night, and be told that it is on its way."
    )
    spoil(
        folder / "tasks.yaml",
        "tasks:\n",
        f"tasks:\n  - {{id: a, goal: '{goal}', gold: []}}\n"
        f"  - {{id: b, goal: '{goal.replace('night', 'week')}', gold: []}}\n",
    )
    proof = await prove(load_domain(folder))
    (finding,) = [found for found in said(proof) if found.startswith("duplicates")]
    assert finding.startswith("duplicates task 'b': nearly the same (0.8")
    assert finding.endswith(") as task 'a'; a task given twice counts twice")


async def test_tasks_that_differ_in_the_words_of_their_goals_are_the_same_L10(folder: Path) -> None:
    text = (folder / "tasks.yaml").read_text()
    again = text.partition("tasks:\n")[2].replace("cancel-1", "cancel-2\n    split: held_out")
    goal = "goal: Last night you ordered by mistake. You want none of it."
    (folder / "tasks.yaml").write_text(text + again.replace("goal: Cancel W1.", goal))
    assert (
        "duplicates task 'cancel-2': but for the words of its goal the same as task 'cancel-1' of "
        "split 'train'; an evaluation on one would repeat the training on the other"
    ) in said(await prove(load_domain(folder)))


async def test_more_pairs_than_can_be_named_are_not_all_named(folder: Path) -> None:
    text = (folder / "tasks.yaml").read_text()
    tasks = text.partition("tasks:\n")[2]
    more = "".join(tasks.replace("cancel-1", f"again-{i}") for i in range(12))
    (folder / "tasks.yaml").write_text(text + more)
    *named, rest = said(await prove(load_domain(folder)))
    assert len(named) == 50
    assert rest == "duplicates more than 50 pairs of tasks are nearly the same; the first are named"


async def test_a_read_that_changes_the_world_is_found(folder: Path) -> None:
    spoil(
        folder / "tools.py",
        'return world["orders"][order_id]["status"]',
        'world["seen"] = world.get("seen", 0) + 1; return "x"',
    )
    (finding,) = said(await prove(load_domain(folder)))
    assert finding == (
        "reads tool 'look', which `writes` does not name, changes the world (task 'cancel-1': "
        "seen: added 1); name it there, or let it only look"
    )


async def test_a_reward_that_a_read_lowers_is_found(folder: Path) -> None:
    (folder / "own.py").write_text(
        "def f(evidence):\n    return all(call.name != 'look' for call in evidence.calls())\n"
    )
    spoil(
        folder / "domain.yaml",
        "- gold_world: true",
        "- gold_world: true\n  - python: {function: own.py:f}",
    )
    found = said(await prove(load_domain(folder)))
    assert found == [
        (
            "reads task 'cancel-1': the gold calls earn 0 where the agent also looks at something, "
            "not 1: python own.py:f: own.py:f returned False"
        )
    ]


@pytest.mark.parametrize("limit", ["never_called: {tool: look}", "count: {of: calls, at_most: 1}"])
async def test_a_reward_that_limits_reads_by_name_or_number_means_it(
    folder: Path, limit: str
) -> None:
    spoil(folder / "domain.yaml", "- gold_world: true", f"- gold_world: true\n  - {limit}")
    assert said(await prove(load_domain(folder))) == []


async def test_a_fact_that_nobody_can_know_is_found(folder: Path) -> None:
    spoil(folder / "domain.yaml", "disclose: {order_id: on_request}", "disclose: {order_id: never}")
    assert said(await prove(load_domain(folder))) == [
        (
            "reach task 'cancel-1': nobody can know 'W1', which gold call 1 needs as 'order_id': "
            "persona 'terse' does not tell it, and no tool finds it from what she tells"
        )
    ]


async def test_a_fact_told_only_when_asked_for_needs_the_question(folder: Path) -> None:
    spoil(folder / "domain.yaml", "    ask:order_id: [which order]\n", "")
    spoil(
        folder / "domain.yaml", "style: plain", "style: plain\n    disclose: {order_id: on_request}"
    )
    found = said(await prove(load_domain(folder)))
    reach = [finding[:44] for finding in found if finding.startswith("reach")]
    assert reach == ["reach task 'cancel-1': nobody can know 'W1',"] * 2


async def test_a_fact_with_words_of_the_agents_around_it_can_be_known(folder: Path) -> None:
    spoil(folder / "tasks.yaml", "{order_id: W1}", "{order_id: order W1}")
    assert not [finding for finding in said(await prove(load_domain(folder))) if "reach" in finding]


async def test_a_fact_that_a_tool_finds_from_what_is_told_can_be_known(folder: Path) -> None:
    """An account gives a customer, a customer an order: two steps."""
    no_crash(folder)
    spoil(folder / "domain.yaml", "disclose: {order_id: on_request}", "disclose: {order_id: never}")
    spoil(
        folder / "tasks.yaml",
        "      requests:",
        "      facts: [{id: account, value: A7, disclose: on_request}]\n      requests:",
    )
    spoil(folder / "domain.yaml", "    done:", "    ask:account: [your account]\n    done:")
    spoil(
        folder / "domain.yaml",
        "      confirm:",
        '      tell:account: ["{account}"]\n      confirm:',
    )
    spoil(
        folder / "tools.py",
        "    @server.tool()\n    async def cancel",
        "    @server.tool()\n    async def customer(account: str) -> str:\n"
        "        return {'A7': 'customer C-9'}.get(account, 'none')\n\n"
        "    @server.tool()\n    async def orders_of(customer: str) -> str:\n"
        "        return {'C-9': 'W1, W2'}.get(customer, 'none')\n\n"
        "    @server.tool()\n    async def cancel",
    )
    assert said(await prove(load_domain(folder))) == []


async def test_a_fact_is_found_among_many_values_by_the_names_they_stand_under(
    folder: Path,
) -> None:
    """A record of forty fields would use up all tries, were each value asked of each tool."""
    no_crash(folder)
    spoil(folder / "domain.yaml", "disclose: {order_id: on_request}", "disclose: {order_id: never}")
    spoil(
        folder / "tasks.yaml",
        "      requests:",
        "      facts: [{id: account, value: A7}]\n      requests:",
    )
    spoil(
        folder / "domain.yaml",
        'open: ["I want to {request}."]',
        'open: ["I am {account}, I want to {request}."]',
    )
    spoil(
        folder / "tools.py",
        "    @server.tool()\n    async def cancel",
        "    @server.tool()\n    async def customer(account: str) -> dict[str, str]:\n"
        "        many = {f'f{i}': f'v{i}' for i in range(40)}\n"
        "        return {**many, 'customer': 'C-9'} if account == 'A7' else many\n\n"
        "    @server.tool()\n    async def orders_of(customer: str) -> dict[str, list[dict[str, str]]]:\n"
        "        return {'orders': [{'number': 'W1'}] if customer == 'C-9' else []}\n\n"
        "    @server.tool()\n    async def cancel",
    )
    assert said(await prove(load_domain(folder))) == []


async def test_what_the_rules_say_need_not_be_told(folder: Path) -> None:
    spoil(folder / "domain.yaml", "disclose: {order_id: on_request}", "disclose: {order_id: never}")
    spoil(folder / "domain.yaml", "rules: Be kind.", "rules: Be kind. The order is always W1.")
    assert said(await prove(load_domain(folder))) == []


async def test_without_a_ledger_the_goal_must_say_it(folder: Path) -> None:
    text = (folder / "tasks.yaml").read_text()
    user = text[text.index("    user:\n") : text.index("    gold:\n")]
    (folder / "tasks.yaml").write_text(text.replace(user, ""))
    no_crash(folder)
    assert said(await prove(load_domain(folder))) == []
    spoil(folder / "tasks.yaml", "Cancel W1.", "Cancel your order.")
    assert {f.check for f in (await prove(load_domain(folder))).findings} == {Check.REACH}


async def test_a_tool_of_no_use_is_found_and_an_end_that_can_only_fail(folder: Path) -> None:
    tool = "    @server.tool()\n    async def {}() -> str:\n        {}\n\n    @server.tool()\n    async def look"
    refuses = 'raise ToolError("closed")'
    spoil(
        folder / "tools.py", "    @server.tool()\n    async def look", tool.format("shut", refuses)
    )
    assert said(await prove(load_domain(folder))) == [
        (
            "coverage no task exercises tool 'shut': no gold call makes it, the expert does not, "
            "and it answers to nothing that a task speaks of; add a task, or drop the tool"
        )
    ]
    spoil(folder / "domain.yaml", "writes: [cancel]", "writes: [cancel]\nterminal: [shut]")
    assert said(await prove(load_domain(folder))) == [
        (
            "coverage no call of tool 'shut' was answered without an error; mend it, or let a gold "
            "call or the expert call it with arguments that it takes"
        )
    ]


async def test_mutated_gold_runs_fail_where_the_reward_sees_the_world(folder: Path) -> None:
    generated(folder)
    proof = await prove(load_domain(folder), fuzz=30)
    assert said(proof) == []
    assert proof.fuzz is not None
    assert proof.fuzz.runs == 30
    assert proof.fuzz.counted >= 15
    assert proof.fuzz.passed == 0


async def test_a_reward_that_sees_too_little_lets_mistakes_pass(folder: Path) -> None:
    generated(folder)
    spoil(folder / "domain.yaml", "- gold_world: true", "- called: {tool: cancel}")
    proof = await prove(load_domain(folder), fuzz=25)
    assert proof.fuzz is not None
    assert proof.fuzz.passed >= 1
    assert {finding.check for finding in proof.findings} == {Check.FUZZ}
    assert all("the gold calls with a mistake earn 1 (" in finding for finding in said(proof))
    again = await prove(load_domain(folder), fuzz=25)
    assert again.fuzz == proof.fuzz, "the same mistakes every time"


async def test_mistakes_that_change_nothing_do_not_count(folder: Path) -> None:
    spoil(folder / "tools.py", 'world["orders"][order_id]["status"] = "cancelled"', "pass")
    spoil(folder / "domain.yaml", "- gold_world: true", "- called: {tool: cancel}")
    proof = await prove(load_domain(folder), fuzz=10)
    assert proof.fuzz == Fuzzed(10, 0, 0)
    assert "no mutated gold run left the world otherwise than it should" in proof.skipped


async def test_what_trivial_policies_pass_is_listed(folder: Path) -> None:
    generated(folder, "gold=[", "gold=[] if index == 0 else [")
    spoil(folder / "domain.yaml", "reward:", "floor: 1.0\nreward:")
    proof = await prove(load_domain(folder))
    assert proof.passed["refuse_all"] == ["train-0", "held_out-0"]
    assert proof.passed["transfer_at_once"] == ["train-0", "held_out-0"]


async def test_no_judge_is_asked(folder: Path) -> None:
    judge = "judge: {criterion: Kind., model: m, base_url: 'http://127.0.0.1:1/v1'}"
    spoil(folder / "domain.yaml", "- gold_world: true", f"- gold_world: true\n  - {judge}")
    domain = load_domain(folder)
    judges = domain.judges
    proof = await prove(domain)
    assert said(proof) == []
    assert "no judge was asked: what `judge` predicates want counts as held" in proof.skipped
    assert domain.judges is judges, "as before"


async def test_what_must_be_said_need_not_be_paid_for_in_training(folder: Path) -> None:
    with_expert(folder)
    spoil(
        folder / "domain.yaml",
        "- gold_world: true",
        "- gold_world: true\n  - said: {text: done. anything else}\n"
        "training_reward:\n  - gold_world: true",
    )
    # Its one order is the one that writing at random cancels, which now is all that is paid for.
    spoil(
        folder / "domain.yaml",
        "reward:\n  - gold_world: true\n  - said",
        "floor: 1.0\nreward:\n  - gold_world: true\n  - said",
    )
    domain = load_domain(folder)
    (task,) = domain.tasks("train")
    world, done = await domain.gold_world(task), [kind.kind for kind in domain.spec.reward]
    assert done == ["gold_world", "said"]
    assert said(await prove(domain)) == []
    hello = UserReply("Hello.")
    initial = domain.world_for(task)
    assert (await domain.judge(task, world, [], hello, initial=initial)).reward == 0
    assert (await domain.judge(task, world, [], hello, initial=initial, training=True)).reward == 1
    own = task.model_copy(update={"training_reward": domain.spec.reward})
    assert (await domain.judge(own, world, [], hello, initial=initial, training=True)).reward == 0


async def test_gold_calls_earn_the_training_reward_too(folder: Path) -> None:
    spoil(
        folder / "domain.yaml",
        "- gold_world: true",
        "- gold_world: true\ntraining_reward:\n  - called: {tool: look}",
    )
    assert said(await prove(load_domain(folder))) == [
        (
            "gold task 'cancel-1': the gold calls earn 0 of the training reward, not 1: called "
            "look: look was not called successfully; `called` wants look, and no gold call is one: "
            "`gold` lists all that must be called, reads too; add it there, or leave the predicate out"
        )
    ]


@pytest.mark.parametrize("fuzz", [0, 10])
async def test_gold_calls_say_what_each_reward_wants_said(folder: Path, fuzz: int) -> None:
    """What one reward wants said, the other may forbid: each is earned by a dialogue of its own."""
    spoil(
        folder / "domain.yaml",
        "- gold_world: true",
        "- gold_world: true\n  - never_said: {text: as you wish}\n"
        "training_reward:\n  - gold_world: true\n  - said: {text: as you wish}",
    )
    assert said(await prove(load_domain(folder), fuzz=fuzz)) == []


async def test_doing_nothing_says_nothing(folder: Path) -> None:
    spoil(folder / "domain.yaml", "- gold_world: true", "- said: {text: as you wish}")
    found = said(await prove(load_domain(folder)))
    assert not [finding for finding in found if finding.startswith("idle")]
