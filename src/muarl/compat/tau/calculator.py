"""The calculator of both benchmarks: Python's arithmetic on numbers, parsed and never evaluated."""

from __future__ import annotations

import ast
from typing import Any

from muarl.compat.arithmetic import ARITHMETIC, SIGNS
from muarl.compat.tau.toolkit import Refused

_CHARACTERS = "0123456789+-*/(). "
_LONGEST = 1000
_LARGEST_POWER = 4096
"""Bits of a power; the official tool would compute until it has no memory."""


def calculated(expression: str, invalid: str) -> str:
    """The value of an expression, rounded to two decimals.

    Args:
        expression: Digits, `+-*/().` and spaces.
        invalid: What to say of other characters.

    Raises:
        Refused: Other characters, or what is no arithmetic.
        SyntaxError: No expression, with Python's own words.
        ArithmeticError: Division by zero and the like, likewise.

    Example:
        >>> calculated("10 / 4 + 2 ** 3", "invalid characters in expression")
        '10.5'
    """
    if not all(character in _CHARACTERS for character in expression):
        raise Refused(invalid)
    if len(expression) > _LONGEST:
        raise Refused("expression too long")
    # `eval` drops what stands before an expression; `parse` calls it an indent.
    tree = ast.parse(expression.lstrip(), "<string>", "eval")
    return str(round(float(_value(tree.body)), 2))


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.UnaryOp) and type(node.op) in SIGNS:
        return SIGNS[type(node.op)](_value(node.operand))
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow) and _bits(left) * abs(right) > _LARGEST_POWER:
            raise OverflowError("the power is too large")
        return ARITHMETIC[type(node.op)](left, right)
    if isinstance(node, ast.Tuple):  # "()": an empty tuple, which is no number
        raise TypeError("float() argument must be a string or a real number, not 'tuple'")
    raise TypeError("not an arithmetic expression")


def _bits(value: Any) -> int:
    return max(value.bit_length(), 1) if isinstance(value, int) else 1
