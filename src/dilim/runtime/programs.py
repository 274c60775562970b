"""Programs: graphs that are ready to run, on one back end or another."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, Protocol

import numpy as np

from dilim.backends.llvm import binding, calls, driver
from dilim.backends.reference.executor import Host, by_known_recipes, received
from dilim.errors import GraphError
from dilim.ir import plan as p
from dilim.ir.graph import Graph
from dilim.ir.places import at_place
from dilim.ir.plan import Point
from dilim.ir.structure import SEND, fused_nodes, walk
from dilim.ir.text import from_text
from dilim.ir.types import Type
from dilim.ops.table import OPERATIONS
from dilim.runtime import threads
from dilim.runtime.arguments import check_inputs, check_variables
from dilim.runtime.build import Built, Settings, build, is_built, load_function
from dilim.runtime.machine import this_machine
from dilim.runtime.reference import ReferenceProgram

SAFEPOINT_SECONDS: Final = 0.01
"""How long a program runs before it comes back to Python."""
LONG: Final = 5_000.0
"""Estimated nanoseconds from which other Python threads may run meanwhile."""
_FIRST_BUDGET: Final = 64
_LARGEST_BUDGET: Final = 1 << 40


class Activation:
    """The memory of one run.

    Attributes:
        address: where it begins.
        memory: its bytes.
        slots: the addresses of inputs, results and variables.
    """

    __slots__ = ("_budget", "_failed", "_stop", "_whole", "address", "memory", "slots")

    def __init__(self, size: int, slots: int, pool: int) -> None:
        self._whole = np.zeros(size + p.ALIGNMENT, np.uint8)
        start = -address_of(self._whole) % p.ALIGNMENT
        self.memory = self._whole[start : start + size]
        self.address = address_of(self.memory)
        self.slots = self.memory[p.SLOTS : p.SLOTS + 8 * slots].view(np.uint64)
        self._budget = self.memory[p.BUDGET : p.BUDGET + 8].view(np.int64)
        self._stop = self.memory[p.STOP : p.STOP + 8].view(np.int64)
        self._failed = self.memory[: p.OFFENDING + 8].view(np.int32)
        self.memory[p.POOL : p.POOL + 8].view(np.uint64)[0] = pool

    def reset(self) -> None:
        """Be ready for a run from the start."""
        self._failed[0] = 0

    def begin(self, addresses: Sequence[int]) -> None:
        """Be ready for a run from the start, with these addresses in the slots."""
        self.reset()
        self.slots[: len(addresses)] = addresses

    def grant(self, turns: int) -> None:
        """Allow so many turns of loops until the next safepoint."""
        self._budget[0] = turns

    def tell_to_stop(self, told: bool) -> None:
        """Let the program stop, or not, where it comes to a send that waits for that."""
        self._stop[0] = told

    def failure(self) -> tuple[int, int, int]:
        """Number of the kernel call that failed, of its check, and the offending value."""
        value = self.memory[p.OFFENDING : p.OFFENDING + 8].view(np.int64)
        return int(self._failed[p.FAILED // 4]), int(self._failed[p.MESSAGE // 4]), int(value[0])

    def take(self, type: Type, offset: int) -> np.ndarray:
        """A copy of a value."""
        return self.view(type, offset).copy()

    def view(self, type: Type, offset: int) -> np.ndarray:
        """The memory of a value as an array."""
        piece = self.memory[offset : offset + p.bytes_of(type)]
        return piece.view(type.dtype.numpy).reshape(type.shape)


def address_of(array: np.ndarray) -> int:
    """Where the elements of an array begin."""
    address: int = array.__array_interface__["data"][0]
    return address


class Native:
    """Machine code of a graph, loaded.

    Args:
        graph: what it computes.
        built: its code.
        symbols: addresses that the code refers to, by name.
        pool: address of the threads' pool; 0 where no kernel is shared.

    Attributes:
        entry: address of the program.
        releases_gil: whether other Python threads may run meanwhile.
        turns: of loops, until the next safepoint.
    """

    def __init__(
        self, graph: Graph, built: Built, symbols: Mapping[str, int], pool: int = 0
    ) -> None:
        self.graph = graph
        self.built = built
        self._pool = pool
        self._library = binding.link(built.objects, symbols)
        self.entry = self._library.address(driver.ENTRY)
        self.releases_gil = built.loops or built.cost > LONG
        self.slots = len(graph.inputs) + len(graph.outputs) + len(graph.variables)
        self.turns = _FIRST_BUDGET

    @functools.cached_property
    def call(self) -> Callable[[int], int]:
        """Runs the program, from the address of an activation to a status."""
        keep = [self._library]
        return calls.builtin(self.entry, load_function, release_gil=self.releases_gil, keep=keep)

    def activation(self) -> Activation:
        """New memory for runs."""
        return Activation(self.built.size, self.slots, self._pool)

    def resume(
        self,
        activation: Activation,
        host: Host | None = None,
        at_safepoint: Callable[[], None] | None = None,
    ) -> None:
        """Go on with a run until it is done."""
        while True:
            activation.grant(self.turns)
            started = time.perf_counter()
            status = self.call(activation.address)
            if not self.settle(status, activation, host, at_safepoint, started):
                return

    def settle(
        self,
        status: int,
        activation: Activation,
        host: Host | None,
        at_safepoint: Callable[[], None] | None,
        started: float | None = None,
    ) -> bool:
        """Do what a status asks for; whether the run has to go on."""
        if status == driver.DONE:
            return False
        if status == driver.SAFEPOINT:
            if started is not None:
                self.adapt(time.perf_counter() - started)
            if at_safepoint is not None:
                at_safepoint()
        elif status == driver.ERROR:
            raise self.failure(*activation.failure())
        else:
            _exchange(activation, self.built.points[status - driver.FIRST_POINT], host)
        return True

    def failure(self, call: int, number: int, value: int) -> Exception:
        """The exception for a check that failed: what eager execution would have raised."""
        final = from_text(self.built.text)
        fused = fused_nodes(final)[call]
        node = fused.regions[0].nodes[number]
        make = OPERATIONS[node.op].failure
        if make is None:
            return RuntimeError(f"{node.op}: a check of an operation without any failed")
        error = make(value, *(operand.type for operand in node.inputs), **node.params)
        order = {id(each): position for position, each in enumerate(walk(final))}
        site = self.built.sites[order[id(node)]]
        at_place(error, replace(node, site=site), self.graph.sites)
        return error

    def adapt(self, seconds: float) -> None:
        """Choose the next budget so that it lasts about as long as it should.

        Args:
            seconds: how long the present one lasted.
        """
        factor = SAFEPOINT_SECONDS / max(seconds, 1e-7)
        self.turns = int(min(max(self.turns * min(factor, 8.0), 1), _LARGEST_BUDGET))


class Program(Protocol):
    """A graph that can be run."""

    graph: Graph

    def run(
        self,
        inputs: Sequence[np.ndarray],
        variables: Sequence[np.ndarray] = (),
        host: Host | None = None,
        at_safepoint: Callable[[], None] | None = None,
    ) -> list[np.ndarray]:
        """Run it once.

        Args:
            inputs: one array per input of the graph, of its type.
            variables: one array per variable, of its type and in row-major order, and writable
                where the graph writes it; their contents are read and replaced.
            host: the other end of channels.
            at_safepoint: called about every 10 ms while loops run; it may raise to stop the run.

        Returns:
            One new array per output.

        Raises:
            ShapeError: an array is missing, or cannot be used as it is.
            IndexError, ValueError: an operation fails as it does when it is computed eagerly; it
                is named, with the line of the user's source.
        """


class NativeProgram:
    """A graph as machine code. See `Program`."""

    def __init__(self, native: Native, settings: Settings) -> None:
        self.graph = native.graph
        self.native = native
        self.settings = settings
        self._free: list[Activation] = []

    def run(
        self,
        inputs: Sequence[np.ndarray],
        variables: Sequence[np.ndarray] = (),
        host: Host | None = None,
        at_safepoint: Callable[[], None] | None = None,
    ) -> list[np.ndarray]:
        """See `Program`."""
        arrays = check_inputs(self.graph, inputs)
        check_variables(self.graph, variables)
        outputs = [np.empty(value.shape, value.dtype.numpy) for value in self.graph.outputs]
        try:
            activation = self._free.pop()
        except IndexError:
            activation = self.native.activation()
        activation.begin([address_of(array) for array in (*arrays, *outputs, *variables)])
        try:
            self.native.resume(activation, host, at_safepoint)
        finally:
            self._free.append(activation)
        return outputs


def is_compiled(graph: Graph, numerics: Literal["strict", "fast"] = "strict") -> bool:
    """Whether `compile_graph` finds the machine code of a graph on disk."""
    return is_built(
        graph, Settings(numerics, binding.as_target(None, this_machine().target), False)
    )


def compile_graph(
    graph: Graph,
    *,
    numerics: Literal["strict", "fast"] = "strict",
    backend: Literal["llvm", "reference"] = "llvm",
    cpu: str | None = None,
    poison: bool = False,
) -> Program:
    """A graph, ready to run.

    Args:
        graph: a well-formed graph.
        numerics: ``"strict"``: the bits of eager execution; ``"fast"``: a product and the sum that
            it goes into may be rounded once instead of twice.
        backend: ``"llvm"``, or ``"reference"``: NumPy, slow, always strict.
        cpu: see `dilim.backends.llvm.binding.as_target`.
        poison: overwrite memory when nobody needs it any more; for tests.

    Raises:
        UnsupportedError: the back end cannot run an operation.
    """
    if backend == "reference":
        return ReferenceProgram(graph, by_known_recipes())
    threads.get_num_threads()  # complains about a wrong DILIM_THREADS, whether one is needed or not
    settings = Settings(numerics, binding.as_target(cpu, this_machine().target), poison)
    built = build(graph, settings)
    shared = built.parallel
    return NativeProgram(
        Native(
            graph,
            built,
            threads.symbols() if shared else {},
            threads.native_pool() if shared else 0,
        ),
        settings,
    )


def _exchange(activation: Activation, point: Point, host: Host | None) -> None:
    """Serve a channel point."""
    if host is None:
        raise GraphError(
            f"graph: channel {point.channel!r} needs a host: expected host=..., received None"
        )
    pairs = list(zip(point.types, point.offsets, strict=True))
    if point.op == SEND:
        host.send(point.channel, [activation.take(*pair) for pair in pairs])
        return
    for pair, array in zip(pairs, received(point.channel, point.types, host), strict=True):
        activation.view(*pair)[...] = array
