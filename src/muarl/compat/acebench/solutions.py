"""Calls that reach a task's published end: its milestones, with what they lack.

A third of the published milestones do not lead there. They forget to log in, order what is not on
the menu by its whole name, or delete another message than the answer does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import structs

from muarl.compat.acebench.calls import Call, parsed
from muarl.compat.acebench.entries import Entry
from muarl.compat.acebench.environment import Environment
from muarl.compat.acebench.score import end_to_end, mended, saved
from muarl.world import World

_ON_WIFI = {"send_message", "login_food_platform"}
_LOGGED_IN = {
    *("send_message", "delete_message", "view_messages_between_users"),
    *("get_latest_message_id", "get_earliest_message_id", "get_all_message_times_with_ids"),
    *("add_reminder", "delete_reminder", "view_reminder_by_title"),
}


def solution(entry: Entry, begin: Callable[[], World]) -> tuple[list[Call], bool]:
    """Calls in order, of the first alternative that reaches the end, or else of the first.

    Args:
        entry: The task.
        begin: Makes the world it begins with.

    Returns:
        The calls, and whether they reach the end.
    """
    found = []
    for stones in entry.milestones:
        calls, world = _played(entry, stones, begin())
        if end_to_end(saved(world), entry.gold).valid:
            return calls, True
        found.append(calls)
    return found[0], False


def _played(entry: Entry, stones: Sequence[str], world: World) -> tuple[list[Call], World]:
    environment = Environment(world, entry.involved, entry.language, entry.kind)
    calls: list[Call] = []
    for stone in stones:
        for call in parsed(mended(stone)):
            for each in _with_what_it_lacks(call, entry, world):
                environment.run([each])
                calls.append(each)
    return calls, world


def _with_what_it_lacks(call: Call, entry: Entry, world: World) -> Iterator[Call]:
    """A call after those without which it would be refused, and the same with what it must name."""
    if call.name == "add_food_delivery_order":
        food = world["FoodPlatform"]
        call = _with_whole_names(call, food)
        if (name := call.arguments["username"]) not in food["logged_in_users"]:
            known = {"username": name, "password": food["users"][name]["password"]}
            yield from _with_what_it_lacks(Call("login_food_platform", known), entry, world)
    elif call.name in ("get_earliest_message_id", "get_latest_message_id", "delete_message"):
        call = _of_the_right_message(call, _to_delete(entry, world), world)
    device = world.get("BaseApi", {})
    if call.name in _LOGGED_IN and not device.get("logged_in"):
        yield Call("login_device", {})
    if call.name in _ON_WIFI and not device.get("wifi"):
        yield Call("turn_on_wifi", {})
    yield call


def _with_whole_names(call: Call, food: Any) -> Call:
    menu = food["merchant_list"][call.arguments["merchant_name"]]["menu"]
    names = [dish["product"] for dish in menu]
    items = [
        {**item, "product": next(n for n in names if n.startswith(item["product"]))}
        for item in call.arguments["items"]
    ]
    return structs.replace(call, arguments={**call.arguments, "items": items})


def _to_delete(entry: Entry, world: World) -> list[str]:
    """Messages that are there and that the answer does not hold."""
    kept = [held["MessageApi"]["inbox"] for held in entry.gold if "MessageApi" in held]
    return [key for key in world["MessageApi"]["inbox"] if kept and key not in kept[0]]


def _of_the_right_message(call: Call, gone: list[str], world: World) -> Call:
    if not gone:
        return call
    if call.name == "delete_message":
        right = str(call.arguments["message_id"]) in gone
        return call if right else Call(call.name, {"message_id": int(gone[0])})
    times = {key: message["time"] for key, message in world["MessageApi"]["inbox"].items()}
    ends = {
        "earliest": min(times, key=times.__getitem__),
        "latest": max(times, key=times.__getitem__),
    }
    asked = "earliest" if "earliest" in call.name else "latest"
    other = "latest" if asked == "earliest" else "earliest"
    swap = ends[asked] not in gone and ends[other] in gone
    return Call(f"get_{other}_message_id", {}) if swap else call
