"""Each stage refuses what it is there for, says why, and lets what is good pass."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from synth_kit import own, write_synth

from muarl.data.stored import StoredTasks
from muarl.domain import Domain, load_domain
from muarl.errors import SpecError
from muarl.evaluate.identifiers import first_unsaid, identifiers
from muarl.messages import ToolCall
from muarl.record import Episode, Outcome
from muarl.spec.predicate import PredicateSpec
from muarl.spec.verify import VerifySpec
from muarl.synth.candidate import Candidate
from muarl.synth.verify import Verdict, Verifier, Yield
from muarl.testing import play_agents

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from _planted_dialogues import KINDS, planted

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def made(tmp_path: Path) -> tuple[Domain, list[Episode]]:
    write_synth(tmp_path)
    domain = load_domain(tmp_path)
    tasks = domain.tasks("train")
    return domain, await play_agents(domain, tasks, lambda task, rng: domain.expert(task, {}, rng))


async def verdicts(
    domain: Domain, episodes: list[Episode], **fields: Any
) -> tuple[list[Verdict], Yield]:
    verifier = Verifier(domain, VerifySpec(**fields))
    found = Yield(verifier.names)
    every = []
    async for _, verdict in verifier.verdicts(episodes):
        found.count(verdict)
        every.append(verdict)
    return every, found


async def test_good_dialogues_pass_all_stages(made: tuple[Domain, list[Episode]]) -> None:
    domain, episodes = made
    found, table = await verdicts(domain, episodes)
    stages = ("ended", "replay", "reward", "identifiers", "user", "copies")
    assert [verdict.passed for verdict in found] == [stages] * 6
    assert table.made == table.kept == 6
    assert next(table.lines()) == "6 of 6 dialogues kept"


def cut_off(episode: Episode) -> None:
    episode.outcome = Outcome.TRUNCATED_TURNS


def given_up(episode: Episode) -> None:
    episode.outcome = Outcome.ABANDONED


def faulty(episode: Episode) -> None:
    episode.outcome, episode.fault, episode.error = Outcome.INFRA_FAULT, "PolicyError", "it is down"


def other_answer(episode: Episode) -> None:
    results = episode.turns[1].results
    results[0] = replace(results[0], content="perhaps")


def nothing_done(episode: Episode) -> None:
    """The call was never made, and nothing claims that it was."""
    episode.changes = []
    del episode.turns[1]
    episode.turns[1].changes = []


def made_up(episode: Episode) -> None:
    """Another order was looked at, which nobody had named."""
    turn = episode.turns[1]
    calls = (ToolCall("c", "look", {"order_id": "W5"}), *turn.message.tool_calls)
    turn.message = replace(turn.message, tool_calls=calls)
    look = replace(turn.results[0], name="look", content="pending")
    turn.results.insert(0, look)


def speaks_as_the_agent(episode: Episode) -> None:
    episode.opening = replace(
        episode.opening, text="How can I help you today? I want to cancel W1."
    )


def names_what_is_not_hers(episode: Episode) -> None:
    episode.opening = replace(episode.opening, text="I want to cancel W1. My card is 55512.")


@pytest.mark.parametrize(
    ("plant", "stage", "kind", "reason"),
    [
        (cut_off, "ended", "truncated_turns", "it ended as truncated_turns"),
        (given_up, "ended", "abandoned", "it ended as abandoned"),
        (faulty, "ended", "PolicyError", "it is down"),
        (other_answer, "replay", "differs", "turn 1, cancel: answered 'ok', recorded 'perhaps'"),
        (nothing_done, "reward", "gold_world", "differs from the gold world: orders.W1.status"),
        (
            made_up,
            "identifiers",
            "look.order_id",
            "look was called with order_id 'w5', which nobody",
        ),
        (speaks_as_the_agent, "user", "role", "it does not hold that she speaks as the user"),
        (
            names_what_is_not_hers,
            "user",
            "groundedness",
            "it does not hold that she invents nothing",
        ),
    ],
)
async def test_what_was_spoiled_is_left_out_by_its_own_stage(
    made: tuple[Domain, list[Episode]],
    plant: Callable[[Episode], None],
    stage: str,
    kind: str,
    reason: str,
) -> None:
    domain, episodes = made
    spoiled = own(episodes[0])
    plant(spoiled)
    (verdict,), table = await verdicts(domain, [spoiled])
    assert (verdict.stage, verdict.kind) == (stage, kind), verdict.reason
    assert reason in verdict.reason
    assert not verdict.kept
    assert table.stages[stage].reasons == {kind: 1}
    assert str(spoiled.key) in table.stages[stage].examples[kind]
    # Without that stage nothing else sees it, but for what it is made of.
    fields: dict[str, Any] = {
        "ended": {"ended": False},
        "replay": {"replay": False},
        "reward": {"min_reward": None},
        "identifiers": {"identifiers": False},
        "user": {"user": False},
    }[stage]
    (again,), _ = await verdicts(domain, [spoiled], **fields)
    assert again.stage != stage or spoiled.outcome.is_fault


async def test_a_rule_that_does_not_hold_is_named(made: tuple[Domain, list[Episode]]) -> None:
    domain, episodes = made
    rule = PredicateSpec.model_validate({"preceded": {"by": "look", "same": ["order_id"]}})
    found, _ = await verdicts(domain, episodes[:1], rules=[rule])
    assert found[0].stage == "rules"
    assert found[0].reason.startswith("look came before 0 of 1 calls")
    never = PredicateSpec.model_validate({"preceded": {"by": "look", "tools": ["other"]}})
    found, _ = await verdicts(domain, episodes[:1], rules=[never])
    assert found[0].kept, "a rule that does not apply is kept"


async def test_of_two_copies_the_first_is_kept(made: tuple[Domain, list[Episode]]) -> None:
    domain, episodes = made
    copy = own(episodes[0])
    copy.key = replace(copy.key, sample=1)
    found, _ = await verdicts(domain, [*episodes, copy])
    assert [verdict.kept for verdict in found] == [True] * 6 + [False]
    assert found[-1].stage == "copies"
    assert found[-1].reason == f"1.00 like {episodes[0].key}"
    found, _ = await verdicts(domain, [*episodes, copy], near=None)
    assert all(verdict.kept for verdict in found)


async def test_what_cannot_be_told_of_a_dialogue_is_wrong_with_it(
    made: tuple[Domain, list[Episode]],
) -> None:
    domain, episodes = made
    lost = own(episodes[0])
    lost.key = replace(lost.key, task_id="cancel-99")
    (verdict,), _ = await verdicts(domain, [lost])
    assert (verdict.stage, verdict.kind) == ("replay", "RecordError")
    assert "has no task 'cancel-99'" in verdict.reason


async def test_a_domain_that_acts_outside_is_not_replayed(tmp_path: Path) -> None:
    write_synth(tmp_path)
    text = (tmp_path / "domain.yaml").read_text()
    (tmp_path / "domain.yaml").write_text(
        text.replace(
            "tools:\n  python: tools.py:serve", "tools:\n  python: tools.py:serve\n  external: true"
        )
    )
    domain = load_domain(tmp_path)
    with pytest.raises(SpecError, match="which a replay would do again; verify without it"):
        Verifier(domain, VerifySpec())
    Verifier(domain, VerifySpec(replay=False))


async def test_what_is_planted_on_the_desk_is_found_and_what_is_good_is_kept() -> None:
    """A small one of benchmarks/synth_verify.py."""
    domain, labelled = await planted(12, 6, seed=3)
    rules = [
        {"preceded": {"by": "get_order", "same": ["order_id"]}},
        {"confirmed": {}},
    ]
    found, _ = await verdicts(
        domain,
        [episode for _, episode in labelled],
        rules=[PredicateSpec.model_validate(rule) for rule in rules],
    )
    stages: dict[str, set[str]] = {}
    for (kind, _), verdict in zip(labelled, found, strict=True):
        stages.setdefault(kind, set()).add(verdict.stage)
    assert stages == {
        "good": {""},
        "hallucinated_id": {"identifiers"},
        "wrong_state": {"reward", "replay"},
        "rule_broken": {"rules"},
        "user_fault": {"user"},
        "near_copy": {"copies"},
    }
    assert set(stages) == {"good", *KINDS}


async def test_a_candidate_knows_the_worlds_of_its_record(
    made: tuple[Domain, list[Episode]],
) -> None:
    domain, episodes = made
    initial, final = Candidate(domain, StoredTasks(domain), episodes[0]).worlds
    assert initial["orders"]["W1"]["status"] == "pending"
    assert final["orders"]["W1"]["status"] == "cancelled"


async def test_identifiers_are_texts_and_numbers_under_such_names() -> None:
    found = list(
        identifiers(
            {"order_id": 417, "amount": 12, "to": [{"zip": "0123"}], "orderNumber": 5, "x": True}
        )
    )
    assert found == [("order_id", "417"), ("to", "zip"), ("to.zip", "0123"), ("orderNumber", "5")]
    assert list(identifiers({"count": {"W41": 2}, "order_id": 12.0})) == [
        ("count", "W41"),
        ("order_id", "12"),
    ]


@pytest.mark.parametrize(
    ("told", "given", "is_told"),
    [
        ("cancel W-41 please", "W-41", True),
        ("cancel w41 please", "W41", True),
        ("cancel it", "W41", False),
        ("on March 3rd, 2026", "2026-03-03", True),
        ("on March 4th, 2026", "2026-03-03", False),
        ("write to ann@post.example", "ann@post.example", True),
        ("write to ann@post.example", "bob@post.example", False),
        ("to Oslo", "Rome", True),  # a word may be the agent's own
    ],
)
async def test_an_identifier_has_to_have_been_told_whatever_its_spelling(
    made: tuple[Domain, list[Episode]], told: str, given: str, is_told: bool
) -> None:
    episode = own(made[1][0])
    episode.opening = replace(episode.opening, text=told)
    turn = episode.turns[0]
    turn.message = replace(turn.message, tool_calls=(ToolCall("c", "cancel", {"order_id": given}),))
    del episode.turns[1:]
    assert (first_unsaid(episode) is None) is is_told
