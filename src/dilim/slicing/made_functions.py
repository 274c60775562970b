"""Functions that the region makes: by ``def`` and ``lambda``, and as derivatives of others.

As long as they are only called, they never exist: their bodies are interpreted where they are
called. Where the host needs one as an object, its maker is left to the host; only where the rest
runs as plain Python they are made from what is known of them.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing import program
from dilim.slicing.errors import OnHost, Restart, Unsliceable, attempted
from dilim.slicing.source import code_of, function_of, with_own
from dilim.slicing.values import UNBOUND, Choice, Conflict, Host, MadeFunction, may_be_unbound
from dilim.tensors import derivatives

if TYPE_CHECKING:
    from dilim.slicing.actions import Action
    from dilim.slicing.slicer import Slicer

_DERIVATIVES: Final = (
    derivatives.grad,
    derivatives.value_and_grad,
    derivatives.jacobian,
    derivatives.hessian,
)
"""Functions of dilim that take a function and give one."""


@dataclass(slots=True, eq=False)
class Inner(MadeFunction):
    """A function made by ``def`` or ``lambda``.

    Attributes:
        function: a function object with its code; its cells are empty where they are captured.
        code: its normal form, in which captured variables are local names.
        number: of the frame of the function around it.
        captured: what the variables stand for that it takes from there.
        own: the name of such a variable that stands for the function itself.
        defaults: those of its parameters.
    """

    function: types.FunctionType
    code: program.Function
    number: int
    captured: dict[str, Any] = field(default_factory=dict)
    own: str = ""
    defaults: dict[str, Any] = field(default_factory=dict)

    def parts(self) -> list[Any]:
        """See `MadeFunction.parts`."""
        return [*self.captured.values(), *self.defaults.values()]


@dataclass(slots=True, eq=False)
class Derivative(MadeFunction):
    """What ``dilim.grad`` and the like give.

    Attributes:
        function: of dilim, which calls back into the slicer.
        of: what was called to make it.
        args: with which arguments.
        keywords: likewise.
    """

    function: Callable[..., Any]
    of: Callable[..., Any]
    args: list[Any]
    keywords: dict[str, Any]

    def parts(self) -> list[Any]:
        """See `MadeFunction.parts`."""
        return [*self.args, *self.keywords.values()]


def is_left_to_host(slicer: Slicer, maker: program.Statement) -> bool:
    """Whether the host makes the function that a statement makes."""
    return ("host", maker) in slicer.decisions


def refuse(*values: Any) -> None:
    """See to it that the host makes the functions that are needed as objects.

    Raises:
        Restart: there is one among the values.
    """
    for value in values:
        if isinstance(value, MadeFunction):
            raise Restart(("host", value.maker))


# --- def and lambda ---------------------------------------------------------------------------


def define(slicer: Slicer, unit: program.Unit) -> bool:
    """Interpret a ``def`` statement; whether it could be."""
    node = unit.node
    if not isinstance(node, ast.FunctionDef) or is_left_to_host(slicer, unit):
        return False
    annotations = [x.annotation for x in ast.walk(node.args) if isinstance(x, ast.arg)]
    if node.decorator_list or node.returns or any(annotations) or len(unit.writes) != 1:
        return False
    name = unit.writes[0]
    try:
        made = inner(slicer, unit, node, name)
    except OnHost:
        return False
    slicer.env[name] = made
    slicer.keeping.end(slicer.scope.number, name)
    return True


def inner(
    slicer: Slicer, maker: program.Statement, node: ast.FunctionDef | ast.Lambda, name: str
) -> Inner:
    """The function that a ``def`` or ``lambda`` makes.

    Args:
        slicer: who interprets.
        maker: the statement.
        node: the syntax.
        name: to which it is bound.

    Raises:
        OnHost: the host has to make it.
    """
    scope = slicer.scope
    around = scope.function
    code = code_of(around.__code__, node)
    if code is None:
        raise OnHost("a function whose code is not found")
    known = dict(zip(around.__code__.co_freevars, around.__closure__ or (), strict=True))
    taken = [x for x in code.co_freevars if x in scope.code.locals]
    cells = tuple(
        types.CellType() if x in taken or x not in known else known[x] for x in code.co_freevars
    )
    if any(x not in taken and x not in scope.code.cells for x in code.co_freevars):
        raise OnHost("a function that takes a variable of another name")
    function = types.FunctionType(code, around.__globals__, closure=cells)
    try:
        normal = function_of(function)
    except Unsliceable as refusal:
        raise OnHost(refusal.reason) from None
    if normal.cells_written.intersection(taken):
        raise OnHost("a function that changes a variable of the function around it")
    made = Inner(maker, function, with_own(function, tuple(taken)), scope.number)
    for x in taken:
        if x == name:
            made.own = name
            continue
        value = scope.env.get(x, UNBOUND)
        if value.__class__ in (Choice, Conflict) or may_be_unbound(value):
            raise OnHost(f"{x} may be unbound")
        if value.__class__ is Host and not value.is_sure:
            raise OnHost(f"{x} may be unbound")
        made.captured[x] = value
    made.defaults = _defaults(slicer, node.args)
    return made


def _defaults(slicer: Slicer, arguments: ast.arguments) -> dict[str, Any]:
    names = [x.arg for x in (*arguments.posonlyargs, *arguments.args)]
    given: dict[str, ast.expr] = dict(
        zip(names[len(names) - len(arguments.defaults) :], arguments.defaults, strict=True)
    )
    for x, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if value is not None:
            given[x.arg] = value
    found = {}
    for name, node in given.items():
        if not isinstance(node, ast.Name | ast.Constant):
            raise OnHost("a default that is computed")
        found[name] = slicer.atom(node)
        if found[name].__class__ is Host:
            raise OnHost("a default that the host has")
    return found


# --- derivatives ------------------------------------------------------------------------------


def derivative(
    slicer: Slicer, step: program.Step, function: Any, args: list[Any], keywords: dict[str, Any]
) -> Derivative | None:
    """What a function of dilim makes of a function of the user's; None if it is no such call."""
    if not any(function is x for x in _DERIVATIVES) or not args:
        return None
    first = args[0]
    if not isinstance(first, types.FunctionType | types.MethodType | Inner):
        return None

    def call(*args: Any, **keywords: Any) -> Any:
        from dilim.slicing.inlining import inline

        actions = len(slicer.actions)
        result = inline(slicer, step, first, list(args), keywords)  # type: ignore[arg-type]
        if len(slicer.actions) > actions or result.__class__ is Host:
            raise OnHost("host code runs in a function that is differentiated")
        return result

    made = attempted(function, call, *args[1:], **keywords)
    return Derivative(step, made, function, args, keywords)


# --- as objects -------------------------------------------------------------------------------


def expression(slicer: Any, made: MadeFunction, action: Action) -> str:
    """Python code for the function, made on the host where the rest runs as plain Python."""
    number = slicer.objects.number_of(("made", id(made)))
    slicer.kept.append(made)
    if isinstance(made, Inner):
        line = _of_inner(slicer, made, action)
    elif isinstance(made, Derivative):
        args = [_shown(slicer, x, action) for x in made.args]
        args += [f"{name}={_shown(slicer, x, action)}" for name, x in made.keywords.items()]
        line = f"{slicer.entry.constant(made.of)}({', '.join(args)})"
    else:
        raise Restart(("host", made.maker))
    return f"R.function({number}, lambda: {line})"


def _of_inner(slicer: Any, made: Inner, action: Action) -> str:
    parts = [f"{made.own!r}: own"] if made.own else []
    for name, value in made.captured.items():
        if value.__class__ is Host:
            shown = f"F[{made.number}][{name!r}]"
        else:
            shown = _shown(slicer, value, action)
        parts.append(f"{name!r}: {shown}")
    defaults = [f"{x!r}: {_shown(slicer, v, action)}" for x, v in made.defaults.items()]
    known = slicer.entry.constant(made.function)
    maker = slicer.entry.constant(function_like)
    return f"{maker}({known}, lambda own: {{{', '.join(parts)}}}, {{{', '.join(defaults)}}})"


def _shown(slicer: Any, value: Any, action: Action) -> str:
    if isinstance(value, MadeFunction):
        return expression(slicer, value, action)
    shown: str = slicer.objects.expression(value, action)
    return shown


def function_like(
    function: types.FunctionType,
    captured: Callable[[types.FunctionType], dict[str, Any]],
    defaults: dict[str, Any],
) -> types.FunctionType:
    """A function like another, with other variables from outside.

    Args:
        function: the other.
        captured: from the new function to the values of some of its variables.
        defaults: of its parameters.
    """
    code = function.__code__
    known = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells = {name: cell for name, cell in known.items() if _is_filled(cell)}
    cells |= {name: types.CellType() for name in known if name not in cells}
    closure = tuple(cells[name] for name in code.co_freevars)
    made = types.FunctionType(code, function.__globals__, closure=closure)
    for name, value in captured(made).items():
        cells[name].cell_contents = value
    count = code.co_argcount
    own = tuple(defaults[x] for x in code.co_varnames[:count] if x in defaults)
    made.__defaults__ = own or None
    only = code.co_varnames[count : count + code.co_kwonlyargcount]
    made.__kwdefaults__ = {x: defaults[x] for x in only if x in defaults} or None
    return made


def _is_filled(cell: types.CellType) -> bool:
    return cell != types.CellType()
