"""What one branch alone looks at is computed in it."""

import numpy as np
import pytest

from dilim.backends.reference.executor import by_recipe
from dilim.ir.structure import IF, LOOP
from dilim.ir.text import digest
from dilim.ir.verify import verify
from dilim.ops.table import OPERATIONS
from dilim.passes.branch_sinking import branch_sinking
from dilim.passes.dead_code import dead_code
from dilim.passes.pipeline import optimise
from dilim.passes.sinking import sinking
from ir.programs import Program, same_run
from passes.graphs import becomes, body, find

INPUTS = "%n: int64[], %t: bool[], %a: float32[40], %i: int64[40]; %v: float32[40]"


def same(before, after):
    """Both graphs compute the same, whichever branch is taken."""
    verify(after, OPERATIONS)
    for truth in (False, True):
        arrays = [
            np.array(3),
            np.array(truth),
            np.linspace(0, 1, 40, dtype=np.float32),
            np.arange(40)[::-1].copy(),
        ]
        program = Program(before, arrays, [np.zeros(40, np.float32)], {})
        same_run(program.on(after).run(by_recipe), program.run(by_recipe))
        same_run(program.on(optimise(before)).run(by_recipe), program.run(by_recipe))


def test_a_chain_moves_into_the_branch_that_uses_it():
    before = """
        %b: float32[40] = exp(%a)
        %c: float32[40] = multiply(%b, %a)
        %r: float32[40] = if(%t) {
          yield %c
        } else {
          yield %a
        }
        return %r"""
    after = """
        %r: float32[40] = if(%t) {
          %b: float32[40] = exp(%a)
          %c: float32[40] = multiply(%b, %a)
          yield %c
        } else {
          yield %a
        }
        return %r"""
    becomes(branch_sinking, before, after, INPUTS)
    same(body(before, INPUTS), branch_sinking(body(before, INPUTS)))


def test_it_moves_on_into_a_branch_of_the_branch():
    before = """
        %b: float32[40] = exp(%a)
        %r: float32[40] = if(%t) {
          %s: float32[40] = if(%t) {
            yield %b
          } else {
            yield %a
          }
          yield %s
        } else {
          yield %a
        }
        return %r"""
    graph = branch_sinking(body(before, INPUTS))
    inner = find(graph, IF)[0].regions[0].nodes[0]
    assert [x.op for x in inner.regions[0].nodes] == ["exp"]
    same(body(before, INPUTS), graph)


STAYS = {
    "both branches use it": ("%b: float32[40] = exp(%a)", "%b", "%b", "%r"),
    "it is a result": ("%b: float32[40] = exp(%a)", "%b", "%a", "%r, %b"),
    "it may raise": ("%b: float32[40] = take_along_axis[axis=0](%a, %i)", "%b", "%a", "%r"),
}


@pytest.mark.parametrize("name", STAYS)
def test_it_stays(name):
    made, then, otherwise, results = STAYS[name]
    text = f"""
        {made}
        %r: float32[40] = if(%t) {{
          yield {then}
        }} else {{
          yield {otherwise}
        }}
        return {results}"""
    graph = body(text, INPUTS)
    assert digest(branch_sinking(graph)) == digest(graph)
    same(graph, branch_sinking(graph))


def test_a_condition_is_computed_before_its_branches():
    text = """
        %b: float32[40] = exp(%a)
        %c: float32[] = sum[axis=(0,), keepdims=False](%b)
        %d: bool[] = greater(%c, %c)
        %r: float32[40] = if(%d) {
          yield %b
        } else {
          yield %a
        }
        return %r"""
    graph = body(text, INPUTS)
    assert digest(branch_sinking(graph)) == digest(graph)


def test_a_loss_that_is_sent_at_some_turns_and_read_after_the_loop():
    text = """
        %l: float32[] = full[shape=(), value=0.0, dtype=float32]()
        %r: float32[40], %s: float32[] = loop(%n, %a, %l) do (%k: int64[], HEAD) {
          %q: float32[40] = exp(%c)
          %q2: float32[40] = multiply(%q, %q)
          %q3: float32[40] = multiply(%q2, %q)
          %q4: float32[40] = multiply(%q3, %q)
          %m: float32[] = sum[axis=(0,), keepdims=False](%q4)
          if(%t) {
            write(%v, %q3)
            yield
          } else {
            yield
          }
          %h: float32[40] = multiply(%c, %c)
          yield %h, %m
        }
        return %r, %s"""
    before = body(text.replace("HEAD", "%c: float32[40], %d: float32[]"), INPUTS)
    after = dead_code(sinking(before))
    in_loop = [x.op for x in find(after, LOOP)[0].regions[-1].nodes]
    assert in_loop == ["if", "multiply"]
    same(before, after)


READS = """
    %b: float32[40] = read(%v)
    {between}
    %r: float32[40] = if(%t) {{
      write(%v, %a)
      yield %b
    }} else {{
      %e: float32[40] = exp(%b)
      yield %e
    }}
    return %r{more}"""


@pytest.mark.parametrize(
    ("between", "more", "inside"),
    [
        ("%c: float32[40] = exp(%a)", "", True),
        ("%c: float32[40] = exp(%a)", ", %b", True),
        ("write(%v, %a)", "", False),
    ],
)
def test_branches_read_what_has_not_changed_since_it_was_read(between, more, inside):
    before = body(READS.format(between=between, more=more), INPUTS)
    after = dead_code(branch_sinking(before))
    assert [x.op for x in after.nodes] == (
        ["if"] if inside and not more else ["read", "if"] if inside else ["read", "write", "if"]
    )
    assert all((region.nodes[0].op == "read") == inside for region in find(after, IF)[0].regions)
    same(before, after)


def test_what_has_moved_reads_where_it_is_now():
    before = body(
        """
        %b: float32[40] = read(%v)
        %e: float32[40] = exp(%b)
        %r: float32[40] = if(%t) {
          %f: float32[40] = add(%b, %e)
          write(%v, %f)
          yield %e
        } else {
          yield %a
        }
        return %r""",
        INPUTS,
    )
    after = dead_code(branch_sinking(before))
    assert [x.op for x in after.nodes] == ["if"]
    (write,) = find(optimise(before), "write")
    assert write.params["in_place"]
    same(before, after)


def test_the_host_may_write_between():
    text = READS.format(between="send[channel='c'](%a)", more="")
    after = branch_sinking(body(text, INPUTS))
    assert all(region.nodes[0].op != "read" for region in find(after, IF)[0].regions)


def test_where_the_host_does_not_come_back_it_changes_nothing_for_the_rest():
    text = """
        %b: float32[40] = read(%v)
        if(%t) {
          yield
        } else {
          send[channel='c'](%a)
          yield
        }
        %r: float32[40] = if(%t) {
          %e: float32[40] = exp(%b)
          yield %e
        } else {
          yield %a
        }
        return %r"""
    for given, inside in ((text, False), (text.replace("'c'", "'c', final=True"), True)):
        after = branch_sinking(body(given, INPUTS))
        assert (find(after, IF)[1].regions[0].nodes[0].op == "read") == inside
