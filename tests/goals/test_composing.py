"""Tasks composed of goals: solvable, of one outcome, balanced, and the same from the same seed."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from goal_kit import CANCEL, DOMAIN, of_a_new_order, shop

from muarl.domain import Domain
from muarl.errors import SpecError
from muarl.goals import Composition, Goals, compose, histogram
from muarl.spec import TaskSpec

REFUSE = of_a_new_order("refuse", "shipped", "forbidden")


def test_a_domain_has_as_many_tasks_as_it_asks_goals_for(tmp_path: Path) -> None:
    domain = shop(tmp_path, "OPTIONS = {}" + CANCEL)
    tasks = domain.tasks("train")
    assert [task.id for task in tasks] == [f"train-000{i}" for i in range(4)]
    key = tasks[0].gold[0].arguments["order_id"]
    assert tasks[0].goal == f"You want order {key} cancelled."
    assert key in tasks[0].world["orders"]


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    domain = shop(tmp_path, "OPTIONS = {'wishes': {1: 0.5, 2: 0.5}}" + CANCEL + REFUSE)
    one, two, other = (_dumped(composed(domain, count=20, seed=seed).tasks) for seed in (1, 1, 2))
    assert one == two != other


def test_no_name_is_of_two_splits(tmp_path: Path) -> None:
    domain = shop(tmp_path, "OPTIONS = {'wishes': {2: 1.0}}" + CANCEL)
    splits = {"train": 60, "held_out": 40}
    names = {
        split: {
            name
            for task in composed(domain, split=split, splits=splits, count=40).tasks
            for name in task.world["orders"]
        }
        for split in splits
    }
    assert len(names["train"]) > 20 < len(names["held_out"])
    assert not names["train"] & names["held_out"]


def test_tasks_are_balanced_and_few_are_solved_by_doing_nothing(tmp_path: Path) -> None:
    options = "OPTIONS = {'wishes': {1: 0.5, 2: 0.5}, 'balance': {'refusals': {0: 0.7, 1: 0.3}}}"
    composition = composed(shop(tmp_path, options + CANCEL + REFUSE), count=100)
    found = histogram(made.axes for made in composition.made)
    assert abs(found["wishes"][1] - 50) <= 2
    assert abs(found["refusals"][1] - 30) <= 2
    assert found["refusals"].keys() == {0, 1}
    assert found["writes"][0] <= 10  # two thirds of the floor of 0.15
    assert sum(not task.gold for task in composition.tasks) == found["writes"][0]
    assert [made.task.axes for made in composition.made] == [made.axes for made in composition.made]


def test_quotas_that_goals_cannot_meet_are_refused_with_reasons(tmp_path: Path) -> None:
    domain = shop(tmp_path, "OPTIONS = {'balance': {'writes': {3: 1.0}}}" + CANCEL)
    with pytest.raises(
        SpecError, match=r"only 0 of 4 tasks .* enough tasks with this value of writes"
    ):
        domain.tasks("train")


def test_quotas_that_leave_no_way_to_the_last_tasks_are_loosened_and_said(tmp_path: Path) -> None:
    # One wish writes once or never: two writes take two wishes, which a tenth are to have.
    options = (
        "OPTIONS = {'idle': 1.0, 'wishes': {1: 0.9, 2: 0.1}, "
        "'balance': {'writes': {0: 0.1, 2: 0.9}}}"
    )
    composition = composed(shop(tmp_path, options + CANCEL + REFUSE), count=40)
    assert composition.loosened > 10
    assert len(composition.tasks) == 40


def test_what_only_a_tools_answer_holds_is_taken_on_trust_unless_a_query_finds_it(
    tmp_path: Path,
) -> None:
    trusting = """Wish(
        ask="cancel",
        words="you want your lamp back in the shop; your account is {account}",
        facts={"account": "A1"},
        gold=[call("find_orders", account="A1"), call("cancel", order_id="W11")],
    )"""
    one = DOMAIN.replace("train: 4", "train: 1")
    (tmp_path / "trusting").mkdir()
    domain = shop(tmp_path / "trusting", _goal(trusting), domain=one)
    assert composed(domain, count=1).trusted == {"order_id of cancel": 1}
    (tmp_path / "asking").mkdir()
    assert composed(shop(tmp_path / "asking", LAMP), count=1).trusted == {}


LAMP = """
goals = Goals()

@goals.goal()
def lamp(scene):
    account = scene.pick(["A1", "A2"], any_split=True)
    scene.tell("account", account, "your account is {account}")
    lamps = lambda world: (
        key for key, o in world["orders"].items() if o["account"] == account and o["item"] == "lamp"
    )
    key = scene.find("order_id", lamps, by=[call("find_orders", account=account)])
    return Wish(ask="cancel", words="you want your lamp back in the shop", gold=[call("cancel", order_id=key)])
"""


def test_what_several_things_fit_is_not_asked_for(tmp_path: Path) -> None:
    domain = shop(tmp_path, LAMP, domain=DOMAIN.replace("train: 4", "train: 1"))
    composition = composed(domain, count=1, seed=3)
    (task,) = composition.tasks
    assert [call.arguments for call in task.gold] == [{"account": "A1"}, {"order_id": "W11"}]
    assert composition.made[0].axes["finds"] == 1
    for seed in range(8):
        refused = composed(domain, count=1, seed=seed).refused
        if refused:
            assert set(refused) == {"several fit what she says of 'order_id'"}
            break
    else:
        raise AssertionError("A2, who has two lamps, was never drawn")


def test_what_becomes_ambiguous_by_a_later_wish_is_not_asked_for(tmp_path: Path) -> None:
    another = of_a_new_order("another", "pending", "gold", item="lamp").replace(
        "    key =", "    if not scene.wish:\n        raise Unfit('only besides')\n    key =", 1
    )
    source = LAMP.replace("Goals()", "Goals(wishes={2: 1.0})").replace("goal()", "goal(first=True)")
    with pytest.raises(SpecError, match="several fit what she says of 'order_id'"):
        shop(tmp_path, source + another).tasks("train")


TWO = """
goals = Goals(wishes={2: 1.0})

@goals.goal(first=True)
def cancel(scene):
    return Wish(
        ask="cancel",
        words="you want order {order_id} cancelled",
        facts={"order_id": "W11"},
        gold=[call("cancel", order_id="W11")],
    )

@goals.goal()
def pay_out(scene):
    if not scene.world["accounts"]["A1"]["credit"]:
        raise Unfit("there is nothing to be paid out")
    return Wish(
        ask="pay_out",
        words="you want the credit of account {account} paid out",
        facts={"account": "A1"},
        gold=[call("pay_out", account="A1")],
        follows=FOLLOWS,
    )
"""


def test_a_goal_sees_what_the_goals_before_it_made_of_the_world(tmp_path: Path) -> None:
    (task,) = composed(shop(tmp_path, "FOLLOWS = True" + TWO), count=1).tasks
    assert [call.tool for call in task.gold] == ["cancel", "pay_out"]
    assert task.goal.startswith("You want order W11 cancelled. ")


def test_a_goal_that_can_only_come_last_comes_last(tmp_path: Path) -> None:
    last = TWO.replace("goal()", "goal(last=True)").replace("goal(first=True)", "goal()")
    made = composed(shop(tmp_path, "FOLLOWS = True" + last), count=1).tasks
    assert [[call.tool for call in task.gold] for task in made] == [["cancel", "pay_out"]]
    alone = last.replace("goal()", "goal(last=True)")
    (tmp_path / "alone").mkdir()
    with pytest.raises(SpecError, match="all goals are for a last wish"):
        shop(tmp_path / "alone", "FOLLOWS = True" + alone).tasks("train")


def test_wishes_whose_order_matters_must_say_that_they_follow(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="order in which wishes are fulfilled matters"):
        shop(tmp_path, "FOLLOWS = False" + TWO).tasks("train")


def test_parts_of_one_wish_whose_order_matters_are_refused(tmp_path: Path) -> None:
    parts = TWO.replace("wishes={2: 1.0}", "").replace(
        '[call("cancel", order_id="W11")]',
        '[[call("cancel", order_id="W11")], [call("rename", account="A1", nick="W11"), '
        'call("pay_out", account="A1")]]',
    )
    parts = parts.replace('"order_id": "W11"', '"order_id": "W11", "account": "A1"')
    parts = parts.replace("{order_id} cancelled", "{order_id} of {account} cancelled")
    only_first = parts[: parts.index("@goals.goal()\ndef pay_out")]
    with pytest.raises(SpecError, match="order in which wishes are fulfilled matters"):
        shop(tmp_path, only_first).tasks("train")


def _goal(wish: str) -> str:
    return f"goals = Goals(idle=1.0)\n\n@goals.goal()\ndef drawn(scene):\n    return {wish}\n"


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (
            "Wish(ask='cancel', words='you want your lamp back', gold=[call('cancel', order_id='W11')])",
            r"nobody can know what a gold call needs \(order_id = 'W11' of cancel\)",
        ),
        (
            (
                "Wish(ask='cancel', words='you want order {order_id} cancelled', facts={'order_id': 'W11'},"
                " gold=[call('cancel', order_id='W11'), call('cancel', order_id='W11')])"
            ),
            r"a gold call is answered with an error \(cancel: cancelled already\)",
        ),
        (
            (
                "Wish(ask='pay', words='you want the credit of {account}', facts={'account': 'A1'},"
                " gold=[call('pay_out', account='A1')])"
            ),
            "the gold calls change nothing",
        ),
        (
            (
                "Wish(ask='pay', words='you want the credit of {account}', facts={'account': 'A1'},"
                " forbidden=[call('pay_out', account='A1')])"
            ),
            "what the rules forbid would change nothing",
        ),
        (
            (
                "Wish(ask='cancel', words='you want {order_id} cancelled', facts={'order_id': 'W12'},"
                " forbidden=[call('cancel', order_id='W12')], gold=[call('cancel', order_id='W12')])"
            ),
            "'drawn': a wish that the rules forbid has gold calls that write",
        ),
        (
            (
                "Wish(ask='cancel', words='you want something cancelled', facts={'order_id': 'W11'},"
                " gold=[call('cancel', order_id='W11')])"
            ),
            "do not say order_id = 'W11': give the sentence a slot",
        ),
        (
            (
                "Wish(ask='cancel', words='you want {order} cancelled', facts={'order_id': 'W11'},"
                " gold=[call('cancel', order_id='W11')])"
            ),
            r"no fact for \['order'\] in the words",
        ),
        ("'cancel W11'", "goal 'drawn' must return a Wish, it returned 'cancel W11'"),
        (
            "Wish(ask='cancel', words='you want a rest', gold=[user_call('sleep')])",
            "is a call of the user's, and the domain has no `device`",
        ),
        (
            "Wish(ask='cancel', words='you want a rest', personas=['palin'])",
            r"names personas \['palin'\], which the domain has not",
        ),
        ("1 / 0", r"goals.py:goals raised .*division by zero .*goals.py:7, in drawn"),
    ],
)
def test_goals_that_give_no_sound_task_are_refused(tmp_path: Path, wish: str, why: str) -> None:
    with pytest.raises(SpecError, match=why) as refused:
        shop(tmp_path, _goal(wish)).tasks("train")
    assert "domain.yaml:16:10:" in str(refused.value)


def test_a_persona_who_does_not_tell_what_is_needed_does_not_play(tmp_path: Path) -> None:
    domain = shop(tmp_path, "OPTIONS = {}" + CANCEL)
    assert domain.tasks("train")[0].personas == ["plain", "fickle"]


def test_a_change_of_mind_is_for_those_who_change_theirs(tmp_path: Path) -> None:
    wish = """Wish(
        ask="cancel",
        words="you want order {order_id} cancelled",
        facts={"order_id": "W11"},
        instead=Wish(
            ask="cancel",
            words="you want order {order_id} cancelled",
            facts={"order_id": "W21"},
            gold=[call("cancel", order_id="W21")],
        ),
    )"""
    domain = shop(tmp_path, _goal(wish), domain=DOMAIN.replace("train: 4", "train: 1"))
    (task,) = domain.tasks("train")
    assert task.personas == ["fickle"]
    assert "When you are asked to confirm, you change your mind: you want order W21" in task.goal
    assert task.user is not None
    assert task.user.requests[0].instead is not None


def test_what_must_be_said_is_rewarded_and_must_be_known(tmp_path: Path) -> None:
    wish = """Wish(
        ask="nick",
        words="you want to know the status of order {order_id}",
        facts={"order_id": "W11"},
        gold=[call("get_order", order_id="W11")],
        say=["SAID"],
    )"""
    one = DOMAIN.replace("train: 4", "train: 1")
    (tmp_path / "good").mkdir()
    (task,) = shop(tmp_path / "good", _goal(wish).replace("SAID", "pending"), domain=one).tasks(
        "train"
    )
    assert task.reward is not None
    assert [p.said.text if p.said else None for p in task.reward] == [None, "pending"]
    assert task.metrics is not None
    assert [metric.share for metric in task.metrics] == [task.reward], "partial credit"
    (tmp_path / "bad").mkdir()
    with pytest.raises(SpecError, match="'delivered', which must be said"):
        shop(tmp_path / "bad", _goal(wish).replace("SAID", "delivered"), domain=one).tasks("train")


def test_a_goal_that_calls_what_is_no_tool_is_named(tmp_path: Path) -> None:
    """It was taken for one that changes nothing, and refused for that."""
    words = r"goal 'cancel' calls 'cancle', which is no tool of the agent's; did you mean 'cancel'"
    with pytest.raises(SpecError, match=words):
        shop(tmp_path, "OPTIONS = {}" + CANCEL.replace('call("cancel"', 'call("cancle"')).tasks(
            "train"
        )


def test_only_goals_are_taken_for_goals(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"goals.py:goals must be a muarl.goals.Goals, it is 3"):
        shop(tmp_path, "goals = 3").tasks("train")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"balance": {"wrties": {1: 1.0}}}, "unknown axes"),
        ({"balance": {"writes": {1: 0.5}}}, "add up to 1"),
        ({"wishes": {0: 1.0}}, "at least one wish"),
    ],
)
def test_shares_that_are_none_are_refused(options: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Goals(**options)  # type: ignore[arg-type]


def composed(
    domain: Domain,
    *,
    split: str = "train",
    splits: dict[str, int] | None = None,
    seed: int = 0,
    count: int,
) -> Composition:
    """What the shop's goals give."""
    goals = domain.python.load("goals.py:goals", ("tasks", "goals"))

    async def main() -> Composition:
        return await compose(
            goals, domain, split=split, splits=splits or {"train": 1}, seed=seed, count=count
        )

    return anyio.run(main)


def _dumped(tasks: list[TaskSpec]) -> list[str]:
    return [task.model_dump_json() for task in tasks]
