"""`muarl users CORPUS ...`: what simulated users are like, measured from their dialogues; no model.

A corpus is the folder of a run, or a file of dialogues in JSON lines, such as people's. Prints figures
of 31 metrics (premature disclosure, sycophancy, role flips, repeats at a prefix, ...) with intervals
that draw whole tasks, one column for each corpus; `!` marks a column that is worse than all others
together, their intervals apart. With `--reference` also how far each corpus is from that one.
docs/user-metrics.md says what the figures mean.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from muarl.cli._answer import answer
from muarl.cli._arguments import seed
from muarl.cli._printable import in_one_line
from muarl.cli._stored import domain_of, stored_episodes
from muarl.errors import RecordError, UsageError
from muarl.evaluate.statistics import Interval
from muarl.measure.catalogue import CATALOGUE, METRICS
from muarl.measure.corpus import Corpus, describe
from muarl.measure.episodes import transcripts
from muarl.measure.figure import Figure
from muarl.measure.people import read_dialogues
from muarl.measure.transcript import Transcript

_FURTHEST = 12
"""Distances that are printed; `--json` has all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "corpora",
        type=Path,
        nargs="+",
        metavar="CORPUS",
        help="folders of runs, or files of dialogues in JSON lines (.jsonl)",
    )
    parser.add_argument(
        "--phase",
        action="append",
        default=[],
        metavar="NAME",
        help="of runs, only episodes of this phase, such as `train`; may be given several times",
    )
    parser.add_argument(
        "--by",
        choices=("corpus", "persona", "user"),
        default="corpus",
        help="one column for each corpus (the default), persona or user",
    )
    parser.add_argument(
        "--reference", type=Path, metavar="CORPUS", help="what the others are held against"
    )
    parser.add_argument(
        "--domain", type=Path, metavar="PATH", help="the domain of the runs (default: theirs)"
    )
    parser.add_argument("--seed", type=seed, default=0, help="draws the intervals (default: 0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Read, measure, print.

    Raises:
        RecordError: A corpus cannot be read, or holds nothing.
        UsageError: Two corpora have one name.
    """
    reference = None if args.reference is None else _read(args.reference, args)
    columns = {
        name: describe(transcripts, reference=reference, seed=args.seed)
        for name, transcripts in _columns(args).items()
    }
    if args.json:
        answer(json.dumps({"columns": msgspec.to_builtins(columns)}))
        return 0
    for line in _table(columns):
        answer(line)
    for name, corpus in columns.items():
        for line in _beside(in_one_line(name), corpus):
            answer(line)
    return 0


def _columns(args: argparse.Namespace) -> dict[str, list[Transcript]]:
    """Dialogues by what the columns are of."""
    found: dict[str, list[Transcript]] = {}
    for path in args.corpora:
        transcripts = _read(path, args)
        if args.by == "corpus":
            if _name(path) in found:
                raise UsageError(
                    f"two corpora are called {_name(path)!r}; measure them one by one, or rename one"
                )
            found[_name(path)] = transcripts
            continue
        for transcript in transcripts:
            of = transcript.persona if args.by == "persona" else transcript.user
            found.setdefault(of or "(none)", []).append(transcript)
    return found


def _read(path: Path, args: argparse.Namespace) -> list[Transcript]:
    if path.suffix == ".jsonl":
        if not (dialogues := list(read_dialogues(path))):
            raise RecordError(f"{path}: no dialogue in it; expected one JSON object a line")
        return dialogues
    of_run = argparse.Namespace(runs=[path], phase=args.phase, domain=args.domain)
    episodes = stored_episodes(of_run)
    return list(transcripts(domain_of(of_run), episodes, user=_name(path)))


def _name(path: Path) -> str:
    return path.stem if path.suffix == ".jsonl" else path.resolve().name


def _table(columns: Mapping[str, Corpus]) -> Iterator[str]:
    cells = {
        name: [_cell(figure, name_of, columns) for name_of in columns]
        for name, figure in CATALOGUE.items()
    }
    width = max(len(name) for name in [*CATALOGUE, "dialogues"]) + 2
    heads = [f"{m.dialogues} on {m.tasks} tasks" for m in (c.measured for c in columns.values())]
    faults = [f"{c.measured.faults} ({c.measured.user_faults} users')" for c in columns.values()]
    rewards = [_number(corpus.measured.reward) for corpus in columns.values()]
    names = [in_one_line(name) for name in columns]  # of people's files, and anything
    rows = [names, heads, faults, rewards, *cells.values()]
    widths = [max(len(row[place]) for row in rows) for place in range(len(columns))]

    def line(name: str, row: Sequence[str]) -> str:
        padded = [cell.ljust(w) for cell, w in zip(row, widths, strict=True)]
        return "  ".join([name.ljust(width), *padded]).rstrip()

    yield line("", names)
    yield line("dialogues", heads)
    yield line("faults", faults)
    yield line("reward", rewards)
    number = 0
    for name, row in cells.items():
        if not any(row):
            continue
        if CATALOGUE[name].number != number:
            number = CATALOGUE[name].number
            yield f"{number} {METRICS[number]}"
        yield line(f"  {name}", row)


def _cell(figure: Figure, column: str, columns: Mapping[str, Corpus]) -> str:
    estimates = {name: c.measured.figures.get(figure.name) for name, c in columns.items()}
    mine = estimates.pop(column)
    if mine is None:
        return ""
    others = [other for other in estimates.values() if other is not None]
    return f"{_number(mine)} !" if is_worst(figure, mine, others) else _number(mine)


def _number(estimate: Interval) -> str:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return "" if estimate.value is None else f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def is_worst(figure: Figure, mine: Interval, others: Sequence[Interval]) -> bool:
    """Whether an estimate is worse than all others, its interval apart from each of theirs."""
    if figure.better == "compare" or not others or mine.low is None or mine.high is None:
        return False
    for other in others:
        if other.low is None or other.high is None:
            return False
        if figure.better == "lower" and mine.low <= other.high:
            return False
        if figure.better == "higher" and mine.high >= other.low:
            return False
    return True


def _beside(name: str, corpus: Corpus) -> Iterator[str]:
    """What stands below the table: the other tiers, monitors, distances."""
    if corpus.tags is not None:
        agreed = corpus.tags.agreement
        yield f"{name}: tags and words agree on {agreed.share:.1%} of {agreed.n} turns" + (
            "" if agreed.kappa is None else f" (kappa {agreed.kappa:.2f})"
        )
    for figure, judged in corpus.judged.items():
        agreed = judged.agreement
        if judged.value is not None and agreed.share is not None:
            yield (
                f"{name}: judges say {figure} {judged.value:.3f}, the words {judged.by_words:.3f}; they "
                f"agree on {agreed.share:.1%} of {agreed.n} turns; {judged.unproved} without evidence"
            )
    for alarm in corpus.alarms:
        yield f"{name}: {alarm}"
    if corpus.beside is None:
        return
    if corpus.beside.calibration_error is not None:
        yield f"{name}: success is off by {corpus.beside.calibration_error:.3f} (27 calibration)"
    told = [d for d in corpus.beside.distances if d.halves is not None]
    apart = [d for d in told if d.halves is not None and d.value > d.halves]
    if not told:
        yield f"{name}: no distance: too few dialogues, or too few tasks of the reference to halve it"
    elif not apart:
        yield f"{name}: in nothing further from the reference than its own halves are apart"
    apart.sort(key=lambda d: (d.kind != "jsd", d.halves - d.value if d.halves is not None else 0))
    for d in apart[:_FURTHEST]:
        yield (
            f"{name}: {d.name} ({d.outcome}) is {d.value:.3f} from the reference by {d.kind}; its own "
            f"halves are {d.halves:.3f} apart"
        )
