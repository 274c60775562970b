"""Graphs as SVG pictures, made here without any outside program.

Boxes stand above those that use their results. Regions are frames with their own boxes inside;
what they take from outside stands in them as a dashed box. Numbers of shape () are written into
their users. Dotted lines tell the order of effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from dilim.ir.arrange import Arrow, arrange
from dilim.ir.boxes import PADDING, Block, Box, arrows_svg, moved
from dilim.ir.graph import NO_SITE, Graph, Node, Site, Value, Variable
from dilim.ir.structure import (
    CHANNELS,
    FUSED,
    IF,
    LOOP,
    READ,
    WRITE,
    free_values,
    has_effect,
    holds,
    walk,
    written,
)
from dilim.ir.text import head_text, literal, value_names

_LONGEST: Final = 42  # characters of a line
_MOST_RESULTS: Final = 6  # that a box lists
_TELLS_NOTHING: Final = {
    ("reshape", "shape"), ("expand", "shape"), ("full", "shape"), ("full", "dtype"),
    ("astype", "dtype"), ("random_uniform", "shape"), ("random_normal", "shape"),
}  # fmt: skip
_CAPTIONS: Final = {
    (IF, 2): ("then", "else"),
    (LOOP, 1): ("each turn",),
    (LOOP, 2): ("go on while", "each turn"),
    (FUSED, 1): ("",),
}


def to_svg(graph: Graph, limit: int = 200) -> str:
    """Draw a graph as one ``<svg>`` element.

    Args:
        graph: what to draw.
        limit: most boxes of one graph or region; those nearest to its results and effects are
            drawn, and a line says how many are not.

    Returns:
        The picture. The pointer over a box shows its line of the graph's text and its place in
        the user's source.
    """
    names = value_names(graph)
    constants = {
        node.results[0]: _number(node.params["value"])
        for node in walk(graph)
        if node.op == "full" and node.params["shape"] == ()
    }
    drawing = _Drawing(names, constants, graph.sites, limit)
    block = drawing.block(graph, "return")
    notes = [Box("state", _variable_lines(graph.variables, names))] if graph.variables else []
    if drawing.hidden:
        notes.append(Box("outside", [f"... {drawing.hidden:,} more operations are not shown"]))
    width = max([block.width, *(note.width for note in notes)]) + 2 * PADDING
    y, parts = PADDING, []
    for note in notes:
        parts.append(moved(note.svg(), PADDING, y))
        y += note.height + PADDING
    parts.append(moved(block.svg, (width - block.width) / 2, y))
    height = y + block.height + PADDING
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="12">',
            *parts,
            "</svg>",
        ]
    )


class _Drawing:
    """Draws graphs and regions of one program.

    Attributes:
        hidden: how many operations were left out.
    """

    def __init__(
        self,
        names: dict[Value, str],
        constants: dict[Value, str],
        sites: Sequence[Site],
        limit: int,
    ) -> None:
        self.hidden = 0
        self._names = names
        self._constants = constants
        self._sites = sites
        self._limit = limit

    def block(self, graph: Graph, last: str) -> Block:
        """A graph or region; ``last`` is the word for its results."""
        shown = _nearest(graph, self._limit, self._constants)
        self.hidden += len(_drawn(graph, self._constants)) - len(shown)
        sketch = _Sketch(self._names, self._constants)
        for value in graph.inputs:
            sketch.give(value, "input")
        for node in shown:
            wanted = [x for x in free_values(node) if not isinstance(x, Variable)]
            repeated = [x for x in node.inputs if not isinstance(x, Variable)]
            uses = [*repeated, *(x for x in wanted if x not in repeated)]
            number = sketch.use(self._box(node), uses)
            sketch.keep_order(node, number)
            sketch.made(node.results, number)
        if graph.outputs or last == "yield":
            outputs = ", ".join(sketch.label(x) for x in graph.outputs)
            sketch.use(Box("result", [_cut(f"{last} {outputs}".strip())]), graph.outputs)
        return sketch.block()

    def _box(self, node: Node) -> Box:
        title = head_text(node, self._names)
        if node.site != NO_SITE and node.site < len(self._sites):
            title += f"\n{self._sites[node.site]}"
        kind = "operation"
        if node.op in (READ, WRITE):
            kind = "state"
        elif node.op in CHANNELS:
            kind = "channel"
        lines = [_cut(self._call(node))]
        params = _params(node)
        if params:
            lines.append(_cut(params))
        lines += [f"{self._names[x]}: {x.type}" for x in node.results[:_MOST_RESULTS]]
        if len(node.results) > _MOST_RESULTS:
            lines.append(f"... and {len(node.results) - _MOST_RESULTS} more")
        captions = _CAPTIONS.get((node.op, len(node.regions)), ("",) * len(node.regions))
        blocks = [
            (caption, self.block(region, "yield"))
            for caption, region in zip(captions, node.regions, strict=True)
        ]
        return Box("frame" if blocks else kind, lines, blocks, title)

    def _call(self, node: Node) -> str:
        """The operation, with numbers and variables that it takes: ``add(·, 0.5)``."""
        known = [
            self._names.get(x, "?") if isinstance(x, Variable) else self._constants.get(x)
            for x in node.inputs
        ]
        if not any(known):
            return node.op
        return f"{node.op}({', '.join(name or '·' for name in known)})"


class _Sketch:
    """The boxes and arrows of one graph or region, sources before users."""

    def __init__(self, names: dict[Value, str], constants: dict[Value, str]) -> None:
        self._names = names
        self._constants = constants
        self._boxes: list[Box] = []
        self._arrows: list[Arrow] = []
        self._dotted: list[Arrow] = []
        self._sources: dict[Value, tuple[int, float]] = {}
        self._access: dict[Value, list[int]] = {}  # variable -> last write and reads since
        self._channel: int | None = None

    def give(self, value: Value, kind: str) -> None:
        """A box for a value that is made elsewhere."""
        name = self._names.get(value, "%undefined")
        self._sources[value] = len(self._boxes), 0.0
        title = f"{name}: {value.type}"
        self._boxes.append(Box(kind, [name, str(value.type)], title=title))

    def label(self, value: Value) -> str:
        """The number or name of a value."""
        return self._constants.get(value) or self._names.get(value, "%undefined")

    def use(self, box: Box, values: Iterable[Value]) -> int:
        """Add a box with arrows from these values; its number."""
        wanted = [x for x in values if x not in self._constants]
        for value in wanted:
            if value not in self._sources:
                self.give(value, "outside")
        number = len(self._boxes)
        self._boxes.append(box)
        for position, value in enumerate(wanted):
            source, start = self._sources[value]
            self._arrows.append(Arrow(source, number, start, box.port(position, len(wanted))))
        return number

    def made(self, results: Sequence[Value], number: int) -> None:
        """Note which box the results of a node come from."""
        box = self._boxes[number]
        for position, value in enumerate(results):
            self._sources[value] = number, box.port(position, len(results))

    def keep_order(self, node: Node, number: int) -> None:
        """Dotted lines from what must happen before a node."""
        writes = written(node)
        for variable in _variables(node):
            before = self._access.setdefault(variable, [])
            if variable in writes:
                self._dotted += [Arrow(other, number) for other in before]
                self._access[variable] = [number]
            else:
                self._dotted += [Arrow(other, number) for other in before[:1]]
                before.append(number)
        if holds(node, CHANNELS):
            if self._channel is not None:
                self._dotted.append(Arrow(self._channel, number))
            self._channel = number

    def block(self) -> Block:
        """The picture."""
        connected = {(arrow.source, arrow.target) for arrow in self._arrows}
        dotted = [x for x in self._dotted if (x.source, x.target) not in connected]
        arrows = self._arrows + dotted
        placed = arrange([(box.width, box.height) for box in self._boxes], arrows)
        parts = arrows_svg(placed, len(self._arrows))
        for box, (x, y) in zip(self._boxes, placed.corners, strict=True):
            parts.append(moved(box.svg(), x, y))
        return Block(placed.width, placed.height, "\n".join(parts))


# --- what is drawn --------------------------------------------------------------------------


def _drawn(graph: Graph, constants: dict[Value, str]) -> list[Node]:
    """Nodes that have boxes."""
    return [node for node in graph.nodes if not (node.results and node.results[0] in constants)]


def _nearest(graph: Graph, limit: int, constants: dict[Value, str]) -> list[Node]:
    """The nodes to draw: at most ``limit``, the nearest to results and effects."""
    nodes = _drawn(graph, constants)
    if len(nodes) <= limit:
        return nodes
    makers = {result: node for node in nodes for result in node.results}
    found: dict[Node, None] = {}
    queue = [makers[x] for x in graph.outputs if x in makers]
    queue += [node for node in reversed(nodes) if has_effect(node)]
    for node in queue:
        if len(found) < limit and node not in found:
            found[node] = None
            queue += [makers[x] for x in free_values(node) if x in makers]
    return [node for node in nodes if node in found]


def _variables(node: Node) -> list[Value]:
    return [x for x in free_values(node) if isinstance(x, Variable)]


def _params(node: Node) -> str:
    """The parameters that a person wants to see."""
    shown = []
    for key, value in node.params.items():
        if (node.op, key) in _TELLS_NOTHING or (key == "keepdims" and not value):
            continue
        if key == "index" and isinstance(value, tuple):
            shown.append(f"[{', '.join(_span(*part) for part in value)}]")
        else:
            shown.append(f"{key}={literal(value)}")
    return ", ".join(shown)


def _span(start: int, count: int, step: int) -> str:
    """Some positions of an axis, as one writes them in Python."""
    end = start + count * step
    stop = "" if end < 0 else str(end)
    return f"{start}:{stop}" if step == 1 else f"{start}:{stop}:{step}"


def _variable_lines(variables: Sequence[Variable], names: dict[Value, str]) -> list[str]:
    lines = ["variables"]
    for variable in variables:
        text = f"{names[variable]}: {variable.type}"
        if len(lines) > 1 and len(lines[-1]) + len(text) < 110:
            lines[-1] += f"   {text}"
        else:
            lines.append(text)
    return lines


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
