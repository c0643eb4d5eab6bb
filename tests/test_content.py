"""Whatever a dialogue or a reward follows from is in a domain's content, and nothing else is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from spec_files import spoil, write_all
from sql_files import write_sql_domain

from muarl.domain import files as domain_files
from muarl.domain import load_domain
from muarl.domain.content import changes
from muarl.errors import SpecError

SERVER = "tools:\n  command: [python3, ./server.py, --port, '1']\n  files: seed\n"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A shop with all that a domain may have beside it."""
    folder = tmp_path / "shop"
    (folder / "prices" / "by_land").mkdir(parents=True)
    write_all(folder)
    for name in ("prices/__init__.py", "prices/by_land/late.py", "stock.csv", "data.json"):
        (folder / name).write_text("old")
    (folder / "notes.yaml").write_text("version: 1\nprices: [1]\n")
    (folder / "linked.txt").symlink_to("stock.csv")
    return folder


def content(folder: Path) -> dict[str, object]:
    return load_domain(folder).shared_content


def episode_hash(folder: Path) -> str:
    domain = load_domain(folder)
    return domain.content_hash(domain.tasks("train")[0])


def changed(folder: Path, change: Callable[[], object]) -> list[str]:
    """What a change of a domain is called; its episodes' hash must tell as much."""
    before, hash_before = content(folder), episode_hash(folder)
    change()
    found = changes(before, content(folder))
    assert bool(found) == (episode_hash(folder) != hash_before)
    return found


@pytest.mark.parametrize(
    "file",
    [
        "tools.py",
        "prices/__init__.py",
        "prices/by_land/late.py",
        "data.json",
        "notes.yaml",
        "new/one.py",
        "new.bin",
        "tests/fixture.json",
    ],
)
def test_every_file_beside_a_domain_counts(file: str, shop: Path) -> None:
    old = (shop / file).exists()
    (shop / file).parent.mkdir(exist_ok=True)
    word = "changed" if old else "is new"

    def write() -> None:
        with (shop / file).open("a") as opened:
            opened.write("\nx = 1\n")

    assert changed(shop, write) == [f'files."{file}" {word}']


def test_what_is_gone_and_what_a_link_leads_to_count_too(shop: Path) -> None:
    assert changed(shop, (shop / "data.json").unlink) == ['files."data.json" is gone']
    assert changed(shop, lambda: (shop / "stock.csv").write_text("new")) == [
        'files."linked.txt" changed',
        'files."stock.csv" changed',
    ]


@pytest.mark.parametrize(
    "file",
    [
        "README.md",
        "license",
        ".hidden",
        ".git/HEAD",
        "__pycache__/tools.cpython-311.pyc",
        "node_modules/x/index.js",
        "test_tools.py",
        "tests/conftest.py",
        "run.yaml",
        "overlay.yaml",
        "schemas/run.v1.json",
        "out/spec.resolved.yaml",
        "out/episodes.journal",
        "runs/one/spec.resolved.yaml",
        "runs/episodes.jsonl",
        "venv/pyvenv.cfg",
        "venv/lib/x.py",
    ],
)
def test_what_no_dialogue_follows_from_does_not(file: str, shop: Path) -> None:
    for name, text in {
        "overlay.yaml": "# yaml-language-server: $schema=schemas/overlay.v1.json\nversion: 1\n",
        "out/spec.resolved.yaml": "",
        "runs/one/spec.resolved.yaml": "",
        "venv/pyvenv.cfg": "",
    }.items():
        (shop / name).parent.mkdir(parents=True, exist_ok=True)
        (shop / name).write_text(text)

    def write() -> None:
        (shop / file).parent.mkdir(parents=True, exist_ok=True)
        with (shop / file).open("a") as opened:
            opened.write("# more\n")

    assert changed(shop, write) == []


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("seed/graph.json", 'files."seed/graph.json" changed'),
        ("seed/.hidden", 'files."seed/.hidden" changed'),
        ("seed/README.md", 'files."seed/README.md" changed'),
        ("server.py", 'files."server.py" changed'),
    ],
)
def test_what_a_command_names_counts_whole(file: str, says: str, shop: Path) -> None:
    (shop / "seed").mkdir()
    for name in ("seed/graph.json", "seed/.hidden", "seed/README.md", "server.py"):
        (shop / name).write_text("old")
    spoil(shop / "domain.yaml", "tools:\n  python: tools.py:serve\n", SERVER)
    assert changed(shop, lambda: (shop / file).write_text("new")) == [says]


def test_a_server_that_lies_beside_the_domain_counts(shop: Path) -> None:
    (shop.parent / "server.py").write_text("old")
    server = SERVER.replace("./server.py", "../server.py").replace("  files: seed\n", "")
    spoil(shop / "domain.yaml", "tools:\n  python: tools.py:serve\n", server)
    assert changed(shop, lambda: (shop.parent / "server.py").write_text("new")) == [
        'files."../server.py" changed'
    ]


BOOKS = "CREATE TABLE books (id TEXT PRIMARY KEY, state TEXT NOT NULL"


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("domain.yaml", BOOKS, f"{BOOKS} CHECK (state <> '')", ["tables.books changed"]),
        ("domain.yaml", BOOKS, f"{BOOKS} DEFAULT 'in'", ["tables.books changed"]),
        (
            "domain.yaml",
            "    files:",
            "      CREATE VIEW away AS SELECT id FROM books WHERE state = 'out';\n    files:",
            ["tables.away is new"],
        ),
        (
            "domain.yaml",
            "    files:",
            "      CREATE UNIQUE INDEX one ON loans (book);\n    files:",
            ["tables.one is new"],
        ),
        ("domain.yaml", "    unordered: [loans]\n", "", ["world.sql.unordered: removed ['loans']"]),
        ("domain.yaml", "B1: {state: in}", "B1: {state: out}", ["base world.books changed"]),
        (
            "more.sql",
            "log (what TEXT)",
            "log (what TEXT, at TEXT)",
            ['files."more.sql" changed', "tables.log changed"],
        ),
        (
            "books.csv",
            "B2,out",
            "B2,in",
            ["base world.books changed", 'files."books.csv" changed'],
        ),
    ],
)
def test_every_part_of_a_world_in_sql_counts(
    file: str, old: str, new: str, says: list[str], tmp_path: Path
) -> None:
    write_sql_domain(tmp_path)
    found = changed(tmp_path, lambda: spoil(tmp_path / file, old, new))
    assert sorted(found) == sorted(says)


def test_the_same_domain_has_the_same_hash_wherever_and_whenever(shop: Path) -> None:
    expected = episode_hash(shop)
    copy = shop.parent / "elsewhere" / "copy"
    shutil.copytree(shop, copy, symlinks=True)
    for path in copy.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    asked = (
        "import sys; from muarl.domain import load_domain; d = load_domain(sys.argv[1]);"
        "print(d.content_hash(d.tasks('train')[0]))"
    )
    for seed in ("1", "2"):
        answer = subprocess.run(
            [sys.executable, "-c", asked, str(copy)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert answer.stdout.strip() == expected


def test_a_ring_of_links_a_dead_link_and_a_pipe_are_borne(shop: Path) -> None:
    (shop / "prices" / "ring").symlink_to("..", target_is_directory=True)
    (shop / "dead").symlink_to("nowhere")
    os.mkfifo(shop / "pipe")
    (shop / os.fsdecode(b"odd\xff.txt")).write_text("x")
    names = content(shop)["files"]
    assert isinstance(names, dict)
    assert {"dead", "pipe"}.isdisjoint(names)
    assert "odd\\udcff.txt" in names
    assert sum(name.endswith("data.json") for name in names) == 1


@pytest.mark.parametrize("limit", ["MAX_FILES", "MAX_BYTES"])
def test_a_folder_that_holds_too_much_is_refused_with_what_to_do(
    limit: str, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop / "models").mkdir()
    for number in range(9):
        (shop / "models" / f"{number}.bin").write_text("x" * 900)
    monkeypatch.setattr(domain_files, limit, 8 if limit == "MAX_FILES" else 4096)
    with pytest.raises(SpecError) as caught:
        content(shop)
    (problem,) = caught.value.problems
    assert problem.path == str(shop / "domain.yaml")
    assert "most of them in 'models'" in problem.message
    assert "give the domain a folder of its own" in problem.message
