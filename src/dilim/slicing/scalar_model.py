"""`CompiledModel`: a scalar model whose training steps run as machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dilim import scalar
from dilim.backends.llvm import binding, calls
from dilim.errors import ShapeError, StateError, UnsupportedError
from dilim.runtime.build import cached_object, load_function
from dilim.scalar.network import Module
from dilim.scalar.optimizers import Adam, Optimizer
from dilim.scalar.value import Value
from dilim.slicing.scalar_code import ENTRY, LANES, Setting, Table, write_step
from dilim.slicing.scalar_objects import Status, python_symbols, write_access
from dilim.slicing.scalar_parts import Parts
from dilim.slicing.scalar_sample import Loss, trace_sample

Numbers = Sequence[float] | np.ndarray
Rows = Sequence[Sequence[float]] | np.ndarray
_KINDS: Final = {scalar.SGD: "sgd", scalar.Adam: "adam"}
_WITH_STATE: Final = ("momentum", "adam")


class CompiledModel:
    """Training steps of a scalar model as machine code.

    The parameters stay in the model: they are read before and written after each call, so that the
    model, the optimiser and `backward()` can be used in between as ever. ``+ - * /``, square root
    and relu have the bits of the interpreted model; ``tanh`` and ``sigmoid`` are within two units
    in the last place of the exact value, and so within a few of Python's.

    Args:
        model: a `Neuron`, or an `MLP` with one output.
        loss: ``dilim.scalar.loss.mse`` or ``hinge``.
        optimizer: an `SGD` or `Adam` for the model's parameters; None to leave the update to you.

    Raises:
        UnsupportedError: another model, loss or optimiser.

    Example:
        >>> import dilim
        >>> from dilim import scalar
        >>> model = scalar.MLP(2, [3, 1], seed=0)
        >>> compiled = dilim.compile(model, optimizer=scalar.SGD(model.parameters(), 0.1))
        >>> losses = compiled.train([[0.0, 1.0], [1.0, 0.0]], [1.0, -1.0], steps=50)
        >>> losses[-1] < losses[0]
        True
    """

    def __init__(
        self, model: Module, loss: Loss = scalar.loss.mse, optimizer: Optimizer | None = None
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self._kind = _kind_of(optimizer)
        self._sample = sample = trace_sample(model, loss)
        self._parameters = sample.parameters
        if optimizer is not None:
            _check_parameters(optimizer, self._parameters)
        self._loss = loss
        self._features = len(sample.inputs)
        self._programs: dict[str, Callable[[int], int]] = {}
        self._train = self._program()
        self._memory = _Memory(self._parameters, self._features)
        self._parts = Parts(model, optimizer)
        self._memory.set_rows(self._parts.rows)
        self._given_settings: tuple[float, ...] = ()
        self._given: Any = None

    def __repr__(self) -> str:
        return f"compiled {self.model!r}"

    def __call__(self, inputs: Numbers) -> float:
        """The model's result for one sample, as a number."""
        return self.predict(np.asarray([inputs], np.float64))[0]

    def predict(self, samples: Rows) -> list[float]:
        """The model's results for many samples, as numbers."""
        if not len(samples):
            return []
        memory = self._memory
        rows = _rows(samples, self._features)
        self._set_data(rows, np.ones(len(rows)))
        self._set_settings()
        kept = [(value.data, value.grad, value.has_grad) for value in self._parameters]
        state = memory.first.copy(), memory.second.copy()
        self._run(1)
        for value, (data, grad, has_grad) in zip(self._parameters, kept, strict=True):
            value.data, value.grad, value.has_grad = data, grad, has_grad
        memory.first[:], memory.second[:] = state
        result: list[float] = memory.predictions[: len(rows)].tolist()
        return result

    def step(self, samples: Rows, targets: Numbers) -> float:
        """One training step: zero_grad, forward, loss, backward, update.

        Args:
            samples: one row of numbers per sample.
            targets: one number per sample.

        Returns:
            The loss before the update.
        """
        self._give(samples, targets)
        self._take_steps(1)
        return float(self._memory.losses[0])

    def train(self, samples: Rows, targets: Numbers, steps: int) -> list[float]:
        """Several steps over the same samples, in one native call.

        Returns:
            The loss before each update.

        Raises:
            ShapeError: rows of another length, or not one target for each.
            StateError: parts of the model, or parameters of the optimiser, were replaced since it
                was compiled.
            TypeError: samples or targets are no numbers.
            ValueError: steps is negative.
        """
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
            raise ValueError(f"compiled train: expected steps >= 0, received {steps!r}")
        self._give(samples, targets)
        self._memory.make_room(steps)
        if steps:
            self._take_steps(steps)
        losses: list[float] = self._memory.losses[:steps].tolist()
        return losses

    def _take_steps(self, steps: int) -> None:
        self._set_settings()
        has_state = self._kind in _WITH_STATE
        if has_state:
            self._read_state(steps)
        self._run(steps)
        if has_state:
            self._write_state(steps)

    def _run(self, steps: int) -> None:
        """Read the parameters, run, write parameters and gradients."""
        memory = self._memory
        memory.table[Table.STEPS] = steps
        while status := self._train(memory.address):
            if status == Status.CHANGED:
                self._look_again()
            else:
                numbers = [_float(value.data) for value in self._parameters]
                for value, number in zip(self._parameters, numbers, strict=True):
                    value.data = number

    def _look_again(self) -> None:
        """Refuse a model that is no longer the one that was compiled."""
        parts = Parts(self.model, self.optimizer)
        if parts.meaning != self._parts.meaning:
            raise StateError(
                "compiled model: values, activations, neurons or layers of the model, or "
                "parameters of the optimiser, were replaced since it was compiled; compile it "
                "again, or change numbers with value.data = ..."
            )
        self._parts = parts
        self._memory.set_rows(parts.rows)

    def _program(self) -> Callable[[int], int]:
        """The native function for this kind of optimiser."""
        if self._kind not in self._programs:
            text = write_step(self._sample, self._kind)
            objects = [cached_object(text), cached_object(write_access())]
            library = binding.link(objects, python_symbols())
            program = calls.builtin(library.address(ENTRY), load_function, keep=[library])
            self._programs[self._kind] = program
        return self._programs[self._kind]

    # --- data -----------------------------------------------------------------------------

    def _give(self, samples: Rows, targets: Numbers) -> None:
        """Hand samples over, unless they are the same numbers as last time."""
        data = _signature(samples, targets)
        if data is None or data != self._given:
            self._set_data(_rows(samples, self._features), self._targets(targets))
            self._given = data

    def _targets(self, targets: Numbers) -> np.ndarray:
        wanted = _numbers("targets", targets)
        if wanted.ndim != 1:
            raise ShapeError(f"compiled step: expected a row of targets, received {wanted.shape}")
        if self._loss is scalar.loss.hinge and not np.isin(wanted, (-1.0, 1.0)).all():
            scalar.loss.check_classes(targets)
        return wanted

    def _set_data(self, rows: np.ndarray, targets: np.ndarray) -> None:
        if len(rows) != len(targets) or not len(rows):
            raise ShapeError(
                f"compiled step: expected as many targets as samples and at least one, received "
                f"{len(rows)} samples and {len(targets)} targets"
            )
        self._memory.set_data(rows, targets)
        self._given = None

    # --- optimiser ------------------------------------------------------------------------

    def _set_settings(self) -> None:
        """Fit the program to the optimiser as it is now."""
        optimizer = self.optimizer
        given: tuple[float, ...] = (self._memory.count,)
        if isinstance(optimizer, Adam):
            given += (optimizer.learning_rate, *optimizer.betas, optimizer.epsilon)
        elif isinstance(optimizer, scalar.SGD):
            given += (optimizer.learning_rate, optimizer.momentum)
        if given != self._given_settings:
            self._kind = _kind_of(optimizer)
            self._train = self._program()
            settings = _adam_settings(*map(float, given)) if self._kind == "adam" else given
            self._memory.settings[: len(settings)] = settings
            self._given_settings = given

    def _read_state(self, steps: int) -> None:
        optimizer, memory, count = self.optimizer, self._memory, len(self._parameters)
        if isinstance(optimizer, Adam):
            memory.first[:count] = optimizer._means
            memory.second[:count] = optimizer._squares
            beta1, beta2 = map(float, optimizer.betas)
            for row in range(steps):
                number = optimizer._step_count + 1 + row
                memory.corrections[row] = 1.0 - beta1**number, 1.0 - beta2**number
        elif isinstance(optimizer, scalar.SGD):
            memory.first[:count] = optimizer._velocities

    def _write_state(self, steps: int) -> None:
        optimizer, memory, count = self.optimizer, self._memory, len(self._parameters)
        if isinstance(optimizer, Adam):
            optimizer._step_count += steps
            optimizer._means = memory.first[:count].tolist()
            optimizer._squares = memory.second[:count].tolist()
        elif isinstance(optimizer, scalar.SGD):
            optimizer._velocities = memory.first[:count].tolist()


class _Memory:
    """The arrays of a model, and the table of their addresses."""

    def __init__(self, parameters: Sequence[Value], features: int) -> None:
        self.table = np.zeros(Table.SIZE, np.int64)
        self.address = self.table.ctypes.data
        self.objects = np.array([id(value) for value in parameters], np.uint64)
        self.table[Table.OBJECTS] = self.objects.ctypes.data
        self.table[Table.FLOAT_TYPE], self.table[Table.TRUE] = id(float), id(True)
        self.count = 0.0
        self._features = features
        padded = -(-len(parameters) // LANES) * LANES
        self.parameters = self._own(Table.PARAMETERS, padded)
        self.gradients = self._own(Table.GRADIENTS, padded)
        self.first = self._own(Table.FIRST_STATE, padded)
        self.second = self._own(Table.SECOND_STATE, padded)
        self.contributions = self._own(Table.CONTRIBUTIONS, padded, LANES)
        self.settings = self._own(Table.SETTINGS, Setting.SIZE)
        self.losses = self.corrections = self.predictions = np.zeros(0)
        self._data: list[np.ndarray] = []

    def set_rows(self, rows: np.ndarray) -> None:
        """What is known of attributes; the caller keeps the array."""
        self.table[Table.ROWS], self.table[Table.ROW_COUNT] = rows.ctypes.data, len(rows)

    def _own(self, word: Table, *shape: int) -> np.ndarray:
        array = np.zeros(shape)
        self.table[word] = array.ctypes.data
        return array

    def make_room(self, steps: int) -> None:
        """Room for the losses of so many steps."""
        if steps > len(self.losses):
            self.losses = self._own(Table.LOSSES, steps)
            self.corrections = self._own(Table.CORRECTIONS, steps, 2)

    def set_data(self, rows: np.ndarray, targets: np.ndarray) -> None:
        """Lay samples out in blocks of eight."""
        count = len(rows)
        blocks = -(-count // LANES)
        inputs = self._own(Table.INPUTS, blocks, self._features, LANES)
        wanted = self._own(Table.TARGETS, blocks, LANES)
        seeds = self._own(Table.SEEDS, blocks, LANES)
        terms = self._own(Table.TERMS, blocks * LANES)
        self.predictions = self._own(Table.PREDICTIONS, blocks * LANES)
        padded = np.zeros((blocks * LANES, self._features))
        padded[:count] = rows
        inputs[...] = padded.reshape(blocks, LANES, self._features).transpose(0, 2, 1)
        wanted.reshape(-1)[:count] = targets
        seeds.reshape(-1)[:count] = 1.0 / count
        self.count = float(count)
        self.table[Table.SAMPLES], self.table[Table.BLOCKS] = count, blocks
        self._data = [inputs, wanted, seeds, terms]
        self.make_room(1)


def _signature(samples: Rows, targets: Numbers) -> Any:
    """What tells whether arrays hold the same numbers as before; None for lists."""
    if isinstance(samples, np.ndarray) and isinstance(targets, np.ndarray):
        kinds = samples.dtype, samples.shape, targets.dtype, targets.shape
        return (*kinds, samples.tobytes(), targets.tobytes())
    return None


def _numbers(what: str, given: Rows | Numbers) -> np.ndarray:
    """The numbers as float64.

    Raises:
        ShapeError: rows of different lengths.
        TypeError: texts, None or other objects are among them.
    """
    try:
        array = np.asarray(given)
    except ValueError:
        raise ShapeError(f"compiled model: expected {what} in rows of equal length") from None
    if array.size and array.dtype.kind not in "biuf":
        raise TypeError(f"compiled model: expected numbers as {what}, received {given!r:.60}")
    return array.astype(np.float64)


def _float(number: object) -> float:
    """What somebody set as the number of a parameter.

    Raises:
        TypeError: it is no Python number. With those of NumPy the model would not compute in
            float64.
    """
    if not isinstance(number, float | int):
        raise TypeError(
            f"compiled model: expected a float as data of a parameter, received a "
            f"{type(number).__name__}; write value.data = float(...)"
        )
    return float(number)


def _rows(samples: Rows, features: int) -> np.ndarray:
    rows = _numbers("samples", samples)
    if rows.ndim != 2 or rows.shape[1] != features:
        raise ShapeError(
            f"compiled model: expected samples of {features} numbers each, received an array of "
            f"shape {rows.shape}"
        )
    return rows


def _kind_of(optimizer: Optimizer | None) -> str:
    if optimizer is None:
        return ""
    if type(optimizer) not in _KINDS:
        raise UnsupportedError(
            f"compile: expected a scalar SGD or Adam, received {type(optimizer).__name__}; leave "
            "optimizer out and update the parameters yourself"
        )
    if isinstance(optimizer, scalar.SGD) and optimizer.momentum != 0.0:
        return "momentum"
    return _KINDS[type(optimizer)]


def _adam_settings(
    count: float, rate: float, beta1: float, beta2: float, epsilon: float
) -> tuple[float, ...]:
    """Numbers in the order of `Setting`."""
    return count, rate, 0.0, beta1, 1.0 - beta1, beta2, 1.0 - beta2, epsilon


def _check_parameters(optimizer: Optimizer, parameters: Sequence[Value]) -> None:
    same = len(optimizer.parameters) == len(parameters) and all(
        mine is theirs for mine, theirs in zip(parameters, optimizer.parameters, strict=True)
    )
    if not same:
        raise UnsupportedError(
            "compile: expected the optimiser to have exactly model.parameters(), in their order"
        )
