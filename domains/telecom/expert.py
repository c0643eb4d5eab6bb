"""The help desk's expert: an agent by rules, which finds out, mends and tries, with bad habits on request.

It is not told the task. Habits, each with a rate, make demonstrations imperfect in ways that
reinforcement learning is to mend:

- `quit`     says that all is well without having the customer do anything on her phone;
- `comply`   goes on where the rules say that nothing may be changed;
- `overdo`   mends whatever looks wrong, whether it causes the trouble or not.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from muarl.messages import Message, ToolCall
from muarl.spec import TaskSpec

from .causes import DATA, PICTURES, SERVICE
from .people import TODAY

HABITS = ("quit", "comply", "overdo")

_NUMBER = re.compile(r"\b555\d{4}\b")
_PLACE = re.compile(r"\b(home|abroad)\b")
_TODAY = TODAY.isoformat()

LOOKS: Mapping[str, tuple[str, ...]] = {
    "What does your status bar say?": ("signal", "internet", "airplane mode"),
    "What does the SIM card page say?": ("sim card", "number"),
    "What does the mobile network page say?": (
        *("mobile data", "data roaming", "data saver", "network mode"),
    ),
    "What does the access point page say?": ("access point",),
    "What does the connections page say?": ("wi-fi calling", "vpn"),
    "What does the permissions page of the messages app say?": ("storage", "sms"),
    "Please run a speed test.": ("speed",),
    "Please send a picture to yourself.": ("picture",),
}
"""What a customer is asked to look at, and what she then names."""
STATUS, SIM, NETWORK, ACCESS, CONNECTIONS, PERMISSIONS, SPEED, PICTURE = LOOKS

_VALUES = (
    *("on", "off", "good", "none", "yes", "ready", "out", "locked", "blocked", "unknown", r"\d+"),
    *("automatic", "[234]g only", "carrier", "old", "without pictures", "near", "far"),
    *("allowed", "denied", "slow", "fast", "not sent", "sent"),
)
_SEEN = {
    name: re.compile(rf"\b{name} ({'|'.join(_VALUES)})(?![\w-])")
    for names in LOOKS.values()
    for name in names
}

Fault = tuple[str, str, str, str]
"""What she reads, what is wrong there, how she is asked to mend it by its name, and in plain words."""

_AUTOMATIC = (
    "Please set the network mode to automatic.",
    "Please let the phone choose the network by itself.",
)
_RESET = ("Please reset the access point.", "Please press reset on the access point page.")
_AIRPLANE: Fault = ("airplane mode", "on", "Please turn airplane mode off.", "")
_DATA_OFF: Fault = ("mobile data", "off", "Please turn mobile data on.", "")
_OLD: Fault = ("access point", "old", *_RESET)
_2G: Fault = ("network mode", "2g only", *_AUTOMATIC)
_SAVER: Fault = (
    *("data saver", "on", "Please turn the data saver off."),
    "Please tell the phone to stop saving data.",
)
_VPN: Fault = ("vpn", "far", "Please disconnect the VPN.", "Please tap the little key.")
_WIFI: Fault = (
    *("wi-fi calling", "on", "Please turn Wi-Fi calling off."),
    "Please tell the phone to stop calling over Wi-Fi.",
)
_ROAMING: Fault = (
    *("data roaming", "off", "Please turn data roaming on."),
    "Please let the phone use data in other countries.",
)
_DENIED: tuple[Fault, ...] = tuple(
    (what, "denied", f"Please allow {what}.", f"Please let messages use your {what}.")
    for what in ("storage", "sms")
)
FAULTS: Mapping[str, Mapping[str, tuple[Fault, ...]]] = {
    SERVICE: {STATUS: (_AIRPLANE,)},
    DATA: {
        STATUS: (_AIRPLANE,),
        NETWORK: (_DATA_OFF, _SAVER, ("network mode", "3g only", *_AUTOMATIC), _2G),
        ACCESS: (_OLD,),
        CONNECTIONS: (_VPN,),
    },
    PICTURES: {
        STATUS: (_AIRPLANE,),
        NETWORK: (_DATA_OFF, _2G),
        ACCESS: (_OLD, ("access point", "without pictures", *_RESET)),
        CONNECTIONS: (_WIFI,),
        PERMISSIONS: _DENIED,
    },
}
"""Trouble to pages, and what on each may cause it."""
EVERYTHING: Mapping[str, tuple[Fault, ...]] = {
    STATUS: (_AIRPLANE,),
    NETWORK: (
        *(_DATA_OFF, _SAVER, _ROAMING, _2G),
        *(("network mode", mode, *_AUTOMATIC) for mode in ("3g only", "4g only")),
    ),
    ACCESS: FAULTS[PICTURES][ACCESS],
    CONNECTIONS: (_WIFI, _VPN, ("vpn", "near", *_VPN[2:])),
    PERMISSIONS: _DENIED,
}
"""Whatever is not as it comes out of the box."""
TESTS = {SERVICE: (STATUS, "good"), DATA: (SPEED, "fast"), PICTURES: (PICTURE, "sent")}

Said = Generator[Message, Message, Any]
"""A part of a dialogue: yields what is said and called, is sent what comes back."""


class Expert:
    """Plays the help desk for one dialogue."""

    def __init__(
        self, task: TaskSpec, imperfections: Mapping[str, float], rng: random.Random
    ) -> None:
        del task
        if unknown := sorted(set(imperfections) - set(HABITS)):
            raise ValueError(f"unknown imperfections {unknown}; choose from {', '.join(HABITS)}")
        self._has = {habit: rng.random() < imperfections.get(habit, 0.0) for habit in HABITS}
        self._calls = 0
        self._talk: Said | None = None

    def act(self, history: Sequence[Message]) -> Message:
        """The next message."""
        if self._talk is None:
            self._talk = self._serve(history[-1].content)
            return next(self._talk)
        return self._talk.send(history[-1])

    # --- from first to last -----------------------------------------------------------------------

    def _serve(self, text: str) -> Said:
        """Serve the customer, then whatever else she wants."""
        trouble = _trouble(text)
        line_id, account = yield from self._find(text)
        line = yield from self._call("get_line", line_id=line_id)
        plan = yield from self._call("get_plan", line_id=line_id)
        bills = {}
        for bill_id in account["bills"]:
            bills[bill_id] = yield from self._call("get_bill", bill_id=bill_id)
        place = _PLACE.search(text)
        while place is None:
            place = _PLACE.search((yield from self._say("Are you at home or abroad?")))
        abroad = place[0] == "abroad"
        sim = (yield from self._look(SIM))["sim card"]
        gb = 0
        if trouble != SERVICE and line["gb_left"] <= 0:
            gb = int((yield from self._find_in(r"\d+", "How many GB would you like?")))
        if not self._has["comply"]:
            yield from self._stop_at_obstacles(line, plan, abroad, sim, gb)
        yield from self._mend_account(line_id, line, bills, abroad, gb)
        if not self._has["quit"]:
            yield from self._mend_phone(trouble, abroad, sim, line["status"] == "suspended")
        yield from self._go_on(account["lines"])

    def _find(self, text: str) -> Said:
        """Her line, by its number or by who she is and which phone she means."""
        number = _NUMBER.search(text) or _NUMBER.search(
            (yield from self._say("Which number is it?"))
        )
        if number is not None:
            account = yield from self._call("find_number", number=number[0])
            return account["line_id"], account
        name = yield from self._find_in(r"[A-Z]\w+ [A-Z]\w+", "What is your name?")
        born = yield from self._find_in(r"\d{4}-\d\d-\d\d", "When were you born?")
        account = yield from self._call("find_customer", name=name, birth_date=born)
        lines = {}
        for key in account["lines"]:
            lines[key] = yield from self._call("get_line", line_id=key)
        phone = ""
        if len(lines) > 1:
            phone = yield from self._say("Which phone is it?")
        meant = [key for key, line in lines.items() if line["phone"] in phone]
        return max(meant or lines, key=lambda key: len(lines[key]["phone"])), account

    def _stop_at_obstacles(
        self, line: Mapping[str, Any], plan: Mapping[str, Any], abroad: bool, sim: str, gb: int
    ) -> Said:
        """Leave off where nothing may be changed."""
        while line["note"] == "reported stolen" or sim == "blocked":
            yield from self._call("transfer_to_human")
        why = ""
        if line["status"] == "suspended" and line["contract_until"] < _TODAY:
            why = f"your contract ended on {line['contract_until']}"
        elif abroad and plan["roaming"] == "no":
            why = f"your plan, {plan['name']}, has no roaming"
        elif gb > int(plan["most_at_a_time"].split()[0]):
            why = f"your plan allows only {plan['most_at_a_time']} at a time"
        while why:
            yield from self._say(f"Sorry, I cannot help: {why}.")

    def _mend_account(
        self,
        line_id: str,
        line: Mapping[str, Any],
        bills: Mapping[str, Mapping[str, Any]],
        abroad: bool,
        gb: int,
    ) -> Said:
        """Bills, the line, its roaming, its data."""
        if line["status"] == "suspended":
            for bill_id, bill in bills.items():
                if bill["status"] == "unpaid" and bill["due"] < _TODAY:
                    yield from self._say(
                        f"A bill of {bill['amount']} is overdue; I would send it to your phone. "
                        "Shall I go ahead?"
                    )
                    yield from self._call("request_payment", bill_id=bill_id)
                    yield from self._say("The bill is on your phone. Please pay it now.")
            yield from self._call("resume_line", line_id=line_id)
        if abroad and line["roaming"] == "off":
            yield from self._call("set_roaming", line_id=line_id, to="on")
        if gb:
            price = yield from self._call("price_of_data", line_id=line_id, gb=gb)
            yield from self._say(f"{gb} GB cost {price}. Shall I go ahead?")
            yield from self._call("add_data", line_id=line_id, gb=gb)

    def _mend_phone(self, trouble: str, abroad: bool, sim: str, resumed: bool) -> Said:
        """Have her mend her phone, page by page, and try whether all is well."""
        if sim == "out":
            asked = ("Please reseat the SIM card.", "Please take the SIM card out and put it back.")
            yield from self._have_done(*asked)
        if sim == "locked":
            yield from self._have_done("Please enter your PIN.")
        if resumed:
            yield from self._have_done("Your line is active again. Please restart the phone.")
        for page, faults in self._faults(trouble, abroad).items():
            seen = yield from self._look(page)
            for name, wrong, by_name, plainly in faults:
                if seen.get(name) == wrong:
                    yield from self._have_done(by_name, plainly)
        test, good = TESTS[trouble]
        while good not in (yield from self._look(test)).values():
            yield from self._say("Sorry, I cannot find out what is wrong.")

    def _faults(self, trouble: str, abroad: bool) -> Mapping[str, Sequence[Fault]]:
        """What to look for on each page."""
        if self._has["overdo"]:
            return EVERYTHING
        faults = dict(FAULTS[trouble])
        if abroad and trouble != SERVICE:
            faults[NETWORK] = (*faults[NETWORK], _ROAMING)
        return faults

    def _go_on(self, lines: Sequence[str]) -> Said:
        """Say that all is well, and suspend a lost phone's line if she wants that."""
        text = yield from self._say("All is well.")
        while True:
            number = _NUMBER.search(text)
            if number is None:
                text = yield from self._say("All is well.")
                continue
            yield from self._say(f"I would suspend {number[0]}. Shall I go ahead?")
            found = yield from self._call("find_number", number=number[0])
            if found["line_id"] in lines:
                yield from self._call("suspend_line", line_id=found["line_id"])
            text = yield from self._say(f"All is well, {number[0]} is suspended.")

    # --- a message at a time ----------------------------------------------------------------------

    def _say(self, text: str) -> Said:
        """Say something; what she answers."""
        answer = yield Message("assistant", text)
        return answer.content

    def _find_in(self, pattern: str, question: str) -> Said:
        """Ask until the answer holds what is asked for."""
        while True:
            found = re.search(pattern, (yield from self._say(question)))
            if found is not None:
                return found[0]

    def _look(self, question: str) -> Said:
        """Have her look at something; name to value of what she reads."""
        heard = yield from self._say(question)
        found = {name: _SEEN[name].search(heard) for name in LOOKS[question]}
        return {name: match[1] for name, match in found.items() if match}

    def _have_done(self, by_name: str, plainly: str = "") -> Said:
        """Have her do something; told what she does not understand in plain words."""
        heard = yield from self._say(by_name)
        if plainly and not _DID.search(heard):
            yield from self._say(plainly)

    def _call(self, tool: str, **arguments: Any) -> Said:
        """Call a tool; what it answers."""
        self._calls += 1
        call = ToolCall(id=f"expert_{self._calls}", name=tool, arguments=arguments)
        answer = yield Message("assistant", "", (call,))
        try:
            return json.loads(answer.content)
        except ValueError:
            return answer.content


_DID = re.compile(rf"\b({'|'.join(_VALUES)}|on again|paid)(?![\w-])")
"""What an answer holds once something is done."""


def _trouble(text: str) -> str:
    if re.search("picture|photo", text):
        return PICTURES
    return DATA if re.search("data|internet", text) else SERVICE
