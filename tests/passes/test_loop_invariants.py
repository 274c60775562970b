"""What is the same in every iteration is computed before the loop, if it cannot raise."""

import pytest

from dilim.passes.loop_invariants import loop_invariants
from passes.graphs import becomes

INPUTS = "%x: float32[3], %i: int64[2], %b: bool[], %n: int64[]; %v: float32[3], %w: float32[3]"


def test_operations_and_reads_move_out_in_order():
    before = """
        %r: float32[3] = loop(%n, %x) do (%k: int64[], %c: float32[3]) {
          %s: float32[3] = read(%v)
          %a: float32[3] = exp(%s)
          %d: float32[3] = add(%c, %a)
          write(%w, %d)
          yield %d
        }
        return %r"""
    after = """
        %s: float32[3] = read(%v)
        %a: float32[3] = exp(%s)
        %r: float32[3] = loop(%n, %x) do (%k: int64[], %c: float32[3]) {
          %d: float32[3] = add(%c, %a)
          write(%w, %d)
          yield %d
        }
        return %r"""
    becomes(loop_invariants, before, after, INPUTS)


def test_out_of_two_loops_at_once():
    before = """
        loop(%n) do (%k: int64[]) {
          loop(%n) do (%l: int64[]) {
            %a: float32[3] = exp(%x)
            write(%v, %a)
            yield
          }
          yield
        }
        return"""
    after = """
        %a: float32[3] = exp(%x)
        loop(%n) do (%k: int64[]) {
          loop(%n) do (%l: int64[]) {
            write(%v, %a)
            yield
          }
          yield
        }
        return"""
    becomes(loop_invariants, before, after, INPUTS)


def test_a_carried_value_that_never_changes_is_the_initial_one():
    before = """
        %r: float32[3], %s: float32[3] = loop(%n, %x, %x) do (%k: int64[], %c: float32[3],
          %d: float32[3]) {
          %e: float32[3] = exp(%d)
          %f: float32[3] = add(%c, %e)
          yield %f, %d
        }
        return %r, %s"""
    after = """
        %e: float32[3] = exp(%x)
        %r: float32[3], %s: float32[3] = loop(%n, %x, %x) do (%k: int64[], %c: float32[3],
          %d: float32[3]) {
          %f: float32[3] = add(%c, %e)
          yield %f, %x
        }
        return %r, %x"""
    becomes(loop_invariants, _joined(before), _joined(after), INPUTS)


STAY = {
    "what may raise": "%a: float32[2] = take[axis=0](%x, %i)\n send[channel='c'](%a)",
    "a read of what the loop writes": "%a: float32[3] = read(%v)\n write(%v, %x)\n write(%w, %a)",
    "a read where the host may write": "%a: float32[3] = read(%v)\n send[channel='c'](%a)",
    "what depends on the count": "%a: int64[] = add(%k, %n)\n send[channel='c'](%a)",
    "work in a branch": "if(%b) {\n %a: float32[3] = exp(%x)\n write(%v, %a)\n yield\n} else {\n"
    " yield\n}",
}


@pytest.mark.parametrize("name", STAY)
def test_stays(name):
    text = f"loop(%n) do (%k: int64[]) {{\n{STAY[name]}\nyield\n}}\nreturn"
    becomes(loop_invariants, text, text, INPUTS)


def _joined(text):
    return text.replace(",\n         ", ",")
