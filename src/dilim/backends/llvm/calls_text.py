"""Writes the code of Python builtins that call native programs: see `dilim.backends.llvm.calls`.

The text holds no addresses. All that differs from process to process is in a table of 8-byte words,
the data of the NumPy array that is the ``self`` of the builtin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dilim import dtypes
from dilim.backends.llvm import calls_signature as known
from dilim.backends.llvm.calls_signature import Array, CallerCode, Number, Signature
from dilim.backends.llvm.calls_writer import ATTRIBUTES, Writer, named
from dilim.dtypes import DType

_REGISTER: Final = {
    dtype: {"bool": "i1", "float": "float"}.get(dtype.kind, f"i{8 * dtype.itemsize}")
    for dtype in dtypes.ALL
} | {dtypes.float64: "double"}

_POOL: Final = """
define void @NAME_add(ptr %table, ptr %activation) #0 {
  %first = load ptr, ptr %table
  %link = getelementptr i8, ptr %activation, i64 LINK
  store ptr %first, ptr %link
  store ptr %activation, ptr %table
  ret void
}

define ptr @NAME_take(ptr %table) #0 {
  %first = load ptr, ptr %table
  %empty = icmp eq ptr %first, null
  br i1 %empty, label %done, label %some
some:
  %link = getelementptr i8, ptr %first, i64 LINK
  %next = load ptr, ptr %link
  store ptr %next, ptr %table
  br label %done
done:
  ret ptr %first
}
"""


_AMONG: Final = """
define internal i1 @NAME_among(ptr %words, i64 %count, i64 %value) #0 {
entry:
  br label %head
head:
  %number = phi i64 [ 0, %entry ], [ %after, %next ]
  %left = icmp ult i64 %number, %count
  br i1 %left, label %next, label %done
next:
  %after = add nuw nsw i64 %number, 1
  %place = getelementptr i64, ptr %words, i64 %number
  %word = load i64, ptr %place
  %same = icmp eq i64 %word, %value
  br i1 %same, label %done, label %head
done:
  ret i1 %left
}
"""


def write_caller(signature: Signature) -> CallerCode:
    """The code of the builtin for a signature; it depends on nothing else."""
    pool = _POOL.replace("LINK", str(signature.link_offset))
    return named("caller", _CallerWriter(signature).text() + pool)


def write_builtin(release_gil: bool) -> CallerCode:
    """The code of a builtin from an address to what ``i32 run(ptr)`` returns for it."""
    writer = Writer(known.WORDS)
    writer.label("entry")
    writer.do(f"%table = load ptr, ptr {writer.at('%self', known.DATA)}")
    address = writer.call("ptr", "PyLong_AsVoidPtr", "ptr %argument")
    writer.need(writer.let(f"icmp ne ptr {address}, null"), "failed")
    state = writer.call("ptr", "PyEval_SaveThread") if release_gil else ""
    status = writer.let(f"call i32 {writer.word('run')}(ptr {address})")
    if state:
        writer.call("void", "PyEval_RestoreThread", f"ptr {state}")
    wide = writer.let(f"sext i32 {status} to i64")
    writer.do(f"ret ptr {writer.call('ptr', 'PyLong_FromLongLong', f'i64 {wide}')}")
    writer.label("failed")
    writer.need_equal("ptr", writer.call("ptr", "PyErr_Occurred"), "null", "raised")
    writer.call("void", "PyErr_SetString", f"ptr {writer.word('value_error')}", "ptr @message")
    writer.do("br label %raised")
    writer.label("raised")
    writer.do("ret ptr null")
    head = "define ptr @NAME(ptr %self, ptr %argument) #0 {"
    message = "native: expected the address of an activation, received 0"
    constant = f'@message = private constant [{len(message) + 1} x i8] c"{message}\\00"'
    return named("builtin", "\n".join([constant, "", head, *writer.lines, "}", ATTRIBUTES]))


class _CallerWriter(Writer):
    def __init__(self, signature: Signature) -> None:
        super().__init__(signature.words)
        self._signature = signature
        arrays = sum(isinstance(result, Array) for result in signature.results)
        self._objects = 2 + arrays + len(signature.arguments)
        self._made: list[str] = []  # objects for array results
        self._held: list[str] = []  # arrays of arguments
        # What to store once all is checked: type, value, base and offset.
        self._stores: list[tuple[str, str, str, int]] = []

    def text(self) -> str:
        """The module."""
        signature = self._signature
        head = "define ptr @NAME(ptr %self, ptr %args, i64 %count, ptr %names) #0 {"
        self.label("entry")
        self.do("%overflow = alloca i32")
        self.do(f"%objects = alloca [{self._objects} x ptr]")
        self.do(f"%table = load ptr, ptr {self.at('%self', known.DATA)}")
        self.need_equal("ptr", "%names", "null", "slow")
        self.need_equal("i64", "%count", len(signature.arguments), "slow")
        self.do("%activation = load ptr, ptr %table  ; the first word is the pool")
        self.need(self.let("icmp ne ptr %activation, null"), "slow")
        self.set_word("pool", self.load("ptr", "%activation", signature.link_offset))
        self._make_results()
        for i, argument in enumerate(signature.arguments):
            given = self.load("ptr", "%args", 8 * i)
            if isinstance(argument, Array):
                self._check_array(i, given, argument)
            else:
                self._check_number(given, argument)
        self._run()
        self._finish()
        self._write_exits()
        among = _AMONG if signature.excludes else ""
        return "\n".join([head, *self.lines, "}", among, ATTRIBUTES, ""])

    # --- before the run -------------------------------------------------------------------

    def _slot(self, number: int) -> int:
        return self._signature.slots_offset + 8 * number

    def _set_slot(self, array: Array, address: str) -> None:
        self._stores.append(("ptr", address, "%activation", self._slot(array.slot)))

    def _make_results(self) -> None:
        """New objects for the array results. First, since this may run any Python code."""
        for j, result in enumerate(self._signature.results):
            if isinstance(result, Array):
                made = self.call("ptr", "PyObject_CallNoArgs", f"ptr {self.word(f'maker{j}')}")
                self.need(self.let(f"icmp ne ptr {made}, null"), f"unmake{len(self._made)}")
                self._made.append(made)
                self._set_slot(result, self._data_of_made(made))

    def _data_of_made(self, made: str) -> str:
        kind = self.load("ptr", made, known.TYPE)
        plain = self.let(f"icmp eq ptr {kind}, {self.word('array_type')}")
        # A maker was seen to give an array or a holder, so that one load suffices; for an array
        # the load is of its own header.
        offset = self.let(f"select i1 {plain}, i64 0, i64 {self.word('holder_offset', 'i64')}")
        inner = self.load("ptr", made, offset)
        array = self.let(f"select i1 {plain}, ptr {made}, ptr {inner}")
        return self.load("ptr", array, known.DATA)

    def _check_array(self, number: int, given: str, argument: Array) -> None:
        array_type = self.word("array_type")
        kind = self.load("ptr", given, known.TYPE)
        if not self._signature.bare:
            array = self._array_of_holder(given, kind)
            self._take_array(number, array, argument)
            return
        plain, holder, both = (f"{name}{number}" for name in ("plain", "holder", "both"))
        self.branch(self.let(f"icmp eq ptr {kind}, {array_type}"), plain, holder)
        self.label(holder)
        inner = self._array_of_holder(given, kind)
        self.do(f"br label %{both}")
        source = self.block
        self.label(plain)
        self.do(f"br label %{both}")
        self.label(both)
        array = self.let(f"phi ptr [ {given}, %{plain} ], [ {inner}, %{source} ]")
        self._take_array(number, array, argument)

    def _array_of_holder(self, given: str, kind: str) -> str:
        """The array in an argument of this class."""
        self.need_equal("ptr", kind, self.word("holder_type"), "back")
        for k in range(self._signature.requirements):
            value = self.load("ptr", given, self.word(f"required_offset{k}", "i64"))
            self.need_equal("ptr", value, self.word(f"required_value{k}"), "back")
        if self._signature.excludes:
            value = self.load("i64", given, self.word("excluded_offset", "i64"))
            first = self.at("%table", 8 * len(self._signature.words))
            count = self.word("excluded_count", "i64")
            among = self.let(f"call i1 @NAME_among(ptr {first}, i64 {count}, i64 {value})")
            self.need(self.let(f"xor i1 {among}, true"), "back")
        inner = self.load("ptr", given, self.word("holder_offset", "i64"))
        self.need(self.let(f"icmp ne ptr {inner}, null"), "back")
        kind = self.load("ptr", inner, known.TYPE)
        self.need_equal("ptr", kind, self.word("array_type"), "back")
        return inner

    def _take_array(self, number: int, array: str, argument: Array) -> None:
        self._check_layout(number, array, argument)
        self._held.append(array)
        self._set_slot(argument, self.load("ptr", array, known.DATA))

    def _check_layout(self, number: int, array: str, argument: Array) -> None:
        description = self.load("ptr", array, known.DESCRIPTION)
        self.need_equal("ptr", description, self.word(f"dtype{number}"), "back")
        self.need_equal("i32", self.load("i32", array, known.RANK), len(argument.shape), "back")
        if argument.shape:
            sizes = self.load("ptr", array, known.SIZES)
            for axis, size in enumerate(argument.shape):
                self.need_equal("i64", self.load("i64", sizes, 8 * axis), size, "back")
        wanted = known.C_CONTIGUOUS | known.ALIGNED | (known.WRITEABLE if argument.written else 0)
        flags = self.let(f"and i32 {self.load('i32', array, known.FLAGS)}, {wanted}")
        self.need_equal("i32", flags, wanted, "back")

    def _check_number(self, given: str, argument: Number) -> None:
        register = _REGISTER[argument.dtype]
        if argument.dtype.kind == "bool":
            is_true = self.let(f"icmp eq ptr {given}, {self.word('true')}")
            is_false = self.let(f"icmp eq ptr {given}, {self.word('false')}")
            self.need(self.let(f"or i1 {is_true}, {is_false}"), "back")
            value, register = self.let(f"zext i1 {is_true} to i8"), "i8"
        elif argument.dtype.kind == "float":
            self.need_equal(
                "ptr", self.load("ptr", given, known.TYPE), self.word("float_type"), "back"
            )
            value = self.call("double", "PyFloat_AsDouble", f"ptr {given}")
            if register == "float":
                value = self.let(f"fptrunc double {value} to float")
        else:
            value = self._checked_integer(given, argument.dtype)
        address = self.load("ptr", "%activation", self._slot(argument.slot))
        self._stores.append((register, value, address, 0))

    def _checked_integer(self, given: str, dtype: DType) -> str:
        self.need_equal("ptr", self.load("ptr", given, known.TYPE), self.word("int_type"), "back")
        function = "PyLong_AsLongLongAndOverflow"
        value = self.call("i64", function, f"ptr {given}", "ptr %overflow")
        self.need_equal("i32", self.load("i32", "%overflow"), 0, "back")
        if dtype is dtypes.uint64:
            self.need(self.let(f"icmp sge i64 {value}, 0"), "back")
            return value
        if dtype is dtypes.int64:
            return value
        register = _REGISTER[dtype]
        narrow = self.let(f"trunc i64 {value} to {register}")
        extend = "zext" if dtype.kind == "uint" else "sext"
        self.need_equal("i64", self.let(f"{extend} {register} {narrow} to i64"), value, "back")
        return narrow

    # --- the run and what comes after -----------------------------------------------------

    def _run(self) -> None:
        for array in self._held:  # another thread may put another array into the holder
            self.call("void", "Py_IncRef", f"ptr {array}")
        for kind, value, base, offset in self._stores:
            self.do(f"store {kind} {value}, ptr {self.at(base, offset)}")
        state = self.call("ptr", "PyEval_SaveThread") if self._signature.release_gil else ""
        self.do(f"%status = call i32 {self.word('run')}(ptr %activation)")
        if state:
            self.call("void", "PyEval_RestoreThread", f"ptr {state}")
        self.need_equal("i32", "%status", 0, "trouble")

    def _finish(self) -> None:
        signature = self._signature
        numbers = [self._read(r) if isinstance(r, Number) else "" for r in signature.results]
        self._release()  # from here on any Python code may run and use the activation again
        objects: list[str] = []
        made = iter(self._made)
        if not signature.results:
            objects.append(self.word("none"))
            self.call("void", "Py_IncRef", f"ptr {objects[0]}")
        for result, number in zip(signature.results, numbers, strict=True):
            if isinstance(result, Array):
                objects.append(next(made))
            else:
                objects.append(self._number(result.dtype, number))
        if signature.single or not signature.results:
            self.do(f"ret ptr {objects[0]}")
            return
        complete = self.call("ptr", "PyTuple_New", f"i64 {len(objects)}")
        fine = self.let(f"icmp ne ptr {complete}, null")
        for item in objects:
            fine = self.let(f"and i1 {fine}, {self.let(f'icmp ne ptr {item}, null')}")
        self.need(fine, "lost")
        for place, item in enumerate(objects):  # the tuple takes them over
            self.call("i32", "PyTuple_SetItem", f"ptr {complete}", f"i64 {place}", f"ptr {item}")
        self.do(f"ret ptr {complete}")
        self.label("lost")
        self._drop([*objects, complete])
        self.do("ret ptr null")

    def _read(self, result: Number) -> str:
        address = self.load("ptr", "%activation", self._slot(result.slot))
        kind = result.dtype.kind
        if kind == "bool":
            return self.let(f"zext i8 {self.load('i8', address)} to i64")
        register = _REGISTER[result.dtype]
        value = self.load(register, address)
        if register == "float":
            return self.let(f"fpext float {value} to double")
        if register not in ("i64", "double"):
            extend = "zext" if kind == "uint" else "sext"
            return self.let(f"{extend} {register} {value} to i64")
        return value

    def _number(self, dtype: DType, value: str) -> str:
        if dtype.kind == "float":
            return self.call("ptr", "PyFloat_FromDouble", f"double {value}")
        if dtype.kind == "bool":
            return self.call("ptr", "PyBool_FromLong", f"i64 {value}")
        sign = "Unsigned" if dtype is dtypes.uint64 else ""
        return self.call("ptr", f"PyLong_From{sign}LongLong", f"i64 {value}")

    def _release(self) -> None:
        """Put the activation back and let go of the arguments."""
        self._put_back()
        self._drop(self._held)

    def _put_back(self) -> None:
        place = self.at("%activation", self._signature.link_offset)
        self.do(f"store ptr {self.word('pool')}, ptr {place}")
        self.set_word("pool", "%activation")

    def _drop(self, objects: Sequence[str]) -> None:
        for item in objects:  # NULL is allowed
            self.call("void", "Py_DecRef", f"ptr {item}")

    # --- other ways out -------------------------------------------------------------------

    def _write_exits(self) -> None:
        self.label("trouble")
        self._call_on_status()
        for number in range(len(self._made)):
            self.label(f"unmake{number}")
            self._put_back()
            self._drop(self._made[:number])
            self.do("ret ptr null")
        self.label("back")
        self._put_back()
        self._drop(self._made)
        self.do("br label %slow")
        self.label("slow")
        arguments = (f"ptr {self.word('slow')}", "ptr %args", "i64 %count", "ptr %names")
        self.do(f"ret ptr {self.call('ptr', 'PyObject_Vectorcall', *arguments)}")

    def _call_on_status(self) -> None:
        """``on_status(status, address of the activation, *objects for results, *arguments)``."""
        wide = self.let("sext i32 %status to i64")
        address = self.let("ptrtoint ptr %activation to i64")
        own = [self.call("ptr", "PyLong_FromLongLong", f"i64 {value}") for value in (wide, address)]
        given = [self.load("ptr", "%args", 8 * i) for i in range(len(self._signature.arguments))]
        for place, item in enumerate([*own, *self._made, *given]):
            self.do(f"store ptr {item}, ptr {self.at('%objects', 8 * place)}")
        fine = [self.let(f"icmp ne ptr {item}, null") for item in own]
        self.need(self.let(f"and i1 {fine[0]}, {fine[1]}"), "no_memory")
        arguments = ("ptr %objects", f"i64 {self._objects}", "ptr null")
        function = self.word("on_status")
        result = self.call("ptr", "PyObject_Vectorcall", f"ptr {function}", *arguments)
        self.do("br label %told")
        source = self.block
        self.label("no_memory")
        self.do("br label %told")
        self.label("told")
        result = self.let(f"phi ptr [ {result}, %{source} ], [ null, %no_memory ]")
        self._drop([*own, *self._made])
        self._release()
        self.do(f"ret ptr {result}")
