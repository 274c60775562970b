"""Calls that go on in a program after they had to leave one."""

import pytest

from dilim import compile as sliced
from slicing.comparing import Call, check
from slicing.fuzz import running
from slicing.fuzz.compare import plain
from slicing.fuzz.programs import Program

HEAD = """
import math
import random
import numpy as np
import dilim
from dilim import nn, optim

class Box:
    pass

BOX = Box()
BOX.w = dilim.ones(3)
BOX.n = 1
NET = nn.Dense(3, 1, generator=dilim.Generator(1))
OPT = optim.SGD(NET, learning_rate=0.125)

def bump(k):
    exec("BOX.n += k", {"BOX": BOX, "k": k})

def drawn():
    return dilim.asarray(np.full((2, 3), 0.5, np.float32))
"""

PROGRAMS = {
    "in a loop": """
def f(x, n):
    for i in range(n):
        x = x * BOX.n + i
        if i == 0:
            bump(i + 1)
        x = x - x.mean()
        x = x / (x * x).sum()
    return x
""",
    "after a loop over a list": """
def f(x, n):
    for k in [1, 2]:
        x = x * BOX.n
        bump(k)
    for i in range(n):
        x = x - x.mean() * BOX.n
    return x
""",
    "after a branch in a branch": """
def f(x, n):
    if n > 1:
        if x.sum() > 0:
            x = x * BOX.n
            bump(n)
            x = x + BOX.n
        else:
            x = x + 1
        for i in range(n):
            x = x - x.mean() * BOX.n
    else:
        x = x * 3
    y = x
    for i in range(n):
        y = y - x.mean() * i
    return x, y
""",
    "an end without a return": """
def f(x, n):
    x = x * BOX.n
    bump(n)
    for i in range(n):
        x = x - x.mean() * BOX.n
    BOX.w = x
""",
    "a step of training by the host, whose types are not known yet": """
def f(x, n):
    for i in range(n):
        loss = nn.losses.mse(NET(drawn()), dilim.ones((2, 1)))
        OPT.zero_grad()
        loss.backward()
        OPT.step()
        print(i, loss.item())
    return NET.weight * x
""",
    "several surprises, and an error": """
def f(x, n):
    for i in range(n):
        x = x * BOX.n
        bump(i % 3)
        if BOX.n > 6:
            raise ValueError(f"{BOX.n}: {x}")
    return x
""",
    "a context that swallows an error of the rest": """
import contextlib

def f(x, n):
    with contextlib.suppress(ValueError):
        for i in range(n):
            x = x * BOX.n
            bump(1)
            if BOX.n > 5:
                raise ValueError(BOX.n)
    for i in range(n):
        x = x - x.mean() * BOX.n
    return x
""",
    "an object whose end is seen": """
class Ending:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print("end of", self.name)

def f(x, n):
    boxes = [Ending("item")]
    end = Ending("local")
    x = x * BOX.n
    bump(n)
    x = x * BOX.n
    del end
    print("after")
    for i in range(n):
        x = x - x.mean() * BOX.n
        boxes.clear()
        print(i)
    return x
""",
    "a generator that is closed": """
def rows(x):
    try:
        for i in range(3):
            yield x[i]
    finally:
        print("closed")

def f(x, n):
    items = rows(x)
    x = x * BOX.n
    bump(n)
    for a in items:
        x = x * a
        break
    del items
    print("after")
    return x * BOX.n
""",
    "a generator that is not read again": """
def rows(x):
    try:
        for i in range(3):
            yield x[i]
    finally:
        print("closed")

def f(x, n):
    items = rows(x)
    for a in items:
        x = x * a
        break
    x = x * BOX.n
    bump(n)
    x = x * BOX.n
    items = None
    print("after")
    return x * BOX.n
""",
    "a name that is unbound": """
def f(x, n):
    x = x * BOX.n
    bump(n)
    if n > 9:
        y = x
    for i in range(n):
        x = x - x.mean() * BOX.n
    print(x)
    return y
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_that_the_rest_is_as_plain(name):
    raises = {"several surprises, and an error": (2, 3, 4), "a name that is unbound": (1, 2, 3)}
    check(
        HEAD + PROGRAMS[name],
        *(Call(f"[dilim.tensor([1.0, 2.0, 4.0]), {n}]") for n in (4, 5, 9, 12)),
        raises=raises.get(name, ()),
        may_leave=True,
        fallback="a context that may swallow errors" if "swallows" in name else None,
    )


@pytest.mark.parametrize("name", list(PROGRAMS)[:5])
def test_that_the_rest_is_native(name):
    program = Program(HEAD + PROGRAMS[name], (Call("[dilim.tensor([1.0, 2.0, 4.0]), 12]"),))
    count = {
        compiler: running.record(program, compiler).moments[0].eager
        for compiler in (plain, lambda f: sliced(f, backend="reference", compile_after=0))
    }
    eager, left = count.values()
    assert left < 0.5 * eager
