"""What a score on a public benchmark's domain is not: in what the domain differs from what is published."""

from __future__ import annotations

from muarl.cli._telling import remark
from muarl.suite import AnyDomain


def tell_differences(domain: AnyDomain) -> None:
    """Say it, before anything is played."""
    for one in domain.members:
        for sentence in one.spec.benchmark.differs if one.spec.benchmark else ():
            remark(f"{one.name}: {sentence}")
