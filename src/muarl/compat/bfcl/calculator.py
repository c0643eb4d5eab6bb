"""Arithmetic, statistics and units; no state."""

from __future__ import annotations

import decimal
import math
import operator
from collections.abc import Callable
from typing import Any

from muarl.compat.bfcl.toolkit import Api, function, refused
from muarl.errors import SetupError

try:
    import mpmath
except ModuleNotFoundError as missing:
    raise SetupError("BFCL's logarithms need mpmath: pip install 'muarl[bfcl]'") from missing

_MOST_DIGITS = 5000
"""Digits to which roots and logarithms are computed, and of powers; more is an error."""

_TWO = "Both inputs must be numbers"
_IMPERIAL = {
    "cm_to_in": 0.393701,
    "in_to_cm": 2.54,
    "m_to_ft": 3.28084,
    "ft_to_m": 0.3048,
    "m_to_yd": 1.09361,
    "yd_to_m": 0.9144,
    "km_to_miles": 0.621371,
    "miles_to_km": 1.60934,
    "kg_to_lb": 2.20462,
    "lb_to_kg": 0.453592,
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
            return {"result": context.log(value) / context.log(base)}
        except Exception as error:  # noqa: BLE001 - upstream's own boundary
            return refused(str(error))

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
            conversion = f"{unit_in}_to_{unit_out}"
            if conversion == "celsius_to_fahrenheit":
                return {"result": value * 9 / 5 + 32}
            if conversion == "fahrenheit_to_celsius":
                return {"result": (value - 32) * 5 / 9}
            if (factor := _IMPERIAL.get(conversion)) is None:
                return refused(f"Conversion from '{unit_in}' to '{unit_out}' is not supported")
            return {"result": value * factor}
        except OverflowError:
            return refused("Conversion resulted in a value too large to represent")

    @function()
    def add(self, a: Any, b: Any) -> Any:
        return _of_two(a, b, operator.add)

    @function()
    def subtract(self, a: Any, b: Any) -> Any:
        return _of_two(a, b, operator.sub)

    @function()
    def multiply(self, a: Any, b: Any) -> Any:
        return _of_two(a, b, operator.mul) if _is_number(a) and _is_number(b) else refused(_TWO)

    @function()
    def divide(self, a: Any, b: Any) -> Any:
        return refused("Cannot divide by zero") if b == 0 else _of_two(a, b, operator.truediv)

    @function()
    def power(self, base: Any, exponent: Any) -> Any:
        if isinstance(base, int) and isinstance(exponent, int):
            _bound(abs(base).bit_length() * exponent, "the power")
        return _of_two(base, exponent, operator.pow)

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
        try:
            return {"result": abs(number)}
        except TypeError:
            return refused("Input must be a number")

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
        if whole == 0:
            return refused("Whole value cannot be zero")
        return _of_two(part, whole, lambda a, b: (a / b) * 100)

    @function()
    def min_value(self, numbers: Any) -> Any:
        return _over(numbers, min, "find minimum")

    @function()
    def max_value(self, numbers: Any) -> Any:
        return _over(numbers, max, "find maximum")

    @function()
    def sum_values(self, numbers: Any) -> Any:
        return _over(numbers, sum, "calculate sum")


def _of_two(a: Any, b: Any, compute: Callable[[Any, Any], Any]) -> Any:
    try:
        return {"result": compute(a, b)}
    except TypeError:
        return refused(_TWO)


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
