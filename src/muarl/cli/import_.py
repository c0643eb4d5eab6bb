"""`muarl import tau1|tau2|bfcl|acebench --from PATH --to FOLDER`: a public benchmark's tasks as domains.

PATH is your copy of sierra-research/tau-bench (tau1), tau2-bench (tau2), gorilla (bfcl) or ACEBench
(acebench): a checkout, or the folder of an installed package. Nothing is downloaded, and nothing of it
is executed. Its files are recognised by their hashes, so that a score says of which version it is. See
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from muarl.cli._answer import answer
from muarl.cli._telling import remark
from muarl.errors import SetupError, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "benchmark", choices=("tau1", "tau2", "bfcl", "acebench"), help="which benchmark"
    )
    parser.add_argument(
        "--from", dest="source", type=Path, required=True, metavar="PATH", help="your copy of it"
    )
    parser.add_argument(
        "--to", type=Path, required=True, metavar="FOLDER", help="where the domains are written"
    )
    parser.add_argument(
        "--domain",
        action="append",
        dest="domains",
        choices=("retail", "airline", "telecom", "mock"),
        help="tau1, tau2: which of its domains, once for each; left out, all",
    )
    parser.add_argument(
        "--version",
        choices=("v0.2.0", "HEAD", "V3", "V4"),
        help="tau2 (v0.2.0, HEAD) and bfcl (V3, V4): refuse tasks of another version (the paper's are "
        "those of v0.2.0 and V3)",
    )
    parser.add_argument(
        "--policy",
        choices=("telecom", "telecom-workflow"),
        default="telecom",
        help="tau2: which technical manual telecom's agent reads (default: %(default)s)",
    )
    parser.add_argument(
        "--judge-model",
        metavar="NAME",
        help="tau2: who judges assertions in natural language; left out, they are not judged, which "
        "every reward says",
    )
    parser.add_argument(
        "--judge-url", metavar="URL", help="tau2: the endpoint of --judge-model, `http://.../v1`"
    )
    parser.add_argument(
        "--judge-key-env", metavar="NAME", help="tau2: the environment variable with its key"
    )
    parser.add_argument(
        "--official-checker",
        action="store_true",
        help="bfcl: have each dialogue judged by the installed package bfcl-eval as well, as a metric",
    )
    parser.add_argument(
        "--accept-unknown", action="store_true", help="import files of no known version as well"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace files of folders that are there already"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Write a folder for each domain, and say what was left out.

    Raises:
        UsageError: There is no copy, or the benchmark has not what was asked for.
        SetupError: The copy lacks something, or is of another version; or nothing can be written.
    """
    try:
        domains = list(_import(args))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # A copy of no known version may hold anything in any form.
        raise SetupError(
            f"{args.source}: its files are not formed as those of {args.benchmark} are "
            f"({type(error).__name__}: {error}); is it a whole copy, of a known version?"
        ) from error
    if args.json:
        answer(json.dumps({"benchmark": args.benchmark, "domains": domains}))
    return 0


def _import(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Each domain as it is written: its folder, and what is known of it."""
    from muarl.compat.tau.importer import (
        TAU1_DOMAINS,
        TAU2_DOMAINS,
        imported_tau1,
        imported_tau2,
    )
    from muarl.compat.tau.writing import write

    if not args.source.is_dir():
        raise UsageError(f"there is no folder {args.source}; --from names your copy")
    _refuse_unfit(args)
    if args.benchmark in ("acebench", "bfcl"):
        yield from _import_acebench(args) if args.benchmark == "acebench" else _import_bfcl(args)
        return
    if (args.judge_model is None) != (args.judge_url is None):
        raise UsageError("--judge-model and --judge-url go together")
    if args.benchmark == "tau1":
        chosen = args.domains or TAU1_DOMAINS
        if other := [name for name in chosen if name not in TAU1_DOMAINS]:
            raise UsageError(f"tau-bench has no {other[0]}; it has {' and '.join(TAU1_DOMAINS)}")
        domains = imported_tau1(args.source, domains=chosen, accept_unknown=args.accept_unknown)
    else:
        judge = None
        if args.judge_model is not None:
            judge = {"model": args.judge_model, "base_url": args.judge_url}
            if args.judge_key_env is not None:
                judge["api_key_env"] = args.judge_key_env
        domains = imported_tau2(
            args.source,
            domains=args.domains or TAU2_DOMAINS,
            version=args.version,
            accept_unknown=args.accept_unknown,
            judge=judge,
            policy=args.policy,
        )
    for made in domains:
        folder = args.to / made.folder
        if folder.exists() and not args.overwrite:
            raise SetupError(f"{folder} is there already; replace its files with --overwrite")
        try:
            write(made, args.to)
        except OSError as error:
            raise SetupError(
                f"cannot write {error.filename or folder}: {error.strerror}"
            ) from error
        splits = {**made.splits, **made.more_splits}
        counts = ", ".join(f"{name} {len(ids)}" for name, ids in splits.items())
        if not args.json:
            answer(f"{folder}: {made.summary} Tasks: {counts}")
        for note in made.notes:
            remark(f"{folder}: {note}")
        yield {
            "folder": str(folder),
            "summary": made.summary,
            "tasks": {name: len(ids) for name, ids in splits.items()},
            "notes": list(made.notes),
        }


_VERSIONS = {"tau2": ("v0.2.0", "HEAD"), "bfcl": ("V3", "V4")}


def _refuse_unfit(args: argparse.Namespace) -> None:
    """Options that the benchmark has not."""
    if args.domains and args.benchmark in ("acebench", "bfcl"):
        raise UsageError(
            f"{args.benchmark} has no --domain: its domains are made of what tasks have in common"
        )
    known = _VERSIONS.get(args.benchmark, ())
    if args.version is not None and args.version not in known:
        raise UsageError(
            f"{args.benchmark} has no version {args.version!r} to choose"
            + (f"; versions: {' and '.join(known)}" if known else "")
        )
    if args.official_checker and args.benchmark != "bfcl":
        raise UsageError("--official-checker is for bfcl")


def _import_bfcl(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    from muarl.compat.bfcl.importer import write_domains

    written = write_domains(
        args.source,
        args.to,
        version=None if args.version is None else args.version.lower(),
        accept_unknown=args.accept_unknown,
        official_checker=args.official_checker,
        overwrite=args.overwrite,
    )
    for folder, what in written:
        if not args.json:
            answer(f"{folder}: {what}")
        yield {"folder": str(folder), "summary": what}


def _import_acebench(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    from muarl.compat.acebench.importer import write_domains

    written = write_domains(
        args.source, args.to, accept_unknown=args.accept_unknown, overwrite=args.overwrite
    )
    for folder in written:
        if not args.json:
            answer(str(folder))
        yield {"folder": str(folder)}
