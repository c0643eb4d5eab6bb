from __future__ import annotations

import pytest
from pydantic import ValidationError

from muarl.spec import PerturbSpec
from muarl.spec.perturb import FAMILIES


def test_there_are_22_kinds_in_four_families() -> None:
    assert {family: len(kinds) for family, kinds in FAMILIES.items()} == {
        "observation": 4,
        "action": 6,
        "metadata": 6,
        "transition": 6,
    }
    kinds = {kind for kinds in FAMILIES.values() for kind in kinds}
    assert kinds | FAMILIES.keys() == PerturbSpec.model_fields.keys()


def test_a_familys_rate_is_shared_and_a_kinds_own_stands_before_its_share() -> None:
    spec = PerturbSpec(transition=0.6, timeout=0.3, typo=0.25)
    assert spec.rates["timeout"] == 0.3
    assert spec.rates["rate_limited"] == pytest.approx(0.1)
    assert spec.rates["typo"] == 0.25
    assert "rephrase_message" not in spec.rates
    assert PerturbSpec(transition=0.6, timeout=0).rates.keys() == set(FAMILIES["transition"]) - {
        "timeout"
    }


@pytest.mark.parametrize("family", ["action", "metadata", "transition"])
def test_kinds_of_which_one_acts_have_rates_of_at_most_1_together(family: str) -> None:
    first, second, *_ = FAMILIES[family]
    PerturbSpec.model_validate({first: 0.5, second: 0.5})
    PerturbSpec.model_validate({family: 1.0})
    with pytest.raises(ValidationError, match=f"only one kind of {family} can act at a time"):
        PerturbSpec.model_validate({first: 0.5, second: 0.6})


def test_kinds_that_act_together_may_all_act() -> None:
    assert sum(PerturbSpec(typo=1, rephrase_message=1, rephrase_tool=1).rates.values()) == 3
