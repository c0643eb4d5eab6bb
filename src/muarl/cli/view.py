"""Read the episodes of a run in a browser, on this machine: search, filter, compare, token by token.

Prints an address and serves it until Ctrl-C. Only this machine can reach it, and only who has the
address, whose token is made anew each time. A run that is still going on may be watched. What is open in
the page stands behind the `#` of its address, and opens again with `--episode`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from urllib.parse import quote

from muarl.cli._answer import answer
from muarl.cli._arguments import port


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument(
        "--port", type=port, default=0, metavar="PORT", help="to listen on (default: a free one)"
    )
    parser.add_argument(
        "--episode",
        metavar="KEY",
        help="open this one, such as train/3/cancel-017/0",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C.

    Raises:
        NoRunError: The folder is no run.
        SetupError: The port is taken.
    """
    import anyio

    from muarl.report.serving import open_view

    async def serve() -> None:
        async with open_view(args.run, port=args.port) as address:
            link = f"#episode={quote(args.episode, safe='')}" if args.episode else ""
            answer(address + link)
            await anyio.sleep_forever()

    anyio.run(serve)
    return 0
