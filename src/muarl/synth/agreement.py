"""How far two who said yes or no of the same things agree, beyond what chance would give.

Sources:
    Cohen, J. (1960), A coefficient of agreement for nominal scales, Educational and Psychological
        Measurement 20, 37-46.
    Donner, A. and Eliasziw, M. (1992), A goodness-of-fit approach to inference procedures for the kappa
        statistic, Statistics in Medicine 11, 1511-1519: the interval, which stays honest for few things
        and where all were agreed on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

_CHI2 = 3.841459
"""95 % quantile of chi-squared with one degree of freedom."""
_HALVINGS = 50


class Agreement(msgspec.Struct, frozen=True):
    """Of two raters.

    Attributes:
        n: Things that both rated.
        agree: Share on which they said the same; None where n is 0.
        kappa: Cohen's; None where chance alone would have them agree on all.
        low: Lower bound of its 95 % interval; None likewise.
        high: Upper bound, likewise.
    """

    n: int
    agree: float | None
    kappa: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.agree is None:
            return "nothing in common"
        if self.kappa is None:
            return f"agree on all {self.n}, which say the same: kappa is not known"
        return (
            f"agree on {self.agree:.3f} of {self.n}, kappa {self.kappa:.3f} "
            f"[{self.low:.3f}, {self.high:.3f}]"
        )


def agreement(pairs: Sequence[tuple[bool, bool]]) -> Agreement:
    """Agreement of two raters, from what each said of the same things.

    With shares `p` of agreement and `e` of what chance gives, kappa is `(p - e) / (1 - e)`.

    Example:
        >>> str(agreement([(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10
        ...               + [(False, False)] * 15))
        'agree on 0.700 of 50, kappa 0.400 [0.118, 0.614]'
    """
    n = len(pairs)
    if not n:
        return Agreement(0, None, None, None, None)
    both = sum(one and other for one, other in pairs)
    neither = sum(not (one or other) for one, other in pairs)
    agree = (both + neither) / n
    first, second = (sum(said) / n for said in zip(*pairs, strict=True))
    chance = first * second + (1 - first) * (1 - second)
    if chance == 1:
        return Agreement(n, agree, None, None, None)
    kappa = (agree - chance) / (1 - chance)
    low, high = _interval(both, n - both - neither, neither)
    return Agreement(n, agree, kappa, min(low, kappa), max(high, kappa))


def _interval(both: int, mixed: int, neither: int) -> tuple[float, float]:
    """The kappas that the counts do not contradict, with the share of yes that they show.

    With share `p`, kappa `k`: both say yes with `p^2 + k p q`, no with `q^2 + k p q`, else `2 p q (1 - k)`.
    """
    n = both + mixed + neither
    p = (2 * both + mixed) / (2 * n)
    spread = p * (1 - p)
    if spread == 0:
        return 1.0, 1.0
    best = 1 - mixed / (2 * n * spread)
    least = max(-p / (1 - p), -(1 - p) / p, -1.0)

    def contradicts(kappa: float) -> bool:
        expected = (
            p * p + kappa * spread,
            2 * spread * (1 - kappa),
            (1 - p) * (1 - p) + kappa * spread,
        )
        found = (both, mixed, neither)
        if any(share <= 0 < count for share, count in zip(expected, found, strict=True)):
            return True
        chi2 = sum(
            (count - n * share) ** 2 / (n * share)
            for share, count in zip(expected, found, strict=True)
            if share > 0
        )
        return chi2 > _CHI2

    return _edge(best, least, contradicts), _edge(best, 1.0, contradicts)


def _edge(inside: float, outside: float, contradicts: Callable[[float], bool]) -> float:
    """Where what is not contradicted ends, between a value that is not and one that may be."""
    if not contradicts(outside):
        return outside
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if contradicts(middle):
            outside = middle
        else:
            inside = middle
    return inside
