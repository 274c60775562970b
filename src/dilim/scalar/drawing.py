"""Pictures of an expression as text, DOT and SVG, made here without any outside program.

A picture shows at most `limit` values, those nearest to the result, and says how many it leaves
out. A gradient that no backward pass has computed is shown as "not computed".
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from .naming import CONSTANT, formula, gradient_text, node_names, number_text

if TYPE_CHECKING:
    from .value import Value


@dataclass(frozen=True)
class _Excerpt:
    """The part of an expression that a picture shows."""

    order: list[Value]  # inputs before users; the result comes last
    names: dict[Value, str]
    hidden_count: int

    def note(self) -> str:
        return f"... {self.hidden_count:,} more values are not shown" if self.hidden_count else ""

    def title(self, node: Value) -> str:
        made_by = formula(node, self.names)
        return f"{self.names[node]} = {made_by}" if made_by else self.names[node]


def _excerpt(root: Value, limit: int) -> _Excerpt:
    if limit < 1:
        raise ValueError(f"drawing: limit must be at least 1, got {limit}")
    order = root.graph()
    hidden_count = max(len(order) - limit, 0)
    if hidden_count:
        nearest = {root: None}  # a dictionary, because it remembers the order of arrival
        queue = [root]
        for node in queue:
            for source in node.inputs:
                if source not in nearest and len(nearest) < limit:
                    nearest[source] = None
                    queue.append(source)
        order = [node for node in order if node in nearest]
    return _Excerpt(order, node_names(order), hidden_count)


def to_text(root: Value, limit: int = 60) -> str:
    """Draw an expression as a table: one line per value, inputs above their users.

    Args:
        root: The result of the expression.
        limit: The most values to show; those nearest to the result are.

    Returns:
        Lines with name, origin, data and gradient. Constants appear inside formulas only.

    Example:
        >>> from dilim.scalar import Value
        >>> x = Value(2.0, label="x")
        >>> print((3 * x).to_text())
        name  made by  data  gradient
        x     given    2     not computed
        v1    3 * x    6     not computed
    """
    excerpt = _excerpt(root, limit)
    rows = [("name", "made by", "data", "gradient")]
    for node in excerpt.order:
        if node.op != CONSTANT or node is root:
            made_by = formula(node, excerpt.names) or "given"
            rows.append((excerpt.names[node], made_by, number_text(node.data), gradient_text(node)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([excerpt.note(), *lines] if excerpt.hidden_count else lines)


def to_dot(root: Value, limit: int = 60) -> str:
    """Describe an expression in the DOT language, for people who have Graphviz.

    Args:
        root: The result of the expression.
        limit: The most values to show; those nearest to the result are.

    Returns:
        A directed graph from inputs to results.
    """
    excerpt = _excerpt(root, limit)
    number = {node: index for index, node in enumerate(excerpt.order)}
    lines = ["digraph expression {", "  rankdir=LR;", "  node [shape=record];"]
    if excerpt.hidden_count:
        lines.append(f'  label="{excerpt.note()}";')
    for node in excerpt.order:
        cells = "|".join(_dot_escape(line) for line in _box_lines(node, excerpt))
        lines.append(f'  n{number[node]} [label="{cells}"];')
    for node in excerpt.order:
        for source in node.inputs:
            if source in number:
                lines.append(f"  n{number[source]} -> n{number[node]};")
    return "\n".join([*lines, "}"])


def _dot_escape(text: str) -> str:
    return "".join(f"\\{char}" if char in '\\"{}|<>' else char for char in text)


def _box_lines(node: Value, excerpt: _Excerpt) -> list[str]:
    if node.op == CONSTANT:
        return [excerpt.title(node)]
    return [
        excerpt.title(node),
        f"data {number_text(node.data)}",
        f"gradient {gradient_text(node)}",
    ]


_CHARACTER_WIDTH = 7.3  # pixels of one character of the 12 pixel monospace font, rounded up
_LINE_HEIGHT = 16
_PADDING = 8
_COLUMN_GAP = 44
_ROW_GAP = 14
_NOTE_HEIGHT = 22
_FILL = {"given": "#fff4d6", CONSTANT: "#eeeeee", "made": "#e8f1fb"}


@dataclass(frozen=True)
class _Box:
    """Where a value is drawn: left, top, width and height in pixels."""

    lines: list[str]
    x: float
    y: float
    width: float
    height: float


def to_svg(root: Value, limit: int = 60) -> str:
    """Draw an expression as an SVG picture, which is also what a notebook shows.

    Args:
        root: The result of the expression.
        limit: The most values to show; those nearest to the result are.

    Returns:
        One `<svg>` element. Inputs stand left of their users; the pointer over an edge shows the
        local derivative.
    """
    excerpt = _excerpt(root, limit)
    boxes = _layout(excerpt)
    width = max(box.x + box.width for box in boxes.values()) + _PADDING
    height = max(box.y + box.height for box in boxes.values()) + _PADDING
    note = excerpt.note()
    width = max(width, len(note) * _CHARACTER_WIDTH + 2 * _PADDING)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="12">'
    ]
    if note:
        parts.append(f'<text x="{_PADDING}" y="16" fill="#888888">{escape(note)}</text>')
    for node in excerpt.order:
        parts += _edges_svg(node, boxes)
    for node in excerpt.order:
        parts.append(_box_svg(node, boxes[node], is_result=node is root))
    return "\n".join([*parts, "</svg>"])


def _layout(excerpt: _Excerpt) -> dict[Value, _Box]:
    """Place each value one column left of its leftmost user, in the order of their edges' ends."""
    level: dict[Value, int] = defaultdict(int)  # longest way to the result
    columns: dict[int, list[Value]] = defaultdict(list)
    for node in reversed(excerpt.order):
        columns[level[node]].append(node)
        for source in node.inputs:
            level[source] = max(level[source], level[node] + 1)

    lines = {node: _box_lines(node, excerpt) for node in excerpt.order}
    heights = {node: len(lines[node]) * _LINE_HEIGHT + _PADDING for node in excerpt.order}
    column_heights = {
        index: sum(heights[node] + _ROW_GAP for node in column) for index, column in columns.items()
    }
    top = _PADDING + (_NOTE_HEIGHT if excerpt.hidden_count else 0)
    edge_ends: dict[Value, list[float]] = defaultdict(list)  # y of the edges to users placed so far
    boxes: dict[Value, _Box] = {}
    right_edge = 0.0
    for index in sorted(columns):
        column = sorted(columns[index], key=lambda node: _mean(edge_ends[node]))
        width = max(len(line) for node in column for line in lines[node]) * _CHARACTER_WIDTH
        width += 2 * _PADDING
        y = top + (max(column_heights.values()) - column_heights[index]) / 2
        for node in column:
            boxes[node] = _Box(lines[node], right_edge - width, y, width, heights[node])
            y += heights[node] + _ROW_GAP
            for position, source in enumerate(node.inputs):
                edge_ends[source].append(_edge_end(node, boxes[node], position))
        right_edge -= width + _COLUMN_GAP
    shift = _PADDING - (right_edge + _COLUMN_GAP)
    return {
        node: _Box(box.lines, box.x + shift, box.y, box.width, box.height)
        for node, box in boxes.items()
    }


def _mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def _edge_end(node: Value, box: _Box, position: int) -> float:
    """Return the y at which the edge from an input arrives."""
    return box.y + box.height * (position + 1) / (len(node.inputs) + 1)


def _edges_svg(node: Value, boxes: dict[Value, _Box]) -> list[str]:
    parts = []
    end = boxes[node]
    slopes = (node._left_slope, node._right_slope)
    for position, (source, slope) in enumerate(zip(node.inputs, slopes, strict=False)):
        x2, y2 = end.x, _edge_end(node, end, position)
        if source in boxes:
            start = boxes[source]
            x1, y1, dash = start.x + start.width, start.y + start.height / 2, ""
        else:
            x1, y1, dash = x2 - _COLUMN_GAP / 2, y2, ' stroke-dasharray="3 3"'
        bend = (x1 + x2) / 2
        hint = "" if source.op == CONSTANT else f"local derivative {number_text(slope)}"
        parts.append(
            f'<path d="M{x1:.1f} {y1:.1f} C{bend:.1f} {y1:.1f} {bend:.1f} {y2:.1f} '
            f'{x2:.1f} {y2:.1f}" fill="none" stroke="#888888" stroke-width="1.5"{dash}>'
            f"<title>{hint}</title></path>"
        )
        parts.append(f'<circle cx="{x2:.1f}" cy="{y2:.1f}" r="2.5" fill="#888888"/>')
    return parts


def _box_svg(node: Value, box: _Box, is_result: bool) -> str:
    kind = "made" if node.inputs else CONSTANT if node.op == CONSTANT else "given"
    stroke = 'stroke="#333333" stroke-width="2"' if is_result else 'stroke="#999999"'
    parts = [
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="5" fill="{_FILL[kind]}" {stroke}/>'
    ]
    for row, line in enumerate(box.lines):
        weight = ' font-weight="bold"' if row == 0 else ""
        baseline = box.y + _PADDING / 2 + 12 + row * _LINE_HEIGHT
        parts.append(
            f'<text x="{box.x + _PADDING:.1f}" y="{baseline:.1f}" fill="#222222"{weight}>'
            f"{escape(line)}</text>"
        )
    return "".join(parts)
