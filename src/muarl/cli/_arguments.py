"""Arguments that several verbs share."""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Iterator
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from muarl.cli._answer import answer
from muarl.cli._telling import remark
from muarl.spec import (
    Located,
    RunSpec,
    SuiteSpec,
    dump_spec,
    load_domain_spec,
    load_run,
    load_spec,
)
from muarl.spec.base import MOST_PLANNED
from muarl.spec.kinds import kind_of
from muarl.spec.load import splits_of
from muarl.spec.presets import PREFIX
from muarl.spec.run import Seed
from muarl.spec.split_references import split_findings
from muarl.train.packages import package_findings


def add_run(parser: argparse.ArgumentParser) -> None:
    """Declare the run file, its overlays, `--set` and `--dry-run`."""
    add_layers(
        parser,
        "RUN.yaml",
        "run file, then files that hold a part of one, or `preset:NAME`: what they say replaces what it "
        "says",
    )


def add_layers(parser: argparse.ArgumentParser, metavar: str, summary: str) -> None:
    """Declare a file, its overlays, `--set` and `--dry-run`."""
    parser.add_argument("spec", type=Path, nargs="+", metavar=metavar, help=summary)
    parser.set_defaults(files_anywhere=True)
    add_settings(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="print what this comes to, and do nothing"
    )


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Declare `--set`."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="KEY=VALUE",
        help="replace a value of the file, such as grpo.lr=1e-6; may be repeated",
    )


def run_of(args: argparse.Namespace, *, trains: bool = True) -> Located[RunSpec]:
    """The run that `add_run`'s arguments come to; its own model may be missing if nothing reads it.

    Args:
        args: What was typed.
        trains: See `load_run`.

    Raises:
        SpecError: Everything wrong with it.
    """
    given = vars(args)  # not every verb has all of these
    other = given.get("dry_run") or given.get("model") is not None or given.get("expert")
    return load_run(*args.spec, settings=args.settings, without_weights=bool(other), trains=trains)


def answer_run(run: Located[RunSpec]) -> int:
    """Print a run as a file in the current folder would have it, every default written out.

    What it reads that is not here yet is said on stderr.

    Raises:
        SpecError: The domain or the suite that it names is wrong, or has no such split.
    """
    for missing in _not_here(run):
        remark(f"not here yet: {missing}")
    answer(dump_spec(run.spec.moved(run.path.parent, Path()), defaults=True).rstrip())
    return 0


def _not_here(run: Located[RunSpec]) -> Iterator[str]:
    """Packages, weights, dialogues and domains that a run asks for and that are to be had first."""
    for finding in package_findings(run.spec):
        yield f"{'.'.join(map(str, finding.loc))} {finding.message}"
    hers = run.spec.user_model
    models = {"model.path": run.spec.model, "user_model.model.path": hers and hers.model}
    for key, model in models.items():
        if model and model.path and not run.resolve(model.path).is_dir():
            yield f"{key}, {model.path}"
    start = run.spec.cold_start
    if start and start.file and not run.resolve(start.file).is_file():
        yield f"cold_start.file, {start.file}"
    named = run.resolve(run.spec.domain)
    if named.is_file() and kind_of(named) == "suite":
        suite = load_spec(named, SuiteSpec)
        run.refuse(split_findings(run.spec, suite.spec.splits))
        for name, member in suite.spec.members.items():
            if not suite.resolve(member.file).exists():
                yield f"{name} of {run.spec.domain}, {member.file}"
    elif named.exists():
        run.refuse(split_findings(run.spec, splits_of(load_domain_spec(named))))


def name_of_run(args: argparse.Namespace) -> str:
    """What its folder is called if nothing is said: `base-small` for `base.yaml small.yaml`."""
    return "-".join(path.stem.removeprefix(PREFIX) for path in args.spec)


def as_typed(args: argparse.Namespace) -> str:
    """The run file, and all else that makes the run what it is, to be typed again."""
    words = [word for text in args.settings for word in ("--set", text)]
    if args.seed is not None:
        words += ["--seed", str(args.seed)]
    if args.otel:
        words.append("--otel")
    return shlex.join([*map(str, args.spec), *words])


def add_out(parser: argparse.ArgumentParser, default: str) -> None:
    """Declare `--out` and `--overwrite`."""
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help=f"where results go (default: {default})"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace what is in that folder already"
    )


def add_resume(parser: argparse.ArgumentParser, summary: str) -> None:
    """Declare `--resume` and `--accept-changes`."""
    parser.add_argument("--resume", action="store_true", help=summary)
    parser.add_argument(
        "--accept-changes",
        action="store_true",
        help="resume although the domain changed since; what was played stays as it is",
    )


def add_otel(parser: argparse.ArgumentParser) -> None:
    """Declare `--otel`."""
    parser.add_argument(
        "--otel",
        action="store_true",
        help="send OpenTelemetry spans to where OTEL_EXPORTER_OTLP_ENDPOINT says",
    )


def whole(text: str) -> int:
    """Read a whole number.

    Raises:
        ArgumentTypeError: It is none; argparse prints it.
    """
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None


def port(text: str) -> int:
    """Read a port to listen on; 0 is a free one.

    Raises:
        ArgumentTypeError: There is none of that number; argparse prints it.
    """
    if not (text.isascii() and text.isdigit()) or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 65535, got {text!r}")
    return int(text)


def positive(text: str) -> int:
    """Read a number of at least 1, of things that are planned or held one by one.

    Raises:
        ArgumentTypeError: It is less, or more than a run file may say; argparse prints it.
    """
    number = whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    if number > MOST_PLANNED:
        raise argparse.ArgumentTypeError(f"must be at most {MOST_PLANNED:,}, got {text}")
    return number


def finite(text: str) -> float:
    """Read a number that others can be compared with.

    Raises:
        ArgumentTypeError: It is infinite or none; argparse prints it.
    """
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text}")
    return number


def share(text: str) -> float:
    """A share above 0."""
    value = finite(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"expected a share in (0, 1], got {text!r}")
    return value


def seed(text: str) -> int:
    """Read a seed, within the bounds that a run file's has.

    Raises:
        ArgumentTypeError: It is beyond them; argparse prints it.
    """
    number = whole(text)
    try:
        return TypeAdapter(Seed).validate_python(number)
    except ValidationError:
        raise argparse.ArgumentTypeError(f"must be a 64-bit integer, got {number}") from None
