"""Where the values of a program lie while it runs: one block of memory per run, the *activation*.

An activation begins with a header (see the offsets below), then come *slots*: addresses of the
inputs, of the results and of the variables, in this order. After them lie the records of loops, the
arguments and scratch memory of kernels, and all values that live nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from dilim.ir.graph import Node, Value
from dilim.ir.types import Type

RESUME: Final = 0
"""int32: 0 to begin, else the point at which to go on."""
MESSAGE: Final = 4
"""int32: number of the failed check in its kernel."""
BUDGET: Final = 8
"""int64: turns of loops until the next safepoint."""
FAILED: Final = 16
"""int32: number of the kernel call that failed, in program order."""
OFFENDING: Final = 24
"""int64: the value that the check refused."""
POOL: Final = 32
"""Address of the threads' pool."""
LINK: Final = 40
"""8 bytes for the list of free activations."""
STOP: Final = 48
"""int64: not 0 if the program has been told to stop."""
SLOTS: Final = 64
"""Offset of the first slot."""
ALIGNMENT: Final = 64


def aligned(size: int) -> int:
    """``size`` rounded up to a multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def bytes_of(type: Type) -> int:
    """Memory of a value of that type."""
    return type.size * type.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value lies.

    Attributes:
        kind: ``"slot"``: at the address in slot ``number``; ``"arena"``: ``number`` bytes into the
            activation; ``"pointer"``: at the address stored ``number`` bytes into the activation.
        number: see ``kind``.
    """

    kind: Literal["slot", "arena", "pointer"]
    number: int


@dataclass(frozen=True, slots=True)
class Carried:
    """Memory of one carried value of a loop.

    Attributes:
        current: where the present value lies.
        following: where the body leaves the next one: the same place if it is made in place, else
            both are pointers, exchanged after each turn.
        buffers: offsets of the memory that ``current`` and ``following`` point to at first.
    """

    current: Place
    following: Place
    buffers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoopRecord:
    """Memory of one loop: offsets of its index and limit (int64), and its carried values."""

    index: int
    limit: int
    carried: tuple[Carried, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """A channel point: what it is, and the values that are handed over, at these offsets."""

    op: str
    channel: str
    types: tuple[Type, ...]
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The memory of a program.

    Attributes:
        places: of every value that is stored.
        loops: of every loop.
        points: channel points, by node, numbered in program order.
        arguments: offset of the addresses that are handed to a kernel.
        size: bytes of an activation, without the scratch memory of kernels, which lies behind.
        deaths: node -> (offset, size) of arena memory whose contents nobody needs after it.
    """

    places: Mapping[Value, Place]
    loops: Mapping[Node, LoopRecord]
    points: Mapping[Node, Point]
    arguments: int
    size: int
    deaths: Mapping[Node, tuple[tuple[int, int], ...]]
