"""State while tracing: what a traced function does to tensors happens when the graph runs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dilim
from dilim import nn, optim
from dilim.errors import GradientError, GraphError

VECTOR = np.array([1.0, 2.0, 3.0], np.float32)


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    assert a.tobytes() == b.tobytes(), (a, b)


def runs_as_eagerly(make, *batches):
    """``make() -> (function, state)``: compiled and eager runs give the same bits, state included.

    The state is a function that gives arrays.
    """
    eager, eager_state = make()
    wanted = []
    for batch in batches:
        result = eager(*map(dilim.tensor, batch))
        wanted.append(
            [np.array(x) for x in ([result] if not isinstance(result, tuple) else result)]
        )
    function, state = make()
    before = [np.array(x) for x in state()]
    compiled = dilim.Graph.from_function(function, *batches[0]).compile(backend="reference")
    for x, y in zip(state(), before, strict=True):
        same(x, y)  # tracing changes nothing
    for batch, want in zip(batches, wanted, strict=True):
        result = compiled(*batch)
        for x, y in zip([result] if not isinstance(result, tuple) else result, want, strict=True):
            same(x, y)
    for x, y in zip(state(), eager_state(), strict=True):
        same(x, y)
    return compiled


def writes(function, size=(4, 3)):
    """A case for `runs_as_eagerly`: a function of (state, x)."""

    def make():
        w = dilim.tensor(np.arange(np.prod(size), dtype=np.float32).reshape(size))
        return lambda x: function(w, x), lambda: [w]

    return make


def slices(w, x):
    w[1:3] = x
    w[:, ::2] += 1.0
    w[-1, 0] = 100.0
    return w * 1.0


def views(w, x):
    row, flat, turned = w[1], w.reshape(-1), w.T
    row += x
    flat[2:5] = 7.0
    turned[0] *= 2.0
    w[0] = x
    return row + turned[:, 1], flat.sum(), w.flip(0)


def aliases(w, x):
    alias = w.detach()
    alias.mul_(2.0)
    w.reshape(3, 4).sub_(1.0)
    return alias + x


def swaps(w, x):
    first = w[0].clone()
    w[0] = w[1]
    w[1] = first + x
    return w.clone()


def overlapping(w, x):
    w[1:] = w[:-1]
    return w + x


def counters(w, x):
    w += 1.0
    y = w.sum()
    w += y
    return y


def local_memory(w, x):
    total = dilim.zeros(3)
    total += x
    total[1] = 5.0
    row = dilim.ones((2, 3))[0]
    row += total
    w.copy_(row)
    return total, row


def fills(w, x):
    w.fill_(2.0)
    w[w > 1.0] = 3.0
    w.zero_()
    w[0].copy_(x)
    return w.max()


@pytest.mark.parametrize(
    "function",
    [slices, views, aliases, swaps, overlapping, counters, local_memory, fills],
    ids=lambda f: f.__name__,
)
def test_writes_do_what_eager_ones_do(function):
    runs_as_eagerly(writes(function), *[(VECTOR * k,) for k in (1, -2, 3)])


def test_views_and_aliases_from_outside_are_one_variable():
    def make():
        w = dilim.tensor(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
        column, flat, turned = w[:, 1, ::-2], w.reshape(-1), w.permute(2, 0, 1)

        def f(x):
            column.add_(x)
            flat[3:9].mul_(2.0)
            turned[1, :, 2] = 5.0
            return w + 0.0, column + 0.0, turned.sum(axis=0)

        return f, lambda: [w]

    compiled = runs_as_eagerly(make, (np.float32(2.0),), (np.float32(3.0),))
    assert len(compiled.graph.variables) == 1


def test_memory_in_another_order_is_written_too():
    for array in (np.zeros((3, 2), np.float32).T, np.zeros((4, 6), np.float32)[::2, ::2]):
        w = dilim.asarray(array)

        def f(x, w=w):
            w += x
            return w[1] * 2.0

        result = dilim.Graph.from_function(f, VECTOR).compile(backend="reference")(VECTOR)
        assert result.tolist() == [2.0, 4.0, 6.0]
        assert array.tolist() == [[1.0, 2.0, 3.0]] * 2


def test_memory_that_two_tensors_share_unknowingly_is_refused():
    array = np.zeros(4, np.float32)
    a, b = dilim.asarray(array), dilim.asarray(array[1:])

    def f(x):
        a.add_(x)
        return b.sum()

    with pytest.raises(GraphError, match="shares memory with one of shape"):
        dilim.Graph.from_function(f, np.float32(1.0))


def test_numbers_of_state_are_not_known_while_tracing():
    counter = dilim.zeros((), dtype="int64")
    with pytest.raises(GraphError, match=r"its numbers are not known while a graph is being built"):
        dilim.Graph.from_function(lambda: counter * int(counter))
    local = dilim.Graph.from_function(lambda: dilim.ones(int(dilim.tensor(3))))
    assert local.compile(backend="reference")().tolist() == [1.0, 1.0, 1.0]


def test_state_is_as_before_when_tracing_fails():
    w = dilim.tensor([1.0], requires_grad=True)
    w.grad = dilim.tensor([5.0])

    def f(x):
        w.grad = None
        (w * x).sum().backward()
        with dilim.no_grad():
            w.sub_(w.grad)
        raise KeyError

    with pytest.raises(KeyError):
        dilim.Graph.from_function(f, np.float32(2.0))
    assert w.tolist() == [1.0]
    assert w.grad is None  # cleared by the function before anything was symbolic
    assert (w * 2.0).tolist() == [2.0]


def test_a_write_by_a_run_is_seen_by_a_pending_backward():
    w = dilim.tensor([3.0])
    compiled = dilim.Graph.from_function(lambda: w.add_(1.0)).compile(backend="reference")
    x = dilim.tensor([2.0], requires_grad=True)
    y = (x * w).sum()
    compiled()
    with pytest.raises(GradientError, match="was written in place"):
        y.backward()


def test_writes_before_an_error_are_visible_and_none_after():
    w, log = dilim.zeros(3), dilim.zeros(())

    def f(i):
        log.add_(1.0)
        w[i] = 5.0
        log.add_(10.0)
        return w

    compiled = dilim.Graph.from_function(f, np.int64(0)).compile(backend="reference")
    with pytest.raises(IndexError):
        compiled(3)
    assert log.item() == 1.0
    compiled(1)
    assert (log.item(), w.tolist()) == (12.0, [0.0, 5.0, 0.0])


def test_a_replay_buffer_is_written_at_a_position_that_is_state():
    def make():
        memory = dilim.zeros((3, 2))
        position = dilim.zeros((), dtype="int64")

        def store(x):
            memory[position % 3] = x
            position.add_(1)
            return memory[position % 3]

        return store, lambda: [memory, position]

    runs_as_eagerly(make, *[(np.array([k, -k], np.float32),) for k in range(5)])


def test_draws_go_on_from_run_to_run():
    def make():
        generator = dilim.Generator(5)

        def f(x):
            a = generator.uniform(3)
            b = generator.normal((3,), std=2.0)
            order = generator.permutation(3)
            which = generator.categorical(x)
            return a + b, order, which, generator.integers(0, 9, 2)

        return f, lambda: [generator.state]

    runs_as_eagerly(make, *[(VECTOR,)] * 4)


def test_the_default_generator_is_state_as_well():
    dropout = nn.Dropout(0.5)
    compiled = dilim.Graph.from_function(dropout, VECTOR).compile(backend="reference")
    dilim.seed(3)
    eager = [dropout(dilim.tensor(VECTOR)).tolist() for _ in range(4)]
    dilim.seed(3)
    assert [compiled(VECTOR).tolist() for _ in range(4)] == eager
    assert len({tuple(x) for x in eager}) > 1


# ----- training programs --------------------------------------------------------------------------

LAYER_CHOICES = {
    "mlp": lambda g: nn.MLP(3, [5, 2], "tanh", generator=g),
    "relu": lambda g: nn.Sequential(
        nn.Dense(3, 4, generator=g), nn.ReLU(), nn.Dense(4, 2, bias=False, generator=g)
    ),
    "normalized": lambda g: nn.Sequential(
        nn.Dense(3, 4, generator=g), nn.LayerNorm(4), nn.GELU(), nn.Dense(4, 2, generator=g)
    ),
    "dropout": lambda g: nn.Sequential(
        nn.Dense(3, 8, generator=g), nn.Dropout(0.3, generator=g), nn.Dense(8, 2, generator=g)
    ),
    "embedding": lambda g: nn.Sequential(
        lambda x: (x[:, 0] > 0.0).astype(dilim.int64), nn.Embedding(2, 2, generator=g)
    ),
    "convolution": lambda g: nn.Sequential(
        lambda x: x.reshape(x.shape[0], 1, 1, 3), nn.Conv2d(1, 2, (1, 2), generator=g),
        nn.Flatten(), nn.Dense(4, 2, generator=g),
    ),
}  # fmt: skip
LOSS_CHOICES = {
    "mse": lambda y, t: nn.losses.mse(y, t),
    "huber": lambda y, t: nn.losses.huber(y, t, delta=0.3, reduction="sum"),
    "entropy": lambda y, t: nn.losses.cross_entropy(y, (t[:, 0] > 0.0).astype(dilim.int64)),
    "binary": lambda y, t: nn.losses.binary_cross_entropy_with_logits(y, t.sigmoid()),
    "penalty": lambda y, t: nn.losses.mae(y, t) + 0.1 * (y * y).mean(),
}
OPTIMIZER_CHOICES = {
    "sgd": lambda p, **k: optim.SGD(p, 0.1, **k),
    "momentum": lambda p, **k: optim.SGD(p, 0.1, momentum=0.9, nesterov=True, **k),
    "decay": lambda p, **k: optim.SGD(p, optim.StepDecay(0.1, 0.5, 2), weight_decay=0.1, **k),
    "adam": lambda p, **k: optim.Adam(p, 0.01, **k),
    "adamw": lambda p, **k: optim.AdamW(p, optim.Warmup(3, optim.CosineDecay(0.1)), **k),
    "rmsprop": lambda p, **k: optim.RMSprop(p, optim.ExponentialDecay(0.1), momentum=0.5, **k),
    "linear": lambda p, **k: optim.RMSprop(p, optim.LinearDecay(0.1, 0.0, 5), **k),
}
LIMITS = st.fixed_dictionaries(
    {}, optional={"clip_norm": st.floats(0.01, 2.0), "clip_value": st.floats(0.01, 2.0)}
)


def state_of(model, optimizer, generator):
    tensors = [*model.parameters(), generator.state]
    return tensors + [x for x in optimizer.state_dict().values() if isinstance(x, dilim.Tensor)]


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(LAYER_CHOICES)),
    st.sampled_from(sorted(LOSS_CHOICES)),
    st.sampled_from(sorted(OPTIMIZER_CHOICES)),
    LIMITS,
    st.integers(0, 2**32),
)
def test_training_compiled_is_training_eagerly(layers, loss, optimizer, limits, seed):
    def make():
        generator = dilim.Generator(seed)
        model = LAYER_CHOICES[layers](generator)
        chosen = OPTIMIZER_CHOICES[optimizer](model, **limits)

        def step(x, t):
            chosen.zero_grad()
            value = LOSS_CHOICES[loss](model(x), t)
            value.backward()
            chosen.step()
            return value.detach()

        return step, lambda: state_of(model, chosen, generator)

    rng = np.random.default_rng(seed)
    batches = [
        [rng.normal(size=(4, n)).astype(np.float32) for n in (3, 2)] for _ in range(3)
    ]  # fmt: skip
    runs_as_eagerly(make, *batches)


def test_another_learning_rate_needs_no_other_graph():
    w = dilim.tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([w], 0.5)

    def step():
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()

    compiled = dilim.Graph.from_function(step).compile(backend="reference")
    compiled()
    optimizer.learning_rate = 0.25
    compiled()
    assert w.tolist() == [0.25]
    assert optimizer.step_count == 2


def test_parameters_without_gradient_stay_and_the_others_move():
    def make():
        generator = dilim.Generator(1)
        used, unused = (nn.Dense(3, 2, generator=generator) for _ in range(2))
        optimizer = optim.Adam([*used.parameters(), *unused.parameters()], 0.1)

        def step(x):
            optimizer.zero_grad()
            loss = used(x).sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step, lambda: [*used.parameters(), *unused.parameters()]

    runs_as_eagerly(make, (VECTOR,), (-VECTOR,))


@pytest.mark.parametrize("limits", [{"clip_norm": 1.0}, {"clip_value": 1.0}])
def test_a_gradient_that_is_not_finite_changes_nothing(limits):
    w = dilim.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.Adam([w], 0.1, **limits)

    def step(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()

    compiled = dilim.Graph.from_function(step, np.float32(1.0)).compile(backend="reference")
    compiled(1.0)
    before = [x.tolist() for x in (w, *optimizer._packs[0].slots.values())]
    with pytest.raises(dilim.errors.NonFiniteError, match=r"Adam.step: a gradient is not finite"):
        compiled(float("nan"))
    assert [x.tolist() for x in (w, *optimizer._packs[0].slots.values())] == before
    assert optimizer.step_count == 1


def test_a_norm_whose_square_overflows_is_right():
    w = dilim.tensor([0.0, 0.0], requires_grad=True)
    optimizer = optim.SGD([w], 1.0, clip_norm=5.0)

    def step(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()

    x = np.array([3e30, 4e30], np.float32)
    dilim.Graph.from_function(step, x).compile(backend="reference")(x)
    np.testing.assert_allclose(w.numpy(), [-3.0, -4.0], rtol=1e-6)
