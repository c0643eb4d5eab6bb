"""A disk that says no, said once and alike by everything that saves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muarl.errors import RecordError


@contextmanager
def saving(path: Path, *also: type[Exception]) -> Iterator[None]:
    """Turn what the disk raises within the block into an error about `path`.

    Args:
        path: What is being written.
        also: What the library that writes raises beside OSError.

    Raises:
        RecordError: It could not be written.
    """
    refusals: tuple[type[Exception], ...] = (OSError, *also)
    try:
        yield
    except refusals as error:
        why = getattr(error, "strerror", None) or str(error)
        raise RecordError(
            f"{path}: cannot be written ({why}). What was saved before is safe: make room or mend "
            "the disk, then resume the run"
        ) from error
