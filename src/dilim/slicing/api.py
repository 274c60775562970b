"""`dilim.compile`."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, overload

from dilim import scalar
from dilim.errors import UnsupportedError
from dilim.scalar.network import Module
from dilim.scalar.optimizers import Optimizer
from dilim.scalar.value import Value
from dilim.slicing.checked import Checked
from dilim.slicing.options import check_options
from dilim.slicing.scalar_model import CompiledModel
from dilim.slicing.sliced import Sliced


@overload
def compile(
    model: Module, *, loss: Callable[..., Value] = ..., optimizer: Optimizer | None = ...
) -> CompiledModel: ...


@overload
def compile(
    function: None = ...,
    *,
    strict: bool = ...,
    check: bool = ...,
    trace: bool = ...,
    numerics: str = ...,
    backend: str = ...,
    compile_after: float | None = ...,
) -> Callable[[Callable[..., Any]], Sliced]: ...


@overload
def compile(
    function: Callable[..., Any],
    *,
    strict: bool = ...,
    check: bool = ...,
    trace: bool = ...,
    numerics: str = ...,
    backend: str = ...,
    compile_after: float | None = ...,
) -> Sliced: ...


def compile(function: Any = None, /, **options: Any) -> Any:
    """Make a function of tensors fast, without changing what it does.

    The function is ordinary Python: ``print``, ``if``, ``for``, calls of any library. It is sliced
    into a graph program, which runs as machine code, and a host program, which stays Python; they
    hand values to each other where one needs what the other has. Results, printed text, exceptions,
    changes of lists, objects and tensors, and random draws are those of the function as it stands.
    What cannot be sliced runs as plain Python; ``f.explain()`` says which line, and why.

    Can be used as a decorator, with and without options, on functions and methods. Programs that
    are built by hand are `dilim.Graph`.

    Args:
        function: what to compile; or a `Neuron` or `MLP` of `dilim.scalar`, with ``loss`` and
            ``optimizer`` as only options (see `CompiledModel`).
        **options: those that follow, by keyword.
        strict: raise an UnsupportedError where the function, or a loop of it, cannot be sliced, and
            where each turn of a loop would hand something over that nobody asked for
            (``losses.append(loss.item())``, ``rates[i]``). A ``print`` or a call of a function that
            only the host can run asks for its values. What a call has to show first is refused at
            the next one.
        check: run each call twice, as two programs and then as plain Python on the same objects,
            put back in between, and raise a CheckError that names the first difference; see
            `Checked`. What goes out into files or over a network happens twice.
        trace: print what the two programs do, step by step.
        numerics: "strict": the bits of eager execution. "fast": sums and products may be rounded
            differently where that is quicker.
        backend: "llvm" for machine code, "reference" for NumPy.
        compile_after: seconds of plain run time after which the function is compiled; 0 for at
            once; None for about as long as compiling takes. Except with 0, plain Python is kept
            where some calls of each kind show that it is quicker.

    Returns:
        A callable like the function; see `Sliced`.

    Raises:
        UnsupportedError: neither a function, a method, nor a scalar model.
        TypeError: there is no such option.
        ValueError: an option has no such value.

    Warns:
        PerformanceWarning: many programs are made, for arguments that differ in what is named; or
            each turn of a long loop hands over something, which takes longer than the work; or the
            function has no source (``python -c``, ``exec``), so that it runs as plain Python. Each
            is told once, with the line.

    Example:
        >>> import dilim
        >>> @dilim.compile
        ... def double(x):
        ...     return x * 2.0
        >>> double(dilim.tensor([1.0, 2.0])).tolist()
        [2.0, 4.0]
    """
    if function is None:
        check_options(options)
        return functools.partial(compile, **options)
    if isinstance(function, Module):
        return CompiledModel(
            function,
            options.pop("loss", scalar.loss.mse),
            options.pop("optimizer", None),
            **options,
        )
    if isinstance(function, Sliced):
        function = vars(function)["__wrapped__"]
    if isinstance(function, types.MethodType) and isinstance(function.__func__, Sliced):
        plain = vars(function.__func__)["__wrapped__"]
        function = types.MethodType(plain, function.__self__)
    if isinstance(function, staticmethod | classmethod):
        kind = type(function).__name__
        raise UnsupportedError(
            f"compile: expected a function, received a {kind}; write @dilim.compile below @{kind}"
        )
    if not isinstance(getattr(function, "__func__", function), types.FunctionType):
        raise UnsupportedError(
            f"compile: expected a function, a method, or a model of dilim.scalar, received "
            f"{type(function).__name__}; for an object that is called, compile the function that "
            "calls it"
        )
    check_options(options)
    made = Checked if options.pop("check", False) else Sliced
    return made(function, **options)
