"""A run that nobody disturbs, and runs that are killed again and again until they come to their end.

    python killed_runs.py RUN.yaml FOLDER KILLS SEED

Each process is forked from this one, which has everything imported, and gets SIGKILL after a random time.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

import torch
from short_run import carry_out

from muarl.kernel.model import load_model, weights_checksum


def carried_out(run_file: Path, out: Path, kill_after_s: float | None) -> bool:
    """Whether the run in a folder came to its end in a process that may be killed."""
    process = os.fork()
    if not process:
        try:
            torch.set_num_threads(1)
            carry_out(run_file, out, resume=(out / "spec.resolved.yaml").exists())
        except BaseException:  # noqa: BLE001 - whatever it is, this process must not go on as the other
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if kill_after_s is not None:
        killer = threading.Timer(kill_after_s, os.kill, (process, signal.SIGKILL))
        killer.start()
    _, status = os.waitpid(process, 0)
    if kill_after_s is not None:
        killer.cancel()
    if os.WIFSIGNALED(status):
        return False
    if status:
        sys.exit(f"the run in {out} failed")
    return True


def main(run_file: Path, folder: Path, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    began = time.monotonic()
    carried_out(run_file, folder / "whole", None)
    whole_s = time.monotonic() - began
    done, ended = 0, []
    while done < kills or not ended:
        out = folder / f"killed-{len(ended)}"
        while done < kills and not carried_out(run_file, out, rng.uniform(0.0, whole_s)):
            done += 1
        if done == kills:
            carried_out(run_file, out, None)
        ended.append(out.name)
    weights = {}
    for name in ["whole", *ended]:
        # Not of `model`: validation may have chosen weights that were there before anything was killed.
        (last,) = (folder / name / "checkpoint").iterdir()
        weights[name] = [
            weights_checksum(load_model(path)) for path in (last, folder / name / "model")
        ]
    json.dump({"kills": done, "whole_s": whole_s, "weights": weights}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
