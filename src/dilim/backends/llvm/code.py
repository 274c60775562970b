"""The body of one LLVM function: instructions, loops, and scopes whose values can be hoisted.

While a loop is being written, instructions can still be added before it: that is how values that
do not change in a loop get out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

NO_UNROLLING: Final = "!llvm.loop !0"
METADATA: Final = '!0 = distinct !{!0, !1}\n!1 = !{!"llvm.loop.unroll.disable"}'
Position = str | int
"""An i64: its name, or its value where it is known when the code is written."""


class Code:
    """Instructions in SSA form.

    Attributes:
        block: label of the block being written.
        loops: whether a loop was written.
    """

    def __init__(self) -> None:
        self.block = "entry"
        self.loops = False
        self._count = 0
        first = ["entry:"]
        self._parts = [first]
        # self._places[d] takes what belongs to nesting depth d; the last one is being written.
        self._places = [first]

    @property
    def depth(self) -> int:
        """How many loops and branches are open."""
        return len(self._places) - 1

    def fresh(self) -> str:
        """A name that is not used yet."""
        self._count += 1
        return f"%v{self._count}"

    def let(self, instruction: str) -> str:
        """Write an instruction that has a result; the name of the result."""
        self._count += 1
        name = f"%v{self._count}"
        self._places[-1].append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Write an instruction."""
        self._places[-1].append(f"  {instruction}")

    def outside(self, depth: int) -> Code:
        """A view that writes at a lower depth, before the loop that is open there."""
        return self if depth >= self.depth else _Outside(self, depth)

    def lines(self) -> list[str]:
        """The instructions so far."""
        return [line for part in self._parts for line in part]

    # --- control flow ---------------------------------------------------------------------

    def loop(
        self,
        start: Position,
        stop: Position,
        step: int,
        body: Callable[[Position, list[str]], Sequence[str]],
        carried: Sequence[tuple[str, str]] = (),
    ) -> list[str]:
        """A loop over start, start + step, ... below stop.

        Known bounds that leave one turn or none give no loop. Where the bounds are known only at
        run time, the loop may run no time at all.

        Args:
            start: first index.
            stop: end.
            step: positive.
            body: from the index and the carried values to their next values.
            carried: LLVM type and first value of each.

        Returns:
            The carried values after the loop.
        """
        first = [value for _, value in carried]
        if isinstance(start, int) and isinstance(stop, int):
            if stop <= start:
                return first
            if stop <= start + step:
                return list(body(start, first))
            return self._turns(start, stop, step, body, carried)
        if carried:
            raise ValueError("a loop of unknown length carries nothing")
        some = self.let(f"icmp slt i64 {start}, {stop}")
        self.branch(some, lambda: self._turns(start, stop, step, body, ()))
        return []

    def _turns(
        self,
        start: Position,
        stop: Position,
        step: int,
        body: Callable[[Position, list[str]], Sequence[str]],
        carried: Sequence[tuple[str, str]],
    ) -> list[str]:
        self.loops = True
        before, index = self.block, self.fresh()
        names = [self.fresh() for _ in carried]
        head, done = f"loop{index[2:]}", f"done{index[2:]}"
        phis = self._open(f"  br label %{head}", head)
        results = body(index, names)
        following = self.let(f"add nuw nsw i64 {index}, {step}")
        phis.append(f"  {index} = phi i64 [ {start}, %{before} ], [ {following}, %{self.block} ]")
        for name, (kind, value), result in zip(names, carried, results, strict=True):
            phis.append(
                f"  {name} = phi {kind} [ {value}, %{before} ], [ {result}, %{self.block} ]"
            )
        more = self.let(f"icmp slt i64 {following}, {stop}")
        self._close(f"  br i1 {more}, label %{head}, label %{done}, {NO_UNROLLING}", done)
        return list(results)

    def branch(self, condition: str, body: Callable[[], object]) -> None:
        """What runs only where a condition holds."""
        number = self.fresh()[2:]
        then, after = f"then{number}", f"after{number}"
        self._open(f"  br i1 {condition}, label %{then}, label %{after}", then)
        body()
        self._close(f"  br label %{after}", after)

    def leave(self, condition: str, body: Callable[[], str]) -> None:
        """Return from the function where a condition holds: ``body`` gives the i32 result."""
        number = self.fresh()[2:]
        then, after = f"then{number}", f"after{number}"
        self._open(f"  br i1 {condition}, label %{then}, label %{after}", then)
        self._close(f"  ret i32 {body()}", after)

    def _open(self, jump: str, label: str) -> list[str]:
        """Begin a block one level deeper; the list of its first instructions."""
        first: list[str] = [f"{label}:"]
        inside: list[str] = []
        self._parts += [[jump], first, inside]
        self._places.append(inside)
        self.block = label
        return first

    def _close(self, jump: str, label: str) -> None:
        """End the innermost level and go on after it."""
        self._places.pop()
        self._parts[-1].append(jump)
        following = [f"{label}:"]
        self._parts.append(following)
        inner = self._places[-1]
        self._places = [following if place is inner else place for place in self._places]
        self.block = label


class _Outside(Code):
    """Writes before the loop that is open at a depth."""

    def __init__(self, code: Code, depth: int) -> None:
        self._code = code
        self._place = code._places[depth]

    def let(self, instruction: str) -> str:
        name = self._code.fresh()
        self._place.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        self._place.append(f"  {instruction}")
