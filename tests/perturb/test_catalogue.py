"""What the policy is shown for a list of tools, and what becomes of calls by those names."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from perturb_kit import tool

from muarl.messages import ToolCall, ToolSpec
from muarl.perturb.catalogue import Catalogue
from muarl.perturb.dice import Dice
from muarl.perturb.entry import abbreviated, free_name
from muarl.record import UNLISTED, Perturbed
from muarl.spec import PerturbSpec

TOOLS = (
    tool("get_order", "Get an order.", "order_id"),
    tool("send_order", "Send an order.", "order_id", "city"),
    tool("stop"),
)


def catalogue(seed: int = 0, tools: tuple[ToolSpec, ...] = TOOLS, **rates: float) -> Catalogue:
    return Catalogue(tools, Dice(PerturbSpec.model_validate(rates), seed))


def entries(found: Catalogue, name: str) -> list[ToolSpec]:
    return [entry for entry in found.tools if entry.name == name]


def other_than(own: ToolSpec, found: Catalogue) -> ToolSpec:
    (twin,) = (entry for entry in entries(found, own.name) if entry != own)
    return twin


@pytest.mark.parametrize(
    ("kind", "described", "bare"),
    [
        ("twin_bare", False, True),
        ("twin_described", True, True),
        ("twin_misfit", False, False),
        ("twin_described_misfit", True, False),
    ],
)
def test_a_twin_says_and_takes_what_its_kind_says(kind: str, described: bool, bare: bool) -> None:
    found = catalogue(**{kind: 1.0})
    assert len(found.tools) == 6
    twin = other_than(TOOLS[1], found)
    assert twin.description == (TOOLS[1].description if described else "")
    if bare:
        assert twin.parameters["properties"] == {}
    else:
        assert twin.parameters in (TOOLS[0].parameters, TOOLS[2].parameters)
    assert found.acted == [Perturbed(kind, each.name) for each in TOOLS]


def test_a_twin_of_another_kind_says_what_another_tool_says() -> None:
    twin = other_than(TOOLS[0], catalogue(twin_other=1))
    assert any(
        (twin.description, twin.parameters) == (other.description, other.parameters)
        for other in TOOLS[1:]
    )


def test_a_redundant_tool_is_the_tool_by_another_name() -> None:
    found = catalogue(redundant=1)
    more = [entry for entry in found.tools if entry not in TOOLS]
    assert {found.true_name(entry.name) for entry in more} == {each.name for each in TOOLS}
    for entry in more:
        meant = next(each for each in TOOLS if each.name == found.true_name(entry.name))
        assert entry.parameters == meant.parameters
        assert found.refusal(ToolCall("c", entry.name)) is None


@pytest.mark.parametrize("what", ["cost", "time"])
def test_a_decoy_promises_more_takes_nothing_and_does_nothing(what: str) -> None:
    suffix = {"cost": "budget", "time": "fast"}[what]
    for kind, name in (
        (f"{what}_suffix", f"get_order_{suffix}"),
        (f"{what}_neutral", "get_order_1"),
    ):
        found = catalogue(**{kind: 1.0})
        (decoy,), (own,) = entries(found, name), entries(found, "get_order")
        assert decoy.parameters["properties"] == {}
        assert own.parameters == TOOLS[0].parameters
        assert own.description.startswith("Get an order. [")
        assert _number(decoy) < _number(own)
        answer = found.refusal(ToolCall("c", name, {"order_id": "Q12"}))
        assert answer is not None
        assert answer.is_error
        assert answer.instead == kind
        assert found.true_name(name) == name
        assert found.refusal(ToolCall("c", "get_order")) is None
        assert entries(found, "stop") == [TOOLS[2]], "a tool without parameters has no decoy"


def _number(entry: ToolSpec) -> int:
    return int(entry.description.split("[")[1].split()[-2])


@pytest.mark.parametrize("kind", ["cost_abbreviated", "time_abbreviated"])
def test_a_tool_that_goes_by_an_abbreviation_is_not_known_by_its_old_name(kind: str) -> None:
    found = catalogue(**{kind: 1.0})
    assert found.true_name("gt_ordr") == "get_order"
    assert found.refusal(ToolCall("c", "gt_ordr")) is None
    old = found.refusal(ToolCall("c", "get_order"))
    assert old is not None
    assert old.instead == UNLISTED
    assert "gt_ordr" in old.content
    assert "get_order_1" in old.content
    unreadable = found.refusal(ToolCall("c", "get_order_1", error="no JSON"))
    assert unreadable is None, "the server says what is wrong with it"


def test_descriptions_are_said_in_other_words_and_schemas_mean_the_same() -> None:
    before = copy.deepcopy(TOOLS)
    found = catalogue(rephrase_tool=1, rephrase_parameters=1)
    assert before == TOOLS, "the server's own list is left alone"
    for was, now in zip(TOOLS, found.tools, strict=True):
        assert now.name == was.name
        assert (now.description != was.description) == bool(was.description)
        properties = now.parameters["properties"]
        assert properties.keys() == was.parameters["properties"].keys()
        for name, schema in properties.items():
            assert schema.pop("description").lower().count(name.replace("_", " ")) == 1
        assert now.parameters == was.parameters


def test_a_parameter_that_is_described_is_described_otherwise_at_every_depth() -> None:
    inner = {"type": "object", "properties": {"zip": {"type": "string", "description": "Code."}}}
    outer = {"type": "object", "properties": {"to": inner, "any": True}}
    (found,) = catalogue(tools=(ToolSpec("ship", "", outer),), rephrase_parameters=1).tools
    said = found.parameters["properties"]["to"]["properties"]["zip"]["description"]
    assert said != "Code."
    assert "Code." in said
    assert found.parameters["properties"]["any"] is True


@given(
    seed=st.integers(0, 2**62),
    names=st.lists(st.from_regex(r"[a-z_]{1,6}|a{64}", fullmatch=True), min_size=1, unique=True),
    metadata=st.sampled_from([0.0, 0.5, 1.0]),
    action=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_every_tool_can_be_called_by_one_shown_name(
    seed: int, names: list[str], metadata: float, action: float
) -> None:
    tools = tuple(tool(name, "Does it.", *["x"] * (len(name) % 2)) for name in names)
    found = catalogue(seed, tools, observation=1, metadata=metadata, action=action)
    shown = {entry.name for entry in found.tools}
    assert all(0 < len(name) <= 64 for name in shown)
    good = [name for name in shown if found.refusal(ToolCall("c", name)) is None]
    assert {found.true_name(name) for name in good} == set(names)
    renamed = {p.tool for p in found.acted if p.kind.endswith("abbreviated")}
    for name in set(names) - shown:
        assert name in renamed
        assert found.refusal(ToolCall("c", name)) is not None
    for name in shown & set(names):
        assert found.true_name(name) == name, "no new tool takes a tool's name"


def test_rates_are_shares_of_the_tools() -> None:
    many = tuple(tool(f"tool_{number}", "Does it.", "x") for number in range(2000))
    found = catalogue(7, many, redundant=0.3, twin_bare=0.1, cost_suffix=0.2, rephrase_tool=0.5)
    counts = dict.fromkeys(("redundant", "twin_bare", "cost_suffix", "rephrase_tool"), 0)
    for perturbed in found.acted:
        counts[perturbed.kind] += 1
    for kind, share in (
        ("redundant", 0.3),
        ("twin_bare", 0.1),
        ("cost_suffix", 0.2),
        ("rephrase_tool", 0.5),
    ):
        assert counts[kind] / 2000 == pytest.approx(share, abs=0.04), kind


def test_another_kind_changes_no_draw_of_the_first() -> None:
    alone = catalogue(3, rephrase_tool=0.5).acted
    beside = catalogue(3, rephrase_tool=0.5, redundant=0.5, cost_suffix=0.5).acted
    assert [p for p in beside if p.kind == "rephrase_tool"] == alone


def test_names_are_free_and_short_enough() -> None:
    assert free_name("a", {"a", "a_2"}) == "a_3"
    assert free_name("b" * 70, {"b" * 64}) == "b" * 62 + "_2"
    assert abbreviated("cancel_order") == "cncl_ordr"
    assert abbreviated("xyz") == "xy"
    assert abbreviated("q") == "qx"
