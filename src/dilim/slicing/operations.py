"""One step at a time: what the slicer does now, and what it leaves to the host.

`prepare` looks at the operands of a step and gives a function that carries it out; nothing is added
to the graph before that is called. `OnHost` means that the host has to do it.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dilim.dtypes import DType
from dilim.ir.types import Type
from dilim.slicing import (
    attributes,
    bundles,
    calls,
    choices,
    classes,
    contents,
    heap,
    items,
    iterators,
    made_functions,
    named_tuples,
    numbers,
    program,
    rates,
    received,
    splits,
    supers,
)
from dilim.slicing.checked_ints import calculated, leave_unless_small
from dilim.slicing.errors import OnHost, TooLarge, Unsliceable, attempted
from dilim.slicing.inlining import inline
from dilim.slicing.numbers import Number
from dilim.slicing.operators import (
    BINARY,
    COMPARE,
    IN_PLACE,
    PLAIN,
    UNARY,
    applied,
    check_depth,
    is_constant,
)
from dilim.slicing.values import Choice, Host, Named, View, holds_host, is_received, is_tuple, known
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

Ready = Callable[[], None]


def prepare(slicer: Slicer, step: program.Step) -> Ready:
    """How to carry out a step.

    Raises:
        OnHost: the host has to.
    """
    node: Any = step.node
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) if heap.is_outer(slicer, name):
            return heap.bind(slicer, name, slicer.handle(node.value))
        case ast.Assign(targets=[ast.Name(id=name)]):
            compute = _expression(slicer, step, node.value)
            return lambda: slicer.env.__setitem__(name, compute())
        case ast.Assign(targets=[ast.Tuple() | ast.List() as target]):
            return items.unpack(slicer, target, slicer.atom(node.value))
        case ast.Assign(targets=[ast.Attribute() as target]):
            owner, value = slicer.atom(target.value), slicer.handle(node.value)
            if rates.is_rate(owner, target.attr):
                return rates.assign(slicer, owner, value)
            return attributes.assign(slicer, target, value)
        case ast.Assign(targets=[ast.Subscript() as target]):
            return items.write(slicer, step, target, slicer.handle(node.value))
        case ast.AugAssign(target=ast.Name(id=name)):
            return _augmented(slicer, step, node, name)
        case ast.Delete(targets=[ast.Name(id=name)]):
            value = slicer.handle(ast.Name(name, ast.Load()))
            if value.__class__ is Host:
                raise OnHost("a value of the host is let go")
            return lambda: slicer.env.__delitem__(name)
    raise OnHost(type(node).__name__)


def _expression(slicer: Slicer, step: program.Step, node: Any) -> Callable[[], Any]:
    match node:
        case ast.Name() | ast.Constant():
            value = slicer.handle(node)
            if value.__class__ is Host:
                raise OnHost
            return lambda: value
        case ast.BinOp():
            function = BINARY[type(node.op)]
            divided = _divided(slicer, step, function, node)
            return divided or binary(slicer, step, function, node.left, node.right)
        case ast.UnaryOp():
            return _unary(slicer, UNARY[type(node.op)], node.operand)
        case ast.Compare():
            return _compare(slicer, step, node)
        case ast.Call():
            return calls.prepare(slicer, step, node)
        case ast.Attribute():
            return _attribute(slicer, step, node)
        case ast.Subscript():
            return items.read(slicer, step, node)
        case ast.Tuple() | ast.List():
            return items.display(slicer, node, step.writes[0])
        case ast.Dict():
            return items.dictionary(slicer, node, step.writes[0])
        case ast.Lambda():
            made = made_functions.inner(slicer, step, node, step.writes[0])
            return lambda: made
        case ast.JoinedStr():
            text = _text(slicer, node)
            return lambda: text
    raise OnHost(f"{type(node).__name__} is made on the host")


def _text(slicer: Slicer, node: ast.JoinedStr) -> str:
    """The text of an f-string of constants.

    Raises:
        OnHost: something in it is no constant.
    """
    pieces = []
    for part in node.values:
        piece: Any = part
        if isinstance(part, ast.FormattedValue):
            spec = "" if part.format_spec is None else _text(slicer, part.format_spec)  # type: ignore[arg-type]
            value = slicer.atom(part.value)
            if not is_constant(value):
                raise OnHost("text is made on the host")
            convert = _TEXTS.get(part.conversion)
            pieces.append(attempted(format, value if convert is None else convert(value), spec))
        else:
            pieces.append(piece.value)
    return "".join(pieces)


_TEXTS: Final[dict[int, Callable[[Any], str]]] = {ord("s"): str, ord("r"): repr, ord("a"): ascii}


def _attribute(slicer: Slicer, step: program.Step, node: ast.Attribute) -> Callable[[], Any]:
    """How to read an attribute; a property is a call of what it runs."""
    if isinstance(node.value, ast.Call):
        return supers.read(slicer, node)
    owner = slicer.atom(node.value)
    if owner.__class__ is Host:
        return received.attribute(slicer, node, owner)
    if rates.is_set(slicer, owner):
        found = rates.read(slicer, owner) if rates.is_rate(owner, node.attr) else None
        if found is not None:
            return lambda: found
        rates.refuse_other_uses(slicer, owner, node.attr)
    if owner.__class__ is Named:
        return named_tuples.attribute(slicer, step, owner, node.attr)
    getter = attributes.getter(slicer, node)
    if getter is None:
        return attributes.read(slicer, node)
    run = functools.partial(inline, slicer, step, getter, [], {})
    if not attributes.is_dilims(type(getter.__self__)):
        return run
    try:
        return attributes.read(slicer, node)
    except OnHost:  # it looks at numbers
        return run


# --- operators ------------------------------------------------------------------------------


def binary(
    slicer: Slicer,
    step: program.Step,
    function: Callable[[Any, Any], Any],
    left: Any,
    right: Any,
) -> Callable[[], Any]:
    """How to apply an operator to two atoms."""
    a, b = slicer.atom(left), slicer.atom(right)
    for x, y in ((a, b), (b, a)):
        if x.__class__ is Host:
            splits.tell_apart(slicer, (left if x is a else right).id, x)
            is_told = (
                known(x.kind) is float and y.__class__ is Number and function in COMPARE.values()
            )
            _need(x, is_told or isinstance(y, Tensor) or isinstance(known(x.kind), Type))
    if Host not in (a.__class__, b.__class__):
        if (a.__class__ is list or is_tuple(a)) and function in (operator.add, operator.mul):
            return _of_sequences(slicer, function, a, b)
        return lambda: calculated(slicer, step, function, a, b)

    def compute() -> Any:
        first = slicer.receive(left.id, a.kind) if a.__class__ is Host else a
        second = slicer.receive(right.id, b.kind) if b.__class__ is Host else b
        return applied(function, first, second)

    return compute


def _of_sequences(
    slicer: Slicer, function: Callable[[Any, Any], Any], a: Any, b: Any
) -> Callable[[], Any]:
    """How to put lists or tuples together, or repeat one; the items are handles."""
    a, b = (tuple(x) if x.__class__ is Named else x for x in (a, b))
    is_known = b.__class__ is a.__class__ if function is operator.add else b.__class__ is int
    first = contents.opened(slicer, a)
    second = contents.opened(slicer, b) if is_known and function is operator.add else b
    if not is_known or (function is operator.mul and len(first) * max(second, 0) > MOST_ITEMS):
        raise OnHost("a sequence and another object")
    if a.__class__ is tuple:
        return lambda: function(first, second)
    return lambda: slicer.make(function(first, second))


MOST_ITEMS: Final = 1000
"""Most items of a list that is made by repeating another one."""
_DIVISIONS: Final = frozenset({operator.truediv, operator.floordiv, operator.mod})


def _divided(
    slicer: Slicer, step: program.Step, function: Callable[[Any, Any], Any], node: Any
) -> Callable[[], Any] | None:
    """How to divide by a number of the program: where it is 0, the host raises."""
    a, b = slicer.atom(node.left), slicer.atom(node.right)
    if function not in _DIVISIONS or b.__class__ is not Number or not numbers.is_number(a):
        return None
    if function is not operator.truediv and float in (numbers.kind_of(a), b.kind):
        return None

    def compute() -> Any:
        fits = False
        try:
            numbers.binary(function, a, b, nonzero=True)
        except TooLarge as refusal:
            leave_unless_small(slicer, step, function, a, b, refusal)
            fits = True
        return items.checked(
            slicer,
            step,
            numbers.truth(b).tensor,
            lambda: numbers.binary(function, a, b, nonzero=True, fits=fits),
        )

    return compute


def _need(x: Host, is_tensor_operation: bool) -> None:
    if not is_received(x.kind) or not is_tensor_operation:
        raise OnHost("an operand is a value of the host")


def _augmented(slicer: Slicer, step: program.Step, node: Any, name: str) -> Ready:
    a, b = slicer.atom(ast.Name(name, ast.Load())), slicer.atom(node.value)
    function = IN_PLACE[type(node.op)]
    if a.__class__ is Host or b.__class__ is Host:
        _need(b if b.__class__ is Host else a, isinstance(a, Tensor) or isinstance(b, Tensor))
    if a.__class__ is Host:
        raise OnHost("a value of the host is changed")
    if a.__class__ is list and id(a) in slicer.fresh and not holds_host(b):
        if not isinstance(node.op, ast.Add):
            raise OnHost("a list is repeated")
        check_depth(slicer, a)
        return lambda: a.extend(iterators.items(slicer, b))
    if not isinstance(a, Tensor):
        function = BINARY[type(node.op)]

    def compute() -> None:
        other = slicer.receive(node.value.id, b.kind) if b.__class__ is Host else b
        slicer.env[name] = calculated(slicer, step, function, a, other)

    return compute


def _unary(slicer: Slicer, function: Callable[[Any], Any], operand: Any) -> Callable[[], Any]:
    x = slicer.atom(operand)
    if received.is_one(x) and function is not operator.not_:
        return lambda: attempted(function, slicer.receive(operand.id, x.kind))
    if x.__class__ is Host:
        raise OnHost
    if function is operator.not_:
        return lambda: _negated(slicer.condition(operand))
    if x.__class__ is Number:
        return lambda: attempted(numbers.unary, function, x)
    if isinstance(x, Tensor) or x.__class__ in PLAIN:
        return lambda: attempted(function, x)
    raise OnHost(f"{function.__name__} of {type(x).__name__}")


def _negated(x: Any) -> Any:
    return not x if x.__class__ is bool else numbers.unary(operator.not_, x)


def _compare(slicer: Slicer, step: program.Step, node: ast.Compare) -> Callable[[], Any]:
    function = COMPARE[type(node.ops[0])]
    left, right = node.left, node.comparators[0]
    if function in (operator.is_, operator.is_not):
        pair = slicer.handle(left), slicer.handle(right)
        for x, y in (pair, pair[::-1]):
            if x.__class__ is Choice and y is None:
                return lambda: choices.is_none(x, function)
    if function in (operator.eq, operator.ne):
        pair = slicer.copied(left), slicer.copied(right)
        for x, y in (pair, pair[::-1]):
            if x.__class__ is Choice and bundles.words_in(x) and bundles.words_in(y):
                return functools.partial(choices.compared, function, x, y)
    a, b = slicer.atom(left), slicer.atom(right)
    if function in (operator.is_, operator.is_not):
        if Host in (a.__class__, b.__class__) or Number in (a.__class__, b.__class__):
            if (a is None or b is None) and Number in (a.__class__, b.__class__):
                return lambda: function is operator.is_not
            raise OnHost
        if a is not b and is_tuple(a) and is_tuple(b):
            raise Unsliceable("tuples that are told apart")  # which branches and loops make anew
        return lambda: _which(slicer.one_of.is_same(a, b), function)
    if isinstance(node.ops[0], ast.In | ast.NotIn):
        b = contents.opened(slicer, b) if b.__class__ is View else b
        if not is_constant(a) or not is_constant(b):
            raise OnHost("a search on the host")
        return lambda: attempted(function, a, b)
    if type(a) is type(b) in (DType, type) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return lambda: function(a, b)
    if (a is None or b is None) and _are_told_apart(slicer, a, b):
        return lambda: function(a, b)
    return binary(slicer, step, function, left, right)


def _are_told_apart(slicer: Slicer, *pair: Any) -> bool:
    """Whether objects are compared with None without code of the user's."""
    return all(
        isinstance(x, Tensor)
        or x.__class__ in (*PLAIN, Number, list, dict)
        or (x.__class__ is not Host and classes.is_default(slicer, x, "__eq__", "__ne__"))
        for x in pair
    )


def _which(is_one: bool | Number, function: Any) -> Any:
    """``is`` or ``is not``, from whether it is."""
    return is_one if function is operator.is_ else _negated(is_one)
