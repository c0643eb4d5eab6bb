"""Choose the episodes a page shows: a journal holds thousands, a page stays quick with hundreds.

The choice is by a hash of the episode's key, so it does not favour the episodes that finished
first (the short ones), and the same journal always gives the same page.
"""

from __future__ import annotations

import heapq
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from muarl.evaluate.summary import succeeded
from muarl.record import Episode

VERDICTS = ("failed", "passed", "fault")


@dataclass(frozen=True)
class Caps:
    """How many episodes of each verdict are shown."""

    failed: int
    passed: int
    fault: int


LAST_EVALUATION = Caps(failed=60, passed=20, fault=20)
EARLIER_EVALUATION = Caps(failed=15, passed=10, fault=5)
ITERATION = Caps(failed=2, passed=2, fault=1)
OTHER = Caps(failed=10, passed=10, fault=5)


@dataclass(frozen=True)
class Choice:
    """The episodes to show, and what they were chosen from.

    Attributes:
        episodes: At most as many as the caps allow, the most telling first: every part of the run
            has its first episode before any has its second.
        totals: (phase, verdict) to episodes in the journal.
        phases: In the order to read them: last evaluation, earlier ones, training, the rest.
    """

    episodes: list[Episode]
    totals: Counter[tuple[str, str]]
    phases: list[str]


def verdict(episode: Episode) -> str:
    """One of `VERDICTS`."""
    if episode.outcome.is_fault or episode.reward is None:
        return "fault"
    return "passed" if succeeded(episode) else "failed"


def choose(episodes: Iterable[Episode]) -> Choice:
    """Choose from a journal in one pass, holding no more than the choice."""
    heaps: dict[tuple[str, int, str], list[tuple[int, int, Episode]]] = {}
    totals: Counter[tuple[str, str]] = Counter()
    for number, episode in enumerate(episodes):
        phase, kind = episode.key.phase, verdict(episode)
        totals[phase, kind] += 1
        heap = heaps.setdefault((phase, episode.key.iteration, kind), [])
        # The heap's first entry is its worst: the highest hash, the number breaking ties.
        entry = (-zlib.crc32(str(episode.key).encode()), number, episode)
        if len(heap) < getattr(_caps(phase), kind):
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)
    seen = dict.fromkeys(phase for phase, _ in totals)
    last = _last_evaluation(seen)
    phases = sorted(seen, key=lambda p: (p not in last, not _is_eval(p), p != "train"))
    ranked = []
    for (phase, iteration, kind), heap in heaps.items():
        earlier = _is_eval(phase) and phase not in last
        cap = getattr(EARLIER_EVALUATION if earlier else _caps(phase), kind)
        best = sorted(heap, key=lambda entry: entry[:2], reverse=True)[:cap]
        for rank, (_, number, episode) in enumerate(best):
            place = (rank, phases.index(phase), VERDICTS.index(kind), iteration, number)
            ranked.append((place, episode))
    ranked.sort(key=lambda pair: pair[0])
    return Choice([episode for _, episode in ranked], totals, phases)


def _is_eval(phase: str) -> bool:
    return phase.startswith("eval")


def _caps(phase: str) -> Caps:
    """What a phase may show; for an evaluation, if it turns out to be the last one."""
    if _is_eval(phase):
        return LAST_EVALUATION
    return ITERATION if phase == "train" else OTHER


def _last_evaluation(phases: Iterable[str]) -> set[str]:
    """The phases called final, or the one that began last if none is."""
    evaluations = [phase for phase in phases if _is_eval(phase)]
    return {phase for phase in evaluations if "final" in phase} or set(evaluations[-1:])
