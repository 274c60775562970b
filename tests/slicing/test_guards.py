"""What a compiled function depends on besides its arguments: it notices each change of it."""

import pytest

import dilim
from dilim.errors import NonFiniteError


def compiled(function):
    return dilim.compile(function, compile_after=0)


def test_whether_gradients_are_recorded():
    w = dilim.tensor([1.0, 2.0], requires_grad=True)
    f = compiled(lambda x: x * w)
    x = dilim.tensor([3.0, 4.0])
    with dilim.no_grad():
        assert [f(x).requires_grad for _ in range(3)] == [False] * 3
    y = f(x)
    assert y.requires_grad
    y.sum().backward()
    assert w.grad.tolist() == [3.0, 4.0]


def test_that_anomalies_are_looked_for():
    f = compiled(lambda x: x.log())
    x = dilim.tensor([-1.0])
    f(x)
    with dilim.detect_anomaly(), pytest.raises(NonFiniteError):
        f(x)


def test_that_a_graph_is_built():
    f = compiled(lambda x: x * 2.0)
    f(dilim.ones(3))
    graph = dilim.Graph.from_function(lambda x: f(x) + 1.0, dilim.ones(3))
    assert graph.compile()(dilim.tensor([1.0, 2.0, 3.0])).tolist() == [3.0, 5.0, 7.0]
