"""What installed packages provide, and whether it can be had."""

from __future__ import annotations

from collections.abc import Iterator

from muarl.doctor.finding import Finding, State
from muarl.errors import PluginError
from muarl.spec.plugin import all_installed, provided


def plugins() -> Iterator[Finding]:
    """Look at each plug-in, which imports its package. One that is broken stops who names it alone."""
    for one in all_installed():
        name = f"{one.kind} {one.name}"
        try:
            provided(one.group, one.name).load()
        except PluginError as error:
            remedy = f"mend or uninstall {one.package}"
            yield Finding("plug-ins", name, State.MISSING, str(error), remedy)
        else:
            yield Finding("plug-ins", name, State.OK, one.by)
