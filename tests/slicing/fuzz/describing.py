"""What can be seen of objects, as lines of text that can be compared.

Numbers are written with their bits; objects that can change by the place where they were met first,
so that equal texts mean the same structure of aliases; memory that tensors share, element by
element.
"""

import inspect
import re
import struct
import types

import numpy as np

import dilim
from dilim import nn, optim

PLAIN = (int, bool, str, bytes, complex, type(None), type(Ellipsis), slice, range)
DEEPEST = 12


class Description:
    """Lines that describe some objects, each with the path to what it tells of.

    Args:
        module: name of the module whose classes are looked into.

    Attributes:
        lines: (path, text) pairs.
    """

    def __init__(self, module):
        self.lines = []
        self._module = module
        self._seen = {}
        self._kept = []  # so that no identity is used twice
        self._arrays = []

    def add(self, path, value, depth=0):
        """Describe an object and all that can be reached from it."""
        if depth > DEEPEST:
            return self._say(path, "...")
        if isinstance(value, float):
            return self._say(path, f"{type(value).__name__} {value!r} {float_bits(value)}")
        if isinstance(value, PLAIN):
            return self._say(path, without_addresses(f"{type(value).__name__} {value!r}"))
        if isinstance(value, tuple):
            self._say(path, f"{type(value).__name__} of {len(value)}")
            return self._items(path, value, depth)
        known = self._seen.setdefault(id(value), path)
        if known != path:
            return self._say(path, f"the same object as {known}")
        self._kept.append(value)
        return self._object(path, value, depth)

    def finish(self):
        """Add what memory is shared; returns the lines."""
        for position, (path, array) in enumerate(self._arrays):
            for other_path, other in self._arrays[:position]:
                if np.may_share_memory(array, other):
                    shared = _positions(array, other)
                    if any(place >= 0 for place in shared):
                        self._say(f"memory of {path}", f"elements {shared} of {other_path}")
        return self.lines

    # --- kinds of objects ---------------------------------------------------------------

    def _say(self, path, text):
        self.lines.append((path, text))

    def _items(self, path, values, depth):
        for number, item in enumerate(values):
            self.add(f"{path}[{number}]", item, depth + 1)

    def _object(self, path, value, depth):
        if isinstance(value, dilim.Tensor):
            try:
                return self._tensor(path, value, depth)
            except Exception as error:  # such as a tensor of a graph that has got out
                return self._say(path, f"a tensor that cannot be read: {error!r}")
        if isinstance(value, (np.ndarray, np.generic)):
            self._say(path, f"{type(value).__name__} {value.dtype} {array_text(value)}")
            if isinstance(value, np.ndarray):
                self._arrays.append((path, value))
            return None
        if isinstance(value, (list, set, frozenset)):
            self._say(path, f"{type(value).__name__} of {len(value)}")
            return self._items(path, value if isinstance(value, list) else sorted(value), depth)
        if isinstance(value, dict):
            self._say(path, f"{type(value).__name__} with {list(value)!r}")
            return self._entries(path, value, depth, "{}[{!r}]")
        if isinstance(value, dilim.Generator):
            return self.add(f"{path}.state", value.state, depth + 1)
        if isinstance(value, (nn.Module, optim.Optimizer)):
            return self._trained(path, value, depth)
        if callable(value):
            return self._callable(path, value, depth)
        self._say(path, type(value).__name__)
        if type(value).__module__ == self._module:
            self._entries(path, vars(value), depth, "{}.{}")
        return None

    def _entries(self, path, entries, depth, text):
        for name, item in entries.items():
            self.add(text.format(path, name), item, depth + 1)

    def _tensor(self, path, x, depth):
        array = x.detach().numpy()
        facts = [x.dtype.name, array_text(array)]
        facts += ["requires_grad"] * x.requires_grad + ["computed"] * (not x.is_leaf)
        facts += [f"name {x.name!r}"] if x.name is not None else []
        facts += [] if x.detach()._data.flags.writeable else ["read-only"]
        facts += [type(x).__name__] if type(x) is not dilim.Tensor else []
        self._say(path, " ".join(facts))
        self._arrays.append((path, array))
        if x.grad is not None:
            self.add(f"{path}.grad", x.grad, depth + 1)

    def _trained(self, path, value, depth):
        """Modules and optimisers: their parameters, and their state by value."""
        self._say(path, type(value).__name__)
        if isinstance(value, optim.Optimizer):
            self.add(f"{path}.parameters", value.parameters, depth + 1)
        else:
            self._entries(path, dict(value.named_parameters()), depth, "{}.{}")
        state = value.state_dict()
        for name, item in state.items():
            if name == "group":
                continue  # how parameters are packed, which no result depends on
            text = array_text(item.numpy()) if isinstance(item, dilim.Tensor) else repr(item)
            self._say(f"{path}.state_dict()[{name!r}]", text)

    def _callable(self, path, value, depth):
        """Functions of the module with what they close over; of others only the name."""
        value = inspect.unwrap(value)
        if isinstance(value, types.MethodType):
            self._say(path, f"method {value.__name__}")
            return self.add(f"{path}.__self__", value.__self__, depth + 1)
        self._say(path, f"{type(value).__name__} {getattr(value, '__qualname__', '')}")
        if isinstance(value, types.FunctionType) and value.__module__ == self._module:
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
                try:
                    content = cell.cell_contents
                except ValueError:
                    continue
                self.add(f"{path}:{name}", content, depth + 1)
        return None


def without_addresses(text):
    """A text in which objects without a form of their own are shown without their address."""
    return re.sub(r"(?<= at 0x)[0-9a-f]+(?=>)", "...", text)


def float_bits(value):
    """The bits of a float; all NaNs are one."""
    return "nan" if value != value else struct.pack(">d", value).hex()


def array_text(array):
    """Shape, numbers and bits of an array; all NaNs are one."""
    array = np.asarray(array)
    bits = ""
    if array.dtype.kind == "f":
        canonical = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
        bits = " " + canonical.astype(array.dtype.newbyteorder(">")).tobytes().hex()
    return f"{array.shape} {array.tolist()}{bits}"


def _addresses(array):
    """The address of each element, in row-major order."""
    start = array.__array_interface__["data"][0]
    offsets = np.zeros(array.shape, np.int64)
    for axis, (size, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        shape = [1] * array.ndim
        shape[axis] = size
        offsets = offsets + (np.arange(size) * stride).reshape(shape)
    return (start + offsets).ravel().tolist()


def _positions(array, other):
    """For each element of an array its position in the other, or -1."""
    places = {address: number for number, address in enumerate(_addresses(other))}
    return [places.get(address, -1) for address in _addresses(array)]
