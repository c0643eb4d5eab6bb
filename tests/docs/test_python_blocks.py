"""Every block of Python in the documents is carried out: here, or by the test of its page."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from dialogue_kit import Sampler, called, ids_of, note_task, renderer, write_notes
from documents import ROOT, Block, blocks

from muarl import Rollouts
from muarl.kernel.model import load_model
from muarl.policy import GenerateRequest, Generation
from muarl.record import Episode, JournalWriter, UserReply
from muarl.reward import Evidence
from muarl.scheduler import Limits, Observer
from muarl.scheduler.dialogues import DialogueRunner, episode_keys
from muarl.spec import TasksFile, load_run
from muarl.spec.run import RolloutSpec
from muarl.spec.user import ScriptedUserSpec, UserSpec
from muarl.suite import load_domain_of
from muarl.testing import ScriptedPolicy, ScriptedUserStub, build_episode
from muarl.train.models import open_model
from muarl.world import World

BY_A_TEST = {
    "authoring.md": "test_authoring_guide.py",
    "experts.md": "test_experts_page.py",
    "plugins.md": "test_plugins_page.py",
    "robustness.md": "test_robustness_page.py",
    "task-generation.md": "test_task_generation_page.py",
    "vllm.md": "../policy/test_vllm_over_http.py",  # it takes a server, and is the same call
}
"""Document to the test, beside this one, that carries its Python out."""

BYE = UserReply("bye", stop=True, act="stop")
Names = dict[str, Any]


def document(block: Block) -> str:
    return block.place.rpartition(":")[0]


def python_of(name: str) -> list[Block]:
    return [b for b in blocks() if b.language == "python" and document(b) == name]


def carried_out(name: str, given: Mapping[str, Any] | None = None) -> Names:
    """The blocks of a document in one module, in their order; what the module has at its end."""
    module: Names = {"__name__": name, **(given or {})}
    for block in python_of(name):
        code = compile(block.text, block.place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if code.co_flags & inspect.CO_COROUTINE:

            async def main(code: Any = code) -> None:
                await eval(code, module)

            anyio.run(main)
        else:
            exec(code, module)  # noqa: S102
    return module


def test_every_document_with_python_has_a_test_that_carries_it_out() -> None:
    shown = {document(block) for block in blocks() if block.language == "python"}
    assert shown == {*BY_A_TEST, *PLAYS}, "add a play to PLAYS, or a test of the page to BY_A_TEST"
    for name, test in BY_A_TEST.items():
        text = (Path(__file__).parent / test).read_text(encoding="utf-8")
        assert name in text or "guide" in text or "VllmServerPolicy(" in text


# --- the plays of documents whose Python needs something around it --------------------------------


def play_readme(_tmp: Path, _printed: Callable[[], str]) -> None:
    world = World({"orders": {"W1": {"status": "pending"}}})
    server = carried_out("README.md")["serve"](world)
    anyio.run(server.call_tool, "cancel_order", {"order_id": "W1"})
    assert world["orders"]["W1"]["status"] == "cancelled"


def play_embedding(tmp: Path, printed: Callable[[], str]) -> None:
    names = carried_out("embedding.md")
    Path("domains").symlink_to(ROOT / "domains")
    run = tmp / "run.yaml"
    run.write_text(
        "version: 1\ndomain: domains/desk/domain.yaml\ncold_start: {episodes: 20}\n"
        "model: {tiny: {vocab_size: 640, hidden_size: 32, num_layers: 1}}\n"
    )
    located = load_run(run)
    anyio.run(open_model, load_domain_of(located), located, tmp / "model")
    anyio.run(names["learn"], tmp / "model", 1)
    assert printed().startswith("0 ")
    assert load_model(Path("runs/learned")) is not None
    held, portal, opened = names["hold"](tmp / "model")
    with held:
        assert portal.call(anyio.lowlevel.checkpoint) is None
        assert opened.version == 0

    domain = write_notes(tmp)
    put = called('{"name": "put", "arguments": {"key": "a", "value": 1}}')

    def said(request: GenerateRequest) -> str:
        return "Done." if request.history[-1].role == "tool" else put

    async def led() -> list[Episode]:
        domain.user = lambda *_: ScriptedUserStub(["note it", BYE])  # type: ignore[method-assign]
        policy = Sampler(lambda request: (ids_of(said(request)), True))
        limits = RolloutSpec(max_tokens=400, context_tokens=8_000)
        async with Rollouts(
            domain, policy, renderer(), limits=limits, loop=names["agent"]
        ) as groups:
            return [episode async for group in groups for episode in group.episodes]

    (episode,) = anyio.run(led)
    assert episode.error is None
    assert episode.turns[0].results[0].content == "ok"


def play_faults(_tmp: Path, _printed: Callable[[], str]) -> None:
    class Policy:
        policy_version = 0

        async def generate(self, request: GenerateRequest) -> Generation:
            raise NotImplementedError

    names = carried_out("faults.md", {"policy": Policy(), "say": lambda _request: "hi"})
    assert names["server"].url.startswith("http://")


def play_observability(tmp: Path, _printed: Callable[[], str]) -> None:
    pytest.importorskip("opentelemetry.sdk")
    names = carried_out("observability.md")
    domain, tasks = write_notes(tmp), [note_task()]
    domain.user = lambda *_: ScriptedUserStub(["note it"])  # type: ignore[method-assign]

    def runner_of(observer: Observer) -> DialogueRunner:
        return DialogueRunner(
            domain=domain,
            tasks=tasks,
            renderer=renderer(),
            limits=RolloutSpec(max_tokens=400, context_tokens=8_000),
            user=UserSpec(scripted=ScriptedUserSpec()),
            policy_for=lambda _task, _key: ScriptedPolicy([called("{}"), "Bye."], ids_of),
            observer=observer,
        )

    async def main() -> Mapping[str, Any]:
        keys = episode_keys(tasks, run_seed=0, phase="train", iteration=0, group_size=2)
        limits = Limits(attempts=1, max_fault_rate=1.0, deadline_s=60.0)
        with JournalWriter(tmp / "episodes.journal") as journal:
            seen = await names["watched_round"](keys, runner_of, limits, journal, tmp / "log.jsonl")
        return dict(seen)

    assert anyio.run(main)["attempts"] == 2


def play_predicates(_tmp: Path, _printed: Callable[[], str]) -> None:
    refunded = carried_out("predicates.md")["refunded"]

    class Seen:
        world = World({"orders": {"W1": {"status": "refunded"}}})

    evidence: Evidence = Seen()  # type: ignore[assignment]
    assert refunded(evidence, "W1") == (True, "W1 is refunded")


def play_records(tmp: Path, printed: Callable[[], str]) -> None:
    folder = tmp / "runs" / "quickstart-rollout"
    folder.mkdir(parents=True)
    with JournalWriter(folder / "episodes.journal") as writer:
        writer.append(build_episode())
    carried_out("records.md")
    assert "completed" in printed()


def play_specs(tmp: Path, printed: Callable[[], str]) -> None:
    carried_out("specs.md")
    text = printed()
    assert text.startswith("# yaml-language-server: $schema=schemas/tasks.v1.json")
    from ruamel.yaml import YAML

    (task,) = TasksFile.model_validate(YAML(typ="safe", pure=True).load(text)).tasks
    assert task.id == "nothing-3"


def play_user_metrics(tmp: Path, printed: Callable[[], str]) -> None:
    (shown,) = [b for b in blocks() if document(b) == "user-metrics.md" and b.language == "json"]
    (tmp / "chats.jsonl").write_text(json.dumps(json.loads(shown.text)) + "\n", encoding="utf-8")
    carried_out("user-metrics.md")
    assert printed().startswith("2.667")


def play_worlds(_tmp: Path, printed: Callable[[], str]) -> None:
    carried_out("worlds.md")
    (comment,) = [
        line.partition("  # ")[2]
        for line in python_of("worlds.md")[0].text.splitlines()
        if line.startswith("print(")
    ]
    assert printed().strip() == comment


def play_method(_tmp: Path, printed: Callable[[], str]) -> None:
    """What a block prints stands below it."""
    page = [block for block in blocks() if document(block) == "method.md"]
    shown = [block.text for block in page if block.language == "text"]
    assert [block.language for block in page] == ["python", "text"] * len(shown)
    carried_out("method.md")
    assert printed() == "".join(shown)


PLAYS = {
    "README.md": play_readme,
    "embedding.md": play_embedding,
    "faults.md": play_faults,
    "method.md": play_method,
    "observability.md": play_observability,
    "predicates.md": play_predicates,
    "records.md": play_records,
    "specs.md": play_specs,
    "user-metrics.md": play_user_metrics,
    "worlds.md": play_worlds,
}


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS.keys())
def test_the_python_of_a_document_does_what_it_says(
    play: Callable[[Path, Callable[[], str]], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    play(tmp_path, lambda: capsys.readouterr().out)


def test_each_equation_of_the_method_names_a_module_that_is_there() -> None:
    text = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| (")]
    tags = [row[1].strip().strip("()") for row in rows]
    assert tags == [str(n) for n in range(1, len(rows) + 1)]
    assert [f"\\qquad ({tag})$$" in text for tag in tags] == [True] * len(tags)
    for row in rows:
        __import__(row[4].strip().strip("`"))
