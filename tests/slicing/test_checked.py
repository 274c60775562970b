"""`dilim.compile` with ``check=True``, and what it is made of."""

import array
import collections
import dataclasses
import functools
import io
import itertools
import random
import sys
import traceback
import types
import warnings
import zlib

import numpy as np
import pytest

import dilim
from dilim import nn, optim
from dilim.errors import CheckError
from dilim.slicing.pictures import Picture, difference
from dilim.slicing.sliced import Sliced
from dilim.slicing.snapshots import Snapshot

checked = functools.partial(dilim.compile, check=True, backend="reference")

LOG = []
COUNT = 0


class Box:
    made = 0

    def __init__(self, weight):
        self.weight = weight
        Box.made += 1


class Slotted:
    __slots__ = ("first", "second")

    def __init__(self, first):
        self.first = first


def busy(x, box, n=3):
    """Does a little of everything."""
    global COUNT
    for k in range(n):
        x = x * 0.5 + dilim.default_generator().normal((2,))
        box.weight = box.weight + x.sum()
        LOG.append(x.sum().item())
        COUNT += 1
        print("at", k, random.random(), file=sys.stderr if k == 1 else sys.stdout)
    x += np.random.rand()  # noqa: NPY002 - as users do
    return {"x": [x, box]}, Box(x)


def test_a_call_is_seen_once(capsys):
    def run(f):
        global COUNT
        LOG.clear()
        COUNT = Box.made = 0
        random.seed(1)
        np.random.seed(2)  # noqa: NPY002
        dilim.seed(3)
        box = Box(dilim.ones(1))
        result = [f(dilim.ones(2), box) for _ in range(3)]
        state = random.random(), np.random.rand(), dilim.default_generator().normal().item()  # noqa: NPY002
        looks = Picture([("result", result), ("box", box), ("log", list(LOG))]).looks
        return looks, state, capsys.readouterr()

    plain = run(busy)
    counts = COUNT, Box.made
    f = checked(busy)
    found = run(f)
    assert difference(plain[0], found[0]) is None
    assert plain[1:] == found[1:]
    assert (COUNT, Box.made) == counts == (9, 4)
    assert f.statistics.calls == f.statistics.native_calls == 3


def faulty(monkeypatch, change):
    """Let compiled functions do something else than they should."""
    right = Sliced._call

    def wrong(self, values):
        result = right(self, values)
        return change(result, *values) or result

    monkeypatch.setattr(Sliced, "_call", wrong)


def numbers(x, items):
    print("on")
    return [x, {"weight": x * 2.0}, items]


def nothing(*_):
    return None


def other_number(result, x, items):
    result[1]["weight"][1] = 0.25


def other_zero(result, x, items):
    result[0][0] = -0.0


def other_argument(result, x, items):
    items.append(7)


def other_object(result, x, items):
    result[2] = list(items)


def other_text(result, x, items):
    print("off")


def other_error(result, x, items):
    raise ValueError("not at all")


def other_draws(result, x, items):
    random.random()


def other_global(result, x, items):
    LOG.append(1)


def other_memory(result, x, items):
    result[0] = x.clone()


FAULTS = {
    other_number: "result[1]['weight'][1] is 0.25 where it is compiled, 2.0 in plain Python",
    other_zero: "result[0][0] is -0.0 where it is compiled, 0.0 in plain Python",
    other_argument: "result[2] is a list of 3 where it is compiled, a list of 2 in plain Python",
    other_object: "items is a list of 2 where it is compiled, the same object as result[2] in",
    other_text: "the printed text, line 2 is 'off' where it is compiled, '' in plain Python",
    other_error: "the exception is ValueError: not at all where it is compiled, none in plain",
    other_draws: "the state of Python's random numbers is state ",
    other_memory: "x is tensor float32[2] [0.0, 1.0] where it is compiled, the same object as",
}


@pytest.mark.parametrize("change", FAULTS)
def test_the_first_difference_is_named(change, monkeypatch):
    f = checked(numbers)
    x, items = dilim.tensor([0.0, 1.0]), [1, 2]
    f(x, items)
    faulty(monkeypatch, change)
    with pytest.raises(CheckError) as caught:
        f(x, items)
    line = numbers.__code__.co_firstlineno
    start = f"test_checked.py:{line}), call 2: {FAULTS[change]}"
    assert start in str(caught.value)
    assert items == [1, 2]
    assert x.tolist() == [0.0, 1.0]
    monkeypatch.undo()
    assert f(x, items)[0] is x


def fails(x):
    print("before")
    LOG.append(0)
    return x @ x


def test_exceptions_are_compared_and_leave_as_ever(monkeypatch):
    LOG.clear()
    f = checked(fails)
    for _ in range(2):
        with pytest.raises(dilim.errors.ShapeError) as caught:
            f(dilim.ones((2, 3)))
    assert LOG == [0, 0]
    frames = traceback.extract_tb(caught.value.__traceback__)
    places = [(x.name, x.lineno) for x in frames if x.filename == __file__]
    assert places[1:] == [("fails", fails.__code__.co_firstlineno + 3)]
    faulty(monkeypatch, nothing)
    monkeypatch.setattr("dilim.slicing.checked.called", lambda f, values: 1)
    with pytest.raises(CheckError, match=r"the exception is ShapeError: .*, none in plain Python"):
        f(dilim.ones((2, 3)))


def test_a_method_is_checked():
    class Counter:
        total = 0

        @checked
        def add(self, x):
            type(self).total += 1
            self.last = x * 2.0
            return self.last

    counter = Counter()
    for _ in range(3):
        assert counter.add(dilim.ones(1)).item() == 2.0
    assert Counter.total == 3
    assert Counter.add.statistics.native_calls == 3


def test_what_cannot_be_put_back_is_told_of_once():
    class Holder:
        def __init__(self):
            self.packer = zlib.compressobj()

    @checked
    def f(x, holder, items):
        return x * 2.0 + next(items)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        items = itertools.count(3)
        results = [f(dilim.ones(1), Holder(), items).item() for _ in range(3)]
        assert f(dilim.ones(1), Holder(), (k for k in (1, 2))).item() == 3.0
    assert results == [5.0, 6.0, 7.0]
    assert len(caught) == 2
    assert "what is not put back between the two runs: Compress" in str(caught[0].message)
    assert "a count has moved on, so that the call cannot be run again" in str(caught[1].message)


def test_a_generator_that_is_not_used_is_no_hindrance(monkeypatch):
    @checked
    def f(x, items):
        return x * 2.0

    f(dilim.ones(1), (k for k in (1, 2)))
    faulty(monkeypatch, lambda result, x, items: x)
    with pytest.raises(CheckError):
        f(dilim.ones(1), (k for k in (1, 2)))


# --- snapshots and pictures ------------------------------------------------------------------


@dataclasses.dataclass
class Everything:
    """One of each kind."""

    items: list
    table: dict
    ordered: collections.OrderedDict
    queue: collections.deque
    members: set
    raw: bytearray
    bytes: array.array
    array: np.ndarray
    objects: np.ndarray
    tensor: dilim.Tensor
    model: nn.Module
    optimizer: optim.Optimizer
    own: random.Random
    numpys: np.random.Generator
    slotted: Slotted
    partial: functools.partial
    text: io.StringIO
    space: types.SimpleNamespace
    function: types.FunctionType


def everything():
    model = nn.MLP(2, [3, 1], generator=dilim.Generator(5))
    captured = [1]

    def function(k=2, *, key=3):
        nonlocal captured
        captured = [*captured, k]
        return captured

    return Everything(
        items=[1, [2]],
        table={"a": 1, "b": [2]},
        ordered=collections.OrderedDict(a=1, b=2),
        queue=collections.deque([1, 2], maxlen=4),
        members={1, 2},
        raw=bytearray(b"ab"),
        bytes=array.array("d", [1.0, 2.0]),
        array=np.arange(6.0).reshape(2, 3)[:, 1:],
        objects=np.array([[1], None], object),
        tensor=dilim.tensor([1.0, 2.0], requires_grad=True),
        model=model,
        optimizer=optim.Adam(model.parameters(), 0.1),
        own=random.Random(1),
        numpys=np.random.default_rng(2),
        slotted=Slotted([1]),
        partial=functools.partial(max, [1, 2]),
        text=io.StringIO("some"),
        space=types.SimpleNamespace(a=1),
        function=function,
    )


def change_everything(e):
    e.items[1].append(3)
    e.items.insert(0, 5)
    e.table["c"] = e.table.pop("a")
    e.table["b"].clear()
    e.ordered.move_to_end("a")
    e.queue.rotate(1)
    e.members.add(3)
    e.raw += b"c"
    e.bytes[1] = 3.0
    e.array[0, 0] = 9.0
    e.objects[0].append(1)
    (e.tensor * 2.0).sum().backward()
    with dilim.no_grad():
        e.tensor.add_(1.0)
    e.tensor.name = "t"
    e.model(dilim.ones((1, 2))).sum().backward()
    e.optimizer.step()
    e.optimizer.learning_rate = 0.5
    e.model.extra = 1
    e.own.random()
    e.numpys.normal()
    e.slotted.second = e.slotted.first
    e.slotted.first = None
    e.partial.args[0].append(9)
    e.text.write("thing else")
    del e.space.a
    e.function()
    e.function.__defaults__ = (7,)
    e.function.mark = True
    Everything.mark = [1]
    random.random()
    np.random.rand()  # noqa: NPY002
    dilim.default_generator().normal()
    e.new = 1


def picture(e):
    roots = [("e", e), ("text", (e.text.getvalue(), e.text.tell())), ("kind", Everything)]
    states = [("own", e.own.getstate()), ("numpys", e.numpys.bit_generator.state)]
    more = [("version", e.tensor._storage.version), ("defaults", e.function.__defaults__)]
    more += [("raw", bytes(e.raw)), ("bytes", e.bytes.tolist()), ("queue", list(e.queue))]
    more += [("generator", dilim.default_generator()), ("marks", e.function.__dict__)]
    return Picture([*roots, *states, *more]).looks


def test_everything_is_put_back_as_it_was():
    e = everything()
    before = picture(e)
    snapshot = Snapshot([e, dilim.default_generator()])
    assert not snapshot.unknown
    change_everything(e)
    changed = picture(e)
    snapshot.restore()
    assert difference(before, picture(e)) is None
    paths = {look.path: look.text for look in before}
    unlike = [look.path for look in changed if paths.get(look.path) != look.text]
    assert len(unlike) > 20
    assert not hasattr(Everything, "mark")


def test_a_result_that_is_still_on_the_tape_can_be_differentiated_again():
    w = dilim.tensor([2.0], requires_grad=True)
    loss = (w * w).sum()
    snapshot = Snapshot([loss])
    loss.backward()
    snapshot.restore()
    assert w.grad is None
    loss.backward()
    assert w.grad.tolist() == [4.0]


def test_pictures_name_the_first_element_that_differs():
    looks = [Picture([("x", dilim.tensor([[1.0, k]]))]).looks for k in (2.0, 3.0)]
    found = difference(*looks)
    assert (found.path, found.first, found.second) == ("x[0, 1]", "2.0", "3.0")
    nan = Picture([("x", dilim.tensor([[1.0, float("nan")]]))]).looks
    assert difference(nan, nan) is None


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ([1], [1.0], ("r[0]", "1", "1.0")),
        ([True], [1], ("r[0]", "True", "1")),
        ({"a": 1}, {"b": 1}, ("r", "a dict with ['a']", "a dict with ['b']")),
        ((1,), [1], ("r", "a tuple of 1", "a list of 1")),
        ({1, 2}, {1}, ("r", "a set with ['1', '2']", "a set with ['1']")),
        (np.float32(1), np.float64(1), ("r", "float32 float32[] 1.0", "float64 float64[] 1.0")),
        (dilim.int8, dilim.int16, ("r", "dilim.int8", "dilim.int16")),
    ],
)
def test_values_are_told_apart(a, b, found):
    unlike = difference(Picture([("r", a)]).looks, Picture([("r", b)]).looks)
    assert (unlike.path, unlike.first, unlike.second) == found
