"""Tensors that carry a gradient out of a compiled function, and host code beside a live tape."""

import pytest

import dilim
from dilim import nn
from dilim.errors import DilimError
from dilim.tensors.replays import Stage
from slicing.given_gradients import (
    KEPT,
    THROUGH_REGIONS,
    W,
    either_side,
    no_turn,
    opaque,
    penalty,
    unknown_count,
)  # fmt: skip

POSITIVE = [0.5, 1.5, -0.5]
NEGATIVE = [-3.0, 1.0, 0.5]
NET = nn.Sequential(
    nn.Dense(3, 4, generator=dilim.Generator(0)), nn.Dense(4, 1, generator=dilim.Generator(1))
)


def loss(x):
    return (W * x).sum()


def loss_and_hidden(x):
    hidden = dilim.tanh(W * x)
    return (hidden * hidden).mean(), hidden


def of_layers(x):
    return dilim.square(NET(x.reshape((1, 3)))).mean()


def written_before(x):
    with dilim.no_grad():
        W.add_(x)
    return (W * W * x).sum()


def retained(x):
    total = (W * W * x).sum()
    total.backward(retain_graph=True)
    return total


def opaque_between(x):
    total = (W * x).sum()
    opaque()
    total.backward()
    return total.item()


def given_to_host(x):
    total = (W * x).sum()
    opaque(total)
    total.backward()
    return total.item()


def appended(x):
    total = (W * x).sum()
    KEPT.append(total)
    (total * total).backward()
    return total.item()


def appended_on_one_path(x):
    total = (W * x).sum()
    if x.sum() > 0:
        KEPT.append(total)
    total.backward()
    return len(KEPT)


def summed_in_order(x):
    a, b = (W * x).sum(), dilim.exp(W).sum()
    opaque(a)
    return a + b + (W * W).sum()


def summed_with_the_host(x):
    a = dilim.exp(W * x).sum()
    b = penalty()
    c = (W * x * 0.7).sum()
    return a + b + c


def views(x):
    y = (W[0:2] * x[0]).reshape((2, 1)).T
    return (y * y).sum()


def parts_of_one(x):
    y = dilim.concat([W, x])
    return (y[:3] * y[3:]).sum(), y


def losses_in_a_loop(x):
    for i in range(12):
        KEPT.append((W * x * float(i)).sum())
    return dilim.stack([each * each for each in KEPT]).sum()


def backward_on_either_path(x):
    total = (W * x).sum()
    if x.sum() > 0:
        total.backward()
    else:
        (total * 2).backward()
    return total.item()


def own_leaf(x):
    w = dilim.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (w * w * x).sum().backward()
    return w, w.grad


def own_leaf_on_one_path(x):
    w = dilim.tensor([1.0, 2.0, 3.0], requires_grad=True)
    if x.sum() > 0:
        (w * x).sum().backward()
    return w.grad


def own_leaf_in_a_loop(x):
    w = dilim.tensor([1.0, 2.0, 0.5], requires_grad=True)
    for _ in range(12):
        dilim.square(w * x - 1).sum().backward()
        with dilim.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
    return w


def new_leaf_in_each_turn(x):
    w = dilim.tensor([1.0, 2.0, 0.5], requires_grad=True)
    for _ in range(12):
        dilim.square(w * x - 1).sum().backward()
        w = (w - 0.1 * w.grad).detach().requires_grad_()
    return w


def grad_cleared_before_the_host_adds(x):
    W.grad = None
    opaque()
    eval("(W * W).sum()").backward()
    return W.grad


def recurrent(x):
    h = W * 1
    for _ in range(12):
        h = dilim.tanh(h * x + W)
    return h.sum()


NATIVE = (
    loss, loss_and_hidden, of_layers, written_before, retained, opaque_between, given_to_host,
    appended, appended_on_one_path, summed_in_order, summed_with_the_host, views, parts_of_one,
    losses_in_a_loop, backward_on_either_path, own_leaf, own_leaf_on_one_path, own_leaf_in_a_loop,
    recurrent, *THROUGH_REGIONS,
)  # fmt: skip


def written_after(x):
    total = (W * W * x).sum()
    with dilim.no_grad():
        W.add_(x)
    return total


def used_up_in_part(x):
    total = (W * W * x).sum()
    double = total * 2
    total.backward()
    return double


def backward_twice(x):
    total = (W * W * x).sum()
    total.backward()
    total.backward()


def backward_in_each_turn(x):
    total = (W * x).sum()
    for _ in range(12):
        total.backward()


def backward_through_turns(x):
    h = W * x
    for i in range(12):
        h = h * 0.5
        if i == 9:
            h.sum().backward()
    return h


def used_on_one_path_then_again(x):
    total = (W * x).sum()
    if x.sum() > 0:
        total.backward()
    total.backward()


def used_up_on_one_path(x):
    total = (W * x).sum()
    KEPT.append(total)
    if x.sum() > 0:
        total.backward()
    return total.item()


OTHERS = (
    new_leaf_in_each_turn, grad_cleared_before_the_host_adds, written_after, used_up_in_part,
    backward_twice, backward_in_each_turn, backward_through_turns,
    used_on_one_path_then_again, no_turn, unknown_count, used_up_on_one_path,
)  # fmt: skip


def seen(function):
    """All that three calls and backward passes outside show."""
    with dilim.no_grad():
        W[...] = dilim.tensor([1.0, -2.0, 3.0])
    W.grad = None
    for p in NET.parameters():
        p.grad = None
    shown = []
    for numbers in (POSITIVE, NEGATIVE, POSITIVE):
        KEPT.clear()
        try:
            result = function(dilim.tensor(numbers))
            results = result if isinstance(result, tuple) else (result,)
            tensors = [x for x in (*results, *KEPT) if isinstance(x, dilim.Tensor)]
            shown += [results[0] is x for x in KEPT]
            shown += [None if isinstance(x, dilim.Tensor) else x for x in results]
            for x in tensors:
                shown += [x.tolist(), x.requires_grad, x.is_leaf, repr(x)]
                shown.append(None if x.grad is None else x.grad.tolist())
            live = [x for x in tensors if not x.is_leaf]
            if live:
                dilim.stack([x.sum() for x in live]).sum().backward()
        except DilimError as error:
            shown.append(f"{type(error).__name__}: {error}")
        leaves = (W, *NET.parameters())
        shown.append([None if p.grad is None else p.grad.tolist() for p in leaves])
    return shown


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("function", [*NATIVE, *OTHERS], ids=lambda f: getattr(f, "__name__", f))
def test_gradients_are_those_of_the_plain_function(function, backend):
    compiled = dilim.compile(function, compile_after=0, backend=backend)
    assert seen(compiled) == seen(function)
    if function in NATIVE:
        assert compiled.statistics.fallbacks == []
        assert compiled.statistics.native_calls == 3


def test_a_tensor_that_carries_a_gradient_is_an_argument():
    def step(x, h):
        return dilim.tanh(W * x + h * h)

    def run(function):
        W.grad = None
        x, h = dilim.tensor(POSITIVE), W * 0.5
        for _ in range(3):
            h = function(x, h)
        h.sum().backward()
        return h.tolist(), W.grad.tolist()

    compiled = dilim.compile(step, compile_after=0, backend="reference")
    assert run(compiled) == run(step)
    assert compiled.statistics.native_calls == 3
    assert compiled.statistics.variants == 1


def test_backward_inside_of_what_was_computed_outside_is_left_to_python():
    def finish(h):
        h.sum().backward()

    def run(function):
        W.grad = None
        function(W * W)
        return W.grad.tolist()

    compiled = dilim.compile(finish, compile_after=0, backend="reference")
    assert run(compiled) == run(finish) == [2.0, -4.0, 6.0]
    [(reason, _, line)] = compiled.statistics.fallbacks
    assert reason == "a gradient goes on outside of the function"
    assert line == finish.__code__.co_firstlineno + 1


PLAIN = dilim.tensor([1.0, 2.0, 3.0])


def of_plain_tensors(x):
    y = W * x
    for i in range(40):
        if x[i % 3] > 0:
            y = y * PLAIN * 0.5
    return y.sum()


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_a_plain_tensor_that_is_written_after_the_call_is_missed_by_backward(backend):
    def refusal(function):
        total = function(dilim.tensor(POSITIVE))
        PLAIN.mul_(1.0)
        with pytest.raises(dilim.errors.GradientError) as caught:
            total.backward()
        return str(caught.value)

    compiled = dilim.compile(of_plain_tensors, compile_after=0, backend=backend)
    assert refusal(compiled) == refusal(of_plain_tensors)
    assert compiled.statistics.fallbacks == []


def returned_and_then_written(x):
    y = W * W if x.sum() > 0 else (W * x).exp()
    return y, (y * W).sum()


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("numbers", [POSITIVE, NEGATIVE])
def test_what_is_written_after_the_call_is_missed_by_backward(numbers, backend):
    def refusals(function):
        found = []
        for written in (0, 1):
            W.grad = None
            results = function(dilim.tensor(numbers))
            with dilim.no_grad():
                (*results, W)[-written].add_(0.0)
            with pytest.raises(dilim.errors.GradientError) as caught:
                results[1].backward()
            found.append(str(caught.value))
        return found

    compiled = dilim.compile(returned_and_then_written, compile_after=0, backend=backend)
    assert refusals(compiled) == refusals(returned_and_then_written)
    assert compiled.statistics.fallbacks == []


def test_a_branch_is_recorded_only_when_it_is_asked_for(monkeypatch):
    applied = []
    monkeypatch.setattr(
        "dilim.tensors.replays.Stage.record",
        lambda stage, node, inputs, operands, known=Stage.record: (
            applied.append(node.op.name) or known(stage, node, inputs, operands)
        ),
    )
    compiled = dilim.compile(either_side, compile_after=0, backend="reference")
    y, total = compiled(dilim.tensor(POSITIVE))
    assert applied == []
    total.backward()
    assert applied == ["multiply"]
    assert repr(y).endswith("made_by=multiply)")


def test_derivatives_of_higher_order_through_a_branch():
    def curvature(function):
        W.grad = None
        _, total = function(dilim.tensor(NEGATIVE))
        total.backward(create_graph=True)
        first, W.grad = W.grad, None
        (first * W).sum().backward()
        return first.tolist(), W.grad.tolist()

    compiled = dilim.compile(either_side, compile_after=0, backend="reference")
    assert curvature(compiled) == curvature(either_side)
    assert compiled.statistics.fallbacks == []


def from_a_branch_then_written(x, y):
    if y.sum() > 0:
        result = dilim.atan2(W, x)
    else:
        result = W * x
    x[1:] = y[1:] * 3
    return result


@pytest.mark.parametrize("numbers", [POSITIVE, NEGATIVE])
def test_a_branch_whose_memory_was_written_is_refused_as_always(numbers):
    def refusal(function):
        result = function(dilim.tensor(numbers), dilim.tensor(numbers))
        with pytest.raises(dilim.errors.GradientError) as caught:
            result.sum().backward()
        return str(caught.value)

    compiled = dilim.compile(from_a_branch_then_written, compile_after=0, backend="reference")
    assert refusal(compiled) == refusal(from_a_branch_then_written)
