"""`muarl replay RUN`: rebuild world, reward and metrics of stored episodes; no model is needed.

Each episode's tool calls are made again on a fresh world. Every answer, the final world and what the
predicates say about it must be as recorded. Prints a line for each difference, and exits with 1 if
there is one.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field

import anyio
import msgspec

from muarl.cli._answer import answer
from muarl.cli._stored import add_domain, add_runs, domain_of, predicates_of, stored_episodes
from muarl.data.replay import Replayed, replay_all
from muarl.record import Episode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_runs(parser)
    add_domain(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


@dataclass
class _Told:
    """What differs; printed as it is found, or kept to be printed as JSON."""

    as_json: bool
    differences: list[dict[str, str]] = field(default_factory=list)

    def __call__(self, episode: Episode, difference: str) -> None:
        if self.as_json:
            self.differences.append({"episode": str(episode.key), "difference": difference})
        else:
            answer(f"{episode.key}: {difference}")


def run(args: argparse.Namespace) -> int:
    """Replay, and say what differs."""
    episodes = stored_episodes(args)
    domain = domain_of(args)
    predicates = predicates_of(args, domain)
    told = _Told(args.json)

    async def main() -> Replayed:
        return await replay_all(domain, episodes, told, predicates)

    tally = anyio.run(main)
    if args.json:
        answer(json.dumps({**msgspec.to_builtins(tally), "differences": told.differences}))
    else:
        answer(
            f"{tally.same} episodes are as recorded, {tally.different} differ, "
            f"{tally.faults} faults were left out"
        )
    return int(tally.different > 0)
