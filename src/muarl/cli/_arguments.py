"""Arguments that several verbs share."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from muarl.spec.run import Seed


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


def positive(text: str) -> int:
    """Read a number of at least 1.

    Raises:
        ArgumentTypeError: It is less; argparse prints it.
    """
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return number


def finite(text: str) -> float:
    """Read a number that others can be compared with.

    Raises:
        ArgumentTypeError: It is infinite or none; argparse prints it.
    """
    number = float(text)
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text}")
    return number


def seed(text: str) -> int:
    """Read a seed, within the bounds that a run file's has.

    Raises:
        ArgumentTypeError: It is beyond them; argparse prints it.
    """
    number = int(text)
    try:
        return TypeAdapter(Seed).validate_python(number)
    except ValidationError:
        raise argparse.ArgumentTypeError(f"must be a 64-bit integer, got {number}") from None
