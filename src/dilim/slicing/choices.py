"""What can be told of a `Choice` without knowing which of its values it is, and where it is known.

``if best is None or loss < best:`` asks first which it is. On the sides of the branch that follows,
the names that depend on the same flag are what they are there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dilim.slicing import classes, contents, numbers
from dilim.slicing.attributes import HEAP_TYPE
from dilim.slicing.errors import OnHost, Unsliceable
from dilim.slicing.numbers import Number
from dilim.slicing.operators import PLAIN
from dilim.slicing.values import UNBOUND, Choice, Conflict, View, items_of
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer


def told(choice: Choice, tell: Callable[[Any], bool | Number]) -> bool | Number:
    """A bool that is told of each of the values, for the one that it is.

    Args:
        choice: of which both values are bound.
        tell: what is told.

    Raises:
        OnHost: a value may be unbound, so that the host has to raise.
    """
    if choice.yes is UNBOUND or choice.no is UNBOUND:
        raise OnHost("a name that may be unbound")
    yes, no = (told(x, tell) if x.__class__ is Choice else tell(x) for x in (choice.yes, choice.no))
    if yes is True and no is False:
        return choice.flag
    found = numbers.chosen(choice.flag, yes, no)
    if yes is False and no is True:
        found.opposite_of = choice.flag
    return found  # type: ignore[no-any-return]


def truth(slicer: Slicer, value: Any) -> bool | Number:
    """The truth of a value that is not the host's.

    Raises:
        OnHost: the host has to look.
        Unsliceable: looking might run code of the user's, or raise.
    """
    kind = value.__class__
    if kind is Choice:
        return told(value, lambda x: truth(slicer, x))
    if kind is Number:
        return numbers.truth(value)
    if isinstance(value, Tensor):
        if value.size != 1:
            raise Unsliceable("the truth of a tensor of several elements")
        return numbers.from_tensor(value, bool)
    if kind is View:
        return truth(slicer, value.owner)
    if kind in (list, dict) and id(value) not in slicer.fresh:
        contents.counted(slicer, value)
        return bool(value)
    if kind in PLAIN or kind in (list, dict):
        return bool(value)
    if classes.is_default(slicer, value, "__bool__", "__len__"):
        return True
    if not kind.__flags__ & HEAP_TYPE:
        raise OnHost(f"the truth of an object of {kind.__name__}")
    if kind is Conflict:
        raise Unsliceable(value.reason)
    raise Unsliceable(f"the truth of an object of {kind.__name__}")


def compared(function: Callable[[Any, Any], bool], a: Any, b: Any) -> bool | Number:
    """A comparison of words, of which any may be a choice."""
    if a.__class__ is Choice:
        return told(a, lambda word: compared(function, word, b))
    return told(b, lambda word: function(a, word)) if b.__class__ is Choice else function(a, b)


def is_none(choice: Choice, function: Any) -> bool | Number:
    """``choice is None`` or ``choice is not None``."""
    return told(choice, lambda x: (x is None) is (function is operator.is_))


def decided(slicer: Slicer, test: Number, side: bool) -> Callable[[], None]:
    """Let names, attributes and items be what they are on a side of a branch.

    Args:
        slicer: who interprets; it is at the beginning of that side.
        test: of the branch.
        side: its value there.

    Returns:
        What to call at the end of the side.
    """
    flag = test if test.opposite_of is None else test.opposite_of
    is_yes = side if test.opposite_of is None else not side
    tables = [*(scope.env for scope in slicer.scopes), slicer.heap, *slicer.fresh.values()]
    changed = []
    for table in tables:
        for place, value in items_of(table):
            if value.__class__ is Choice and value.flag is flag:
                table[place] = value.yes if is_yes else value.no
                changed.append((table, place, table[place], value))

    def undo() -> None:
        for table, place, known, choice in changed:
            now = dict(items_of(table))
            if now.get(place, UNBOUND) is known:
                table[place] = choice

    return undo
