"""Fuzz what reads the input of others: spec files, tool calls, worlds, predicates.

    python benchmarks/fuzz.py --json

The properties are those of `tests/fuzz/`. A fifth of the inputs Hypothesis draws at random. The rest
is drawn by the same strategies from bytes that atheris chooses, Google's coverage-guided fuzzer: of
two inputs it keeps and changes the one that reached new code of muarl's. Each target has a process
of its own, so that a hang (60 s in one input), a crash or memory beyond 2 GB is seen, and counted as
a finding like a broken property. Figures per target: `inputs` that were tried, what `became` of them,
CPU seconds of the `slowest_s` and of all, `findings` with the input that showed each.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
TARGETS = ("specs", "calls", "worlds", "predicates")
WATCHED = ["muarl.spec", "muarl.world", "muarl.tools", "muarl.reward", "muarl.spoken"]
WATCHED += ["muarl.json_values"]
RANDOM_SHARE = 0.2
HANG_S = 60
MEMORY_MB = 2048
SEEDS = 60
KINDS_OF_FINDINGS = 10


class Fuzzer:
    """One target in this process, until its inputs or its time are used up."""

    def __init__(self, name: str, inputs: int, seconds: float, seed: int) -> None:
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis import strategies as st
        from hypothesis.errors import HypothesisException

        self.tally = import_module("fuzz_tally").TALLIES[name]
        self.fuzz = import_module(f"test_fuzzed_{name}").fuzz
        self.begun = time.monotonic()
        self.inputs, self.seconds, self.seed = inputs, seconds, seed
        self.findings: dict[str, dict[str, str]] = {}
        self._control = HypothesisException
        self._strategy = given(data=st.data())
        self._settings = settings(
            max_examples=max(1, int(inputs * RANDOM_SHARE)),
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )

    def one(self, data: Any) -> None:
        """Try one input; what it finds is kept, and fuzzing goes on."""
        if self.over():
            return
        try:
            self.fuzz(data)
        except self._control:
            raise
        except Exception as error:  # noqa: BLE001 whatever a broken property raises
            where = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__}: {error}"[:400]
            place = f"{Path(where.filename).name}:{where.lineno}"
            self.findings.setdefault(place, {"what": what, "input": repr(self.tally.last)[:2000]})
            if len(self.findings) >= KINDS_OF_FINDINGS:
                self.end()

    def over(self) -> bool:
        """Whether nothing is to be tried any more."""
        spent = time.monotonic() - self.begun
        return self.tally.inputs >= self.inputs or spent > self.seconds

    def at_random(self) -> None:
        """Inputs that Hypothesis draws."""
        from hypothesis import seed

        seed(self.seed)(self._settings(self._strategy(self._named())))()

    def guided(self, folder: Path) -> None:
        """Inputs that coverage guides to; does not return."""
        import atheris

        rng = random.Random(self.seed)
        for number in range(SEEDS):
            (folder / f"{number}").write_bytes(rng.randbytes(rng.choice([64, 256, 1024, 4096])))
        draw = self._settings(self._strategy(self._named())).hypothesis.fuzz_one_input

        def one(data: bytes) -> None:
            draw(data)
            if self.over():
                self.end()

        flags = ["-len_control=0", "-max_len=8192", f"-seed={self.seed + 1}", "-verbosity=0"]
        flags += [f"-timeout={HANG_S}", f"-rss_limit_mb={MEMORY_MB}", f"-artifact_prefix={folder}/"]
        atheris.Setup(["fuzz", *flags, str(folder)], one)
        atheris.Fuzz()

    def _named(self) -> Any:
        def one(data: Any) -> None:
            self.one(data)

        return one

    def end(self) -> None:
        """Say what was seen, and end the process: libFuzzer's loop has no other end."""
        figures = {
            "inputs": self.tally.inputs,
            "became": dict(sorted(self.tally.became.items())),
            "slowest_s": round(self.tally.slowest_s, 3),
            "cpu_s": round(time.process_time(), 1),
            "findings": [{"place": place, **found} for place, found in self.findings.items()],
        }
        print(json.dumps(figures), flush=True)
        os._exit(0)


def fuzz_here(name: str, inputs: int, seconds: float, seed: int) -> None:
    """Fuzz one target in this process; does not return."""
    import atheris

    sys.path[:0] = [str(TESTS), str(TESTS / "fuzz")]
    with atheris.instrument_imports(include=WATCHED):
        import_module(f"test_fuzzed_{name}")
    fuzzer = Fuzzer(name, inputs, seconds, seed)
    fuzzer.at_random()
    if fuzzer.over():
        fuzzer.end()
    fuzzer.guided(Path(tempfile.mkdtemp()))


def fuzz_apart(name: str, inputs: int, seconds: float, seed: int) -> dict[str, Any]:
    """What fuzzing a target in a process of its own found."""
    command = [sys.executable, __file__, "--target", name]
    command += ["--inputs", str(inputs), "--seconds", str(seconds), "--seed", str(seed)]
    # Files are written by the thousand: to memory, where there is a disk in it.
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="muarl-fuzz-", dir=memory) as folder:
        environment = {**os.environ, "TMPDIR": folder}
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, errors="replace", env=environment
        )
    lines = done.stdout.strip().splitlines()
    try:
        figures: dict[str, Any] = json.loads(lines[-1])
    except (IndexError, ValueError):
        said = done.stderr.strip()[-1500:]
        what = f"hang, crash or too much memory: the process ended with {done.returncode}: {said}"
        figures = {"inputs": 0, "became": {}, "findings": [{"place": name, "what": what}]}
    print(f"{name}: {json.dumps(figures)}", file=sys.stderr, flush=True)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=100_000, help="in all (default 100,000)")
    parser.add_argument(
        "--seconds", type=float, default=7200, help="at most, of all targets (default 7200)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the first inputs (default 1)")
    parser.add_argument("--target", choices=TARGETS, help="only this one, in this process")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    if args.target:
        fuzz_here(args.target, args.inputs, args.seconds, args.seed)
    share, seconds = -(-args.inputs // len(TARGETS)), args.seconds / len(TARGETS)
    begun = time.monotonic()
    targets = {name: fuzz_apart(name, share, seconds, args.seed) for name in TARGETS}
    figures = {
        "benchmark": "fuzz",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "inputs": sum(target["inputs"] for target in targets.values()),
        "findings": sum(len(target["findings"]) for target in targets.values()),
        "seconds": round(time.monotonic() - begun, 1),
        "targets": targets,
    }
    if args.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name}: {value}")
    return 1 if figures["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
