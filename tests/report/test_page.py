from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_run import make_run

from muarl.cli import report as report_verb
from muarl.errors import MuarlError, RecordError, UsageError
from muarl.report import write_report
from muarl.report.inline import inline_json
from muarl.report.page import about
from muarl.report.run_folder import read_run_folder

HOSTILE = (
    "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=2>"
    "<!--<script>{{script}}{{data}}\u2028&lt;'\"\\"
)


class Elements(HTMLParser):
    """Every element of a page, with the text of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[int, str] = {}
        self._inside = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self._inside = True

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        if self._inside:
            at = len(self.found) - 1
            self.text[at] = self.text.get(at, "") + data

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [
            (attributes, self.text.get(i, ""))
            for i, (name, attributes) in enumerate(self.found)
            if name == tag
        ]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(
        tmp_path_factory.mktemp("hostile") / "run", iterations=2, tasks=6, group=2, hostile=HOSTILE
    )


@pytest.fixture(scope="module")
def page(run):
    return Elements(write_report(run).read_text(encoding="utf-8"))


def test_text_of_the_run_makes_no_element(page):
    ids = [attributes.get("id") for attributes, _ in page.of("script")]
    assert ids[:2] == ["data", None]
    assert all(re.fullmatch(r"(dialogues|tokens)-0-\d", name or "") for name in ids[2:])
    assert page.of("img") == []
    ((_, title),) = page.of("title")
    assert title == f"desk{HOSTILE}, seed 3 · muarl report"


def test_text_of_the_run_arrives_unchanged(page):
    (data,) = json.loads(page.of("script")[0][1])["runs"]
    assert data["run"]["domain"] == f"desk{HOSTILE}"
    packed = base64.b64decode(page.of("script")[2][1])
    assert json.loads(gzip.decompress(packed))[0]["opening"]["text"].endswith(HOSTILE)
    assert data["systems"][0].endswith(HOSTILE)
    assert HOSTILE in data["tokens"].values()
    assert data["iterations"][0]["note"] == HOSTILE


def test_the_policy_allows_this_script_and_style_and_nothing_else(page):
    ((policy, _),) = [m for m in page.of("meta") if "http-equiv" in m[0]]
    rules = dict(rule.strip().split(" ", 1) for rule in policy["content"].split(";"))

    def source(text):
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    assert rules == {
        "default-src": "'none'",
        "script-src": source(page.of("script")[1][1]),
        "style-src": source(page.of("style")[0][1]),
        "img-src": "data:",
        "connect-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }


def test_the_page_points_nowhere(page):
    addresses = [
        value
        for _, attributes in page.found
        for name, value in attributes.items()
        if name in ("src", "href", "action", "srcset", "data")
    ]
    assert sorted(addresses) == ["#page", "data:,"]


@settings(max_examples=60)
@given(
    st.recursive(
        st.text() | st.integers(-(2**53), 2**53),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_inlined_json_holds_no_markup_and_reads_back(value):
    text = inline_json(value)
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == value


def test_the_same_run_gives_the_same_page(run, tmp_path):
    first = write_report(run, tmp_path / "one.html").read_bytes()
    assert first == write_report(run, tmp_path / "two.html").read_bytes()


def test_the_page_names_commands_that_find_the_run_from_where_it_was_written(tmp_path, monkeypatch):
    make_run(tmp_path / "runs" / "my run", iterations=1, tasks=1, group=1)
    monkeypatch.chdir(tmp_path)
    page = write_report(Path("runs/my run")).read_text()
    data = json.loads(Elements(page).of("script")[0][1])["runs"][0]
    assert (data["run"]["name"], data["run"]["path"]) == ("my run", "'runs/my run'")
    assert "muarl users ${data.run.path} does" in page
    assert "muarl view ${run.run.path}" in page


def test_a_run_that_stopped_in_its_cold_start_is_reported(tmp_path):
    folder = make_run(tmp_path / "run", iterations=1, tasks=1, group=1)
    (folder / "episodes.journal").unlink()
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(lines[:5]))
    data = json.loads(Elements(write_report(folder).read_text()).of("script")[0][1])["runs"][0]
    assert len(data["cold_start"]) == 5
    assert data["run"]["notices"] == ["episodes.journal is missing: no episode is shown."]


def test_without_a_tokenizer_the_page_says_that_tokens_are_ids(tmp_path):
    folder = make_run(tmp_path / "run", iterations=1, tasks=1, group=1)
    (folder / "model" / "tokenizer.json").unlink()
    data = json.loads(Elements(write_report(folder).read_text()).of("script")[0][1])["runs"][0]
    assert data["tokens"] == {}
    assert data["run"]["notices"] == ["its tokenizer is missing: tokens are shown as ids."]


def test_a_damaged_journal_is_an_error_and_leaves_no_half_page(tmp_path):
    folder = make_run(tmp_path / "run", iterations=1, tasks=1, group=1)
    (folder / "episodes.journal").write_bytes(b"not a journal at all")
    with pytest.raises(RecordError, match=r"episodes\.journal"):
        write_report(folder)
    assert not list(folder.glob("report.html*"))


def test_a_place_that_cannot_be_written_is_named_and_nothing_is_left(run, tmp_path):
    (tmp_path / "nowhere").write_text("a file")
    with pytest.raises(MuarlError, match=r"nowhere.report.html: cannot be written"):
        write_report(run, tmp_path / "nowhere" / "report.html")
    assert [entry.name for entry in tmp_path.iterdir()] == ["nowhere"]


@pytest.mark.parametrize("out", [None, "elsewhere.html"])
def test_the_verb_prints_where_the_report_is(run, tmp_path, capsys, out):
    parser = argparse.ArgumentParser()
    report_verb.add_arguments(parser)
    target = tmp_path / out if out else run / "report.html"
    arguments = [str(run)] + (["--out", str(target)] if out else [])
    assert report_verb.run(parser.parse_args(arguments)) == 0
    assert capsys.readouterr().out == f"{target}\n"
    assert target.stat().st_size > 10_000


def test_several_runs_are_told_apart_and_so_are_their_settings(run, tmp_path):
    other = make_run(tmp_path / "b" / "run", iterations=1, tasks=2, group=1)
    (other / "spec.resolved.yaml").write_text("version: 1\ndomain: x\nseed: 4\n")
    page = Elements(write_report([run, other], tmp_path / "both.html").read_text())
    data = json.loads(page.of("script")[0][1])
    names = [one["run"]["name"] for one in data["runs"]]
    assert names[1] == "b/run"
    assert names[0].endswith("/run")
    assert {"path": "seed", "values": ["3", "4"]} in data["settings"]
    assert data["trainings"] == []
    assert {"path": "version", "values": ["1", "1"]} not in data["settings"]


def test_several_runs_need_a_place_and_one_run_is_not_two(run, tmp_path):
    with pytest.raises(UsageError, match="add --out FILE"):
        write_report([run, run])
    with pytest.raises(UsageError, match="given twice"):
        write_report([run, run], tmp_path / "twice.html")


def test_a_run_that_was_copied_began_when_its_log_says(tmp_path):
    folder = make_run(tmp_path / "run", iterations=1, tasks=2, group=1)
    (folder / "versions.json").write_text("{}")
    begun = {"at": "2026-01-07T10:15:02.114Z", "event": "run_begins"}
    (folder / "log.jsonl").write_text(json.dumps(begun) + "\n{torn")
    assert about(read_run_folder(folder), "")["when"] == "2026-01-07 10:15 UTC"


@pytest.mark.parametrize("line", ["", "{torn", "[1]", '{"at": 3}', '{"at": "yesterday"}', "\udcff"])
def test_a_log_that_says_no_time_is_passed_over(tmp_path, line):
    folder = make_run(tmp_path / "run", iterations=1, tasks=2, group=1)
    (folder / "versions.json").write_text("{}")
    (folder / "log.jsonl").write_bytes(line.encode("utf-8", "surrogateescape"))
    os.utime(folder / "spec.resolved.yaml", (0, 0))
    assert about(read_run_folder(folder), "")["when"] == "1970-01-01 00:00 UTC"
