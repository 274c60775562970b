import copy
import math

import numpy as np
import pytest
from central import numeric_gradient
from layer_cases import CASES, IDS, LAYER_CASES, input_of

import dilim
from dilim import nn
from dilim.backends.reference.executor import by_kernel, execute
from dilim.errors import DtypeError, ShapeError
from dilim.ir.types import Type
from dilim.tensors.symbolic import trace

every_layer = pytest.mark.parametrize(("name", "number", "make", "shape"), CASES, ids=IDS)


def test_every_layer_has_a_case():
    assert set(LAYER_CASES) == set(nn.LAYERS)


# ----- what every layer must do -------------------------------------------------------------------


@every_layer
def test_gradients_equal_central_differences(name, number, make, shape):
    layer = make(dilim.Generator(number), "float64")
    x = dilim.tensor(input_of(name, shape))
    leaves = dict(layer.named_parameters())
    if x.dtype.is_floating:
        leaves["input"] = x.requires_grad_()
    out = layer(x)
    weights = dilim.tensor(np.random.default_rng(9).normal(size=out.shape))

    def loss():
        return (layer(x) * weights).sum()

    loss().backward()
    for leaf, tensor in leaves.items():
        wanted = numeric_gradient(lambda: loss().item(), tensor)
        got = tensor.grad.numpy()
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8, err_msg=leaf)


@every_layer
def test_dtype_of_the_input_is_kept(name, number, make, shape):
    for kind in ("float32", "float64"):
        layer = make(dilim.Generator(0), kind)
        x = input_of(name, shape, kind)
        assert layer(dilim.tensor(x)).dtype.name == kind


@every_layer
def test_traced_layer_gives_the_bits_of_the_eager_one(name, number, make, shape):
    layer = make(dilim.Generator(number), "float32")
    x = dilim.tensor(input_of(name, shape, np.float32))
    wanted = layer(x)
    parameters = layer.parameters()
    traced = trace(layer, Type(x.shape, x.dtype), bind=parameters)
    assert [cell.storage for cell in traced.cells] == [p._storage for p in parameters]
    (got,) = execute(traced.graph, [x.numpy()], by_kernel, variables=traced.arrays())
    np.testing.assert_array_equal(got, wanted.numpy())


@every_layer
def test_deep_copy_is_equal_and_independent(name, number, make, shape):
    layer = make(dilim.Generator(number), "float32")
    x = dilim.tensor(input_of(name, shape, np.float32))
    twin = copy.deepcopy(layer)
    before = layer(x).numpy(copy=True)
    np.testing.assert_array_equal(twin(x).numpy(), before)
    with dilim.no_grad():
        for parameter in twin.parameters():
            parameter.fill_(7.0)
    np.testing.assert_array_equal(layer(x).numpy(), before)
    assert [p.requires_grad for p in twin.parameters()] == [True] * len(layer.parameters())


@every_layer
def test_repr_is_readable(name, number, make, shape):
    text = repr(make(dilim.Generator(0), "float32"))
    assert text.startswith(name)
    assert "object at" not in text


# ----- values -------------------------------------------------------------------------------------


def test_dense_is_x_w_plus_b():
    layer = nn.Dense(3, 2)
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    wanted = x.astype(np.float64) @ layer.weight.numpy() + layer.bias.numpy()
    assert layer.weight.shape == (3, 2)
    np.testing.assert_allclose(layer(dilim.tensor(x)).numpy(), wanted, rtol=1e-6)
    assert nn.Linear is nn.Dense


def test_mlp_has_relu_inside_and_a_linear_last_layer():
    model = nn.MLP(3, [4, 4, 1], dtype="float64")
    x = np.random.default_rng(0).normal(size=(20, 3))
    h = x
    for layer in model.layers[:-1]:
        h = np.maximum(h @ layer.weight.numpy() + layer.bias.numpy(), 0.0)
    wanted = h @ model.layers[-1].weight.numpy() + model.layers[-1].bias.numpy()
    got = model(dilim.tensor(x)).numpy()
    np.testing.assert_allclose(got, wanted, rtol=1e-12)
    assert sum(p.size for p in model.parameters()) == 41
    assert got.min() < 0.0 or wanted.min() >= 0.0


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "gelu", "linear"])
def test_mlp_activations(activation):
    model = nn.MLP(2, [3, 1], activation, dtype="float64")
    x = np.array([[0.3, -1.2], [2.0, 0.1]])
    functions = {
        "tanh": np.tanh,
        "sigmoid": lambda z: 1.0 / (1.0 + np.exp(-z)),
        "gelu": np.vectorize(lambda z: 0.5 * z * (1.0 + math.erf(z / math.sqrt(2.0)))),
        "linear": lambda z: z,
    }
    first, last = model.layers
    h = functions[activation](x @ first.weight.numpy() + first.bias.numpy())
    wanted = h @ last.weight.numpy() + last.bias.numpy()
    np.testing.assert_allclose(model(dilim.tensor(x)).numpy(), wanted, rtol=1e-12)


def test_gelu_values():
    x = np.linspace(-6.0, 6.0, 101)
    exact = np.array([0.5 * z * (1.0 + math.erf(z / math.sqrt(2.0))) for z in x])
    np.testing.assert_allclose(nn.gelu(dilim.tensor(x)).numpy(), exact, rtol=1e-12, atol=1e-14)
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)
    near = nn.GELU("tanh")(dilim.tensor(x)).numpy()
    np.testing.assert_allclose(near, 0.5 * x * (1.0 + np.tanh(inner)), rtol=1e-12, atol=1e-14)
    assert 1e-5 < np.abs(near - exact).max() < 5e-4


def test_softmax_is_stable():
    x = dilim.tensor([[1000.0, 0.0, -1000.0]], dtype="float64")
    assert nn.Softmax()(x).tolist() == [[1.0, 0.0, 0.0]]
    assert nn.LogSoftmax()(x).tolist() == [[0.0, -1000.0, -2000.0]]


def test_layer_norm_values():
    x = np.random.default_rng(1).normal(3.0, 5.0, (4, 6))
    layer = nn.LayerNorm(6, dtype="float64")
    layer.update_parameters([dilim.full(6, 2.0, dtype="float64"), dilim.ones(6, dtype="float64")],
                            lambda p, g: p * 0.0 + g)  # fmt: skip
    spread = x.var(axis=1, keepdims=True)
    wanted = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(spread + 1e-5) * 2.0 + 1.0
    np.testing.assert_allclose(layer(dilim.tensor(x)).numpy(), wanted, rtol=1e-10)
    constant = nn.LayerNorm(3)(dilim.full((2, 3), 4.0))
    assert constant.tolist() == [[0.0] * 3] * 2


def test_embedding_adds_gradients_of_repeated_rows():
    layer = nn.Embedding(4, 2)
    x = dilim.tensor([1, 3, 1])
    out = layer(x)
    assert out.tolist() == [layer.weight.tolist()[i] for i in (1, 3, 1)]
    out.sum().backward()
    assert layer.weight.grad.tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]


def slow_convolution(x, weight, bias, stride, before, after):
    x = np.pad(x, ((0, 0), (0, 0), (before[0], after[0]), (before[1], after[1])))
    outputs, _, height, width = weight.shape
    rows = (x.shape[2] - height) // stride[0] + 1
    columns = (x.shape[3] - width) // stride[1] + 1
    out = np.zeros((len(x), outputs, rows, columns))
    for b, o, i, j in np.ndindex(*out.shape):
        top, left = i * stride[0], j * stride[1]
        window = x[b, :, top : top + height, left : left + width]
        out[b, o, i, j] = (window * weight[o]).sum() + bias[o]
    return out


@pytest.mark.parametrize(
    ("size", "stride", "padding", "before", "after", "shape"),
    [
        ((3, 3), 1, 0, (0, 0), (0, 0), (4, 3)),
        ((2, 3), (2, 1), 1, (1, 1), (1, 1), (4, 5)),
        ((1, 1), 1, (0, 2), (0, 2), (0, 2), (6, 9)),
        ((3, 2), 1, "same", (1, 0), (1, 1), (6, 5)),
        ((3, 3), 2, "same", (0, 1), (1, 1), (3, 3)),
        ((2, 2), 3, "same", (0, 0), (0, 0), (2, 2)),
    ],
)
def test_convolution_equals_loops(size, stride, padding, before, after, shape):
    layer = nn.Conv2d(2, 3, size, stride=stride, padding=padding, dtype="float64")
    x = np.random.default_rng(2).normal(size=(2, 2, 6, 5))
    steps = stride if isinstance(stride, tuple) else (stride, stride)
    weight, bias = layer.weight.numpy(), layer.bias.numpy()
    got = layer(dilim.tensor(x))
    assert got.shape == (2, 3, *shape)
    wanted = slow_convolution(x, weight, bias, steps, before, after)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-10, atol=1e-12)


def test_max_pool_values_and_shared_ties():
    x = dilim.tensor([[[[1.0, 5.0, 2.0], [5.0, 0.0, 9.0], [7.0, 7.0, 7.0]]]], requires_grad=True)
    out = nn.MaxPool2d(2)(x)
    assert out.tolist() == [[[[5.0]]]]
    out.sum().backward()
    assert x.grad.tolist() == [[[[0.0, 0.5, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]]]
    assert nn.MaxPool2d(2, stride=1)(x).tolist() == [[[[5.0, 9.0], [7.0, 9.0]]]]


def test_flatten_and_sequential():
    model = nn.Sequential(nn.Flatten(), dilim.relu, nn.Dense(6, 2))
    assert model(dilim.ones((4, 2, 3))).shape == (4, 2)
    assert (len(model), isinstance(model[0], nn.Flatten), len(list(model))) == (3, True, 3)
    assert [name for name, _ in model.named_parameters()] == ["layers.2.weight", "layers.2.bias"]


# ----- dropout ------------------------------------------------------------------------------------


def test_dropout_keeps_the_mean_in_training_and_does_nothing_in_evaluation():
    layer = nn.Dropout(0.25, generator=dilim.Generator(1))
    x = dilim.ones((200, 200), requires_grad=True)
    out = layer(x)
    values = out.numpy()
    assert set(np.unique(values)) == {np.float32(0.0), np.float32(1.0 / 0.75)}
    # 40,000 draws: the share of zeros is within 5 standard deviations of 0.25
    assert abs((values == 0.0).mean() - 0.25) < 5.0 * math.sqrt(0.25 * 0.75 / 40_000)
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), values)
    assert layer.eval()(x) is x
    assert not np.array_equal(layer.train()(x).numpy(), values)


def test_dropout_repeats_with_its_generator_and_drops_nan():
    x = dilim.full((50,), dilim.nan)
    first, second = (nn.Dropout(0.5, generator=dilim.Generator(4))(x).numpy() for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert 0 < (first == 0.0).sum() < 50


def test_dropout_uses_the_default_generator():
    dilim.seed(3)
    first = nn.Dropout(0.5)(dilim.ones(64)).tolist()
    dilim.seed(3)
    assert nn.Dropout(0.5)(dilim.ones(64)).tolist() == first


# ----- errors -------------------------------------------------------------------------------------

X = dilim.ones((5, 3))


@pytest.mark.parametrize(
    ("act", "error", "match"),
    [
        (
            lambda: nn.Dense(4, 2)(X),
            ShapeError,
            r"Dense\(4 -> 2\): expected inputs of size 4 on the last axis, received shape \(5, 3\)",
        ),
        (
            lambda: nn.MLP(3, [4, 2], name="policy").layers[1](X),
            ShapeError,
            r"Dense\(4 -> 2\) named 'policy.layers.1': expected inputs of size 4",
        ),
        (lambda: nn.Dense(3, 2)(dilim.tensor(1.0)), ShapeError, r"received shape \(\)"),
        (
            lambda: nn.Dense(3, 2)(X.astype("float64")),
            DtypeError,
            r"expected float32 inputs, received float64; cast them with x.astype\(dilim.float32\)",
        ),
        (lambda: nn.Dense(3, 2)(dilim.ones((5, 3), dtype="uint8")), DtypeError, "received uint8"),
        (
            lambda: nn.Dense(3, 2)([1.0, 2.0, 3.0]),
            DtypeError,
            r"expected a Tensor, received list; wrap it with dilim.asarray",
        ),
        (lambda: nn.Dense(3, 2)(np.ones((5, 3))), DtypeError, "received ndarray; wrap it"),
        (
            lambda: nn.Dense(0, 2),
            ShapeError,
            "Dense: input_size: expected a whole number of at least 1, received 0",
        ),
        (lambda: nn.Dense(2, 2.5), ShapeError, "output_size: .* received 2.5"),
        (lambda: nn.Dense(2, True), ShapeError, "received True"),
        (
            lambda: nn.Dense(3, 2, init="xavierr"),
            ValueError,
            "init: expected one of fan_in, .* received 'xavierr'; did you mean 'xavier'",
        ),
        (lambda: nn.MLP(3, []), ShapeError, "MLP: layer_sizes is empty"),
        (lambda: nn.MLP(3, [1], "rellu"), ValueError, "activation: .* did you mean 'relu'"),
        (lambda: nn.GELU("exact"), ValueError, "approximate: expected one of none, tanh"),
        (lambda: nn.Sequential([nn.ReLU()]), TypeError, r"write Sequential\(\*layers\)"),
        (lambda: nn.Dropout(1.0), ValueError, "p from 0 to below 1, received 1.0"),
        (lambda: nn.LayerNorm(4)(X), ShapeError, r"LayerNorm\(4\): .*\(4,\), .* \(5, 3\)"),
        (lambda: nn.LayerNorm(()), ShapeError, "at least one size"),
        (
            lambda: nn.Embedding(4, 2)(dilim.tensor([4])),
            IndexError,
            r"Embedding\(4 -> 2\): 4 is not a row from 0 to 3",
        ),
        (lambda: nn.Embedding(4, 2)(dilim.tensor([-1])), IndexError, "-1 is not a row"),
        (lambda: nn.Embedding(4, 2)(X), DtypeError, "expected integers, received float32"),
        (
            lambda: nn.Conv2d(3, 1, 3)(dilim.ones((1, 2, 5, 5))),
            ShapeError,
            r"Conv2d\(3 -> 1, 3\): expected images \(batch, 3, height, width\), received shape "
            r"\(1, 2, 5, 5\)",
        ),
        (lambda: nn.Conv2d(3, 1, 3)(dilim.ones((3, 5, 5))), ShapeError, r"received shape \(3, 5"),
        (
            lambda: nn.Conv2d(1, 1, 4)(dilim.ones((1, 1, 3, 9))),
            ShapeError,
            r"a window of \(4, 4\) does not fit in shape \(1, 1, 3, 9\)",
        ),
        (
            lambda: nn.Conv2d(1, 1, (1, 2, 3)),
            ShapeError,
            "kernel_size: expected a number or a pair",
        ),
        (lambda: nn.Conv2d(1, 1, 3, padding="full"), ValueError, "padding: expected one of same"),
        (lambda: nn.Conv2d(1, 1, 3, padding=-1), ShapeError, "at least 0, received -1"),
        (lambda: nn.MaxPool2d(3)(X[:2]), ShapeError, r"MaxPool2d\(3\): a window of \(3, 3\)"),
    ],
)
def test_errors_name_the_layer_and_both_sides(act, error, match):
    with pytest.raises(error, match=match):
        act()
