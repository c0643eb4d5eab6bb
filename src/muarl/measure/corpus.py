"""All that is to be said of one corpus: its figures, the other tiers, what a monitor would have said."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from muarl.measure.catalogue import CATALOGUE
from muarl.measure.monitors import Alarm, watch, watched
from muarl.measure.reference import Distance, calibration_error, distances
from muarl.measure.table import Measured, measure, views_of
from muarl.measure.tiers import JudgeTier, TagTier, judge_tier, tag_tier
from muarl.measure.transcript import Transcript
from muarl.record import TRAIN


class Judged(msgspec.Struct, frozen=True):
    """A corpus beside a reference.

    Attributes:
        calibration_error: Of success, on the tasks both have; None where they share none (metric 27).
        distances: By figure and outcome class (metric 28).
    """

    calibration_error: float | None
    distances: list[Distance]


class Corpus(msgspec.Struct, frozen=True):
    """What is said of one corpus.

    Attributes:
        measured: Its figures (tier T0).
        tags: The tag tier, where users tagged what they did.
        judged: The judge tier, by figure.
        alarms: What monitors would have said iteration by iteration, if it is of a training.
        beside: Where a reference was given.
    """

    measured: Measured
    tags: TagTier | None
    judged: dict[str, JudgeTier]
    alarms: list[Alarm]
    beside: Judged | None = None


def describe(
    transcripts: Iterable[Transcript],
    *,
    reference: Sequence[Transcript] | None = None,
    seed: int = 0,
) -> Corpus:
    """Everything about a corpus.

    Args:
        transcripts: The corpus.
        reference: What it is held against.
        seed: Draws the bootstraps.
    """
    transcripts = list(transcripts)
    views = views_of(transcripts)
    beside = None
    if reference is not None:
        theirs = views_of(reference)
        beside = Judged(
            calibration_error=calibration_error(views, theirs),
            distances=distances(views, theirs, CATALOGUE.values()),
        )
    return Corpus(
        measured=measure(transcripts, views=views, seed=seed),
        tags=tag_tier(views),
        judged=judge_tier(views, CATALOGUE),
        alarms=alarms_of(transcripts),
        beside=beside,
    )


def alarms_of(transcripts: Iterable[Transcript]) -> list[Alarm]:
    """What monitors would have said over the iterations of a training that is there."""
    iterations: defaultdict[int, list[Transcript]] = defaultdict(list)
    for transcript in transcripts:
        phase, _, rest = transcript.group.partition("/")
        number = rest.partition("/")[0]
        # People call their groups what they like.
        if phase == TRAIN and number.isascii() and number.isdecimal():
            iterations[int(number)].append(transcript)
    return watch([(at, watched(iterations[at])) for at in sorted(iterations)])
