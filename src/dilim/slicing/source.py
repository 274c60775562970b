"""From a function object to its normal form.

The source is taken from the file on which the code object was compiled, and compiled again to see
that it is still the source of that code. A file that was edited since, or code that a tool rewrote,
is never sliced by what the file says.
"""

from __future__ import annotations
import __future__ as future

import ast
import copy
import linecache
import re
import types
import weakref
from collections.abc import Callable, Iterator
from functools import lru_cache, reduce
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_ITERABLE_COROUTINE
from typing import Any, Final

from dilim.slicing.errors import NoSource, Unsliceable
from dilim.slicing.names import FunctionNode, Uses, arguments_of
from dilim.slicing.normal import Normaliser
from dilim.slicing.program import Function

_SUSPENDING = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE
_FUTURE = reduce(
    int.__or__, (getattr(future, name).compiler_flag for name in future.all_feature_names)
)
_FRAME_READERS = {"exec", "eval", "locals", "globals"}
_FRAME_READERS_WITHOUT_ARGUMENTS = {"vars", "dir"}

_functions: dict[int, tuple[weakref.ref[types.CodeType], Function]] = {}


def function_of(f: Callable[..., Any]) -> Function:
    """The normal form of a Python function, computed once for each code object.

    Args:
        f: a function, lambda or method. Decorators are not looked at: what is normalised is the
            function that is given.

    Raises:
        Unsliceable: there is no source, or it is not that of the function's code; it is a
            generator or async; it looks at its own frame (``locals()``, ``exec``, ...); or an inner
            function shares a variable with it that changes.
    """
    f = getattr(f, "__func__", f)
    if not isinstance(f, types.FunctionType):
        raise Unsliceable(f"{type(f).__name__} objects have no Python source", 0)
    code = f.__code__
    # By identity: code objects are equal when they do the same, wherever they were written.
    key = id(code)
    known = _functions.get(key)
    if known is None:
        until = weakref.ref(code, lambda _: _functions.pop(key, None))
        known = _functions[key] = until, _normalise(f)
    return known[1]


def with_own(f: types.FunctionType, names: tuple[str, ...]) -> Function:
    """The normal form of a function as if some variables of functions around it were its own.

    Args:
        f: the function.
        names: of the variables; none of them may be bound in it.

    Raises:
        Unsliceable: see `function_of`.
    """
    codes = function_of(f).codes
    known: Function | None = codes.get(("own", names))
    if known is None:
        known = codes["own", names] = _normalise(f, names)
    return known


def future_flags(code: types.CodeType) -> int:
    """The ``from __future__`` switches under which a code object was compiled."""
    flags: int = code.co_flags & _FUTURE
    return flags


def _normalise(f: types.FunctionType, own: tuple[str, ...] = ()) -> Function:
    code = f.__code__
    if code.co_flags & _SUSPENDING:
        raise Unsliceable("generators and async functions are not sliced", code.co_firstlineno)
    node, lines = _find(f)
    owner = _class_around(code.co_qualname)
    if owner is not None and _may_have_private_names("".join(lines[0])):
        node = _Mangler(owner).mangled(node)
    _refuse_frame_readers(node)
    body: list[ast.stmt]
    if isinstance(node, ast.Lambda):
        body = [ast.copy_location(ast.Return(node.body), node.body)]
    else:
        body = node.body
    parameters = tuple(argument.arg for argument in arguments_of(node))
    uses = Uses(body)
    local = (set(parameters) | uses.bound).union(own) - uses.globals - uses.nonlocals
    function = Function(
        name=code.co_name,
        filename=code.co_filename,
        lines=lines,
        parameters=parameters,
        locals=frozenset(local),
        cells=tuple(name for name in code.co_freevars if name not in own),
        captured=frozenset(),
        qualified_name=code.co_qualname,
        flags=future_flags(code),
        globals_written=frozenset(uses.globals),
        cells_written=frozenset(uses.nonlocals),
        stable=frozenset(parameters) - uses.deletes,
    )
    Normaliser(function, f.__globals__).run(body)
    return function


def _find(f: types.FunctionType) -> tuple[FunctionNode, tuple[list[str], int]]:
    """The function's syntax, and its source lines with the number of the first."""
    code = f.__code__
    line = code.co_firstlineno
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, f.__globals__)
    if not lines:
        raise NoSource(f"the source of {code.co_filename} is not at hand", line)
    try:
        module = _parsed("".join(lines))
    except (SyntaxError, ValueError) as error:
        raise Unsliceable(f"{code.co_filename} can no longer be parsed", line) from error
    for statement in module.body:
        if _first_line(statement) <= line <= (statement.end_lineno or line):
            node = _find_in(statement, code, module)
            first = _first_line(node)
            return node, (lines[first - 1 : node.end_lineno], first)
    raise Unsliceable(f"{code.co_filename} has changed since it was imported", line)


def _imports(module: ast.Module) -> list[ast.stmt]:
    """The imports of a module: calls through names that it imports are compiled differently."""
    found: list[ast.stmt] = []
    waiting: list[ast.AST] = [*module.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += [x for x in ast.iter_child_nodes(node) if isinstance(x, ast.stmt)]
            waiting += [x for x in ast.iter_child_nodes(node) if isinstance(x, ast.ExceptHandler)]
    return [
        node
        for node in found
        if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
    ]


@lru_cache(maxsize=16)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _functions_at(statement: ast.stmt, line: int) -> Iterator[FunctionNode]:
    """The functions in a statement that begin on a line, each before those in it."""
    waiting: list[ast.AST] = [statement]
    for node in waiting:
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if is_function and _first_line(node) == line:
            yield node  # type: ignore[misc]
        for child in ast.iter_child_nodes(node):
            if _first_line(child) <= line <= (getattr(child, "end_lineno", 0) or line):
                waiting.append(child)


def _find_in(statement: ast.stmt, code: types.CodeType, module: ast.Module) -> FunctionNode:
    """The one function of a top-level statement that a code object was compiled from."""
    line = code.co_firstlineno
    found = [
        node
        for node in _functions_at(statement, line)
        if getattr(node, "name", "<lambda>") == code.co_name
    ]
    rewritten = any(name.startswith("@py_") for name in code.co_varnames)  # asserts, by pytest
    known = code.co_filename, future_flags(code)
    if not found or not (rewritten or code in _compiled(statement, module, *known)):
        raise Unsliceable(f"the source in {code.co_filename} is not that of its code", line)
    if len(found) > 1:
        # The innermost one: a lambda's instructions lie within those around it as well.
        found = [node for node in found if _holds(node, code)][-1:]
    if not found:
        raise Unsliceable("several functions stand on its line", line)
    return found[0]


@lru_cache(maxsize=64)
def _compiled(
    statement: ast.stmt, module: ast.Module, filename: str, flags: int
) -> list[types.CodeType]:
    """All code that a top-level statement of a module compiles to."""
    alone = ast.Module([*_imports(module), statement], [])
    return [*_codes_in(compile(alone, filename, "exec", flags, dont_inherit=True))]


def _holds(node: FunctionNode, code: types.CodeType) -> bool:
    """Whether the instructions of a code object have their places within the body of a lambda."""
    if not isinstance(node, ast.Lambda):
        return False
    begin = (node.body.lineno, node.body.col_offset)
    end = (node.body.end_lineno, node.body.end_col_offset)
    places = [
        (line, column, last_line, last)
        for line, last_line, column, last in code.co_positions()
        if line and column is not None and last_line and last  # others are the compiler's own
    ]
    return bool(places) and all(
        begin <= (line, column) and (last_line, last) <= end
        for line, column, last_line, last in places
    )


def code_of(around: types.CodeType, node: ast.FunctionDef | ast.Lambda) -> types.CodeType | None:
    """The code of a function that stands in another, or None if it is not found for sure."""
    name, line = getattr(node, "name", "<lambda>"), _first_line(node)
    found = [
        code
        for code in around.co_consts
        if isinstance(code, types.CodeType) and (code.co_name, code.co_firstlineno) == (name, line)
    ]
    if len(found) > 1:
        found = [code for code in found if _holds(node, code)]
    return found[0] if len(found) == 1 else None


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes_in(constant)


def _first_line(node: ast.AST) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    line: int = getattr(node, "lineno", 0)
    return min([line, *(decorator.lineno for decorator in decorators)])


def _class_around(qualified_name: str) -> str | None:
    """The innermost class whose body a function stands in, however deep."""
    names = qualified_name.split(".")
    for place in range(len(names) - 2, -1, -1):
        if names[place] != "<locals>" and names[place + 1] != "<locals>":
            return names[place]
    return None


def _refuse_frame_readers(node: FunctionNode) -> None:
    for call in ast.walk(node):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        name = call.func.id
        bare = name in _FRAME_READERS_WITHOUT_ARGUMENTS and not call.args and not call.keywords
        if name in _FRAME_READERS or bare:
            raise Unsliceable(f"{name}() looks at the names of the running function", call.lineno)


def _may_have_private_names(text: str) -> bool:
    """Whether a `_Mangler` may find something to do, which has to copy the whole function."""
    return not text.isascii() or _PRIVATE.search(text) is not None


_PRIVATE: Final = re.compile(r"(?<!\w)__\w*(?<!__)(?!\w)")


class _Mangler(ast.NodeTransformer):
    """Writes out private names (``__x`` in class ``C`` is ``_C__x``), as the compiler does."""

    def __init__(self, owner: str) -> None:
        stripped = owner.lstrip("_")
        self._prefix = f"_{stripped}" if stripped else ""

    def mangled(self, node: FunctionNode) -> FunctionNode:
        """A copy of a function with its names written out, but for its own."""
        node = copy.deepcopy(node)
        if not isinstance(node, ast.Lambda):
            node.name = "_"
        result: FunctionNode = self.visit(node)
        return result

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not self._prefix:
            return node
        for name in ("id", "attr", "arg", "name", "rest", "asname"):
            value = getattr(node, name, None)
            if isinstance(value, str) and not isinstance(node, ast.keyword):
                if self._mangled(value) != value and isinstance(node, ast.FunctionDef):
                    raise Unsliceable("it defines a function with a private name", node.lineno)
                setattr(node, name, self._mangled(value))
        if isinstance(node, ast.Global | ast.Nonlocal):
            node.names = [self._mangled(name) for name in node.names]
        return super().generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        # Its body has its own prefix, which the compiler adds.
        if self._mangled(node.name) != node.name:
            raise Unsliceable("it defines a class with a private name", node.lineno)
        for field in ("decorator_list", "bases", "keywords"):
            setattr(node, field, [self.visit(part) for part in getattr(node, field)])
        return node

    def _mangled(self, name: str) -> str:
        private = name.startswith("__") and not name.endswith("__") and "." not in name
        return self._prefix + name if private else name
