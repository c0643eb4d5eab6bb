"""`muarl eval GRID.yaml`: cells, differences, gain kept, resuming, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from bad_input import InProcess
from msgspec import structs
from spec_files import spoil

from muarl.cli._grid import grid_lines
from muarl.evaluate.grid import compare, played
from muarl.record import JournalWriter, Outcome, read_journal
from muarl.record.codec import encode_episode
from muarl.spec import GridSpec, dump_spec, load_run
from muarl.spec.grid import GridPolicySpec
from muarl.testing import build_episode, build_key

GRID = """\
version: 1
run: shop/run.yaml
policies:
  idle: {trivial: do_nothing}
  expert: {expert: {}}
users:
  own: {scripted: {}}
  asks_once: {scripted: {knobs: {no_follow_up: 1}}}
gain: {cold: idle, trained: expert, user: own}
trials: 3
"""


@pytest.fixture
def grid(run_file: Path, tmp_path: Path) -> Path:
    tasks = run_file.with_name("held_out.yaml")
    first = tasks.read_text().partition("tasks:\n")[2]
    more = "".join(first.replace("W2", f"W{n}").replace("-2", f"-{n}") for n in range(3, 9))
    tasks.write_text(tasks.read_text() + more)
    path = tmp_path / "grid.yaml"
    path.write_text(GRID)
    return path


def test_every_policy_plays_with_every_user_and_what_is_found_is_said(
    muarl: InProcess, grid: Path, out: Path
) -> None:
    ending = muarl("eval", grid, "--out", out)
    assert ending.code == 0, ending.lines
    assert "2 policies with 2 users: 7 tasks of held_out, 3 dialogues on each" in ending.out
    assert "verdict: " in ending.out
    found = json.loads((out / "grid.json").read_text())
    assert len(found["tasks"]) == 7
    cells = {(cell["policy"], cell["user"]): cell for cell in found["cells"]}
    assert set(cells) == {(p, u) for p in ("idle", "expert") for u in ("own", "asks_once")}
    for (policy, _), cell in cells.items():
        assert cell["summary"]["n"] == 21
        assert set(cell["pass_hat"]) == {"1", "2", "3"}
        assert cell["pass_hat"]["3"]["value"] == (policy == "expert")
    assert [d["success"]["value"] for d in found["policies"]] == [1.0, 1.0]
    assert found["kept"]["asks_once"]["kept"]["value"] == 1.0
    for (policy, _), cell in cells.items():
        floor = {"floor": [0.0, 21], "above": cell["success"]["value"], "says": "none found"}
        assert floor == {
            "floor": [cell["floor"]["value"], cell["floor"]["n"]],
            "above": cell["above_floor"]["value"],
            "says": cell["contamination"]["says"],
        }
        assert cell["pass_at"]["3"]["value"] == (policy == "expert")
        assert cell["summary"]["failures"] == ({} if policy == "expert" else {"stopped_early": 21})
    assert "idle with own: failed: 21 stopped_early" in ending.out
    first, _ = found["policies"]
    assert (first["of"], first["minus"], first["differ"]) == ("expert", "idle", 7)
    # Of four comparisons the two of policies are as likely by chance as each other.
    assert (first["found"], first["p"], first["adjusted"]) == ("undecided", 2 / 2**7, 4 * 2 / 2**7)
    # Seven tasks that are all alike do not prove what an eighth would be.
    assert found["verdict"] == "undecided"
    told = json.loads(muarl("eval", grid, "--out", out, "--overwrite", "--json").out)
    assert all(cell["observed"]["message_p50_ms"] > 0 for cell in told["cells"])
    assert json.loads((out / "grid.json").read_text()) == found


def test_all_policies_meet_the_same_users(muarl: InProcess, grid: Path, out: Path) -> None:
    assert muarl("eval", grid, "--out", out).code == 0
    met: dict[str, dict[object, object]] = {}
    for episode in read_journal(out / "episodes.journal"):
        _, policy, user = episode.key.phase.split(":")
        whom = met.setdefault(policy, {})
        whom[user, episode.key.task_id, episode.key.sample] = (episode.persona, episode.opening)
    assert len(met["idle"]) == 42
    assert met["idle"] == met["expert"]


def test_a_grid_of_rules_keeps_the_tokenizer_that_its_report_reads(
    muarl: InProcess, grid: Path, out: Path
) -> None:
    assert muarl("eval", grid, "--out", out).code == 0
    page = Path(json.loads(muarl("report", out, "--json").out)["report"]).read_text()
    assert '"notices": []' in page or '"notices":[]' in page


def test_a_grid_that_was_broken_off_goes_on_where_it_was(
    muarl: InProcess, grid: Path, out: Path
) -> None:
    assert muarl("eval", grid, "--out", out).code == 0
    whole = {e.key: encode_episode(e) for e in read_journal(out / "episodes.journal")}
    found = (out / "grid.json").read_text()
    journal = out / "episodes.journal"
    kept = list(read_journal(journal))[:30]
    journal.unlink()
    (out / "grid.json").unlink()
    with JournalWriter(journal) as writer:
        for episode in kept:
            writer.append(episode)
    assert muarl("eval", grid, "--out", out, "--resume").code == 0
    assert {e.key: encode_episode(e) for e in read_journal(journal)} == whole
    assert (out / "grid.json").read_text() == found
    spoil(grid, "no_follow_up: 1", "no_follow_up: 0.5")
    ending = muarl("eval", grid, "--out", out, "--resume")
    assert ending.code == 1
    assert "grid.users.asks_once" in " ".join(ending.lines)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "{trivial: do_nothing}",
            "{trivial: do_nothin}",
            "4:19: unknown policy without skill 'do_n",
        ),
        ("trials: 3", "split: heldout", ":10:8: unknown split 'heldout'; did you mean"),
        ("trials: 3", "split: train", "split 'train' shares 1 tasks with what is trained on"),
        ("{expert: {}}", "{model: nowhere}", "no model in "),
        ("own: {scripted: {}}", "own: {fixed: {}}", "grid.yaml:7:8: task 'cancel-"),
        ("{expert: {}}", "{cold_start: nowhere}", "no model in "),
    ],
)
def test_what_cannot_be_played_is_said_before_a_folder_is_made(
    muarl: InProcess, grid: Path, out: Path, old: str, new: str, said: str
) -> None:
    spoil(grid, old, new)
    ending = muarl("eval", grid, "--out", out)
    assert ending.code != 0
    assert said in " ".join(ending.lines)
    assert not out.exists()


def test_what_goes_with_a_run_does_not_go_with_a_grid_and_the_other_way_round(
    muarl: InProcess, grid: Path, run_file: Path
) -> None:
    for words, said in (
        (["eval", grid, "--model", "m"], "a grid names its policies"),
        (["eval", grid, "--set", "seed=1"], "overlays and --set are for run files"),
        (["eval", run_file], "a run file needs --model"),
        (["eval", run_file, "--model", "m", "--resume"], "--resume goes on with a grid"),
    ):
        ending = muarl(*words)
        assert ending.code == 2
        assert said in " ".join(ending.lines)
    ending = muarl("eval", grid, "--dry-run")
    assert (ending.code, "run: shop/run.yaml" in ending.out) == (0, True)


def test_a_share_of_a_gain_is_refused_where_none_is_looked_for(
    muarl: InProcess, grid: Path, out: Path
) -> None:
    spoil(grid, "gain: {cold: idle, trained: expert, user: own}\n", "")
    muarl("eval", grid, "--out", out, "--at-least", "0.8").refuses(2, "grid.yaml has no `gain`")
    assert not out.exists()


def test_what_users_faults_took_out_of_a_cell_is_said_with_its_task() -> None:
    spec = GridSpec.model_validate(yaml.safe_load(GRID) | {"gain": None})
    lost = structs.replace(build_episode(outcome=Outcome.USER_FAULT), breach="leak")
    found = {
        (policy, user): played({0: [build_episode(), lost] if user == "own" else [build_episode()]})
        for policy in spec.policies
        for user in spec.users
    }
    lines = list(grid_lines(spec, 1, "held_out", compare(spec, found)))
    task = lost.key.task_id
    for policy in spec.policies:
        assert f"{policy} with own: user faults: {lost.persona}: 1 leak" in lines
        share = f"at most 0.500 of a task's dialogues ({task}), of 1 tasks some"
        assert f"{policy} with own: taken out: {share}" in lines
    assert not any("asks_once: " in line for line in lines)


def test_a_grid_is_checked_with_its_run_and_domain(muarl: InProcess, grid: Path) -> None:
    ending = muarl("check", grid, "--offline")
    assert (ending.code, "specs are valid" in ending.out) == (0, True)
    spoil(grid, "cold: idle", "cold: idol")
    ending = muarl("check", grid, "--offline")
    assert ending.code == 2
    assert "unknown policy 'idol'; did you mean 'idle'?" in " ".join(ending.lines)


def test_a_grid_is_played_with_several_seeds(muarl: InProcess, grid: Path, out: Path) -> None:
    spoil(grid, "trials: 3", "trials: 2\nseeds: [4, 9]")
    told = muarl("eval", grid, "--out", out, "--json")
    assert told.code == 0, told.lines
    found = json.loads((out / "grid.json").read_text())
    for cell in found["cells"]:
        assert cell["summary"]["n"] == 7 * 2 * 2
        assert list(cell["by_seed"]) == ["4", "9"]
        assert {share["n"] for share in cell["by_seed"].values()} == {14}
    episodes = list(read_journal(out / "episodes.journal"))
    assert {e.key.run_seed for e in episodes} == {4, 9}
    assert len({e.key for e in episodes}) == len(episodes) == 4 * 7 * 2 * 2
    again = muarl("eval", grid, "--out", out, "--resume")
    assert again.code == 0, again.lines
    assert json.loads((out / "grid.json").read_text()) == found
    assert "7 tasks of held_out, 4 dialogues on each" in again.out
    assert "expert with own: seed 4 1.000" in again.out
    spoil(grid, "[4, 9]", "[4, 8]")
    assert muarl("eval", grid, "--out", out, "--resume").code != 0


def test_a_training_of_several_seeds_is_one_policy() -> None:
    assert GridPolicySpec(model="runs/a-{seed}").folder(3) == "runs/a-3"
    assert GridPolicySpec(cold_start="runs/a-{seed}").folder(3) == "runs/a-3/cold_start"
    assert GridPolicySpec(model="runs/a").folder(3) == "runs/a"


def test_each_seed_needs_its_folder(muarl: InProcess, grid: Path, out: Path) -> None:
    spoil(grid, "idle: {trivial: do_nothing}", 'idle: {model: "runs/a-{seed}"}')
    spoil(grid, "trials: 3", "seeds: [4, 9]")
    ending = muarl("eval", grid, "--out", out)
    assert ending.code != 0
    assert "runs/a-4" in "".join(ending.lines)
    spoil(grid, "[4, 9]", "[4, 4]")
    assert "a seed is named twice" in "".join(muarl("eval", grid, "--out", out).lines)


@pytest.mark.parametrize(
    ("seeds", "turns", "said"),
    [
        ((4, 9), (24, 23), "differ in more than the seed: rollout.max_turns: 24 -> 23"),
        ((4, 4), (24, 24), "two of its folders hold a training with the same seed"),
    ],
)
def test_the_seeds_of_a_policy_are_trainings_of_one_kind(
    muarl: InProcess,
    grid: Path,
    out: Path,
    seeds: tuple[int, int],
    turns: tuple[int, int],
    said: str,
) -> None:
    spoil(grid, "idle: {trivial: do_nothing}", 'idle: {model: "runs/a-{seed}"}')
    spoil(grid, "trials: 3", "seeds: [4, 9]")
    shop = load_run(grid.parent / "shop" / "run.yaml")
    for folder, seed, most in zip(("a-4", "a-9"), seeds, turns, strict=True):
        (grid.parent / "runs" / folder).mkdir(parents=True)
        limits = shop.spec.rollout.model_copy(update={"max_turns": most})
        spec = shop.spec.model_copy(update={"seed": seed, "rollout": limits})
        text = dump_spec(spec.moved(shop.path.parent, grid.parent / "runs" / folder))
        (grid.parent / "runs" / folder / "spec.resolved.yaml").write_text(text)
    ending = muarl("eval", grid, "--out", out)
    assert ending.code != 0
    assert said in "".join(ending.lines)


def test_no_pass_k_puts_dialogues_of_two_trainings_together() -> None:
    """One training that always succeeds and one that never does: no two dialogues of one disagree."""
    grid = GridSpec.model_validate(
        {
            "version": 1,
            "run": "run.yaml",
            "policies": {"mine": {"model": "a-{seed}"}},
            "users": {"own": {"scripted": {}}},
            "trials": 2,
            "seeds": [0, 1],
        }
    )
    episodes = {
        seed: [
            build_episode(build_key(run_seed=seed, task_id=task, sample=sample), reward=float(seed))
            for task in "abc"
            for sample in range(2)
        ]
        for seed in (0, 1)
    }
    (cell,) = compare(grid, {("mine", "own"): played(episodes)}).cells
    assert cell.pass_hat[2].value == cell.pass_at[2].value == 0.5
    assert cell.trainings is not None
    assert (cell.trainings.mean.n, cell.trainings.low, cell.trainings.high) == (2, 0.0, 1.0)
