"""`muarl eval GRID.yaml` with a model behind an OpenAI-compatible endpoint as a policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bad_input import InProcess
from chat_kit import completion, served, shop_agent
from spec_files import spoil

from muarl.errors import RecordError
from muarl.record import Outcome, read_journal
from muarl.testing.http_server import HttpAnswer, HttpRequest

GRID = """\
version: 1
run: shop/run.yaml
policies:
  idle: {trivial: do_nothing}
  other: {chat: {base_url: URL/v1, model: some-model}}
users:
  own: {scripted: {}}
trials: 2
"""


@pytest.fixture
def grid(run_file: Path, tmp_path: Path) -> Path:
    path = tmp_path / "grid.yaml"
    path.write_text(GRID)
    return path


def play(muarl: InProcess, grid: Path, out: Path, answer: Any, *more: str) -> tuple[Any, list[Any]]:
    """What the grid found of the model, and what it was asked."""
    with served(answer) as server:
        spoil(grid, "URL", server.url)
        ending = muarl("eval", grid, "--out", out, "--json", *more)
    assert ending.code == 0, ending.lines
    (cell,) = (c for c in json.loads(ending.out)["cells"] if c["policy"] == "other")
    return cell, [json.loads(request.body) for request in server.requests]


def of_the_model(out: Path) -> list[Any]:
    return [e for e in read_journal(out / "episodes.journal") if "other" in e.key.phase]


def with_usage(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "usage": {"prompt_tokens": 100, "completion_tokens": 7}}


def test_any_endpoint_can_be_the_agent_by_its_own_tool_calls(
    muarl: InProcess, grid: Path, out: Path
) -> None:
    spoil(grid, "model: some-model", "model: some-model, price: {prompt: 2, completion: 10}")
    cell, asked = play(muarl, grid, out, lambda request: with_usage(shop_agent(request)))
    assert cell["success"]["value"] == 1.0
    assert {request["model"] for request in asked} == {"some-model"}
    assert [tool["function"]["name"] for tool in asked[0]["tools"]] == ["look", "cancel"]
    episodes = of_the_model(out)
    messages = sum(len(e.turns) for e in episodes)
    spent = cell["spent"]
    assert spent["prompt_tokens"] == 100 * messages / len(episodes)
    assert spent["completion_tokens"] == 7 * messages / len(episodes)
    assert spent["cost"] == pytest.approx(messages / len(episodes) * (200 + 70) / 1e6)


def test_its_episodes_hold_no_tokens_and_cannot_be_trained_on(
    muarl: InProcess, grid: Path, out: Path, tmp_path: Path
) -> None:
    play(muarl, grid, out, shop_agent)
    for episode in of_the_model(out):
        assert episode.elsewhere == "some-model"
        assert [sample.token_ids for sample in episode.samples] == [[]]
        assert episode.num_sampled == 0
        with pytest.raises(RecordError, match="behind a chat endpoint: its tokens"):
            episode.require_tokens()
    refused = muarl("export", out, "--what", "samples", "--out", tmp_path / "samples.jsonl")
    assert refused.code == 1
    assert "was played by 'some-model' behind a chat endpoint" in "".join(refused.lines)
    assert not (tmp_path / "samples.jsonl").exists()
    exported = muarl("export", out, "--what", "episodes", "--out", tmp_path / "episodes.jsonl")
    assert exported.code == 0, exported.lines
    # Graded anew from the record, without tools and without the model, it is worth the same.
    scored = muarl("score", out, "--out", tmp_path / "scored", "--json")
    phases = json.loads(scored.out)["phases"]
    assert phases
    assert all(p["gained"] == p["lost"] == 0 and p["before"] == p["after"] for p in phases)
    assert muarl("replay", out).code == 0


def test_several_calls_of_one_message_are_made_in_order(
    muarl: InProcess, grid: Path, out: Path
) -> None:
    def eager(request: HttpRequest) -> dict[str, Any]:
        *_, last = request.json()["messages"]
        if last["role"] == "tool":
            return completion("Done. Anything else?")
        return completion("", ("look", {"order_id": "W2"}), ("cancel", {"order_id": "W2"}))

    cell, asked = play(muarl, grid, out, eager)
    assert cell["success"]["value"] == 1.0
    first = of_the_model(out)[0].turns[0]
    assert [result.content for result in first.results] == ["pending", "ok"]
    ids = [call.id for call in first.message.tool_calls]
    answers = [m for m in asked[-1]["messages"] if m["role"] == "tool"]
    assert [answer["tool_call_id"] for answer in answers] == ids
    assert len(set(ids)) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("{broken", "arguments are no JSON"),
        ("[1, 2]", "arguments are no JSON object"),
        ("", "order_id"),
        ('{"order_id": 5}', "order_id"),
        ('{"order_id": ' + "[" * 100_000, "arguments are no JSON"),
        ('{"order_id": ' + "[" * 500 + "]" * 500 + "}", "nested deeper"),
        ('{"order_id": NaN}', "nan"),
        ('{"order_id": ' + "9" * 5000 + "}", "arguments are no JSON"),
        ('{"order_id": "\\ud800"}', "surrogate"),
    ],
)
def test_malformed_arguments_are_the_models_mistake(
    muarl: InProcess, grid: Path, out: Path, arguments: str, said: str
) -> None:
    def clumsy(request: HttpRequest) -> dict[str, Any]:
        *_, last = request.json()["messages"]
        if last["role"] == "tool":
            assert said in last["content"]
            return shop_agent(request)
        return completion("", ("cancel", arguments))

    cell, _ = play(muarl, grid, out, clumsy)
    assert cell["summary"]["faults"] == 0
    assert cell["success"]["value"] == 0.0
    assert of_the_model(out)[0].turns[0].results[0].is_error


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (completion(), None),  # it said nothing: the user is left to wonder
        ({"choices": [{"message": {"content": "I wi"}, "finish_reason": "length"}]}, "length"),
    ],
)
def test_silence_and_a_message_that_is_cut_are_its_own_doing(
    muarl: InProcess, grid: Path, out: Path, answer: Any, outcome: str | None
) -> None:
    cell, _ = play(muarl, grid, out, lambda _: answer)
    assert (cell["summary"]["faults"], cell["success"]["value"]) == (0, 0.0)
    if outcome:
        assert {e.outcome for e in of_the_model(out)} == {Outcome.TRUNCATED_LENGTH}
        assert of_the_model(out)[0].turns[0].message.content == "I wi"


def test_what_fails_for_a_moment_is_tried_again_and_an_endpoint_that_refuses_is_a_fault(
    muarl: InProcess, grid: Path, out: Path
) -> None:
    served_so_far: list[int] = []

    def busy(request: HttpRequest) -> Any:
        served_so_far.append(1)
        return HttpAnswer(503, b"{}") if len(served_so_far) % 5 == 1 else shop_agent(request)

    cell, _ = play(muarl, grid, out, busy)
    assert (cell["summary"]["faults"], cell["success"]["value"]) == (0, 1.0)


def test_a_key_that_is_not_set_is_said_before_anything_is_played(
    muarl: InProcess, grid: Path, out: Path
) -> None:
    spoil(grid, "URL/v1, model", "http://127.0.0.1:9/v1, api_key_env: NO_SUCH_KEY, model")
    ending = muarl("eval", grid, "--out", out)
    assert ending.code != 0
    assert "NO_SUCH_KEY" in "".join(ending.lines)
    assert not out.exists()
