"""Layout: chains of views become one view, and nothing is computed on repeated elements.

Views cost nothing inside a kernel, where they are index arithmetic; the fewer there are, the less
there is to compile, and the more values are seen to be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dilim import shapes
from dilim.ir.graph import Graph, Node, Value
from dilim.ops.movement import Slices
from dilim.passes.positions import ELEMENTWISE
from dilim.passes.rewriting import Rewriter, simplify
from dilim.shapes import Shape

VIEWS: Final = frozenset({"reshape", "permute", "expand", "flip", "slice"})
"""Operations that only say where elements are found."""


def layout(graph: Graph) -> Graph:
    """Merge views of views; move broadcasting behind elementwise operations and reductions."""
    return simplify(graph, _apply)


def _apply(rewriter: Rewriter, node: Node) -> Value | None:
    if node.op in ELEMENTWISE:
        return _elementwise(rewriter, node)
    rule = _RULES.get(node.op)
    return None if rule is None else rule(rewriter, node)


def _elementwise(rewriter: Rewriter, node: Node) -> Value | None:
    """Read what was expanded instead of its repetition; repeat the result where still needed."""
    sources = []
    for value in node.inputs:
        maker = rewriter.maker(value, "expand")
        sources.append(value if maker is None else maker.inputs[0])
    if all(source is value for source, value in zip(sources, node.inputs, strict=True)):
        return None
    shape = shapes.broadcast(node.op, *(source.shape for source in sources))
    result = rewriter.add(node.op, *sources, **node.params)
    wanted = node.results[0].shape
    return result if shape == wanted else rewriter.add("expand", result, shape=wanted)


def _reshape(rewriter: Rewriter, node: Node) -> Value | None:
    (x,) = node.inputs
    shape = node.results[0].shape
    inner = rewriter.maker(x, "reshape")
    source = x if inner is None else inner.inputs[0]
    if source.shape == shape:
        return source
    return None if inner is None else rewriter.add("reshape", source, shape=shape)


def _permute(rewriter: Rewriter, node: Node) -> Value | None:
    (x,) = node.inputs
    order: Shape = node.params["order"]
    inner = rewriter.maker(x, "permute")
    if inner is not None:
        before: Shape = inner.params["order"]
        order, x = tuple(before[axis] for axis in order), inner.inputs[0]
    if order == tuple(range(len(order))):
        return x
    moving = [axis for axis in order if x.shape[axis] != 1]
    if moving == sorted(moving):  # only axes of size 1 move
        return _reshape_to(rewriter, x, node.results[0].shape)
    return None if inner is None else rewriter.add("permute", x, order=order)


def _reshape_to(rewriter: Rewriter, x: Value, shape: Shape) -> Value:
    inner = rewriter.maker(x, "reshape")
    x = x if inner is None else inner.inputs[0]
    return x if x.shape == shape else rewriter.add("reshape", x, shape=shape)


def _expand(rewriter: Rewriter, node: Node) -> Value | None:
    (x,) = node.inputs
    shape = node.results[0].shape
    if x.shape == shape:
        return x
    inner = rewriter.maker(x, "expand") or rewriter.maker(x, "reshape")
    if inner is None or not _stretches(inner, shape):
        return None
    source = inner.inputs[0]
    return source if source.shape == shape else rewriter.add("expand", source, shape=shape)


def _stretches(inner: Node, shape: Shape) -> bool:
    """Whether expanding the input of an inner view gives the same as expanding its result."""
    if inner.op == "expand":
        return True
    before, after = inner.inputs[0].shape, inner.results[0].shape
    added = len(after) - len(before)
    return added >= 0 and after == (1,) * added + before


def _flip(rewriter: Rewriter, node: Node) -> Value | None:
    (x,) = node.inputs
    axes = {axis for axis in node.params["axis"] if x.shape[axis] > 1}
    inner = rewriter.maker(x, "flip")
    if inner is not None:
        x = inner.inputs[0]
        axes ^= {axis for axis in inner.params["axis"] if x.shape[axis] > 1}
    if not axes:
        return x
    sliced = rewriter.maker(x, "slice")
    if sliced is not None:
        index = tuple(
            (start + (count - 1) * step, count, -step) if axis in axes else (start, count, step)
            for axis, (start, count, step) in enumerate(sliced.params["index"])
        )
        return _slice_to(rewriter, sliced.inputs[0], index)
    axis = tuple(sorted(axes))
    return None if axis == node.params["axis"] else rewriter.add("flip", x, axis=axis)


def _slice(rewriter: Rewriter, node: Node) -> Value | None:
    (x,) = node.inputs
    index: Slices = node.params["index"]
    inner = rewriter.maker(x, "slice")
    if inner is not None:
        outer, index = index, ()
        for (start, _, step), (first, count, stride) in zip(
            inner.params["index"], outer, strict=True
        ):
            index = (*index, (start + first * step if count else 0, count, stride * step))
        x = inner.inputs[0]
    flipped = rewriter.maker(x, "flip")
    if flipped is not None:
        inner, x = flipped, flipped.inputs[0]
        index = tuple(
            (x.shape[axis] - 1 - start if count else 0, count, -step)
            if axis in flipped.params["axis"]
            else (start, count, step)
            for axis, (start, count, step) in enumerate(index)
        )
    if inner is None and not _is_whole(x.shape, index):
        return None
    return _slice_to(rewriter, x, index)


def _is_whole(shape: Shape, index: Slices) -> bool:
    return all(
        count == size and (size <= 1 or (start, step) == (0, 1))
        for size, (start, count, step) in zip(shape, index, strict=True)
    )


def _slice_to(rewriter: Rewriter, x: Value, index: Slices) -> Value:
    return x if _is_whole(x.shape, index) else rewriter.add("slice", x, index=index)


def _reduce(rewriter: Rewriter, node: Node) -> Value | None:
    """Reduce what was expanded, and expand the result, along axes that are not reduced."""
    maker = rewriter.maker(node.inputs[0], "expand")
    if maker is None:
        return None
    source, shape = maker.inputs[0], maker.results[0].shape
    before = (1,) * (len(shape) - len(source.shape)) + source.shape
    reduced: Shape = node.params["axis"]
    inner = tuple(size if axis in reduced else before[axis] for axis, size in enumerate(shape))
    if inner == shape:
        return None
    if inner != source.shape:
        source = rewriter.add("expand", source, shape=inner)
    result = rewriter.add(node.op, source, **node.params)
    return rewriter.add("expand", result, shape=node.results[0].shape)


Rule = Callable[[Rewriter, Node], Value | None]
_RULES: Final[Mapping[str, Rule]] = {
    "reshape": _reshape,
    "permute": _permute,
    "expand": _expand,
    "flip": _flip,
    "slice": _slice,
    **dict.fromkeys(("sum", "prod", "max", "min", "any", "all", "argmax", "argmin"), _reduce),
}
