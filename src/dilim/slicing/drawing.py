"""The two programs as an SVG picture: side by side, with an arrow for each transfer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from dilim.ir.boxes import PADDING, moved
from dilim.slicing.actions import RECEIVE, TURN
from dilim.slicing.rows import NOTE, Listing, Pair, Row

_CHARACTER: Final = 7.3  # pixels of one character of the 12 pixel monospace font, rounded up
_LINE: Final = 17.0
_GAP: Final = 72.0  # between the columns, for the arrows
_LONGEST: Final = 76  # characters of a line
_GROUND: Final = ("#f6f9fd", "#fdfaf3")
_EDGE: Final = "#8a8a8a"
_TINT: Final = "#eadcf6"
_ARROW: Final = "#7a4fa3"
_TEXT: Final = "#222222"
_FAINT: Final = "#7d7d7d"


def to_svg(listings: Sequence[Listing]) -> str:
    """Draw functions as one ``<svg>`` element: the graph program left, the host program right."""
    shown = [
        Pair(
            pair.graph if listing.in_graph or listing is listings[0] else [],
            pair.host if listing.on_host or listing is listings[0] else [],
        )
        for listing in listings
        for pair in [*listing.pairs, Pair([Row("", 0)], [Row("", 0)])]
    ]
    columns = _Column(0), _Column(1)
    for pair in shown:
        top = max(column.bottom for column in columns)
        for column, rows in zip(columns, (pair.graph, pair.host), strict=True):
            column.bottom = top
            column.add(rows)
    height = max(column.bottom for column in columns) + PADDING
    graph, host = columns
    across = PADDING + graph.width + _GAP
    parts = [
        moved(graph.svg("graph program", height), PADDING, PADDING),
        moved(host.svg("host program", height), across, PADDING),
        *_arrows(graph, host, PADDING + graph.width, across),
    ]
    width, height = across + host.width + PADDING, height + 2 * PADDING
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="12">',
            *parts,
            "</svg>",
        ]
    )


class _Column:
    """One program.

    Attributes:
        bottom: where the next row goes, in pixels from the top.
        places: the middle of each row that hands values over, and its channels.
    """

    def __init__(self, number: int) -> None:
        self.bottom = _LINE + 2 * PADDING
        self.places: list[tuple[float, tuple[str, ...]]] = []
        self._ground = _GROUND[number]
        self._lines: list[tuple[float, str, Row]] = []

    @property
    def width(self) -> float:
        """In pixels."""
        longest = max([len(text) for _, text, _ in self._lines], default=0)
        return max(longest, 30) * _CHARACTER + 2 * PADDING

    def add(self, rows: Sequence[Row]) -> None:
        """Write rows below those that are there."""
        for row in rows:
            if row.channels:
                self.places.append((self.bottom + _LINE / 2, row.channels))
            for line in row.lines():
                cut = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
                self._lines.append((self.bottom, cut, row))
                self.bottom += _LINE

    def svg(self, title: str, height: float) -> str:
        """At 0, 0."""
        parts = [
            f'<rect width="{self.width:.1f}" height="{height:.1f}" rx="5" '
            f'fill="{self._ground}" stroke="{_EDGE}"/>',
            _text(PADDING, PADDING, title, _TEXT, ' font-weight="bold"'),
        ]
        tinted = {y - _LINE / 2 for y, _ in self.places}
        for y, line, row in self._lines:
            if y in tinted:
                parts.append(
                    f'<rect x="1" y="{y:.1f}" width="{self.width - 2:.1f}" height="{_LINE:.1f}" '
                    f'fill="{_TINT}"/>'
                )
            colour = _FAINT if row.kind == NOTE else _TEXT
            indent = len(line) - len(line.lstrip())
            if line.strip():
                parts.append(_text(PADDING + indent * _CHARACTER, y, line.strip(), colour))
        return "".join(parts)


def _text(x: float, y: float, line: str, colour: str, more: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y + 12:.1f}" fill="{colour}" xml:space="preserve"{more}>'
        f"{escape(line)}</text>"
    )


def _arrows(graph: _Column, host: _Column, left: float, right: float) -> Iterator[str]:
    """An arrow between the rows that stand for the same points of exchange, the first two first."""
    taken: set[tuple[tuple[str, ...], float]] = set()
    for y1, channels in graph.places:
        for y2, others in host.places:
            common = tuple(channel for channel in channels if channel in others)
            if not common or (common, y2) in taken:
                continue
            taken.add((common, y2))
            y1_, y2_ = y1 + PADDING, y2 + PADDING
            bend = _GAP / 2
            yield (
                f'<path d="M{left:.1f} {y1_:.1f}C{left + bend:.1f} {y1_:.1f} '
                f'{right - bend:.1f} {y2_:.1f} {right:.1f} {y2_:.1f}" fill="none" '
                f'stroke="{_ARROW}" stroke-width="1.5"/>'
            )
            if common[0][0] in (RECEIVE, TURN):
                yield f'<path d="M{left + 8:.1f} {y1_ - 4:.1f}v8l-8 -4z" fill="{_ARROW}"/>'
            else:
                yield f'<path d="M{right - 8:.1f} {y2_ - 4:.1f}v8l8 -4z" fill="{_ARROW}"/>'
            if len([place for place in graph.places if place[1] == channels]) > 1:
                break  # each of these has its own
