"""What the steps of random programs work on: a scope of values, and numbers that choose."""

from dataclasses import dataclass, field

import numpy as np

from dilim import dtypes
from dilim.errors import DilimError
from dilim.ir.graph import GraphBuilder, Site
from dilim.ir.types import Type
from dilim.ops.table import OPERATIONS

DTYPES = (dtypes.float32, dtypes.float64, dtypes.int64, dtypes.int32, dtypes.bool_)
STATE = Type((6,), dtypes.uint32)
LIMIT = 400  # elements of one value


class Picks:
    """A few numbers that stand for choices; 0 for ever when they are used up."""

    def __init__(self, numbers):
        self._numbers = iter(numbers)

    def number(self, count):
        """One of 0 .. count - 1."""
        return next(self._numbers, 0) % count

    def one(self, options):
        return options[self.number(len(options))]

    def rarely(self):
        return self.number(8) == 7


@dataclass
class Scope:
    """A graph or region in the making, and the values that it can use."""

    builder: GraphBuilder
    root: "Scope | None" = None  # the outermost scope; its own `root` is None
    outer: list = field(default_factory=list)
    names: frozenset = frozenset(OPERATIONS)
    errors: bool = False
    closed: bool = False
    arrays: list = field(default_factory=list)  # of the root: one per input
    variables: list = field(default_factory=list)

    def visible(self, test=lambda value: True):
        """Values that can be used here, the newest first."""
        own = [result for node in self.builder.nodes for result in node.results]
        found = [*self.outer, *self.builder.inputs, *own]
        if self.root is not None and not self.closed:
            found = [*self.root.builder.inputs, *found]
        return [x for x in dict.fromkeys(reversed(found)) if test(x)]

    def inner(self, closed=False):
        """A scope for a region of a node to come."""
        return Scope(
            self.builder.region(),
            self.root or self,
            [] if closed else list(reversed(self.visible())),
            self.names,
            self.errors,
            closed or self.closed,
            variables=self.variables,
        )

    def add(self, name, *inputs, **params):
        """The value of an operation; None where it is not wanted or does not apply."""
        if name not in self.names or any(x is None for x in inputs):
            return None
        try:
            result = Type(*OPERATIONS[name].infer(*inputs, **params))
        except DilimError:
            return None
        if result.size > LIMIT:
            return None
        site = Site("program.py", len(self.builder.nodes) + 1)
        return self.builder.add(name, inputs, params, result, site)

    def constant(self, value, dtype, shape=()):
        return self.add("full", shape=shape, value=dtype.numpy.type(value).item(), dtype=dtype)

    def given(self, array):
        """A new input of the whole program; a constant where a region cannot see it."""
        type_ = Type(array.shape, dtypes.from_numpy(array.dtype))
        if self.closed:
            return self.typed(type_, Picks(()))
        root = self.root or self
        root.arrays.append(np.ascontiguousarray(array).reshape(array.shape))
        return root.builder.input(type_)

    def typed(self, type_, picks):
        """Some value of a type."""
        found = self.visible(lambda x: x.type == type_)
        if found:
            return picks.one(found)
        return self.constant(1, type_.dtype, type_.shape)

    def converted(self, x, dtype):
        """x in a dtype; floats are cut to what integers can hold, with 0 for NaN."""
        if x is None or x.dtype is dtype:
            return x
        if x.dtype.is_floating and dtype.is_integer:
            low, high = (0 if dtype.kind == "uint" else -99), 99
            x = self.add("where", self.add("isnan", x), self.constant(0, x.dtype), x)
            x = self.add("maximum", x, self.constant(low, x.dtype))
            x = self.add("minimum", x, self.constant(high, x.dtype))
        return self.add("astype", x, dtype=dtype)


def any_value(scope, picks):
    """Some value; a constant where there is none."""
    found = scope.visible()
    return picks.one(found) if found else scope.constant(1, dtypes.float32)
