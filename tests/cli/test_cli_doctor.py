"""`muarl doctor`: what is there, what is missing, what is wrong, and what to do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio
import pytest
from bad_input import InProcess
from packaging.requirements import Requirement

from muarl.doctor import State
from muarl.doctor.extras import extra_finding, extras, of_extra
from muarl.doctor.machine import machine
from muarl.doctor.run import endpoints_of, needs_of_run
from muarl.spec import load_run

LLM = "user.llm={base_url: %s, model: m}"


@contextmanager
def endpoint(status: int, body: bytes) -> Iterator[str]:
    """A server that answers every GET alike."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/v1/models"
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *said: object) -> None:
            del said

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()


def of_endpoint(run_file: Path, url: str) -> tuple[State, str, str]:
    """What is said of the run's one endpoint."""
    run = load_run(run_file, settings=[LLM % url])
    *_, found = anyio.run(needs_of_run, run)
    assert found.name == "user.llm"
    return found.state, found.words.replace(url, "URL"), found.remedy


def test_a_machine_that_runs_these_tests_is_well(tmp_path: Path) -> None:
    found = {each.name: each for each in machine(tmp_path)}
    assert {"muarl", "processor", "disk", "gpu", "node"} <= set(found)
    assert "GiB free" in found["disk"].words
    assert all(each.remedy for each in found.values() if each.state is State.WRONG)


def test_extras_are_those_of_the_package_but_for_our_own() -> None:
    found = {each.name: each for each in extras()}
    assert {"train", "vllm", "lora", "otel", "export"} <= set(found)
    assert "test" not in found
    assert found["train"].state is State.OK  # else this suite would not run
    assert {need.name for need in of_extra("lora")} == {"peft"}


def test_what_an_extra_lacks_is_named_with_the_command_that_adds_it() -> None:
    found = extra_finding("gold", [Requirement("pytest"), Requirement("aurum>=3")])
    assert (found.state, found.words) == (State.MISSING, "lacks aurum")
    assert found.remedy == "pip install 'muarl[gold]'"


def test_a_package_that_is_too_old_is_wrong() -> None:
    found = extra_finding("new", [Requirement("pytest>=9999")])
    assert found.state is State.WRONG
    assert "is not >=9999" in found.words
    assert "--upgrade" in found.remedy


@pytest.mark.parametrize(
    ("status", "body", "state", "words"),
    [
        (200, b'{"data": [{"id": "m"}]}', State.OK, "URL has m"),
        (200, b'{"data": [{"id": "n"}]}', State.WRONG, "URL has no model 'm'; it has n"),
        (200, b"hello", State.OK, "URL answers; what it lists are no models"),
        (404, b"", State.OK, "URL answers; it does not list its models"),
        (401, b"who", State.WRONG, "URL answered 401: who (no api_key_env is set)"),
    ],
)
def test_an_endpoint_is_asked_for_the_model(
    run_file: Path, status: int, body: bytes, state: State, words: str
) -> None:
    with endpoint(status, body) as url:
        assert of_endpoint(run_file, url)[:2] == (state, words)


def test_an_endpoint_that_is_down_is_wrong(run_file: Path) -> None:
    with endpoint(200, b"") as url:
        pass
    state, words, remedy = of_endpoint(run_file, url)
    assert state is State.WRONG
    assert words.startswith("URL cannot be reached")
    assert remedy.endswith("--set user.llm.base_url=http://...")


def test_a_key_that_is_not_set_is_wrong(run_file: Path) -> None:
    run = load_run(
        run_file,
        settings=["user.llm={base_url: http://127.0.0.1:9/v1, model: m, api_key_env: NOT_SET}"],
    )
    *_, found = anyio.run(needs_of_run, run)
    assert found.state is State.WRONG
    assert "NOT_SET" in found.words


def test_what_the_model_of_users_needs_is_looked_for_too(run_file: Path) -> None:
    hers = "user_model={model: {tiny: {}, lora: {}}, engine: vllm}"
    found = {each.name for each in anyio.run(needs_of_run, load_run(run_file, settings=[hers]))}
    assert {"lora", "vllm"} <= found
    assert not {"lora", "vllm"} & {
        each.name for each in anyio.run(needs_of_run, load_run(run_file))
    }


def test_sinks_are_looked_for_with_the_command_that_adds_them(run_file: Path) -> None:
    run = load_run(run_file, settings=["sinks=[tensorboard, {wandb: {project: desk}}]"])
    found = {each.name: each for each in anyio.run(needs_of_run, run)}
    for name in ("tensorboard", "wandb"):
        known = extra_finding(name, of_extra(name))
        assert (found[name].area, found[name].words) == ("run", known.words)
        assert (found[name].state is State.OK) == (known.state is State.OK)
    assert "tensorboard" not in {e.name for e in anyio.run(needs_of_run, load_run(run_file))}


def test_judges_that_a_domain_names_by_the_environment_are_asked_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = {"metrics": [{"judge": {"model": "j", "base_url": None, "base_url_env": "JUDGE"}}]}
    assert not list(endpoints_of(spec))
    monkeypatch.setenv("JUDGE", "http://127.0.0.1:9/v1")
    (found,) = endpoints_of(spec)
    assert (found.key, found.url) == ("metrics.0.judge", "http://127.0.0.1:9/v1")


def test_the_verb_says_it_in_lines_and_in_json(muarl: InProcess, run_file: Path) -> None:
    said = muarl("doctor")
    assert said.code == 0, said.out
    assert "\n  + train " in said.out
    with endpoint(200, b'{"data": [{"id": "n"}]}') as url:
        told = muarl("doctor", str(run_file), "--set", LLM % url, "--json")
    assert told.code == 1
    found = json.loads(told.out)
    assert found["wrong"] == 1
    assert found["findings"][-1]["remedy"] == "--set user.llm.model=n"
    assert found["findings"][-2] == {
        "area": "run",
        "name": "engine",
        "state": "ok",
        "words": "embedded",
        "remedy": "",
    }


def test_a_run_whose_file_is_wrong_is_refused_as_by_train(muarl: InProcess, run_file: Path) -> None:
    said = muarl("doctor", str(run_file), "--set", "grpo.iteration=1")
    assert said.code == 2
    assert "did you mean 'iterations'" in "\n".join(said.lines)
