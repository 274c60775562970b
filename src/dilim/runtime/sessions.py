"""Programs whose channel points are served by functions, with other memory at each run."""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from dilim.backends.llvm import calls_points, driver
from dilim.backends.llvm.calls import fast_calls
from dilim.backends.llvm.calls_points import Runner, RunnerCode
from dilim.backends.reference.executor import Handler
from dilim.errors import GraphError, ShapeError
from dilim.ir.graph import Graph, Value
from dilim.ir.plan import Point
from dilim.ir.structure import CHANNELS, SEND, walk, written
from dilim.runtime import interrupts
from dilim.runtime.build import load_function
from dilim.runtime.programs import LONG, Activation, Native, NativeProgram, address_of
from dilim.runtime.reference import ReferenceProgram

LONG_STRETCH: Final = 50e-6
"""Seconds between two channel points from which other Python threads may run meanwhile.

With the GIL given away for less, the wait for its return (up to 5 ms) would come too often.
"""
Safepoint = Callable[[], None] | None
_Arrays = Sequence[np.ndarray]


class Session:
    """Runs a program, and calls a function at each of its channel points.

    Several threads may use a session at once, and so may its handlers.

    Args:
        program: from `dilim.runtime.programs.compile_graph`.
        handlers: for each channel a function of the values of a point, a tuple of arrays. Those of
            a ``send`` hold what was sent and are read-only; those of a ``receive`` it has to fill.
            They are valid during the call only, so it copies what it keeps. What it returns is
            dropped.
        check: whether `run` looks at its arrays first; for tests.

    Raises:
        GraphError: a channel of the program has no handler.

    Example:
        >>> from dilim.ir.text import from_text
        >>> from dilim.runtime.programs import compile_graph
        >>> graph = from_text('''graph(%x: float32[]) {
        ...   send[channel='seen'](%x)
        ...   %y: float32[] = receive[channel='next']()
        ...   return %y
        ... }''')
        >>> handlers = {
        ...     "seen": lambda views: print(views[0].item()),
        ...     "next": lambda views: views[0].fill(2.5),
        ... }
        >>> session = Session(compile_graph(graph), handlers)
        >>> [y] = session.run([np.array(1.5, np.float32)], [])
        1.5
        >>> y.item()
        2.5
    """

    def __init__(
        self,
        program: NativeProgram | ReferenceProgram,
        handlers: Mapping[str, Handler],
        *,
        check: bool = False,
    ) -> None:
        graph = program.graph
        for node in walk(graph):
            if node.op in CHANNELS and node.params["channel"] not in handlers:
                raise GraphError(
                    f"session: the program has a {node.op} at channel {node.params['channel']!r}: "
                    "expected a handler for it, received handlers for "
                    f"{', '.join(map(repr, handlers)) or 'no channel'}"
                )
        self._graph = graph
        self._check = check
        self._shapes = [value.shape for value in graph.outputs]
        self._dtypes = [value.dtype.numpy for value in graph.outputs]
        self._runs: _NativeRuns | _NumPyRuns
        if isinstance(program, NativeProgram):
            self._runs = _NativeRuns(program.native, handlers)
        else:
            self._runs = _NumPyRuns(program, handlers)
        self._run = self._runs.run

    def run(
        self,
        inputs: _Arrays,
        variables: _Arrays,
        outputs: _Arrays | None = None,
        at_safepoint: Safepoint = None,
    ) -> list[np.ndarray]:
        """Run once.

        Unless the session checks them, the caller answers for the arrays; machine code may do
        anything if they are not as follows. Each is exactly a `numpy.ndarray`, of the shape and
        dtype of its value, aligned and in row-major order. Outputs, and variables that the program
        writes, are writable and share no memory with another array of the run. While it runs,
        nobody else writes to any of them, handlers included; these may read variables.

        Args:
            inputs: one per input of the graph.
            variables: one per variable; their contents are read and replaced.
            outputs: where to put the results; by default new arrays.
            at_safepoint: called about every 10 ms while loops run (after each turn where NumPy
                runs the graph); may raise to stop the run.

        Returns:
            One array per output of the graph.

        Raises:
            TypeError: not as many arrays as the program needs.
            ShapeError: the session checks arrays, and one is not as it should be.
            IndexError, ValueError: an operation fails as it does when it is computed eagerly.

        What a handler raises comes out as it is. Whatever is raised, variables hold what was
        written before, and the session can be used again. Where Ctrl-C comes while machine code
        runs, or Python code of dilim's, it goes on to the end of the turn of the loop, and if there
        is a ``send`` that waits for that, its handler is called.
        """
        if outputs is None:
            results = list(map(np.empty, self._shapes, self._dtypes))
        else:
            results = list(outputs)
        if self._check:
            _check(self._graph, inputs, variables, results)
        self._run(inputs, results, variables, at_safepoint)
        return results

    def served(self) -> dict[str, int]:
        """How often points of each channel were come to so far."""
        return self._runs.served()


class _NativeRuns:
    """Runs machine code."""

    def __init__(self, native: Native, handlers: Mapping[str, Handler]) -> None:
        self._native = native
        self._points = native.built.points
        self._handlers = [handlers[point.channel] for point in self._points]
        self._may_stop = bool(self._points) and native.built.loops
        self._free: list[Runner | _PlainRunner] = []
        self._activations: dict[Runner | _PlainRunner, Activation] = {}

    def run(
        self, inputs: _Arrays, results: _Arrays, variables: _Arrays, at_safepoint: Safepoint
    ) -> None:
        try:
            runner = self._free.pop()
        except IndexError:
            runner = self._new_runner()
        arrays = (*inputs, *results, *variables)  # they must live until the run is over
        told = _Told(runner, self._activations[runner]) if self._may_stop else None
        listens = told is not None and interrupts.listen(told)
        try:
            if status := runner.start(*arrays):
                self._go_on(runner, status, at_safepoint, told)
            if told is not None and told.is_told:
                raise KeyboardInterrupt
        finally:
            if listens:
                interrupts.end()
            if told is not None and told.is_told:
                told.forget(self._native.turns)
            self._free.append(runner)

    def served(self) -> dict[str, int]:
        found = dict.fromkeys((point.channel for point in self._points), 0)
        for runner in list(self._activations):
            for point, count in zip(self._points, runner.served(), strict=True):
                found[point.channel] += count
        return found

    def _finish_turn(self, runner: Runner | _PlainRunner) -> None:
        """Stop a run where something waits for that, else at the end of the turn."""
        runner.grant(1, False)
        if runner.resume() == driver.SAFEPOINT:
            raise KeyboardInterrupt

    def _new_runner(self) -> Runner | _PlainRunner:
        native = self._native
        activation = native.activation()
        views = [_views(activation, point) for point in self._points]
        points = list(zip(self._handlers, views, strict=True))
        runner: Runner | _PlainRunner
        if fast_calls():
            keep = (native, activation)
            places = native.entry, activation.address, native.slots
            runner = Runner(_runner_code(), *places, points, keep)
        else:
            runner = _PlainRunner(native, activation, points)
        short = self._points and native.built.cost <= LONG
        runner.grant(native.turns, native.releases_gil and not short)
        self._activations[runner] = activation
        return runner

    def _go_on(
        self,
        runner: Runner | _PlainRunner,
        status: int,
        at_safepoint: Safepoint,
        told: _Told | None,
    ) -> None:
        """Finish a run that came to a safepoint, or raise what made it fail."""
        native = self._native
        while status == driver.SAFEPOINT:
            if at_safepoint is not None:
                at_safepoint()
            if told is not None and told.is_told:
                self._finish_turn(runner)
            points, started = sum(runner.served()), time.perf_counter()
            status = runner.resume()
            if status == driver.SAFEPOINT:  # so all of the budget was used
                seconds = time.perf_counter() - started
                points = sum(runner.served()) - points
                native.adapt(seconds)
                runner.grant(native.turns, seconds > LONG_STRETCH * points)
        if status != driver.DONE:
            raise native.failure(*self._activations[runner].failure())


class _Told:
    """A run that may be told to stop; see `interrupts.Stoppable`."""

    def __init__(self, runner: Runner | _PlainRunner, activation: Activation) -> None:
        self._runner = runner
        self._activation = activation
        self.is_told = False

    def tell_to_stop(self) -> None:
        """Stop where the program waits for that, or at the end of a turn where it does not."""
        self.is_told = True
        self._activation.tell_to_stop(True)
        self._activation.grant(1)

    def forget(self, turns: int) -> None:
        """Be ready for another run."""
        self._activation.tell_to_stop(False)
        self._runner.grant(turns, False)


@functools.cache
def _runner_code() -> RunnerCode:
    return RunnerCode.load(load_function)


def _views(activation: Activation, point: Point) -> tuple[np.ndarray, ...]:
    views = tuple(map(activation.view, point.types, point.offsets))
    for view in views:
        view.flags.writeable = point.op != SEND
    return views


class _PlainRunner:
    """What a `Runner` does, where its code cannot be used; who holds the GIL is fixed."""

    def __init__(
        self,
        native: Native,
        activation: Activation,
        points: Sequence[tuple[Handler, tuple[np.ndarray, ...]]],
    ) -> None:
        self._native = native
        self._activation = activation
        self._points = points
        self._counts = [0] * len(points)
        self._turns = 1

    def start(self, *arrays: np.ndarray) -> int:
        if len(arrays) != self._native.slots or any(type(x) is not np.ndarray for x in arrays):
            raise TypeError(calls_points.MESSAGE)
        self._activation.begin([address_of(array) for array in arrays])
        return self.resume()

    def resume(self) -> int:
        self._activation.grant(self._turns)
        call, address = self._native.call, self._activation.address
        while (status := call(address)) >= driver.FIRST_POINT:
            number = status - driver.FIRST_POINT
            self._counts[number] += 1
            handler, views = self._points[number]
            handler(views)
        return status

    def grant(self, turns: int, release_gil: bool) -> None:
        self._turns = turns

    def served(self) -> list[int]:
        return self._counts


class _NumPyRuns:
    """Runs a graph node by node."""

    def __init__(self, program: ReferenceProgram, handlers: Mapping[str, Handler]) -> None:
        self._program = program
        self._lock = threading.Lock()
        nodes = [node for node in walk(program.graph) if node.op in CHANNELS]
        self._served = dict.fromkeys((node.params["channel"] for node in nodes), 0)
        self._handlers = {
            channel: functools.partial(self._serve, channel, handlers[channel])
            for channel in self._served
        }

    def run(
        self, inputs: _Arrays, results: _Arrays, variables: _Arrays, at_safepoint: Safepoint
    ) -> None:
        made = self._program.run(
            inputs, variables, at_safepoint=at_safepoint, handlers=self._handlers
        )
        for result, array in zip(results, made, strict=True):
            result[...] = array

    def served(self) -> dict[str, int]:
        return dict(self._served)

    def _serve(self, channel: str, handler: Handler, views: _Arrays) -> None:
        with self._lock:
            self._served[channel] += 1
        handler(views)


def _check(graph: Graph, inputs: _Arrays, variables: _Arrays, outputs: _Arrays) -> None:
    """Raise a ShapeError unless the arrays are as `Session.run` needs them."""
    roles: list[tuple[str, Sequence[Value], _Arrays]] = [
        ("input", graph.inputs, inputs),
        ("variable", graph.variables, variables),
        ("output", graph.outputs, outputs),
    ]
    changed = {variable for node in graph.nodes for variable in written(node)}
    arrays: list[tuple[str, np.ndarray, bool]] = []
    for role, values, given in roles:
        if len(given) != len(values):
            raise ShapeError(f"session: expected {len(values)} {role}s, received {len(given)}")
        for number, (value, array) in enumerate(zip(values, given, strict=True)):
            what = f"{role} {number}{f' {value.name!r}' if value.name else ''}"
            is_written = role == "output" or value in changed
            _check_array(what, value, array, is_written)
            arrays.append((what, array, is_written))
    for (what, array, is_written), (other, more, also) in itertools.combinations(arrays, 2):
        if (is_written or also) and np.may_share_memory(array, more):
            raise ShapeError(
                f"session: expected arrays that share no memory, received {what} and {other} with "
                "some in common, of which one is written"
            )


def _check_array(what: str, value: Value, array: np.ndarray, is_written: bool) -> None:
    exact = type(array) is np.ndarray
    if not exact or array.shape != value.shape or array.dtype != value.dtype.numpy:
        raise ShapeError(
            f"session: expected {what} as a numpy.ndarray of type {value.type}, received a "
            f"{type(array).__qualname__} of shape {np.shape(array)} and dtype "
            f"{np.asarray(array).dtype}"
        )
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise ShapeError(
            f"session: expected {what} aligned and in row-major order, received strides of "
            f"{array.strides} bytes for shape {array.shape}; pass numpy.ascontiguousarray(array)"
        )
    if is_written and not array.flags.writeable:
        raise ShapeError(f"session: {what} is written, but its array is read-only")
