"""Symbolic tensors: library code and derivatives become nodes that mean the same as eager runs."""

import numpy as np
import pytest

import dilim
from dilim import dtypes
from dilim.backends.reference.executor import by_kernel, by_recipe, by_reference, execute
from dilim.errors import GradientError, GraphError
from dilim.ir.text import from_text, to_text
from dilim.ir.types import Type
from dilim.ir.verify import verify
from dilim.ops.table import OPERATIONS
from dilim.tensors.symbolic import Trace, trace

f32 = dtypes.float32
VECTOR = Type((3,), f32)


@pytest.fixture
def eager_by_references():
    """Eager execution calls the references, so that its bits are theirs."""
    before = {op: op.eager for op in OPERATIONS.values()}
    for op in before:
        object.__setattr__(op, "eager", op.reference)
    yield
    for op, kernel in before.items():
        object.__setattr__(op, "eager", kernel)


def mlp_loss(x, w1, b1, w2, b2, target):
    hidden = (x @ w1 + b1).tanh()
    logits = hidden.relu() @ w2 + b2
    return -(dilim.log_softmax(logits) * target).sum() / x.shape[0] + 0.01 * (w1 * w1).mean()


def mlp_step(*arguments):
    value, found = dilim.value_and_grad(mlp_loss, argnums=(1, 2, 3, 4))(*arguments)
    return [value, *found]


def curvature(*arguments):
    """The gradient of the squared length of a gradient: second order."""

    def squared_length(*inner):
        found = dilim.grad(mlp_loss, argnums=(1, 3))(*inner)
        return sum((g * g).sum() for g in found)

    return dilim.grad(squared_length, argnums=(1, 2, 3))(*arguments)


def mlp_arrays(dtype=np.float32):
    rng = np.random.default_rng(5)
    shapes = (9, 5), (5, 7), (7,), (7, 3), (3,), (9, 3)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def traced(function, arrays, **options):
    result = trace(
        function, *(Type(x.shape, dtypes.from_numpy(x.dtype)) for x in arrays), **options
    )
    verify(result.graph, OPERATIONS)
    text = to_text(result.graph)
    assert to_text(from_text(text)) == text
    return result


def run(result, arrays, evaluate):
    return execute(result.graph, arrays, evaluate, variables=result.arrays())


def assert_bits(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        b = b.numpy() if isinstance(b, dilim.Tensor) else b
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


@pytest.mark.parametrize("function", [mlp_step, curvature])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_traced_gradients_equal_eager_ones_to_the_last_bit(function, dtype):
    arrays = mlp_arrays(dtype)
    graph = traced(function, arrays)
    eager = function(*map(dilim.tensor, arrays))
    assert max(np.abs(x.numpy()).max() for x in eager) > 0.01
    assert_bits(run(graph, arrays, by_kernel), eager)


@pytest.mark.usefixtures("eager_by_references")
@pytest.mark.parametrize("function", [mlp_step, curvature])
def test_the_reference_executor_equals_eager_execution_by_references(function):
    arrays = mlp_arrays()
    eager = function(*map(dilim.tensor, arrays))
    assert_bits(run(traced(function, arrays), arrays, by_reference), eager)


def test_recipes_give_the_same_numbers_within_rounding():
    arrays = mlp_arrays()
    graph = traced(mlp_step, arrays)
    pairs = zip(run(graph, arrays, by_recipe), run(graph, arrays, by_reference), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


LIBRARY = {
    "exp": dilim.exp,
    "sum": lambda x: x.sum(axis=0, keepdims=True),
    "matmul": lambda x: x @ x.T,
    "vector product": lambda x: dilim.matmul(x[0], x.T),
    "softmax": dilim.softmax,
    "variance": lambda x: dilim.std(x, axis=1),
    "index": lambda x: x[1:, ::-2],
    "triangle": dilim.tril,
    "pad": lambda x: dilim.pad(x, [(1, 0), (0, 2)], value=-1.0),
    "concat": lambda x: dilim.stack([x, 2 * x, x.flip(0)], axis=1),
    "where": lambda x: dilim.where(x > 0, 1 / x, 0.5),
    "numbers": lambda x: 1 - x / 3 + x**2 - float("inf") * dilim.abs(x) + 0.1,
    "constants": lambda x: dilim.zeros_like(x) + dilim.ones_like(x) * x,
    "casts": lambda x: dilim.round(x.astype(dilim.float64)).astype(dilim.int32) + 7,
    "jvp": lambda x: dilim.jvp(dilim.tanh, [x], [x * x])[1],
    "backward": lambda x: backward_of(dilim.logsumexp, x),
}


def backward_of(function, x):
    x = x.detach().requires_grad_()
    function(x).backward()
    (2 * function(x)).backward()
    return x.grad


@pytest.mark.parametrize("name", LIBRARY)
def test_library_functions_trace(name):
    x = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    graph = traced(LIBRARY[name], [x])
    assert_bits(run(graph, [x], by_kernel), [LIBRARY[name](dilim.tensor(x))])


def test_a_python_number_is_written_as_it_was_typed():
    assert "full[shape=(), value=0.1, dtype=float32]()" in to_text(trace(_tenth, VECTOR).graph)


def _tenth(x):
    return x * 0.1


def test_layers_trace_with_their_parameters_bound():
    model = dilim.nn.MLP(4, [8, 3])
    parameters = list(model.parameters())
    before = [(p.device, p.numpy().copy()) for p in parameters]

    def step(x, target):
        loss = dilim.nn.losses.mse(model(x), target)
        loss.backward()
        return [loss, *(p.grad for p in parameters)]

    rng = np.random.default_rng(2)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((5, 4), (5, 3))]
    graph = traced(step, arrays, bind=parameters)
    assert [cell.storage for cell in graph.cells] == [p._storage for p in parameters]
    for p, (device, numbers) in zip(parameters, before, strict=True):
        assert p.device is device
        assert p.grad is None
        np.testing.assert_array_equal(p.numpy(), numbers)
    assert_bits(run(graph, arrays, by_kernel), step(*map(dilim.tensor, arrays)))


def test_bound_tensors_are_read_at_each_run():
    offset = dilim.tensor([1.0, 2.0, 3.0])
    graph = trace(lambda x: x + offset, VECTOR)
    offset[0] = 10.0
    (result,) = run(graph, [np.zeros(3, np.float32)], by_reference)
    assert result.tolist() == [10.0, 2.0, 3.0]


def test_parameters_are_as_before_when_tracing_fails():
    w = dilim.tensor([1.0], requires_grad=True, name="w")
    w.grad = dilim.tensor([5.0])
    with pytest.raises(ZeroDivisionError):
        trace(lambda x: 1 / 0, VECTOR, bind=[w])
    assert w.tolist() == [1.0]
    assert w.grad.tolist() == [5.0]


NEEDS_NUMBERS = {
    "if": lambda x: x if x.sum() > 0 else -x,
    "item": lambda x: x.sum().item(),
    "float": lambda x: float(x[0]),
    "numpy": lambda x: x.numpy(),
    "asarray": lambda x: np.asarray(x),
    "to": lambda x: x.to("cpu"),
    "mask": lambda x: x[x > 0],
}


@pytest.mark.parametrize("name", NEEDS_NUMBERS)
def test_asking_for_numbers_is_an_error(name):
    with pytest.raises(GraphError, match=r"its numbers are not known while a graph is being built"):
        trace(NEEDS_NUMBERS[name], VECTOR)


def test_a_tensor_computed_with_a_gradient_before_is_refused():
    w = dilim.ones(3, requires_grad=True)
    doubled = w * 2
    with pytest.raises(GradientError, match="was computed eagerly with a gradient"):
        trace(lambda x: x * doubled, VECTOR)
    (result,) = run(
        trace(lambda x: x * doubled.detach(), VECTOR), [np.ones(3, np.float32)], by_kernel
    )
    assert result.tolist() == [2.0, 2.0, 2.0]


def test_values_of_two_graphs_do_not_meet():
    a, b = Trace().input(VECTOR), Trace().input(VECTOR)
    with pytest.raises(GraphError, match="belongs to another graph"):
        a + b


def test_shape_errors_come_while_tracing():
    with pytest.raises(dilim.errors.ShapeError, match="inner sizes differ"):
        trace(lambda x: x.reshape(1, 3) @ x.reshape(1, 3), VECTOR)


def test_a_symbolic_tensor_can_be_looked_at():
    x = Trace().input(Type((2, 3), f32), "x")
    assert repr(x) == "tensor(symbolic, shape=(2, 3), dtype=float32, name='x')"
    assert (x.shape, x.strides, x.size, x.is_contiguous) == ((2, 3), (3, 1), 6, True)
    assert repr(x.device) == "<trace of 0 nodes>"


def test_reciprocal_on_another_device_needs_no_tensor_first():
    graph = trace(dilim.reciprocal, VECTOR)
    (result,) = run(graph, [np.array([1, 2, 4], np.float32)], by_reference)
    assert result.tolist() == [1.0, 0.5, 0.25]
