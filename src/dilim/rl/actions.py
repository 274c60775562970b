"""What an agent can do: one of several actions, or numbers in a Box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from dilim.dtypes import int64
from dilim.errors import EnvironmentContractError, ShapeError
from dilim.tensors.creation import asarray
from dilim.tensors.elementwise import clip
from dilim.tensors.tensor import Tensor

Numbers = float | Sequence["Numbers"]
"""A number, or nested lists of them."""


class DiscreteActions:
    """One of several actions; agents count them from 0.

    Args:
        count: A, how many.
        start: the number of the first one in the environment.

    Attributes:
        shape: of one action within an agent, ().

    Raises:
        ShapeError: there is none.
    """

    shape: tuple[int, ...] = ()

    def __init__(self, count: int, start: int = 0) -> None:
        self.count, self.start = int(count), int(start)
        if self.count < 1:
            raise ShapeError(f"expected action_count >= 1, received {count}")

    def outward(self, actions: Tensor) -> Tensor:
        """(N,): actions as the environment counts them."""
        return actions + self.start

    def tensor(self, actions: npt.ArrayLike) -> Tensor:
        """int64 (N,): actions within an agent, from a file."""
        return asarray(np.array(actions), dtype=int64)

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of an agent with these actions; plain JSON."""
        return {"action_count": self.count, "action_start": self.start}

    def __str__(self) -> str:
        return f"{self.count} actions from {self.start}"


class BoxActions:
    """Numbers between bounds; agents count each so that the Box reaches from -1 to 1.

    Args:
        low: the least of each number, in the shape of the Box.
        high: the greatest.

    Attributes:
        count: A, how many numbers.
        shape: of one action within an agent, (A,).
        low: float32 (A,), never below what was given.
        high: float32 (A,), never above.

    Raises:
        ShapeError: there are no numbers, or not as many of either.
        ValueError: a bound is not finite, or not in float32, or low is above high.
    """

    def __init__(self, low: npt.ArrayLike, high: npt.ArrayLike) -> None:
        least, most = np.asarray(low, np.float64), np.asarray(high, np.float64)
        if least.shape != most.shape or least.size == 0:
            raise ShapeError(
                "expected action_low and action_high of one shape with at least one number, "
                f"received {least.shape} and {most.shape}"
            )
        with np.errstate(invalid="ignore"):  # infinity minus infinity: NaN, and refused
            width = most - least
        if not ((width >= 0.0) & (width < np.finfo(np.float32).max)).all():
            raise ValueError(
                f"expected finite action_low <= action_high, received {low!r} and {high!r}"
            )
        self.box_shape = least.shape
        self.count = least.size
        self.shape: tuple[int, ...] = (self.count,)
        self.low, self.high = _within(least, +1.0), _within(most, -1.0)
        self.middle = (self.low + self.high) * 0.5
        self.reach = (self.high - self.low) * 0.5

    def outward(self, actions: Tensor) -> Tensor:
        """(N, A) to (N, shape of the Box): actions in its units, clipped to it."""
        inside = clip(self.middle + self.reach * actions, self.low, self.high)
        return inside.reshape((-1, *self.box_shape))

    def tensor(self, actions: npt.ArrayLike) -> Tensor:
        """float32 (N, A): actions within an agent, from a file."""
        return asarray(np.array(actions, np.float32))

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of an agent with these actions; plain JSON."""
        bounds = {"action_low": self.low, "action_high": self.high}
        return {name: x.reshape(self.box_shape).tolist() for name, x in bounds.items()}

    def __str__(self) -> str:
        low, high = self.low.numpy(), self.high.numpy()
        return f"a Box of shape {self.box_shape} from {low.min():g} to {high.max():g}"


Actions = DiscreteActions | BoxActions
AnyActions: tuple[type[Actions], ...] = (DiscreteActions, BoxActions)


def actions_from(
    count: int | None, start: int, low: npt.ArrayLike | None, high: npt.ArrayLike | None
) -> Actions:
    """From the arguments of an agent: a Box if it has bounds, else ``count`` or 2 actions."""
    if low is None and high is None:
        return DiscreteActions(2 if count is None else count, start)
    if low is None or high is None or count is not None:
        raise ValueError(
            "expected action_count, or action_low and action_high, received action_count="
            f"{count}, action_low={low!r}, action_high={high!r}"
        )
    return BoxActions(low, high)


def actions_of(env: Any) -> Actions:
    """From the action space of an environment.

    Raises:
        EnvironmentContractError: it is neither a Discrete nor a Box of finite floats.
    """
    place, space = type(env).__name__, env.action_space
    if isinstance(space, spaces.Discrete):
        return DiscreteActions(int(space.n), int(space.start))
    if not isinstance(space, spaces.Box) or space.dtype is None or space.dtype.kind != "f":
        raise EnvironmentContractError(
            f"{place}: expected action_space to be a Discrete, or a Box of floats, received "
            f"{space}; wrap it with gymnasium.wrappers.TransformAction"
        )
    try:
        return BoxActions(space.low, space.high)
    except ValueError as error:
        raise EnvironmentContractError(
            f"{place}: {error}; wrap it with gymnasium.wrappers.TransformAction"
        ) from error


def several(actions: Tensor) -> list[Any]:
    """The actions of (N,) or (N, ...) as Python has them: ints, or new arrays."""
    if actions.dtype.is_integer:
        return actions.tolist()  # type: ignore[no-any-return]
    return list(actions.numpy(copy=True))


def single(actions: Tensor) -> int | npt.NDArray[np.float32]:
    """The only one of `several`."""
    return several(actions)[0]  # type: ignore[no-any-return]


def _within(bound: npt.NDArray[np.float64], inward: float) -> Tensor:
    """Float32 of (A,); where rounding went out of the Box, the next one inward."""
    near = bound.astype(np.float32)
    outside = (bound - near) * inward > 0.0
    return asarray(np.where(outside, np.nextafter(near, np.float32(inward * np.inf)), near).ravel())
