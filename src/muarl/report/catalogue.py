"""What figures of users are called, and when a monitor fires: what a page needs to show them."""

from __future__ import annotations

from typing import Any

import msgspec

from muarl.measure.catalogue import CATALOGUE, METRICS
from muarl.measure.monitors import PATIENCE, RULES


def catalogue() -> dict[str, Any]:
    """The 31 metrics, their figures, and the monitors of a training."""
    return {
        "metrics": dict(METRICS),
        "figures": {
            name: {
                "metric": figure.number,
                "says": figure.says,
                "unit": figure.unit,
                "better": figure.better,
            }
            for name, figure in CATALOGUE.items()
        },
        "monitors": msgspec.to_builtins(RULES),
        "patience": PATIENCE,
    }
