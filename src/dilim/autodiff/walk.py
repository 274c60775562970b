"""The reverse walk: from gradients of results to gradients of what they were made from.

It knows neither eager tensors nor graphs: a *record* says which operation was applied and where
its inputs came from, and a builder applies the derivative rules.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from dilim.ops.opdef import OpDef, Rule
from dilim.shapes import Shape


class Record(Protocol):
    """One applied operation.

    Attributes:
        op: the operation, or `Part` or `Joint`.
        params: its static parameters.
        edges: per input the record that made it, a leaf (anything that is not a record), or None
            where no gradient is wanted.
        serial: grows from inputs to results.
    """

    op: Any
    params: dict[str, Any]
    edges: Sequence[Any]
    serial: int


RESULT: Final = "result"
"""Stands for the name of an operation, where one branch or turn or another has made something."""


@dataclass(frozen=True, slots=True)
class Part:
    """In place of an operation: the record is one result of the record at its only edge.

    Attributes:
        number: which result.
        name: of the operation that made it, if it is always the same.
    """

    number: int
    name: str = RESULT


@dataclass(frozen=True, slots=True)
class Unsure:
    """A gradient that is there on some paths only; on the others it is -0.0, which adds nothing.

    A sum with one that is there for certain is there for certain. For all else it makes a
    difference whether there is one.

    Attributes:
        gradient: what is there.
        refuse: raises where that matters.
    """

    gradient: Any
    refuse: Callable[[], None]


def certain(gradient: Any) -> Any:
    """A gradient for which it matters whether it is there."""
    if gradient.__class__ is not Unsure:
        return gradient
    gradient.refuse()
    return gradient.gradient


def plain(gradient: Any) -> Any:
    """A gradient, there or not."""
    return gradient.gradient if gradient.__class__ is Unsure else gradient


def added(builder: Any, a: Any, b: Any) -> Any:
    """The sum of two gradients, of which each may be there or not."""
    total = builder.add(plain(a), plain(b))
    is_unsure = a.__class__ is b.__class__ is Unsure
    return Unsure(total, a.refuse) if is_unsure else total


class Joint(ABC):
    """In place of an operation: one with several results, whose gradients are needed together."""

    name: str

    @abstractmethod
    def pull(self, gradients: dict[int, Any], before: list[Any]) -> list[Any]:
        """Gradients of the edges.

        Args:
            gradients: number of a result -> its gradient; those without one are left out.
            before: per edge the gradient that it has already, or None; it may be `Unsure`.

        Returns:
            Per edge the gradient with this record's share added; None where there is none. It may
            be `Unsure`.
        """


def reachable(roots: Iterable[Any], is_record: Callable[[Any], bool]) -> list[Any]:
    """All records that the roots depend on, results before inputs; no recursion."""
    seen: set[int] = set()
    stack = [root for root in roots if is_record(root)]
    found: list[Any] = []
    while stack:
        record = stack.pop()
        if id(record) in seen:
            continue
        seen.add(id(record))
        found.append(record)
        stack.extend(edge for edge in record.edges if edge is not None and is_record(edge))
    found.sort(key=lambda record: -record.serial)
    return found


def leading_to(records: Sequence[Any], wanted: set[int]) -> set[int]:
    """Ids of the records whose inputs lead to a wanted edge (records: results first)."""
    useful = set(wanted)
    for record in reversed(records):
        if any(edge is not None and id(edge) in useful for edge in record.edges):
            useful.add(id(record))
    return useful


def rule_of(op: OpDef, position: int) -> Rule | None:
    """The derivative rule for one input."""
    if not op.variadic:
        return op.derivative[position]
    rule = op.derivative[0]
    if rule is None:
        return None

    def positioned(*args: Any, **params: Any) -> Any:
        return rule(*args, position=position, **params)

    return positioned


def pull_back(
    records: Sequence[Any],
    gradients: dict[int, Any],
    builder: Any,
    operands: Callable[[Any], tuple[Sequence[Any], Any]],
    useful: set[int] | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Push gradients from results to inputs.

    Args:
        records: from `reachable`.
        gradients: id of record or leaf -> gradient; holds the seeds, and at the end those of the
            leaves and of records that nobody asked to be consumed.
        builder: applies operations.
        operands: record -> (its inputs, its result), called when its gradient is complete.
        useful: ids of the edges worth following; all of them for None.

    Yields:
        (record, gradient) once the gradient of the record's result is complete, before its rules
        run.
    """
    for record in records:
        gradient = gradients.pop(id(record), None)
        if gradient is None:
            continue
        gradient = certain(gradient)
        yield record, gradient
        inputs, out = operands(record)
        if isinstance(record.op, Part):
            (whole,) = record.edges
            gradients.setdefault(id(whole), {})[record.op.number] = gradient
            continue
        if isinstance(record.op, Joint):
            _pull_joint(record, gradient, gradients, builder)
            continue
        for position, edge in enumerate(record.edges):
            if edge is None or (useful is not None and id(edge) not in useful):
                continue
            rule = rule_of(record.op, position)
            if rule is None:
                continue
            value = inputs[position]
            part = fit(builder, rule(builder, gradient, out, *inputs, **record.params), value)
            previous = gradients.get(id(edge))
            gradients[id(edge)] = part if previous is None else added(builder, previous, part)


def _pull_joint(
    record: Any, gradient: dict[int, Any], gradients: dict[int, Any], builder: Any
) -> None:
    """Push gradients through a `Joint`, which may have one edge several times."""
    keys = [id(edge) for edge in record.edges]
    first = [keys.index(key) == place for place, key in enumerate(keys)]
    before = [
        gradients.get(key) if is_first else None for key, is_first in zip(keys, first, strict=True)
    ]
    after = record.op.pull(gradient, before)
    for key, is_first, part in zip(keys, first, after, strict=True):
        if part is not None:
            known = None if is_first else gradients.get(key)
            gradients[key] = part if known is None else added(builder, known, part)


def fit(builder: Any, gradient: Any, value: Any) -> Any:
    """A gradient summed over broadcast axes and cast, so that it has the type of ``value``."""
    if gradient.shape != value.shape:
        gradient = sum_to(builder, gradient, value.shape)
    if gradient.dtype is not value.dtype:
        gradient = builder.astype(gradient, dtype=value.dtype)
    return gradient


def sum_to(builder: Any, gradient: Any, shape: Shape) -> Any:
    """Sum over the axes along which ``shape`` was stretched."""
    extra = len(gradient.shape) - len(shape)
    axes = tuple(
        axis
        for axis, size in enumerate(gradient.shape)
        if axis < extra or (shape[axis - extra] == 1 and size != 1)
    )
    if axes:
        gradient = builder.sum(gradient, axis=axes, keepdims=False)
    return gradient if gradient.shape == shape else builder.reshape(gradient, shape=shape)
