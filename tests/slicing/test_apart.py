"""Functions of the host that have nothing to do with the program that calls them."""

import collections
import functools
import weakref

import numpy as np
import pytest

import dilim
from dilim.dtypes import float32
from dilim.ir.structure import WRITE, walk
from dilim.passes.pipeline import optimise
from dilim.slicing.apart import Apart, meets


class Counter:
    """State of the host, and a place that the program has state in."""

    def __init__(self):
        self.count = 0
        self.seen = []
        self.total = dilim.zeros(())
        self.weights = dilim.ones((3,))
        self.ask = Apart(self.answer).giving((2,), float32)

    def answer(self, x):
        self.count += 1
        self.seen.append(x.tolist())
        if self.count == 30:
            raise LookupError("no more")
        return np.array([self.count, 2.0], np.float32)


def ask_often(counter, steps):
    for _ in range(steps):
        given = dilim.tensor(counter.ask(counter.weights * 2.0))
        counter.weights = counter.weights + given[0]
        counter.total = counter.total + given[1] * counter.weights.sum()
    return counter.total


def test_a_call_takes_one_send_and_one_receive_and_shows_nothing_else():
    compiled = dilim.compile(ask_often, compile_after=0, strict=True)
    first, second = Counter(), Counter()
    assert ask_often(first, 20).item() == compiled(second, 20).item()
    assert first.seen == second.seen
    assert first.weights.tolist() == second.weights.tolist()
    counts = [(x.to_host, x.runs) for x in compiled.explain().transfers if x.runs]
    assert counts == [(True, 20), (False, 20), (True, 1)]


def test_what_was_done_before_an_error_is_done():
    states = []
    for function in (ask_often, dilim.compile(ask_often, compile_after=0)):
        counter = Counter()
        with pytest.raises(LookupError, match="no more"):
            function(counter, 50)
        states.append((counter.total.item(), counter.weights.tolist(), counter.seen))
    assert states[0] == states[1]


def remember(counter, kept, steps):
    for k in range(steps):
        kept[k % 8] = dilim.tensor(counter.ask(k))[0]
        print(k)
        counter.total = counter.total + kept.sum()
    return kept


def test_memory_is_written_in_place_between_calls_that_cannot_see_it(capsys):
    compiled = dilim.compile(remember, compile_after=0)
    kept = dilim.zeros((8,))
    counter = Counter()
    counter.answer = lambda k: np.array([k, 0], np.float32)
    counter.ask = Apart(counter.answer).giving((2,), float32)
    assert compiled(counter, kept, 20).tolist() == [16, 17, 18, 19, 12, 13, 14, 15]
    assert capsys.readouterr().out.split() == list(map(str, range(20)))
    (region,) = compiled._made
    writes = [x for x in walk(optimise(region.graph)) if x.op == WRITE and x.inputs[1].type.shape]
    assert writes
    assert all(x.params.get("in_place") for x in writes)


def ask_in_place(counter, steps):
    weights = counter.weights
    for _ in range(steps):
        weights[...] = weights + 1.0
        given = dilim.tensor(counter.ask(weights))
        weights[...] = weights * given[1]
    return weights


def view_in_place(counter, steps):
    for _ in range(steps):
        counter.weights[1] = counter.weights[1] + 1.0
        given = dilim.tensor(counter.ask(counter.weights[1:]))
        counter.weights[...] = counter.weights * given[1]
    return counter.weights


@pytest.mark.parametrize("function", [ask_in_place, view_in_place])
def test_memory_from_outside_is_up_to_date_where_it_is_given(function):
    first, second = Counter(), Counter()
    expected = function(first, 9).tolist()
    assert dilim.compile(function, compile_after=0)(second, 9).tolist() == expected
    assert first.seen == second.seen


def test_another_kind_of_answer_than_was_said_is_taken_as_it_is():
    class Other(Counter):
        def answer(self, x):
            return super().answer(x).astype(np.float64) * 1.1

    first, second = Other(), Other()
    expected = ask_often(first, 9).item()
    assert dilim.compile(ask_often, compile_after=0)(second, 9).item() == expected


# --- what a function meets ------------------------------------------------------------------


class Agent:
    def __init__(self):
        self.weights = dilim.ones((3,))
        self.parts = {"list": [collections.deque([dilim.nn.Dense(2, 3)])]}
        self.steps, self.name, self.nothing = 10**6, "name", ()


AGENT = Agent()


def uses_global(x):
    return x + AGENT.steps


def uses_nothing(x):
    return np.asarray(x) + len("AGENT")


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held


class Holder:
    def __init__(self, held):
        self.held = held

    def call(self, x):
        return x


class ByClass:
    held = AGENT.weights


class ByMethod:
    def call(self, x):
        return uses_global(x)


class ByProperty:
    @property
    def weights(self):
        return AGENT.weights


def each(held):
    yield held


def closure(held):
    return lambda x: held


@pytest.mark.parametrize(
    "function",
    [
        uses_global,
        functools.partial(max, AGENT.weights),
        Holder(AGENT),
        Holder([{"key": (AGENT.parts,)}]).call,
        Holder(AGENT.weights.numpy()),
        Holder(AGENT.weights.numpy()[1:]),
        Holder(np.array([AGENT], object)),
        Holder(next(iter(AGENT.parts["list"][0][0].parameters()))),
        Slotted(AGENT.weights),
        ByClass(),
        ByMethod(),
        ByProperty(),
        closure(AGENT.weights),
        Holder(weakref.ref(AGENT)),
        Holder(map(str, [AGENT])),
        Holder(each(AGENT)),
        closure(closure(Holder(Slotted(AGENT)).call)),
    ],
)
def test_what_leads_to_a_value_is_found(function):
    assert meets(function, [AGENT])


@pytest.mark.parametrize(
    "function",
    [
        uses_nothing,
        Holder(dilim.ones((3,))),
        Holder((10**6, "name", (), None, float32, dilim.nn.Dense(2, 3))).call,
        Holder(np.ones(3)),
        closure([1, 2]),
    ],
)
def test_what_does_not_is_apart(function):
    assert not meets(function, [AGENT])


def test_values_may_be_left_out():
    held = Holder([1])
    other = Holder(held)
    assert meets(held, [other])
    assert not meets(held, [other], without=[held])
