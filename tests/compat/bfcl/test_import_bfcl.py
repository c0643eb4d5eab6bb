"""`muarl import bfcl`: whose files they are, what is read from Python, what the official checker is given."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from muarl.cli import main
from muarl.compat.bfcl import official
from muarl.compat.bfcl.entries import Entry
from muarl.compat.bfcl.importer import write_domains
from muarl.compat.bfcl.tables import constants
from muarl.compat.upstream import Upstream
from muarl.domain import load_domain
from muarl.errors import SetupError
from muarl.messages import Message, ToolCall
from muarl.testing import play_agents

CODE = {
    "long_context": "raise SystemExit('executed')\nLONG = ['a', ...]\nTEXTS = {'b': 'c' 'd'}\n",
    "math_api": "class MathAPI:\n def si_unit_conversion(self):\n  to_meters = {'km': 1000, 'um': 1e-6}\n",
    **dict.fromkeys(
        ("message_api", "posting_api", "ticket_api"),
        "DEFAULT_STATE = {'ids': set(), 'n': -1, 'keyed': {1: ('x',), (2, 3): {'y'}}}\n",
    ),
    "trading_bot": "DEFAULT_STATE = {}\nclass TradingBot:\n"
    " def get_symbol_by_name(self):\n  symbol_map: dict = {'A': 'B'}\n"
    " def get_available_stocks(self):\n  sector_map = {'T': ['A']}\n",
    "travel_booking": "DEFAULT_STATE = {}\nclass TravelAPI:\n"
    " def get_flight_cost(self):\n  base_costs = {('A', 'B'): 1}\n"
    " def list_all_airports(self):\n  return ['A']\n"
    " def compute_exchange_rate(self):\n  exchange_rates = {('A', 'B'): 0.5}\n"
    " def get_nearest_airport_by_city(self):\n  airport_map = {'C': 'A'}\n"
    " def contact_customer_support(self):\n  x = 1\n  return {'m': 'hi'}\n",
    "vehicle_control": "DEFAULT_STATE = {}\nclass VehicleControlAPI:\n"
    " def find_nearest_tire_shop(self):\n  return {'s': 't'}\n",
}


def code(folder):
    at = folder / "eval_checker" / "multi_turn_eval" / "func_source_code"
    at.mkdir(parents=True)
    for name, text in CODE.items():
        (at / f"{name}.py").write_text(text)
    return at


def test_constants_are_read_from_python_and_nothing_is_executed(tmp_path):
    code(tmp_path)
    tables, long = constants(Upstream(tmp_path, ["."], {}))
    assert long == {"LONG": ["a", {"__python__": "Ellipsis"}], "TEXTS": {"b": "cd"}}
    keyed = {"__pairs__": [[1, ["x"]], [[2, 3], {"__set__": ["y"]}]]}
    assert tables["message_api"] == [
        {
            "where": "",
            "name": "DEFAULT_STATE",
            "value": {"ids": {"__set__": []}, "n": -1, "keyed": keyed},
        }
    ]
    assert {"where": "TravelAPI.list_all_airports", "name": "return", "value": ["A"]} in tables[
        "travel_booking"
    ]


def test_a_copy_whose_python_is_otherwise_is_refused_with_what_it_lacks(tmp_path):
    at = code(tmp_path)
    (at / "math_api.py").write_text("class MathAPI:\n pass\n")
    with pytest.raises(SetupError, match=r"math_api\.py has no to_meters of MathAPI\.si_unit"):
        constants(Upstream(tmp_path, ["."], {}))
    (at / "long_context.py").write_text("LONG = open('x')\n")
    (at / "math_api.py").write_text(CODE["math_api"])
    with pytest.raises(SetupError, match=r"LONG: line 1: .* is no literal"):
        constants(Upstream(tmp_path, ["."], {}))


@pytest.mark.parametrize("version", ["V3", "V4"])
def test_the_verb_writes_four_domains_and_says_of_which_version(
    version, fixtures, tmp_path, capsys
):
    copy = fixtures / "data" / "bfcl" / version.lower()
    importing = ["import", "bfcl", "--from", str(copy), "--to", str(tmp_path / "out")]
    assert main([*importing, "--version", version, "--json"]) == 0
    domains = json.loads(capsys.readouterr().out)["domains"]
    assert all(Path(one["folder"]).is_dir() for one in domains)
    said = "\n".join(one["summary"] for one in domains)
    assert said.count("Tasks: test 200") == 4
    assert f"BFCL {version} multi-turn, miss_param ({version}, bfcl-eval " in said
    origin = json.loads((tmp_path / "out" / "base" / "origin.json").read_text())
    assert {file["version"].split(",")[0] for file in origin["files"].values()} == {version}
    assert len(origin["files"]) == 18
    other = {"V3": "V4", "V4": "V3"}[version]
    assert main([*importing, "--overwrite", "--version", other]) != 0
    assert f"has the entries of {version}, not of {other}" in capsys.readouterr().err
    assert main(importing) != 0
    assert "--overwrite" in capsys.readouterr().err


def test_options_of_other_benchmarks_are_refused(tmp_path, capsys):
    for given, said in (
        (["bfcl", "--domain", "retail"], "bfcl has no --domain"),
        (
            ["bfcl", "--version", "HEAD"],
            "bfcl has no version 'HEAD' to choose; versions: V3 and V4",
        ),
        (["tau1", "--version", "V3"], "tau1 has no version 'V3' to choose"),
        (["acebench", "--official-checker"], "--official-checker is for bfcl"),
    ):
        assert main(["import", *given, "--from", str(tmp_path), "--to", str(tmp_path)]) != 0
        assert said in capsys.readouterr().err


def test_a_copy_of_an_unknown_version_or_none_is_refused(fixtures, tmp_path):
    with pytest.raises(SetupError, match=r"has no BFCL_v4_multi_turn_base\.json and no"):
        write_domains(tmp_path, tmp_path / "out")
    copy = tmp_path / "copy"
    shutil.copytree(fixtures / "data" / "bfcl" / "v4", copy)
    file = copy / "possible_answer" / "BFCL_v4_multi_turn_base.json"
    file.chmod(0o644)
    copy.joinpath("possible_answer").chmod(0o755)
    file.write_text(file.read_text() + "\n")
    with pytest.raises(SetupError, match=r"known here: bfcl/v4/possible_answer/.*--accept-unknown"):
        write_domains(copy, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert len(write_domains(copy, tmp_path / "out", accept_unknown=True)) == 4
    file.write_text('{"id": "multi_turn_base_0", "ground_truth": "rm"}\n')
    with pytest.raises(
        SetupError, match=r"multi_turn_base\.json:1 and its answer: no entry of BFCL"
    ):
        write_domains(copy, tmp_path / "out2", accept_unknown=True)


def test_where_the_official_checker_is_not_tasks_are_refused_before_any_dialogue(
    fixtures, tmp_path, monkeypatch
):
    monkeypatch.setattr(official, "find_spec", lambda _name: None)
    write_domains(fixtures / "data" / "bfcl" / "v4", tmp_path, official_checker=True)
    with pytest.raises(
        SetupError, match=r"checker of BFCL V4 is not installed: pip install --no-de"
    ):
        load_domain(tmp_path / "base").tasks("test")


FAKE = """
def multi_turn_checker(model, gold, entry, category, name):
    from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils
    vars(multi_turn_utils)[name + "_kept_instance"] = model
    ASKED.append((model, gold, entry["id"], category))
    return {"valid": False, "error_type": "multi_turn:of_the_fake"}
ASKED = []
"""


@pytest.mark.anyio
async def test_the_official_checker_is_given_no_text_that_could_do_anything(
    fixtures, tmp_path, monkeypatch
):
    """It evaluates what it is given; here a fake keeps it, in place of the package."""
    at = tmp_path / "site" / "bfcl_eval" / "eval_checker" / "multi_turn_eval"
    at.mkdir(parents=True)
    for folder in (at, at.parent, at.parent.parent):
        (folder / "__init__.py").write_text("")
    (at / "multi_turn_checker.py").write_text(FAKE)
    (at / "multi_turn_utils.py").write_text("")
    (tmp_path / "site" / "bfcl_eval" / "data").mkdir()
    (tmp_path / "site" / "bfcl_eval" / "data" / "BFCL_v4_multi_turn_base.json").write_text("")
    for name in [name for name in sys.modules if name.startswith("bfcl_eval")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    write_domains(fixtures / "data" / "bfcl" / "v4", tmp_path / "out", official_checker=True)
    domain = load_domain(tmp_path / "out" / "base")
    task = domain.tasks("test")[0]
    hostile = "__import__('os').system('false')"
    made = (("cat", {"file_name": hostile}), (hostile, {}), ("cat", {f"a={hostile},b": 1}))
    calls = tuple(ToolCall(f"c{at}", name, given) for at, (name, given) in enumerate(made))
    said = iter([Message("assistant", "", calls), *[Message("assistant", "Done.")] * 9])

    class Agent:
        def act(self, history):
            return next(said)

    (episode,) = await play_agents(domain, [task], lambda *_: Agent())
    checker = sys.modules["bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker"]
    utils = sys.modules["bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils"]
    ((model, gold, entry, category),) = checker.ASKED
    safe = [f"cat(file_name={hostile!r})", official.NOTHING, official.NOTHING]
    assert model == [[safe], *[[]] * (len(task.turns) - 1)]
    assert (len(gold), entry, category) == (len(task.turns), task.id, "multi_turn_base")
    assert not [name for name in vars(utils) if name.endswith("_instance")]
    metric = next(m for m in episode.metrics if "official" in m.name)
    assert (metric.score, metric.reason) == (0.0, "multi_turn:of_the_fake")
    for name in [name for name in sys.modules if name.startswith("bfcl_eval")]:
        monkeypatch.delitem(sys.modules, name)


def test_an_aborted_dialogue_is_not_handed_to_the_official_checker(monkeypatch):
    monkeypatch.setattr(official, "_checker", lambda _version: pytest.fail)
    entry = Entry("multi_turn_base_0", [[]], {}, ["MathAPI"], [["add(a=1, b=2)"], []])
    verdict = official.official_verdict(entry, "v4", [[["add(a=1, b=2)"]]])
    assert verdict.error == "multi_turn:force_terminated"
