"""The tape handed to the host, so that a gradient can be asked for outside of the graph program.

What eager execution remembers of an operation is a `dilim.tensors.tape.Node` with the tensors it
was applied to. When a tensor that carries a gradient reaches the host, the operations that lead to
it are recorded there, on the numbers that the graph computed, as if they had just been run. So
``backward()`` outside gives the bits of eager execution, and the same errors.

Order matters where gradients are summed: later operations come first. A *moment* is a point of the
host program at which something may be recorded there; operations that are handed over are placed
before the first moment that comes after them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dilim.autodiff.walk import Part, reachable
from dilim.slicing.actions import Action
from dilim.slicing.errors import Restart, Unsliceable
from dilim.slicing.host import Objects
from dilim.slicing.program import Statement
from dilim.slicing.recorded_inside import is_overwritten, nodes_in, plain_inputs
from dilim.slicing.values import Held
from dilim.tensors.region_tape import Region, can_replay, edge_of, needed_by
from dilim.tensors.tape import SPACING, Node, now
from dilim.tensors.tensor import Tensor

THROUGH: Final = "a gradient that goes through a loop or branch of the graph is handed out"

SHARED: Final = "a gradient goes through a branch or loop of which host code has got a part"
WRITTEN: Final = "a gradient through memory that was written is handed out"
USED_UP: Final = "backward() has used up another result of a branch or loop that is handed out"
_NODE: Final = "node"
_COPY: Final = "identity"


def is_node(key: Any) -> bool:
    """Whether something that the host has is a recorded operation; see `Objects.held`."""
    return key.__class__ is tuple and key[0] == _NODE


def perhaps(known: Held) -> Held:
    """What there is of a recorded operation that the host has got on one path, or in a turn."""
    return known._replace(flag=False)


class Tapes:
    """Which recorded operations the host has.

    Attributes:
        unsure: what loops carry with a gradient, but not in each of their turns, by identity.

    Args:
        objects: what the host has of the graph.
        count_writes: code that counts writes into memory that the host can see.
    """

    def __init__(self, objects: Objects, count_writes: Callable[[Action], list[str]]) -> None:
        self._objects = objects
        self._trace = objects.trace
        self._count_writes = count_writes
        self._moments: list[int] = []
        self._given: dict[int, Node] = {}
        self._numbers: dict[int, int] = {}
        self._from_outside: dict[int, None] = {}
        self._loops: dict[int, tuple[Any, Statement]] = {}
        self.unsure: dict[int, Tensor] = {}

    def note_loop(self, results: Sequence[Tensor], statement: Statement) -> None:
        """Take note of a loop that was built: a gradient through it makes it be laid out flat."""
        for x in results:
            for whole in x._node.edges if x._node is not None else ():
                self._loops[id(whole.op)] = whole.op, statement

    def moment(self, action: Action) -> str:
        """Code that gives the moment at which it runs."""
        self._moments.append(now())
        return f"R.moment({len(self._moments) - 1}, {self._turn(action)})"

    def hand_out(self, x: Tensor, action: Action) -> None:
        """Have the host record the operations that lead to a tensor.

        Raises:
            Restart: it was computed by a loop that can be laid out flat.
            Unsliceable: it was computed by another loop or a branch of the graph, or something
                that its derivative needs was written over.
        """
        held = self._objects.held
        missing = []
        for node, result in self._tape(x):
            known = held.get((_NODE, id(node)))
            if known is None or known.flag is False:
                missing.append((node, result, self._place(node, action)))
        if not missing:
            return
        action.prelude += self._count_writes(action)
        action.prelude.append(f"m = {self.moment(action)}")
        for node, result, place in missing:
            number = self._numbers.setdefault(id(node), len(self._numbers))
            self._given[number] = node
            depth = self._depth(node)
            if depth < len(self._trace.turns):
                self._from_outside[number] = None
            turn = self._turn(action, depth)
            recording = self._recording(f"{number}, {turn}", node, result, place, action)
            action.prelude.append(recording)
            held[_NODE, id(node)] = Held(number)

    def is_given(self, node: Node) -> bool:
        """Whether the host may have a recorded operation."""
        return (_NODE, id(node)) in self._objects.held

    def _recording(self, head: str, node: Node, result: Any, place: str, action: Action) -> str:
        """Code that records an operation, branch or loop, or what one of these has made."""
        entry = self._objects.entry
        if isinstance(node.op, Part):
            (whole,) = node.edges
            made = self._objects.bare(result, action)
            known = self._numbers[id(whole)]
            is_certain = whole.op.flags([True] * len(whole.edges))[node.op.number]
            return f"R.attach({head}, {made}, {known}, {node.op.number}, {is_certain})"
        inputs = "".join(f"{self._objects.expression(y, action)}, " for y in node.inputs or ())
        if isinstance(node.op, Region):
            values = needed_by(node.op)
            arrays = "".join(f"{action.send(self._trace.symbol(value))}, " for value in values)
            region, given = map(entry.constant, (node.op, values))
            rest = f"{place}, {self._passed(node)}, {{{self._plain(node.op, action)}}}"
            return f"R.defer({head}, {region}, ({inputs}), {given}, ({arrays}), {rest})"
        made = self._objects.bare(result, action)
        op, params = map(entry.constant, (node.op, node.params))
        return f"R.record({head}, {made}, {op}, ({inputs}), {params}, {place})"

    def _plain(self, region: Region, action: Action) -> str:
        """Code for the tensors without gradient that a region was applied to and others can write.

        Their numbers are sent; but if they are written later, the gradient that needs them is lost.
        """
        objects, found = self._objects, {id(x): x for x in plain_inputs(region)}
        return "".join(
            f"{key}: {objects.expression(x, action)}, "
            for key, x in found.items()
            if objects.entry.slot(x) is not None
            or not self._trace.owns(x)
            or x._data.cell.variable is not None
            or objects.has(x)
            or self._trace.lent.number_of(x._data.cell) is not None
        )

    def _passed(self, whole: Node) -> tuple[tuple[int, int], ...]:
        """The moments of the host inside a branch, and their numbers."""
        inner = whole.op.inner()  # type: ignore[attr-defined]
        serials = [node.serial for record in inner for node in record.nodes]
        since = min(serials, default=whole.serial)
        moments = enumerate(self._moments)
        return tuple((serial, n) for n, serial in moments if since < serial < whole.serial)

    def _depth(self, node: Node) -> int:
        """In how many of the open loops a node belongs to the present turn."""
        return sum(began <= node.serial for began in self._trace.turns)

    def _turn(self, action: Action, depth: int | None = None) -> str:
        """Code for the turns at which the outer so many of the open loops are."""
        indices = self._trace.indices[:depth]
        return f"({''.join(f'{action.send(index)}.item(), ' for index in indices)})"

    def releases(self) -> list[str]:
        """Code that uses up what the graph program has used up since the host got it."""
        if any(self._is_shared(node) for node, *_ in self._trace.released):
            raise Unsliceable(SHARED)
        held = self._objects.held
        lines = []
        for key, known in list(held.items()):
            if not is_node(key):
                continue
            if self._given[known.number].inputs is not None:
                continue
            if known.flag is False and self._trace.turns:
                raise Unsliceable("backward() in a loop, of what the host has got on one path")
            lines.append(f"R.release({known.number})")
            del held[key]
        outside = (number for number in self._from_outside if self._given[number].inputs is None)
        return lines + [f"R.release({number})" for number in outside]

    def _is_shared(self, whole: Node) -> bool:
        """Whether the host has got operations inside a branch or loop, of some turn or path."""
        op: Any = whole.op
        return isinstance(op, Region) and any(map(self.is_given, nodes_in(op)))

    def leading_to(self, tensors: Sequence[Tensor]) -> list[Node]:
        """The operations of the region that lead to tensors, the last first."""
        started = self._trace.started
        roots = [x._node for x in tensors]
        return reachable(roots, lambda e: e.__class__ is Node and e.serial >= started)

    def is_certain(self, x: Tensor) -> bool:
        """Whether a tensor has a gradient on all paths."""
        known: dict[int, Any] = {}
        for node in reversed(self.leading_to([x])):
            given = [self._known(edge, known) for edge in node.edges]
            op: Any = node.op
            if node.inputs is None:  # used up, and so there
                known[id(node)] = True
            elif isinstance(op, Part):
                known[id(node)] = given[0] is True or given[0][op.number]
            else:
                known[id(node)] = op.flags(given) if isinstance(op, Region) else any(given)
        return bool(self._known(edge_of(x), known))

    def _known(self, edge: Any, known: dict[int, Any]) -> Any:
        return edge is not None and id(edge) not in self.unsure and known.get(id(edge), True)

    def _tape(self, x: Tensor) -> list[tuple[Node, Tensor | None]]:
        """The operations of the region that lead to a tensor, in order, and their results."""
        results: dict[int, Tensor] = {id(x._node): x}
        found = []
        for node in self.leading_to([x]):
            if node.inputs is None:
                continue
            if isinstance(node.op, Region) and not can_replay(node.op):
                loop = self._loops.get(id(node.op))
                raise Unsliceable(THROUGH) if loop is None else Restart(("flat", loop[1]))
            if isinstance(node.op, Region) and is_overwritten(node.op):
                raise Unsliceable(WRITTEN)
            if isinstance(node.op, Part) and node.edges[0].inputs is None:
                raise Unsliceable(USED_UP)
            if self._is_shared(node) and not self._objects.lenient:
                raise Unsliceable(SHARED)
            for y, edge, version in zip(node.inputs, node.edges, node.versions, strict=True):
                if not isinstance(y, Tensor):
                    continue
                is_made = edge.__class__ is Node
                is_needed = is_made or node.op.name != _COPY  # which needs no numbers
                is_written = is_needed and y._storage.version != version
                if is_written or (is_made and y._node is not edge):
                    raise Unsliceable(WRITTEN)
                if is_made:
                    results[id(edge)] = y
            found.append((node, results.get(id(node))))
        return found[::-1]

    def _place(self, node: Node, action: Action) -> str:
        """Code for where a recorded operation comes among those that the host records."""
        rank = (node.serial - self._trace.started) // SPACING
        later = tuple(n for n, serial in enumerate(self._moments) if serial > node.serial)
        return f"R.place({later!r}, m, {rank}, {self._turn(action, self._depth(node))})"
