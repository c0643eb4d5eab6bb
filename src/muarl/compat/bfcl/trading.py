"""A broker: stocks, orders, an account, a watch list."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from muarl.compat.bfcl.toolkit import Api, function, key_in, key_of, python_key, refused

_NOW = "10:30 AM"
_NOW_AT = datetime(2024, 9, 1, 10, 30)  # noqa: DTZ001 - upstream's clock knows no zone
_DAY_S = 24 * 3600
_OPENS, _CLOSES = "09:30 AM", "04:00 PM"


class TradingBot(Api):
    """Trading of one account; its clock stands, its timestamps are drawn."""

    MODULE = "trading_bot"
    LONG_CONTEXT = True

    @classmethod
    def begin(cls, config: Any, upstream: Any, *, long: bool) -> dict[str, Any]:
        state = super().begin(config, upstream, long=long)
        # Keys that are digits become numbers upstream; other ones stay, as `order_type` of its data.
        orders = state["orders"].items()
        state["orders"] = {key_of(int(k)) if k.isdigit() else k: v for k, v in orders}
        return state

    @property
    def _is_long(self) -> bool:
        return bool(self.state["long_context"])

    def _refused(self, doing: str) -> Any:
        return refused(f"User not authenticated. Please log in to {doing}.")

    def _timestamp(self) -> str:
        at = _NOW_AT + timedelta(seconds=self.draw("randint", 0, _DAY_S))
        return at.strftime("%Y-%m-%d %H:%M:%S")

    def _book(self, kind: str, amount: Any) -> Any:
        """Move money, note it, and tell the new balance."""
        account = self.state["account_info"]
        account["balance"] += amount if kind == "deposit" else -amount
        entry = {"type": kind, "amount": amount, "timestamp": self._timestamp()}
        self.state["transaction_history"].append(entry)
        return account["balance"]

    @function()
    def get_current_time(self) -> Any:
        return {"current_time": _NOW}

    @function("v3")
    def update_market_status(self, current_time_str: Any) -> Any:
        opens, closes, now = map(_clock, (_OPENS, _CLOSES, current_time_str))
        self.state["market_status"] = "Open" if opens <= now <= closes else "Closed"
        return {"status": self.state["market_status"]}

    @function()
    def get_symbol_by_name(self, name: Any) -> Any:
        symbols = self.upstream.table(self.MODULE, "TradingBot.get_symbol_by_name", "symbol_map")
        return {"symbol": symbols.get(name, "Stock not found")}

    @function()
    def get_stock_info(self, symbol: Any) -> Any:
        if symbol not in self.state["stocks"]:
            return refused(f"Stock with symbol '{symbol}' not found.")
        stock = self.state["stocks"][symbol]
        if not self._is_long:
            return stock
        averages = {
            "MA(5)": self.upstream.long["MA_5_EXTENSION"],
            "MA(20)": self.upstream.long["MA_20_EXTENSION"],
        }
        return {**stock, **averages}

    @function()
    def get_order_details(self, order_id: Any) -> Any:
        orders = self.state["orders"]
        if (key := key_in(orders, order_id)) is None:
            ids = [python_key(key) for key in orders]
            listed = f"Here is the list of orders_id: {ids}"
            return refused(f"Order with ID {order_id} not found.{listed}")
        order = orders[key]
        if not self._is_long:
            return order
        texts = self.upstream.long["ORDER_DETAIL_EXTENSION"]
        about = {key: text.replace("{symbol}", order["symbol"]) for key, text in texts.items()}
        return {**order, "metadata": about}

    @function()
    def cancel_order(self, order_id: Any) -> Any:
        if (key := key_in(self.state["orders"], order_id)) is None:
            return refused(f"Order with ID {order_id} not found.")
        order = self.state["orders"][key]
        if order["status"] == "Completed":
            return refused(f"Can't cancel order {order_id}. Order is already completed.")
        order["status"] = "Cancelled"
        return {"order_id": order_id, "status": "Cancelled"}

    @function()
    def place_order(self, order_type: Any, symbol: Any, price: Any, amount: Any) -> Any:
        if not self.state["authenticated"]:
            return self._refused("place an order")
        if symbol not in self.state["stocks"]:
            return refused(f"Invalid stock symbol: {symbol}")
        if price <= 0 or amount <= 0:
            return refused("Price and amount must be positive values.")
        price, balance = float(price), self.state["account_info"]["balance"]
        # Version 3 sells on credit.
        must_pay = self.version == "v4" and order_type.lower() == "buy"
        if must_pay and (cost := price * amount) > balance:
            short = f"required ${cost:.2f} but only ${balance:.2f} available."
            return refused(f"Insufficient funds: {short}")
        order_id = self.state["order_counter"]
        order = {"id": order_id, "order_type": order_type, "symbol": symbol, "price": price}
        self.state["orders"][key_of(order_id)] = {**order, "amount": amount, "status": "Open"}
        self.state["order_counter"] += 1
        return {
            "order_id": order_id,
            "order_type": order_type,
            "status": "Pending",
            "price": price,
            "amount": amount,
        }

    @function("v3")
    def make_transaction(self, account_id: Any, xact_type: Any, amount: Any) -> Any:
        if not self.state["authenticated"]:
            return self._refused("make a transaction")
        if self.state["market_status"] != "Open":
            return refused("Market is closed. Transactions are not allowed.")
        if account_id != self.state["account_info"]["account_id"]:
            return refused(f"Account with ID {account_id} not found.")
        if amount <= 0:
            return refused("Transaction amount must be positive.")
        if xact_type == "deposit":
            return {"status": "Deposit successful", "new_balance": self._book("deposit", amount)}
        if xact_type == "withdrawal":
            return self._withdrawn(amount)
        return refused("Invalid transaction type. Use 'deposit' or 'withdrawal'.")

    @function("v4")
    def withdraw_funds(self, amount: Any) -> Any:
        if not self.state["authenticated"]:
            return self._refused("make a transaction")
        if self.state["market_status"] != "Open":
            return refused("Market is closed. Transactions are not allowed.")
        if amount <= 0:
            return refused("Transaction amount must be positive.")
        return self._withdrawn(amount)

    def _withdrawn(self, amount: Any) -> Any:
        if amount > self.state["account_info"]["balance"]:
            return refused("Insufficient funds for withdrawal.")
        return {"status": "Withdrawal successful", "new_balance": self._book("withdrawal", amount)}

    @function()
    def get_account_info(self) -> Any:
        if not self.state["authenticated"]:
            return self._refused("view account information")
        return self.state["account_info"]

    @function()
    def trading_login(self, username: Any, password: Any) -> Any:
        if self.state["authenticated"]:
            return {"status": "Already logged in"}
        self.state["authenticated"] = True
        return {"status": "Logged in successfully"}

    @function()
    def trading_get_login_status(self) -> Any:
        return {"status": bool(self.state["authenticated"])}

    @function()
    def trading_logout(self) -> Any:
        if not self.state["authenticated"]:
            return {"status": "No user is currently logged in"}
        self.state["authenticated"] = False
        return {"status": "Logged out successfully"}

    @function()
    def fund_account(self, amount: Any) -> Any:
        if not self.state["authenticated"]:
            return self._refused("fund the account")
        if amount <= 0:
            return refused("Funding amount must be positive.")
        balance = self._book("deposit", amount)
        return {"status": "Account funded successfully", "new_balance": balance}

    @function()
    def remove_stock_from_watchlist(self, symbol: Any) -> Any:
        if not self.state["authenticated"]:
            return self._refused("modify the watchlist")
        if symbol not in self.state["watch_list"]:
            return refused(f"Stock {symbol} not found in watchlist.")
        self.state["watch_list"].remove(symbol)
        return {"status": f"Stock {symbol} removed from watchlist successfully."}

    @function()
    def get_watchlist(self) -> Any:
        if not self.state["authenticated"]:
            return ["Error: User not authenticated. Please log in to view the watchlist."]
        watched = list(self.state["watch_list"])
        if self._is_long:
            return watched + self.upstream.long["WATCH_LIST_EXTENSION"]
        return {"watchlist": watched}

    @function()
    def get_order_history(self) -> Any:
        if not self.state["authenticated"]:
            return [self._refused("view order history")]
        return {"history": [python_key(key) for key in self.state["orders"]]}

    @function()
    def get_transaction_history(self, start_date: Any = None, end_date: Any = None) -> Any:
        if not self.state["authenticated"]:
            return [self._refused("view transaction history")]
        begin, end = datetime.min, datetime.max  # noqa: DTZ901 - compared with naive times only
        if start_date:
            begin = datetime.strptime(start_date, "%Y-%m-%d")  # noqa: DTZ007
        if end_date:
            end = datetime.strptime(end_date, "%Y-%m-%d")  # noqa: DTZ007
        history = [
            entry
            for entry in self.state["transaction_history"]
            if begin <= datetime.strptime(entry["timestamp"], "%Y-%m-%d %H:%M:%S") <= end  # noqa: DTZ007
        ]
        if self._is_long:
            history += self.upstream.long["TRANSACTION_HISTORY_EXTENSION"]
        return {"transaction_history": history}

    @function("v3")
    def update_stock_price(self, symbol: Any, new_price: Any) -> Any:
        if symbol not in self.state["stocks"]:
            return refused(f"Stock with symbol '{symbol}' not found.")
        if new_price <= 0:
            return refused("New price must be a positive value.")
        stock = self.state["stocks"][symbol]
        old_price = stock["price"]
        stock["price"] = new_price
        stock["percent_change"] = ((new_price - old_price) / old_price) * 100
        return {"symbol": symbol, "old_price": old_price, "new_price": new_price}

    @function()
    def get_available_stocks(self, sector: Any) -> Any:
        table = self.upstream.table(self.MODULE, "TradingBot.get_available_stocks", "sector_map")
        stocks = list(table.get(sector, []))
        if self._is_long and stocks:
            stocks += self.upstream.long[f"{sector.upper()}_EXTENSION"]
        return {"stock_list": stocks}

    @function()
    def filter_stocks_by_price(self, stocks: Any, min_price: Any, max_price: Any) -> Any:
        known = self.state["stocks"]
        filtered = [
            stock
            for stock in stocks
            if known.get(stock, {}).get("price", 0) >= min_price
            and known.get(stock, {}).get("price", 0) <= max_price
        ]
        return {"filtered_stocks": filtered}

    @function()
    def add_to_watchlist(self, stock: Any) -> Any:
        watched = self.state["watch_list"]
        if stock not in watched and stock in self.state["stocks"]:
            watched.append(stock)
        return {"symbol" if self.version == "v3" else "watchlist": watched}

    @function()
    def notify_price_change(self, stocks: Any, threshold: Any) -> Any:
        known = self.state["stocks"]
        changed = [
            stock
            for stock in stocks
            if stock in known and abs(known[stock]["percent_change"]) >= threshold
        ]
        if not changed:
            return {"notification": "No significant price changes in the selected stocks."}
        return {"notification": f"Stocks {', '.join(changed)} have significant price changes."}


def _clock(text: Any) -> datetime:
    return datetime.strptime(text, "%I:%M %p")  # noqa: DTZ007
