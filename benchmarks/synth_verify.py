"""Whether verification leaves out what was planted, and keeps what is good.

    python benchmarks/synth_verify.py --json

400 dialogues of the desk, 100 good and 60 spoiled in each of five ways (`_planted_dialogues.py`), go
through the stages of `specs/synth.yaml`. No model takes part.

    good_kept      Share of the good ones that are kept.
    bad_rejected   Share of the spoiled ones that are left out, of the kind that fares worst.
    by_own_stage   By kind: share that is left out by the stage that is there for it.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections import Counter, defaultdict
from typing import Any

import anyio
from _planted_dialogues import DESK, KINDS, planted

from muarl.spec import load_synth
from muarl.synth.verify import Verifier

OWN_STAGE = {
    "hallucinated_id": {"identifiers"},
    "wrong_state": {"replay", "reward"},
    "rule_broken": {"rules"},
    "user_fault": {"user"},
    "near_copy": {"copies"},
}


async def measure(good: int, of_each: int, seed: int) -> dict[str, Any]:
    """The figures."""
    domain, labelled = await planted(good, of_each, seed)
    spec = load_synth(DESK.parent.parent / "specs" / "synth.yaml").spec
    label = {id(episode): kind for kind, episode in labelled}
    stages: defaultdict[str, Counter[str]] = defaultdict(Counter)
    began = time.perf_counter()
    verifier = Verifier(domain, spec.verify)
    async for episode, verdict in verifier.verdicts(episode for _, episode in labelled):
        stages[label[id(episode)]][verdict.stage or "kept"] += 1
    seconds = time.perf_counter() - began
    rejected = {kind: 1 - stages[kind]["kept"] / of_each for kind in KINDS}
    own = {
        kind: round(sum(stages[kind][stage] for stage in OWN_STAGE[kind]) / of_each, 4)
        for kind in KINDS
    }
    return {
        "dialogues": len(labelled),
        "good_kept": round(stages["good"]["kept"] / good, 4),
        "bad_rejected": round(min(rejected.values()), 4),
        "rejected_by_kind": {kind: round(share, 4) for kind, share in rejected.items()},
        "by_own_stage": own,
        "stages": {kind: dict(found) for kind, found in stages.items()},
        "dialogues_per_second": round(len(labelled) / seconds, 1),
        "seed": seed,
        "python": platform.python_version(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--good", type=int, default=100)
    parser.add_argument("--of-each", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="only one line on stdout")
    args = parser.parse_args()
    found = anyio.run(measure, args.good, args.of_each, args.seed)
    print(json.dumps(found, indent=None if args.json else 1))


if __name__ == "__main__":
    main()
