"""The proof of a domain finds whatever would make training on it worthless."""

from __future__ import annotations

from pathlib import Path

import pytest
from proof_shop import Break, break_domain, break_tasks, break_tools, generated, with_expert
from spec_files import spoil, write_all

from muarl.data.proof import Check, Proof, Subject, prove
from muarl.data.proof.finding import spread
from muarl.data.proof.splits import split_findings
from muarl.domain import load_domain
from muarl.errors import SpecError

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_all(tmp_path)
    return tmp_path


def said(proof: Proof) -> list[str]:
    """Findings as `check line:column: message`."""
    return [
        f"{f.check} {f.problem.line}:{f.problem.column}: {f.problem.message}"
        for f in proof.findings
    ]


async def test_a_sound_domain_has_no_findings(folder: Path) -> None:
    with_expert(folder)
    proof = await prove(load_domain(folder))
    assert said(proof) == []
    assert proof.sound
    assert proof.tasks == {"train": 1}
    assert proof.tools == ["look", "cancel"]
    assert proof.idle["train"].value == 0
    assert {name: means["train"].value for name, means in proof.floor.items()} == {
        "do_nothing": 0,
        "refuse_all": 0,
        "transfer_at_once": 0,
        "random_write": 0,
        "empty_reply": 0,
    }
    assert proof.expert["train"].value == 1
    assert proof.skipped == []


async def test_generated_tasks_are_proved_too(folder: Path) -> None:
    generated(folder)
    with_expert(folder)
    proof = await prove(load_domain(folder))
    assert said(proof) == []
    assert proof.tasks == {"train": 3, "held_out": 2}
    assert proof.expert["held_out"].n == 2


@pytest.mark.parametrize(
    ("breakage", "finding"),
    [
        (
            break_domain("writes: [cancel]", "writes: [cancle]"),
            "names 7:10: unknown tool 'cancle'; did you mean 'cancel'?",
        ),
        (
            break_domain("writes: [cancel]", "terminal: [bye]"),
            "names 7:12: unknown tool 'bye'; known: look, cancel",
        ),
        (
            break_domain("- gold_world: true", "- never_called: {tool: lok}"),
            "names 38:26: unknown tool 'lok'; did you mean 'look'?",
        ),
        (
            break_domain("- gold_world: true", "- called: {tool: cancel, before: lok}"),
            "names 38:36: unknown tool 'lok'; did you mean 'look'?",
        ),
        (
            break_domain("- gold_world: true", "- confirmed: {tools: [cancel, x]}"),
            "names 38:33: unknown tool 'x'; known: look, cancel",
        ),
        (
            break_tasks("tool: cancel", "tool: cancell"),
            "names 12:15: task 'cancel-1': unknown tool 'cancell'; did you mean 'cancel'?",
        ),
        (
            break_tasks("    gold:", "    metrics: [{called: {tool: loook}}]\n    gold:"),
            "names 11:31: task 'cancel-1': unknown tool 'loook'; did you mean 'look'?",
        ),
        (
            break_tasks("{order_id: W1}\n", "{order_id: W9}\n"),
            (
                "gold 12:9: task 'cancel-1': gold call 'cancel' was answered with an error: "
                "no order W9"
            ),
        ),
        (
            break_tasks("{order_id: W1}\n", "{order: W1}\n"),
            (
                "names 13:21: task 'cancel-1': unknown argument 'order'; did you mean 'order_id'? "
                "(of tool 'cancel')"
            ),
        ),
        (
            break_domain("- gold_world: true", "- world: {path: orders.W1.status, equals: lost}"),
            (
                "gold 12:7: task 'cancel-1': the gold calls earn 0, not 1: world orders.W1.status: "
                "orders.W1.status is 'cancelled'"
            ),
        ),
        (
            break_tasks(
                "    gold:", "    reward: [{said: {text: a}}, {never_said: {text: A}}]\n    gold:"
            ),
            "gold 13:7: task 'cancel-1': the gold calls earn 0, not 1: never_said 'A': 'A' was said in turn 0",
        ),
        (
            break_tasks("tool: cancel", "tool: look"),
            (
                "idle 12:7: task 'cancel-1': doing nothing already earns 1; let the gold calls change "
                "something that the reward sees, or leave them out"
            ),
        ),
    ],
)
async def test_what_is_wrong_is_found_at_its_place(
    folder: Path, breakage: Break, finding: str
) -> None:
    breakage(folder)
    proof = await prove(load_domain(folder))
    assert finding in said(proof)
    assert not proof.sound
    assert proof.skipped == ["trivial policies and the expert were not played: mend this first"]


@pytest.mark.parametrize("says", ["", ", says: [Bye]"])
async def test_code_that_wants_something_said_is_hinted_to_list_it(folder: Path, says: str) -> None:
    (folder / "polite.py").write_text(
        "def said_bye(evidence):\n"
        "    return any('Bye' in turn.message.content for turn in evidence.turns)\n"
    )
    polite = "- python: {function: polite.py:said_bye" + says + "}\n  - gold_world: true"
    spoil(folder / "domain.yaml", "- gold_world: true", polite)
    proof = await prove(load_domain(folder))
    hinted = [line for line in said(proof) if "if polite.py:said_bye wants something said" in line]
    assert bool(hinted) == (says == "")
    assert all("list the texts beside `function`, under `says`" in line for line in hinted)


@pytest.mark.parametrize(
    "reward",
    [
        "- {confirmed: {}}\n  - gold_world: true",
        "- {said: {text: thank you}}\n  - gold_world: true",
        "- {called: {tool: cancel, arguments: {order_id: W1}}}",
        "- {world: {path: orders.W1.status, equals: cancelled}}",
    ],
)
async def test_the_gold_calls_count_as_the_best_dialogue_that_makes_them(
    folder: Path, reward: str
) -> None:
    break_domain("- gold_world: true", reward)(folder)
    proof = await prove(load_domain(folder))
    assert said(proof) == []


async def test_a_task_that_needs_no_call_may_be_earned_by_doing_nothing(folder: Path) -> None:
    text = (folder / "tasks.yaml").read_text()
    (folder / "tasks.yaml").write_text(text[: text.index("    gold:")] + "    gold: []\n")
    spoil(folder / "domain.yaml", "reward:", "floor: 1.0\nreward:")
    proof = await prove(load_domain(folder))
    assert said(proof) == [
        (
            "coverage 5:1: no task exercises tool 'cancel': no gold call makes it, the expert does "
            "not, and it answers to nothing that a task speaks of; add a task, or drop the tool"
        )
    ]
    assert proof.idle["train"].value == 1
    assert proof.passed["do_nothing"] == ["cancel-1"]


def _hand_over(answer: str) -> Break:
    """Give the shop a tool that ends a dialogue."""

    def breakage(folder: Path) -> None:
        tool = (
            f"@server.tool()\n    async def hand_over(why: str) -> str:\n        {answer}\n\n    "
        )
        spoil(folder / "tools.py", "return server", f"{tool}return server")
        spoil(folder / "domain.yaml", "writes:", "terminal: [hand_over]\nwrites:")

    return breakage


async def test_a_tool_that_ends_a_dialogue_need_stand_in_no_task(folder: Path) -> None:
    _hand_over('return "a person takes over"')(folder)
    assert said(await prove(load_domain(folder))) == []


async def test_a_tool_that_can_only_fail_is_not_taken_for_exercised(folder: Path) -> None:
    _hand_over('raise ToolError("nobody is there")')(folder)
    assert said(await prove(load_domain(folder))) == [
        (
            "coverage 5:1: no call of tool 'hand_over' was answered without an error; mend it, or let "
            "a gold call or the expert call it with arguments that it takes"
        )
    ]


async def test_a_tool_that_fails_in_a_task_that_was_not_looked_at_is_found(folder: Path) -> None:
    generated(folder)
    spoil(
        folder / "gen.py",
        'gold=[GoldCallSpec(tool="cancel"',
        'gold=[GoldCallSpec(tool="mend" if split + str(index) == "train2" else "cancel"',
    )
    tool = "@server.tool()\n    async def mend(order_id: str) -> str:\n        raise ToolError('no')\n\n    "
    spoil(folder / "tools.py", "return server", f"{tool}return server")
    spoil(folder / "domain.yaml", "writes: [cancel]", "writes: [cancel, mend]")
    findings = said(await prove(load_domain(folder), limit=1))
    assert findings == [
        (
            "coverage 5:1: no call of tool 'mend' was answered without an error; mend it, or let a "
            "gold call or the expert call it with arguments that it takes"
        )
    ]


async def test_a_floor_that_trivial_policies_pass_is_found(folder: Path) -> None:
    text = (folder / "tasks.yaml").read_text()
    (folder / "tasks.yaml").write_text(text[: text.index("    gold:")] + "    gold: []\n")
    proof = await prove(load_domain(folder))
    assert said(proof) == [
        (
            "floor 1:1: doing nothing earns 1.000 on split 'train' (1 tasks), more than the floor "
            "0.15; have fewer tasks that need no skill, or state a floor you can defend"
        )
    ]


async def test_a_training_reward_that_trivial_policies_pass_is_found(folder: Path) -> None:
    spoil(
        folder / "domain.yaml",
        "reward:",
        "training_reward:\n  - count: {of: turns, at_least: 0}\nreward:",
    )
    proof = await prove(load_domain(folder), fuzz=20)
    findings = said(proof)
    assert any("doing nothing already earns 1 of the training reward" in f for f in findings)
    assert any("the training reward does not see" in finding for finding in findings)


async def test_trivial_policies_are_tried_as_if_they_were_trained(folder: Path) -> None:
    spoil(
        folder / "domain.yaml",
        "reward:",
        "training_reward:\n  - count: {of: turns, at_least: 2}\nreward:",
    )
    proof = await prove(load_domain(folder))
    assert proof.floor["do_nothing"]["train"].value == 0
    assert proof.floor["do_nothing in training"]["train"].value == 1
    assert any("'do_nothing in training' earns 1.000" in finding for finding in said(proof))


async def test_a_part_of_a_split_speaks_for_the_whole_only_with_its_interval(folder: Path) -> None:
    """One task of three is earned by doing nothing; seven tasks cannot prove it."""
    generated(folder, "gold=[", "gold=[] if index % 3 == 0 else [")
    spoil(folder / "domain.yaml", "{train: 3, held_out: 2}", "{train: 30}")
    spoil(folder / "domain.yaml", "reward:", "floor: 0.3\nreward:")
    spoil(folder / "gen.py", 'f"W{index', 'f"W{10 + index')
    whole = await prove(load_domain(folder))
    assert any("doing nothing earns 0.333" in finding for finding in said(whole))
    assert {finding.check for finding in whole.findings} == {Check.FLOOR}
    part = await prove(load_domain(folder), limit=7)
    assert part.tasks == {"train": 7}
    assert part.idle["train"].value == 3 / 7
    assert not any("doing nothing" in finding for finding in said(part))


@pytest.mark.parametrize(
    ("breakage", "message"),
    [
        (
            break_tools('server = MCPServer("shop")', "raise RuntimeError('no licence')"),
            "server 5:1: tool server 'serve' could not be built: RuntimeError: no licence",
        ),
        (
            break_domain("python: tools.py:serve", "command: [python3, -c, 'raise SystemExit']"),
            "server 5:1: tool server `python3 -c 'raise SystemExit'` did not start",
        ),
    ],
)
async def test_a_server_that_does_not_start_is_one_finding(
    folder: Path, breakage: Break, message: str
) -> None:
    breakage(folder)
    proof = await prove(load_domain(folder))
    (finding,) = said(proof)
    assert finding.startswith(message)


async def test_a_server_that_hangs_in_a_gold_call_is_one_finding(folder: Path) -> None:
    spoil(
        folder / "tools.py",
        "if order_id not in",
        "import anyio; await anyio.sleep(60)\n        if order_id not in",
    )
    spoil(folder / "domain.yaml", "tools:", "tools:\n  call_timeout_s: 1")
    proof = await prove(load_domain(folder))
    (finding,) = said(proof)
    assert finding.startswith("server 5:1: task 'cancel-1': call cancel {")
    assert "tool server 'serve' did not answer a call of 'cancel'" in finding


async def test_an_entity_in_two_splits_is_found_once(folder: Path) -> None:
    generated(folder, "(5 if split == 'held_out' else 0)", "0")
    proof = await prove(load_domain(folder))
    assert said(proof)[:1] == [
        (
            "splits 13:11: task 'held_out-0': 'W0' is also in task 'train-0' of split 'train'; "
            "splits must not share entities (a catalogue that all tasks speak of is named under the "
            "domain's `shared`: orders)"
        )
    ]


async def test_what_the_domain_shares_may_be_in_two_splits_and_is_there(folder: Path) -> None:
    generated(folder, "(5 if split == 'held_out' else 0)", "0")
    spoil(folder / "domain.yaml", "tasks:\n", "shared: [orders]\ntasks:\n")
    proof = await prove(load_domain(folder))
    assert not any(finding.startswith("splits") for finding in said(proof))
    spoil(folder / "domain.yaml", "[orders]", "[order]")
    proof = await prove(load_domain(folder))
    assert (
        "splits 12:10: unknown part of the world with records 'order'; did you mean 'orders'?"
    ) in said(proof)


async def test_an_entity_that_the_world_holds_counts_where_a_task_names_it(folder: Path) -> None:
    text = (folder / "tasks.yaml").read_text()
    again = text.partition("tasks:\n")[2].replace("cancel-1", "cancel-2\n    split: held_out")
    (folder / "tasks.yaml").write_text(text + again)
    proof = await prove(load_domain(folder))
    finding, twin = said(proof)
    assert twin == (
        "duplicates 14:5: task 'cancel-2': the same as task 'cancel-1' of split 'train'; an "
        "evaluation on one would repeat the training on the other"
    )
    assert finding.startswith("splits 14:5: task 'cancel-2': 'W1' is also in task 'cancel-1' of")


async def test_an_entity_within_lists_of_a_call_is_found_L10(folder: Path) -> None:
    spoil(
        folder / "domain.yaml",
        "    orders:\n      W1: {status: pending}",
        "    shop: {orders: [{id: W1}, {id: W2}]}",
    )
    spoil(
        folder / "tasks.yaml",
        "tasks:\n",
        "tasks:\n"
        "  - {id: a, goal: Mend it., gold: [{tool: cancel, arguments: {all: [{of: W1}]}}]}\n"
        "  - {id: b, goal: Sell it., split: held_out, gold: [{tool: look, arguments: {in: [W1]}}]}\n",
    )
    (finding,) = split_findings(Subject(load_domain(folder)))
    assert finding.problem.message == (
        "task 'b': 'W1' is also in task 'a' of split 'train'; splits must not share entities "
        "(a catalogue that all tasks speak of is named under the domain's `shared`: orders)"
    )


async def test_a_wording_in_two_splits_is_found(folder: Path) -> None:
    spoil(
        folder / "domain.yaml",
        "    any:\n",
        "    train: {next: [And then?]}\n    held_out: {next: ['x', 'and  THEN?']}\n    any:\n",
    )
    proof = await prove(load_domain(folder))
    assert said(proof) == [
        (
            "splits 28:28: split 'train' words `next` the same way; splits must not share wordings "
            "(what may be shared stands under `any`)"
        )
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        ("No, thanks!", "no, thanks", True),
        ("No, thanks!", "no thanks", True),
        ("Don't.", "Don’t", True),
        ("It is {order_id}.", "it is {order_id}", True),
        ("It is {order_id}.", "It is order id.", False),
        ("No, thanks!", "No thank you", False),
        ("?", "!", False),
    ],
)
async def test_wordings_are_compared_without_case_and_punctuation_L10(
    folder: Path, ours: str, theirs: str, same: bool
) -> None:
    spoil(
        folder / "domain.yaml",
        "    any:\n",
        f"    train: {{next: [{ours!r}]}}\n    held_out: {{next: [{theirs!r}]}}\n    any:\n",
    )
    found = list(split_findings(Subject(load_domain(folder))))
    assert [finding.check for finding in found] == [Check.SPLITS] * same


async def test_the_wordings_of_a_voice_are_compared_too_L10(folder: Path) -> None:
    spoil(
        folder / "domain.yaml",
        "  phrasings:\n",
        "  voices: {formal: {train: {next: [Next.]}, held_out: {next: [next]}}}\n  phrasings:\n",
    )
    (finding,) = split_findings(Subject(load_domain(folder)))
    assert "split 'train' words `next` the same way" in finding.problem.message


async def test_an_expert_that_fails_is_found_with_its_first_failure(folder: Path) -> None:
    with_expert(folder, 'name="cancel"', 'name="look"')
    proof = await prove(load_domain(folder))
    (finding,) = said(proof)
    assert finding.startswith(
        "expert 37:9: the expert fails 1 of 1 dialogues of split 'train'; task 'cancel-1' (plain, "
        "completed): gold_world: differs from the gold world: orders.W1.status"
    )
    assert proof.expert["train"].value == 0


async def test_an_expert_that_raises_is_found_and_is_no_traceback(folder: Path) -> None:
    with_expert(folder, "last = history[-1]", "raise KeyError('oops')")
    proof = await prove(load_domain(folder))
    assert said(proof) == [
        (
            "expert 4:5: task 'cancel-1': a dialogue of 'expert' ended in a fault: the agent raised "
            f"KeyError: 'oops' ({folder / 'expert.py'}:10, in act)"
        )
    ]


async def test_without_a_scripted_user_no_dialogue_is_played(folder: Path) -> None:
    text = (folder / "domain.yaml").read_text()
    head, tail = text.partition("user:\n")[0], text[text.index("reward:") :]
    (folder / "domain.yaml").write_text(head + tail)
    proof = await prove(load_domain(folder))
    assert proof.sound
    assert proof.skipped == ["no dialogue was played: the domain has no scripted user"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "def generate(split, seed, count):",
            "def generate(split, seed, count):\n    1 / 0",
            "13:11: gen.py:generate raised ZeroDivisionError: division by zero ({here}gen.py:19, in generate)",
        ),
        (
            "def generate(split, seed, count):",
            "def generate(split, seed, count):\n    raise SystemExit(0)",
            "13:11: gen.py:generate raised SystemExit: 0 ({here}gen.py:19, in generate)",
        ),
        (
            "def generate(split, seed, count):",
            "def generate(split, seed, count):\n    raise KeyboardInterrupt",
            "13:11: gen.py:generate raised KeyboardInterrupt ({here}gen.py:19, in generate)",
        ),
        (
            "facts = [",
            "facts = [{}['x'] or ",
            "13:11: gen.py:generate raised KeyError: 'x' ({here}gen.py:6, in task)",
        ),
        (
            "facts = [",
            "facts = [int('x') or ",
            "13:11: gen.py:generate: invalid literal for int() with base 10: 'x' ({here}gen.py:6, in",
        ),
        (
            "from muarl",
            "import nowhere\nfrom muarl",
            "13:11: 'gen.py:generate' cannot be imported: No module named 'nowhere' ({here}gen.py:1, in",
        ),
        (
            "from muarl",
            "import json; json.nothing\nfrom muarl",
            "13:11: importing gen.py raised AttributeError: module 'json' has no attribute 'nothing' (",
        ),
        (
            "return [task(split, index) for index in range(count)]",
            "return type('Liar', (list,), {'__len__': lambda self: 3})()",
            "13:11: gen.py:generate must return a list, it returned Liar",
        ),
        (
            "    return [task(",
            "    return [TaskSpec.model_construct(id=None, split=split)] * count\n    return [task(",
            "13:11: gen.py:generate returned a TaskSpec that is none: ",
        ),
        (
            "return [task(split, index) for",
            "return [task(split, index).model_copy(update={'goal': 3}) for",
            "13:11: gen.py:generate returned a TaskSpec that is none: TaskSpec: 'goal' must be text",
        ),
        (
            "return [task(split, index) for index in range(count)]",
            "return None",
            "13:11: gen.py:generate must return a list, it returned NoneType",
        ),
        (
            "range(count)]",
            "range(1)]",
            (
                "13:11: gen.py:generate must return 3 TaskSpec of split 'train'; it returned 1, 0 of "
                "them not such"
            ),
        ),
        (
            '["plain"]',
            '["plane"]',
            "13:11: task 'train-0': unknown persona 'plane'; did you mean 'plain'?",
        ),
        (
            'id=f"{split}-{index}"',
            'id="x"',
            "13:11: task 'x': the id is given twice",
        ),
        (
            "goal=",
            "gaol=",
            "13:11: gen.py:generate: TaskSpec: missing field 'goal'; unknown field 'gaol'",
        ),
        (
            "from muarl",
            "raise SystemExit\nfrom muarl",
            "13:11: importing gen.py raised SystemExit ({here}gen.py:1, in <module>)",
        ),
    ],
)
async def test_a_generator_that_breaks_its_contract_is_a_problem_of_the_domain(
    folder: Path, old: str, new: str, problem: str
) -> None:
    generated(folder, old, new)
    with pytest.raises(SpecError) as caught:
        await prove(load_domain(folder))
    first = caught.value.problems[0]
    wanted = problem.replace("{here}", f"{folder}/")
    assert f"{first.line}:{first.column}: {first.message}".startswith(wanted)


async def test_steps_are_announced_in_order(folder: Path) -> None:
    steps: list[str] = []
    await prove(load_domain(folder), on_step=steps.append)
    before = ["tasks", "tool server", "names", "splits", "gold calls"]
    before += ["gold calls, once more", "reads"]
    assert steps == [*before, "trivial policies"]


def test_a_limit_takes_tasks_from_all_over_a_split(folder: Path) -> None:
    generated(folder)
    domain = load_domain(folder)
    tasks = domain.tasks("train")
    assert [task.id for task in spread(tasks, 2)] == ["train-0", "train-1"]
    assert spread(tasks, None) == tasks
    assert [task.id for task in Subject(domain, 1).all_tasks()] == ["train-0", "held_out-0"]
