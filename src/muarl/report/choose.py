"""Choose the episodes a page shows: a journal holds thousands, a page stays quick with hundreds.

The choice is by a hash of the episode's key, so it does not favour the episodes that finished
first (the short ones), and the same journal always gives the same page.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from muarl.evaluate.summary import succeeded
from muarl.record import Episode, EpisodeKey

MOST = 600
"""Episodes a page shows, whatever the caps below allow."""

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
OTHER = Caps(failed=5, passed=5, fault=5)


_Entry = tuple[int, int, Episode]


@dataclass(frozen=True)
class Choice:
    """The episodes to show, and what they were chosen from.

    Attributes:
        episodes: At most as many as the caps allow; every phase and verdict has its first episode
            before any has its second.
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
    """Choose from a journal in one pass, holding little more than the choice."""
    heaps: dict[tuple[str, str, int], list[_Entry]] = {}
    totals: Counter[tuple[str, str]] = Counter()
    for number, episode in enumerate(episodes):
        phase, kind = episode.key.phase, verdict(episode)
        totals[phase, kind] += 1
        heap = heaps.setdefault((phase, kind, episode.key.iteration), [])
        # The heap's first entry is its worst: the highest hash, the number breaking ties.
        entry = (-_hash(episode.key), number, episode)
        if len(heap) < getattr(_caps(phase), kind):
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)
    seen = dict.fromkeys(phase for phase, _ in totals)
    last = _last_evaluation(seen)
    phases = sorted(seen, key=lambda p: (p not in last, not _is_eval(p), p != "train"))
    queues: defaultdict[tuple[int, int], list[tuple[int, int, Episode]]] = defaultdict(list)
    for (phase, kind, _), heap in heaps.items():
        earlier = _is_eval(phase) and phase not in last
        cap = getattr(EARLIER_EVALUATION if earlier else _caps(phase), kind)
        best = sorted(heap, key=lambda entry: entry[:2], reverse=True)[:cap]
        queue = queues[phases.index(phase), VERDICTS.index(kind)]
        queue.extend((rank, -negated, episode) for rank, (negated, _, episode) in enumerate(best))
    # Round after round, every phase and verdict gives one; training spreads over its iterations.
    ranked = []
    for place, queue in queues.items():
        queue.sort(key=lambda entry: entry[:2])
        ranked += [((turn, place), episode) for turn, (_, _, episode) in enumerate(queue)]
    ranked.sort(key=lambda pair: pair[0])
    return Choice([episode for _, episode in ranked[:MOST]], totals, phases)


def _hash(key: EpisodeKey) -> int:
    return int.from_bytes(hashlib.blake2b(str(key).encode(), digest_size=8).digest())


def _is_eval(phase: str) -> bool:
    return phase.startswith(("eval", "rollout"))  # of a rollout too, it is what there is to see


def _caps(phase: str) -> Caps:
    """What a phase may show; for an evaluation, if it turns out to be the last one."""
    if _is_eval(phase):
        return LAST_EVALUATION
    return ITERATION if phase == "train" else OTHER


def _last_evaluation(phases: Iterable[str]) -> set[str]:
    """The phases called final, or the one that began last if none is."""
    evaluations = [phase for phase in phases if _is_eval(phase)]
    return {phase for phase in evaluations if "final" in phase} or set(evaluations[-1:])
