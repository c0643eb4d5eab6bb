"""Reminders, six at most."""

from __future__ import annotations

from typing import Any, ClassVar

from muarl.compat.acebench.api import Texts, only_in
from muarl.compat.acebench.base_api import BaseApi
from muarl.compat.acebench.numbered import key_of


class ReminderApi(BaseApi):
    """State: `reminder_list` by number, `reminder_id_counter`, `max_capacity`.

    English tasks offer `search_reminders`, which only the Chinese class has; and there it raises
    for whatever it finds, since it takes the time for one of Python's.
    """

    texts: ClassVar[Texts] = {
        "en": {
            "view_off": "The device is not logged in, so you cannot view notifications",
            "no_title": "No reminder found with the title '{title}'.",
            "add_off": "Device not logged in. Unable to add a new reminder.",
            "full": "Reminder capacity is full. Unable to add a new reminder.",
            "added": "Reminder '{title}' was successfully added.",
            "delete_off": "Device not logged in. Unable to delete the specified reminder.",
            "no_reminder": "Reminder ID does not exist.",
            "deleted": "Reminder ID {number} was successfully deleted.",
            "empty": "No reminders found.",
        },
        "zh": {
            "view_off": "device未登录，无法查看提醒",
            "no_title": "没有找到标题为 '{title}' 的提醒",
            "add_off": "device未登录，无法添加一个新的提醒",
            "full": "提醒容量已满，无法添加新的提醒",
            "added": "提醒 '{title}' 已成功添加",
            "delete_off": "device未登录，无法删除指定的提醒",
            "no_reminder": "提醒ID不存在",
            "deleted": "提醒ID {number} 已成功删除",
            "empty": "没有任何提醒",
            "notified": "提醒ID {number} 已标记为已通知",
            "none_found": "没有找到包含该关键词的提醒",
        },
    }

    def view_reminder_by_title(self, title: Any) -> Any:
        if not self._state["logged_in"]:
            return self._refused("view_off")
        for reminder in self._state["reminder_list"].values():
            if reminder["title"] == title:
                return {"status": True, "reminder": reminder}
        return self._refused("no_title", title=title)

    def add_reminder(self, title: Any, description: Any, time: Any) -> Any:
        if not self._state["logged_in"]:
            return self._refused("add_off")
        if len(self._state["reminder_list"]) >= self._state["max_capacity"]:
            return self._refused("full")
        self._state["reminder_id_counter"] += 1
        number = self._state["reminder_id_counter"]
        self._state["reminder_list"][str(number)] = {
            "reminder_id": number,
            "title": title,
            "description": description,
            "time": time,
            "notified": False,
        }
        return self._done("added", title=title)

    def delete_reminder(self, reminder_id: Any) -> Any:
        if not self._state["logged_in"]:
            return self._refused("delete_off")
        key = key_of(reminder_id)
        if key not in self._state["reminder_list"]:
            return self._refused("no_reminder")
        del self._state["reminder_list"][key]
        return self._done("deleted", number=reminder_id)

    def view_all_reminders(self) -> Any:
        if not self._state["reminder_list"]:
            return self._refused("empty")
        fields = ("title", "description", "time", "notified")
        return {
            "status": True,
            "reminders": [
                {field: reminder[field] for field in fields}
                for reminder in self._state["reminder_list"].values()
            ],
        }

    @only_in("zh")
    def mark_as_notified(self, reminder_id: Any) -> Any:
        key = key_of(reminder_id)
        if key not in self._state["reminder_list"]:
            return self._refused("no_reminder")
        self._state["reminder_list"][key]["notified"] = True
        return self._done("notified", number=reminder_id)

    @only_in("zh")
    def search_reminders(self, keyword: Any) -> Any:
        for reminder in self._state["reminder_list"].values():
            if any(keyword.lower() in reminder[at].lower() for at in ("title", "description")):
                kind = type(reminder["time"]).__name__
                raise AttributeError(f"'{kind}' object has no attribute 'strftime'")
        return self._refused("none_found")
