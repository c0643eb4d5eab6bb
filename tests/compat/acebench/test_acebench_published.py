"""What the published solutions come to; the figures are those measured with the official code."""

from collections import Counter
from functools import partial

import pytest

from muarl.compat.acebench.entries import KINDS, LANGUAGES, entries, first_records
from muarl.compat.acebench.environment import Environment
from muarl.compat.acebench.initial import initial_world
from muarl.compat.acebench.score import end_to_end, mended, saved, strictly_end_to_end
from muarl.compat.acebench.solutions import solution
from muarl.compat.python_calls import NotCalls
from muarl.errors import RecordError


def played(folder, entry, messages):
    records = first_records(folder, entry.language)
    world = initial_world(entry.involved, entry.initial_config, entry.language, records)
    environment = Environment(world, entry.involved, entry.language, entry.kind)
    for message in messages:
        try:
            environment.respond(message)
        except NotCalls:  # such a message goes to the user
            continue
    return saved(world)


def test_published_solutions_reach_the_published_ends_as_often_as_measured(published):
    official, strict = Counter(), Counter()
    for language in LANGUAGES:
        for kind in KINDS:
            for entry in entries(published, language, kind).values():
                ends = [played(published, entry, stones) for stones in entry.milestones]
                official[language, kind] += any(end_to_end(end, entry.gold).valid for end in ends)
                sound = [[mended(stone) for stone in stones] for stones in entry.milestones]
                ends = [played(published, entry, stones) for stones in sound]
                strict[language, kind] += any(strictly_end_to_end(e, entry.gold) for e in ends)
    assert official == {
        ("en", "multi_turn"): 21,
        ("en", "multi_step"): 7,
        ("zh", "multi_turn"): 29,
        ("zh", "multi_step"): 11,
    }
    assert strict == {
        ("en", "multi_turn"): 29,
        ("en", "multi_step"): 12,
        ("zh", "multi_turn"): 29,
        ("zh", "multi_step"): 12,
    }


def test_with_what_they_lack_all_published_solutions_reach_their_ends(published):
    for language in LANGUAGES:
        records = first_records(published, language)
        for kind in KINDS:
            for entry in entries(published, language, kind).values():
                config = (entry.involved, entry.initial_config, language, records)
                _calls, reaches = solution(entry, partial(initial_world, *config))
                assert reaches, entry.id


def test_one_message_that_changes_nothing_solves_what_has_a_misspelt_class_but_not_strictly(
    published,
):
    for language in LANGUAGES:
        for kind in KINDS:
            group = entries(published, language, kind).values()
            ends = {
                entry.id: (played(published, entry, ["[nothing]"]), entry.gold) for entry in group
            }
            solved = [name for name, (end, gold) in ends.items() if end_to_end(end, gold).valid]
            assert solved == (["agent_multi_turn_7"] if kind == "multi_turn" else [])
            assert not any(strictly_end_to_end(end, gold) for end, gold in ends.values())


def test_missing_data_is_an_error_that_names_the_file(tmp_path):
    with pytest.raises(RecordError, match=r"data_agent_multi_turn\.json.*data_en"):
        entries(tmp_path, "en", "multi_turn")


@pytest.mark.parametrize("line", ["{", "[1]", '{"id": "a"}'])
def test_a_line_that_is_no_entry_is_an_error_with_its_place(tmp_path, line):
    (tmp_path / "data_en" / "possible_answer").mkdir(parents=True)
    (tmp_path / "data_en" / "data_agent_multi_step.json").write_text(line)
    (tmp_path / "data_en" / "possible_answer" / "data_agent_multi_step.json").write_text("")
    with pytest.raises(RecordError, match=r"data_agent_multi_step\.json:1"):
        entries(tmp_path, "en", "multi_step")
