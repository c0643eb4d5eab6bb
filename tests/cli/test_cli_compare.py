"""`muarl compare`: evaluations that were played already, and every reason not to compare them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from bad_input import InProcess, write_shop
from msgspec import structs

from muarl.cli import main
from muarl.record import Episode, JournalWriter, Outcome, read_journal
from muarl.spec import dump_spec, load_spec
from muarl.spec.run import RunSpec

Make = Callable[..., Path]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a rollout of one dialogue."""
    shop = tmp_path_factory.mktemp("shop")
    rollout = ["rollout", str(write_shop(shop)), "--expert", "--episodes", "1"]
    assert main([*rollout, "--out", str(shop / "base")]) == 0
    return shop / "base"


@pytest.fixture
def make(base: Path, tmp_path: Path) -> Make:
    """Makes folders of runs, each of 8 tasks of which so many were won."""
    (episode,) = read_journal(base / "episodes.journal")

    def made(
        name: str, won: int, *, tasks: int = 8, seed: int | None = None, **fields: object
    ) -> Path:
        folder = tmp_path / name
        shutil.copytree(base, folder)
        (folder / "episodes.journal").unlink()
        (folder / "metrics.jsonl").write_text("")
        if seed is not None:
            (folder / "plan.json").unlink()
            spec = load_spec(base / "spec.resolved.yaml", RunSpec).spec
            said = spec.model_copy(
                update={
                    "seed": seed,
                    "eval": spec.eval.model_copy(update={"episodes": tasks}),
                    "grpo": load_spec(base.parent / "run.yaml", RunSpec).spec.grpo,
                }
            )
            (folder / "spec.resolved.yaml").write_text(dump_spec(said, defaults=True))
            fields = {"phase": "eval:final:T1", **fields}
        phase = str(fields.pop("phase", "rollout"))
        write(
            folder,
            [
                structs.replace(
                    episode,
                    key=structs.replace(episode.key, task_id=f"t{i}", phase=phase),
                    reward=float(i < won),
                    **fields,
                )
                for i in range(tasks)
            ],
        )
        return folder

    return made


def write(folder: Path, episodes: list[Episode]) -> None:
    with JournalWriter(folder / "episodes.journal") as journal:
        for episode in episodes:
            journal.append(episode)


def test_what_was_played_otherwise_is_said_in_words(muarl: InProcess, make: Make) -> None:
    one, other = make("one", 0), make("other", 7, phase="eval:final:T1")
    (line,) = [
        line
        for line in muarl("compare", one, other).out.splitlines()
        if "was played otherwise" in line
    ]
    assert "temperature is 1.0, and there not set" in line, line
    assert "->" not in line
    assert "None" not in line


def test_two_runs_are_compared_task_by_task(muarl: InProcess, make: Make) -> None:
    one, other = make("one", 0), make("other", 7)
    ending = muarl("compare", one, other)
    assert ending.code == 0, ending.lines
    assert f"success, minus that of {one} on the same tasks" in ending.out
    assert "higher  p = 0.016, on 7 tasks that differ" in ending.out
    assert "unknown" in ending.out  # what an expert was trained on: no run says
    found = json.loads(muarl("compare", one, other, "--json").out)
    (difference,) = found["differences"]
    assert (difference["found"], difference["differ"]) == ("higher", 7)
    assert [run["summary"]["success"]["value"] for run in found["runs"]] == [0, 7 / 8]
    assert all(run["contamination"]["tag"] == "unknown" for run in found["runs"])


def test_several_comparisons_are_adjusted_and_a_small_sample_says_so(
    muarl: InProcess, make: Make
) -> None:
    runs = [make(name, won) for name, won in zip("abcd", (0, 7, 5, 0), strict=True)]
    said = muarl("compare", *runs).out
    assert "p = 0.016 (0.047 as one of 3), on 7 tasks that differ" in said
    assert "not supported by the sample: they differ on 5 tasks, and 6 that all agree" in said
    assert "adjusted (Holm) for 3 comparisons" in said


def test_runs_that_differ_in_the_seed_alone_are_trainings_of_one_kind(
    muarl: InProcess, make: Make
) -> None:
    low = [make(f"low-{seed}", seed, seed=seed) for seed in range(3)]
    high = [make(f"high-{seed}", 7 + seed % 2, seed=seed + 5) for seed in range(2)]
    for folder in high:
        spec = folder / "spec.resolved.yaml"
        spec.write_text(spec.read_text().replace("max_turns: 24", "max_turns: 23"))
    ending = muarl("compare", *low, *high)
    assert ending.code == 0, ending.lines
    assert "over 3 training seeds, from 0.000 to 0.250" in ending.out
    assert "rollout.max_turns is 23, and there 24" in ending.out
    found = json.loads(muarl("compare", *low, *high, "--json").out)
    assert [kind["seeds"] for kind in found["kinds"]] == [[0, 1, 2], [5, 6]]
    (difference,) = found["differences"]
    assert difference["trainings"]["mean"]["n"] == 2
    alone = muarl("compare", low[0], high[0]).out
    assert "each: one training seed: says nothing of another" in alone


def spoilt(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def damaged(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 255
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda run: (run / "episodes.journal").unlink(), "no episodes.journal in it"),
        (lambda run: (run / "spec.resolved.yaml").unlink(), "no spec.resolved.yaml in it"),
        (lambda run: (run / "spec.resolved.yaml").write_text("a: ["), "spec.resolved.yaml:1:5"),
        (lambda run: (run / "episodes.journal").write_bytes(b""), "no episode is finished"),
        (lambda run: (run / "episodes.journal").write_bytes(b"x" * 99), "not a journal of muarl"),
        (lambda run: damaged(run / "episodes.journal"), "damaged from byte"),
        (
            lambda run: (run / "metrics.jsonl").write_text("[1]\n"),
            "metrics.jsonl:1: not a JSON object",
        ),
        (
            lambda run: (run / "metrics.jsonl").write_text('{"kind": "floor"}\n'),
            "metrics.jsonl:1: no line of a run's metrics: it lacks name",
        ),
        (
            lambda run: (run / "metrics.jsonl").write_text(
                '{"kind": "floor", "name": "x", "success": {"value": "many"}}\n'
            ),
            "metrics.jsonl: the line of floor 'x' is damaged",
        ),
        (
            lambda run: (run / "metrics.jsonl").write_text(
                '{"kind": "rollout", "phase": "rollout", "contamination": [3]}\n'
            ),
            "metrics.jsonl: the line of rollout is damaged",
        ),
        (lambda run: (run / "plan.json").write_text("{"), "plan.json: expected a JSON object"),
        (shutil.rmtree, "no such run folder"),
    ],
)
def test_what_is_no_whole_run_is_refused_with_its_place(
    muarl: InProcess, make: Make, spoil: Callable[[Path], object], said: str
) -> None:
    one, other = make("one", 3), make("other", 5)
    spoil(other)
    ending = muarl("compare", one, other)
    assert ending.code in (1, 2)
    assert said in "".join(ending.lines)
    assert "Traceback" not in "".join(ending.lines)


def test_a_torn_end_is_left_out_and_what_is_unfinished_is_said(
    muarl: InProcess, make: Make
) -> None:
    one, other = make("one", 3, seed=0), make("other", 8, seed=1)
    spoilt(other / "episodes.journal")
    (other / "metrics.jsonl").write_text('{"kind": "ev')
    ending = muarl("compare", one, other, "--phase", "eval:final:T1")
    assert ending.code == 0, ending.lines
    assert f"{other}: unfinished: 7 of 8 dialogues" in ending.out


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"domain": "bank"}, "played in 'shop', "),
        ({"task_hash": "other"}, "are other tasks: goal, personas"),
        ({"content_hash": "other"}, "the domain changed in between"),
        ({"phase": "train"}, "say with --phase which evaluation counts: none of train is one"),
        ({"outcome": Outcome.INFRA_FAULT}, "all 8 dialogues are faults"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    muarl: InProcess, make: Make, fields: dict[str, object], said: str
) -> None:
    ending = muarl("compare", make("one", 3), make("other", 3, **fields))
    assert ending.code == (2 if "--phase" in said else 1)
    assert said in "".join(ending.lines)


def test_one_task_and_runs_that_are_all_alike_say_that_nothing_can_be_shown(
    muarl: InProcess, make: Make
) -> None:
    single = muarl("compare", make("a", 0, tasks=1), make("b", 1, tasks=1))
    assert single.code == 0, single.lines
    assert "they differ on 1 task, and 6 that all agree are the fewest" in single.out
    alike = muarl("compare", make("c", 8), make("d", 8))
    assert alike.code == 0, alike.lines
    assert "they differ on 0 tasks" in alike.out


def test_phases_of_one_run_are_compared_and_each_must_be_there(
    muarl: InProcess, make: Make
) -> None:
    run = make("run", 1, seed=0)
    episodes = list(read_journal(run / "episodes.journal"))
    cold = "eval:cold:T1"
    write(
        run,
        [structs.replace(e, key=structs.replace(e.key, phase=cold), reward=1.0) for e in episodes],
    )
    ending = muarl("compare", run, "--phase", "eval:final:T1", "--phase", cold)
    assert ending.code == 0, ending.lines
    assert f"{run} ({cold})" in ending.out
    assert "did you mean" in "".join(muarl("compare", run, "--phase", "eval:col:T1").lines)
    assert "is all there is" in "".join(muarl("compare", run).lines)
    assert "named twice" in "".join(muarl("compare", run, run).lines)
    assert "named twice" in "".join(muarl("compare", run, "--phase", cold, "--phase", cold).lines)
