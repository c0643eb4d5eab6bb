"""Copies of a dialogue: what was said and done in both is nearly the same.

Two dialogues are compared by what is said in them, two words in a row, and by every call with its
arguments and answer. They are as similar as what they share of all that either has (Jaccard), and no
more alike than the entities they are about: dialogues of one template differ in little else. MinHash
finds the pairs worth comparing; each is then compared exactly (as `muarl.overlap` does for tasks).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from itertools import pairwise

import msgspec

from muarl.measure.words import words
from muarl.overlap.tasks import cut, jaccard, signature
from muarl.record import Episode
from muarl.spoken.naming import entities
from muarl.synth.candidate import Candidate
from muarl.synth.stages import Flaw


class Copies:
    """Knows the dialogues that were kept; the last stage.

    Args:
        near: Similarity from which a dialogue is a copy.
    """

    name = "copies"

    def __init__(self, near: float) -> None:
        self._near = near
        self._kept: list[tuple[str, _Traits]] = []
        self._bands: defaultdict[Hashable, list[int]] = defaultdict(list)

    async def flaw(self, candidate: Candidate) -> Flaw | None:
        mine = _Traits(candidate.episode)
        # Those with the same calls are always compared, however they are worded.
        bands: list[Hashable] = [("calls", mine.calls)] if mine.calls else []
        if mine.features:
            bands += cut("dialogue", signature(mine.features))
        seen: set[int] = set()
        for band in bands:
            for number in self._bands[band]:
                if number not in seen:
                    seen.add(number)
                    key, theirs = self._kept[number]
                    if (similarity := mine.similarity(theirs)) >= self._near:
                        return Flaw("near-copy", f"{similarity:.2f} like {key}")
        for band in bands:
            self._bands[band].append(len(self._kept))
        self._kept.append((str(candidate.episode.key), mine))
        return None


class _Traits:
    """What two dialogues are compared by."""

    def __init__(self, episode: Episode) -> None:
        self.calls = tuple(_calls(episode))
        self.features = frozenset(_features(episode))
        self.entities = frozenset(_entities(episode))

    def similarity(self, other: _Traits) -> float:
        alike = jaccard(self.features, other.features)
        if self.entities or other.entities:
            alike = min(alike, jaccard(self.entities, other.entities))
        return alike


def _texts(episode: Episode) -> Iterator[tuple[str, str]]:
    yield "user", episode.opening.text
    for turn in episode.turns:
        if turn.said:
            yield "agent", turn.said
        if turn.reply is not None:
            yield "user", turn.reply.text


def _calls(episode: Episode) -> Iterator[tuple[str, str, str]]:
    for turn in episode.turns:
        for call, result in zip(turn.calls, turn.results, strict=False):
            arguments = msgspec.json.encode(call.arguments, order="deterministic").decode()
            yield call.name, arguments, result.content


def _features(episode: Episode) -> Iterator[str]:
    for who, text in _texts(episode):
        said = words(text)
        runs = [" ".join(run) for run in pairwise(said)] or list(said)
        yield from (f"{who} {run}" for run in runs)
    for name, arguments, answer in _calls(episode):
        yield f"call {name} {arguments}"
        yield f"answer {name} {arguments} {answer}"


def _entities(episode: Episode) -> Iterator[str]:
    for _, text in _texts(episode):
        yield from entities(text)
    for _, arguments, _ in _calls(episode):
        yield from entities(arguments)
