"""Python builtins that make objects around new arrays, and that see whether objects are unchanged.

What a `Form` describes is made as its ``__init__`` would, several times as fast. What a `Watch`
looks at are words of memory: the attributes in the slots of an object, the items of a list, and
the version that CPython 3.11 to 3.13 keep of each dict for guards like these (PEP 509).

Like all builtins of `dilim.backends.llvm.calls`, these find what they need in a table; their code
is the same in each process. They exist only where `calls.fast_calls` says so.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CellType
from typing import Any, Final

import numpy as np

from dilim.backends.llvm import calls_signature as known
from dilim.backends.llvm.binding import Library, link
from dilim.backends.llvm.calls import Table, common_words, fast_calls, new_builtin, slot_offset
from dilim.backends.llvm.calls_signature import CallerCode
from dilim.backends.llvm.calls_writer import ATTRIBUTES, Writer, named
from dilim.dtypes import DType
from dilim.shapes import Shape

_FASTCALL: Final = 0x0080
_NO_ARGUMENTS: Final = 0x0004


@dataclass(frozen=True, slots=True)
class Form:
    """How an instance of a class with ``__slots__`` is made around a new array.

    Attributes:
        type: the class.
        fixed: attributes that are always these objects.
        current: attributes that are what the first item of a list is at the time.
        array: the attribute that is the array.
        inner: an attribute that is a new object around the same array, and the form of that.
    """

    type: type
    fixed: Mapping[str, object]
    array: str
    current: Mapping[str, list[Any]] = field(default_factory=dict)
    inner: tuple[str, Form] | None = None

    def words(self) -> Iterator[tuple[str, int]]:
        """The words of the table for this form, in order."""
        yield "type", id(self.type)
        for kind, values in (("fixed", self.fixed), ("current", self.current)):
            for attribute, value in values.items():
                yield f"{kind} offset", slot_offset(self.type, attribute)
                yield f"{kind} value", id(value)
        yield "array offset", slot_offset(self.type, self.array)
        if self.inner is not None:
            yield "inner offset", slot_offset(self.type, self.inner[0])
            yield from self.inner[1].words()


def maker(
    form: Form, shape: Shape, dtype: DType, make: Callable[[str], bytes]
) -> Callable[..., Any]:
    """A builtin that makes an object around a new array.

    Args:
        form: of the object.
        shape: of the array.
        dtype: of the array.
        make: makes an object file of an LLVM module.

    Returns:
        A function without arguments; or with one: an array of the same type in row-major order,
        whose elements are copied. The array is not looked at.
    """
    words = list(form.words())
    library, name = _maker_library(tuple(kind for kind, _ in words), make)
    parts = {"empty": np.empty, "copy": np.ndarray.copy, "shape": shape, "dtype": dtype.numpy}
    head = common_words() | {name: id(part) for name, part in parts.items()}
    values = [*(head[word] for word in _HEAD), *(value for _, value in words)]
    table = np.array(values, np.uint64).view(Table)
    return new_builtin(table, library.address(name), _FASTCALL, "make", "", (library, form, parts))


_HEAD: Final = ("empty", "copy", "shape", "dtype", *known.FUNCTIONS)


@functools.cache
def _maker_library(kinds: tuple[str, ...], make: Callable[[str], bytes]) -> tuple[Library, str]:
    code = _write_maker(kinds)
    return link([make(code.text)]), code.name


def _write_maker(kinds: Sequence[str]) -> CallerCode:
    """The code for forms whose words are of these kinds."""
    writer = Writer(_HEAD)
    writer.label("entry")
    writer.do("%objects = alloca [3 x ptr]")
    writer.do(f"%table = load ptr, ptr {writer.at('%self', known.DATA)}")
    array = _write_array(writer)
    made = [array]
    for number, kind in enumerate(kinds):
        if kind == "type":
            type_ = writer.load("ptr", "%table", 8 * (len(_HEAD) + number))
            new = writer.call("ptr", "PyType_GenericAlloc", f"ptr {type_}", "i64 0")
            writer.need(writer.let(f"icmp ne ptr {new}, null"), f"lost{len(made)}")
            made.append(new)
    owner, offset = 0, ""
    for place, kind in enumerate(kinds, len(_HEAD)):
        value = writer.load("i64" if kind.endswith("offset") else "ptr", "%table", 8 * place)
        match kind:
            case "type":
                owner += 1
            case "array offset":
                _fill(writer, made[owner], value, array)
            case "inner offset":  # the only reference goes with it
                writer.do(f"store ptr {made[owner + 1]}, ptr {writer.at(made[owner], value)}")
            case "fixed value":
                _fill(writer, made[owner], offset, value)
            case "current value":
                item = writer.call("ptr", "PyList_GetItem", f"ptr {value}", "i64 0")
                _fill(writer, made[owner], offset, item)
            case _:
                offset = value
    writer.call("void", "Py_DecRef", f"ptr {array}")
    writer.do(f"ret ptr {made[1]}")
    for number in range(len(made)):
        writer.label(f"lost{number}")
        for each in made[:number]:
            writer.call("void", "Py_DecRef", f"ptr {each}")
        writer.do("ret ptr null")
    head = "define ptr @NAME(ptr %self, ptr %args, i64 %count) #0 {"
    return named("maker", "\n".join([head, *writer.lines, "}", ATTRIBUTES, ""]))


def _write_array(writer: Writer) -> str:
    """``empty(shape, dtype)``, or ``copy(argument)`` where there is one."""
    arguments = writer.at("%objects", 8)  # the call may use the word before
    results = []
    writer.branch(writer.let("icmp eq i64 %count, 0"), "empty", "copy")
    for function, count in (("empty", 2), ("copy", 1)):
        writer.label(function)
        given = [writer.word("shape"), writer.word("dtype")]
        for place, item in enumerate(given if count == 2 else [writer.load("ptr", "%args")]):
            writer.do(f"store ptr {item}, ptr {writer.at(arguments, 8 * place)}")
        flags = f"i64 {count - (1 << 63)}"
        called = f"ptr {writer.word(function)}", f"ptr {arguments}", flags, "ptr null"
        results.append(writer.call("ptr", "PyObject_Vectorcall", *called))
        writer.do("br label %made")
    writer.label("made")
    array = writer.let(f"phi ptr [ {results[0]}, %empty ], [ {results[1]}, %copy ]")
    writer.need(writer.let(f"icmp ne ptr {array}, null"), "lost0")
    return array


def _fill(writer: Writer, owner: str, offset: str, value: str) -> None:
    writer.call("void", "Py_IncRef", f"ptr {value}")
    writer.do(f"store ptr {value}, ptr {writer.at(owner, offset)}")


# --- seeing whether objects are unchanged ---------------------------------------------------


class Watch:
    """Sees whether words of memory are still what they were.

    Collect all that is to be looked at, then call `begin`.

    Args:
        make: makes an object file of an LLVM module.

    Attributes:
        same: says whether all is as it was; a builtin.
        renew: takes the dicts as they are now; a builtin.
    """

    same: Callable[[], bool]
    renew: Callable[[], object]

    def __init__(self, make: Callable[[str], bytes]) -> None:
        self._make = make
        self._dicts: list[tuple[int, int]] = []
        self._others: list[tuple[int, int]] = []
        self._places: list[int] = []
        self._kept: list[object] = []

    def slot(self, owner: Any, attribute: str) -> None:
        """Look at which object is in an attribute with a slot."""
        kind: Any = owner.__class__
        self._others.append(self._pair(owner, slot_offset(kind, attribute)))
        self._kept.append(getattr(owner, attribute))

    def cell(self, cell: CellType) -> None:
        """Look at what a closure cell holds."""
        self._others.append(self._pair(cell, known.CELL_CONTENTS))
        self._kept.append(cell.cell_contents)

    def items(self, items: list[Any]) -> None:
        """Look at the items of a list."""
        self._others.append(self._pair(items, known.LIST_SIZE))
        place, first = self._pair(items, known.LIST_ITEMS)
        self._others.append((place, first))  # as long as it is there, its items can be looked at
        self._others += [(first + 8 * k, id(item)) for k, item in enumerate(items)]
        self._kept += items

    def table(self, table: dict[Any, Any]) -> None:
        """Look whether a dict is changed in any way."""
        self._dicts.append(self._pair(table, known.DICT_VERSION))

    def whole(self, owner: Any) -> None:
        """Look at all of an object without parts elsewhere, and at the number of references to it.

        It is compared with what it is at `begin`, and it has to be kept alive by somebody else.
        """
        self._places += range(id(owner), id(owner) + type(owner).__basicsize__, 8)
        if isinstance(owner, np.ndarray):
            sizes = _word(id(owner) + known.SIZES)  # and strides
            self._places += range(sizes, sizes + 16 * owner.ndim, 8)

    def begin(self) -> None:
        """Make the builtins."""
        library, name = _watch_library(self._make)
        self._others += [(place, _word(place)) for place in self._places]
        pairs = self._dicts + self._others
        words = [common_words()[word] for word in known.FUNCTIONS]
        words += [len(self._dicts), len(pairs), *(word for pair in pairs for word in pair)]
        table = np.array(words, np.uint64).view(Table)
        kept = library, tuple(self._kept)
        for function, code in (("same", name), ("renew", f"{name}_renew")):
            # Each has its own view: it keeps the description of one builtin alive.
            address = library.address(code)
            made = new_builtin(table.view(), address, _NO_ARGUMENTS, function, "", kept)
            setattr(self, function, made)

    def _pair(self, owner: object, offset: int) -> tuple[int, int]:
        """The address of a word of an object, and what it is."""
        self._kept.append(owner)
        address = id(owner) + offset
        return address, _word(address)


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


@functools.cache
def can_watch() -> bool:
    """Whether this Python lays out lists and dicts as a `Watch` expects it."""
    return (
        fast_calls()
        and _lists_are_as_expected()
        and _dicts_are_as_expected()
        and _cells_are_as_expected()
    )


def _cells_are_as_expected() -> bool:
    content = object()
    cell = CellType(content)
    return sys.getsizeof(cell) >= known.CELL_CONTENTS + 8 and (
        _word(id(cell) + known.CELL_CONTENTS) == id(content)
    )


def _lists_are_as_expected() -> bool:
    items: list[object] = [object(), object(), object()]
    first = ctypes.c_size_t.from_address(id(items) + known.LIST_ITEMS).value
    size = ctypes.c_ssize_t.from_address(id(items) + known.LIST_SIZE).value
    if size != 3 or not first or sys.getsizeof(items) < known.LIST_ITEMS + 8:
        return False
    return list((ctypes.c_size_t * 3).from_address(first)) == list(map(id, items))


def _dicts_are_as_expected() -> bool:
    """Whether each way to change a dict gives it another version, and looking does not."""
    if sys.getsizeof({}) < known.DICT_VERSION + 8:
        return False

    class Plain:
        pass

    owner: Any = Plain()
    table = vars(owner)
    version = ctypes.c_uint64.from_address(id(table) + known.DICT_VERSION)
    changes: list[Callable[[], object]] = [
        lambda: setattr(owner, "a", 1),
        lambda: setattr(owner, "a", 2),
        lambda: table.update(b=3),
        lambda: table.__setitem__("b", 4),
        lambda: table.setdefault("c", 5),
        lambda: delattr(owner, "a"),
        lambda: table.pop("b"),
        lambda: table.clear(),
        lambda: object.__setattr__(owner, "a", 6),
    ]
    seen = [version.value]
    for change in changes:
        change()
        seen.append(version.value)
        table.get("a")
        if version.value != seen[-1]:
            return False
    return len(set(seen)) == len(seen)


@functools.cache
def _watch_library(make: Callable[[str], bytes]) -> tuple[Library, str]:
    code = _write_watch()
    return link([make(code.text)]), code.name


_WATCH: Final = (*known.FUNCTIONS, "dicts", "count", "pairs")


def _write_watch() -> CallerCode:
    return named("watch", "\n".join([_write_same(), "", _write_renew(), "", ATTRIBUTES, ""]))


def _write_same() -> str:
    writer = Writer(_WATCH)
    pair = _begin_pairs(writer, "count")
    now = writer.load("i64", writer.load("ptr", pair))
    is_same = writer.let(f"icmp eq i64 {now}, {writer.load('i64', pair, 8)}")
    writer.branch(is_same, "next", "done")
    _end_pairs(writer)
    writer.do("%answer = phi i64 [ 1, %head ], [ 0, %pair ]")
    writer.do(f"ret ptr {writer.call('ptr', 'PyBool_FromLong', 'i64 %answer')}")
    return _function("@NAME", writer)


def _write_renew() -> str:
    writer = Writer(_WATCH)
    pair = _begin_pairs(writer, "dicts")
    now = writer.load("i64", writer.load("ptr", pair))
    writer.do(f"store i64 {now}, ptr {writer.at(pair, 8)}")
    writer.do("br label %next")
    _end_pairs(writer)
    writer.do(f"ret ptr {writer.call('ptr', 'PyBool_FromLong', 'i64 1')}")
    return _function("@NAME_renew", writer)


def _begin_pairs(writer: Writer, count: str) -> str:
    """Begin a loop over the first pairs; where one of them is."""
    writer.label("entry")
    writer.do(f"%table = load ptr, ptr {writer.at('%self', known.DATA)}")
    pairs, size = writer.at("%table", 8 * _WATCH.index("pairs")), writer.word(count, "i64")
    writer.do("br label %head")
    writer.label("head")
    writer.do("%number = phi i64 [ 0, %entry ], [ %after, %next ]")
    writer.branch(writer.let(f"icmp ult i64 %number, {size}"), "pair", "done")
    writer.label("pair")
    writer.do("%after = add nuw nsw i64 %number, 1")
    return writer.at(pairs, writer.let("shl nuw nsw i64 %number, 4"))


def _end_pairs(writer: Writer) -> None:
    writer.label("next")
    writer.do("br label %head")
    writer.label("done")


def _function(name: str, writer: Writer) -> str:
    head = f"define ptr {name}(ptr %self, ptr %nothing) #0 {{"
    return "\n".join([head, *writer.lines, "}"])
