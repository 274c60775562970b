"""Saving models, optimisers and any tree of tensors and plain values in one file.

A file is a safetensors file with a checked JSON header (see `dilim.runtime.files`). Tensors of
inner dicts have names joined by ``/``, such as ``model/layers.0.weight``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from dilim.errors import StateError
from dilim.runtime.files import Arrays, load_arrays, save_arrays
from dilim.tensors.creation import asarray
from dilim.tensors.tensor import Tensor

KIND: Final = "state"


class State(dict[str, Any]):
    """What `load` gives: a dict, with what `save` was told beside it.

    Attributes:
        metadata: the keyword arguments of `save`.
    """

    metadata: dict[str, Any]


def save(path: str | os.PathLike[str], state: Any, **metadata: Any) -> None:
    """Write a model, an optimiser, or a dict of them, into one file.

    The file is whole or absent at every moment: it is written beside the old one, flushed, renamed.

    Args:
        path: the file; its folder must exist. The usual ending is ``.safetensors``.
        state: something with ``state_dict()`` (a module, an optimiser); or a dict with str keys
            whose values are such things, tensors, such dicts, or plain JSON (None, bool, int,
            finite float, str, list, dict).
        metadata: plain JSON to keep beside it, such as ``step=1200``.

    Raises:
        StateError: a key is not a str, or has a ``/``.
        FileFormatError: a value is not plain JSON.
        OSError: the file cannot be written; the old one is unchanged.

    Example:
        >>> import dilim, tempfile
        >>> model = dilim.nn.MLP(4, [8, 2])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     dilim.save(f"{folder}/model.safetensors", model, step=1200)
        ...     state = dilim.load(f"{folder}/model.safetensors")
        >>> model.load_state_dict(state)
        >>> state.metadata
        {'step': 1200}
    """
    arrays: Arrays = {}
    values: dict[str, Any] = {}
    _flatten(_tree(state), "", arrays, values)
    save_arrays(path, arrays, {"kind": KIND, "values": values, "metadata": metadata})


def load(path: str | os.PathLike[str], *, foreign: bool = False) -> State:
    """Read a file of `save`: all of it, checked, or nothing.

    Args:
        path: the file.
        foreign: also take safetensors files that another library wrote; they have no checksum.

    Returns:
        The dict that was saved (of a module, its ``state_dict()``), with tensors on the CPU.

    Raises:
        FileFormatError: the file is cut short, damaged, written by a newer dilim, or something
            else than a state; each has its own text.
        OSError: the file cannot be read.
    """
    arrays, header = load_arrays(path, None if foreign else KIND, foreign=foreign)
    state = State()
    for name, array in arrays.items():
        _put(state, name, asarray(array))
    for name, value in header.get("values", {}).items():
        _put(state, name, value)
    state.metadata = header.get("metadata", {})
    return state


def _tree(state: Any) -> Any:
    return state.state_dict() if hasattr(state, "state_dict") else state


def _flatten(tree: Any, prefix: str, arrays: Arrays, values: dict[str, Any]) -> None:
    if not isinstance(tree, Mapping):
        raise StateError(
            f"save: expected a module, an optimiser or a dict, received {type(tree).__name__}"
        )
    for key, item in tree.items():
        if not isinstance(key, str) or "/" in key or not key:
            raise StateError(f"save: expected str keys without '/', received {key!r}")
        value = _tree(item)
        if isinstance(value, Tensor):
            arrays[prefix + key] = value.numpy()
        elif isinstance(value, np.ndarray):
            raise StateError(f"save: {key!r} is a NumPy array; wrap it with dilim.asarray(...)")
        elif isinstance(value, Mapping) and value:
            _flatten(value, f"{prefix}{key}/", arrays, values)
        else:
            values[prefix + key] = value


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *folders, key = path.split("/")
    for folder in folders:
        tree = tree.setdefault(folder, {})
    tree[key] = value
