"""How much of what policies without skill leave to be earned a score earned.

Sources:
    Donner, A. and Zou, G. Y. (2012), Closed-form confidence intervals for functions of the normal mean
        and standard deviation, Statistical Methods in Medical Research 21, 347-359 (a ratio's limits from
        those of its two parts).
    Newcombe, R. G. (2016), MOVER-R confidence intervals for ratios and products of two independently
        estimated quantities, Statistical Methods in Medical Research 25, 1774-1778.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from muarl.evaluate.statistics import Interval

METHOD = "ratio of both"


def highest(floors: Iterable[Interval]) -> Interval | None:
    """Of the scores of policies without skill the best, which is the floor; None without one."""
    known = [floor for floor in floors if floor.value is not None]
    return max(known, key=lambda floor: floor.value or 0.0, default=None)


def above_floor(score: Interval, floor: Interval) -> Interval | None:
    """The share earned of what the floor leaves: `(s - f) / (1 - f)`; negative below the floor.

    It is 1 minus the ratio of failures, `(1 - s) / (1 - f)`, whose limits are found from those of both
    shares, as if these were independent. On the same tasks they go together, which makes the interval
    rather too wide. Its `n` is the score's.

    Returns:
        None where there is no score, or a floor of 1, which leaves nothing to be earned. Without bounds
        where one of both has none, or the floor may be 1.

    Example:
        A score of 0.8 above a floor of 0.2: 0.75. With 100 dialogues each, [0.632, 0.834]; were the floor
        known, it would be [0.639, 0.833].
    """
    if score.value is None or floor.value is None or floor.value >= 1:
        return None
    failed, missed = 1 - score.value, 1 - floor.value
    value = 1 - failed / missed
    if score.low is None or score.high is None or floor.low is None or floor.high is None:
        return Interval(value, None, None, score.n, METHOD)
    if floor.high >= 1:
        return Interval(value, None, None, score.n, METHOD)
    fewest, most = 1 - score.high, 1 - score.low
    least, at_most = 1 - floor.high, 1 - floor.low
    low = 1 - _upper(failed, missed, most, least)
    high = 1 - _lower(failed, missed, fewest, at_most)
    return Interval(value, min(value, low), min(1.0, max(value, high)), score.n, METHOD)


def _upper(top: float, bottom: float, of_top: float, of_bottom: float) -> float:
    """Limit of `top / bottom` by the upper limit of its top and the lower, above 0, of its bottom."""
    product = top * bottom
    square = of_bottom * (2 * bottom - of_bottom)
    return (product + _root(top, product, of_top, square)) / square


def _lower(top: float, bottom: float, of_top: float, of_bottom: float) -> float:
    """By the opposite limits; written so that it holds where the bottom's is twice the bottom, too."""
    product = top * bottom
    square = of_bottom * (2 * bottom - of_bottom)
    divisor = product + _root(top, product, of_top, square)
    return of_top * (2 * top - of_top) / divisor if divisor else 0.0


def _root(top: float, product: float, of_top: float, square: float) -> float:
    return math.sqrt(max(0.0, product**2 - of_top * (2 * top - of_top) * square))
