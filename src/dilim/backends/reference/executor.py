"""Runs a graph node by node: the meaning of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from dilim import dtypes
from dilim.backends.reference.interpreter import CheckFailed, interpret
from dilim.errors import GraphError, ShapeError, UnsupportedError
from dilim.ir.graph import Graph, Node, Value
from dilim.ir.places import at_place
from dilim.ir.structure import FUSED, IF, LOOP, READ, RECEIVE, SEND, WRITE
from dilim.ir.types import Type
from dilim.ops.expansions import expanded
from dilim.ops.opdef import OpDef
from dilim.ops.recipe import Recipe
from dilim.ops.table import OPERATIONS

Arrays = list[np.ndarray]
Evaluate = Callable[[OpDef, Sequence[np.ndarray], Mapping[str, Any]], Any]
"""How one operation is carried out on arrays: `by_reference`, `by_kernel` or `by_recipe`."""
Handler = Callable[[Sequence[np.ndarray]], object]
"""Serves a channel: it reads the arrays of a ``send``, and fills those of a ``receive``."""


class Host(Protocol):
    """The other side of the channels of a graph."""

    def send(self, channel: str, arrays: Sequence[np.ndarray]) -> None:
        """Take what the graph sends; the arrays are the host's to keep."""

    def receive(self, channel: str) -> Sequence[np.ndarray] | np.ndarray:
        """Give what the graph receives, in a list or tuple; one array may come alone.

        The arrays have the types of the ``receive`` node. They are copied.
        """


def by_reference(op: OpDef, arrays: Sequence[np.ndarray], params: Mapping[str, Any]) -> Any:
    """By the operation's NumPy reference, which is its meaning."""
    return op.reference(*arrays, **params)


def by_kernel(op: OpDef, arrays: Sequence[np.ndarray], params: Mapping[str, Any]) -> Any:
    """By what eager execution on the CPU calls, so with exactly its bits."""
    return op.eager(*arrays, **params)


def by_recipe(op: OpDef, arrays: Sequence[np.ndarray], params: Mapping[str, Any]) -> Any:
    """By the operation's recipe, interpreted, with own transcendental functions.

    So it has the bits of every back end with strict arithmetic.

    Raises:
        UnsupportedError: the operation has no recipe.
    """
    types = [Type(x.shape, dtypes.from_numpy(x.dtype)) for x in arrays]
    return _interpreted(op, _recipe_of(op, types, params), types, arrays, params)


def by_known_recipes() -> Evaluate:
    """As `by_recipe`, for the nodes of one graph: a recipe is made once, not in each turn."""
    known: dict[Any, Any] = {}

    def evaluate(op: OpDef, arrays: Sequence[np.ndarray], params: Mapping[str, Any]) -> Any:
        # Not by the values of parameters: 0.0 and -0.0 are equal.
        key = (op.name, id(params), *((x.shape, x.dtype) for x in arrays))
        if key not in known:
            types = [Type(x.shape, dtypes.from_numpy(x.dtype)) for x in arrays]
            known[key] = _recipe_of(op, types, params), types, params
        recipe, types, _ = known[key]
        return _interpreted(op, recipe, types, arrays, params)

    return evaluate


def _recipe_of(op: OpDef, types: Sequence[Type], params: Mapping[str, Any]) -> Recipe:
    if op.recipe is None:
        raise UnsupportedError(f"{op.name}: it has no recipe to interpret")
    return expanded(op.recipe(*types, **params))


def _interpreted(
    op: OpDef,
    recipe: Recipe,
    types: Sequence[Type],
    arrays: Sequence[np.ndarray],
    params: Mapping[str, Any],
) -> Any:
    try:
        return interpret(recipe, arrays)
    except CheckFailed as error:
        if op.failure is None:
            raise
        raise op.failure(error.value, *types, **params) from None


def execute(
    graph: Graph,
    inputs: Sequence[np.ndarray],
    evaluate: Evaluate = by_reference,
    *,
    variables: Sequence[np.ndarray] = (),
    host: Host | None = None,
    handlers: Mapping[str, Handler] | None = None,
    safepoint: Callable[[], None] | None = None,
) -> Arrays:
    """Run a graph.

    Args:
        graph: a well-formed graph.
        inputs: one array per input of the graph, of its shape and dtype.
        evaluate: how each operation is carried out.
        variables: one array per variable of the graph; writes go into them at once, so that after
            an error they hold exactly what was written before it.
        host: the other side of ``send`` and ``receive``.
        handlers: the same in place of a host: what serves each channel.
        safepoint: called after each turn of each loop; may raise to stop the run.

    Returns:
        One new array per output.

    Raises:
        ShapeError: an input or a variable is missing or of another type.
        GraphError: the graph has channels and there is no host, or the host gives other types.
        IndexError, ...: an operation fails; where its place in the user's source is known, the
            exception has a note that tells it (see `dilim.ir.places`).
    """
    check_arrays("input", graph.inputs, inputs)
    check_arrays("variable", graph.variables, variables)
    arrays: dict[Value, np.ndarray] = dict(zip(graph.inputs, inputs, strict=True))
    arrays.update(zip(graph.variables, variables, strict=True))
    run = _Run(graph, evaluate, host, handlers, safepoint, np.geterr())
    with np.errstate(all="ignore"):
        results = run.region(graph, arrays)
    return [np.array(x, order="C") for x in results]


def carry_out(
    graph: Graph, arrays: dict[Value, np.ndarray], evaluate: Evaluate = by_reference
) -> None:
    """Carry out the nodes of a region that meets no host.

    Args:
        graph: the region.
        arrays: what it uses; its values are added. Variables are written.
        evaluate: see `execute`.
    """
    run = _Run(graph, evaluate, None, None, None, np.geterr())
    with np.errstate(all="ignore"):
        run.region(graph, arrays)


class _Run:
    """One run of a graph; ``arrays`` holds the value of everything made so far.

    ``errors`` is how NumPy treats floating point errors outside of the graph, so for the host.
    """

    def __init__(
        self,
        graph: Graph,
        evaluate: Evaluate,
        host: Host | None,
        handlers: Mapping[str, Handler] | None,
        safepoint: Callable[[], None] | None,
        errors: Any,
    ) -> None:
        self._sites = graph.sites
        self._evaluate = evaluate
        self._host = host
        self._handlers = handlers
        self._safepoint = safepoint
        self._errors = errors

    def region(self, graph: Graph, arrays: dict[Value, np.ndarray]) -> Arrays:
        """Carry out the nodes; the outputs, which may share memory with other values."""
        for node in graph.nodes:
            operands = [arrays[value] for value in node.inputs]
            results = self._node(node, operands, arrays)
            arrays.update(zip(node.results, results, strict=True))
        return [arrays[value] for value in graph.outputs]

    def _node(self, node: Node, operands: Arrays, arrays: dict[Value, np.ndarray]) -> Arrays:
        if node.op == READ:
            return [np.array(operands[0])]
        if node.op == WRITE:
            operands[0][...] = operands[1]
            return []
        if node.op == IF:
            return self.region(node.regions[0 if operands[0] else 1], dict(arrays))
        if node.op == LOOP:
            return self._loop(node, operands, arrays)
        if node.op in (SEND, RECEIVE):
            with np.errstate(**self._errors):
                return self._meet(node, operands)
        if node.op == FUSED:
            (body,) = node.regions
            return self.region(body, dict(zip(body.inputs, operands, strict=True)))
        try:
            return [np.asarray(self._evaluate(OPERATIONS[node.op], operands, node.params))]
        except Exception as error:
            at_place(error, node, self._sites)
            raise

    def _loop(self, node: Node, operands: Arrays, arrays: dict[Value, np.ndarray]) -> Arrays:
        limit, *carried = operands
        *condition, body = node.regions
        for index in range(int(limit)):
            given = [np.asarray(index, np.int64), *carried]
            if condition:
                (holds,) = self._turn(condition[0], given, arrays)
                if not holds:
                    break
            carried = self._turn(body, given, arrays)
            if self._safepoint is not None:
                self._safepoint()
        return carried

    def _turn(self, region: Graph, given: Arrays, arrays: dict[Value, np.ndarray]) -> Arrays:
        return self.region(region, arrays | dict(zip(region.inputs, given, strict=True)))

    def _meet(self, node: Node, operands: Arrays) -> Arrays:
        """A channel point: hand over, or take. Nobody tells this program to stop."""
        channel = node.params["channel"]
        if node.params.get("stop"):
            return []
        if self._handlers is not None:
            return _serve(self._handlers[channel], node, operands)
        if self._host is None:
            raise GraphError(
                f"{node.op}: the graph meets its host at channel {channel!r}, but none was given; "
                "pass host=, an object with send(channel, arrays) and receive(channel)"
            )
        if node.op == SEND:
            self._host.send(channel, [np.array(x, order="C") for x in operands])
            return []
        return received(channel, [value.type for value in node.results], self._host)


def received(channel: str, types: Sequence[Type], host: Host) -> Arrays:
    """What a host gives at a ``receive`` of values of these types, copied.

    Raises:
        ShapeError: it gives another number of arrays, or one of another type.
    """
    given: Any = host.receive(channel)
    arrays = [
        np.array(x, order="C") for x in (given if isinstance(given, (list, tuple)) else [given])
    ]  # fmt: skip
    expected = f"receive {channel!r}: expected {', '.join(map(str, types))}, received"
    if len(arrays) != len(types):
        raise ShapeError(f"{expected} {len(arrays)} values from the host")
    for type, array in zip(types, arrays, strict=True):
        if array.shape != type.shape or array.dtype != type.dtype.numpy:
            raise ShapeError(f"{expected} shape {array.shape} and dtype {array.dtype}")
    return arrays


def _serve(handler: Handler, node: Node, operands: Arrays) -> Arrays:
    if node.op == RECEIVE:
        filled = [np.empty(value.shape, value.dtype.numpy) for value in node.results]
        handler(tuple(filled))
        return filled
    sent = [np.array(x, order="C") for x in operands]
    for array in sent:
        array.flags.writeable = False
    handler(tuple(sent))
    return []


def check_arrays(what: str, values: Sequence[Value], arrays: Sequence[np.ndarray]) -> None:
    """Raise a ShapeError unless the arrays have the types of these values.

    Args:
        what: the role of one of them, for the message: ``"input"``.
        values: values of a graph.
        arrays: what stands for them.
    """
    if len(arrays) != len(values):
        raise ShapeError(f"graph: expected {len(values)} {what}s, received {len(arrays)}")
    for position, (value, array) in enumerate(zip(values, arrays, strict=True)):
        if array.shape != value.shape or array.dtype != value.dtype.numpy:
            name = f" {value.name!r}" if value.name else ""
            raise ShapeError(
                f"graph: expected {what} {position}{name} of type {value.type}, received shape "
                f"{array.shape} and dtype {array.dtype}"
            )
