"""Python builtins made of machine code, which call native programs in a few ten nanoseconds.

A program is ``i32 run(ptr activation)``. Its `Signature` says which arguments and results it has;
`write_caller` writes a function for it, which is compiled and cached like any other code; `Caller`
makes that function a callable::

    code = write_caller(signature)
    library = link([*objects, emit_object(code.text, target)])
    caller = Caller(signature, code, library, library.address("run"), ...)
    result = caller.function(observation)

The function takes an activation from the caller's pool, makes the objects for array results, looks
at the arguments, stores their addresses in the slots, and runs the program. It takes exactly
``numpy.ndarray`` in native byte order, of the right dtype and shape, in row-major order, or a
holder of such an array. Everything else, an empty pool and keyword arguments too, is given to
``slow(*args, **kwargs)`` as it is. Fast calls need CPython with a GIL; elsewhere the callable is
``slow`` itself.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dilim.backends.llvm import calls_signature as known
from dilim.backends.llvm.binding import Library, emit_object, host_target, link
from dilim.backends.llvm.calls_signature import Array, CallerCode, Number, Signature
from dilim.backends.llvm.calls_text import write_builtin, write_caller

__all__ = [
    "Array", "Caller", "CallerCode", "Holder", "Number", "Signature", "builtin", "fast_calls",
    "write_caller",
]  # fmt: skip

_FASTCALL_KEYWORDS: Final = 0x0080 | 0x0002
_ONE_ARGUMENT: Final = 0x0008
# With the GIL held: no other Python thread can come between.
_ADD: Final = ctypes.PYFUNCTYPE(None, ctypes.c_size_t, ctypes.c_size_t)
_TAKE: Final = ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.c_size_t)


@dataclass(frozen=True, slots=True)
class Holder:
    """A class whose instances hold arrays.

    Attributes:
        type: the class, exactly; its attributes below are in ``__slots__``.
        attribute: the one with the array.
        required: attributes that must be these very objects.
        excluded: an attribute that must be none of these objects.
    """

    type: type
    attribute: str
    required: Mapping[str, object] = field(default_factory=dict)
    excluded: tuple[str, Sequence[object]] | None = None

    def offset(self, attribute: str) -> int:
        """Where an attribute lies in an instance, in bytes."""
        return slot_offset(self.type, attribute)


@functools.cache
def slot_offset(type: Any, attribute: str) -> int:
    """Where an attribute with a slot lies in the instances of a class, in bytes."""
    instance: Any = object.__new__(type)
    marker = object()
    setattr(instance, attribute, marker)
    words = (ctypes.c_size_t * (type.__basicsize__ // 8)).from_address(id(instance))
    found = list(words).index(id(marker))
    return 8 * found


class Table(np.ndarray):
    """The words that a builtin reads; it is the builtin's ``self``, and keeps alive what it needs.

    Attributes:
        kept: objects whose addresses are in the words or in the code.
    """

    kept: tuple[object, ...]


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    ]


@functools.cache
def fast_calls() -> bool:
    """Whether this Python lays out objects as the code of builtins expects it."""
    return (
        sys.implementation.name == "cpython"
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and object.__basicsize__ == known.HEADER
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and _arrays_are_as_expected()
    )


def _arrays_are_as_expected() -> bool:
    array = np.zeros((3, 5), np.float32)
    array.flags.writeable = False
    wanted = {known.DATA: array.ctypes.data, known.DESCRIPTION: id(array.dtype)}
    wanted[known.TYPE] = id(np.ndarray)
    if array.__sizeof__() < known.FLAGS + 4:
        return False

    def number(kind: Any, offset: int) -> int:
        return int(kind.from_address(id(array) + offset).value)

    if any(number(ctypes.c_size_t, offset) != value for offset, value in wanted.items()):
        return False
    sizes = number(ctypes.c_size_t, known.SIZES)
    flags = number(ctypes.c_int, known.FLAGS)
    tested = known.C_CONTIGUOUS | known.ALIGNED | known.WRITEABLE
    return (
        number(ctypes.c_int, known.RANK) == 2
        and list((ctypes.c_ssize_t * 2).from_address(sizes)) == [3, 5]
        and flags & tested == known.C_CONTIGUOUS | known.ALIGNED
    )


def new_builtin(
    table: Table, code: int, flags: int, name: str, documentation: str, kept: Sequence[object]
) -> Callable[..., Any]:
    """A builtin function.

    Args:
        table: its ``self``.
        code: address of its C function.
        flags: of PyMethodDef: how it takes arguments.
        name: of the callable.
        documentation: of the callable.
        kept: what must live as long as the callable.
    """
    texts = (name.encode(), documentation.encode())
    method = _Method(texts[0], code, flags, texts[1])
    table.kept = (*kept, texts, method)
    try:
        made: Callable[..., Any] = _new_function()(ctypes.addressof(method), table, None)
    except ctypes.ArgumentError as error:
        # The arguments are right: ctypes came to the end of the stack while it looked at them.
        raise RecursionError("maximum recursion depth exceeded") from error
    return made


@functools.cache
def _new_function() -> Any:
    new = ctypes.pythonapi["PyCFunction_NewEx"]  # an object of our own: others may set its types
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    new.restype = ctypes.py_object
    return new


def _address_of_function(name: str) -> int:
    address = ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value
    assert address is not None
    return address


@functools.cache
def common_words() -> dict[str, int]:
    """The words that are the same for all builtins of this process."""
    words = {name: _address_of_function(name) for name in known.FUNCTIONS}
    objects = {
        "none": None, "array_type": np.ndarray, "float_type": float, "int_type": int,
        "value_error": ValueError, "true": True, "false": False,
    }  # fmt: skip
    return words | {name: id(value) for name, value in objects.items()}


class Caller:
    """Calls a program from Python.

    Args:
        signature: of the program.
        code: from `write_caller`.
        library: holds the machine code of it.
        run: address of ``i32 run(ptr activation)``.
        slow: takes what the user gave and gives what the user gets, or raises; see the module.
        on_status: called as ``on_status(status, activation, args, outputs)`` when the program
            returned other than 0. ``args`` is what the user gave, ``outputs`` the objects made for
            array results; they and the slots stay valid. What it returns is what the user gets.
            Afterwards, and also if it raises, the activation goes back to the pool.
        makers: one for each array result: gives the object for it, a new array in row-major order
            or a holder of one.
        name: of the callable.
        documentation: of the callable.
        holder: the class whose instances are taken in place of arrays.
        keep: what else must live as long as the callable, such as the library of ``run``.

    Attributes:
        function: the callable.
    """

    def __init__(
        self,
        signature: Signature,
        code: CallerCode,
        library: Library,
        run: int,
        slow: Callable[..., Any],
        on_status: Callable[[int, int, tuple[Any, ...], tuple[Any, ...]], Any],
        makers: Sequence[Callable[[], Any]] = (),
        name: str = "program",
        documentation: str = "",
        holder: Holder | None = None,
        keep: Sequence[object] = (),
    ) -> None:
        self._waiting: list[int] = []
        self._words: Table | None = None
        self.function = slow
        if not fast_calls():
            return
        results = len(makers)

        def split(status: int, activation: int, *objects: Any) -> Any:
            return on_status(status, activation, objects[results:], objects[:results])

        words = common_words() | _holder_words(signature, holder)
        words |= {"pool": 0, "run": run, "slow": id(slow), "on_status": id(split)}
        arrays = [(i, a) for i, a in enumerate(signature.arguments) if isinstance(a, Array)]
        words |= {f"dtype{i}": id(array.dtype.numpy) for i, array in arrays}
        outputs = [j for j, result in enumerate(signature.results) if isinstance(result, Array)]
        words |= {f"maker{j}": id(m) for j, m in zip(outputs, makers, strict=True)}
        for j, maker in zip(outputs, makers, strict=True):
            _check_maker(maker(), signature.results[j], holder)
        values = [words[word] for word in signature.words]
        if holder is not None and holder.excluded is not None:
            values += map(id, holder.excluded[1])
        self._words = np.array(values, np.uint64).view(Table)
        kept = (library, slow, split, tuple(makers), holder, tuple(keep))
        address, flags = library.address(code.name), _FASTCALL_KEYWORDS
        self.function = new_builtin(self._words, address, flags, name, documentation, kept)
        self._add, self._take = _ADD(library.address(code.add)), _TAKE(library.address(code.take))

    def add(self, activation: int) -> None:
        """Put an activation, given by its address, into the pool."""
        if self._words is None:
            self._waiting.append(activation)
            return
        self._add(self._words.ctypes.data, activation)

    def take(self) -> int:
        """Take an activation out of the pool; 0 if there is none."""
        if self._words is None:
            return self._waiting.pop() if self._waiting else 0
        return int(self._take(self._words.ctypes.data))


def _holder_words(signature: Signature, holder: Holder | None) -> dict[str, int]:
    if holder is None:
        assert not signature.requirements
        return {"holder_type": 0, "holder_offset": 0}
    words = {"holder_type": id(holder.type), "holder_offset": holder.offset(holder.attribute)}
    assert signature.requirements == len(holder.required)
    for k, (attribute, value) in enumerate(holder.required.items()):
        words[f"required_offset{k}"] = holder.offset(attribute)
        words[f"required_value{k}"] = id(value)
    assert signature.excludes == (holder.excluded is not None)
    if holder.excluded is not None:
        attribute, objects = holder.excluded
        words |= {"excluded_offset": holder.offset(attribute), "excluded_count": len(objects)}
    return words


def _check_maker(made: Any, result: Array | Number, holder: Holder | None) -> None:
    """The code trusts makers, so that they are tried once."""
    assert isinstance(result, Array)
    if holder is not None and type(made) is holder.type:
        made = getattr(made, holder.attribute)
    fits = type(made) is np.ndarray and made.shape == result.shape and made.flags.carray
    assert fits, "maker: expected an array or a holder of one"
    assert made.dtype == result.dtype.numpy, "maker: expected the dtype of the result"


@functools.cache
def _builtin_library(release_gil: bool) -> tuple[Library, str]:
    code = write_builtin(release_gil)
    return link([emit_object(code.text, host_target())]), code.name


def builtin(
    address: int, *, release_gil: bool = False, keep: Sequence[object] = ()
) -> Callable[[int], int]:
    """A callable for ``i32 f(ptr)``: from an address to the function's result.

    It costs less than 100 ns with the GIL held, or 150 ns through ctypes where fast calls are not
    possible.

    Args:
        address: of the function.
        release_gil: whether other Python threads may run meanwhile; costs 30 ns.
        keep: what must live as long as the callable, such as the library.
    """
    if not fast_calls():
        kind = ctypes.CFUNCTYPE if release_gil else ctypes.PYFUNCTYPE
        plain: Any = kind(ctypes.c_int32, ctypes.c_void_p)(address)
        plain.kept = tuple(keep)
        result: Callable[[int], int] = plain
        return result
    library, name = _builtin_library(release_gil)
    common = common_words() | {"run": address}
    words = [common.get(word, 0) for word in known.WORDS]
    table = np.array(words, np.uint64).view(Table)
    code = library.address(name)
    return new_builtin(table, code, _ONE_ARGUMENT, "native", "", (library, *keep))
