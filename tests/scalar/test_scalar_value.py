"""Values, operators, functions, edges of domains."""

import copy
import math
import operator
import pickle

import numpy as np
import pytest
from scalar_checkers import CASES, check_cases

from dilim.scalar import Value

INF, NAN = math.inf, math.nan
same = lambda number: pytest.approx(number, rel=1e-15, abs=0.0, nan_ok=True)  # noqa: E731


def derivative(function, x):
    """Return the value and the derivative of a function of one Value."""
    leaf = Value(x)
    result = function(leaf)
    result.backward()
    return result.data, leaf.grad


def test_hand_derived_cases():
    assert len(CASES) > 15
    check_cases()


def test_new_value():
    x = Value(2, label="x")
    assert (x.data, x.grad, x.has_grad, x.op, x.inputs, x.label) == (2.0, 0.0, False, "", (), "x")
    assert type(x.data) is float
    assert repr(x) == "Value(data=2.0, grad=0.0)"
    (x * 3).backward()
    assert repr(x) == "Value(data=2.0, grad=3.0)"
    assert repr(Value(1 / 3)) == f"Value(data={1 / 3!r}, grad=0.0)"


@pytest.mark.parametrize("number", [True, 3, 2.5, np.float32(0.5), np.int64(4)])
def test_accepts_real_numbers(number):
    assert Value(number).data == float(number)
    assert type(Value(number).data) is float


@pytest.mark.parametrize("wrong", ["3", None, 1j, [1.0], Value(1.0)])
def test_refuses_other_data(wrong):
    with pytest.raises(TypeError, match="Value: expected a real number, got"):
        Value(wrong)


def test_error_shows_type_and_value():
    with pytest.raises(TypeError, match=r"got str 'abc'"):
        Value("abc")
    with pytest.raises(TypeError, match=r"got NoneType None"):
        Value(1.0) + None
    with pytest.raises(TypeError, match=r"got str 'a'"):
        "a" - Value(1.0)
    with pytest.raises(TypeError, match="must be real number, not Value"):
        math.exp(Value(1.0))


def test_known_chain():
    a, b = Value(-4.0), Value(2.0)
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    g.backward()
    assert g.data == pytest.approx(24.70408163265306, rel=1e-14)
    assert a.grad == pytest.approx(138.83381924198252, rel=1e-14)
    assert b.grad == pytest.approx(645.5772594752186, rel=1e-14)


def test_mixed_formula():
    a, b, c = Value(2.0), Value(3.0), Value(4.0)
    f = -(a**3) + (3 * b).sin() - 1.0 / c + b**2.5 - a**0.5
    f.backward()
    assert f.data == pytest.approx(6.336362190988558, rel=1e-15)
    assert a.grad == pytest.approx(-12.353553390593273, rel=1e-15)
    assert b.grad == pytest.approx(10.25699027111255, rel=1e-15)
    assert c.grad == pytest.approx(0.0625, rel=1e-15)


@pytest.mark.parametrize(
    ("operation", "data", "left_grad", "right_grad"),
    [
        (operator.add, 5.0, 1.0, 1.0),
        (operator.sub, -1.0, 1.0, -1.0),
        (operator.mul, 6.0, 3.0, 2.0),
        (operator.truediv, 2 / 3, 1 / 3, -2 / 9),
        (operator.pow, 8.0, 12.0, 8 * math.log(2)),
    ],
)
@pytest.mark.parametrize("number", [float, int, np.float64, np.float32, np.int64])
def test_operators_with_numbers_on_either_side(operation, data, left_grad, right_grad, number):
    x, y = Value(2.0), Value(3.0)
    operation(x, y).backward()
    assert (x.grad, y.grad) == (same(left_grad), same(right_grad))
    both = operation(x, y)
    left = operation(x, number(3))
    right = operation(number(2), y)
    assert both.data == left.data == right.data == same(data)
    assert both.op == left.op == right.op
    x.zero_grad()
    y.zero_grad()
    left.backward()
    right.backward()
    assert (x.grad, y.grad) == (same(left_grad), same(right_grad))


def test_operands_stay_unchanged():
    x = y = Value(3.0)
    y += y
    y.backward()
    assert (y.data, x.data, x.grad) == (6.0, 3.0, 2.0)
    z = x
    for _ in range(5):
        z += 1
    assert (z.data, x.data) == (8.0, 3.0)
    assert x.inputs == ()


def test_inputs_op_and_constants():
    x = Value(2.0)
    product = 3 * x
    constant, second = product.inputs
    assert second is x
    assert (constant.data, constant.op, product.op) == (3.0, "constant", "*")
    assert (-x).op == "neg"
    assert x.relu().inputs == (x,)
    assert [node.data for node in (x * x + 1).graph()] == [2.0, 4.0, 1.0, 5.0]


def test_sum_of_values():
    xs = [Value(1.0), Value(2.0), Value(4.0)]
    total = sum(xs)
    total.backward()
    assert total.data == 7.0
    assert [x.grad for x in xs] == [1.0, 1.0, 1.0]


def test_comparison_is_by_data():
    one, two, also_one = Value(1.0), Value(2.0), Value(1.0)
    assert one < two
    assert one <= also_one
    assert two > one
    assert two >= 2
    assert one == also_one
    assert one == 1
    assert 1.0 == one
    assert one != two
    assert 0.5 < one < 1.5
    assert one != "1"
    assert one is not None
    assert one != None  # noqa: E711
    assert not Value(NAN) == Value(NAN)
    assert not Value(NAN) < 1
    assert not Value(NAN) > 1
    with pytest.raises(TypeError, match="not supported"):
        one < "2"  # noqa: B015
    assert max([one, two]) is two
    assert sorted([two, one])[0] is one


def test_truth_is_that_of_the_number():
    assert Value(0.5)
    assert not Value(0.0)
    assert not (Value(2.0) - 2)


def test_hash_is_by_identity():
    a, b = Value(1.0), Value(1.0)
    assert a == b
    assert len({a, b}) == 2
    gradients = {a: "a", b: "b"}
    assert (gradients[a], gradients[b]) == ("a", "b")
    assert Value(1.0) not in gradients
    a.data = 7.0
    assert gradients[a] == "a"
    assert b in [a, Value(1.0)]


FUNCTIONS = {
    "relu": (lambda x: x if x > 0 else 0.0, lambda x: 1.0 if x > 0 else 0.0),
    "tanh": (math.tanh, lambda x: 1 / math.cosh(x) ** 2),
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), lambda x: 0.25 / math.cosh(x / 2) ** 2),
    "exp": (math.exp, math.exp),
    "sin": (math.sin, math.cos),
    "cos": (math.cos, lambda x: -math.sin(x)),
    "abs": (abs, lambda x: math.copysign(1.0, x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("x", [-2.5, -0.3, 0.4, 3.0])
def test_functions(name, x):
    function, slope = FUNCTIONS[name]
    value, grad = derivative(getattr(Value, name), x)
    assert value == pytest.approx(function(x), rel=1e-14)
    assert grad == pytest.approx(slope(x), rel=1e-12)
    assert getattr(Value(x), name)().op == name


@pytest.mark.parametrize("x", [0.01, 1.0, 9.0])
def test_functions_of_positive_numbers(x):
    assert derivative(Value.log, x) == (math.log(x), same(1 / x))
    assert derivative(Value.sqrt, x) == (math.sqrt(x), same(0.5 / math.sqrt(x)))


def test_exp_adds_to_other_uses():
    x = Value(2.0)
    (x.exp() + 5 * x).backward()
    assert x.grad == pytest.approx(math.exp(2) + 5, rel=1e-15)


@pytest.mark.parametrize(
    ("function", "x", "data", "grad"),
    [
        (Value.relu, 0.0, 0.0, 0.0),
        (Value.relu, -1e300, 0.0, 0.0),
        (Value.relu, INF, INF, 1.0),
        (Value.relu, NAN, NAN, 0.0),
        (Value.abs, 0.0, 0.0, 0.0),
        (abs, -0.0, 0.0, 0.0),
        (abs, -3.0, 3.0, -1.0),
        (Value.log, 0.0, -INF, INF),
        (Value.log, -2.0, NAN, -0.5),
        (Value.log, INF, INF, 0.0),
        (Value.sqrt, 0.0, 0.0, INF),
        (Value.sqrt, -1.0, NAN, NAN),
        (Value.sqrt, INF, INF, 0.0),
        (Value.exp, 1000.0, INF, INF),
        (Value.exp, -1000.0, 0.0, 0.0),
        (Value.tanh, 1000.0, 1.0, 0.0),
        (Value.tanh, -1000.0, -1.0, 0.0),
        (Value.sin, INF, NAN, NAN),
        (Value.cos, -INF, NAN, NAN),
        (lambda x: x**0, 0.0, 1.0, 0.0),
        (lambda x: x**1, 0.0, 0.0, 1.0),
        (lambda x: x**2, 0.0, 0.0, 0.0),
        (lambda x: x**2, -3.0, 9.0, -6.0),
        (lambda x: x**3, -2.0, -8.0, 12.0),
        (lambda x: x**0.5, 0.0, 0.0, INF),
        (lambda x: x**0.5, -4.0, NAN, NAN),
        (lambda x: x**-1, 0.0, INF, -INF),
        (lambda x: x**-1, -0.0, -INF, -INF),
        (lambda x: x**200, 1e3, INF, INF),
        (lambda x: x**201, -1e3, -INF, INF),
        (lambda x: 0**x, 0.0, 1.0, 0.0),
        (lambda x: 0**x, 2.0, 0.0, 0.0),
        (lambda x: 2**x, 3.0, 8.0, 8 * math.log(2)),
        (lambda x: (-2) ** x, 3.0, -8.0, NAN),
        (lambda x: 1 / x, 0.0, INF, -INF),
        (lambda x: 1 / x, -0.0, -INF, -INF),
        (lambda x: x / 0, 2.0, INF, INF),
        (lambda x: 0 / x, 0.0, NAN, NAN),
        (lambda x: x * x, 1e200, INF, 2e200),
    ],
)
def test_edges(function, x, data, grad):
    assert derivative(function, x) == (same(data), same(grad))


@pytest.mark.parametrize(
    ("x", "data"),
    [
        (-1000.0, 0.0),
        (-745.0, 5e-324),
        (-30.0, 9.357622968839299e-14),
        (0.0, 0.5),
        (30.0, 0.9999999999999065),
        (1000.0, 1.0),
    ],
)
def test_sigmoid_never_overflows(x, data):
    value, grad = derivative(Value.sigmoid, x)
    assert value == same(data)
    assert grad == same(data * (1 - data))


def test_zero_gradient_stops_infinite_slopes():
    x = Value(0.0)
    (x * x.sqrt()).backward()
    assert x.grad == 0.0
    x = Value(0.0)
    (0.0 * x.log().exp() + x).backward()
    assert x.grad == 1.0
    # Elsewhere the plain product holds, so a nan is not hidden.
    x = Value(0.0)
    (x.sqrt() * 0.0 + x.sqrt()).backward()
    assert x.grad == INF


def test_changed_leaf_does_not_disturb_finished_expressions():
    x, y = Value(2.0), Value(3.0)
    product = x * y
    y.data = 100.0
    product.backward()
    assert (product.data, x.grad) == (6.0, 3.0)


def test_copies_are_independent():
    x = Value(2.0, label="x")
    y = x * x
    twin = copy.deepcopy(y)
    loaded = pickle.loads(pickle.dumps(y))
    for other in (twin, loaded):
        (leaf,) = set(other.inputs)
        assert leaf is not x
        other.backward()
        assert (leaf.grad, leaf.label, x.grad) == (4.0, "x", 0.0)
