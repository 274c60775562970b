"""What tests of the operation table share: samples as tensors, and differences."""

import numpy as np

import dilim
from dilim import dtypes
from dilim.ops.table import OPERATIONS
from dilim.tensors.backward import gradients
from dilim.tensors.dispatch import apply

DIFFERENTIABLE = [name for name, op in OPERATIONS.items() if op.derivative]


def float_positions(op, arrays):
    """Inputs that have a derivative rule and a floating dtype."""
    rules = [op.derivative[0]] * len(arrays) if op.variadic else op.derivative
    return [
        i
        for i, (x, rule) in enumerate(zip(arrays, rules, strict=True))
        if rule is not None and x.dtype.kind == "f"
    ]


def as_inputs(sample, dtype=dtypes.float64):
    """Arrays of a sample; Python numbers take the dtype of the last array."""
    arrays = [x for x in sample.inputs if isinstance(x, np.ndarray)]
    kind = arrays[-1].dtype if arrays else dtype.numpy
    return [x if isinstance(x, np.ndarray) else np.asarray(x, kind) for x in sample.inputs]


def smooth_samples(op, dtype=dtypes.float64, seed=11):
    """Samples on which differences may be taken."""
    kind = dtype if dtype in op.sample_dtypes else op.sample_dtypes[0]
    return [s for s in op.samples(np.random.default_rng(seed), kind) if s.smooth]


def directional(function, arrays, positions, directions, step=1e-6):
    """Central difference of a sum-of-products function along directions."""

    def at(sign):
        moved = [x.copy() for x in arrays]
        for position, direction in zip(positions, directions, strict=True):
            moved[position] = moved[position] + sign * step * direction
        return function(moved)

    return (at(1) - at(-1)) / (2 * step)


def projected(op, params, cotangent):
    """arrays -> sum(cotangent * op(arrays)), on the eager tensors."""

    def value(arrays):
        out = apply(op, *(dilim.asarray(x) for x in arrays), **params)
        return float(np.sum(out.numpy() * cotangent))

    return value


def first_derivative(op, sample, rng):
    """(analytic, numeric) directional derivatives for a sample, or None if nothing to differ by."""
    arrays = as_inputs(sample)
    positions = float_positions(op, arrays)
    if not positions:
        return None
    leaves = [dilim.Tensor(x) for x in arrays]
    for position in positions:
        leaves[position].requires_grad_()
    out = apply(op, *leaves, **sample.params)
    if not out.dtype.is_floating:
        return None
    cotangent = rng.standard_normal(out.shape)
    seed = dilim.asarray(np.asarray(cotangent, out.numpy().dtype))
    found = gradients([out], [leaves[p] for p in positions], [seed])
    directions = [rng.standard_normal(arrays[p].shape) for p in positions]
    analytic = sum(float(np.sum(g.numpy() * d)) for g, d in zip(found, directions, strict=True))
    for g, p in zip(found, positions, strict=True):
        assert g.shape == arrays[p].shape
    numeric = directional(projected(op, sample.params, cotangent), arrays, positions, directions)
    return analytic, numeric


def second_derivative(op, sample, rng):
    """(analytic, numeric) derivatives of the first derivative along random directions."""
    arrays = as_inputs(sample)
    positions = float_positions(op, arrays)
    if not positions:
        return None
    directions = [rng.standard_normal(arrays[p].shape) for p in positions]
    weights = [rng.standard_normal(arrays[p].shape) for p in positions]
    seed = rng.integers(2**31)

    def slope(values, keep=False):
        leaves = [dilim.Tensor(x) for x in values]
        for position in positions:
            leaves[position].requires_grad_()
        out = apply(op, *leaves, **sample.params)
        if not out.dtype.is_floating:
            return None
        cotangent = np.asarray(np.random.default_rng(seed).standard_normal(out.shape))
        inputs = [leaves[p] for p in positions]
        start = dilim.asarray(cotangent.astype(out.numpy().dtype))
        found = gradients([out], inputs, [start], create_graph=True)
        total = dilim.zeros((), dtype=found[0].dtype)
        for g, w in zip(found, weights, strict=True):
            total = total + (g * dilim.asarray(w.astype(g.numpy().dtype))).sum()
        return (total, inputs) if keep else float(total)

    result = slope(arrays, keep=True)
    if result is None:
        return None
    total, inputs = result
    if total.requires_grad:
        found = gradients([total], inputs)
        analytic = sum(float(np.sum(h.numpy() * d)) for h, d in zip(found, directions, strict=True))
    else:
        analytic = 0.0
    return analytic, directional(slope, arrays, positions, directions, step=1e-5)


def close(analytic, numeric, tolerance):
    return abs(analytic - numeric) <= tolerance * (1 + abs(analytic) + abs(numeric))
