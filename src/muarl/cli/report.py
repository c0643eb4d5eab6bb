"""Write the HTML report of a run, or of several side by side: one file that needs nothing but a browser.

It holds what training did, held-out success, and the dialogues, to be filtered and read; its numbers
can be downloaded from it. docs/report.md says what each part means; `muarl view` reads a run that is too
large for one page.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from muarl.cli._answer import answer
from muarl.cli._telling import remark
from muarl.cli._torn import tell_torn
from muarl.report import write_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "runs",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="folder of a run; several are shown side by side",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="file to write (default: RUN/report.html; of several runs it must be given)",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace what is there, although it is no report"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Write the report and print where it is."""
    for run in args.runs:
        tell_torn(run)
    page = write_report(args.runs, args.out, overwrite=args.overwrite, on_notice=remark)
    answer(
        json.dumps({"report": str(page), "runs": list(map(str, args.runs))}) if args.json else page
    )
    return 0
