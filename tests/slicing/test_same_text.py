"""Slicing a function twice gives the same program, so that its machine code is found again."""

import dilim
from dilim.ir.text import to_text
from dilim.slicing.sliced import Sliced


class Counts:
    """Memory that a loop may write, in several tensors."""

    def __init__(self) -> None:
        self.rows = [dilim.zeros((3,)) for _ in range(8)]
        self.turns = 0


def count(counts: Counts, turns: int) -> None:
    for k in range(turns):
        for number, row in enumerate(counts.rows):
            if (counts.turns + number) % 2 == k % 2:
                row += 1.0
        for _ in range(counts.turns):
            for row in counts.rows:
                row *= 0.5
        counts.turns += 1


def text_of_the_program() -> str:
    f = dilim.compile(count, compile_after=0, backend="reference")
    assert isinstance(f, Sliced)
    f(Counts(), 20)
    (region,) = f.programs
    return to_text(region.graph)


def test_the_order_of_what_a_loop_carries_does_not_depend_on_addresses():
    kept = []
    first = text_of_the_program()
    for number in range(8):
        kept += [[object() for _ in range(7 * number + 1)], bytearray(48 * number)]
        assert text_of_the_program() == first
