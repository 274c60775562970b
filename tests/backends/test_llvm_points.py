"""Runners: builtins that run a program and serve its channel points."""

import ctypes
import functools
import gc
import sys
import weakref

import numpy as np
import pytest

from dilim.backends.llvm.binding import emit_object, host_target, link
from dilim.backends.llvm.calls import fast_calls
from dilim.backends.llvm.calls_points import Runner, RunnerCode
from dilim.ir import plan as p

pytestmark = pytest.mark.skipif(not fast_calls(), reason="needs CPython with a GIL")

PROGRAM = f"""
declare i32 @PyGILState_Check()

; Comes to points 0, 1, 0, to a safepoint, to point 1, and is done. The array in slot 0 gets, per
; entry, whether the GIL is held; the one in slot 1 the turns that are allowed, and takes one away.
define i32 @run(ptr %a) {{
  %where = load i32, ptr %a
  %more = add i32 %where, 1
  store i32 %more, ptr %a
  %slot0 = getelementptr i8, ptr %a, i64 {p.SLOTS}
  %held = load ptr, ptr %slot0
  %check = call i32 @PyGILState_Check()
  %wide = sext i32 %where to i64
  %at0 = getelementptr i32, ptr %held, i64 %wide
  store i32 %check, ptr %at0
  %slot1 = getelementptr i8, ptr %a, i64 {p.SLOTS + 8}
  %turns = load ptr, ptr %slot1
  %at1 = getelementptr i64, ptr %turns, i64 %wide
  %budget = getelementptr i8, ptr %a, i64 {p.BUDGET}
  %left = load i64, ptr %budget
  store i64 %left, ptr %at1
  %less = sub i64 %left, 1
  store i64 %less, ptr %budget
  switch i32 %where, label %done [
    i32 0, label %first i32 1, label %second i32 2, label %first
    i32 3, label %pause i32 4, label %second
  ]
first:
  ret i32 3
second:
  ret i32 4
pause:
  ret i32 1
done:
  ret i32 0
}}
"""


@functools.cache
def code():
    return RunnerCode.load(load)


def load(what, write):
    code = write()
    return link([emit_object(code.text, host_target())]), code.name


@functools.cache
def program():
    check = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p).value
    return link([emit_object(PROGRAM, host_target())], {"PyGILState_Check": check})


class Case:
    """A runner whose handlers note what they are called with."""

    def __init__(self, *handlers):
        self.seen = []
        self.activation = np.zeros(128, np.int64)
        self.views = [(np.zeros(2),), (np.ones(3), np.ones(1))]
        given = (*handlers, self.note, self.note)[:2]
        points = list(zip(given, self.views, strict=True))
        address = self.activation.ctypes.data
        self.runner = Runner(code(), program().address("run"), address, 2, points, [program()])
        self.runner.grant(9, False)
        self.held, self.turns = np.full(6, -1, np.int32), np.full(6, -1)

    def note(self, views):
        self.seen.append(views)

    def start(self):
        return self.runner.start(self.held, self.turns)


def test_points_are_served_until_something_else_is_to_be_done():
    case = Case()
    first, second = case.views
    assert case.start() == 1
    assert [x is y for x, y in zip(case.seen, (first, second, first), strict=True)] == [True] * 3
    assert case.runner.resume() == 0
    assert case.seen[3] is second
    assert case.runner.served() == [2, 2]
    assert case.start() == 1
    assert case.runner.served() == [4, 3]


def test_turns_are_granted_at_the_start_and_after_a_safepoint():
    case = Case()
    case.start()
    case.runner.grant(100, False)
    case.runner.resume()
    assert case.turns.tolist() == [9, 8, 7, 6, 100, 99]


def test_the_gil_is_held_or_not_as_asked_and_always_in_handlers():
    held = []
    case = Case(lambda views: held.append(ctypes.pythonapi.PyGILState_Check()))
    case.start()
    case.runner.grant(9, True)
    case.runner.resume()
    assert case.held.tolist() == [1, 1, 1, 1, 0, 0]
    case.start()
    assert case.held.tolist() == [0] * 6
    assert held == [1] * 4


def test_an_exception_ends_the_run_and_the_next_one_begins_at_the_start():
    trouble = [KeyError("now")]

    def handler(views):
        if trouble:
            raise trouble.pop()

    case = Case(handler)
    with pytest.raises(KeyError, match="now"):
        case.start()
    assert (case.runner.served(), case.seen) == ([1, 0], [])
    assert case.start() == 1
    assert case.runner.served() == [3, 1]


def test_handlers_may_be_any_callables():
    class Box(list):
        def __call__(self, views):
            self.append(views)

    notes, box = [], Box()
    case = Case(notes.append, box)
    case.start()
    case.runner.resume()
    assert [len(views) for views in notes] == [1, 1]
    assert [len(views) for views in box] == [2, 2]


@pytest.mark.parametrize("given", [0, 1, 3])
def test_the_number_of_arrays_is_right(given):
    case = Case()
    with pytest.raises(TypeError, match=r"one numpy\.ndarray per input, output and variable"):
        case.runner.start(*[case.turns] * given)


@pytest.mark.parametrize("wrong", [None, 1, [1], np.float64(1), np.zeros(6).view(np.recarray)])
def test_arguments_are_arrays(wrong):
    case = Case()
    with pytest.raises(TypeError, match=r"and no subclass of it"):
        case.runner.start(case.held, wrong)
    assert case.seen == []


def test_no_references_are_lost_or_kept():
    result = object()
    case = Case(lambda views: result, lambda views: result)
    objects = (result, case.held, case.turns, *case.views, *(v[0] for v in case.views), None)
    case.start()
    before = [sys.getrefcount(x) for x in objects[:-1]]
    for _ in range(1000):
        case.start()
        case.runner.resume()
    assert [sys.getrefcount(x) for x in objects[:-1]] == before


def test_a_runner_keeps_what_it_needs_and_no_longer():
    def handler(views):
        return None

    case = Case(handler, handler)
    handlers = weakref.ref(handler)
    start, case, handler = case.runner.start, None, None
    gc.collect()
    assert handlers() is not None
    del start
    gc.collect()
    assert handlers() is None
