"""Two sets compared on all levels, and the join behind it, which misses nothing."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.overlap import Item, between, of_record, of_task, of_text
from muarl.overlap.join import matches, rarity
from muarl.spec import FactSpec, GoldCallSpec, RequestSpec, TaskSpec, UserGoalSpec

SETS = st.lists(st.frozensets(st.sampled_from("abcdefghijkl"), max_size=8), max_size=8)


def task(name: str, goal: str, order: str, **changes: object) -> TaskSpec:
    facts = [FactSpec(id="order_id", value=order)]
    made = TaskSpec(
        id=name,
        goal=goal,
        personas=["plain"],
        user=UserGoalSpec(requests=[RequestSpec(ask="cancel", facts=facts)]),
        gold=[GoldCallSpec(tool="cancel", arguments={"order_id": order, "by": "A77"})],
    )
    return made.model_copy(update=changes)


@given(first=SETS, second=SETS, threshold=st.sampled_from([0.1, 0.3, 0.5, 0.75, 1.0]))
@settings(max_examples=300, deadline=None)
def test_as_many_pairs_are_found_as_comparing_all_with_all_finds(
    first: list[frozenset[str]], second: list[frozenset[str]], threshold: float
) -> None:
    weight = rarity(first, second)

    def similarity(one: frozenset[str], other: frozenset[str]) -> float:
        either = sum(weight[word] for word in one | other)
        return sum(weight[word] for word in one & other) / either if either else 0.0

    wanted = {
        (i, j): similarity(one, other)
        for i, one in enumerate(first)
        for j, other in enumerate(second)
        if similarity(one, other) >= threshold - 1e-9
    }
    found = {(m.first, m.second): m.similarity for m in matches(first, second, threshold)}
    assert found == pytest.approx(wanted)
    assert [m.second for m in matches(first, second, threshold)] == sorted(
        m.second for m in matches(first, second, threshold)
    )


def test_a_word_weighs_the_more_the_fewer_have_it() -> None:
    weight = rarity([frozenset("ab"), frozenset("a")], [frozenset("a")])
    assert weight == pytest.approx({"a": math.log(2) ** 2, "b": math.log(4) ** 2})


def test_tasks_of_one_template_that_name_other_things_are_not_alike() -> None:
    first = [task(f"t{i}", f"You want order W{i} cancelled.", f"W{i}") for i in range(50)]
    second = [task(f"h{i}", f"You want order V{i} cancelled.", f"V{i}") for i in range(50)]
    assert between([*map(of_task, first)], [*map(of_task, second)]).pairs == ()


def test_the_same_thing_to_do_is_found_in_whatever_words_and_named() -> None:
    others = [task(f"t{i}", f"You want order W{i} cancelled.", f"W{i}") for i in range(5)]
    twin = task("twin", "Somebody is fed up.", "W3")
    found = between([*map(of_task, others)], [of_task(twin)])
    (pair,) = found.pairs
    assert (pair.item, pair.like) == ("twin", "t3")
    assert "exact" in pair.levels
    assert found.counts["exact"] == 1
    assert str(found).startswith("1 of 1 are like one of 5 (1 exactly the same, ")


def test_the_same_words_of_other_worlds_are_alike_and_not_the_same() -> None:
    goal = "Your phone cannot send pictures; you are abroad."
    spec = TaskSpec(id="train", goal=goal, gold=[], world={"device": {"roaming": False}})
    same = spec.model_copy(update={"id": "same"})
    other = spec.model_copy(update={"id": "other", "world": {"device": {"vpn": True}}})
    found = between([of_task(spec)], [of_task(same), of_task(other), of_text("text", goal)])
    assert {pair.item: pair.levels for pair in found.pairs} == {
        "same": ("exact", "words"),
        "other": ("words",),
        "text": ("words",),
    }
    assert found.counts["exact"] == 1


def test_texts_that_share_rare_words_are_alike_whatever_they_are_filled_up_with() -> None:
    filled_up = "please be so kind as to tell me all about"
    first = [of_text(str(i), f"{filled_up} beast{i}x and plant{i}y") for i in range(40)]
    second = [
        of_text("a", "tell me all about beast7x and plant7y"),
        of_text("b", f"{filled_up} it"),
    ]
    found = between(first, second)
    assert [(pair.item, pair.like, pair.levels) for pair in found.pairs] == [
        ("a", "7", ("words", "entities"))
    ]


def test_one_entity_in_common_may_be_by_chance_and_two_are_not() -> None:
    first = [of_text("a", "ann@x.org has W17"), of_text("b", "bob@x.org has W18")]
    one = of_text("one", "what of it, ann@x.org, and others Z1 Z2 Z3")
    both = of_text("both", "W17 belongs to somebody: ann@x.org")
    found = between(first, [one, both])
    assert [(pair.item, pair.like, pair.levels) for pair in found.pairs] == [
        ("both", "a", ("entities",))
    ]


def test_of_several_that_are_alike_the_most_alike_is_named() -> None:
    first = [
        of_text("near", "send W17 to rome by W18"),
        of_text("same", "Send W17 to Oslo by W18!"),
    ]
    (pair,) = between(first, [of_text("x", "send W17 to oslo by W18")]).pairs
    assert pair.like == "same"
    assert pair.levels == ("exact", "words", "entities")


def test_of_a_dialogue_counts_what_the_user_says_and_what_tools_are_called_with() -> None:
    record = {
        "id": "d1",
        "messages": [
            {"role": "system", "content": "You are a shop with W99."},
            {"role": "user", "content": "Cancel it"},
            {"role": "assistant", "content": "Done", "tool_calls": [{"arguments": {"id": "W17"}}]},
        ],
    }
    item = of_record("line 1", record)
    assert item is not None
    assert (item.id, item.words, item.entities) == ("d1", {"cancel", "it"}, {"w17"})


@pytest.mark.parametrize(
    "record",
    [
        {
            "conversations": [
                {"from": "human", "value": "Cancel W17"},
                {"from": "gpt", "value": "W9"},
            ]
        },
        {
            "prompt": [
                {"role": "system", "content": "W99"},
                {"role": "user", "content": "Cancel W17"},
            ]
        },
        {"question": "Cancel W17", "prompt": [{"role": "user", "content": "Hello."}]},
        {"messages": [{"role": "assistant", "content": "Hello W9"}], "text": "Cancel W17"},
        {"text": "Cancel", "answer": {"order": "W17", "why": "because of W18 and others"}},
    ],
)
def test_forms_in_which_others_keep_dialogues_and_tasks_are_read(record: object) -> None:
    item = of_record("x", record)
    assert item is not None
    assert "cancel" in item.words
    assert item.entities == {"w17"}


def dialogue(*calls: object) -> Item:
    messages = [
        {"role": "user", "content": "Hello there"},
        {"role": "assistant", "content": "", "tool_calls": list(calls)},
    ]
    item = of_record("d", {"messages": messages})
    assert item is not None
    return item


LOOKED_UP = {"function": {"name": "get_order", "arguments": '{"order_id": "W17"}'}}
CANCELLED = {"function": {"name": "cancel", "arguments": '{"by": "A77", "order_id": "W17"}'}}


@pytest.mark.parametrize(
    ("calls", "gold", "found"),
    [
        ([LOOKED_UP, CANCELLED], None, True),
        ([{"name": "cancel", "arguments": {"order_id": "W17", "by": "A77"}}], None, True),
        ([LOOKED_UP], None, False),
        ([{"name": "return", "arguments": {"order_id": "W17", "by": "A77"}}], None, False),
        ([CANCELLED], [("cancel", {"order_id": "W17", "by": "A77"}), ("pay", {"sum": 3})], False),
        ([{"name": "pay", "arguments": '{"sum": 3.0}'}], [("pay", {"sum": 3})], True),
        ([{"name": "transfer", "arguments": "{}"}], [("transfer", {})], False),
        ([{"name": "cancel", "arguments": "{broken"}, None, "odd", {"function": 3}], None, False),
        ([{"name": "cancel", "arguments": "[" * 900 + "]" * 900}], None, False),
        (
            [
                {
                    "name": "cancel",
                    "arguments": '{"a": 1e999, "b": "\\ud800", "c": 1000000000000000000000000000000}',
                }
            ],
            None,
            False,
        ),
    ],
)
def test_a_dialogue_is_of_a_task_all_of_whose_gold_calls_it_makes(
    calls: list[object], gold: list[tuple[str, dict[str, object]]] | None, found: bool
) -> None:
    wanted = task("t", "You want it gone", "W17")
    if gold is not None:
        made = [GoldCallSpec(tool=tool, arguments=arguments) for tool, arguments in gold]
        wanted = wanted.model_copy(update={"gold": made})
    for first, second in ((of_task(wanted), dialogue(*calls)), (dialogue(*calls), of_task(wanted))):
        pairs = between([first], [second]).pairs
        assert any("exact" in pair.levels for pair in pairs) is found


@pytest.mark.parametrize("record", [3, None, [], {}, {"score": 3}])
def test_what_says_nothing_is_no_item(record: object) -> None:
    assert of_record("x", record) is None


@pytest.mark.parametrize(
    "spelled",
    [
        str.upper,
        lambda text: text.translate(str.maketrans("aeocp", "аеоср")),
        "\u200b".join,
        lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
        lambda text: text.replace("a", "a\u0301"),
    ],
    ids=["capitals", "cyrillic", "zero width", "full width", "accents"],
)
def test_letters_that_only_look_alike_hide_nothing(spelled: Callable[[str], str]) -> None:
    text = "You are ann_48, and want order W2378 cancelled."
    found = between([of_text("a", text)], [of_text("b", spelled(text))])
    assert [pair.levels for pair in found.pairs] == [("exact", "words", "entities")]
