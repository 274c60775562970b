"""`Parts`: the objects that a compiled scalar model was made from, for a look before every run.

Where somebody has given the model another weight, neuron or layer, or the optimiser another
parameter, the program no longer does what the model does. See `Row` for how native code finds out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from dilim.scalar.network import MLP, Module
from dilim.scalar.optimizers import Optimizer
from dilim.slicing.scalar_objects import Row
from dilim.slicing.scalar_sample import layers_of


class Parts:
    """The attributes that say what a model computes and what its optimiser moves.

    Args:
        model: a `Neuron` or an `MLP`.
        optimizer: None if there is none.

    Attributes:
        meaning: equal for parts that mean the same, though in another list or string.
        rows: a `Row` of words for each attribute.

    Raises:
        UnsupportedError: the model, or a part of it, is of another class.
    """

    def __init__(self, model: Module, optimizer: Optimizer | None) -> None:
        layers = layers_of(model)
        moved = [] if optimizer is None else optimizer.parameters
        self.meaning = (
            [
                [(neuron.activation, *_ids(neuron.parameters())) for neuron in layer]
                for layer in layers
            ],
            _ids(moved),
        )
        self._kept: list[object] = []
        self.rows = np.array([self._row(*attribute) for attribute in _attributes(model, optimizer)])

    def _row(self, owner: object, name: str) -> list[int]:
        row, value = [0] * Row.SIZE, getattr(owner, name)
        row[Row.OWNER], row[Row.NAME], row[Row.VALUE] = _ids([owner, name, value])
        row[Row.COUNT] = -1
        self._kept += [owner, name, value]
        if isinstance(value, list):
            items = np.array(_ids(value))
            row[Row.ITEMS], row[Row.COUNT] = items.ctypes.data, len(value)
            self._kept += [items, *value]
        return row


def _attributes(model: Module, optimizer: Optimizer | None) -> Iterator[tuple[object, str]]:
    if isinstance(model, MLP):
        yield model, "layers"
        for layer in model.layers:
            yield layer, "neurons"
    for neurons in layers_of(model):
        for neuron in neurons:
            yield from ((neuron, name) for name in ("weights", "bias", "activation"))
    if optimizer is not None:
        yield optimizer, "parameters"


def _ids(objects: Iterable[object]) -> list[int]:
    return [*map(id, objects)]
