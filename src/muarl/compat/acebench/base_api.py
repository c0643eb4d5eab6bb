"""The device: Wi-Fi and login. Each class on it has its own of both, and a call reaches them all."""

from __future__ import annotations

from typing import Any, ClassVar

from muarl.compat.acebench.api import Api, Texts


class BaseApi(Api):
    """State: `wifi`, `logged_in`."""

    texts: ClassVar[Texts] = {
        "en": {"wifi": "Wi-Fi has been turned on", "device": "Device has been logged in"},
        "zh": {"wifi": "wifi已经打开", "device": "设备已经登录"},
    }

    def turn_on_wifi(self) -> Any:
        self._state["wifi"] = True
        return self._done("wifi")

    def login_device(self) -> Any:
        self._state["logged_in"] = True
        return self._done("device")
