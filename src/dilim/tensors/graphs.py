"""`Graph`: programs that are built first and run afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import GraphError
from dilim.ir.draw import to_svg
from dilim.ir.graph import Graph as Program
from dilim.ir.graph import Value
from dilim.ir.text import to_text
from dilim.ir.types import Type, type_of
from dilim.tensors import control
from dilim.tensors.compiled import Compiled
from dilim.tensors.creation import Sizes, as_shape, asarray
from dilim.tensors.pruning import needed
from dilim.tensors.symbolic import Traced, finish, numbered, trace
from dilim.tensors.tensor import Tensor
from dilim.tensors.tracer import Trace


class Graph:
    """A program over tensors: built node by node, then run as often as wanted.

    Operations on the graph's tensors add nodes, in the order in which they are written; nothing is
    computed. An eager tensor that meets one of them is a variable (see `variable`).

    Example:
        >>> import dilim
        >>> graph = dilim.Graph()
        >>> x = graph.input((2, 3), name="x")
        >>> y = x @ x.T
        >>> graph.run({x: [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]}, fetch=y).tolist()
        [[14.0, 32.0], [32.0, 77.0]]
    """

    def __init__(self) -> None:
        self._trace = Trace()
        self._inputs: dict[int, tuple[Tensor, Value]] = {}
        self._programs: dict[Any, Compiled] = {}
        self._traced: Traced | None = None
        self.forwards: dict[int, Any] = {}
        self.layers: dict[int, Any] = {}

    # --- building -----------------------------------------------------------------------

    def input(
        self, shape: Sizes, dtype: DType | str = dtypes.float32, *, name: str | None = None
    ) -> Tensor:
        """A tensor whose numbers are given at each run.

        Args:
            shape: sizes, fixed; a number for a vector.
            dtype: element type.
            name: for pictures, texts and errors.
        """
        x = self._trace.input(Type(as_shape(shape), dtypes.as_dtype(dtype)), name or "")
        self._inputs[id(x)] = x, x._data.cell.value
        return x

    def variable(self, x: Tensor, *, name: str | None = None) -> Tensor:
        """The memory of an eager tensor, read when the graph runs.

        A write in place (``w += 1.0``, ``w[0] = x``, ``optimizer.step()``) changes that memory
        when the graph runs, and so do writes into ``x`` itself with values of the graph.

        Args:
            x: a tensor in CPU memory.
            name: for pictures, texts and errors.

        Returns:
            A tensor of the graph over all of ``x``, requiring a gradient if x does.
        """
        if name is not None:
            x.name = name
        self._trace.variable(x)
        result = self._trace.tensor(self._trace.handle(x))
        result._storage, result.name = x._storage, x.name
        return result.requires_grad_(x.requires_grad)

    def constant(self, value: Any, dtype: DType | str | None = None) -> Tensor:
        """A tensor of the graph with fixed numbers.

        Args:
            value: a number, nested sequences of numbers, an array or a tensor; copied.
            dtype: element type; by default as in `dilim.tensor`.
        """
        return self._trace.constant(Tensor(value, dtype).numpy())

    def loop(
        self,
        limit: int | Tensor,
        carried: Any,
        body: Callable[..., Any],
        condition: Callable[..., Any] | None = None,
    ) -> Any:
        """A loop as a node of this graph; see `dilim.loop`."""
        return control.loop_in(self._trace, limit, carried, body, condition)

    def cond(self, condition: Tensor, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """A branch as a node of this graph; see `dilim.cond`."""
        return control.cond_in(self._trace, condition, then, otherwise)

    def send(self, channel: str, *values: Any) -> None:
        """Hand values to the host when the program comes to this point.

        Args:
            channel: a name that the host knows.
            values: tensors.
        """
        control.send_in(self._trace, channel, [asarray(x) for x in values])

    def receive(self, channel: str, shape: Sizes, dtype: DType | str = dtypes.float32) -> Tensor:
        """A value that the host gives when the program comes to this point.

        Args:
            channel: a name that the host knows.
            shape: sizes, fixed; a number for a vector.
            dtype: element type.
        """
        kind = Type(as_shape(shape), dtypes.as_dtype(dtype))
        return control.receive_in(self._trace, channel, kind)

    @classmethod
    def from_function(cls, function: Callable[..., Any], *examples: Any) -> Graph:
        """The graph of what a function of tensors does; see `inputs` and `outputs`.

        The function runs once, on symbolic tensors. All that it does with them, and with tensors
        that were there before (parameters, optimiser and random state), becomes nodes; memory of
        such tensors that it writes is written at each run, not now. Tensors that it makes itself
        belong to one run. A function that calls ``backward()`` should clear gradients first: in
        every run they begin as None.

        Args:
            function: from tensors to tensors (in lists, tuples or dicts) or None. It is called
                once, so what it does besides tensor operations happens once.
            examples: per argument a tensor, an array, or a type such as
                ``Type((32, 4), dilim.float32)``; only shape and dtype matter.

        Raises:
            GraphError: the function needs numbers (``if``, ``print``, ``item``).
        """
        result = cls()
        kinds = [type_of(x) if isinstance(x, (Tensor, Type)) else _type_of(x) for x in examples]
        result._traced = trace(function, *kinds, into=result._trace)
        return result

    def noting(self) -> AbstractContextManager[None]:
        """A context in which operations on eager tensors that were there before are nodes too."""
        return self._trace.tracing()

    def scope(self, name: str, suffix: str) -> AbstractContextManager[None]:
        """A context in which values are named ``<name>_<operation>_<suffix>``."""
        return self._trace.scope(name, suffix)

    # --- running ------------------------------------------------------------------------

    def run(
        self,
        feeds: Mapping[Tensor, Any] | None = None,
        fetch: Any = None,
        *,
        effects: bool = True,
        host: Any = None,
    ) -> Any:
        """Run what is needed for some values, node by node with NumPy.

        Args:
            feeds: for each input that is needed a tensor, an array or numbers.
            fetch: which tensors to give back: one, or several in lists, tuples or dicts.
            effects: whether all writes, sends and receives happen too. With False they do only as
                far as the fetched values depend on what was written.
            host: the other end of channels; see `Compiled.__call__`.

        Returns:
            New tensors in the form of ``fetch``.

        Raises:
            GraphError: an input that is needed is missing, or a tensor is no input of this graph.
            ShapeError: an array is of another type than its input.
        """
        wanted, structure = _listed("run: fetch", fetch)
        traced = self._part(wanted, effects)
        key = (
            traced.graph.outputs,
            repr(structure),
            len(self._trace.top.builder.nodes),
            effects,
        )
        program = self._programs.get(key)
        if program is None:
            program = Compiled(replace(traced, structure=structure), backend="reference")
            self._programs[key] = program
        given = {self._input_of(x): array for x, array in (feeds or {}).items()}
        for value in program.graph.inputs:
            if value not in given:
                raise GraphError(
                    f"run: input {value.name!r} of type {value.type} is needed, but was not fed"
                    + ("; with effects=False writes that need it are left out" if effects else "")
                )
        return program(*(given[value] for value in program.graph.inputs), host=host)

    def compile(
        self,
        inputs: Sequence[Tensor] | None = None,
        outputs: Any = None,
        *,
        numerics: str = "strict",
        backend: str = "llvm",
        as_numbers: bool = False,
    ) -> Compiled:
        """A function that runs the program, with all its effects.

        Args:
            inputs: the inputs of this graph, in the order of the function's arguments; by default
                the order in which they were made.
            outputs: what the function gives: a tensor, or several in lists, tuples or dicts; for
                a graph from `from_function` by default what that function gave.
            numerics: "strict": the bits of eager execution, on every machine. "fast": a product and
                the sum that it goes into may be rounded once instead of twice.
            backend: "llvm" for machine code, "reference" for NumPy.
            as_numbers: give results of shape () as Python numbers.

        Returns:
            The function; see `Compiled.__call__` for its arguments and errors.

        Raises:
            GraphError: an input that is needed is not among the inputs, or one is there twice, or
                there is no such back end or kind of numerics.
            ShapeError: the array behind a variable that the program writes has become read-only.
            UnsupportedError: there is no machine code for an operation. It is named, with your
                line.
        """
        if outputs is None and self._traced is not None:
            traced = self._traced
        else:
            wanted, structure = _listed("compile: outputs", outputs)
            traced = replace(self._part(wanted, effects=True), structure=structure)
        if inputs is None:
            order = finish(self._trace, ()).graph.inputs
        else:
            order = tuple(self._input_of(x) for x in inputs)
            twice = next((x for x in order if order.count(x) > 1), None)
            if twice is not None:
                name = f" {twice.name!r}" if twice.name else ""
                raise GraphError(
                    f"compile: expected each input once, received input{name} of type {twice.type} "
                    "twice"
                )
        return Compiled(
            _with_inputs(traced, order),
            numerics=numerics,
            backend=backend,
            as_numbers=as_numbers,
        )

    def _part(self, outputs: Sequence[Tensor], effects: bool) -> Traced:
        """The part of the program that gives these tensors."""
        values = [self._trace.value(self._trace.handle(x)) for x in outputs]
        whole = finish(self._trace, values)
        graph = needed(whole.graph, values, effects)
        cells = {cell.variable: cell for cell in whole.cells}
        return Traced(graph, tuple(cells[variable] for variable in graph.variables))

    def _input_of(self, x: Tensor) -> Value:
        found = self._inputs.get(id(x))
        if found is None:
            raise GraphError(
                f"graph: a tensor of type {type_of(x)} was given as input, but is none of this "
                "graph; make one with graph.input(shape)"
            )
        return found[1]

    # --- looking ------------------------------------------------------------------------

    def __str__(self) -> str:
        return to_text(self._program())

    def _program(self) -> Program:
        outputs = self._traced.graph.outputs if self._traced else ()
        return finish(self._trace, outputs).graph

    def _repr_svg_(self) -> str:
        """A picture for notebooks."""
        return to_svg(self._program())

    def __repr__(self) -> str:
        builder = self._trace.frames[0].builder
        counts = f"{len(builder.inputs)} inputs, {len(builder.variables)} variables"
        return f"<dilim.Graph of {len(builder.nodes)} nodes, {counts}>"


def _listed(what: str, given: Any) -> tuple[list[Tensor], Any]:
    """The tensors of a structure, and the structure of their numbers."""
    tensors: list[Tensor] = []
    structure = numbered(given, tensors, f"{what}: expected")
    return tensors, structure


def _with_inputs(traced: Traced, order: tuple[Value, ...]) -> Traced:
    """The same program with its inputs in another order, unneeded ones included."""
    missing = [value for value in traced.graph.inputs if value not in order]
    if missing:
        raise GraphError(
            f"compile: input {missing[0].name!r} of type {missing[0].type} is needed, but is not "
            "among the inputs"
        )
    return replace(traced, graph=replace(traced.graph, inputs=order))


def _type_of(example: Any) -> Type:
    return type_of(asarray(example))
