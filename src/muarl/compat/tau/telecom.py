"""The carrier's side of telecom: customers, lines, bills, plans and devices.

A bill that refueling has to open gets a number drawn at random upstream; here it follows from the
customer and the day, so that a dialogue can be done again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from muarl.compat.tau.environment import Tau2Environment
from muarl.compat.tau.toolkit import Bare, Refused, Tau2Toolkit, tool

_TODAY = "2025-02-25"
_CYCLE_END = "2025-02-28"


class TelecomAgent(Tau2Toolkit):
    """The agent's thirteen tools."""

    @tool()
    def get_customer_by_phone(self, phone_number: str) -> Any:
        for customer in self.db["customers"]:
            if customer["phone_number"] == phone_number:
                return customer
            for line_id in customer["line_ids"]:
                if self._line(line_id)["phone_number"] == phone_number:
                    return customer
        raise Refused(f"Customer with phone number {phone_number} not found")

    @tool()
    def get_customer_by_id(self, customer_id: str) -> Any:
        for customer in self.db["customers"]:
            if customer["customer_id"] == customer_id:
                return customer
        raise Refused(f"Customer with ID {customer_id} not found")

    @tool()
    def get_customer_by_name(self, full_name: str, dob: str) -> Any:
        return [
            customer
            for customer in self.db["customers"]
            if customer["full_name"].lower() == full_name.lower()
            and customer["date_of_birth"] == dob
        ]

    @tool()
    def get_details_by_id(self, id: str) -> Any:  # noqa: A002
        if id.startswith("L"):
            return self._line(id)
        if id.startswith("D"):
            return self._one("devices", "device_id", id, "Device")
        if id.startswith("B"):
            return self._one("bills", "bill_id", id, "Bill")
        if id.startswith("C"):
            return self.get_customer_by_id(id)
        if id.startswith("P"):
            return self._plan(id)
        raise Refused(f"Unknown ID format or type: {id}")

    def _one(self, table: str, key: str, value: Any, what: str) -> Any:
        for row in self.db[table]:
            if row[key] == value:
                return row
        raise Refused(f"{what} with ID {value} not found")

    def _line(self, line_id: Any) -> Any:
        return self._one("lines", "line_id", line_id, "Line")

    def _plan(self, plan_id: Any) -> Any:
        return self._one("plans", "plan_id", plan_id, "Plan")

    def _line_of(self, customer_id: str, line_id: str) -> Any:
        customer = self.get_customer_by_id(customer_id)
        if line_id not in customer["line_ids"]:
            raise Refused(f"Line {line_id} not found for customer {customer_id}")
        return self._line(line_id)

    @tool(writes=True)
    def suspend_line(self, customer_id: str, line_id: str, reason: str) -> Any:
        line = self._line_of(customer_id, line_id)
        if line["status"] != "Active":
            raise Refused("Line must be active to suspend")
        line["status"] = "Suspended"
        line["suspension_start_date"] = _TODAY
        text = "Line suspended successfully. $5/month holding fee will apply."
        return Bare(message=text, line=line)

    @tool(writes=True)
    def resume_line(self, customer_id: str, line_id: str) -> Any:
        line = self._line_of(customer_id, line_id)
        if line["status"] not in ("Suspended", "Pending Activation"):
            raise Refused("Line must be suspended to resume")
        line["status"] = "Active"
        line["suspension_start_date"] = None
        return Bare(message="Line resumed successfully", line=line)

    def _bills(self, customer_id: str) -> list[Any]:
        customer = self.get_customer_by_id(customer_id)
        return [self._one("bills", "bill_id", name, "Bill") for name in customer["bill_ids"]]

    @tool()
    def get_bills_for_customer(self, customer_id: str, limit: int = 12) -> Any:
        bills = sorted(self._bills(customer_id), key=lambda b: str(b["issue_date"]), reverse=True)
        return bills[:limit]

    @tool(writes=True)
    def send_payment_request(self, customer_id: str, bill_id: str) -> Any:
        bills = self._bills(customer_id)
        if any(bill["status"] == "Awaiting Payment" for bill in bills):
            raise Refused("A bill is already awaiting payment for this customer")
        bill = next((bill for bill in bills if bill["bill_id"] == bill_id), None)
        if bill is None:
            raise Refused(f"Bill {bill_id} not found for customer {customer_id}")
        bill["status"] = "Awaiting Payment"
        return f"Payment request sent to the customer for bill {bill_id}"

    @tool()
    def get_data_usage(self, customer_id: str, line_id: str) -> Any:
        line = self._line_of(customer_id, line_id)
        return Bare(
            line_id=line_id,
            data_used_gb=line["data_used_gb"],
            data_limit_gb=self._plan(line["plan_id"])["data_limit_gb"],
            data_refueling_gb=line["data_refueling_gb"],
            cycle_end_date=_CYCLE_END,
        )

    @tool(writes=True)
    def enable_roaming(self, customer_id: str, line_id: str) -> str:
        line = self._line_of(customer_id, line_id)
        if line["roaming_enabled"]:
            return "Roaming was already enabled"
        line["roaming_enabled"] = True
        return "Roaming enabled successfully"

    @tool(writes=True)
    def disable_roaming(self, customer_id: str, line_id: str) -> str:
        line = self._line_of(customer_id, line_id)
        if not line["roaming_enabled"]:
            return "Roaming was already disabled"
        line["roaming_enabled"] = False
        return "Roaming disabled successfully"

    @tool()
    def transfer_to_human_agents(self, summary: str) -> str:
        return "Transfer successful"

    @tool(writes=True)
    def refuel_data(self, customer_id: str, line_id: str, gb_amount: float) -> Any:
        line = self._line_of(customer_id, line_id)
        if gb_amount <= 0:
            raise Refused("Refuel amount must be positive")
        price = self._plan(line["plan_id"])["data_refueling_price_per_gb"]
        charge = gb_amount * price
        line["data_refueling_gb"] = line["data_refueling_gb"] + gb_amount
        described = f"Data refueling: {gb_amount} GB at ${price}/GB"
        self._charge(customer_id, charge, described, "Charge")
        added = f"{gb_amount} GB of data for line {line_id}"
        return Bare(
            message=f"Successfully added {added} for ${charge:.2f}",
            new_data_refueling_gb=line["data_refueling_gb"],
            charge=charge,
        )

    def _charge(self, customer_id: str, amount: Any, description: str, item_type: str) -> None:
        """Put an item on the customer's draft bill, which is opened if there is none."""
        bill = next((b for b in self._bills(customer_id) if b["status"] == "Draft"), None)
        if bill is None:
            bill = self._draft(customer_id)
        bill["line_items"].append(
            {
                "description": description,
                "amount": amount,
                "date": _TODAY,
                "item_type": item_type,
            }
        )
        bill["total_due"] = bill["total_due"] + amount

    def _draft(self, customer_id: str) -> Any:
        customer = self.get_customer_by_id(customer_id)
        drawn = hashlib.sha256(f"{customer_id} {len(self.db['bills'])}".encode()).hexdigest()
        bill = {
            "bill_id": f"B{drawn[:8]}",
            "customer_id": customer_id,
            "period_start": "2025-03-01",
            "period_end": "2025-03-31",
            "issue_date": "2025-03-01",
            "total_due": 0.0,
            "due_date": "2025-03-15",
            "line_items": [],
            "status": "Draft",
        }
        self.db["bills"].append(bill)
        customer["bill_ids"].append(bill["bill_id"])
        return self.db["bills"][-1]

    # What tasks name to prepare the carrier's side, or to judge it.

    def set_data_usage(self, customer_id: str, line_id: str, data_used_gb: float) -> str:
        """Say how much a line has used."""
        self._line_of(customer_id, line_id)["data_used_gb"] = data_used_gb
        return f"Data usage set to {data_used_gb} GB for line {line_id}"

    def suspend_line_for_overdue_bill(
        self, customer_id: str, line_id: str, new_bill_id: str, contract_ended: bool
    ) -> None:
        """Suspend a line, with an overdue bill over its plan's price."""
        line = self._line_of(customer_id, line_id)
        plan = self._plan(line["plan_id"])
        customer = self.get_customer_by_id(customer_id)
        amount = plan["price_per_month"]
        item = {
            "description": f"Charge for line {line_id}",
            "amount": amount,
            "date": _TODAY,
            "item_type": "Charge",
        }
        self.db["bills"].append(
            {
                "bill_id": new_bill_id,
                "customer_id": customer_id,
                "period_start": "2025-01-01",
                "period_end": "2025-01-31",
                "issue_date": "2025-01-01",
                "total_due": amount,
                "due_date": "2025-01-15",
                "line_items": [item],
                "status": "Overdue",
            }
        )
        customer["bill_ids"].append(new_bill_id)
        line["status"] = "Suspended"
        line["suspension_start_date"] = _TODAY
        if contract_ended:
            line["contract_end_date"] = "2025-01-31"

    def assert_data_refueling_amount(
        self, customer_id: str, line_id: str, expected_amount: float
    ) -> bool:
        """Whether so much was refueled."""
        line = self._line_of(customer_id, line_id)
        return bool(abs(line["data_refueling_gb"] - expected_amount) < 1e-6)

    def assert_line_status(self, customer_id: str, line_id: str, expected_status: str) -> bool:
        """Whether a line has this status."""
        return bool(self._line_of(customer_id, line_id)["status"] == expected_status)

    def assert_overdue_bill_exists(self, customer_id: str, overdue_bill_id: str) -> bool:
        """Whether this bill of the customer is overdue."""
        bill = self._one("bills", "bill_id", overdue_bill_id, "Bill")
        mine = overdue_bill_id in self.get_customer_by_id(customer_id)["bill_ids"]
        return bool(mine and bill["status"] == "Overdue")

    def assert_no_overdue_bill(self, overdue_bill_id: str) -> bool:
        """Whether this bill is paid, or there is none."""
        bills: Sequence[Any] = [b for b in self.db["bills"] if b["bill_id"] == overdue_bill_id]
        return not bills or bool(bills[0]["status"] == "Paid")


class TelecomEnvironment(Tau2Environment):
    """The carrier and the phone, in step after every call."""

    agent: TelecomAgent

    def sync(self) -> None:
        """Show the phone its line's state, and the carrier a payment.

        Nothing happens while nobody said whose phone it is.
        """
        if self.user is None:
            return
        around = self.user.db["surroundings"]
        if around["phone_number"] is None:
            return
        carrier = self.agent
        number = around["phone_number"]
        line = next(x for x in carrier.db["lines"] if x["phone_number"] == number)
        plan = carrier._plan(line["plan_id"])
        limit = plan["data_limit_gb"] + line["data_refueling_gb"]
        for key, value in (
            ("line_active", line["status"] == "Active"),
            ("roaming_allowed", line["roaming_enabled"]),
            ("mobile_data_usage_exceeded", line["data_used_gb"] >= limit),
        ):
            if around[key] != value:
                around[key] = value
        self._settle(around, number)

    def _settle(self, around: Any, number: str) -> None:
        request = around["payment_request"]
        if request is not None and request["paid"]:
            bill = self.agent._one("bills", "bill_id", request["bill_id"], "Bill")
            bill["status"] = "Paid"
            around["payment_request"] = request = None
        if request is None:
            customer = self.agent.get_customer_by_phone(number)
            for bill in self.agent._bills(customer["customer_id"]):
                if bill["status"] == "Awaiting Payment":
                    around["payment_request"] = {
                        "bill_id": bill["bill_id"],
                        "amount_due": bill["total_due"],
                        "paid": False,
                    }
                    break


_FIELDS = {
    "plans": ("plan_id", "name", "data_limit_gb", "price_per_month", "data_refueling_price_per_gb"),
    "customers": (
        *("customer_id", "full_name", "date_of_birth", "email", "phone_number", "address"),
        *("account_status", "payment_methods", "line_ids", "bill_ids", "created_at"),
        *("last_extension_date", "goodwill_credit_used_this_year"),
    ),
    "lines": (
        *("line_id", "phone_number", "status", "plan_id", "device_id", "data_used_gb"),
        *("data_refueling_gb", "roaming_enabled", "contract_end_date", "last_plan_change_date"),
        *("last_sim_replacement_date", "suspension_start_date"),
    ),
    "bills": (
        *("bill_id", "customer_id", "period_start", "period_end", "issue_date", "total_due"),
        *("due_date", "line_items", "status"),
    ),
    "devices": (
        *("device_id", "device_type", "model", "imei", "is_esim_capable", "activated"),
        *("activation_date", "last_esim_transfer_date"),
    ),
}
_DEFAULTS = {"data_refueling_gb": 0.0, "line_items": (), "goodwill_credit_used_this_year": 0.0}
_TIMES = ("created_at", "activation_date", "last_esim_transfer_date")


def agent_database(db: Any) -> dict[str, Any]:
    """The database as tau2's models hold it: all fields, in their order.

    Args:
        db: The published `db.toml`.
    """
    return {
        table: [{key: _field(row, key) for key in fields} for row in db[table]]
        for table, fields in _FIELDS.items()
    }


def _field(row: Any, key: str) -> Any:
    value = row.get(key, _DEFAULTS.get(key))
    if key in _TIMES and value is not None:
        return str(value).replace("T", " ")
    return list(value) if isinstance(value, tuple) else value
