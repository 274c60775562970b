"""Compilers that are wrong on purpose: each has to be found by the comparison.

Those here do something around the function. Those in `wrong_sources` change it, as a slicer with a
bug would.
"""

import contextlib
import copy
import functools
import io
import sys
import types

import numpy as np

import dilim

BREAKERS = {}
"""Name -> compiler."""


def breaker(function):
    """Register a compiler."""
    BREAKERS[function.__name__] = function
    return function


# --- effects --------------------------------------------------------------------------------


@breaker
def prints_at_the_end(f):
    @functools.wraps(f)
    def call(*arguments, **keywords):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            result = f(*arguments, **keywords)
        sys.stdout.write(text.getvalue())
        return result

    return call


@breaker
def writes_nothing_back(f):
    """In-place changes are made to copies of the arguments."""

    @functools.wraps(f)
    def call(*arguments, **keywords):
        copies = [_copied(x) for x in arguments]
        return f(*copies, **{name: _copied(x) for name, x in keywords.items()})

    return call


def _copied(x):
    return copy.deepcopy(x) if isinstance(x, (list, dilim.Tensor)) else x


@breaker
def undoes_on_error(f):
    """What was appended before an exception is taken back."""

    @functools.wraps(f)
    def call(*arguments, **keywords):
        lists = [x for x in (*arguments, *keywords.values()) if isinstance(x, list)]
        lists += [x for x in f.__globals__.values() if isinstance(x, list)]
        for x in (*arguments, *keywords.values(), *f.__globals__.values()):
            if type(x).__name__ == "Box":
                lists += [x.log, x.parts]
        before = [list(x) for x in lists]
        try:
            return f(*arguments, **keywords)
        except Exception:
            for x, items in zip(lists, before, strict=True):
                x[:] = items
            raise

    return call


@breaker
def raises_from_outside(f):
    """The traceback does not show the user's lines."""

    @functools.wraps(f)
    def call(*arguments, **keywords):
        try:
            return f(*arguments, **keywords)
        except Exception as error:
            error.__traceback__ = None
            raise error from None

    return call


# --- values ---------------------------------------------------------------------------------


def _on_result(f, change):
    @functools.wraps(f)
    def call(*arguments, **keywords):
        return change(f(*arguments, **keywords))

    return call


def _changed_tensors(value, change):
    if isinstance(value, dilim.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_changed_tensors(x, change) for x in value)
    return value


@breaker
def changes_the_last_bit(f):
    def change(x):
        if x.dtype.is_floating and x.size and not x.requires_grad:
            array = x.numpy(copy=True)
            array.flat[-1] = np.nextafter(array.flat[-1], array.dtype.type(np.inf))
            return dilim.asarray(array)
        return x

    return _on_result(f, lambda value: _changed_tensors(value, change))


@breaker
def returns_copies(f):
    """Results are never the objects that went in."""
    return _on_result(f, lambda value: _changed_tensors(value, lambda x: x.clone()))


@breaker
def forgets_gradients(f):
    return _on_result(f, lambda value: _changed_tensors(value, lambda x: x.detach()))


@breaker
def reuses_memory(f):
    """The second result of a shape is written over the first."""
    buffers = {}

    def change(x):
        if x.requires_grad or not x.is_contiguous:
            return x
        buffer = buffers.setdefault((x.shape, x.dtype), x)
        if buffer is not x:
            buffer.copy_(x)
        return buffer

    return _on_result(f, lambda value: _changed_tensors(value, change))


@breaker
def loses_minus_zero(f):
    def change(x):
        return x + 0 if x.dtype.is_floating and not x.requires_grad else x

    return _on_result(f, lambda value: _changed_tensors(value, change))


@breaker
def gives_floats_for_ints(f):
    return _on_result(f, lambda value: float(value) if type(value) is int else value)


# --- what changes between calls -------------------------------------------------------------


@breaker
def bakes_globals_in(f):
    values = {
        name: value
        for name, value in f.__globals__.items()
        if isinstance(value, (float, int, str, types.FunctionType))
    }

    @functools.wraps(f)
    def call(*arguments, **keywords):
        now = {name: f.__globals__[name] for name in values}
        f.__globals__.update(values)
        try:
            return f(*arguments, **keywords)
        finally:
            f.__globals__.update(now)

    return call


@breaker
def bakes_numbers_in(f):
    """Ints are taken from the first call."""
    first = []

    @functools.wraps(f)
    def call(*arguments, **keywords):
        first[:] = first or [arguments]
        merged = [
            old if type(new) is int else new for old, new in zip(first[0], arguments, strict=False)
        ]
        return f(*merged, *arguments[len(merged) :], **keywords)

    return call


@breaker
def bakes_defaults_in(f):
    """Defaults are those of the moment when the function was compiled."""
    result = types.FunctionType(
        f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__
    )
    result.__kwdefaults__ = f.__kwdefaults__
    return result


@breaker
def bakes_closures_in(f):
    """Variables of enclosing functions too."""
    cells = tuple(types.CellType(cell.cell_contents) for cell in f.__closure__ or ())
    result = types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, cells)
    result.__kwdefaults__ = f.__kwdefaults__
    return result
