"""What can be seen of objects, in an order and in words that two runs can be compared by."""

from __future__ import annotations

import random
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

import numpy as np

from dilim.slicing.attributes import HEAP_TYPE
from dilim.slicing.reach import is_opaque, is_users, surroundings_of
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor

MOST: Final = 200_000
"""Objects that are looked at."""
_NUMBERS: Final = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), range, slice)
_LONGEST: Final = 200  # characters of a value that is shown
_MOST_NUMBERS: Final = 16  # of an array that is shown


@dataclass(frozen=True, slots=True)
class Look:
    """What is seen of one object.

    Attributes:
        path: where it is: ``result[1].weight``.
        text: what it is; numbers with all their digits.
        array: its numbers, if there are many.
    """

    path: str
    text: str
    array: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two runs differ first.

    Attributes:
        path: of what.
        first: what is there after the first run.
        second: what is there after the second.
    """

    path: str
    first: str
    second: str


class Picture:
    """What can be seen of objects, and of all that they refer to.

    Args:
        roots: (path, object) pairs.

    Attributes:
        looks: in order.
    """

    def __init__(self, roots: Iterable[tuple[str, Any]]) -> None:
        self.looks: list[Look] = []
        self._known: dict[int, str] = {}
        self._kept: list[Any] = []  # so that no identity is used twice
        self._memory: dict[int, str] = {}
        for path, value in roots:
            todo = [(path, value)]
            while todo and len(self.looks) < MOST:
                path, value = todo.pop()
                todo += reversed(list(self._look(path, value)))
        self.looks += _random_numbers()

    def _say(self, path: str, text: str, array: np.ndarray | None = None) -> None:
        self.looks.append(Look(path, text, array))

    def _look(self, path: str, value: Any) -> Iterable[tuple[str, Any]]:
        """Look at one object; what it refers to."""
        kind = type(value)
        if kind in _NUMBERS:
            self._say(path, repr(value))
            return ()
        if isinstance(value, tuple):
            self._say(path, f"a {kind.__name__} of {len(value)}")
            return _numbered(path, value)
        known = self._known.setdefault(id(value), path)
        if known != path:
            self._say(path, f"the same object as {known}")
            return ()
        self._kept.append(value)
        if isinstance(value, Tensor):
            return self._tensor(path, value)
        if isinstance(value, np.ndarray | np.generic):
            self._say(path, f"{kind.__name__} {value.dtype}{list(value.shape)}", np.array(value))
            return ()
        if isinstance(value, types.FunctionType):
            self._say(path, f"function {value.__qualname__}")
            around = surroundings_of(value) if is_users(value) else ()
            return [(f"{_owner(path)}{name}", inner) for name, inner in around]
        if isinstance(value, types.MethodType | types.BuiltinMethodType):
            self._say(path, f"method {value.__name__}")
            owner = value.__self__
            return () if isinstance(owner, types.ModuleType) else [(f"{path}.__self__", owner)]
        return self._object(path, value, kind)

    def _object(self, path: str, value: Any, kind: type) -> Iterable[tuple[str, Any]]:
        if isinstance(value, type | types.ModuleType):
            self._say(path, f"{kind.__name__} {value.__name__}")
            return _attributes(path, vars(value)) if is_users(value) else ()
        if is_opaque(kind):
            self._say(path, _plain_repr(value))
            wrapped = getattr(value, "__dict__", {}).get("__wrapped__")
            return () if wrapped is None else [(f"{path}.__wrapped__", wrapped)]
        if isinstance(value, Generator):
            return [(f"{path}.state", value.state)]
        if _is_optimizer(kind):
            self._say(path, kind.__name__)
            state = [(f"{path}.{name}", x) for name, x in value.state_dict().items()]
            return [*state, (f"{path}.parameters", value.parameters)]
        if isinstance(value, list):
            self._say(path, f"a {kind.__name__} of {len(value)}")
            return [*_numbered(path, list.__iter__(value)), *_fields(path, value)]
        if isinstance(value, dict):
            self._say(path, f"a {kind.__name__} with {_keys(value)}")
            items = [(f"{path}[{key!r}]", x) for key, x in dict.items(value)]
            return [*items, *_fields(path, value)]
        if isinstance(value, set | frozenset):
            self._say(path, f"a {kind.__name__} with {sorted(map(_key, value))}")
            return ()
        base = next((base for base in _NUMBERS if isinstance(value, base)), None)
        if base is not None:
            text = base.__repr__(value)  # type: ignore[call-arg]
            self._say(path, f"{kind.__qualname__} {text}")
            return _fields(path, value)
        if kind.__flags__ & HEAP_TYPE:
            self._say(path, f"an object of {kind.__qualname__}")
            return _fields(path, value)
        self._say(path, _plain_repr(value))
        return ()

    def _tensor(self, path: str, x: Tensor) -> Iterable[tuple[str, Any]]:
        facts = [f"tensor {x.dtype.name}{list(x.shape)}"]
        facts += ["with requires_grad"] * x.requires_grad + ["that was computed"] * (not x.is_leaf)
        facts += [f"of class {type(x).__name__}"] * (type(x) is not Tensor)
        facts += [f"named {x.name}"] * (x.name is not None)
        first = self._memory.setdefault(id(x._storage), path)
        facts += [f"over the memory of {first}"] * (first != path)
        self._kept.append(x._storage)
        try:
            array = np.array(x.detach().numpy())
        except Exception as error:  # a tensor of a graph that has got out
            self._say(path, f"a tensor that cannot be read: {type(error).__name__}")
            return ()
        self._say(path, " ".join(facts), array)
        return () if x.grad is None else [(f"{path}.grad", x.grad)]


def difference(first: Sequence[Look], second: Sequence[Look]) -> Difference | None:
    """Where two pictures differ first, or None."""
    for a, b in zip_longest(first, second):
        if a is None or b is None or a.path != b.path:
            return _missing(a, b, first, second)
        if a.text != b.text:
            return Difference(a.path, _value(a), _value(b))
        if a.array is not None:
            place = _first_unlike(a.array, b.array)
            if place is not None and b.array is not None:
                where = f"{a.path}[{', '.join(map(str, place))}]" if place else a.path
                return Difference(where, repr(a.array[place].item()), repr(b.array[place].item()))
    return None


def _missing(
    a: Look | None, b: Look | None, first: Sequence[Look], second: Sequence[Look]
) -> Difference:
    """What one run has and the other has not."""
    for look, others, is_first in ((a, second, True), (b, first, False)):
        if look is not None and not any(other.path == look.path for other in others):
            values = (_value(look), "nothing") if is_first else ("nothing", _value(look))
            return Difference(look.path, *values)
    path = a.path if a is not None else b.path if b is not None else ""
    return Difference(path, *(x.path if x is not None else "nothing" for x in (a, b)))


def _value(look: Look) -> str:
    text = look.text
    if look.array is not None and look.array.size <= _MOST_NUMBERS:
        text = f"{text} {look.array.tolist()}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _first_unlike(a: np.ndarray, b: np.ndarray | None) -> tuple[int, ...] | None:
    """The position of the first element whose bits differ; all NaNs are one."""
    if b is None or a.dtype != b.dtype or a.shape != b.shape:
        return ()
    if a.dtype == object:
        unlike = np.array([repr(x) != repr(y) for x, y in zip(a.flat, b.flat, strict=True)], bool)
        unlike = unlike.reshape(a.shape)
    elif a.dtype.kind in "fc":
        parts = [(a.real, b.real), (a.imag, b.imag)] if a.dtype.kind == "c" else [(a, b)]
        unlike = np.zeros(a.shape, bool)
        for x, y in parts:
            same = (x == y) & (np.signbit(x) == np.signbit(y)) | np.isnan(x) & np.isnan(y)
            unlike = unlike | ~same
    else:
        unlike = a != b
    places = np.argwhere(unlike)
    return tuple(map(int, places[0])) if len(places) else None


def text_looks(path: str, text: str) -> list[Look]:
    """Printed text, line by line."""
    return [Look(f"{path}, line {k}", repr(x)) for k, x in enumerate(text.split("\n"), 1)]


def _random_numbers() -> Iterator[Look]:
    """The states of the generators of Python and NumPy."""
    yield Look("the state of Python's random numbers", f"state {hash(random.getstate()):x}")
    _, words, position, *_ = np.random.get_state()  # noqa: NPY002
    yield Look("the state of NumPy's random numbers", f"position {position}", np.array(words))


def _numbered(path: str, values: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    return [(f"{path}[{k}]", value) for k, value in enumerate(values)]


def _attributes(path: str, table: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return [(f"{path}.{name}", value) for name, value in table.items() if not name.startswith("__")]


def _fields(path: str, value: Any) -> Iterable[tuple[str, Any]]:
    """The attributes of an object, and its class if that is the user's."""
    table = getattr(value, "__dict__", {})
    found = [*_attributes(path, table)] if type(table) is dict else []
    for base in type(value).__mro__:
        for name, member in vars(base).items():
            if isinstance(member, types.MemberDescriptorType):
                try:
                    found.append((f"{path}.{name}", member.__get__(value)))
                except AttributeError:
                    continue
    return [*found, *([(f"type({path})", type(value))] if is_users(type(value)) else [])]


def _owner(path: str) -> str:
    return "" if path.isidentifier() else f"{path}: "


def _plain_repr(value: Any) -> str:
    """What an object says of itself, except where that is its address."""
    text = repr(value)
    return type(value).__qualname__ if " at 0x" in text else text


def _is_optimizer(kind: type) -> bool:
    return any(base.__module__ == "dilim.optim.optimizer" for base in kind.__mro__)


def _keys(table: dict[Any, Any]) -> str:
    return f"[{', '.join(map(_key, dict.keys(table)))}]"


def _key(value: Any) -> str:
    """A key or member of a set; only plain ones are told apart."""
    return repr(value) if type(value) in (*_NUMBERS, tuple) else type(value).__name__
