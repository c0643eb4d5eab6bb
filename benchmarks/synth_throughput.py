"""How fast dialogues are made and verified where neither agent nor user is a model.

    python benchmarks/synth_throughput.py --json

`specs/synth.yaml` with 2,000 dialogues: the desk's expert and its scripted user, in-memory MCP, journal on
disk, then all stages of verification. Loading torch, domain and tasks is not counted.

    dialogues_per_minute  Of the whole: made and verified.
    cpu_ms_per_dialogue   Processor time of the process, all threads, over dialogues.
    made_per_minute       Of the first half alone.
    verified_per_minute   Of the second.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from muarl.cli._running import calm_collector, prepare_torch
from muarl.spec import Located, load_synth

SPEC = Path(__file__).resolve().parent.parent / "specs" / "synth.yaml"


async def measure(dialogues: int) -> dict[str, Any]:
    """The figures."""
    from muarl.scheduler.rounds import StopSignal
    from muarl.train.progress import Silent
    from muarl.train.run_folder import RunFolder
    from muarl.train.synthesis import ready_synth, run_of_synth, synthesise

    class Phases(Silent):
        """When verification began."""

        began = 0.0

        def phase(self, name: str, total: int) -> None:
            del total
            if name == "verification":
                self.began = time.perf_counter()

    said = load_synth(SPEC)
    update = {"dialogues": dialogues}
    synth = Located(said.spec.model_copy(update=update), said.path, said.root)
    run = run_of_synth(synth)
    domain = await ready_synth(synth, run)
    domain.tasks(synth.spec.split)
    phases = Phases()
    with tempfile.TemporaryDirectory() as out:
        path = Path(out) / "run"
        moved = run.spec.moved(run.path.parent, path)
        folder = RunFolder.create(path, moved, resume=False, overwrite=False)
        calm_collector()  # as every verb of the command line does that runs dialogues
        wall, cpu = time.perf_counter(), time.process_time()
        found = await synthesise(
            domain, synth, run, folder=folder, progress=phases, stop=StopSignal()
        )
        ended, used = time.perf_counter(), time.process_time() - cpu
    made, verified = phases.began - wall, ended - phases.began
    return {
        "dialogues": found.made,
        "kept": found.kept,
        "dialogues_per_minute": round(60 * found.made / (ended - wall)),
        "cpu_ms_per_dialogue": round(1000 * used / found.made, 2),
        "made_per_minute": round(60 * found.made / made),
        "verified_per_minute": round(60 * found.made / verified),
        "wall_s": round(ended - wall, 1),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dialogues", type=int, default=2000)
    parser.add_argument("--json", action="store_true", help="only one line on stdout")
    args = parser.parse_args()
    prepare_torch(1)
    found = anyio.run(measure, args.dialogues)
    print(json.dumps(found, indent=None if args.json else 1))


if __name__ == "__main__":
    main()
