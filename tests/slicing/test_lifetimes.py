"""After a call nothing of the user's is held: neither arguments, nor results, nor what was made."""

import gc
import weakref
from contextlib import contextmanager

import pytest

import dilim

G = dilim.tensor([1.0, 2.0], requires_grad=True)


class Thing:
    def __init__(self, number=1):
        self.number = number
        self.tensor = dilim.ones(2)


def plain(x, thing):
    return x * 2 + thing.number


def made(x, thing):
    own = Thing(3)
    y = x * own.number
    print(y)
    return Thing(y)


def looped(x, thing):
    kept = []
    for _ in range(3):
        x = x * 0.5
        kept.append(Thing(x))
        print(kept[-1].number)
    return kept[0]


def trained(x, thing):
    loss = (G * x).sum()
    loss.backward()
    print(loss.item())
    G.grad = None
    return loss.detach()


def set_(x, thing):
    thing.tensor = thing.tensor * x
    thing.last = x + 1
    print(thing.last)
    return thing.last


def refused(x, thing):
    with contextmanager(lambda: iter([Thing()]))() as own:
        y = x * own.number
    for _ in range(3):
        y = y * 2.0
    return y


def failed(x, thing):
    own = Thing()
    y = x * own.number
    print(y)
    raise ValueError(own.number)


def called(f, x, thing):
    """Weak references to all that took part in a call."""
    things = [x, thing, thing.tensor]
    try:
        things.append(f(x, thing))
    except ValueError:
        pass
    things += [x.number for x in things if isinstance(x, Thing) and isinstance(x.number, type(G))]
    things += [x._data for x in things if isinstance(x, type(G))]
    return [weakref.ref(x) for x in things]


@pytest.mark.parametrize("after", [0, 1e-6, None])
@pytest.mark.parametrize("f", [plain, made, looped, trained, set_, refused, failed])
def test_held(f, after, capsys):
    compiled = dilim.compile(f, compile_after=after)
    for _ in range(4):
        gc.collect()
        gc.disable()
        try:
            ended = called(compiled, dilim.ones(2), Thing())
            assert not any(x() is not None for x in ended)
        finally:
            gc.enable()
