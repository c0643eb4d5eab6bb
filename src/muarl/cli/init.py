"""`muarl init NAME`: a new domain that passes `muarl check`, to begin your own from.

It is an order desk with a tool that looks and one that writes, scripted users, tasks, a reward, an
expert, and a run that trains a tiny model. The templates differ in what the tools are: functions in
Python, SQL, or a program of its own that speaks MCP, as published servers do. The templates `gymnasium`
and `verifiers` are no desk but an environment in Gymnasium's form, and one of verifiers.
"""

from __future__ import annotations

import argparse
import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from muarl.cli._answer import answer
from muarl.cli._telling import remark
from muarl.errors import SetupError
from muarl.spec.base import ID_PATTERN

TEMPLATES = {
    "python": ("shared", "generated", "python"),
    "sql": ("shared", "sql"),
    "server": ("shared", "generated", "server"),
    "gymnasium": ("gymnasium",),
    "verifiers": ("verifiers",),
}
"""Template to the folders of `muarl/templates` whose files it is made of."""

PLACEHOLDER = "NAME"
"""Stands for the domain's name, always in quotes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "name", type=_name, metavar="NAME", help="the domain's name, and that of its new folder"
    )
    parser.add_argument(
        "--template",
        choices=TEMPLATES,
        default="python",
        help="what the tools are, or an environment in their place (%(default)s)",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace files of a folder that is there already"
    )


def _name(text: str) -> str:
    if not re.fullmatch(ID_PATTERN, text) or text.endswith("."):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no name of a domain: letters, digits, `_`, `-` and `.`, the first a "
            "letter or digit"
        )
    return text


def run(args: argparse.Namespace) -> int:
    """Write the folder, and say what to do with it.

    Raises:
        SetupError: It cannot be written.
    """
    folder = Path(args.name)
    if (folder.exists() or folder.is_symlink()) and not args.overwrite:
        way = ", or replace the template's files in it with --overwrite" if folder.is_dir() else ""
        remark(f"muarl init: error: {folder} is there already; choose another name{way}")
        return 2
    try:
        written = write(folder, args.template)
    except OSError as error:
        raise SetupError(
            f"cannot write {error.filename or folder}: {error.strerror}; choose another name, or "
            "run the command in another folder"
        ) from error
    for path in written:
        answer(path)
    answer(_next(args.name))
    return 0


def write(folder: Path, template: str) -> list[Path]:
    """Write a template's files into a folder, named after the folder.

    Args:
        folder: Made if need be; files of the same names are replaced.
        template: One of `TEMPLATES`.

    Returns:
        What was written, schemas for editors left out.

    Raises:
        OSError: A file cannot be written.
    """
    from muarl.spec.schema import schema_files

    schemas = folder / "schemas"
    schemas.mkdir(parents=True, exist_ok=True)
    for name, text in schema_files(installed=True).items():
        (schemas / name).write_text(text, encoding="utf-8")
    written = []
    for source in sorted(_sources(template), key=lambda source: source.name):
        text = source.read_text(encoding="utf-8").replace(PLACEHOLDER, folder.name)
        (folder / source.name).write_text(text, encoding="utf-8")
        written.append(folder / source.name)
    return written


def _sources(template: str) -> list[Traversable]:
    root = files("muarl") / "templates"
    return [
        file
        for part in TEMPLATES[template]
        for file in (root / part).iterdir()
        if file.name.endswith((".py", ".yaml"))
    ]


def _next(name: str) -> str:
    return (
        "next:\n"
        f"  muarl check {name}\n"
        f"  muarl rollout {name}/run.yaml --expert --out runs/{name}-expert\n"
        f"  muarl train {name}/run.yaml --out runs/{name}"
    )
