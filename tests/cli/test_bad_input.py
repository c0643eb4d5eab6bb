"""Bad input gives one clear message, the right exit code, no traceback, and costs nothing finished."""

from __future__ import annotations

import json
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_input import Ending, InProcess, in_a_new_process, serve_by, shown
from spec_files import spoil
from tool_kit import time_to_start_s

from muarl.record import read_journal
from muarl.testing.servers import Fault, broken_server


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is bound and not listened on: connections are refused."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


# Specs: exit code 2, file:line:column, nothing made.

SPEC_FAULTS = {
    "a typo": ("run.yaml", "grpo:", "gpro:", ":7:1: unknown field 'gpro'; did you mean 'grpo'?"),
    "a wrong type": (
        "run.yaml",
        "iterations: 1",
        "iterations: many",
        ":7:20: 'iterations' must be a whole number, got 'many'",
    ),
    "a duplicate key": ("run.yaml", "threads: 1", "threads: 1\nthreads: 2", ":4:1: "),
    "a domain that is not there": (
        "run.yaml",
        "domain: domain.yaml",
        "domain: domian.yaml",
        ":2:9: ",
    ),
    "a split that is not there": (
        "run.yaml",
        "eval: {",
        "eval: {split: heldout, ",
        "unknown split 'heldout'; did you mean 'held_out'?",
    ),
    "a model folder that is not there": ("run.yaml", "tiny: {", "path: nowhere #", ":5:"),
    "too few tasks": (
        "run.yaml",
        "tasks_per_iteration: 1",
        "tasks_per_iteration: 9",
        ":7:44: grpo.tasks_per_iteration is 9, and split 'train' has 1 task; write at most 1",
    ),
    "evaluation on what is trained on": (
        "run.yaml",
        "eval: {",
        "eval: {split: train, ",
        "split 'train' is evaluated, so it cannot be trained on",
    ),
    "a typo in the domain": (
        "domain.yaml",
        "rules:",
        "rulez:",
        "domain.yaml:4:1: unknown field 'rulez'; did you mean 'rules'?",
    ),
    "a persona that is not there": (
        "tasks.yaml",
        "[plain, terse]",
        "[plain, ters]",
        "tasks.yaml:6:23: unknown persona 'ters'; did you mean 'terse'?",
    ),
    "a tools file that does not compile": (
        "tools.py",
        "def serve",
        "def def serve",
        "domain.yaml:",
    ),
}


@pytest.mark.parametrize("fault", SPEC_FAULTS)
def test_a_spec_that_is_wrong_is_refused_before_anything_is_made(
    fault: str, muarl: InProcess, run_file: Path, out: Path
) -> None:
    name, old, new, says = SPEC_FAULTS[fault]
    spoil(run_file.parent / name, old, new)
    ending = muarl("train", run_file, "--out", out)
    # A missing field is a second problem where a field's name has a typo.
    lines = [line for line in ending.lines if "missing field" not in line]
    Ending(ending.code, ending.out, lines).refuses(2, says)
    assert not out.exists()


@pytest.mark.parametrize("seed", ["99999999999999999999999", str(2**63), str(-(2**63) - 1)])
def test_a_seed_that_no_run_file_may_have_is_refused_as_an_argument_too(
    seed: str, muarl: InProcess, run_file: Path, out: Path
) -> None:
    ending = muarl("train", run_file, "--out", out, f"--seed={seed}")
    assert ending.code == 2
    assert f"argument --seed: must be a 64-bit integer, got {seed}" in ending.lines[-1]
    assert not out.exists()


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_a_threshold_that_nothing_can_be_compared_with_is_refused(
    number: str, muarl: InProcess, out: Path
) -> None:
    for verb in (
        ["export", out, "--out", "x", f"--min-reward={number}"],
        ["eval", "run.yaml", "--model", "m", f"--at-least={number}"],
    ):
        ending = muarl(*verb)
        assert ending.code == 2
        assert ending.lines[-1].endswith(f"must be a finite number, got {number}")


def test_a_habit_that_the_expert_does_not_know_is_refused_where_the_run_names_it(
    muarl: InProcess, run_file: Path, out: Path
) -> None:
    spoil(
        run_file.parent / "expert.py",
        "        self.order = None",
        "        if imperfections:\n            raise ValueError(f'unknown {list(imperfections)}')\n"
        "        self.order = None",
    )
    spoil(run_file, "grpo:", "cold_start: {imperfections: {qiut: 0.1}}\ngrpo:")
    ending = muarl("train", run_file, "--out", out)
    ending.refuses(2, f"{run_file}:7:29: ", "unknown ['qiut']")
    assert not out.exists()


def test_a_domain_without_an_expert_is_refused_before_anything_is_made(
    muarl: InProcess, run_file: Path, out: Path
) -> None:
    spoil(run_file.parent / "domain.yaml", "expert: expert.py:Expert\n", "")
    ending = muarl("rollout", run_file, "--expert", "--out", out)
    ending.refuses(2, f"{run_file.parent / 'domain.yaml'}:1:1: ", "name one under `expert`")
    assert not out.exists()


def test_a_task_whose_gold_calls_do_not_earn_1(muarl: InProcess, run_file: Path) -> None:
    spoil(run_file.parent / "domain.yaml", "- gold_world: true", '- said: {text: "sorry"}')
    spoil(
        run_file.parent / "tasks.yaml",
        "    gold:",
        "    reward: [{world: {path: orders.W1.status, equals: returned}}]\n    gold:",
    )
    ending = muarl("check", run_file.parent)
    assert ending.code == 1
    assert ending.lines == []
    [finding] = [line for line in ending.out.splitlines() if "tasks.yaml:" in line]
    assert "task 'cancel-1': the gold calls earn 0, not 1: " in finding


def test_an_unknown_verb_and_wrong_usage(muarl: InProcess, run_file: Path) -> None:
    muarl("tarin", run_file).refuses(2, "unknown verb 'tarin'; did you mean 'train'?")
    for usage in (
        ["train"],
        ["rollout", run_file],
        ["rollout", run_file, "--expert", "--episodes", 0],
    ):
        ending = muarl(*usage)
        assert ending.code == 2
        assert ending.lines[-1].startswith(f"muarl {usage[0]}: error: ")


# Tool servers: exit code 1.

SERVER_FAULTS: dict[Fault, str] = {
    "raise_at_start": "RuntimeError: no database",
    "hang_at_start": "s (tools.start_timeout_s)",
    "rubbish": "it printed 'Listening on port 8080' to stdout, where only MCP messages belong",
}


@pytest.mark.parametrize("fault", SERVER_FAULTS)
def test_a_tool_server_that_does_not_start(
    fault: Fault, muarl: InProcess, run_file: Path, out: Path
) -> None:
    says, start_s = SERVER_FAULTS[fault], time_to_start_s() if fault == "rubbish" else 0.5
    if fault == "hang_at_start":
        says = f"within {start_s:g} {says}"
    settings = {} if fault == "raise_at_start" else {"start_timeout_s": start_s}
    serve_by(run_file.parent, broken_server(fault), **settings)
    checked = muarl("check", run_file.parent)
    assert (checked.code, checked.lines) == (1, [])
    [finding] = [line for line in checked.out.splitlines() if says in line]
    assert f"domain.yaml:5:1: {shown(broken_server(fault))} did not start" in finding
    for verb in (["train", run_file], ["rollout", run_file, "--expert"]):
        ending = muarl(*verb, "--out", out)
        ending.refuses(1, f"muarl: {shown(broken_server(fault))} did not start", says)
        assert not out.exists()


def test_a_tool_server_that_raises_while_it_is_built(
    muarl: InProcess, run_file: Path, out: Path
) -> None:
    spoil(run_file.parent / "tools.py", 'server = MCPServer("shop")', "raise OSError('no licence')")
    checked = muarl("check", run_file.parent)
    assert (checked.code, checked.lines) == (1, [])
    assert "could not be built: OSError: no licence" in checked.out
    ending = muarl("train", run_file, "--out", out)
    ending.refuses(1, "muarl: tool server 'serve' could not be built: OSError: no licence")
    assert not out.exists()


def test_a_tool_server_that_dies_in_a_call(muarl: InProcess, run_file: Path, out: Path) -> None:
    serve_by(run_file.parent, broken_server("die_in_call"))
    checked = muarl("check", run_file.parent)
    assert (checked.code, checked.lines) == (1, [])
    died = (
        f"{shown(broken_server('die_in_call'))} died in a call of 'put'; its stderr ends: the disk"
    )
    [finding] = [line for line in checked.out.splitlines() if died in line]
    assert "domain.yaml:5:1" in finding
    # Every dialogue of the expert calls it; that there are fewer than the fuse's window is no excuse.
    spoil(run_file, "episodes: 70", "episodes: 3")
    ending = muarl("rollout", run_file, "--expert", "--out", out)
    ending.refuses(1, "muarl: 3 of 3 dialogues were faults (limit 20%):", f"3 x {died}", lines=3)
    finished = list(read_journal(out / "episodes.journal"))
    assert [len(episode.turns) for episode in finished] == [2, 2, 2]


@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "SystemExit"])
@pytest.mark.parametrize(
    ("file", "old", "fault"),
    [
        (
            "tools.py",
            '        if order_id not in world["orders"]:',
            "crashed in a call of 'cancel'",
        ),
        ("expert.py", "        last = history[-1]", "the agent raised"),
    ],
)
def test_code_that_would_end_the_process_is_a_fault_that_is_named_and_no_ctrl_c(
    file: str, old: str, fault: str, kind: str, muarl: InProcess, run_file: Path, out: Path
) -> None:
    spoil(run_file.parent / file, old, f"        raise {kind}\n{old}")
    spoil(run_file, "episodes: 70", "episodes: 3")
    ending = muarl("rollout", run_file, "--expert", "--out", out)
    ending.refuses(1, "3 of 3 dialogues were faults", fault, f"{kind} (shop/{file}:", lines=3)
    checked = muarl("check", run_file.parent)
    assert checked.code in (1, 2)
    assert f"{kind} (shop/{file}:" in checked.out


def test_what_the_authors_code_prints_is_no_part_of_any_answer(
    muarl: InProcess, run_file: Path, out: Path
) -> None:
    folder = run_file.parent
    for file, old in (
        ("tools.py", '        if order_id not in world["orders"]:'),
        ("expert.py", "        last = history[-1]"),
    ):
        spoil(folder / file, old, f"        print('said by {file}')\n{old}")
        (folder / file).write_text("print('imported')\n" + (folder / file).read_text())
    rolled = muarl("rollout", run_file, "--expert", "--episodes", 2, "--json", "--out", out)
    assert rolled.code == 0, rolled.lines
    assert json.loads(rolled.out)["n"] == 2
    for verb, answers in (("score", 1), ("replay", 1)):
        ending = muarl(verb, out, "--json")
        assert (ending.code, len(ending.out.splitlines())) == (0, answers), ending.lines
        assert json.loads(ending.out)
    for word in ("imported", "said by tools.py", "said by expert.py"):
        assert word in rolled.lines


# Machines: exit code 1.


def test_a_missing_extra_names_the_command_that_installs_it(
    run_file: Path, out: Path, tmp_path: Path
) -> None:
    blocker = tmp_path / "blocker"
    blocker.mkdir()
    (blocker / "sitecustomize.py").write_text(
        "import sys\n"
        "class Blocker:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('torch', 'vllm'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Blocker())\n"
    )
    for verb in (["train", run_file], ["eval", run_file, "--model", out]):
        ending = in_a_new_process(*verb, "--out", out, env={"PYTHONPATH": str(blocker)})
        ending.refuses(
            1, f"muarl: muarl {verb[0]} needs torch. Install it with `pip install 'muarl[train]'`"
        )
    assert not out.exists()
    sound = in_a_new_process("check", run_file.parent, env={"PYTHONPATH": str(blocker)})
    assert (sound.code, sound.out.splitlines()[-1]) == (0, "sound")


def test_an_engine_that_is_not_installed(
    muarl: InProcess, run_file: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    spoil(run_file, "threads: 1", "threads: 1\nengine: vllm")
    ending = muarl("train", run_file, "--out", out)
    ending.refuses(1, "muarl: `engine: vllm` needs vLLM, which is not installed: pip install")
    assert not out.exists()


def test_a_vllm_server_that_is_down(
    muarl: InProcess, run_file: Path, out: Path, closed_port: int
) -> None:
    url = f"http://127.0.0.1:{closed_port}"
    spoil(run_file, "threads: 1", f"threads: 1\nengine: {{vllm_server: {{endpoints: ['{url}']}}}}")
    ending = muarl("train", run_file, "--out", out)
    ending.refuses(1, f"muarl: the vLLM server at {url} cannot be reached: ")
    assert not out.exists()


def test_an_endpoint_that_is_down(
    muarl: InProcess,
    run_file: Path,
    out: Path,
    closed_port: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("muarl.http.retry._FIRST_WAIT_S", 0.02)  # doubled four times
    url = f"http://127.0.0.1:{closed_port}/v1"
    run_file.write_text(run_file.read_text() + f"user: {{llm: {{base_url: '{url}', model: m}}}}\n")
    ending = muarl("rollout", run_file, "--expert", "--out", out)
    ending.refuses(
        1,
        "muarl: 64 of the last 64 attempts were faults (limit 20%):",
        f"64 x {url}/chat/completions (model 'm') cannot be reached",
        lines=3,
    )
    assert list(read_journal(out / "episodes.journal")) == []


def test_an_endpoint_that_stays_down_past_its_timeout_is_named_with_the_reason(
    muarl: InProcess, run_file: Path, out: Path, closed_port: int
) -> None:
    url = f"http://127.0.0.1:{closed_port}/v1"
    user = f"user: {{llm: {{base_url: '{url}', model: m, timeout_s: 2}}}}\n"
    text = run_file.read_text().replace("episodes: 70", "episodes: 2")
    run_file.write_text(text.replace("attempts: 2", "attempts: 1") + user)
    ending = muarl("rollout", run_file, "--expert", "--out", out)
    ending.refuses(
        1, "muarl: 2 of 2 dialogues were faults", url, "within 2 s", "cannot be reached", lines=3
    )


@pytest.mark.parametrize(
    ("setting", "code", "says"),
    [
        ("base_url: 'http://127.0.0.1:1/v1', model: m, api_key_env: NO_SUCH_KEY", 1, "NO_SUCH_KEY"),
        ("base_url: 'localhost:8000', model: m", 2, "expected a URL such as http://127.0.0.1:8000"),
    ],
)
def test_an_endpoint_without_url_or_key_is_refused_before_the_run(
    setting: str, code: int, says: str, muarl: InProcess, run_file: Path, out: Path
) -> None:
    run_file.write_text(run_file.read_text() + f"user: {{llm: {{{setting}}}}}\n")
    muarl("rollout", run_file, "--expert", "--out", out).refuses(code, says)
    assert not out.exists()


def test_a_model_folder_that_is_none(muarl: InProcess, run_file: Path, out: Path) -> None:
    for verb in ("eval", "rollout"):
        ending = muarl(verb, run_file, "--model", run_file.parent, "--out", out)
        ending.refuses(2, f"muarl: no model in {run_file.parent}: expected", "muarl train RUN.yaml")
        assert not out.exists()
    spoil(run_file, "  tiny: {", "  path: . #{")
    told = ["rollout={max_tokens: 64, context_tokens: 1024}", "grpo.lr=1e-3"]
    settings = [word for setting in told for word in ("--set", setting)]
    ending = muarl("train", run_file, *settings, "--out", out)
    ending.refuses(2, "no model in", "expected")
    assert not out.exists()


def test_a_damaged_model_is_named(muarl: InProcess, run_file: Path, out: Path) -> None:
    model = run_file.parent / "model"
    model.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (model / name).write_text("{}")
    for verb in ("eval", "rollout"):
        ending = muarl(verb, run_file, "--model", model, "--out", out, "--overwrite")
        ending.refuses(1, str(model))


# Folders: exit code 1, and nothing that is there is touched.


def test_a_folder_that_holds_something(muarl: InProcess, run_file: Path, out: Path) -> None:
    out.mkdir()
    (out / "thesis.tex").write_text("x")
    for verb in (["train"], ["train", "--overwrite"], ["rollout", "--expert"]):
        ending = muarl(verb[0], run_file, *verb[1:], "--out", out)
        ending.refuses(1, f"muarl: {out} is not empty and holds no run; choose another --out")
    assert [path.name for path in out.iterdir()] == ["thesis.tex"]


def test_a_folder_that_cannot_be_made(muarl: InProcess, run_file: Path, out: Path) -> None:
    out.write_text("a file")
    for where in (out, out / "below"):
        for verb in (["train", run_file], ["rollout", run_file, "--expert"]):
            ending = muarl(*verb, "--out", where)
            ending.refuses(1, f"muarl: {where} cannot be used as a run's folder: ", "--out")
    assert out.read_text() == "a file"


@pytest.mark.parametrize("room", [3_000, 30_000, 60_000, 90_000])
def test_a_disk_that_is_full(room: int, muarl: InProcess, run_file: Path, out: Path) -> None:
    spoil(run_file, "episodes: 70", "episodes: 6")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))  # of one file, as small as a disk
    try:
        ending = muarl("train", run_file, "--out", out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    ending.refuses(1, "muarl: ", "File too large")
    if (out / "episodes.journal").exists():
        assert not [e for e in read_journal(out / "episodes.journal") if e.outcome.is_fault]


def test_an_old_run_outlives_a_new_one_that_cannot_start(
    muarl: InProcess, run_file: Path, out: Path
) -> None:
    spoil(run_file, "episodes: 70", "episodes: 2")
    again = ["rollout", run_file, "--expert", "--out", out, "--overwrite"]
    assert muarl(*again).code == 0
    muarl(*again[:-1]).refuses(1, f"muarl: {out} already holds a run.")
    serve_by(run_file.parent, broken_server("raise_at_start"))
    muarl(*again).refuses(1, "did not start: it ended")
    assert len(list(read_journal(out / "episodes.journal"))) == 2


def test_a_report_of_what_is_no_run(muarl: InProcess, tmp_path: Path, out: Path) -> None:
    muarl("report", out).refuses(2, f"muarl: {out}: no such run folder")
    muarl("report", tmp_path).refuses(2, "spec.resolved.yaml: missing")


def test_what_was_finished_before_a_failure_is_kept_and_taken_up(
    muarl: InProcess, run_file: Path, out: Path
) -> None:
    """The tool server breaks in the middle of a training run, is mended, and the run goes on."""
    spoil(run_file, "episodes: 70", "episodes: 6")
    tools = run_file.parent / "tools.py"
    spoil(
        tools,
        '    server = MCPServer("shop")\n',
        "    from pathlib import Path\n"
        f"    metrics = Path({str(out)!r}) / 'metrics.jsonl'\n"
        "    if not metrics.parent.with_name('mended').exists() and metrics.exists():\n"
        "        if 'cold' in metrics.read_text():\n"
        "            raise RuntimeError('the licence has run out')\n"
        '    server = MCPServer("shop")\n',
    )
    ending = muarl("train", run_file, "--out", out)
    ending.refuses(
        1, "muarl: 8 of 8 dialogues were faults (limit 20%)", "the licence has run out", lines=3
    )
    finished = [e.key for e in read_journal(out / "episodes.journal") if not e.outcome.is_fault]
    assert {key.phase for key in finished} >= {"eval:cold:T1"}
    out.with_name("mended").write_text("")  # beside the domain, whose files must stay as they are
    resumed = muarl("train", run_file, "--out", out, "--resume")
    assert resumed.code == 0, resumed.lines
    after = [e.key for e in read_journal(out / "episodes.journal") if not e.outcome.is_fault]
    assert len(set(after)) == len(after)
    assert after[: len(finished)] == finished
    assert muarl("report", out).code == 0


def test_in_a_process_of_its_own_nothing_else_is_said(
    run_file: Path, out: Path, closed_port: int
) -> None:
    """What an interpreter says on its way out, about tasks or sockets left over, would show here."""
    serve_by(run_file.parent, broken_server("die_in_call"))
    spoil(run_file, "episodes: 70", "episodes: 2")
    ending = in_a_new_process("rollout", run_file, "--expert", "--out", out)
    ending.refuses(1, "2 of 2 dialogues were faults", lines=3)
    spoil(run_file, "grpo:", "gpro:")
    in_a_new_process("train", run_file, "--out", out).refuses(2, "did you mean 'grpo'?")
