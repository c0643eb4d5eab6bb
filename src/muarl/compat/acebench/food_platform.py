"""Food delivery: six people with passwords and balances, six merchants with two products each."""

from __future__ import annotations

from typing import Any, ClassVar

from muarl.compat.acebench.api import Language, Texts
from muarl.compat.acebench.base_api import BaseApi
from muarl.world import plain


class FoodPlatform(BaseApi):
    """State: `users` and `merchant_list` by name, `logged_in_users`, `orders`.

    The languages differ in more than texts: in Chinese nobody can spend her last yuan, and a search
    for orders raises unless merchants' names hold the word.
    """

    texts: ClassVar[Texts] = {
        "en": {
            "no_wifi": "Wi-Fi is not enabled, unable to login",
            "no_user": "User does not exist",
            "wrong_password": "Incorrect password",
            "logged_in_before": "{name} is already logged in",
            "logged_in": "User {name} has successfully logged in!",
            "nobody": "No users are currently logged in to the food platform",
            "not_logged_in": "User {name} is not logged in to the food platform",
            "no_such_merchant": "Merchant does not exist",
            "bad_quantity": "Invalid quantity {quantity} for product {product}",
            "no_product": "Product {product} does not exist in {merchant}'s menu",
            "too_poor": "Insufficient balance to place the order",
            "ordered": "Food delivery order successfully placed with {merchant}. "
            "Total amount: {total} yuan",
            "no_merchant": "Merchant '{merchant}' does not exist",
            "no_orders": "User has no order records",
            "none_found": "No matching orders found",
        },
        "zh": {
            "no_wifi": "wifi未打开，无法登录",
            "no_user": "用户不存在",
            "wrong_password": "密码错误",
            "logged_in_before": "{name} 已经登录",
            "logged_in": "用户{name}登陆成功！",
            "nobody": "当前没有登录food platform",
            "not_logged_in": "用户 {name} 未登录food platform",
            "no_such_merchant": "商家不存在",
            "bad_quantity": "无效的数量 {quantity} 对于商品 {product}",
            "no_product": "商品 {product} 不存在于 {merchant} 的菜单中",
            "too_poor": "余额不足，无法下单",
            "ordered": "外卖订单成功下单给 {merchant}，总金额为 {total} 元",
            "no_merchant": "商家 '{merchant}' 不存在",
            "no_orders": "用户没有订单记录",
            "none_found": "没有找到匹配的订单",
        },
    }

    def __init__(self, state: Any, language: Language) -> None:
        super().__init__(state, language)
        self._chinese = language == "zh"

    def login_food_platform(self, username: Any, password: Any) -> Any:
        if not self._state["wifi"]:
            return self._refused("no_wifi")
        if username not in self._state["users"]:
            return self._refused("no_user")
        if self._state["users"][username]["password"] != password:
            return self._refused("wrong_password")
        if username in self._state["logged_in_users"]:
            return self._refused("logged_in_before", name=username)
        self._state["logged_in_users"].append(username)
        return self._done("logged_in", name=username)

    def view_logged_in_users(self) -> Any:
        if not self._state["logged_in_users"]:
            return self._refused("nobody")
        return {"status": True, "logged_in_users": self._state["logged_in_users"]}

    def check_balance(self, user_name: Any) -> Any:
        if user_name in self._state["users"]:
            return self._state["users"][user_name]["balance"]
        return 0.0

    def add_food_delivery_order(self, username: Any, merchant_name: Any, items: Any) -> Any:
        if username not in self._state["logged_in_users"]:
            return self._refused("not_logged_in", name=username)
        if merchant_name not in self._state["merchant_list"]:
            return self._refused("no_such_merchant")
        menu = self._state["merchant_list"][merchant_name]["menu"]
        total, lines = 0.0, []
        for item in items:
            product, quantity = item.get("product"), item.get("quantity", 1)
            if not isinstance(quantity, int) or quantity <= 0:
                return self._refused("bad_quantity", quantity=quantity, product=product)
            price = next((dish["price"] for dish in menu if dish["product"] == product), None)
            if price is None:
                return self._refused("no_product", product=product, merchant=merchant_name)
            total += price * quantity
            lines.append({"product": product, "quantity": quantity, "price_per_unit": price})
        user = self._state["users"][username]
        if total > user["balance"] or (self._chinese and total == user["balance"]):
            return self._refused("too_poor")
        user["balance"] -= total
        self._state["orders"].append(
            {
                "user_name": username,
                "merchant_name": merchant_name,
                "items": lines,
                "total_price": total,
            }
        )
        return self._done("ordered", merchant=merchant_name, total=total)

    def get_products(self, merchant_name: Any) -> Any:
        if merchant := self._state["merchant_list"].get(merchant_name):
            return merchant["menu"]
        return self._refused("no_merchant", merchant=merchant_name)

    def view_orders(self, user_name: Any) -> Any:
        found = [order for order in self._state["orders"] if order["user_name"] == user_name]
        if not found:
            return self._refused("no_orders")
        return {"status": True, "orders": found}

    def search_orders(self, keyword: Any) -> Any:
        found = [
            order
            for order in plain(self._state["orders"])
            if keyword.lower() in order["merchant_name"].lower()
            # What is ordered is no text, and Chinese upstream takes it for one.
            or any(
                keyword.lower() in (line if self._chinese else line["product"]).lower()
                for line in order["items"]
            )
        ]
        if not found:
            return self._refused("none_found")
        return {"status": True, "orders": found}
