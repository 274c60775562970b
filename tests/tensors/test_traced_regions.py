"""State inside branches and loops while tracing: reads see the writes that came before them."""

import random

import numpy as np
import pytest

import dilim
from dilim.errors import GraphError

BACKENDS = pytest.mark.parametrize("backend", ["llvm", "reference"])


def same_as_eagerly(make, *arguments, backend="llvm", calls=2):
    """``make() -> (function, state)`` gives the same bits compiled and eagerly, call after call."""
    found = []
    for is_compiled in (False, True):
        function, state = make()
        if is_compiled:
            function = dilim.Graph.from_function(function, *arguments).compile(backend=backend)
        results = []
        for _ in range(calls):
            made = function(*arguments)
            results += [made] if isinstance(made, dilim.Tensor) else [*made]
            results = [np.array(x) for x in results] + [np.array(x) for x in state]
        found.append(results)
    for eager, compiled in zip(*found, strict=True):
        np.testing.assert_array_equal(compiled, eager)


def in_loop(v, w):
    return dilim.loop(2, w * 1.0, lambda i, a: (v.mul_(2.0), a + v)[1])


def in_cond(v, w):
    return dilim.cond(v.sum() > 0.0, lambda: (v.add_(w), w * 2.0)[1], lambda: w * 1.0)


def loop_in_branch(v, w):
    return dilim.cond(w.sum() > 0.0, lambda: in_loop(v, w) + v, lambda: w + v)


def loop_in_other_branch(v, w):
    return dilim.cond(w.sum() < 0.0, lambda: w + v, lambda: in_loop(v, w) + v)


def branch_in_branch(v, w):
    return dilim.cond(w.sum() > 0.0, lambda: in_cond(v, w) + v, lambda: v + w)


def branch_in_loop(v, w):
    return dilim.loop(3, w, lambda i, a: (in_cond(v, a), a + v)[1])


def loop_in_branch_in_loop(v, w):
    def body(i, a):
        return dilim.cond(i > 0, lambda: in_loop(v, a) + v, lambda: (v.sub_(1.0), a + v)[1]) + v

    return dilim.loop(3, w, body)


def branch_in_loop_in_branch(v, w):
    return dilim.cond(w.sum() > 0.0, lambda: branch_in_loop(v, w) + v, lambda: v + w)


@BACKENDS
@pytest.mark.parametrize(
    "function",
    [
        loop_in_branch,
        loop_in_other_branch,
        branch_in_branch,
        branch_in_loop,
        loop_in_branch_in_loop,
        branch_in_loop_in_branch,
    ],
    ids=lambda f: f.__name__,
)
def test_a_read_after_an_inner_region_sees_its_writes(function, backend):
    def make():
        v, w = dilim.tensor([1.0, 2.0, 3.0]), dilim.tensor([0.5, -0.25, 0.125])
        return lambda x: function(v, w + x), [v, w]

    same_as_eagerly(make, dilim.ones(3), backend=backend)


@BACKENDS
def test_draws_in_a_loop_in_a_branch_go_on(backend):
    def make():
        generator = dilim.Generator(5)

        def branch(x):
            y = dilim.loop(2, x, lambda i, a: a + generator.normal((3,)))
            return y + generator.uniform((3,))

        def function(x):
            before = generator.uniform((3,))
            y = dilim.cond(x.sum() > 0.0, lambda: branch(x), lambda: x * 1.0)
            return before, y, generator.uniform((3,))

        return function, [generator.state]

    same_as_eagerly(make, dilim.ones(3), backend=backend)


def statements(choose, depth=0):
    """A random program of reads and writes in branches and loops."""
    made = []
    for _ in range(choose.randrange(1, 4)):
        kind = choose.choice(
            ["halve", "place", "read", "copy", "loop", "cond"][: 6 - 2 * (depth > 2)]
        )
        count = {"loop": 1, "cond": 2}.get(kind, 0)
        parts = [statements(choose, depth + 1) for _ in range(count)]
        made.append((kind, choose.randrange(3), parts))
    return made


def played(program, v, w, i, a):
    for kind, number, parts in program:
        if kind == "halve":
            v.mul_(0.5 + number)
        elif kind == "place":
            w[i] = a[number] + v[0]
        elif kind == "read":
            a = a + v * 0.5
        elif kind == "copy":
            v.copy_(w)
        elif kind == "loop":
            a = dilim.loop(number, a, lambda j, b, part=parts[0]: played(part, v, w, j, b))
        else:
            condition = v.sum() > 0.0 if number else i > 0
            branches = [lambda part=part, b=a: played(part, v, w, i, b) for part in parts]
            a = dilim.cond(condition, *branches)
    return a + w


@pytest.mark.parametrize("seed", range(40))
def test_nested_regions_do_what_they_do_eagerly(seed):
    program = statements(random.Random(seed))

    def make():
        v, w = dilim.tensor([1.0, -2.0, 3.0]), dilim.tensor([0.5, 0.25, -0.125])
        i = dilim.tensor(1)
        return lambda x: played([("loop", 2, [program])], v, w, i, x), [v, w]

    same_as_eagerly(make, dilim.ones(3))


# ----- memory that the traced function makes ------------------------------------------------------


@BACKENDS
def test_memory_of_the_function_may_change_after_it_met_the_graph(backend):
    def make():
        def function(x):
            q = dilim.tensor([1.0, 2.0, 3.0])
            y = x * q
            q[0] = 7.0
            z = y + q
            q[dilim.tensor([1, 2])] = 5.0
            q += 1.0
            return y, z + q, dilim.loop(2, x, lambda i, a: a + q), q * x

        return function, []

    same_as_eagerly(make, dilim.tensor([2.0, 3.0, 4.0]), backend=backend)


@BACKENDS
def test_memory_of_one_turn_is_its_own(backend):
    def make():
        def turn(i, a):
            z = dilim.zeros(3)
            z[i] = 2.0
            z[0] = 5.0
            return a + z

        return lambda x: dilim.loop(3, x, turn), []

    same_as_eagerly(make, dilim.ones(3), backend=backend)


def written_with_a_symbolic_value(q, i, a):
    q[i] = a.sum()


def written_with_numbers(q, i, a):
    q.add_(1.0)


def written_at_positions(q, i, a):
    q[dilim.tensor([0, 1])] = 1.0


WRITES = [written_with_a_symbolic_value, written_with_numbers, written_at_positions]


@pytest.mark.parametrize("write", WRITES, ids=lambda f: f.__name__)
def test_a_loop_does_not_write_memory_from_outside_that_is_no_variable(write):
    def in_a_loop(x):
        q = dilim.zeros(3)
        return dilim.loop(3, x, lambda i, a: (write(q, i, a), a + q)[1]) + q

    def in_a_branch(x):
        q, i = dilim.zeros(3), dilim.tensor(0)
        return dilim.cond(x.sum() > 0.0, lambda: (write(q, i, x), x + q)[1], lambda: x * 1.0)

    for function in (in_a_loop, in_a_branch):
        with pytest.raises(GraphError, match="made outside a branch or loop cannot be written"):
            dilim.Graph.from_function(function, dilim.ones(3))


def test_a_generator_of_the_function_draws_outside_of_loops_only():
    def function(x):
        generator = dilim.Generator(0)
        return dilim.loop(3, x, lambda i, a: a + generator.normal((3,)))

    with pytest.raises(GraphError, match="carry it through the loop"):
        dilim.Graph.from_function(function, dilim.ones(3))
