"""Functions that call themselves come as deep as plain ones."""

import sys
import threading

import pytest

import dilim

DEEP = 800


def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


def halved(x, n):
    if n == 0:
        return x
    print(n) if n % 300 == 0 else None
    return halved(x * 1.5, n - 1) * 0.5


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


def through_a_generator(n):
    return sum(through_a_generator(n - 1) for _ in range(1)) + 1 if n else 0


def refused(n):
    if n == 0:
        return 0
    yielded = [x for x in globals() if x == "DEEP"]
    return refused(n - 1) + len(yielded)


def endless(n):
    return endless(n + 1)


class Tree:
    def __init__(self, depth):
        self.below = Tree(depth - 1) if depth else None
        self.value = dilim.tensor(float(depth % 3))

    def total(self):
        return self.value if self.below is None else self.value + self.below.total() * 0.5


@pytest.fixture(params=[0, None])
def compiled(request, monkeypatch):
    """Compiles functions of this module in their place."""

    def compiled(*functions):
        for f in functions:
            made = dilim.compile(f, compile_after=request.param)
            monkeypatch.setitem(globals(), f.__name__, made)
        return globals()[functions[0].__name__]

    yield compiled
    assert sys.getrecursionlimit() == LIMIT


LIMIT = sys.getrecursionlimit()


@pytest.mark.parametrize("n", [3, 60, DEEP])
def test_numbers(compiled, n):
    expected = factorial(n)
    f = compiled(factorial)
    assert [f(n) for _ in range(3)] == [expected] * 3


@pytest.mark.parametrize("n", [3, DEEP])
def test_tensors_and_prints(compiled, n, capsys):
    expected = halved(dilim.tensor([1e-30, 3.0]), n).tolist()
    printed = capsys.readouterr().out
    f = compiled(halved)
    for _ in range(3):
        assert f(dilim.tensor([1e-30, 3.0]), n).tolist() == expected
        assert capsys.readouterr().out == printed


def test_two_that_call_each_other(compiled):
    f = compiled(even, odd)
    assert [f(DEEP), f(DEEP + 1), f(4), f(5)] == [True, False, True, False]


def test_through_a_generator(compiled):
    f = compiled(through_a_generator)
    assert [f(300), f(300)] == [300, 300]


def test_that_cannot_be_sliced(compiled):
    f = compiled(refused)
    assert [f(DEEP), f(DEEP)] == [DEEP, DEEP]


def test_methods(compiled, monkeypatch):
    plain = [Tree(n).total().item() for n in (2, 300)]
    monkeypatch.setattr(Tree, "total", dilim.compile(Tree.total, compile_after=0))
    assert [Tree(n).total().item() for n in (2, 300)] == plain


def test_without_end(compiled):
    with pytest.raises(RecursionError) as plain:
        endless(0)
    f = compiled(endless)
    for _ in range(2):
        with pytest.raises(RecursionError, match=str(plain.value)):
            f(0)


def test_in_threads(compiled):
    f = compiled(factorial)
    found = []
    threads = [threading.Thread(target=lambda: found.append(f(300))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [f(300)] * 6


def test_checked():
    calls = []

    @dilim.compile(check=True)
    def f(x, n):
        calls.append(n)
        return f(x * 2.0, n - 1) if n else x

    assert f(dilim.ones(2), 12).tolist() == [4096.0, 4096.0]
    assert calls == [*range(12, -1, -1)]
