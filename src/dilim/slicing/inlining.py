"""Functions of the user, interpreted at the place of their call."""

from __future__ import annotations

import sysconfig
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing import handing_back, program
from dilim.slicing.attributes import is_dilims, is_module
from dilim.slicing.errors import TOO_LONG, OnHost, Restart, Unsliceable
from dilim.slicing.interpreter import RESULT, Scope
from dilim.slicing.loop_bodies import may_fall_through
from dilim.slicing.made_functions import Inner
from dilim.slicing.numbers import Number
from dilim.slicing.retreats import Retreat
from dilim.slicing.source import function_of
from dilim.slicing.values import NEW_LIST, UNBOUND, Host, is_tuple
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

DEPTH: Final = 60
"""Deepest nesting of functions that is laid out flat."""


INSTALLED: Final = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
"""Folders of Python and of what is installed."""


def is_installed(function: types.FunctionType) -> bool:
    """Whether a function belongs to the standard library or an installed package."""
    return function.__code__.co_filename.startswith(INSTALLED)


def _is_of_dilim(x: Any) -> bool:
    """Whether a value is a tensor, or something else that graphs know of."""
    if x.__class__ is list or is_tuple(x):
        return any(map(_is_of_dilim, x))
    if x.__class__ is dict:
        return any(map(_is_of_dilim, x.values()))
    return isinstance(x, Tensor) or is_dilims(type(x)) or is_module(type(x))


class Given(Host):
    """A value of the host as an argument; ``name`` is where the caller has it."""

    __slots__ = ("name",)

    def __init__(self, kind: Any, name: str) -> None:
        super().__init__(kind)
        self.name = name


def inline(
    slicer: Slicer,
    step: program.Step,
    function: Callable[..., Any],
    args: list[Any],
    keywords: dict[str, Any],
) -> Any:
    """Interpret a function of the user at the place of its call."""
    if isinstance(function, types.MethodType):
        return inline(slicer, step, function.__func__, [function.__self__, *args], keywords)
    own = function if isinstance(function, Inner) else None
    function = function if own is None else own.function
    if not isinstance(function, types.FunctionType):
        raise OnHost
    if len(slicer.scopes) >= DEPTH:
        raise Unsliceable("functions that call each other more deeply than 60")
    try:
        code = function_of(function) if own is None else own.code
    except Unsliceable as refusal:
        raise OnHost(refusal.reason) from None
    if is_installed(function) and not any(map(_is_of_dilim, (*args, *keywords.values()))):
        raise OnHost("a function of an installed package")
    env = bound(slicer, own or function, args, keywords)
    if own is None:
        slicer.entry.guard_code(function)
    _check_recursion(slicer, code, env)
    slicer.flush()
    retreat = Retreat(slicer)
    scope = Scope(code, function, slicer.new_frame(), env, given=list(env.values()))
    if own is not None:
        _capture(slicer, own, scope)
    for name, value in list(env.items()):
        if value.__class__ is Given:
            slicer.move(slicer.scope, value.name, scope, name)
            env[name] = Host(_known_elsewhere(value.kind))
        elif value.__class__ in (tuple, dict) and _has_given(value):
            raise OnHost("a host value among starred parameters")
    slicer.scopes.append(scope)
    work, actions, given = slicer.trace.work, len(slicer.actions), [*env.values()]
    refused, result = "", None
    try:
        slicer.block(code.body)
        slicer.flush()
        if scope.env.get(RESULT) is not None and may_fall_through(code.body) and not slicer.dead:
            handing_back.fall_through(slicer, lambda: scope.env.update({RESULT: None}))
        result = scope.env.get(RESULT)
        is_number = result.__class__ is Number and not any(result is x for x in given)
        if slicer.trace.work == work and not is_number and len(slicer.actions) > actions + 2:
            refused = "nothing in it is the graph's"
    except (Unsliceable, OnHost) as refusal:
        if refusal.reason == TOO_LONG:
            raise
        refused = refusal.reason or "it is left to the host"
    finally:
        slicer.scopes.pop()
    if refused:
        slicer.hints[step] = _kind_of(result)
        retreat.go_back()
        raise OnHost(refused)
    if result.__class__ is Host:
        result = Host(_known_elsewhere(result.kind), result.is_sure, result.is_plain)
        node: Any = step.node
        target = getattr(node.targets[0], "id", "")
        slicer.move(scope, RESULT, slicer.scope, target)
    slicer.keeping.end_all(scope.number)
    return result


def _check_recursion(slicer: Slicer, code: program.Function, env: dict[str, Any]) -> None:
    """See to it that a function that calls itself comes to an end while it is laid out flat."""
    calls = [scope for scope in slicer.scopes if scope.code is code]
    recursive = len(calls)
    if recursive > 2 and any(isinstance(x, Host) for x in env.values()):
        raise OnHost("a function that calls itself depending on a value of the host")
    if recursive and any(x.__class__ is Number for x in env.values()):
        for value in (*env.values(), *calls[0].given):
            if value.__class__ is Number and value.origin is not None:
                raise Restart(value.origin)
        if recursive > 2 and any(x.__class__ is Number for x in env.values()):
            raise OnHost("a function that calls itself depending on a number of the program")


def _kind_of(result: Any) -> Any:
    """The kind of what a function that is left to the host will give."""
    return result.kind if result.__class__ in (Host, Number) else type(result)


def _known_elsewhere(kind: Any) -> Any:
    """The kind of a value of the host that another function has had, too."""
    return "list" if kind == NEW_LIST else kind


def _capture(slicer: Slicer, function: Inner, scope: Scope) -> None:
    """Give an inner function the variables that it takes from the function around it."""
    around = [x for x in slicer.scopes if x.number == function.number]
    for name, value in function.captured.items():
        if value.__class__ is not Host:
            scope.env[name] = value
        elif around:
            slicer.move(around[0], name, scope, name)
            scope.env[name] = Host(value.kind)
        else:
            raise Restart(("host", function.maker))
    if function.own:
        scope.env[function.own] = function


def _has_given(value: Any) -> bool:
    return any(x.__class__ is Given for x in (value.values() if isinstance(value, dict) else value))


def bound(
    slicer: Slicer, function: types.FunctionType | Inner, args: list[Any], keywords: dict[str, Any]
) -> dict[str, Any]:
    """Arguments by parameter, as Python binds them.

    Raises:
        OnHost: they do not fit, so that Python must raise.
    """
    code = (function.function if isinstance(function, Inner) else function).__code__
    names = code.co_varnames[: code.co_argcount]
    env = dict(zip(names, args, strict=False))
    extra = args[len(names) :]
    only = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    position = code.co_argcount + code.co_kwonlyargcount
    if code.co_flags & 4:
        env[code.co_varnames[position]] = tuple(extra)
        position += 1
    elif extra:
        raise OnHost("too many arguments")
    left = {}
    for key, value in keywords.items():
        if key in env or (key in names[: code.co_posonlyargcount]):
            raise OnHost("an argument is given twice")
        if key in names or key in only:
            env[key] = value
        else:
            left[key] = value
    if code.co_flags & 8:
        env[code.co_varnames[position]] = slicer.make(left)
    elif left:
        raise OnHost("an argument that the function does not take")
    if isinstance(function, Inner):
        env = {**function.defaults, **env}
    else:
        _add_defaults(slicer, function, names, env)
    if any(env.get(name, UNBOUND) is UNBOUND for name in (*names, *only)):
        raise OnHost("an argument is missing")
    return env


def _add_defaults(
    slicer: Slicer, function: types.FunctionType, names: tuple[str, ...], env: dict[str, Any]
) -> None:
    path = slicer.entry.constant(function)
    defaults = function.__defaults__ or ()
    for k, value in enumerate(defaults):
        name = names[len(names) - len(defaults) + k]
        if name not in env:
            env[name] = _default(slicer, function, value, f"{path}.__defaults__[{k}]")
    for name, value in (function.__kwdefaults__ or {}).items():
        if name not in env:
            env[name] = _default(slicer, function, value, f"{path}.__kwdefaults__[{name!r}]")


def _default(slicer: Slicer, function: types.FunctionType, value: Any, path: str) -> Any:
    """A default value; the numbers among those of dilim are constants, as nobody changes them.

    Else slicing would begin again for each that has to be one.
    """
    if (function.__module__ or "").startswith("dilim."):
        slicer.decisions.add(("value", path))
    return slicer.outside(value, path)
