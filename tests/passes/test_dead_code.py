"""What nobody needs goes; what acts or may raise stays."""

import pytest

from dilim.passes.dead_code import dead_code
from passes.graphs import becomes

INPUTS = "%x: float32[3], %i: int64[2], %b: bool[], %n: int64[]; %v: float32[3]"

GONE = {
    "an operation": "%a: float32[3] = exp(%x)\n%c: float32[3] = exp(%a)",
    "a read": "%a: float32[3] = read(%v)",
    "a branch": "%a: float32[3] = if(%b) {\n yield %x\n} else {\n yield %x\n}",
    "a loop": "%a: float32[3] = loop(%n, %x) do (%k: int64[], %c: float32[3]) {\n yield %c\n}",
    "a loop that is left early": "%m: int64[] = full[shape=(), value=3, dtype=int64]()\n"
    "%a: float32[3] = loop(%m, %x) while (%k: int64[], %c: float32[3]) {\n yield %b\n}"
    " do (%k: int64[], %c: float32[3]) {\n yield %c\n}",
    "positions that are known to be inside": "%k: int64[] = argmax[axis=(0,), keepdims=False](%x)\n"
    "%a: float32[] = take[axis=0](%x, %k)",
    "positions that are constant": "%k: int64[4] = full[shape=(4,), value=-3, dtype=int64]()\n"
    "%a: float32[4] = take[axis=0](%x, %k)",
}


@pytest.mark.parametrize("name", GONE)
def test_gone(name):
    becomes(dead_code, f"{GONE[name]}\nreturn %x", "return %x", INPUTS)


STAY = {
    "a write": "write(%v, %x)",
    "a send": "send[channel='c'](%x)",
    "a receive": "%a: float32[] = receive[channel='c']()",
    "what may raise": "%a: float32[2] = take[axis=0](%x, %i)",
    "a constant position outside": "%k: int64[] = full[shape=(), value=3, dtype=int64]()\n"
    "%a: float32[] = take[axis=0](%x, %k)",
    "a branch that may raise": "if(%b) {\n %a: float32[2] = take[axis=0](%x, %i)\n yield\n}"
    " else {\n yield\n}",
    "a loop that writes": "loop(%n) do (%k: int64[]) {\n write(%v, %x)\n yield\n}",
    "a loop that only a condition stops": "loop(%n) while (%k: int64[]) {\n yield %b\n}"
    " do (%k: int64[]) {\n yield\n}",
    "a loop that nothing stops": "%m: int64[] = full[shape=(), value=1099511627776, dtype=int64]()"
    "\nloop(%m) do (%k: int64[]) {\n yield\n}",
    "a branch that may never end": "if(%b) {\n"
    " %m: int64[] = full[shape=(), value=1099511627776, dtype=int64]()\n"
    " loop(%m) do (%k: int64[]) {\n yield\n}\n yield\n} else {\n yield\n}",
}


@pytest.mark.parametrize("name", STAY)
def test_stays(name):
    text = f"{STAY[name]}\nreturn %x"
    becomes(dead_code, text, text, INPUTS)


def test_unused_results_of_a_branch_go_with_what_made_them():
    before = """
        %r: float32[3], %s: float32[3] = if(%b) {
          %a: float32[3] = exp(%x)
          %c: float32[3] = tanh(%x)
          yield %a, %c
        } else {
          yield %x, %x
        }
        return %s"""
    after = """
        %s: float32[3] = if(%b) {
          %c: float32[3] = tanh(%x)
          yield %c
        } else {
          yield %x
        }
        return %s"""
    becomes(dead_code, before, after, INPUTS)


def test_carried_values_stay_as_long_as_one_that_is_used_needs_them():
    before = """
        %p: float32[3], %q: float32[3], %r: float32[3], %s: float32[3] =
          loop(%n, %x, %x, %x, %x) do (%k: int64[], %a: float32[3], %c: float32[3], %d: float32[3],
          %e: float32[3]) {
          %f: float32[3] = add(%a, %c)
          %g: float32[3] = add(%d, %e)
          yield %f, %c, %g, %e
        }
        return %p"""
    after = """
        %p: float32[3], %q: float32[3] =
          loop(%n, %x, %x) do (%k: int64[], %a: float32[3], %c: float32[3]) {
          %f: float32[3] = add(%a, %c)
          yield %f, %c
        }
        return %p"""
    becomes(dead_code, _joined(before), _joined(after), INPUTS)


def test_what_the_condition_needs_stays():
    text = """
        %p: float32[3] = loop(%n, %x) while (%k: int64[], %a: float32[3]) {
          %c: bool[3] = isfinite(%a)
          %d: bool[] = all[axis=(0,), keepdims=False](%c)
          yield %d
        } do (%k: int64[], %a: float32[3]) {
          %e: float32[3] = exp(%a)
          write(%v, %x)
          yield %e
        }
        return %x"""
    becomes(dead_code, text, text, INPUTS)


def _joined(text):
    return text.replace("=\n         ", "=").replace(",\n         ", ",")
