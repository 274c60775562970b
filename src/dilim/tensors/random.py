"""Random numbers: `Generator`, the default one, and draws from categories.

All streams are Philox 4x32-10 (see `dilim.ops.philox`): the same seed gives the same numbers on
every back end and machine.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from operator import index
from typing import Any, Final

import numpy as np

from dilim import dtypes, shapes
from dilim.dtypes import DType
from dilim.errors import DtypeError, ShapeError
from dilim.ops import philox
from dilim.ops.table import OPERATIONS
from dilim.tensors.creation import Sizes, arange, asarray
from dilim.tensors.dispatch import apply
from dilim.tensors.inplace import replace
from dilim.tensors.tensor import Tensor

DEFAULT_SEED: Final = 0
_advance: Final = OPERATIONS["random_advance"]
_categorical: Final = OPERATIONS["random_categorical"]


class Generator:
    """A stream of random numbers.

    Args:
        seed: 0 .. 2**64 - 1; the same seed gives the same stream everywhere.

    Attributes:
        state: a uint32 tensor of shape (6,): all there is to save and restore.

    The state stays in one place in memory, so that compiled programs draw from the same stream.

    Example:
        >>> import dilim
        >>> generator = dilim.Generator(7)
        >>> generator.integers(0, 10, 3).tolist() == dilim.Generator(7).integers(0, 10, 3).tolist()
        True
    """

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        if isinstance(seed, bool):
            raise TypeError(f"seed: expected an integer, got {seed}")
        self._state = Tensor._from_array(philox.seed_state(seed))

    @property
    def state(self) -> Tensor:
        """A copy of the state, to be saved or compared."""
        return self._state.clone()

    @state.setter
    def state(self, value: Tensor | np.ndarray) -> None:
        state = Tensor(value)
        if state.dtype is not dtypes.uint32 or state.shape != (philox.STATE_SIZE,):
            raise DtypeError(
                f"Generator.state: expected uint32 of shape (6,), received {state.dtype.name} of "
                f"shape {state.shape}"
            )
        self._state.copy_(state)

    def __repr__(self) -> str:
        key = self._state.tolist()
        return f"Generator(key={key[0] | key[1] << 32:#x}, block={_counter(key)})"

    def _draw(self, name: str, words: int, **params: Any) -> Tensor:
        result: Tensor = apply(OPERATIONS[name], self._state, **params)
        self._advance(words)
        return result

    def _advance(self, words: int) -> None:
        replace(self._state, apply(_advance, self._state, words=words))

    def uniform(
        self,
        shape: Sizes = (),
        low: float = 0.0,
        high: float = 1.0,
        *,
        dtype: DType | str = dtypes.float32,
    ) -> Tensor:
        """Uniform numbers in [low, high).

        Args:
            shape: sizes of the result.
            low: smallest value.
            high: upper limit.
            dtype: float32 (24 random bits) or float64 (53).

        Raises:
            ValueError: high is below low.
        """
        if high < low:
            raise ValueError(f"uniform: expected low <= high, received {low} and {high}")
        sizes, kind = _sizes(shape), dtypes.as_dtype(dtype)
        words = philox.draw_words("uniform", _count(sizes), kind.numpy)
        result = self._draw("random_uniform", words, shape=sizes, dtype=kind)
        return result if (low, high) == (0.0, 1.0) else result * float(high - low) + float(low)

    def normal(
        self,
        shape: Sizes = (),
        mean: float = 0.0,
        std: float = 1.0,
        *,
        dtype: DType | str = dtypes.float32,
    ) -> Tensor:
        """Normal numbers with the given mean and standard deviation.

        Raises:
            ValueError: the standard deviation is negative.
        """
        if std < 0:
            raise ValueError(f"normal: expected std >= 0, received {std}")
        sizes, kind = _sizes(shape), dtypes.as_dtype(dtype)
        words = philox.draw_words("normal", _count(sizes), kind.numpy)
        result = self._draw("random_normal", words, shape=sizes, dtype=kind)
        return result if (mean, std) == (0.0, 1.0) else result * float(std) + float(mean)

    def integers(
        self,
        low: int | Tensor,
        high: int | Tensor,
        shape: Sizes = (),
        *,
        dtype: DType | str = dtypes.int64,
    ) -> Tensor:
        """Uniform integers from low (inclusive) to high (exclusive).

        Args:
            low: the smallest value; a number, or an int64 tensor of shape ().
            high: one more than the largest value; likewise.
            shape: sizes of the result.
            dtype: any integer dtype; int64 where a bound is a tensor.

        Raises:
            ValueError: the range is empty, or the dtype does not hold it.
            DtypeError: a bound is another tensor.
        """
        sizes, kind = _sizes(shape), dtypes.as_dtype(dtype)
        words = philox.draw_words("integers", _count(sizes))
        if isinstance(low, Tensor) or isinstance(high, Tensor):
            bounds = (asarray(low), asarray(high))
            if kind is not dtypes.int64:
                raise DtypeError(
                    f"integers: expected dtype int64 with bounds that are tensors, received "
                    f"{kind.name}; draw int64 and cast it"
                )
            drawn = apply(OPERATIONS["random_integers_between"], self._state, *bounds, shape=sizes)
            self._advance(words)
            return drawn
        return self._draw(
            "random_integers", words, shape=sizes, low=index(low), high=index(high), dtype=kind
        )

    def permutation(self, count: int) -> Tensor:
        """A random order of 0 .. count - 1 (int64)."""
        words = philox.draw_words("permutation", count)
        return self._draw("random_permutation", words, count=int(count))

    def choice(
        self, options: int | Tensor | Sequence[Any], shape: Sizes = (), *, replace: bool = True
    ) -> Tensor:
        """Random elements of ``options`` (a tensor's first axis, or 0 .. n - 1 for a number n).

        Args:
            options: what to choose from.
            shape: sizes of the result.
            replace: whether one element may be chosen more than once.

        Raises:
            ShapeError: nothing to choose from, or too few without replacement.
        """
        pool = arange(options) if isinstance(options, int) else asarray(options)
        sizes = _sizes(shape)
        count, wanted = len(pool), _count(sizes)
        if wanted and (count == 0 or (not replace and wanted > count)):
            how = "" if replace else " without replacement"
            raise ShapeError(f"choice: expected at least {wanted} options{how}, received {count}")
        if replace:
            positions = self.integers(0, max(count, 1), sizes)
        else:
            positions = self.permutation(count)[:wanted].reshape(sizes)
        return apply(OPERATIONS["take"], pool, positions, axis=0)

    def categorical(self, logits: Tensor, *, axis: int = -1) -> Tensor:
        """One category per row, with probabilities softmax(logits).

        Args:
            logits: (..., K) unnormalised log-probabilities; -inf is never drawn.
            axis: the axis of the categories.

        Returns:
            int64 positions, without that axis.

        Raises:
            NonFiniteError: a row has NaN or +inf, or only -inf.
        """
        place = shapes.normalize_axis("categorical", axis, len(logits.shape))
        result: Tensor = apply(_categorical, self._state, logits, axis=place)
        words = philox.draw_words("uniform", result.size, logits.dtype.numpy)
        self._advance(words)
        return result

    def split(self, count: int) -> list[Generator]:
        """Independent generators; this one goes on with a stream of its own."""
        if count < 0:
            raise ValueError(f"split: expected a count >= 0, received {count}")
        states = apply(OPERATIONS["random_split"], self._state, count=int(count))
        self._state.copy_(states[0])
        return [_from_state(states[i + 1].clone()) for i in range(count)]

    def __deepcopy__(self, memo: dict[int, Any]) -> Generator:
        return _from_state(self._state.clone())


def _from_state(state: Tensor) -> Generator:
    result = Generator.__new__(Generator)
    result._state = state
    return result


def _counter(words: list[int]) -> int:
    return sum(word << 32 * i for i, word in enumerate(words[2:]))


def _sizes(shape: Sizes) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, Sequence) else (int(shape),)


def _count(sizes: tuple[int, ...]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


# --- the default generator ------------------------------------------------------------------


class _Default(threading.local):
    def __init__(self) -> None:
        self.generator = Generator(DEFAULT_SEED)


_default: Final = _Default()


def default_generator() -> Generator:
    """The generator that is used where none is given; one per thread, seeded with 0."""
    return _default.generator


def seed(value: int) -> Generator:
    """Start the default generator of this thread anew; returns it."""
    _default.generator.state = Generator(value).state
    return _default.generator


def sample_categorical(
    logits: Tensor, generator: Generator | None = None, *, axis: int = -1
) -> Tensor:
    """One category per row, with probabilities softmax(logits); see `Generator.categorical`."""
    return (generator or default_generator()).categorical(logits, axis=axis)
