"""The agent's door: what comes from an environment is checked and copied before it is used."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dilim.errors import DilimError, EnvironmentContractError, NonFiniteError, ShapeError
from dilim.tensors.tensor import Tensor

Vector = npt.NDArray[np.float32]


def observation_vector(value: Any, size: int, place: Callable[[], str]) -> Vector:
    """An observation as a new float32 vector.

    Args:
        value: an array, tensor or nested list of ``size`` numbers, of any shape and dtype.
        size: how many numbers the network takes.
        place: says which environment and step it is, for the error.

    Raises:
        ShapeError: it has another number of elements.
        NonFiniteError: an element is NaN or infinite; it is named.
        EnvironmentContractError: it is not made of numbers.
    """
    array = np.asarray(value.numpy() if isinstance(value, Tensor) else value)
    if array.dtype.kind not in "biuf":
        raise EnvironmentContractError(
            f"{place()}: expected an observation of numbers, received {type(value).__name__} of "
            f"dtype {array.dtype}"
        )
    if array.size != size:
        raise ShapeError(
            f"{place()}: the network takes {size} numbers, the observation has {array.size} "
            f"(shape {array.shape})"
        )
    with np.errstate(over="ignore"):  # too large for float32: infinite, and refused below
        vector = array.astype(np.float32).reshape(size)
    if not np.isfinite(vector).all():
        position = np.unravel_index(int(np.argmin(np.isfinite(vector))), array.shape)
        entry = ", ".join(str(int(i)) for i in position)
        raise NonFiniteError(
            f"{place()}: observation[{entry}] is {array[position]}; expected finite float32 "
            "numbers. Nothing was learned from this step; look for the cause in the environment"
        )
    return vector


def finite_scores(scores: Tensor, place: Callable[[], str]) -> Tensor:
    """What the network gave, checked.

    Raises:
        NonFiniteError: NaN or infinity; training has diverged.
    """
    values = scores.numpy()
    if not np.isfinite(values).all():
        raise NonFiniteError(
            f"{place()}: the network's output is {values.tolist()!r:.80}: training has diverged. "
            "Begin anew with a smaller learning_rate, or scale the rewards down"
        )
    return scores


def finite_reward(value: Any, place: Callable[[], str]) -> float:
    """A reward as a float.

    Raises:
        NonFiniteError: it is NaN or infinite.
        EnvironmentContractError: it is not a number.
    """
    try:
        reward = float(value)
    except (TypeError, ValueError):
        raise EnvironmentContractError(
            f"{place()}: expected a number as reward, received {type(value).__name__} {value!r:.60}"
        ) from None
    if not math.isfinite(reward):
        raise NonFiniteError(
            f"{place()}: the reward is {reward}; expected a finite number. Nothing was learned "
            "from this step; look for the cause in the environment"
        )
    return reward


# --- errors of environments that are not told which step it is --------------------------------

_UNPLACED: Final = re.compile(r"environment (\d+), now(?=: )")


def unplaced(number: int) -> str:
    """The place of something that only `tell_place` can put right."""
    return f"environment {number}, now"


def tell_place(error: BaseException, place: Callable[[int], str]) -> None:
    """Put into the text of an error which step of an environment it comes from."""
    if isinstance(error, DilimError) and len(error.args) == 1:
        text = str(error.args[0])
        error.args = (_UNPLACED.sub(lambda found: place(int(found[1])), text, count=1),)
