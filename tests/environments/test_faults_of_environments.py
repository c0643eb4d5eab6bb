"""An environment that fails is at fault, and the policy is not: no reward comes of it (law L2)."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from environment_kit import WALK, Says, played, write_walk

from muarl.data.proof import prove
from muarl.data.replay import replay_all
from muarl.domain import load_domain
from muarl.environments.sides import OPEN
from muarl.messages import ToolCall
from muarl.record import Outcome

STEP = 'return f"You are at {self.at}.", self.worth if action == 1 else 0.0, over, False, {}'
HANGS = "self.hung.append(__import__('threading').current_thread()); __import__('time').sleep(60)\n        "
RESET = 'return f"It is {self.mood}. Where to?", {}'

FAULTS = {
    "raises in step": ((STEP, "raise RuntimeError('the floor gave way')"), "RuntimeError: the floor gave way (", "walk.py:20, in step)"),
    "raises in reset": ((RESET, "raise KeyError('x')"), "failed as it began: KeyError: 'x' (", "in reset)"),
    "raises in its making": (("self.worth = worth", "raise OSError('no map')"), "could not be made: OSError: no map"),
    "raises in close": (("self.closed.append(self.mood)", "raise ValueError('stuck')"), "could not be closed: ValueError: stuck"),
    "ends the process": ((STEP, "raise SystemExit(3)"), "SystemExit: 3"),
    "says no text": ((STEP, "return 7, 0.0, False, False, {}"), "step gave an observation of type int; expected text"),
    "begins without text": ((RESET, "return [1], {}"), "reset gave an observation of type list"),
    "begins in an old form": ((RESET, "return 'hello'"), "reset returned str; expected (observation, info)"),
    "answers in an old form": ((STEP, "return 'x', 0.0, True, {}"), "step returned 4 values; expected (observation, reward,"),
    "says half a character": ((STEP, "return '\\ud800', 0.0, False, False, {}"), "cannot be read"),
    "says nothing": ((STEP, "return '', 0.0, False, False, {}"), "answered nothing, and is not over"),
    "earns NaN": ((STEP, "return 'x', float('nan'), True, False, {}"), "what was earned in the environment is nan; expected a finite number"),
    "earns a text": ((STEP, "return 'x', 'much', True, False, {}"), "ValueError: could not convert string to float"),
}  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize("fault", FAULTS)
async def test_what_it_does_wrong_is_a_fault_of_its_own_and_says_what_L2(
    tmp_path: Path, fault: str
) -> None:
    (change, *says) = FAULTS[fault]
    assert change[0] in WALK
    (episode,) = await played(write_walk(tmp_path, WALK.replace(*change)), lambda: Says("right"))
    assert (episode.outcome, episode.reward) == (Outcome.INFRA_FAULT, None)
    assert episode.fault == "ToolServerError"
    for text in says:
        assert text in (episode.error or ""), episode.error


@pytest.mark.anyio
async def test_one_that_hangs_is_left_at_its_deadline(tmp_path: Path) -> None:
    let_go = tmp_path / "let-go"
    waits = (
        f"while not __import__('os').path.exists({str(let_go)!r}): __import__('time').sleep(0.05)"
    )
    file = write_walk(tmp_path, WALK.replace(STEP, f"{waits}\n        {STEP}"))
    file.write_text(file.read_text().replace("environment: {", "environment: {answer_s: 2, "))
    try:
        (episode,) = await played(file, lambda: Says("right"))
    finally:
        let_go.touch()
    assert episode.outcome is Outcome.INFRA_FAULT
    assert "did not answer within 2 s, as it answered; raise environment.answer_s" in str(
        episode.error
    )


@pytest.mark.anyio
async def test_one_that_never_ends_is_cut_by_the_cap_and_scored(tmp_path: Path) -> None:
    endless = WALK.replace("over = self.at in (-1, 2)", "over = False")
    (episode,) = await played(write_walk(tmp_path, endless), lambda: Says("left"))
    assert (episode.outcome, episode.reward, len(episode.turns)) == (
        Outcome.TRUNCATED_TURNS,
        0.0,
        12,
    )


NOT_THE_SAME = {
    "draws without its seed": ("random.Random(seed)", "random.Random()"),
    "remembers whom it has seen": (
        "self.at = 0\n",
        "self.at = len(self.closed) % 2\n",
    ),
    "earns by the clock": (
        "self.worth if action == 1 else 0.0",
        "__import__('time').perf_counter_ns() % 1000 / 1e4",
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize("how", NOT_THE_SAME)
async def test_check_finds_one_that_is_not_the_same_under_the_same_seed_L5(
    tmp_path: Path, how: str
) -> None:
    code = WALK.replace(*NOT_THE_SAME[how]).replace(
        '"windy", "calm", "grey"', "*map(str, range(999))"
    )
    domain = load_domain(write_walk(tmp_path, code))
    proof = await prove(domain, dialogues=3)
    assert {str(finding.check) for finding in proof.findings} == {"again"}
    assert "from the same seed" in proof.findings[0].problem.message
    assert "trivial policies and the expert were not played: mend this first" in proof.skipped


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["draws from what all share", "is one for all"])
async def test_check_finds_one_that_others_disturb_while_it_is_played_L3(
    tmp_path: Path, how: str
) -> None:
    """Played one after another they are sound; in a run many are played at once."""
    code = WALK.replace("You are at {self.at}.", "It is {self.rng.random()}. You are at {self.at}.")
    if how == "is one for all":
        seeded = "self.rng = random.Random(seed)\n        self.at = 0\n"
        code = code.replace("self.at = 0\n", seeded) + "\n\n_one = Walk()\nWalk = lambda: _one\n"
    else:
        seeded = "random.seed(seed)\n        self.rng = random\n        self.at = 0\n"
        code = code.replace("self.at = 0\n", seeded)
    proof = await prove(load_domain(write_walk(tmp_path, code)), dialogues=3)
    assert {str(finding.check) for finding in proof.findings} == {"again"}
    assert "while others were played" in proof.findings[0].problem.message


@pytest.mark.anyio
@pytest.mark.parametrize("fault", ["raises in step", "raises in its making", "earns NaN"])
async def test_check_finds_one_that_fails(tmp_path: Path, fault: str) -> None:
    (change, *says) = FAULTS[fault]
    domain = load_domain(write_walk(tmp_path, WALK.replace(*change)))
    proof = await prove(domain, dialogues=3)
    assert [str(finding.check) for finding in proof.findings] == ["server"]
    assert says[0] in proof.findings[0].problem.message


@pytest.mark.anyio
async def test_a_sound_one_is_sound_and_what_was_not_looked_at_is_said(tmp_path: Path) -> None:
    proof = await prove(load_domain(write_walk(tmp_path)), dialogues=3)
    assert proof.findings == []
    assert list(proof.floor) == ["do_nothing", "empty_reply", "random_action"]
    assert "an environment has no gold calls" in proof.skipped[0]


@pytest.mark.anyio
async def test_a_replay_on_another_version_of_it_differs(tmp_path: Path) -> None:
    episodes = await played(write_walk(tmp_path / "a"), lambda: Says("right"), tasks=2)
    other = load_domain(write_walk(tmp_path / "b", WALK.replace("You are at", "You stand at")))
    told: list[str] = []
    tally = await replay_all(other, episodes, lambda _, difference: told.append(difference))
    assert tally.different == 2
    assert "answered" in told[0]


@pytest.mark.anyio
async def test_nobody_has_to_wait_for_one_that_hangs(tmp_path: Path) -> None:
    """Python waits for all threads at a program's end, except those that say so."""
    hangs = WALK.replace(STEP, HANGS + STEP).replace("closed = []", "closed = []\n    hung = []")
    file = write_walk(tmp_path, hangs)
    file.write_text(file.read_text().replace("environment: {", "environment: {answer_s: 2, "))
    domain = load_domain(file)
    (episode,) = await played(domain, lambda: Says("right"))
    assert episode.outcome is Outcome.INFRA_FAULT
    (thread,) = domain.python.load("walk.py:Walk", ()).hung
    assert thread.is_alive()
    assert thread.daemon


@pytest.mark.anyio
async def test_one_whose_dialogue_is_cut_off_is_closed_L7(tmp_path: Path) -> None:
    domain = load_domain(write_walk(tmp_path))
    world = domain.world_for(domain.tasks("train")[0])
    with anyio.CancelScope() as scope:
        async with domain.sides(world) as sides:
            await sides["user"].call(ToolCall("open", OPEN, {}))
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert len(domain.python.load("walk.py:Walk", ()).closed) == 1
