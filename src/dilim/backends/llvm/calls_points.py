"""Python builtins that run native programs and serve their channel points.

A `Runner` owns one activation. Its code stores the addresses of the arrays that it is given, enters
the program, and calls a Python function at each channel point, without any step of Python's
interpreter in between. It comes back when the program is done, at a safepoint, or has failed.

The code is the same for all programs. Like that of `dilim.backends.llvm.calls` it finds everything
in the table that is the ``self`` of the builtin; the table ends with three words for each point:
the function, its argument, and how often it was called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dilim.backends.llvm import calls_signature as known
from dilim.backends.llvm.binding import Library
from dilim.backends.llvm.calls import Table, common_words, new_builtin
from dilim.backends.llvm.calls_signature import CallerCode
from dilim.backends.llvm.calls_writer import ATTRIBUTES, Load, Writer, named
from dilim.backends.llvm.driver import FIRST_POINT
from dilim.ir import plan as p

_FASTCALL: Final = 0x0080
_NO_ARGUMENTS: Final = 0x0004
_ONE_ARGUMENT: Final = 1 - (1 << 63)
"""As ``nargsf`` of PyObject_Vectorcall; the call may use the word before the argument."""
_OWN: Final = ("run", "activation", "slots", "turns", "release", "array_type", "type_error")
_WORDS: Final = (*_OWN, *known.FUNCTIONS)
_POINTS: Final = len(_WORDS)
_PER_POINT: Final = 3
MESSAGE: Final = (
    "session: expected one numpy.ndarray per input, output and variable, and no subclass of it"
)

Handler = Callable[[Sequence[np.ndarray]], object]
"""Serves a channel point; takes views of its values."""


@dataclass(frozen=True, slots=True)
class RunnerCode:
    """Machine code for runners.

    Attributes:
        start: address of a function.
        resume: address of a function.
        library: holds them.
    """

    start: int
    resume: int
    library: Library

    @classmethod
    def load(cls, load: Load) -> RunnerCode:
        """The code, given how to get machine code."""
        library, name = load("runner", _write)
        return cls(library.address(name), library.address(f"{name}_resume"), library)


class Runner:
    """Runs a program in one activation.

    Args:
        code: machine code for runners.
        run: address of ``i32 run(ptr activation)``.
        activation: its address.
        slots: number of slots.
        points: per channel point its handler and the views that it is called with.
        keep: what else must live as long as the runner.

    Attributes:
        start: runs from the start. It takes one `numpy.ndarray` per slot, which must live until the
            run is over, and gives the status: 0 if the run is done, 1 at a safepoint, 2 if a check
            failed. An exception of a handler ends the run.
        resume: goes on with the run after a safepoint; likewise.
    """

    __slots__ = ("_words", "resume", "start")

    def __init__(
        self,
        code: RunnerCode,
        run: int,
        activation: int,
        slots: int,
        points: Sequence[tuple[Handler, tuple[np.ndarray, ...]]],
        keep: Sequence[object] = (),
    ) -> None:
        values = common_words() | {
            "run": run, "activation": activation, "slots": slots, "turns": 1, "release": 0,
            "type_error": id(TypeError),
        }  # fmt: skip
        words = [values[name] for name in _WORDS]
        for handler, views in points:
            words += [id(handler), id(views), 0]
        table = np.array(words, np.uint64).view(Table)
        kept = (code, tuple(points), tuple(keep))

        def method(name: str, address: int, flags: int) -> Callable[..., Any]:
            # Each has its own view: it keeps the description of one builtin alive.
            return new_builtin(table.view(), address, flags, name, "", kept)

        self._words = table
        self.start: Callable[..., int] = method("start", code.start, _FASTCALL)
        self.resume: Callable[[], int] = method("resume", code.resume, _NO_ARGUMENTS)

    def grant(self, turns: int, release_gil: bool) -> None:
        """Choose how many turns of loops are allowed until a safepoint, and who may run meanwhile.

        Args:
            turns: for each `start` and `resume` from now on.
            release_gil: whether other Python threads may run; costs 30 ns per point.
        """
        self._words[_WORDS.index("turns")] = turns
        self._words[_WORDS.index("release")] = release_gil

    def served(self) -> list[int]:
        """How often each point was come to so far."""
        counts: list[int] = self._words[_POINTS + 2 :: _PER_POINT].tolist()
        return counts


def _write() -> CallerCode:
    message = f'@message = private constant [{len(MESSAGE) + 1} x i8] c"{MESSAGE}\\00"'
    parts = [message, _resume(), _start(), _serve(), ATTRIBUTES]
    return named("runner", "\n\n".join(parts) + "\n")


def _resume() -> str:
    writer = Writer(_WORDS)
    writer.label("entry")
    writer.do(f"%table = load ptr, ptr {writer.at('%self', known.DATA)}")
    writer.do("%status = tail call ptr @NAME_serve(ptr %table)")
    writer.do("ret ptr %status")
    return _function("@NAME_resume(ptr %self, ptr %nothing)", writer)


def _start() -> str:
    """Stores the addresses and enters the program at its start."""
    writer = Writer(_WORDS)
    writer.label("entry")
    writer.do(f"%table = load ptr, ptr {writer.at('%self', known.DATA)}")
    writer.need_equal("i64", "%count", writer.word("slots", "i64"), "wrong")
    array_type, activation = writer.word("array_type"), writer.word("activation")
    first = writer.at(activation, p.SLOTS)
    before = writer.block
    writer.do("br label %head")
    writer.label("head")
    writer.do(f"%index = phi i64 [ 0, %{before} ], [ %next, %stored ]")
    writer.branch(writer.let("icmp ult i64 %index, %count"), "array", "ready")
    writer.label("array")
    writer.do("%place = shl nuw nsw i64 %index, 3")
    array = writer.load("ptr", "%args", "%place")
    kind = writer.load("ptr", array, known.TYPE)
    writer.branch(writer.let(f"icmp eq ptr {kind}, {array_type}"), "stored", "wrong")
    writer.label("stored")
    address = writer.load("ptr", array, known.DATA)
    writer.do(f"store ptr {address}, ptr {writer.at(first, '%place')}")
    writer.do("%next = add nuw nsw i64 %index, 1")
    writer.do("br label %head")
    writer.label("ready")
    writer.do(f"store i32 0, ptr {writer.at(activation, p.RESUME)}")
    writer.do("%status = tail call ptr @NAME_serve(ptr %table)")
    writer.do("ret ptr %status")
    writer.label("wrong")
    writer.call("void", "PyErr_SetString", f"ptr {writer.word('type_error')}", "ptr @message")
    writer.do("ret ptr null")
    return _function("@NAME(ptr %self, ptr %args, i64 %count)", writer)


def _serve() -> str:
    """Runs the program and calls handlers until something else is to be done."""
    writer = Writer(_WORDS)
    writer.label("entry")
    writer.do("%arguments = alloca [2 x ptr]")
    argument = writer.at("%arguments", 8)
    activation, run = writer.word("activation"), writer.word("run")
    budget = writer.at(activation, p.BUDGET)
    writer.do(f"store i64 {writer.word('turns', 'i64')}, ptr {budget}")
    release = writer.let(f"icmp ne i64 {writer.word('release', 'i64')}, 0")
    writer.do("br label %enter")
    writer.label("enter")
    writer.branch(release, "released", "held")
    writer.label("released")
    state = writer.call("ptr", "PyEval_SaveThread")
    writer.do(f"%status0 = call i32 {run}(ptr {activation})")
    writer.call("void", "PyEval_RestoreThread", f"ptr {state}")
    writer.do("br label %back")
    writer.label("held")
    writer.do(f"%status1 = call i32 {run}(ptr {activation})")
    writer.do("br label %back")
    writer.label("back")
    writer.do("%status = phi i32 [ %status0, %released ], [ %status1, %held ]")
    writer.do("%wide = sext i32 %status to i64")
    writer.branch(writer.let(f"icmp sge i32 %status, {FIRST_POINT}"), "point", "leave")
    writer.label("point")
    number = writer.let(f"sub nsw i64 %wide, {FIRST_POINT}")
    offset = writer.let(f"mul nsw i64 {number}, {8 * _PER_POINT}")
    point = writer.at(writer.at("%table", 8 * _POINTS), offset)
    count = writer.let(f"add i64 {writer.load('i64', point, 16)}, 1")
    writer.do(f"store i64 {count}, ptr {writer.at(point, 16)}")
    writer.do(f"store ptr {writer.load('ptr', point, 8)}, ptr {argument}")
    arguments = (f"ptr {argument}", f"i64 {_ONE_ARGUMENT}", "ptr null")
    handler = writer.load("ptr", point)
    result = writer.call("ptr", "PyObject_Vectorcall", f"ptr {handler}", *arguments)
    writer.need(writer.let(f"icmp ne ptr {result}, null"), "raised")
    writer.call("void", "Py_DecRef", f"ptr {result}")
    writer.do("br label %enter")
    writer.label("raised")
    writer.do("ret ptr null")
    writer.label("leave")
    writer.do(f"ret ptr {writer.call('ptr', 'PyLong_FromLongLong', 'i64 %wide')}")
    return _function("@NAME_serve(ptr %table)", writer, "internal ")


def _function(head: str, writer: Writer, linkage: str = "") -> str:
    return "\n".join([f"define {linkage}ptr {head} #0 {{", *writer.lines, "}"])
