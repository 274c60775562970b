"""Writes the driver: one function that runs a program by calling its kernels.

``i32 run(ptr activation)``; the layout of an activation is described in `dilim.ir.plan`. The
result says why it came back: it is done, at a safepoint, a check failed, or it is at a channel
point. Called again, it goes on from there: all that lives across such a point is in the activation,
and no value of this function crosses from one block to another except the addresses in the slots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dilim.ir import plan as p
from dilim.ir import structure as s
from dilim.ir.graph import Graph, Node, Value
from dilim.ir.plan import Carried, Place, Plan, bytes_of

ENTRY: Final = "run"
DONE: Final = 0
SAFEPOINT: Final = 1
ERROR: Final = 2
FIRST_POINT: Final = 3
"""Channel point k returns this + k."""
PARALLEL: Final = "dilim_parallel"
"""See `dilim.backends.llvm.threads`."""
_WIDTHS: Final = (64, 32, 16, 8, 4, 2, 1)
_UNROLLED: Final = 8


@dataclass(frozen=True, slots=True)
class Call:
    """How a node calls its kernel.

    Attributes:
        kernel: name of the function.
        chunks: units of work it can be split into.
        threads: how many may share them; 1 for a plain call.
        checks: whether it can fail.
        stride: scratch memory per thread, in bytes.
    """

    kernel: str
    chunks: int
    threads: int
    checks: bool
    stride: int


def write_driver(graph: Graph, plan: Plan, calls: Mapping[Node, Call], poison: bool = False) -> str:
    """The LLVM module of the driver.

    Args:
        graph: the program, of structural operations only.
        plan: where its values lie.
        calls: of every fused node.
        poison: fill memory with ones when nobody needs it any more.
    """
    return _Driver(graph, plan, calls, poison).text()


class _Driver:
    def __init__(self, graph: Graph, plan: Plan, calls: Mapping[Node, Call], poison: bool) -> None:
        self._graph = graph
        self._plan = plan
        self._calls = calls
        self._poison = poison
        self._lines: list[str] = []
        self._count = 0
        self._resume: list[str] = []
        self._numbers = {node: i for i, node in enumerate(calls)}
        self._points = {node: i for i, node in enumerate(plan.points)}
        slots = len(graph.inputs) + len(graph.outputs)
        self._slots = slots + len(graph.variables)
        self._variables: dict[Value, Place] = {
            variable: Place("slot", slots + i) for i, variable in enumerate(graph.variables)
        }

    def text(self) -> str:
        graph = self._graph
        self._region(graph)
        for number, value in enumerate(graph.outputs, len(graph.inputs)):
            self._move(value, Place("slot", number))
        self._return(DONE)
        labels = " ".join(
            f"i32 {number}, label %{label}" for number, label in enumerate(self._resume, 1)
        )
        head = [f"define i32 @{ENTRY}(ptr %a) #0 {{", "entry:"]
        for number in range(self._slots):
            offset = p.SLOTS + 8 * number
            head.append(f"  %p{number} = getelementptr i8, ptr %a, i64 {offset}")
            head.append(f"  %s{number} = load ptr, ptr %p{number}")
        head += [
            "  %resume = load i32, ptr %a",
            f"  switch i32 %resume, label %start [ {labels} ]",
            "start:",
        ]
        kernels = dict.fromkeys(call.kernel for call in self._calls.values())
        declared = [f"declare i32 @{name}(ptr, i64, i64, ptr)" for name in kernels]
        if any(call.threads > 1 for call in self._calls.values()):
            declared.append(f"declare i32 @{PARALLEL}(ptr, ptr, ptr, i64, ptr, i64, i64)")
        attributes = 'attributes #0 = { nounwind "no-builtins" }'
        return "\n".join([*declared, "", *head, *self._lines, "}", "", attributes, ""])

    # --- writing --------------------------------------------------------------------------

    def _do(self, instruction: str) -> None:
        self._lines.append(f"  {instruction}")

    def _let(self, instruction: str) -> str:
        self._count += 1
        self._do(f"%v{self._count} = {instruction}")
        return f"%v{self._count}"

    def _label(self, hint: str) -> str:
        self._count += 1
        return f"{hint}{self._count}"

    def _open(self, label: str) -> None:
        self._lines.append(f"{label}:")

    def _branch(self, label: str) -> None:
        self._do(f"br label %{label}")

    def _at(self, offset: int) -> str:
        return self._let(f"getelementptr i8, ptr %a, i64 {offset}")

    def _set(self, kind: str, value: str | int, offset: int) -> None:
        self._do(f"store {kind} {value}, ptr {self._at(offset)}")

    def _get(self, kind: str, offset: int) -> str:
        return self._let(f"load {kind}, ptr {self._at(offset)}")

    def _address(self, place: Place) -> str:
        if place.kind == "slot":
            return f"%s{place.number}"
        at = self._at(place.number)
        return at if place.kind == "arena" else self._let(f"load ptr, ptr {at}")

    def _place(self, value: Value) -> Place:
        return self._variables.get(value) or self._plan.places[value]

    def _return(self, status: int, resume: str | None = None) -> None:
        number = 0
        if resume is not None:
            self._resume.append(resume)
            number = len(self._resume)
        self._set("i32", number, p.RESUME)
        self._do(f"ret i32 {status}")

    def _move(self, value: Value, to: Place) -> None:
        """Copy a value's bytes to a place, unless it lies there."""
        source = self._place(value)
        if source != to:
            self._copy(self._address(to), self._address(source), bytes_of(value.type))

    def _copy(self, to: str, source: str, size: int) -> None:
        done = 0
        whole = size // _WIDTHS[0]
        if whole > _UNROLLED:
            done = whole * _WIDTHS[0]
            self._counted(done, lambda index: self._copy_piece(to, source, index, _WIDTHS[0]))
        for width in _WIDTHS:
            while size - done >= width:
                self._copy_piece(to, source, str(done), width)
                done += width

    def _copy_piece(self, to: str, source: str, offset: str, width: int) -> None:
        here = self._let(f"getelementptr i8, ptr {source}, i64 {offset}")
        there = self._let(f"getelementptr i8, ptr {to}, i64 {offset}")
        value = self._let(f"load <{width} x i8>, ptr {here}, align 1")
        self._do(f"store <{width} x i8> {value}, ptr {there}, align 1")

    def _counted(self, stop: int, body: object) -> None:
        """A loop over byte offsets 0, 64, ... below ``stop``."""
        before, head, done = self._label("before"), self._label("copy"), self._label("copied")
        self._branch(before)
        self._open(before)
        self._branch(head)
        self._open(head)
        self._count += 2
        index, following = f"%v{self._count - 1}", f"%v{self._count}"
        self._do(f"{index} = phi i64 [ 0, %{before} ], [ {following}, %{head} ]")
        assert callable(body)
        body(index)
        self._do(f"{following} = add nuw nsw i64 {index}, {_WIDTHS[0]}")
        more = self._let(f"icmp ult i64 {following}, {stop}")
        self._do(f"br i1 {more}, label %{head}, label %{done}")
        self._open(done)

    # --- nodes ----------------------------------------------------------------------------

    def _region(self, region: Graph) -> None:
        emitters = {
            s.FUSED: self._fused,
            s.READ: self._read,
            s.WRITE: self._write,
            s.IF: self._if,
            s.LOOP: self._loop,
            s.SEND: self._send,
            s.RECEIVE: self._receive,
        }
        for node in region.nodes:
            emitters[node.op](node)
            if self._poison:
                for offset, size in self._plan.deaths.get(node, ()):
                    self._fill(offset, size)

    def _fill(self, offset: int, size: int) -> None:
        start = self._at(offset)
        ones = ", ".join(["i8 -1"] * _WIDTHS[0])

        def piece(index: str) -> None:
            there = self._let(f"getelementptr i8, ptr {start}, i64 {index}")
            self._do(f"store <{_WIDTHS[0]} x i8> <{ones}>, ptr {there}, align 1")

        self._counted(size, piece)

    def _fused(self, node: Node) -> None:
        call = self._calls[node]
        for number, value in enumerate((*node.inputs, *node.results)):
            address = self._address(self._place(value))
            self._set("ptr", address, self._plan.arguments + 8 * number)
        arguments, scratch = self._at(self._plan.arguments), self._at(self._plan.size)
        if call.threads > 1:
            pool = self._get("ptr", p.POOL)
            self._do(
                f"call i32 @{PARALLEL}(ptr {pool}, ptr @{call.kernel}, ptr {arguments}, "
                f"i64 {call.chunks}, ptr {scratch}, i64 {call.stride}, i64 {call.threads})"
            )
            return
        status = self._let(
            f"call i32 @{call.kernel}(ptr {arguments}, i64 0, i64 {call.chunks}, ptr {scratch})"
        )
        if call.checks:
            self._fail(node, status, scratch)

    def _fail(self, node: Node, status: str, scratch: str) -> None:
        failed, fine = self._label("failed"), self._label("fine")
        bad = self._let(f"icmp ne i32 {status}, 0")
        self._do(f"br i1 {bad}, label %{failed}, label %{fine}")
        self._open(failed)
        self._set("i32", self._let(f"sub i32 {status}, 1"), p.MESSAGE)
        self._set("i32", self._numbers[node], p.FAILED)
        self._set("i64", self._let(f"load i64, ptr {scratch}"), p.OFFENDING)
        self._return(ERROR)
        self._open(fine)

    def _read(self, node: Node) -> None:
        source, target = self._variables[node.inputs[0]], self._place(node.results[0])
        if source != target:
            size = bytes_of(node.results[0].type)
            self._copy(self._address(target), self._address(source), size)

    def _write(self, node: Node) -> None:
        self._move(node.inputs[1], self._variables[node.inputs[0]])

    def _if(self, node: Node) -> None:
        labels = [self._label("then"), self._label("else")]
        after = self._label("after")
        flag = self._truth(node.inputs[0])
        self._do(f"br i1 {flag}, label %{labels[0]}, label %{labels[1]}")
        for label, region in zip(labels, node.regions, strict=True):
            self._open(label)
            self._region(region)
            for inside, result in zip(region.outputs, node.results, strict=True):
                self._move(inside, self._place(result))
            self._branch(after)
        self._open(after)

    def _truth(self, value: Value) -> str:
        byte = self._let(f"load i8, ptr {self._address(self._place(value))}")
        return self._let(f"icmp ne i8 {byte}, 0")

    def _loop(self, node: Node) -> None:
        record = self._plan.loops[node]
        head, inside, out = self._label("head"), self._label("body"), self._label("out")
        limit = self._let(f"load i64, ptr {self._address(self._place(node.inputs[0]))}")
        self._set("i64", limit, record.limit)
        self._set("i64", 0, record.index)
        for carried, initial in zip(record.carried, node.inputs[1:], strict=True):
            self._begin(carried, initial)
        self._branch(head)
        self._open(head)
        index, limit = self._get("i64", record.index), self._get("i64", record.limit)
        more = self._let(f"icmp slt i64 {index}, {limit}")
        if len(node.regions) == 2:
            test = self._label("test")
            self._do(f"br i1 {more}, label %{test}, label %{out}")
            self._open(test)
            self._region(node.regions[0])
            more = self._truth(node.regions[0].outputs[0])
        self._do(f"br i1 {more}, label %{inside}, label %{out}")
        self._open(inside)
        body = node.regions[-1]
        self._region(body)
        self._turn(record.carried, body.outputs)
        index = self._get("i64", record.index)
        self._set("i64", self._let(f"add i64 {index}, 1"), record.index)
        self._safepoint(head)
        self._open(out)

    def _begin(self, carried: Carried, initial: Value) -> None:
        first = Place("arena", carried.buffers[0])
        self._move(initial, first)
        if len(carried.buffers) == 2:
            self._set("ptr", self._at(carried.buffers[0]), carried.current.number)
            self._set("ptr", self._at(carried.buffers[1]), carried.following.number)

    def _turn(self, carried: Sequence[Carried], outputs: Sequence[Value]) -> None:
        """Leave the next values in place, then exchange the buffers."""
        for entry, value in zip(carried, outputs, strict=True):
            self._move(value, entry.following)
        for entry in carried:
            if len(entry.buffers) == 2:
                here = self._get("ptr", entry.current.number)
                there = self._get("ptr", entry.following.number)
                self._set("ptr", there, entry.current.number)
                self._set("ptr", here, entry.following.number)

    def _safepoint(self, head: str) -> None:
        """Count the turn; come back to the caller when the budget is used up."""
        pause = self._label("pause")
        left = self._let(f"sub i64 {self._get('i64', p.BUDGET)}, 1")
        self._set("i64", left, p.BUDGET)
        enough = self._let(f"icmp sgt i64 {left}, 0")
        self._do(f"br i1 {enough}, label %{head}, label %{pause}")
        self._open(pause)
        self._return(SAFEPOINT, head)

    def _send(self, node: Node) -> None:
        if not node.params.get("stop"):
            self._hand_over(node)
            return
        told, by = self._label("told"), self._label("by")
        on = self._let(f"icmp eq i64 {self._get('i64', p.STOP)}, 0")
        self._do(f"br i1 {on}, label %{by}, label %{told}")
        self._open(told)
        self._hand_over(node)
        self._branch(by)
        self._open(by)

    def _hand_over(self, node: Node) -> None:
        point = self._plan.points[node]
        for value, offset in zip(node.inputs, point.offsets, strict=True):
            self._move(value, Place("arena", offset))
        self._point(node)

    def _receive(self, node: Node) -> None:
        self._point(node)

    def _point(self, node: Node) -> None:
        after = self._label("resumed")
        self._return(FIRST_POINT + self._points[node], after)
        self._open(after)
