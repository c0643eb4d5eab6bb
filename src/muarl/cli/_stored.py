"""What the verbs share that read the episodes of runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

import anyio

from muarl.cli._torn import tell_torn
from muarl.errors import RecordError, SetupError, UsageError, did_you_mean
from muarl.record import StoredEpisodes
from muarl.record.odd_files import refuse_no_run
from muarl.spec import Located, RewardFile, RunSpec, load_spec
from muarl.spec.declared_tools import tools_in
from muarl.spec.finding import Finding, unknown
from muarl.suite import AnyDomain, load_any_domain

JOURNAL = "episodes.journal"


def add_runs(parser: argparse.ArgumentParser) -> None:
    """Declare which episodes are read."""
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="folders of runs, such as all shards"
    )
    parser.add_argument(
        "--phase",
        action="append",
        default=[],
        metavar="NAME",
        help="only episodes of this phase, such as `train`; may be given several times",
    )


def add_domain(parser: argparse.ArgumentParser) -> None:
    """Declare what judges the episodes."""
    parser.add_argument(
        "--domain", type=Path, metavar="PATH", help="the domain (default: the run's)"
    )
    parser.add_argument(
        "--reward",
        type=Path,
        metavar="FILE",
        help="predicates that count instead of the domain's and the tasks'",
    )


def stored_episodes(args: argparse.Namespace) -> StoredEpisodes:
    """The episodes to read.

    Raises:
        UsageError: A folder holds no journal, or there is no such phase.
        RecordError: There is nothing to read.
    """
    journals = _journals(args.runs)
    for run in args.runs:
        refuse_no_run(run, JOURNAL)
        tell_torn(run)
    stored = StoredEpisodes(journals)
    phases = {head.key.phase for head in stored.heads()}
    if not phases:
        raise RecordError(f"{args.runs[0]}: no episode is finished")
    for phase in args.phase:
        if phase not in phases:
            hint = did_you_mean(phase, phases) or f"; phases: {', '.join(sorted(phases))}"
            raise UsageError(f"no episode is of phase {phase!r}{hint}")
    return StoredEpisodes(journals, args.phase) if args.phase else stored


def files_of(runs: Iterable[Path]) -> list[Path]:
    """What is read of runs, and no output may replace; their files may be links to others."""
    runs = list(runs)
    return [*runs, *_journals(runs), *(run / "spec.resolved.yaml" for run in runs)]


def _journals(runs: Iterable[Path]) -> list[Path]:
    return [run / JOURNAL for run in runs]


def spec_of(run: Path) -> Located[RunSpec]:
    """The spec a run was carried out with; its paths are relative to its folder.

    Raises:
        SpecError: It is not there, or was spoiled.
    """
    return load_spec(run / "spec.resolved.yaml", RunSpec)


def domain_of(args: argparse.Namespace) -> AnyDomain:
    """The domain that judges: the one that was named, or the first run's.

    Raises:
        SpecError: It cannot be loaded.
        SetupError: The run's domain is not where it was.
    """
    if args.domain is not None:
        return load_any_domain(args.domain)
    spec = spec_of(args.runs[0])
    path = spec.resolve(spec.spec.domain)
    if not path.exists():
        raise SetupError(
            f"{args.runs[0]}: its domain is not at {path} any more; name it with --domain"
        )
    return load_any_domain(path)


def predicates_of(args: argparse.Namespace, domain: AnyDomain) -> RewardFile | None:
    """The predicates of `--reward`, if it was given.

    Raises:
        SpecError: The file is wrong, or names a tool that the domain does not offer.
        ToolServerError: The domain's tool server does not start.
    """
    if args.reward is None:
        return None
    located = load_spec(args.reward, RewardFile)
    located.refuse(_unknown_tools(located.spec, domain))
    return located.spec


def _unknown_tools(predicates: RewardFile, domain: AnyDomain) -> Iterator[Finding]:
    sides: dict[str, list[str]] = {"agent": [], "user": []}
    for one in domain.members:
        sides["agent"] += [tool.name for tool in anyio.run(one.tools)]
        sides["user"] += [tool.name for tool in anyio.run(one.user_tools)]
    for field, listed in (("reward", predicates.reward), ("metrics", predicates.metrics or ())):
        for loc, by, tool in tools_in(listed):
            if tool not in sides[by]:
                yield Finding((field, *loc), unknown("tool", tool, sides[by]))
