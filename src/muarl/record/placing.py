"""Results appear whole or not at all, and replace nothing that they were not told to replace."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from muarl.errors import SetupError
from muarl.own_folder import own_folder
from muarl.record.claim import claimed
from muarl.record.inputs import refuse_inputs
from muarl.record.journal import no_writer
from muarl.record.saving import saving


@contextmanager
def placed(
    path: Path, *, overwrite: bool | None, marker: str | None = None, reads: Iterable[Path] = ()
) -> Iterator[Path]:
    """A path to write to, a file or a folder, which becomes `path` if the block ends well.

    Args:
        path: Where the result goes.
        overwrite: Replace what is there. None: no, and whoever asks has no way to say yes.
        marker: A file that a folder must hold to be replaced: what is not ours stays. None: the
            result is a file, and no folder is ever replaced.
        reads: What is read for the result: never replaced, as a run's own files never are.

    A folder that is replaced is claimed for as long as that takes: it may be a run's.

    Raises:
        SetupError: Something is there that must not be replaced.
        RecordError: The disk said no, or a run is writing there.
    """
    refuse_inputs(path, reads)
    with _replaceable(path, overwrite, marker):
        pass  # said before any work is done, and looked at again after it
    with saving(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        with saving(path):
            beside = held.enter_context(own_folder(path.parent, f".{path.name}-"))
        fresh = beside / path.name
        yield fresh
        with saving(path), _replaceable(path, overwrite, marker):
            if path.is_dir():
                shutil.rmtree(path)
            os.replace(fresh, path)


@contextmanager
def _replaceable(path: Path, overwrite: bool | None, marker: str | None) -> Iterator[None]:
    """Within the block nobody else writes what is there, if anything is, and it may be replaced."""
    _refuse(path, overwrite, marker)
    if not path.is_dir():
        yield
        return
    with claimed(path), no_writer(path / "episodes.journal"):
        yield


def _refuse(path: Path, overwrite: bool | None, marker: str | None) -> None:
    if not path.exists():
        return
    ours = path.is_file() if marker is None else (path / marker).is_file()
    if not ours:
        expected = "a file" if marker is None else f"a folder with {marker}"
        raise SetupError(f"{path} is not {expected}, so it is not replaced; name another place")
    if not overwrite:
        way = "" if overwrite is None else "use --overwrite, or "
        raise SetupError(f"{path} is there already; {way}name another place")
