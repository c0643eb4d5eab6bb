"""Episodes inside a page: all of them in a table, their dialogues packed.

A pack holds some dialogues, compressed, in one element of the page; the browser unpacks it when
somebody opens one of them. So ten thousand dialogues lie in a page that is drawn before it has read them.
"""

from __future__ import annotations

import base64
import gzip
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from muarl.record import Episode, read_at, read_stored
from muarl.record.learned import Learned
from muarl.report.choose import by_importance, in_reading_order, phases_in_order
from muarl.report.forms import dialogue_form, samples_form, tools_form
from muarl.report.rows import VERDICTS, Row, columns, row_of

PAGE_BYTES = 12_000_000
"""Room for dialogues in one page; when it is used up, the page lists the rest without them."""

MOST_ROWS = 50_000
"""Episodes that a page lists; `muarl view` has no such bound."""

_PACK_BYTES = 300_000
"""Uncompressed; what is unpacked to open one dialogue."""


class Listed(msgspec.Struct):
    """Every episode of a journal in one line, and where it lies; of equal keys the last."""

    rows: list[Row]
    starts: list[int]
    domain: str


class Embedded(msgspec.Struct):
    """Everything that the viewer needs of one run.

    Attributes:
        table: The rows, as `columns` has them; `pack` and `place` say where each dialogue is, -1: nowhere.
        dialogues: Packs, each a list of forms.
        tokens: Packs of the same episodes' samples.
        systems: Distinct system prompts; dialogues refer to them by position.
        toolsets: Distinct lists of offered tools, likewise.
        shown: Per phase and verdict, how many of how many have their dialogue here.
        token_ids: Ids that occur in the packs.
    """

    table: dict[str, Any]
    dialogues: list[str]
    tokens: list[str]
    systems: list[str]
    toolsets: list[list[dict[str, str]]]
    shown: list[dict[str, Any]]
    token_ids: set[int]


def list_journal(path: Path) -> Listed:
    """Read all of a journal, one episode at a time.

    Raises:
        RecordError: It is damaged.
    """
    found: dict[str, tuple[Row, int]] = {}
    domain = ""
    for stored in read_stored(path):
        row = row_of(stored.episode)
        found[row.id] = (row, stored.start)
        domain = domain or stored.episode.domain
    pairs = list(found.values())
    return Listed([row for row, _ in pairs], [start for _, start in pairs], domain)


def embed(
    listed: Listed, journal: Path, learned: Mapping[str, Learned], room: int = PAGE_BYTES
) -> Embedded:
    """Pack dialogues, the most important first, as far as there is room.

    Args:
        listed: Of the journal.
        journal: Where the dialogues are read.
        learned: What training made of them.
        room: Bytes that the packs may take in the page.

    Raises:
        RecordError: The journal changed meanwhile, or is damaged.
    """
    rows = listed.rows
    order = by_importance(rows)
    packer = _Packer(room)
    where: dict[int, tuple[int, int]] = {}
    for number in order:
        episode = read_at(journal, listed.starts[number])
        place = packer.add(episode, learned.get(rows[number].id))
        if place is None:
            break
        where[number] = place
    packer.close()
    where = {number: place for number, place in where.items() if place[0] < len(packer.dialogues)}
    kept = in_reading_order(rows, order[:MOST_ROWS])
    table = columns([rows[number] for number in kept])
    nowhere = (-1, -1)
    table["pack"] = [where.get(number, nowhere)[0] for number in kept]
    table["place"] = [where.get(number, nowhere)[1] for number in kept]
    return Embedded(
        table=table,
        dialogues=packer.dialogues,
        tokens=packer.tokens,
        systems=list(packer.systems),
        toolsets=packer.toolsets,
        shown=_shown(rows, where),
        token_ids=packer.token_ids,
    )


def _shown(rows: Sequence[Row], where: Mapping[int, Any]) -> list[dict[str, Any]]:
    totals = Counter((row.phase, row.verdict) for row in rows)
    shown = Counter((rows[number].phase, rows[number].verdict) for number in where)
    return [
        {"phase": phase, "verdict": kind, "shown": shown[phase, kind], "total": total}
        for phase in phases_in_order(row.phase for row in rows)
        for kind in VERDICTS
        if (total := totals[phase, kind])
    ]


class _Packer:
    """Fills packs until the room is used up."""

    def __init__(self, room: int) -> None:
        self.dialogues: list[str] = []
        self.tokens: list[str] = []
        self.systems: dict[str, int] = {}
        self.toolsets: list[list[dict[str, str]]] = []
        self.token_ids: set[int] = set()
        self._toolset_at: dict[bytes, int] = {}
        self._left = room
        self._open: tuple[list[bytes], list[bytes]] = ([], [])
        self._ids: set[int] = set()
        self._size = 0
        self._is_full = False

    def add(self, episode: Episode, learned: Learned | None) -> tuple[int, int] | None:
        """Put an episode into the open pack; where it is, or None when there is no room."""
        if self._is_full:
            return None
        form = dialogue_form(episode, learned)
        form["system"] = self.systems.setdefault(episode.system, len(self.systems))
        form["tools"] = self._toolset(tools_form(episode))
        dialogue = msgspec.json.encode(form)
        samples = msgspec.json.encode(samples_form(episode, learned))
        place = (len(self.dialogues), len(self._open[0]))
        self._open[0].append(dialogue)
        self._open[1].append(samples)
        self._ids.update(i for sample in episode.samples for i in sample.token_ids)
        self._size += len(dialogue) + len(samples)
        if self._size >= _PACK_BYTES:
            self.close()
        return place

    def close(self) -> None:
        """End the open pack, and keep it if there is room for it."""
        if not self._open[0]:
            return
        packed = [_packed(forms) for forms in self._open]
        size = sum(map(len, packed))
        if size > self._left:
            self._is_full = True
        else:
            self._left -= size
            self.dialogues.append(packed[0])
            self.tokens.append(packed[1])
            self.token_ids |= self._ids
        self._open, self._ids, self._size = ([], []), set(), 0

    def _toolset(self, tools: list[dict[str, str]]) -> int:
        key = msgspec.json.encode(tools)
        if key not in self._toolset_at:
            self._toolset_at[key] = len(self.toolsets)
            self.toolsets.append(tools)
        return self._toolset_at[key]


def _packed(forms: Sequence[bytes]) -> str:
    whole = b"[" + b",".join(forms) + b"]"
    return base64.b64encode(gzip.compress(whole, 6, mtime=0)).decode()
