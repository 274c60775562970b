"""Writes LLVM functions as text: instructions in SSA form, counted loops, typed memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from dilim import dtypes
from dilim.dtypes import DType

REGISTER: Final = {
    dtype: {"bool": "i1", "int": f"i{8 * dtype.itemsize}", "uint": f"i{8 * dtype.itemsize}"}.get(
        dtype.kind, "float" if dtype is dtypes.float32 else "double"
    )
    for dtype in dtypes.ALL
}
"""The LLVM type of a value of each dtype."""

MEMORY: Final = {**REGISTER, dtypes.bool_: "i8"}
"""The LLVM type of an element in memory."""


class FunctionWriter:
    """One LLVM function, written instruction by instruction.

    Args:
        name: of the function.
        parameters: each as ``"ptr noalias %x"``.

    Attributes:
        block: label of the block being written.
    """

    def __init__(self, name: str, parameters: Sequence[str]) -> None:
        self._lines = [f"define void @{name}({', '.join(parameters)}) #0 {{", "entry:"]
        self._count = 0
        self.block = "entry"

    def let(self, instruction: str) -> str:
        """Write an instruction that has a result; the name of the result."""
        name = self._fresh()
        self.do(f"{name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Write an instruction."""
        self._lines.append(f"  {instruction}")

    def load(self, dtype: DType, base: str, offset: str) -> str:
        """The element at an offset that counts elements."""
        value = self.let(f"load {MEMORY[dtype]}, ptr {self._place(dtype, base, offset)}")
        return self.let(f"icmp ne i8 {value}, 0") if dtype is dtypes.bool_ else value

    def store(self, dtype: DType, value: str, base: str, offset: str) -> None:
        """Write the element at an offset that counts elements."""
        if dtype is dtypes.bool_:
            value = self.let(f"zext i1 {value} to i8")
        self.do(f"store {MEMORY[dtype]} {value}, ptr {self._place(dtype, base, offset)}")

    def _place(self, dtype: DType, base: str, offset: str) -> str:
        return self.let(f"getelementptr inbounds {MEMORY[dtype]}, ptr {base}, i64 {offset}")

    def loop(
        self,
        count: int,
        body: Callable[[str, list[str]], Sequence[str]],
        carried: Sequence[tuple[str, str]] = (),
    ) -> list[str]:
        """Write a loop that runs ``count`` times.

        Args:
            count: any number; for 0 and 1 there is no loop.
            body: from the index (an i64) and the carried values to their next values.
            carried: LLVM type and first value of each.

        Returns:
            The carried values after the loop.
        """
        first = [value for _, value in carried]
        if count == 0:
            return first
        if count == 1:
            return list(body("0", first))
        before, index, following, more = self.block, self._fresh(), self._fresh(), self._fresh()
        names = [self._fresh() for _ in carried]
        head = self._open_after_branch("loop")
        place = len(self._lines)
        results = body(index, names)
        phis = [f"  {index} = phi i64 [ 0, %{before} ], [ {following}, %{self.block} ]"]
        for name, (kind, start), result in zip(names, carried, results, strict=True):
            phis.append(
                f"  {name} = phi {kind} [ {start}, %{before} ], [ {result}, %{self.block} ]"
            )
        self._lines[place:place] = phis
        self.do(f"{following} = add nuw nsw i64 {index}, 1")
        self.do(f"{more} = icmp ult i64 {following}, {count}")
        done = f"done{self._fresh()[1:]}"
        self.do(f"br i1 {more}, label %{head}, label %{done}")
        self._open(done)
        return list(results)

    def text(self) -> str:
        """The finished function."""
        return "\n".join([*self._lines, "  ret void", "}"])

    def _fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _open_after_branch(self, hint: str) -> str:
        label = f"{hint}{self._fresh()[1:]}"
        self.do(f"br label %{label}")
        self._open(label)
        return label

    def _open(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self.block = label
