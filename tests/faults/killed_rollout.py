"""A rollout that is killed again and again: `killed_rollout.py FOLDER NUM_KILLS`.

One process imports everything once, and forks a child for each life of the rollout, so that fifty
lives cost seconds. Each child resumes from the journal and is killed by SIGKILL at a random point:
at one of its waits, or within one of its writes to the journal. Lives are on asyncio and on trio by
turns. The last child is let live, and
prints the keys that it delivers, one a line.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import traceback
from pathlib import Path
from typing import NoReturn

import anyio

for folder in (Path(__file__).parent, Path(__file__).parents[1]):
    sys.path.append(str(folder))

from dialogue_kit import TalkingUser, note_task, renderer, write_notes
from fault_kit import keys_of, limits, noting_policy, runner

from muarl.domain import Domain
from muarl.record import JournalWriter, read_journal
from muarl.scheduler.rounds import bounds, run_round
from muarl.testing.cancelling import at_wait

TASKS = [note_task(id=f"note-{i}") for i in range(24)]
MOST_WAITS, MOST_WRITES = 40, 8
"""Few enough that the rollout is not over before it was killed as often as is asked for."""


def main(folder: Path, num_kills: int) -> None:
    """Let the children live, one after another."""
    (folder / "domain").mkdir()
    domain = write_notes(folder / "domain")
    vars(domain)["user"] = lambda *_: TalkingUser(["hello"])
    renderer()  # made once, for all children
    rng = random.Random(7)
    for number in range(num_kills):
        backend = ("asyncio", "trio")[number % 2]
        child = os.fork()
        if child == 0:
            live(domain, folder / "episodes.journal", backend, rng)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            sys.exit("a life ended before it was killed")
        rng.random()  # the children draw from copies
    live(domain, folder / "episodes.journal", "asyncio", None)


def live(domain: Domain, path: Path, backend: str, rng: random.Random | None) -> NoReturn:
    """Resume the rollout; with `rng`, die on the way."""
    done = {e.key: e for e in read_journal(path)} if path.exists() else {}
    wait = rng.randrange(1, MOST_WAITS) if rng and rng.random() < 0.6 else 10**9
    if rng and wait == 10**9:
        die_in_write(rng.randrange(1, MOST_WRITES), rng)

    async def work() -> None:
        keys, spec = keys_of(TASKS), limits(concurrency=6)
        with JournalWriter(path) as journal:
            groups = await run_round(
                keys,
                runner(domain, noting_policy(), spec, tasks=TASKS),
                limits=bounds(spec),
                journal=journal,
                done=done,
            )
        for group in groups:
            for episode in group.episodes:
                sys.stdout.write(f"{episode.key}\n")

    async def whole() -> None:
        with at_wait(wait, die):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(work)

    code = 1
    try:
        anyio.run(whole, backend=backend)
        sys.stdout.flush()
        code = 0
    finally:  # whatever happened, a child must not go on with its parent's loop
        if code:
            traceback.print_exc()
        os._exit(code)


def die() -> None:
    """As the kernel may end us: nothing is flushed, nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_in_write(number: int, rng: random.Random) -> None:
    """Die when so many writes were begun, with some bytes of the last one on the disk."""
    pwrite, begun = os.pwrite, 0

    def torn(fd: int, data: memoryview, offset: int) -> int:
        nonlocal begun
        begun += 1
        if begun == number:
            pwrite(fd, data[: rng.randrange(len(data) + 1)], offset)
            die()
        return pwrite(fd, data, offset)

    os.pwrite = torn  # type: ignore[assignment]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
