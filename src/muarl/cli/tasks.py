"""`muarl tasks DOMAIN --out FILE`: tasks composed of a domain's goals, as a file of tasks.

Prints how many were drawn for them, why the others were not kept, and how they lie on each axis. With
`--llm URL --model NAME` an LLM says what users want in other words; what changes a fact is not taken, and
the template's words stay. See docs/task-generation.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.cli._answer import answer
from muarl.cli._arguments import positive, seed
from muarl.cli._telling import tell
from muarl.errors import UsageError
from muarl.spec import TasksFile, dump_spec

if TYPE_CHECKING:
    from muarl.goals import Composition
    from muarl.goals.rewording import Reworded


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "domain", type=Path, metavar="DOMAIN", help="a domain's file, or its folder"
    )
    parser.add_argument("--split", default="train", help="of the tasks (default %(default)s)")
    parser.add_argument(
        "--count", type=positive, metavar="N", help="tasks to make (default: as the domain says)"
    )
    parser.add_argument("--seed", type=seed, metavar="N", help="seed (default: the domain's)")
    parser.add_argument(
        "--goals",
        metavar="FILE:NAME",
        help="Python in the domain's folder that holds the goals (default: as the domain says)",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="file to write")
    parser.add_argument("--overwrite", action="store_true", help="replace that file")
    parser.add_argument("--llm", metavar="URL", help="endpoint that words goals, `http://.../v1`")
    parser.add_argument("--model", metavar="NAME", help="its model")
    parser.add_argument("--key-env", metavar="NAME", help="environment variable with its key")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Make them, write them, and say what became of all that was drawn."""
    if (args.llm is None) != (args.model is None):
        raise UsageError("--llm and --model go together")
    from muarl.domain import load_domain
    from muarl.record.placing import placed
    from muarl.record.saving import saving

    domain = load_domain(args.domain)
    folder = args.domain if args.domain.is_dir() else args.domain.parent
    file = args.domain / "domain.yaml" if args.domain.is_dir() else args.domain
    reads = [file, *folder.rglob("*.py")]
    with placed(args.out, overwrite=args.overwrite, reads=reads) as fresh:
        tell("composing tasks")
        made = domain.task_source.composition(
            args.split, count=args.count, seed=args.seed, goals=args.goals
        )
        tasks, words = made.tasks, None
        if args.llm is not None:
            tell(f"wording {len(tasks)} tasks")
            words = _reworded(args, made)
            tasks = words.tasks
        whole = TasksFile(version=1, domain=domain.spec.id, tasks=tasks)
        with saving(args.out):
            fresh.write_text(dump_spec(whole), encoding="utf-8")
    told = _told(made, words)
    answer(json.dumps(told) if args.json else _in_words(told))
    return 0


def _reworded(args: argparse.Namespace, made: Composition) -> Reworded:
    import anyio

    from muarl.goals.rewording import reworded
    from muarl.http.chat_client import ChatClient

    client = ChatClient(args.llm, args.model, api_key_env=args.key_env)
    return anyio.run(reworded, made.tasks, client)


def _told(made: Composition, words: Reworded | None) -> dict[str, Any]:
    from muarl.goals import histogram

    told: dict[str, Any] = {
        "tasks": len(made.made),
        "drawn": made.drawn,
        "refused": dict(made.refused.most_common()),
        "axes": histogram(composed.axes for composed in made.made),
        "loosened": made.loosened,
        "trusted": dict(made.trusted.most_common()),
    }
    if words is not None:
        told |= {"reworded": words.count, "kept": dict(words.kept.most_common())}
    return told


def _in_words(told: dict[str, Any]) -> str:
    lines = [f"{told['tasks']} tasks of {told['drawn']} drawn"]
    lines += [f"  refused {count}: {reason}" for reason, count in told["refused"].items()]
    for axis, values in told["axes"].items():
        shown = ", ".join(f"{value}: {count}" for value, count in values.items())
        lines.append(f"  {axis:8} {shown}")
    if told["loosened"]:
        lines.append(f"  quotas were loosened by {2 * told['loosened']} % of the tasks")
    lines += [
        f"  on trust {count}: {what} stands in a tool's answer, and no `find` says what else would fit"
        for what, count in told["trusted"].items()
    ]
    if "reworded" in told:
        lines.append(f"{told['reworded']} are in other words")
        lines += [f"  kept {count}: {reason}" for reason, count in told["kept"].items()]
    return "\n".join(lines)
