"""Say what was fuzzed, since that nothing was found means nothing without it."""

from __future__ import annotations

import pytest
from fuzz_tally import GUIDED, TALLIES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, tally in TALLIES.items():
        if tally.inputs:
            terminalreporter.write_line(f"fuzz {name}: {tally}")
    for name, seen in GUIDED.items():
        terminalreporter.write_line(f"fuzz {name}: {seen}")
