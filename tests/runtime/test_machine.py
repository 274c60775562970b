"""What is remembered of the processor, and that LLVM is not loaded for code from the cache."""

import subprocess
import sys

import pytest

from dilim.backends.llvm import binding, images
from dilim.runtime import machine
from dilim.runtime.cache import Cache

pytestmark = pytest.mark.skipif(not images.can_load(), reason="LLVM is loaded elsewhere")

PROGRAM = """
import sys
import dilim

@dilim.compile(compile_after=0)
def update(x, w):
    for _ in range(3):
        w = w - 0.1 * (x * (x * w).sum())
        print(w[0].item())
    return dilim.tanh(w)

print(update(dilim.tensor([1.0, 2.0]), dilim.tensor([0.5, 0.25])).tolist())
print(dilim.sigmoid(dilim.ones((2, 3)) @ dilim.ones((3, 2))).tolist())
print(update.statistics.native_calls)
print("llvmlite" in sys.modules)
"""


def test_a_process_that_finds_all_code_on_disk_does_not_load_llvm(tmp_path, monkeypatch):
    monkeypatch.setenv("DILIM_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    runs = [
        subprocess.run(
            [sys.executable, str(file)], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert runs[0][:-1] == runs[1][:-1]
    assert runs[0][-2:] == ["1", "True"]
    assert runs[1][-2:] == ["1", "False"]


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """How often LLVM was asked, with an empty cache."""
    questions = []
    known = binding.host_target()
    kept = Cache(tmp_path)

    def ask():
        questions.append(1)
        return known

    monkeypatch.setattr(machine, "cache", lambda: kept)
    monkeypatch.setattr(binding, "host_target", ask)
    return questions


def test_llvm_is_asked_once(asked):
    found = [machine.machine.__wrapped__() for _ in range(3)]
    assert found[0] == found[1] == found[2]
    assert found[0].llvm == binding.version()
    assert len(asked) == 1


@pytest.mark.parametrize("file", ["_BOOT", "_PROCESSORS"])
def test_llvm_is_asked_again_on_another_machine(asked, file, monkeypatch, tmp_path):
    other = tmp_path / "other"
    other.write_text("flags\t\t: fpu sse2\n\n", encoding="utf-8")
    machine.machine.__wrapped__()
    monkeypatch.setattr(machine, file, other)
    machine.machine.__wrapped__()
    assert len(asked) == 2


def test_llvm_is_asked_each_time_where_the_machine_is_not_known(asked, monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "_BOOT", tmp_path / "absent")
    for _ in range(2):
        machine.machine.__wrapped__()
    assert len(asked) == 2


def test_without_llvm_there_is_no_machine(asked, monkeypatch):
    monkeypatch.setattr(binding, "available", lambda: False)
    assert machine.machine.__wrapped__() is None
