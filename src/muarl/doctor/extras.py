"""muarl's optional parts: which are whole here, as muarl's own package metadata names them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement

from muarl.doctor.finding import Finding, State

_OTHERS = {"test", "site", "bfcl-official"}
"""For whoever works on muarl itself, and what lives in an environment of its own."""


def extras() -> Iterator[Finding]:
    """Look at each optional part."""
    for extra in metadata.metadata("muarl").get_all("Provides-Extra") or []:
        if extra not in _OTHERS:
            yield extra_finding(extra, of_extra(extra))


def of_extra(extra: str) -> list[Requirement]:
    """What an optional part is made of, on this machine."""
    every = [Requirement(line) for line in metadata.requires("muarl") or []]
    mine = [each for each in every if each.marker and each.marker.evaluate({"extra": extra})]
    without = [each for each in every if each.marker and each.marker.evaluate({"extra": ""})]
    return [each for each in mine if each not in without and each.name != "muarl"]


def extra_finding(extra: str, needs: list[Requirement]) -> Finding:
    """How it is with an optional part that `needs` these packages."""
    here, missing, old = [], [], []
    for need in needs:
        version = _version(need.name)
        if version is None:
            missing.append(need.name)
        elif not need.specifier.contains(version, prereleases=True):
            old.append(f"{need.name} {version} is not {need.specifier}")
        else:
            here.append(f"{need.name} {version}")
    remedy = f"pip install 'muarl[{extra}]'"
    if old:
        return Finding("extras", extra, State.WRONG, "; ".join(old), f"{remedy} --upgrade")
    if missing:
        return Finding("extras", extra, State.MISSING, f"lacks {', '.join(missing)}", remedy)
    return Finding("extras", extra, State.OK, ", ".join(here))


def _version(package: str) -> str | None:
    # vLLM's builds for processors alone have a name of their own.
    for name in (package, f"{package}-cpu"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None
