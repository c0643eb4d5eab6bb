"""`muarl draft BRIEF.txt --out FOLDER`: let an LLM draft a domain, or tasks for one that there is.

From a brief, a text in a person's words, an LLM drafts a domain without Python: data, tools in SQL (or ones
that it simulates, `--simulated`), rules, personas, and tasks with gold calls. `--domain` drafts tasks alone, for a domain over any tool server, into
the file that `--out` names. What it writes is data, is read like any file of a person's, and its gold calls
are made; what is wrong is sent back, `--repairs` times. Prove the result with `muarl check`.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import anyio

from muarl.cli._answer import answer
from muarl.cli._arguments import positive, seed
from muarl.cli._telling import remark, tell
from muarl.errors import EpisodeTimeout, Problem, SetupError, SpecError
from muarl.opened_file import opened_file
from muarl.spec.base import ID_PATTERN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("brief", type=Path, nargs="?", metavar="BRIEF.txt", help="what it is to be")
    what.add_argument("--domain", type=Path, metavar="PATH", help="draft tasks for this domain")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="PATH",
        help="new folder; with --domain a new file",
    )
    parser.add_argument(
        "--base-url", required=True, metavar="URL", help="OpenAI-compatible endpoint"
    )
    parser.add_argument("--model", required=True, metavar="NAME", help="model name sent to it")
    parser.add_argument("--api-key-env", metavar="NAME", help="variable that holds the key")
    parser.add_argument(
        "--simulated",
        action="store_true",
        help="let the same model simulate the tools, over the data as its memory",
    )
    parser.add_argument("--tasks", type=positive, default=8, metavar="N", help="default: 8")
    parser.add_argument(
        "--repairs", type=positive, default=3, metavar="N", help="of each draft (default: 3)"
    )
    parser.add_argument(
        "--max-tokens", type=positive, default=8192, metavar="N", help="of a draft (default: 8192)"
    )
    parser.add_argument(
        "--timeout",
        type=positive,
        default=300,
        metavar="S",
        help="seconds of a draft (default: 300)",
    )
    parser.add_argument("--seed", type=seed, default=0, help="default: 0")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Draft, and say what there is now.

    Raises:
        SetupError: The endpoint's key is missing, it takes too long, or no draft was fit.
        SpecError: The brief is no text.
        EndpointError: The endpoint fails.
    """
    from muarl.domain import load_domain
    from muarl.http.chat_client import ChatClient
    from muarl.record.placing import placed
    from muarl.synth.draft_domain import draft_domain
    from muarl.synth.draft_tasks import draft_tasks

    brief = "" if args.brief is None else _brief(args.brief)
    client = ChatClient(
        args.base_url, args.model, api_key_env=args.api_key_env, timeout_s=float(args.timeout)
    )
    how: dict[str, Any] = {
        "repairs": args.repairs,
        "seed": args.seed,
        "max_tokens": args.max_tokens,
        "on_unfit": tell,
    }
    simulator = {"base_url": args.base_url, "model": args.model}
    if args.api_key_env is not None:
        simulator["api_key_env"] = args.api_key_env

    async def drafted(fresh: Path) -> int:
        if args.domain is not None:
            domain = load_domain(args.domain)
            return await draft_tasks(client, domain, fresh, count=args.tasks, **how)
        fresh.mkdir()
        return await draft_domain(
            client,
            brief,
            fresh,
            name=args.out.name,
            tasks=args.tasks,
            simulator=simulator if args.simulated else None,
            **how,
        )

    if args.brief is not None and not re.match(ID_PATTERN, args.out.name):
        remark(
            f"muarl draft: {args.out}: a domain is called as its folder, so that this needs a name of "
            "letters, digits, '_', '-' or '.', beginning with a letter or digit"
        )
        return 2
    try:
        with placed(args.out, overwrite=None) as fresh:
            repairs = anyio.run(drafted, fresh)
    except EpisodeTimeout as late:
        raise SetupError(f"{late}; raise --timeout, or lower --max-tokens") from late
    if args.json:
        answer(json.dumps({"out": str(args.out), "tasks": args.tasks, "repairs": repairs}))
    else:
        words = "no repair" if repairs == 0 else f"{repairs} repairs"
        answer(f"{args.out}: {args.tasks} tasks, after {words}. Prove it with: muarl check")
    return 0


def _brief(path: Path) -> str:
    """What the brief says.

    Raises:
        SpecError: It is no text, or there is nothing in it.
    """
    try:
        with opened_file(path) as file:
            text = file.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise SpecError([Problem(str(path), 0, 0, "is no text: expected UTF-8")]) from error
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        raise SpecError([Problem(str(path), 0, 0, why)]) from error
    if not text.strip():
        raise SpecError([Problem(str(path), 0, 0, "is empty; say what the domain is to be")])
    return text
