"""Known recipes: files that hold a part of a run, shipped with muarl and laid over a run by name.

    muarl train run.yaml preset:dapo --set grpo.overlong.max_tokens=8192

They are ordinary overlays. What a preset owns it names whole, values that are the default too, so that nothing
of what was laid below remains: an algorithm all pieces of docs/grpo.md's first table, a recipe those and what
else its source sets. docs/grpo.md says what that is, and the tests of presets hold them to it.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from muarl.errors import Problem, SpecError, did_you_mean

PREFIX = "preset:"


def presets() -> dict[str, Path]:
    """Name to file."""
    folder = Path(str(files("muarl") / "presets"))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def overlay_file(named: str | Path) -> Path:
    """The file that an overlay's name stands for: `preset:NAME`, or the file itself.

    Raises:
        SpecError: There is no such preset.
    """
    text = str(named)
    if not text.startswith(PREFIX):
        return Path(named)
    known, name = presets(), text.removeprefix(PREFIX)
    if name not in known:
        hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
        raise SpecError([Problem(text, 0, 0, f"no preset {name!r}{hint}")])
    return known[name]
