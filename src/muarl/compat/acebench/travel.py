"""Flights: eleven of them, three passengers, four reservations at the start."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, ClassVar

from muarl.compat.acebench.api import Api, Language, Texts

CABINS: dict[Language, tuple[str, str]] = {
    "en": ("Economy Class", "Business Class"),
    "zh": ("经济舱", "商务舱"),
}
_FREE_BAGS = {"regular": (1, 2), "silver": (2, 3), "gold": (3, 3)}
"""Bags without a fee, in economy and in business class."""
_BAG = 50
_NOW = datetime(2024, 7, 14, 6)  # noqa: DTZ001 - upstream's times have no zone


class Travel(Api):
    """State: `users` by id, `flights`, `reservations`.

    Known faults, kept: a password that is wrong is noticed by an exception; seats may go below
    zero; a cancelled reservation stays and can be cancelled again; several flights share a number,
    of which the first counts; extra bags are paid anew with every addition.
    """

    texts: ClassVar[Texts] = {
        "en": {
            "no_flights": "There are no direct flights that meet the criteria.",
            "wrong_password": "Incorrect username or password.",
            "no_id": "Please provide a valid reservation ID or user ID",
            "no_transfer": "No connecting flights that meet the criteria were found.",
            "bad_payment": "Invalid payment method",
            "too_poor": "Your {method} balance is insufficient. "
            "Please consider using another payment method.",
            "reserved": "Booking successful. Reservation ID: {number}. "
            "Total cost: {total} yuan (including baggage fees).",
            "no_reservation": "Reservation not found or user ID does not match.",
            "no_flight": "Flight information not found.",
            "changed": "Flight number has been changed.",
            "not_changed": "Flight change failed: "
            "Invalid new flight number or destination does not match.",
            "cabin_paid": "Cabin change successful. Price difference paid: {amount}.",
            "cabin_too_poor": "Insufficient balance to pay the cabin price difference.",
            "cabin_refunded": "Cabin change successful. Price difference refunded: {amount}.",
            "bags_paid": "Baggage has been added. Additional fee to be paid: {amount}.",
            "bags_too_poor": "Insufficient balance to pay the additional baggage fees.",
            "modified": "Modification completed with no additional fees.",
            "no_user": "Invalid user ID.",
            "not_hers": "Invalid reservation ID or it does not belong to the user.",
            "cancel_no_flight": "Invalid flight information.",
            "departed": "The flight segment has been used and cannot be canceled.",
            "airline_reason": "The airline has canceled the flight.",
            "airline_canceled": "The flight has been canceled. Your reservation will be canceled "
            "free of charge, and {refund} yuan has been refunded.",
            "canceled": "More than 24 hours before departure. Free cancellation successful, "
            "{refund} yuan has been refunded.",
            "canceled_late": "Less than 24 hours before departure. A cancellation fee of {fee} "
            "yuan has been deducted, and {refund} yuan has been refunded.",
        },
        "zh": {
            "no_flights": "没有符合条件的直达航班",
            "wrong_password": "用户名或密码不正确",
            "no_id": "请提供有效的预订ID或用户ID",
            "no_transfer": "未找到符合条件的中转航班。",
            "bad_payment": "支付方式无效",
            "too_poor": "{method}余额不足，请考虑换一种支付方式",
            "reserved": "预订成功，预订号：{number}，总费用：{total}元（包含行李费用）。",
            "no_reservation": "预订未找到或用户ID不匹配。",
            "no_flight": "航班信息未找到。",
            "changed": "航班号已更改。",
            "not_changed": "航班更改失败：新的航班号无效或目的地不匹配。",
            "cabin_paid": "舱位更改成功。已支付差价: {amount}。",
            "cabin_too_poor": "余额不足，无法支付舱位差价。",
            "cabin_refunded": "舱位更改成功。已退款差价: {amount}。",
            "bags_paid": "行李已增加。需支付额外费用: {amount}。",
            "bags_too_poor": "余额不足，无法支付额外行李费用。",
            "modified": "修改完成，无需额外费用。",
            "no_user": "用户ID无效。",
            "not_hers": "预订ID无效或与该用户无关。",
            "cancel_no_flight": "航班信息无效。",
            "departed": "航段已使用，无法取消。",
            "airline_reason": "航空公司取消航班",
            "airline_canceled": "航班已取消，您的预订将被免费取消，已退款{refund}元。",
            "canceled": "距离出发时间超过24小时，免费取消成功，已退款{refund}元。",
            "canceled_late": "距离出发时间不足24小时，已扣除取消费{fee}元，退款{refund}元。",
        },
    }

    def __init__(self, state: Any, language: Language) -> None:
        super().__init__(state, language)
        self._economy, self._business = CABINS[language]

    def get_flight_details(self, origin: Any = None, destination: Any = None) -> Any:
        flights = [
            dict(flight)
            for flight in self._state["flights"]
            if (not origin or flight["origin"] == origin)
            and (not destination or flight["destination"] == destination)
        ]
        return flights or self._say("no_flights")

    def get_user_details(self, user_id: Any, password: Any) -> Any:
        user = self.authenticate_user(user_id, password)
        return {key: value for key, value in user.items() if key != "password"}

    def get_reservation_details(self, reservation_id: Any = None, user_id: Any = None) -> Any:
        if not reservation_id and not user_id:
            return {"status": "error", "message": self._say("no_id")}
        field = "reservation_id" if reservation_id else "user_id"
        return [
            {**reservation, "flight_info": self._flight(reservation["flight_no"])}
            for reservation in self._state["reservations"]
            if reservation[field] == (reservation_id or user_id)
        ]

    def authenticate_user(self, user_id: Any, password: Any) -> Any:
        user = self._state["users"].get(user_id)
        if user and user["password"] == password:
            return user
        return {"status": "error", "message": self._say("wrong_password")}

    def get_baggage_allowance(self, membership_level: Any, cabin_class: Any) -> Any:
        free = _FREE_BAGS.get(membership_level)
        return 0 if free is None else self._by_cabin(free).get(cabin_class, 0)

    def find_transfer_flights(
        self, origin_city: Any, transfer_city: Any, destination_city: Any
    ) -> Any:
        pairs = [
            {"first_leg": first, "second_leg": second}
            for first in self._available(origin_city, transfer_city)
            for second in self._available(transfer_city, destination_city)
            if _time(first["arrival_time"]) < _time(second["depart_time"])
        ]
        return pairs or self._say("no_transfer")

    def calculate_baggage_fee(
        self, membership_level: Any, cabin_class: Any, baggage_count: Any
    ) -> Any:
        free = self._by_cabin(_FREE_BAGS[membership_level])[cabin_class]
        return max(baggage_count - free, 0) * _BAG

    def update_balance(self, user: Any, payment_method: Any, amount: Any) -> Any:
        if payment_method in ("cash", "bank"):
            purse = f"{payment_method}_balance"
            if user[purse] + amount < 0:
                return False
            user[purse] += amount
        return True

    def reserve_flight(
        self,
        user_id: Any,
        password: Any,
        flight_no: Any,
        cabin: Any,
        payment_method: Any,
        baggage_count: Any,
    ) -> Any:
        user = self.authenticate_user(user_id, password)
        # Neither an unknown flight nor a wrong password is looked for: both raise below.
        flight: Any = self._first(self._state["flights"], flight_no=flight_no, status="available")
        total = self._price(flight, cabin)
        total += self.calculate_baggage_fee(user["membership_level"], cabin, baggage_count)
        if payment_method not in ["cash", "bank"]:
            return self._say("bad_payment")
        purse = f"{payment_method}_balance"
        if total > user[purse]:
            return self._say("too_poor", method=payment_method)
        user[purse] -= total
        flight["seats_available"] -= 1
        number = f"res_{len(self._state['reservations']) + 1}"
        self._state["reservations"].append(
            {
                "reservation_id": number,
                "user_id": user_id,
                "flight_no": flight_no,
                "payment_method": payment_method,
                "cabin": cabin,
                "baggage": baggage_count,
            }
        )
        return self._say("reserved", number=number, total=total)

    def modify_flight(
        self,
        user_id: Any,
        reservation_id: Any,
        new_flight_no: Any = None,
        new_cabin: Any = None,
        add_baggage: Any = 0,
        new_payment_method: Any = None,
    ) -> Any:
        reservation = self._reservation(reservation_id, user_id)
        if not reservation:
            return self._say("no_reservation")
        flight = self._flight(reservation["flight_no"])
        if not flight:
            return self._say("no_flight")
        method = new_payment_method or reservation["payment_method"]
        user = self._state["users"][user_id]
        said = []
        if new_flight_no and new_flight_no != reservation["flight_no"]:
            other = self._flight(new_flight_no)
            if not other or any(other[end] != flight[end] for end in ("origin", "destination")):
                return self._say("not_changed")
            reservation["flight_no"] = new_flight_no
            said.append(self._say("changed"))
        if new_cabin and new_cabin != reservation["cabin"]:
            # The price is that of the flight before the change.
            said += self._changed_cabin(flight, reservation, new_cabin, user, method)
        if add_baggage > 0:
            said += self._added_bags(reservation, add_baggage, user, method)
        return " ".join(said or [self._say("modified")])

    def _changed_cabin(
        self, flight: Any, reservation: Any, cabin: Any, user: Any, method: Any
    ) -> list[str]:
        difference = self.calculate_price_difference(flight, reservation["cabin"], cabin)
        reservation["cabin"] = cabin
        paid = self.update_balance(user, method, -difference)
        if difference > 0:
            return [self._say("cabin_paid" if paid else "cabin_too_poor", amount=difference)]
        return [self._say("cabin_refunded", amount=-difference)] if difference < 0 else []

    def _added_bags(self, reservation: Any, bags: Any, user: Any, method: Any) -> list[str]:
        free = self.get_baggage_allowance(user["membership_level"], reservation["cabin"])
        total = reservation["baggage"] + bags
        cost = max(0, total - free) * _BAG
        said = []
        if cost > 0:
            paid = self.update_balance(user, method, -cost)
            said.append(self._say("bags_paid" if paid else "bags_too_poor", amount=cost))
        reservation["baggage"] = total
        return said

    def cancel_reservation(self, user_id: Any, reservation_id: Any, reason: Any) -> Any:
        user = self._state["users"].get(user_id)
        if not user:
            return self._say("no_user")
        reservation = self._reservation(reservation_id, user_id)
        if not reservation:
            return self._say("not_hers")
        flight = self._flight(reservation["flight_no"])
        if not flight:
            return self._say("cancel_no_flight")
        departs = _time(flight["depart_time"])
        if departs < _NOW:
            return self._say("departed")
        refund = self._price(flight, reservation["cabin"])
        if reason == self._say("airline_reason"):
            self.process_refund(user, refund)
            return self._say("airline_canceled", refund=refund)
        if departs - _NOW > timedelta(days=1):
            self.process_refund(user, refund)
            return self._say("canceled", refund=refund)
        fee = refund * 0.1
        self.process_refund(user, refund - fee)
        return self._say("canceled_late", fee=fee, refund=refund - fee)

    def process_refund(self, user: Any, amount: Any) -> Any:
        user["cash_balance"] += amount

    def calculate_price_difference(self, flight: Any, old_cabin: Any, new_cabin: Any) -> Any:
        prices = self._by_cabin((flight["economy_price"], flight["business_price"]))
        return prices.get(new_cabin, 0) - prices.get(old_cabin, 0)

    def _by_cabin(self, pair: tuple[Any, Any]) -> dict[str, Any]:
        return dict(zip((self._economy, self._business), pair, strict=True))

    def _price(self, flight: Any, cabin: Any) -> Any:
        return flight["economy_price" if cabin == self._economy else "business_price"]

    def _flight(self, number: Any) -> Any:
        return self._first(self._state["flights"], flight_no=number)

    def _reservation(self, number: Any, user_id: Any) -> Any:
        held = self._state["reservations"]
        return self._first(held, reservation_id=number, user_id=user_id)

    def _available(self, origin: Any, destination: Any) -> list[Any]:
        wanted = {"origin": origin, "destination": destination, "status": "available"}
        return [f for f in self._state["flights"] if _matches(f, wanted)]

    @staticmethod
    def _first(records: Iterable[Any], **wanted: Any) -> Any:
        return next((record for record in records if _matches(record, wanted)), None)


def _matches(record: Any, wanted: dict[str, Any]) -> bool:
    return all(record[field] == value for field, value in wanted.items())


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - no zone upstream
