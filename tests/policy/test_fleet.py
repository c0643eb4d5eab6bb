"""Which endpoint gets a message: the same in every process, evenly, and with little moving."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from muarl.policy.fleet import Fleet

URLS = [f"http://10.0.0.{number}:8000" for number in range(4)]
dialogues = st.lists(st.text(max_size=30), min_size=1, max_size=30, unique=True)


def home(fleet: Fleet, dialogue: str) -> str:
    chosen = fleet.choose(dialogue, 0.0)
    assert chosen is not None
    return chosen[0].url


@given(dialogues)
def test_a_dialogue_has_one_home_whatever_the_order_of_endpoints(names: list[str]) -> None:
    for name in names:
        assert home(Fleet(URLS), name) == home(Fleet(reversed(URLS)), name)


def test_another_process_sends_it_to_the_same_home() -> None:
    code = (
        "from muarl.policy.fleet import Fleet\n"
        f"print(*(Fleet({URLS!r}).ranked(str(n))[0].url for n in range(50)), sep='\\n')"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert there.stdout.split() == [home(Fleet(URLS), str(number)) for number in range(50)]


@given(dialogues, st.sampled_from(range(4)))
def test_when_one_falls_out_only_its_own_dialogues_move(names: list[str], gone: int) -> None:
    whole, less = Fleet(URLS), Fleet(URLS)
    less.endpoints[gone].is_stale = True
    for name in names:
        before, after = home(whole, name), home(less, name)
        assert after != URLS[gone]
        assert before in (after, URLS[gone])


def test_dialogues_spread_evenly() -> None:
    homes = Counter(home(Fleet(URLS), f"train/3/task-{n // 8}/{n % 8}") for n in range(4000))
    assert all(900 <= count <= 1100 for count in homes.values())


def test_barred_and_open_endpoints_are_passed_over() -> None:
    fleet = Fleet(URLS)
    first, second, third, last = fleet.ranked("d")
    chosen = fleet.choose("d", 0.0, {first: 1.0})
    assert chosen is not None
    assert chosen[0] is second
    permits = [second.breaker.admit(0.0) for _ in range(8)]
    for permit in permits:
        assert permit is not None
        second.breaker.failed(permit, 0.0)
    third.is_stale = True
    chosen = fleet.choose("d", 0.0, {first: 1.0})
    assert chosen is not None
    assert chosen[0] is last
    assert fleet.choose("d", 0.0, {first: 1.0, last: 1.0}) is None
