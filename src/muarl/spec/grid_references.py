"""What a grid file refers to by itself: its run file, its policies and its users."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from muarl.spec.finding import Finding, unknown
from muarl.spec.grid import GridSpec
from muarl.spec.named_files import no_file


def grid_findings(grid: GridSpec, folder: Path) -> Iterator[Finding]:
    """A run file that does not exist, and a gain of policies and users that are not in the grid.

    Folders of policies are looked for when they are to play: a grid may be written before they are
    trained.
    """
    if not os.path.isfile(folder / grid.run):
        yield Finding(("run",), no_file(folder, grid.run))
    if grid.gain is None:
        return
    for key in ("cold", "trained"):
        name = getattr(grid.gain, key)
        if name not in grid.policies:
            yield Finding(("gain", key), unknown("policy", name, grid.policies))
    if grid.gain.user not in grid.users:
        yield Finding(("gain", "user"), unknown("user", grid.gain.user, grid.users))
    if grid.gain.cold == grid.gain.trained:
        message = f"{grid.gain.cold!r} cannot have gained over itself; name another policy"
        yield Finding(("gain", "trained"), message)
    if len(grid.users) == 1:
        message = "a gain is kept under other users than its own; add one to `users`"
        yield Finding(("gain",), message)
