"""`Priorities`: steps from which there is more to learn are drawn more often."""

from __future__ import annotations

import math
from typing import Any, Final

from dilim.dtypes import float32, float64, int64
from dilim.tensors.creation import arange, asarray, full, zeros
from dilim.tensors.elementwise import abs, maximum, where
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor

LEAST_ERROR: Final = 1e-6
"""Added to errors, so that every step is drawn at some time."""


class SumTree:
    """Numbers >= 0 at places, and their sums over halves, quarters, and so on.

    Both ways take log2(C) turns: `put`, and `find`, which draws a place in proportion.

    Args:
        capacity: C, places.

    Attributes:
        sums: float64 (2 P,), with P the least power of two that is at least C: node k has the
            children 2 k and 2 k + 1, and number i is that of node P + i. Node 1 is the sum of all.
    """

    def __init__(self, capacity: int) -> None:
        self.depth = max(math.ceil(math.log2(capacity)), 1)
        self.sums = zeros((2 << self.depth,), dtype=float64)

    def put(self, places: Tensor, values: Tensor) -> None:
        """Set the numbers at some places (B,); of several at one place the last counts."""
        nodes = places + self.sums.shape[0] // 2
        self.sums[nodes] = values
        for _ in range(self.depth):
            nodes = nodes // 2
            self.sums[nodes] = self.sums[2 * nodes] + self.sums[2 * nodes + 1]

    def find(self, points: Tensor) -> Tensor:
        """The places at which sums from the left exceed some points, which are below the total.

        A place whose number is 0 is never found, also where sums were rounded.

        Args:
            points: float64 (B,).

        Returns:
            int64 (B,).
        """
        nodes = full(points.shape, 1, dtype=int64)
        for _ in range(self.depth):
            left, right = self.sums[2 * nodes], self.sums[2 * nodes + 1]
            is_right = (points >= left) & (right > 0.0)
            points = where(is_right, points - left, points)
            nodes = 2 * nodes + is_right.astype(int64)
        return nodes - self.sums.shape[0] // 2

    def at(self, places: Tensor) -> Tensor:
        """The numbers at some places."""
        return self.sums[places + self.sums.shape[0] // 2]

    @property
    def total(self) -> Tensor:
        """The sum of all, ()."""
        return self.sums[1]


class Priorities:
    """How often each step is drawn: in proportion to its priority.

    ::

        P(i) = p_i / sum p,    p_i = (abs(error_i) + 1e-6)^alpha

    A new step has the largest priority that there was. Draws are spread: one from each of B equal
    parts of the sum.

    Args:
        capacity: C, steps that are remembered.
        alpha: from 0, where all are drawn alike, to 1.

    Source: Schaul and others, Prioritized experience replay, ICLR 2016, equation (1), the
    proportional variant, and section 3.4.
    """

    def __init__(self, capacity: int, alpha: float) -> None:
        self.alpha = float(alpha)
        self.tree = SumTree(capacity)
        self.largest = asarray(1.0, dtype=float64)

    def add(self, places: Tensor) -> None:
        """Steps were added at these places (N,)."""
        self.tree.put(places, self.largest)

    def draw(self, generator: Generator, size: int) -> Tensor:
        """The places of so many steps, int64 (B,)."""
        shares = arange(size).astype(float64) + generator.uniform((size,), dtype=float64)
        return self.tree.find(shares * (self.tree.total / size))

    def weights(self, places: Tensor, beta: float | Tensor) -> Tensor:
        """How much steps count that were drawn, (C P(i))^-beta, the largest of them being 1.

        Args:
            places: (B,).
            beta: from 0, where all count alike, to 1, where it makes up for the drawing.

        Returns:
            float32 (B,).
        """
        values = self.tree.at(places)
        weights: Tensor = ((values / values.min()) ** -beta).astype(float32)
        return weights

    def rate(self, places: Tensor, errors: Tensor) -> None:
        """Give steps (B,) the priorities of their errors (B,)."""
        values = (abs(errors).astype(float64) + LEAST_ERROR) ** self.alpha
        self.tree.put(places, values)
        self.largest = maximum(self.largest, values.max())

    def state_dict(self, length: int) -> dict[str, Any]:
        """The priorities of the first so many places, and the largest."""
        return {"values": self.tree.at(arange(length)), "largest": self.largest.clone()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        values = asarray(state["values"])
        self.tree.sums.fill_(0.0)
        self.tree.put(arange(values.shape[0]), values)
        self.largest = asarray(state["largest"], copy=True)
