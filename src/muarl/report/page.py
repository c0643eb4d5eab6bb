"""Put a run into one HTML file.

The page fetches nothing, and its content security policy forbids it to: `default-src 'none'`, with
the hashes of the page's own script and style as the only exceptions. Text from models, users and
tools travels in a JSON data block in which `<`, `>` and `&` are escaped, so nothing in it can end
the block; the script turns it into text nodes, never into markup. Should that ever fail, the policy
still runs no script but ours.
"""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from muarl.record.journal import read_journal
from muarl.record.placing import placed
from muarl.record.saving import saving
from muarl.report.choose import Choice, choose
from muarl.report.embed import embed
from muarl.report.inline import inline_json, source_hash
from muarl.report.run_folder import RunFolder, read_run_folder
from muarl.report.tokens import token_texts

_SCRIPTS = ("dom.js", "charts.js", "summary.js", "training.js", "tokens.js", "viewer.js", "page.js")
_GENERATOR = b'<meta name="generator" content="muarl">'
_HEAD_BYTES = 1000  # the page's first lines, before any text of a run
_WHEN_KEYS = ("started", "started_at", "created", "created_at", "time", "date")


def write_report(run_folder: Path, out: Path | None = None, *, overwrite: bool = False) -> Path:
    """Write the report of a run; returns where.

    Args:
        run_folder: What `muarl train` wrote; a run that stopped early is reported as far as it got.
        out: The file to write; default `report.html` in the run folder. An older report is replaced.
        overwrite: Replace what is no report, too; never one of a run's own files.

    Raises:
        RecordError: The folder is no run, a file in it is damaged, or the disk says no.
        SetupError: Something is there that must not be replaced.
    """
    folder = read_run_folder(run_folder)
    if folder.journal.exists():
        chosen = choose(read_journal(folder.journal))
    else:
        chosen = choose(())
        folder.notices.append(f"{folder.journal.name} is missing: no episode is shown.")
    target = out or run_folder / "report.html"
    replaces = overwrite or _is_report(target)
    with placed(target, overwrite=replaces, reads=[run_folder]) as fresh:
        page = render(folder, chosen)
        with saving(target):
            fresh.write_text(page, encoding="utf-8")
    return target


def _is_report(path: Path) -> bool:
    """Whether a page of ours is there."""
    try:
        with path.open("rb") as file:
            return _GENERATOR in file.read(_HEAD_BYTES)
    except OSError:
        return False


def render(folder: RunFolder, chosen: Choice) -> str:
    """The page as text."""
    episodes = embed(chosen)
    tokens: dict[int, str] = {}
    if episodes.token_ids and folder.tokenizer.exists():
        tokens = token_texts(folder.tokenizer, sorted(episodes.token_ids))
    elif episodes.token_ids:
        folder.notices.append("model/tokenizer.json is missing: tokens are shown as ids.")
    run = _run(folder, chosen)
    style = _asset("page.css")
    script = "".join(_asset(name) for name in _SCRIPTS)
    data = {
        "run": run,
        "cold_start": folder.lines["cold_start"],
        "iterations": folder.lines["iteration"],
        "validations": folder.lines["validation"],
        "evals": [*folder.lines["eval"], *folder.lines["rollout"]],
        "floors": folder.lines["floor"],
        "episodes": episodes.episodes,
        "systems": episodes.systems,
        "toolsets": episodes.toolsets,
        "shown": episodes.shown,
        "tokens": tokens,
    }
    parts = {
        "title": html.escape(f"{run['domain']}, seed {run['seed']} · muarl report"),
        "script_hash": source_hash(script),
        "style_hash": source_hash(style),
        "style": style,
        "script": script,
        "data": inline_json(data),
    }
    # One pass over the template only: what is put in is never looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: parts[slot[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return resources.files("muarl.report").joinpath("assets", name).read_text(encoding="utf-8")


def _run(folder: RunFolder, chosen: Choice) -> dict[str, Any]:
    """What stands at the head of the page."""
    spec = folder.spec
    domain = next((episode.domain for episode in chosen.episodes), None)
    return {
        "name": folder.path.resolve().name,
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
    """When the run began by its own account, or when its spec was written."""
    for key in _WHEN_KEYS:
        if key in folder.versions:
            return _plain_text(folder.versions[key])
    written = datetime.fromtimestamp((folder.path / "spec.resolved.yaml").stat().st_mtime, UTC)
    return written.strftime("%Y-%m-%d %H:%M UTC")


def _plain_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
