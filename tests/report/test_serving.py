"""The server of `muarl view`: who may ask, what it finds, and that it follows a run."""

from __future__ import annotations

import json
import socket
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anyio
import pytest
from synthetic_run import EpisodeMaker, make_run, make_tokenizer
from yarl import URL

from muarl.cli import main
from muarl.errors import RecordError, SetupError
from muarl.messages import ToolResult
from muarl.record import read_journal
from muarl.record.journal import JournalWriter
from muarl.report.index import EpisodeIndex, Query
from muarl.report.serving import open_view


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("view") / "run", iterations=3, tasks=6, group=4)


@asynccontextmanager
async def asking(run):
    """Within the block `ask(path, **headers)` gives status, headers and body."""
    async with open_view(run) as address, aiohttp.ClientSession() as session:

        async def ask(path: str = "", method: str = "GET", **headers: str) -> tuple[int, Any, str]:
            url = path if path.startswith("http") else address + path
            # Paths go out as they are written, dots and all.
            async with session.request(
                method, URL(url, encoded=True), headers=headers, allow_redirects=False
            ) as answer:
                return answer.status, answer.headers, await answer.text()

        ask.address = address  # type: ignore[attr-defined]
        while json.loads((await ask("run"))[2])["progress"] < 1:
            pass  # the next question waits for its answer
        yield ask


def test_only_who_has_the_address_and_names_this_host_is_answered(run):
    async def go() -> None:
        async with asking(run) as ask:
            port = ask.address.split(":")[2].split("/")[0]
            base = f"http://127.0.0.1:{port}/"
            assert (await ask())[0] == 200
            assert (await ask(Host=f"localhost:{port}"))[0] == 200
            for host in (
                "evil.test",
                f"evil.test:{port}",
                "127.0.0.1",
                f"127.0.0.1.evil.test:{port}",
            ):
                assert (await ask(Host=host))[0] == 421, host
            for path in (
                "",
                "run",
                "episodes",
                "x" * 32 + "/run",
                "../" + ask.address[-33:-1] + "x/",
            ):
                assert (await ask(base + path))[0] == 404, path
            for site in ("cross-site", "same-site"):
                assert (await ask("run", **{"Sec-Fetch-Site": site}))[0] == 403
            for method in ("POST", "PUT", "DELETE", "OPTIONS"):
                assert (await ask("run", method))[0] == 405
            for path in ("", "run", "nothing", "episode?id=none"):
                headers = (await ask(path))[1]
                assert headers["X-Content-Type-Options"] == "nosniff"
                assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
                assert headers["Cache-Control"] == "no-store"
                assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
                assert "Access-Control-Allow-Origin" not in headers

    anyio.run(go)


@pytest.mark.parametrize(
    "asked",
    [
        b"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
        b"GET http://127.0.0.1:PORT/run HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nHost: evil.test\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"CONNECT evil.test:443 HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
        b"\x16\x03\x01\x00\xa5\r\n\r\n",
    ],
)
def test_odd_requests_are_refused_and_the_next_is_answered(run, asked):
    async def go() -> None:
        async with asking(run) as ask:
            port = int(ask.address.split(":")[2].split("/")[0])
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(asked.replace(b"PORT", str(port).encode()))
                with anyio.fail_after(60):
                    answer = await stream.receive()
            assert answer.split(b" ")[1] in (b"400", b"403", b"404", b"405", b"421"), answer
            assert (await ask("run"))[0] == 200

    anyio.run(go)


def test_an_episode_is_opened_before_all_of_the_journal_is_read(run, monkeypatch):
    monkeypatch.setattr("muarl.report.index.AT_ONCE", 2)
    key = list(read_journal(run / "episodes.journal"))[-1].key

    async def go() -> tuple[int, int]:
        async with open_view(run) as address, aiohttp.ClientSession() as session:
            found = await session.get(address + "episode", params={"id": str(key)})
            missing = await session.get(address + "episode", params={"id": "train/0/none/0"})
            return found.status, missing.status

    assert anyio.run(go) == (200, 404)


@pytest.mark.parametrize("torn", [1, 40])
def test_a_journal_with_a_torn_tail_is_read_to_its_end(tmp_path, torn):
    folder = make_run(tmp_path / "run", iterations=1, tasks=2, group=1)
    journal = folder / "episodes.journal"
    journal.write_bytes(journal.read_bytes()[:-torn])

    async def go() -> Any:
        async with asking(folder) as ask:
            return json.loads((await ask("run"))[2])

    with_tail = anyio.run(go)
    assert (with_tail["progress"], with_tail["problem"]) == (1.0, "")
    assert with_tail["facets"]["total"] == len(list(read_journal(journal)))


def test_it_listens_on_the_loopback_only_and_closes(run):
    async def go() -> str:
        async with open_view(run) as address:
            assert address.startswith("http://127.0.0.1:")
            port = int(address.split(":")[2].split("/")[0])
            others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), port)}
            for other in others - {"127.0.0.1", "::1"}:
                with socket.socket() as knocking:
                    knocking.settimeout(2)
                    assert knocking.connect_ex((other, port)) != 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        return address

    first, second = anyio.run(go), anyio.run(go)
    assert first.rsplit("/", 2)[1] != second.rsplit("/", 2)[1]


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        ({"phase": "train"}, lambda row: row["phase"] == "train"),
        ({"verdict": "failed"}, lambda row: row["verdict"] == "failed"),
        ({"persona": "withholds"}, lambda row: row["persona"] == "withholds"),
        ({"iteration": 2}, lambda row: row["iteration"] == 2),
        ({"least": 1}, lambda row: row["reward"] == 1),
        ({"most": 0.5}, lambda row: row["reward"] == 0),
        ({"above": "above"}, lambda row: row["above"] > 0),
        ({"above": "below"}, lambda row: row["above"] < 0),
        ({"above": "level"}, lambda row: row["above"] == 0),
        ({"task": "cancel-003"}, lambda row: row["task"] == "cancel-003"),
        ({"text": "CANCEL-003 lamp"}, lambda row: row["task"] == "cancel-003"),
        ({"tool": "cancel_order", "phase": "train"}, lambda row: row["turns"] > 3),
    ],
)
def test_episodes_are_found_by(run, tmp_path, asked, holds):
    index = EpisodeIndex(run / "episodes.journal", tmp_path / "index")
    while index.refresh():
        pass
    total, rows = index.find(Query(**asked), 0, 1000)
    assert total == len(rows) > 0
    assert all(map(holds, rows))
    everything = index.find(Query(), 0, 1000)[1]
    others = [row for row in everything if row not in rows]
    assert others
    if "text" not in asked and "tool" not in asked:
        assert not any(holds(row) for row in others if row["above"] is not None)
    index.close()


def test_a_task_is_found_whatever_the_case_of_its_letters(tmp_path):
    maker = EpisodeMaker(make_tokenizer(tmp_path / "tokenizer.json"), 0, " \u00c9T\u00c9")
    with JournalWriter(tmp_path / "episodes.journal") as journal:
        journal.append(maker.make("train", 0, 1, 0, 0.5))
    index = EpisodeIndex(tmp_path / "episodes.journal", tmp_path / "index")
    assert index.refresh()
    for task in ("\u00e9t\u00e9", "\u00c9T\u00c9", "Cancel-001"):
        assert index.find(Query(task=task), 0, 10)[0] == 1
    index.close()


def test_a_tool_whose_name_a_model_made_up_is_found(tmp_path):
    maker = EpisodeMaker(make_tokenizer(tmp_path / "tokenizer.json"), 0)
    names = ["two\nlines", "\x00", "", "\u00e9"]
    with JournalWriter(tmp_path / "episodes.journal") as journal:
        for number, name in enumerate(names):
            episode = maker.make("train", 0, number, 0, 0.0)
            for turn in episode.turns:
                turn.results = [ToolResult("1", name, "") for _ in turn.results]
            journal.append(episode)
    index = EpisodeIndex(tmp_path / "episodes.journal", tmp_path / "index")
    assert index.refresh()
    assert index.facets()["tool"] == sorted([*filter(None, names), "(unreadable)"])
    for name in index.facets()["tool"]:
        assert index.find(Query(tool=name), 0, 10)[0] == 1
    index.close()


def test_orders_and_pages_of_what_is_found(run, tmp_path):
    index = EpisodeIndex(run / "episodes.journal", tmp_path / "index")
    while index.refresh():
        pass
    rows = index.find(Query(), 0, 1000)[1]
    assert rows[0]["phase"] == "eval:final:1"
    assert index.find(Query(), 5, 7)[1] == rows[5:12]
    longest = [row["turns"] for row in index.find(Query(order="longest"), 0, 1000)[1]]
    assert longest == sorted(longest, reverse=True)
    against = [row["above"] for row in index.find(Query(order="below"), 0, 1000)[1]]
    known = [value for value in against if value is not None]
    assert against == sorted(known) + [None] * (len(against) - len(known))
    index.close()


def test_an_index_follows_its_journal_and_begins_anew_with_it(tmp_path):
    maker = EpisodeMaker(make_tokenizer(tmp_path / "tokenizer.json"), 0)
    path = tmp_path / "episodes.journal"
    index = EpisodeIndex(path, tmp_path / "index")
    assert not index.refresh()
    assert index.facets()["total"] == 0

    def write(count: int) -> None:
        with JournalWriter(path) as journal:
            for n in range(count):
                journal.append(maker.make("train", 0, n, 0, 0.5))

    write(3)
    assert index.refresh()
    assert not index.refresh()
    write(5)  # the first three again: of equal keys the last counts
    assert index.refresh()
    assert index.facets()["total"] == 5
    start, row = index.place("train/0/cancel-001/0")
    assert (start > 0, row["task"]) == (True, "cancel-001")
    path.unlink()
    write(1)
    assert index.refresh()
    assert index.facets()["total"] == 1
    with pytest.raises(RecordError, match="no episode 'train/0/cancel-004/0'"):
        index.place("train/0/cancel-004/0")
    index.close()


def test_an_index_begins_anew_with_a_longer_journal_of_another_run(tmp_path):
    path = tmp_path / "episodes.journal"

    def write(seed: int, number: int) -> None:
        path.unlink(missing_ok=True)
        maker = EpisodeMaker(make_tokenizer(tmp_path / "model" / "tokenizer.json"), seed)
        with JournalWriter(path) as journal:
            for task in range(number):
                journal.append(maker.make(f"phase-{seed}", 0, task, 0, 0.5))

    write(1, 2)
    index = EpisodeIndex(path, tmp_path / "index.sqlite")
    assert index.refresh()
    write(2, 9)
    assert index.refresh()
    assert index.facets()["phase"] == ["phase-2"]
    assert index.facets()["total"] == 9
    index.close()


def test_an_episode_comes_with_its_tokens_its_group_and_its_task_elsewhere(run):
    async def go() -> dict[str, Any]:
        async with asking(run) as ask:
            status, _, body = await ask("episode?id=train%2F1%2Fcancel-002%2F3")
            assert status == 200
            return json.loads(body)

    found = anyio.run(go)
    assert found["row"]["id"] == found["episode"]["id"] == "train/1/cancel-002/3"
    assert [row["sample"] for row in found["group"]] == [0, 1, 2, 3]
    assert [row["iteration"] for row in found["across"]] == [0, 2]
    assert found["episode"]["advantages"][:2] == [0.5, -0.5]
    sample = found["samples"][0]
    assert len(sample["logprobs"]) == sum(end - start for start, end, _ in sample["spans"])
    assert set(map(str, sample["ids"])) == set(found["tokens"])


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("episodes?colour=red", 400, "episodes are looked for by phase, verdict"),
        ("episodes?iteration=x", 400, "iteration"),
        ("episodes?offset=-1", 400, "offset must be a whole number, got '-1'"),
        ("episodes?limit=" + "9" * 40, 400, "limit must be a whole number"),
        ("episode", 400, "say which episode"),
        ("episode?id=nobody", 404, "no episode 'nobody'"),
        ("elsewhere", 404, "Not Found"),
    ],
)
def test_what_cannot_be_answered_says_why(run, path, status, words):
    async def go() -> None:
        async with asking(run) as ask:
            found, headers, body = await ask(path)
            assert found == status
            assert headers["Content-Type"].startswith("application/json")
            assert words in json.loads(body)["error"]

    anyio.run(go)


def test_a_damaged_journal_is_told_and_what_is_sound_is_served(tmp_path):
    run = make_run(tmp_path / "run", iterations=1, tasks=2, group=1)
    data = bytearray((run / "episodes.journal").read_bytes())
    data[40] ^= 1
    (run / "episodes.journal").write_bytes(data)

    async def go() -> None:
        async with open_view(run) as address, aiohttp.ClientSession() as session:
            with anyio.fail_after(60):
                while True:
                    async with session.get(address + "run") as answer:
                        found = await answer.json()
                    if found["problem"]:
                        break
                    await anyio.sleep(0.01)
        assert "damaged from byte" in found["problem"]

    anyio.run(go)


def test_on_trio_it_says_why_not(run):
    async def go() -> None:
        async with open_view(run):
            pass

    with pytest.raises(SetupError, match="asyncio only"):
        anyio.run(go, backend="trio")


def test_a_folder_that_is_no_run_and_a_port_that_is_taken_are_told(run, tmp_path, capsys):
    assert main(["view", str(tmp_path / "nowhere")]) == 2
    assert "no such run folder" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["view", str(run), "--port", str(port)]) != 0
    assert "choose another with --port" in capsys.readouterr().err
