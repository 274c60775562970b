"""Values as lists of tensors, as loops carry them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dilim.ir.types import Type, type_of
from dilim.slicing import numbers
from dilim.slicing.errors import Unsliceable
from dilim.slicing.numbers import Number
from dilim.slicing.tracing import SlicerTrace, is_used_up, symbolic, without_used_tape
from dilim.slicing.values import (
    UNBOUND,
    AtEntry,
    Choice,
    are_alike,
    class_of,
    is_tuple,
    like,
    named,
    same_constant,
)
from dilim.tensors.elementwise import where
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor


class ChangesType(Exception):
    """A value after a turn is not of the type that it had before."""


def is_bundle(value: Any) -> bool:
    """Whether a value is a tuple that a loop can carry."""
    return is_tuple(value) and bool(value) and all(map(is_carriable, value))


def is_carriable(value: Any) -> bool:
    """Whether a loop can carry a value."""
    return numbers.is_number(value) or isinstance(value, Tensor) or is_bundle(value)


def flatten(value: Any, flat: list[Tensor], trace: SlicerTrace) -> Any:
    """Append the tensors of a value; its shape: what is needed to put it together again."""
    if is_tuple(value):
        return TupleShape(class_of(value), tuple(flatten(x, flat, trace) for x in value))
    if isinstance(value, Tensor):
        flat.append(_in_graph(trace, without_used_tape(trace, value)))
        return type_of(value)
    if value.__class__ is Words:
        flat.append(_number_of(trace, value.value, value.words))
        return value.words
    if value.__class__ is Choice:
        if not is_optional(value):
            raise Unsliceable("a value of several kinds is carried through a loop")
        flat.append(value.flag.tensor)
        return OptionalShape(flatten(value.yes, flat, trace), value.no)
    if not numbers.is_number(value):
        raise Unsliceable(f"an object of {type(value).__name__} is carried through a loop")
    number = numbers.symbolic(trace, value)
    flat.append(number.tensor)
    return number.kind


def _in_graph(trace: SlicerTrace, x: Tensor) -> Tensor:
    """A tensor as a loop takes it; one from outside keeps its gradient."""
    return x if x._requires_grad and not trace.owns(x) else symbolic(trace, x)


def unflatten(shape: Any, given: Iterator[Tensor], at_head: bool = False) -> Any:
    """A value from its tensors; at the head of a turn, ints are counted from there."""
    if shape.__class__ is TupleShape:
        parts = tuple(unflatten(x, given, at_head) for x in shape.parts)
        return parts if shape.kind is tuple else named(shape.kind, parts)
    if shape.__class__ is tuple:
        return _word_of(next(given), shape)
    if shape.__class__ is OptionalShape:
        flag = Number(next(given), bool)
        return Choice(flag, unflatten(shape.yes, given, at_head), shape.no)
    tensor = next(given)
    if shape in (int, float, bool):
        number = Number(tensor, shape)
        if at_head and shape is int:
            number.base, number.drift = number, 0
        return number
    return tensor


def collect(trace: SlicerTrace, shape: Any, value: Any, out: list[Tensor]) -> None:
    """Append the tensors of a value after a turn.

    Raises:
        ChangesType: it is not like before the turn.
    """
    if shape.__class__ is TupleShape:
        is_like = is_tuple(value) and class_of(value) is shape.kind
        if not is_like or len(value) != len(shape.parts):
            raise ChangesType
        for part, x in zip(shape.parts, value, strict=True):
            collect(trace, part, x, out)
        return
    if shape.__class__ is tuple:
        out.append(_number_of(trace, value, shape))
        return
    if shape.__class__ is OptionalShape:
        _collect_optional(trace, shape, value, out)
        return
    if shape in (int, float, bool):
        if not numbers.is_number(value) or numbers.kind_of(value) is not shape:
            raise ChangesType
        number = numbers.symbolic(trace, value)
        out.append(number.tensor)
        return
    if not isinstance(value, Tensor) or type_of(value) != shape:
        raise ChangesType
    out.append(_in_graph(trace, without_used_tape(trace, value)))


def _collect_optional(
    trace: SlicerTrace, shape: OptionalShape, value: Any, out: list[Tensor]
) -> None:
    if value.__class__ is Choice and value.no is shape.no:
        out.append(value.flag.tensor)
        collect(trace, shape.yes, value.yes, out)
        return
    is_there = value is not shape.no
    out.append(numbers.symbolic(trace, is_there).tensor)
    if is_there:
        collect(trace, shape.yes, value, out)
    else:
        out.extend(_zeros(trace, shape.yes))


def _zeros(trace: SlicerTrace, shape: Any) -> Iterator[Tensor]:
    """Tensors for a value that is not there."""
    if shape.__class__ is TupleShape:
        for part in shape.parts:
            yield from _zeros(trace, part)
    elif shape.__class__ is Type:
        zero = False if shape.dtype.name == "bool" else 0
        yield trace.full(shape=shape.shape, value=zero, dtype=shape.dtype)
    else:
        yield numbers.symbolic(trace, shape(0)).tensor


def zeros_like(value: Any) -> Any:
    """Zeros like a value, eager: what a name carries before it is bound."""
    if value.__class__ is Choice:
        return zeros_like(value.yes)
    if is_tuple(value):
        return like(value, map(zeros_like, value))
    if isinstance(value, Tensor):
        return Tensor._from_array(np.zeros(value.shape, value.dtype.numpy))
    return numbers.kind_of(value)(0)


@dataclass(frozen=True, slots=True)
class TupleShape:
    """The shape of a tuple of this class."""

    kind: type
    parts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class OptionalShape:
    """The shape of a `Choice` between a value and a constant such as None."""

    yes: Any
    no: Any


@dataclass(frozen=True, slots=True)
class Words:
    """One of a few texts and the like, which a loop carries as a number.

    Attributes:
        value: which, or a `Choice` of some.
        words: all that it may be; they are its shape.
    """

    value: Any
    words: tuple[Any, ...]


def words_in(value: Any) -> list[Any]:
    """The constants that a value is one of; empty where it may be something else."""
    if value.__class__ is Choice:
        yes, no = words_in(value.yes), words_in(value.no)
        return list(dict.fromkeys([*yes, *no])) if yes and no else []
    return [value] if value is None or value.__class__ is str else []


def note_words(known: dict[Any, list[Any]], place: Any, *values: Any) -> bool:
    """Take note of the words that a place may hold; whether the values are all such."""
    found = [words_in(value) for value in values]
    if all(found):
        words = dict.fromkeys([*known.get(place, ()), *(x for each in found for x in each)])
        known[place] = list(words)
    return all(found)


def _number_of(trace: SlicerTrace, value: Any, words: tuple[Any, ...]) -> Tensor:
    """The number of the word that a value is.

    Raises:
        ChangesType: it may be another one.
    """
    if value.__class__ is Choice:
        yes, no = (_number_of(trace, x, words) for x in (value.yes, value.no))
        with no_grad():
            return where(value.flag.tensor, yes, no)
    if not words_in(value) or value not in words:
        raise ChangesType
    return numbers.symbolic(trace, words.index(value)).tensor


def _word_of(number: Tensor, words: tuple[Any, ...]) -> Any:
    result = words[0]
    with no_grad():
        for k, word in enumerate(words[1:], 1):
            result = Choice(Number(number == k, bool), word, result)
    return result


def is_optional(value: Any) -> bool:
    """Whether a value is a choice between one that a loop can carry and nothing."""
    return value.__class__ is Choice and is_carriable(value.yes) and is_absent(value.no)


def is_absent(value: Any) -> bool:
    """Whether a value is None or stands for none."""
    return value is None or value is UNBOUND or value.__class__ is AtEntry


def may_be_none(value: Any) -> bool:
    """Whether a value is None, or one that a loop can carry beside it."""
    return value is None or (is_optional(value) and value.no is None)


def may_be(value: Any, absent: Any = None) -> bool:
    """Whether a loop can carry a value beside one that stands for nothing."""
    return value is absent or is_carriable(value) or (is_optional(value) and value.no is absent)


def _tape_of(x: Tensor) -> Any:
    """Whether a tensor requires a gradient; what made it, where its tape is used up."""
    return x._node.op.name if is_used_up(x) else x.requires_grad  # type: ignore[union-attr]


def filled(like: Any, pairs: list[tuple[Any, Any]]) -> Any:
    """A list or dict with these items."""
    return [x for _, x in pairs] if like.__class__ is list else dict(pairs)


def go_together(a: Any, b: Any) -> bool:
    """Whether values are of one kind, so that joined they are a value of it."""
    if a is b:
        return True
    for x, y in ((a, b), (b, a)):
        if x.__class__ is Choice:
            return go_together(x.yes, y) or go_together(x.no, y)
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return type_of(a) == type_of(b) and _tape_of(a) == _tape_of(b)
    if numbers.is_number(a) and numbers.is_number(b):
        return numbers.kind_of(a) is numbers.kind_of(b)
    if are_alike(a, b):
        return all(map(go_together, a, b))
    return a.__class__ is b.__class__ and same_constant(a, b)
