"""What worlds cost: forks, memory, equality and differences, over a base of 7 MB.

    python benchmarks/worlds.py --json

The base holds a shop's orders and customers, about as large as that of tau-bench's retail domain. A
dialogue is a fork in which ten orders are read and ten values written. Times are medians. `fork_us`
forks the base, `fork_written_us` a fork with its ten writes, as each turn with tool calls does;
`equal_ms` and `diff_ms` compare two such forks with different writes; `kib_per_fork` is what Python
allocated for forks with their writes, divided by their number; `rss_growth_mb` by how much the
process grew for `live` of them at once, and `live_mb` its whole resident memory then, base included.
`unshared_equal_ms` compares a fork with a copy that shares nothing with it, such as one read back
from another process. The same is measured for a world of tables, where a write is a statement in
SQL: `call_us` is such a statement by the dialogue that called last, `switch_call_us` one by another
dialogue, for which the database is brought to its world first.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import random
import sqlite3
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from _meters import rss_bytes

from muarl.world import World, canonical_diff, diff, equal, plain
from muarl.world.sql import Database, SqlWorld

WRITES = 10
BASE_BYTES = 7_000_000

Write = Callable[[World, random.Random], None]


def base_document(size: int) -> dict[str, Any]:
    """Orders with items, and customers, of about `size` bytes of JSON."""
    rng = random.Random(7)
    orders: dict[str, Any] = {}
    customers: dict[str, Any] = {}
    written = 0
    while written < size:
        number = len(orders)
        order = {
            "customer": f"C{number // 4}",
            "status": rng.choice(("pending", "shipped", "delivered")),
            "items": [
                {"id": f"I{rng.randrange(10**8)}", "name": f"item {rng.randrange(900)}",
                 "price": rng.randrange(100, 90_000) / 100, "options": {"color": "red", "size": "m"}}
                for _ in range(4)
            ],
            "address": {"city": f"city {rng.randrange(300)}", "zip": str(rng.randrange(10**5))},
        }  # fmt: skip
        orders[f"W{number}"] = order
        written += len(json.dumps(order))
        if number % 4 == 0:
            customers[f"C{number // 4}"] = {"name": f"name {number}", "orders": [], "credit": 0.0}
            written += 60
    return {"orders": orders, "customers": customers}


def write_document(world: World, rng: random.Random) -> None:
    """Ten orders looked at and changed, in the several ways in which tools do it."""
    orders = world["orders"]
    keys = world["_keys"]
    for number in range(WRITES):
        order = orders[keys[rng.randrange(len(keys))]]
        if number % 3 == 0:
            order["status"] = f"cancelled {number}"
        elif number % 3 == 1:
            order["address"]["city"] = f"city {number}"
        else:
            order["items"][1]["options"]["color"] = f"blue {number}"


def tables(size: int) -> Database:
    """Orders as a table of about `size` bytes."""
    database = Database()
    database.define(
        "CREATE TABLE orders (id TEXT PRIMARY KEY, customer TEXT, status TEXT, city TEXT, note TEXT)"
    )
    rng = random.Random(7)
    note = "x" * 150
    rows = (
        [f"W{n}", f"C{n // 4}", "pending", f"city {rng.randrange(300)}", note]
        for n in range(size // 200)
    )
    database.insert_columns("orders", ["id", "customer", "status", "city", "note"], rows)
    database.ready()
    return database


def write_table(world: World, rng: random.Random) -> None:
    """One order changed by a statement."""
    assert isinstance(world, SqlWorld)
    number = rng.randrange(len(world.database.base["orders"]))
    parameters = {"id": f"W{number}", "status": f"cancelled {number}"}
    world.database.write(world, ["UPDATE orders SET status = :status WHERE id = :id"], parameters)


def write_tables(world: World, rng: random.Random) -> None:
    """Ten orders changed by a statement each."""
    for _ in range(WRITES):
        write_table(world, rng)


def median_us(work: Callable[[], object], times: int) -> float:
    """Median of single runs, in microseconds; what it makes is kept, as dialogues keep it."""
    took, kept = [], []
    for _ in range(times):
        begin = time.perf_counter()
        made = work()
        took.append(time.perf_counter() - begin)
        kept.append(made)
    return 1e6 * statistics.median(took)


def measured(base: World, write: Write, live: int, times: int) -> dict[str, float]:
    """The figures of one kind of world."""
    rng = random.Random(1)

    def written() -> World:
        world = base.fork()
        write(world, rng)
        return world

    one, other = written(), written()
    assert not equal(one, other)
    assert len(diff(one, other)) >= WRITES
    figures = {
        "fork_us": median_us(base.fork, times),
        "fork_written_us": median_us(one.fork, times),
        "equal_ms": median_us(lambda: equal(one, other), times) / 1e3,
        "equal_same_ms": median_us(lambda: equal(one, one.fork()), times) / 1e3,
        "diff_ms": median_us(lambda: diff(one, other), times) / 1e3,
        "diff_to_base_ms": median_us(lambda: diff(base, one), times) / 1e3,
        "canonical_diff_ms": median_us(lambda: canonical_diff(one, other, one.unordered), times)
        / 1e3,
    }
    gc.collect()
    tracemalloc.start()
    traced = [written() for _ in range(min(live, 256))]
    figures["kib_per_fork"] = tracemalloc.get_traced_memory()[0] / 1024 / len(traced)
    tracemalloc.stop()
    del traced
    gc.collect()
    before = rss_bytes()
    forks = [written() for _ in range(live)]
    figures["live_mb"] = rss_bytes() / 1e6
    figures["rss_growth_mb"] = (rss_bytes() - before) / 1e6
    figures["live"] = len(forks)
    return figures


def documents(size: int, live: int, times: int) -> dict[str, float]:
    """Figures of worlds that are documents."""
    data = base_document(size)
    base_mb = len(json.dumps(data)) / 1e6
    data["_keys"] = list(data["orders"])
    base = World(data)
    figures = measured(base, write_document, live, times)
    fork = base.fork()
    write_document(fork, random.Random(3))
    copy = json.loads(json.dumps(plain(fork)))
    figures["unshared_equal_ms"] = median_us(lambda: equal(fork, copy), 3) / 1e3
    return {"base_mb": base_mb, **figures}


def sql(size: int, live: int, times: int) -> dict[str, float]:
    """Figures of worlds of tables."""
    database = tables(size)
    base_mb = len(json.dumps(database.base)) / 1e6
    base = SqlWorld(database)
    figures = measured(base, write_tables, live, times)
    rng = random.Random(2)
    pair = [base.fork(), base.fork()]
    for world in pair:
        write_tables(world, rng)
    query = "SELECT status FROM orders WHERE id = :id"

    def ask(world: SqlWorld) -> None:
        world.query(query, {"id": f"W{rng.randrange(1000)}"})

    turn = iter(range(10**9))
    figures["call_us"] = median_us(lambda: ask(pair[0]), times)
    figures["switch_call_us"] = median_us(lambda: ask(pair[next(turn) % 2]), times)
    return {"base_mb": base_mb, **figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--live", type=int, default=4096, help="forks that live at once")
    parser.add_argument("--mb", type=float, default=BASE_BYTES / 1e6, help="size of the base")
    parser.add_argument("--times", type=int, default=1000, help="runs of which the median counts")
    args = parser.parse_args()
    size = int(1e6 * args.mb)
    print("documents ...", file=sys.stderr)
    found = documents(size, args.live, args.times)
    gc.collect()
    print("tables ...", file=sys.stderr)
    tabular = sql(size, args.live, args.times)
    figures = {
        "benchmark": "worlds",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "machine": platform.machine(),
        **_rounded(found),
        "sql": _rounded(tabular),
    }
    print(json.dumps(figures, indent=None if args.json else 2))


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in figures.items()}


if __name__ == "__main__":
    main()
