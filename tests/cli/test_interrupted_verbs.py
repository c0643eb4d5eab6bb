"""Ctrl-C once drains, twice ends at once; either way the journal can be read (laws L7 and L9)."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from short_run import write_run

from muarl import cli
from muarl.dialogue import Dialogue
from muarl.record import Episode, JournalWriter, read_journal
from muarl.spec import load_run
from muarl.suite import load_domain_of
from muarl.train.models import open_model

EPISODES, CONCURRENCY = 60, 16
AT_FIRST = 8
"""Dialogues that admission lets in before it has seen how the engine bears them."""
LIMITS = {"concurrency": CONCURRENCY, "max_tokens": 16, "context_tokens": 1024, "max_turns": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run file, and a model that has learned nothing."""
    folder = tmp_path_factory.mktemp("interrupted")
    path = write_run(
        folder,
        rollout=LIMITS,
        eval={"episodes": EPISODES, "temperatures": [1.0]},
        cold_start={"episodes": 16, "steps": 2},
    )
    located = load_run(path)
    anyio.run(open_model, load_domain_of(located), located, folder / "model")
    return folder


@pytest.fixture
def ctrl_c(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Ctrl-C as the journal gets its third episode; twice: then no dialogue ends by itself."""

    def arrange(times: int) -> None:
        # Heard at the loop's next pass: a fast machine would be done with all in a tenth of a second.
        monkeypatch.setattr("muarl.cli._running._LOOK_S", 0.0)
        append, generate = JournalWriter.append, Dialogue._generate
        count, sent = 0, 0

        def press() -> None:
            nonlocal sent
            if sent < times:
                sent += 1
                os.kill(os.getpid(), signal.SIGINT)

        def appended(self: JournalWriter, episode: Episode) -> None:
            nonlocal count
            append(self, episode)
            count += 1
            if count == 3:
                press()

        async def generated(self: Dialogue, *arguments: Any) -> Any:
            if times == 2 and count >= 3:
                press()
                await anyio.sleep_forever()
            return await generate(self, *arguments)

        monkeypatch.setattr(JournalWriter, "append", appended)
        monkeypatch.setattr(Dialogue, "_generate", generated)

    return arrange


def run_verb(folder: Path, verb: str, out: Path) -> int:
    who = {"rollout": ["--expert"], "eval": ["--model", str(folder / "model")], "train": []}[verb]
    return cli.main([verb, str(folder / "run.yaml"), *who, "--out", str(out)])


def journaled(out: Path) -> int:
    keys = [episode.key for episode in read_journal(out / "episodes.journal")]
    assert len(keys) == len(set(keys))
    return len(keys)


@pytest.mark.parametrize("verb", ["rollout", "eval", "train"])
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_drains_and_a_second_one_ends_at_once(
    folder: Path,
    tmp_path: Path,
    ctrl_c: Callable[[int], None],
    capsys: pytest.CaptureFixture[str],
    verb: str,
    times: int,
) -> None:
    ctrl_c(times)
    threads = set(threading.enumerate())
    assert run_verb(folder, verb, tmp_path) == 130
    said = capsys.readouterr().err
    assert said.rstrip().endswith("muarl: interrupted")
    assert "Traceback" not in said
    assert ("--resume" in said) == (verb != "eval")
    # Once: what is live is finished, and no more begins. Twice: what would not end is given up.
    assert (AT_FIRST if times == 1 else 3) <= journaled(tmp_path) < EPISODES
    for thread in set(threading.enumerate()) - threads:
        thread.join(60)
        assert not thread.is_alive(), thread
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    gc.collect()  # what is left of coroutines that never ran would be an error here


def test_an_interrupted_rollout_goes_on_to_the_episodes_of_one_that_was_not(
    folder: Path, tmp_path: Path, ctrl_c: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    ctrl_c(2)
    assert run_verb(folder, "rollout", tmp_path / "broken") == 130
    monkeypatch.undo()
    resume = ["--expert", "--out", str(tmp_path / "broken"), "--resume"]
    assert cli.main(["rollout", str(folder / "run.yaml"), *resume]) == 0
    assert run_verb(folder, "rollout", tmp_path / "whole") == 0
    broken, whole = (
        {str(e.key): e for e in read_journal(tmp_path / name / "episodes.journal")}
        for name in ("broken", "whole")
    )
    assert broken == whole
