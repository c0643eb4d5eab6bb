"""Write the JSON Schemas of spec files, so that an editor completes and checks them.

An editor with the YAML language server finds them through a spec's first line:
# yaml-language-server: $schema=specs/schemas/domain.v1.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

from muarl.cli._answer import answer
from muarl.errors import SetupError
from muarl.spec.schema import schema_files, stale_schemas, write_schemas


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
        "--check", action="store_true", help="write nothing; exit 1 if a file in DIR is not fresh"
    )


def run(args: argparse.Namespace) -> int:
    """Write or check the schemas.

    Raises:
        SetupError: The folder cannot be written.
    """
    folder: Path = args.out
    if args.check:
        stale = stale_schemas(folder)
        for name in stale:
            answer(f"{folder / name}: not what the models say; run `muarl schema --out {folder}`")
        return int(bool(stale))
    try:
        write_schemas(folder)
    except OSError as error:
        raise SetupError(
            f"cannot write to {folder}: {error.strerror}; name another folder with --out"
        ) from error
    for name in schema_files():
        answer(folder / name)
    return 0
