"""Loops as nodes of a graph; for their derivative, see `loop_tape`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dilim import dtypes
from dilim.errors import DtypeError, GradientError, GraphError
from dilim.ir.graph import Value
from dilim.ir.structure import LOOP
from dilim.ir.types import Type, type_of
from dilim.tensors.cells import Frame
from dilim.tensors.creation import asarray
from dilim.tensors.loop_tape import Memory, Turns
from dilim.tensors.region_tape import Record, collect, put_on_tape
from dilim.tensors.regions import Built, add_region_node, inside, zeros_of
from dilim.tensors.tape import mode, no_grad, now
from dilim.tensors.tensor import Tensor
from dilim.tensors.tracer import Trace

KEPT_LIMIT: Final = 1 << 28
"""Most bytes that one loop may keep for its derivative."""

Body = Callable[..., list[Tensor]]
INDEX: Final = Type((), dtypes.int64)
_BOOL: Final = Type((), dtypes.bool_)


@dataclass(slots=True)
class _Draft:
    """The regions of a loop, being built.

    Attributes:
        frames: of the condition, if there is one, and of the body.
        outputs: the values they give.
        arguments: the carried tensors as the body takes them.
        after: as it gives them.
        record: what the body records.
    """

    frames: list[Frame] = field(default_factory=list)
    outputs: list[list[Value]] = field(default_factory=list)
    arguments: list[Tensor] = field(default_factory=list)
    after: list[Tensor] = field(default_factory=list)
    record: Record | None = None


def add_loop(
    trace: Trace,
    limit: int | Tensor,
    start: list[Tensor],
    body: Body,
    condition: Callable[..., Any] | None,
    least: int = 0,
    memory: Memory | None = None,
) -> list[Tensor]:
    """A loop as a node of a graph; see `dilim.loop`.

    Args:
        trace: the graph.
        limit: how often at most.
        start: what changes from turn to turn.
        body: a turn.
        condition: whether there is another.
        least: how often it runs at least, as the caller knows.
        memory: what is kept for the derivative; by default all turns, whose number must be known.
    """
    most = limit if isinstance(limit, Tensor) else asarray(limit, dtype=dtypes.int64)
    if type_of(most) != INDEX:
        raise DtypeError(f"loop: expected a limit of type {INDEX}, received {type_of(most)}")
    # before the body, which may write into their memory
    inputs = [trace.value(trace.handle(x)) for x in (most, *start)]
    with_gradient = [mode.recording and x.requires_grad for x in start]
    while True:
        draft = _draft(trace, start, with_gradient, body, condition)
        # a carried tensor that a turn gives a gradient takes one into the next turn
        found = [a or x.requires_grad for a, x in zip(with_gradient, draft.after, strict=True)]
        if not mode.recording or found == with_gradient:
            break
        with_gradient = found
    kinds = [type_of(x) for x in start]
    if not (mode.recording and any(with_gradient)):
        built = add_region_node(trace, LOOP, inputs, draft.frames, draft.outputs, kinds)
        return [trace.symbol(x) for x in built.results]
    return _add_with_gradient(trace, limit, start, with_gradient, draft, inputs, least, memory)


def _draft(
    trace: Trace,
    start: Sequence[Tensor],
    with_gradient: Sequence[bool],
    body: Body,
    condition: Callable[..., Any] | None,
) -> _Draft:
    kinds = [type_of(x) for x in start]
    draft = _Draft()
    if condition is not None:
        with inside(trace, is_loop=True) as frame, no_grad():
            holds = condition(*(trace.input(kind) for kind in (INDEX, *kinds)))
            if not isinstance(holds, Tensor) or type_of(holds) != _BOOL:
                raise DtypeError(f"loop: expected a condition of type {_BOOL}, received {holds!r}")
            draft.frames.append(frame)
            draft.outputs.append([trace.value(trace.handle(holds))])
    since = now()
    with inside(trace, is_loop=True) as frame:
        index = trace.input(INDEX)
        draft.arguments = [trace.input(kind) for kind in kinds]
        for x, marked in zip(draft.arguments, with_gradient, strict=True):
            x.requires_grad_(marked)
        draft.after = body(index, *draft.arguments)
        received = [type_of(x) for x in draft.after]
        if received != kinds:
            raise GraphError(
                f"loop: expected a body that gives what it takes, ({', '.join(map(str, kinds))}), "
                f"received ({', '.join(map(str, received))})"
            )
        draft.record = collect(trace, draft.after, since)
        draft.frames.append(frame)
        draft.outputs.append(list(draft.record.results))
    return draft


# --- with a derivative ----------------------------------------------------------------------


def _add_with_gradient(
    trace: Trace,
    limit: int | Tensor,
    start: list[Tensor],
    with_gradient: list[bool],
    draft: _Draft,
    inputs: list[Value],
    least: int,
    memory: Memory | None,
) -> list[Tensor]:
    """A loop on the tape, which keeps what each turn began with."""
    record: Any = draft.record
    body = draft.frames[-1]
    written = {cell for frame in draft.frames for cell in frame.written}
    carried = len(start)
    kept = body.builder.inputs[1:]
    kept += [value for cell, value in body.reads.items() if cell in written]
    size = sum(x.type.size * x.dtype.itemsize for x in kept)
    rows = _all_turns(limit, size) if memory is None else memory.turns(size)
    own = len(body.builder.nodes)
    extra = [] if rows is None else [Type((rows, *x.shape), x.dtype) for x in kept] + [INDEX]
    built = _with_memory(trace, draft, kept, extra, inputs)
    region = built.regions[-1]
    added = len(body.builder.nodes) - own
    region = replace(region, nodes=region.nodes[: len(region.nodes) - added])
    record.graph = replace(region, outputs=region.outputs[:carried])
    record.renamed = built.renamed[-1]
    results = [trace.symbol(x) for x in built.results[:carried]]
    leaves = {id(x) for x in draft.arguments}
    captured = {key: x for key, x in record.captured.items() if key not in leaves}
    has_condition = len(draft.frames) > 1
    is_exact = not (has_condition or isinstance(limit, Tensor))
    columns = built.results[carried:-1] if extra else kept
    turns = Turns(
        trace,
        rows if rows is not None else 0,
        least,
        is_exact,
        memory,
        built.results[-1] if extra else None,
        built.regions[0] if has_condition else None,
        record,
        body.builder.inputs[0],
        list(zip(kept, columns, strict=True)),
        draft.arguments,
        start,
        inputs[1:],
        inputs[0],
        with_gradient,
        captured,
        add_loop,
    )
    first = [x for x in turns.starts() if x.requires_grad]
    versions = [x._storage.version for x in first] + [record.versions[key] for key in captured]
    put_on_tape(turns, [*first, *captured.values()], versions, results, with_gradient)
    return results


def _with_memory(
    trace: Trace, draft: _Draft, kept: list[Value], extra: list[Type], inputs: list[Value]
) -> Built:
    """The loop node with, as further carried values, memory of each turn and the count of turns."""
    first = [zeros_of(trace, kind) for kind in extra]
    for frame in draft.frames[:-1]:
        for kind in extra:
            frame.builder.input(kind)
    if not extra:
        kinds = [type_of(x) for x in draft.after]
        return add_region_node(trace, LOOP, inputs, draft.frames, draft.outputs, kinds)
    builder = draft.frames[-1].builder
    memory = [builder.input(kind) for kind in extra]
    results = draft.outputs[-1]
    for value, place in zip(kept, memory, strict=False):
        given = [place, builder.inputs[0], value]
        results.append(builder.add("index_update", given, {"axis": 0}, place.type))
    one = builder.add("full", [], {"shape": (), "value": 1, "dtype": dtypes.int64}, INDEX)
    results.append(builder.add("add", [memory[-1], one], {}, INDEX))
    kinds = [type_of(x) for x in draft.after] + extra
    return add_region_node(trace, LOOP, [*inputs, *first], draft.frames, draft.outputs, kinds)


def _all_turns(limit: int | Tensor, size: int) -> int:
    """The number of turns of a loop, if all can be kept.

    Args:
        limit: of the loop.
        size: the bytes of one turn.
    """
    if isinstance(limit, Tensor):
        raise GradientError(
            "loop: expected a Python int as limit, received a tensor: for derivatives it must be "
            "known how often the loop runs at most; use condition= to end it earlier"
        )
    turns = max(int(limit), 0)
    check_size(turns, size)
    return turns


def check_size(turns: int, size: int) -> None:
    """See whether so many turns of so many bytes can be kept."""
    if turns * size > KEPT_LIMIT:
        raise GradientError(
            f"loop: its derivative needs what each of {turns} turns began with, {turns * size:,} "
            f"bytes, more than the {KEPT_LIMIT:,} that are allowed; make fewer turns, or use "
            "detach()"
        )
