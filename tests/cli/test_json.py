"""`--json` of every verb that reads, or a word in the documents on why there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bad_input import InProcess
from spec_files import spoil

from muarl.cli import VERBS, parser_of
from muarl.cli._reference import WITHOUT_JSON, cli_page


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_json_or_a_reason_in_the_documents(verb: str) -> None:
    has = "--json" in parser_of(verb)._option_string_actions
    assert has != (verb in WITHOUT_JSON)
    assert has or f"`{verb}` {WITHOUT_JSON[verb]}" in cli_page()


def test_json_is_alone_on_stdout_whatever_a_domain_prints(muarl: InProcess, run_file: Path) -> None:
    spoil(run_file, "episodes: 70", "episodes: 3")
    spoil(run_file.parent / "tools.py", "def serve", "print('loaded')\n\n\ndef serve")
    roll = ["rollout", run_file, "--expert", "--json"]
    found = {"rollout": muarl(*roll, "--out", "a"), "again": muarl(*roll, "--out", "b")}
    for words in (
        f"check {run_file}",
        f"check {run_file} --offline",
        "top a",
        "compare a b",
        "score a",
        "replay a",
        "users a",
        "export a --out a.jsonl",
        "export a --out b.jsonl --what samples --min-reward 0.5",
        "export a --out a.json --what inspect",
        "report a b --out page.html",
        "doctor",
        "overlap shop shop",
    ):
        found[words] = muarl(*words.split(), "--json")
    said = {}
    for words, ending in found.items():
        assert "Traceback" not in "\n".join(ending.lines), words
        said[words] = json.loads(ending.out)  # one object, and nothing else
    exported = said["export a --out a.jsonl"]
    assert exported == {
        "out": "a.jsonl",
        "what": "episodes",
        "format": "jsonl",
        "rows": 3,
        "left_out": {},
        "note": "",
    }
    assert said["export a --out a.json --what inspect"]["phase"] == "rollout"
    assert said["report a b --out page.html"] == {"report": "page.html", "runs": ["a", "b"]}
