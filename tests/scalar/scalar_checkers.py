"""Checks that the tests run on the right engine and on deliberately wrong ones."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from dilim.scalar import Value, evaluate

# text, values, result, gradients: all derived by hand.
CASES: list[tuple[str, dict[str, float], float, dict[str, float]]] = [
    ("a * b + a", {"a": 2, "b": 3}, 8, {"a": 4, "b": 2}),
    ("s = a + b; s * c", {"a": 1, "b": 2, "c": 4}, 12, {"a": 4, "b": 4, "c": 3}),
    ("s = x * y; s * s", {"x": 2, "y": 3}, 36, {"x": 36, "y": 24}),
    ("x * x", {"x": 5}, 25, {"x": 10}),
    ("x + x", {"x": 5}, 10, {"x": 2}),
    ("x - x", {"x": 5}, 0, {"x": 0}),
    ("x / x", {"x": 5}, 1, {"x": 0}),
    ("b = a + a; b + b", {"a": 1}, 4, {"a": 4}),
    ("x * x * x", {"x": 3}, 27, {"x": 27}),
    ("t = a * a; u = t + a; t * u", {"a": 2}, 24, {"a": 44}),
    ("x ** y", {"x": 2, "y": 3}, 8, {"x": 12, "y": 8 * math.log(2)}),
    ("b - c", {"b": 7, "c": 4}, 3, {"b": 1, "c": -1}),
    ("3 / v", {"v": 2}, 1.5, {"v": -0.75}),
    ("x", {"x": 4}, 4, {"x": 1}),
    ("x * x", {"x": 4, "unused": 9}, 16, {"x": 8, "unused": 0}),
    ("x = x * y; x + x", {"x": 2, "y": 3}, 12, {"x": 6, "y": 4}),
    ("tanh(x)", {"x": 0.5}, math.tanh(0.5), {"x": 1 - math.tanh(0.5) ** 2}),
    (
        "c = a + b; d = a * b + b ** 3; e = c - d; e ** 2",
        {"a": -4, "b": 2},
        4,
        {"a": 4, "b": 28},
    ),
]


def check_cases() -> None:
    """Compare `evaluate` with every row of the table."""
    for text, values, data, grads in CASES:
        assert evaluate(text, **values) == {
            "data": pytest.approx(data, rel=1e-14),
            "grads": {name: pytest.approx(grad, rel=1e-14) for name, grad in grads.items()},
        }, text


def check_second_call() -> None:
    """Leaves add up over calls, values in between do not."""
    x = Value(3.0)
    cube = x * x * x
    cube.backward()
    assert x.grad == 27.0
    cube.backward()
    assert x.grad == 54.0


# One instruction is (name, i, j): apply `name` to the values number i and j made so far.
Program = list[tuple[str, int, int]]
Operation = Callable[[Any, Any], Any]


def _operations(functions: Any) -> dict[str, Operation]:
    """All operations, smooth and finite for moderate arguments, on floats or on Values."""
    f = functions
    return {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "divide": lambda a, b: a / (1.0 + b * b),
        "power": lambda a, b: (1.0 + a * a) ** b,
        "square": lambda a, b: a**2,
        "inverse": lambda a, b: (2.0 + a * a) ** -1.5,
        "base": lambda a, b: 1.5**a,
        "negate": lambda a, b: -a,
        "number_left": lambda a, b: 3.0 - a + 2.0 * b + 1.0 / (2.0 + a * a),
        "relu": lambda a, b: f.relu(a),
        "abs": lambda a, b: abs(f.abs(a)),
        "tanh": lambda a, b: f.tanh(a),
        "sigmoid": lambda a, b: f.sigmoid(a),
        "exp": lambda a, b: f.exp(a),
        "log": lambda a, b: f.log(1.0 + a * a),
        "sin": lambda a, b: f.sin(a),
        "cos": lambda a, b: f.cos(a),
        "sqrt": lambda a, b: f.sqrt(1.0 + a * a),
    }


class NearKinkError(ArithmeticError):
    """A central difference would straddle the kink of relu or abs."""


def _away_from_kink(x: float) -> float:
    if abs(x) < 1e-2:
        raise NearKinkError
    return x


class _FloatFunctions:
    """The functions on floats, written without dilim."""

    relu = staticmethod(lambda x: max(0.0, _away_from_kink(x)))
    abs = staticmethod(lambda x: math.fabs(_away_from_kink(x)))
    tanh = staticmethod(math.tanh)
    sigmoid = staticmethod(lambda x: 0.5 * (1.0 + math.tanh(0.5 * x)))
    exp = staticmethod(math.exp)
    log = staticmethod(math.log)
    sin = staticmethod(math.sin)
    cos = staticmethod(math.cos)
    sqrt = staticmethod(math.sqrt)


ON_FLOATS = _operations(_FloatFunctions)
ON_VALUES = _operations(Value)


def run(program: Program, point: list[Any], operations: dict[str, Operation]) -> list[Any]:
    """Return all values: the point, then one per instruction."""
    values = list(point)
    for name, i, j in program:
        values.append(operations[name](values[i % len(values)], values[j % len(values)]))
    return values


def central_difference(program: Program, point: list[float], index: int, h: float) -> float:
    above, below = list(point), list(point)
    above[index] += h
    below[index] -= h
    rise = run(program, above, ON_FLOATS)[-1] - run(program, below, ON_FLOATS)[-1]
    return rise / (above[index] - below[index])


def numeric_gradient(program: Program, point: list[float]) -> list[float] | None:
    """Extrapolated central differences; None where they cannot be trusted."""
    try:
        if max(map(abs, run(program, point, ON_FLOATS))) > 1e3:
            return None
        gradient = []
        for index in range(len(point)):
            wide = central_difference(program, point, index, 2e-4)
            near = central_difference(program, point, index, 1e-4)
            if abs(wide - near) > 1e-5 * max(1.0, abs(near)):
                return None
            gradient.append((4.0 * near - wide) / 3.0)
    except ArithmeticError:
        return None
    return gradient


def check_program(program: Program, point: list[float]) -> bool:
    """Compare value and gradient with plain floats; False if the numbers were not usable."""
    expected = numeric_gradient(program, point)
    if expected is None:
        return False
    leaves = [Value(number) for number in point]
    result = run(program, leaves, ON_VALUES)[-1]
    result.backward()
    assert result.data == pytest.approx(run(program, point, ON_FLOATS)[-1], rel=1e-12, abs=1e-12)
    for leaf, numeric in zip(leaves, expected, strict=True):
        assert leaf.grad == pytest.approx(numeric, rel=1e-6, abs=1e-6), program
    return True
