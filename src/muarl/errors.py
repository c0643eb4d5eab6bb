"""Every error muarl raises on purpose.

MuarlError
├── SpecError              your file: every problem with path:line:column and what to do
├── UsageError             what was typed: it names nothing that there is, or does not go together
│   ├── NoRunError         a folder that is none of a run (a RecordError as well)
│   └── NoModelError       a folder that holds no model (a SetupError as well)
├── SetupError             your machine: a missing extra, no endpoint; ends with a command
│   └── PluginError        a plug-in that no package provides, two provide, or that is broken
├── EpisodeError           recorded on the episode as data; never cancels a sibling
│   ├── PolicyError        the engine or endpoint that samples the policy failed
│   ├── AgentError         an agent's own loop raised, or broke its contract
│   ├── UserError          the user simulator broke its contract
│   ├── EndpointError      the endpoint behind an LLM user is down, refuses or answers nonsense
│   ├── ToolServerError    a tool server died; a tool that *returns* an error is a message
│   ├── SyncError          what keeps a user's device and the world in step failed
│   ├── RewardError        a predicate raised
│   └── EpisodeTimeout     which deadline passed, and how long it was
├── RecordError            an unreadable, damaged or too new record, or one that cannot be written
├── FaultRateError         so many dialogues fail that the run stops (the fuse)
└── TrainError
    ├── NonFiniteLoss      the step and what was not finite
    ├── RankLost           another process of a run with several has ended
    └── WeightSyncError    the sampler does not hold the trainer's weights

One thing is no error: OldVersionWarning, a spec file that has an old form and is read all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches

_LONGEST_NAME = 200
"""Longer words are no slip of the pen, and may be of a model."""

_ALIKE = 0.6
"""Likeness from which one name may be a slip of another; what `difflib` uses."""


class MuarlError(Exception):
    """Base of all errors of muarl; the command line prints it without a traceback."""

    exit_code = 1


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """The tail of a message about an unknown name: the nearest right one, or "".

    Example:
        >>> did_you_mean("max_turn", ["max_turns", "seed"])
        "; did you mean 'max_turns'?"
    """
    near = get_close_matches(word, list(choices), n=1) if len(word) <= _LONGEST_NAME else []
    return f"; did you mean {near[0]!r}?" if near else ""


def nearest_file(name: str, names: Iterable[str]) -> str | None:
    """The file that was most likely meant by a name that is not there; None where none is like it.

    What files of one kind have in common says nothing: of `gone.yaml` and `round.yaml`, four of five
    letters. So what stands before the ending has to be alike by itself, and the endings as well.

    Example:
        >>> nearest_file("dev.yml", ["grid.yaml", "dev.yaml", "dev.py"])
        'dev.yaml'
    """
    if len(name) > _LONGEST_NAME:
        return None
    stem, ending = _parted(name)
    likeness = {
        other: (_ratio(stem, its_stem), _ratio(ending, its_ending))
        for other, (its_stem, its_ending) in ((other, _parted(other)) for other in sorted(names))
        if _ratio(stem, its_stem) >= _ALIKE
        and (stem == its_stem or not ending or _ratio(ending, its_ending) >= _ALIKE)
    }
    return max(likeness, key=likeness.__getitem__, default=None)


def _parted(name: str) -> tuple[str, str]:
    stem, dot, ending = name.rpartition(".")
    return (stem, ending) if dot and stem else (name, "")


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a spec file.

    Attributes:
        path: File as the user named it.
        line: 1-based line, 0 when the problem has no place in the file.
        column: 1-based column, 0 likewise.
        message: What was wrong, what was expected, what to do.
    """

    path: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        place = f":{self.line}:{self.column}" if self.line else ""
        return f"{self.path}{place}: {self.message}"


class SpecError(MuarlError):
    """Problems in spec files, all of them at once."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class SetupError(MuarlError):
    """The machine lacks something; the message ends with the command that mends it."""


class UsageError(MuarlError):
    """What was asked for names nothing that there is, or does not go together."""

    exit_code = 2


class NoModelError(UsageError, SetupError):
    """A folder that was named holds no model."""


class PluginError(SetupError):
    """A plug-in cannot be had: nobody provides it, two packages do, or whoever does is broken."""


class EpisodeError(MuarlError):
    """A dialogue could not go on. Caught once, by the dialogue's recorder."""


class PolicyError(EpisodeError):
    """The policy's engine or endpoint failed (infrastructure)."""


class AgentError(EpisodeError):
    """An agent's own loop raised, or did what it may not (infrastructure: the author's bug)."""


class UserError(EpisodeError):
    """The user simulator broke its contract (user fault).

    Attributes:
        breach: Which part of it, as a name; None where it is none of those that guards look at.
    """

    def __init__(self, message: str, breach: str | None = None) -> None:
        self.breach = breach
        super().__init__(message)


class EndpointError(EpisodeError):
    """A chat endpoint is down, refuses us, or answers nonsense (infrastructure)."""


class ToolServerError(EpisodeError):
    """A tool server could not be started, hung, or died (infrastructure)."""


class SyncError(EpisodeError):
    """A domain's `sync` failed in the middle of a dialogue (infrastructure: the author's bug)."""


class RewardError(EpisodeError):
    """A predicate raised while it was evaluated (infrastructure: the author's bug)."""


class EpisodeTimeout(EpisodeError):
    """A named deadline passed.

    Attributes:
        deadline: What was being waited for.
        seconds: How long it was allowed to take.
    """

    def __init__(self, deadline: str, seconds: float) -> None:
        self.deadline = deadline
        self.seconds = seconds
        super().__init__(f"{deadline} did not finish within {seconds:g} s")


class RecordError(MuarlError):
    """A record on disk cannot be read or written."""


class NoRunError(UsageError, RecordError):
    """A folder that was named is none of a run, or of none that has what is asked for."""


class FaultRateError(MuarlError):
    """Too many dialogues end in faults: something they share is broken."""


class TrainError(MuarlError):
    """Training cannot go on."""


class NonFiniteLoss(TrainError):
    """A loss or gradient is not finite."""


class RankLost(TrainError):
    """Another process that carries the run out has ended before it was over."""


class WeightSyncError(TrainError):
    """After a weight sync the sampler does not answer with the trainer's weights."""


class OldVersionWarning(UserWarning):
    """A spec file has an old form; it is read all the same."""


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors that a group of groups holds, in order; itself, if it is no group."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
