"""Calls: which are carried out while slicing, which are laid out flat, and which are the host's."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dilim.ir.types import Type
from dilim.slicing import numbers, program
from dilim.slicing.attributes import is_dilims, is_module
from dilim.slicing.errors import OnHost, Restart
from dilim.slicing.inlining import Given, inline
from dilim.slicing.numbers import Number
from dilim.slicing.operators import check_depth, needs_value
from dilim.slicing.values import Array, Host, Range, holds_host, holds_number, is_among, owner_of
from dilim.tensors.creation import tensor
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

Compute = Callable[[], Any]

_PURE: Final = frozenset(
    {len, range, enumerate, zip, tuple, isinstance, issubclass, type, abs, min, max, sum, reversed,
     sorted, round, hasattr, getattr, callable, divmod, any, all, slice, str, repr}
)  # fmt: skip
_SHALLOW: Final = (len, tuple, enumerate, zip, isinstance, type, reversed, callable)
"""Builtins that do not look at the items of what they are given."""
_MAKERS: Final = frozenset({list, dict})
_CONVERSIONS: Final = frozenset({int, float, bool})
_COPIES: Final = (tensor, Tensor)
"""What makes a tensor with the numbers of an array."""
_READS: Final = {"item": None, "__float__": float, "__int__": int, "__bool__": bool}
"""Methods that give the number of a tensor -> of which kind; None for that of its dtype."""


def prepare(slicer: Slicer, step: program.Step, node: ast.Call) -> Compute:
    """How to carry out a call.

    Raises:
        OnHost: the host has to.
    """
    function = slicer.atom(node.func)
    if function.__class__ is Host:
        raise OnHost("a function of the host is called")
    if _is_traced(function):
        return _library(slicer, function, node)
    args, keywords = _arguments(slicer, node)
    users = isinstance(function, types.FunctionType | types.MethodType)
    if any(x.__class__ is Host for x in (*args, *keywords.values())):
        starred = any(isinstance(x, ast.Starred) for x in node.args)
        if not users or starred or any(keyword.arg is None for keyword in node.keywords):
            raise OnHost("a host value is given to a function")
        args = [_given(x, atom) for x, atom in zip(args, node.args, strict=True)]
        keywords = {
            keyword.arg: _given(keywords[keyword.arg], keyword.value)
            for keyword in node.keywords
            if keyword.arg is not None
        }
    if is_among(function, _CONVERSIONS) and len(args) == 1 and not keywords:
        return lambda: _converted(function, args[0])
    if function is range:
        return lambda: _range(args)
    if _is_method_of_fresh(slicer, function):
        return _fresh_method(slicer, function, args, keywords)
    if is_among(function, _MAKERS):
        if any(x.__class__ not in (list, tuple, dict, range) for x in args) or _unknown(args):
            raise OnHost
        return lambda: slicer.make(function(*args, **keywords))
    if _is_pure(function):
        return lambda: _pure(slicer, function, args, keywords)
    if users:
        return lambda: inline(slicer, step, function, args, keywords)
    method = _called_method(function)
    if method is not None:
        return lambda: inline(slicer, step, method, args, keywords)
    raise OnHost(f"{described(function)} is called")


def _given(value: Any, atom: ast.expr) -> Any:
    """An argument of a user's function: a value of the host with the name that has it."""
    return Given(value.kind, getattr(atom, "id", "")) if value.__class__ is Host else value


def described(function: Any) -> str:
    """The name of a function, without looking into objects of the user's."""
    if isinstance(
        function, types.FunctionType | types.BuiltinFunctionType | types.MethodType | type
    ):
        return str(function.__qualname__)
    return type(function).__name__


def _called_method(function: Any) -> types.MethodType | None:
    """What a call of an object of a user's class runs, where that is Python code."""
    kind = type(function)
    name = "forward" if is_module(kind) else "__call__"
    for base in kind.__mro__:
        found = base.__dict__.get(name)
        if isinstance(found, types.FunctionType):
            return types.MethodType(found, function)
    return None


def _is_traced(function: Any) -> bool:
    owner = owner_of(function)
    if isinstance(owner, Tensor):
        return True
    if owner is not None and not isinstance(owner, types.ModuleType):
        kind = owner if isinstance(owner, type) else type(owner)
        return is_dilims(kind)
    if isinstance(function, type):
        return function is Tensor or function.__module__ == "dilim.tensors.tape"
    if is_dilims(type(function)):
        return True
    if not isinstance(function, types.FunctionType | types.BuiltinFunctionType):
        return False
    module = function.__module__ or ""
    return module == "dilim" or module.startswith("dilim.")


def _arguments(slicer: Slicer, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    for x in node.args:
        if isinstance(x, ast.Starred):
            value = slicer.atom(x.value)
            if value.__class__ not in (tuple, list):
                raise OnHost("starred arguments of the host")
            args.extend(value)
        else:
            args.append(slicer.atom(x))
    keywords: dict[str, Any] = {}
    for keyword in node.keywords:
        value = slicer.atom(keyword.value)
        if keyword.arg is None:
            if value.__class__ is not dict or id(value) not in slicer.fresh:
                raise OnHost("keyword arguments of the host")
            keywords.update(value)
        else:
            keywords[keyword.arg] = value
    return args, keywords


def _unknown(values: Any) -> bool:
    return any(x.__class__ in (Number, Range) or holds_host(x) for x in values)


# --- the library ----------------------------------------------------------------------------


def _library(slicer: Slicer, function: Any, node: ast.Call) -> Compute:
    """A call of dilim's own code, which is written to be traced."""
    args, keywords = _arguments(slicer, node)
    names: list[Any] = [getattr(x, "id", None) for x in node.args]
    names += [getattr(x.value, "id", None) for x in node.keywords]
    given = [*args, *keywords.values()]
    for x, name in zip(given, names, strict=False):
        if x.__class__ is Host and (x.kind is None or name is None or len(given) != len(names)):
            raise OnHost("a host value is given to a tensor operation")
        if x.__class__ is not Host and holds_host(x):
            raise OnHost("a host value is given to a tensor operation")
        if x.__class__ is Host and not isinstance(x.kind, Type):
            if isinstance(x.kind, Array) and len(given) == 1 and is_among(function, _COPIES):
                return lambda: _copied(slicer, name, x.kind)
            raise OnHost("a host value is given to a tensor operation")
    owner = owner_of(function)
    name = getattr(function, "__name__", "")
    if isinstance(owner, Tensor) and name in _READS:
        return lambda: _converted(_READS[name], owner)

    def compute() -> Any:
        positional = [
            slicer.receive(n, x.kind) if x.__class__ is Host else x
            for x, n in zip(args, names, strict=False)
        ]
        positional += args[len(positional) :]
        named = {
            k: slicer.receive(n, x.kind) if x.__class__ is Host else x
            for (k, x), n in zip(keywords.items(), names[len(args) :], strict=False)
        }
        result = _called(slicer, function, positional, named)
        shared = [
            x._storage
            for x, known in zip((*positional, *named.values()), given, strict=True)
            if known.__class__ is Host
        ]
        if any(isinstance(x, Tensor) and x._storage in shared for x in _flat([result])):
            raise OnHost("a function that gives what the host has")
        return result

    return compute


def _copied(slicer: Slicer, name: str, kind: Array) -> Tensor:
    """A new tensor with the numbers of an array of the host."""
    given = slicer.receive(name, kind)
    return slicer.trace.symbol(slicer.trace.value(given._data))


def _called(slicer: Slicer, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    for x in (*args, *keywords.values()):
        if x.__class__ is Number:
            if x.origin is not None:
                raise Restart(x.origin)
            raise OnHost("a number of the program is given to a tensor operation")
        if x.__class__ is Range:
            raise OnHost("a range of the program")
        if isinstance(x, types.FunctionType | types.MethodType) and not _is_traced(x):
            raise OnHost("a function of the user is given to a tensor operation")
    owner = owner_of(function)
    if owner is None:
        owner = function
    clears = getattr(function, "__name__", "") == "zero_grad"
    if not clears:
        _check_owner(owner)
    for x in (owner, *args, *keywords.values()):
        slicer.know_leaves(x)
        slicer.rely_on(x)
    if clears:
        leaves = owner.parameters() if callable(owner.parameters) else owner.parameters
        for leaf in leaves:
            slicer.clear_grad(leaf)
    elif _looks_at_gradients(owner):
        for x in (owner, *args):
            for leaf in _leaves_of(x):
                slicer.use_grad(leaf)
    result = function(*args, **keywords)
    return slicer.in_graph(result)


def _looks_at_gradients(owner: Any) -> bool:
    module = getattr(owner, "__module__", None) or type(owner).__module__
    return str(module).startswith("dilim.optim")


def _leaves_of(x: Any) -> list[Tensor]:
    found = getattr(x, "parameters", None) if not isinstance(x, list | tuple) else x
    items = found() if callable(found) else found
    return [leaf for leaf in items or () if isinstance(leaf, Tensor)]


def _check_owner(owner: Any) -> None:
    """Refuse modules whose parts are the user's code, which must not run while slicing."""
    modules = getattr(owner, "modules", None)
    if not callable(modules) or isinstance(owner, Tensor):
        return
    for module in modules():
        inner = module[1] if isinstance(module, tuple) else module
        if not is_dilims(type(inner)):
            raise OnHost("a module with parts that are the user's own")


def _converted(kind: Any, x: Any) -> Any:
    if x.__class__ is Number:
        return numbers.converted(kind, x)
    if isinstance(x, Tensor):
        if x.size != 1:
            raise OnHost("a number of a tensor with several elements")
        return numbers.from_tensor(x, kind)
    if x.__class__ in (int, float, bool, str):
        return kind(x)
    raise OnHost


def _range(args: list[Any]) -> Any:
    if not _unknown(args):
        return range(*args)
    parts = [0, args[0], 1] if len(args) == 1 else [*args, 1][:3]
    start, stop, step = parts
    if step.__class__ is Number:
        raise needs_value(step)
    if (
        step.__class__ is not int
        or step == 0
        or any(not numbers.is_number(x) or numbers.kind_of(x) is float for x in (start, stop))
    ):
        raise OnHost("a range with a step that is not known")
    return Range(start, stop, step)


def _is_pure(function: Any) -> bool:
    if is_among(function, _PURE):
        return True
    owner = owner_of(function)
    return isinstance(function, types.BuiltinFunctionType) and (
        owner.__class__ in (str, tuple, range, bytes)
        or (owner.__class__ is types.ModuleType and owner.__name__ in ("math", "operator"))
    )


def _pure(slicer: Slicer, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    given = (*args, *keywords.values())
    if any(x.__class__ is Number for x in given):
        if function is abs:
            return numbers.unary(abs, args[0])
        raise OnHost("a builtin of a number of the program")
    if _unknown(given) or any(_is_foreign(slicer, x) for x in given):
        raise OnHost
    if not is_among(function, _SHALLOW) and any(map(holds_number, given)):
        raise OnHost("a builtin of numbers of the program")
    if function in (str, repr, sorted, min, max, any, all) and any(
        isinstance(x, Tensor) for x in _flat(given)
    ):
        raise OnHost("a builtin that looks into tensors")
    if function in (hasattr, getattr):
        raise OnHost
    if function is sum and any(x.__class__ is Number for x in _flat(given)):
        raise OnHost
    result = function(*args, **keywords)
    if result.__class__ in (enumerate, zip, reversed):
        slicer.makings[id(result)] = result
        if slicer.current is not None:
            slicer.made_by[id(result)] = slicer.current
    return slicer.make(result) if result.__class__ in (list, dict) else result


def _is_foreign(slicer: Slicer, x: Any) -> bool:
    """Whether an object may run code of the user when it is looked at."""
    if x.__class__ in (list, dict):
        if id(x) in slicer.fresh:
            return False
        slicer.look_into(x)
        path = slicer.entry.path(x)
        slicer.entry.guard(f"len({path}) == {len(x)}")
        pairs = list(x.items() if isinstance(x, dict) else enumerate(x))
        for key, item in pairs:
            slicer.outside(item, f"{path}[{key!r}]")
        return any(item.__class__ in (int, float) for _, item in pairs)
    return False


def _flat(values: Any, depth: int = 0) -> list[Any]:
    found: list[Any] = []
    for x in values:
        if x.__class__ in (list, tuple) and depth < 4:
            found.extend(_flat(x, depth + 1))
        else:
            found.append(x)
    return found


def _is_method_of_fresh(slicer: Slicer, function: Any) -> bool:
    owner = owner_of(function)
    return id(owner) in slicer.fresh and isinstance(function, types.BuiltinMethodType)


def _fresh_method(
    slicer: Slicer, function: Any, args: list[Any], keywords: dict[str, Any]
) -> Compute:
    if _unknown(args) and any(x.__class__ is not Number for x in args if _unknown([x])):
        raise OnHost
    name = function.__name__
    if name not in ("append", "extend", "items", "keys", "values", "get", "pop", "insert", "copy"):
        raise OnHost(f"{name} of a list or dict")
    if name in ("append", "extend", "pop", "insert"):
        check_depth(slicer, function.__self__)

    def compute() -> Any:
        result = function(*args, **keywords)
        if result.__class__ in (type({}.items()), type({}.keys()), type({}.values())):
            return tuple(result)
        return slicer.make(result) if result.__class__ in (list, dict) else result

    return compute
