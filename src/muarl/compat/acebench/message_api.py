"""Messages between six people, in one inbox that is full from the start."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar

from muarl.compat.acebench.api import Texts
from muarl.compat.acebench.base_api import BaseApi
from muarl.compat.acebench.numbered import key_of


class MessageApi(BaseApi):
    """State: `inbox` by number, `message_id_counter`, `max_capacity`, `user_list` by name.

    A sent message has no time. So after one, everything that reads times raises.
    """

    texts: ClassVar[Texts] = {
        "en": {
            "send_off": "Device not logged in, unable to send message",
            "no_wifi": "Wi-Fi is turned off, cannot send messages at this time",
            "full": "Inbox capacity is full. You need to ask the user which message to delete.",
            "no_pair": "Sender or receiver does not exist",
            "sent": "Message successfully sent to {name}.",
            "delete_off": "Device not logged in, unable to delete message",
            "no_message": "Message ID does not exist",
            "deleted": "Message ID {number} has been successfully deleted.",
            "view_off": "Device not logged in, unable to view message information",
            "no_sender": "Sender does not exist",
            "no_receiver": "Receiver does not exist",
            "none_between": "No related message records found",
            "no_user": "User does not exist",
            "none_found": "No messages found containing the keyword",
            "times_off": "Device not logged in, unable to retrieve all message times and their "
            "corresponding message IDs.",
            "latest_off": "Device not logged in, unable to retrieve the latest sent message ID.",
            "earliest_off": "Device not logged in, unable to retrieve the earliest sent message "
            "ID.",
            "empty": "No message records found",
            "latest": "The latest message ID is {number}",
            "earliest": "The earliest message ID is {number}",
        },
        "zh": {
            "send_off": "device未登录，无法发送短信",
            "no_wifi": "wifi关闭，此时不能发送信息",
            "full": "内存容量不够了，你需要询问user删除哪一条短信。",
            "no_pair": "发送者或接收者不存在",
            "sent": "短信成功发送给{name}。",
            "delete_off": "device未登录，无法删除短信",
            "no_message": "短信ID不存在",
            "deleted": "短信ID {number} 已成功删除。",
            "view_off": "device未登录，无法查看短信信息",
            "no_sender": "发送者不存在",
            "no_receiver": "接收者不存在",
            "none_between": "没有找到相关的短信记录",
            "no_user": "用户不存在",
            "none_found": "没有找到包含关键词的短信",
            "times_off": "device未登录，获取所有短信的时间以及对应的短信编号。",
            "latest_off": "device未登录，无法获取最新发送的短信ID。",
            "earliest_off": "device未登录，无法获取最早发送的短信ID",
            "empty": "短信记录为空",
            "latest": "最新的短信ID是 {number}",
            "earliest": "最早的短信ID是 {number}",
        },
    }

    def send_message(self, sender_name: Any, receiver_name: Any, message: Any) -> Any:
        if not self._state["logged_in"]:
            return self._refused("send_off")
        if not self._state["wifi"]:
            return self._refused("no_wifi")
        if len(self._state["inbox"]) >= self._state["max_capacity"]:
            return self._refused("full")
        people = self._state["user_list"]
        if sender_name not in people or receiver_name not in people:
            return self._refused("no_pair")
        self._state["message_id_counter"] += 1
        self._state["inbox"][str(self._state["message_id_counter"])] = {
            "sender_id": people[sender_name]["user_id"],
            "receiver_id": people[receiver_name]["user_id"],
            "message": message,
        }
        return self._done("sent", name=receiver_name)

    def delete_message(self, message_id: Any) -> Any:
        if not self._state["logged_in"]:
            return self._refused("delete_off")
        key = key_of(message_id)
        if key not in self._state["inbox"]:
            return self._refused("no_message")
        del self._state["inbox"][key]
        return self._done("deleted", number=message_id)

    def view_messages_between_users(self, sender_name: Any, receiver_name: Any) -> Any:
        if not self._state["logged_in"]:
            return self._refused("view_off")
        people = self._state["user_list"]
        if sender_name not in people:
            return self._refused("no_sender")
        if receiver_name not in people:
            return self._refused("no_receiver")
        pair = people[sender_name]["user_id"], people[receiver_name]["user_id"]
        found = [
            {
                "id": int(key),
                "sender": sender_name,
                "receiver": receiver_name,
                "message": message["message"],
            }
            for key, message in self._state["inbox"].items()
            if (message["sender_id"], message["receiver_id"]) == pair
        ]
        if not found:
            return self._refused("none_between")
        return {"status": True, "messages": found}

    def search_messages(self, user_name: Any, keyword: Any) -> Any:
        if user_name not in self._state["user_list"]:
            return self._refused("no_user")
        user_id = self._state["user_list"][user_name]["user_id"]
        found = [
            {
                "id": int(key),
                "sender_id": message["sender_id"],
                "receiver_id": message["receiver_id"],
                "message": message["message"],
            }
            for key, message in self._state["inbox"].items()
            if user_id in (message["sender_id"], message["receiver_id"])
            and keyword.lower() in message["message"].lower()
        ]
        if not found:
            return self._refused("none_found")
        return {"status": True, "messages": found}

    def get_all_message_times_with_ids(self) -> Any:
        if not self._state["logged_in"]:
            return self._refused("times_off")
        return {key: message["time"] for key, message in self._state["inbox"].items()}

    def get_latest_message_id(self) -> Any:
        return self._at_the_end("latest", max)

    def get_earliest_message_id(self) -> Any:
        return self._at_the_end("earliest", min)

    def _at_the_end(self, which: str, end: Callable[..., str]) -> Any:
        if not self._state["logged_in"]:
            return self._refused(f"{which}_off")
        inbox = self._state["inbox"]
        if not inbox:
            return self._refused("empty")
        # The first of several of one time, as `max` and `min` have it.
        number = int(end(inbox, key=lambda key: _day(inbox[key]["time"])))
        return {**self._done(which, number=number), "message_id": number}


def _day(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d")  # noqa: DTZ007 - upstream's days have no zone
