"""Pieces of a function, compiled by CPython as if they still stood in it.

A fragment has the user's file, line and column numbers and function name, and the function's own
globals and closure cells. So tracebacks, debuggers, coverage and ``sys._getframe`` see the user's
function.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from dilim.slicing.names import Uses
from dilim.slicing.program import (
    ENTER,
    FRAME,
    LEAVE,
    Atom,
    For,
    Function,
    Statement,
    Step,
    Unit,
    With,
)
from dilim.slicing.rendering import KEEP, OBSERVE, UNBOUND, Renderer
from dilim.slicing.scopes import inner_blocks
from dilim.slicing.templates import definition, written

Left: TypeAlias = tuple[str, Any]
"""How a piece was left: "return" and the value, or "break" or "continue" and None."""

Fragment: TypeAlias = Callable[[dict[str, Any]], Any]

EXHAUSTED: Final[Left] = ("exhausted", None)

_ERROR = "%error"
_END = object()
_OUTER_NAME, _INNER_NAME = "%outer", "%inner"


@dataclass(slots=True, frozen=True)
class _Code:
    """A compiled piece, without the cells of a function object.

    Attributes:
        code: of a function of the frame.
        writes: the names that it puts into the frame.
        deleted: those that it may take out.
        observed: the steps whose values it shows, by number.
        receiver: the name of the first parameter of the function where ``super()`` needs it.
    """

    code: types.CodeType
    writes: tuple[str, ...]
    deleted: frozenset[str]
    observed: tuple[Step, ...]
    receiver: str | None


class Fragments:
    """Compiles pieces of one function object; the compiled code is shared by all with that code.

    Args:
        function: its normal form.
        f: the function, whose globals and cells the pieces use.
        observe: called by pieces that are compiled with ``observed=True``, with each step whose
            value is a call, and the value.
    """

    def __init__(
        self,
        function: Function,
        f: types.FunctionType,
        observe: Callable[[Step, Any], object] | None = None,
    ) -> None:
        self._function = function
        self._f = f
        self._observe = observe or _ignore
        self._cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
        self._made: dict[Any, Fragment] = {}

    def run(
        self,
        statements: Sequence[Statement],
        *,
        keep: bool = True,
        guarded: bool = True,
        observed: bool = False,
    ) -> Fragment:
        """A function that executes statements on a frame.

        It reads variables from the frame, binds them in it and deletes them from it. What is read
        while unbound raises UnboundLocalError, as in the function itself. It returns None, or
        `Left` where a return, or a break or continue of a loop around the statements, leaves them.

        Args:
            statements: of the normal form, neighbours in one block.
            keep: whether variables are put into the frame; False where nobody looks at them later.
            guarded: whether they are put there as well when an error ends the piece.
            observed: whether values of calls are shown to the observer.
        """
        return self._get("run", statements, (), keep, guarded, observed)

    def decide(
        self,
        statements: Sequence[Statement],
        test: Atom,
        at: ast.AST,
        *,
        guarded: bool = True,
        observed: bool = False,
    ) -> Fragment:
        """The same, but it returns the truth of an atom, a bool, where `run` returns None."""
        return self._get("decide", statements, (test, at), True, guarded, observed)

    def piece(
        self, statements: Sequence[Statement], kept: Iterable[str] = (), observed: bool = False
    ) -> Fragment:
        """As `run`; these names are put into the frame although no later statement reads them."""
        return self._get("piece", statements, tuple(kept), True, True, observed)

    def begin(self, loop: For) -> Fragment:
        """A function that makes the iterator of a loop and keeps it in the frame."""
        return self._get("begin", (), (loop,), True, False, False)

    def turn(
        self,
        loop: For,
        statements: Sequence[Statement],
        *,
        guarded: bool = True,
        observed: bool = False,
    ) -> Fragment:
        """A function that takes the next item of a running loop, then executes statements.

        It returns EXHAUSTED where there is no item, and otherwise what `run` returns.
        """
        return self._get("turn", statements, (loop,), True, guarded, observed)

    def enter(self, statement: With) -> Fragment:
        """A function that enters a context and keeps its ``__exit__`` in the frame."""
        return self.piece((statement.entering,))

    def leave(self, statement: With) -> Callable[[dict[str, Any], BaseException | None], bool]:
        """A function that leaves a context of the frame, and tells if it swallows the error."""
        left: Any = self._get("leave", (), (statement,), False, False, False)
        return left  # type: ignore[no-any-return]

    def _get(
        self,
        kind: str,
        statements: Sequence[Statement],
        extra: tuple[Any, ...],
        keep: bool,
        guarded: bool,
        observed: bool,
    ) -> Fragment:
        key = (kind, tuple(statements), extra, keep, guarded, observed)
        made = self._made.get(key)
        if made is None:
            compiled: _Code | None = self._function.codes.get(key)
            if compiled is None:
                compiled = _compile(
                    self._function, kind, statements, extra, keep, guarded, observed
                )
                self._function.codes[key] = compiled
            made = self._made[key] = self._with_cells(compiled)
        return made

    def _with_cells(self, compiled: _Code) -> Fragment:
        code = compiled.code
        cells = tuple([self._cell(name, compiled) for name in code.co_freevars])
        made = types.FunctionType(code, self._f.__globals__, self._function.name, None, cells)
        receiver = compiled.receiver
        return made if receiver is None else lambda frame: made(frame.get(receiver), frame)

    def _cell(self, name: str, compiled: _Code) -> types.CellType:
        known = self._cells.get(name)
        if known is not None:
            return known
        if name == KEEP:
            return types.CellType(partial(_keep, compiled.writes, compiled.deleted))
        if name == OBSERVE:
            return types.CellType(partial(_show, compiled.observed, self._observe))
        return types.CellType(_HELPERS[name])


def _compile(
    function: Function,
    kind: str,
    statements: Sequence[Statement],
    extra: tuple[Any, ...],
    keep: bool,
    guarded: bool,
    observed: bool,
) -> _Code:
    target = extra[0].target if kind == "turn" else None
    bound = () if target is None else (target,)
    renderer = Renderer(
        function,
        statements,
        keep=keep,
        observe=observed,
        bound=bound,
        kept=extra if kind == "piece" else (),
    )
    before = _PARTS[kind](extra[0], renderer) if kind in _PARTS else []
    body = renderer.render(before, *(extra if kind == "decide" else ()))
    at: ast.AST = body[0] if body else _definition("", (), [], function.lines[1])
    if guarded and renderer.writes and body:
        handler = written("try: pass\nexcept: _keep(_frame); raise", at, _keep=KEEP, _frame=FRAME)
        guard = handler[0]
        guard.body = body  # type: ignore[attr-defined]
        body = [guard]
    body = [*_declarations(function, body, at), *_loads(function, renderer, at), *body]
    receiver = function.parameters[0] if calls_super(statements) else None
    parameters = [FRAME] if receiver is None else [receiver, FRAME]
    parameters += [_ERROR] if kind == "leave" else []
    code = _code(function, parameters, body or written("pass", at))
    return _Code(code, renderer.writes, renderer.deleted, tuple(renderer.observed), receiver)


def _code(function: Function, parameters: list[str], body: list[ast.stmt]) -> types.CodeType:
    inner = _definition(_INNER_NAME, parameters, body, function.lines[1])
    helpers = [KEEP, OBSERVE, *_HELPERS]
    outer = _definition(_OUTER_NAME, [*function.cells, *helpers], [inner], function.lines[1])
    module = ast.fix_missing_locations(ast.Module([outer], []))
    compiled = compile(module, function.filename, "exec", function.flags, dont_inherit=True)
    code = _code_in(_code_in(compiled))
    return _named(code, code.co_qualname, function.qualified_name).replace(co_name=function.name)


def _definition(
    name: str, parameters: Iterable[str], body: list[ast.stmt], line: int
) -> ast.FunctionDef:
    place = ast.Pass(lineno=line, end_lineno=line, col_offset=0, end_col_offset=0)
    return definition(name, [ast.arg(parameter) for parameter in parameters], body, place)


def _code_in(code: types.CodeType) -> types.CodeType:
    return next(part for part in code.co_consts if isinstance(part, types.CodeType))


def _named(code: types.CodeType, made: str, real: str) -> types.CodeType:
    """The code, with the qualified names that functions within it have in the user's function."""
    constants = tuple(
        _named(part, made, real) if isinstance(part, types.CodeType) else part
        for part in code.co_consts
    )
    return code.replace(co_consts=constants, co_qualname=code.co_qualname.replace(made, real, 1))


def _declarations(function: Function, body: list[ast.stmt], at: ast.AST) -> list[ast.stmt]:
    bound = set(Uses(body).writes)
    kinds = {"global": function.globals_written, "nonlocal": function.cells_written}
    return [
        written(f"{kind} {', '.join(sorted(bound & names))}", at)[0]
        for kind, names in kinds.items()
        if bound & names
    ]


def _loads(function: Function, renderer: Renderer, at: ast.AST) -> list[ast.stmt]:
    """Takes from the frame those of the variables that are bound.

    What may be bound anew, or is not read again, is taken out of it, so that its value ends when it
    would end.
    """
    loads: list[ast.stmt] = []
    for name in {**renderer.loads, **dict.fromkeys(renderer.writes)}:
        leaves = name in renderer.writes or name in renderer.private
        text = f"_name = _frame.pop({name!r})" if leaves else f"_name = _frame[{name!r}]"
        sure = name in renderer.loads and (
            name in function.stable or (name.startswith("%") and not leaves)
        )
        if not sure:
            text = f"if {name!r} in _frame: {text}"
        loads += written(text, at, _name=name, _frame=FRAME)
    return loads


def calls_super(statements: Sequence[Statement]) -> bool:
    """Whether statements may call ``super()``, which looks for the first parameter."""
    return any(
        isinstance(part, ast.Name) and part.id == "super"
        for node in _nodes(statements)
        for part in ast.walk(node)
    )


def _nodes(statements: Sequence[Statement]) -> Iterator[ast.stmt]:
    for statement in statements:
        if isinstance(statement, Step | Unit):
            yield statement.node
        for block in inner_blocks(statement):
            yield from _nodes(block)


# What stands in front of the statements of a piece.


def _begin(loop: For, renderer: Renderer) -> list[ast.stmt]:
    renderer.need(loop.items)
    text = f"_frame[{loop.iterator!r}] = _iter(_items)"
    return written(text, _place(loop, loop.items), _frame=FRAME, _iter="%iter", _items=loop.items)


def _turn(loop: For, renderer: Renderer) -> list[ast.stmt]:
    text = (
        f"_item = _next(_frame[{loop.iterator!r}], _end)\n"
        f"if _item is _end: _keep(_frame); return {EXHAUSTED!r}\n"
        "_target = _item\n"
        "_item = None"
    )
    names = {"_item": "%item", "_next": "%next", "_end": "%end", "_target": loop.target}
    names["_keep"] = KEEP
    return written(text, _place(loop, loop.items), _frame=FRAME, **names)


def _place(statement: For | With, value: Atom) -> ast.AST:
    """Where CPython says that a value is asked for items, or to be entered or left."""
    if sys.version_info >= (3, 13):
        return value
    return statement.at or value


def _leave(statement: With, renderer: Renderer) -> list[ast.stmt]:
    text = f"return _leave(_frame.pop({statement.manager!r}), _error)"
    at = _place(statement, statement.context)
    return written(text, at, _frame=FRAME, _leave=LEAVE, _error=_ERROR)


_PARTS: Final[dict[str, Callable[[Any, Renderer], list[ast.stmt]]]] = {
    "begin": _begin,
    "turn": _turn,
    "leave": _leave,
}


# Helpers that pieces call.


def _keep(names: tuple[str, ...], deleted: frozenset[str], frame: dict[str, Any]) -> None:
    """Puts the variables of the calling piece into the frame, as far as they are bound."""
    variables = sys._getframe(1).f_locals
    for name in names:
        if name in variables:
            frame[name] = variables[name]
        elif name in deleted:
            frame.pop(name, None)


def _ignore(step: Step, value: Any) -> None:
    pass


def _show(
    steps: tuple[Step, ...], observe: Callable[[Step, Any], object], number: int, value: Any
) -> None:
    observe(steps[number], value)


def _enter_context(frame: dict[str, Any], name: str, context: Any) -> Any:
    kind = type(context)
    enter = getattr(kind, "__enter__", None)
    leave = getattr(kind, "__exit__", None)
    if enter is None or leave is None:
        missing = "" if enter is None else " (missed __exit__ method)"
        raise TypeError(
            f"'{kind.__name__}' object does not support the context manager protocol{missing}"
        )
    value = enter(context)
    frame[name] = partial(leave, context)
    return value


def _leave_context(leave: Callable[..., Any], error: BaseException | None) -> bool:
    if error is None:
        leave(None, None, None)
        return False
    return bool(leave(type(error), error, error.__traceback__))


_HELPERS: Final[dict[str, Any]] = {
    UNBOUND: NameError,
    "%iter": iter,
    "%next": next,
    "%end": _END,
    ENTER: _enter_context,
    LEAVE: _leave_context,
}
