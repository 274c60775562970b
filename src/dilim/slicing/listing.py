"""What ``f.slices()`` gives: both programs as readable Python."""

from __future__ import annotations

from collections.abc import Sequence

from dilim.slicing.drawing import to_svg
from dilim.slicing.findings import Findings
from dilim.slicing.rows import Listing, Row, graph_of, host_of, text_of
from dilim.slicing.writer import Writer


class Slices:
    """The two programs that a function became.

    ``str()`` gives the graph program and below it the host program. Both are valid Python made of
    the user's own lines. In the graph program ``# host: print(x)`` stands where the host does
    something; in the host program ``# graph: y = w @ x`` where the graph does. ``send(...)`` hands
    values over to the other program, which takes them by ``receive()``; ``state`` stands for
    contents of tensors and attributes that host code may look at. Functions that are called come
    after the main one. A notebook shows both side by side, with an arrow for each transfer.

    Attributes:
        listings: the functions, statement by statement.
        reason: why there are no programs; empty where there are.
    """

    def __init__(self, found: Sequence[Findings], reason: str = "") -> None:
        self.reason = reason
        self.listings: list[Listing] = [
            Writer(findings, source, source is findings.sources[0]).listing()
            for findings in found
            for source in findings.sources
        ]

    @property
    def graph(self) -> str:
        """The graph program; empty if there is none."""
        return _program([graph_of(x.pairs) for x in self.listings if x.in_graph])

    @property
    def host(self) -> str:
        """The host program; empty if there is none."""
        return _program([host_of(x.pairs) for x in self.listings if x.on_host])

    def __str__(self) -> str:
        if not self.listings:
            return self.reason
        main = self.listings[0]
        return (
            f"# The graph program of {main.name}, {main.place}\n{self.graph}\n\n\n"
            f"# The host program of {main.name}\n{self.host}"
        )

    __repr__ = __str__

    def _repr_svg_(self) -> str | None:
        """What a notebook shows."""
        return to_svg(self.listings) if self.listings else None


def _program(functions: list[list[Row]]) -> str:
    return "\n\n\n".join(map(text_of, functions))
