"""What branches and loops of a graph have recorded inside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dilim.tensors.region_tape import Region
from dilim.tensors.tape import Node
from dilim.tensors.tensor import Tensor


def plain_inputs(region: Region) -> Iterator[Tensor]:
    """The tensors without gradient that the recorded operations of a region were applied to."""
    return (x for x, edge, _ in _used_by(region) if edge is None)


def is_overwritten(region: Region) -> bool:
    """Whether memory that its recorded operations were applied to was written since."""
    return any(x._storage.version != version for x, _, version in _used_by(region))


def _used_by(region: Region) -> Iterator[tuple[Tensor, Any, int]]:
    """The tensors that the recorded operations of a region were applied to; edge and version."""
    for node in nodes_in(region):
        for each in zip(node.inputs or (), node.edges, node.versions, strict=False):
            if isinstance(each[0], Tensor):
                yield each


def nodes_in(region: Region) -> Iterator[Node]:
    """The recorded operations of a region, those of regions inside among them."""
    for record in region.inner():
        for node in record.nodes:
            yield node
            if isinstance(node.op, Region):
                yield from nodes_in(node.op)
