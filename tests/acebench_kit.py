"""ACEBench's environment for tests, with a few messages and reminders in place of the published."""

from __future__ import annotations

from muarl.compat.acebench.environment import Environment
from muarl.compat.acebench.initial import initial_world

RECORDS = {
    "inbox": {
        "1": {
            "sender_id": "USR100",
            "receiver_id": "USR101",
            "message": "Hello",
            "time": "2024-02-01",
        },
        "2": {
            "sender_id": "USR101",
            "receiver_id": "USR100",
            "message": "Call me",
            "time": "2024-01-01",
        },
    },
    "reminder_list": {
        "1": {
            "reminder_id": 7,
            "title": "Bread",
            "description": "Two loaves",
            "time": "2024-07-15 09:30",
            "notified": False,
        }
    },
}
EVERYTHING = ("BaseApi", "MessageApi", "ReminderApi", "FoodPlatform", "Travel")


def begun(kind="multi_step", language="en", involved=EVERYTHING, **device):
    """An environment with all classes; `device` are attributes of its `initial_config`."""
    config = {"BaseApi": {"wifi": True, "logged_in": True, **device}}
    world = initial_world(involved, config, language, RECORDS)
    return Environment(world, involved, language, kind)
