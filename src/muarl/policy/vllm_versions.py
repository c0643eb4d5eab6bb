"""Versions of vLLM that work, and the versions of weights that vLLM reports."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence

from muarl.errors import SetupError
from muarl.policy.protocol import VersionSwitch

OLDEST = (0, 32)
"""Older ones do not label sampled tokens with the version of their weights."""
TESTED = (0, 32)
"""What the tests run against."""

_log = logging.getLogger(__name__)


def check_version(version: str, where: str) -> None:
    """Refuse a vLLM that is too old, and warn of one that is newer than any that was tried.

    Args:
        version: As vLLM names itself, `0.32.0` or `0.33.1.dev4+g12ab`.
        where: Whose it is, for the message.

    Raises:
        SetupError: It is too old.
    """
    oldest, tested = (".".join(map(str, release)) for release in (OLDEST, TESTED))
    found = re.match(r"(\d+)\.(\d+)", version)
    release = (int(found[1]), int(found[2])) if found else None
    if release is not None and release < OLDEST:
        raise SetupError(
            f"{where} is version {version}; muarl needs {oldest} or newer: pip install -U vllm"
        )
    if release != TESTED:
        _log.warning("%s is version %s; muarl was tested with %s", where, version, tested)


def split_versions(
    spans: Sequence[tuple[str, int, int]], version_of: Callable[[str], int], *, unlabelled: int
) -> tuple[int, tuple[VersionSwitch, ...]]:
    """What vLLM says about who sampled a message, as `Generation` wants it.

    Args:
        spans: Label of the weights, and half-open range `[start, end)` of tokens, in order.
        version_of: What a label stands for.
        unlabelled: Version of a message about which vLLM says nothing.

    Returns:
        Version of the first token, and the switches after it.

    Example:
        Spans ("3", 0, 2) and ("4", 2, 5) give 3 and one switch, to 4 at token 2.
    """
    runs = [(start, version_of(label)) for label, start, end in spans if start < end]
    if not runs:
        return unlabelled, ()
    first, *later = runs
    return first[1], tuple(VersionSwitch(start, version) for start, version in later)
