"""The function that a user calls in place of the one that was compiled.

Its frame looks like that of the user's function: same name, file and parameters, and an error
leaves it at the line at which it would leave the user's function. So neither a traceback nor a
debugger shows the slicer in between, and wrong arguments raise what they always raise. Defaults are
looked up when they are needed, since they may be replaced.
"""

from __future__ import annotations

import ast
import dis
import types
from collections.abc import Callable
from inspect import CO_VARARGS, CO_VARKEYWORDS
from typing import Any, Final, TypeAlias

from dilim.slicing.templates import definition, written
from dilim.slicing.tracebacks import called_from, users_view

_CALL, _PLACE, _ERROR, _AT = "%call", "%place", "%error", "%at"
_FUNCTION, _DEFAULT = "%function", "%default"
_CELLS: Final = (_CALL, _PLACE, _FUNCTION, _DEFAULT)
_Place: TypeAlias = tuple[int, int, int, int]

_LOAD: Final = ast.Load()
_STORE: Final = dis.opmap["STORE_FAST"]
_KINDS: Final = (CO_VARARGS, CO_VARKEYWORDS)


def front(f: types.FunctionType, call: Callable[[tuple[Any, ...]], Any]) -> types.FunctionType:
    """A function that stands in for another.

    Args:
        f: the user's function.
        call: what is done instead: a function of the values of the parameters, in the order of the
            code object's variables (positional, keyword-only, ``*``, ``**``).

    Returns:
        A function with f's name, parameters and attributes, and f as ``__wrapped__``.
        Errors of ``call`` leave it with the traceback that f would give them: frames of the slicer
        are taken out, and the outermost frame of f itself becomes that of this function.
    """
    places = _places(f.__code__)
    code = _code(f, places)
    numbers = {place: number for number, place in enumerate(places)}
    default = object()
    cells: dict[str, Any] = {
        _CALL: call,
        _PLACE: lambda error: _settle(error, f.__code__, code, numbers),
        _FUNCTION: f,
        _DEFAULT: default,
    }
    closure = tuple(types.CellType(cells[name]) for name in code.co_freevars)
    defaults = tuple(default for _ in f.__defaults__ or ())
    made = types.FunctionType(code, f.__globals__, f.__name__, defaults, closure)
    made.__kwdefaults__ = dict.fromkeys(f.__kwdefaults__ or (), default)
    made.__qualname__, made.__module__, made.__doc__ = f.__qualname__, f.__module__, f.__doc__
    made.__annotations__ = f.__annotations__
    made.__dict__.update(f.__dict__)
    made.__dict__["__wrapped__"] = f
    return made


def _places(code: types.CodeType) -> list[_Place]:
    """Where an error can leave a function, each place once; at last the lines without columns."""
    places = list(dict.fromkeys(map(_place, code.co_positions())))
    return list(dict.fromkeys([*places, *(_line(place[0]) for place in places)]))


def _line(line: int) -> _Place:
    return line, line, -1, -1


def _place_of(entry: types.TracebackType, error: BaseException) -> _Place:
    code, position = entry.tb_frame.f_code, entry.tb_lasti
    if isinstance(error, UnboundLocalError) and code.co_code[position] == _STORE:
        position += 2  # CPython runs it and the load after it as one; only the load can fail
    return _place(list(code.co_positions())[position // 2])


def _place(position: tuple[int | None, ...]) -> _Place:
    line, last_line, column, last_column = position
    if column is None or last_column is None:
        column = last_column = -1
    return line or 0, last_line or line or 0, column, last_column


def redirect(made: types.FunctionType, call: Callable[[tuple[Any, ...]], Any]) -> None:
    """Let a front do something else from now on."""
    cells = dict(zip(made.__code__.co_freevars, made.__closure__ or (), strict=True))
    cells[_CALL].cell_contents = call


def called(f: types.FunctionType, values: tuple[Any, ...]) -> Any:
    """Call a function with the values of its parameters, in the order of `front`."""
    arguments, keywords = given(f.__code__, values)
    return f(*arguments, **keywords)


def given(code: types.CodeType, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments and keywords that give the parameters of a function these values."""
    plain = code.co_argcount
    only = plain + code.co_kwonlyargcount
    arguments = values[:plain]
    keywords = dict(zip(code.co_varnames[plain:only], values[plain:only], strict=True))
    if code.co_flags & CO_VARARGS:
        arguments += values[only]
    if code.co_flags & CO_VARKEYWORDS:
        keywords |= values[-1]
    return arguments, keywords


def _code(f: types.FunctionType, places: list[_Place]) -> types.CodeType:
    code = f.__code__
    at = _syntax((code.co_firstlineno, code.co_firstlineno, 0, 0))
    text = "try: return _call(_values)\nexcept BaseException as _error: _at = _place(_error)"
    arguments, values = _arguments(f)
    parts: dict[str, Any] = {"_call": _CALL, "_values": values, "_place": _PLACE, "_at": _AT}
    guard: Any = written(text, at, _error=_ERROR, **parts)[0]
    handler = guard.handlers[0]
    handler.name = _ERROR
    handler.body += written("raise _error", at, _error=_ERROR)
    inner = definition("%front", [], [guard], at)
    inner.args = arguments
    outer = definition("%outer", [ast.arg(name) for name in _CELLS], [inner], at)
    module = ast.fix_missing_locations(ast.Module([outer], []))
    leaving = [_leaving(number, place) for number, place in enumerate(places) if place[0]]
    handler.body[1:1] = leaving
    compiled = compile(module, code.co_filename, "exec", dont_inherit=True)
    for _ in range(2):
        compiled = next(part for part in compiled.co_consts if isinstance(part, types.CodeType))
    return compiled.replace(co_name=code.co_name, co_qualname=code.co_qualname)


def _arguments(f: types.FunctionType) -> tuple[ast.arguments, ast.Tuple]:
    """The parameters of a function, and the tuple of their values."""
    code, names = f.__code__, f.__code__.co_varnames
    positional = names[: code.co_argcount]
    keyword = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    rest = iter(names[code.co_argcount + code.co_kwonlyargcount :])
    stars = [next(rest) if code.co_flags & kind else None for kind in _KINDS]
    arguments = ast.arguments(
        list(map(ast.arg, positional[: code.co_posonlyargcount])),
        list(map(ast.arg, positional[code.co_posonlyargcount :])),
        None if stars[0] is None else ast.arg(stars[0]),
        list(map(ast.arg, keyword)),
        [None] * len(keyword),
        None if stars[1] is None else ast.arg(stars[1]),
        [],
    )
    count = len(f.__defaults__ or ())
    where = {name: f"__defaults__[{k - count}]" for k, name in enumerate(positional[-count:])}
    where = {} if not count else where
    where |= {name: f"__kwdefaults__[{name!r}]" for name in f.__kwdefaults__ or ()}
    every = [*positional, *keyword, *(star for star in stars if star is not None)]
    return arguments, ast.Tuple([_value(name, where.get(name)) for name in every], ast.Load())


def _value(name: str, default: str | None) -> ast.expr:
    """The value of a parameter; its default is found in the function."""
    if default is None:
        return ast.Name(name, ast.Load())
    text = f"_function.{default} if _name is _default else _name"
    (made,) = written(
        text, _syntax((1, 1, 0, 0)), _function=_FUNCTION, _default=_DEFAULT, _name=name
    )
    return made.value  # type: ignore[attr-defined, no-any-return]


def _leaving(number: int, place: _Place) -> ast.stmt:
    """Raises the error at a place, if that is where it has to leave."""
    at = _keywords(place)
    is_here = ast.Compare(
        ast.Name(_AT, _LOAD, **at), [ast.Eq()], [ast.Constant(number, **at)], **at
    )
    return ast.If(is_here, [ast.Raise(ast.Name(_ERROR, _LOAD, **at), **at)], [], **at)


def _syntax(place: _Place) -> ast.AST:
    return ast.Pass(**_keywords(place))


def _keywords(place: _Place) -> dict[str, Any]:
    line, last_line, column, last_column = place
    return {
        "lineno": line,
        "end_lineno": last_line,
        "col_offset": column,
        "end_col_offset": last_column,
    }


def _settle(
    error: BaseException,
    users: types.CodeType,
    ours: types.CodeType,
    numbers: dict[_Place, int],
) -> int:
    """Cleans an error's traceback; gives the number of the place at which it has to leave."""
    users_view(error)
    entry = error.__traceback__
    while entry is not None and entry.tb_frame.f_code is ours:
        entry = entry.tb_next
    number = -1
    if entry is not None and _is_users(entry.tb_frame.f_code, users):
        place = _place_of(entry, error)
        path = _path_to(users, place) or [place]
        entry = called_from(
            entry.tb_next,
            [("<listcomp>", users.co_filename, inner[0], _syntax(inner)) for inner in path[1:]],
        )
        number = numbers.get(path[0], numbers.get(_line(place[0]), -1))
    error.__traceback__ = entry
    return number


def _path_to(code: types.CodeType, place: _Place) -> list[_Place]:
    """The places of the list comprehensions around a place, where they have frames, and itself.

    Before Python 3.12 they are functions. The slicer runs them as loops.
    """
    own = _places(code)
    if place in own:
        return [place]
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType) and inner.co_name == "<listcomp>":
            path = _path_to(inner, place)
            around = [part for part in own if _holds(part, path[0])] if path else []
            if around:
                # The last to begin is the comprehension itself.
                return [max(around, key=lambda part: (part[0], part[2], -part[1], -part[3])), *path]
    return []


def _holds(outer: _Place, inner: _Place) -> bool:
    begins = (outer[0], outer[2]) <= (inner[0], inner[2])
    return begins and (inner[1], inner[3]) <= (outer[1], outer[3])


def _is_users(code: types.CodeType, users: types.CodeType) -> bool:
    """Whether code is that of the user's function, of a piece of it, or stands for it."""
    return (code.co_filename, code.co_name) == (users.co_filename, users.co_name)
