"""Places boxes and arrows on a plane: rows from sources to users, few crossings, nothing overlaps.

The method is Sugiyama's. Boxes go into rows, each above its users; an arrow that passes rows gets a
narrow box of its own in each; rows are ordered by the mean place of their neighbours; and the boxes
of a row are moved as near below and above their neighbours as the order allows, in the sense of
least squares.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

COLUMN_GAP: Final = 18.0
LANE_GAP: Final = 7.0
ROW_GAP: Final = 34.0
WIDEST: Final = 1500.0
"""Rows that would be wider are broken, unless one box alone is."""
_SWEEPS: Final = 12
_LANE_WEIGHT: Final = 4.0  # how much straighter a long arrow is to be than others

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Arrow:
    """A connection between boxes.

    Attributes:
        source: number of the box where it starts, at the bottom.
        target: number of the box where it ends, at the top; larger than ``source``.
        start: where at the bottom of the source, in pixels from its middle.
        end: where at the top of the target, in pixels from its middle.
    """

    source: int
    target: int
    start: float = 0.0
    end: float = 0.0


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Where everything is.

    Attributes:
        corners: per box its left top corner.
        routes: per arrow the points that it passes, downwards, in pairs: from the first to the
            second of a pair it goes straight down, in or beside the boxes of a row.
        width: of everything.
        height: of everything.
    """

    corners: list[Point]
    routes: list[list[Point]]
    width: float
    height: float


def arrange(sizes: Sequence[Point], arrows: Sequence[Arrow], widest: float = WIDEST) -> Arrangement:
    """Place boxes of given width and height, and arrows between them.

    Args:
        sizes: width and height of each box, sources before their users.
        arrows: connections.
        widest: pixels beyond which a row is broken.
    """
    plane = _Plane(list(sizes), _levels(sizes, arrows, widest))
    paths = [plane.path(arrow) for arrow in arrows]
    plane.order()
    plane.straighten()
    return plane.arrangement(len(sizes), arrows, paths)


def _levels(sizes: Sequence[Point], arrows: Sequence[Arrow], widest: float) -> list[int]:
    """The row of each box, counted from below: right above its highest user, where room is."""
    lowest = [0] * len(sizes)
    levels = [0] * len(sizes)
    used: dict[int, float] = defaultdict(float)
    incoming = defaultdict(list)
    for arrow in arrows:
        incoming[arrow.target].append(arrow.source)
    connected = {box for arrow in arrows for box in (arrow.source, arrow.target)}

    def put(box: int, level: int) -> None:
        width = sizes[box][0] + COLUMN_GAP
        while used[level] and used[level] + width > widest:
            level += 1
        used[level] += width
        levels[box] = level
        for source in incoming[box]:
            lowest[source] = max(lowest[source], level + 1)

    for box in sorted(connected, reverse=True):
        put(box, lowest[box])
    top = max(levels, default=0)
    for box in range(len(sizes)):
        if box not in connected:
            put(box, top)
    return levels


@dataclass(slots=True)
class _Plane:
    """Boxes, and lanes of arrows beside them, in rows.

    Attributes:
        sizes: of boxes, then of lanes.
        levels: rows, counted from below.
        rows: numbers of boxes and lanes from left to right, the top row first.
        links: pairs (upper, lower) in neighbouring rows, with the offsets of their ends.
        lanes: (box, start, level) -> lane, shared by arrows that start at the same place.
        middles: x of each box and lane.
    """

    sizes: list[Point]
    levels: list[int]
    rows: list[list[int]] = field(init=False)
    above: dict[int, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    below: dict[int, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    lanes: dict[tuple[int, float, int], int] = field(default_factory=dict)
    middles: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = max(self.levels, default=-1) + 1
        self.rows = [[] for _ in range(count)]
        for box, level in enumerate(self.levels):
            self.rows[count - 1 - level].append(box)

    def path(self, arrow: Arrow) -> list[int]:
        """The boxes and lanes that an arrow connects, from its source to its target."""
        path = [arrow.source]
        for level in range(self.levels[arrow.source] - 1, self.levels[arrow.target], -1):
            key = (arrow.source, arrow.start, level)
            if key not in self.lanes:
                self.lanes[key] = len(self.sizes)
                self.sizes.append((0.0, 0.0))
                self.levels.append(level)
                self.rows[len(self.rows) - 1 - level].append(self.lanes[key])
                self._link(path[-1], self.lanes[key], arrow.start if len(path) == 1 else 0.0, 0.0)
            path.append(self.lanes[key])
        self._link(path[-1], arrow.target, arrow.start if len(path) == 1 else 0.0, arrow.end)
        return [*path, arrow.target]

    def _link(self, upper: int, lower: int, start: float, end: float) -> None:
        self.below[upper].append((lower, end - start))
        self.above[lower].append((upper, start - end))

    # --- order ----------------------------------------------------------------------------

    def order(self) -> None:
        """Sort each row by the mean place of its neighbours, downwards and upwards in turn."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(_SWEEPS):
            downwards = sweep % 2 == 0
            neighbours = self.above if downwards else self.below
            for row in self.rows if downwards else reversed(self.rows):
                places = self._places()
                keys = {}
                for box in row:
                    near = [places[other] for other, _ in neighbours[box]]
                    keys[box] = sum(near) / len(near) if near else places[box]
                row.sort(key=keys.__getitem__)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def _places(self) -> dict[int, float]:
        """Boxes -> place in their rows, rows being centred."""
        return {
            box: place - (len(row) - 1) / 2 for row in self.rows for place, box in enumerate(row)
        }

    def _crossings(self) -> int:
        places = self._places()
        total = 0
        for row in self.rows:
            ends = [
                [places[lower] for lower, _ in sorted(self.below[box], key=lambda x: places[x[0]])]
                for box in row
            ]
            flat = [end for some in ends for end in some]
            total += sum(a > b for i, a in enumerate(flat) for b in flat[i + 1 :])
        return total

    # --- places ---------------------------------------------------------------------------

    def straighten(self) -> None:
        """Move boxes, in their order, towards the mean of what they are connected with."""
        self.middles = [0.0] * len(self.sizes)
        for row in self.rows:
            self._spread(row, [0.0] * len(row), [1.0] * len(row))
        for sweep in range(2 * _SWEEPS):
            downwards = sweep % 2 == 0
            for row in self.rows if downwards else reversed(self.rows):
                wanted, weights = [], []
                for box in row:
                    near = self.above[box] if downwards else self.below[box]
                    if sweep >= 2 * _SWEEPS - 4:
                        near = self.above[box] + self.below[box]
                    spots = [self.middles[other] + shift for other, shift in near]
                    wanted.append(sum(spots) / len(spots) if spots else self.middles[box])
                    lane = self.sizes[box][0] == 0
                    weights.append(_LANE_WEIGHT if lane else 1.0 if spots else 0.1)
                self._spread(row, wanted, weights)

    def _spread(self, row: list[int], wanted: list[float], weights: list[float]) -> None:
        """The places nearest to the wanted ones at which nothing overlaps.

        Neighbours that would overlap are pushed together to a block at their weighted mean.
        """
        offsets = [0.0]
        for left, right in itertools.pairwise(row):
            lanes = self.sizes[left][0] == self.sizes[right][0] == 0
            room = (self.sizes[left][0] + self.sizes[right][0]) / 2
            room += LANE_GAP if lanes else COLUMN_GAP
            offsets.append(offsets[-1] + room)
        blocks: list[list[float]] = []  # mean, weight, count
        for place, weight, offset in zip(wanted, weights, offsets, strict=True):
            blocks.append([place - offset, weight, 1])
            while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
                mean, total, count = blocks.pop()
                last = blocks[-1]
                last[0] = (last[0] * last[1] + mean * total) / (last[1] + total)
                last[1] += total
                last[2] += count
        means = [mean for mean, _, count in blocks for _ in range(int(count))]
        for box, mean, offset in zip(row, means, offsets, strict=True):
            self.middles[box] = mean + offset

    def arrangement(
        self, count: int, arrows: Sequence[Arrow], paths: Sequence[Sequence[int]]
    ) -> Arrangement:
        """Corners and routes, moved to begin at 0."""
        pairs = list(zip(self.middles, (width for width, _ in self.sizes), strict=True))
        left = min((middle - width / 2 for middle, width in pairs), default=0.0)
        right = max((middle + width / 2 for middle, width in pairs), default=0.0)
        tops, spans, y = {}, {}, 0.0
        for row in self.rows:
            tallest = max(self.sizes[box][1] for box in row)
            for box in row:
                tops[box] = y + (tallest - self.sizes[box][1]) / 2
                spans[box] = y, y + tallest
            y += tallest + ROW_GAP
        corners = [
            (self.middles[box] - self.sizes[box][0] / 2 - left, tops[box]) for box in range(count)
        ]
        routes = []
        for arrow, path in zip(arrows, paths, strict=True):
            x = self.middles[path[0]] + arrow.start - left
            points = [(x, tops[path[0]] + self.sizes[path[0]][1]), (x, spans[path[0]][1])]
            for lane in path[1:-1]:
                x = self.middles[lane] - left
                points += [(x, spans[lane][0]), (x, spans[lane][1])]
            x = self.middles[path[-1]] + arrow.end - left
            points += [(x, spans[path[-1]][0]), (x, tops[path[-1]])]
            routes.append(points)
        return Arrangement(corners, routes, right - left, max(y - ROW_GAP, 0.0))
