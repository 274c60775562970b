"""Compilers by name: what the fuzzer can be asked to compare with plain functions."""

import functools
import inspect
import os

import dilim
from slicing.fuzz.compare import plain

LATE = 0.002
"""Seconds after which most functions are in the middle of something."""


def sliced(backend, after, f):
    """`dilim.compile`, after so many seconds of plain run time."""
    return dilim.compile(f, backend=backend, compile_after=after)


def checked(f):
    """`dilim.compile` with ``check=True``, which itself compares each call with the plain one."""
    return dilim.compile(f, backend="reference", check=True)


def walked(f):
    """The function run step by step from its normal form, on the host."""
    from dilim.slicing.errors import Unsliceable
    from dilim.slicing.source import function_of
    from dilim.slicing.walker import Walker

    try:
        walker = Walker(function_of(f), f)
    except Unsliceable:
        return f

    @functools.wraps(f)
    def call(*arguments, **keywords):
        bound = inspect.signature(f).bind(*arguments, **keywords)
        bound.apply_defaults()
        return walker.run(dict(bound.arguments))

    return call


def crashing(f):
    """What a bug in machine code may do."""

    def call(*arguments, **keywords):
        os.abort()

    return call


COMPILERS = {
    "plain": plain,
    "walker": walked,
    "reference": functools.partial(sliced, "reference", 0),
    "llvm": functools.partial(sliced, "llvm", 0),
    "reference-late": functools.partial(sliced, "reference", LATE),
    "llvm-late": functools.partial(sliced, "llvm", LATE),
    "checked": checked,
    "crashing": crashing,
}
