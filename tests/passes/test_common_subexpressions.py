"""What was computed before is used again, and nothing that is not the same."""

import pytest

from dilim.passes.common_subexpressions import common_subexpressions
from passes.graphs import becomes

STATE = "%x: float32[3], %b: bool[], %n: int64[]; %v: float32[3], %w: float32[3]"


def test_the_same_operation_twice():
    before = """
        %a: float32[3] = exp(%x)
        %b: float32[3] = exp(%x)
        %c: float32[3] = add(%a, %b)
        return %c, %b"""
    after = """
        %a: float32[3] = exp(%x)
        %c: float32[3] = add(%a, %a)
        return %c, %a"""
    becomes(common_subexpressions, before, after)


def test_random_operations_are_functions_of_their_state():
    line = "random_uniform[shape=(2,), dtype=float32](%s)"
    before = f"%a: float32[2] = {line}\n%b: float32[2] = {line}\nreturn %a, %b"
    after = f"%a: float32[2] = {line}\nreturn %a, %a"
    becomes(common_subexpressions, before, after, "%s: uint32[6]")


DIFFERENT = {
    "parameters": "%a: float32[3] = flip[axis=(0,)](%x)\n%b: float32[3] = flip[axis=()](%x)",
    "zeros of other sign": "%a: float32[3] = full[shape=(3,), value=0.0, dtype=float32]()\n"
    "%b: float32[3] = full[shape=(3,), value=-0.0, dtype=float32]()",
    "dtypes": "%a: float32[3] = full[shape=(3,), value=1, dtype=float32]()\n"
    "%b: int32[3] = full[shape=(3,), value=1, dtype=int32]()",
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_things_stay(name):
    text = f"{DIFFERENT[name]}\nreturn %a, %b"
    becomes(common_subexpressions, text, text)


def test_reads_are_the_same_until_a_write():
    before = """
        %a: float32[3] = read(%v)
        %c: float32[3] = read(%v)
        write(%w, %a)
        %d: float32[3] = read(%v)
        write(%v, %x)
        %e: float32[3] = read(%v)
        return %a, %c, %d, %e"""
    after = """
        %a: float32[3] = read(%v)
        write(%w, %a)
        write(%v, %x)
        %e: float32[3] = read(%v)
        return %a, %a, %a, %e"""
    becomes(common_subexpressions, before, after, STATE)


BETWEEN = {
    "a channel point": "send[channel='c'](%x)",
    "a branch that writes": "if(%b) {\n write(%v, %x)\n yield\n} else {\n yield\n}",
    "a loop that writes": "loop(%n) do (%i: int64[]) {\n write(%v, %x)\n yield\n}",
    "a loop that sends": "loop(%n) do (%i: int64[]) {\n send[channel='c'](%x)\n yield\n}",
}


@pytest.mark.parametrize("name", BETWEEN)
def test_a_read_after_this_is_another(name):
    text = f"%r: float32[3] = read(%v)\n{BETWEEN[name]}\n%s: float32[3] = read(%v)\nreturn %r, %s"
    becomes(common_subexpressions, text, text, STATE)


def test_an_iteration_may_find_what_the_one_before_wrote():
    text = """
        %r: float32[3] = read(%v)
        loop(%n) do (%i: int64[]) {
          %s: float32[3] = read(%v)
          %t: float32[3] = add(%s, %x)
          write(%v, %t)
          yield
        }
        return %r"""
    becomes(common_subexpressions, text, text, STATE)


def test_blocks_know_what_blocks_around_them_made_only():
    before = """
        %a: float32[3] = exp(%x)
        %r: float32[3], %q: float32[3] = if(%b) {
          %c: float32[3] = exp(%x)
          %d: float32[3] = tanh(%x)
          yield %c, %d
        } else {
          %e: float32[3] = tanh(%x)
          yield %x, %e
        }
        %f: float32[3] = tanh(%x)
        return %r, %q, %f"""
    after = before.replace("%c: float32[3] = exp(%x)\n          ", "").replace(
        "yield %c", "yield %a"
    )
    becomes(common_subexpressions, before, after, STATE)
