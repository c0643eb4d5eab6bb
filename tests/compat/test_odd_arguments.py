"""What upstream makes of arguments of a wrong kind, found by asking the official package."""

from __future__ import annotations

import pytest

from muarl.compat.bfcl.sandbox import Sandbox, initial_state
from muarl.compat.bfcl.upstream import Upstream
from muarl.compat.tau.databases import tau2_environment
from muarl.compat.tau.hashing import TAU2
from muarl.world import World


@pytest.fixture
def phone(upstream):
    return tau2_environment(upstream, "telecom")


def test_an_unknown_network_mode_is_written_searched_with_and_then_an_error(phone):
    answer = phone.call("set_network_mode_preference", {"mode": ["a"]}, "user")
    assert answer.is_error
    device = phone.user.db["device"]
    assert list(device["network_mode_preference"]) == ["a"]
    assert device["network_technology_connected"] == "4G"
    assert phone.call("check_network_mode_preference", {}, "user").is_error


def test_no_network_mode_is_written_and_reported_as_a_failure_without_an_error(phone):
    answer = phone.call("set_network_mode_preference", {"mode": None}, "user")
    assert not answer.is_error
    assert answer.text.startswith("Failed to set network mode: 'None'")
    assert phone.user.db["device"]["network_technology_connected"] == "4G"


def test_settings_that_are_none_fail_every_search_after_it_was_written(phone):
    phone.call("set_apn_settings", {"apn_settings": " "}, "user")
    off = phone.call("toggle_airplane_mode", {}, "user")
    assert off.is_error
    assert phone.user.db["device"]["network_technology_connected"] == "none"
    assert phone.call("toggle_airplane_mode", {}, "user").is_error
    assert phone.user.db["device"]["network_technology_connected"] == "5G"


@pytest.mark.parametrize("passengers", [["a"], [None], {"k": 1}])
def test_passengers_that_are_no_objects_are_written_as_they_come(upstream, passengers):
    env = tau2_environment(upstream, "airline")
    arguments = {"reservation_id": "V5EMZH", "passengers": passengers}
    answer = env.call("update_reservation_passengers", arguments)
    assert not answer.is_error
    assert env.agent.db["reservations"]["V5EMZH"]["passengers"] == passengers


@pytest.mark.parametrize("version", ["v3", "v4"])
def test_a_temperature_that_cannot_be_converted_stays_as_it_was_given(upstream, version):
    tables = Upstream(upstream, f"bfcl/{version}")
    config = {"VehicleControlAPI": {}}
    car = Sandbox(
        World(initial_state(["VehicleControlAPI"], config, tables, long=False)), tables, version
    )
    answer = car.call("adjustClimateControl(temperature='warm', unit='fahrenheit', fanSpeed=7)")
    assert answer.is_error
    state = car.public()["VehicleControlAPI"]
    assert (state["acTemperature"], state["fanSpeed"]) == ("warm", 50)


def test_tau2_ends_one_of_two_like_refusals_with_a_full_stop(upstream):
    shop = tau2_environment(upstream, "retail")
    orders = shop.agent.db["orders"].items()
    for status, tool, end in (
        ("delivered", "exchange_delivered_order_items", "should match."),
        ("pending", "modify_pending_order_items", "should match"),
    ):
        order_id = next(key for key, order in orders if order["status"] == status)
        arguments = {"order_id": order_id, "item_ids": [], "new_item_ids": ["1"]}
        answer = shop.call(tool, {**arguments, "payment_method_id": "x"})
        assert answer.text == f"Error: The number of items to be exchanged {end}"


@pytest.mark.parametrize("flights", [[[]], ["HAT001"]])
def test_a_reservation_is_looked_for_before_flights_that_are_none(upstream, flights):
    airline = tau2_environment(upstream, "airline")
    arguments = {"reservation_id": "NONE", "cabin": "economy", "payment_id": "x"}
    answer = airline.call("update_reservation_flights", {**arguments, "flights": flights})
    assert answer.text == "Error: Reservation NONE not found"


def test_what_is_no_text_cannot_be_calculated_in_the_words_of_python(upstream):
    shop = tau2_environment(upstream, "retail")
    assert shop.call("calculate", {"expression": [1, 2]}).by_python
    assert not shop.call("calculate", {"expression": ["a", 2]}).by_python


def test_a_vpn_that_was_broken_is_poor_again_when_it_is_connected_again(phone):
    before = TAU2().of(phone.user.db)
    phone.user.break_vpn()
    phone.call("disconnect_vpn", {}, "user")
    assert TAU2().of(phone.user.db) == before
    phone.call("connect_vpn", {}, "user")
    assert "POOR" in phone.call("check_vpn_status", {}, "user").text


def test_a_vpn_that_was_not_broken_is_excellent(phone):
    phone.call("connect_vpn", {}, "user")
    assert "EXCELLENT" in phone.call("check_vpn_status", {}, "user").text


def test_tau2_modifies_no_item_into_itself_but_exchanges_it(upstream):
    shop = tau2_environment(upstream, "retail")

    def asked(status, tool):
        orders = shop.agent.db["orders"].items()
        key, order = next((key, order) for key, order in orders if order["status"] == status)
        same = [order["items"][0]["item_id"]]
        method = order["payment_history"][0]["payment_method_id"]
        arguments = {"order_id": key, "item_ids": same, "new_item_ids": same}
        return shop.call(tool, {**arguments, "payment_method_id": method})

    before = TAU2().of(shop.agent.db)
    answer = asked("pending", "modify_pending_order_items")
    assert answer.text == "Error: The new item id should be different from the old item id"
    assert TAU2().of(shop.agent.db) == before
    assert "different" not in asked("delivered", "exchange_delivered_order_items").text


@pytest.mark.parametrize(("bags", "paid"), [(2.0, 100), (1.5, 75), (1.51, None)])
def test_a_payment_is_of_whole_dollars_and_a_gift_card_pays_before_that_is_looked_at(
    upstream, bags, paid
):
    airline = tau2_environment(upstream, "airline")
    db = airline.agent.db
    key, card = next(
        (key, name)
        for key, made in db["reservations"].items()
        for name, method in db["users"][made["user_id"]]["payment_methods"].items()
        if made["nonfree_baggages"] == 0 and method["source"] == "gift_card"
        if method["amount"] > 100
    )
    held = db["users"][db["reservations"][key]["user_id"]]["payment_methods"][card]
    before, payments = held["amount"], len(db["reservations"][key]["payment_history"])
    arguments = {"reservation_id": key, "total_baggages": 3, "nonfree_baggages": bags}
    answer = airline.call("update_reservation_baggages", {**arguments, "payment_id": card})
    assert answer.is_error == (paid is None)
    assert held["amount"] == before - 50 * bags
    last = db["reservations"][key]["payment_history"][payments:]
    assert [repr(payment["amount"]) for payment in last] == ([] if paid is None else [repr(paid)])


def test_a_list_of_reasons_is_no_reason_in_the_words_of_python(upstream):
    shop = tau2_environment(upstream, "retail")
    orders = shop.agent.db["orders"].items()
    key = next(key for key, order in orders if order["status"] == "pending")
    arguments = {"order_id": key, "reason": ["no longer needed"]}
    assert shop.call("cancel_pending_order", arguments).by_python
