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


@pytest.mark.parametrize("given", [lambda w: w, lambda w: w.detach()], ids=["itself", "an alias"])
def test_that_an_argument_is_a_parameter(given):
    def world(make):
        dense = dilim.nn.Dense(2, 2, bias=False)
        with dilim.no_grad():
            dense.weight.copy_(dilim.tensor([[1.0, 2.0], [3.0, 4.0]]))

        def f(x, y):
            with dilim.no_grad():
                result = dense(y) + x
                dense.weight.mul_(0.5)
            return result

        return make(f), dense.weight

    def seen(make):
        f, w = world(make)
        y = dilim.ones((1, 2))
        found = []
        for x in (given(w), dilim.ones((2, 2)), given(w), dilim.ones((2, 2)).requires_grad_()):
            found += [f(x, y).tolist(), w.tolist(), x.tolist()]
        return found

    assert seen(compiled) == seen(lambda f: f)


def test_a_method_that_is_called_may_be_replaced():
    class Scaled:
        def __call__(self, x):
            return x * 2.0

    class Layer(dilim.nn.Module):
        def forward(self, x):
            return x * 3.0

    scaled, layer = Scaled(), Layer()

    @dilim.compile(compile_after=0)
    def f(x):
        return scaled(x) + layer(x)

    x = dilim.ones(1)
    assert f(x).tolist() == [5.0]
    Scaled.__call__ = lambda self, x: x * 10.0
    assert f(x).tolist() == [13.0]
    Layer.forward = lambda self, x: x * 20.0
    assert f(x).tolist() == [30.0]
    layer.forward = lambda x: x
    assert f(x).tolist() == [11.0]


def test_what_only_raises_does_not_keep_a_function_from_machine_code():
    @dilim.compile(compile_after=0)
    def f(x, n):
        return (x * 2)[n] * 1

    x = dilim.arange(6.0).reshape((2, 3))
    assert [f(x, n).tolist() for n in (0, 1, -1)] == [[0, 2, 4], [6, 8, 10], [6, 8, 10]]
    with pytest.raises(IndexError, match="position 2 is out of range for axis 0"):
        f(x, 2)
    assert all(region.is_native for region in f._variants)
