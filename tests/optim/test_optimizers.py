import copy
import math

import numpy as np
import pytest
from reference import RULES

import dilim
from dilim import nn, optim
from dilim.errors import DtypeError, GradientError, NonFiniteError, StateError
from dilim.optim import packing

OPTIONS = [
    ("SGD", {}),
    ("SGD", {"weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.8, "nesterov": True, "weight_decay": 0.05}),
    ("Adam", {}),
    ("Adam", {"betas": (0.5, 0.9), "epsilon": 1e-3}),
    ("AdamW", {}),
    ("AdamW", {"weight_decay": 0.3, "betas": (0.8, 0.99)}),
    ("RMSprop", {}),
    ("RMSprop", {"decay": 0.9, "epsilon": 0.01, "momentum": 0.7}),
]
IDS = [f"{name}-{'-'.join(options)}" for name, options in OPTIONS]
every_option = pytest.mark.parametrize(("name", "options"), OPTIONS, ids=IDS)
every_optimizer = pytest.mark.parametrize("name", sorted(optim.OPTIMIZERS))
SHAPES = [(3, 4), (4,), (), (2, 1, 3)]


def make_parameters(dtype="float64", shapes=SHAPES):
    rng = np.random.default_rng(0)
    return [dilim.tensor(rng.normal(size=s), dtype=dtype, requires_grad=True) for s in shapes]


def gradient_at(step, position, shape):
    return np.random.default_rng([step, position]).normal(0.0, 10.0 ** (position - 1), shape)


def give_gradients(parameters, step, missing=()):
    for position, p in enumerate(parameters):
        g = gradient_at(step, position, p.shape)
        p.grad = None if position in missing else dilim.tensor(g, dtype=p.dtype)


def assert_close(parameters, wanted, rtol=1e-11):
    for p, w in zip(parameters, wanted, strict=True):
        np.testing.assert_allclose(p.numpy(), w, rtol=rtol, atol=rtol)


def test_every_optimizer_has_a_reference():
    assert set(RULES) == set(optim.OPTIMIZERS)
    assert {name for name, _ in OPTIONS} == set(optim.OPTIMIZERS)


# ----- against loops in NumPy ---------------------------------------------------------------------


@every_option
@pytest.mark.parametrize("pack_size", [packing.PACK_SIZE, 5, 0])
def test_steps_equal_the_formula_however_parameters_are_packed(
    name, options, pack_size, monkeypatch
):
    monkeypatch.setattr(packing, "PACK_SIZE", pack_size)
    parameters = make_parameters()
    optimizer = optim.OPTIMIZERS[name](parameters, 0.03, **options)
    rules = [RULES[name](**options) for _ in parameters]
    wanted = [p.numpy(copy=True) for p in parameters]
    for step in range(8):
        give_gradients(parameters, step)
        optimizer.step()
        wanted = [
            rule(w, gradient_at(step, i, w.shape), 0.03)
            for i, (rule, w) in enumerate(zip(rules, wanted, strict=True))
        ]
    assert_close(parameters, wanted)
    assert optimizer.step_count == 8


@every_option
def test_a_parameter_without_gradient_is_skipped_and_its_count_too(name, options):
    parameters = make_parameters()
    optimizer = optim.OPTIMIZERS[name](parameters, 0.03, **options)
    rules = [RULES[name](**options) for _ in parameters]
    wanted = [p.numpy(copy=True) for p in parameters]
    missing = [(), (1,), (), (1, 3), (0,), (0, 1, 2), ()]
    for step, without in enumerate(missing):
        give_gradients(parameters, step, without)
        optimizer.step()
        for i, rule in enumerate(rules):
            if i not in without:
                wanted[i] = rule(wanted[i], gradient_at(step, i, wanted[i].shape), 0.03)
    assert_close(parameters, wanted)


@every_optimizer
def test_float32_parameters_stay_float32_and_agree(name):
    parameters = make_parameters("float32")
    optimizer = optim.OPTIMIZERS[name](parameters, 0.01)
    rules = [RULES[name]() for _ in parameters]
    wanted = [p.numpy(copy=True).astype(np.float64) for p in parameters]
    for step in range(5):
        give_gradients(parameters, step)
        optimizer.step()
        for i, rule in enumerate(rules):
            gradient = gradient_at(step, i, wanted[i].shape).astype(np.float32)
            wanted[i] = rule(wanted[i], gradient.astype(np.float64), 0.01)
    assert all(p.dtype is dilim.float32 for p in parameters)
    assert_close(parameters, wanted, rtol=2e-6)


@every_optimizer
def test_mixed_dtypes_and_a_dtype_that_changes(name):
    parameters = make_parameters()
    parameters[1] = dilim.tensor(parameters[1].tolist(), dtype="float32", requires_grad=True)
    optimizer = optim.OPTIMIZERS[name](parameters, 0.01)
    give_gradients(parameters, 0)
    optimizer.step()
    assert [p.dtype.name for p in parameters] == ["float64", "float32", "float64", "float64"]
    model = nn.Dense(2, 1, init="zeros")
    optimizer = optim.OPTIMIZERS[name](model, 0.01)
    rule = RULES[name]()
    wanted = np.zeros(1)
    for step in range(4):
        if step == 2:
            model.to("float64")
        give_gradients(model.parameters(), step)
        optimizer.step()
        wanted = rule(wanted, gradient_at(step, 1, (1,)), 0.01)
    assert model.bias.dtype is dilim.float64
    np.testing.assert_allclose(model.bias.numpy(), wanted, rtol=1e-5)
    slots = [x for key, x in optimizer.state_dict().items() if key.endswith((".0", ".1"))]
    assert all(x.dtype is dilim.float64 for x in slots)


def test_a_model_cast_to_float64_takes_steps_in_float64():
    model = nn.Dense(2, 1, init="zeros")
    optimizer = optim.SGD(model, 1.0)
    give_gradients(model.parameters(), 0)
    optimizer.step()
    model.to("float64")
    with dilim.no_grad():
        model.bias.fill_(1.0)
    give_gradients(model.parameters(), 1)
    model.bias.grad = dilim.tensor([1.0 + 2.0**-40], dtype="float64")
    optimizer.step()
    assert model.bias.item() == -(2.0**-40)


@every_optimizer
def test_a_quadratic_falls(name):
    x = dilim.tensor([3.0, -2.0], requires_grad=True)
    optimizer = optim.OPTIMIZERS[name]([x], 0.05)
    for _ in range(300):
        optimizer.zero_grad()
        ((x - 1.0) ** 2).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(x.numpy(), 1.0, atol=0.06)
    assert x.requires_grad
    assert x.is_leaf


def test_adam_at_the_first_step_moves_by_the_learning_rate():
    x = dilim.tensor([1.0, 1.0, 1.0], dtype="float64", requires_grad=True)
    optimizer = optim.Adam([x], 0.1)
    x.grad = dilim.tensor([1e-3, -50.0, 0.0], dtype="float64")
    optimizer.step()
    np.testing.assert_allclose(x.numpy(), [0.9, 1.1, 1.0], rtol=1e-5)
    assert (optim.Adam([x]).learning_rate, optim.Adam([x]).betas) == (1e-3, (0.9, 0.999))


def test_gradients_with_a_tape_and_views_are_taken_by_value():
    parameters = make_parameters(shapes=[(2, 3), (3,)])
    optimizer = optim.Adam(parameters, 0.1)
    (parameters[0] ** 3).sum().backward(create_graph=True)
    parameters[1].grad = dilim.broadcast_to(dilim.tensor([2.0], dtype="float64"), (3,))
    kept = parameters[0].grad.tolist()
    optimizer.step()
    assert all(p.is_leaf and p.requires_grad for p in parameters)
    assert parameters[0].grad.tolist() == kept
    optimizer.step()
    assert optimizer.step_count == 2


# ----- learning rates -----------------------------------------------------------------------------


@every_optimizer
def test_a_schedule_gives_the_rate_of_each_step(name):
    schedule = optim.LinearDecay(0.1, 0.02, 4)
    parameters = make_parameters()
    optimizer = optim.OPTIMIZERS[name](parameters, schedule)
    rules = [RULES[name]() for _ in parameters]
    wanted = [p.numpy(copy=True) for p in parameters]
    for step, rate in enumerate([0.1, 0.08, 0.06, 0.04, 0.02, 0.02]):
        assert optimizer.current_learning_rate == pytest.approx(rate, rel=1e-12)
        give_gradients(parameters, step)
        optimizer.step()
        wanted = [
            rule(w, gradient_at(step, i, w.shape), rate)
            for i, (rule, w) in enumerate(zip(rules, wanted, strict=True))
        ]
    assert_close(parameters, wanted)
    assert optimizer.learning_rate is schedule


def test_the_learning_rate_can_be_assigned():
    x = dilim.tensor([1.0], dtype="float64", requires_grad=True)
    optimizer = optim.SGD([x], 0.5)
    x.grad = dilim.ones(1, dtype="float64")
    optimizer.step()
    optimizer.learning_rate = 0.25
    optimizer.step()
    assert x.tolist() == [0.25]
    optimizer.learning_rate = optim.Constant(0.25)
    optimizer.step()
    assert x.tolist() == [0.0]
    optimizer.learning_rate = 0
    optimizer.step()
    assert (x.tolist(), optimizer.learning_rate) == ([0.0], 0.0)
    for bad in (-0.1, math.nan, math.inf):
        with pytest.raises(ValueError, match="SGD: expected learning_rate >= 0, received"):
            optimizer.learning_rate = bad


# ----- clipping in optimisers ---------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0.5, 1e9])
def test_clip_norm_scales_all_gradients_by_one_factor(limit):
    parameters = make_parameters()
    optimizer = optim.SGD(parameters, 1.0, clip_norm=limit)
    before = [p.numpy(copy=True) for p in parameters]
    give_gradients(parameters, 0)
    gradients = [p.grad.numpy(copy=True) for p in parameters]
    norm = math.sqrt(sum((g**2).sum() for g in gradients))
    optimizer.step()
    scale = min(1.0, limit / norm)
    assert_close(parameters, [b - scale * g for b, g in zip(before, gradients, strict=True)])
    for p, g in zip(parameters, gradients, strict=True):
        np.testing.assert_array_equal(p.grad.numpy(), g)


def test_clip_value_comes_before_clip_norm():
    x = dilim.tensor([0.0, 0.0, 0.0], dtype="float64", requires_grad=True)
    optimizer = optim.SGD([x], 1.0, clip_value=3.0, clip_norm=2.5)
    x.grad = dilim.tensor([100.0, -4.0, 0.0], dtype="float64")
    optimizer.step()
    scale = 2.5 / math.sqrt(18.0)
    np.testing.assert_allclose(x.numpy(), [-3.0 * scale, 3.0 * scale, 0.0], rtol=1e-12)


@pytest.mark.parametrize("clip", [{"clip_norm": 1.0}, {"clip_value": 1.0}])
@pytest.mark.parametrize("bad", ["nan", "inf"])
@every_optimizer
def test_gradients_that_are_not_finite_are_refused_by_name(name, clip, bad):
    model = nn.MLP(2, [3, 1])
    optimizer = optim.OPTIMIZERS[name](model, **clip)
    model(dilim.ones((4, 2))).sum().backward()
    grad = model.layers[1].weight.grad
    grad[1, 0] = float(bad)
    before = model.state_dict()
    count = "1 NaN and 0" if bad == "nan" else "0 NaN and 1"
    text = rf"{name}.step: the gradient of 'layers.1.weight' \(3, 1\) has {count} infinities of 3"
    if bad == "inf" and "clip_value" in clip:
        optimizer.step()
        assert all(np.isfinite(p.numpy()).all() for p in model.parameters())
        return
    with pytest.raises(NonFiniteError, match=text):
        optimizer.step()
    after = model.state_dict()
    assert all(after[key].tolist() == before[key].tolist() for key in before)
    assert optimizer.step_count == 0


# ----- state --------------------------------------------------------------------------------------


@every_optimizer
def test_state_moves_to_another_optimizer(name):
    twins = [make_parameters(), make_parameters()]
    first, second = (
        optim.OPTIMIZERS[name](twin, rate, clip_norm=clip)
        for twin, rate, clip in zip(twins, (0.02, 0.5), (2.0, None), strict=True)
    )
    for step in range(3):
        give_gradients(twins[0], step, missing=(2,) if step == 1 else ())
        first.step()
    state = first.state_dict()
    assert state["steps"].tolist() == [3, 3, 2, 3]
    second.load_state_dict(state)
    assert (second.learning_rate, second.clip_norm, second.step_count) == (0.02, 2.0, 3)
    for p, q in zip(*twins, strict=True):
        with dilim.no_grad():
            q.copy_(p)
    for step in range(3, 6):
        for twin, optimizer in zip(twins, (first, second), strict=True):
            give_gradients(twin, step)
            optimizer.step()
    for p, q in zip(*twins, strict=True):
        assert p.tolist() == q.tolist()


def test_state_is_a_copy():
    parameters = make_parameters()
    optimizer = optim.Adam(parameters)
    give_gradients(parameters, 0)
    optimizer.step()
    state = optimizer.state_dict()
    before = state["first_moment.0"].tolist()
    optimizer.step()
    assert state["first_moment.0"].tolist() == before
    assert state["first_moment.0"].shape == (3, 4)
    assert state["step_count"].item() == 1


def test_state_that_does_not_fit_is_refused_and_changes_nothing():
    parameters = make_parameters()
    optimizer = optim.Adam(parameters, 0.01)
    with pytest.raises(
        StateError, match=r"Adam.load_state_dict: the state is that of optimizer 'SGD'"
    ):
        optimizer.load_state_dict(optim.SGD(parameters).state_dict())
    other = optim.Adam(make_parameters(shapes=[(3, 5), (4,), ()]), 0.5).state_dict()
    with pytest.raises(StateError) as caught:
        optimizer.load_state_dict(other)
    for part in (
        "missing: first_moment.3 (2, 1, 3), second_moment.3 (2, 1, 3)",
        "steps: expected int64 (4,), received int64 (3,)",
        "first_moment.0: expected float64 (3, 4), received float64 (3, 5)",
    ):
        assert part in str(caught.value)
    assert optimizer.learning_rate == 0.01
    state = optimizer.state_dict()
    del state["betas"]
    with pytest.raises(StateError, match="the state lacks betas"):
        optimizer.load_state_dict(state)


@every_optimizer
def test_deep_copy_of_model_and_optimizer_together_is_independent(name):
    model = nn.MLP(2, [3, 1], generator=dilim.Generator(0))
    optimizer = optim.OPTIMIZERS[name](model, 0.05)
    pair = {"model": model, "optimizer": optimizer}

    def go(pair, steps):
        for _ in range(steps):
            pair["optimizer"].zero_grad()
            (pair["model"](dilim.ones((1, 2))) ** 2).sum().backward()
            pair["optimizer"].step()
        return [p.tolist() for p in pair["model"].parameters()]

    go(pair, 3)
    twin = copy.deepcopy(pair)
    assert twin["optimizer"].parameters[0] is twin["model"].layers[0].weight
    before = [p.tolist() for p in model.parameters()]
    after = go(twin, 3)
    assert [p.tolist() for p in model.parameters()] == before
    assert after != before
    assert go(pair, 3) == after


# ----- what is refused ----------------------------------------------------------------------------

W = dilim.ones(2, requires_grad=True)


@pytest.mark.parametrize(
    ("act", "error", "match"),
    [
        (lambda: optim.SGD([]), ValueError, "SGD: expected parameters to train, received none"),
        (lambda: optim.SGD(W), DtypeError, "SGD: expected a list of tensors, received Tensor"),
        (lambda: optim.SGD([1.0]), DtypeError, "SGD: expected tensors, received float"),
        (lambda: optim.Adam([W, W]), ValueError, "Adam: 'parameter 1' was given twice"),
        (
            lambda: optim.Adam([W * 2.0]),
            GradientError,
            "'parameter 0' is the result of an operation",
        ),
        (
            lambda: optim.Adam([("w", dilim.ones(2))]),
            GradientError,
            "Adam: 'w' does not require a gradient; create it with requires_grad=True",
        ),
        (lambda: optim.SGD([W], -1.0), ValueError, "learning_rate >= 0, received -1.0"),
        (lambda: optim.SGD([W], momentum=1.0), ValueError, "SGD: momentum: .* from 0 to below 1"),
        (lambda: optim.SGD([W], nesterov=True), ValueError, "nesterov=True needs a momentum"),
        (lambda: optim.SGD([W], weight_decay=-1.0), ValueError, "SGD: weight_decay: .* >= 0"),
        (lambda: optim.Adam([W], betas=(0.9, 1.0)), ValueError, "Adam: betas: .* received 1.0"),
        (lambda: optim.AdamW([W], betas=(0.9,)), ValueError, "AdamW: expected two betas"),
        (lambda: optim.RMSprop([W], decay=2.0), ValueError, "RMSprop: decay"),
        (lambda: optim.Adam([W], clip_norm=0.0), ValueError, "Adam: clip_norm: .* above 0"),
    ],
)
def test_bad_arguments_are_named(act, error, match):
    with pytest.raises(error, match=match):
        act()


@every_optimizer
def test_a_step_without_any_gradient_is_refused(name):
    optimizer = optim.OPTIMIZERS[name](make_parameters())
    with pytest.raises(
        GradientError, match=rf"{name}.step: no parameter has a gradient; call loss"
    ):
        optimizer.step()


def test_a_gradient_of_another_shape_or_dtype_is_refused():
    parameters = make_parameters()
    optimizer = optim.SGD(parameters)
    give_gradients(parameters, 0)
    parameters[1].grad = dilim.ones(1, dtype="float64")
    with pytest.raises(GradientError, match=r"type float64 \(4,\), received float64 \(1,\)"):
        optimizer.step()
    parameters[1].grad = dilim.ones(4)
    with pytest.raises(GradientError, match=r"type float64 \(4,\), received float32 \(4,\)"):
        optimizer.step()


def test_repr_shows_the_settings():
    model = nn.MLP(4, [64, 64, 2])
    assert repr(optim.Adam(model, 0.01)) == (
        "Adam(4,610 parameters, learning_rate=0.01, betas=(0.9, 0.999), epsilon=1e-08, step 0)"
    )
