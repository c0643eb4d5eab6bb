"""The reference of all figures, as Markdown: generated from the catalogue, committed, checked fresh."""

from __future__ import annotations

from collections.abc import Iterator

from muarl.measure.catalogue import CATALOGUE, METRICS
from muarl.measure.monitors import PATIENCE, RULES
from muarl.measure.reference import NEEDS_REFERENCE

_HEAD = """\
<!-- Written by `muarl schema --docs docs`: change the figures in muarl.measure instead. -->

# Figures of users

What `muarl users` prints; [Users, measured](user-metrics.md) says how to read it. All are decided by
the words, the ledger and the tools' record (tier T0). *Better* says which way, where one way is;
`compare` is for what is neither good nor bad by itself, and is read beside people or another user.
"""

_FAULTS = 31


def figures_page() -> str:
    """All figures, metric by metric, and what monitors watch."""
    return "\n".join([_HEAD, *_metrics(), "## Monitors", "", *_monitors()]) + "\n"


def _metrics() -> Iterator[str]:
    for number, title in METRICS.items():
        yield f"## {number} {title}"
        yield ""
        yield "| figure | what it is | unit | better | from |"
        yield "|---|---|---|---|---|"
        for figure in CATALOGUE.values():
            if figure.number == number:
                yield (
                    f"| `{figure.name}` | {figure.says} | {figure.unit} | {figure.better} "
                    f"| {figure.source} |"
                )
        for at, name, says, unit, better, source in NEEDS_REFERENCE:
            if at == number:
                yield f"| `{name}` | {says} | {unit} | {better} | {source} |"
        if number == _FAULTS:
            yield (
                "| `faults` | dialogues that ended by no doing of either side, and in parentheses those "
                "in which the simulator broke its contract; in no other figure | dialogues | lower | muarl |"
            )
        yield ""


def _monitors() -> Iterator[str]:
    yield f"Each fires once its figure was beyond the threshold {PATIENCE} iterations in a row."
    yield ""
    yield "| figure | fires | sign that |"
    yield "|---|---|---|"
    for rule in RULES:
        of = f"{rule.threshold:g}" + (" of its first value" if rule.relative else "")
        yield f"| `{rule.figure}` | {rule.side} {of} | {rule.means} |"
