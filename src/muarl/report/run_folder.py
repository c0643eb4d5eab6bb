"""Read what a run left in its folder, however far it got.

The folder's form:

    spec.resolved.yaml    the run file as it was used
    versions.json         any JSON object
    metrics.jsonl         one JSON object a line; its `kind` says what it holds
    episodes.journal      finished episodes
    learned.jsonl         what updates made of single episodes, see `muarl.record.learned`
    grid.json             of a grid: what was found
    model/                tokenizer.json and, once saved, model.safetensors
    tokenizer/            tokenizer.json, of a model that only played here

The first three are written at the start, so a folder without them is not a run. The rest may be
missing; the report says so.

Kinds of metric lines, all fields optional:

    cold_start   step, loss, lr, held_out_loss where it was measured; user_cold_start likewise
    iteration    iteration, reward_mean, reward_low, reward_high, groups_all_pass, groups_mixed,
                 groups_all_fail, kl, entropy, ratio_max, first_ratio_max, clip_fraction, grad_norm,
                 max_logprob_gap, sync_gap, turns_mean, response_tokens_mean,
                 tool_calls {tool: calls per episode}, tool_errors {tool: share of its calls},
                 distinct {n: share of n-grams that are new}, sampled_tokens_per_s, wall_s, rollout_s,
                 faults, fork_rate, token_drift, policy_version, users, user_model, observed
    eval         phase ("base", "cold", "final"), temperature, observed, and the fields of an
                 EvalSummary; the first line's temperature is the headline's
    rollout      phase ("rollout"), and the rest as of eval
    users        phase and temperature, or policy and user of a grid; dialogues, tasks, faults, user_faults,
                 figures {name of a figure of `muarl.measure`: Interval}
    perturbed    temperature, and the fields of a `muarl.evaluate.robustness.Robustness`
    observed     policy and user of a grid, and what was measured as they played
    floor        name of a trivial policy, success (a number or an Interval)
    overlap      against (a set that is not to be trained on), shared (of its items, those that are
                 like what is trained on), tasks (its items), exact, pairs, accepted (why)

`observed` holds the figures of `muarl.observe.Snapshot.figures`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from muarl.errors import NoRunError, RecordError, SpecError
from muarl.record.odd_files import refuse_no_run, refuse_odd_files
from muarl.spec.document import parse_document

_KINDS = (
    "cold_start",
    "user_cold_start",
    "iteration",
    "validation",
    "eval",
    "floor",
    "overlap",
    "rollout",
    "users",
    "perturbed",
    "observed",
)
_TOLD_BY = {
    "overlap": "against",
    "cold_start": "step",
    "user_cold_start": "step",
    "iteration": "iteration",
    "validation": "iteration",
}
_MAX_HEADER = 100_000_000  # the size safetensors itself allows


@dataclass(slots=True)
class RunFolder:
    """What a run folder says.

    Attributes:
        path: The folder.
        spec: The resolved run file, as plain data.
        spec_text: The same, as written.
        versions: What the run recorded about its machine and libraries.
        lines: Kind of metric line to its lines, in order; of lines that a resumed run wrote
            again, the last.
        notices: What a reader should know about the data, in sentences.
    """

    path: Path
    spec: dict[str, Any]
    spec_text: str
    versions: dict[str, Any]
    lines: dict[str, list[dict[str, Any]]]
    notices: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What the folder is called."""
        return sound(self.path.resolve().name)

    @property
    def journal(self) -> Path:
        """Where the episodes are."""
        return self.path / "episodes.journal"

    @property
    def tokenizer(self) -> Path:
        """Where the tokenizer is: the model's, or that of a model which only played here."""
        own = self.path / "model" / "tokenizer.json"
        return own if own.exists() else self.path / "tokenizer" / "tokenizer.json"

    def grid(self) -> dict[str, Any] | None:
        """What `muarl eval` found of a grid of policies and users; None where this is none.

        Raises:
            RecordError: Its file is damaged.
        """
        path = self.path / "grid.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise RecordError(f"{path}: expected a JSON object: {error}") from error

    def num_parameters(self) -> int | None:
        """Size of the saved model, read from the header of its safetensors file."""
        path = self.path / "model" / "model.safetensors"
        try:
            with path.open("rb") as file:
                (size,) = struct.unpack("<Q", file.read(8))
                header = msgspec.json.decode(file.read(min(size, _MAX_HEADER)), type=_Header)
        except FileNotFoundError:
            return None
        except (
            OSError,
            struct.error,
            msgspec.MsgspecError,
            UnicodeDecodeError,
            RecursionError,
        ) as error:
            raise RecordError(f"{path}: not a safetensors file ({error})") from error
        total = 0
        for tensor in header.values():
            count = 1
            for length in tensor.shape:
                count *= length
            total += count if tensor.dtype else 0
        return total


class _Tensor(msgspec.Struct):
    """An entry of a safetensors header; the `__metadata__` entry has no dtype."""

    dtype: str = ""
    shape: list[int] = []


_Header = dict[str, _Tensor]


def read_run_folder(path: Path) -> RunFolder:
    """Read everything but the episodes.

    Raises:
        NoRunError: The folder is no run.
        RecordError: A file in it is damaged; names file and line.
    """
    refuse_no_run(path)
    refuse_odd_files(path)
    spec_path = path / "spec.resolved.yaml"
    spec_text = _read_text(spec_path)
    try:
        document, problems = parse_document(spec_text, str(spec_path))
    except SpecError as error:
        raise RecordError(f"not the spec of a run: {error}") from error
    if problems:
        raise RecordError(f"not the spec of a run: {problems[0]}")
    spec = document.data
    if not isinstance(spec, dict):
        raise RecordError(f"{spec_path}: expected a run file, a mapping")
    versions_path = path / "versions.json"
    try:
        versions = msgspec.json.decode(_read_text(versions_path), type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RecordError(f"{versions_path}: expected a JSON object: {error}") from error
    folder = RunFolder(path, spec, spec_text, versions, {})
    _read_metrics(path / "metrics.jsonl", folder)
    folder.notices += map(_accepted, folder.lines["overlap"])
    return folder


def sound(name: str) -> str:
    """A file's name as a page can hold it: U+FFFD for bytes that are no text."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _accepted(line: dict[str, Any]) -> str:
    """What a reader must know of a policy that was trained on what it must not see."""
    return (
        f"{line.get('shared', '?')} of the {line.get('tasks', '?')} items of {line.get('against', '?')} "
        f"overlap with what was trained on ({line.get('exact', '?')} are the same). It was accepted: "
        f"{line.get('accepted', '?')}"
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NoRunError(f"{path}: missing, so {path.parent} is not the folder of a run") from error
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error


def _read_metrics(path: Path, folder: RunFolder) -> None:
    text = _read_text(path)
    latest: dict[str, dict[Any, dict[str, Any]]] = {kind: {} for kind in _KINDS}
    unknown: dict[str, int] = {}
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = msgspec.json.decode(line, type=dict[str, Any])
            kind = msgspec.convert(entry.pop("kind", None), str)
        except (msgspec.MsgspecError, RecursionError) as error:
            if number == len(lines):  # the run was killed while it wrote this line
                folder.notices.append(f"{path.name}: the last line is half-written and left out.")
                continue
            raise RecordError(
                f"{path}:{number}: damaged: expected a JSON object with a text `kind` ({error}); "
                "delete the line to report on the rest"
            ) from error
        if kind in latest:
            latest[kind][_identity(kind, entry, number)] = entry
        else:
            unknown[kind] = unknown.get(kind, 0) + 1
    folder.lines = {kind: list(entries.values()) for kind, entries in latest.items()}
    for kind, count in unknown.items():
        folder.notices.append(f"{path.name}: {count} lines of kind {kind!r} are not shown.")


def _identity(kind: str, entry: dict[str, Any], number: int) -> Any:
    """What a line is about: a resumed run writes the lines after its checkpoint again."""
    if kind in ("eval", "rollout", "users", "perturbed", "observed"):
        names = ("phase", "temperature", "policy", "user", "name")
        about: Any = tuple(map(entry.get, names))
    else:
        about = entry.get(_TOLD_BY.get(kind, "name"))
    return number if about is None else repr(about)
