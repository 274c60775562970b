"""Writes loops over ranges known or unknown when compiling, for matrix products.

Positions and byte offsets are `Number`: a Python int where known, else the name of an ``i64``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dilim.backends.llvm.code import Code

Number = int | str


class Text(Code):
    """The body of one function; arithmetic on known numbers is done at once."""

    def add(self, x: Number, y: Number) -> Number:
        """``x + y``."""
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        if x == 0 or y == 0:
            return y if x == 0 else x
        return self.let(f"add nsw i64 {x}, {y}")

    def subtract(self, x: Number, y: Number) -> Number:
        """``x - y``."""
        if isinstance(x, int) and isinstance(y, int):
            return x - y
        return x if y == 0 else self.let(f"sub nsw i64 {x}, {y}")

    def multiply(self, x: Number, y: Number) -> Number:
        """``x * y``."""
        if isinstance(x, int) and isinstance(y, int):
            return x * y
        if 0 in (x, y):
            return 0
        if 1 in (x, y):
            return y if x == 1 else x
        return self.let(f"mul nsw i64 {x}, {y}")

    def divide(self, x: Number, y: int) -> Number:
        """``x // y`` for x that are not negative."""
        if isinstance(x, int):
            return x // y
        return x if y == 1 else self.let(f"udiv i64 {x}, {y}")

    def remainder(self, x: Number, y: int) -> Number:
        """``x % y`` for x that are not negative."""
        if isinstance(x, int):
            return x % y
        return 0 if y == 1 else self.let(f"urem i64 {x}, {y}")

    def round_down(self, x: Number, y: int) -> Number:
        """The greatest multiple of the power of two ``y`` that is not above ``x``."""
        return x // y * y if isinstance(x, int) else self.let(f"and i64 {x}, {-y}")

    def least(self, x: Number, y: Number) -> Number:
        """The smaller one, signed."""
        if isinstance(x, int) and isinstance(y, int):
            return min(x, y)
        return self.let(f"call i64 @llvm.smin.i64(i64 {x}, i64 {y})")

    def at(self, base: str, offset: Number) -> str:
        """The address ``offset`` bytes after ``base``."""
        return base if offset == 0 else self.let(f"getelementptr i8, ptr {base}, i64 {offset}")

    def compare(self, comparison: str, x: Number, y: Number) -> str:
        """An ``i1``: how ``icmp`` finds two numbers."""
        return self.let(f"icmp {comparison} i64 {x}, {y}")

    def both(self, x: str, y: str) -> str:
        """Whether two conditions hold."""
        return self.let(f"and i1 {x}, {y}")

    def opposite(self, condition: str) -> str:
        """Whether a condition does not hold."""
        return self.let(f"xor i1 {condition}, true")

    def choose(self, condition: str, x: Number, y: Number, kind: str = "i64") -> str:
        """x where the condition holds, else y."""
        return self.let(f"select i1 {condition}, {kind} {x}, {kind} {y}")

    def when_above(self, x: Number, y: Number, body: Callable[[], None]) -> None:
        """Run ``body`` where ``x > y``."""
        if isinstance(x, int) and isinstance(y, int):
            if x > y:
                body()
            return
        self.branch(self.compare("sgt", x, y), body)

    def turns(
        self,
        count: Number,
        body: Callable[[Number, list[str]], Sequence[str]],
        carried: Sequence[tuple[str, str]],
    ) -> list[str]:
        """A loop over 0, 1, ... below ``count``, which is at least 1 where it is not known.

        Args:
            count: of the turns.
            body: from the index and the carried values to their next values.
            carried: LLVM type and first value of each.

        Returns:
            The carried values after the loop.
        """
        if isinstance(count, int):
            return self.loop(0, count, 1, body, carried)
        return self._turns(0, count, 1, body, carried)
