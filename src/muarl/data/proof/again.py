"""The same once more: tools, tasks and world follow from what they are given, and from nothing else.

A tool that counts in its module, draws, remembers whom it has seen or asks the clock makes a dialogue
that cannot be replayed, and a gold world that no dialogue reaches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.data.proof.gold import GoldRun, run_calls
from muarl.domain import Domain
from muarl.messages import ToolResult
from muarl.spec import TaskSpec
from muarl.world import canonical_diff, diff

_SHOWN_CHARS = 200
"""Of an answer."""
_BEFORE = 40
"""Of them, what is shown before the place where two answers part."""

_ADVICE = "keep state in the world, draw nothing and ask no clock"


async def again_findings(
    subject: Subject, runs: Iterable[tuple[TaskSpec, GoldRun]]
) -> list[ProofFinding]:
    """Make the calls of runs once more on fresh worlds; each tool's first other answer is a finding.

    Best asked after all runs were made, so that what other dialogues left behind is seen.

    Raises:
        ToolServerError: The server did not start, or died.
    """
    found: dict[str, ProofFinding] = {}
    for task, run in runs:
        calls = [call for call, _ in run.made]
        again = await run_calls(subject, task, calls, strict=False)
        for call, first, second in zip(
            calls, (a for _, a in run.made), (a for _, a in again.made), strict=True
        ):
            if (first.is_error, first.content) != (second.is_error, second.content):
                one, other = _shown(first, second), _shown(second, first)
                message = (
                    f"task {task.id!r}: {call.tool} {dict(call.arguments)} answers {one}, and "
                    f"made once more after the same calls on the same world {other}; {_ADVICE}"
                )
                # What comes after it may differ for its sake.
                whose = ("tools",) if call.by == "agent" else ("device", "tools")
                finding = subject.about(Check.AGAIN, whose, message, at_key=True)
                found.setdefault(f"{call.by} {call.tool}", finding)
                break
        else:
            if changes := canonical_diff(run.world, again.world, run.world.unordered):
                named = (
                    ", ".join(dict.fromkeys(call.tool for call in calls)) or "the server's start"
                )
                message = (
                    f"task {task.id!r}: the same calls ({named}), made once more, lead to another "
                    f"world: {changes[0]}; {_ADVICE}"
                )
                found.setdefault("", subject.about(Check.AGAIN, ("tools",), message, at_key=True))
    return list(found.values())


def made_again_findings(subject: Subject) -> Iterator[ProofFinding]:
    """Tasks of a generator, and a world from Python, that come out otherwise when made once more.

    Raises:
        SpecError: The generator or the world's Python raised this time.
    """
    domain, spec = subject.domain, subject.domain.spec
    again = Domain(domain.located)
    builders = {
        ("world", "python"): spec.world.python,
        ("device", "world", "python"): spec.device
        and spec.device.world
        and spec.device.world.python,
    }
    of_python = {loc: name for loc, name in builders.items() if name}
    if of_python and (changes := diff(domain.base, again.base)):
        message = (
            f"{' or '.join(of_python.values())} builds another world when it is called once more: "
            f"{changes[0]}; ask no clock, and draw from a `random.Random` with a seed of your own"
        )
        yield subject.about(Check.AGAIN, next(iter(of_python)), message)
    for split in domain.splits if spec.tasks.generator is not None else ():
        for first, second in zip(
            domain.tasks(split), again.task_source.generated(split), strict=True
        ):
            if first != second:
                message = (
                    f"{spec.tasks.generator} makes other tasks from the same seed: the first of split "
                    f"{split!r} that differs is {first.id!r}, {_difference(first, second)}; "
                    "draw from `random.Random(seed)` alone"
                )
                yield subject.about(Check.AGAIN, spec.tasks.loc, message)
                return


def _difference(first: TaskSpec, second: TaskSpec) -> str:
    (change, *_) = diff(first.model_dump(mode="json"), second.model_dump(mode="json"))
    return str(change)


def parted(one: str, other: str) -> tuple[str, str]:
    """Two texts that differ, each from shortly before the place where they part, in quotes."""
    return repr(_from_parting(one, other)), repr(_from_parting(other, one))


def _shown(result: ToolResult, other: ToolResult) -> str:
    shown = _from_parting(result.content, other.content)
    return f"{'with the error ' if result.is_error else ''}{shown!r}"


def _from_parting(text: str, other: str) -> str:
    parts = next((i for i, (a, b) in enumerate(zip(text, other)) if a != b), 0)  # noqa: B905
    begins = max(0, parts - _BEFORE) if len(text) > _SHOWN_CHARS else 0
    cut = text[begins : begins + _SHOWN_CHARS]
    return f"{'…' if begins else ''}{cut}{'…' if begins + len(cut) < len(text) else ''}"
