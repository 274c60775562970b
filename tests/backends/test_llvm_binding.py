"""Machine code: targets, objects, and loading them."""

import ctypes
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dilim.backends.llvm.binding import (
    as_target,
    emit_assembly,
    emit_object,
    host_target,
    link,
    version,
)
from dilim.backends.llvm.targets import LEVELS, Target
from dilim.errors import DeviceError

ADD = """
define i32 @add(i32 %a, i32 %b) {
  %sum = add i32 %a, %b
  ret i32 %sum
}
"""
TWICE = """
declare i32 @add(i32, i32)
define i32 @twice(i32 %a) {
  %sum = call i32 @add(i32 %a, i32 %a)
  ret i32 %sum
}
"""
DOUBLED = """
define void @doubled(ptr %p) {
  %x = load <8 x float>, ptr %p, align 4
  %y = fadd <8 x float> %x, %x
  store <8 x float> %y, ptr %p, align 4
  ret void
}
"""
TO_INT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


def able(level):
    features = host_target().features.split(",")
    return all(f"+{feature}" in features for feature in LEVELS[level][0])


def test_calls_between_objects_are_resolved():
    target = host_target()
    library = link([emit_object(TWICE, target), emit_object(ADD, target)])
    assert TO_INT(library.address("twice"))(21) == 42


def test_addresses_are_given_to_one_library_only():
    target = host_target()
    objects = [emit_object(TWICE, target)]
    add = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int)
    plus, times = add(lambda a, b: a + b), add(lambda a, b: a * b)
    libraries = [
        link(objects, {"add": ctypes.cast(function, ctypes.c_void_p).value})
        for function in (plus, times)
    ]
    found = [TO_INT(library.address("twice"))(10) for library in libraries]
    assert found == [20, 100]


def test_an_unknown_name_is_an_error():
    library = link([emit_object(ADD, host_target())])
    with pytest.raises(KeyError, match="no function 'subtract'"):
        library.address("subtract")


def test_text_that_llvm_refuses_is_an_error():
    with pytest.raises(RuntimeError, match="%sum"):
        emit_object(ADD.replace("add i32 %a, %b", "add i64 %a, %b"), host_target())


@pytest.mark.skipif(host_target().architecture != "x86_64", reason="levels of x86-64")
def test_the_level_decides_the_width_of_vectors(monkeypatch):
    monkeypatch.delenv("DILIM_CPU", raising=False)
    assert "%ymm" not in emit_assembly(DOUBLED, as_target("x86-64"))
    assert as_target("x86-64").vector_bytes == 16
    if able("x86-64-v3"):
        assert "%ymm" in emit_assembly(DOUBLED, as_target("x86-64-v3"))
        assert as_target("x86-64-v3").vector_bytes == 32
        assert as_target().vector_bytes >= 32


@pytest.mark.skipif(host_target().architecture != "x86_64", reason="levels of x86-64")
def test_the_target_can_be_set_by_the_environment(monkeypatch):
    monkeypatch.setenv("DILIM_CPU", "x86-64")
    assert as_target() == Target("x86-64", "", host_target().triple)
    assert as_target("host") == host_target()
    monkeypatch.setenv("DILIM_CPU", "host")
    assert as_target() == host_target()


def test_an_unknown_level_is_an_error():
    with pytest.raises(DeviceError, match=r"DILIM_CPU: expected one of host, .*received 'z80'"):
        as_target("z80")


def test_a_level_that_the_processor_lacks_is_an_error(monkeypatch):
    weak = Target("nehalem", "+sse4.2,+ssse3,+popcnt,-avx2", "x86_64-unknown-linux-gnu")
    monkeypatch.setattr("dilim.backends.llvm.binding.host_target", lambda: weak)
    assert as_target("x86-64-v2").cpu == "x86-64-v2"
    with pytest.raises(DeviceError, match=r"needs avx2, fma, bmi2, f16c, which .*nehalem"):
        as_target("x86-64-v3")


def test_code_for_another_processor():
    arm = Target("generic", "", "aarch64-unknown-linux-gnu")
    assert "fadd\tv" in emit_assembly(DOUBLED, arm)
    assert arm.vector_bytes == 16


def test_optimising_runs_the_passes():
    text = ADD + TWICE.partition("\n")[2].partition("\n")[2]
    assert "add" in emit_assembly(text, host_target()).split("twice:")[1].split("ret")[0]
    plain = emit_assembly(text, host_target()).split("twice:")[1].split("ret")[0]
    assert "call" in plain or "jmp" in plain
    optimised = emit_assembly(text, host_target(), optimise=True).split("twice:")[1]
    assert "call" not in optimised.split("ret")[0]


def test_versions_are_named():
    assert version().startswith("llvmlite ")
    assert "LLVM " in version()


def test_importing_dilim_does_not_load_llvmlite():
    text = (
        "import sys, dilim, dilim.backends.llvm.binding; dilim.tensor([1.0]); "
        "print('llvmlite' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


CONSTANTS = """
@table = private constant [4 x double] [double N.0, double N.25, double N.5, double N.75]

define double @f_N(i64 %i, double %x) {
  %place = getelementptr double, ptr @table, i64 %i
  %entry = load double, ptr %place
  %sum = fadd double %entry, %x
  %more = fmul double %sum, N.125
  ret double %more
}
"""


def constants_of(library):
    """Whether functions of five objects see the constants of their own object."""
    kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_double)
    found = [kind(library.address(f"f_{n}"))(2, 1.0) for n in range(1, 6)]
    return found == [(n + 1.5) * (n + 0.125) for n in range(1, 6)]


CALLER = """
declare double @f_N(i64, double)
define double @g_N(i64 %i, double %x) {
  %less = fmul double %x, N.125
  %value = call double @f_N(i64 %i, double %less)
  %more = fmul double %value, N.375
  ret double %more
}
"""


def test_each_object_has_its_own_constants():
    target = host_target()
    texts = [text.replace("N", str(n)) for text in (CALLER, CONSTANTS) for n in range(1, 6)]
    library = link([emit_object(text, target) for text in texts])
    assert constants_of(library)
    kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_double)
    found = [kind(library.address(f"g_{n}"))(2, 1.0) for n in range(1, 6)]
    assert found == [(n + 0.5 + n + 0.125) * (n + 0.125) * (n + 0.375) for n in range(1, 6)]


def map_memory(size):
    """Address of memory that nothing uses."""
    system = ctypes.CDLL(None)
    system.mmap.restype = ctypes.c_size_t
    system.mmap.argtypes = [ctypes.c_size_t] * 2 + [ctypes.c_int] * 3 + [ctypes.c_long]
    private_anonymous_unreserved = 0x4022
    return system.mmap(0, size, 0, private_anonymous_unreserved, -1, 0)


def load_beside_a_large_array():
    """Loads code where there is one free page above six gigabytes, and the rest is below."""
    target = host_target()
    objects = [emit_object(CONSTANTS.replace("N", str(n)), target) for n in range(1, 6)]
    system = ctypes.CDLL(None)
    array = map_memory(6 << 30)
    while map_memory(4096) > array:
        pass
    system.munmap(ctypes.c_size_t(array + (5 << 30)), ctypes.c_size_t(4096))
    sys.exit(0 if constants_of(link(objects)) else 1)


@pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")
def test_code_and_constants_may_lie_far_apart():
    text = "import test_llvm_binding; test_llvm_binding.load_beside_a_large_array()"
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def resident():
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_compilations():
    cycles = int(os.environ.get("DILIM_TEST_CYCLES", "300"))

    def compile_and_drop():
        target = host_target()
        library = link([emit_object(TWICE, target)], {"add": 1})
        assert library.address("twice")

    for _ in range(50):
        compile_and_drop()
    gc.collect()
    before = resident()
    for _ in range(cycles):
        compile_and_drop()
    gc.collect()
    assert resident() - before < 2 << 20
