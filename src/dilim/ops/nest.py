"""Loop nests: the operations of one kernel, inlined into each other.

`compose` takes the region of a ``fused`` node and gives one loop form in terms of its inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal, TypeAlias, cast

from dilim import shapes
from dilim.dtypes import bool_
from dilim.ir.graph import Graph, Node, Value
from dilim.ops.affine import Interner
from dilim.ops.expressions import axes_of, postorder, reads_memory, reductions_in
from dilim.ops.opdef import OpDef
from dilim.ops.primitives import Expr, constant
from dilim.ops.recipe import ArgReduce, Blocks, Map, Pick, Recipe, Reduce, Scan, Scatter, Sort
from dilim.shapes import Shape

Form: TypeAlias = "Nest | Blocks | ArgReduce | Scatter | Scan | Sort | Pick"
MOST_EXPRESSIONS: Final = 20_000
_MANY_NODES: Final = 30


@dataclass(frozen=True, slots=True)
class Reduction:
    """``combine over r of body(i, r)``, beginning with ``identity``.

    Attributes:
        over: sizes of the reduced axes.
        first: number of the first reduced axis in the body; the axes before ``len(space)`` are
            those of the nest. Reductions over equal sizes share their axes.
        body: the value at (i, r); may refer to earlier reductions.
        combine: a primitive.
        identity: the value of an empty reduction.
        order: of the combination, see `dilim.ops.recipe`.
    """

    over: Shape
    first: int
    body: Expr
    combine: str
    identity: Any
    order: Literal["lanes", "ascending"]


@dataclass(frozen=True, slots=True)
class Nest:
    """For ``i`` in ``space``: ``t[k] = reductions[k](i)``, then ``out[j][i] = outputs[j](i, t)``.

    ``Expr("reduced", (), dtype, k)`` stands for ``t[k]``. Every output has as many elements as the
    space, in the same row-major order. A reduction that does not depend on the last axes of the
    space is computed once for all of them. ``checks`` must hold, also those of positions that no
    address needs.
    """

    space: Shape
    reductions: tuple[Reduction, ...]
    outputs: tuple[Expr, ...]
    checks: tuple[Expr, ...] = ()


class NotOneNest(Exception):
    """A region is no single loop nest; the text says why."""


# --- what the fusion pass asks ----------------------------------------------------------------

Operations = Mapping[str, OpDef]
FormName = Literal["map", "reduce", "other", "none"]
_FORMS: Final[dict[OpDef, FormName]] = {}


def recipe_of(node: Node, operations: Operations) -> Recipe:
    """The recipe of one operation.

    Raises:
        NotOneNest: it has none.
    """
    rule = operations[node.op].recipe
    if rule is None:
        raise NotOneNest(f"{node.op} has no recipe")
    return rule(*(value.type for value in node.inputs), **node.params)


def form_of(node: Node, operations: Operations) -> FormName:
    """The loop form of an operation of the table.

    ``"other"`` for forms that take producers in but no consumers, ``"none"`` without a recipe.
    The answer is the same for all nodes of an operation and remembered.
    """
    op = operations[node.op]
    if op not in _FORMS:
        _FORMS[op] = "none" if op.recipe is None else _form(recipe_of(node, operations))
    return _FORMS[op]


def _form(recipe: Recipe) -> FormName:
    if isinstance(recipe, Map):
        return "map"
    return "reduce" if isinstance(recipe, Reduce) else "other"


def space_of(node: Node) -> Shape:
    """The loop space of an operation in the forms map and reduce: the shape of its result."""
    return node.results[0].shape


# --- composition ------------------------------------------------------------------------------


def compose(region: Graph, operations: Operations) -> Form:
    """The loop form of a fused region; loads count the inputs of the region.

    A check gets the number of its node in the region.

    Args:
        region: operations of the table only, at least one output.
        operations: the table.

    Raises:
        NotOneNest: the region is no single loop form.
    """
    makers = {node.results[0]: (number, node) for number, node in enumerate(region.nodes)}
    last = makers.get(region.outputs[0])
    if last is not None and len(region.outputs) == 1:
        recipe = recipe_of(last[1], operations)
        if not isinstance(recipe, (Map, Reduce)) or (
            isinstance(recipe, Blocks) and len(region.nodes) == 1
        ):
            return _Composer(region, makers, operations, recipe.space).other(last[0], recipe)
    size = region.outputs[0].type.size
    for value in region.outputs:
        if value.type.size != size:
            raise NotOneNest(
                f"results of different sizes: {region.outputs[0].type} and {value.type}"
            )
    space = max((value.shape for value in region.outputs), key=_breadth)
    return _Composer(region, makers, operations, space).nest()


def _breadth(shape: Shape) -> tuple[int, int]:
    """Finer shapes are larger; fewer axes of size 1 win."""
    wide = sum(size != 1 for size in shape)
    return wide, -len(shape)


class _Composer:
    """Values of the region at given positions, as expressions of one interner."""

    def __init__(
        self,
        region: Graph,
        makers: Mapping[Value, tuple[int, Node]],
        operations: Operations,
        space: Shape,
    ) -> None:
        self._region = region
        self._inputs = {value: number for number, value in enumerate(region.inputs)}
        self._makers = makers
        self._operations = operations
        self._space = space
        self._recipes: dict[Value, Recipe] = {}
        self._done: dict[Any, Expr] = {}
        self._reductions: list[Reduction] = []
        self._checks: list[Expr] = []
        self._first: dict[Shape, int] = {}
        self._interner = Interner(space)
        self._indices = tuple(self._interner.index(axis) for axis in range(len(space)))

    # --- forms ----------------------------------------------------------------------------

    def nest(self) -> Nest:
        """The region as a `Nest`."""
        if len(self._region.nodes) > _MANY_NODES:
            self._warm_up()
        outputs = tuple(
            self._at(value, self._places(value.shape), None) for value in self._region.outputs
        )
        for reduction in self._reductions:
            self._require_prefix(reduction)
        if any(reductions_in(check) for check in self._checks):
            raise NotOneNest("a check of what a reduction gives")  # checks come before all else
        checks = tuple(dict.fromkeys(self._checks))
        return Nest(self._space, tuple(self._reductions), outputs, checks)

    def other(self, number: int, recipe: Recipe) -> Form:
        """The region as the form of its last operation, with producers inlined."""
        space: Shape = recipe.space
        inner: Shape = getattr(recipe, "over", ())
        if isinstance(recipe, Pick):
            inner = (recipe.count,)
        if isinstance(recipe, Blocks):
            space = (-(-shapes.size_of(space) // len(recipe.parts)),)
            self._interner = Interner(space)
        first = self._interner.add_axes(inner)
        axes = (*range(len(space)), *range(first, first + len(inner)))
        indices = tuple(self._interner.index(axis) for axis in axes)

        def inlined(expr: Expr) -> Expr:
            return self._substitute(expr, indices, number, None)

        changes: dict[str, Any] = {}
        for field in fields(recipe):
            value = getattr(recipe, field.name)
            if field.name == "body" and isinstance(recipe, Blocks):
                continue
            if isinstance(value, Expr):
                changes[field.name] = inlined(value)
            elif isinstance(value, tuple) and any(isinstance(item, Expr) for item in value):
                changes[field.name] = tuple(inlined(item) for item in value)
        base = getattr(recipe, "base", None)
        if base is not None:
            source = self._region.nodes[number].inputs[base]
            if source not in self._inputs:
                raise NotOneNest(f"the base of {self._region.nodes[number].op} is made inside")
            changes["base"] = self._inputs[source]
        if self._reductions:
            raise NotOneNest(f"{self._region.nodes[number].op} of a reduction")
        if any(check.value != number for check in self._checks):
            raise NotOneNest(f"a check before {self._region.nodes[number].op}")
        return cast(Form, replace(recipe, **changes))

    def _places(self, shape: Shape) -> tuple[Expr, ...]:
        """The index of the nest's element in another shape of as many elements."""
        if shape == self._space:
            return self._indices
        make, position = self._interner, self._interner.constant(0)
        for index, stride in zip(self._indices, shapes.row_major_strides(self._space), strict=True):
            step = make.apply("multiply", index, make.constant(stride))
            position = make.apply("add", position, step)
        result = []
        for stride, size in zip(shapes.row_major_strides(shape), shape, strict=True):
            quotient = make.apply("floor_divide", position, make.constant(max(stride, 1)))
            result.append(make.apply("remainder", quotient, make.constant(max(size, 1))))
        return tuple(result)

    def _warm_up(self) -> None:
        """Work through long chains from their beginning, so that recursion stays shallow."""
        for node in self._region.nodes:
            value = node.results[0]
            if value.shape == self._space and form_of(node, self._operations) == "map":
                self._at(value, self._indices, None)

    # --- values ---------------------------------------------------------------------------

    def _at(self, value: Value, index: tuple[Expr, ...], guard: Expr | None) -> Expr:
        """A value at a position; where the guard is false, anything, and nothing is touched."""
        key = (value, index, guard)
        made = self._done.get(key)
        if made is None:
            made = self._done[key] = self._compute(value, index, guard)
            if len(self._interner) > MOST_EXPRESSIONS:
                raise NotOneNest(f"more than {MOST_EXPRESSIONS} expressions")
        return made

    def _compute(self, value: Value, index: tuple[Expr, ...], guard: Expr | None) -> Expr:
        number = self._inputs.get(value)
        if number is not None:
            args = index if guard is None else (guard, *index)
            model = Expr("load", args, value.dtype, number, guard is not None)
            return self._interner.make(model, args)
        position, node = self._makers[value]
        recipe = self._recipes.get(value)
        if recipe is None:
            recipe = self._recipes[value] = recipe_of(node, self._operations)
        if isinstance(recipe, Map):
            return self._substitute(recipe.body, index, position, guard)
        if isinstance(recipe, Reduce):
            return self._reduced(recipe, index, position, guard)
        raise NotOneNest(f"{node.op} ({type(recipe).__name__}) feeds another operation")

    def _reduced(
        self, recipe: Reduce, index: tuple[Expr, ...], position: int, guard: Expr | None
    ) -> Expr:
        name = self._region.nodes[position].op
        if guard is not None:
            raise NotOneNest(f"{name} is read under a condition")
        rank = len(self._space)
        for place in index:
            if any(axis >= rank for axis in axes_of(place)):
                raise NotOneNest(f"{name} is read inside another reduction, along its axes")
            if reads_memory(place):
                raise NotOneNest(f"{name} is read at a position that is data")
        first = self._first.get(recipe.over)
        if first is None:
            first = self._first[recipe.over] = self._interner.add_axes(recipe.over)
        inner = tuple(self._interner.index(first + axis) for axis in range(len(recipe.over)))
        checks = len(self._checks)
        body = self._substitute(recipe.body, (*index, *inner), position, None)
        if 0 in recipe.over and len(self._checks) == checks:
            nothing = Expr("constant", (), body.dtype, recipe.identity)
            return self._interner.make(nothing, ())
        reduction = Reduction(
            recipe.over, first, body, recipe.combine, recipe.identity, recipe.order
        )
        self._reductions.append(reduction)
        leaf = Expr("reduced", (), body.dtype, len(self._reductions) - 1)
        return self._interner.make(leaf, ())

    def _require_prefix(self, reduction: Reduction) -> None:
        """A reduction may skip the last axes of the space, not earlier ones."""
        rank = len(self._space)
        used = self._axes_through_reductions(reduction.body)
        if 0 in self._space:
            return  # nothing is computed even once
        wide = [axis for axis in range(rank) if self._space[axis] > 1]
        depth = max((axis for axis in used if axis < rank), default=-1)
        if any(axis <= depth and axis not in used for axis in wide):
            raise NotOneNest(
                f"a reduction that depends on axes {sorted(used)} of {self._space} would be "
                "computed repeatedly"
            )

    def _axes_through_reductions(self, expr: Expr) -> set[int]:
        used = set(axes_of(expr))
        for leaf in reductions_in(expr):
            used |= self._axes_through_reductions(self._reductions[leaf].body)
        return used

    # --- inlining -------------------------------------------------------------------------

    def _substitute(
        self, expr: Expr, index: tuple[Expr, ...], position: int, guard: Expr | None
    ) -> Expr:
        """A recipe's expression with loop axes and loads replaced."""
        done: dict[Expr, Expr] = {}
        for part in postorder([expr]):
            if part.op == "index":
                done[part] = index[part.value]
                continue
            args = tuple([done[arg] for arg in part.args])
            if part.op == "load":
                done[part] = self._load(part, args, position, guard)
            elif part.op == "check":
                done[part] = self._check(part, args, position, guard)
            else:
                done[part] = self._interner.make(part, args)
        return done[expr]

    def _check(self, expr: Expr, args: tuple[Expr, ...], position: int, guard: Expr | None) -> Expr:
        ok, value = args
        checked = self._region.nodes[position].inputs[:2][-1]  # positions, where there are any
        if checked.type.size == 0:
            return value
        if guard is not None:
            false = self._interner.truth(False)
            outside = self._interner.apply("equal", guard, false, dtype=bool_)
            ok = self._interner.apply("bit_or", ok, outside)
        check = self._interner.make(Expr("check", (), expr.dtype, position), (ok, value))
        if check.op == "check":  # one that always holds is its value
            self._checks.append(check)
        return check

    def _load(self, expr: Expr, args: tuple[Expr, ...], position: int, guard: Expr | None) -> Expr:
        source = self._region.nodes[position].inputs[expr.value]
        if not expr.guarded:
            return self._at(source, args, guard)
        own, *place = args
        both = own if guard is None else self._interner.apply("bit_and", guard, own)
        zero = self._interner.make(constant(0, expr.dtype), ())
        if both.op == "constant":
            return self._at(source, tuple(place), None) if both.value else zero
        value = self._at(source, tuple(place), both)
        if source in self._inputs:
            return value
        return self._interner.apply("select", own, value, zero)
