"""How much has to be written for the smallest useful domain.

Two tools, of which one writes; two tasks, two personas, four predicates; users who talk. Once with tools
in Python, once in SQL and without any Python. The folders are `benchmarks/authoring/python` and `.../sql`.
Counted are their files, all of them, and their lines that are not blank. Each must be what it claims to
be: `muarl check` finds it sound, no line is longer than 100 characters, and its parts are counted from
what was loaded.

usage: python benchmarks/authoring.py --json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from muarl.domain import load_domain

FOLDER = Path(__file__).resolve().parent / "authoring"
LINE = 100
USEFUL = {"tools": 2, "tasks": 2, "personas": 2, "predicates": 4}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    args = parser.parse_args()
    figures: dict[str, Any] = {}
    for kind in ("python", "sql"):
        figures |= {f"{kind}_{name}": value for name, value in counted(kind).items()}
    if args.json:
        print(json.dumps(figures))
    return 0


def counted(kind: str) -> dict[str, int]:
    """Files, lines and what they make, of a domain that is sound."""
    folder = FOLDER / kind
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    written = [line for line in lines if line.strip()]
    longest = max(map(len, written))
    proof = checked(folder)
    spec = load_domain(folder).spec
    parts = {
        "tools": len(proof["tools"]),
        "tasks": sum(proof["tasks"].values()),
        "personas": len(spec.personas),
        "predicates": len([*spec.reward, *spec.metrics]),
    }
    languages = {path.suffix for path in files}
    floor = max(mean["value"] for means in proof["floor"].values() for mean in means.values())
    print(
        f"{kind}: {len(written)} lines in {', '.join(path.name for path in files)}, "
        f"longest {longest}; {parts}; policies without skill earn {floor:.3f} at most",
        file=sys.stderr,
    )
    if parts != USEFUL or longest > LINE or (kind == "sql" and ".py" in languages):
        raise SystemExit(f"{kind}: not the domain that is to be counted")
    return {"files": len(files), "lines": len(written)}


def checked(folder: Path) -> dict[str, Any]:
    """What `muarl check` says of a domain.

    Raises:
        SystemExit: It is not sound.
    """
    command = [sys.executable, "-m", "muarl.cli", "check", str(folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{folder} is not sound:\n{done.stdout}{done.stderr}")
    proof: dict[str, Any] = json.loads(done.stdout)
    return proof


if __name__ == "__main__":
    sys.exit(main())
