"""Shows what a function becomes."""

import ast
import contextlib
import io

import dilim


def slices(function, *arguments, calls=3):
    """What a function became after a few calls; both programs are valid Python."""
    compiled = dilim.compile(function, backend="reference", compile_after=0)
    with contextlib.redirect_stdout(io.StringIO()):
        for _ in range(calls):
            compiled(*arguments)
    assert compiled.statistics.fallbacks == []
    shown = compiled.slices()
    ast.parse(shown.graph)
    ast.parse(shown.host)
    return shown
