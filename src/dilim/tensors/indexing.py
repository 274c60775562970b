"""Reading and writing by ``x[key]``, and reading at computed positions.

A key of integers, slices, ``...`` and None is *basic*: reading it is a view. A key with integer or
bool tensors, arrays or lists is *advanced*: reading it copies, repeated positions add their
gradients, and a bool mask has a result whose shape depends on the data. Both can be written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim import dtypes, shapes
from dilim.errors import DtypeError, ShapeError
from dilim.ops.table import OPERATIONS
from dilim.runtime.devices import CPU, quiet
from dilim.shapes import Shape
from dilim.tensors import inplace, keys
from dilim.tensors.dispatch import ACCEPTED, NUMBERS, apply, rank_of
from dilim.tensors.interchange import numpy_of
from dilim.tensors.keys import Key, Selector
from dilim.tensors.sets import positions_of
from dilim.tensors.tape import mode, no_grad
from dilim.tensors.transfer import beside

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

_slice: Final = OPERATIONS["slice"]
_slice_update: Final = OPERATIONS["slice_update"]
_reshape: Final = OPERATIONS["reshape"]
_permute: Final = OPERATIONS["permute"]
_expand: Final = OPERATIONS["expand"]
_take: Final = OPERATIONS["take"]
_take_along: Final = OPERATIONS["take_along_axis"]
_astype: Final = OPERATIONS["astype"]
_concat: Final = OPERATIONS["concat"]
_where: Final = OPERATIONS["where"]


def take(x: Tensor, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """Slices of x along an axis at integer positions.

    Args:
        x: any tensor.
        indices: integer tensor of any shape; negative positions count from the end.
        axis: along which axis; may be left out for a vector.

    Raises:
        IndexError: a position is out of range.
    """
    if axis is None:
        if len(x.shape) != 1:
            raise ShapeError(f"take: axis is needed for a tensor of shape {x.shape}")
        axis = 0
    place = shapes.normalize_axis("take", axis, rank_of("take", x))
    return apply(_take, x, indices, axis=place)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """out[.., i, ..] = x[.., indices[.., i, ..], ..] along an axis.

    Args:
        x: any tensor.
        indices: integers, of x's shape except along the axis (other axes broadcast).
        axis: along which axis.

    Raises:
        IndexError: a position is out of range.
    """
    place = shapes.normalize_axis("take_along_axis", axis, rank_of("take_along_axis", x))
    if len(indices.shape) == len(x.shape):
        outer_x = (*x.shape[:place], 1, *x.shape[place + 1 :])
        outer_i = (*indices.shape[:place], 1, *indices.shape[place + 1 :])
        if outer_x != outer_i:
            outer = shapes.broadcast("take_along_axis", outer_x, outer_i)
            x = _stretched(x, outer, place)
            indices = _stretched(indices, outer, place)
    return apply(_take_along, x, indices, axis=place)


def _stretched(x: Any, outer: Shape, axis: int) -> Any:
    shape = (*outer[:axis], x.shape[axis], *outer[axis + 1 :])
    return x if x.shape == shape else apply(_expand, x, shape=shape)


# --- reading --------------------------------------------------------------------------------


def get(x: Any, key: Any) -> Tensor:
    """``x[key]``."""
    if keys.is_tensor(key) and key.shape and x.shape and key.dtype.is_integer:
        return apply(_take, x, key, axis=0)
    what = keys.read(key, x.shape)
    if not what.selectors:
        return _basic(x, what)
    whole = all(s == (0, n, 1) for s, n in zip(what.spans, x.shape, strict=True))
    if not whole or what.final != x.shape:
        x = _basic(x, what)
    return _gather(x, what)


def _basic(x: Any, what: Key) -> Tensor:
    """The basic part of a key: a view."""
    result = apply(_slice, x, index=what.spans)
    return result if what.sliced == what.final else apply(_reshape, result, shape=what.final)


def _gather(x: Any, what: Key) -> Tensor:
    """The advanced part of a key: the axes it selects from joined into one, then `take`."""
    axes = tuple(a for s in what.selectors for a in range(s.axis, s.axis + s.rank))
    sizes = tuple(x.shape[a] for a in axes)
    lead = what.selectors[0].axis
    if not what.adjacent:
        lead = 0
        others = tuple(a for a in range(len(x.shape)) if a not in axes)
        x = apply(_permute, x, order=(*axes, *others))
    if len(axes) != 1:
        joined = (shapes.size_of(sizes),)
        x = apply(_reshape, x, shape=x.shape[:lead] + joined + x.shape[lead + len(axes) :])
    return apply(_take, x, _positions(x, what.selectors, sizes), axis=lead)


def _positions(x: Any, selectors: list[Selector], sizes: Shape) -> Any:
    """Positions in the joined axes, as a tensor beside x."""
    if len(selectors) == 1:
        part = selectors[0].part
        tensor = part if keys.is_tensor(part) else beside(x, part)
        if not keys.is_mask(part):
            return tensor
        if part.shape == sizes:
            return positions_of(tensor)
    flat = np.zeros((), np.int64)
    place = 0
    for selector in selectors:
        own = sizes[place : place + selector.rank]
        place += selector.rank
        step = shapes.size_of(sizes[place:])
        positions = keys.host_positions(selector, own) * step
        shapes.broadcast("index", flat.shape, positions.shape)
        flat = flat + positions
    return beside(x, np.asarray(flat))


# --- writing --------------------------------------------------------------------------------


def set_(x: Any, key: Any, value: Any) -> None:
    """``x[key] = value``: writes x's memory; recorded where a gradient is wanted."""
    inplace.check_writable("x[...] = value", x, value)
    value = _as_value(x, value)
    what = keys.read(key, x.shape)
    if mode.recording and (x.requires_grad or getattr(value, "requires_grad", False)):
        base = x._alias()
        if what.selectors:
            result = _scattered(base, key, value)
        else:
            fitted = _fit_value(x, value, what.sliced, what.final)
            result = apply(_slice_update, base, fitted, index=what.spans)
        inplace.replace(x, result)
        return
    with no_grad():
        if not what.selectors:
            _write_basic(x, what, value)
        elif x.device is CPU:
            _write_advanced(x, key, value)
        else:
            inplace.replace(x, _scattered(x, key, value))


def _write_basic(x: Any, what: Key, value: Any) -> None:
    region = apply(_slice, x, index=what.spans)
    fitted = _fit_value(x, value, what.sliced, what.final)
    device = inplace.common_side(x, fitted)
    device.write(region._on(device), fitted._on(device))
    inplace.written(x, device)


def _write_advanced(x: Any, key: Any, value: Any) -> None:
    if value.__class__ not in NUMBERS:
        inplace.common_side(x, value)
        value = numpy_of(value)
    try:
        x._data[_numpy_key(key)] = value
    except ValueError as error:
        raise ShapeError(f"x[...] = value: {error}") from None
    inplace.written(x)


def _numpy_key(key: Any) -> tuple[Any, ...]:
    parts = key if key.__class__ is tuple else (key,)
    return tuple(numpy_of(part) if keys.is_tensor(part) else part for part in parts)


def _scattered(x: Any, key: Any, value: Any) -> Tensor:
    """x with value at an advanced key, as reading: the last of equal positions wins.

    Every element of the result is told where it comes from: x's elements, then the value's.
    """
    origin = np.arange(x.size).reshape(x.shape)
    target = origin[_numpy_key(key)]
    if value.__class__ in NUMBERS:
        hit = np.zeros(x.shape, bool)
        hit.reshape(-1)[target.reshape(-1)] = True
        return apply(_where, beside(x, hit), value, x)
    new = _fit_value(x, value, target.shape, target.shape)
    flat = [apply(_reshape, part, shape=(part.size,)) for part in (x, new)]
    both = apply(_concat, *flat, axis=0)
    origin.reshape(-1)[target.reshape(-1)] = np.arange(x.size, x.size + target.size)
    return apply(_take, both, beside(both, origin), axis=0)


def _as_value(x: Any, value: Any) -> Any:
    """The value as a number or tensor whose dtype can be written into x.

    Raises:
        DtypeError: its dtype does not fit without loss.
    """
    if value.__class__ in NUMBERS:
        if value.__class__ not in ACCEPTED[x.dtype]:
            raise DtypeError(
                f"x[...] = value: the Python {value.__class__.__name__} {value!r} does not fit in "
                f"a {x.dtype.name} tensor"
            )
        return value
    if not keys.is_tensor(value):
        value = _made(x, value)
    if value.dtype is not x.dtype:
        if dtypes.PROMOTIONS.get((value.dtype, x.dtype)) is not x.dtype:
            raise DtypeError(
                f"x[...] = value: a {value.dtype.name} value does not fit in a {x.dtype.name} "
                f"tensor; cast it with value.astype(dilim.{x.dtype.name})"
            )
        value = apply(_astype, value, dtype=x.dtype)
    return value


def _made(x: Any, value: Any) -> Any:
    """A tensor beside x of an array, or of lists, whose Python numbers take the dtype of x."""
    made = type(x)(value, device=x.device)
    if isinstance(value, (list, tuple)) and made.dtype is not x.dtype:
        kind = float if made.dtype.is_floating else int if made.dtype.is_integer else bool
        if kind in ACCEPTED[x.dtype]:
            return type(x)(value, dtype=x.dtype, device=x.device)
    return made


def _fit_value(x: Any, value: Any, shape: Shape, final: Shape) -> Any:
    """The value broadcast to the shape of the region."""
    if value.__class__ in NUMBERS:
        return beside(x, quiet.run(np.full, shape, value, x.dtype.numpy))
    extra = len(value.shape) - len(final)
    if extra > 0 and value.shape[:extra] == (1,) * extra:
        value = apply(_reshape, value, shape=value.shape[extra:])
    if value.shape != final:
        stretched = shapes.broadcast("x[...] = value", final, value.shape)
        if stretched != final:
            raise ShapeError(
                f"x[...] = value: expected a value that stretches to shape {final}, received one "
                f"of shape {value.shape}"
            )
        value = apply(_expand, value, shape=final)
    return value if final == shape else apply(_reshape, value, shape=shape)
