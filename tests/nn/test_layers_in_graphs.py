"""Layers added to a graph by hand give the bits of autograd, forward and backward."""

import numpy as np
import pytest
from layer_cases import INTEGER_INPUTS, LAYER_CASES

import dilim
from dilim import dtypes, nn
from dilim.errors import GraphError, ShapeError
from ir.programs import same_bits

CASES = [(name, number) for name, cases in LAYER_CASES.items() for number in range(len(cases))]


def input_for(name, number):
    shape = LAYER_CASES[name][number][1]
    if shape is None:
        return dilim.asarray(np.asarray(INTEGER_INPUTS[name]))
    x = np.random.default_rng(number).standard_normal(shape).astype(np.float32)
    return dilim.asarray(x)


def layer_for(name, number):
    return LAYER_CASES[name][number][0](dilim.Generator(number), dtypes.float32)


@pytest.mark.parametrize(("name", "number"), CASES)
def test_forward_and_backward_equal_autograd(name, number):
    layer, x = layer_for(name, number), input_for(name, number)
    floating = x.dtype.is_floating
    leaf = x.clone().requires_grad_() if floating else x
    y = layer(leaf)
    rng = np.random.default_rng(5)
    grad = dilim.asarray(rng.standard_normal(y.shape).astype(np.float32))
    if y.requires_grad:
        y.backward(grad)
    wanted = [(parameter, parameter.grad) for parameter in layer.parameters()]
    layer.zero_grad()

    graph = dilim.Graph()
    inside = graph.input(x.shape, x.dtype, name="x")
    upstream = graph.input(y.shape, y.dtype, name="upstream")
    out = layer.add_forward_to_graph(graph, inside)
    back = layer.add_backward_to_graph(graph, upstream, inside, out)
    grads = [parameter.grad for parameter, _ in wanted]
    fetch = [out, *([back] if back is not None else []), *grads]
    found = graph.run({inside: x, upstream: grad}, fetch=fetch)
    assert same_bits(found[0].numpy(), y.detach().numpy())
    assert (back is not None) == floating
    if floating:
        assert same_bits(found[1].numpy(), leaf.grad.numpy())
    for got, (_, want) in zip(found[len(found) - len(grads) :], wanted, strict=True):
        assert same_bits(got.numpy(), want.numpy())


@pytest.mark.parametrize("name", ["Dense", "Conv2d", "LayerNorm", "MLP"])
def test_parameters_are_read_when_the_graph_runs(name):
    layer, x = layer_for(name, 0), input_for(name, 0)
    graph = dilim.Graph()
    inside = graph.input(x.shape, name="x")
    upstream = graph.input(layer(x).shape, name="upstream")
    out = layer.add_forward_to_graph(graph, inside)
    back = layer.add_backward_to_graph(graph, upstream, inside, out)
    layer.zero_grad()
    with dilim.no_grad():
        for parameter in layer.parameters():
            parameter.add_(dilim.ones(parameter.shape))
    leaf = x.clone().requires_grad_()
    y = layer(leaf)
    ones = dilim.ones(y.shape)
    y.backward(ones)
    found = graph.run({inside: x, upstream: ones}, fetch=[out, back])
    assert same_bits(found[0].numpy(), y.detach().numpy())
    assert same_bits(found[1].numpy(), leaf.grad.numpy())


def test_another_output_or_gradient_is_refused():
    layer = nn.Dense(3, 2, generator=dilim.Generator(0))
    graph = dilim.Graph()
    x, grad = graph.input((4, 3)), graph.input((4, 2))
    y = layer.add_forward_to_graph(graph, x)
    with pytest.raises(GraphError, match="of this graph, with the same x"):
        layer.add_backward_to_graph(graph, grad, x, grad)
    with pytest.raises(ShapeError):
        layer.add_backward_to_graph(graph, x, x, y)


@pytest.mark.parametrize("backend", ["llvm", "reference"])
def test_a_compiled_embedding_refuses_what_is_no_row(backend):
    layer = nn.Embedding(4, 2, generator=dilim.Generator(0))
    compiled = dilim.Graph.from_function(layer, dilim.tensor([0, 1])).compile(backend=backend)
    assert compiled([3, 0]).tolist() == layer(dilim.tensor([3, 0])).tolist()
    for number in (-1, -4, 4):
        with pytest.raises(IndexError, match="out of range for an axis of size 4"):
            compiled([0, number])
