"""The parts of pictures of graphs: boxes with lines of text, frames, arrows.

Boxes have colours of their own, so that a picture can be read on light and on dark ground.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Final

from dilim.ir.arrange import Arrangement

_CHARACTER_WIDTH: Final = 7.3  # pixels of one character of the 12 pixel monospace font, rounded up
_LINE_HEIGHT: Final = 16.0
PADDING: Final = 8.0
_LINE: Final = "#8a8a8a"
_FILL: Final = {
    "input": "#fff4d6",
    "outside": "#eeeeee",
    "operation": "#e8f1fb",
    "state": "#dff2e0",
    "channel": "#f1e4fa",
    "result": "#ffffff",
}


@dataclass(frozen=True, slots=True)
class Block:
    """A finished part of the picture, its left top corner at 0, 0."""

    width: float
    height: float
    svg: str


@dataclass(slots=True)
class Box:
    """A box with lines of text, and below them, for regions, finished parts side by side.

    Attributes:
        kind: of `_FILL`, which gives the colour; "frame" for a box with regions.
        lines: the first one is bold.
        blocks: (caption, part).
        title: what the pointer shows.
    """

    kind: str
    lines: list[str]
    blocks: list[tuple[str, Block]] = field(default_factory=list)
    title: str = ""

    @property
    def head(self) -> float:
        """Height of the lines."""
        return len(self.lines) * _LINE_HEIGHT + PADDING

    @property
    def width(self) -> float:
        """Of all of it."""
        text = max(map(len, self.lines)) * _CHARACTER_WIDTH + 2 * PADDING
        return max(text, sum(block.width + 3 * PADDING for _, block in self.blocks) + PADDING)

    @property
    def height(self) -> float:
        """Of all of it."""
        if not self.blocks:
            return self.head
        inner = max(block.height for _, block in self.blocks)
        return self.head + inner + 4 * PADDING + self._caption_height

    @property
    def _caption_height(self) -> float:
        return _LINE_HEIGHT if any(caption for caption, _ in self.blocks) else 0.0

    def port(self, number: int, count: int) -> float:
        """Where one of several arrows ends, in pixels from the middle."""
        room = min(self.width - 2 * PADDING, 60.0 * count)
        return room * ((number + 0.5) / count - 0.5)

    def svg(self) -> str:
        """At 0, 0."""
        parts = [f"<title>{escape(self.title)}</title>"] if self.title else []
        if self.blocks:
            parts += self._frame()
        else:
            dashes = ' stroke-dasharray="4 3"' if self.kind == "outside" else ""
            strong = "#333333" if self.kind in ("result", "input") else "#999999"
            parts.append(
                _rectangle(0, 0, self.width, self.height, _FILL[self.kind], f"{strong}{dashes}")
            )
        for row, line in enumerate(self.lines):
            weight = ' font-weight="bold"' if row == 0 else ""
            y = PADDING / 2 + 12 + row * _LINE_HEIGHT
            parts.append(_text(PADDING, y, line, weight))
        return "".join(parts)

    def _frame(self) -> list[str]:
        """The outline, the ground behind the lines, and what is inside."""
        parts = [
            f'<rect width="{self.width:.1f}" height="{self.height:.1f}" rx="5" fill="#808080" '
            f'fill-opacity="0.09" stroke="{_LINE}"/>',
            f'<rect width="{self.width:.1f}" height="{self.head:.1f}" rx="5" fill="#d5dde6" '
            f'stroke="{_LINE}"/>',
        ]
        total = sum(block.width for _, block in self.blocks)
        gap = (self.width - total) / (len(self.blocks) + 1)
        x, top = gap, self.head + PADDING
        for caption, block in self.blocks:
            if caption:
                wide = len(caption) * _CHARACTER_WIDTH + PADDING
                middle = x + block.width / 2 - wide / 2
                parts.append(
                    f'<rect x="{middle:.1f}" y="{top:.1f}" width="{wide:.1f}" '
                    f'height="{_LINE_HEIGHT + 2:.1f}" rx="8" fill="#d5dde6"/>'
                )
                parts.append(_text(middle + PADDING / 2, top + 13, caption))
            parts.append(moved(block.svg, x, top + self._caption_height + PADDING))
            x += block.width + gap
        return parts


# --- SVG ------------------------------------------------------------------------------------


def moved(svg: str, x: float, y: float) -> str:
    """A part of a picture with its left top corner somewhere else."""
    return f'<g transform="translate({x:.1f} {y:.1f})">{svg}</g>'


def _rectangle(x: float, y: float, width: float, height: float, fill: str, stroke: str) -> str:
    colour, _, rest = stroke.partition(" ")
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="5" '
        f'fill="{fill}" stroke="{colour}"{" " + rest if rest else ""}/>'
    )


def _text(x: float, y: float, line: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="#222222"{more}>{escape(line)}</text>'


def arrows_svg(placed: Arrangement, solid: int) -> list[str]:
    """The arrows: the first ``solid`` ones as lines with a head, the others dotted."""
    parts = []
    for number, route in enumerate(placed.routes):
        x, y = route[0]
        path = [f"M{x:.1f} {y:.1f}"]
        for position, (x2, y2) in enumerate(route[1:]):
            if position % 2 == 0:
                path.append(f"L{x2:.1f} {y2:.1f}")
            else:
                bend = (y + y2) / 2
                path.append(f"C{x:.1f} {bend:.1f} {x2:.1f} {bend:.1f} {x2:.1f} {y2:.1f}")
            x, y = x2, y2
        dots = "" if number < solid else ' stroke-dasharray="2 4"'
        parts.append(f'<path d="{"".join(path)}" fill="none" stroke="{_LINE}"{dots}/>')
        if number < solid:
            parts.append(f'<path d="M{x - 4:.1f} {y - 7:.1f}h8L{x:.1f} {y:.1f}z" fill="{_LINE}"/>')
    return parts
