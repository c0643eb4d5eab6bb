"""What customers want: that their phone works again, and that a lost phone's line is suspended.

What makes one task harder than another is drawn independently: how many things are wrong at once, how
many the agent and how many the user has to mend, whether she knows her number, what looks wrong and is
not, a second wish, and whether something stands against mending anything.
"""

from __future__ import annotations

from muarl.goals import Goals, Scene, Unfit, Wish, call, user_call
from muarl.spec import GoldCallSpec, PredicateSpec
from muarl.spec.predicate_kinds import Called

from . import people
from .case import Case, Customer, at, find_line
from .causes import DATA, OBSTACLES, PICTURES, SERVICE, TROUBLES

WORDS = {
    SERVICE: (
        "you cannot call with your phone, and want that mended",
        "your phone has no service, and it should have some",
    ),
    DATA: (
        "you want mobile data to be fast again on your phone",
        "your phone gets no mobile data, or slow, and you want it fast",
    ),
    PICTURES: (
        "you want your phone to send picture messages again",
        "your phone does not send picture messages, and it should",
    ),
}
HELPS = (
    "you look at your phone or change something on it when you are asked to, one thing at a time, say "
    "what you see, and leave it alone otherwise"
)

goals = Goals(
    wishes={1: 0.82, 2: 0.18},
    balance={"refusals": {0: 0.84, 1: 0.16}},
    begin=Customer.drawn,
)


@goals.goal(weight=5, first=True)
def trouble(scene: Scene) -> Wish:
    """Her phone does not do what it should, for one reason or several."""
    case = Case(scene, scene.rng.choice(TROUBLES))
    scene.remark(HELPS)
    return Wish(
        ask=case.trouble,
        words=WORDS[case.trouble],
        gold=case.mending(),
        say=case.said(),
        reward=case.right(),
    )


@goals.goal(weight=2, first=True)
def stuck(scene: Scene) -> Wish:
    """Likewise, but nothing may be changed: she is told why, or transferred."""
    name = scene.rng.choice(list(OBSTACLES))
    obstacle = OBSTACLES[name]
    case = Case(scene, scene.rng.choice(obstacle.behind), obstacle)
    scene.who.stuck = True
    scene.remark(HELPS)
    line = {"line_id": case.line_id}
    plan = people.PLANS[case.line["plan"]]
    why, forbidden = {
        "contract_ended": (case.line["contract_until"], call("resume_line", **line)),
        "plan_without_roaming": (plan["name"], call("set_roaming", **line, to="on")),
        "too_much_data": (plan["most_at_a_time"], call("add_data", **line, gb=case.gb)),
        "stolen": ("", call("resume_line", **line)),
        "sim_blocked": ("", user_call("enter_pin", pin="0000")),
    }[name]
    look = user_call("sim_card") if name == "sim_blocked" else call("get_line", **line)
    return Wish(
        ask=case.trouble,
        words=WORDS[case.trouble],
        gold=case.looks if why else [*case.looks, look, call("transfer_to_human")],
        forbidden=[forbidden],
        say=[why] if why else [],
        reward=[] if why else [before_transfer(look), called(call("transfer_to_human"))],
    )


@goals.goal()
def lost_phone(scene: Scene) -> Wish:
    """Another phone of hers is lost, and its line is to be suspended."""
    customer: Customer = scene.who
    others = list(customer.lines)[1:]
    if scene.wish == 0 or customer.stuck or not others:
        raise Unfit("nobody would ask for that")
    number = customer.lines[scene.rng.choice(others)]["number"]
    key = find_line(scene, "lost_line", number)
    return Wish(
        ask="lost_phone",
        words="you lost the phone with the number {lost_number}, and want its line suspended",
        facts={"lost_number": number},
        gold=[call("suspend_line", line_id=key)],
        reward=[at(f"lines.{key}.status", "suspended")],
    )


def called(made: GoldCallSpec, before: str | None = None) -> PredicateSpec:
    """That a call was made."""
    asked = Called(tool=made.tool, by=made.by, arguments=made.arguments, before=before)
    return PredicateSpec(called=asked)


def before_transfer(look: GoldCallSpec) -> PredicateSpec:
    """That something was looked at first: not everybody is to be transferred."""
    return called(look, "transfer_to_human")
