"""Writes loops for NumPy's ufuncs: eager operations with the bits of compiled programs.

A loop is ``void loop(ptr args, ptr sizes, ptr steps, ptr data)``, as `numpy.ufunc` calls it: for
each operand an address and a step in bytes, and the number of elements, known only when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dilim.backends.llvm import vectors as v
from dilim.backends.llvm.code import METADATA, Code, Position
from dilim.backends.llvm.library_sizes import AREAS_WORD, ROWS, SCRATCH_BYTES
from dilim.backends.llvm.products import ProductOptions
from dilim.backends.llvm.products_library import PARAMETERS, write_product_library
from dilim.backends.llvm.values import Values
from dilim.dtypes import INDEX as _INDEX
from dilim.dtypes import DType
from dilim.ir.types import Type
from dilim.ops.expressions import postorder
from dilim.ops.lowering import Lowering
from dilim.ops.recipe import Map

ATTRIBUTES: Final = 'attributes #0 = { nounwind "no-builtins" }'
HEAD: Final = "(ptr %args, ptr %sizes, ptr %steps, ptr %data) #0 {"
SHARED_WORK: Final = 1 << 21
"""Multiplications from which a product is shared by threads."""


def write_elementwise(name: str, recipe: Map, inputs: Sequence[DType], vector_bytes: int) -> str:
    """The module of a loop that applies the body of a recipe over an empty space.

    Args:
        name: of the function.
        recipe: for operands of shape ().
        inputs: their dtypes.
        vector_bytes: of one register.
    """
    return _Elementwise(name, recipe, inputs, vector_bytes).text()


class _Elementwise:
    def __init__(self, name: str, recipe: Map, inputs: Sequence[DType], vector_bytes: int) -> None:
        self._name = name
        self._inputs = inputs
        self._result = recipe.body.dtype
        self._code = Code()
        types = [Type((), dtype) for dtype in inputs]
        lowering = Lowering((), types)
        self._root = lowering.lower(recipe.body)
        self._loads = [part for part in postorder([self._root]) if part.op == "load"]
        self._values = Values(self._code, lowering, [], types)
        largest = max(dtype.itemsize for dtype in (*inputs, self._result))
        self._lanes = vector_bytes // largest

    def text(self) -> str:
        """The module."""
        code, dtypes = self._code, (*self._inputs, self._result)
        addresses = [self._word("ptr", "%args", k) for k in range(len(dtypes))]
        steps = [self._word("i64", "%steps", k) for k in range(len(dtypes))]
        count = code.let("load i64, ptr %sizes")
        dense = "true"
        for step, dtype in zip(steps, dtypes, strict=True):
            near = code.let(f"icmp eq i64 {step}, {dtype.itemsize}")
            dense = code.let(f"and i1 {dense}, {near}")
        code.branch(dense, lambda: self._dense(addresses, count))
        scattered = code.let(f"xor i1 {dense}, true")
        code.branch(scattered, lambda: self._scattered(addresses, steps, count))
        head = [f"define void @{self._name}{HEAD}", *code.lines(), "  ret void", "}", ""]
        return "\n".join([*head, ATTRIBUTES, METADATA, ""])

    def _word(self, kind: str, base: str, number: int) -> str:
        at = self._code.let(f"getelementptr i8, ptr {base}, i64 {8 * number}")
        return self._code.let(f"load {kind}, ptr {at}")

    def _dense(self, addresses: Sequence[str], count: str) -> None:
        """Whole vectors, then one that is partly there."""
        code, lanes = self._code, self._lanes
        rest = code.let(f"urem i64 {count}, {lanes}")
        whole = code.let(f"sub i64 {count}, {rest}")

        def turn(index: Position, _: list[str]) -> list[str]:
            self._vector(addresses, index, "")
            return []

        code.loop(0, whole, lanes, turn)
        some = code.let(f"icmp ne i64 {rest}, 0")

        def last() -> None:
            wanted = v.splat(code, rest, _INDEX, lanes)
            mask = code.let(f"icmp ult <{lanes} x i64> {v.steps(lanes)}, {wanted}")
            self._vector(addresses, whole, mask)

        code.branch(some, last)

    def _vector(self, addresses: Sequence[str], index: Position, mask: str) -> None:
        code, lanes = self._code, self._lanes
        with self._values.scope({}):
            for load in self._loads:
                dtype = self._inputs[load.value]
                at = v.place(code, dtype, addresses[load.value], index)
                self._values.define(load, v.load(code, dtype, at, lanes, lanes, mask), lanes)
            result = self._values.spread(self._root, lanes)
        at = v.place(code, self._result, addresses[-1], index)
        if not mask:
            v.store(code, self._result, result, at, lanes, lanes)
            return
        kind, suffix = v.memory_kind(self._result, lanes), v.suffix_of(self._result, lanes)
        code.do(
            f"call void @llvm.masked.store.{suffix}.p0({kind} {result}, "
            f"ptr align {self._result.itemsize} {at}, <{lanes} x i1> {mask})"
        )

    def _scattered(self, addresses: Sequence[str], steps: Sequence[str], count: str) -> None:
        """One element after another."""
        code = self._code

        def turn(index: Position, _: list[str]) -> list[str]:
            places = [
                code.let(
                    f"getelementptr i8, ptr {address}, i64 {code.let(f'mul i64 {index}, {step}')}"
                )
                for address, step in zip(addresses, steps, strict=True)
            ]
            with self._values.scope({}):
                for load in self._loads:
                    dtype = self._inputs[load.value]
                    value = v.load(code, dtype, places[load.value], 0, 0)
                    self._values.define(load, value, 0)
                result = self._values.spread(self._root, 0)
            v.store(code, self._result, result, places[-1], 0, 0)
            return []

        code.loop(0, count, 1, turn)


# --- matrix products --------------------------------------------------------------------------


def write_product(name: str, dtype: DType, vector_bytes: int) -> str:
    """The module of a loop for ``(m,k),(k,n)->(m,n)``.

    The data are 8-byte words, see `library_sizes`. Calls at the same time take
    different areas of scratch memory, each large enough for all threads.
    """
    library = write_product_library(f"{name}_any", dtype, ProductOptions(vector_bytes))
    body = _PRODUCT
    for key, value in {
        "NAME": name,
        "ROWS": ROWS,
        "STRIDE": SCRATCH_BYTES,
        "SHARED": SHARED_WORK,
        "AREAS": 8 * AREAS_WORD,
        "HEAD": HEAD,
    }.items():
        body = body.replace(f"${key}", str(value))
    return f"declare i32 @dilim_parallel(ptr, ptr, ptr, i64, ptr, i64, i64)\n{body}\n{library}"


_WORDS: Final = PARAMETERS.count(",") - 2  # all parameters but scratch, begin and end
_LOADED: Final = "\n".join(
    f"  %q{k} = getelementptr i8, ptr %args, i64 {8 * k}\n"
    f"  %w{k} = load {'ptr' if k < 3 else 'i64'}, ptr %q{k}"
    for k in range(_WORDS)
)
_GIVEN: Final = ", ".join(f"{'ptr' if k < 3 else 'i64'} %w{k}" for k in range(_WORDS))
_PRODUCT: Final = (
    """
define i32 @$NAME_part(ptr %args, i64 %begin, i64 %end, ptr %scratch) #0 {
"""
    + _LOADED
    + """
  call void @$NAME_any("""
    + _GIVEN
    + """, ptr %scratch, i64 %begin, i64 %end)
  ret i32 0
}

define void @$NAME$HEAD
entry:
  %words = alloca [12 x i64], align 16
  %n.at = getelementptr i8, ptr %sizes, i64 0
  %outer = load i64, ptr %sizes
  %m.at = getelementptr i8, ptr %sizes, i64 8
  %m = load i64, ptr %m.at
  %k.at = getelementptr i8, ptr %sizes, i64 16
  %k = load i64, ptr %k.at
  %c.at = getelementptr i8, ptr %sizes, i64 24
  %n = load i64, ptr %c.at
  %sizes.m = getelementptr i8, ptr %words, i64 24
  store i64 %m, ptr %sizes.m
  %sizes.n = getelementptr i8, ptr %words, i64 32
  store i64 %n, ptr %sizes.n
  %sizes.k = getelementptr i8, ptr %words, i64 40
  store i64 %k, ptr %sizes.k
  %core = getelementptr i8, ptr %steps, i64 24
  %strides = load <4 x i64>, ptr %core, align 8
  %core2 = getelementptr i8, ptr %steps, i64 56
  %strides2 = load <2 x i64>, ptr %core2, align 8
  %given = getelementptr i8, ptr %words, i64 48
  store <4 x i64> %strides, ptr %given, align 8
  %given2 = getelementptr i8, ptr %words, i64 80
  store <2 x i64> %strides2, ptr %given2, align 8
  %pool = load ptr, ptr %data
  %threads.at = getelementptr i8, ptr %data, i64 8
  %threads = load i64, ptr %threads.at
  %areas.at = getelementptr i8, ptr %data, i64 16
  %areas = load i64, ptr %areas.at
  %more = add i64 %m, $ROWS
  %rounded = sub i64 %more, 1
  %chunks = udiv i64 %rounded, $ROWS
  %mk = mul i64 %m, %k
  %work = mul i64 %mk, %n
  %large = icmp uge i64 %work, $SHARED
  br label %search
search:
  %area = phi i64 [ 0, %entry ], [ %next, %taken ]
  %place = mul i64 %area, 16
  %offset = add i64 %place, $AREAS
  %flag = getelementptr i8, ptr %data, i64 %offset
  %swap = cmpxchg ptr %flag, i64 0, i64 1 acquire monotonic
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %found, label %taken
taken:
  %following = add i64 %area, 1
  %wraps = icmp uge i64 %following, %areas
  %next = select i1 %wraps, i64 0, i64 %following
  br label %search
found:
  %scratch.at = getelementptr i8, ptr %flag, i64 8
  %scratch = load ptr, ptr %scratch.at
  br label %head
head:
  %i = phi i64 [ 0, %found ], [ %i.next, %done ]
  %goes = icmp slt i64 %i, %outer
  br i1 %goes, label %one, label %out
one:
  %sa = load i64, ptr %steps
  %sb.at = getelementptr i8, ptr %steps, i64 8
  %sb = load i64, ptr %sb.at
  %sc.at = getelementptr i8, ptr %steps, i64 16
  %sc = load i64, ptr %sc.at
  %a0 = load ptr, ptr %args
  %b.at = getelementptr i8, ptr %args, i64 8
  %b0 = load ptr, ptr %b.at
  %r.at = getelementptr i8, ptr %args, i64 16
  %r0 = load ptr, ptr %r.at
  %oa = mul i64 %i, %sa
  %ob = mul i64 %i, %sb
  %oc = mul i64 %i, %sc
  %a = getelementptr i8, ptr %a0, i64 %oa
  %b = getelementptr i8, ptr %b0, i64 %ob
  %r = getelementptr i8, ptr %r0, i64 %oc
  store ptr %a, ptr %words
  %word1 = getelementptr i8, ptr %words, i64 8
  store ptr %b, ptr %word1
  %word2 = getelementptr i8, ptr %words, i64 16
  store ptr %r, ptr %word2
  br i1 %large, label %shared, label %alone
shared:
  %s1 = call i32 @dilim_parallel(ptr %pool, ptr @$NAME_part, ptr %words, i64 %chunks,
                                 ptr %scratch, i64 $STRIDE, i64 %threads)
  br label %done
alone:
  %s2 = call i32 @$NAME_part(ptr %words, i64 0, i64 %chunks, ptr %scratch)
  br label %done
done:
  %i.next = add i64 %i, 1
  br label %head
out:
  store atomic i64 0, ptr %flag release, align 8
  ret void
}
"""
)
