"""A workspace whose users send each other messages."""

from __future__ import annotations

from typing import Any

from muarl.compat.bfcl.toolkit import Api, function, key_in, key_of, python_key, refused

_SEED = 200191
_LOWEST_ID, _HIGHEST_ID = 10000, 99999
_NOBODY = "No user is currently logged in."


class MessageAPI(Api):
    """Contacts, an inbox of `{receiver: message}`, message ids that are drawn."""

    MODULE = "message_api"

    @classmethod
    def begin(cls, config: Any, upstream: Any, *, long: bool) -> dict[str, Any]:
        state = super().begin(config, upstream, long=long)
        state["user_map"] = {key_of(name): user for name, user in state["user_map"].items()}
        return state | {"_seed": config.get("random_seed", _SEED), "_draws": []}

    def public(self) -> dict[str, Any]:
        state = super().public()
        return state | {"generated_ids": sorted(state["generated_ids"])}

    def _has_user(self, user_id: Any) -> bool:
        return any(user == user_id for user in self.state["user_map"].values())

    def _new_id(self) -> int:
        while True:
            drawn: int = self.draw("randint", _LOWEST_ID, _HIGHEST_ID)
            if drawn not in self.state["generated_ids"]:
                self.state["generated_ids"].append(drawn)
                return drawn

    @function()
    def list_users(self) -> Any:
        return {"user_list": [python_key(name) for name in self.state["user_map"]]}

    @function()
    def get_user_id(self, user: Any) -> Any:
        if (key := key_in(self.state["user_map"], user)) is None:
            return refused(f"User '{user}' not found in the workspace.")
        return {"user_id": self.state["user_map"][key]}

    @function()
    def message_login(self, user_id: Any) -> Any:
        if not self._has_user(user_id):
            return {"login_status": False, "message": f"User ID '{user_id}' not found."}
        self.state["current_user"] = user_id
        return {"login_status": True, "message": f"User '{user_id}' logged in successfully."}

    @function()
    def message_get_login_status(self) -> Any:
        return {"login_status": bool(self.state["current_user"])}

    @function()
    def send_message(self, receiver_id: Any, message: Any) -> Any:
        if not self.state["current_user"]:
            return refused(_NOBODY)
        if not self._has_user(receiver_id):
            return refused(f"Receiver ID '{receiver_id}' not found.")
        new_id = self._new_id()
        self.state["inbox"].append({receiver_id: message})
        self.state["message_count"] += 1
        return {
            "sent_status": True,
            "message_id": {"new_id": new_id},
            "message": f"Message sent to '{receiver_id}' successfully.",
        }

    @function()
    def delete_message(self, receiver_id: Any) -> Any:
        if not self.state["current_user"]:
            return refused(_NOBODY)
        inbox = self.state["inbox"]
        for i in range(len(inbox) - 1, -1, -1):
            if next(iter(inbox[i].keys())) == receiver_id:
                del inbox[i]
                return self._deleted(receiver_id)
        return refused(f"Receiver ID {receiver_id} not found.")

    def _deleted(self, receiver_id: Any) -> Any:
        which, named = (
            ("first", "message_id") if self.version == "v3" else ("latest", "receiver_id")
        )
        said = f"Receiver {receiver_id}'s {which} message deleted successfully."
        return {"deleted_status": True, named: receiver_id, "message": said}

    @function()
    def view_messages_sent(self) -> Any:
        if not self.state["current_user"]:
            return refused(_NOBODY)
        sent: dict[str, list[Any]] = {}
        for entry in self.state["inbox"]:
            receiver, message = next(iter(entry.items()))
            sent.setdefault(receiver, []).append(message)
        return {"messages": sent}

    @function()
    def add_contact(self, user_name: Any) -> Any:
        users = self.state["user_map"]
        if key_in(users, user_name) is not None:
            return refused(f"User name '{user_name}' already exists.")
        self.state["user_count"] += 1
        user_id = f"USR{self.state['user_count']:03}"
        if self._has_user(user_id):
            return refused(f"User ID '{user_id}' already exists.")
        users[key_of(user_name)] = user_id
        said = f"Contact '{user_name}' added successfully."
        return {"added_status": True, "user_id": user_id, "message": said}

    @function()
    def search_messages(self, keyword: Any) -> Any:
        if not self.state["current_user"]:
            return refused(_NOBODY)
        wanted = keyword.lower()
        entries = [next(iter(entry.items())) for entry in self.state["inbox"]]
        found = [
            {"receiver_id": receiver, "message": message}
            for receiver, message in entries
            if wanted in message.lower()
        ]
        return {"results": found}

    @function()
    def get_message_stats(self) -> Any:
        if not self.state["current_user"]:
            return refused(_NOBODY)
        inbox = self.state["inbox"]
        receivers = {next(iter(entry.keys())) for entry in inbox}
        return {"stats": {"received_count": len(inbox), "total_contacts": len(receivers)}}
