"""The value of a declared secret is in no file of a run, and in nothing that is printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_input import InProcess
from spec_files import spoil

from muarl.cli.init import write

SECRET = 's3cr3t/\\planted"value'
SPELLINGS = (SECRET, SECRET.replace("\\", "\\\\").replace('"', '\\"'), "planted")


def test_no_file_and_no_word_of_a_run_holds_it(
    muarl: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OURS", SECRET)
    write(Path("shop"), "server")
    spoil(
        Path("shop/domain.yaml"),
        "  command: [python, server.py]",
        "  command: [python, server.py]\n  secrets: {THEIRS: OURS}",
    )
    # The server says it wherever it can: in descriptions, answers, errors and on stderr.
    server = Path("shop/server.py")
    spoil(server, '"description": function.__doc__', '"description": os.environ["THEIRS"]')
    spoil(server, "text, failed = str(error), True", 'text, failed = os.environ["THEIRS"], True')
    spoil(server, "import json", "import json\nimport os")
    spoil(
        server,
        "for line in sys.stdin:",
        'print(os.environ["THEIRS"], file=sys.stderr)\nfor line in sys.stdin:',
    )
    said = ""
    for command in (
        ["check", "shop"],
        ["check", "shop", "--json"],
        ["rollout", "shop/run.yaml", "--expert", "--episodes", "4", "--out", "out"],
        ["report", "out"],
        ["replay", "out"],
        ["export", "out", "--out", "out.jsonl"],
    ):
        ended = muarl(*command)
        said += ended.out + "\n".join(ended.lines)
    spoil(
        server, "for line in sys.stdin:", 'sys.exit(os.environ["THEIRS"])\nfor line in sys.stdin:'
    )
    ended = muarl("check", "shop")
    said += ended.out + "\n".join(ended.lines)
    assert "[secret]" in said
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "spec.resolved.yaml" for path in files)
    for spelled in SPELLINGS:
        assert spelled not in said
        for path in files:
            assert spelled.encode() not in path.read_bytes(), path
