"""What code that knows nothing of dilim sees of a compiled function."""

import copy
import inspect
import multiprocessing
import pickle

import pytest

import dilim


@dilim.compile(compile_after=0)
def doubled(x):
    """Twice x."""
    return x * 2


def tripled(x):
    return x * 3


renamed = dilim.compile(tripled, compile_after=0)


class Agent:
    def __init__(self):
        self.rate = 2.0
        self.used = doubled
        self.own = dilim.compile(self.step, compile_after=0)

    def step(self, x):
        return x * self.rate

    @dilim.compile(compile_after=0)
    def moved(self, x):
        return x + self.rate


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda f: copy.deepcopy([f])[0]])
def test_a_copy_is_the_function(copied):
    doubled(dilim.ones(2))
    assert copied(doubled) is doubled
    assert copied(renamed) is renamed


def test_pickled_by_name():
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert pickle.loads(pickle.dumps(Agent.moved)) is Agent.moved


def test_pickled_under_another_name():
    made = pickle.loads(pickle.dumps(renamed))
    assert made is not renamed
    assert made(2.0) == 6.0
    assert made.__wrapped__ is tripled


def test_not_pickled_where_the_function_is_not():
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(dilim.compile(lambda x: x))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
def test_methods_follow_their_object(copied):
    agent = Agent()
    x = dilim.ones(1)
    assert agent.own(x).item() == 2.0
    other = copied(agent)
    other.rate = 5.0
    assert other.used is doubled
    assert [other.own(x).item(), other.moved(x).item()] == [5.0, 6.0]
    assert [agent.own(x).item(), agent.moved(x).item()] == [2.0, 3.0]


def test_sent_to_a_process():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(doubled, [1.0, 2.5]) == [2.0, 5.0]
        assert pool.map(Agent().moved, [1.0]) == [3.0]


def test_seen_as_a_function():
    assert repr(doubled).startswith("<compiled function doubled, ")
    assert list(inspect.signature(doubled).parameters) == ["x"]
    assert doubled.__code__ is doubled.__wrapped__.__code__
    assert doubled.__defaults__ is None
    assert doubled.__globals__ is globals()
    assert inspect.getdoc(doubled) == "Twice x."


def scaled(x):
    return x * 5


def scaled_by(x, by=5):
    return x * by


def of_another_name(y):
    return y * 7


@pytest.mark.parametrize("after", [0, None])
def test_code_that_is_replaced(after):
    f = dilim.compile(lambda x: x * 2, compile_after=after)
    x = dilim.ones(1)
    assert [f(x).item(), f(x).item()] == [2.0, 2.0]
    f.__wrapped__.__code__ = scaled.__code__
    assert [f(x).item(), f(x=x).item(), f(x).item()] == [5.0] * 3
    f.__wrapped__.__code__ = of_another_name.__code__
    assert [f(x).item(), f(y=x).item()] == [7.0] * 2
    f.__code__ = scaled_by.__code__
    f.__defaults__ = (3,)
    assert [f(x).item(), f(x, 2).item()] == [3.0, 2.0]
    f.__wrapped__.__defaults__ = (4,)
    assert f(x).item() == 4.0
    f.__defaults__ = None
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'by'"):
        f(x)


def test_code_that_is_replaced_while_a_loop_runs():
    def f(n):
        total = 0
        for k in range(n):
            total += k
        return total

    def g(n):
        return -n

    compiled = dilim.compile(f, compile_after=1e-6)
    assert [compiled(3000), compiled(3000)] == [4498500] * 2
    f.__code__ = g.__code__
    assert compiled(3000) == -3000
