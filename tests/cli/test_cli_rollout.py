"""`muarl rollout`: divided, grouped, broken off and taken up again."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import anyio
import pytest
from bad_input import InProcess
from spec_files import spoil

from muarl.authors import PACKAGES
from muarl.domain import load_domain
from muarl.errors import SetupError
from muarl.record import Episode, JournalWriter, Outcome, StoredEpisodes, read_journal
from muarl.record.codec import encode_episode
from muarl.render import train_tokenizer
from muarl.spec import load_run
from muarl.testing import build_episode
from muarl.train.run_domain import content_of_run
from muarl.train.run_folder import RunFolder


def stored(*folders: Path) -> dict[str, bytes]:
    episodes = list(StoredEpisodes([folder / "episodes.journal" for folder in folders]))
    assert len({e.key for e in episodes}) == len(episodes)
    return {str(e.key): encode_episode(e) for e in episodes}


def journal(folder: Path) -> list[Episode]:
    return list(read_journal(folder / "episodes.journal"))


def test_the_shards_together_are_the_rollout_byte_for_byte_L5(
    muarl: InProcess, run_file: Path, out: Path
) -> None:
    roll = ["rollout", run_file, "--expert", "--episodes", 12, "--group-size", 2]
    assert muarl(*roll, "--out", out).code == 0
    parts = [out.with_name(f"part{number}") for number in (1, 2, 3, 4)]
    for number, part in enumerate(parts, start=1):
        assert muarl(*roll, "--shard", f"{number}/4", "--out", part).code == 0
    sizes = [len(journal(part)) for part in parts]
    assert sizes == [4, 4, 2, 2]
    assert stored(*parts) == stored(out)
    groups = Counter(e.key.group for e in journal(out))
    assert set(groups.values()) == {2}
    assert muarl("report", out).code == 0
    assert sorted({iteration for _, iteration, _ in groups}) == [0, 1, 2, 3, 4, 5]


def test_a_shard_has_a_folder_of_its_own(muarl: InProcess, run_file: Path) -> None:
    ending = muarl(*["rollout", run_file, "--expert", "--episodes", 3, "--shard", "2/3", "--json"])
    assert ending.code == 0
    assert len(journal(Path("runs/run-rollout-2-of-3"))) == 1


@pytest.mark.parametrize("kept", [0, 1, 4, 7])
def test_what_was_broken_off_is_taken_up_and_each_episode_comes_once_L9(
    kept: int, muarl: InProcess, run_file: Path, out: Path
) -> None:
    roll = ["rollout", run_file, "--expert", "--episodes", 8, "--group-size", 2]
    assert muarl(*roll, "--out", out).code == 0
    whole = stored(out)
    part = out.with_name("part")
    shutil.copytree(out, part)
    (part / "episodes.journal").unlink()
    with JournalWriter(part / "episodes.journal") as writer:
        for episode in journal(out)[:kept]:
            writer.append(episode)
    os.truncate(part / "episodes.journal", (part / "episodes.journal").stat().st_size - 5)
    again = muarl(*roll, "--out", part, "--resume")
    assert again.code == 0, again.lines
    assert stored(part) == whole
    assert len(journal(part)) == 8, "nothing that was there is played again"
    assert "8 dialogues" in again.out
    assert "ended: 8 completed" in again.out.splitlines()


def test_a_fault_of_the_earlier_run_is_tried_again(
    muarl: InProcess, run_file: Path, out: Path
) -> None:
    roll = ["rollout", run_file, "--expert", "--episodes", 3, "--out", out]
    assert muarl(*roll).code == 0
    first, *others = journal(out)
    (out / "episodes.journal").unlink()
    with JournalWriter(out / "episodes.journal") as writer:
        writer.append(build_episode(first.key, outcome=Outcome.INFRA_FAULT))
        for episode in others:
            writer.append(episode)
    again = muarl(*roll, "--resume")
    assert "3 dialogues" in again.out
    assert "0 faults" in again.out
    assert [e.key for e in journal(out)] == [first.key, *(e.key for e in others), first.key]
    assert stored(out)[str(first.key)] == encode_episode(first)


def test_a_rollout_is_taken_up_only_as_it_was_planned(
    muarl: InProcess, run_file: Path, out: Path
) -> None:
    roll = ["rollout", run_file, "--expert", "--out", out, "--episodes"]
    assert muarl(*roll, 2).code == 0
    before = journal(out)
    for arguments, differs in (
        ([4], "eval.episodes: 2 -> 4"),
        ([2, "--group-size", 2], "rollout.group_size: 1 -> 2"),
        ([2, "--shard", "1/2"], "shard: '1/1' -> '1/2'"),
        ([2, "--split", "train"], "eval.split: 'held_out' -> 'train'"),
    ):
        ending = muarl(*roll, *arguments, "--resume")
        ending.refuses(1, "was run with another spec; cannot resume", f"  {differs}", lines=2)
    spoil(run_file, "domain: ", "seed: 3\ndomain: ")
    muarl(*roll, 2, "--resume").refuses(1, "  seed: 0 -> 3", lines=2)
    assert journal(out) == before
    (out / "plan.json").write_text("[]")
    muarl(*roll, 2, "--resume").refuses(1, f"{out / 'plan.json'}: expected a JSON object")


def test_there_must_be_a_rollout_to_resume(muarl: InProcess, run_file: Path, out: Path) -> None:
    ending = muarl("rollout", run_file, "--expert", "--out", out, "--resume")
    ending.refuses(2, f"{out} holds no run to resume; leave --resume out to start one")
    out.mkdir()
    for name in ("versions.json", "plan.json", "spec.resolved.yaml.new"):
        (out / name).write_text("")  # as a rollout leaves it that was killed at its very start
    assert muarl("rollout", run_file, "--expert", "--episodes", 2, "--out", out).code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--shard", "0/4"], "there is no shard 0/4; of 4, the first is 1"),
        (["--shard", "5/4"], "there is no shard 5/4"),
        (["--shard", "one/4"], "expected I/N, such as 1/4, got 'one/4'"),
        (["--shard", "1/0"], "there is no shard 1/0"),
        (["--shard", "-1/4"], "argument --shard: expected one argument"),
        (["--group-size", "0"], "must be at least 1, got 0"),
        (["--episodes", "7", "--group-size", "2"], "7 dialogues are no whole number of groups"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_made(
    arguments: list[str], says: str, muarl: InProcess, run_file: Path, out: Path
) -> None:
    ending = muarl("rollout", run_file, "--expert", "--out", out, *arguments)
    assert ending.code == 2
    assert says in ending.lines[-1]
    assert not out.exists()


def model_without_weights(folder: Path) -> None:
    """As much of a model as is looked at before the weights are."""
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    train_tokenizer([], vocab_size=300).save(folder)


@pytest.mark.parametrize("verb", ["rollout", "eval"])
def test_a_context_that_rules_and_tools_fill_is_refused_before_anything_is_made(
    verb: str, muarl: InProcess, run_file: Path, out: Path, tmp_path: Path
) -> None:
    model_without_weights(tmp_path / "model")
    spoil(run_file, "context_tokens: 1024", "context_tokens: 20")
    ending = muarl(verb, run_file, "--model", tmp_path / "model", "--out", out)
    ending.refuses(2, f"{run_file}:6:", "not one message fits into 20. Raise it")
    assert not out.exists()


@pytest.mark.parametrize("verb", ["rollout", "eval"])
def test_the_model_that_is_to_play_is_not_overwritten(
    verb: str, muarl: InProcess, run_file: Path, out: Path
) -> None:
    assert muarl("rollout", run_file, "--expert", "--episodes", 2, "--out", out).code == 0
    model_without_weights(out / "model")
    spoil(run_file, "context_tokens: 1024", "context_tokens: 8192")
    for model in (out, out / "model"):
        ending = muarl(verb, run_file, "--model", model, "--out", out, "--overwrite")
        ending.refuses(1, f"--overwrite would remove {model}, which this run reads")
        ending = muarl(verb, run_file, "--model", model, "--out", out)
        ending.refuses(1, f"{out} holds {model}, which this run reads. Choose another --out")
    assert len(journal(out)) == 2


def test_eval_does_not_advise_the_resume_that_it_refuses(
    muarl: InProcess, run_file: Path, out: Path, tmp_path: Path
) -> None:
    spoil(run_file, "context_tokens: 1024", "context_tokens: 8192")
    assert muarl("rollout", run_file, "--expert", "--episodes", 2, "--out", out).code == 0
    model_without_weights(tmp_path / "model")
    ending = muarl("eval", run_file, "--model", tmp_path / "model", "--out", out)
    ending.refuses(1, f"{out} already holds a run. Use --overwrite to replace it, or --out for")


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("domain.yaml", "Be kind.", "Be curt.", "rules: 'Be kind.' -> 'Be curt.'"),
        (
            "held_out.yaml",
            "goal: Cancel W2.",
            "goal: Keep W2.",
            "task content.held_out.cancel-2 changed",
        ),
        ("held_out.yaml", "id: cancel-2", "id: cancel-3", "task content.held_out.cancel-2 is gone"),
        (
            "held_out.yaml",
            "arguments: {order_id: W2}",
            "arguments: {order_id: W1}",
            "task content.held_out.cancel-2 changed",
        ),
        (
            "domain.yaml",
            "  - gold_world: true",
            "  - never_called: {tool: look}",
            "reward.0.gold_world: removed True",
        ),
        ("domain.yaml", "W1: {status: pending}", "W1: {status: sent}", "base world.orders changed"),
        (
            "tools.py",
            "look(order_id: str",
            "look(order_id: str, depth: int = 1",
            "tool schemas.look changed",
        ),
        ("expert.py", "self.order = None", "self.order = ''", 'files."expert.py" changed'),
    ],
)
def test_a_rollout_is_taken_up_in_a_domain_that_changed_since_only_if_that_is_accepted_L10(
    file: str,
    old: str,
    new: str,
    says: str,
    run_file: Path,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    domain = load_domain(run_file.parent)
    run = load_run(run_file)
    spec = run.spec
    content = anyio.run(content_of_run, domain, run)
    RunFolder.create(out, spec, resume=False, overwrite=False, content=content)
    again = partial(RunFolder.create, out, spec, resume=True, overwrite=False)
    assert again(content=content).accepted == []

    spoil(run_file.parent / file, old, new)
    for name in [name for name in sys.modules if name.startswith(PACKAGES)]:
        monkeypatch.delitem(sys.modules, name)  # as in a new process
    now = anyio.run(content_of_run, load_domain(run_file.parent), run)
    with pytest.raises(
        SetupError, match=r"the domain is not the one .* --accept-changes"
    ) as caught:
        again(content=now)
    assert f"  {says}" in str(caught.value).splitlines()[1:]
    assert says in again(content=now, accept_changes=True).accepted
    assert again(content=now).accepted == []


def test_a_rollout_whose_domain_is_not_on_record_is_taken_up_only_if_that_is_accepted(
    run_file: Path, out: Path
) -> None:
    spec = load_run(run_file).spec
    content = {"rules": "hash"}
    RunFolder.create(out, spec, resume=False, overwrite=False, content=content)
    (out / "domain.json").unlink()
    again = partial(RunFolder.create, out, spec, resume=True, overwrite=False, content=content)
    with pytest.raises(SetupError, match=r"domain\.json is missing.* --accept-changes"):
        again()
    assert again(accept_changes=True).accepted == [
        "what it was is not known: domain.json is missing"
    ]
    assert again().accepted == []


def test_what_changed_is_named_accepted_and_logged(
    muarl: InProcess, run_file: Path, out: Path
) -> None:
    roll = ["rollout", run_file, "--expert", "--episodes", 2, "--out", out]
    assert muarl(*roll).code == 0
    assert {e.content_hash for e in journal(out)} == {
        load_domain(run_file.parent).content_hash(load_domain(run_file.parent).tasks("held_out")[0])
    }
    spoil(run_file.parent / "domain.yaml", "  - gold_world: true", "  - gold_world: false")
    muarl(*roll, "--resume").refuses(
        1, "the domain is not the one", "  reward.0.gold_world: True -> False", lines=2
    )
    assert muarl(*roll, "--resume", "--accept-changes").code == 0
    assert "domain_changed" in (out / "log.jsonl").read_text()
    assert len(journal(out)) == 2
    spoil(run_file.parent / "domain.yaml", "Be kind.", "Be curt.")
    ending = muarl(*roll, "--resume", "--accept-changes")
    ending.refuses(1, "was played under other `rules`")


@pytest.mark.parametrize("part", ["", "model"])
def test_tasks_the_model_was_trained_on_are_not_evaluated_L10(
    part: str, muarl: InProcess, run_file: Path, out: Path, tmp_path: Path
) -> None:
    trained = RunFolder.create(
        out, load_run(run_file).spec.moved(run_file.parent, out), resume=False, overwrite=False
    )
    model_without_weights(trained.model)
    spoil(run_file, "grpo: {iterations: 1, tasks_per_iteration: 1}\n", "")
    spoil(run_file, "eval: {", "eval: {split: train, ")
    ending = muarl("eval", run_file, "--model", out / part, "--out", tmp_path / "eval")
    ending.refuses(2, "split 'train' shares 1 tasks with what is trained on (train)")
    assert not (tmp_path / "eval").exists()


CLASH = "user: {scripted: {knobs: {refuse: 0.5}}}\n"
ONE_TASK = '{"id": "p", "task": "nowhere", "lines": [{"speaker": "user", "text": "Hi."}]}'


def test_knobs_that_persona_and_run_turn_too_far_together_are_said_before_the_folder_is_made(
    muarl: InProcess, run_file: Path, out: Path
) -> None:
    folder = run_file.parent
    spoil(folder / "held_out.yaml", "personas: [plain]", "personas: [plain, terse]")
    spoil(folder / "domain.yaml", "    weight: 0\n", "    knobs: {partial: 0.7}\n")
    run_file.write_text(run_file.read_text() + CLASH)
    ending = muarl("rollout", run_file, "--expert", "--episodes", 1, "--out", out)
    assert ending.code == 2
    said = "".join(ending.lines)
    assert "domain.yaml:" in said
    assert "with the knobs of the run's user, which stand before these: only one of partial" in said
    assert not out.exists()


def test_a_replayed_user_has_words_for_every_task_or_the_old_run_stays(
    muarl: InProcess, run_file: Path, out: Path
) -> None:
    tasks = run_file.parent / "held_out.yaml"
    first = load_domain(run_file.parent / "domain.yaml").tasks("held_out")[0].id
    second = tasks.read_text().partition("tasks:\n")[2].replace(f"id: {first}", "id: another")
    tasks.write_text(tasks.read_text() + second)
    (run_file.parent / "people.jsonl").write_text(ONE_TASK.replace("nowhere", first))
    run_file.write_text(run_file.read_text() + "user: {replay: {file: people.jsonl}}\n")
    ending = muarl("rollout", run_file, "--expert", "--episodes", 2, "--out", out)
    assert ending.code == 2
    assert "people.jsonl has no dialogue of task 'another'" in "".join(ending.lines)
    assert not out.exists()


@pytest.mark.parametrize(
    ("user", "place", "lacks"),
    [
        ("user: {fixed: {}}", ":9:7: ", "no `turns`"),
        ("user: {pool: {one: {user: {replay: {file: none.jsonl}}}}}", ":9:27: ", "cannot be read"),
        ("eval: {user: {fixed: {}}, episodes: 1}", ":8:14: ", "no `turns`"),
    ],
)
def test_a_user_who_does_not_fit_is_refused_where_she_is_named(
    muarl: InProcess, run_file: Path, user: str, place: str, lacks: str
) -> None:
    if user.startswith("eval"):
        spoil(run_file, "eval: {episodes: 70, temperatures: [1.0]}\n", "")
    run_file.write_text(run_file.read_text() + user)
    ending = muarl("check", run_file)
    ending.refuses(2, f"run.yaml{place}", lacks)
