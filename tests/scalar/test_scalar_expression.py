"""Expressions as text."""

import math
import re

import pytest

from dilim.errors import DilimError, ExpressionError
from dilim.scalar import build_expression, evaluate


def test_result_and_gradients():
    assert evaluate("s = x * y; s * s", x=2.0, y=3.0) == {
        "data": 36.0,
        "grads": {"x": 36.0, "y": 24.0},
    }


@pytest.mark.parametrize(
    ("text", "data", "grad"),
    [
        ("x", 2.0, 1.0),
        ("5", 5.0, 0.0),
        ("x;", 2.0, 1.0),
        ("\n\n  y = x * x\n\n      z = y * x\n  z\n", 8.0, 12.0),
        ("y = x * x; z = y\nz + 1", 5.0, 4.0),
        ("x  # a comment", 2.0, 1.0),
        ("(x *\n   x)", 4.0, 4.0),
        ("-x ** 2", -4.0, -4.0),
        ("+x - -x", 4.0, 2.0),
        ("x ** -1", 0.5, -0.25),
        ("2 ** 3 ** 0 * x", 4.0, 2.0),
        ("1_000 * x + 0x10 + 1e1", 2026.0, 1000.0),
        ("tanh(x)", math.tanh(2), 1 - math.tanh(2) ** 2),
        ("x.tanh()", math.tanh(2), 1 - math.tanh(2) ** 2),
        ("(x * 3).relu().sqrt()", math.sqrt(6), 1.5 / math.sqrt(6)),
        ("exp(0) * sigmoid(0) * x + abs(-1) + cos(0) + sin(0) + log(1)", 3.0, 0.5),
        ("x / 0", math.inf, math.inf),
        ("x = x * x; x = x * x; x", 16.0, 32.0),
        ("ş = x * x; ş + 1", 5.0, 4.0),
        ("(x - 5) ** 2", 9.0, -6.0),
        ("(x - 5) ** (1 + 1)", 9.0, -6.0),
    ],
)
def test_forms(text, data, grad):
    result = evaluate(text, x=2.0)
    assert result["data"] == pytest.approx(data, rel=1e-15)
    assert result["grads"] == {"x": pytest.approx(grad, rel=1e-15)}


def test_names_carry_over_to_labels():
    result, leaves = build_expression("s = x * y; t = s; k = 3; t * k", {"x": 2, "y": 3})
    assert result.data == 18.0
    assert [node.label for node in result.graph()] == ["x", "y", "s", "", ""]
    assert set(leaves) == {"x", "y"}
    assert leaves["x"] in result.graph()
    assert leaves["x"].grad == 0.0


def test_names_that_are_python_words_elsewhere():
    assert evaluate("self + text", self=1, text=2) == {"data": 3.0, "grads": {"self": 1, "text": 1}}


def test_long_expression():
    count = 900
    assert evaluate(" + ".join(["x"] * count), x=1.5)["data"] == 1.5 * count
    text = "; ".join(["y = x", *(["y = y + x"] * 20_000), "y"])
    assert evaluate(text, x=1.0) == {"data": 20_001.0, "grads": {"x": 20_001.0}}


@pytest.mark.parametrize("text", ["(" * 150 + "x" + ")" * 150, "-" * 900 + "x"])
def test_deep_expression(text):
    assert evaluate(text, x=1.0)["data"] == 1.0


@pytest.mark.parametrize(
    "text", [" + ".join(["x"] * 100_000), "-" * 100_000 + "x", "x" + ".exp()" * 50_000]
)
def test_too_deep_expression(text):
    """How deep Python can parse depends on its version; beyond that it is a clear error."""
    try:
        assert evaluate(text, x=0.0)["data"] in (0.0, math.inf)
    except ExpressionError as error:
        assert re.search("too deeply nested; give names|cannot read this", str(error))  # noqa: PT017


# The message, then the line of the text, then the caret's column in it.
@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("x * z", "unknown name 'z', known are x, y", None, 4),
        ("xx + alpah", "unknown name 'xx', did you mean 'x'?", None, 0),
        ("s = x\ns + tanj(x)", "unknown function 'tanj', did you mean 'tanh'?", "s + tanj(x)", 4),
        ("x *", "cannot read this: invalid syntax", None, 3),
        ("(x + y", "cannot read this: '(' was never closed", None, 0),
        ("x ^ 2", "unknown operator ^, for a power write **", None, 2),
        ("(x + 1) % 2", "unknown operator %, known are + - * / **", None, 8),
        ("x // 2", "unknown operator //, known are + - * / **", None, 2),
        ("1 + exp", "'exp' is a function, write exp(...)", None, 4),
        ("exp(x, y)", "exp takes one argument, got 2", None, 0),
        ("1 + exp()", "exp takes one argument, got 0", None, 4),
        ("exp(*x)", "exp takes one argument, got 1", None, 0),
        ("exp(x=1)", "a call of this form is not allowed here", None, 0),
        ("tanh = x; x", "'tanh' is a function, choose another name", None, 0),
        ("y = x", "the last part must be the result, without a name; add '; y'", None, 0),
        ("x; y", "only the last part may be without a name; write 'name = ...'", None, 0),
        ("s = x; s += 1; s", "an assignment such as += (write s = s + ...)", None, 7),
        ("a, b = x; a", "an assignment to something else than one name", None, 0),
        ("a: float = x; a", "an assignment with a type", None, 0),
        ("import os", "got Python's Import", None, 0),
        ("x + y > 2", "a comparison is not allowed here", None, 0),
        ("x and y", "and/or is not allowed here", None, 0),
        ("not x", "this operator is not allowed here", None, 0),
        ("x + 'a'", "text or a truth value is not allowed here", None, 4),
        ("x * True", "text or a truth value is not allowed here", None, 4),
        ("2j * x", "text or a truth value is not allowed here", None, 0),
        ("x.data", "an attribute is not allowed here", None, 0),
        ("x[0]", "an index is not allowed here", None, 0),
        ("x if y else 1", "if/else is not allowed here", None, 0),
        ("lambda: x", "Python's Lambda is not allowed here", None, 0),
        ("1 + [x]", "Python's List is not allowed here", None, 4),
        ("__import__('os').system('true')", "unknown function 'system'", None, 0),
        ("x.__class__", "an attribute is not allowed here", None, 0),
        ("(lambda: x)()", "a call of this form is not allowed here", None, 0),
        ("1e999 * x", "this number is too large", None, 0),
        ("şş + çok", "unknown name 'şş', known are x, y", None, 0),
        ("x + çç + k", "unknown name 'çç', known are x, y", None, 4),
    ],
)
def test_errors_point_at_the_place(text, message, line, column):
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, x=2.0, y=3.0)
    first, shown, caret = str(caught.value).split("\n")
    assert first.startswith("expression: ")
    assert message in first
    assert shown == f"  {line or text}"
    assert caret == " " * (2 + column) + "^"


def test_caret_in_a_long_line():
    text = "x + " * 200 + "wrong" + " + x" * 200
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, x=2.0)
    _, shown, caret = str(caught.value).split("\n")
    assert len(shown) < 80
    assert shown[caret.index("^") :].startswith("wrong")


@pytest.mark.parametrize("number", ["9" * 400, "9" * 5000])
def test_number_too_large(number):
    with pytest.raises(ExpressionError, match=r"too large|Exceeds the limit"):
        evaluate(f"{number} * x", x=1.0)


@pytest.mark.parametrize("text", ["", "  \n ", "# only a comment"])
def test_empty_text(text):
    with pytest.raises(ExpressionError, match="the text is empty, expected such as"):
        evaluate(text)


def test_null_character():
    with pytest.raises(ExpressionError, match=r"cannot read this: .*null"):
        evaluate("x\0", x=1.0)


def test_no_names_given():
    with pytest.raises(ExpressionError, match="unknown name 'x', no names were given"):
        evaluate("x")


def test_wrong_values():
    with pytest.raises(TypeError, match="the value of 'x': Value: expected a real number, got str"):
        evaluate("x", x="2")
    with pytest.raises(ExpressionError, match="'exp' is a function, give the value a new name"):
        evaluate("x", x=2, exp=3)
    with pytest.raises(TypeError, match="expression: expected text, got int 3"):
        evaluate(3)


def test_error_is_a_value_error_of_dilim():
    assert issubclass(ExpressionError, ValueError)
    assert issubclass(ExpressionError, DilimError)
