"""Prove a domain sound, without any model; of a run or grid file, that and its domain or domains.

Looks at every problem of its spec files; starts the tool server; makes each task's gold calls, which
must earn 1 where doing nothing earns less, and reading more changes neither; looks whether all that a
task needs can be known; compares tasks and splits; lets policies without skill and the domain's expert
talk with the scripted users. Exit code 1 if something was found, 2 if the spec files cannot be read.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from contextvars import copy_context
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.cli._answer import answer
from muarl.cli._arguments import add_settings, positive, run_of
from muarl.cli._printable import in_one_line
from muarl.cli._problems import in_lines
from muarl.cli._provided import as_json as plugins_as_json
from muarl.cli._provided import in_words as plugins_in_words
from muarl.cli._provided import named_plugins
from muarl.cli._telling import erase_step, remark, show_step
from muarl.errors import Problem, SetupError, SpecError
from muarl.spec import (
    DomainSpec,
    Located,
    RunSpec,
    SuiteSpec,
    TasksFile,
    load_domain_spec,
    load_grid,
    load_run,
    load_spec,
    load_suite_spec,
    load_synth,
    load_task_files,
)
from muarl.spec.kinds import is_overlay, kind_of
from muarl.spec.load import splits_of
from muarl.spec.mend import files_of, mended
from muarl.spec.schema import KINDS
from muarl.spec.speech import language_findings, untold_findings
from muarl.spec.split_references import member_findings, split_findings

if TYPE_CHECKING:
    from muarl.data.proof import Fuzzed, Means, Proof
    from muarl.data.proof.finding import ProofFinding

_PASSED = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "spec",
        type=Path,
        nargs="+",
        metavar="SPEC",
        help="a domain's file, or its folder; a suite; a grid file; or a run file, and what is laid over "
        "it",
    )
    parser.set_defaults(files_anywhere=True)
    add_settings(parser)
    parser.add_argument(
        "--offline",
        action="store_true",
        help="spec files only: start nothing, and import nothing but a run's own loop",
    )
    parser.add_argument(
        "--fix",
        action="store_true",
        help="first mend the files, a domain's tasks too: the line that names their schema, their "
        "version, an old form; any other kind of spec file may be named as well",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object for each domain")
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="look at no more than N tasks of a split"
    )
    parser.add_argument(
        "--fuzz", type=positive, default=0, metavar="N", help="also try N gold runs with a mistake"
    )


def run(args: argparse.Namespace) -> int:
    """Check the domain.

    Raises:
        SpecError: Its files cannot be loaded.
    """
    try:
        run_file = None
        beside: list[Located[Any]] = []  # what is named with the domain, and may name plug-ins
        first, *overlays = args.spec
        if args.fix:
            _fix(args.spec)
            kind = "domain" if first.is_dir() else kind_of(first)
            if kind not in ("domain", "run", "grid", "suite", "synth"):
                load_spec(first, KINDS[kind])
                return 0
            if is_overlay(first):
                return 0
        if not first.is_dir() and kind_of(first) == "run":
            run_file = run_of(args)
            beside = [run_file]
        elif not first.is_dir() and kind_of(first) == "synth":
            synth = load_synth(*args.spec, settings=args.settings)
            run_file = Located(synth.spec.as_run(synth.path.parent), synth.path, synth.root)
            beside = [synth]
        else:
            if not first.is_dir() and kind_of(first) == "grid":
                grid = load_grid(first)
                run_file = load_run(grid.resolve(grid.spec.run))
                beside = [grid, run_file]
            if overlays or args.settings:
                what = f"{first} is no run file; only a run or synth file has something over it"
                remark(f"muarl check: error: {what}")
                return 2
        if run_file is not None and run_file.spec.rollout.loop is not None:
            from muarl.train.run_loop import loop_of

            loop_of(run_file)  # found broken here, and not as it is to lead the first dialogue
        named = first if run_file is None else run_file.resolve(run_file.spec.domain)
        if named.is_file() and kind_of(named) == "suite":
            return _suite(load_suite_spec(named), run_file, beside, args)
        return _domain(load_domain_spec(named), run_file, beside, args)
    except SpecError as error:
        if not args.json:
            raise
        findings = [_finding("spec", problem, None) for problem in error.problems]
        answer(json.dumps({"sound": False, "findings": findings}))
        return error.exit_code


def _domain(
    located: Located[DomainSpec],
    run_file: Located[RunSpec] | None,
    beside: Sequence[Located[Any]],
    args: argparse.Namespace,
) -> int:
    if args.offline:
        return _offline(located, run_file, beside, as_json=args.json)
    return _prove(located, run_file, beside, args.limit, args.fuzz, as_json=args.json)


def _suite(
    located: Located[SuiteSpec],
    run_file: Located[RunSpec] | None,
    beside: Sequence[Located[Any]],
    args: argparse.Namespace,
) -> int:
    """One domain after another, and then the run that they are for."""
    if run_file is not None:
        run_file.refuse(split_findings(run_file.spec, located.spec.splits))
    paths = {name: located.resolve(one.file) for name, one in located.spec.members.items()}
    domains = {path: load_domain_spec(path) for path in paths.values()}
    splits = {name: splits_of(domains[path]) for name, path in paths.items()}
    located.refuse(member_findings(located.spec, splits))
    code = max([_domain(domain, None, [located, *beside], args) for domain in domains.values()])
    if run_file is not None and code == 0 and not args.offline:
        from muarl.suite import load_domain_of
        from muarl.train.run_domain import refuse_unfit

        refuse_unfit(run_file, load_domain_of(run_file))
    return code


def _fix(paths: Sequence[Path]) -> None:
    """Mend spec files, and say on stderr what was mended.

    Raises:
        SpecError: One cannot be read.
        SetupError: One cannot be written.
    """
    for path in dict.fromkeys(file for given in paths for file in files_of(given)):
        mending = mended(path)
        try:
            mending.write()
        except OSError as error:
            raise SetupError(f"cannot write {error.filename or path}: {error.strerror}") from error
        for change in mending.changes:
            remark(f"{path}: {change}")


def _offline(
    located: Located[DomainSpec],
    run_file: Located[RunSpec] | None,
    beside: Sequence[Located[Any]],
    *,
    as_json: bool,
) -> int:
    files = load_task_files(located)
    if run_file is not None:
        run_file.refuse(split_findings(run_file.spec, splits_of(located, files)))
    if problems := _of_speech(located, files):
        raise SpecError(problems)
    tasks = sum(len(file.spec.tasks) for file in files)
    named = named_plugins([located, *beside, *files])
    if as_json:
        said = {"domain": located.spec.id, "sound": True, "findings": []}
        answer(json.dumps({**said, "plugins": plugins_as_json(named)}))
    else:
        count = 1 + len(files) + (run_file is not None)
        lines = [f"{located.spec.id}: specs are valid ({count} files, {tasks} tasks in them)"]
        answer("\n".join([*lines, *plugins_in_words(named)]))
    return 0


def _of_speech(located: Located[DomainSpec], files: Sequence[Located[TasksFile]]) -> list[Problem]:
    """What is wrong with the language of scripted users, as far as files hold their tasks."""
    tasks = [task for file in files for task in file.spec.tasks]
    found = language_findings(located.spec, tasks)
    problems = [located.problem(f.loc, f.message, at_key=f.at_key) for f in found]
    for file in files:
        for index, task in enumerate(file.spec.tasks):
            problems += [
                file.problem(("tasks", index, *f.loc), f"task {task.id!r}: {f.message}")
                for f in untold_findings(task, located.spec)
            ]
    return problems


def _prove(
    located: Located[DomainSpec],
    run_file: Located[RunSpec] | None,
    beside: Sequence[Located[Any]],
    limit: int | None,
    fuzz: int,
    *,
    as_json: bool,
) -> int:
    def on_step(step: str) -> None:
        show_step(f"checking {step}")

    def on_remark(text: str) -> None:
        erase_step()
        remark(text)

    here = copy_context()  # in which stdout is for answers

    def on_stuck(proof: Proof) -> None:
        erase_step()
        try:
            here.run(answer, json.dumps(_as_json(proof)) if as_json else _in_words(proof))
        finally:
            os._exit(1)  # nothing else ends code that never returns

    on_step("what is installed")
    # The SDK behind tool servers is slow to import: --offline and --help go without it.
    import anyio

    from muarl.cli._waiting import waiting_told
    from muarl.data.proof import prove
    from muarl.domain import Domain
    from muarl.train.run_domain import refuse_unfit

    domain = Domain(located)
    if run_file is not None:
        run_file.refuse(split_findings(run_file.spec, domain.splits))

    async def main() -> Proof:
        return await prove(
            domain,
            limit=limit,
            fuzz=fuzz,
            on_step=on_step,
            on_remark=on_remark,
            on_stuck=on_stuck,
        )

    with waiting_told():
        try:
            proof = anyio.run(main)
        finally:
            erase_step()
        if run_file is not None and proof.sound:
            refuse_unfit(run_file, domain)
        tasks = [task for split in proof.tasks for task in domain.tasks(split)]
    named = named_plugins([located, *beside], tasks)
    if as_json:
        answer(json.dumps({**_as_json(proof), "plugins": plugins_as_json(named)}))
    else:
        answer(_in_words(proof, plugins_in_words(named)))
    return 0 if proof.sound else 1


def _in_words(proof: Proof, plugins: Iterable[str] = ()) -> str:
    tasks = ", ".join(f"{split} {count}" for split, count in proof.tasks.items())
    lines = [
        f"{proof.domain}: {sum(proof.tasks.values())} tasks ({tasks})",
        f"  tools: {', '.join(proof.tools) or 'none'}",
    ]
    if proof.user_tools:
        lines.append(f"  the user's tools: {', '.join(proof.user_tools)}")
    lines += plugins
    if proof.idle:
        lines.append(f"  doing nothing earns {_means(proof.idle)}")
    for name, means in proof.floor.items():
        lines.append(f"  {name} earns {_means(means)}{_passed(proof.passed.get(name, []))}")
    if proof.expert:
        lines.append(f"  the expert earns {_means(proof.expert)}")
    if proof.fuzz is not None:
        lines.append(f"  {_fuzzed(proof.fuzz)}")
    lines += [f"  not proved: {reason}" for reason in proof.skipped]
    lines = [in_one_line(line) for line in lines]
    lines += in_lines([finding.problem for finding in proof.findings], "; --json prints all")
    if proof.of_benchmark:
        lines.append(in_one_line(f"  of {proof.benchmark} itself: {_counted(proof.of_benchmark)}"))
    count = len(proof.findings)
    lines.append("sound" if proof.sound else f"{count} {'finding' if count == 1 else 'findings'}")
    return "\n".join(lines)


def _counted(findings: Sequence[ProofFinding]) -> str:
    """How many findings there are of each check."""
    counts = Counter(str(finding.check) for finding in findings)
    return f"{', '.join(f'{check} {n}' for check, n in counts.items())} (--json names them)"


def _means(means: Means) -> str:
    return ", ".join(
        f"{mean.value:.3f} on {split} ({mean.n})"
        if mean.value is not None
        else f"nothing that counts on {split} (0)"
        for split, mean in means.items()
    )


def _passed(tasks: list[str]) -> str:
    """Tasks that a policy without skill passes."""
    if not tasks:
        return ""
    shown = ", ".join(tasks[:_PASSED])
    more = f" and {len(tasks) - _PASSED} more" if len(tasks) > _PASSED else ""
    return f"; passes {shown}{more}"


def _fuzzed(fuzz: Fuzzed) -> str:
    return (
        f"{fuzz.runs} gold runs with a mistake: {fuzz.counted} left another world, "
        f"{fuzz.passed} of them passed"
    )


def _as_json(proof: Proof) -> dict[str, Any]:
    return {
        "domain": proof.domain,
        "sound": proof.sound,
        "tasks": proof.tasks,
        "tools": proof.tools,
        "user_tools": proof.user_tools,
        "idle": _values(proof.idle),
        "floor": {name: _values(means) for name, means in proof.floor.items()},
        "passed": proof.passed,
        "expert": _values(proof.expert),
        "fuzz": None if proof.fuzz is None else asdict(proof.fuzz),
        "skipped": proof.skipped,
        "findings": [_finding(f.check, f.problem, f.task_id) for f in proof.findings],
        "benchmark": proof.benchmark,
        "of_benchmark": [_finding(f.check, f.problem, f.task_id) for f in proof.of_benchmark],
    }


def _values(means: Means) -> dict[str, dict[str, float | None]]:
    return {
        split: {"value": mean.value, "low": mean.low, "high": mean.high, "n": mean.n}
        for split, mean in means.items()
    }


def _finding(check: str, problem: Problem, task_id: str | None) -> dict[str, Any]:
    return {"check": str(check), "task": task_id, **asdict(problem)}
