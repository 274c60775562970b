"""Index expressions in normal form: a sum of coefficient times term, plus a constant.

A term is a loop axis, or a quotient or remainder that does not simplify, or a position known at
run time only. Because the ranges of the axes are known, ``//`` and ``%`` by constants mostly
disappear: a reshape that splits or merges axes becomes a plain sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dilim import shapes
from dilim.dtypes import INDEX, DType, bool_
from dilim.ops.primitives import Expr
from dilim.shapes import Shape

Bounds = tuple[int, int]
Terms = tuple[tuple[Expr, int], ...]
_ARITHMETIC = frozenset({"add", "subtract", "multiply", "negative", "floor_divide", "remainder"})
_COMPARISONS = frozenset({"less", "less_equal", "equal"})
_HALF = 1 << 63
_TRUTH = {value: Expr("constant", (), bool_, value) for value in (False, True)}


@dataclass(frozen=True, slots=True)
class Affine:
    """``sum(coefficient * term) + constant``.

    Attributes:
        terms: pairs (term, coefficient), no coefficient is 0; a term is an int64 `Expr`.
        constant: the rest.
    """

    terms: Terms
    constant: int

    def coefficient(self, axis: int) -> int:
        """The coefficient of a loop axis."""
        for term, coefficient in self.terms:
            if term.op == "index" and term.value == axis:
                return coefficient
        return 0


def _sum(parts: Iterable[tuple[Affine, int]], constant: int = 0) -> Affine:
    """The sum of affine forms times factors."""
    total: dict[Expr, int] = {}
    for form, factor in parts:
        constant += factor * form.constant
        for term, coefficient in form.terms:
            total[term] = total.get(term, 0) + factor * coefficient
    return Affine(tuple(pair for pair in total.items() if pair[1]), constant)


class Interner:
    """Makes expressions: equal ones are one object, index arithmetic is in normal form.

    Every expression handed to `make` as an operand has to come from the same interner.

    Args:
        sizes: of the loop axes 0, 1, ...; more may be added with `add_axes`.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = list(sizes)
        self._made: dict[object, Expr] = {}
        self._forms: dict[Expr, Affine] = {}
        self._bounds: dict[Expr, Bounds] = {}
        for truth in _TRUTH.values():
            self._constant(truth)

    def add_axes(self, sizes: Sequence[int]) -> int:
        """Declare further loop axes; the number of the first."""
        self.sizes.extend(sizes)
        return len(self.sizes) - len(sizes)

    def __len__(self) -> int:
        return len(self._made)

    # --- making ---------------------------------------------------------------------------

    def index(self, axis: int) -> Expr:
        """A loop axis; the constant 0 where its size is 1."""
        if self.sizes[axis] == 1:
            return self.constant(0)
        made = self._made.get(axis)
        if made is None:
            made = self._made[axis] = Expr("index", (), INDEX, axis)
            self._forms[made] = Affine(((made, 1),), 0)
            self._bounds[made] = (0, self.sizes[axis] - 1)
        return made

    def constant(self, value: int) -> Expr:
        """A constant position."""
        key = ("position", value)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = Expr("constant", (), INDEX, value)
            self._forms[made] = Affine((), value)
        return made

    def make(self, model: Expr, args: tuple[Expr, ...]) -> Expr:
        """The expression like ``model`` on other operands."""
        op = model.op
        if op == "index":
            return self.index(model.value)
        if op == "constant":
            return self._constant(model)
        key = (op, args, model.dtype, model.value, model.guarded)
        made = self._made.get(key)
        if made is None:
            made = self._simplified(op, args)
            if made is None:
                unchanged = model.args is args or (
                    len(args) == len(model.args)
                    and all(a is b for a, b in zip(args, model.args, strict=True))
                )
                made = (
                    model if unchanged else Expr(op, args, model.dtype, model.value, model.guarded)
                )
            self._made[key] = made
        return made

    def apply(self, op: str, *args: Expr, dtype: DType | None = None) -> Expr:
        """A primitive applied to expressions, with the dtype of the last one unless told."""
        return self.make(Expr(op, args, dtype or args[-1].dtype), args)

    def truth(self, value: bool) -> Expr:
        """True or False."""
        return _TRUTH[value]

    def _constant(self, model: Expr) -> Expr:
        if model.dtype is INDEX and type(model.value) is int:
            return self.constant(model.value)
        # repr tells 0.0 from -0.0 and equates NaNs
        key = ("constant", model.dtype, type(model.value), repr(model.value))
        return self._made.setdefault(key, model)

    def _simplified(self, op: str, args: tuple[Expr, ...]) -> Expr | None:
        if args and args[0].dtype is INDEX and (op in _ARITHMETIC or op in _COMPARISONS):
            if all(arg in self._forms for arg in args):
                forms = [self._forms[arg] for arg in args]
                if op in _ARITHMETIC:
                    return self._arithmetic(op, forms)
                return self._comparison(op, forms[0], forms[1])
            return None
        if op in ("bit_and", "bit_or") and args[0].dtype is bool_:
            return _junction(args, neutral=_TRUTH[op == "bit_and"])
        if op == "select":
            return self._selection(*args)
        if op == "check" and args[0] is _TRUTH[True]:
            return args[1]
        return None

    def _selection(self, condition: Expr, yes: Expr, no: Expr) -> Expr | None:
        if condition.op == "constant":
            return yes if condition is _TRUTH[True] else no
        if yes is no:
            return yes
        if yes.op == "select" and yes.args[0] is condition:
            return self.apply("select", condition, yes.args[1], no)
        return None

    # --- normal form ----------------------------------------------------------------------

    def form(self, expr: Expr) -> Affine:
        """The normal form of an int64 expression; what is no loop arithmetic is one term."""
        return self._forms.get(expr) or Affine(((expr, 1),), 0)

    def expression(self, form: Affine) -> Expr:
        """An expression in normal form."""
        terms = sorted(form.terms, key=_order)
        total: Expr | None = None
        for term, coefficient in terms:
            part = term
            if coefficient != 1:
                part = self._raw("multiply", (term, self.constant(coefficient)), term, coefficient)
            total = part if total is None else self._raw_sum(total, part)
        if total is None:
            return self.constant(form.constant)
        if form.constant:
            total = self._raw_sum(total, self.constant(form.constant))
        return total

    def _raw_sum(self, a: Expr, b: Expr) -> Expr:
        made = self._raw_expr("add", (a, b))
        if made not in self._forms:
            self._forms[made] = _sum([(self.form(a), 1), (self.form(b), 1)])
        return made

    def _raw(self, op: str, args: tuple[Expr, ...], term: Expr, coefficient: int) -> Expr:
        made = self._raw_expr(op, args)
        if made not in self._forms:
            self._forms[made] = Affine(((term, coefficient),), 0)
        return made

    def _raw_expr(self, op: str, args: tuple[Expr, ...]) -> Expr:
        key = (op, args, "normal")
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = Expr(op, args, INDEX)
        return made

    def moved(self, expr: Expr, start: int, step: int) -> Affine:
        """``start + step * expr``."""
        return _sum([(self.form(expr), step)], start)

    def bounds(self, form: Affine) -> Bounds | None:
        """The smallest and the largest value, or None when a term is data."""
        low = high = form.constant
        for term, coefficient in form.terms:
            known = self._bounds.get(term)
            if known is None:
                return None
            a, b = known[0] * coefficient, known[1] * coefficient
            low, high = low + min(a, b), high + max(a, b)
        return low, high

    def _arithmetic(self, op: str, forms: list[Affine]) -> Expr | None:
        form = self._combined(op, forms)
        bounds = None if form is None else self.bounds(form)
        if form is None or bounds is None or (bounds[0] >= -_HALF and bounds[1] < _HALF):
            return None if form is None else self.expression(form)
        # int64 wraps around, so what leaves its range is a constant or no longer affine
        return None if form.terms else self.constant((form.constant + _HALF) % (2 * _HALF) - _HALF)

    def _combined(self, op: str, forms: list[Affine]) -> Affine | None:
        if op == "negative":
            return _sum([(forms[0], -1)])
        left, right = forms
        if op in ("add", "subtract"):
            return _sum([(left, 1), (right, 1 if op == "add" else -1)])
        if op == "multiply":
            if left.terms and right.terms:
                return None
            form, factor = (left, right.constant) if left.terms else (right, left.constant)
            return _sum([(form, factor)])
        if right.terms or right.constant <= 0:
            return None
        if op == "floor_divide":
            return self.quotient(left, right.constant)
        return self._remainder(left, right.constant)

    def _comparison(self, op: str, left: Affine, right: Affine) -> Expr | None:
        bounds = self.bounds(_sum([(left, 1), (right, -1)]))
        if bounds is None:
            return None
        low, high = bounds
        if op == "less":
            known = True if high < 0 else False if low >= 0 else None
        elif op == "less_equal":
            known = True if high <= 0 else False if low > 0 else None
        else:
            known = True if low == high == 0 else False if low > 0 or high < 0 else None
        return None if known is None else _TRUTH[known]

    def quotient(self, form: Affine, divisor: int) -> Affine:
        """``form // divisor`` for a positive divisor."""
        if divisor == 1:
            return form
        whole = tuple((t, c // divisor) for t, c in form.terms if c % divisor == 0)
        rest = Affine(tuple((t, c) for t, c in form.terms if c % divisor), form.constant)
        bounds = self.bounds(rest)
        if bounds is not None:
            low = bounds[0] // divisor
            if bounds[1] // divisor == low:
                return Affine(whole, low)
        steps, constant = divmod(rest.constant, divisor)
        common = math.gcd(divisor, *(c for _, c in rest.terms))
        if common > 1:
            terms = tuple((t, c // common) for t, c in rest.terms)
            inner = self.quotient(Affine(terms, constant // common), divisor // common)
            return _sum([(inner, 1), (Affine(whole, steps), 1)])
        if len(rest.terms) == 1 and constant == 0:
            term, coefficient = rest.terms[0]
            if term.op == "floor_divide" and coefficient == 1:
                nested = self.quotient(self.form(term.args[0]), term.args[1].value * divisor)
                return _sum([(nested, 1), (Affine(whole, steps), 1)])
        term = self._opaque("floor_divide", Affine(rest.terms, constant), divisor)
        if bounds is not None:
            low, high = bounds[0] - steps * divisor, bounds[1] - steps * divisor
            self._bounds[term] = (low // divisor, high // divisor)
        return _sum([(Affine(((term, 1),), 0), 1), (Affine(whole, steps), 1)])

    def _remainder(self, form: Affine, divisor: int) -> Affine:
        rest = Affine(tuple((t, c) for t, c in form.terms if c % divisor), form.constant % divisor)
        if len(rest.terms) == 1 and rest.constant == 0 and rest.terms[0][1] == 1:
            inner = rest.terms[0][0]
            if inner.op == "remainder" and inner.args[1].value % divisor == 0:
                return self._remainder(self.form(inner.args[0]), divisor)
        quotient = self.quotient(rest, divisor)
        if not any(t.op == "floor_divide" and t not in dict(rest.terms) for t, _ in quotient.terms):
            return _sum([(rest, 1), (quotient, -divisor)])
        term = self._opaque("remainder", rest, divisor)
        self._bounds[term] = (0, divisor - 1)
        return Affine(((term, 1),), 0)

    def _opaque(self, op: str, form: Affine, divisor: int) -> Expr:
        term = self._raw_expr(op, (self.expression(form), self.constant(divisor)))
        self._forms.setdefault(term, Affine(((term, 1),), 0))
        return term

    # --- addresses ------------------------------------------------------------------------

    def address(self, index: Sequence[Expr], shape: Shape) -> Affine:
        """The row-major position, in elements, of a multi-index into memory of a shape."""
        strides = shapes.row_major_strides(shape)
        total = _sum(
            (self.form(position), stride) for position, stride in zip(index, strides, strict=True)
        )
        return self._recombined(total)

    def _recombined(self, form: Affine) -> Affine:
        """``k c (x // c) + k (x % c)`` is ``k x``: undoes what `unravel` did."""
        changed = True
        while changed:
            changed = False
            for term, coefficient in form.terms:
                if term.op != "remainder" or term not in self._forms:
                    continue
                inner, divisor = self.form(term.args[0]), term.args[1].value
                quotient = self.quotient(inner, divisor)
                parts = [(Affine(((term, 1),), 0), -coefficient), (inner, coefficient)]
                candidate = _sum([(form, 1), *parts, (quotient, -coefficient * divisor)])
                if _hardness(candidate) < _hardness(form):
                    form, changed = candidate, True
                    break
        return form


def _junction(args: tuple[Expr, ...], neutral: Expr) -> Expr | None:
    """And, or of bools where one side is known or both are the same."""
    for known, other in (args, args[::-1]):
        if known.op == "constant":
            return other if known is neutral else known
    return args[0] if args[0] is args[1] else None


def _hardness(form: Affine) -> int:
    return sum(term.op != "index" for term, _ in form.terms)


def _order(pair: tuple[Expr, int]) -> tuple[int, int]:
    """Axes in order, then other terms as they came."""
    term = pair[0]
    return (0, term.value) if term.op == "index" else (1, 0)
