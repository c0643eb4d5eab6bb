"""Our tools and evaluators beside the recorded answers of the official ones.

    python benchmarks/conformance.py --json
    python benchmarks/conformance.py --fixtures FOLDER --data FOLDER --only tau1 --json

- `gold`, `fuzz`, `evaluator`: the worst share, over benchmarks and domains, of vectors in which output,
  error flag and difference of state are all the same (for `evaluator`: the verdict). Texts that are the
  Python interpreter's own are not compared. `by_set` has all shares, `vectors` their counts.
- `calls_per_s`: calls of our tools, differences included, in a second.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from muarl.compat.conformance import Tally, UpstreamData, records
from muarl.errors import RecordError

FIXTURES = Path(__file__).parents[2] / "shared" / "fixtures"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fixtures", type=Path, default=FIXTURES, help="folder of *.jsonl files")
    parser.add_argument("--data", type=Path, help="upstream data; default FIXTURES/data")
    parser.add_argument("--only", default="", help="benchmarks whose name begins so")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    if not args.fixtures.is_dir():
        print(f"no folder {args.fixtures}: --fixtures names the recorded vectors", file=sys.stderr)
        return 2
    data = UpstreamData(args.data or args.fixtures / "data")
    tally = Tally()
    try:
        for place, record in records(args.fixtures):
            if str(record.get("benchmark")).startswith(args.only):
                tally.add(place, record, data)
    except RecordError as error:
        print(error, file=sys.stderr)
        return 1
    summary = tally.summary()
    print(json.dumps(summary, indent=None if args.json else 2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
