"""Users and predicates of a package take part in dialogues; what they raise is theirs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
import pytest
from plugin_kit import BOTH, PATIENT, Install
from spec_files import spoil

from muarl.cli import main
from muarl.domain import load_domain
from muarl.record import Episode, Outcome, read_journal
from muarl.spec import load_run
from muarl.testing import play_agents


@pytest.fixture
def shop(folder: Path) -> Path:
    spoil(folder / "domain.yaml", "reward:", "expert: expert.py:Expert\nreward:")
    spoil(folder / "tasks.yaml", "id: cancel-1", "id: cancel-1\n    split: held_out")
    return folder


def named(shop: Path, user: str = "{plugin: patient}", predicate: str = "") -> None:
    (shop / "run.yaml").write_text(
        "version: 1\ndomain: domain.yaml\nmodel: {tiny: {}}\n"
        f"user: {user}\nrollout: {{attempts: 2, retry_wait_s: 0, max_fault_rate: 1}}\n",
        encoding="utf-8",
    )
    if predicate:
        spoil(
            shop / "domain.yaml", "  - gold_world: true", f"  - gold_world: true\n  - {predicate}"
        )


def rolled_out(shop: Path, episodes: int = 1) -> list[Episode]:
    out = shop.parent / "out"
    arguments = ["rollout", str(shop / "run.yaml"), "--expert", "--episodes", str(episodes)]
    assert main([*arguments, "--out", str(out), "--overwrite"]) == 0
    return list(read_journal(out / "episodes.journal"))


def played(shop: Path) -> Episode:
    """One dialogue of the expert's, without a run's folder."""
    run = load_run(shop / "run.yaml")
    domain = load_domain(shop)

    async def play() -> list[Episode]:
        tasks = domain.tasks("held_out")
        return await play_agents(
            domain, tasks, lambda task, rng: domain.expert(task, {}, rng), user=run.spec.user
        )

    (episode,) = anyio.run(play)
    return episode


def test_they_take_part_in_a_rollout(shop: Path, install: Install) -> None:
    install(PATIENT, *BOTH)
    named(shop, "{plugin: {patient: {opening: Cancel W1!}}}", "plugin: {brief: {chars: 40}}")
    (episode,) = rolled_out(shop)
    assert (episode.opening.text, episode.outcome, episode.reward) == (
        "Cancel W1!",
        Outcome.COMPLETED,
        1.0,
    )
    assert [turn.reply.text for turn in episode.turns if turn.reply] == ["Yes.", "Yes.", "Bye."]
    found = {result.name: (result.score, result.reason) for result in episode.rewards}
    assert found["plugin brief"] == (1.0, "the longest message has 20 characters")


def test_check_says_who_provides_what(
    shop: Path, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(PATIENT, *BOTH, "muarl.users: twin = patient")
    named(shop, predicate="plugin: {brief: {chars: 40}}")
    assert main(["check", str(shop / "run.yaml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:5] == [
        f"  predicate 'brief' is provided by shop-plugins 0.1 ({shop}/domain.yaml:40:13)",
        f"  user 'patient' is provided by shop-plugins 0.1 ({shop}/run.yaml:4:16)",
        "  also installed: user 'twin' (shop-plugins 0.1)",
    ]
    assert lines[-1] == "sound"
    for offline in ([], ["--offline"]):
        assert main(["check", str(shop / "run.yaml"), "--json", *offline]) == 0
        found = json.loads(capsys.readouterr().out)["plugins"]
        assert found == [
            {
                "kind": kind,
                "name": name,
                "package": "shop-plugins",
                "version": "0.1",
                "at": place and f"{shop}/{place}",
            }
            for kind, name, place in (
                ("predicate", "brief", "domain.yaml:40:13"),
                ("user", "patient", "run.yaml:4:16"),
                ("user", "twin", None),
            )
        ]


def test_check_tells_of_plug_ins_that_a_grid_names(
    shop: Path, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(PATIENT, *BOTH)
    named(shop, "{scripted: {}}")
    (shop / "grid.yaml").write_text(
        "version: 1\nrun: run.yaml\npolicies: {idle: {trivial: do_nothing}}\n"
        "users: {hers: {plugin: patient}}\n"
    )
    assert main(["check", str(shop / "grid.yaml"), "--offline"]) == 0
    said = f"  user 'patient' is provided by shop-plugins 0.1 ({shop}/grid.yaml:4:24)"
    assert said in capsys.readouterr().out.splitlines()


def test_the_doctor_tells_which_are_installed_and_which_are_broken(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(PATIENT, *BOTH, "muarl.sinks: gone = nothing")
    assert main(["doctor", "--json"]) in (0, 1)
    found = json.loads(capsys.readouterr().out)["findings"]
    of_plugins = {each["name"]: each for each in found if each["area"] == "plug-ins"}
    assert of_plugins["user patient"]["words"] == "shop-plugins 0.1"
    assert of_plugins["sink gone"]["state"] == "missing"
    assert "has no attribute 'nothing'" in of_plugins["sink gone"]["words"]


def test_a_run_and_its_episodes_keep_who_provided_what(
    shop: Path, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(PATIENT, *BOTH)
    named(shop, predicate="plugin: {brief: {chars: 40}}")
    rolled_out(shop)
    recorded = json.loads((shop.parent / "out" / "domain.json").read_text())
    assert recorded["plug-ins"] == {
        "predicate brief": "shop-plugins 0.1",
        "user patient": "shop-plugins 0.1",
    }


def test_a_fault_of_hers_is_tried_again(
    shop: Path, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(PATIENT.replace("self.left -= 1", "self.lost -= 1"), *BOTH)
    named(shop)
    (episode,) = rolled_out(shop)
    assert episode.outcome == Outcome.USER_FAULT
    assert "faults: 2 UserError; 1 tried again" in capsys.readouterr().out


def test_a_key_that_an_option_names_the_variable_of_stays_out_of_the_log(
    shop: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
import os
from muarl.plugins import *


class Account(Options):
    \"\"\"Whose.\"\"\"

    api_key_env: EnvName
    \"\"\"Variable that holds the key.\"\"\"


class User:
    def __init__(self, account, scene):
        self.key = os.environ[account.api_key_env]

    async def open(self):
        raise UserError("refused: " + self.key)

    async def reply(self, text): ...


user = UserPlugin(Account, User)
"""
    install(code, "muarl.users: paid = user")
    monkeypatch.setenv("PAID_KEY", "sk-4Fz81qLw0")
    named(shop, "{plugin: {paid: {api_key_env: PAID_KEY}}}")
    rolled_out(shop)
    log = (shop.parent / "out" / "log.jsonl").read_text()
    assert "refused: " in log
    assert "sk-4Fz81qLw0" not in log


def test_another_version_is_another_domain_and_a_resumed_run_refuses_it(
    shop: Path,
    install: Install,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    named(shop, predicate="plugin: {brief: {chars: 40}}")
    install(PATIENT, *BOTH, version="0.1")
    (before,) = rolled_out(shop)
    monkeypatch.setattr(sys, "path", sys.path[1:])  # uninstalled
    install(PATIENT, *BOTH, version="0.2")
    run = ["rollout", str(shop / "run.yaml"), "--expert", "--episodes", "1"]
    capsys.readouterr()
    assert main([*run, "--out", str(shop.parent / "out"), "--resume"]) != 0
    error = capsys.readouterr().err
    for what in ("predicate brief", "user patient"):
        assert f"plug-ins.{what}: 'shop-plugins 0.1' -> 'shop-plugins 0.2'" in error
    (after,) = rolled_out(shop)
    assert before.content_hash != after.content_hash


RAISES = """\
from muarl.plugins import *


class User:
    def __init__(self, options, scene):
        FIRST

    async def open(self):
        OPEN

    async def reply(self, text):
        REPLY


user = UserPlugin(Options, User)
"""
HELLO = 'return UserReply("Cancel W1.")'


@pytest.mark.parametrize(
    ("opens", "replies", "said"),
    [
        ("{}['x']", "pass", "raised in open: KeyError: 'x' ({module}:9, in open)"),
        (
            HELLO,
            "1 / 0",
            "raised in reply: ZeroDivisionError: division by zero ({module}:12, in reply)",
        ),
        (HELLO, "raise SystemExit(2)", "raised in reply: SystemExit: 2 ({module}:12, in reply)"),
        (HELLO, "return 'Yes.'", "reply returned a str, not a muarl.plugins.UserReply"),
        (HELLO, "return UserReply(3)", "text and act of what reply returned must be text"),
        (HELLO, "return UserReply('\\ud800')", "what reply returned is no text"),
        (
            HELLO,
            "return UserReply('No.', stop='no')",
            "is no UserReply: Expected `bool`, got `str` - at `$.stop`",
        ),
        (
            HELLO,
            "return UserReply('No.', results=[1])",
            "is no UserReply: Expected `object`, got `int`",
        ),
        (
            HELLO,
            "return UserReply('No.', knobs=(object(),))",
            "what reply returned is no UserReply",
        ),
        (HELLO, "raise UserError('she forgot who she is')", "she forgot who she is"),
    ],
)
def test_what_a_user_raises_in_a_dialogue_is_her_fault(
    shop: Path, install: Install, tmp_path: Path, opens: str, replies: str, said: str
) -> None:
    code = RAISES.replace("FIRST", "pass").replace("OPEN", opens).replace("REPLY", replies)
    name = install(code, "muarl.users: rude = user")
    (module,) = tmp_path.glob(f"*/{name}.py")
    named(shop, "{plugin: rude}")
    episode = played(shop)
    assert (episode.outcome, episode.reward) == (Outcome.USER_FAULT, None)
    assert episode.error is not None
    assert said.format(module=module) in episode.error
    if "forgot" not in said:
        assert "the user 'rude' of shop-plugins 0.1" in episode.error


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            RAISES.replace("FIRST", "scene.task.nothing").replace("OPEN", "pass"),
            "the user 'rude' of shop-plugins 0.1 raised for task 'cancel-1' as 'plain': AttributeError",
        ),
        (
            "from muarl.plugins import *\nuser = UserPlugin(Options, lambda options, scene: 'me')",
            (
                "the user 'rude' of shop-plugins 0.1 made a str, which is no user: it lacks `async def open` "
                "and `async def reply` (muarl.plugins.User)"
            ),
        ),
    ],
)
def test_a_user_who_cannot_be_made_is_refused_where_she_is_named(
    shop: Path, install: Install, capsys: pytest.CaptureFixture[str], code: str, said: str
) -> None:
    install(code.replace("REPLY", "pass"), "muarl.users: rude = user")
    named(shop, "{plugin: rude}")
    assert main(["check", str(shop / "run.yaml")]) == 2
    error = capsys.readouterr().err
    assert f"{shop}/run.yaml:4:7: {said}" in error
    assert "Traceback" not in error


PREDICATE = """\
from muarl.plugins import *


def check(options, evidence):
    evidence.world["orders"]["W1"]["status"] = "spoilt"
    ANSWER


async def slowly(options, evidence):
    return check(options, evidence)


rule = PredicatePlugin(Options, CHECK)
"""


@pytest.mark.parametrize("function", ["check", "slowly"])
@pytest.mark.parametrize(
    ("answer", "score", "reason"),
    [
        ("return True", 1.0, "the predicate 'rule' of shop-plugins 0.1 returned True"),
        ("return 0.5, 'half of it'", 0.5, "half of it"),
    ],
)
def test_a_predicate_may_be_async_and_changes_nothing_by_looking(
    shop: Path, install: Install, function: str, answer: str, score: float, reason: str
) -> None:
    code = PREDICATE.replace("ANSWER", answer).replace("CHECK", function)
    install(code + PATIENT, "muarl.predicates: rule = rule", BOTH[0])
    named(shop, predicate="plugin: rule")
    episode = played(shop)
    assert [(r.score, r.reason) for r in episode.rewards if r.name == "plugin rule"] == [
        (score, reason)
    ]
    assert [change.after for change in episode.changes] == ["cancelled"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            "return 'yes'",
            "it returned 'yes' (str); expected true or false, a score in [0, 1], None",
        ),
        ("{}['x']", "it raised KeyError: 'x' ({module}:6, in check)"),
        ("raise KeyboardInterrupt", "it raised KeyboardInterrupt ({module}:6, in check)"),
        ("raise EpisodeError('the judge is out')", "the judge is out"),
    ],
)
def test_what_a_predicate_raises_is_a_fault_and_no_score(
    shop: Path, install: Install, tmp_path: Path, answer: str, said: str
) -> None:
    code = PREDICATE.replace("ANSWER", answer).replace("CHECK", "check")
    name = install(code + PATIENT, "muarl.predicates: rule = rule", BOTH[0])
    (module,) = tmp_path.glob(f"*/{name}.py")
    named(shop, predicate="plugin: rule")
    episode = played(shop)
    assert (episode.outcome, episode.reward) == (Outcome.INFRA_FAULT, None)
    assert episode.error is not None
    assert said.format(module=module) in episode.error


@pytest.mark.parametrize("says", [", says=lambda options: ['W1 is gone.']", ""])
def test_check_says_what_a_predicate_wants_said_or_asks_for_it(
    shop: Path, install: Install, capsys: pytest.CaptureFixture[str], says: str
) -> None:
    install(
        "from muarl.plugins import *\n"
        "def check(options, evidence):\n"
        "    return any('W1 is gone' in text for _, text in evidence.heard())\n"
        f"rule = PredicatePlugin(Options, check{says})\n",
        "muarl.predicates: rule = rule",
    )
    spoil(shop / "domain.yaml", "expert: expert.py:Expert\n", "")
    spoil(shop / "domain.yaml", "  - gold_world: true", "  - gold_world: true\n  - plugin: rule")
    code, out = main(["check", str(shop)]), capsys.readouterr().out
    assert code == (0 if says else 1), out
    assert ("its PredicatePlugin needs `says=`" in out) == (not says)
