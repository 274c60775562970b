"""Going back in a region over what was interpreted in vain, such as the body of a function.

`Mark` takes back what a step has added to the graph. Here is taken back what became known
meanwhile, too: what the program would demand of the objects outside, although it uses none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing.interpreter import Mark

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

_KNOWN: Final = (
    "leaves", "grad_paths", "relied", "touched", "looked_into", "written", "passing",
)  # fmt: skip
_SHARED: Final = frozenset({"decisions"})
_CONTAINERS: Final = (dict, list, set)


class Retreat:
    """A point of a region to go back to."""

    def __init__(self, slicer: Slicer) -> None:
        trace = slicer.trace
        root = trace.frames[0].builder
        self._slicer = slicer
        self._mark = Mark(slicer, trace.top)
        self._unknown = slicer.unknown
        self._undo = [
            *_keep(getattr(slicer, name) for name in _KNOWN),
            *_keep(x for name, x in vars(slicer.entry).items() if name not in _SHARED),
            *_keep((slicer.notes.on_graph, slicer.notes.on_host, slicer.notes.asked)),
            *_keep((trace._cells, root.inputs, root.variables, slicer.tapes._moments)),
            *_keep(x for f in trace.frames[:-1] for x in (f.contents, f.reads, f.written)),
        ]

    def go_back(self) -> None:
        """Forget all that came since."""
        self._mark.undo()
        for undo in self._undo:
            undo()
        self._slicer.unknown = self._unknown


def _keep(containers: Iterable[Any]) -> list[Callable[[], None]]:
    """What fills containers with what they hold now."""
    return [_filling(x) for x in containers if x.__class__ in _CONTAINERS]


def _filling(container: Any) -> Callable[[], None]:
    contents = container.copy()

    def fill() -> None:
        container.clear()
        (container.extend if container.__class__ is list else container.update)(contents)

    return fill
