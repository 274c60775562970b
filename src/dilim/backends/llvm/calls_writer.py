"""Writes LLVM functions that find all addresses they need in a table of 8-byte words."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from dilim.backends.llvm.binding import Library
from dilim.backends.llvm.calls_signature import CallerCode

ATTRIBUTES: Final = 'attributes #0 = { nounwind "no-builtins" }'


Load: TypeAlias = Callable[[str, Callable[[], CallerCode]], tuple[Library, str]]
"""Gives the machine code of functions and the name of the first: from what they are, a text that
tells them from all others, and how they are written. It may have them from an earlier time."""


def named(kind: str, text: str) -> CallerCode:
    """Code whose function gets a name of its own wherever the text says ``@NAME``."""
    name = f"{kind}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return CallerCode(name, text.replace("@NAME", f"@{name}"))


class Writer:
    """Instructions of one function, which has the address of its table in ``%table``.

    Args:
        words: names of the words of the table.

    Attributes:
        lines: what was written.
        block: label of the block being written.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.lines: list[str] = []
        self._words = {name: number for number, name in enumerate(words)}
        self._count = 0
        self.block = ""

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def let(self, instruction: str) -> str:
        """Append an instruction; the name of its result."""
        self._count += 1
        self.do(f"%v{self._count} = {instruction}")
        return f"%v{self._count}"

    def label(self, name: str) -> None:
        """Begin a block."""
        self.lines.append(f"{name}:")
        self.block = name

    def at(self, base: str, offset: int | str) -> str:
        """The address so many bytes behind another."""
        return self.let(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base

    def load(self, kind: str, base: str, offset: int | str = 0) -> str:
        """What lies there."""
        return self.let(f"load {kind}, ptr {self.at(base, offset)}")

    def word(self, name: str, kind: str = "ptr") -> str:
        """A word of the table."""
        return self.load(kind, "%table", 8 * self._words[name])

    def set_word(self, name: str, value: str) -> None:
        """Replace a word of the table."""
        self.do(f"store ptr {value}, ptr {self.at('%table', 8 * self._words[name])}")

    def call(self, result: str, function: str, *arguments: str) -> str:
        """Call a function whose address is in the table; the name of its result, if it has one."""
        text = f"call {result} {self.word(function)}({', '.join(arguments)})"
        if result != "void":
            return self.let(text)
        self.do(text)
        return ""

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        """End the block."""
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def need(self, condition: str, otherwise: str) -> None:
        """Go on in a new block if a condition holds."""
        self._count += 1
        self.branch(condition, f"b{self._count}", otherwise)
        self.label(f"b{self._count}")

    def need_equal(self, kind: str, left: str, right: str | int, otherwise: str) -> None:
        """Go on in a new block if two values are equal."""
        self.need(self.let(f"icmp eq {kind} {left}, {right}"), otherwise)
