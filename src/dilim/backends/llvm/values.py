"""Emits expressions where loop axes have values: each part once, as far outside as it can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dilim import dtypes
from dilim.backends.llvm import vectors as v
from dilim.backends.llvm.code import Code
from dilim.backends.llvm.instructions import convert, primitive
from dilim.dtypes import DType
from dilim.ir.types import Type
from dilim.ops.affine import Affine
from dilim.ops.lowering import Lowering
from dilim.ops.primitives import Expr


@dataclass(frozen=True, slots=True)
class Place:
    """The position along an axis: ``name + offset``, of lane 0 where the axis is a vector.

    Attributes:
        name: an i64 of the code, or empty.
        offset: known when the code is written.
    """

    name: str = ""
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Lanes:
    """How many neighbours along the vector axis are computed at once.

    Attributes:
        axis: the loop axis whose neighbours are the lanes.
        lanes: of the vectors.
        count: the first ones, that exist.
    """

    axis: int
    lanes: int
    count: int


@dataclass(slots=True)
class _Scope:
    depth: int
    axes: list[int]
    keys: list[Any] = field(default_factory=list)


_Known = tuple[str, int, int]  # name, lanes, number of the scope


class Values:
    """Names of the values of lowered expressions.

    Args:
        code: takes the instructions.
        lowering: knows the addresses.
        pointers: LLVM names of the inputs' addresses.
        inputs: their types.
        contract: whether products and sums outside of expansions may be contracted.
    """

    def __init__(
        self,
        code: Code,
        lowering: Lowering,
        pointers: Sequence[str],
        inputs: Sequence[Type],
        contract: bool = False,
    ) -> None:
        self.code = code
        self.lanes: Lanes | None = None
        self._lowering = lowering
        self._pointers = pointers
        self._inputs = inputs
        self._flags = "contract" if contract else ""
        self._known: dict[Any, _Known] = {}
        self._scopes = [_Scope(0, [])]
        self._places: dict[int, tuple[Place, int]] = {}

    # --- scopes ---------------------------------------------------------------------------

    @contextmanager
    def scope(
        self, places: Mapping[int, Place | str | int], lanes: Lanes | None = None
    ) -> Iterator[None]:
        """Axes have these positions while the scope is open; what depends on them ends with it."""
        before = self.lanes
        self.lanes = lanes or before
        number = len(self._scopes)
        self._scopes.append(_Scope(self.code.depth, list(places)))
        for axis, place in places.items():
            if isinstance(place, int):
                place = Place("", place)
            elif isinstance(place, str):
                place = Place(place)
            self._places[axis] = place, number
        yield
        scope = self._scopes.pop()
        for key in scope.keys:
            del self._known[key]
        for axis in scope.axes:
            del self._places[axis]
        self.lanes = before

    def define(self, expr: Expr, name: str, lanes: int) -> None:
        """Say what an expression is, until the innermost scope ends."""
        self._remember(expr, name, lanes, len(self._scopes) - 1)

    def _remember(self, key: Any, name: str, lanes: int, scope: int) -> _Known:
        known = self._known[key] = name, lanes, scope
        if scope:
            self._scopes[scope].keys.append(key)
        return known

    def _writer(self, scope: int) -> Code:
        return self.code.outside(self._scopes[scope].depth)

    # --- values ---------------------------------------------------------------------------

    def value(self, expr: Expr) -> tuple[str, int]:
        """The name and the lanes of an expression; 0 lanes where all lanes are equal."""
        known = self._known
        stack = [expr]
        while stack:
            part = stack[-1]
            if part in known:
                stack.pop()
                continue
            missing = [arg for arg in self._operands(part) if arg not in known]
            if missing:
                stack += missing
                continue
            stack.pop()
            self._emit(part)
        name, lanes, _ = known[expr]
        return name, lanes

    def spread(self, expr: Expr, lanes: int) -> str:
        """The value as a vector of so many lanes, or a scalar for 0."""
        self.value(expr)
        return self._as(expr, lanes)

    def _operands(self, expr: Expr) -> Sequence[Expr]:
        if expr.op == "check":
            return expr.args[1:]
        if expr.op != "load":
            return expr.args
        terms = self._lowering.addresses[expr].terms
        needed = [term for term, _ in terms if term.op != "index"]
        return [expr.args[0], *needed] if expr.guarded else needed

    def _as(self, expr: Expr, lanes: int) -> str:
        name, given, scope = self._known[expr]
        if given == lanes:
            return name
        if expr.op == "constant":
            return v.literal(expr.value, expr.dtype, lanes)
        return self._splat(expr, name, expr.dtype, lanes, scope)

    def _splat(self, key: Any, name: str, dtype: DType, lanes: int, scope: int) -> str:
        key = ("splat", key, lanes)
        known = self._known.get(key)
        if known is None:
            vector = v.splat(self._writer(scope), name, dtype, lanes)
            known = self._remember(key, vector, lanes, scope)
        return known[0]

    def _emit(self, expr: Expr) -> None:
        op = expr.op
        if op == "constant":
            self._remember(expr, v.literal(expr.value, expr.dtype), 0, 0)
            return
        if op == "index":
            self._emit_index(expr)
            return
        if op == "load":
            self._emit_load(expr)
            return
        known, args = self._known, expr.args
        if op == "check":
            self._remember(expr, *known[args[1]])
            return
        lanes = scope = 0
        for arg in args:
            _, given, where = known[arg]
            lanes, scope = max(lanes, given), max(scope, where)
        writer = self._writer(scope)
        operands = [self._as(arg, lanes) for arg in args]
        if op == "cast":
            name = convert(writer, operands[0], args[0].dtype, expr.dtype, lanes)
        elif op == "bitcast":
            old, new = v.kind_of(args[0].dtype, lanes), v.kind_of(expr.dtype, lanes)
            name = writer.let(f"bitcast {old} {operands[0]} to {new}")
        else:
            flags = self._flags if expr not in self._lowering.exact else ""
            name = primitive(writer, op, args[-1].dtype, lanes, *operands, flags=flags)
        self._remember(expr, name, lanes, scope)

    def _emit_index(self, expr: Expr) -> None:
        place, scope = self._places[expr.value]
        writer = self._writer(scope)
        if self.lanes is None or self.lanes.axis != expr.value:
            name = place.name or str(place.offset)
            if place.name and place.offset:
                name = writer.let(f"add nsw i64 {place.name}, {place.offset}")
            self._remember(expr, name, 0, scope)
            return
        lanes = self.lanes.lanes
        name = v.steps(lanes)
        if place.offset:
            offset = v.literal(place.offset, dtypes.INDEX, lanes)
            name = writer.let(f"add nsw <{lanes} x i64> {name}, {offset}")
        if place.name:
            base = v.splat(writer, place.name, dtypes.INDEX, lanes)
            name = writer.let(f"add nsw <{lanes} x i64> {name}, {base}")
        self._remember(expr, name, lanes, scope)

    # --- memory ---------------------------------------------------------------------------

    def pointer(self, base: str, dtype: DType, form: Affine) -> tuple[str, int]:
        """The address of an element (of lane 0) but for a known distance in elements."""
        name, constant, _ = self._pointer(base, dtype, form)
        return name, constant

    def _pointer(self, base: str, dtype: DType, form: Affine) -> tuple[str, int, int]:
        constant = form.constant
        groups: dict[int, list[tuple[str, int]]] = {}
        last = 0
        for term, coefficient in form.terms:
            if term.op == "index":
                place, scope = self._places[term.value]
                constant += coefficient * place.offset
                name = place.name
            else:
                name, lanes, scope = self._known[term]
                if lanes:
                    continue
            last = max(last, scope)
            if name:
                groups.setdefault(scope, []).append((name, coefficient))
        address = base
        for scope in sorted(groups):
            key = (address, dtype, *groups[scope])
            known = self._known.get(key)
            if known is None:
                offset = self._offset(scope, groups[scope])
                moved = v.place(self._writer(scope), dtype, address, offset)
                known = self._remember(key, moved, 0, scope)
            address = known[0]
        return address, constant, last

    def _offset(self, scope: int, parts: Sequence[tuple[str, int]]) -> str:
        writer, total = self._writer(scope), ""
        for name, coefficient in parts:
            if coefficient != 1:
                name = writer.let(f"mul nsw i64 {name}, {coefficient}")
            total = writer.let(f"add nsw i64 {total}, {name}") if total else name
        return total

    def _vector_terms(self, form: Affine) -> list[tuple[Expr, int]]:
        return [(term, c) for term, c in form.terms if term.op != "index" and self._known[term][1]]

    def _emit_load(self, expr: Expr) -> None:
        form = self._lowering.addresses[expr]
        if self._inputs[expr.value].size == 0:  # only a guard that is never true can lead here
            self._remember(expr, v.literal(0, expr.dtype), 0, 0)
            return
        base = self._pointers[expr.value]
        address, constant, scope = self._pointer(base, expr.dtype, form)
        guard = self._known[expr.args[0]] if expr.guarded else None
        step = 0
        if self.lanes is not None:
            step = form.coefficient(self.lanes.axis)
            if step:
                scope = max(scope, self._places[self.lanes.axis][1])
        scattered = self._vector_terms(form)
        for term, _ in scattered:
            scope = max(scope, self._known[term][2])
        lanes = self.lanes.lanes if self.lanes and (step or scattered) else 0
        if guard is not None:
            scope = max(scope, guard[2])
            lanes = max(lanes, guard[1])
        writer = self._writer(scope)
        address = v.place(writer, expr.dtype, address, constant)
        if not lanes:
            condition = guard[0] if guard else ""
            name = _one(writer, expr.dtype, address, base, condition)
        else:
            assert self.lanes is not None
            condition = self._as(expr.args[0], lanes) if guard else ""
            if guard and not guard[1]:
                # Masked loads of memory that is not mapped give zeros, but take microseconds.
                address = writer.let(f"select i1 {guard[0]}, ptr {address}, ptr {base}")
            loads = _VectorLoad(writer, expr.dtype, address, base, self.lanes, condition)
            if scattered:
                name = loads.scattered(step, self._distances(writer, scattered, lanes))
            else:
                name = loads.strided(step)
        self._remember(expr, name, lanes, scope)

    def _distances(self, writer: Code, terms: Sequence[tuple[Expr, int]], lanes: int) -> str:
        total = ""
        for term, coefficient in terms:
            name, factor = self._known[term][0], v.literal(coefficient, dtypes.INDEX, lanes)
            if coefficient != 1:
                name = writer.let(f"mul nsw <{lanes} x i64> {name}, {factor}")
            total = writer.let(f"add nsw <{lanes} x i64> {total}, {name}") if total else name
        return total


def _one(writer: Code, dtype: DType, address: str, base: str, condition: str) -> str:
    """A scalar load; where the condition is false it reads element 0 and gives 0."""
    if condition:
        address = writer.let(f"select i1 {condition}, ptr {address}, ptr {base}")
    kind = v.memory_kind(dtype, 0)
    value = writer.let(f"load {kind}, ptr {address}, align {dtype.itemsize}")
    if condition:
        zero = v.literal(0, dtypes.uint8 if dtype is dtypes.bool_ else dtype)
        value = writer.let(f"select i1 {condition}, {kind} {value}, {kind} {zero}")
    return v.truth(writer, value, 0) if dtype is dtypes.bool_ else value


@dataclass(frozen=True, slots=True)
class _VectorLoad:
    """Loads lanes that lie at ``address`` plus a distance each; 0 where the condition is false."""

    writer: Code
    dtype: DType
    address: str
    base: str
    lanes: Lanes
    condition: str

    def strided(self, step: int) -> str:
        """Lanes ``step`` elements apart."""
        lanes, count = self.lanes.lanes, self.lanes.count
        if step == 1:
            guard = self.condition
            if guard and count < lanes:
                mask = v.mask(lanes, count)
                guard = self.writer.let(f"and <{lanes} x i1> {guard}, {mask}")
            return v.load(self.writer, self.dtype, self.address, lanes, count, guard)
        if step == -1 and count == lanes and not self.condition:
            first = v.place(self.writer, self.dtype, self.address, 1 - lanes)
            value = v.load(self.writer, self.dtype, first, lanes, lanes)
            kind = v.kind_of(self.dtype, lanes)
            order = v.numbers(*range(lanes - 1, -1, -1))
            return self.writer.let(
                f"shufflevector {kind} {value}, {kind} poison, <{lanes} x i32> {order}"
            )
        if not self.condition and self.dtype.itemsize >= v.SCATTERED:
            return v.gather(self.writer, self.dtype, self.address, step, lanes, count)
        return self._gather([step * lane for lane in range(count)])

    def scattered(self, step: int, distances: str) -> str:
        """Lanes at distances that are data, plus ``step`` elements apart."""
        lanes = self.lanes.lanes
        if step:
            apart = ", ".join(f"i64 {step * lane}" for lane in range(lanes))
            distances = self.writer.let(f"add nsw <{lanes} x i64> {distances}, <{apart}>")
        return self._gather(
            [
                v.element(self.writer, distances, dtypes.INDEX, lanes, lane)
                for lane in range(self.lanes.count)
            ]
        )

    def _gather(self, distances: Sequence[str | int]) -> str:
        w, lanes = self.writer, self.lanes.lanes
        kind, one = v.memory_kind(self.dtype, lanes), v.memory_kind(self.dtype, 0)
        total = "zeroinitializer"
        for lane, distance in enumerate(distances):
            address = v.place(w, self.dtype, self.address, distance)
            if self.condition:
                test = v.element(w, self.condition, dtypes.bool_, lanes, lane)
                address = w.let(f"select i1 {test}, ptr {address}, ptr {self.base}")
            value = w.let(f"load {one}, ptr {address}, align {self.dtype.itemsize}")
            total = w.let(f"insertelement {kind} {total}, {one} {value}, i32 {lane}")
        if self.dtype is dtypes.bool_:
            total = v.truth(w, total, lanes)
        if not self.condition:
            return total
        result = v.kind_of(self.dtype, lanes)
        return w.let(
            f"select <{lanes} x i1> {self.condition}, {result} {total}, {result} zeroinitializer"
        )
