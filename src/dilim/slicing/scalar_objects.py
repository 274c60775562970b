"""Native code that reads and writes the numbers of `Value` objects.

A model keeps its parameters in Python objects. Reading and writing forty of them in Python costs
more than a whole training step, so that native code does it, with the GIL held: a `Value` keeps its
attributes in slots, at fixed offsets, and a float its number behind a header of 16 bytes.
"""

from __future__ import annotations

import ctypes
from typing import Final

from dilim.backends.llvm.calls import Holder
from dilim.backends.llvm.code import METADATA, Code
from dilim.scalar.value import Value

READ: Final = "read_values"
WRITE: Final = "write_values"
_HEADER: Final = 16


def write_access() -> str:
    """The LLVM module of both functions.

    ``i32 read_values(ptr objects, i64 count, ptr data, ptr float_type)``: 1 where some ``data`` is
    no float. ``i32 write_values(ptr objects, i64 count, ptr data, ptr gradients, ptr float_type,
    ptr true)`` sets ``data``, ``grad`` and ``has_grad``.
    """
    holder = Holder(Value, "data")
    data, grad, flag = (holder.offset(name) for name in ("data", "grad", "has_grad"))
    return "\n".join(
        [
            "declare ptr @PyFloat_FromDouble(double)",
            "declare void @Py_IncRef(ptr)",
            "declare void @Py_DecRef(ptr)",
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


def _reading(data: int) -> str:
    code = Code()

    def turn(index: str | int, _: list[str]) -> list[str]:
        value = code.let(f"load ptr, ptr {_item(code, 'ptr', '%objects', index)}")
        number = code.let(f"load ptr, ptr {_at(code, value, data)}")
        kind = code.let(f"load ptr, ptr {_at(code, number, 8)}")
        other = code.let(f"icmp ne ptr {kind}, %float_type")
        code.leave(other, lambda: "1")
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
    names = ("PyFloat_FromDouble", "Py_IncRef", "Py_DecRef")
    addresses = {}
    for name in names:
        addresses[name] = int(ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value or 0)
    return addresses
