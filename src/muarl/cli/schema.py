"""Write the JSON Schemas of spec files, so that an editor completes and checks them.

An editor with the YAML language server finds them through a spec's first line:
`# yaml-language-server: $schema=specs/schemas/domain.v1.json`. They know the options of all plug-ins that
are installed. With `--docs`, writes the reference of every spec key and of every verb as well, and
leaves plug-ins out, so that these files are the same on every machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from muarl.cli._answer import answer
from muarl.cli._telling import remark
from muarl.errors import SetupError
from muarl.spec.plugin import problems_of_plugins
from muarl.spec.schema import schema_files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("specs/schemas"),
        metavar="DIR",
        help="folder to write to (default: %(default)s)",
    )
    parser.add_argument(
        "--docs",
        type=Path,
        metavar="DIR",
        help="also write `cli.md` and the pages of `reference` into this folder; plug-ins are left out",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a file is not fresh"
    )


def run(args: argparse.Namespace) -> int:
    """Write or check the files.

    Raises:
        SetupError: A folder cannot be written.
    """
    ours = args.docs is not None
    files = {args.out / name: text for name, text in schema_files(installed=not ours).items()}
    if not ours:
        for message in problems_of_plugins():
            remark(f"warning: {message}; any options are taken")
    if args.docs is not None:
        files |= {args.docs / name: text for name, text in documents().items()}
    if args.check:
        again = f"muarl schema --out {args.out}" + (f" --docs {args.docs}" if args.docs else "")
        stale = [path for path, text in files.items() if _text(path) != text]
        for path in stale:
            answer(f"{path}: not what the models say; run `{again}`")
        return int(bool(stale))
    _write(files)
    return 0


def documents() -> dict[str, str]:
    """Path below the documents' folder to the text of each generated page."""
    # These look at every verb and every model, and are not for an editor.
    from muarl.cli._reference import cli_page
    from muarl.measure.page import figures_page
    from muarl.spec.reference import reference_pages

    pages = {f"reference/{name}": text for name, text in reference_pages().items()}
    return {"cli.md": cli_page(), **pages, "user-figures.md": figures_page()}


def _write(files: Mapping[Path, str]) -> None:
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise SetupError(
                f"cannot write to {path.parent}: {error.strerror}; name another folder with --out "
                "or --docs"
            ) from error
    for path in files:
        answer(path)


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
