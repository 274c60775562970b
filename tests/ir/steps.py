"""Steps of random programs: each adds an operation or two to a scope, whatever it holds.

A step is told by a few small numbers (`Picks`), so that Hypothesis can shrink them: 0 means the
newest value, the first axis, the plainest form. A step that does not apply adds nothing.
"""

import functools
import math

import numpy as np

from dilim import dtypes
from dilim.ir.types import Type
from dilim.ops.philox import seed_state
from dilim.ops.table import OPERATIONS
from ir.scope import DTYPES, LIMIT, STATE


def _form(name):
    """The number of inputs of an operation and the names of its parameters."""
    op = OPERATIONS[name]
    sample = next(op.samples(np.random.default_rng(0), op.sample_dtypes[0]))
    return len(sample.inputs), tuple(sample.params)


FORMS = {name: _form(name) for name in OPERATIONS}
UNARY = [name for name, form in FORMS.items() if form == (1, ())]
BINARY = [name for name, form in FORMS.items() if form == (2, ()) and name != "matmul"]
REDUCTIONS = [name for name, form in FORMS.items() if form[1] == ("axis", "keepdims")]
RANDOM = [name for name in OPERATIONS if name.startswith("random_")]
CONSTANTS = (1, 0, -1, 2, 0.5, -3, 1e-3, math.inf, math.nan, -0.0)


def _operand(scope, picks, name, test=lambda value: True):
    """A value that an operation takes: as it is, or converted."""
    found = scope.visible(test)
    if not found:
        return None
    x = picks.one(found)
    allowed = OPERATIONS[name].sample_dtypes
    if x.dtype in allowed:
        return x
    return scope.converted(x, picks.one([dtype for dtype in DTYPES if dtype in allowed]))


def _joins(x, y):
    try:
        return math.prod(np.broadcast_shapes(x.shape, y.shape)) <= LIMIT
    except ValueError:
        return False


def _partner(scope, picks, x):
    """A value that broadcasts against x, of its dtype."""
    found = scope.visible(lambda y: y.dtype is x.dtype and _joins(x, y))
    if picks.rarely() or not found:
        value = picks.one(CONSTANTS if x.dtype.is_floating else (1, 0, 2, 3))
        return scope.constant(value, x.dtype)
    return picks.one(found)


def _wrapped(scope, x, size):
    """Integers in 0 .. size - 1."""
    return scope.add("remainder", x, scope.constant(size, x.dtype))


# --- elementwise ----------------------------------------------------------------------------


def unary(scope, picks):
    name = picks.one(UNARY)
    return scope.add(name, _operand(scope, picks, name))


def binary(scope, picks):
    name = picks.one(BINARY)
    x = _operand(scope, picks, name)
    if x is None:
        return None
    y = _partner(scope, picks, x)
    free = name == "pow" and scope.errors and picks.number(2)  # exponents may be negative
    if y is not None and x.dtype.is_integer and ("shift" in name or name == "pow") and not free:
        y = _wrapped(scope, y, 40 if "shift" in name else 4)
    if picks.rarely():
        x, y = (x, y) if "shift" in name or name == "pow" else (y, x)
    return scope.add(name, x, y)


def where(scope, picks):
    x = _operand(scope, picks, "where")
    if x is None:
        return None
    y = _partner(scope, picks, x)
    bools = scope.visible(lambda c: c.dtype is dtypes.bool_ and _joins(c, x))
    condition = picks.one(bools) if bools else scope.add("equal", x, y)
    return scope.add("where", condition, x, y)


def full(scope, picks):
    dtype = picks.one(DTYPES)
    value = picks.one(CONSTANTS if dtype.is_floating else CONSTANTS[:4])
    return scope.constant(value, dtype, picks.one([(), (1,), (3,), (2, 3)]))


def astype(scope, picks):
    found = scope.visible()
    if not found:
        return None
    dtype = picks.one(dtypes.ALL if picks.rarely() else DTYPES)
    return scope.converted(picks.one(found), dtype)


# --- reductions and products ----------------------------------------------------------------


def reduce(scope, picks):
    name = picks.one(REDUCTIONS)
    x = _operand(scope, picks, name)
    if x is None:
        return None
    bits = 2 ** len(x.shape) - 1 - picks.number(2 ** len(x.shape))
    axis = tuple(a for a in range(len(x.shape)) if bits >> a & 1)
    return scope.add(name, x, axis=axis, keepdims=picks.number(2) == 1)


def matmul(scope, picks):
    x = _operand(scope, picks, "matmul", lambda x: len(x.shape) >= 1)
    if x is None:
        return None
    if len(x.shape) == 1:
        x = scope.add("reshape", x, shape=(1, *x.shape))
    fitting = scope.visible(
        lambda y: y.dtype is x.dtype and len(y.shape) >= 2 and y.shape[-2] == x.shape[-1]
    )
    if fitting:
        return scope.add("matmul", x, picks.one(fitting))
    rank = len(x.shape)
    return scope.add(
        "matmul", x, scope.add("permute", x, order=(*range(rank - 2), rank - 1, rank - 2))
    )


def scan(scope, picks):
    x = _operand(scope, picks, "cumulative_sum", lambda x: x.shape)
    name = picks.one(("cumulative_sum", "cumulative_prod"))
    return x and scope.add(name, x, axis=picks.number(len(x.shape)))


# --- movement -------------------------------------------------------------------------------


def reshape(scope, picks):
    x = _operand(scope, picks, "reshape")
    if x is None:
        return None
    size = math.prod(x.shape)
    divisors = [n for n in range(1, size + 1) if size % n == 0]
    options = [(size,), (1, *x.shape), (*x.shape, 1), tuple(n for n in x.shape if n != 1)]
    options += [x.shape[::-1], *((n, size // n) for n in divisors[1:-1])]
    return scope.add("reshape", x, shape=picks.one(options))


def permute(scope, picks):
    x = _operand(scope, picks, "permute", lambda x: len(x.shape) > 1)
    if x is None:
        return None
    left, order = list(range(len(x.shape)))[::-1], []
    while left:
        order.append(left.pop(picks.number(len(left))))
    return scope.add("permute", x, order=tuple(order))


def expand(scope, picks):
    x = _operand(scope, picks, "expand")
    if x is None:
        return None
    count = 1 + picks.number(4)
    options = [tuple(count if n == 1 else n for n in x.shape), (count, *x.shape)]
    return scope.add("expand", x, shape=options[1 if 1 not in x.shape else picks.number(2)])


def flip(scope, picks):
    x = _operand(scope, picks, "flip", lambda x: x.shape)
    if x is None:
        return None
    bits = 1 + picks.number(2 ** len(x.shape) - 1)
    return scope.add("flip", x, axis=tuple(a for a in range(len(x.shape)) if bits >> a & 1))


def _slices(picks, shape):
    index = []
    for size in shape:
        step = picks.one((1, -1, 2, -2))
        most = -(-size // abs(step))
        count = most - picks.number(most + 1)
        room = size - 1 - (count - 1) * abs(step) if count else 0
        first = picks.number(room + 1)
        index.append((first if step > 0 else max(size - 1 - first, 0), count, step))
    return tuple(index)


def slice_(scope, picks):
    x = _operand(scope, picks, "slice", lambda x: x.shape)
    return x and scope.add("slice", x, index=_slices(picks, x.shape))


def slice_update(scope, picks):
    x = _operand(scope, picks, "slice_update", lambda x: x.shape)
    if x is None:
        return None
    index = _slices(picks, x.shape)
    value = scope.typed(Type(tuple(n for _, n, _ in index), x.dtype), picks)
    return scope.add("slice_update", x, value, index=index)


def concat(scope, picks):
    x = _operand(scope, picks, "concat", lambda x: x.shape)
    if x is None:
        return None
    axis = picks.number(len(x.shape))

    def fits(y):
        return y.dtype is x.dtype and len(y.shape) == len(x.shape) and all(
            n == m for a, (n, m) in enumerate(zip(x.shape, y.shape, strict=True)) if a != axis
        )  # fmt: skip

    parts = [picks.one(scope.visible(fits)) for _ in range(1 + picks.number(2))]
    return scope.add("concat", x, *parts, axis=axis)


def windows(scope, picks):
    x = _operand(scope, picks, "windows", lambda x: len(x.shape) > 1)
    if x is None or 0 in x.shape:
        return None
    size = tuple(1 + picks.number(n) for n in x.shape[-2:])
    stride = (1 + picks.number(2), 1 + picks.number(2))
    views = scope.add("windows", x, size=size, stride=stride)
    return scope.add("fold", views, shape=x.shape, stride=stride) if picks.rarely() else views


# --- positions ------------------------------------------------------------------------------


def _inside(scope, picks, indices, size):
    """Positions along an axis; some from the end, and where wanted some that do not exist."""
    if scope.errors and picks.number(4) == 3:
        return indices
    indices = _wrapped(scope, indices, size)
    if picks.rarely():
        return scope.add("subtract", indices, scope.constant(size, indices.dtype))
    return indices


def gather(scope, picks):
    """Whole slices at positions, read or added to."""
    x = _operand(scope, picks, "index_add", lambda x: x.shape)
    if x is None:
        return None
    axis = picks.number(len(x.shape))
    size = x.shape[axis]
    numbers = scope.visible(lambda y: y.dtype.kind == "int" and len(y.shape) < 3)
    indices = picks.one(numbers) if numbers else scope.constant(1, dtypes.int64)
    if size == 0 or indices is None:
        return None
    indices = _inside(scope, picks, indices, size)
    if indices is None or picks.number(2) == 0:
        return scope.add("take", x, indices, axis=axis)
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    if math.prod(shape) > LIMIT:
        return None
    return scope.add("index_add", x, indices, scope.typed(Type(shape, x.dtype), picks), axis=axis)


def along(scope, picks):
    """One element per position, read or added to."""
    x = _operand(scope, picks, "add_along_axis", lambda x: x.shape)
    if x is None:
        return None
    axis = picks.number(len(x.shape))
    indices = scope.converted(x, dtypes.int64)
    if x.shape[axis] == 0 or indices is None:
        return None
    count = x.shape[axis] - picks.number(x.shape[axis] + 1)
    index = tuple((0, count if a == axis else n, 1) for a, n in enumerate(x.shape))
    indices = scope.add("slice", _inside(scope, picks, indices, x.shape[axis]), index=index)
    if indices is None or picks.number(2) == 0:
        return scope.add("take_along_axis", x, indices, axis=axis)
    value = scope.typed(Type(indices.shape, x.dtype), picks)
    return scope.add("add_along_axis", x, indices, value, axis=axis)


# --- random numbers, and everything else ----------------------------------------------------


@functools.cache
def _samples(name):
    op = OPERATIONS[name]
    found = []
    for dtype in op.sample_dtypes:
        found += list(op.samples(np.random.default_rng(1), dtype))
    return found


def draw_with(scope, picks, state):
    """A random draw from a state."""
    name = picks.one(RANDOM)
    chosen = picks.one(_samples(name))
    others = [scope.given(x) for x in chosen.inputs[1:]]
    return scope.add(name, state, *others, **chosen.params)


def random(scope, picks):
    states = scope.visible(lambda x: x.type == STATE)
    state = picks.one(states) if states else scope.given(seed_state(picks.number(16)))
    return draw_with(scope, picks, state)


def sample(scope, picks):
    """Any operation of the table, on a sample of its own; it reaches those added later, too."""
    name = picks.one([*reversed(OPERATIONS)])
    if name not in scope.names:
        return None
    chosen = picks.one(_samples(name))
    if any(np.size(x) > LIMIT or not isinstance(x, np.ndarray) for x in chosen.inputs):
        return None
    inputs = [scope.given(x) for x in chosen.inputs]
    return scope.add(name, *inputs, **chosen.params)


PURE = {
    "binary": binary, "unary": unary, "reduce": reduce, "reshape": reshape, "where": where,
    "expand": expand, "matmul": matmul, "slice": slice_, "slice_update": slice_update,
    "permute": permute, "gather": gather, "along": along, "concat": concat, "flip": flip,
    "full": full, "astype": astype, "scan": scan, "windows": windows, "random": random,
    "sample": sample,
}  # fmt: skip
"""Kinds of straight-line steps, the plainest first."""
WEIGHTED = [*PURE, *["binary", "unary"] * 3, "reduce", "reduce", "matmul"]
