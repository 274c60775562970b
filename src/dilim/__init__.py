"""dilim: programs that learn on your own machine.

Public names are loaded when first used, so that ``import dilim`` stays light and
``import dilim.scalar`` loads nothing outside the standard library.
"""

from __future__ import annotations

import importlib
from typing import Any

from dilim._version import __version__ as __version__

_HOMES = {
    "dilim.dtypes": ("int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 DType"),
    "dilim.tensors.tensor": "Tensor",
    "dilim.tensors.creation": (
        "arange asarray empty empty_like eye from_dlpack from_numpy full full_like linspace "
        "meshgrid one_hot ones ones_like tensor zeros zeros_like"
    ),
    "dilim.tensors.elementwise": (
        "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert "
        "bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign "
        "cos cosh divide equal erf exp expm1 floor floor_divide greater greater_equal hypot imag "
        "isfinite isinf isnan less less_equal log log10 log1p log2 logaddexp logical_and "
        "logical_not logical_or logical_xor maximum minimum multiply negative nextafter "
        "not_equal positive pow real reciprocal relu remainder round sigmoid sign signbit sin "
        "sinh softplus sqrt square subtract tan tanh trunc where"
    ),
    "dilim.tensors.reductions": (
        "all any argmax argmin count_nonzero log_softmax logsumexp max mean min norm prod softmax "
        "std sum var"
    ),
    "dilim.tensors.manipulation": (
        "astype broadcast_arrays broadcast_shapes broadcast_to concat expand_dims flatten flip "
        "moveaxis pad permute_dims repeat reshape roll split squeeze stack tile transpose tril "
        "triu unstack"
    ),
    "dilim.tensors.indexing": "take take_along_axis",
    "dilim.tensors.sorting": "argsort searchsorted sort",
    "dilim.tensors.sets": ("isin nonzero unique_all unique_counts unique_inverse unique_values"),
    "dilim.tensors.statistics": "cumulative_prod cumulative_sum diff",
    "dilim.tensors.data_types": "can_cast finfo iinfo isdtype result_type",
    "dilim.tensors.inspection": "__array_namespace_info__",
    "dilim.tensors.linear_algebra": "matmul matrix_transpose tensordot vecdot",
    "dilim.tensors.control": "cond loop",
    "dilim.tensors.graphs": "Graph",
    "dilim.tensors.derivatives": "grad hessian jacobian jvp value_and_grad vjp",
    "dilim.tensors.random": "Generator default_generator sample_categorical seed",
    "dilim.tensors.tape": "detect_anomaly enable_grad no_grad",
    "dilim.tensors.transfer": "host_edit",
    "dilim.nn.saving": "load save",
    "dilim.runtime.threads": "get_num_threads set_num_threads",
    "dilim.slicing.api": "compile",
}

_FOUND = {name: home for home, names in _HOMES.items() for name in names.split()}
_RENAMED = {"bool": ("dilim.dtypes", "bool_")}
_MODULES = ("errors", "nn", "optim", "rl", "scalar")

__all__ = sorted([*_FOUND, *_RENAMED, *_MODULES, "__version__", "e", "inf", "nan", "newaxis", "pi"])

e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793

__array_api_version__ = "2025.12"


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"dilim.{name}")
    home, attribute = _RENAMED.get(name, (_FOUND.get(name), name))
    if home is None:
        raise AttributeError(f"module 'dilim' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
