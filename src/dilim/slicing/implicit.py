"""Transfers in loops that the user did not ask for.

A ``print`` or a call of a function that only the host can run asks for its values. ``float(loss)``,
``losses.append(loss.item())``, ``rates[i]`` or ``if flag:`` hand something over without saying so,
in a loop at each turn.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from dilim.errors import UnsupportedError
from dilim.slicing.findings import TRANSFERS, Findings, Point, in_loops
from dilim.slicing.program import Statement
from dilim.slicing.wording import Source, Span, span, within

if TYPE_CHECKING:
    from dilim.slicing.region import Region

_READ_OUT: Final = frozenset({"item", "tolist", "numpy"})
"""Methods of tensors that hand over their contents."""
_CONVERSIONS: Final = frozenset(
    {"float", "int", "bool", "complex", "len", "abs", "min", "max", "sum", "round", "sorted"}
    | {"list", "tuple", "dict", "set", "range", "enumerate", "zip", "isinstance", "any", "all"}
)
"""Built-in functions that hand over contents."""
_DEEPEST: Final = 8  # statements between a value and the call that it comes from


def implicit_points(findings: Findings) -> list[Point]:
    """The transfers in loops that nobody asked for, in the order of the program."""
    judges = {id(source): _Judge(findings, source) for source in findings.sources}
    return [
        point
        for point in findings.points
        if point.loops
        and point.types
        and point.letter in TRANSFERS
        and point.source is not None
        and not judges[id(point.source)].is_asked_for(point)
    ]


def refuse_transfers(region: Region) -> None:
    """See to it that no turn of a loop hands over what nobody asked for.

    Raises:
        UnsupportedError: one does.
    """
    if not in_loops(region):
        return
    for point in implicit_points(Findings(region)):
        if point.each_turn:
            file, line = point.line
            raise UnsupportedError(
                f"compile: {in_words(point)} in each turn of a loop of {region.code.name} "
                f"({file}:{line}): {cure(point)}; without strict=True it is allowed"
            )


def in_words(point: Point) -> str:
    """What is handed over, as the beginning of a sentence."""
    values = ", ".join(point.labels())
    verb = "is" if len(point.labels()) == 1 else "are"
    side = "sent to the host" if point.is_send else "received from the host"
    return f"{values} {verb} {side}"


def cure(point: Point) -> str:
    """What the user may do about it."""
    if point.is_send:
        return "keep tensors in the loop and look into them after it, or only every so many turns"
    return "make it a tensor, or read it, before the loop"


class _Judge:
    """Knows what the host does for one function."""

    def __init__(self, findings: Findings, source: Source) -> None:
        self._source = source
        self._asked = findings.region.notes.asked
        self._makers: dict[str, list[Statement]] = {}
        hosted = findings.hosted(source)
        for statement in hosted:
            for name in getattr(statement, "writes", ()):
                self._makers.setdefault(name, []).append(statement)
        self._places = [place for x in hosted if self._asks(x) for place in self._place(x)]

    def is_asked_for(self, point: Point) -> bool:
        """Whether the user's text asks for a transfer."""
        if point.is_send:
            return any(map(self._in_asking, point.action.statements))
        return any(self._comes_from_asking(name, _DEEPEST) for name in point.names)

    def _in_asking(self, statement: Statement) -> bool:
        """Whether a statement belongs to one of the user's that asks for something."""
        return any(
            within(place, around) for around in self._around(statement) for place in self._places
        )

    def _comes_from_asking(self, name: str, depth: int) -> bool:
        return depth > 0 and any(
            self._in_asking(maker)
            or any(self._comes_from_asking(x, depth - 1) for x in getattr(maker, "reads", ()))
            for maker in self._makers.get(name, ())
        )

    def _asks(self, statement: Statement) -> bool:
        """Whether a statement of the host is what the user wants of it, not a way to it."""
        node = self._source.node_of(statement)
        if isinstance(node, ast.JoinedStr):
            return True  # text can only be made there
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            is_method = isinstance(node.func, ast.Attribute)
            if name in (_READ_OUT if is_method else _CONVERSIONS):
                return False
        return statement in self._asked

    def _place(self, statement: Statement) -> Iterator[Span]:
        node = self._source.node_of(statement)
        if node is not None:
            yield span(node)

    def _around(self, statement: Statement) -> Iterable[Span]:
        """The user's simple statement around another, or the head of the compound one."""
        for place in self._place(statement):
            yield self._source.statement_around(place)
