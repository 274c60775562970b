"""Results of library functions have memory of their own, whatever they are made from inside."""

import inspect

import numpy as np
import pytest

import dilim

MATRIX, VECTOR, STACK = (dilim.ones(shape) for shape in ((3, 3), 3, (2, 3, 3)))
ARGUMENTS = (
    *((x,) for x in (MATRIX, VECTOR, STACK)),
    *((x, y) for x in (MATRIX, VECTOR, STACK) for y in (MATRIX, VECTOR)),
    *((MATRIX, x) for x in (0, 1, 2, (9,), (1, 0), 0.5)),
    *((MATRIX, x, y) for x, y in ((0, 1), (1, 0), (0.0, 1.0))),
    ([MATRIX, MATRIX],),
    (MATRIX > 0, MATRIX, MATRIX),
    (MATRIX, dilim.tensor([0, 1])),
)
FUNCTIONS = [
    name for name in dir(dilim) if name[0] != "_" and inspect.isfunction(getattr(dilim, name))
]
MADE_WITH_VECTORS = {
    "matrix @ vector": (lambda a, b: a @ b, (2, 3), (3,)),
    "vector @ matrix": (lambda a, b: a @ b, (3,), (3, 2)),
    "vector @ vector": (lambda a, b: a @ b, (3,), (3,)),
    "stack @ vector": (lambda a, b: a @ b, (4, 2, 3), (3,)),
    "tensordot": (lambda a, b: dilim.tensordot(a, b, axes=1), (2, 3), (3, 2)),
}


def tensors_in(value):
    if isinstance(value, dilim.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [x for each in value for x in tensors_in(each)]
    return []


def called(name, arguments):
    try:
        return tensors_in(getattr(dilim, name)(*arguments))
    except Exception:
        return []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_only_what_shares_memory_with_the_arguments_is_a_view(name):
    for arguments in ARGUMENTS:
        given = tensors_in(arguments)
        for result in called(name, arguments):
            shares = any(np.shares_memory(result.numpy(), x.numpy()) for x in given)
            assert shares or not result._is_view, f"{name} of shapes {[x.shape for x in given]}"


@pytest.mark.parametrize("name", MADE_WITH_VECTORS)
def test_a_product_may_be_written_in_place_with_its_gradient(name):
    function, *shapes = MADE_WITH_VECTORS[name]
    a, b = (dilim.Generator(k).normal(s, dtype="float64") for k, s in enumerate(shapes))
    a.requires_grad_()
    result = function(a, b)
    product = result.clone()
    result *= 2.0
    result += 1.0
    (result + product).sum().backward()
    first = dilim.grad(lambda x: 3.0 * function(x, b).sum())(a.detach())
    assert np.array_equal(a.grad.numpy(), first.numpy())


def test_log_of_a_sum_may_be_written_in_place_with_its_gradient():
    x = dilim.tensor([[0.0, 1.0], [2.0, -1.0]], dtype=dilim.float64, requires_grad=True)
    y = dilim.logsumexp(x, axis=1)
    y -= 3.0
    y.sum().backward()
    e = np.exp(x.numpy())
    assert np.allclose(x.grad.numpy(), e / e.sum(1, keepdims=True), rtol=1e-15)
