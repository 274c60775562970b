"""Views as chains of operations: the same elements, the same strides, and the way back."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dilim.ops.movement import numpy_slices
from dilim.ops.table import OPERATIONS
from dilim.tensors.layouts import Step, changes_nothing, steps_to, strides_after, written_back

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)


@st.composite
def steps_and_root(draw):
    """A row-major array and views of it, taken one after the other."""
    shape = draw(SIZES)
    steps, now = [], shape
    for _ in range(draw(st.integers(0, 4))):
        step, now = draw(some_step(now))
        steps.append(step)
    return shape, steps


@st.composite
def some_step(draw, shape):
    kind = draw(st.sampled_from(["permute", "flip", "slice", "reshape", "expand"]))
    if kind == "permute":
        order = tuple(draw(st.permutations(range(len(shape)))))
        return Step("permute", {"order": order}), tuple(shape[a] for a in order)
    if kind == "flip":
        axes = tuple(a for a in range(len(shape)) if draw(st.booleans()))
        return Step("flip", {"axis": axes}), shape
    if kind == "slice":
        index = []
        for size in shape:
            start, step = draw(st.integers(0, size - 1)), draw(st.sampled_from([1, 2, -1]))
            room = (size - 1 - start) // step if step > 0 else start // -step
            index.append((start, draw(st.integers(1, room + 1)), step))
        return Step("slice", {"index": tuple(index)}), tuple(n for _, n, _ in index)
    if kind == "expand":
        wider = tuple(draw(st.integers(1, 3)) if n == 1 else n for n in shape)
        return Step("expand", {"shape": wider}), wider
    total = int(np.prod(shape))
    divisor = draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0]))
    result = draw(st.sampled_from([(divisor, total // divisor), (total,), (*shape, 1)]))
    return Step("reshape", {"shape": result}), result


def taken(x, step):
    return np.asarray(OPERATIONS[step.op].eager(x, **step.params))


@given(steps_and_root())
def test_strides_are_those_of_numpy_and_none_where_it_copies(case):
    shape, steps = case
    x = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    strides = tuple(s // 8 for s in x.strides)
    for step in steps:
        y = taken(x, step)
        found = strides_after(step, x.shape, strides, y.shape)
        assert (found is not None) == np.shares_memory(x, y)
        if found is None:
            break
        ours = [s for s, n in zip(found, y.shape, strict=True) if n != 1]
        assert ours == [s // 8 for s, n in zip(y.strides, y.shape, strict=True) if n != 1]
        x, strides = y, found


@given(steps_and_root())
def test_a_view_is_found_from_its_memory(case):
    shape, steps = case
    root = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    view = root
    for step in steps:
        view = taken(view, step)
    if not np.shares_memory(root, view):
        return
    again = root
    for step in steps_to(view, root):
        again = taken(again, step)
    np.testing.assert_array_equal(again, view)


@given(steps_and_root())
def test_a_write_through_a_view_changes_the_whole_as_numpy_does(case):
    shape, steps = case
    root = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    step = next((s for s in steps[:1] if s.op != "expand"), Step("flip", {"axis": ()}))
    part = -np.arange(taken(root, step).size, dtype=np.float32).reshape(taken(root, step).shape)

    def emit(op, values, params):
        return OPERATIONS[op].reference(*values, **params)

    whole = written_back(emit, step, lambda: root, root.shape, part)
    want = root.copy()
    if step.op == "slice":
        want[numpy_slices(step.params["index"]) or ...] = part
    elif want.shape:
        taken(want, step)[...] = part
    else:
        want = np.reshape(part, ())
    np.testing.assert_array_equal(whole, want)


@given(steps_and_root())
def test_a_view_that_changes_nothing_is_the_whole(case):
    shape, steps = case
    x = np.arange(np.prod(shape)).reshape(shape)
    for step in steps:
        if changes_nothing(step, x.shape):
            np.testing.assert_array_equal(taken(x, step), x)
        x = taken(x, step)
