"""The state that a task begins with: upstream's constants, and the device as the task has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muarl.compat.acebench.api import Language
from muarl.compat.acebench.travel import CABINS
from muarl.world import World

_PEOPLE = (
    # name, telephone, occupation, password and balance of the food platform
    ("Eve", "123-456-7890", "Software Engineer", "password123", 500.0),
    ("Frank", "234-567-8901", "Data Scientist", "password456", 300.0),
    ("Grace", "345-678-9012", "Product Manager", "password789", 150.0),
    ("Helen", "456-789-0123", "UX Designer", "password321", 800.0),
    ("Isaac", "567-890-1234", "DevOps Engineer", "password654", 400.0),
    ("Jack", "678-901-2345", "Marketing Specialist", "password654", 120.0),
)
_MERCHANTS: dict[Language, tuple[tuple[str, str, str], ...]] = {
    # merchant, its two products
    "en": (
        ("Domino's", "Margherita Pizza", "Super Supreme Pizza"),
        ("Rice Village Bibimbap", "Stone Pot Bibimbap", "Korean Beef Bibimbap"),
        ("Haidilao", "Beef Rolls", "Seafood Platter"),
        ("Heytea", "Cheese Milk Tea", "Four Seasons Spring Milk Tea"),
        ("Hema Fresh", "Organic Vegetable Pack", "Fresh Gift Pack"),
        ("Jiutian BBQ", "Korean Grilled Beef", "Grilled Pork Belly"),
    ),
    "zh": (
        ("达美乐", "玛格丽特披萨", "超级至尊披萨"),
        ("米村拌饭", "石锅拌饭", "韩式牛肉拌饭"),
        ("海底捞", "牛肉卷", "海鲜拼盘"),
        ("喜茶", "芝士奶茶", "四季春奶茶"),
        ("盒马生鲜", "有机蔬菜包", "生鲜大礼包"),
        ("九田家烤肉", "韩式烤牛肉", "烤五花肉"),
    ),
}
_SERVICES = (
    ("Pizza", 68.0, 88.0),
    ("Bibimbap", 35.0, 45.0),
    ("Hotpot", 68.0, 88.0),
    ("Milk Tea", 25.0, 22.0),
    ("Fresh Grocery", 15.0, 99.0),
    ("BBQ", 128.0, 78.0),
)
_CITIES = {
    "Beijing": "北京",
    "Shanghai": "上海",
    "Nanjing": "南京",
    "Shenzhen": "深圳",
    "Xiamen": "厦门",
    "Chengdu": "成都",
    "Fuzhou": "福州",
}
_FLIGHTS = (
    # number, from, to, day of July 2024, departs, arrives, seats, economy, business
    ("CA1234", "Beijing", "Shanghai", 15, "08:00", "10:30", 5, 1200, 3000),
    ("MU5678", "Shanghai", "Beijing", 16, "09:00", "11:30", 3, 1900, 3000),
    ("CZ4321", "Shanghai", "Beijing", 16, "20:00", "22:00", 8, 2500, 4000),
    ("CZ4352", "Shanghai", "Beijing", 17, "20:00", "22:00", 8, 1600, 2500),
    ("MU3561", "Beijing", "Nanjing", 18, "08:00", "10:00", 8, 1500, 4000),
    ("MU1566", "Beijing", "Nanjing", 18, "20:00", "22:00", 8, 1500, 4000),
    ("CZ1765", "Nanjing", "Shenzhen", 17, "20:30", "22:00", 8, 1500, 2500),
    ("CZ1765", "Nanjing", "Shenzhen", 18, "12:30", "15:00", 8, 1500, 2500),
    ("MH1765", "Xiamen", "Chengdu", 17, "12:30", "15:00", 8, 1500, 2500),
    ("MH2616", "Chengdu", "Xiamen", 18, "18:30", "21:00", 8, 1500, 2500),
    ("MH2616", "Chengdu", "Fuzhou", 16, "18:30", "21:00", 8, 1500, 2500),
)
_PASSENGERS = (
    # name, password, cash, bank, level
    ("Eve", "password123", 2000.0, 50000.0, "regular"),
    ("Frank", "password456", 8000.0, 8000.0, "silver"),
    ("Grace", "password789", 1000.0, 5000.0, "gold"),
)
_RESERVATIONS = (
    # whose, flight, cabin, from, to; the last names a flight that there is not
    ("user1", "CA1234", 0, "Beijing", "Shanghai"),
    ("user1", "MU5678", 1, "Shanghai", "Beijing"),
    ("user2", "MH1765", 1, "Xiamen", "Chengdu"),
    ("user2", "MU2616", 1, "Chengdu", "Xiamen"),
)
_CAPACITY = 6
"""Of the inbox, and of the reminders."""


def initial_world(
    involved: Sequence[str],
    config: Mapping[str, Any],
    language: Language,
    records: Mapping[str, Mapping[str, Any]],
) -> World:
    """The attributes of every instance, by class, keys in upstream's order.

    Args:
        involved: The classes of the task.
        config: The task's `initial_config`. A class other than `BaseApi` in it does not count, as
            upstream loads that of `BaseApi` last, or its defaults: no Wi-Fi, logged in.
        language: Of names and texts.
        records: The first messages and reminders, see `entries.first_records`.
    """
    given = config.get("BaseApi", {})
    device = {"wifi": given.get("wifi", False), "logged_in": given.get("logged_in", True)}
    made = {
        "BaseApi": lambda: device,
        "MessageApi": lambda: {**device, **_messages(records["inbox"])},
        "ReminderApi": lambda: {**_reminders(records["reminder_list"]), **device},
        "FoodPlatform": lambda: {**_food(language), **device},
        "Travel": lambda: _travel(language),
    }
    return World({name: made[name]() for name in involved})


def _messages(inbox: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "max_capacity": _CAPACITY,
        "user_list": {
            name: {"user_id": f"USR{number}", "phone_number": phone, "occupation": occupation}
            for number, (name, phone, occupation, *_) in enumerate(_PEOPLE, start=100)
        },
        "inbox": dict(inbox),
        "message_id_counter": len(inbox),
    }


def _reminders(reminders: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "max_capacity": _CAPACITY,
        "reminder_list": dict(reminders),
        "reminder_id_counter": len(reminders),
    }


def _food(language: Language) -> dict[str, Any]:
    named = zip(_MERCHANTS[language], _SERVICES, strict=True)
    return {
        "users": {
            name: {"user_id": f"U{number}", "password": password, "balance": balance}
            for number, (name, _, _, password, balance) in enumerate(_PEOPLE, start=100)
        },
        "merchant_list": {
            merchant: {
                "merchant_id": f"M{number}",
                "service_type": service,
                "menu": [
                    {"product": product, "price": price}
                    for product, price in zip(products, prices, strict=True)
                ],
            }
            for number, ((merchant, *products), (service, *prices)) in enumerate(named, start=100)
        },
        "logged_in_users": [],
        "orders": [],
    }


def _travel(language: Language) -> dict[str, Any]:
    city = _CITIES if language == "zh" else {name: name for name in _CITIES}
    return {
        "users": {
            f"user{number}": {
                "user_name": name,
                "password": password,
                "cash_balance": cash,
                "bank_balance": bank,
                "membership_level": level,
            }
            for number, (name, password, cash, bank, level) in enumerate(_PASSENGERS, start=1)
        },
        "flights": [
            {
                "flight_no": number,
                "origin": city[origin],
                "destination": city[destination],
                "depart_time": f"2024-07-{day} {departs}:00",
                "arrival_time": f"2024-07-{day} {arrives}:00",
                "status": "available",
                "seats_available": seats,
                "economy_price": economy,
                "business_price": business,
            }
            for (
                number,
                origin,
                destination,
                day,
                departs,
                arrives,
                seats,
                economy,
                business,
            ) in _FLIGHTS
        ],
        "reservations": [
            {
                "reservation_id": f"res_{number}",
                "user_id": user_id,
                "flight_no": flight,
                "payment_method": "bank",
                "cabin": CABINS[language][cabin],
                "baggage": 1,
                "origin": city[origin],
                "destination": city[destination],
            }
            for number, (user_id, flight, cabin, origin, destination) in enumerate(
                _RESERVATIONS, start=1
            )
        ],
    }
