"""The smallest domain of tau2-bench: tasks of one user, with notifications on her side."""

from __future__ import annotations

from typing import Any

from muarl.compat.tau.toolkit import Refused, Tau2Toolkit, tool


class MockAgent(Tau2Toolkit):
    """The agent's four tools."""

    @tool(writes=True)
    def create_task(self, user_id: str, title: str, description: str | None = None) -> Any:
        if user_id not in self.db["users"]:
            raise Refused(f"User {user_id} not found")
        tasks = self.db["tasks"]
        task_id = f"task_{len(tasks) + 1}"
        made = {"task_id": task_id, "title": title, "description": description, "status": "pending"}
        for key in ("title", "description"):
            if not isinstance(made[key], str) and not (key == "description" and made[key] is None):
                raise TypeError(f"{key} should be a valid string")
        tasks[task_id] = made
        self.db["users"][user_id]["tasks"].append(task_id)
        return tasks[task_id]

    @tool()
    def get_users(self) -> Any:
        return list(self.db["users"].values())

    @tool(writes=True)
    def update_task_status(self, task_id: str, status: str) -> Any:
        if task_id not in self.db["tasks"]:
            raise Refused(f"Task {task_id} not found")
        self.db["tasks"][task_id]["status"] = status
        return self.db["tasks"][task_id]

    @tool()
    def transfer_to_human_agents(self, summary: str) -> str:
        return "Transfer successful"

    def assert_number_of_tasks(self, user_id: str, expected_number: int) -> bool:
        """Whether the user has so many tasks."""
        return bool(len(self.db["users"][user_id]["tasks"]) == expected_number)

    def assert_task_status(self, task_id: str, expected_status: str) -> bool:
        """Whether a task has this status."""
        if task_id not in self.db["tasks"]:
            raise Refused(f"Task {task_id} not found")
        return bool(self.db["tasks"][task_id]["status"] == expected_status)


class MockUser(Tau2Toolkit):
    """The user's two tools, over a database of her own."""

    @tool()
    def check_notifications(self) -> Any:
        return list(self.db["notifications"].values())

    @tool(writes=True)
    def dismiss_notification(self, notification_id: str) -> Any:
        if notification_id not in self.db["notifications"]:
            raise Refused(f"Notification {notification_id} not found")
        self.db["notifications"][notification_id]["status"] = "read"
        return f"Notification {notification_id} dismissed"

    def add_notification(self, notification_id: str, message: str, task_id: str) -> None:
        """A task's way to send her one."""
        self.db["notifications"][notification_id] = {
            "notification_id": notification_id,
            "message": message,
            "status": "unread",
            "task_id": task_id,
        }

    def assert_notification_status(self, notification_id: str, expected_status: str) -> bool:
        """Whether a notification has this status."""
        if notification_id not in self.db["notifications"]:
            raise Refused(f"Notification {notification_id} not found")
        return bool(self.db["notifications"][notification_id]["status"] == expected_status)
