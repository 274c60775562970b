"""Expressions as text: parsed with `ast`, built from a closed list of nodes, never `eval`.

Allowed are numbers, names, `+ - * / **`, unary `-` and `+`, parentheses, the functions in
`FUNCTIONS` as `tanh(x)` or `x.tanh()`, and `name = expression` parts divided by `;` or new lines.
"""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Callable, Iterable, Mapping
from math import inf, isfinite
from typing import Any, TypedDict

from dilim.errors import ExpressionError

from .naming import CONSTANT
from .value import Value, as_value

_SHOWN_WIDTH = 76  # characters of a long line that an error message shows

FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "relu": Value.relu,
    "tanh": Value.tanh,
    "sigmoid": Value.sigmoid,
    "exp": Value.exp,
    "log": Value.log,
    "sin": Value.sin,
    "cos": Value.cos,
    "sqrt": Value.sqrt,
    "abs": Value.abs,
}
_UNARY: dict[type, Callable[[Value], Value]] = {ast.USub: operator.neg, ast.UAdd: lambda x: x}
_BINARY: dict[type, Callable[[Value, Value], Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_OTHER_OPERATORS: dict[type, str] = {
    ast.Mod: "%",
    ast.FloorDiv: "//",
    ast.MatMult: "@",
    ast.BitXor: "^",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.LShift: "<<",
    ast.RShift: ">>",
}


class Evaluation(TypedDict):
    """What `evaluate` returns.

    Attributes:
        data: The result.
        grads: d(result)/d(name) for each name that was given.
    """

    data: float
    grads: dict[str, float]


def evaluate(text: str, /, **values: float) -> Evaluation:
    """Compute an expression and its gradient with respect to each name that is given.

    Args:
        text: Parts divided by `;` or new lines: `name = expression` any number of times, then the
            expression that is the result.
        **values: The number for each name.

    Returns:
        `{"data": result, "grads": {name: d(result)/d(name)}}`. A name that the result does not
        depend on has gradient 0.0. When a part gives a new meaning to a given name, the gradient
        is still that of the number given.

    Raises:
        ExpressionError: The text is not such an expression. The message is one line, followed by
            the line of the text with a caret under the place.
        TypeError: A value is no real number.

    Example:
        >>> evaluate("s = x * y; s * s", x=2.0, y=3.0)
        {'data': 36.0, 'grads': {'x': 36.0, 'y': 24.0}}
    """
    result, leaves = build_expression(text, values)
    result.backward()
    return {"data": result.data, "grads": {name: leaf.grad for name, leaf in leaves.items()}}


def build_expression(text: str, values: Mapping[str, float]) -> tuple[Value, dict[str, Value]]:
    """Build the graph of an expression, as `evaluate` does, without a backward pass.

    Args:
        text: See `evaluate`.
        values: The number for each name.

    Returns:
        The result, and the leaf for each name of `values`, labelled with it. Values named in the
        text carry that name as their label.

    Raises:
        ExpressionError: See `evaluate`.
        TypeError: A value is no real number.
    """
    leaves = {}
    for name, number in values.items():
        if name in FUNCTIONS:
            raise ExpressionError(f"expression: {name!r} is a function, give the value a new name")
        try:
            leaves[name] = Value(number, label=name)
        except TypeError as error:
            raise TypeError(f"expression: the value of {name!r}: {error}") from None
    return _Builder(text, leaves).build(), leaves


class _Builder:
    """Walks over the parts of one text; `names` is what a name means at this point."""

    def __init__(self, text: str, leaves: Mapping[str, Value]) -> None:
        if not isinstance(text, str):
            raise TypeError(f"expression: expected text, got {type(text).__name__} {text!r}")
        # Indentation has no meaning here, but Python's parser would refuse it.
        self.lines = [line.strip() for line in text.splitlines()]
        self.names = dict(leaves)

    def build(self) -> Value:
        statements = self.parse()
        if not statements:
            raise ExpressionError("expression: the text is empty, expected such as 'x * y'")
        *assignments, last = statements
        for statement in assignments:
            self.assign(statement)
        if isinstance(last, ast.Expr):
            return self.compute(last.value)
        if isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name):
            name = last.targets[0].id
            raise self.error(
                f"the last part must be the result, without a name; add '; {name}'", last
            )
        raise self.statement_error(last)

    def parse(self) -> list[ast.stmt]:
        try:
            return ast.parse("\n".join(self.lines)).body
        except SyntaxError as error:
            message = f"cannot read this: {error.msg}"
            place = (error.lineno or 1, (error.offset or 1) - 1)
            raise self.error_at(message, *place) from None
        except (RecursionError, MemoryError):
            raise ExpressionError(
                "expression: too deeply nested; give names to parts of it, as in 's = x * y; s * s'"
            ) from None
        except ValueError as error:  # a null character, before Python 3.12
            raise ExpressionError(f"expression: cannot read this: {error}") from None

    def assign(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=expression):
                if name in FUNCTIONS:
                    raise self.error(f"{name!r} is a function, choose another name", statement)
                value = self.compute(expression)
                if value.inputs and not value.label:
                    value.label = name
                self.names[name] = value
            case ast.Expr():
                raise self.error(
                    "only the last part may be without a name; write 'name = ...'", statement
                )
            case _:
                raise self.statement_error(statement)

    def compute(self, expression: ast.expr) -> Value:
        """Evaluate from the operands up, with stacks instead of recursion."""
        pending: list[tuple[ast.expr, Callable[..., Value] | None]] = [(expression, None)]
        results: list[Value] = []
        while pending:
            node, operation = pending.pop()
            if operation is None:
                operands, operation = self.understand(node)
                if operands:
                    pending.append((node, operation))
                    pending += ((operand, None) for operand in reversed(operands))
                    continue
                results.append(operation())
            else:
                count = 2 if isinstance(node, ast.BinOp) else 1
                arguments = results[-count:]
                value = operation(*arguments)
                if all(argument.op == CONSTANT for argument in arguments):
                    value = as_value(value.data)
                results[-count:] = [value]
        return results[0]

    def understand(self, node: ast.expr) -> tuple[list[ast.expr], Callable[..., Value]]:
        """Return the operands of a node and what to do with their values."""
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return [], lambda: self.constant(number, node)
            case ast.Name(id=name):
                return [], lambda: self.look_up(name, node)
            case ast.BinOp(left=left, op=symbol, right=right):
                if type(symbol) not in _BINARY:
                    raise self.operator_error(node)
                return [left, right], _BINARY[type(symbol)]
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                return [operand], _UNARY[type(sign)]
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self.call(name, arguments, node)
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=rest, keywords=[]):
                return self.call(name, [owner, *rest], node)
        raise self.error(f"{_kind(node)} is not allowed here", node)

    def call(
        self, name: str, arguments: list[ast.expr], node: ast.expr
    ) -> tuple[list[ast.expr], Callable[..., Value]]:
        if name not in FUNCTIONS:
            raise self.error(f"unknown function {name!r}{_suggestion(name, FUNCTIONS)}", node)
        if len(arguments) != 1 or isinstance(arguments[0], ast.Starred):
            raise self.error(f"{name} takes one argument, got {len(arguments)}", node)
        return arguments, FUNCTIONS[name]

    def constant(self, number: float, node: ast.expr) -> Value:
        try:
            value = as_value(number)
        except OverflowError:
            value = as_value(inf)
        if not isfinite(value.data):
            raise self.error("this number is too large, the limit is 1.8e308", node)
        return value

    def look_up(self, name: str, node: ast.expr) -> Value:
        if name in FUNCTIONS:
            raise self.error(f"{name!r} is a function, write {name}(...)", node)
        if name not in self.names:
            raise self.error(f"unknown name {name!r}{_suggestion(name, self.names)}", node)
        return self.names[name]

    def statement_error(self, statement: ast.stmt) -> ExpressionError:
        expected = "expected 'name = expression' or an expression"
        return self.error(f"{expected}, got {_kind(statement)}", statement)

    def operator_error(self, node: ast.BinOp) -> ExpressionError:
        symbol = _OTHER_OPERATORS[type(node.op)]
        cure = "for a power write **" if symbol == "^" else "known are + - * / **"
        line_number = node.left.end_lineno or node.lineno
        start = self.column(line_number, node.left.end_col_offset or 0)
        place = self.lines[line_number - 1].find(symbol, start)
        return self.error_at(f"unknown operator {symbol}, {cure}", line_number, max(place, start))

    def error(self, message: str, node: ast.stmt | ast.expr) -> ExpressionError:
        return self.error_at(message, node.lineno, self.column(node.lineno, node.col_offset))

    def error_at(self, message: str, line_number: int, column: int) -> ExpressionError:
        line = self.lines[line_number - 1] if line_number <= len(self.lines) else ""
        column = min(column, len(line))
        start = max(column - _SHOWN_WIDTH // 2, 0) if len(line) > _SHOWN_WIDTH else 0
        shown = line[start : start + _SHOWN_WIDTH]
        return ExpressionError(f"expression: {message}\n  {shown}\n  {' ' * (column - start)}^")

    def column(self, line_number: int, byte_offset: int) -> int:
        """Turn the parser's UTF-8 offset into a count of characters."""
        return len(self.lines[line_number - 1].encode()[:byte_offset].decode(errors="ignore"))


def _suggestion(name: str, known: Iterable[str]) -> str:
    """Name the nearest known name, or else all of them."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f", did you mean {near[0]!r}?"
    return f", known are {', '.join(known)}" if known else ", no names were given"


def _kind(node: Any) -> str:
    """Say in plain words what an `ast` node is."""
    words = {
        "Constant": "text or a truth value",
        "Compare": "a comparison",
        "BoolOp": "and/or",
        "Attribute": "an attribute",
        "Subscript": "an index",
        "IfExp": "if/else",
        "Call": "a call of this form",
        "UnaryOp": "this operator",
        "AugAssign": "an assignment such as += (write s = s + ...)",
        "Assign": "an assignment to something else than one name",
        "AnnAssign": "an assignment with a type",
    }
    kind = type(node).__name__
    return words.get(kind, f"Python's {kind}")
