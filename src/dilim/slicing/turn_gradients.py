"""Which of the tensors that a loop carries have a gradient in some of its turns only.

Inside the loop they have one always; but where such a tensor is looked at, it is seen whether there
is one. Then the loop's first turn is taken out, since mostly that alone differs from the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dilim.slicing.errors import Again
from dilim.slicing.turn_objects import tensors_of

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer


class TurnGradients:
    """What is found out about the gradients of one loop, from attempt to attempt.

    Args:
        slicer: who interprets.
    """

    def __init__(self, slicer: Slicer) -> None:
        self._tapes = slicer.tapes
        self._lost: set[tuple[Any, int]] = set()

    def begin_turn(self, heads: dict[Any, Any], starts: dict[Any, Any]) -> None:
        """Take note of tensors that do not have a gradient for certain.

        Args:
            heads: what the places hold at the beginning of a turn.
            starts: what those of them hold before the loop that hold something there.
        """
        for place, value in heads.items():
            before = tensors_of(starts.get(place))
            for number, x in enumerate(tensors_of(value)):
                is_first = number >= len(before) or self._tapes.is_certain(before[number])
                if x._requires_grad and not (is_first and (place, number) not in self._lost):
                    self._tapes.unsure[id(x)] = x

    def end_turn(self, heads: dict[Any, Any], now: Callable[[Any], Any]) -> None:
        """See whether tensors still have the gradient that they began with.

        Args:
            heads: what the places held at the beginning of the turn.
            now: what one holds at its end.

        Raises:
            Again: one has not, for certain.
        """
        for place, value in heads.items():
            ends = tensors_of(now(place)) if place[0] != "cell" else []
            for number, (x, end) in enumerate(zip(tensors_of(value), ends, strict=False)):
                is_sure = x._requires_grad and id(x) not in self._tapes.unsure
                if is_sure and not self._tapes.is_certain(end):
                    self._lost.add((place, number))
                    raise Again
