"""What a proof finds in a public benchmark's tasks: theirs, and no fault of their import.

Who imports published tasks wants them as they are. That two of them are nearly the same, that doing
nothing solves one, or that nobody needs a tool is said of them, and does not make the domain unsound.
That a tool server fails, a name is unknown or gold calls earn less than 1 remains a finding.
"""

from __future__ import annotations

from muarl.data.proof.finding import Check, ProofFinding, Subject

_OF_TASKS = {
    Check.SPLITS,
    Check.DUPLICATES,
    Check.IDLE,
    Check.COVERAGE,
    Check.FLOOR,
    Check.FUZZ,
}


def is_the_benchmarks(finding: ProofFinding, subject: Subject) -> bool:
    """Whether a finding is about published tasks as such."""
    benchmark = subject.domain.spec.benchmark
    if benchmark is None:
        return False
    if finding.check is Check.READS:  # a benchmark may limit calls, as `count` does
        return finding.task_id is not None
    if finding.check is Check.GOLD:
        return finding.task_id in benchmark.unsolved
    return finding.check in _OF_TASKS


UNREACHED = (
    "whether an agent can know what gold calls need was not looked at: users of a benchmark tell it in "
    "prose, and more calls may lead to it than are tried here"
)
