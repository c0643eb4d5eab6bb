"""tau benches with everything behind an HTTP endpoint, from the command: judges of assertions, users by strategy."""

from __future__ import annotations

import json
import shutil
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from muarl.cli import main
from muarl.record import read_journal

USER_PY = '''\
raise SystemExit("executed")


class LLMUserSimulationEnv:
    def build_system_prompt(self, instruction):
        return f"""Be the customer.{instruction_display}"""


class ReactUserSimulationEnv:
    def build_system_prompt(self, instruction):
        return f"""Think, then be the customer.{instruction_display}"""


def verify(transcript, response):
    return f"""Is it good? {transcript} | {response}"""


def reflect(transcript, response):
    return f"""Say it better. {transcript} | {response}"""
'''
GRID = """\
version: 1
run: run.yaml
policies: {gold: {expert: {}}}
users: USERS
tasks: TASKS
trials: 1
"""
RUN = """\
version: 1
domain: DOMAIN
model: {tiny: {}}
user: {teller: {}}
rollout: {max_turns: 60, max_tokens: 4096, context_tokens: 40960}
eval: {split: test}
"""


@contextmanager
def endpoint(say):
    """A chat endpoint on loopback that says what `say` makes of the messages."""

    class Chat(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            message = {"role": "assistant", "content": say(asked["messages"])}
            body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *said):
            del said

    with ThreadingHTTPServer(("127.0.0.1", 0), Chat) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()


def evaluated(folder, domain, capsys, *, users, tasks):
    """`muarl eval` of a grid: what it printed of each user, and its episodes."""
    (folder / "run.yaml").write_text(RUN.replace("DOMAIN", str(domain)))
    said = GRID.replace("USERS", json.dumps(users)).replace("TASKS", str(tasks))
    (folder / "grid.yaml").write_text(said)
    out = folder / "out"
    assert (
        main(["eval", str(folder / "grid.yaml"), "--out", str(out), "--overwrite", "--json"]) == 0
    )
    cells = json.loads(capsys.readouterr().out)["cells"]
    return {c["user"]: c["summary"] for c in cells}, list(read_journal(out / "episodes.journal"))


def test_assertions_in_natural_language_are_judged_at_an_endpoint_with_evidence(
    fixtures, tmp_path, capsys
):
    played, asserting = 12, 3
    rulings, refused = Counter(), []

    def rule(messages):
        assert "You judge a dialogue" in messages[0]["content"]
        criterion, _, dialogue = messages[1]["content"].partition("\n\nDialogue:\n")
        rulings[criterion] += 1
        quoted = json.loads(dialogue.splitlines()[0])["text"]
        return json.dumps({"evidence": quoted, "reason": "It says so.", "holds": not refused})

    with endpoint(rule) as url:
        for name, judge in (("off", []), ("on", ["--judge-model", "m", "--judge-url", url])):
            say = ["import", "tau2", "--from", str(fixtures / "data" / "tau2")]
            say += ["--domain", "retail", "--to", str(tmp_path / name)]
            assert main([*say, *judge]) == 0
        capsys.readouterr()
        users = {"teller": {"teller": {}}}
        found = {}
        for name, folder in (("off", "off"), ("yes", "on"), ("no", "on")):
            refused += ["all"] if name == "no" else []
            at = tmp_path / folder / "retail"
            summaries, episodes = evaluated(tmp_path, at, capsys, users=users, tasks=played)
            found[name] = summaries["teller"], episodes
            assert bool(rulings) == (name != "off")
    summary, episodes = found["off"]
    caveat = "NL_ASSERTION was not judged and counts as 1"
    assert summary["caveats"] == {caveat: asserting}
    assert summary["success"]["value"] == 1.0
    summary, episodes = found["yes"]
    assert summary["caveats"] == {}
    assert summary["success"]["value"] == 1.0
    judged = [r for e in episodes for r in e.rewards if "judge" in r.name]
    assert (
        len({e.key.task_id for e in episodes for r in e.rewards if "judge" in r.name}) == asserting
    )
    assert all(result.evidence and "It says so." in result.reason for result in judged)
    summary, episodes = found["no"]
    assert summary["caveats"] == {}
    assert summary["success"]["value"] == pytest.approx((played - asserting) / played)
    assert sum(rulings.values()) == 2 * len(judged)


def test_users_of_all_four_strategies_speak_through_an_endpoint(fixtures, tmp_path, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(fixtures / "data" / "tau1", copy, copy_function=shutil.copyfile)
    (copy / "tau_bench" / "envs").mkdir(parents=True)
    (copy / "tau_bench" / "envs" / "user.py").write_text(USER_PY)
    say = ["import", "tau1", "--from", str(copy), "--domain", "airline"]
    assert main([*say, "--to", str(tmp_path / "imported")]) == 0
    capsys.readouterr()
    asked = Counter()

    def customer(messages):
        first, last = messages[0]["content"], messages[-1]["content"]
        if len(messages) == 1:
            kind, answer = "verify", "false" if "| Nonsense" in first else "It is: true"
            if first.startswith("Say it better. "):
                kind, answer = "reflect", "Reflection: no.\nResponse: Please do it."
            asked[kind] += 1
            return answer
        assert "Instruction: " in first
        thinks = first.startswith("Think")
        asked["react" if thinks else "plain"] += 1
        begins = last == "Hi! How can I help you today?"
        odd = begins and not thinks and asked["plain"] % 2
        text = "Nonsense" if odd else "Please do it."
        if not begins:
            text = "###STOP###"
        return f"Thought: hm.\nUser Response: {text}" if thinks else text

    names = ("llm", "react", "verify", "reflection")
    with endpoint(customer) as url:
        llm = {"base_url": url, "model": "m", "temperature": 0}
        users = {name: {"simulator": {"llm": llm, "strategy": name}} for name in names}
        domain = tmp_path / "imported" / "airline"
        summaries, episodes = evaluated(tmp_path, domain, capsys, users=users, tasks=4)
    assert {name: summaries[name]["success"]["value"] for name in names} == dict.fromkeys(
        names, 1.0
    )
    assert all(summaries[name]["faults"] == 0 for name in names)
    assert asked["react"] == 4 * 2
    assert asked["verify"] >= 2 * 4 * 2
    assert asked["reflect"] >= 1
    said = {reply.text for episode in episodes for reply in episode.replies()}
    assert said <= {"Please do it.", "Nonsense", "###STOP###"}
    by = {name: [e for e in episodes if f":{name}" in e.key.phase] for name in names}
    assert [len(by[name]) for name in names] == [4] * 4
    assert all(e.opening.text == "Please do it." for e in by["react"])
