"""Arithmetic, statistics and units; no state."""

from __future__ import annotations

import decimal
import math
from typing import Any

import mpmath

from muarl.compat.bfcl.toolkit import Api, function, refused

_MOST_DIGITS = 5000
"""Digits to which roots and logarithms are computed, and of powers; more is an error."""

_TWO = "Both inputs must be numbers"
_FACTORS = {
    ("cm", "in"): 0.393701,
    ("in", "cm"): 2.54,
    ("m", "ft"): 3.28084,
    ("ft", "m"): 0.3048,
    ("m", "yd"): 1.09361,
    ("yd", "m"): 0.9144,
    ("km", "miles"): 0.621371,
    ("miles", "km"): 1.60934,
    ("kg", "lb"): 2.20462,
    ("lb", "kg"): 0.453592,
}


class MathAPI(Api):
    """Functions of numbers."""

    MODULE = "math_api"

    @function()
    def logarithm(self, value: Any, base: Any, precision: Any) -> Any:
        context = mpmath.MPContext()
        if isinstance(precision, (int, float)) and precision > _MOST_DIGITS:
            raise ValueError(f"precision {precision} is more than {_MOST_DIGITS}")
        try:
            context.dps = precision
            result = context.log(value) / context.log(base)
        except Exception as error:  # noqa: BLE001 - upstream's own boundary
            return refused(str(error))
        return {"result": result}

    @function()
    def mean(self, numbers: Any) -> Any:
        if not numbers:
            return refused("Cannot calculate mean of an empty list")
        try:
            return {"result": sum(numbers) / len(numbers)}
        except TypeError:
            return refused("All elements in the list must be numbers")

    @function()
    def standard_deviation(self, numbers: Any) -> Any:
        if not numbers:
            return refused("Cannot calculate standard deviation of an empty list")
        try:
            mean = sum(numbers) / len(numbers)
            variance = sum((x - mean) ** 2 for x in numbers) / len(numbers)
            return {"result": math.sqrt(variance)}
        except TypeError:
            return refused("All elements in the list must be numbers")

    @function()
    def si_unit_conversion(self, value: Any, unit_in: Any, unit_out: Any) -> Any:
        if not _is_number(value):
            return refused("Value must be a number")
        meters = self.upstream.table(self.MODULE, "MathAPI.si_unit_conversion", "to_meters")
        if unit_in not in meters or unit_out not in meters:
            return refused(f"Conversion from '{unit_in}' to '{unit_out}' is not supported")
        try:
            return {"result": value * meters[unit_in] / meters[unit_out]}
        except OverflowError:
            return refused("Conversion resulted in a value too large to represent")

    @function()
    def imperial_si_conversion(self, value: Any, unit_in: Any, unit_out: Any) -> Any:
        if not _is_number(value):
            return refused("Value must be a number")
        try:
            if unit_in == unit_out:
                return {"result": value}
            if (unit_in, unit_out) == ("celsius", "fahrenheit"):
                return {"result": value * 9 / 5 + 32}
            if (unit_in, unit_out) == ("fahrenheit", "celsius"):
                return {"result": (value - 32) * 5 / 9}
            if (factor := _FACTORS.get((unit_in, unit_out))) is None:
                return refused(f"Conversion from '{unit_in}' to '{unit_out}' is not supported")
            return {"result": value * factor}
        except OverflowError:
            return refused("Conversion resulted in a value too large to represent")

    @function()
    def add(self, a: Any, b: Any) -> Any:
        return {"result": a + b} if _is_number(a) and _is_number(b) else refused(_TWO)

    @function()
    def subtract(self, a: Any, b: Any) -> Any:
        return {"result": a - b} if _is_number(a) and _is_number(b) else refused(_TWO)

    @function()
    def multiply(self, a: Any, b: Any) -> Any:
        return {"result": a * b} if _is_number(a) and _is_number(b) else refused(_TWO)

    @function()
    def divide(self, a: Any, b: Any) -> Any:
        if not (_is_number(a) and _is_number(b)):
            return refused(_TWO)
        return {"result": a / b} if b != 0 else refused("Cannot divide by zero")

    @function()
    def power(self, base: Any, exponent: Any) -> Any:
        if not (_is_number(base) and _is_number(exponent)):
            return refused(_TWO)
        if isinstance(base, int) and isinstance(exponent, int):
            _bound(abs(base).bit_length() * exponent, "the power")
        return {"result": base**exponent}

    @function()
    def square_root(self, number: Any, precision: Any) -> Any:
        try:
            if number < 0:
                return refused("Cannot calculate square root of a negative number")
            _bound(precision, "the precision")
            with decimal.localcontext() as context:
                context.prec = precision
                return {"result": decimal.Decimal(number).sqrt()}
        except (TypeError, decimal.InvalidOperation):
            wrong = "Input must be a number or computation resulted in an invalid operation"
            return refused(wrong)

    @function()
    def absolute_value(self, number: Any) -> Any:
        return {"result": abs(number)} if _is_number(number) else refused("Input must be a number")

    @function()
    def round_number(self, number: Any, decimal_places: Any = 0) -> Any:
        if isinstance(decimal_places, int):
            _bound(abs(decimal_places), "the number of places")
        try:
            return {"result": round(number, decimal_places)}
        except TypeError:
            wrong = "First input must be a number, second input must be an integer"
            return refused(wrong)

    @function()
    def percentage(self, part: Any, whole: Any) -> Any:
        if not (_is_number(part) and _is_number(whole)):
            return refused(_TWO)
        return (
            {"result": part / whole * 100} if whole != 0 else refused("Whole value cannot be zero")
        )

    @function()
    def min_value(self, numbers: Any) -> Any:
        return _over(numbers, min, "find minimum")

    @function()
    def max_value(self, numbers: Any) -> Any:
        return _over(numbers, max, "find maximum")

    @function()
    def sum_values(self, numbers: Any) -> Any:
        return _over(numbers, sum, "calculate sum")


def _over(numbers: Any, reduce: Any, doing: str) -> Any:
    if not numbers:
        return refused(f"Cannot {doing} of an empty list")
    try:
        return {"result": reduce(numbers)}
    except TypeError:
        return refused("All elements in the list must be numbers")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _bound(size: Any, what: str) -> None:
    """Refuse what would take memory and time without end; upstream would try.

    Raises:
        OverflowError: It is too large.
    """
    if size > _MOST_DIGITS * 10:
        raise OverflowError(f"{what} is too large")
