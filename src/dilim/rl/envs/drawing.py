"""`Canvas`: a few shapes on an array of pixels, with smooth edges and without a window library."""

from __future__ import annotations

import math

import numpy as np

Point = tuple[float, float]
Color = tuple[int, int, int]


class Canvas:
    """A white picture to draw on; x grows to the right and y downwards, in pixels.

    Args:
        width: columns.
        height: rows.

    Attributes:
        pixels: uint8, (height, width, 3).
    """

    def __init__(self, width: int, height: int) -> None:
        self.pixels = np.full((height, width, 3), 255, np.uint8)
        # centres of pixels
        self._y, self._x = np.mgrid[0.5:height, 0.5:width].astype(np.float32)

    def rectangle(self, corner: Point, opposite: Point, color: Color) -> None:
        """A filled rectangle with sides along the axes."""
        (left, right), (top, bottom) = (sorted(pair) for pair in zip(corner, opposite, strict=True))
        inside_x = np.minimum(self._x - left, right - self._x)
        inside_y = np.minimum(self._y - top, bottom - self._y)
        self._paint(np.minimum(inside_x, inside_y), color)

    def cell(self, row: int, column: int, side: float, color: Color) -> None:
        """A filled square of a grid."""
        corner = column * side, row * side
        self.rectangle(corner, (corner[0] + side, corner[1] + side), color)

    def disc(self, center: Point, radius: float, color: Color) -> None:
        """A filled circle."""
        distance = np.hypot(self._x - center[0], self._y - center[1])
        self._paint(radius - distance, color)

    def line(self, start: Point, end: Point, thickness: float, color: Color) -> None:
        """A line with flat ends."""
        length = math.dist(start, end) or 1.0
        along = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
        dx, dy = self._x - start[0], self._y - start[1]
        forward = dx * along[0] + dy * along[1]
        aside = np.abs(dy * along[0] - dx * along[1])
        inside = np.minimum(np.minimum(forward, length - forward), thickness / 2 - aside)
        self._paint(inside, color)

    def _paint(self, depth: np.ndarray, color: Color) -> None:
        """Cover pixels by how deep (in pixels) their centres lie inside a shape."""
        cover = np.clip(depth + 0.5, 0.0, 1.0)[..., None]
        mixed = self.pixels + (np.array(color, np.float32) - self.pixels) * cover
        self.pixels = np.rint(mixed).astype(np.uint8)


class TextCanvas:
    """Characters to draw on; x grows to the right and y upwards.

    Args:
        columns: characters in a line.
        rows: lines.
        low: the point in the middle of the character at the bottom left.
        high: the point in the middle of the one at the top right.
    """

    def __init__(self, columns: int, rows: int, low: Point, high: Point) -> None:
        self._cells = [[" "] * columns for _ in range(rows)]
        self._low = low
        self._scale = (columns - 1) / (high[0] - low[0]), (rows - 1) / (high[1] - low[1])

    def mark(self, place: Point, character: str) -> None:
        """A character at the nearest place inside the picture."""
        column = self._index(place, 0, len(self._cells[0]))
        row = len(self._cells) - 1 - self._index(place, 1, len(self._cells))
        self._cells[row][column] = character

    def line(self, start: Point, end: Point, character: str) -> None:
        """Characters along a line."""
        for step in range(101):
            along = step / 100
            x, y = (a + (b - a) * along for a, b in zip(start, end, strict=True))
            self.mark((x, y), character)

    def text(self) -> str:
        """The lines, without spaces at their ends."""
        return "\n".join("".join(row).rstrip() for row in self._cells)

    def _index(self, place: Point, axis: int, count: int) -> int:
        index = round((place[axis] - self._low[axis]) * self._scale[axis])
        return max(0, min(count - 1, index))
