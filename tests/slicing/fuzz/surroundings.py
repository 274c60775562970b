"""What stands around a generated function: imports, globals, helpers, a class, its parameters."""

import re
from dataclasses import dataclass

from slicing.fuzz.scope import (
    BOOL,
    DICT,
    FLOAT,
    FLOATS,
    INT,
    STR,
    Place,
    tensor,
    tensors,
)

IMPORTS = """\
import math
import random

import numpy as np

import dilim
from dilim import nn, optim
"""

DEFINITIONS = {
    "SCALE": "SCALE = 0.5",
    "LIMIT": "LIMIT = 3",
    "MODE": 'MODE = "plain"',
    "WEIGHT": "WEIGHT = dilim.tensor([0.5, -1.0, 2.0])",
    "PARAMETER": "PARAMETER = dilim.tensor([0.1, -0.2, 0.3], requires_grad=True)",
    "MATRIX": (
        "MATRIX = dilim.tensor([[0.5, 0.1, 0.0], [0.2, -0.3, 1.0], [0.0, 0.4, 0.7]], "
        "requires_grad=True)"
    ),
    "GENERATOR": "GENERATOR = dilim.Generator(7)",
    "NOTES": "NOTES = []",
    "STATE": 'STATE = {"n": 0, "t": dilim.tensor([1.0, 0.0, -1.0])}',
    "MODEL": "MODEL = nn.Dense(3, 3, generator=dilim.Generator(1))",
    "OPTIMIZER": "OPTIMIZER = optim.{optimizer}",
    "scaled": """\
def scaled(t, k=2.0, *, shift=0.0):
    return t * k + shift""",
    "loud": """\
def loud(t):
    print("loud", t.sum())
    return t - 1""",
    "deep": """\
def deep(t, n):
    if n <= 0:
        return t
    return deep(t * 0.5 + 1.0, n - 1)""",
    "early": """\
def early(t):
    if t.sum() > 0:
        return t
    print("not above")
    return -t""",
    "bump": """\
def bump(t):
    t = t.detach().clone()
    t += 1
    return t""",
    "chained": """\
def chained(t):
    u = t.sum()
    n = 0
    while u > 1 and n < 5:
        u = u * 0.5
        n += 1
    return t + n""",
    "adder": """\
def adder(t):
    def add(other):
        return other + t

    return add""",
    "added": """\
def added(t):
    return adder(t * 2)(t)""",
    "touch": """\
def touch(t):
    t += 1
    return t""",
    "note": """\
def note(value):
    NOTES.append(value)
    return len(NOTES)""",
    "counter": """\
def counter():
    total = 0

    def count():
        nonlocal total
        total += 1
        return total

    return count""",
    "count": "count = counter()",
    "score": """\
def score(value):
    return math.sin(value) * SCALE""",
    "draw": """\
def draw():
    return random.random()""",
    "toss": """\
def toss():
    print("toss")
    return random.random() < 0.5""",
    "other": """\
def other(t, k=2.0, *, shift=0.0):
    return t * 0.25 - k""",
    "parts_of": """\
def parts_of(t):
    yield t * 2
    yield t + 1""",
    "Box": """\
class Box:
    def __init__(self, scale):
        self.w = dilim.tensor([1.0, 2.0, 3.0])
        self.p = dilim.tensor([0.3, 0.2, 0.1], requires_grad=True)
        self.scale = scale
        self.n = 0
        self.log = []
        self.parts = [dilim.ones((3,)), dilim.tensor([0.0, -2.0, 0.5])]

    @property
    def total(self):
        return self.w.sum()

    def advance(self, t):
        self.n += 1
        self.w = self.w * 0.9 + t
        return self.w * self.scale

    def record(self, value):
        self.log.append(value)
        if len(self.log) > 4:
            del self.log[0]
{method}""",
    "BOX": "BOX = Box(0.5)",
}
"""Name -> definition, in an order in which each can use those before it."""

HELPERS = {
    "scaled": None,
    "loud": None,
    "deep": tensor(),
    "early": None,
    "bump": None,
    "chained": None,
    "added": None,
}
"""Functions from a tensor to a tensor of the same kind; None: of any kind that is floating."""

OPTIMIZERS = (
    "SGD(MODEL, learning_rate=0.1)",
    "SGD(MODEL, learning_rate=0.1, momentum=0.9)",
    "Adam(MODEL, learning_rate=0.05)",
    "AdamW(MODEL, learning_rate=0.05)",
    "RMSprop(MODEL, learning_rate=0.05)",
)

GLOBAL_PLACES = {
    "SCALE": Place(FLOAT, rebindable=False),
    "LIMIT": Place(INT, rebindable=False),
    "MODE": Place(STR, rebindable=False),
    "WEIGHT": Place(tensor(), rebindable=False),
    "PARAMETER": Place(tensor(), tracked=True, rebindable=False, leaf=True),
    "MATRIX": Place(tensor((3, 3)), tracked=True, rebindable=False, leaf=True),
    "NOTES": Place(FLOATS, rebindable=False),
    "STATE": Place(DICT, rebindable=False),
    "STATE['n']": Place(INT),
    "STATE['t']": Place(tensor()),
}
BOX_PLACES = {
    "w": Place(tensor()),
    "p": Place(tensor(), tracked=True, leaf=True, rebindable=False),
    "total": Place(tensor(()), rebindable=False),
    "scale": Place(FLOAT),
    "n": Place(INT),
    "log": Place(FLOATS, rebindable=False),
    "parts": Place(tensors(), rebindable=False, length=2),
}
PARAMETERS = (
    ("x", tensor()),
    ("y", tensor((2, 3))),
    ("n", INT),
    ("u", FLOAT),
    ("flag", BOOL),
    ("items", tensors()),
    ("z", tensor((3, 3))),
    ("k", tensor((), "int64")),
    ("d", tensor((3,), "float64")),
    ("values", FLOATS),
    ("mode", STR),
)
DEFAULTS = {"n": "2", "u": "0.5", "flag": "True", "mode": '"plain"'}


@dataclass
class Surroundings:
    """What a function finds around it.

    Attributes:
        form: "function", "closure" (it uses a variable of the function that made it) or "method".
        parameters: the names, with their kinds.
        boxed: whether the last parameter is ``box``, an object.
        keyword_only: how many of the last parameters are given by name only.
        optimizer: which one `MODEL` is trained with.
        globals: texts of places of the module that it uses.
        constants: how many parameters are never bound anew.
    """

    form: str
    parameters: dict
    boxed: bool
    keyword_only: int
    optimizer: str
    globals: tuple
    constants: int

    def places(self):
        """What the function can use at its beginning."""
        places = {x: GLOBAL_PLACES[x] for x in self.globals}
        for owner in ["box"] * self.boxed + ["self"] * (self.form == "method"):
            places |= {f"{owner}.{x}": place for x, place in BOX_PLACES.items()}
        if self.form == "closure":
            places["bias"] = Place(tensor(), rebindable=False)
        for position, (name, kind) in enumerate(self.parameters.items()):
            constant = position < self.constants
            places[name] = Place(kind, rebindable=not constant, constant=constant, length=2)
        return places

    def signature(self):
        """The text between the parentheses of ``def f(...)``."""
        names = [*self.parameters, *["box"] * self.boxed]
        split = len(names) - self.keyword_only
        plain = [x for x in names[:split] if x not in DEFAULTS]
        usual = [f"{x}={DEFAULTS[x]}" for x in names[:split] if x in DEFAULTS]
        named = [f"{x}={DEFAULTS[x]}" if x in DEFAULTS else x for x in names[split:]]
        first = ["self"] if self.form == "method" else []
        return ", ".join([*first, *plain, *usual, *(["*", *named] if named else [])])

    def by_name(self):
        """The names that have to be given by name."""
        names = [*self.parameters, *["box"] * self.boxed]
        return names[len(names) - self.keyword_only :]


def draw_surroundings(picks):
    """Surroundings that the numbers choose."""
    count = 1 + picks.number(5)
    start = picks.number(3) if picks.number(2) else 0
    chosen = [PARAMETERS[0]]
    step = 1 + picks.number(3)
    for position in range(1, count):
        chosen.append(PARAMETERS[(start + position * step) % len(PARAMETERS)])
    parameters = dict(chosen)
    boxed = picks.chance(7)
    offered = [x for x in GLOBAL_PLACES if "[" not in x]
    first = picks.number(len(offered))
    visible = [offered[(first + i) % len(offered)] for i in range(picks.number(5))]
    if "STATE" in visible:
        visible += ["STATE['n']", "STATE['t']"]
    keyword_only = picks.number(3) if picks.chance(6) else 0
    return Surroundings(
        form=picks.one(("function",) * 6 + ("closure", "method")),
        parameters=parameters,
        boxed=boxed,
        keyword_only=min(keyword_only, len(parameters) + boxed - 1),
        optimizer=picks.one(OPTIMIZERS),
        globals=tuple(visible),
        constants=picks.number(3),
    )


def needed_definitions(texts, method, optimizer):
    """The definitions that some texts use, directly or through others."""
    wanted = "\n".join(texts)
    if method:
        wanted += "\nBox BOX"
    kept = []
    for name, text in reversed(DEFINITIONS.items()):
        if re.search(rf"\b{name}\b", wanted):
            filled = text.replace("{method}", method).replace("{optimizer}", optimizer)
            kept.append(filled)
            wanted += "\n" + filled
    return list(reversed(kept))
