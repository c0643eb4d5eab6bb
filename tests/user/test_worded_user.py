"""A scripted user in an LLM's words, and users that replay what people said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from oracle_desk import desk
from test_guards import CONTRACT, PERSONA, TASK
from test_knobs import user as scripted
from test_steered_user import SPEC, Model

from muarl.errors import RecordError, SpecError, UserError
from muarl.messages import ToolCall
from muarl.record import UserReply
from muarl.seeds import generator
from muarl.spec.user import UserSpec
from muarl.user import User
from muarl.user.replay import ReplayUser, read_replies
from muarl.user.worded import WordedUser


def worded(*answers: str, **knobs: float) -> tuple[WordedUser, Model]:
    model = Model(answers)
    assert TASK.user is not None
    inner = scripted(*TASK.user.requests, **knobs)
    her = WordedUser(inner, SPEC, persona=PERSONA, contract=CONTRACT, seed=1, client=model)
    return her, model


def talk(her: User, *heard: str) -> list[UserReply]:
    async def run() -> list[UserReply]:
        return [await her.open(), *[await her.reply(text) for text in heard]]

    return anyio.run(run)


def test_the_flow_decides_and_the_model_words_it() -> None:
    her, model = worded("Good day! W41 should go to Rome.", "Indeed.", "And cancel W42 for me.")
    opening, yes, following = talk(her, "Send W41 to Rome, ok?", "Done.")
    assert (opening.text, opening.act) == ("Good day! W41 should go to Rome.", "open")
    assert (yes.text, yes.act) == ("Indeed.", "confirm")
    assert (following.text, following.act) == ("And cancel W42 for me.", "next")
    assert "Curt" in model.asked[0][0].content
    assert "Send W41 to Rome, ok?" in model.asked[1][1].content


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ("Send W41, please.", "untold_fact"),
        ("Send W41 to Rome, my mail is ann@b.net.", "leak"),
        ("Send W41 to Rome, not W99.", "invented_fact"),
        ("How can I help you with W41 to Rome?", "role_flip"),
        ("", "format"),
        ("Send W41 to Rome. ###STOP###", "format"),
        ("Send W41 to Rome. " + "Please. " * 100, "format"),
    ],
)
def test_a_wording_that_tells_other_than_the_flow_is_asked_for_again(bad: str, kind: str) -> None:
    her, _ = worded(bad, "W41 to Rome, please.")
    (opening,) = talk(her)
    assert (opening.text, opening.breaches) == ("W41 to Rome, please.", (kind,))


def test_after_all_tries_she_says_the_scripts_own_words() -> None:
    her, model = worded("nonsense about W99")
    (opening,) = talk(her)
    (plain,) = talk(scripted(*TASK.user.requests))  # type: ignore[union-attr]
    assert (opening.text, opening.breaches) == (plain.text, ("untold_fact",) * 3)
    assert len(model.asked) == 3


def test_silence_and_slips_of_the_keys_are_left_as_they_are() -> None:
    her, model = worded("W41 to Rome.", silence=1.0)
    assert talk(her, "Well?")[1].text == "..."
    assert len(model.asked) == 1
    her, model = worded("W41 to Rome.", typos=1.0)
    (opening,) = talk(her)
    assert opening.knobs == ("typos",)
    assert not model.asked


def test_what_she_did_on_her_device_stays_in_the_reply() -> None:
    class Acting:
        async def open(self) -> UserReply:
            return UserReply("cancel W42", act="open", calls=[ToolCall("1", "look", {})])

    her, _ = worded("Please cancel W42.")
    her._scripted = Acting()  # type: ignore[assignment]
    opening = talk(her)[0]
    assert (opening.text, [call.name for call in opening.calls]) == ("Please cancel W42.", ["look"])


# --- replay ---------------------------------------------------------------------------------------


def dialogue(task: str, *lines: tuple[str, str], **more: Any) -> str:
    said = [{"speaker": speaker, "text": text} for speaker, text in lines]
    return json.dumps({"id": "p", "task": task, "lines": said, **more})


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.jsonl"
    path.write_text(
        dialogue("a", ("agent", "Welcome."), ("user", "Hi."), ("user", "W1."), ("agent", "?"),
                 ("user", "Yes."), ("agent", "Done."), ("user", "Bye."), reward=1)
        + "\n\n" + dialogue("a", ("user", "Only this.")) + "\n" + dialogue("b", ("user", "B.")) + "\n"
    )  # fmt: skip
    return path


def test_a_recorded_person_says_what_she_said_and_leaves(people: Path) -> None:
    first, short = read_replies(people)["a"]
    her = ReplayUser([first], generator(0))
    assert [(r.text, r.stop, r.act) for r in talk(her, "whatever", "else")] == [
        *(("Hi.\nW1.", False, ""), ("Yes.", False, ""), ("Bye.", True, "stop"))
    ]
    with pytest.raises(UserError, match="recorded dialogue is over"):
        talk(ReplayUser([first], generator(0)), *["x"] * 3)
    assert [(r.text, r.stop) for r in short] == [("Only this.", False), ("", True)]


def test_a_recorded_file_may_begin_with_a_byte_order_mark(people: Path) -> None:
    read = read_replies(people)
    people.write_bytes(b"\xef\xbb\xbf" + people.read_bytes())
    assert read_replies(people) == read


def test_which_of_a_tasks_dialogues_is_seeded_L5(people: Path) -> None:
    recorded = read_replies(people)["a"]
    drawn = [talk(ReplayUser(recorded, generator(seed)))[0].text for seed in range(20)]
    assert {*drawn} == {"Hi.\nW1.", "Only this."}
    assert drawn == [talk(ReplayUser(recorded, generator(seed)))[0].text for seed in range(20)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "2: not a dialogue"),
        ('{"task": "a"}', "2: not a dialogue.*lines"),
        ('{"task": "a", "lines": [{"speaker": "dog", "text": ""}]}', "2: not a dialogue"),
        ('{"task": "a", "lines": [{"speaker": "agent", "text": "x"}]}', "2: nobody speaks"),
        ("[" * 100_000, "2: not a dialogue"),
    ],
)
def test_a_line_that_is_no_dialogue_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "people.jsonl"
    path.write_text(dialogue("a", ("user", "Hi.")) + "\n" + line)
    with pytest.raises(RecordError, match=message):
        read_replies(path)
    with pytest.raises(RecordError, match="cannot be read"):
        read_replies(tmp_path / "none.jsonl")


# --- a domain's users -----------------------------------------------------------------------------


def made(kind: dict[str, Any], persona: str = "plain") -> User:
    task = desk().tasks("train")[1]
    who = UserSpec.model_validate(kind, strict=True)  # as files are
    return desk().user(who, task.model_copy(update={"id": "a"}), persona, seed=3)


ENDPOINT = {"base_url": "http://127.0.0.1:1/v1", "model": "tiny"}


def test_a_domain_makes_every_kind_of_user(people: Path) -> None:
    kinds = {
        "scripted": {},
        "llm": {**ENDPOINT, "candidates": 5, "guards": ["leak"], "knobs": {"unsure": 0.5}},
        "worded": {"llm": ENDPOINT, "knobs": {"typos": 0.1}},
        "replay": {"file": str(people)},
    }
    names = {kind: type(made({kind: spec})).__name__ for kind, spec in kinds.items()}
    assert names == {
        "scripted": "ScriptedUser",
        "llm": "LlmUser",
        "worded": "WordedUser",
        "replay": "ReplayUser",
    }


def test_what_a_kind_lacks_is_a_problem_of_the_spec(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        made({"replay": {"file": str(tmp_path / "none.jsonl")}})
    other = tmp_path / "other.jsonl"
    other.write_text(dialogue("b", ("user", "Hi.")))
    with pytest.raises(SpecError, match="no dialogue of task 'a'; record one"):
        made({"replay": {"file": str(other)}})
    task = desk().tasks("train")[0].model_copy(update={"user": None})
    who = UserSpec.model_validate({"llm": {**ENDPOINT, "knobs": {"unsure": 0.5, "typos": 0.1}}})
    with pytest.raises(SpecError, match="knobs unsure of an LLM user need the domain's `user`"):
        desk().user(who, task, "plain", seed=0)
