"""Small packages that provide plug-ins, installed for one test: a module and its metadata on the path."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Protocol

import pytest

_NUMBERS = itertools.count()


class Install(Protocol):
    """Installs a package, and returns the name of its module."""

    def __call__(
        self, code: str, *points: str, package: str = "shop-plugins", version: str = "0.1"
    ) -> str: ...


def installer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    def install(
        code: str, *points: str, package: str = "shop-plugins", version: str = "0.1"
    ) -> str:
        """Install.

        Args:
            code: Of its module.
            points: `muarl.users: patient = plugin`, each an attribute of that module.
            package: Its name.
            version: Its version.
        """
        site = folder / f"site{next(_NUMBERS)}"
        module = f"plugged_{next(_NUMBERS)}"
        info = site / f"{package.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (site / f"{module}.py").write_text(code, encoding="utf-8")
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n", encoding="utf-8"
        )
        lines = []
        for point in points:
            group, _, rest = point.partition(": ")
            name, _, attribute = rest.partition(" = ")
            lines.append(f"[{group}]\n{name} = {module}:{attribute}\n")
        (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
        monkeypatch.syspath_prepend(str(site))
        return module

    return install


PATIENT = '''\
from muarl.plugins import Options, PredicatePlugin, Scene, UserPlugin, UserReply


class Patience(Options):
    """How a patient user is."""

    patience: int = 3
    """Messages that she bears."""
    opening: str | None = None
    """Her first message; left out, the task's goal."""


class Patient:
    def __init__(self, options: Patience, scene: Scene) -> None:
        self.left, self.goal = options.patience, options.opening or scene.task.goal

    async def open(self) -> UserReply:
        return UserReply(self.goal, act="open")

    async def reply(self, agent_text: str) -> UserReply:
        self.left -= 1
        return UserReply("Yes." if self.left else "Bye.", stop=not self.left, act="confirm")


patient = UserPlugin(Patience, Patient)


class Brevity(Options):
    """What short is."""

    chars: int
    """Characters of a message, at most."""


def is_brief(options, evidence):
    longest = max((len(text) for _, text in evidence.heard()), default=0)
    return longest <= options.chars, f"the longest message has {longest} characters"


brief = PredicatePlugin(Brevity, is_brief)
'''
"""A package with a user and a predicate."""

BOTH = ("muarl.users: patient = patient", "muarl.predicates: brief = brief")
