"""Code that is put into memory without LLVM."""

import ctypes
import gc
from pathlib import Path

import pytest

from dilim.backends.llvm import images
from dilim.backends.llvm.binding import emit_object, host_target, link

pytestmark = pytest.mark.skipif(not images.can_load(), reason="x86-64 and Linux only")

ADD = """
define i64 @add(i64 %a, i64 %b) nounwind {
  %sum = add i64 %a, %b
  ret i64 %sum
}
"""
TWICE = """
declare i64 @add(i64, i64)
define i64 @twice(i64 %a) nounwind {
  %sum = call i64 @add(i64 %a, i64 %a)
  ret i64 %sum
}
"""
CONSTANTS = """
@table = private constant [4 x double] [double N.0, double N.25, double N.5, double N.75]

define double @f_N(i64 %i, double %x) nounwind {
  %place = getelementptr double, ptr @table, i64 %i
  %entry = load double, ptr %place
  %sum = fadd double %entry, %x
  %more = fmul double %sum, N.125
  ret double %more
}
"""
COUNTER = """
@count = internal global i64 0
define i64 @add(i64 %a, i64 %b) nounwind {
  %before = load i64, ptr @count
  %after = add i64 %before, %a
  store i64 %after, ptr @count
  ret i64 %after
}
"""
CASES = """
define i64 @choose(i64 %k) nounwind {
  switch i64 %k, label %other [ i64 0, label %a  i64 1, label %b  i64 2, label %c  i64 3, label %d
    i64 4, label %e ]
a:
  %va = call i64 @add(i64 %k, i64 17)
  ret i64 %va
b:
  ret i64 23
c:
  %vc = mul i64 %k, 91
  ret i64 %vc
d:
  %vd = call i64 @add(i64 %k, i64 %k)
  ret i64 %vd
e:
  ret i64 -5
other:
  ret i64 0
}
declare i64 @add(i64, i64)
"""
TO_INT = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
ADDING = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def objects_of(*texts):
    return [emit_object(text, host_target()) for text in texts]


def loaded(objects, symbols=None):
    image = images.load(objects, symbols or {})
    assert image is not None
    return image


@pytest.mark.parametrize("texts", [(ADD, TWICE), (TWICE, ADD), (ADD + TWICE.partition("\n")[2],)])
def test_calls_are_resolved(texts):
    texts = [text.replace("declare i64 @add(i64, i64)", "") if ADD in text else text
             for text in texts]  # fmt: skip
    image = loaded(objects_of(*texts))
    assert TO_INT(image.get_function_address("twice"))(1 << 40) == 1 << 41


def test_addresses_are_given_to_one_image_only():
    functions = [ADDING(lambda a, b: a + b), ADDING(lambda a, b: a * b)]
    addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in functions]
    code = objects_of(TWICE)
    kept = [loaded(code, {"add": address}) for address in addresses]
    assert [TO_INT(image.names["twice"])(10) for image in kept] == [20, 100]


def test_each_object_has_its_own_constants():
    image = loaded(objects_of(*(CONSTANTS.replace("N", str(n)) for n in range(1, 6))))
    kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_double)
    found = [kind(image.names[f"f_{n}"])(2, 1.0) for n in range(1, 6)]
    assert found == [(n + 1.5) * (n + 0.125) for n in range(1, 6)]


def test_a_table_of_jumps():
    image = loaded(objects_of(CASES, ADD))
    choose = TO_INT(image.names["choose"])
    assert [choose(k) for k in range(6)] == [17, 23, 182, 6, -5, 0]


@pytest.mark.parametrize("text", [COUNTER, TWICE, ADD.replace(" nounwind", "")])
def test_what_is_not_code_and_constants_is_left_to_llvm(text):
    assert images.load(objects_of(text), {}) is None


def test_llvm_loads_what_was_left_to_it():
    library = link(objects_of(COUNTER))
    add = ADDING(library.address("add"))
    assert [add(k, 0) for k in (1, 2, 3)] == [1, 3, 6]


def test_a_file_of_another_kind_is_left_to_llvm():
    assert images.load([b"\0" * 64], {}) is None


def test_where_memory_may_not_become_code_llvm_is_asked(monkeypatch):
    class System:
        def __init__(self, name, use_errno):
            self.mprotect = type("Refusal", (), {"__call__": lambda *_: -1})()

    monkeypatch.setattr(ctypes, "CDLL", System)
    assert images.load(objects_of(ADD), {}) is None


def test_memory_is_given_back():
    code = objects_of(ADD, TWICE)

    def mapped():  # bytes of code that is in no file; neighbours are one line
        rows = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
        spans = [row[0].split("-") for row in rows if row[1] == "r-xp" and row[4] == "0"]
        return sum(int(end, 16) - int(begin, 16) for begin, end in spans)

    kept = [loaded(code) for _ in range(50)]
    during = mapped()
    kept.clear()
    gc.collect()
    assert mapped() < during
