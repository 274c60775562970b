"""Packs: parameters that are updated together as one long vector.

An update of a small layer costs more in calls than in arithmetic. A pack lays the gradients of many
small parameters end to end, so that each operation of the update is called once. Large parameters
are packs of one, in their own shape, and nothing is copied for them. As all operations of an update
are elementwise, its bits do not depend on the packing.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from dilim import dtypes
from dilim.errors import GradientError
from dilim.tensors.creation import zeros
from dilim.tensors.inplace import replace
from dilim.tensors.manipulation import split
from dilim.tensors.tape import eagerly
from dilim.tensors.tensor import Tensor

PACK_SIZE: Final = 131_072
"""Most elements of a pack of several. Measured: beyond it, copies cost more than calls."""


class _Row(NamedTuple):
    """A vector, and views of it in the shapes of the parameters of a pack."""

    whole: Tensor
    parts: list[Tensor]


class Pack:
    """Parameters of one dtype and device, and the optimiser's state for them.

    Attributes:
        positions: where the parameters stand in the optimiser's list.
        parameters: the parameters.
        steps: int64 (), how many updates they had.
        slots: state such as running means by name, zeros at first; each has the shape of the one
            parameter, or (total size,) for several.
    """

    def __init__(
        self, positions: Sequence[int], parameters: Sequence[Tensor], names: Iterable[str]
    ) -> None:
        self.positions = list(positions)
        self.parameters = list(parameters)
        self.single = len(self.parameters) == 1
        self.dtype, self.device = self.parameters[0].dtype, self.parameters[0].device
        self.steps = zeros((), dtype=dtypes.int64, device=self.device)
        self.slots = {name: self.empty() for name in names}
        # several parameters need rows in which gradients, changes and values lie end to end
        self._rows: dict[str, _Row] = {}
        self._separate: list[Pack] = []

    def separate(self) -> list[Pack]:
        """A pack for each parameter alone, over the same state, always the same ones.

        In a graph nothing is gained by laying parameters end to end.
        """
        if self.single:
            return [self]
        if not self._separate:
            with eagerly():
                self._separate = self._made_separate()
        return self._separate

    def _made_separate(self) -> list[Pack]:
        places = {name: self.parts(slot) for name, slot in self.slots.items()}
        result = []
        for number, (position, x) in enumerate(zip(self.positions, self.parameters, strict=True)):
            part = Pack([position], [x], ())
            part.steps = self.steps
            # for a graph each is memory of its own, since no two of them overlap
            part.slots = {name: Tensor._from_array(p[number]._data) for name, p in places.items()}
            result.append(part)
        return result

    def empty(self) -> Tensor:
        """A slot of zeros."""
        size = sum(x.size for x in self.parameters)
        shape = self.parameters[0].shape if self.single else (size,)
        return zeros(shape, dtype=self.dtype, device=self.device)

    def fits(self) -> bool:
        """Whether all parameters still have the dtype and device of the state."""
        dtype, device = self.dtype, self.device
        return all(x.dtype is dtype and x.device is device for x in self.parameters)

    def parts(self, slot: Tensor) -> list[Tensor]:
        """Views of a slot, one in the shape of each parameter."""
        if self.single:
            return [slot]
        pieces = split(slot, [x.size for x in self.parameters])
        return [piece.reshape(x.shape) for piece, x in zip(pieces, self.parameters, strict=True)]

    def gradient(self) -> Tensor:
        """The gradients of all parameters, shaped as a slot.

        Raises:
            GradientError: one has another shape or dtype than its parameter.
        """
        for x in self.parameters:
            grad: Any = x.grad
            if grad.shape != x.shape or grad.dtype is not x.dtype:
                raise GradientError(
                    f"step: expected a gradient of type {x.dtype.name} {x.shape}, received "
                    f"{grad.dtype.name} {grad.shape}"
                )
        return self._joined("gradient", [x.grad for x in self.parameters])

    def value(self) -> Tensor:
        """The parameters themselves, shaped as a slot."""
        return self._joined("value", self.parameters)

    def subtract(self, change: Tensor) -> None:
        """Subtract a tensor shaped as a slot from the parameters."""
        if self.single:
            self.parameters[0].sub_(change)
            return
        row = self._row("change")
        replace(row.whole, change)
        for x, part in zip(self.parameters, row.parts, strict=True):
            x.sub_(part)

    def _row(self, name: str) -> _Row:
        if name not in self._rows:
            whole = self.empty()
            self._rows[name] = _Row(whole, self.parts(whole))
        return self._rows[name]

    def _joined(self, name: str, tensors: Sequence[Any]) -> Tensor:
        if self.single:
            alone: Tensor = tensors[0]
            return alone.detach() if alone.requires_grad else alone
        row = self._row(name)
        for part, x in zip(row.parts, tensors, strict=True):
            replace(part, x.detach() if x.requires_grad else x)
        return row.whole

    def __deepcopy__(self, memo: dict[int, Any]) -> Pack:
        result = Pack(self.positions, copy.deepcopy(self.parameters, memo), self.slots)
        memo[id(self)] = result
        result.steps = copy.deepcopy(self.steps, memo)
        for name, slot in self.slots.items():
            result.slots[name].copy_(slot)
        return result


def make_packs(
    parameters: Sequence[Tensor], keys: Sequence[Hashable], names: Iterable[str]
) -> list[Pack]:
    """Packs of all parameters, in the order of their first ones.

    Args:
        parameters: what to pack.
        keys: one per parameter; only those with equal keys go together.
        names: of the slots.
    """
    members: list[list[int]] = []
    sizes: list[int] = []
    open_packs: dict[Hashable, int] = {}
    for position, (x, key) in enumerate(zip(parameters, keys, strict=True)):
        full_key = (key, x.dtype, x.device)
        number = open_packs.get(full_key)
        if number is None or sizes[number] + x.size > PACK_SIZE:
            number = len(members)
            members.append([])
            sizes.append(0)
            if x.size <= PACK_SIZE:
                open_packs[full_key] = number
        members[number].append(position)
        sizes[number] += x.size
    names = list(names)
    return [Pack(group, [parameters[i] for i in group], names) for group in members]
