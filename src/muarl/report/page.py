"""Put runs into one HTML file.

The page fetches nothing, and its content security policy forbids it to: `default-src 'none'`, with
the hashes of the page's own script and style as the only exceptions. Text from models, users and
tools travels in a JSON data block in which `<`, `>` and `&` are escaped, or compressed and in base64,
so nothing in it can end the block; the script turns it into text nodes, never into markup. Should that
ever fail, the browser refuses to make markup of text (trusted types), and runs no script but ours.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from muarl.errors import UsageError
from muarl.record.learned import FILE as LEARNED
from muarl.record.learned import read_learned
from muarl.record.placing import placed
from muarl.record.saving import saving
from muarl.report.catalogue import catalogue
from muarl.report.differing import differing_settings
from muarl.report.embed import PAGE_BYTES, Listed, embed, list_journal
from muarl.report.html_page import html_page
from muarl.report.run_folder import RunFolder, read_run_folder, sound
from muarl.report.tokens import token_texts
from muarl.report.trainings import trainings

_SCRIPTS = (
    "dom.js", "charts.js", "summary.js", "evaluations.js", "users.js", "training.js", "runs.js", "tokens.js", "dialogue.js",
    "compare.js", "episodes.js", "embedded.js", "page.js",
)  # fmt: skip
_GENERATOR = b'<meta name="generator" content="muarl">'
_HEAD_BYTES = 1000  # the page's first lines, before any text of a run


_LOG_LINE = 100_000  # bytes, beyond any line that a log begins with


class _Begun(msgspec.Struct):
    """The first line of a run's log; its times are in UTC."""

    at: datetime


def write_report(
    run_folders: Path | Sequence[Path],
    out: Path | None = None,
    *,
    overwrite: bool = False,
    on_notice: Callable[[str], None] = lambda notice: None,
) -> Path:
    """Write the report of a run, or of several side by side; returns where.

    Args:
        run_folders: What `muarl train` wrote; a run that stopped early is reported as far as it got.
        out: The file to write; default `report.html` in the run folder, if there is but one. An older
            report is replaced.
        overwrite: Replace what is no report, too; never one of a run's own files.
        on_notice: Told what a reader should know about the data, as the page tells her.

    Raises:
        UsageError: A folder is no run, one is given twice, or nobody said where to write.
        RecordError: A file in one is damaged, or the disk says no.
        SetupError: Something is there that must not be replaced.
    """
    paths = [run_folders] if isinstance(run_folders, Path) else list(run_folders)
    if out is None and len(paths) != 1:
        raise UsageError("the report of several runs is in none of their folders: add --out FILE")
    folders = [read_run_folder(path) for path in paths]
    listed = [_listed(folder) for folder in folders]
    target = out or paths[0] / "report.html"
    replaces = overwrite or _is_report(target)
    with placed(target, overwrite=replaces, reads=paths) as fresh:
        page = render(folders, listed)
        with saving(target):
            fresh.write_text(page, encoding="utf-8")
    for folder in folders:
        for notice in folder.notices:
            on_notice(f"{folder.path}: {notice}")
    return target


def _listed(folder: RunFolder) -> Listed:
    if folder.journal.exists():
        return list_journal(folder.journal)
    folder.notices.append(f"{folder.journal.name} is missing: no episode is shown.")
    return Listed([], [], "")


def _is_report(path: Path) -> bool:
    """Whether a page of ours is there."""
    try:
        with path.open("rb") as file:
            return _GENERATOR in file.read(_HEAD_BYTES)
    except OSError:
        return False


def render(folders: Sequence[RunFolder], listed: Sequence[Listed]) -> str:
    """The page as text."""
    runs: list[dict[str, Any]] = []
    packs: list[tuple[str, str]] = []
    room = PAGE_BYTES
    names = _names(folders)
    for at, (folder, episodes) in enumerate(zip(folders, listed, strict=True)):
        # What one run does not need is there for the next.
        learned = read_learned(folder.path / LEARNED)
        found = embed(episodes, folder.journal, learned, room // (len(folders) - at))
        of_run = [
            (f"{kind}-{at}-{number}", pack)
            for kind, all_packs in (("dialogues", found.dialogues), ("tokens", found.tokens))
            for number, pack in enumerate(all_packs)
        ]
        room -= sum(len(pack) for _, pack in of_run)
        packs += of_run
        tokens: dict[int, str] = {}
        if found.token_ids and folder.tokenizer.exists():
            tokens = token_texts(folder.tokenizer, sorted(found.token_ids))
        elif found.token_ids:
            grid = folder.grid() is not None
            why = "its policies have several tokenizers" if grid else "its tokenizer is missing"
            folder.notices.append(f"{why}: tokens are shown as ids.")
        runs.append(
            {
                "run": about(folder, episodes.domain) | {"name": names[at]},
                "cold_start": folder.lines["cold_start"],
                "user_cold_start": folder.lines["user_cold_start"],
                "iterations": folder.lines["iteration"],
                "validations": folder.lines["validation"],
                "evals": [*folder.lines["eval"], *folder.lines["rollout"]],
                "floors": folder.lines["floor"],
                "grid": folder.grid(),
                "users": folder.lines["users"],
                "perturbed": folder.lines["perturbed"],
                "observed": folder.lines["observed"],
                "table": found.table,
                "systems": found.systems,
                "toolsets": found.toolsets,
                "shown": found.shown,
                "tokens": tokens,
            }
        )
    settings = differing_settings([folder.spec for folder in folders])
    first = runs[0]["run"]
    title = f"{first['domain']}, seed {first['seed']}" if len(runs) == 1 else f"{len(runs)} runs"
    return html_page(
        f"{title} · muarl report",
        _SCRIPTS,
        {
            "runs": runs,
            "settings": settings,
            "trainings": trainings(folders, names),
            **catalogue(),
        },
        packs=packs,
    )


def _names(folders: Sequence[RunFolder]) -> list[str]:
    """What runs are called: their folder's name, with as much of its path as tells them apart.

    Raises:
        UsageError: One run is given twice.
    """
    parts = [folder.path.resolve().parts for folder in folders]
    if len(set(parts)) < len(parts):
        raise UsageError("a run is given twice; name each folder once")
    depth = 1
    while len({part[-depth:] for part in parts}) < len(parts):
        depth += 1
    return [sound("/".join(part[-depth:])) for part in parts]


def about(folder: RunFolder, domain: str) -> dict[str, Any]:
    """What stands at the head of a page about a run.

    Args:
        folder: The run's.
        domain: As its episodes call it; "" where there is none.
    """
    spec = folder.spec
    return {
        "name": folder.name,
        "path": sound(shlex.quote(str(folder.path))),  # of a command that finds it
        "domain": str(domain or spec.get("domain") or "unknown domain"),
        "seed": str(spec.get("seed", 0)),
        "engine": _engine(spec),
        "model": _model(spec.get("model")),
        "parameters": folder.num_parameters(),
        "when": _when(folder),
        "spec": folder.spec_text,
        "versions": [[str(k), _plain_text(v)] for k, v in folder.versions.items()],
        "notices": folder.notices,
    }


def _model(model: Any) -> str:
    if isinstance(model, dict) and isinstance(model.get("tiny"), dict):
        tiny = model["tiny"]
        return (
            f"tiny Qwen3, {tiny.get('num_layers', '?')} layers × {tiny.get('hidden_size', '?')}, "
            f"vocabulary {tiny.get('vocab_size', '?')}"
        )
    return str(model.get("path", "unknown")) if isinstance(model, dict) else "unknown"


def _engine(spec: dict[str, Any]) -> str:
    engine = spec.get("engine", "unknown")  # a mapping has one key, the engine's name
    return str(next(iter(engine), "unknown")) if isinstance(engine, dict) else str(engine)


def _when(folder: RunFolder) -> str:
    """When the run began by its log; where that says nothing, when its spec was written."""
    try:
        with (folder.path / "log.jsonl").open("rb") as log:
            begun = msgspec.json.decode(log.readline(_LOG_LINE), type=_Begun).at
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        spec = folder.path / "spec.resolved.yaml"
        begun = datetime.fromtimestamp(spec.stat().st_mtime, UTC)
    return begun.strftime("%Y-%m-%d %H:%M UTC")


def _plain_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
