"""Recorded answers of the official environments, replayed on our tools, one verdict a vector.

A file of records may hold any kinds in any order: each record says whose it is (`benchmark`), and the
replay of that benchmark tells what it proves.
"""

from __future__ import annotations

import gzip
import json
import time
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import msgspec

from muarl.errors import RecordError

Record = dict[str, Any]
Kind = Literal["gold", "fuzz", "evaluator"]


class Vector(msgspec.Struct, frozen=True):
    """One recorded answer beside ours.

    Attributes:
        kind: A call of a reference solution (or its final state), a random call, or a verdict.
        set: Benchmark and domain, `tau2 retail`, by which shares are counted.
        name: Which record and call, for a person who looks for it.
        wrong: What differs; empty if all that the format compares is the same.
        calls: Calls of our tools that were made for it.
    """

    kind: Kind
    set: str
    name: str
    wrong: str = ""
    calls: int = 0


Replay = Callable[[Record, "UpstreamData"], Iterable[Vector]]

_REPLAYS = {
    "tau1": "muarl.compat.tau.replay:tau1",
    "tau1_fuzz": "muarl.compat.tau.replay:tau1_fuzz",
    "tau2": "muarl.compat.tau.replay:tau2",
    "tau2_fuzz": "muarl.compat.tau.replay:tau2_fuzz",
    "bfcl_v3": "muarl.compat.bfcl.replay:turns",
    "bfcl_v3_fuzz": "muarl.compat.bfcl.replay:fuzz",
    "bfcl_v4": "muarl.compat.bfcl.replay:turns",
    "bfcl_v4_fuzz": "muarl.compat.bfcl.replay:fuzz",
    "acebench_agent": "muarl.compat.acebench.replay:milestones",
    "acebench_agent_repaired": "muarl.compat.acebench.replay:milestones",
    "acebench_agent_fuzz": "muarl.compat.acebench.replay:fuzz",
}


_NOT_REPLAYED = {"tau2 banking_knowledge": "not of the paper, and its database is not published"}
"""Sets that nobody replays, and why; they are counted and named, never passed."""


class UpstreamData:
    """Upstream data files, read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.json = cache(self._json)

    def _json(self, path: str) -> Any:
        """A JSON file, plain or gzipped (`.gz` may be left out); shared, so not to be written."""
        file = self.folder / path
        if not file.exists() and (packed := file.with_name(file.name + ".gz")).exists():
            file = packed
        if not file.exists():
            raise RecordError(f"upstream data: there is no {path} in {self.folder}")
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        return json.loads(data)

    def json_lines(self, path: str) -> list[Any]:
        """The JSON values of a file that has one a line."""
        lines = (self.folder / path).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.strip()]

    def toml(self, path: str) -> Any:
        """A TOML file."""
        return tomllib.loads((self.folder / path).read_text(encoding="utf-8"))


def records(folder: Path) -> Iterator[tuple[str, Record]]:
    """Every record of every `*.jsonl` and `*.jsonl.gz` of a folder, with the place it stands at.

    Raises:
        RecordError: A line is no record.
    """
    for file in sorted({*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")}):
        with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield (place := f"{file.name}:{number}"), _record(place, line)


def _record(place: str, line: str) -> Record:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise RecordError(
            f"{place}: no JSON ({error}); expected one recorded vector a line"
        ) from None
    if not isinstance(record, dict):
        raise RecordError(f"{place}: expected an object with `benchmark`, it is {line[:80]!r}")
    return record


def replayed(record: Record, data: UpstreamData) -> Iterable[Vector]:
    """What a record proves.

    Raises:
        RecordError: Nobody knows its benchmark.
    """
    return _replay_of(str(record.get("benchmark")))(record, data)


@cache
def _replay_of(benchmark: str) -> Replay:
    where = _REPLAYS.get(benchmark)
    if where is None:
        known = ", ".join(sorted(_REPLAYS))
        raise RecordError(f"no replay knows records of benchmark {benchmark!r}; known: {known}")
    module, _, name = where.partition(":")
    replay: Replay = getattr(import_module(module), name)
    return replay


def _kind(record: Record) -> Kind:
    if record.get("kind") == "evaluator_vector":
        return "evaluator"
    return "fuzz" if str(record.get("benchmark")).endswith("_fuzz") else "gold"


class Tally:
    """Shares of vectors in which all is the same, by kind and set, and the first that are not."""

    FIRST = 20

    def __init__(self) -> None:
        self._right: dict[Kind, dict[str, list[int]]] = defaultdict(
            lambda: defaultdict(lambda: [0, 0])
        )
        self.wrong: list[str] = []
        self.not_replayed: dict[str, int] = defaultdict(int)
        self.calls = 0
        self.seconds = 0.0

    def add(self, place: str, record: Record, data: UpstreamData) -> None:
        """Replay a record and count what it proves; an exception of ours is a difference too.

        Raises:
            RecordError: Nobody knows its benchmark, or upstream data is missing.
        """
        set_name = f"{record.get('benchmark')} {record.get('domain')}"
        if set_name in _NOT_REPLAYED:
            self.not_replayed[f"{set_name}: {_NOT_REPLAYED[set_name]}"] += 1
            return
        begin = time.perf_counter()
        vectors: list[Vector] = []
        try:
            vectors.extend(replayed(record, data))
        except RecordError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, our tools did not answer
            last = vectors[-1] if vectors else Vector(_kind(record), set_name, "nothing")
            where = f"after {last.name}"
            vectors.append(Vector(last.kind, last.set, where, wrong=f"raised {error!r}"))
        self.seconds += time.perf_counter() - begin
        for vector in vectors:
            counts = self._right[vector.kind][vector.set]
            counts[0] += not vector.wrong
            counts[1] += 1
            self.calls += vector.calls
            if vector.wrong and len(self.wrong) < self.FIRST:
                self.wrong.append(f"{place}: {vector.set} {vector.name}: {vector.wrong}")

    def summary(self) -> Mapping[str, Any]:
        """`gold`, `fuzz`, `evaluator` (the worst set of each), `by_set`, `vectors`, calls a second.

        `not_replayed` counts records of sets that are not ours.
        """
        by_set = {
            kind: {name: right / of for name, (right, of) in sorted(sets.items())}
            for kind, sets in self._right.items()
        }
        counts = {
            kind: {name: of for name, (_, of) in sorted(sets.items())}
            for kind, sets in self._right.items()
        }
        worst: dict[str, float] = {kind: min(shares.values()) for kind, shares in by_set.items()}
        return {
            **worst,
            "by_set": by_set,
            "vectors": counts,
            "calls": self.calls,
            "calls_per_s": round(self.calls / self.seconds) if self.seconds else None,
            "not_replayed": dict(self.not_replayed),
            "first_differences": self.wrong,
        }
