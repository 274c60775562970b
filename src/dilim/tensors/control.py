"""Branches, loops and channels: Python when eager, nodes in a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dilim import dtypes
from dilim.errors import DtypeError, GraphError
from dilim.ir.graph import Value
from dilim.ir.structure import IF, RECEIVE, SEND
from dilim.ir.types import Type, type_of
from dilim.tensors.branches import Branch
from dilim.tensors.cells import Frame
from dilim.tensors.creation import asarray
from dilim.tensors.dispatch import tracer_of
from dilim.tensors.loops import add_loop
from dilim.tensors.region_tape import collect, put_on_tape
from dilim.tensors.regions import (
    add_region_node,
    entered_again,
    inside,
    unrepeatable,
    zeros_of,
)
from dilim.tensors.sites import user_site
from dilim.tensors.tape import mode, now
from dilim.tensors.tensor import Tensor
from dilim.tensors.tracer import Trace

Results = Any
"""A tensor, a sequence of tensors, or None."""


def cond(condition: Any, then: Callable[[], Results], otherwise: Callable[[], Results]) -> Results:
    """``then()`` where a condition holds, else ``otherwise()``.

    Computed eagerly, only the chosen function is called. In a graph both become branches of one
    node, of which one runs.

    Args:
        condition: a bool tensor of shape (), or a Python bool.
        then: a function without arguments that gives a tensor, several, or None.
        otherwise: likewise, with the same shapes and dtypes in a graph.

    Example:
        >>> import dilim
        >>> x = dilim.tensor([1.0, -2.0])
        >>> dilim.cond(x.sum() > 0.0, lambda: x, lambda: -x).tolist()
        [-1.0, 2.0]
    """
    trace = tracer_of(condition) if isinstance(condition, Tensor) else None
    if trace is None:
        return then() if condition else otherwise()
    return cond_in(trace, condition, then, otherwise)


def loop(
    limit: int | Tensor,
    carried: Results,
    body: Callable[..., Results],
    condition: Callable[..., Any] | None = None,
) -> Results:
    """``carried = body(index, *carried)`` for index 0 .. limit - 1, while a condition holds.

    In a graph this is one node; the body runs once while the graph is built. To build a loop over
    eager tensors, trace the function that calls this, or use `Graph.loop`.

    Args:
        limit: how often at most; a number, or an int64 tensor of shape (). With 0 or less there is
            no turn, and the result is ``carried``.
        carried: a tensor or a sequence of tensors that change from turn to turn; None for none.
        body: from index (int64, shape ()) and the carried tensors to the next ones, which must have
            the same shapes and dtypes.
        condition: from the same arguments to a bool tensor of shape (), tested before each turn.

    Returns:
        The last carried tensors, in the form of ``carried``.

    Example:
        >>> import dilim
        >>> dilim.loop(3, dilim.tensor(1.0), lambda index, x: x * 2.0).item()
        8.0
    """
    start = _several(carried)
    trace = tracer_of(*(x for x in (limit, *start) if isinstance(x, Tensor))) or mode.tracer
    if trace is not None:
        return loop_in(trace, limit, carried, body, condition)
    values = start
    for number in range(int(limit)):
        arguments = (asarray(number, dtype=dtypes.int64), *values)
        if condition is not None and not bool(condition(*arguments)):
            break
        values = _several(body(*arguments))
    return _like(carried, values)


def cond_in(
    trace: Trace, condition: Any, then: Callable[[], Results], otherwise: Callable[[], Results]
) -> Results:
    """`cond` as a node of a graph.

    Raises:
        DtypeError: the condition is not a bool of shape ().
        GraphError: the branches give results of different types.
    """
    frames, tensors = [], []
    since = now()
    for function in (then, otherwise):
        with inside(trace, is_loop=False) as frame:
            returned = function()
            tensors.append(_several(returned))
            frames.append(frame)
    kinds = [[type_of(x) for x in some] for some in tensors]
    if kinds[0] != kinds[1]:
        raise GraphError(
            f"cond: expected branches with results of the same types, received {_listed(kinds[0])} "
            f"and {_listed(kinds[1])}"
        )
    return _like(returned, join(trace, condition, frames, tensors, since))


def join(
    trace: Trace,
    condition: Any,
    frames: Sequence[Frame],
    tensors: Sequence[Sequence[Tensor]],
    since: int,
) -> list[Tensor]:
    """The node of a branch whose two regions are built.

    Args:
        trace: the graph.
        condition: which region is taken: a bool tensor of shape ().
        frames: the two regions, as `regions.inside` left them.
        tensors: what each gives, of the same types.
        since: a `tape.now` from before the regions.

    Returns:
        The results of the node, on the tape where a gradient may be wanted.
    """
    chosen = _value_of(trace, "cond: condition", condition, _BOOL)
    records = []
    for frame, some in zip(frames, tensors, strict=True):
        with entered_again(trace, frame):
            records.append(collect(trace, some, since))
    wanted = [a.requires_grad or b.requires_grad for a, b in zip(*tensors, strict=True)]
    is_recorded = mode.recording and any(wanted)
    outputs = [[*record.results] for record in records]
    kept = _keep(trace, frames, outputs) if is_recorded else [[], []]
    kinds = [value.type for value in outputs[0]]
    built = add_region_node(trace, IF, [chosen], frames, outputs, kinds)
    made = iter(built.results)
    results = [trace.symbol(next(made)) for _ in wanted]
    if is_recorded:
        parts = zip(records, built.regions, built.renamed, kept, strict=True)
        for record, graph, renamed, values in parts:
            record.graph, record.renamed = graph, renamed
            record.kept = {value: next(made) for value in values}
        captured = records[1].captured | records[0].captured
        versions = records[1].versions | records[0].versions
        branch = Branch(trace, chosen, records, captured, cond_in)
        put_on_tape(branch, [*captured.values()], [*versions.values()], results, wanted)
    return results


def _keep(
    trace: Trace, frames: Sequence[Frame], outputs: Sequence[list[Value]]
) -> list[list[Value]]:
    """Let a branch give what cannot be computed again for its derivative; zeros on its other side.

    Args:
        trace: the graph.
        frames: both regions.
        outputs: the values that each gives; those are added.

    Returns:
        Per region these values.
    """
    kept = [unrepeatable(frame) for frame in frames]
    for side, values in enumerate(kept):
        with entered_again(trace, frames[1 - side]):
            zeros = [zeros_of(trace, value.type) for value in values]
        outputs[side] += values
        outputs[1 - side] += zeros
    return kept


def loop_in(
    trace: Trace,
    limit: int | Tensor,
    carried: Results,
    body: Callable[..., Results],
    condition: Callable[..., Any] | None = None,
) -> Results:
    """`loop` as a node of a graph.

    Raises:
        DtypeError: the limit is no int64, or the condition no bool, of shape ().
        GraphError: the body gives other types than it takes.
    """
    start = _several(carried)
    return _like(carried, add_loop(trace, limit, start, _bare(body), condition))


def send_in(trace: Trace, channel: str, values: Sequence[Tensor], **flags: bool) -> None:
    """Hand values to the host at this point; flags as in `dilim.ir.structure`."""
    given = [_value(trace, x) for x in values]
    trace.top.settle()
    params = {"channel": channel, **{name: True for name, is_set in flags.items() if is_set}}
    trace.top.builder.add_node(SEND, given, params, [], site=user_site())


def receive_in(trace: Trace, channel: str, kind: Type) -> Tensor:
    """A value from the host at this point."""
    trace.top.settle()
    builder = trace.top.builder
    (value,) = builder.add_node(RECEIVE, [], {"channel": channel}, [kind], site=user_site())
    return trace.symbol(value)


# --- parts ----------------------------------------------------------------------------------

_BOOL = Type((), dtypes.bool_)


def _value(trace: Trace, x: Tensor) -> Value:
    return trace.value(trace.handle(x))


def _value_of(trace: Trace, what: str, x: Any, kind: Type) -> Value:
    tensor = x if isinstance(x, Tensor) else trace.constant(asarray(x, dtype=kind.dtype).numpy())
    if type_of(tensor) != kind:
        raise DtypeError(f"{what}: expected {kind}, received {type_of(tensor)}")
    return _value(trace, tensor)


def _several(results: Results) -> list[Tensor]:
    if results is None:
        return []
    if isinstance(results, (list, tuple)):
        return [asarray(x) for x in results]
    return [asarray(results)]


def _like(results: Results, tensors: Sequence[Tensor]) -> Results:
    if results is None:
        return None
    if isinstance(results, (list, tuple)):
        return tuple(tensors)
    return tensors[0]


def _listed(kinds: Sequence[Type]) -> str:
    return f"({', '.join(map(str, kinds))})"


def _bare(body: Callable[..., Results]) -> Callable[..., list[Tensor]]:
    return lambda *arguments: _several(body(*arguments))
