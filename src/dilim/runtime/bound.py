"""A native program bound to the memory of its variables, as a callable for Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dilim.backends.llvm import calls
from dilim.backends.reference.executor import Host
from dilim.ir import plan as p
from dilim.ir.structure import walk, written
from dilim.runtime import interrupts
from dilim.runtime.arguments import check_inputs, check_variables
from dilim.runtime.build import load_caller
from dilim.runtime.programs import Activation, Native, address_of


@dataclass(frozen=True, slots=True)
class Face:
    """How users see the arguments and results of a program.

    Attributes:
        convert: from what a user gave to one array per argument, or a clear error. Arguments are
            the inputs and the variables that are given at each call, in this order.
        wrap: from the arrays of the results (numbers for those in ``numbers``) to what users get.
        make: one for each result that is no number: a new object for it; an array or a holder.
        numbers: results (of shape ()) that are Python numbers.
        holder: the class that holds arrays, in arguments and results.
        bare: whether arguments may be arrays without a holder.
        taken: inputs (of shape ()) that are given as Python numbers.
        name: of the callable.
        documentation: of the callable.
    """

    convert: Callable[..., Sequence[np.ndarray]]
    wrap: Callable[[list[Any]], Any]
    make: Sequence[Callable[[], Any]]
    numbers: frozenset[int] = frozenset()
    holder: calls.Holder | None = None
    bare: bool = True
    taken: frozenset[int] = frozenset()
    name: str = "program"
    documentation: str = ""


class Bound:
    """A program as a function.

    Args:
        native: the program.
        variables: one array per variable of the graph, see `Program.run`; None for one that is
            given at each call.
        face: how users see it, but for results that are put into ``outputs``.
        outputs: one per result: an array that it is always put into, or None; by default None for
            each.
        host: the other end of channels.
        at_safepoint: see `Program.run`.

    Attributes:
        function: the callable.
    """

    def __init__(
        self,
        native: Native,
        variables: Sequence[np.ndarray | None],
        face: Face,
        outputs: Sequence[np.ndarray | None] | None = None,
        host: Host | None = None,
        at_safepoint: Callable[[], None] | None = None,
    ) -> None:
        self._native = native
        self._variables = list(variables)
        check_variables(native.graph, self._filled(variables))
        self._outputs = list(outputs or [None] * len(native.graph.outputs))
        self._face = face
        self._host = host
        self._at_safepoint = at_safepoint
        self._activations: dict[int, tuple[Activation, np.ndarray]] = {}
        self._may_stop = any(node.params.get("stop") for node in walk(native.graph))
        signature = self._signature()
        library, name = load_caller(f"caller {signature!r}", lambda: calls.write_caller(signature))
        self._caller = calls.Caller(
            signature,
            calls.CallerCode(name, ""),
            library,
            native.entry,
            slow=self._slow,
            on_status=self._on_status,
            makers=face.make,
            name=face.name,
            documentation=face.documentation,
            holder=face.holder,
            keep=(native, self._variables, self._outputs, self._activations),
        )
        self.function = self._caller.function
        self._caller.add(self._new_activation().address)

    def _signature(self) -> calls.Signature:
        graph, face = self._native.graph, self._face
        first, last = len(graph.inputs), self._native.slots - len(graph.variables)
        changed = {variable for node in graph.nodes for variable in written(node)}
        arguments: list[calls.Array | calls.Number] = [
            calls.Number(value.dtype, slot)
            if slot in face.taken
            else calls.Array(value.dtype, value.shape, slot)
            for slot, value in enumerate(graph.inputs)
        ]
        arguments += [
            calls.Array(variable.dtype, variable.shape, last + k, variable in changed)
            for k, variable in enumerate(graph.variables)
            if self._variables[k] is None
        ]
        results = tuple(
            calls.Number(value.dtype, first + k)
            if k in face.numbers
            else calls.Array(value.dtype, value.shape, first + k)
            for k, value in enumerate(graph.outputs)
            if self._outputs[k] is None
        )
        return calls.Signature(
            tuple(arguments),
            results,
            link_offset=p.LINK,
            slots_offset=p.SLOTS,
            single=len(results) == 1,
            release_gil=self._native.releases_gil,
            requirements=len(face.holder.required) if face.holder else 0,
            bare=face.bare,
            excludes=face.holder is not None and face.holder.excluded is not None,
        )

    def _new_activation(self) -> Activation:
        """Memory for a run, with the addresses that do not change in its slots."""
        graph, face = self._native.graph, self._face
        activation = self._native.activation()
        first = len(graph.inputs)
        slots = [*sorted(face.taken), *(first + k for k in sorted(face.numbers))]
        cells = np.zeros((max(len(slots), 1), 8), np.uint8)
        for row, slot in enumerate(slots):
            activation.slots[slot] = address_of(cells[row])
        for k, array in enumerate([*self._outputs, *self._variables], first):
            if array is not None:
                activation.slots[k] = address_of(array)
        activation.grant(self._native.turns)
        self._activations[activation.address] = (activation, cells[len(face.taken) :])
        return activation

    def _filled(self, given: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        """An array for each variable; of those that nobody gives, one of its type."""
        return [
            np.empty(variable.shape, variable.dtype.numpy) if array is None else array
            for variable, array in zip(self._native.graph.variables, given, strict=True)
        ]

    def _checked(self, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The arrays of inputs and of variables, from those of the arguments."""
        graph = self._native.graph
        count = len(graph.inputs)
        inputs, given = check_inputs(graph, arrays[:count]), iter(arrays[count:])
        variables = [next(given) if array is None else array for array in self._variables]
        check_variables(graph, variables)
        return inputs, variables

    def _slow(self, *args: Any, **kwargs: Any) -> Any:
        graph, face = self._native.graph, self._face
        inputs, variables = self._checked(face.convert(*args, **kwargs))
        address = self._caller.take()
        activation = self._activations[address][0] if address else self._new_activation()
        outputs = [
            np.empty(value.shape, value.dtype.numpy) if array is None else array
            for value, array in zip(graph.outputs, self._outputs, strict=True)
        ]
        before = activation.slots.copy()
        try:
            for slot, array in enumerate((*inputs, *outputs, *variables)):
                activation.slots[slot] = address_of(array)
            activation.reset()
            self._go_on(activation, None)
        finally:
            activation.slots[:] = before
            activation.reset()
            self._caller.add(activation.address)
        return face.wrap(
            [
                x.item() if k in face.numbers else x
                for k, x in enumerate(outputs)
                if self._outputs[k] is None
            ]
        )

    def _on_status(
        self, status: int, address: int, args: tuple[Any, ...], outputs: tuple[Any, ...]
    ) -> Any:
        """Go on with a run that the fast path began."""
        native = self._native
        activation = self._activations[address][0]
        try:
            self._go_on(activation, status)
        finally:
            activation.reset()
            activation.grant(native.turns)
        return self._collect(activation, outputs)

    def _go_on(self, activation: Activation, status: int | None) -> None:
        """Begin a run, or go on with one that came back with a status."""
        native, host, at_safepoint = self._native, self._host, self._at_safepoint
        told = _Told(activation, at_safepoint) if self._may_stop else None
        if told is not None:
            at_safepoint = told.look
        listens = told is not None and interrupts.listen(told)
        try:
            if status is None or native.settle(status, activation, host, at_safepoint):
                native.resume(activation, host, at_safepoint)
            if told is not None and told.is_told:
                raise KeyboardInterrupt
        finally:
            if listens:
                interrupts.end()
            activation.tell_to_stop(False)

    def _collect(self, activation: Activation, outputs: tuple[Any, ...]) -> Any:
        graph, face = self._native.graph, self._face
        cells = self._activations[activation.address][1]
        made, numbers = iter(outputs), iter(cells)
        results: list[Any] = []
        for k, value in enumerate(graph.outputs):
            if k in face.numbers:
                kind = value.dtype.numpy
                results.append(next(numbers)[: kind.itemsize].view(kind)[0].item())
            elif self._outputs[k] is None:
                results.append(next(made))
        return face.wrap(results)


class _Told:
    """A run that may be told to stop; see `interrupts.Stoppable`."""

    def __init__(self, activation: Activation, at_safepoint: Callable[[], None] | None) -> None:
        self._activation = activation
        self._at_safepoint = at_safepoint
        self._waits = False
        self.is_told = False

    def tell_to_stop(self) -> None:
        """Stop where the program waits for that, or at the second safepoint from now."""
        self.is_told = True
        self._activation.tell_to_stop(True)

    def look(self) -> None:
        """Called at each safepoint."""
        if self._at_safepoint is not None:
            self._at_safepoint()
        if self._waits:
            raise KeyboardInterrupt
        self._waits = self.is_told
