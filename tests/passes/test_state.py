"""Written values go straight to reads; writes that nobody can see go."""

import pytest

from dilim.passes.state import state
from passes.graphs import becomes

INPUTS = "%x: float32[3], %y: float32[3], %i: int64[2], %b: bool[], %n: int64[]; %v: float32[3]"


def test_a_read_gets_what_was_written():
    before = """
        write(%v, %x)
        %a: float32[3] = read(%v)
        %c: float32[3] = exp(%a)
        return %c"""
    after = """
        write(%v, %x)
        %c: float32[3] = exp(%x)
        return %c"""
    becomes(state, before, after, INPUTS)


def test_a_write_that_the_next_one_hides_goes():
    becomes(state, "write(%v, %x)\nwrite(%v, %y)\nreturn", "write(%v, %y)\nreturn", INPUTS)


def test_a_write_of_what_is_there_goes():
    before = "%a: float32[3] = read(%v)\nwrite(%v, %a)\nreturn %a"
    becomes(state, before, "%a: float32[3] = read(%v)\nreturn %a", INPUTS)


BRANCH = "if(%b) {{\n{0}\nyield\n}} else {{\nyield\n}}"
LOOP = "loop(%n) do (%k: int64[]) {{\n{0}\nyield\n}}"
SEEN = {
    "what may raise": "%a: float32[2] = take[axis=0](%x, %i)",
    "a channel point": "send[channel='c'](%y)",
    "a loop, whose back edge is a safepoint": LOOP.format("%a: int64[] = add(%k, %n)"),
    "a branch that may raise": BRANCH.format("%a: float32[2] = take[axis=0](%x, %i)"),
    "a branch with a channel point": BRANCH.format("send[channel='c'](%y)"),
    "a branch that writes": BRANCH.format("write(%v, %y)"),
}


@pytest.mark.parametrize("name", SEEN)
def test_a_write_that_somebody_may_see_stays(name):
    text = f"write(%v, %x)\n{SEEN[name]}\nwrite(%v, %y)\nreturn"
    becomes(state, text, text, INPUTS)


UNKNOWN = {
    "a channel point": "send[channel='c'](%y)",
    "a branch that writes": BRANCH.format("write(%v, %y)"),
    "a loop that writes": LOOP.format("write(%v, %y)"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_contents_are_unknown_after(name):
    text = f"write(%v, %x)\n{UNKNOWN[name]}\n%a: float32[3] = read(%v)\nreturn %a"
    becomes(state, text, text, INPUTS)


def test_blocks_know_the_contents_before_them():
    read = "%a: float32[3] = read(%v)\n %c: float32[3] = exp(%a)\n send[channel='c'](%c)"
    before = f"write(%v, %x)\n{BRANCH.format(read)}\nreturn"
    after = before.replace("%a: float32[3] = read(%v)\n ", "").replace("exp(%a)", "exp(%x)")
    becomes(state, before, after, INPUTS)


def test_an_iteration_reads_what_the_one_before_wrote():
    inside = "%a: float32[3] = read(%v)\n%c: float32[3] = add(%a, %x)\nwrite(%v, %c)"
    text = f"write(%v, %x)\n{LOOP.format(inside)}\nreturn"
    becomes(state, text, text, INPUTS)


def test_a_hidden_write_and_one_of_what_was_there_before_it_both_go():
    before = "%a: float32[3] = read(%v)\nwrite(%v, %x)\nwrite(%v, %a)\nreturn %a"
    becomes(state, before, "%a: float32[3] = read(%v)\nreturn %a", INPUTS)
    seen = (
        "%a: float32[3] = read(%v)\nwrite(%v, %x)\nsend[channel='c'](%y)\nwrite(%v, %a)\nreturn %a"
    )
    becomes(state, seen, seen, INPUTS)
