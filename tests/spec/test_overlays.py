"""Files and settings laid over a run file: what they come to, and whose fault a problem is."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.errors import SpecError
from muarl.spec import RunSpec, dump_spec, load_run, load_spec

BASE = """\
version: 1
domain: domain.yaml
model: {tiny: {num_layers: 2, hidden_size: 64}}
engine: {vllm: {args: {seed: 1}}}
rollout: {max_turns: 9, max_tokens: 64, context_tokens: 1024}
cold_start:
  lr: 1.0e-2
  imperfections: {quit: 0.5, stale: 0.1}
eval: {temperatures: [1.0, 0.5]}
"""


@pytest.fixture
def base(folder: Path) -> Path:
    path = folder / "base.yaml"
    path.write_text(BASE)
    return path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def refused(base: Path, *overlays: Path, settings: list[str] | None = None) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_run(base, *overlays, settings=settings or [])
    return [str(problem).replace(f"{base.parent}/", "") for problem in caught.value.problems]


def test_mappings_are_merged_and_lists_and_values_replaced(base: Path) -> None:
    one = write(
        base.parent / "one.yaml",
        "version: 1\nseed: 3\nrollout: {max_tokens: 7}\neval: {temperatures: [0.0]}\n",
    )
    two = write(
        base.parent / "two.yaml", "version: 1\nrollout: {max_tokens: 8}\ncold_start: null\n"
    )
    spec = load_run(base, one, two).spec
    assert (spec.seed, spec.rollout.max_turns, spec.rollout.max_tokens) == (3, 9, 8)
    assert spec.eval.temperatures == [0.0]
    assert spec.cold_start is None
    again = load_run(base, two, one).spec
    assert again.rollout.max_tokens == 7, "the last one counts"
    spec = load_run(base, settings=["cold_start.imperfections.stale=0.2"]).spec
    assert spec.cold_start is not None
    assert spec.cold_start.imperfections == {"quit": 0.5, "stale": 0.2}


def test_another_key_of_a_choice_replaces_the_one_before(base: Path) -> None:
    over = write(
        base.parent / "over.yaml",
        "version: 1\nengine: {vllm_server: {endpoints: ['http://a:1']}}\nmodel: {path: .}\n"
        "user: {llm: {base_url: 'http://b/v1', model: m}}\n",
    )
    spec = load_run(base, over).spec
    assert (spec.engine.name, spec.model.tiny, spec.user.scripted) == ("vllm_server", None, None)
    spec = load_run(base, over, settings=["engine=embedded", "user.scripted={}"]).spec
    assert (spec.engine.name, spec.user.llm) == ("embedded", None)


def test_the_same_key_of_a_choice_is_merged(base: Path) -> None:
    spec = load_run(
        base, settings=["engine.vllm.args.dtype=float32", "model.tiny.num_layers=5"]
    ).spec
    assert spec.engine.vllm is not None
    assert spec.engine.vllm.args == {"seed": 1, "dtype": "float32"}
    assert spec.model.tiny is not None
    assert (spec.model.tiny.num_layers, spec.model.tiny.hidden_size) == (5, 64)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("rollout.max_tokens=12", 12),
        ("rollout={max_tokens: 12}", 12),
        ("rollout.max_tokens= 12 # why", 12),
    ],
)
def test_settings_are_yaml(base: Path, text: str, value: object) -> None:
    spec = load_run(base, settings=[text]).spec
    assert spec.rollout.max_tokens == value
    assert spec.rollout.max_turns == 9


def test_paths_follow_whoever_names_them(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (base.parent / "models" / "m").mkdir(parents=True)
    over = write(base.parent / "sub" / "over.yaml", "version: 1\nmodel: {path: ../models/m}\n")
    run = load_run(base, over)
    assert run.resolve(run.spec.model.path or "").samefile(base.parent / "models" / "m")
    monkeypatch.chdir(base.parent / "models")
    run = load_run(base, settings=["model.path=m", "domain=../domain.yaml"])
    assert run.resolve(run.spec.model.path or "").samefile(base.parent / "models" / "m")
    assert run.resolve(run.spec.domain).samefile(base.parent / "domain.yaml")
    for path in ("n", "../n", "n/../n"):  # named as it was written
        assert refused(base, settings=[f"model.path={path}"])[0].startswith(
            f"--set model.path={path}: no such file: {path!r}"
        )
    over.write_text("version: 1\nmodel: {path: ../n}\n")
    assert refused(base, over)[0].startswith("sub/over.yaml:2:15: no such file: '../n'")


def test_every_problem_is_in_the_file_that_said_it(base: Path) -> None:
    over = write(
        base.parent / "over.yaml",
        "version: 1\nrollout:\n  max_turn: 3\n  max_tokens: many\nmodel: {tiny: {num_heads: 3}}\n"
        "domain: nowhere\n",
    )
    assert refused(base, over, settings=["grpo.lrr=1", "seed=x"]) == [
        "--set grpo.lrr=1: unknown field 'lrr'; did you mean 'lr'?",
        "--set seed=x: 'seed' must be a whole number, got 'x'",
        "over.yaml:3:3: unknown field 'max_turn'; did you mean 'max_turns'?",
        "over.yaml:4:15: 'max_tokens' must be a whole number, got 'many'",
        "over.yaml:5:15: 'tiny': num_heads (3) must be a multiple of num_kv_heads (4)",
    ]
    over.write_text("version: 1\ndomain: domain.yml\n")
    assert refused(base, over) == [
        "over.yaml:2:9: no such file: 'domain.yml'; did you mean 'domain.yaml'?"
    ]
    over.write_text("version: 1\nseed: 3\n")
    base.write_text(BASE.replace("domain: domain.yaml", "domain: domain.yml"))
    assert refused(base, over) == [
        "base.yaml:2:9: no such file: 'domain.yml'; did you mean 'domain.yaml'?"
    ]


def test_a_choice_that_an_overlay_misspells_is_its_own_problem(base: Path) -> None:
    over = write(base.parent / "over.yaml", "version: 1\nengine: {vlm: {}}\n")
    assert "over.yaml:2:10: unknown field 'vlm'; did you mean 'vllm'?" in refused(base, over)


def test_every_file_has_a_version_of_its_own(base: Path) -> None:
    over = write(base.parent / "over.yaml", "seed: 1\n")
    assert refused(base, over) == ["over.yaml:1:1: missing field 'version'; write `version: 1`"]
    base.write_text(BASE.replace("version: 1\n", ""))
    over.write_text("version: 1\nseed: 1\n")
    assert refused(base, over) == ["base.yaml:1:1: missing field 'version'; write `version: 1`"]
    over.write_text("version: 7\n")
    assert "version 7 is newer" in refused(base, over)[-1]


def test_files_that_cannot_be_read_are_all_named(base: Path) -> None:
    tasks = base.parent / "tasks.yaml"
    found = refused(base, tasks, base.parent / "over.yaml", settings=["seed=x"])
    assert found[0].startswith("over.yaml: no such file")
    assert "this is a tasks file" in found[1]


@pytest.mark.parametrize("text", ["", "seed", "=3", "a..b=3", ".seed=3", "seed.=3"])
def test_a_setting_has_a_key_and_a_value(base: Path, text: str) -> None:
    assert refused(base, settings=[text]) == [
        f"--set {text}: expected KEY=VALUE, such as grpo.lr=1e-6"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed=[1", "not valid YAML"),
        ("seed=!!int 1", "tag 'tag:yaml.org,2002:int' is not allowed"),
        ("seed=.inf", "not a finite number"),
        ("eval.temperatures.0=0.5", "'temperatures' must be a list, got a mapping"),
        ("seed.a=1", "'seed' must be a whole number, got a mapping"),
        ("rollout=3", "'rollout' must be a mapping, got 3"),
        ("cold_start.imperfections.quit=", "'quit' must be a number, got nothing"),
    ],
)
def test_a_wrong_setting_is_named_by_itself(base: Path, text: str, message: str) -> None:
    (found,) = refused(base, settings=[text])
    assert found.startswith(f"--set {text}: ")
    assert message in found


def test_what_it_comes_to_can_be_written_and_read(base: Path, tmp_path: Path) -> None:
    spec = load_run(base, settings=["engine=vllm", "seed=4"]).spec
    path = write(tmp_path / "whole.yaml", dump_spec(spec, defaults=True))
    assert load_spec(path, RunSpec).spec == spec


def test_a_key_beside_a_choice_is_merged_and_leaves_the_choice_alone(base: Path) -> None:
    model = load_run(base, settings=["model.lora.rank=4"]).spec.model
    assert (model.tiny and model.tiny.num_layers) == 2
    assert (model.lora and model.lora.rank) == 4
    (base.parent / "m").mkdir()
    settings = ["model.lora.rank=4", f"model.path={base.parent / 'm'}"]
    model = load_run(base, settings=settings).spec.model
    assert model.tiny is None, "another model"
    assert (model.lora and model.lora.rank) == 4, "and still adapters"


def test_dropout_of_adapters_is_refused_with_the_reason(base: Path) -> None:
    (problem,) = refused(base, settings=["model.lora.dropout=0.1"])
    assert "must be 0: the sampler has no dropout" in problem


def test_adapters_do_not_go_where_whole_weights_are_sent(base: Path) -> None:
    servers = "engine={vllm_server: {endpoints: ['http://127.0.0.1:8000'], sync: nccl}}"
    (problem,) = refused(base, settings=["model.lora.rank=4", servers])
    assert "nccl sends whole weights, and with model.lora only adapters are sent" in problem
    hers = f"user_model={{model: {{tiny: {{}}, lora: {{}}}}, {servers.replace('=', ': ')}}}"
    (problem,) = refused(base, settings=[hers])
    assert "nccl sends whole weights" in problem


def test_a_file_is_laid_over_the_files_of_its_base(base: Path) -> None:
    folder = base.parent / "deep"
    folder.mkdir()
    (folder / "part.yaml").write_text("version: 1\ngrpo: {lr: 3.0e-6, iterations: 7}\n")
    over = folder / "over.yaml"
    over.write_text(
        "version: 1\nbase: [preset:dapo, ../run.yaml, part.yaml]\ngrpo: {iterations: 8}\n"
    )
    (base.parent / "run.yaml").write_text(base.read_text())
    grpo = load_run(over).spec.grpo
    assert grpo is not None
    assert (grpo.lr, grpo.iterations) == (3e-6, 8)
    assert grpo.dynamic_sampling is not None  # as the preset has it
    assert load_run(over).resolve(load_run(over).spec.domain).resolve() == (
        load_run(base).resolve(load_run(base).spec.domain).resolve()
    )
    assert load_run(over).spec.base == []


def test_what_a_base_gets_wrong_is_said_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "round.yaml").write_text("version: 1\nbase: [run.yaml]\n")
    (tmp_path / "run.yaml").write_text(
        "version: 1\nbase:\n- preset:nono\n- gone.yaml\n- round.yaml\n"
    )
    assert refused(tmp_path / "run.yaml") == [
        "round.yaml:2:8: 'run.yaml' is laid over itself: its base leads back to it",
        "run.yaml:3:3: no preset 'nono'; there are dapo, dr-grpo, gspo, mua-rl-paper, mua-rl-repo",
        "run.yaml:4:3: no such file: 'gone.yaml'",
    ]
