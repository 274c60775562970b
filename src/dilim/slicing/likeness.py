"""What a compiled function has of the function that it stands for.

It is a method where that is one, is copied and pickled as that is, and has its code and defaults.
"""

from __future__ import annotations

import copy
import functools
import importlib
import types
from collections.abc import Callable, Mapping
from typing import Any

from dilim.slicing.fronts import called, front, given
from dilim.slicing.levels import STACK


class _Shared:
    """An attribute of the function itself."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else getattr(instance._function, self._name)

    def __set__(self, instance: Any, value: Any) -> None:
        setattr(instance._function, self._name, value)
        instance.begin_anew()


class Likeness:
    """Stands for a function or bound method.

    Args:
        function: which.
        options: for another one that stands for the same.

    Attributes:
        __call__: calls the function.
    """

    # No method of this class is called in between, so that none stands in tracebacks.
    __slots__ = ("__call__", "__dict__", "__weakref__")
    __call__: Callable[..., Any]
    __code__ = _Shared("__code__")
    __defaults__ = _Shared("__defaults__")
    __kwdefaults__ = _Shared("__kwdefaults__")
    __closure__ = _Shared("__closure__")
    __globals__ = _Shared("__globals__")

    def __init__(self, function: Any, **options: Any) -> None:
        functools.update_wrapper(self, function)
        self._bound = function.__self__ if isinstance(function, types.MethodType) else None
        self._function: Any = getattr(function, "__func__", function)
        self._options = options

    def _stand_for(self, call: Callable[[tuple[Any, ...]], Any]) -> None:
        """Do something with the values of the parameters when the function is called."""
        self._source = self._function.__code__
        self._front = front(self._function, call)
        self._enter_by(self._front)

    def _enter_by(self, function: Any) -> None:
        bound = self._bound
        self.__call__ = function if bound is None else types.MethodType(function, bound)

    def _itself(self, values: tuple[Any, ...]) -> Any:
        """Call the function itself, and that again wherever it calls itself."""
        self._enter_by(self._function)
        STACK.widen()
        try:
            return called(self._function, values)
        finally:
            STACK.narrow()
            self._enter_by(self._front)

    def _renewed(self, values: tuple[Any, ...]) -> Any:
        """Call the function, whose code was replaced."""
        arguments, keywords = given(self._source, values)
        self.begin_anew()
        return self._front(*arguments, **keywords)

    def begin_anew(self) -> None:
        """The code or the parameters of the function have changed."""
        raise NotImplementedError

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        code = self._function.__code__
        place = f"{code.co_filename}:{code.co_firstlineno}"
        return f"<compiled function {self._function.__qualname__}, {place}>"

    def __copy__(self) -> Likeness:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Likeness:
        if self._bound is None:
            return self
        bound = types.MethodType(self._function, copy.deepcopy(self._bound, memo))
        return type(self)(bound, **self._options)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By name, as functions are; where that is not its own, by that of its function."""
        if self._bound is not None:
            return _made, (type(self), types.MethodType(self._function, self._bound), self._options)
        name: str = vars(self)["__qualname__"]
        if _found(vars(self)["__module__"], name) is self:
            return name
        return _made, (type(self), self._function, self._options)


def _made(kind: Any, function: Any, options: Mapping[str, Any]) -> Any:
    if isinstance(getattr(function, "__func__", None), Likeness):
        function = types.MethodType(function.__func__._function, function.__self__)
    return kind(function, **options)


def _found(module: str, name: str) -> Any:
    """What is found under a qualified name; None for nothing."""
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (AttributeError, ImportError, ValueError):
        return None
