"""Calls: which are carried out while slicing, which are laid out flat, and which are the host's."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing import (
    attributes,
    classes,
    contents,
    items,
    iterators,
    library,
    modes,
    named_tuples,
    numbers,
    program,
    received,
    splits,
)
from dilim.slicing.attributes import is_dilims, is_module, is_traced
from dilim.slicing.checked_ints import is_float, truncated
from dilim.slicing.container_calls import is_method_of_fresh, is_unknown, method_of_outer, of_fresh
from dilim.slicing.errors import OnHost, attempted
from dilim.slicing.inlining import Given, inline
from dilim.slicing.iterators import ITERATORS
from dilim.slicing.made_functions import Derivative, Inner, derivative, refuse
from dilim.slicing.number_calls import extreme, made_of_numbers
from dilim.slicing.numbers import Number
from dilim.slicing.operators import PLAIN, is_constant, needs_value
from dilim.slicing.values import (
    Host,
    Named,
    Range,
    View,
    class_of,
    holds_host,
    holds_number,
    is_among,
    owner_of,
)
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

Compute = Callable[[], Any]

_PURE: Final = frozenset(
    {len, range, enumerate, zip, tuple, isinstance, issubclass, type, abs, min, max, sum, reversed,
     sorted, round, callable, divmod, any, all, slice, str, repr}
)  # fmt: skip
_SHALLOW: Final = (len, tuple, enumerate, zip, reversed)
"""Builtins that do not look at the items of what they are given."""
_ITERATING: Final = (len, tuple, enumerate, zip, min, max, sum, sorted, any, all)
"""Builtins that look at nothing but the items of what they are given."""
_CALLABLES: Final = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)
_OF_CLASSES: Final = (isinstance, issubclass, type, callable)
_FUNCTIONS: Final = (types.FunctionType, types.MethodType, Inner)
_MAKERS: Final = frozenset({list, dict})
_SEQUENCES: Final = (list, tuple, Named, dict, range, View)
_CONVERSIONS: Final = frozenset({int, float, bool})
_READS: Final = {"item": None, "__float__": float, "__int__": int, "__bool__": bool}
"""Methods that give the number of a tensor -> of which kind; None for that of its dtype."""


def prepare(slicer: Slicer, step: program.Step, node: ast.Call) -> Compute:
    """How to carry out a call.

    Raises:
        OnHost: the host has to.
    """
    function = slicer.operand(node.func)
    if function.__class__ is Host:
        raise OnHost("a function of the host is called")
    args, keywords = _arguments(slicer, node)
    if modes.is_switch(function) and not any(map(holds_host, (*args, *keywords.values()))):
        return modes.prepare(slicer, function, args, keywords)
    if isinstance(function, Derivative):
        refuse(*args, *keywords.values())
        return library.prepare(slicer, function.function, node, args, keywords)
    made = derivative(slicer, step, function, args, keywords)
    if made is not None:
        return lambda: made
    own = _own_forward(slicer, function) if is_traced(function) else None
    if own is not None:
        function = own
    elif is_traced(function):
        refuse(*args, *keywords.values())
        simple = _read_of_tensor(function) or made_of_numbers(
            slicer, function, node, args, keywords
        )
        return simple or library.prepare(slicer, function, node, args, keywords)
    if not isinstance(function, _FUNCTIONS):
        function = _called_method(slicer, function) or function
    if its_own := named_tuples.method(slicer, function, args, keywords):
        return its_own
    users = isinstance(function, _FUNCTIONS)
    if not users:
        refuse(*args, *keywords.values())
    if function is dict and not args and any(map(received.is_number, keywords.values())):
        return items.dict_of(slicer, node, step.writes[0], keywords)
    if any(x.__class__ is Host for x in (*args, *keywords.values())):
        if not users:
            raise OnHost("a host value is given to a function")
        args, keywords = _with_names(slicer, node, args, keywords)
    if is_among(function, _CONVERSIONS) and len(args) == 1 and not keywords:
        if function is int and is_float(args[0]):
            return lambda: truncated(slicer, step, args[0])
        return lambda: _converted(function, args[0])
    if function is hasattr and len(args) == 2 and not keywords and args[1].__class__ is str:
        found = attributes.has(slicer, *args)
        return lambda: found
    if function is range and args and not keywords:
        return lambda: _range(args)
    if is_method_of_fresh(slicer, function):
        return of_fresh(slicer, function, args, keywords)
    method = method_of_outer(slicer, function, args)
    if method is not None and not keywords:
        return method
    if is_among(function, _MAKERS):
        if any(x.__class__ not in _SEQUENCES for x in args) or is_unknown(args):
            raise OnHost
        args = [_entered(slicer, x, True) for x in args]
        return lambda: slicer.make(attempted(function, *args, **keywords))
    if _is_pure(function):
        return lambda: _pure(slicer, function, args, keywords)
    if classes.is_named(function):
        return lambda: named_tuples.make(slicer, function, args, keywords)
    if users and not attributes.is_hosts(function):
        return lambda: inline(slicer, step, function, args, keywords)
    raise OnHost(f"{described(function)} is called")


def _read_of_tensor(function: Any) -> Compute | None:
    """How to read the number of a tensor, where a function is a method that does."""
    owner = owner_of(function)
    if not isinstance(owner, Tensor) or function.__name__ not in _READS:
        return None
    return lambda: _converted(_READS[function.__name__], owner)


def _with_names(
    slicer: Slicer, node: ast.Call, args: list[Any], keywords: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a user's function, of which some are values of the host."""
    if any(isinstance(x, ast.Starred) for x in node.args) or any(
        x.arg is None for x in node.keywords
    ):
        raise OnHost("a host value is given to a function")
    for x, atom in zip(args, node.args, strict=True):
        splits.tell_apart(slicer, getattr(atom, "id", ""), x)
    pairs = [(str(x.arg), x.value) for x in node.keywords]
    positional = [_given(x, atom) for x, atom in zip(args, node.args, strict=True)]
    return positional, {key: _given(keywords[key], atom) for key, atom in pairs}


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


def _own_forward(slicer: Slicer, function: Any) -> Any:
    """What a call of a module of dilim's runs, where that has parts of the user's to be run."""
    is_held = is_module(type(function)) and contents.holds_users(slicer, function)
    return _called_method(slicer, function) if is_held else None


def _called_method(slicer: Slicer, function: Any) -> Any:
    """What a call of an object runs, where that is Python code; else None."""
    kind, entry = type(function), slicer.entry
    found = attributes.in_classes(kind, "__call__")
    if not isinstance(found, types.FunctionType):
        return None
    entry.guard(f"{entry.constant(kind)}.__call__ is {entry.constant(found)}")
    if found.__module__ == "dilim.nn.module":  # which calls this
        return attributes.of_instance(slicer, function, "forward")()
    return types.MethodType(found, function)


def _arguments(slicer: Slicer, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    for x in node.args:
        if isinstance(x, ast.Starred):
            value = slicer.atom(x.value)
            if value.__class__ not in (tuple, Named, list, View):
                raise OnHost("starred arguments of the host")
            args.extend(contents.opened(slicer, value))
        else:
            args.append(slicer.operand(x))
    keywords: dict[str, Any] = {}
    for keyword in node.keywords:
        value = slicer.operand(keyword.value)
        if keyword.arg is None:
            if value.__class__ is not dict:
                raise OnHost("keyword arguments of the host")
            keywords.update(contents.opened(slicer, value))
        else:
            keywords[keyword.arg] = value
    return args, keywords


def _converted(kind: Any, x: Any) -> Any:
    if x.__class__ is Number:
        return attempted(numbers.converted, kind, x)
    if isinstance(x, Tensor):
        if x.size != 1:
            raise OnHost("a number of a tensor with several elements")
        return numbers.from_tensor(x, kind)
    if x.__class__ in (int, float, bool, str):
        return attempted(kind, x)
    raise OnHost


def _range(args: list[Any]) -> Any:
    if all(map(is_constant, args)):
        return attempted(range, *args)
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
        if function in (max, min) and len(args) > 1 and not keywords:
            return attempted(extreme, function, args)
        if function is type and len(args) == 1:
            return numbers.kind_of(args[0])
        if function is isinstance and args[0].__class__ is Number and classes.are_plain(args[1]):
            return issubclass(args[0].kind, args[1])
        raise OnHost("a builtin of a number of the program")
    if is_unknown(given):
        raise OnHost
    if function is len and len(args) == 1 and args[0].__class__ in (list, dict):
        if id(args[0]) not in slicer.fresh:
            contents.counted(slicer, args[0])
        return len(args[0])
    if View in map(type, given) and not is_among(function, _ITERATING):
        raise OnHost("an object that shows a dict is looked at")
    if is_among(function, _OF_CLASSES):
        return _of_classes(slicer, function, args, keywords)
    if Named in map(type, given) and not is_among(function, _ITERATING):
        raise OnHost("a named tuple is looked at")
    is_shallow = is_among(function, _SHALLOW)
    args = [_entered(slicer, x, is_shallow, function) for x in args]
    keywords = {key: _entered(slicer, x, is_shallow) for key, x in keywords.items()}
    given = (*args, *keywords.values())
    if not all(_is_plain(x, is_shallow) for x in given):
        raise OnHost("an object of the user's is looked at")
    if not is_among(function, _SHALLOW) and any(map(holds_number, given)):
        raise OnHost("a builtin of numbers of the program")
    if function in (str, repr, sorted, min, max, any, all) and any(
        isinstance(x, Tensor) for x in _flat(given)
    ):
        raise OnHost("a builtin that looks into tensors")
    result = attempted(function, *args, **keywords)
    if result.__class__ in ITERATORS:
        return iterators.made(slicer, result)
    return slicer.make(result) if result.__class__ in (list, dict) else result


def _of_classes(slicer: Slicer, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    if len(args) == 2 and not keywords and function is isinstance:
        return classes.is_instance(slicer, *args)
    if len(args) == 2 and not keywords and function is issubclass:
        return classes.is_subclass(slicer, *args)
    if len(args) == 1 and not keywords and function is type:
        return class_of(*args)
    if len(args) == 1 and not keywords and function is callable and type(args[0]) in _CALLABLES:
        return True
    raise OnHost(f"{function.__name__} asks an object of the user's")


def _entered(slicer: Slicer, x: Any, is_shallow: bool, function: Any = None) -> Any:
    """What a builtin is given: containers as the region sees them, and all else as it stays.

    Args:
        slicer: who interprets.
        x: what it is given.
        is_shallow: whether it does not look at the items.
        function: the builtin.
    """
    if x.__class__ is Named:
        return tuple(x)
    if x.__class__ in ITERATORS:
        left = iterators.taken(slicer, x)
        return left if is_shallow else attempted(tuple, left)
    is_iterated = is_among(function, (enumerate, zip, reversed))
    if isinstance(x, Tensor) and x.shape and is_iterated and function is not reversed:
        return iterators.Rows(x)
    if x.__class__ in (list, dict, View):
        found = contents.opened(slicer, x)
        return iterators.copied(slicer, found, x) if is_iterated and found is not x else found
    return contents.argument(slicer, x) if attributes.is_dilims(type(x)) else x


def _is_plain(x: Any, is_shallow: bool) -> bool:
    """Whether a builtin that is given an object runs no code of the user's.

    Args:
        x: the object.
        is_shallow: whether the builtin does not look at its items.
    """
    kind = x.__class__
    if kind in (tuple, list, dict) and not is_shallow:
        parts = [*x, *x.values()] if kind is dict else x
        return all(_is_plain(part, is_shallow) for part in parts)
    known = kind in PLAIN or kind in (list, dict) or kind in ITERATORS
    return known or isinstance(x, Tensor) or is_dilims(kind)


def _flat(values: Any, depth: int = 0) -> list[Any]:
    found: list[Any] = []
    for x in values:
        if x.__class__ in (list, tuple) and depth < 4:
            found.extend(_flat(x, depth + 1))
        else:
            found.append(x)
    return found
