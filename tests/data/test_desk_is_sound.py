"""The order desk that ships with muarl passes its own proof."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from muarl.data.proof import Proof, prove
from muarl.domain import load_domain

DESK = Path(__file__).parents[2] / "domains" / "desk"


def proof(limit: int | None, dialogues: int) -> Proof:
    async def main() -> Proof:
        return await prove(load_domain(DESK), limit=limit, dialogues=dialogues)

    return anyio.run(main)


def check(found: Proof) -> None:
    assert [str(finding.problem) for finding in found.findings] == []
    assert found.skipped == []
    assert all(mean.value == 1 for mean in found.expert.values())


def test_a_sample_of_the_desk_is_sound() -> None:
    check(proof(limit=12, dialogues=12))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_whole_desk_is_sound() -> None:
    found = proof(limit=None, dialogues=100)
    check(found)
    assert all(mean.value is not None and mean.value <= 0.15 for mean in found.idle.values())
