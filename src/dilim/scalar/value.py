"""`Value`: a number that remembers how it was made, so that derivatives can be traced back.

Each operation makes a new `Value`. It keeps its one or two inputs and, for each of them, the local
derivative, here called slope: how fast the result grows when that input grows. `backward()` then
walks from the result to the leaves and applies the chain rule:

    input.grad += slope * result.grad      (adds, as a value used twice acts along two paths)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from numbers import Real
from typing import Any

from . import drawing, ieee, steps
from .naming import CONSTANT


def as_value(number: Value | float) -> Value:
    """Return a `Value` as it is and a number as a new constant."""
    if isinstance(number, Value):
        return number
    constant = Value(number)
    constant.op = CONSTANT
    return constant


def _result(
    data: float,
    op: str,
    left: Value,
    left_slope: float,
    right: Value | None = None,
    right_slope: float = 0.0,
) -> Value:
    node: Value = object.__new__(Value)  # faster than Value(...), whose checks are not needed here
    node.data = data
    node.grad = 0.0
    node.has_grad = False
    node.label = ""
    node.op = op
    node._left = left
    node._left_slope = left_slope
    node._right = right
    node._right_slope = right_slope
    return node


def _reflected(operation: Callable[[Value, Value], Value]) -> Callable[[Value, float], Value]:
    """Return the method that Python calls when only the right operand is a `Value`."""
    return lambda self, number: operation(as_value(number), self)


def _compared(compare: Callable[[float, Any], bool]) -> Callable[[Value, object], bool]:
    """Return a method that compares `data` with a number or with another `data`."""
    return lambda self, other: compare(self.data, other.data if isinstance(other, Value) else other)


class Value:
    """One float, its gradient, and how it was made.

    `+ - * / **`, unary `-` and `abs()` take a `Value` or a number on either side. Operands never
    change: `x += 1` makes a new `Value` and calls it `x`. Outside its domain an operation gives
    inf or nan and does not raise. `== != < <= > >=` compare `data`, but the hash goes by identity:
    sets and dictionary keys keep equal values apart, `value in a_list` does not.

    Attributes:
        data: The number. That of a leaf may be changed: `w.data -= 0.1 * w.grad`.
        grad: d(result)/d(self), a float; 0.0 at first.
        has_grad: Whether a backward pass has reached this value since it was made or zeroed.
        label: A name for pictures and messages.
        op: What made it: `+ - * / **`, `neg`, a function's name, or `constant`; empty for a leaf.

    Example:
        >>> x, y = Value(2.0), Value(3.0)
        >>> s = x * y
        >>> (s * s).backward()
        >>> x.grad, y.grad
        (36.0, 24.0)
    """

    __slots__ = tuple(
        "data grad has_grad label op _left _left_slope _right _right_slope __weakref__".split()
    )
    __array_ufunc__ = None  # a NumPy scalar on the left then leaves the work to the methods here

    def __init__(self, data: float, label: str = "") -> None:
        if type(data) not in (float, int) and not isinstance(data, Real):
            raise TypeError(f"Value: expected a real number, got {type(data).__name__} {data!r}")
        self.data = float(data)
        self.grad, self.has_grad = 0.0, False
        self.label = label
        self.op = ""
        self._left: Value | None = None
        self._right: Value | None = None
        self._left_slope = self._right_slope = 0.0

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that this one was computed from: none, one or two."""
        return tuple(node for node in (self._left, self._right) if node is not None)

    def __repr__(self) -> str:
        return f"Value(data={self.data}, grad={self.grad})"

    # Operations: the result, then each input beside its slope.

    def __add__(self, other: Value | float) -> Value:
        other = other if type(other) is Value else as_value(other)
        return _result(self.data + other.data, "+", self, 1.0, other, 1.0)

    def __sub__(self, other: Value | float) -> Value:
        other = other if type(other) is Value else as_value(other)
        return _result(self.data - other.data, "-", self, 1.0, other, -1.0)

    def __mul__(self, other: Value | float) -> Value:
        other = other if type(other) is Value else as_value(other)
        a, b = self.data, other.data
        return _result(a * b, "*", self, b, other, a)

    def __truediv__(self, other: Value | float) -> Value:
        other = other if type(other) is Value else as_value(other)
        b = other.data
        out = ieee.divide(self.data, b)
        return _result(out, "/", self, ieee.divide(1.0, b), other, -ieee.divide(out, b))

    def __pow__(self, other: Value | float) -> Value:
        other = other if type(other) is Value else as_value(other)
        a, b = self.data, other.data
        out = ieee.power(a, b)
        slope_a = b * ieee.power(a, b - 1.0) if b != 0.0 else 0.0
        # A constant needs no slope. 0^b is flat for b >= 0; elsewhere d(a^b)/db = a^b log(a).
        is_flat = other.op == CONSTANT or (a == 0.0 and b >= 0.0)
        return _result(out, "**", self, slope_a, other, 0.0 if is_flat else out * ieee.log(a))

    def __neg__(self) -> Value:
        return _result(-self.data, "neg", self, -1.0)

    __radd__ = _reflected(operator.add)
    __rsub__ = _reflected(operator.sub)
    __rmul__ = _reflected(operator.mul)
    __rtruediv__ = _reflected(operator.truediv)
    __rpow__ = _reflected(operator.pow)

    def relu(self) -> Value:
        """max(x, 0); slope 1 above 0, 0 elsewhere."""
        return _result(max(self.data, 0.0), "relu", self, float(self.data > 0.0))

    def tanh(self) -> Value:
        """Hyperbolic tangent t; slope 1 - t^2."""
        out = math.tanh(self.data)
        return _result(out, "tanh", self, 1.0 - out * out)

    def sigmoid(self) -> Value:
        """Logistic function s = 1 / (1 + exp(-x)); slope s (1 - s)."""
        out = ieee.sigmoid(self.data)
        return _result(out, "sigmoid", self, out * (1.0 - out))

    def exp(self) -> Value:
        """e^x, inf above 709.78; slope e^x."""
        out = ieee.exp(self.data)
        return _result(out, "exp", self, out)

    def log(self) -> Value:
        """Natural logarithm, -inf at 0, nan below; slope 1 / x."""
        return _result(ieee.log(self.data), "log", self, ieee.divide(1.0, self.data))

    def sin(self) -> Value:
        """Sine of x in radians; slope cos(x)."""
        return _result(ieee.sin(self.data), "sin", self, ieee.cos(self.data))

    def cos(self) -> Value:
        """Cosine of x in radians; slope -sin(x)."""
        return _result(ieee.cos(self.data), "cos", self, -ieee.sin(self.data))

    def sqrt(self) -> Value:
        """Square root r, nan below 0; slope 1 / 2r, inf at 0."""
        out = ieee.sqrt(self.data)
        return _result(out, "sqrt", self, ieee.divide(0.5, out))

    def abs(self) -> Value:
        """Absolute value; slope -1 below 0, 1 above, 0 at 0."""
        slope = float(self.data > 0.0) - float(self.data < 0.0)
        return _result(math.fabs(self.data), "abs", self, slope)

    __abs__ = abs
    __hash__ = object.__hash__
    __eq__ = _compared(operator.eq)
    __lt__ = _compared(operator.lt)
    __le__ = _compared(operator.le)
    __gt__ = _compared(operator.gt)
    __ge__ = _compared(operator.ge)

    def __bool__(self) -> bool:
        return self.data != 0.0

    def graph(self) -> list[Value]:
        """Return every value of this expression once, each after its inputs: topological order.

        Depth first, along a path that is a list instead of recursion: no expression is too long.
        """
        order: list[Value] = []
        seen = {self}
        path = [self]
        while path:
            left, right = path[-1]._left, path[-1]._right
            if left is not None and left not in seen:
                seen.add(left)
                path.append(left)
            elif right is not None and right not in seen:
                seen.add(right)
                path.append(right)
            else:  # all inputs are in `order` by now
                order.append(path.pop())
        return order

    def backward(self) -> None:
        """Add d(self)/d(leaf) to the `grad` of each leaf and fill the `grad` of all in between.

        Values in between start from zero at every call. Leaves add up until `zero_grad()`. A
        gradient of zero passes on zeros, even where the slope is infinite.
        """
        order = self.graph()
        for node in order:
            node.has_grad = True
            if node._left is not None:
                node.grad = 0.0
        self.grad += 1.0
        # Reversed: users before inputs, so a grad is complete before it is passed on.
        for node in reversed(order):
            left, grad = node._left, node.grad
            if left is not None and grad != 0.0:
                left.grad += node._left_slope * grad
                right = node._right
                if right is not None:
                    right.grad += node._right_slope * grad

    def zero_grad(self) -> None:
        """Set the `grad` of every value of this expression to 0.0."""
        for node in self.graph():
            node.grad, node.has_grad = 0.0, False

    backward_steps = steps.backward_steps
    to_text = drawing.to_text
    to_dot = drawing.to_dot
    to_svg = _repr_svg_ = drawing.to_svg
