"""What names stand for while a region is sliced.

Most values are themselves: symbolic tensors, eager tensors (memory of the program), Python objects
that are constants of the program, tuples, and lists and dicts that the region makes. Beside them
there are numbers of the program (`numbers.Number`) and the classes here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import BuiltinMethodType, MethodType, MethodWrapperType
from typing import Any, Final, NamedTuple

from dilim.ir.types import Type
from dilim.slicing.numbers import Number
from dilim.tensors.tensor import Tensor


class Host:
    """A value that lives in the host's frame, under the name that has it.

    Attributes:
        kind: its type as far as an eager run has shown it: int, float, bool, the `Type` of a
            tensor, an `Array`, a `Context`, or a word (see below); None where it is not known.
        is_sure: whether the name has it for sure, not only if the host has come to bind it.
        is_plain: whether it is a number, a text or an array for sure, so that no code of the
            user's runs when it is looked at.
        source: the statement that binds it, and the name, where an eager run has shown its type.
    """

    __slots__ = ("is_plain", "is_sure", "kind", "source")

    def __init__(
        self,
        kind: Any = None,
        is_sure: bool = True,
        is_plain: bool = False,
        source: Any = None,
    ) -> None:
        self.kind = kind
        self.is_sure = is_sure
        self.is_plain = is_plain
        self.source = source

    def __repr__(self) -> str:
        return f"<host value of type {self.kind}>"


@dataclass(frozen=True, slots=True)
class Array:
    """The kind of a NumPy array whose numbers a graph can take."""

    type: Type


@dataclass(frozen=True, slots=True)
class Context:
    """The kind of a context; ``swallows`` is whether it may swallow errors."""

    swallows: bool


NEW_LIST: Final = "new list"
"""The kind of a list that the host has made for a local name."""
APPEND: Final = "append"
"""The kind of the method that appends to such a list."""
METHOD: Final = "method"
"""The kind of a method of a list, dict or text that changes nothing."""
PLAIN_KINDS: Final = frozenset({int, float, bool, "str", "plain", "plain tuple"})
"""Kinds of values, beside tensors and arrays, that hold no objects of the user's."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """The types that a value of the host has had, in the order in which they were seen."""

    kinds: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Expected:
    """A kind that no run has shown yet, and that nothing but the graph relies on.

    Attributes:
        kind: which; see `Host`.
        source: the statement that binds such a value, and the name.
    """

    kind: Any
    source: Any = field(compare=False)


def known(kind: Any) -> Any:
    """A kind, be it shown or expected."""
    return kind.kind if kind.__class__ is Expected else kind


def is_received(kind: Any) -> bool:
    """Whether a value of the host of this kind can be a tensor or number of the graph."""
    kind = known(kind)
    return isinstance(kind, Type) or kind in (int, float, bool)


class Conflict:
    """What a name stands for after branches that give it values that do not go together."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Choice:
    """What a name stands for after branches that give it values of different kinds.

    Operations on it are left to the host, which gets the right one.

    Attributes:
        flag: which it is, a `Number` of kind bool.
        yes: the value where the flag holds; may be `UNBOUND`.
        no: the value where it does not.
    """

    __slots__ = ("flag", "no", "yes")

    def __init__(self, flag: Number, yes: Any, no: Any) -> None:
        self.flag = flag
        self.yes = yes
        self.no = no


class AtEntry:
    """Stands for a gradient that is as it was at entry, at which nothing has looked.

    Attributes:
        leaf: whose gradient it is.
    """

    __slots__ = ("leaf",)

    def __init__(self, leaf: Any) -> None:
        self.leaf = leaf


@dataclass(frozen=True, slots=True)
class Range:
    """``range`` with numbers of the program; ``step`` is known."""

    start: Any
    stop: Any
    step: int


class Held(NamedTuple):
    """What the host has of the graph.

    Attributes:
        number: of the object there.
        seen: for a tensor over whole memory, the contents that it shows, for a list or dict the
            items that it has; None where they are old.
        flag: whether it is there: True, or a bool of the graph; for a recorded operation, False if
            that is not known.
        is_kept: whether the host may have it still, so that it has to be the same object again.
    """

    number: int
    seen: Any = None
    flag: Any = True
    is_kept: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The keys, values or items of a dict: those that it has when asked.

    Attributes:
        owner: the dict.
        method: which of them: the name of its method.
    """

    owner: dict[Any, Any]
    method: str


@dataclass(frozen=True, slots=True)
class Result:
    """A tuple that is returned at once, with values of the host in it.

    Attributes:
        items: the values, and the names that they have where they are the host's.
    """

    items: tuple[tuple[Any, str], ...]


@dataclass(slots=True, eq=False)
class MadeFunction:
    """A function that the region makes; see `made_functions`.

    Attributes:
        maker: the statement.
    """

    maker: Any

    def parts(self) -> list[Any]:
        """What it holds."""
        return []


class Named(tuple[Any, ...]):
    """A named tuple that the region makes: its items.

    Attributes:
        kind: its class.
    """

    kind: type


def named(kind: type, items: Iterable[Any]) -> Named:
    """A named tuple of the region."""
    made = Named(items)
    made.kind = kind
    return made


def with_items(kind: type, items: tuple[Any, ...]) -> Any:
    """The named tuple of a class that has these items, outside of the region."""
    return tuple.__new__(kind, items)


def is_old(x: Tensor) -> bool:
    """Whether the memory of a tensor was written past it, with a gradient; only views grow old."""
    return x._storage.recorded > x._born


def is_tuple(value: Any) -> bool:
    """Whether a value is a tuple of the region, named or not."""
    return value.__class__ is tuple or value.__class__ is Named


def class_of(value: Any) -> type:
    """The class that an object has outside of the region."""
    return value.kind if value.__class__ is Named else type(value)


def like(value: tuple[Any, ...], items: Iterable[Any]) -> tuple[Any, ...]:
    """A tuple of the region of the same class as another, with other items."""
    kind = class_of(value)
    return tuple(items) if kind is tuple else named(kind, items)


def are_alike(a: Any, b: Any) -> bool:
    """Whether both are tuples, of one class and equally long."""
    both = is_tuple(a) and is_tuple(b)
    return both and class_of(a) is class_of(b) and len(a) == len(b)


class _Unbound:
    def __repr__(self) -> str:
        return "<unbound>"


UNBOUND: Final = _Unbound()
"""Stands for the value of a name that has none."""


_METHODS: Final = (MethodType, BuiltinMethodType, MethodWrapperType)


def owner_of(function: Any) -> Any:
    """What a bound method is bound to; None for other objects, which are not looked into."""
    if isinstance(function, _METHODS):
        return function.__self__
    return None


def is_among(function: Any, functions: Iterable[Any]) -> bool:
    """Whether an object is one of some, by identity: no code of the user's runs."""
    return any(function is x for x in functions)


def holds_host(value: Any) -> bool:
    """Whether a value is, or has inside, something that is not known while slicing."""
    return _holds(value, (Host, Conflict, Choice))


def holds_hidden(value: Any) -> bool:
    """Whether a value is, or has inside, something that the host has and the graph has not."""
    return _holds(value, (Host, Conflict))


def _holds(value: Any, kinds: tuple[type, ...], depth: int = 0) -> bool:
    kind = value.__class__
    if kind in kinds:
        return True
    if depth > 4:
        return False
    if kind is list or is_tuple(value):
        return any(_holds(x, kinds, depth + 1) for x in value)
    if kind is dict:
        return any(_holds(x, kinds, depth + 1) for x in value.values())
    return kind is View and _holds(value.owner, kinds, depth + 1)


def holds_number(value: Any, depth: int = 0) -> bool:
    """Whether a value is, or has inside, a number that is known only when the program runs."""
    kind = value.__class__
    if kind is Number or kind is Range or kind is Choice:
        return True
    if kind is slice:
        return any(map(holds_number, (value.start, value.stop, value.step)))
    if depth < 5 and (kind is list or is_tuple(value)):
        return any(holds_number(x, depth + 1) for x in value)
    if depth < 5 and kind is dict:
        return any(holds_number(x, depth + 1) for x in value.values())
    return False


def may_be_unbound(value: Any) -> bool:
    """Whether a name that stands for this may have no value."""
    if value.__class__ is Choice:
        return may_be_unbound(value.yes) or may_be_unbound(value.no)
    return value is UNBOUND


def same_constant(a: Any, b: Any) -> bool:
    """Whether two values are equal constants."""
    if a.__class__ in (str, bytes, type(None), range, slice):
        return bool(a == b)
    return False


def items_of(container: Any) -> list[tuple[Any, Any]]:
    """Indices and items of a list, or keys and values of a dict, in order."""
    return list(container.items() if container.__class__ is dict else enumerate(container))


def is_same(a: Any, b: Any) -> bool:
    """Whether two values are one constant."""
    if a is b:
        return True
    return a.__class__ is b.__class__ and a.__class__ in (str, bytes, type(None), bool) and a == b
