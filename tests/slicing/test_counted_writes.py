"""Writes are counted where they are carried out: the tape of the caller needs the memory or not."""

import pytest

import dilim
from slicing.comparing import Call, check


def in_a_branch(w, u, keep, n):
    keep.append((w * u).sum())
    if n > 2:
        u[0] = 7.0


def in_either_branch(w, u, keep, n):
    keep.append((w * u).sum())
    if u.sum() > n:
        u[0] = 7.0
    elif n > 4:
        u[1] = 7.0
    else:
        w = w * 2
    return (w * 3).sum()


def in_some_turns(w, u, keep, n):
    keep.append((w * u).sum())
    for i in range(n):
        if i % 3 == 2:
            u[0] = 7.0
    keep.append((w * u).sum())


def in_each_turn(w, u, keep, n):
    keep.append((w * u).sum())
    for i in range(n - 1):
        u[0] = i * 1.0


def in_turns_that_keep(w, u, keep, n):
    for i in range(n):
        keep.append((w * u).sum())
        if i % 3 == 2:
            u[0] = 7.0


def at_the_end_of_turns(w, u, keep, n):
    k = 0
    while k < n:
        loss = (w * u).sum()
        keep.append(loss)
        if k == 2:
            with dilim.no_grad():
                w.mul_(0.5)
                u[0] = 7.0
        elif k % 3 == 1:
            u[1] = 2.0
        k += 1


def where_it_is_left(w, u, keep, n):
    keep.append((w * u).sum())
    for i in range(5):
        if i == n:
            return i
        if i > 2:
            u[0] = 3.0
    return u


def without_host_code(w, u, keep, n):
    if n > 2:
        u[0] = 7.0
    return u * 2


PROGRAMS = (
    in_a_branch, in_either_branch, in_some_turns, in_each_turn, in_turns_that_keep,
    at_the_end_of_turns, where_it_is_left, without_host_code,
)  # fmt: skip


def seen(function, n):
    """What calls do, with backward passes after each; the caller has a tape of its own."""
    found = []
    for _ in range(3):
        w, u = dilim.tensor([1.0, 2.0], requires_grad=True), dilim.tensor([1.0, 3.0])
        keep = [(w * u).sum(), (w * w).sum()]
        result = function(w, u, keep, n)
        found.append(repr(result))
        for x in (*keep, result):
            try:
                if isinstance(x, dilim.Tensor) and x.requires_grad:
                    x.sum().backward()
                    found.append(repr(x))
            except dilim.errors.GradientError as error:
                found.append(str(error))
        found += [repr(w.grad), repr(u)]
    return found


@pytest.mark.parametrize("backend", ["reference", "llvm"])
@pytest.mark.parametrize("n", [1, 3, 5])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_plain(program, n, backend):
    compiled = dilim.compile(program, backend=backend, compile_after=0)
    assert seen(compiled, n) == seen(program, n)
    assert not compiled.statistics.fallbacks


def test_what_is_written_together_is_told_together():
    text = """
class Rows:
    def __init__(self):
        self.rows = [dilim.zeros(2) for _ in range(6)]

def f(given, places, n):
    total = dilim.tensor(0.0)
    for k in range(n):
        if k % 3 == 1:
            for row in given.rows:
                row += 1.0
        total = total + given.rows[0][places[k % 2]]
    return total
"""
    calls = [Call("[Rows(), dilim.tensor([0, 1]), 20]"), Call("[Rows(), dilim.tensor([0, 7]), 20]")]
    [region] = check(text, *calls, raises=[2]).compiled.programs
    told = [line for action in region.actions for line in action.lines if "count_writes" in line]
    assert 0 < len(told) <= 3
