"""Reading and writing by ``x[key]``, and reading at computed positions.

A key of integers, slices, ``...`` and None is *basic*: reading it is a view. A key with integer or
bool tensors, arrays or lists is *advanced*: reading it copies, repeated positions add their
gradients, and a bool mask has a result whose shape depends on the data. Both can be written.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim import dtypes, shapes
from dilim.errors import DtypeError, GraphError, ShapeError
from dilim.ops.table import OPERATIONS
from dilim.runtime.devices import CPU, quiet
from dilim.shapes import Shape
from dilim.tensors import inplace, keys
from dilim.tensors.dispatch import (
    ACCEPTED,
    NUMBERS,
    apply,
    has_numbers,
    rank_of,
    tracer_of,
)
from dilim.tensors.interchange import numpy_of
from dilim.tensors.keys import Key, Selector
from dilim.tensors.sets import positions_of
from dilim.tensors.tape import mode, no_grad
from dilim.tensors.transfer import beside

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

_slice: Final = OPERATIONS["slice"]
_slice_update: Final = OPERATIONS["slice_update"]
_index_update: Final = OPERATIONS["index_update"]
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
    joined, positions, lead = _joined(x, what)
    return apply(_take, joined, positions, axis=lead)


def _selected_axes(what: Key) -> Shape:
    return tuple(a for s in what.selectors for a in range(s.axis, s.axis + s.rank))


def _order(x: Any, axes: Shape) -> Shape:
    """These axes first, then the others."""
    return (*axes, *(a for a in range(len(x.shape)) if a not in axes))


def _joined(x: Any, what: Key) -> tuple[Any, Any, int]:
    """x with the axes that are selected from joined into one; positions in it; which axis."""
    axes = _selected_axes(what)
    sizes = tuple(x.shape[a] for a in axes)
    lead = what.selectors[0].axis
    if not what.adjacent:
        lead = 0
        x = apply(_permute, x, order=_order(x, axes))
    if len(axes) != 1:
        joined = (shapes.size_of(sizes),)
        x = apply(_reshape, x, shape=x.shape[:lead] + joined + x.shape[lead + len(axes) :])
    return x, _positions(x, what.selectors, sizes), lead


def _positions(x: Any, selectors: list[Selector], sizes: Shape) -> Any:
    """Positions in the joined axes, as a tensor beside x."""
    if len(selectors) != 1 and any(_is_symbolic(s.part) for s in selectors):
        return _joint_positions(x, selectors, sizes)
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


def _is_symbolic(part: Any) -> bool:
    return keys.is_tensor(part) and not has_numbers(part)


def _joint_positions(x: Any, selectors: list[Selector], sizes: Shape) -> Any:
    """As `_positions`, by operations: positions are counted from the front and checked first."""
    parts: list[Any] = []
    place = 0
    for selector in selectors:
        own = sizes[place : place + selector.rank]
        place += selector.rank
        if _is_symbolic(selector.part) and not keys.is_mask(selector.part):
            known = apply(_take, beside(selector.part, np.arange(own[0])), selector.part, axis=0)
        else:
            known = beside(x, keys.host_positions(selector, own))
        step = shapes.size_of(sizes[place:])
        parts.append(known if step == 1 else known * step)
    return functools.reduce(operator.add, parts)


# --- writing --------------------------------------------------------------------------------


def set_(x: Any, key: Any, value: Any) -> None:
    """``x[key] = value``: writes x's memory; recorded where a gradient is wanted."""
    inplace.check_writable("x[...] = value", x, value)
    value = _as_value(x, value)
    what = keys.read(key, x.shape)
    if what.selectors and tracer_of(x, value, *keys.tensors_in(key)) is not None:
        inplace.replace(x, _updated(x._alias(), what, value))
        return
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
    inplace.store(x, region, fitted)


def _write_advanced(x: Any, key: Any, value: Any) -> None:
    if value.__class__ not in NUMBERS:
        inplace.common_side(x, value)
        value = numpy_of(value)
    inplace.before_write(x)
    refusal: IndexError | None = None
    try:
        x._data[_numpy_key(key)] = value
    except IndexError as error:
        refusal = error
    except ValueError as error:
        raise ShapeError(f"x[...] = value: {error}") from None
    _raise_again(refusal, x, key)
    inplace.written(x)


def _raise_again(refusal: IndexError | None, x: Any, key: Any) -> None:
    """Raise what NumPy has raised at a key, in our words where a position is out of range."""
    if refusal is not None:
        keys.name_outside(keys.read(key, x.shape))
        raise refusal


def _updated(x: Any, what: Key, value: Any) -> Tensor:
    """x with value at an advanced key, by operations alone, for graphs."""
    region = _basic(x, what)
    (first, *others) = what.selectors
    if not others and keys.is_mask(first.part) and _is_symbolic(first.part):
        changed = _where_masked(region, first, value)
    else:
        joined, positions, lead = _joined(region, what)
        shape = (*joined.shape[:lead], *positions.shape, *joined.shape[lead + 1 :])
        fitted = _fit_value(x, value, shape, shape)
        changed = apply(_index_update, joined, positions, fitted, axis=lead)
        if what.adjacent:
            changed = apply(_reshape, changed, shape=region.shape)
        else:
            order = _order(region, _selected_axes(what))
            changed = apply(_reshape, changed, shape=tuple(region.shape[a] for a in order))
            back = tuple(order.index(a) for a in range(len(order)))
            changed = apply(_permute, changed, order=back)
    part = apply(_reshape, changed, shape=what.sliced)
    if part.shape == x.shape and all(step > 0 for _, _, step in what.spans):
        return part
    return apply(_slice_update, x, part, index=what.spans)


def _where_masked(region: Any, selector: Selector, value: Any) -> Any:
    """A region with one value, or one per later axis, where a mask is True."""
    after = region.shape[selector.axis + selector.rank :]
    if value.__class__ not in NUMBERS:
        if len(value.shape) > len(after):
            raise GraphError(
                f"x[mask] = value: in a graph it is not known how many elements the mask of shape "
                f"{selector.part.shape} selects, so expected a value that stretches to shape "
                f"{after}, received shape {value.shape}; use dilim.where(mask, value, x)"
            )
        value = _fit_value(region, value, after, after)
    mask = apply(_reshape, selector.part, shape=(*selector.part.shape, *(1,) * len(after)))
    return apply(_where, mask, value, region)


def _numpy_key(key: Any) -> tuple[Any, ...]:
    parts = key if key.__class__ is tuple else (key,)
    return tuple(numpy_of(part) if keys.is_tensor(part) else part for part in parts)


def _scattered(x: Any, key: Any, value: Any) -> Tensor:
    """x with value at an advanced key, as reading: the last of equal positions wins.

    Every element of the result is told where it comes from: x's elements, then the value's.
    """
    origin = np.arange(x.size).reshape(x.shape)
    refusal: IndexError | None = None
    try:
        target = origin[_numpy_key(key)]
    except IndexError as error:
        refusal = error
    _raise_again(refusal, x, key)
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
