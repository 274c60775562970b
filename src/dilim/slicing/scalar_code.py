"""Writes the native training step of a scalar model: eight samples at a time, as one vector.

The function takes the address of a table (see `Table`) and gives 0, or a `Status` before it did
anything. Samples are worked through from the last block to the first, and in each block from the
last to the first: the order in which `Value.backward` reaches them. Lanes beyond the last sample
have an incoming gradient of 0 and so add nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final

from dilim import dtypes
from dilim.backends.llvm import instructions, vectors
from dilim.backends.llvm.code import METADATA, Code
from dilim.backends.llvm.values import Values
from dilim.errors import UnsupportedError
from dilim.ir.types import Type
from dilim.ops.expansions import EXPANSIONS
from dilim.ops.lowering import Lowering
from dilim.ops.primitives import load, prim
from dilim.scalar.value import Value
from dilim.slicing.scalar_objects import LOOK, READ, WRITE
from dilim.slicing.scalar_sample import Sample, is_constant

LANES: Final = 8
LANE_ORDER: Final = tuple(reversed(range(LANES)))
"""In which the samples of a block add to the gradients."""
ENTRY: Final = "train"
DTYPE: Final = dtypes.float64
_VECTOR: Final = vectors.kind_of(DTYPE, LANES)
_ZERO: Final = "zeroinitializer"


class Table(IntEnum):
    """Positions of 8-byte words in the table: addresses of arrays, then whole numbers."""

    PARAMETERS = 0
    GRADIENTS = 1
    INPUTS = 2
    """(blocks, features, 8)."""
    TARGETS = 3
    SEEDS = 4
    """(blocks, 8): the gradient of every term, 1 / samples; 0 beyond the last sample."""
    TERMS = 5
    PREDICTIONS = 6
    CONTRIBUTIONS = 7
    LOSSES = 8
    SETTINGS = 9
    FIRST_STATE = 10
    SECOND_STATE = 11
    CORRECTIONS = 12
    """(steps, 2), for Adam."""
    OBJECTS = 13
    """Of the parameters: read before the steps, written after them."""
    FLOAT_TYPE = 14
    TRUE = 15
    ROWS = 16
    """What is known of attributes: a `Row` each."""
    SAMPLES = 17
    BLOCKS = 18
    STEPS = 19
    ROW_COUNT = 20
    SIZE = 21


class Setting(IntEnum):
    """Positions of numbers in the settings."""

    SAMPLES = 0
    RATE = 1
    MOMENTUM = 2
    BETA1 = 3
    REST1 = 4
    BETA2 = 5
    REST2 = 6
    EPSILON = 7
    SIZE = 8


def write_step(sample: Sample, optimizer: str) -> str:
    """The LLVM module of a training step.

    Args:
        sample: from `trace_sample`.
        optimizer: ``""`` (gradients only), ``"sgd"``, ``"momentum"`` or ``"adam"``.
    """
    code = Code()
    words: dict[Table, str] = {word: _word(code, word) for word in Table if word is not Table.SIZE}
    objects = f"ptr {words[Table.OBJECTS]}, i64 {len(sample.parameters)}"
    data, kind = words[Table.PARAMETERS], words[Table.FLOAT_TYPE]
    rows = f"ptr {words[Table.ROWS]}, i64 {words[Table.ROW_COUNT]}"
    _call(code, f"@{LOOK}({rows})")
    _call(code, f"@{READ}({objects}, ptr {data}, ptr {kind})")
    _Step(code, sample, words).write(optimizer)
    code.do(
        f"call i32 @{WRITE}({objects}, ptr {data}, ptr {words[Table.GRADIENTS]}, ptr {kind}, "
        f"ptr {words[Table.TRUE]})"
    )
    declared = (
        f"declare i32 @{LOOK}(ptr, i64)\n"
        f"declare i32 @{READ}(ptr, i64, ptr, ptr)\n"
        f"declare i32 @{WRITE}(ptr, i64, ptr, ptr, ptr, ptr)\n"
        f"declare {_VECTOR} @llvm.sqrt.v8f64({_VECTOR})\n"
        f"declare {_VECTOR} @llvm.fabs.v8f64({_VECTOR})\n"
        f"declare {_VECTOR} @llvm.copysign.v8f64({_VECTOR}, {_VECTOR})"
    )
    lines = "\n".join(code.lines())
    return (
        f"{declared}\n\ndefine i32 @{ENTRY}(ptr %table) #0 {{\n{lines}\n  ret i32 0\n}}\n\n"
        f'attributes #0 = {{ nounwind "no-builtins" }}\n{METADATA}\n'
    )


def _call(code: Code, call: str) -> None:
    """Call a function, and give up where it does."""
    status = code.let(f"call i32 {call}")
    code.leave(code.let(f"icmp ne i32 {status}, 0"), lambda: status)


def _word(code: Code, word: Table) -> str:
    kind = "ptr" if word < Table.SAMPLES else "i64"
    at = code.let(f"getelementptr i8, ptr %table, i64 {8 * word}")
    return code.let(f"load {kind}, ptr {at}")


class _Step:
    def __init__(self, code: Code, sample: Sample, words: Mapping[Table, str]) -> None:
        self._code = code
        self.sample = sample
        self._words = words
        self._padded = -(-len(sample.parameters) // LANES) * LANES
        self._numbers = {value: i for i, value in enumerate(sample.parameters)}

    # --- memory ---------------------------------------------------------------------------

    def _load(self, base: str, offset: str | int, lanes: int = LANES) -> str:
        address = vectors.place(self._code, DTYPE, base, offset)
        return vectors.load(self._code, DTYPE, address, lanes, lanes)

    def _store(self, value: str, base: str, offset: str | int, lanes: int = LANES) -> None:
        address = vectors.place(self._code, DTYPE, base, offset)
        vectors.store(self._code, DTYPE, value, address, lanes, lanes)

    def _times(self, index: str | int, factor: int) -> str | int:
        if isinstance(index, int):
            return index * factor
        return self._code.let(f"mul i64 {index}, {factor}")

    def _setting(self, setting: Setting) -> str:
        number = self._load(self._words[Table.SETTINGS], int(setting), 0)
        return vectors.splat(self._code, number, DTYPE, LANES)

    def _do(self, name: str, *operands: str) -> str:
        return instructions.primitive(self._code, name, DTYPE, LANES, *operands)

    # --- the step -------------------------------------------------------------------------

    def write(self, optimizer: str) -> None:
        """All steps, each over all samples."""
        code, words = self._code, self._words

        def step(number: str | int, _: list[str]) -> list[str]:
            self._each(self._clear)
            code.loop(0, words[Table.BLOCKS], 1, self._block)
            self._mean(number)
            if optimizer:
                self._update(optimizer, number)
            return []

        code.loop(0, words[Table.STEPS], 1, step)

    def _each(self, body: Callable[[str | int], None]) -> None:
        """For every vector of parameters."""

        def turn(offset: str | int, _: list[str]) -> list[str]:
            body(offset)
            return []

        self._code.loop(0, self._padded, LANES, turn)

    def _clear(self, offset: str | int) -> None:
        self._store(_ZERO, self._words[Table.GRADIENTS], offset)

    def _block(self, turn: str | int, _: list[str]) -> list[str]:
        code, words = self._code, self._words
        last = code.let(f"sub i64 {words[Table.BLOCKS]}, 1")
        block = code.let(f"sub i64 {last}, {turn}")
        offset = self._times(block, LANES)
        data = self._forward(block, offset)
        self._store(data[self.sample.term], words[Table.TERMS], offset)
        self._store(data[self.sample.prediction], words[Table.PREDICTIONS], offset)
        seed = self._load(words[Table.SEEDS], offset)
        for number, value in _backward(self, data, seed):
            self._store(value, words[Table.CONTRIBUTIONS], number * LANES)
        code.loop(0, len(self.sample.parameters), 1, self._accumulate)
        return []

    # --- forward --------------------------------------------------------------------------

    def _forward(self, block: str | int, offset: str | int) -> dict[Value, str]:
        sample, words = self.sample, self._words
        data: dict[Value, str] = {}
        first = self._times(block, LANES * len(sample.inputs))
        rows = vectors.place(self._code, DTYPE, words[Table.INPUTS], first)
        for position, value in enumerate(sample.inputs):
            data[value] = self._load(rows, position * LANES)
        data[sample.target] = self._load(words[Table.TARGETS], offset)
        for value in sample.order:
            if value not in data:
                data[value] = self._compute(value, data)
        return data

    def _compute(self, value: Value, data: Mapping[Value, str]) -> str:
        if value in self._numbers:
            number = self._load(self._words[Table.PARAMETERS], self._numbers[value], 0)
            return vectors.splat(self._code, number, DTYPE, LANES)
        if is_constant(value):
            return vectors.literal(value.data, DTYPE, LANES)
        operands = [data[operand] for operand in value.inputs]
        if value.op in _ARITHMETIC:
            return self._do(_ARITHMETIC[value.op], *operands)
        if value.op == "relu":
            return self._relu(operands[0])
        if value.op in EXPANSIONS:
            return self._expansion(value.op, operands[0])
        raise UnsupportedError(f"compile: the operation {value.op} of a scalar model")

    def _relu(self, x: str) -> str:
        """Python's max(x, 0.0): x unless 0.0 > x."""
        below = self._code.let(f"fcmp ogt {_VECTOR} {_ZERO}, {x}")
        return self._code.let(f"select <8 x i1> {below}, {_VECTOR} {_ZERO}, {_VECTOR} {x}")

    def _expansion(self, name: str, x: str) -> str:
        leaf, types = load(0, DTYPE), [Type((), DTYPE)]
        lowering = Lowering((), types)
        values = Values(self._code, lowering, [], types)
        with values.scope({}):
            values.define(lowering.lower(leaf), x, LANES)
            return values.spread(lowering.lower(prim(name, leaf)), LANES)

    # --- gradients ------------------------------------------------------------------------

    def slopes(self, value: Value, data: Mapping[Value, str]) -> list[str | None]:
        """The local derivative for each input; None for 1."""
        one = vectors.literal(1.0, DTYPE, LANES)
        operands = [data[operand] for operand in value.inputs]
        out, do = data[value], self._do
        if value.op == "+":
            return [None, None]
        if value.op == "-":
            return [None, vectors.literal(-1.0, DTYPE, LANES)]
        if value.op == "*":
            return [operands[1], operands[0]]
        if value.op == "/":
            return [
                do("divide", one, operands[1]),
                do("negative", do("divide", out, operands[1])),
            ]
        if value.op == "relu":
            above = self._code.let(f"fcmp ogt {_VECTOR} {operands[0]}, {_ZERO}")
            return [self._code.let(f"select <8 x i1> {above}, {_VECTOR} {one}, {_VECTOR} {_ZERO}")]
        if value.op == "tanh":
            return [do("subtract", one, do("multiply", out, out))]
        if value.op == "sigmoid":
            return [do("multiply", out, do("subtract", one, out))]
        raise UnsupportedError(f"compile: the derivative of {value.op} in a scalar model")

    def pass_on(self, slope: str | None, gradient: str, some: str) -> str:
        """slope * gradient, and 0 where the gradient is 0."""
        if slope is None:
            return gradient
        product = self._do("multiply", slope, gradient)
        return self._code.let(f"select <8 x i1> {some}, {_VECTOR} {product}, {_VECTOR} {_ZERO}")

    def nonzero(self, gradient: str) -> str:
        """Where a gradient is not 0 (NaN is not)."""
        return self._code.let(f"fcmp une {_VECTOR} {gradient}, {_ZERO}")

    def add(self, a: str | None, b: str) -> str:
        """The sum of two gradients."""
        return b if a is None else self._do("add", a, b)

    def number_of(self, value: Value) -> int | None:
        """Which parameter a leaf is."""
        return self._numbers.get(value)

    def _accumulate(self, number: str | int, _: list[str]) -> list[str]:
        """Add the contributions of a block to one gradient, last sample first."""
        words, first = self._words, self._times(number, LANES)
        row = vectors.place(self._code, DTYPE, words[Table.CONTRIBUTIONS], first)
        total = self._load(words[Table.GRADIENTS], number, 0)
        for lane in LANE_ORDER:
            part = self._load(row, lane, 0)
            total = self._code.let(f"fadd double {total}, {part}")
        self._store(total, words[Table.GRADIENTS], number, 0)
        return []

    # --- the end of a step ----------------------------------------------------------------

    def _mean(self, step: str | int) -> None:
        """The loss: terms added in order, divided by their number."""
        code, words = self._code, self._words
        total_at = vectors.place(code, DTYPE, words[Table.LOSSES], step)
        vectors.store(code, DTYPE, self._load(words[Table.TERMS], 0, 0), total_at, 0, 0)

        def add(index: str | int, _: list[str]) -> list[str]:
            total = vectors.load(code, DTYPE, total_at, 0, 0)
            term = self._load(words[Table.TERMS], index, 0)
            vectors.store(code, DTYPE, code.let(f"fadd double {total}, {term}"), total_at, 0, 0)
            return []

        code.loop(1, words[Table.SAMPLES], 1, add)
        total = vectors.load(code, DTYPE, total_at, 0, 0)
        count = self._load(words[Table.SETTINGS], int(Setting.SAMPLES), 0)
        vectors.store(code, DTYPE, code.let(f"fdiv double {total}, {count}"), total_at, 0, 0)

    def _update(self, optimizer: str, step: str | int) -> None:
        if optimizer == "adam":
            self._adam(step)
            return
        rate, momentum = self._setting(Setting.RATE), self._setting(Setting.MOMENTUM)

        def move(offset: str | int) -> None:
            words, change = self._words, self._load(self._words[Table.GRADIENTS], offset)
            if optimizer == "momentum":
                kept = self._load(words[Table.FIRST_STATE], offset)
                change = self._do("add", self._do("multiply", momentum, kept), change)
                self._store(change, words[Table.FIRST_STATE], offset)
            self._subtract(self._do("multiply", rate, change), offset)

        self._each(move)

    def _subtract(self, change: str, offset: str | int) -> None:
        old = self._load(self._words[Table.PARAMETERS], offset)
        self._store(self._do("subtract", old, change), self._words[Table.PARAMETERS], offset)

    def _adam(self, step: str | int) -> None:
        words, do = self._words, self._do
        rate, epsilon = self._setting(Setting.RATE), self._setting(Setting.EPSILON)
        beta1, rest1 = self._setting(Setting.BETA1), self._setting(Setting.REST1)
        beta2, rest2 = self._setting(Setting.BETA2), self._setting(Setting.REST2)
        row = self._times(step, 2)
        corrections = vectors.place(self._code, DTYPE, words[Table.CORRECTIONS], row)
        first, second = (
            vectors.splat(self._code, self._load(corrections, k, 0), DTYPE, LANES) for k in (0, 1)
        )

        def move(offset: str | int) -> None:
            gradient = self._load(words[Table.GRADIENTS], offset)
            mean = self._load(words[Table.FIRST_STATE], offset)
            square = self._load(words[Table.SECOND_STATE], offset)
            mean = do("add", do("multiply", beta1, mean), do("multiply", rest1, gradient))
            squared = do("multiply", do("multiply", rest2, gradient), gradient)
            square = do("add", do("multiply", beta2, square), squared)
            self._store(mean, words[Table.FIRST_STATE], offset)
            self._store(square, words[Table.SECOND_STATE], offset)
            size = do("add", do("sqrt", do("divide", square, second)), epsilon)
            change = do("multiply", rate, do("divide", mean, first))
            self._subtract(do("divide", change, size), offset)

        self._each(move)


_ARITHMETIC: Final = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}


def _backward(step: _Step, data: Mapping[Value, str], seed: str) -> list[tuple[int, str]]:
    """Contributions to parameters, in the order of `Value.backward`."""
    gradients: dict[Value, str] = {step.sample.term: seed}
    found: list[tuple[int, str]] = []
    for value in reversed(step.sample.order):
        gradient = gradients.get(value)
        if gradient is None or not value.inputs:
            continue
        some = step.nonzero(gradient)
        for operand, slope in zip(value.inputs, step.slopes(value, data), strict=False):
            number = step.number_of(operand)
            if number is None and not operand.inputs:
                continue  # a constant or an input: nobody asks
            part = step.pass_on(slope, gradient, some)
            if number is None:
                gradients[operand] = step.add(gradients.get(operand), part)
            else:
                found.append((number, part))
    if len({number for number, _ in found}) < len(found):
        raise UnsupportedError("compile: a scalar model that uses a parameter twice for a sample")
    return found
