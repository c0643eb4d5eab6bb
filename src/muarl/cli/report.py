"""`muarl report RUN`: write the HTML report of a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from muarl.cli._answer import answer
from muarl.report import write_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="file to write (default: RUN/report.html)"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace what is there, although it is no report"
    )


def run(args: argparse.Namespace) -> int:
    """Write the report and print where it is."""
    answer(write_report(args.run, args.out, overwrite=args.overwrite))
    return 0
