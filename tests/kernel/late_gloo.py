"""A rank that ends while gloo's threads are late with letting go of what its last collective was about.

torchrun ... late_gloo.py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from torch.distributed.fsdp import fully_shard

from muarl.kernel.ranks import joined


def main() -> None:
    sys.setswitchinterval(1e6)  # whoever waits for the interpreter waits until it is given
    with joined() as ranks:
        fully_shard(
            torch.nn.Linear(4, 4)
        )  # holds the group, so that destroying it awaits no thread
        one = {min(os.sched_getaffinity(0))}
        os.sched_setaffinity(0, one)
        for task in Path("/proc/self/task").iterdir():
            if "gloo" in (task / "comm").read_text():  # runs when nobody else wants the processor
                os.sched_setaffinity(int(task.name), one)
                os.sched_setscheduler(int(task.name), os.SCHED_IDLE, os.sched_param(0))
        ranks.meet()


if __name__ == "__main__":
    main()
