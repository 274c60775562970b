"""check_grad: our gradients beside central differences."""

import math
import operator

import pytest

from dilim.scalar import Value, check_grad, compare_gradients
from dilim.scalar.checking import _OPERATIONS
from dilim.scalar.expression import FUNCTIONS


def formula(a, b, c):
    return -(a**3) + (3 * b).sin() - 1.0 / c + b**2.5 - a**0.5


POINT = {"a": 2.0, "b": 3.0, "c": 4.0}
GRADIENTS = {"a": -12.353553390593273, "b": 10.25699027111255, "c": 0.0625}
TEXT = "-a**3 + sin(3*b) - 1/c + b**2.5 - a**0.5"


@pytest.mark.parametrize("expression", [formula, TEXT])
def test_text_and_function(expression):
    for item in compare_gradients(expression, **POINT):
        assert item.value == POINT[item.name]
        assert item.ours == pytest.approx(GRADIENTS[item.name], rel=1e-14)
        assert item.difference < 2e-9
        assert item.agrees


def test_finished_value_is_left_alone():
    a, b, c = Value(2.0, label="a"), Value(3.0, label="b"), Value(4.0)
    result = formula(a, b, c)
    a.grad = 5.0
    found = {item.name: item for item in compare_gradients(result)}
    assert [found["a"].ours, found["b"].ours] == pytest.approx([-12.353553390593273, 10.25699027])
    assert len(found) == 3
    assert all(item.agrees for item in found.values())
    assert (a.grad, b.grad, a.data, result.has_grad) == (5.0, 0.0, 2.0, False)


def test_output(capsys):
    assert check_grad("x * y", x=2.0, y=3) is True
    lines = capsys.readouterr().out.split("\n")
    assert lines[0].split() == ["leaf", "value", "ours", "numeric", "difference"]
    assert lines[1].split()[:4] == ["x", "2", "3", "3"]
    assert lines[1].endswith("agrees")
    assert lines[2].split()[:4] == ["y", "3", "2", "2"]


def test_disagreement_is_shown(capsys):
    def wrong(x):
        result = x * x
        result._left_slope = 0.0
        return result

    assert check_grad(wrong, x=3.0) is False
    assert capsys.readouterr().out.split("\n")[1].split()[1:4] == ["3", "3", "6"]
    assert check_grad(lambda x: x.relu(), x=0.0) is False
    assert "DIFFERS" in capsys.readouterr().out


def test_nan_does_not_agree():
    assert [item.agrees for item in compare_gradients("log(x)", x=-1.0)] == [False]


@pytest.mark.parametrize("h", [1e-13, 1e-16])
def test_warns_when_h_is_too_small(h):
    with pytest.warns(UserWarning, match=rf"h={h:g} is too small here: rounding .* Leave h at"):
        comparisons = compare_gradients(TEXT, h=h, **POINT)
    assert not all(item.agrees for item in comparisons)


def test_warns_when_numbers_are_large():
    with pytest.warns(UserWarning, match=r"h=1e-05 is too small here.* Try a larger h"):
        compare_gradients("x + y", x=1e12, y=1.0)


def test_every_operation_can_be_replayed():
    x, y = Value(0.7), Value(1.3)
    binary = (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow)
    made = [operation(x, y) for operation in binary]
    made += [-x, *(function(x) for function in FUNCTIONS.values())]
    assert {node.op for node in made} == set(_OPERATIONS)
    assert all(item.agrees for item in compare_gradients(sum(made)))
    assert set(FUNCTIONS) == set("relu tanh sigmoid exp log sin cos sqrt abs".split())


def test_wrong_use():
    with pytest.raises(ValueError, match="no leaves to check; pass values such as"):
        check_grad("1 + 2")
    with pytest.raises(ValueError, match="h must be above 0, got 0"):
        check_grad("x", h=0, x=1)
    with pytest.raises(ValueError, match="h must be above 0, got nan"):
        check_grad("x", h=math.nan, x=1)
    with pytest.raises(TypeError, match="expected text, a function or a Value, got float"):
        check_grad(3.0, x=1)
    with pytest.raises(TypeError, match="expected the function to return a Value, got NoneType"):
        check_grad(lambda x: None, x=1)
    with pytest.raises(TypeError, match="drop the values"):
        check_grad(Value(1.0), x=1)
