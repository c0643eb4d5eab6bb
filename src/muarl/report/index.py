"""An index over a journal, so that any episode of many is found in a moment.

It lives in an SQLite file of its own and follows the journal: what a run appends is there with the
next `refresh`. Only lines of a list and lower-case text are in it; dialogues are read from the journal.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from muarl.errors import RecordError
from muarl.record import Stored, read_stored
from muarl.report.choose import phases_in_order
from muarl.report.forms import dialogue_form
from muarl.report.rows import Row, row_of

AT_ONCE = 500
"""Episodes that one `refresh` takes up, so that whoever asks meanwhile waits a moment only."""

_HEAD_BYTES = 512
"""By which a journal is known to be the same one: its first episode is in them, or begins."""

_LEVEL = 1e-9
"""Rewards that differ by less are the same."""

_TABLE = """
CREATE TABLE episodes (
  id TEXT PRIMARY KEY, number INTEGER, start INTEGER, phase TEXT, iteration INTEGER, task TEXT,
  sample INTEGER, persona TEXT, user TEXT, verdict TEXT, outcome TEXT, reward REAL, above REAL,
  turns INTEGER, tokens INTEGER, version INTEGER, tools TEXT, errors INTEGER);
CREATE TABLE texts (id TEXT PRIMARY KEY, said TEXT) WITHOUT ROWID;
CREATE INDEX groups ON episodes (phase, iteration, task);
CREATE INDEX tasks ON episodes (task);
"""

_ABOVE = """
UPDATE episodes SET above = reward - (
  SELECT avg(g.reward) FROM episodes AS g
  WHERE g.phase = episodes.phase AND g.iteration = episodes.iteration AND g.task = episodes.task)
WHERE (phase, iteration, task) IN (
  SELECT DISTINCT phase, iteration, task FROM episodes WHERE number > ?)
"""

_SHOWN = (
    "id, phase, iteration, task, sample, persona, user, verdict, outcome, reward, above, turns, "
    "tokens, version, errors"
)

_ORDERS = {
    "longest": "turns DESC",
    "shortest": "turns",
    "worst": "reward IS NULL, reward",
    "above": "above IS NULL, above DESC",
    "below": "above IS NULL, above",
}

_SAME = ("phase", "verdict", "outcome", "persona", "user")


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for; what is None or "" does not matter.

    Attributes:
        phase: As the next four, of the row.
        verdict: "failed", "passed" or "fault".
        outcome: Why it ended.
        persona: Who the user was.
        user: Which of the run's users.
        tool: Called at least once.
        task: A part of its id, in lower or upper case.
        iteration: Of the rollouts.
        above: "above", "below" or "level": its reward against its group's mean.
        least: Reward at least.
        most: Reward at most.
        text: Words that are all in it, in lower or upper case.
        order: "longest", "shortest", "worst", "above" or "below" first; "": by phase and iteration,
            failures first.
    """

    phase: str = ""
    verdict: str = ""
    outcome: str = ""
    persona: str = ""
    user: str = ""
    tool: str = ""
    task: str = ""
    iteration: int | None = None
    above: str = ""
    least: float | None = None
    most: float | None = None
    text: str = ""
    order: str = ""


class EpisodeIndex:
    """The index of one journal. Its methods may be called from any thread.

    Args:
        journal: May be missing, and may grow.
        database: File of the index; made anew.
    """

    def __init__(self, journal: Path, database: Path) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._db = sqlite3.connect(database, check_same_thread=False, isolation_level=None)
        self._db.create_function("lower", 1, str.lower, deterministic=True)  # SQLite's is ASCII's
        self._db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + _TABLE)
        self._end = 0
        self._count = 0
        self._read_to = 0
        self._head = b""
        self._facets: tuple[int, dict[str, Any]] = (-1, {})

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            self._db.close()

    def refresh(self) -> bool:
        """Take up some of what the journal holds and the index does not; whether there was any.

        Raises:
            RecordError: The journal is damaged.
        """
        if not self._journal.exists():
            return False
        size = self._journal.stat().st_size
        with self._journal.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        if size < self._end or not head.startswith(self._head):  # another run began in its folder
            with self._lock:
                self._db.execute("DELETE FROM episodes")
                self._db.execute("DELETE FROM texts")
                self._end = self._count = self._read_to = 0
                self._head = b""
                self._facets = (-1, {})
        taken: list[Stored] = []
        try:
            for stored in read_stored(self._journal, after=self._end):
                taken.append(stored)
                if len(taken) == AT_ONCE:
                    break
        except RecordError:
            if not taken:  # else what comes before the damage is taken up first
                raise
        if not taken:
            self._read_to = size  # what may follow the last whole record is being written, or torn
            return False
        texts = [(str(s.episode.key), text_of(dialogue_form(s.episode))) for s in taken]
        values = [
            _values(stored, number) for number, stored in enumerate(taken, start=self._count + 1)
        ]
        with self._lock:
            self._db.execute("BEGIN")
            marks = ", ".join("?" * len(values[0]))
            self._db.executemany(f"INSERT OR REPLACE INTO episodes VALUES ({marks})", values)
            self._db.executemany("INSERT OR REPLACE INTO texts VALUES (?, ?)", texts)
            self._db.execute(_ABOVE, (self._count,))
            self._db.execute("COMMIT")
            self._head = head
            self._end, self._count = taken[-1].end, self._count + len(taken)
        return True

    @property
    def progress(self) -> float:
        """Share of the journal that is in the index."""
        try:
            size = self._journal.stat().st_size
        except OSError:
            return 1.0
        return min(1.0, self._end / size) if size > self._read_to else 1.0

    def facets(self) -> dict[str, Any]:
        """What the episodes can be filtered by, and how many there are."""
        count = self._count
        if self._facets[0] == count:
            return self._facets[1]
        found: dict[str, Any] = {"total": self._ask("SELECT count(*) FROM episodes")[0][0]}
        for column in (*_SAME, "iteration"):
            rows = self._ask(f"SELECT DISTINCT {column} FROM episodes ORDER BY {column}")
            found[column] = [row[0] for row in rows]
        found["phase"] = phases_in_order(self._phases())
        sets = self._ask("SELECT DISTINCT tools FROM episodes")
        names = {name for (tools,) in sets for name in tools.split("\n")[1:-1]}
        found["tool"] = sorted(map(msgspec.json.decode, names))
        self._facets = (count, found)
        return found

    def find(self, query: Query, offset: int, limit: int) -> tuple[int, list[dict[str, Any]]]:
        """How many episodes fit, and some of them."""
        where, values = _where(query)
        total = self._ask(f"SELECT count(*) FROM episodes WHERE {where}", values)[0][0]
        order = _ORDERS.get(query.order)
        by = [order] if order is not None else []
        phases = phases_in_order(self._phases())
        if phases:
            by.append(
                "CASE phase " + " ".join(f"WHEN ? THEN {n}" for n in range(len(phases))) + " END"
            )
            by += ["iteration", "CASE verdict WHEN 'failed' THEN 0 WHEN 'passed' THEN 1 ELSE 2 END"]
        by += ["task", "sample"]
        rows = self._ask(
            f"SELECT {_SHOWN} FROM episodes WHERE {where} ORDER BY {', '.join(by)} LIMIT ? OFFSET ?",
            (*values, *phases, limit, offset),
        )
        return total, [_shown(row) for row in rows]

    def has(self, key: str) -> bool:
        """Whether an episode is in the index already."""
        return bool(self._ask("SELECT 1 FROM episodes WHERE id = ?", (key,)))

    def place(self, key: str) -> tuple[int, dict[str, Any]]:
        """Where an episode begins in the journal, and its line.

        Raises:
            RecordError: There is none.
        """
        rows = self._ask(f"SELECT start, {_SHOWN} FROM episodes WHERE id = ?", (key,))
        if not rows:
            raise RecordError(f"no episode {key!r} in {self._journal}")
        return rows[0][0], _shown(rows[0][1:])

    def beside(self, row: Mapping[str, Any], most: int = 40) -> tuple[list[Any], list[Any]]:
        """Lines of an episode's group, and of its task elsewhere: one of each other place."""
        of_group = (row["phase"], row["iteration"], row["task"])
        group = self._ask(
            f"SELECT {_SHOWN} FROM episodes WHERE phase = ? AND iteration = ? AND task = ? "
            "ORDER BY sample",
            of_group,
        )
        across = self._ask(
            f"SELECT {_SHOWN}, min(sample) FROM episodes WHERE task = ? AND NOT "
            "(phase = ? AND iteration = ?) GROUP BY phase, iteration ORDER BY phase, iteration LIMIT ?",
            (row["task"], row["phase"], row["iteration"], most),
        )
        return [_shown(one) for one in group], [_shown(one) for one in across]

    def _phases(self) -> list[str]:
        """In the order in which they began."""
        rows = self._ask("SELECT phase FROM episodes GROUP BY phase ORDER BY min(number)")
        return [phase for (phase,) in rows]

    def _ask(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            return self._db.execute(statement, values).fetchall()


def text_of(value: Any) -> str:
    """Every text within plain data, in lower case, a line each."""
    found: list[str] = []

    def walk(one: Any) -> None:
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, Mapping):
            for inner in one.values():
                walk(inner)
        elif isinstance(one, list | tuple):
            for inner in one:
                walk(inner)

    walk(value)
    return "\n".join(found).lower()


def _values(stored: Stored, number: int) -> tuple[Any, ...]:
    row: Row = row_of(stored.episode)
    tools = "\n".join(["", *map(_in_a_line, row.tools), ""]) if row.tools else ""
    return (
        *(row.id, number, stored.start, row.phase, row.iteration, row.task, row.sample, row.persona),
        *(row.user, row.verdict, row.outcome, row.reward, None, row.turns, row.tokens, row.version),
        *(tools, row.errors),
    )  # fmt: skip


def _in_a_line(name: str) -> str:
    """A tool's name, which a model may have made up, without a line's end."""
    return msgspec.json.encode(name).decode()


def _shown(row: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(_SHOWN.split(", "), row, strict=False))


def _where(query: Query) -> tuple[str, tuple[Any, ...]]:
    tests: list[str] = ["1"]
    values: list[Any] = []

    def add(test: str, *of: Any) -> None:
        tests.append(test)
        values.extend(of)

    for column in _SAME:
        if value := getattr(query, column):
            add(f"{column} = ?", value)
    if query.tool:
        add("instr(tools, ?)", f"\n{_in_a_line(query.tool)}\n")
    if query.task:
        add("instr(lower(task), lower(?))", query.task)
    if query.iteration is not None:
        add("iteration = ?", query.iteration)
    if query.least is not None:
        add("reward >= ?", query.least)
    if query.most is not None:
        add("reward <= ?", query.most)
    match query.above:
        case "above":
            add("above > ?", _LEVEL)
        case "below":
            add("above < ?", -_LEVEL)
        case "level":
            add("abs(above) <= ?", _LEVEL)
    words = query.text.lower().split()
    if words:
        held = " AND ".join(["(instr(said, ?) OR instr(lower(id), ?))"] * len(words))
        add(
            f"id IN (SELECT id FROM texts WHERE {held})",
            *(w for word in words for w in (word, word)),
        )
    return " AND ".join(tests), tuple(values)
