"""What the code of Python builtins knows: Python's objects, arrays, and a program's signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dilim.dtypes import DType
from dilim.shapes import Shape

HEADER: Final = 16
"""Bytes at the start of every Python object; its type is in the last 8 of them."""
TYPE: Final = 8
# PyArrayObject_fields of numpy/ndarraytypes.h: part of NumPy's binary interface, since its macros
# compile these offsets into every extension module.
DATA: Final = HEADER
RANK: Final = HEADER + 8
SIZES: Final = HEADER + 16
DESCRIPTION: Final = HEADER + 40
FLAGS: Final = HEADER + 48
C_CONTIGUOUS: Final = 0x1
ALIGNED: Final = 0x100
WRITEABLE: Final = 0x400
# PyCellObject, PyListObject and PyDictObject; dicts have a version until CPython 3.13 (PEP 509).
LIST_SIZE: Final = HEADER
LIST_ITEMS: Final = HEADER + 8
DICT_VERSION: Final = HEADER + 8
CELL_CONTENTS: Final = HEADER

FUNCTIONS: Final = (
    *("Py_IncRef", "Py_DecRef", "PyObject_Vectorcall", "PyObject_CallNoArgs"),
    *("PyTuple_New", "PyTuple_SetItem", "PyLong_FromLongLong", "PyLong_FromUnsignedLongLong"),
    *("PyFloat_FromDouble", "PyBool_FromLong", "PyLong_AsLongLongAndOverflow"),
    *("PyFloat_AsDouble", "PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_AsVoidPtr"),
    *("PyErr_Occurred", "PyErr_SetString", "PyType_GenericAlloc", "PyList_GetItem"),
)
"""Functions of Python's C interface that the code calls."""
OBJECTS: Final = (
    *("slow", "on_status", "array_type", "float_type", "int_type", "value_error"),
    *("none", "true", "false"),
)
"""Python objects that the code knows, by the name of their word."""
WORDS: Final = ("pool", "run", "holder_type", "holder_offset", *OBJECTS, *FUNCTIONS)
"""Names of the first words; those of each signature follow."""


@dataclass(frozen=True, slots=True)
class Array:
    """An argument or result that is an array; its address is stored in a slot.

    Attributes:
        dtype: of its elements.
        shape: its sizes.
        slot: number of the slot.
        written: whether the program writes to it, for arguments.
    """

    dtype: DType
    shape: Shape
    slot: int
    written: bool = False


@dataclass(frozen=True, slots=True)
class Number:
    """An argument or result that is a Python number; it is at the address that a slot holds.

    Attributes:
        dtype: how it is stored. An argument must be exactly a bool, int or float accordingly.
        slot: number of the slot.
    """

    dtype: DType
    slot: int


@dataclass(frozen=True, slots=True)
class Signature:
    """What a program takes and gives, and where that lies in an activation.

    Attributes:
        arguments: in order.
        results: in order.
        link_offset: byte offset of 8 bytes of an activation that belong to the pool.
        slots_offset: byte offset of the first slot; slots are pointers.
        single: whether the only result is returned itself, not in a tuple.
        release_gil: whether other Python threads may run meanwhile; costs 30 ns.
        requirements: number of attributes of a holder that are compared.
        bare: whether arguments may be arrays without a holder.
        excludes: whether an attribute of a holder must be none of some objects.
    """

    arguments: tuple[Array | Number, ...]
    results: tuple[Array | Number, ...]
    link_offset: int
    slots_offset: int
    single: bool = True
    release_gil: bool = False
    requirements: int = 0
    bare: bool = True
    excludes: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """Names of the words of the table."""
        names = list(WORDS)
        names += [f"dtype{i}" for i, a in enumerate(self.arguments) if isinstance(a, Array)]
        names += [f"maker{j}" for j, r in enumerate(self.results) if isinstance(r, Array)]
        for k in range(self.requirements):
            names += [f"required_offset{k}", f"required_value{k}"]
        if self.excludes:  # their addresses follow
            names += ["excluded_offset", "excluded_count"]
        return tuple(names)


@dataclass(frozen=True, slots=True)
class CallerCode:
    """The code of a builtin.

    Attributes:
        name: of its function.
        text: an LLVM module.
    """

    name: str
    text: str

    @property
    def add(self) -> str:
        """Name of ``void (table, activation)``, which puts an activation into the pool."""
        return f"{self.name}_add"

    @property
    def take(self) -> str:
        """Name of ``activation (table)``, which takes one out; 0 if there is none."""
        return f"{self.name}_take"
