"""Native code that reads and writes the numbers of `Value` objects, and looks who they are.

A model keeps its parameters in Python objects. Reading and writing forty of them in Python costs
more than a whole training step, and so does a look whether they are still the same forty. Native
code does it, with the GIL held: a `Value` keeps its attributes in slots, at fixed offsets, and a
float its number behind a header of 16 bytes.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Final

from dilim.backends.llvm.calls import Holder
from dilim.backends.llvm.code import METADATA, Code
from dilim.scalar.value import Value

LOOK: Final = "look_for_changes"
READ: Final = "read_values"
WRITE: Final = "write_values"
_HEADER: Final = 16


class Status(IntEnum):
    """Why a native function did nothing."""

    NO_FLOAT = 1
    """The number of some parameter is no float."""
    CHANGED = 2
    """Some attribute is another object, or some list has other items."""


class Row(IntEnum):
    """Positions of 8-byte words in what is known of an attribute."""

    OWNER = 0
    NAME = 1
    VALUE = 2
    """The object that the attribute was."""
    ITEMS = 3
    """Address of the addresses of the list's items."""
    COUNT = 4
    """Of the list's items; -1 where the value is no list."""
    SIZE = 5


def write_access() -> str:
    """The LLVM module of the three functions.

    ``i32 look_for_changes(ptr rows, i64 count)``: CHANGED where something is not as a `Row` says.
    ``i32 read_values(ptr objects, i64 count, ptr data, ptr float_type)``: NO_FLOAT where some
    ``data`` is no float. ``i32 write_values(ptr objects, i64 count, ptr data, ptr gradients, ptr
    float_type, ptr true)`` sets ``data``, ``grad`` and ``has_grad``.
    """
    holder = Holder(Value, "data")
    data, grad, flag = (holder.offset(name) for name in ("data", "grad", "has_grad"))
    return "\n".join(
        [
            "declare void @PyErr_Clear()",
            "declare ptr @PyFloat_FromDouble(double)",
            "declare ptr @PyList_GetItem(ptr, i64)",
            "declare i64 @PyList_Size(ptr)",
            "declare ptr @PyObject_GetAttr(ptr, ptr)",
            "declare void @Py_IncRef(ptr)",
            "declare void @Py_DecRef(ptr)",
            _looking(),
            _reading(data),
            _writing(data, grad, flag),
            'attributes #0 = { nounwind "no-builtins" }',
            METADATA,
            "",
        ]
    )


def _at(code: Code, base: str, offset: str | int) -> str:
    return code.let(f"getelementptr i8, ptr {base}, i64 {offset}")


def _item(code: Code, kind: str, base: str, index: str | int) -> str:
    return code.let(f"getelementptr {kind}, ptr {base}, i64 {index}")


def _looking() -> str:
    code = Code()
    changed = str(int(Status.CHANGED))

    def failed() -> str:
        code.do("call void @PyErr_Clear()")
        return changed

    def turn(index: str | int, _: list[str]) -> list[str]:
        start = code.let(f"mul i64 {index}, {8 * Row.SIZE}")
        row = _at(code, "%rows", start)
        owner, name, value, items = (
            code.let(f"load ptr, ptr {_at(code, row, 8 * word)}")
            for word in (Row.OWNER, Row.NAME, Row.VALUE, Row.ITEMS)
        )
        found = code.let(f"call ptr @PyObject_GetAttr(ptr {owner}, ptr {name})")
        code.leave(code.let(f"icmp eq ptr {found}, null"), failed)
        code.do(f"call void @Py_DecRef(ptr {found})")
        code.leave(code.let(f"icmp ne ptr {found}, {value}"), lambda: changed)
        count = code.let(f"load i64, ptr {_at(code, row, 8 * Row.COUNT)}")

        def look_inside() -> None:
            size = code.let(f"call i64 @PyList_Size(ptr {value})")
            code.leave(code.let(f"icmp ne i64 {size}, {count}"), lambda: changed)
            code.loop(0, count, 1, same_item)

        def same_item(place: str | int, _: list[str]) -> list[str]:
            item = code.let(f"call ptr @PyList_GetItem(ptr {value}, i64 {place})")
            known = code.let(f"load ptr, ptr {_item(code, 'ptr', items, place)}")
            code.leave(code.let(f"icmp ne ptr {item}, {known}"), lambda: changed)
            return []

        code.branch(code.let(f"icmp sge i64 {count}, 0"), look_inside)
        return []

    code.loop(0, "%count", 1, turn)
    head = f"define i32 @{LOOK}(ptr %rows, i64 %count) #0 {{"
    return "\n".join([head, *code.lines(), "  ret i32 0", "}"])


def _reading(data: int) -> str:
    code = Code()

    def turn(index: str | int, _: list[str]) -> list[str]:
        value = code.let(f"load ptr, ptr {_item(code, 'ptr', '%objects', index)}")
        number = code.let(f"load ptr, ptr {_at(code, value, data)}")
        kind = code.let(f"load ptr, ptr {_at(code, number, 8)}")
        other = code.let(f"icmp ne ptr {kind}, %float_type")
        code.leave(other, lambda: str(int(Status.NO_FLOAT)))
        found = code.let(f"load double, ptr {_at(code, number, _HEADER)}")
        code.do(f"store double {found}, ptr {_item(code, 'double', '%data', index)}")
        return []

    code.loop(0, "%count", 1, turn)
    head = f"define i32 @{READ}(ptr %objects, i64 %count, ptr %data, ptr %float_type) #0 {{"
    return "\n".join([head, *code.lines(), "  ret i32 0", "}"])


def _set_number(code: Code, value: str, offset: int, number: str) -> None:
    """Change the float if nobody else has it, else replace it."""
    slot = _at(code, value, offset)
    old = code.let(f"load ptr, ptr {slot}")
    count = code.let(f"load i64, ptr {old}")
    kind = code.let(f"load ptr, ptr {_at(code, old, 8)}")
    alone = code.let(f"icmp eq i64 {count}, 1")
    plain = code.let(f"icmp eq ptr {kind}, %float_type")
    own = code.let(f"and i1 {alone}, {plain}")
    shared = code.let(f"xor i1 {own}, true")
    at = _at(code, old, _HEADER)

    def change() -> None:
        code.do(f"store double {number}, ptr {at}")

    def replace() -> None:
        new = code.let(f"call ptr @PyFloat_FromDouble(double {number})")
        code.do(f"store ptr {new}, ptr {slot}")
        code.do(f"call void @Py_DecRef(ptr {old})")

    code.branch(own, change)
    code.branch(shared, replace)


def _writing(data: int, grad: int, flag: int) -> str:
    code = Code()

    def turn(index: str | int, _: list[str]) -> list[str]:
        value = code.let(f"load ptr, ptr {_item(code, 'ptr', '%objects', index)}")
        for base, offset in (("%data", data), ("%gradients", grad)):
            number = code.let(f"load double, ptr {_item(code, 'double', base, index)}")
            _set_number(code, value, offset, number)
        slot = _at(code, value, flag)
        old = code.let(f"load ptr, ptr {slot}")

        def raise_flag() -> None:
            code.do("call void @Py_IncRef(ptr %true)")
            code.do(f"store ptr %true, ptr {slot}")
            code.do(f"call void @Py_DecRef(ptr {old})")

        code.branch(code.let(f"icmp ne ptr {old}, %true"), raise_flag)
        return []

    code.loop(0, "%count", 1, turn)
    head = (
        f"define i32 @{WRITE}(ptr %objects, i64 %count, ptr %data, ptr %gradients, "
        "ptr %float_type, ptr %true) #0 {"
    )
    return "\n".join([head, *code.lines(), "  ret i32 0", "}"])


def python_symbols() -> dict[str, int]:
    """Addresses of the functions of Python that the code calls."""
    names = (
        *("PyErr_Clear", "PyFloat_FromDouble", "PyList_GetItem", "PyList_Size"),
        *("PyObject_GetAttr", "Py_IncRef", "Py_DecRef"),
    )
    addresses = {}
    for name in names:
        addresses[name] = int(ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value or 0)
    return addresses
