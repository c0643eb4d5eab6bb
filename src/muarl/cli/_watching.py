"""What the verbs that run dialogues are watched with: counters, a log, a display, spans."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from muarl.cli._display import LiveProgress, PlainProgress, display
from muarl.cli._standing import Course, written
from muarl.errors import SetupError, leaves
from muarl.observe import Observation, RunLog
from muarl.observe.sinks import Sinks
from muarl.observe.words import plain_words
from muarl.scheduler import Observer
from muarl.spec import Located, RunSpec
from muarl.spec.base import Spec
from muarl.train.packages import sink_findings
from muarl.train.progress import Silent
from muarl.train.run_folder import RunFolder
from muarl.version import __version__

Progress = LiveProgress | PlainProgress | Silent


def require_watching(args: argparse.Namespace, run: Located[RunSpec]) -> None:
    """Look whether what `--otel` and the run's sinks need is there, before anything is written.

    Raises:
        SpecError: A sink is not installed; names its place in the run file.
        SetupError: What `--otel` needs is not, or no collector answers.
    """
    run.refuse(sink_findings(run.spec))
    if not args.otel:
        return
    try:
        from muarl.observe.collector import require_collector
    except ModuleNotFoundError as missing:
        if not (missing.name or "").startswith("opentelemetry"):
            raise
        raise SetupError(
            f"--otel needs {missing.name}. Install it with `pip install 'muarl[otel]'`"
        ) from missing
    require_collector()


@contextmanager
def watched(
    folder: RunFolder,
    spec: RunSpec,
    *,
    otel: bool,
    beside: Sequence[Spec] = (),
    shown: bool = True,
) -> Iterator[tuple[Observation, Progress]]:
    """Watch a run while this is open: what to tell of dialogues, and what to tell of phases.

    `beside` are further specs that name the keys of endpoints. Of several processes that carry out one
    run, only one has its progress `shown`.
    """
    secrets = tuple(key for each in (spec, *beside) for key in _secrets(each))
    with ExitStack() as stack:
        log = stack.enter_context(RunLog(folder.events, secrets))
        others: list[Observer] = [log]
        if otel:
            from muarl.observe.collector import collector
            from muarl.observe.spans import Spans

            provider = stack.enter_context(collector())
            others.append(stack.enter_context(Spans(provider, secrets)))
        observation = Observation(*others, secrets=secrets)
        progress: Progress = Silent()
        if shown:
            course = Course(observation.counters)
            stack.enter_context(written(course, folder.path))
            progress = stack.enter_context(display(course))
        stack.enter_context(_heard(log, progress, secrets))
        log.say("run_begins", muarl=__version__, seed=spec.seed, engine=spec.engine.name)
        if folder.accepted:
            log.say("domain_changed", warning=True, changes=folder.accepted)
            progress.note(f"the domain changed since the run began: {'; '.join(folder.accepted)}")
        if folder.changed:
            log.say("spec_changed", changes=folder.changed)
            progress.note(f"the run goes on with {'; '.join(folder.changed)}")
        try:
            with _told(folder, spec, shown):  # whatever a sink says at its end is heard, too
                yield observation, progress
        except BaseException as error:
            found = list(leaves(error))
            stopped = any(isinstance(leaf, KeyboardInterrupt) for leaf in found)
            log.say(
                "run_stops" if stopped else "run_fails",
                warning=True,
                kind=", ".join(dict.fromkeys(type(leaf).__name__ for leaf in found)),
                words=plain_words("; ".join(map(str, found)), secrets),
                **observation.counters.snapshot().figures(),
            )
            raise
        log.say("run_ends", **observation.counters.snapshot().figures())


@contextmanager
def _told(folder: RunFolder, spec: RunSpec, shown: bool) -> Iterator[None]:
    """The run's sinks are told of its metrics."""
    if not shown or not spec.sinks:
        yield
        return
    with Sinks(spec.sinks, folder.path, spec.model_dump(mode="json")) as folder.sinks:
        yield


@contextmanager
def _heard(log: RunLog, progress: Progress, secrets: tuple[str, ...]) -> Iterator[None]:
    """What muarl's loggers warn of goes to the log and to the display, not across it."""
    handler = _Warnings(log, progress, secrets)
    logger = logging.getLogger("muarl")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Warnings(logging.Handler):
    def __init__(self, log: RunLog, progress: Progress, secrets: tuple[str, ...]) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._progress = progress
        self._secrets = secrets

    def emit(self, record: logging.LogRecord) -> None:
        words = plain_words(record.getMessage(), self._secrets)
        self._log.say("warning", warning=True, logger=record.name, words=words)
        self._progress.note(words)


def _secrets(spec: Spec) -> tuple[str, ...]:
    """Keys that a run uses; its spec only names the variables they are in."""
    names = set(_values(spec.model_dump(), "api_key_env"))
    return tuple(filter(None, (os.environ.get(name) for name in names if name)))


def _values(document: Any, field: str) -> Iterator[Any]:
    """What the fields of this name hold, wherever in a document they are."""
    if isinstance(document, list):
        for item in document:
            yield from _values(item, field)
    elif isinstance(document, dict):
        for name, value in document.items():
            if name == field:
                yield value
            else:
                yield from _values(value, field)
