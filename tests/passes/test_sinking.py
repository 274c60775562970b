"""What only the last turn of a loop leaves behind is computed after the loop."""

import numpy as np
import pytest

from dilim.backends.reference.executor import by_recipe
from dilim.ir.structure import LOOP
from dilim.ir.text import digest
from dilim.ir.verify import verify
from dilim.ops.table import OPERATIONS
from dilim.passes.dead_code import dead_code
from dilim.passes.pipeline import optimise
from dilim.passes.sinking import sinking
from ir.programs import Program, same_run
from passes.graphs import becomes, body, find

INPUTS = "%n: int64[], %w: float32[2,1], %a: float32[40,2], %l: float32[]; %v: float32[2,1]"
LOSS = """
  %p: float32[40,1] = {product}
  %q: float32[40,1] = exp(%p)
  %m: float32[] = sum[axis=(0, 1), keepdims=False](%q)
"""


def loop(
    more="", carried="", start="", results="", yielded="", product="matmul(%a, %c)", loss="%m"
):
    """A loop that changes ``w`` and leaves a loss behind."""
    return f"""
        %r: float32[2,1], %s: float32[]{results} = loop(%n, %w, %l{start}) do (%k: int64[],
          %c: float32[2,1], %d: float32[]{carried}) {{
          {LOSS.format(product=product)}
          %h: float32[2,1] = multiply(%c, %c)
          {more}
          yield %h, {loss}{yielded}
        }}
        return %r, %s{results.replace(": float32[]", "").replace(": float32[2,1]", "")}"""


def runs(graph, before, turns):
    random = np.random.default_rng(turns + 1)
    arrays = [
        np.array(turns),
        random.standard_normal((2, 1)).astype(np.float32),
        random.standard_normal((40, 2)).astype(np.float32),
        np.array(7.5, np.float32),
    ]
    program = Program(before, arrays, [np.zeros((2, 1), np.float32)], {})
    same_run(program.on(graph).run(by_recipe), program.run(by_recipe))


def sunk(text):
    """Whether the loss leaves the loop, which has to leave what the loop does as it was."""
    before = body(text, INPUTS)
    after = dead_code(sinking(before))
    verify(after, OPERATIONS)
    for turns in (-1, 0, 1, 2, 5):
        runs(after, before, turns)
        runs(optimise(before), before, turns)
    return not any(x.op == "exp" for node in find(after, LOOP) for x in node.regions[-1].nodes)


def test_a_loss_that_is_read_after_the_loop():
    after = f"""
        %z: int64[] = full[shape=(), value=0, dtype=int64]()
        %r: float32[2,1], %b: float32[2,1] = loop(%n, %w, %w) do (%k: int64[], %c: float32[2,1],
          %e: float32[2,1]) {{
          %h: float32[2,1] = multiply(%c, %c)
          yield %h, %c
        }}
        %t: bool[] = greater(%n, %z)
        %s: float32[] = if(%t) {{
          {LOSS.format(product="matmul(%a, %b)")}
          yield %m
        }} else {{
          yield %l
        }}
        return %r, %s"""
    becomes(lambda graph: dead_code(sinking(graph)), _flat(loop()), _flat(after), INPUTS)


def _flat(text):
    """Without empty lines, and with heads in one line each."""
    text = text.replace(",\n          %", ", %")
    return "\n".join(line for line in text.splitlines() if line.strip())


SINKS = {
    "alone": loop(),
    "with the number of the turn": loop(
        product="multiply(%f, %g)",
        more="",
    ).replace(
        "%p: float32[40,1] = multiply(%f, %g)",
        """%f: float32[40,1] = matmul(%a, %c)
        %i: float32[] = astype[dtype=float32](%k)
        %g: float32[40,1] = expand[shape=(40, 1)](%i)
        %p: float32[40,1] = multiply(%f, %g)""",
    ),
    "of a product that is used otherwise": loop(
        more="""%x: float32[2,40] = permute[order=(1, 0)](%a)
        %y: float32[2,1] = matmul(%x, %p)""",
        carried=", %j: float32[2,1]",
        start=", %w",
        results=", %o: float32[2,1]",
        yielded=", %y",
    ),
}
STAYS = {
    "it is read in the loop": loop(loss="%u", more="%u: float32[] = add(%m, %d)"),
    "another value takes it over": loop(
        carried=", %j: float32[]", start=", %l", results=", %o: float32[]", yielded=", %d"
    ),
    "it is sent": loop(more="send[channel='c'](%q)"),
    "it reads what the loop writes": loop(product="matmul(%a, %g)", more="write(%v, %h)").replace(
        "%p: float32", "%g: float32[2,1] = read(%v)\n  %p: float32"
    ),
    "it may raise": loop(product="take_along_axis[axis=0](%f, %i)").replace(
        "%p: float32[40,1] =",
        """%f: float32[40,1] = matmul(%a, %c)
        %y: float32[40,1] = multiply(%f, %f)
        %i: int64[40,1] = astype[dtype=int64](%y)
        %p: float32[40,1] =""",
    ),
}


@pytest.mark.parametrize("name", SINKS)
def test_it_sinks(name):
    assert sunk(_flat(SINKS[name]))


@pytest.mark.parametrize("name", STAYS)
def test_it_stays(name):
    if "may raise" in name:
        before = body(_flat(STAYS[name]), INPUTS)
        assert any(
            x.op == "exp" for x in find(dead_code(sinking(before)), LOOP)[0].regions[0].nodes
        )
    else:
        assert not sunk(_flat(STAYS[name]))


def test_a_value_that_costs_less_than_what_it_is_made_of_stays():
    text = """
        %r: float32[40,2], %s: float32[] = loop(%n, %a, %l) do (%k: int64[], %c: float32[40,2],
          %d: float32[]) {
          %m: float32[] = sum[axis=(0, 1), keepdims=False](%c)
          %h: float32[40,2] = exp(%c)
          yield %h, %m
        }
        return %r, %s"""
    graph = body(_flat(text), INPUTS)
    assert digest(sinking(graph)) == digest(graph)


@pytest.mark.parametrize("limit", [0.5, 1e9])
def test_a_loop_that_a_condition_ends(limit):
    text = f"""
        %r: float32[2,1], %s: float32[] = loop(%n, %w, %l) while (%k: int64[], %c: float32[2,1],
          %d: float32[]) {{
          %t: float32[] = sum[axis=(0, 1), keepdims=False](%c)
          %u: float32[] = full[shape=(), value={limit}, dtype=float32]()
          %o: bool[] = less(%t, %u)
          yield %o
        }} do (%k2: int64[], %c2: float32[2,1], %d2: float32[]) {{
          {LOSS.format(product="matmul(%a, %c2)")}
          %h: float32[2,1] = multiply(%c2, %c2)
          yield %h, %m
        }}
        return %r, %s"""
    assert sunk(_flat(text))
