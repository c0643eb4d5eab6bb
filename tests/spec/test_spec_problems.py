"""Every problem of a file at once, each at its line and column, in words that say what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_files import DOMAIN, said, spoil

from muarl import __version__
from muarl.errors import SpecError
from muarl.spec import load_domain_spec, load_run, load_tasks_file


def problems(path: Path) -> list[str]:
    load = {"domain": load_domain_spec, "tasks": load_tasks_file, "run": load_run}[path.stem]
    with pytest.raises(SpecError) as caught:
        load(path)
    assert {problem.path for problem in caught.value.problems} == {str(path)}
    return said(caught.value)


def test_sound_files_load(folder: Path) -> None:
    domain = load_domain_spec(folder)
    assert domain.spec.id == "shop"
    assert domain.path == folder / "domain.yaml"
    assert load_tasks_file(folder / "tasks.yaml", domain.spec).spec.tasks[0].id == "cancel-1"
    assert load_run(folder / "run.yaml").spec.rollout.max_turns == 24


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        (
            "run",
            "grpo: {iterations: 3}",
            "rollout:\n  max_turn: 3",
            "5:3: unknown field 'max_turn'; did you mean 'max_turns'?",
        ),
        (
            "run",
            "model: {tiny: {}}",
            "model: {tiny: {zzz: 1}}",
            (
                "3:16: unknown field 'zzz'; fields here: vocab_size, hidden_size, num_layers, "
                "num_heads, num_kv_heads, head_dim, ffn_size"
            ),
        ),
        (
            "tasks",
            "value: W1}",
            "value: W1, disclos: never}",
            "10:45: unknown field 'disclos'; did you mean 'disclose'?",
        ),
        ("domain", "id: shop\n", "", "1:1: missing field 'id'"),
        ("domain", "    style: plain\n", "    weight: 1\n", "16:5: missing field 'style'"),
        # Their sum was no number, and drawing one of them a traceback.
        (
            "domain",
            "    style: plain\n",
            "    style: plain\n    weight: 1e308\n",
            "17:13: 'weight' must be at most 1e+09, got 1e+308",
        ),
        (
            "run",
            "grpo: {iterations: 3}",
            "user: {pool: {a: {weight: 1e308, user: {scripted: {}}}}}",
            "4:27: 'weight' must be at most 1e+09, got 1e+308",
        ),
        ("tasks", "    goal: Cancel W1.\n", "", "4:5: missing field 'goal'"),
        (
            "run",
            "iterations: 3",
            "iterations: many",
            "4:20: 'iterations' must be a whole number, got 'many'",
        ),
        (
            "run",
            "iterations: 3",
            "iterations: 0",
            "4:20: 'iterations' must be greater than 0, got 0",
        ),
        (
            "run",
            "iterations: 3",
            "iterations: 3.0",
            "4:20: 'iterations' must be a whole number, got 3.0",
        ),
        (
            "run",
            "iterations: 3",
            "freeze_embeddings: yes",
            "4:27: 'freeze_embeddings' must be true or false, got 'yes'",
        ),
        (
            "run",
            "iterations: 3",
            "clip_low: 2",
            "4:18: 'clip_low' must be at most 1, got 2",
        ),
        (
            "run",
            "model:",
            "engine: vlm\nmodel:",
            (
                "3:9: 'engine': must be embedded, vllm or vllm_server, got 'vlm'; "
                "did you mean 'vllm'?"
            ),
        ),
        (
            "run",
            "model:",
            "engine: vllm_server\nmodel:",
            "3:9: missing field 'endpoints'",
        ),
        (
            "run",
            "model:",
            "engine: {vllm_server: {endpoints: [http://a:1/v1]}}\nmodel:",
            (
                "3:36: item 1 of 'endpoints': expected a server's base URL, without a path: "
                "http://a:1, got 'http://a:1/v1'"
            ),
        ),
        (
            "run",
            "model:",
            "user: {llm: {base_url: 'http://me:secret@a/v1', model: m}}\nmodel:",
            (
                "3:24: 'base_url': a URL with a user or password in it, which would be recorded; name an "
                "environment variable instead (`api_key_env`, or `secrets` of a tool server)"
            ),
        ),
        (
            "run",
            "model:",
            "engine: {vllm_server: {endpoints: [a:1]}}\nmodel:",
            (
                "3:36: item 1 of 'endpoints': expected a URL such as http://127.0.0.1:8000, "
                "got 'a:1'"
            ),
        ),
        (
            "run",
            "model:",
            "engine: {vllm_server: {endpoints: [http://a:1, http://a:1/]}}\nmodel:",
            "3:23: 'vllm_server': an endpoint is named twice",
        ),
        (
            "run",
            "model:",
            "engine: {vllm: {}, embedded: {}}\nmodel:",
            "3:9: 'engine': give exactly one of embedded, vllm, vllm_server and plugin",
        ),
        (
            "tasks",
            "value: W1",
            "value: 12",
            "10:41: 'value' must be text, got 12; put it in quotes",
        ),
        ("domain", "rules: Be kind.", "rules:", "4:1: 'rules' must be text, got nothing"),
        (
            "domain",
            "writes: [cancel]",
            "writes: cancel",
            "7:9: 'writes' must be a list, got 'cancel'; write [\"cancel\"]",
        ),
        (
            "domain",
            "  - gold_world: true",
            "  - gold_world",
            (
                "38:5: item 1 of 'reward' must be a mapping, got 'gold_world'; write a mapping with "
                "the keys gold_world, world, scaled, sql, called, never_called, said, "
                "never_said, count, confirmed, preceded, judge, python, plugin, all, any, share, "
                "not, weighted"
            ),
        ),
        (
            "tasks",
            "    gold:\n      - tool: cancel\n        arguments: {order_id: W1}\n",
            "    gold: cancel\n",
            (
                "11:11: 'gold' must be a list, got 'cancel'; after each `-` write a mapping with the "
                "keys tool, arguments, by, turn"
            ),
        ),
        (
            "domain",
            "  - gold_world: true",
            "  - {gold_world: true, said: {text: x}}",
            (
                "38:5: item 1 of 'reward': give exactly one of gold_world, world, scaled, sql, called, "
                "never_called, said, never_said, count, confirmed, preceded, judge, python, "
                "plugin, all, any, share, not, weighted; got gold_world, said"
            ),
        ),
        (
            "domain",
            "  python: tools.py:serve",
            "  stateless: true",
            "6:3: 'tools': give exactly one of python, sql, simulated, command, url, plugin",
        ),
        (
            "domain",
            "tools.py:serve",
            "tools:serve",
            "6:11: 'python' must be file.py:name, got 'tools:serve'",
        ),
        (
            "domain",
            "id: shop",
            "id: a shop",
            (
                "2:5: 'id' must be letters, digits, '_', '-' or '.', beginning with a letter or "
                "digit, got 'a shop'; write a-shop"
            ),
        ),
        (
            "domain",
            "  plain:",
            "  pla in:",
            (
                "15:3: key must be letters, digits, '_', '-' or '.', beginning with a letter or "
                "digit, got 'pla in'; write pla-in"
            ),
        ),
        (
            "tasks",
            "[plain, terse]",
            "[]",
            "6:15: 'personas' needs at least 1 entry, got an empty list",
        ),
        (
            "domain",
            "id: shop",
            "id: shop\nid: desk",
            "3:1: duplicate key 'id'; first given on line 2",
        ),
        (
            "domain",
            "reward:",
            "floor: .nan\nreward:",
            "37:8: .nan is not a finite number; write a finite one, or quote it as text",
        ),
        (
            "run",
            "version: 1",
            "version: 2\nnew: 3",
            (
                f"1:10: version 2 is newer than muarl {__version__} reads (1); "
                "write 1, or use the muarl that the file was written for"
            ),
        ),
        ("run", "version: 1", "version: one", "1:10: 'version' must be 1, got 'one'; write 1"),
    ],
)
def test_a_wrong_field_is_one_problem_at_its_place(
    folder: Path, file: str, old: str, new: str, problem: str
) -> None:
    path = folder / f"{file}.yaml"
    spoil(path, old, new)
    assert problems(path) == [problem]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("localhost:8000", "expected a URL such as http://127.0.0.1:8000/v1"),
        ("http://", "expected a URL such as"),
        ("http:/a/v1", "expected a URL such as"),
        ("http://[::1", "expected a URL such as"),
        ("http://a:port/v1", "expected a URL such as"),
        ("http://a:99999/v1", "expected a URL such as"),
        ("http://a b/v1", "expected a URL such as"),
        ("http://a/v1?key=1", "expected the URL before `/chat/completions`"),
        ("http://a/v1/chat/completions/", "expected the URL before `/chat/completions`"),
    ],
)
def test_an_endpoint_that_cannot_be_asked_is_refused_where_it_stands(
    folder: Path, url: str, expected: str
) -> None:
    user = f"user: {{llm: {{base_url: '{url}', model: m}}}}\nmodel:"
    spoil(folder / "run.yaml", "model:", user)
    (problem,) = problems(folder / "run.yaml")
    assert problem.startswith(f"3:24: 'base_url': {expected}")
    assert problem.endswith(f", got {url!r}")


def test_all_problems_come_together_in_the_files_order(folder: Path) -> None:
    path = folder / "domain.yaml"
    spoil(path, "summary: A shop.", "sumary: A shop.")
    spoil(path, "rules: Be kind.", "rules: [1]\nrules: x")
    spoil(path, "weight: 0", "weight: heavy")
    assert problems(path) == [
        "1:1: missing field 'summary'",
        "3:1: unknown field 'sumary'; did you mean 'summary'?",
        "4:8: 'rules' must be text, got a list",
        "5:1: duplicate key 'rules'; first given on line 4",
        "20:13: 'weight' must be a number, got 'heavy'",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1:1: the file is empty; expected a mapping with the fields version, id, summary, "),
        ("# nothing\n", "1:1: the file is empty; "),
        ("- a\n", "1:1: this is a list; expected a mapping with the fields version, id, "),
        ("hello\n", "1:1: this is 'hello'; expected a mapping"),
        ("a: [\n", "2:1: not valid YAML: "),
    ],
)
def test_a_file_that_is_no_mapping_says_what_was_expected(
    folder: Path, text: str, problem: str
) -> None:
    path = folder / "domain.yaml"
    path.write_text(text)
    (message,) = problems(path)
    assert message.startswith(problem)


def test_bytes_that_are_not_utf8_have_a_place(folder: Path) -> None:
    path = folder / "domain.yaml"
    path.write_bytes("id: é\nsummary: ".encode() + b"\xe9t\xe9\n")
    assert problems(path) == ["2:10: byte 0xe9 is not UTF-8; save the file as UTF-8"]


def test_a_byte_order_mark_and_windows_line_ends_are_fine(folder: Path) -> None:
    path = folder / "domain.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + DOMAIN.replace("\n", "\r\n").encode())
    assert load_domain_spec(path).spec.id == "shop"


def test_a_missing_file_names_the_one_that_was_meant(folder: Path) -> None:
    with pytest.raises(SpecError) as caught:
        load_run(folder / "rum.yaml")
    assert str(caught.value) == (
        f"{folder / 'rum.yaml'}: no such file; did you mean '{folder / 'run.yaml'}'?"
    )


@pytest.mark.parametrize(
    ("missing", "meant"),
    [
        ("gone.yaml", None),  # not round.yaml, which is alike in `.yaml` alone
        ("air.yaml", None),
        ("devv.yaml", "dev.yaml"),
        ("dev.yml", "dev.yaml"),
        ("dev", "dev.yaml"),
        ("dev.yamll", "dev.yaml"),
        ("shp", "shop"),
        ("notes.yaml", None),  # there is a notes.txt, which is no spec
    ],
)
def test_a_missing_spec_is_never_taken_for_one_that_is_alike_in_its_ending_alone(
    tmp_path: Path, missing: str, meant: str | None
) -> None:
    for name in ("round.yaml", "grid.yaml", "dev.yaml", "notes.txt", "dev.py"):
        (tmp_path / name).write_text("version: 1\n")
    (tmp_path / "shop").mkdir()
    with pytest.raises(SpecError) as caught:
        load_run(tmp_path / missing)
    hint = f"; did you mean '{tmp_path / meant}'?" if meant else ""
    assert str(caught.value) == f"{tmp_path / missing}: no such file{hint}"


def test_a_folder_without_a_domain_says_so(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"domain\.yaml: no such file"):
        load_domain_spec(tmp_path)


def test_an_unreadable_path_is_a_problem(folder: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read: Is a directory"):
        load_run(folder)
    with pytest.raises(SpecError, match="cannot be read"):
        load_run("a\0b")


def test_a_folder_in_the_place_of_a_spec_names_the_one_in_it(tmp_path: Path) -> None:
    for name in ("a.yaml", "spec.resolved.yaml"):
        (tmp_path / name).write_text("version: 1\n")
    with pytest.raises(
        SpecError, match=r"Is a directory; did you mean '.*/spec\.resolved\.yaml'\?"
    ):
        load_run(tmp_path)


def test_later_findings_still_name_a_line(folder: Path) -> None:
    tasks = load_tasks_file(folder / "tasks.yaml")
    problem = tasks.problem(("tasks", 0, "gold"), "earns 0")
    assert str(problem) == f"{folder / 'tasks.yaml'}:12:7: earns 0"
    at_key = tasks.problem(("tasks", 0, "gold"), "earns 0", at_key=True)
    assert (at_key.line, at_key.column) == (11, 5)
    left_out = tasks.problem(("tasks", 0, "reward", 0), "?")
    assert (left_out.line, left_out.column) == (4, 5)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{tiny: {}}", "{tiny: {num_heads: 3, num_kv_heads: 2}}", "must be a multiple of num_kv"),
        ("{tiny: {}}", "{tiny: {hidden_size: 1000000000000}}", "is not tiny: at most 1e+09"),
        ("{tiny: {}}", "{tiny: {head_dim: 15}}", "head_dim"),
        ("version: 1", "version: 1\nthreads: 9223372036854775807", "threads"),
    ],
)
def test_a_model_that_cannot_be_built_is_refused_where_it_is_described(
    old: str, new: str, says: str, folder: Path
) -> None:
    spoil(folder / "run.yaml", old, new)
    (message,) = problems(folder / "run.yaml")
    assert says in message
