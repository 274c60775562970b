"""Puts machine code into memory without LLVM, which takes 30 ms to load.

LLVM makes object files in the format ELF. Those for x86-64 that hold only code and constants, and
refer to each other by whole addresses (`binding` asks for such code), can be copied as they are,
and the addresses filled in. All else is left to LLVM.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_START: Final = b"\x7fELF\x02\x01\x01"
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")
_WORD: Final = struct.Struct("<Q")
_RELOCATABLE, _X86_64 = 1, 62
_CODE_OR_DATA, _SYMBOLS, _RELOCATIONS = 1, 2, 4  # types of sections
_WRITABLE, _IN_MEMORY, _PER_THREAD = 1, 2, 0x400  # flags of them
_WHOLE_ADDRESS: Final = 1
_LOCAL: Final = 0
_NOWHERE, _FIRST_RESERVED = 0, 0xFF00  # numbers of sections that symbols name
_LINE: Final = 64


class Image:
    """Code in memory, for as long as this object lives.

    Attributes:
        names: the addresses of functions and constants that others may use.
    """

    __slots__ = ("_memory", "names")

    def __init__(self, memory: Any, names: dict[str, int]) -> None:
        self._memory = memory
        self.names = names

    def get_function_address(self, name: str) -> int:
        """Where a function begins; 0 if there is none. The name is llvmlite's."""
        return self.names.get(name, 0)


def can_load() -> bool:
    """Whether anything is loaded here."""
    return sys.platform == "linux" and os.uname().machine == "x86_64"


def load(objects: Sequence[bytes], symbols: Mapping[str, int]) -> Image | None:
    """Object files in memory, ready to run; None where that is left to LLVM.

    Args:
        objects: object files.
        symbols: addresses by name, of what is in memory already.
    """
    if not can_load():
        return None
    try:
        return _load([_Object(data) for data in objects], symbols)
    except (_ForLLVM, OSError):
        return None


class _ForLLVM(Exception):
    """A file holds what is not known here."""


@dataclass(frozen=True, slots=True)
class _Section:
    type: int
    flags: int
    offset: int
    size: int
    link: int
    target: int
    alignment: int


class _Object:
    """An object file, taken apart.

    Attributes:
        data: the file.
        placed: the sections that go into memory -> where they lie in the image.
    """

    def __init__(self, data: bytes) -> None:
        start, type, machine, *_, sections, _, _, _, _, size, count, _ = _HEADER.unpack_from(data)
        if not start.startswith(_START) or (type, machine) != (_RELOCATABLE, _X86_64):
            raise _ForLLVM
        self.data = data
        self.sections = [
            _Section(fields[1], fields[2], *fields[4:9])
            for fields in (_SECTION.unpack_from(data, sections + size * k) for k in range(count))
        ]
        self.placed: dict[int, int] = {}
        for number, section in enumerate(self.sections):
            if not section.flags & _IN_MEMORY or not section.size:
                continue
            if section.type != _CODE_OR_DATA or section.flags & (_WRITABLE | _PER_THREAD):
                raise _ForLLVM
            self.placed[number] = 0

    def place(self, end: int) -> int:
        """Choose where the sections lie, from an offset on; where they end."""
        for number in self.placed:
            section = self.sections[number]
            step = max(section.alignment, _LINE)
            self.placed[number] = start = -(-end // step) * step
            end = start + section.size
        return end

    def symbols(self, base: int) -> Iterator[tuple[int, str, bool, int | None]]:
        """Number, name, whether others may use it, and address of what is defined here, or None."""
        for section in self.sections:
            if section.type != _SYMBOLS:
                continue
            names = self.sections[section.link].offset
            for number in range(section.size // _SYMBOL.size):
                place = section.offset + number * _SYMBOL.size
                name, info, _, owner, value, _ = _SYMBOL.unpack_from(self.data, place)
                if owner >= _FIRST_RESERVED or (owner and owner not in self.placed):
                    continue  # the name of the file, or of what stays there
                start = names + name
                text = self.data[start : self.data.index(0, start)].decode()
                address = None if owner == _NOWHERE else base + self.placed[owner] + value
                yield number, text, info >> 4 != _LOCAL, address

    def relocations(self) -> Iterator[tuple[int, int, int]]:
        """Where in the image an address goes, the number of the symbol, and what is added."""
        for section in self.sections:
            if section.type != _RELOCATIONS or section.target not in self.placed:
                continue
            start = self.placed[section.target]
            end = section.offset + section.size
            for offset, info, more in _RELOCATION.iter_unpack(self.data[section.offset : end]):
                if info & 0xFFFFFFFF != _WHOLE_ADDRESS:
                    raise _ForLLVM
                yield start + offset, info >> 32, more


def _load(objects: Sequence[_Object], symbols: Mapping[str, int]) -> Image:
    import mmap  # not everywhere

    end = 0
    for each in objects:
        end = each.place(end)
    memory = mmap.mmap(-1, max(end, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    names: dict[str, int] = {}
    tables = [list(each.symbols(base)) for each in objects]
    for table in tables:
        names |= {name: at for _, name, is_open, at in table if is_open and at is not None}
    for each, table in zip(objects, tables, strict=True):
        for number, start in each.placed.items():
            section = each.sections[number]
            piece = each.data[section.offset : section.offset + section.size]
            memory[start : start + section.size] = piece
        addresses = {
            number: names.get(name, symbols.get(name)) if at is None else at
            for number, name, _, at in table
        }
        for place, number, more in each.relocations():
            address = addresses.get(number)
            if address is None:  # of the system, perhaps
                raise _ForLLVM
            _WORD.pack_into(memory, place, address + more)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    if protect(base, len(memory), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "mprotect")
    return Image(memory, names)
