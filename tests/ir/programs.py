"""Random programs for tests: a Hypothesis strategy of graphs, with inputs, state and a host.

::

    from ir.programs import programs, same_run

    @given(programs())
    def test_a_pass(program):
        same_run(program.run(), program.on(my_pass(program.graph)).run())
"""

import itertools
import math
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

from dilim import dtypes
from dilim.backends.reference.executor import by_reference, execute
from dilim.ir.graph import Graph, GraphBuilder
from dilim.ir.text import to_text
from dilim.ir.types import Type
from dilim.ops.philox import seed_state
from dilim.ops.table import OPERATIONS
from ir.scope import DTYPES, STATE, Picks, Scope, any_value
from ir.steps import PURE, WEIGHTED, draw_with

SHAPES = ((2, 3), (), (3,), (1,), (3, 2), (2, 1), (1, 3), (0,), (3, 0), (2, 2, 3), (17,), (5, 4))
FLOATS = (
    1.0, 0.0, -1.0, 2.0, 0.5, -0.0, 3.0, -2.5, 1e-3, 1e8, -7e4, math.inf, -math.inf, math.nan,
    3e38, 1e-42, 1e-310, 0.1, 1 / 3,
)  # fmt: skip
REGIONAL = ("branch", "loop", "fused")
INTEGERS = (1, 0, 2, -1, 3, 5, -4, 7, 100, 2**31 - 1, -(2**31))


class Host:
    """The other side of the channels: notes what is sent, gives numbers made from a count."""

    def __init__(self, types):
        self._types = types
        self._counts = dict.fromkeys(types, 0)
        self.sent = []

    def send(self, channel, arrays):
        self.sent.append((channel, [np.array(x) for x in arrays]))

    def receive(self, channel):
        self._counts[channel] += 1
        seed = [self._counts[channel], len(channel), *channel.encode()]
        rng = np.random.default_rng(seed)
        return [_numbers(rng, type_) for type_ in self._types[channel]]


def _numbers(rng, type_):
    x = rng.integers(-3, 8, type_.shape) / (2 if type_.dtype.is_floating else 1)
    return np.asarray(x if type_.dtype.kind != "uint" else abs(x)).astype(type_.dtype.numpy)


@dataclass(frozen=True)
class Run:
    """What is left of a run: results, variables, what was sent, and the error or None."""

    outputs: list
    variables: list
    sent: list
    error: Exception | None


@dataclass(frozen=True)
class Program:
    """A graph and all that it needs to run.

    Attributes:
        graph: verified.
        inputs: one array per input.
        variables: one array per variable: the contents before the run; never written here.
        received: channel -> types of what its `receive` takes.
    """

    graph: Graph
    inputs: list = field(repr=False)
    variables: list = field(repr=False)
    received: dict = field(repr=False)

    def host(self):
        """A fresh host; it gives every run the same numbers."""
        return Host(self.received)

    def on(self, graph):
        """The same inputs and state for another graph, such as one that a pass made."""
        return replace(self, graph=graph)

    def run(self, evaluate=by_reference):
        """Run it by the reference executor."""
        variables, host = [np.array(x) for x in self.variables], self.host()
        inputs = [np.array(x) for x in self.inputs]
        outputs, error = [], None
        try:
            outputs = execute(self.graph, inputs, evaluate=evaluate, variables=variables, host=host)
        except Exception as caught:
            error = caught
        return Run(outputs, variables, host.sent, error)

    def __repr__(self):
        lines = [to_text(self.graph)]
        lines += [f"input {k}: {x!r}" for k, x in enumerate(self.inputs)]
        lines += [f"variable {k}: {x!r}" for k, x in enumerate(self.variables)]
        return "\n".join(lines)


def same_bits(a, b):
    """Whether two arrays have one type and the same bits, NaNs being equal."""
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    numbers = ~np.isnan(a)
    return np.array_equal(np.isnan(a), np.isnan(b)) and np.array_equal(
        a[numbers].view(f"u{a.dtype.itemsize}"), b[numbers].view(f"u{a.dtype.itemsize}")
    )


def same_run(got, want):
    """Assert that two runs cannot be told apart."""
    assert type(got.error) is type(want.error), f"{got.error!r} instead of {want.error!r}"
    assert [channel for channel, _ in got.sent] == [channel for channel, _ in want.sent]
    pairs = [("output", got.outputs, want.outputs), ("variable", got.variables, want.variables)]
    pairs += [(f"sent to {c}", a, b) for (c, a), (_, b) in zip(got.sent, want.sent, strict=True)]
    for what, found, expected in pairs:
        for number, (a, b) in enumerate(zip(found, expected, strict=True)):
            assert same_bits(a, b), f"{what} {number}:\n{a!r}\ninstead of\n{b!r}"


# --- structural steps -----------------------------------------------------------------------


class _Author:
    """Writes a program from the steps that Hypothesis drew."""

    def __init__(self):
        self.channels = itertools.count()
        self.received = {}

    def steps(self, scope, steps):
        for kind, numbers, regions in steps:
            picks = Picks(numbers)
            if kind in PURE:
                PURE[kind](scope, picks)
            elif kind != "nothing":
                getattr(self, kind)(scope, picks, regions)

    def read(self, scope, picks, regions):
        if scope.variables:
            variable = picks.one(scope.variables)
            scope.builder.add("read", [variable], {}, variable.type)

    def write(self, scope, picks, regions):
        if not scope.variables:
            return
        variable = picks.one(scope.variables)
        value = scope.typed(variable.type, picks)
        if picks.number(3) and variable.shape and variable.shape[0]:
            value = self._row_written(scope, picks, variable)
        if value is not None:
            scope.builder.add_node("write", [variable, value], {}, [])

    def _row_written(self, scope, picks, variable):
        """The contents with one row replaced: the way of writing into replay storage."""
        contents = scope.builder.add("read", [variable], {}, variable.type)
        row = picks.number(variable.shape[0])
        index = ((row, 1, 1), *((0, n, 1) for n in variable.shape[1:]))
        value = scope.typed(Type((1, *variable.shape[1:]), variable.dtype), picks)
        return scope.add("slice_update", contents, value, index=index)

    def draw(self, scope, picks, regions):
        """A draw that moves a random state on."""
        states = [v for v in scope.variables if v.type == STATE]
        if states:
            state = scope.builder.add("read", [states[0]], {}, STATE)
            draw_with(scope, picks, state)
            moved = scope.add("random_advance", state, words=1 + picks.number(9))
            if moved is not None:
                scope.builder.add_node("write", [states[0], moved], {}, [])

    def send(self, scope, picks, regions):
        values = [any_value(scope, picks) for _ in range(1 + picks.number(2))]
        if None not in values:
            scope.builder.add_node("send", values, {"channel": f"out{next(self.channels)}"}, [])

    def receive(self, scope, picks, regions):
        channel = f"in{next(self.channels)}"
        types = [Type(picks.one(SHAPES[:6]), picks.one(DTYPES)) for _ in range(1 + picks.number(2))]
        self.received[channel] = tuple(types)
        scope.builder.add_node("receive", [], {"channel": channel}, types)

    def branch(self, scope, picks, regions):
        condition = self._bool(scope, picks)
        if condition is None:
            return
        scopes = [scope.inner(), scope.inner()]
        for inner, steps in zip(scopes, regions, strict=True):
            self.steps(inner, steps)
        results = [any_value(scopes[0], picks) for _ in range(picks.number(3))]
        results = [x for x in results if x is not None]
        others = [scopes[1].typed(x.type, picks) for x in results]
        if None not in others:
            graphs = [scopes[0].builder.build_region(results)]
            graphs.append(scopes[1].builder.build_region(others))
            scope.builder.add_node("if", [condition], {}, [x.type for x in results], graphs)

    def loop(self, scope, picks, regions):
        limit = self._limit(scope, picks)
        count = 0 if picks.rarely() else 1 + picks.number(3)
        carried = [any_value(scope, picks) for _ in range(count)]
        if limit is None or None in carried:
            return
        types = [x.type for x in carried]
        graphs = []
        if picks.number(3) == 2:
            graphs.append(self._condition(scope, picks, types, regions[0]))
        graphs.append(self._body(scope, picks, types, regions[1]))
        if None not in graphs:
            scope.builder.add_node("loop", [limit, *carried], {}, types, graphs)

    def _region(self, scope, types):
        inner = scope.inner()
        inner.builder.input(Type((), dtypes.int64))
        return inner, [inner.builder.input(type_) for type_ in types]

    def _condition(self, scope, picks, types, steps):
        inner, _ = self._region(scope, types)
        self.steps(inner, [step for step in steps if step[0] in PURE or step[0] == "read"])
        holds = self._bool(inner, picks)
        return None if holds is None else inner.builder.build_region([holds])

    def _body(self, scope, picks, types, steps):
        inner, carried = self._region(scope, types)
        self.steps(inner, steps)
        results = [inner.typed(type_, picks) for type_ in types]
        if picks.number(2):  # the same values again, exchanged where the types allow
            alike = [[y for y in carried if y.type == x.type] for x in carried]
            results = [y[(y.index(x) + 1) % len(y)] for x, y in zip(carried, alike, strict=True)]
        return None if None in results else inner.builder.build_region(results)

    def _limit(self, scope, picks):
        count = picks.number(5)
        numbers = scope.visible(lambda x: x.type == Type((), dtypes.int64))
        if picks.number(2) and numbers:
            return scope.add(
                "remainder", picks.one(numbers), scope.constant(count + 1, dtypes.int64)
            )
        return scope.constant(count, dtypes.int64)

    def _bool(self, scope, picks):
        """A condition: one at hand, or a comparison of some value with a number."""
        found = scope.visible(lambda x: x.type == Type((), dtypes.bool_))
        if found and picks.number(2):
            return picks.one(found)
        x = any_value(scope, picks)
        if x is None:
            return None
        if x.dtype is not dtypes.bool_:
            x = scope.add("less", x, scope.constant(picks.number(4), x.dtype))
        return x and scope.add(
            picks.one(("any", "all")), x, axis=tuple(range(len(x.shape))), keepdims=False
        )

    def fused(self, scope, picks, regions):
        """One kernel of some operations, as the fusion pass makes it."""
        inputs = [any_value(scope, picks) for _ in range(1 + picks.number(3))]
        if None in inputs:
            return
        inner = scope.inner(closed=True)
        for value in inputs:
            inner.builder.input(value.type)
        self.steps(inner, [step for step in regions[0] if step[0] in PURE])
        results = [any_value(inner, picks) for _ in range(1 + picks.number(2))]
        region = inner.builder.build_region(results)
        scope.builder.add_node("fused", inputs, {}, [x.type for x in results], [region])


# --- the strategy ---------------------------------------------------------------------------

_NUMBERS = st.binary(min_size=8, max_size=8)  # one draw for eight choices, which is fast


def _steps(kinds, structural, most, depth, least=0):
    """Lists of steps: (kind, numbers, steps of two regions).

    A list has a least length, so that programs are of some size, and steps that do nothing, so
    that they shrink to nothing.
    """
    simple = [kind for kind in structural if kind not in REGIONAL]
    regional = [kind for kind in structural if kind in REGIONAL]
    available = st.sampled_from(["nothing", *kinds, *simple, *simple])
    step = st.tuples(available, _NUMBERS, st.just(((), ())))
    if regional and depth:
        inner = _steps(kinds, structural, most // 3, depth - 1)
        deep = st.tuples(st.sampled_from(regional), _NUMBERS, st.tuples(inner, inner))
        step = st.one_of(*[step] * 5, deep)
    return st.lists(step, min_size=least, max_size=most)


@st.composite
def arrays(draw, shapes=SHAPES, dtype_options=DTYPES, special=True):
    """An array of few different numbers, special ones among them."""
    dtype, shape = draw(st.sampled_from(dtype_options)), draw(st.sampled_from(shapes))
    options = [x for x in FLOATS if special or 1e-4 < abs(x) < 1e4]
    if dtype is dtypes.bool_:
        options = [True, False]
    elif not dtype.is_floating:
        options = INTEGERS if special else INTEGERS[:8]
    numbers = draw(st.lists(st.sampled_from(options), min_size=1, max_size=6))
    with np.errstate(all="ignore"):
        return np.resize(np.array(numbers).astype(dtype.numpy), shape)


@st.composite
def programs(
    draw,
    steps=16,
    control=True,
    state=True,
    channels=True,
    fused=False,
    errors=False,
    special=True,
    operations=None,
    kinds=None,
    shapes=SHAPES,
    dtype_options=DTYPES,
):
    """Random programs.

    Args:
        draw: given by Hypothesis.
        steps: most steps of the outermost graph; regions have half of it.
        control: whether to have `if` and `loop`, up to two deep.
        state: whether to have variables, reads, writes and random draws that move a state on.
        channels: whether to have `send` and `receive`.
        fused: whether to have kernels.
        errors: whether positions may be out of range, so that a run may raise an IndexError.
        special: whether inputs may hold NaN, infinities, subnormal and huge numbers.
        operations: names of the operations of the table to use; by default all.
        kinds: kinds of straight-line steps to use, of `ir.steps.PURE`; by default all.
        shapes: shapes of inputs and variables.
        dtype_options: dtypes of inputs and variables.
    """
    structural = ["branch", "loop"] * control + ["read", "write", "draw"] * state
    structural += ["send", "receive"] * channels + ["fused"] * fused
    author = _Author()
    names = frozenset(OPERATIONS if operations is None else operations)
    # without this, nothing could be converted or wrapped
    names |= {"full", "astype", "where", "isnan", "maximum", "minimum", "remainder"}
    scope = Scope(GraphBuilder(), names=names, errors=errors)
    one = arrays(shapes, dtype_options, special)
    for array in draw(st.lists(one, min_size=1, max_size=3)):
        scope.given(array)
    contents = draw(st.lists(one, max_size=2)) if state else []
    if state and draw(st.booleans()):
        contents.append(seed_state(draw(st.integers(0, 9))))
    scope.variables += [
        scope.builder.variable(_type(array), f"v{k}") for k, array in enumerate(contents)
    ]
    plain = [kind for kind in WEIGHTED if kinds is None or kind in kinds]
    author.steps(scope, draw(_steps(plain, structural, steps, 2, steps // 3)))
    picks = Picks(draw(_NUMBERS))
    outputs = [any_value(scope, picks) for _ in range(1 + picks.number(3))]
    return Program(scope.builder.build(outputs), scope.arrays, contents, author.received)


def _type(array):
    return Type(array.shape, dtypes.from_numpy(array.dtype))
