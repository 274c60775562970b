"""Initialisers: the first values of weights.

Each is a function of a weight's shape and of its *fans*: how many numbers go into and come out of
one unit. The table `INITIALIZERS` gives them the names that layers take as ``init=``.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import ShapeError
from dilim.shapes import Shape, size_of
from dilim.tensors.creation import asarray, zeros
from dilim.tensors.random import Generator, default_generator
from dilim.tensors.tensor import Tensor


class Fans(NamedTuple):
    """How many numbers go into and come out of one unit of a layer."""

    inputs: int
    outputs: int


Initializer = Callable[..., Tensor]


def fans_of(shape: Shape) -> Fans:
    """The fans of a dense weight (in, out) or a convolution's (out, in, height, width).

    Raises:
        ShapeError: any other number of axes.
    """
    if len(shape) == 2:
        return Fans(*shape)
    if len(shape) == 4:
        window = shape[2] * shape[3]
        return Fans(shape[1] * window, shape[0] * window)
    raise ShapeError(f"init: expected a weight with 2 or 4 axes, received shape {shape}; pass fans")


def _uniform(shape: Shape, bound: float, generator: Generator | None, dtype: DType | str) -> Tensor:
    return (generator or default_generator()).uniform(shape, -bound, bound, dtype=dtype)


def fan_in(
    shape: Shape,
    fans: Fans | None = None,
    generator: Generator | None = None,
    dtype: DType | str = dtypes.float32,
) -> Tensor:
    """U(-k, k) with k = 1 / sqrt(fan_in): what PyTorch's Linear starts with; also for biases.

    Args:
        shape: of the weight or bias.
        fans: by default those of the shape (see `fans_of`).
        generator: where random numbers come from; the default generator if None.
        dtype: floating.
    """
    inputs, _ = fans or fans_of(shape)
    return _uniform(shape, 1.0 / math.sqrt(max(inputs, 1)), generator, dtype)


def xavier(
    shape: Shape,
    fans: Fans | None = None,
    generator: Generator | None = None,
    dtype: DType | str = dtypes.float32,
) -> Tensor:
    """U(-k, k) with k = sqrt(6 / (fan_in + fan_out)), for tanh and sigmoid; args as `fan_in`.

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural
    networks, 2010, equation 16.
    """
    inputs, outputs = fans or fans_of(shape)
    return _uniform(shape, math.sqrt(6.0 / max(inputs + outputs, 1)), generator, dtype)


def kaiming(
    shape: Shape,
    fans: Fans | None = None,
    generator: Generator | None = None,
    dtype: DType | str = dtypes.float32,
) -> Tensor:
    """U(-k, k) with k = sqrt(6 / fan_in), so that relu keeps the variance; args as `fan_in`.

    Source: He et al., Delving deep into rectifiers, 2015, equation 10 (there with a normal
    distribution of the same variance 2 / fan_in).
    """
    inputs, _ = fans or fans_of(shape)
    return _uniform(shape, math.sqrt(6.0 / max(inputs, 1)), generator, dtype)


def orthogonal(
    shape: Shape,
    fans: Fans | None = None,
    generator: Generator | None = None,
    dtype: DType | str = dtypes.float32,
    *,
    gain: float = 1.0,
) -> Tensor:
    """A random matrix with orthonormal rows or columns (the fewer of the two), times ``gain``.

    Axes after the first count as one. The factor Q of normal numbers, with the signs chosen so that
    R has a positive diagonal, is uniform over all such matrices. LAPACK computes it, so that its
    last bits may differ between machines.

    Args:
        shape: two axes or more.
        fans: not used.
        generator: where random numbers come from; the default generator if None.
        dtype: floating.
        gain: factor; sqrt(2) is usual before relu.

    Raises:
        ShapeError: fewer than two axes.

    Source: Saxe et al., Exact solutions to the nonlinear dynamics of learning, 2014; the signs:
    Mezzadri, How to generate random matrices from the classical compact groups, 2007.
    """
    if len(shape) < 2:
        raise ShapeError(f"orthogonal: expected a weight with at least 2 axes, received {shape}")
    rows, columns = shape[0], size_of(shape[1:])
    tall = (max(rows, columns), min(rows, columns))
    normal = (generator or default_generator()).normal(tall, dtype=dtypes.float64).numpy()
    q, r = np.linalg.qr(normal)
    q = q * np.where(np.diagonal(r) < 0.0, -1.0, 1.0)
    matrix = q if rows >= columns else q.T
    return asarray(gain * matrix.reshape(shape), dtype=dtype, copy=True)


def micrograd(
    shape: Shape,
    fans: Fans | None = None,
    generator: Generator | None = None,
    dtype: DType | str = dtypes.float32,
) -> Tensor:
    """U(-1, 1) whatever the fans, as micrograd does; args as `fan_in`."""
    return _uniform(shape, 1.0, generator, dtype)


def all_zeros(
    shape: Shape,
    fans: Fans | None = None,
    generator: Generator | None = None,
    dtype: DType | str = dtypes.float32,
) -> Tensor:
    """Zeros: for a last layer that shall start by saying 0; args as `fan_in`."""
    return zeros(shape, dtype=dtype)


INITIALIZERS: Final[dict[str, Initializer]] = {
    "fan_in": fan_in,
    "xavier": xavier,
    "kaiming": kaiming,
    "orthogonal": orthogonal,
    "micrograd": micrograd,
    "zeros": all_zeros,
}


def weight_and_bias(
    init: str | Initializer,
    shape: Shape,
    bias_size: int,
    generator: Generator | None,
    dtype: DType | str,
) -> tuple[Tensor, Tensor]:
    """A layer's weight and bias, both requiring gradients.

    The bias is drawn as the weight for "fan_in", and 0 for all others.

    Raises:
        ValueError: there is no initialiser of that name.
    """
    make = init if callable(init) else INITIALIZERS[known("init", init, INITIALIZERS)]
    fans = fans_of(shape)
    weight = make(shape, fans, generator, dtype)
    bias = (fan_in if make is fan_in else all_zeros)((bias_size,), fans, generator, dtype)
    return weight.requires_grad_(), bias.requires_grad_()


def known(what: str, name: object, choices: Iterable[str]) -> str:
    """``name`` if it is one of the choices.

    Raises:
        ValueError: it is not; the nearest choice is suggested.
    """
    listed = list(choices)
    if isinstance(name, str) and name in listed:
        return name
    near = difflib.get_close_matches(str(name), listed, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{what}: expected one of {', '.join(listed)}, received {name!r}{hint}")
