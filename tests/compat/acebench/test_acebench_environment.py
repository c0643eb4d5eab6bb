import inspect
import json

import pytest
from acebench_kit import EVERYTHING, begun
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.compat.acebench.api import tools_of
from muarl.compat.acebench.environment import CLASSES, NO_QUESTIONS
from muarl.compat.acebench.initial import initial_world
from muarl.compat.python_calls import NotCalls
from muarl.world import plain

CHARACTERS = list("Error during execution: {str(e)}")


def says(environment, text):
    return environment.respond(text).message


def test_a_method_of_several_classes_runs_on_each():
    environment = begun(wifi=False)
    assert len(says(environment, "[turn_on_wifi()]")) == 1
    device = [name for name in EVERYTHING if name != "Travel"]
    assert [environment.world[name]["wifi"] for name in device] == [True] * 4


def test_without_a_configuration_the_device_is_logged_in_without_wifi():
    world = initial_world(["FoodPlatform"], {"Baspi": {"wifi": True}}, "zh", {})
    assert (world["FoodPlatform"]["wifi"], world["FoodPlatform"]["logged_in"]) == (False, True)


@pytest.mark.parametrize(
    "call", ["turn_on_wifi(x=1)", "delete_message()", "f()", "g.turn_on_wifi()"]
)
def test_in_multi_turn_an_error_is_one_text_in_characters_and_drops_earlier_results(call):
    environment = begun("multi_turn")
    answer = environment.respond(f"[check_balance(user_name='Eve'), {call}]")
    if call == "f()":  # a name that nobody has: the result before it once more
        assert answer.message == [500.0, 500.0]
    else:
        assert (answer.message, answer.ran) == (CHARACTERS, False)


def test_in_multi_step_an_error_is_the_result_of_its_call():
    said = says(
        begun(), "[f(), turn_on_wifi(x=1), delete_message(), check_balance(user_name='Eve')]"
    )
    assert "cannot access local variable 'func_call_result'" in said[0]
    assert said[1].endswith("BaseApi.turn_on_wifi() got an unexpected keyword argument 'x'")
    assert "MessageApi.delete_message() missing 1 required positional argument" in said[2]
    assert said[3] == 500.0


def test_a_message_that_is_no_list_of_calls_is_told_off_or_goes_to_the_user():
    answer = begun("multi_step").respond("Which one?")
    assert (answer.message, answer.ran) == (NO_QUESTIONS, False)
    with pytest.raises(NotCalls):
        begun("multi_turn").respond("Which one?")


def test_a_result_shows_what_later_calls_of_its_message_changed():
    text = (
        "[login_food_platform(username='Eve', password='password123'), view_logged_in_users(), "
        "login_food_platform(username='Frank', password='password456')]"
    )
    assert says(begun(), text)[1]["logged_in_users"] == ["Eve", "Frank"]


def test_what_was_written_before_an_error_stays_written():
    environment = begun()
    said = says(
        environment,
        "[modify_flight(user_id='user1', reservation_id='res_2', new_flight_no='CZ4321', "
        "add_baggage='one')]",
    )
    assert "'>' not supported between instances of 'str' and 'int'" in said[0]
    assert environment.world["Travel"]["reservations"][1]["flight_no"] == "CZ4321"


def test_after_a_sent_message_times_cannot_be_read():
    environment = begun()
    assert says(environment, "[get_latest_message_id()]")[0]["message_id"] == 1
    assert says(environment, "[get_earliest_message_id()]")[0]["message_id"] == 2
    says(environment, "[send_message(sender_name='Eve', receiver_name='Jack', message='Hi')]")
    for call in ("latest_message_id", "earliest_message_id", "all_message_times_with_ids"):
        assert says(environment, f"[get_{call}()]") == ["Error during execution: 'time'"]


def test_numbers_of_messages_are_found_as_python_finds_keys():
    assert says(begun(), "[delete_message(message_id='1')]")[0]["status"] is False
    assert says(begun(), "[delete_message(message_id=1.0)]")[0]["status"] is True
    assert says(begun(), "[delete_message(message_id=True)]")[0]["status"] is True
    assert "unhashable" in says(begun(), "[delete_message(message_id=[1])]")[0]


def test_reminders_can_be_searched_in_chinese_only_and_finding_one_raises():
    text = "[search_reminders(keyword='bread')]"
    assert "func_call_result" in says(begun(language="en"), text)[0]
    assert "strftime" in says(begun(language="zh"), text)[0]
    assert says(begun(language="zh"), "[search_reminders(keyword='milk')]")[0]["status"] is False


@pytest.mark.parametrize(("language", "bought"), [("en", True), ("zh", False)])
def test_only_in_english_a_balance_can_be_spent_whole(language, bought):
    environment = begun(language=language)
    food = environment.world["FoodPlatform"]
    merchant = next(iter(food["merchant_list"]))
    dish = food["merchant_list"][merchant]["menu"][0]
    food["users"]["Eve"]["balance"] = dish["price"]
    food["logged_in_users"].append("Eve")
    order = f"items=[{{'product': {dish['product']!r}}}]"
    said = says(
        environment,
        f"[add_food_delivery_order(username='Eve', merchant_name={merchant!r}, {order})]",
    )
    assert said[0]["status"] is bought
    assert len(food["orders"]) == int(bought)


def test_travel_takes_an_unknown_flight_or_a_wrong_password_for_an_exception():
    flight = "cabin='Economy Class', payment_method='cash', baggage_count=1"
    text = "[reserve_flight(user_id='user1', password='{}', flight_no='{}', {})]"
    wrong = says(begun(), text.format("wrong", "CA1234", flight))
    unknown = says(begun(), text.format("password123", "XX1", flight))
    assert wrong == ["Error during execution: 'membership_level'"]
    assert unknown == ["Error during execution: 'NoneType' object is not subscriptable"]


def test_a_cancelled_reservation_is_refunded_as_often_as_it_is_cancelled():
    environment = begun()
    text = "[cancel_reservation(user_id='user1', reservation_id='res_1', reason='ill')]"
    assert says(environment, text) == says(environment, text)
    assert environment.world["Travel"]["users"]["user1"]["cash_balance"] == 2000.0 + 2 * 1200
    assert len(environment.world["Travel"]["reservations"]) == 4


VALUES = st.recursive(
    st.sampled_from(
        [
            "Eve",
            "Frank",
            "password123",
            "user1",
            "res_1",
            "CA1234",
            "Heytea",
            "cash",
            "Economy Class",
        ]
    )
    | st.none()
    | st.booleans()
    | st.integers(-2, 9)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
    | st.sampled_from([{"product": "Cheese Milk Tea", "quantity": 2}, b"x", 2j]),
    lambda inner: st.lists(inner, max_size=2) | st.tuples(inner),
    max_leaves=3,
)
PARAMETERS = {
    name: list(inspect.signature(getattr(kind, name)).parameters)[1:]
    for kind in CLASSES.values()
    for name in tools_of(kind, "zh")
}


@settings(deadline=None, max_examples=40)
@given(st.data(), st.sampled_from(["en", "zh"]), st.sampled_from(["multi_turn", "multi_step"]))
def test_whatever_is_called_the_state_stays_json_and_every_answer_is_json(data, language, kind):
    environment = begun(kind, language)
    world = environment.world
    for _ in range(6):
        name = data.draw(st.sampled_from(sorted(PARAMETERS)))
        arguments = {p: data.draw(VALUES) for p in PARAMETERS[name] if data.draw(st.booleans())}
        text = f"[{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})]"
        try:
            answer = environment.respond(text)
        except NotCalls:
            assert kind == "multi_turn"
            continue
        json.dumps(answer.message)
        assert json.loads(json.dumps(plain(world))) == plain(world)
