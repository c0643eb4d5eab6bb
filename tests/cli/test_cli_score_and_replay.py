"""`muarl score` and `muarl replay`: stored episodes judged again, without a model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_input import InProcess, in_a_new_process
from spec_files import spoil

from muarl.record import Episode, JournalWriter, Outcome, StoredEpisodes, read_journal
from muarl.testing import build_episode
from muarl.train.run_folder import RunFolder

REWARD = """\
version: 1
reward:
  - called: {tool: cancel}
  - never_called: {tool: look}
metrics: []
"""


@pytest.fixture
def rollout(muarl: InProcess, run_file: Path, out: Path) -> Path:
    """The folder of a rollout of six dialogues, all of which succeeded."""
    assert muarl("rollout", run_file, "--expert", "--episodes", 6, "--out", out).code == 0
    return out


@pytest.fixture
def reward(tmp_path: Path) -> Path:
    path = tmp_path / "reward.yaml"
    path.write_text(REWARD)
    return path


ONE_TASK = "(no interval: it is of one task)"


def journal(folder: Path) -> list[Episode]:
    return list(read_journal(folder / "episodes.journal"))


def rewritten(folder: Path, episodes: Iterator[Episode] | list[Episode]) -> None:
    episodes = list(episodes)
    (folder / "episodes.journal").unlink()
    with JournalWriter(folder / "episodes.journal") as writer:
        for episode in episodes:
            writer.append(episode)


def test_a_rollout_replays_and_scores_as_it_was(muarl: InProcess, rollout: Path) -> None:
    replayed = muarl("replay", rollout)
    assert (replayed.code, replayed.lines) == (0, [])
    assert replayed.out == "6 episodes are as recorded, 0 differ, 0 faults were left out\n"
    before = (rollout / "episodes.journal").read_bytes()
    scored = muarl("score", rollout)
    assert (scored.code, scored.lines) == (0, [])
    summary, where = scored.out.splitlines()
    assert summary == (
        f"rollout: success 1.000 {ONE_TASK} before, 1.000 {ONE_TASK} now, "
        "on 6 dialogues; 0 gained, 0 lost, 0 faults"
    )
    assert where == f"{rollout}-scored"
    assert journal(Path(where)) == journal(rollout)
    assert (rollout / "episodes.journal").read_bytes() == before
    assert sorted(path.name for path in rollout.parent.iterdir()) == ["out", "out-scored", "shop"]


def test_other_predicates_give_other_scores_and_the_new_folder_is_a_run(
    muarl: InProcess, rollout: Path, reward: Path
) -> None:
    spoil(reward, "never_called: {tool: look}", "never_called: {tool: cancel}")
    scored = muarl("score", rollout, "--reward", reward, "--json")
    assert scored.code == 0, scored.lines
    result = json.loads(scored.out)
    (phase,) = result["phases"]
    assert (phase["before"]["value"], phase["after"]["value"]) == (1.0, 0.0)
    assert (phase["n"], phase["gained"], phase["lost"]) == (6, 0, 6)
    new = Path(result["out"])
    assert [e.reward for e in journal(new)] == [0.0] * 6
    assert [e.turns for e in journal(new)] == [e.turns for e in journal(rollout)]
    assert muarl("replay", new, "--reward", reward).code == 0
    differs = muarl("replay", new)
    assert differs.code == 1
    assert "rollout/0/cancel-2/0: reward: recorded 0.0, now 1" in differs.out
    assert "0 episodes are as recorded, 6 differ" in differs.out
    assert muarl("report", new).code == 0


def test_the_domain_of_today_counts(muarl: InProcess, rollout: Path, run_file: Path) -> None:
    spoil(run_file.parent / "domain.yaml", "- gold_world: true", '- said: {text: "sorry"}')
    ending = muarl("score", rollout)
    assert f"1.000 {ONE_TASK} before, 0.000 {ONE_TASK} now" in ending.out
    report = muarl("report", Path(f"{rollout}-scored"))
    assert report.code == 0
    (line,) = RunFolder(Path(f"{rollout}-scored")).lines()
    assert (line["kind"], line["phase"], line["success"]["value"]) == ("rollout", "rollout", 0.0)
    assert muarl("replay", rollout).code == 1


def test_a_domain_that_moved_is_asked_for(muarl: InProcess, rollout: Path, run_file: Path) -> None:
    moved = run_file.parent.with_name("moved")
    run_file.parent.rename(moved)
    for verb in ("score", "replay"):
        muarl(verb, rollout).refuses(1, f"{rollout}: its domain is not at", "name it with --domain")
        assert muarl(verb, rollout, "--domain", moved).code == 0
    again = muarl("replay", Path(f"{rollout}-scored"))
    assert again.code == 0, "the new folder knows the domain that judged"


def test_shards_are_read_together(muarl: InProcess, run_file: Path, tmp_path: Path) -> None:
    parts = [tmp_path / "one", tmp_path / "two"]
    roll = ["rollout", run_file, "--expert", "--episodes", 6]
    for number, part in enumerate(parts, start=1):
        assert muarl(*roll, "--shard", f"{number}/2", "--out", part).code == 0
    assert muarl("replay", *parts).out.startswith("6 episodes are as recorded")
    assert "on 6 dialogues" in muarl("score", *parts).out
    assert len(journal(tmp_path / "one-scored")) == 6


def test_a_phase_can_be_chosen(muarl: InProcess, rollout: Path) -> None:
    episodes = journal(rollout)
    with JournalWriter(rollout / "episodes.journal") as writer:
        writer.append(build_episode(outcome=Outcome.USER_FAULT))
    assert muarl("replay", rollout).out.endswith("1 faults were left out\n")
    only = muarl("score", rollout, "--phase", "rollout", "--json")
    assert json.loads(only.out)["phases"][0]["n"] == 6
    assert journal(Path(f"{rollout}-scored")) == episodes
    ending = muarl("replay", rollout, "--phase", "rolout")
    ending.refuses(2, "no episode is of phase 'rolout'; did you mean 'rollout'?")


def test_each_difference_is_one_line(muarl: InProcess, rollout: Path) -> None:
    first, *others = journal(rollout)
    first.changes = []
    rewritten(rollout, [first, *others])
    ending = muarl("replay", rollout, "--json")
    assert ending.code == 1
    result = json.loads(ending.out)
    assert (result["same"], result["different"], result["faults"]) == (5, 1, 0)
    (difference,) = result["differences"]
    assert difference["episode"] == str(first.key)
    assert "recorded no change, now `orders.W2.status: 'pending' -> 'cancelled'`" in str(difference)


# Bad input: one message, the right exit code, and nothing made.


def test_a_task_that_is_another_by_now(muarl: InProcess, rollout: Path, run_file: Path) -> None:
    spoil(run_file.parent / "held_out.yaml", "goal: Cancel W2.", "goal: Cancel W2 at once.")
    ending = muarl("score", rollout)
    ending.refuses(1, "rollout/0/cancel-2/0: task 'cancel-2' is not the one that was played")
    assert not Path(f"{rollout}-scored").exists()
    ending = muarl("replay", rollout)
    assert ending.code == 1
    assert ending.out.count("task 'cancel-2' is not the one that was played") == 6


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("called: {tool: cancel}", "called: {tool: cancle}", ":3:20: unknown tool 'cancle'; did"),
        ("reward:", "rewards:", ":2:1: unknown field 'rewards'; did you mean 'reward'?"),
        ("version: 1", "version: 2", ":1:10: version 2 is newer than muarl "),
        (
            "called: {tool: cancel}",
            "{called: {tool: cancel}, said: {text: a}}",
            ":3:5: item 1 of 'reward': give exactly one of",
        ),
    ],
)
@pytest.mark.parametrize("verb", ["score", "replay"])
def test_a_file_of_predicates_that_is_wrong(
    old: str, new: str, says: str, verb: str, muarl: InProcess, rollout: Path, reward: Path
) -> None:
    spoil(reward, old, new)
    ending = muarl(verb, rollout, "--reward", reward)
    assert ending.code == 2
    assert f"{reward}{says}" in "\n".join(ending.lines)
    assert not Path(f"{rollout}-scored").exists()


def test_a_file_of_predicates_that_is_not_there(
    muarl: InProcess, rollout: Path, reward: Path
) -> None:
    ending = muarl("score", rollout, "--reward", reward.with_name("rewardd.yaml"))
    ending.refuses(2, "rewardd.yaml: no such file; did you mean", "reward.yaml'?")


@pytest.mark.parametrize("verb", ["score", "replay"])
def test_what_is_no_run(verb: str, muarl: InProcess, tmp_path: Path, run_file: Path) -> None:
    nowhere = tmp_path / "nowhere"
    muarl(verb, nowhere).refuses(2, f"{nowhere}: no such run folder")
    nowhere.mkdir()
    JournalWriter(nowhere / "episodes.journal").__enter__().__exit__(None, None, None)
    muarl(verb, nowhere).refuses(1, f"{nowhere}: no episode is finished")
    (nowhere / "episodes.journal").write_bytes(b"not a journal at all")
    muarl(verb, nowhere).refuses(1, "not a journal of muarl")
    assert muarl(verb).code == 2


def test_nothing_is_replaced_that_was_not_meant_to_be(muarl: InProcess, rollout: Path) -> None:
    before = journal(rollout)
    scored = Path(f"{rollout}-scored")
    for flags in ((), ("--overwrite",)):
        ending = muarl("score", rollout, "--out", rollout, *flags)
        ending.refuses(1, f"{rollout} would replace {rollout}, which is read")
    scored.mkdir()
    (scored / "thesis.tex").write_text("x")
    for flags in ((), ("--overwrite",)):
        ending = muarl("score", rollout, *flags)
        ending.refuses(
            1, f"{scored} is not a folder with spec.resolved.yaml, so it is not replaced"
        )
    assert [path.name for path in scored.iterdir()] == ["thesis.tex"]
    shutil.rmtree(scored)
    assert muarl("score", rollout).code == 0
    muarl("score", rollout).refuses(1, f"{scored} is there already; use --overwrite")
    assert muarl("score", rollout, "--overwrite").code == 0
    assert journal(rollout) == before
    assert list(StoredEpisodes([scored / "episodes.journal"])) == before


def test_neither_torch_nor_transformers_is_needed(rollout: Path, tmp_path: Path) -> None:
    blocker = tmp_path / "blocker"
    blocker.mkdir()
    (blocker / "sitecustomize.py").write_text(
        "import sys\n"
        "class Blocker:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('torch', 'transformers', 'vllm', 'pyarrow'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Blocker())\n"
    )
    for verb in ("replay", "score"):
        ending = in_a_new_process(verb, rollout, env={"PYTHONPATH": str(blocker)})
        assert (ending.code, ending.lines) == (0, []), verb
