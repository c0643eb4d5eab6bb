"""An environment of verifiers is a domain: its rows are tasks, its rollout talks, its rubric scores."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import pytest
from bad_input import InProcess
from environment_kit import CAPS, Says, calls, played

from muarl.data.proof import prove
from muarl.data.replay import replay_all
from muarl.domain import Domain, load_domain
from muarl.errors import SetupError, SpecError
from muarl.messages import Message, ToolCall
from muarl.record import Outcome, read_journal

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # theirs is asyncio only


@pytest.fixture(autouse=True, scope="module")
def _verifiers() -> Iterator[None]:
    before = list(sys.path)
    from muarl.environments.their_verifiers import their_library

    try:
        their_library()
    except SetupError as error:
        if os.environ.get("MUARL_REQUIRE_VERIFIERS"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    yield
    sys.path[:] = before


ROWS = """\
import verifiers as vf
from datasets import Dataset

ROWS = Dataset.from_list([{"question": f"{n} + {n}?", "answer": str(2 * n)} for n in range(1, 9)])
HELD = Dataset.from_list([{"question": f"{n} + 1?", "answer": str(n + 1)} for n in range(20, 24)])


def right(completion, answer):
    return float(completion[-1].content == answer)


def brief(completion):
    return 1.0 if len(completion[-1].content) < 4 else 0.0


"""

SINGLE = (
    ROWS
    + """\
def load_environment(weight=0.0):
    rubric = vf.Rubric(funcs=[right, brief], weights=[1 - weight, weight])
    return vf.SingleTurnEnv(
        dataset=ROWS, eval_dataset=HELD, system_prompt="Add.", rubric=rubric
    )
"""
)

GUESS = (
    ROWS
    + """\
class Guess(vf.MultiTurnEnv):
    async def setup_state(self, state):
        state["guesses"] = 0
        return state

    async def env_response(self, messages, state, **kwargs):
        state["guesses"] += 1
        if messages[-1].content == state["answer"]:
            state["final_env_response"] = [{"role": "user", "content": "Yes!"}]
            return state["final_env_response"]
        return [{"role": "user", "content": f"No, that was guess {state['guesses']}."}]


def quick(state):
    return 1.0 / len(state["trajectory"]) if state.get("final_env_response") else 0.0


def load_environment():
    return Guess(dataset=ROWS, max_turns=4, system_prompt="Add.", rubric=vf.Rubric(funcs=[quick]))
"""
)

TOOLS = (
    ROWS
    + """\
def add(one: int, other: int) -> str:
    '''Adds two numbers.

    Args:
        one: A number.
        other: Another one.
    '''
    return str(one + other)


def load_environment():
    return vf.ToolEnv(
        dataset=ROWS, tools=[add], system_prompt="Add.", rubric=vf.Rubric(funcs=[right]), max_turns=5
    )
"""
)


def write(
    folder: Path, code: str, *, verifiers: str = "", rules: str = "Add.", splits: str = "train: 6"
) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "sums.py").write_text(code)
    file = folder / "domain.yaml"
    file.write_text(
        dedent(f"""\
        version: 1
        id: sums
        summary: Sums.
        rules: {rules}
        environment: {{verifiers: {{load: "sums.py:load_environment"{verifiers}}}}}
        tasks: {{splits: {{{splits}}}}}
        floor: 1
        """)
    )
    return file


async def test_a_single_turn_is_a_dialogue_of_one_message_and_the_rubric_scores_it(
    tmp_path: Path,
) -> None:
    file = write(tmp_path, SINGLE, verifiers=", arguments: {weight: 0.25}")
    metric = "metrics: [{scaled: {path: environment.metrics.brief}}]\n"
    file.write_text(file.read_text() + metric)
    domain = load_domain(file)
    (right,) = await played(domain, lambda: Says("2"))
    assert (right.outcome, right.reward, len(right.turns)) == (Outcome.COMPLETED, 1.0, 1)
    assert (right.system, right.opening.text) == ("Add.", "1 + 1?")
    (wordy,) = await played(domain, lambda: Says("It is 2"))
    assert wordy.reward == 0.0
    (brief,) = await played(domain, lambda: Says("3"))
    assert (brief.reward, brief.metrics[0].score) == (0.25, 1.0)


async def test_its_rows_are_the_tasks_and_splits_share_none(tmp_path: Path) -> None:
    domain = load_domain(
        write(
            tmp_path,
            SINGLE,
            verifiers=", evaluation: [held_out]",
            splits="train: 5, dev: 3, held_out: 2",
        )
    )
    goals = {split: [task.goal for task in domain.tasks(split)] for split in domain.splits}
    assert goals == {
        "train": [f"{n} + {n}?" for n in range(1, 6)],
        "dev": [f"{n} + {n}?" for n in range(6, 9)],
        "held_out": ["20 + 1?", "21 + 1?"],
    }
    too_many = write(tmp_path / "more", SINGLE, splits="train: 5, dev: 4")
    with pytest.raises(
        SpecError, match=r"rows 5 to 8 of its training data set, which has 8; name sm"
    ):
        load_domain(too_many).tasks("dev")


async def test_its_answers_are_the_users_and_what_ends_it_ends_the_dialogue(tmp_path: Path) -> None:
    domain = load_domain(write(tmp_path, GUESS))
    (episode,) = await played(domain, lambda: Says("3", "2"))
    assert [turn.reply.text for turn in episode.turns if turn.reply] == [
        "No, that was guess 1.",
        "Yes!",
    ]
    assert (episode.outcome, episode.reward) == (Outcome.COMPLETED, 0.5)
    (never,) = await played(domain, lambda: Says("3"))
    assert (never.outcome, never.reward, len(never.turns)) == (Outcome.COMPLETED, 0.0, 4)
    assert {c.path: c.after for c in never.changes}["environment.metrics"]["num_turns"] == 4.0


async def test_a_message_that_a_cap_cut_is_scored_and_not_answered(tmp_path: Path) -> None:
    few = CAPS.model_copy(update={"max_tokens": 8})
    for name, code in (("single", SINGLE), ("guess", GUESS), ("tools", TOOLS)):
        domain = load_domain(write(tmp_path / name, code))
        (cut,) = await played(domain, lambda: Says("2 and much more beside it"), caps=few)
        assert (cut.outcome, cut.reward) == (Outcome.TRUNCATED_LENGTH, 0.0), cut.error
        metrics = {c.path: c.after for c in cut.changes}["environment.metrics"]
        assert metrics["num_turns"] == 1.0
        tally = await replay_all(domain, [cut], lambda _, difference: pytest.fail(difference))
        assert tally.same == 1


def test_on_trio_it_is_refused_by_name(tmp_path: Path) -> None:
    file = write(tmp_path, SINGLE)
    (episode,) = anyio.run(partial(played, file, lambda: Says("2")), backend="trio")
    assert episode.outcome is Outcome.INFRA_FAULT
    assert "verifiers runs on asyncio only" in (episode.error or "")


async def test_nothing_is_tokenised_again_L1(tmp_path: Path) -> None:
    for name, code, said in (
        ("guess", GUESS, ("3", "4", "2")),
        ("tools", TOOLS, (calls(("add", {"one": 1, "other": 1})), "2")),
    ):
        (episode,) = await played(write(tmp_path / name, code), lambda: Says(*said))  # noqa: B023
        (sample,) = episode.samples
        assert (episode.forks, len(sample.messages())) == (0, len(said))


async def test_an_installed_package_is_named_by_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path / "site")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "muarl_sums.py").write_text(SINGLE)
    file = write(tmp_path / "domain", SINGLE)
    named = file.read_text().replace('load: "sums.py:load_environment"', "id: muarl-sums")
    file.write_text(named)
    (episode,) = await played(file, lambda: Says("2"))
    assert episode.reward == 1.0
    file.write_text(named.replace("muarl-sums", "muarl-nothing"))
    with pytest.raises(SpecError, match=r"verifiers cannot load it: .*'muarl_nothing'"):
        load_domain(file).tasks("train")


TRAINED = (
    ROWS
    + """\
import random

from muarl.messages import Message

COLOURS = ["red", "blue", "green"]
DRAWN = random.Random(0)
SHOWN = Dataset.from_list(
    [{"question": f"{n}: say {(c := DRAWN.choice(COLOURS))}", "answer": c} for n in range(40)]
)


def load_environment():
    return vf.SingleTurnEnv(dataset=SHOWN, system_prompt="Add.", rubric=vf.Rubric(funcs=[right]))


class Expert:
    def __init__(self, task, imperfections, rng):
        self.said = rng.choice([task.world["environment"]["task"]["answer"], *COLOURS])

    def act(self, history):
        return Message("assistant", self.said)
"""
)

RUN = """\
version: 1
domain: domain.yaml
threads: 1
model: {tiny: {vocab_size: 400, hidden_size: 32, num_layers: 1, ffn_size: 32}}
rollout: {max_turns: 2, max_tokens: 8, context_tokens: 128, group_size: 8}
cold_start: {episodes: 60, steps: 30}
grpo: {iterations: 3, tasks_per_iteration: 8}
eval: {split: held_out, episodes: 10}
"""


@pytest.mark.slow
def test_grpo_trains_on_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "colours", TRAINED, splits="train: 30, held_out: 10")
    file.write_text(file.read_text() + "expert: sums.py:Expert\n")
    (file.parent / "run.yaml").write_text(RUN)
    ended = InProcess(capfd)("train", file.parent / "run.yaml", "--out", tmp_path / "run")
    assert ended.code == 0, ended.lines
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    rounds = [line for line in lines if line["kind"] == "iteration"]
    assert len(rounds) == 3
    episodes = list(read_journal(tmp_path / "run" / "episodes.journal"))
    trained = [episode for episode in episodes if episode.key.phase == "train"]
    assert len(trained) == 3 * 8 * 8
    assert {episode.reward for episode in trained} == {0.0, 1.0}


async def test_a_cap_of_the_run_ends_their_rollout_and_it_is_scored_as_it_is(
    tmp_path: Path,
) -> None:
    few = CAPS.model_copy(update={"max_turns": 2})
    (episode,) = await played(write(tmp_path, GUESS), lambda: Says("3"), caps=few)
    assert (episode.outcome, episode.reward) == (Outcome.TRUNCATED_TURNS, 0.0)
    assert {c.path: c.after for c in episode.changes}["environment.metrics"] == {
        "quick": 0.0,
        "num_turns": 2.0,
    }


async def test_its_tools_are_the_domains_and_all_calls_of_a_message_go_at_once(
    tmp_path: Path,
) -> None:
    domain = load_domain(write(tmp_path, TOOLS))
    both = calls(("add", {"one": 1, "other": 1}), ("add", {"one": 2, "other": "x"}), turn=1)
    unknown = calls(("take", {}), turn=2)
    unread = Message("assistant", "", (ToolCall("c3", "add", error="no JSON", raw="{1"),))
    (episode,) = await played(domain, lambda: Says(both, unknown, unread, "2"))
    (tool,) = episode.tools
    assert (tool.name, list(tool.parameters["properties"])) == ("add", ["one", "other"])
    answers = [[r.content for r in turn.results] for turn in episode.turns]
    assert answers[0][0] == "2"
    assert "unsupported operand" in answers[0][1]
    assert "take" in answers[1][0]
    assert (episode.outcome, episode.reward, len(episode.turns)) == (Outcome.COMPLETED, 1.0, 4)
    metrics = {c.path: c.after for c in episode.changes}["environment.metrics"]
    assert (metrics["num_turns"], metrics["total_tool_calls"]) == (4.0, 4.0)


async def test_what_was_recorded_is_replayed_and_check_passes(tmp_path: Path) -> None:
    says = {"guess": ("3", "2"), "tools": (calls(("add", {"one": 1, "other": 1})), "2")}
    for name, code in (("guess", GUESS), ("tools", TOOLS)):
        domain = load_domain(write(tmp_path / name, code))
        episodes = await played(domain, lambda: Says(*says[name]), tasks=3)  # noqa: B023
        tally = await replay_all(domain, episodes, lambda _, difference: pytest.fail(difference))
        assert (tally.same, tally.different) == (3, 0)
        proof = await prove(domain, dialogues=2)
        assert [str(finding.problem) for finding in proof.findings] == []


@pytest.mark.slow
def test_the_documented_commands_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    muarl = InProcess(capfd)
    assert muarl("init", "prices", "--template", "verifiers").code == 0
    checked = muarl("check", "prices")
    assert (checked.code, checked.out.splitlines()[-1]) == (0, "sound"), checked.out
    assert "the expert earns 1.000 on train (100), 1.000 on held_out (20)" in checked.out
    played = [
        "rollout",
        "prices/run.yaml",
        "--expert",
        "--episodes",
        "16",
        "--out",
        "runs/prices-expert",
    ]
    assert muarl(*played).code == 0
    assert muarl("replay", "runs/prices-expert").out.startswith("16 episodes are as recorded")


async def test_ctrl_c_stays_muarls(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    load_domain(write(tmp_path, SINGLE)).tasks("train")
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


REWRITES = """\
    async def get_prompt_messages(self, state):
        return (await super().get_prompt_messages(state))[-2:]

"""

FAULTS: dict[str, tuple[str, tuple[str, str], str]] = {
    "a reward function that raises": (
        SINGLE,
        ("return float(completion", "raise KeyError('answers')\n    return float(completion"),
        "as it was scored: KeyError: 'answers' (",
    ),
    "a reward that is not finite": (
        SINGLE,
        ("return float(completion[-1].content == answer)", "return float('nan')"),
        "in the environment is nan; expected a finite number",
    ),
    "env_response that raises": (
        GUESS,
        ('state["guesses"] += 1', "raise RuntimeError('no board')"),
        "as it answered: RuntimeError: no board (",
    ),
    "env_response that reports an error": (
        GUESS,
        ('state["guesses"] += 1', "raise vf.SandboxError('gone')"),
        "SandboxError: gone",
    ),
    "setup_state that raises": (
        GUESS,
        ('state["guesses"] = 0', "raise OSError('disk')"),
        "as it began: OSError: disk (",
    ),
    "answers of another role": (
        GUESS,
        ('[{"role": "user", "content": f"No', '[{"role": "system", "content": f"No'),
        "answers a message with system; one user message can be carried",
    ),
    "answers that are no text": (
        GUESS,
        ('"content": f"No, that was guess {state[\'guesses\']}."}', '"content": [{"type": "text", "text": "No"}]}'),
        "answers with what is no text",
    ),
    "another conversation": (
        GUESS,
        ("    async def env_response", REWRITES + "    async def env_response"),
        "asks with another conversation than the one so far (get_prompt_messages)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
async def test_what_it_does_wrong_is_a_fault_and_no_reward_L2(tmp_path: Path, fault: str) -> None:
    code, change, says = FAULTS[fault]
    assert change[0] in code
    file = write(tmp_path, code.replace(*change))
    (episode,) = await played(file, lambda: Says("3"))
    assert (episode.outcome, episode.reward) == (Outcome.INFRA_FAULT, None)
    assert says in (episode.error or ""), episode.error


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "other rules": (SINGLE, {"rules": "Multiply."}, 'not the domain\'s `rules`; let them be "Add."'),
    "no evaluation data": (
        GUESS,
        {"verifiers": ", evaluation: [train]"},
        "it has no evaluation data set, and gives its training data set in its place; leave `evaluation`",
    ),
    "examples in the prompt": (
        SINGLE.replace("system_prompt=", "few_shot=[{'role': 'user', 'content': 'x'}, {'role': 'assistant', 'content': 'y'}], system_prompt="),
        {},
        "its prompt is system, user, assistant, user; a dialogue begins with the rules",
    ),
    "rewards of a group": (
        SINGLE.replace("def brief(completion):\n    return", "def brief(completions):\n    return [1.0 for _ in completions] or"),
        {},
        "scores rollouts of a group together",
    ),
    "several environments": (
        SINGLE + "\n\none = load_environment\n\n\ndef load_environment():\n    return vf.EnvGroup([one(), one()])\n",
        {},
        "it is a EnvGroup: make a domain of each of its environments, and a suite of them",
    ),
    "something else": (SINGLE.replace("return vf.Single", "return 7\n    return vf.Single"), {}, "it is a int"),
    "a loader that raises": (SINGLE.replace("    rubric =", "    raise OSError('hub')\n    rubric ="), {}, "raised OSError: hub ("),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
async def test_what_cannot_be_carried_is_refused_by_name(tmp_path: Path, what: str) -> None:
    code, settings, says = REFUSED[what]
    domain = load_domain(write(tmp_path, code, **settings))
    with pytest.raises(SpecError, match=re.escape(says)):
        domain.tasks("train")


async def test_another_version_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = type(sys)("verifiers")
    newer.__dict__.update(__version__="0.4.0", __spec__=sys.__spec__)
    monkeypatch.setitem(sys.modules, "verifiers", newer)
    domain: Domain = load_domain(write(tmp_path, "def load_environment():\n    return 1\n"))
    with pytest.raises(
        SetupError, match=r"needs verifiers 0.2; installed is 0.4.0 .*: scripts/inst"
    ):
        domain.tasks("train")
