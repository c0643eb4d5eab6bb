"""In which order episodes go into a page, for as long as there is room.

The order is by a hash of the group, so it does not favour the episodes that finished first (the
short ones), and the same journal always gives the same page. Episodes of a group come together:
they are read side by side.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence

from muarl.report.rows import VERDICTS, Row


def phases_in_order(phases: Iterable[str]) -> list[str]:
    """In the order to read them: last evaluation, earlier ones, training, the rest.

    Args:
        phases: In the order in which they began; may repeat.
    """
    seen = dict.fromkeys(phases)
    last = _last_evaluation(seen)
    return sorted(seen, key=lambda p: (p not in last, not _is_eval(p), p != "train"))


def by_importance(rows: Sequence[Row]) -> list[int]:
    """Positions of rows, the ones first that a page must not be without.

    Round after round, every phase and verdict gives one; training spreads over its iterations.
    """
    phases = phases_in_order(row.phase for row in rows)
    stretches: defaultdict[tuple[str, str, int], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        stretches[row.phase, row.verdict, row.iteration].append(number)
    hashes = {row.group: _hash(row) for row in rows}
    queues: defaultdict[tuple[int, int], list[tuple[int, int, int, int]]] = defaultdict(list)
    for (phase, verdict, _), numbers in stretches.items():
        queue = queues[phases.index(phase), VERDICTS.index(verdict)]
        numbers.sort(key=lambda n: (hashes[rows[n].group], rows[n].sample))
        queue += [
            (rank, hashes[rows[n].group], rows[n].sample, n) for rank, n in enumerate(numbers)
        ]
    ranked = []
    for place, queue in queues.items():
        queue.sort()
        ranked += [((turn, place), number) for turn, (_, _, _, number) in enumerate(queue)]
    ranked.sort()
    return [number for _, number in ranked]


def in_reading_order(rows: Sequence[Row], numbers: Iterable[int]) -> list[int]:
    """Positions of rows by phase and iteration, failures first."""
    place = {phase: at for at, phase in enumerate(phases_in_order(row.phase for row in rows))}

    def key(number: int) -> tuple[int, int, int, str, int, int]:
        row = rows[number]
        return (
            place[row.phase],
            row.iteration,
            VERDICTS.index(row.verdict),
            row.task,
            row.sample,
            number,
        )

    return sorted(numbers, key=key)


def _hash(row: Row) -> int:
    key = f"{row.phase}/{row.iteration}/{row.task}"
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest())


def _is_eval(phase: str) -> bool:
    return phase.startswith(("eval", "rollout"))  # of a rollout too, it is what there is to see


def _last_evaluation(phases: Iterable[str]) -> set[str]:
    """The phases called final, or the one that began last if none is."""
    evaluations = [phase for phase in phases if _is_eval(phase)]
    return {phase for phase in evaluations if "final" in phase} or set(evaluations[-1:])
