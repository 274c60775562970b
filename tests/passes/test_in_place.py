"""Which memory may be used again: small cases, and that a wrong permission is noticed."""

import numpy as np
import pytest

from dilim.backends.reference.executor import by_recipe, execute
from dilim.ir.structure import FUSED, LOOP, READ, WRITE, walk
from dilim.ir.text import from_text
from dilim.ir.verify import verify
from dilim.ops.table import OPERATIONS
from dilim.passes import in_place as module
from dilim.passes.pipeline import optimise
from passes.graphs import body, find, parsed
from passes.memory_model import Machine

STATE = "%x: float32[3]; %v: float32[3], %w: float32[3]"
SQUARE = "; %v: float32[3,3]"


def optimised(lines, inputs=STATE):
    graph = optimise(body(lines, inputs))
    verify(graph, OPERATIONS)
    return graph


def permitted(graph):
    """Whether each write is in place, and each read a copy."""
    return (
        [bool(node.params.get("in_place")) for node in find(graph, WRITE)],
        [bool(node.params.get("copy")) for node in find(graph, READ)],
    )


def test_an_update_is_made_in_the_variable():
    graph = optimised("""
        %a: float32[3] = read(%v)
        %b: float32[3] = add(%a, %x)
        write(%v, %b)
        return""")
    assert permitted(graph) == ([True], [False])
    (kernel,) = find(graph, FUSED)
    assert kernel.params["alias"] == ((0, 0),)


NOT_OVER_ITSELF = {
    "x = x[::-1]": "%b: float32[3,3] = flip[axis=(0,)](%a)",
    "x += x.T": "%t: float32[3,3] = permute[order=(1, 0)](%a)\n%b: float32[3,3] = add(%a, %t)",
    "x = x @ x": "%b: float32[3,3] = matmul(%a, %a)",
    "x[1:] = x[:-1]": "%s: float32[2,3] = slice[index=((0, 2, 1), (0, 3, 1))](%a)\n"
    "%b: float32[3,3] = slice_update[index=((1, 2, 1), (0, 3, 1))](%a, %s)",
    "x = x - x.sum(1)": "%s: float32[3,1] = sum[axis=(1,), keepdims=True](%a)\n"
    "%b: float32[3,3] = subtract(%a, %s)",
    "x = cumulative sums": "%b: float32[3,3] = cumulative_sum[axis=0](%a)",
}


@pytest.mark.parametrize("name", NOT_OVER_ITSELF)
def test_elements_that_are_read_elsewhere_are_not_overwritten(name):
    lines = f"%a: float32[3,3] = read(%v)\n{NOT_OVER_ITSELF[name]}\nwrite(%v, %b)\nreturn"
    graph = optimised(lines, SQUARE)
    for kernel in find(graph, FUSED):
        for _, operand in kernel.params.get("alias", ()):
            assert kernel.inputs[operand] not in {x.results[0] for x in find(graph, READ)}
    assert memory_agrees(graph, lines, SQUARE)


def test_a_row_is_written_into_storage_without_a_copy():
    lines = """
        %a: float32[3,3] = read(%v)
        %r: float32[1,3] = full[shape=(1, 3), value=2.0, dtype=float32]()
        %b: float32[3,3] = slice_update[index=((1, 1, 1), (0, 3, 1))](%a, %r)
        write(%v, %b)
        return"""
    graph = optimised(lines, SQUARE)
    assert permitted(graph) == ([True], [False])
    assert find(graph, FUSED)[0].params["alias"] == ((0, 0),)


def test_a_scatter_goes_over_what_it_starts_from():
    lines = """
        %a: float32[3] = read(%v)
        %b: float32[3] = index_add[axis=0](%a, %i, %y)
        write(%v, %b)
        return"""
    graph = optimised(lines, "%i: int64[2], %y: float32[2]; %v: float32[3]")
    assert permitted(graph) == ([True], [False])


def test_variables_that_change_places():
    lines = """
        %a: float32[3] = read(%v)
        %b: float32[3] = read(%w)
        write(%v, %b)
        write(%w, %a)
        return"""
    graph = optimised(lines)
    assert permitted(graph) == ([False, False], [True, False])
    assert memory_agrees(graph, lines, STATE)


def test_old_contents_that_are_needed_later_are_copied_out():
    lines = """
        %a: float32[3] = read(%v)
        %b: float32[3] = add(%a, %x)
        write(%v, %b)
        return %a"""
    graph = optimised(lines)
    assert permitted(graph) == ([True], [True])
    assert memory_agrees(graph, lines, STATE)


BETWEEN = {
    "a channel point": "send[channel='c'](%x)",
    "what may raise": "%e: float32[1] = take[axis=0](%x, %i)\nwrite(%u, %e)",
    "a loop, whose back edge is a safepoint": "%n: float32[3] = loop(%k, %x) do (%j: int64[],"
    " %c: float32[3]) {\n%d: float32[3] = exp(%c)\nyield %d\n}\nwrite(%w, %n)",
}


@pytest.mark.parametrize("name", BETWEEN)
def test_a_new_state_may_not_show_early(name):
    """The kernel runs first here, so that its result must wait in memory of its own."""
    lines = f"""
        %a: float32[3] = read(%v)
        %b: float32[3] = add(%a, %x)
        send[channel='first'](%b)
        {BETWEEN[name]}
        write(%v, %b)
        return"""
    inputs = "%x: float32[3], %i: int64[1], %k: int64[]; %v: float32[3], %w: float32[3],"
    graph = optimised(lines, inputs + " %u: float32[1]")
    *_, write = find(graph, WRITE)
    assert not write.params.get("in_place")


LOOP_OF_TWO = """
    %n: int64[] = full[shape=(), value=3, dtype=int64]()
    %p: float32[3], %q: float32[3] = loop(%n, %x, %y) do (%k: int64[], %a: float32[3],
      %b: float32[3]) {{
      {0}
    }}
    return %p, %q"""


def loop_of(text):
    lines = LOOP_OF_TWO.format(text).replace(",\n     ", ",")
    inputs = "%x: float32[3], %y: float32[3]"
    graph = optimised(lines, inputs)
    assert memory_agrees(graph, lines, inputs)
    (loop,) = find(graph, LOOP)
    return loop.params


def test_carried_values_that_change_places_are_moved():
    assert "in_place" not in loop_of("yield %b, %a")
    two = "%c: float32[3] = exp(%a)\n%d: float32[3] = sin(%b)\nyield %d, %c"
    assert loop_of(two)["in_place"] == (0,)  # exp(a) is done before a goes


def test_carried_values_are_made_in_place():
    both = "%c: float32[3] = exp(%a)\n%d: float32[3] = sin(%b)\nyield %c, %d"
    assert loop_of(both)["in_place"] == (0, 1)
    one = "%c: float32[3] = flip[axis=(0,)](%a)\n%d: float32[3] = sin(%b)\nyield %c, %d"
    assert loop_of(one)["in_place"] == (1,)


def test_users_of_the_old_value_run_before_it_is_replaced():
    """%d needs the old %a, though it comes after the new one in the text."""
    text = "%c: float32[3] = exp(%a)\n%s: float32[] = sum[axis=(0,), keepdims=False](%a)\n"
    text += "%d: float32[3] = add(%b, %s)\nyield %c, %d"
    assert loop_of(text)["in_place"] == (0, 1)


def test_an_initial_value_that_is_used_again_keeps_its_memory():
    inputs = "%x: float32[3]"
    text = """
        %n: int64[] = full[shape=(), value=3, dtype=int64]()
        %e: float32[3] = exp(%x)
        %f: float32[3] = sin(%x)
        send[channel='c'](%e, %f)
        %p: float32[3], %q: float32[3] = loop(%n, %e, %f) do (%k: int64[], %a: float32[3],
          %b: float32[3]) {
          %c: float32[3] = add(%a, %b)
          %d: float32[3] = subtract(%a, %b)
          yield %c, %d
        }
        %r: float32[3] = add(%p, %f)
        return %q, %r""".replace(",\n         ", ",")
    (loop,) = find(optimised(text, inputs), LOOP)
    assert loop.params["reuse"] == (0,)


def memory_agrees(graph, lines, inputs):
    """Whether a run in shared memory gives what a run of the original gives, in both orders."""
    original = body(lines, inputs)
    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=x.shape).astype(x.dtype.numpy) for x in original.inputs]
    contents = [rng.normal(size=x.shape).astype(np.float32) for x in original.variables]
    wanted_state = [x.copy() for x in contents]
    wanted = execute(original, arrays, by_recipe, variables=wanted_state)
    for backwards in (False, True):
        state = [x.copy() for x in contents]
        got = Machine(graph, state, None, backwards).run(arrays)
        for a, b in zip([*got, *state], [*wanted, *wanted_state], strict=True):
            if a.tobytes() != b.tobytes():
                return False
    return True


@pytest.mark.parametrize("name", ["x = x[::-1]", "x += x.T"])
def test_a_permission_that_is_not_earned_is_noticed(name, monkeypatch):
    monkeypatch.setattr(module, "replaceable", lambda *arguments: True)
    lines = f"%a: float32[3,3] = read(%v)\n{NOT_OVER_ITSELF[name]}\nwrite(%v, %b)\nreturn"
    assert not memory_agrees(optimise(body(lines, SQUARE)), lines, SQUARE)


def test_the_whole_pass_reads_only_what_kernels_say():
    """A graph without kernels gets no permissions but those of reads."""
    graph = parsed("graph(%x: float32[3]; %v: float32[3]) {\n  write(%v, %x)\n  return\n}")
    assert permitted(module.in_place(graph)) == ([False], [])


BRANCHED = """graph(%n: int64[], %t: bool[], %x: float32[10,4], %row: float32[4]) {
  %r: float32[10,4] = loop(%n, %x) do (%i: int64[], %c: float32[10,4]) {
    %o: float32[10,4] = if(%t) {
      %a: float32[10,4] = index_update[axis=0](%c, %i, %row)
      %b: float32[10,4] = index_update[axis=0](%a, %n, %row)
      yield %b
    } else {
      yield %c
    }
    yield %o
  }
  return %r
}"""


def _permitted(text):
    return [
        (node.op, {k: x for k, x in node.params.items() if k in ("in_place", "alias")})
        for node in walk(optimise(from_text(text)))
        if node.op in ("if", "loop", "fused")
    ]


def test_a_branch_writes_one_row_after_the_other_into_the_carried_value():
    loop, branch, *kernels = _permitted(BRANCHED)
    assert loop == ("loop", {"in_place": (0,)})
    assert branch == ("if", {"in_place": ((0, 0),)})
    assert all(len(params["alias"]) == 1 for _, params in kernels)
    assert len(kernels) == 2


@pytest.mark.parametrize(
    ("change", "by"),
    [
        ("yield %o", "%s: float32[10,4] = add(%c, %o)\n    yield %s"),  # it is used afterwards
        (
            "yield %b",
            "%s: float32[10,4] = matmul(%c, %d)\n      %e: float32[10,4] = add(%s, %b)\n yield %e",
        ),
    ],
)
def test_a_carried_value_that_is_still_wanted_is_not_written_over(change, by):
    text = BRANCHED.replace(change, by).replace(
        "%row: float32[4])", "%row: float32[4], %d: float32[4,4])"
    )
    assert all(
        "in_place" not in params or params["in_place"] == () or op == "loop"
        for op, params in _permitted(text)
    )
    writes = [params for op, params in _permitted(text) if op == "fused"]
    assert not all("alias" in params for params in writes)
