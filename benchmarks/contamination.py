"""The guard against contamination: how fast it compares two sets of tasks, and whether it finds what is known.

    python benchmarks/contamination.py --json

`compare_s` is the comparison of 3,000 tasks with 3,000 others on all levels, from tasks in memory to named
pairs; a hundred of the second set are planted, copies of tasks of the first with a word changed, with
words in another order, or with another goal for the same deed; `planted_found` says how many of them were
found, and `false_alarms` how many of the others were named. The tasks are the shipped desk's, whose
training and other tasks share no entity. `long_s` is the same for texts of about a hundred words each.

`tau_retail` and `tau_airline` are the tau2-bench tasks that are like one of tau-bench's test tasks in words,
`..._entities` those that name the same, `..._of` how many there are. They are read from `--data FOLDER`
(default `../shared/fixtures/data`, a copy of both benchmarks' data) by `muarl import`. Known are 113 of 114
and 47 of 50, by a Jaccard similarity of 0.5 of plain words, which is `..._plain_words` on the imported texts.
`paper_retail` and `paper_airline` are those that are like one that the paper's own recipe trains on, as its files
hold them. `tau_other` compares benchmarks that have nothing in common, retail with
airline. Seconds are wall time, `..._cpu_s` what it took of a core.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _planted_tasks import desk_of, twins_of

from muarl.compat.tau.importer import imported_tau1, imported_tau2
from muarl.compat.tau.writing import write
from muarl.data.item_sets import items_of
from muarl.overlap import Item, Overlap, between, of_task, of_text

DATA = Path(__file__).parents[2] / "shared" / "fixtures" / "data"
_PLANTED = 100
_LONG = 100
"""Words of a long text."""


def timed(count: int) -> dict[str, Any]:
    """Compare so many tasks with as many, some of them planted."""
    with tempfile.TemporaryDirectory() as folder:
        # Two thirds of the desk's tasks are to train on, the rest in two halves.
        domain = desk_of(count * 3, Path(folder))
        first = list(domain.tasks("train"))[:count]
        others = [*domain.tasks("dev"), *domain.tasks("held_out")][: count - _PLANTED]
    planted = list(twins_of(first, _PLANTED, ["word", "order", "goal"]).values())
    second = [*others, *planted]
    start, cpu = time.perf_counter(), time.process_time()
    found = between([of_task(task) for task in first], [of_task(task) for task in second])
    took, cpu_s = time.perf_counter() - start, time.process_time() - cpu
    named = {pair.item for pair in found.pairs}
    twins = {task.id for task in planted}
    return {
        "compared": [len(first), len(second)],
        "compare_s": round(took, 3),
        "compare_cpu_s": round(cpu_s, 3),
        "planted": len(twins),
        "planted_found": len(twins & named),
        "false_alarms": len(named - twins),
    }


def timed_long(count: int) -> dict[str, Any]:
    """The same for long texts, drawn from few words as people do: some often, most seldom."""
    rng = random.Random(0)
    words = [f"word{number}" for number in range(20_000)]
    weights = [1 / (rank + 10) for rank in range(len(words))]

    def texts(name: str) -> list[Item]:
        drawn = (rng.choices(words, weights, k=_LONG) for _ in range(count))
        return [of_text(f"{name}{i}", " ".join(text)) for i, text in enumerate(drawn)]

    first, second = texts("a"), texts("b")
    start, cpu = time.perf_counter(), time.process_time()
    between(first, second)
    return {
        "long_s": round(time.perf_counter() - start, 3),
        "long_cpu_s": round(time.process_time() - cpu, 3),
    }


def tau(data: Path) -> dict[str, Any]:
    """What tau2-bench shares with tau-bench."""
    if not data.is_dir():
        return {"tau": f"not looked at: there is no {data}; name a copy with --data"}
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for made in imported_tau1(data):
            write(made, Path(folder) / "tau1")
        for made in imported_tau2(data, domains=("retail", "airline")):
            write(made, Path(folder) / "tau2")
        tau1 = {name: items_of(f"{folder}/tau1/{name}:test") for name in ("retail", "airline")}
        tau2 = {name: items_of(f"{folder}/tau2/{name}/base.yaml") for name in tau1}
    for name, tests in tau1.items():
        found = between(tests, tau2[name])
        figures |= {
            f"tau_{name}": found.counts["words"],
            f"tau_{name}_of": found.second,
            f"tau_{name}_entities": found.counts["entities"],
            f"tau_{name}_on_any_level": len(found.pairs),
            f"tau_{name}_plain_words": plain(tests, tau2[name]),
        }
        trained_on = data / "mua_rl" / f"{name}_test.parquet"
        if trained_on.is_file():
            shared = between(items_of(str(trained_on)), tau2[name])
            figures[f"paper_{name}"] = shared.counts["words"]
    across: list[Overlap] = [
        between(tau1["airline"], tau2["retail"]),
        between(tau1["retail"], tau2["airline"]),
    ]
    return {**figures, "tau_other": sum(len(found.pairs) for found in across)}


def plain(first: Sequence[Item], second: Sequence[Item]) -> int:
    """Items of the second that share half of the words with one of the first, all words alike."""
    return sum(
        any(2 * len(mine.words & other.words) >= len(mine.words | other.words) for other in first)
        for mine in second
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=3000, help="tasks of a set (default 3000)")
    parser.add_argument("--data", type=Path, default=DATA, help="a copy of both benchmarks' data")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    figures = {
        "benchmark": "contamination",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        **timed(args.tasks),
        **timed_long(args.tasks),
        **tau(args.data),
    }
    if args.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name}: {value}")


if __name__ == "__main__":
    main()
