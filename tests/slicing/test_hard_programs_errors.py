"""Hard programs for a slicer, from reports about other compilers: exceptions."""

import pytest

from dilim.ir.structure import RECEIVE, walk
from slicing.comparing import Call, check


def test_the_variable_of_a_loop_after_it():
    seen = check(
        """
        def f(x, n):
            for i in range(n):
                x = x + i
            return i
        """,
        Call("[dilim.ones(2), 10]"),
        Call("[dilim.ones(2), 0]"),
        Call("[dilim.ones(2), 3]"),
        Call("[dilim.ones(2), 0]"),
        sends=0,
        receives=0,
        variants=1,
        raises=(2, 4),
    )
    assert seen.value("result of call 1") == "int 9"
    assert seen.error(2).startswith("UnboundLocalError: cannot access local variable 'i'")
    assert seen.line(2) == 4


def test_a_division_by_zero_is_caught():
    seen = check(
        """
        def f(x, t):
            t = t * 2
            try:
                y = 1 // x
            except ZeroDivisionError:
                y = x + 2
            return y, t * y
        """,
        *[Call(f"[{x}, dilim.ones(2)]") for x in (1, 0, 1, 0)],
    )
    assert seen.value("result of call 1[0]") == "int 1"
    assert seen.value("result of call 2[0]") == "int 2"


def test_divisions_by_zero_that_nobody_catches():
    seen = check(
        """
        def f(x, t):
            t = t + 1
            y = 7 % x + 1 // x + 1.0 / x
            return t * y
        """,
        *[Call(f"[{x}, dilim.ones(2)]") for x in (1, 0, 3, -2, 0, 0.0, 2.0)],
        raises=(2, 5, 6),
    )
    assert seen.error(2).startswith("ZeroDivisionError")
    assert seen.line(2) == 3


def test_where_a_division_raises_the_host_does_not_come_back():
    seen = check(
        """
        class Memory:
            def __init__(self):
                self.rows, self.count, self.total = dilim.ones((3, 2)), 0, 0.0

        def f(memory, turns, rhythm):
            for _ in range(turns):
                memory.count += 1
                memory.total += 0.5
                memory.rows[memory.count % 3] = memory.rows.sum(axis=0) + memory.count
                if memory.count % rhythm == 1:
                    memory.rows *= 0.5
                if memory.count > 6:
                    raise ValueError
            return memory.rows
        """,
        *[Call(f"[Memory(), {n}, {k}]") for n, k in ((5, 2), (5, 0), (0, 0), (9, 3))],
        raises=(2, 4),
    )
    assert seen.error(2).startswith("ZeroDivisionError")
    assert seen.error(4).startswith("ValueError")
    programs = [region.graph for region in seen.compiled.programs]
    assert not any(node.op == RECEIVE for graph in programs for node in walk(graph))


def test_finally_runs_once_per_call():
    seen = check(
        """
        LOG = []

        def f(x):
            try:
                return x * 2
            finally:
                LOG.append(1)
        """,
        *[Call("[dilim.ones(2)]")] * 3,
    )
    assert seen.value("LOG") == "list of 3"
    assert "[2.0, 2.0]" in seen.value("result of call 3")


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_positions_outside_are_errors_as_ever(backend):
    seen = check(
        """
        def f(x, i, how):
            x = x * 2.0
            if how == "read":
                return x[i]
            if how == "write":
                x[i] = 5.0
                return x
            if how == "constant":
                return x[13]
            return dilim.take(x, dilim.tensor([0, i]))
        """,
        *[
            Call(f"[dilim.arange(10, dtype='float32'), {i}, {how!r}]")
            for how in ("take", "constant", "read", "write")
            for i in (13, 9, -10, -11, 10, -1)
        ],
        sends=0,
        receives=0,
        backend=backend,
        raises=(1, 4, 5, 7, 8, 9, 10, 11, 12, 13, 16, 17, 19, 22, 23),
    )
    assert seen.error(1).startswith("IndexError")
    assert seen.line(1) == 10
    assert seen.line(7) == 9
    assert "18.0" in seen.value("result of call 6")  # only some calls return
