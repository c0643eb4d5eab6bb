"""The telecom help desk: sound, solved by both sides together, and in step whatever they do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.data.proof import Check, Proof, prove
from muarl.domain import Domain, load_domain
from muarl.errors import SpecError
from muarl.goals import Composition
from muarl.messages import ToolCall
from muarl.record import Episode
from muarl.spec import TaskSpec
from muarl.spec.calls import Who
from muarl.testing.playing import play_agents
from muarl.world import equal, plain

TELECOM = Path(__file__).parents[2] / "domains" / "telecom"
SPLITS = "splits: {train: 300, held_out: 100}"


@cache
def telecom() -> Domain:
    return load_domain(TELECOM)


@cache
def composition() -> Composition:
    """Enough tasks that everything occurs."""
    return telecom().task_source.composition("held_out", count=50, seed=3)


def tasks() -> list[TaskSpec]:
    return composition().tasks


def play(played: Sequence[TaskSpec], **imperfections: float) -> list[Episode]:
    async def main() -> list[Episode]:
        return await play_agents(
            telecom(), played, lambda task, rng: telecom().expert(task, imperfections, rng)
        )

    return anyio.run(main)


def success(episodes: Sequence[Episode]) -> float:
    return sum(episode.reward or 0 for episode in episodes) / len(episodes)


def test_fewer_tasks_of_the_same_goals_are_sound(tmp_path: Path) -> None:
    folder = shutil.copytree(TELECOM, tmp_path / "telecom")
    spec = (folder / "domain.yaml").read_text()
    assert SPLITS in spec
    (folder / "domain.yaml").write_text(spec.replace(SPLITS, "splits: {train: 8, held_out: 4}"))

    async def main() -> Proof:
        return await prove(load_domain(folder))

    found = anyio.run(main)
    # So few tasks need not use every tool; those of the domain do, as docs/gallery.md says.
    others = [each for each in found.findings if each.check != Check.COVERAGE]
    assert [str(finding.problem) for finding in others] == []
    assert found.skipped == []
    assert all(mean.value == 1 for mean in found.expert.values())
    assert "ask_for_everything" in found.floor
    floors = [mean.value for means in found.floor.values() for mean in means.values()]
    assert max(value or 0 for value in floors) <= 0.15


def test_the_world_is_as_large_as_the_original() -> None:
    sizes = {kind: len(records) for kind, records in telecom().base.items() if kind != "device"}
    assert sizes == {"customers": 4, "lines": 9, "plans": 5, "bills": 6}
    assert telecom().base == load_domain(TELECOM).base


def test_the_same_seed_gives_the_same_tasks_L5() -> None:
    one, two = (
        load_domain(TELECOM).task_source.composition("train", count=6, seed=1) for _ in range(2)
    )
    assert [task.model_dump_json() for task in one.tasks] == [
        task.model_dump_json() for task in two.tasks
    ]


# --- what the tasks are ---------------------------------------------------------------------------


def test_the_tasks_differ_along_all_axes() -> None:
    made = composition().made
    values = {axis: {composed.axes[axis] for composed in made} for axis in made[0].axes}
    assert values["refusals"] == {0, 1}
    assert values["wishes"] == {1, 2}
    assert values["finds"] >= {1, 2}
    assert values["writes"] >= {0, 1, 2, 3, 4, 5, 6}
    by = [{call.by for call in task.gold} for task in tasks()]
    assert {"agent", "user"} in by


def test_what_is_refused_leaves_the_world_alone_and_is_no_work_for_nobody() -> None:
    """A refusal is paid for only if she is told why, or transferred after a look."""

    async def unchanged(task: TaskSpec) -> bool:
        return telecom().world_for(task) == await telecom().gold_world(task)

    refusals = [task for task in tasks() if anyio.run(unchanged, task)]
    assert 4 <= len(refusals) <= 12
    for task in refusals:
        kinds = {predicate.kind for predicate in task.reward or ()}
        assert kinds & {"said", "called"}


def test_the_expert_serves_every_persona_of_every_task() -> None:
    played = [
        task.model_copy(update={"personas": [who]})
        for task in tasks()[:20]
        for who in task.personas
    ]
    ids = {f"{task.id}-{task.personas[0]}": task for task in played}
    episodes = play([task.model_copy(update={"id": name}) for name, task in ids.items()])
    assert [e.key.task_id for e in episodes if e.reward != 1] == []
    assert {e.persona for e in episodes} == {"skilled", "plain", "beginner"}
    for episode in episodes:
        partial, confirmed = episode.metrics
        assert (partial.name, partial.score) == ("share", 1)
        assert confirmed.score in (None, 1)


@pytest.mark.parametrize(
    ("habit", "refused", "most"), [("overdo", 0, 0.1), ("quit", 0, 0.2), ("comply", 1, 0.5)]
)
def test_a_bad_habit_does_not_pay(habit: str, refused: int, most: float) -> None:
    """`overdo` is the agent that mends whatever looks wrong: what is harmless must not be touched."""
    made = [one.task for one in composition().made if one.axes["refusals"] == refused]
    assert success(play(made[:16], **{habit: 1.0})) <= most


def test_an_unknown_habit_is_refused() -> None:
    with pytest.raises(SpecError, match="unknown imperfections"):
        play(tasks()[:1], lazy=1.0)


def test_half_of_the_work_earns_a_part_of_the_share() -> None:
    shares = [episode.metrics[0].score or 0 for episode in play(tasks()[:12], quit=1.0)]
    assert any(0 < share < 1 for share in shares)


# --- users ----------------------------------------------------------------------------------------


def test_a_user_does_one_thing_a_message_and_nothing_unasked() -> None:
    for episode in play(tasks()[:6]):
        for turn in episode.turns:
            if turn.reply is not None:
                did = turn.reply.act.startswith(("did:", "failed:"))
                assert len(turn.reply.calls) == did


def test_a_beginner_has_to_be_told_in_plain_words() -> None:
    novice = [task.model_copy(update={"personas": ["beginner"]}) for task in tasks()[:8]]
    others = [task.model_copy(update={"personas": ["plain"]}) for task in tasks()[:8]]
    unclear = [
        sum(turn.reply.act == "unclear" for e in play(played) for turn in e.turns if turn.reply)
        for played in (novice, others)
    ]
    assert unclear[0] > 3
    assert unclear[1] == 0


# --- two worlds in step ---------------------------------------------------------------------------

SWITCHES = ("airplane_mode", "mobile_data", "data_roaming", "data_saver", "wifi_calling")
ONOFF = st.sampled_from(["on", "off"])
MODES = st.sampled_from(["automatic", "4g only", "3g only", "2g only"])


def acts(task: TaskSpec) -> st.SearchStrategy[tuple[Who, str, dict[str, Any]]]:
    """Any call of either side."""
    lines, bills = (st.sampled_from(sorted(task.world[kind])) for kind in ("lines", "bills"))

    def of(who: Who, tool: str, **arguments: st.SearchStrategy[Any]) -> Any:
        return st.tuples(st.just(who), st.just(tool), st.fixed_dictionaries(arguments))

    pins = st.sampled_from(["0000", "1111", task.world["device"].get("pin", "0000")])
    permission = st.sampled_from(["storage", "sms"])
    return st.one_of(
        *(of("user", f"set_{key}", to=ONOFF) for key in SWITCHES),
        of("user", "set_network_mode", to=MODES),
        *(of("user", tool) for tool in ("restart", "pay", "reseat_sim", "reset_access_point")),
        of("user", "disconnect_vpn"),
        of("user", "enter_pin", pin=pins),
        of("user", "allow", permission=permission),
        of("agent", "resume_line", line_id=lines),
        of("agent", "suspend_line", line_id=lines),
        of("agent", "set_roaming", line_id=lines, to=ONOFF),
        of("agent", "add_data", line_id=lines, gb=st.integers(1, 5)),
        of("agent", "request_payment", bill_id=bills),
    )


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_whatever_either_side_does_both_stay_in_step(data: st.DataObject) -> None:
    task = tasks()[data.draw(st.integers(0, len(tasks()) - 1))]
    calls = data.draw(st.lists(acts(task), max_size=12))
    sync = telecom().sync
    assert sync is not None

    async def main() -> None:
        world = telecom().world_for(task)
        async with telecom().sides(world) as sides:
            before = plain(world)
            for who, tool, arguments in calls:
                result = await sides[who].call(ToolCall("c", tool, arguments))
                now = plain(world)
                if result.is_error and tool != "enter_pin":
                    assert equal(before, now), f"{tool} was refused and changed something"
                assert list(broken(before, now)) == []
                again = world.fork()
                sync(again)
                assert again == world, "run again, it changes nothing"
                before = now

    anyio.run(main)


def broken(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Invariants of a phone and its account that do not hold."""
    phone, works = now["device"], now["device"]["works"]
    line = now["lines"][phone["line"]]
    if works["calls"] and (phone["airplane_mode"] == "on" or phone["sim"] != "ready"):
        yield "service in airplane mode or without a SIM card"
    if works["calls"] and line["status"] != "active":
        yield "service on a line that is suspended"
    if works["data"] != "none" and not (works["calls"] and line["gb_left"] > 0):
        yield "mobile data without service, or where none is left"
    if works["pictures"] and works["data"] == "none":
        yield "pictures without mobile data"
    if phone["registered"] and line["status"] != "active":
        yield "registered with a line that is suspended"
    if any(phone["carrier"][key] != line[key] for key in phone["carrier"]):
        yield "the phone shows another line than the carrier has"
    if before["device"]["sim"] == "blocked" != phone["sim"]:
        yield "a blocked SIM card came back"
    requested = [key for key, bill in now["bills"].items() if bill["status"] == "requested"]
    if requested != ([phone["payment_request"]["bill"]] if phone["payment_request"] else []):
        yield "what is requested does not stand on the phone"
    for key, bill in before["bills"].items():
        if bill["status"] == "paid" and now["bills"][key]["status"] != "paid":
            yield "a paid bill is open again"


def test_after_a_line_is_resumed_only_a_restart_brings_service() -> None:
    suspended = next(
        task
        for task in tasks()
        if [call.tool for call in task.gold if call.by == "user"] == ["restart"]
        or {"resume_line", "restart"} <= {call.tool for call in task.gold}
    )

    async def main() -> tuple[bool, bool]:
        world = telecom().world_for(suspended)
        async with telecom().sides(world) as sides:
            for call in suspended.gold:
                if call.tool != "restart":
                    await sides[call.by].call(ToolCall("c", call.tool, call.arguments))
            resumed = bool(world["device"]["works"]["calls"])
            await sides["user"].call(ToolCall("c", "restart", {}))
            return resumed, bool(world["device"]["works"]["calls"])

    assert anyio.run(main) == (False, True)
