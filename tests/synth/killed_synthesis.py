"""Lives of one synthesis: all but the last are killed in the middle of a dialogue.

killed_synthesis.py SYNTH.yaml OUT KILLS
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import muarl.train.synthesis  # noqa: F401 (once, for all lives)
from muarl.cli import main
from muarl.policy.spoken import as_sampled
from muarl.synth import verify  # noqa: F401


def live(arguments: list[str], messages: int) -> int:
    """Run the verb in a child that is killed when so many messages were said; 0: never."""
    child = os.fork()
    if child == 0:
        if messages:
            die_after(messages)
        os._exit(main(arguments))
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def die_after(messages: int) -> None:
    """As the kernel may end us: nothing is flushed, nothing is cleaned up."""
    import muarl.data.expert as room

    said = 0

    def counting(*arguments: object) -> object:
        nonlocal said
        said += 1
        if said == messages:
            os.kill(os.getpid(), signal.SIGKILL)
        return as_sampled(*arguments)  # type: ignore[arg-type]

    vars(room)["as_sampled"] = counting


if __name__ == "__main__":
    spec, out, kills = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    for number in range(kills):
        code = live(["synth", spec, "--out", str(out), *(["--resume"] if number else [])], 4)
        if code != -signal.SIGKILL:
            sys.exit(f"life {number} ended before it was killed: {code}")
    sys.exit(live(["synth", spec, "--out", str(out), "--resume"], 0))
