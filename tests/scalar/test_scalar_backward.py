"""The backward pass: order, accumulation, depth, memory; and that wrong ones are caught."""

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
from scalar_checkers import ON_VALUES, check_cases, check_program, check_second_call
from test_scalar_properties import check_random_programs

import dilim.scalar
from dilim.scalar import MLP, SGD, Value, loss

SOURCE = Path(dilim.scalar.__file__).parents[2]


def test_backward_on_a_leaf():
    x = Value(4.0)
    x.backward()
    assert x.grad == 1.0
    x.backward()
    assert x.grad == 2.0
    assert x.has_grad


def test_leaves_accumulate_and_inner_values_do_not():
    check_second_call()
    x = Value(3.0)
    square = x * x
    cube = square * x
    for _ in range(3):
        cube.backward()
    assert (square.grad, cube.grad, x.grad) == (3.0, 1.0, 81.0)


def test_two_losses_share_an_inner_value():
    x = Value(2.0)
    shared = x * x
    first, second = 3 * shared, 5 * shared
    first.backward()
    second.backward()
    assert shared.grad == 5.0
    assert x.grad == (3 + 5) * 4.0


def test_independent_expressions_do_not_mix():
    a, b = Value(2.0), Value(5.0)
    left, right = a * a, b * b
    left.backward()
    assert (a.grad, b.grad, right.grad) == (4.0, 0.0, 0.0)
    assert not right.has_grad


def test_zero_grad_clears_the_whole_expression():
    x, y = Value(2.0), Value(3.0)
    s = x * y
    result = s * s
    result.backward()
    assert all(node.has_grad for node in result.graph())
    result.zero_grad()
    assert [node.grad for node in (x, y, s, result)] == [0.0] * 4
    assert not any(node.has_grad for node in result.graph())
    result.backward()
    assert (x.grad, y.grad) == (36.0, 24.0)


def test_graph_lists_inputs_before_users_once():
    x = Value(1.5)
    y = x.tanh()
    for _ in range(20):
        y = y * y + x
    order = y.graph()
    position = {node: index for index, node in enumerate(order)}
    assert len(position) == len(order) == 1 + 1 + 40
    assert all(position[i] < position[node] for node in order for i in node.inputs)
    assert order[-1] is y


def test_steps_do_what_backward_does():
    def build():
        x, y = Value(0.7, label="x"), Value(-1.2, label="y")
        s = (x * y).tanh()
        return x, y, (s * s + x / y - 2 * s).exp() * s

    x, y, result = build()
    result.backward()
    x2, y2, result2 = build()
    for step in result2.backward_steps():
        assert step.node.has_grad
        assert step.added == step.local_derivative * step.incoming_gradient
        assert step.total == step.input.grad
    assert (x2.grad, y2.grad) == (x.grad, y.grad)
    list(result2.backward_steps())
    assert x2.grad == 2 * x.grad


def test_steps_one_at_a_time():
    x, y = Value(2.0, label="x"), Value(3.0, label="y")
    s = x * y
    s.label = "s"
    steps = (2 * s + s).backward_steps()
    assert not s.has_grad
    texts = [str(step) for step in steps]
    assert texts == [
        "v2 = v1 + s: gradient 1, local derivative 1: v1 gets 1 * 1 = 1, now 1",
        "v2 = v1 + s: gradient 1, local derivative 1: s gets 1 * 1 = 1, now 1",
        "v1 = 2 * s: gradient 1, local derivative 2: s gets 1 * 2 = 2, now 3",
        "s = x * y: gradient 3, local derivative 3: x gets 3 * 3 = 9, now 9",
        "s = x * y: gradient 3, local derivative 2: y gets 3 * 2 = 6, now 6",
    ]


def test_step_with_zero_gradient_adds_zero():
    x = Value(0.0, label="x")
    steps = list((0.0 * x.sqrt()).backward_steps())
    assert (steps[-1].local_derivative, steps[-1].added, x.grad) == (float("inf"), 0.0, 0.0)


DEEP = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from dilim.scalar import Value

def work():
    x = Value(1.0)
    y = x
    for _ in range(250_000):  # 4 operations and 2 constants each
        y = 1 + -(y * x - 1)
    y.backward()
    # y becomes 2 - x y, so dy/dx becomes -y - x dy/dx: it starts at 1 and alternates with -2.
    assert (y.data, x.grad) == (1.0, 1.0), (y.data, x.grad)
    assert y.to_text().startswith("... 1,499,941 more values are not shown")
    assert len(y.to_dot()) < 20_000 and len(y.to_svg()) < 60_000
    repr(y)
    y.zero_grad()
    assert x.grad == 0.0
    del y

threading.stack_size(256 * 1024)
thread = threading.Thread(target=work)
thread.start()
thread.join()
print("freed")
"""


def test_a_million_operations_in_a_chain():
    """Forward, backward, drawn and freed, on a stack far too small for recursion."""
    command = [sys.executable, "-c", DEEP, str(SOURCE)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "freed\n", "")


def test_hundred_thousand_additions():
    x = Value(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert (y.data, x.grad) == (100_001.0, 1.0)


def test_graphs_are_freed_without_the_garbage_collector():
    gc.collect()
    gc.disable()
    try:
        x = Value(0.5, label="x")
        y = (x * x + 2 * x).tanh() ** x / (1 + x.exp())
        y.backward()
        list(y.backward_steps())
        y.to_text(), y.to_dot(), y.to_svg()
        y.zero_grad()
        parts = [weakref.ref(node) for node in y.graph() if node is not x]
        assert len(parts) > 8
        del y
        assert [part() for part in parts] == [None] * len(parts)
    finally:
        gc.enable()


def count_values():
    return sum(type(thing) is Value for thing in gc.get_objects())


def test_training_keeps_memory_flat_without_the_garbage_collector():
    model = MLP(2, [4, 1], seed=0)
    optimizer = SGD(model.parameters(), learning_rate=0.01, momentum=0.9)

    def step():
        error = loss.mse([model([1.0, -1.0]), model([0.5, 2.0])], [1.0, -1.0])
        optimizer.zero_grad()
        error.backward()
        optimizer.step()

    gc.collect()
    gc.disable()
    try:
        step()
        before = count_values()
        for _ in range(30):
            step()
        assert count_values() == before
    finally:
        gc.enable()


# ---- deliberately wrong engines: each must be caught by the checks above ------------------------


def start(root):
    order = root.graph()
    for node in order:
        if node.inputs:
            node.grad = 0.0
    root.grad += 1.0
    return order


def slopes(node):
    return zip(node.inputs, (node._left_slope, node._right_slope), strict=False)


def assigns(root):
    for node in reversed(start(root)):
        for source, slope in slopes(node):
            source.grad = slope * node.grad


def passes_on_at_visit(root):
    start(root)

    def visit(node):
        for source, slope in slopes(node):
            source.grad += slope * node.grad
            visit(source)

    visit(root)


def visits_once_in_visit_order(root):
    start(root)
    queue, seen = [root], {root}
    for node in queue:
        for source, slope in slopes(node):
            source.grad += slope * node.grad
            if source not in seen:
                seen.add(source)
                queue.append(source)


def keeps_inner_gradients(root):
    root.grad += 1.0
    for node in reversed(root.graph()):
        for source, slope in slopes(node):
            source.grad += slope * node.grad


def forgets_the_second_input(root):
    for node in reversed(start(root)):
        for source, slope in list(slopes(node))[:1]:
            source.grad += slope * node.grad


@pytest.mark.parametrize(
    "wrong", [assigns, passes_on_at_visit, visits_once_in_visit_order, forgets_the_second_input]
)
def test_wrong_engines_are_caught(monkeypatch, wrong):
    monkeypatch.setattr(Value, "backward", wrong)
    with pytest.raises(AssertionError):
        check_cases()
    with pytest.raises(AssertionError):
        check_random_programs()


def test_engine_that_keeps_inner_gradients_is_caught(monkeypatch):
    monkeypatch.setattr(Value, "backward", keeps_inner_gradients)
    check_cases()  # a first call does not show the mistake
    with pytest.raises(AssertionError):
        check_second_call()


def sine_with_wrong_sign(value):
    result = right_sine(value)
    result._left_slope = -result._left_slope
    return result


def power_without_exponent_slope(value, exponent):
    result = right_power(value, exponent)
    result._right_slope = 0.0
    return result


right_sine, right_power = Value.sin, Value.__pow__


@pytest.mark.parametrize(
    ("name", "wrong", "instruction"),
    [("sin", sine_with_wrong_sign, "sin"), ("__pow__", power_without_exponent_slope, "power")],
)
def test_wrong_slopes_are_caught(monkeypatch, name, wrong, instruction):
    program = [(instruction, 0, 1)]
    assert check_program(program, [0.5, 1.5])
    monkeypatch.setattr(Value, name, wrong)
    monkeypatch.setitem(ON_VALUES, "sin", lambda a, b: a.sin())
    with pytest.raises(AssertionError):
        check_program(program, [0.5, 1.5])
