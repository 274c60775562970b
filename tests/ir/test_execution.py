"""What structural operations mean: state, control flow, channels, kernels, errors and places."""

import numpy as np
import pytest
from hypothesis import given

from dilim import dtypes
from dilim.backends.reference.executor import by_kernel, by_recipe, execute
from dilim.errors import GraphError, ShapeError
from dilim.ir.graph import NO_SITE, Graph, GraphBuilder, Node, Site, Value
from dilim.ir.places import at_place
from dilim.ir.text import from_text
from dilim.ir.types import Type
from dilim.ir.verify import verify
from dilim.ops.table import OPERATIONS
from ir.programs import programs, same_run


def run(text, *inputs, **options):
    graph = from_text(text)
    verify(graph, OPERATIONS)
    return [x.tolist() for x in execute(graph, [np.asarray(x) for x in inputs], **options)]


def f32(*numbers):
    return np.array(numbers, np.float32)


# --- state ----------------------------------------------------------------------------------

COUNTER = """\
graph(%x: float32[2]; %w: float32[2]) {
  %1: float32[2] = read(%w)
  %2: float32[2] = add(%1, %x)
  write(%w, %2)
  %3: float32[2] = read(%w)
  return %1, %3
}"""


def test_writes_go_into_the_given_array_and_reads_are_copies():
    memory = f32(1, 2)
    assert run(COUNTER, f32(10, 20), variables=[memory]) == [[1, 2], [11, 22]]
    assert memory.tolist() == [11, 22]
    assert run(COUNTER, f32(10, 20), variables=[memory]) == [[11, 22], [21, 42]]


def test_a_variable_may_have_any_strides():
    memory = np.zeros((2, 3), np.float32)
    run(COUNTER, f32(1, 2), variables=[memory[::-1, 1]])
    assert memory.tolist() == [[0, 2, 0], [0, 1, 0]]


def test_variables_are_checked():
    with pytest.raises(ShapeError, match="expected 1 variables, received 0"):
        run(COUNTER, f32(1, 2))
    with pytest.raises(ShapeError, match=r"variable 0 'w' of type float32\[2\], received shape"):
        run(COUNTER, f32(1, 2), variables=[f32(1)])


# --- control flow ---------------------------------------------------------------------------

CHOICE = """\
graph(%c: bool[], %x: float32[2]; %w: float32[2]) {
  %r: float32[2], %y: float32[2] = if(%c) {
    %1: float32[2] = negative(%x)
    yield %1, %x
  } else {
    write(%w, %x)
    yield %x, %x
  }
  return %r
}"""


def test_only_the_branch_that_is_taken_runs():
    memory = f32(0, 0)
    assert run(CHOICE, np.True_, f32(1, 2), variables=[memory]) == [[-1, -2]]
    assert memory.tolist() == [0, 0]
    assert run(CHOICE, np.False_, f32(1, 2), variables=[memory]) == [[1, 2]]
    assert memory.tolist() == [1, 2]


FIBONACCI = """\
graph(%n: int64[], %a: int64[], %b: int64[]) {
  %x: int64[], %y: int64[] = loop(%n, %a, %b) (%i: int64[], %p: int64[], %q: int64[]) {
    %s: int64[] = add(%p, %q)
    yield %q, %s
  }
  return %x, %y
}"""
SWAP = """\
graph(%n: int64[], %a: int64[], %b: int64[]) {
  %x: int64[], %y: int64[] = loop(%n, %a, %b) (%i: int64[], %p: int64[], %q: int64[]) {
    yield %q, %p
  }
  return %x, %y
}"""


@pytest.mark.parametrize(
    ("count", "want"), [(0, [0, 1]), (1, [1, 1]), (10, [55, 89]), (-3, [0, 1])]
)
def test_a_loop_carries_values(count, want):
    assert run(FIBONACCI, np.int64(count), np.int64(0), np.int64(1)) == want


def test_carried_values_are_exchanged_at_once():
    assert run(SWAP, np.int64(3), np.int64(7), np.int64(8)) == [8, 7]
    assert run(SWAP, np.int64(4), np.int64(7), np.int64(8)) == [7, 8]


HALVING = """\
graph(%n: int64[], %x: float32[], %least: float32[]) {
  %h: float32[] = full[shape=(), value=0.5, dtype=float32]()
  %r: float32[], %k: int64[] = loop(%n, %x, %n) while (%i: int64[], %a: float32[], %j: int64[]) {
    %more: bool[] = greater(%a, %least)
    yield %more
  } do (%i2: int64[], %a2: float32[], %j2: int64[]) {
    %next: float32[] = multiply(%a2, %h)
    yield %next, %i2
  }
  return %r, %k
}"""


def test_a_loop_ends_at_its_condition_or_its_limit():
    assert run(HALVING, np.int64(100), np.float32(16), np.float32(3)) == [2.0, 2]
    assert run(HALVING, np.int64(2), np.float32(16), np.float32(3)) == [4.0, 1]
    assert run(HALVING, np.int64(100), np.float32(3), np.float32(3)) == [3.0, 100]
    assert run(HALVING, np.int64(100), np.float32(np.nan), np.float32(3))[1] == 100


NESTED = """\
graph(%n: int64[]; %total: int64[]) {
  loop(%n) (%i: int64[]) {
    loop(%i) (%j: int64[]) {
      %1: int64[] = multiply(%i, %n)
      %2: int64[] = add(%1, %j)
      %3: int64[] = read(%total)
      %4: int64[] = add(%3, %2)
      write(%total, %4)
      yield
    }
    yield
  }
  return
}"""


def test_inner_regions_see_what_is_around_them():
    total = np.array(0)
    assert run(NESTED, np.int64(5), variables=[total]) == []
    assert total == sum(5 * i + j for i in range(5) for j in range(i))


def test_a_safepoint_is_passed_on_each_turn_and_can_stop_the_run():
    total, calls = np.array(0), []

    def stop():
        calls.append(int(total))
        if len(calls) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(NESTED, np.int64(5), variables=[total], safepoint=stop)
    assert calls == [0, 5, 5, 15]  # outer 0; inner 0 of 1; outer 1; inner 0 of 2
    assert total == 15


# --- channels -------------------------------------------------------------------------------

TALK = """\
graph(%n: int64[], %x: float32[2]) {
  %r: float32[2] = loop(%n, %x) (%i: int64[], %a: float32[2]) {
    send[channel='ask'](%i, %a)
    %b: float32[2] = receive[channel='answer']()
    yield %b
  }
  return %r
}"""


class Doubling:
    def __init__(self):
        self.seen = []

    def send(self, channel, arrays):
        self.seen.append((channel, *arrays))

    def receive(self, channel):
        assert channel == "answer"
        return [2 * self.seen[-1][2]]


def test_a_host_is_met_in_order():
    host = Doubling()
    assert run(TALK, np.int64(3), f32(1, 2), host=host) == [[8, 16]]
    assert [(c, i.tolist(), a.tolist()) for c, i, a in host.seen] == [
        ("ask", 0, [1, 2]),
        ("ask", 1, [2, 4]),
        ("ask", 2, [4, 8]),
    ]


def test_what_is_sent_is_a_copy():
    text = "graph(; %w: float32[2]) {\n  %1: float32[2] = read(%w)\n"
    text += "  send[channel='a'](%1)\n  write(%w, %1)\n  return %1\n}"
    host, memory = Doubling(), f32(1, 2)
    run(text, variables=[memory], host=host)
    host.seen[0][1][:] = 9
    assert memory.tolist() == [1, 2]


def test_faults_of_the_host_are_named():
    with pytest.raises(GraphError, match="send: the graph meets its host at channel 'ask', but"):
        run(TALK, np.int64(1), f32(1, 2))
    text = "graph() {\n  %1: bool[] = receive[channel='answer']()\n  return %1\n}"
    host = Doubling()
    host.seen = [("ask", 0, f32(1))]
    with pytest.raises(ShapeError, match=r"receive 'answer': expected bool\[\], received shape"):
        run(text, host=host)


# --- kernels --------------------------------------------------------------------------------


@pytest.mark.parametrize("evaluate", [by_kernel, by_recipe])
def test_a_kernel_means_what_is_inside(evaluate):
    text = """\
graph(%x: float32[2], %y: float32[2]) {
  %1: float32[2], %2: float32[] = fused(%y, %x) (%a: float32[2], %b: float32[2]) {
    %3: float32[2] = subtract(%a, %b)
    %4: float32[] = sum[axis=(0,), keepdims=False](%3)
    yield %3, %4
  }
  return %1, %2
}"""
    assert run(text, f32(1, 2), f32(5, 7), evaluate=evaluate) == [[4, 5], 9]


# --- errors ---------------------------------------------------------------------------------


def failing_at(position):
    """Writes 1, takes at the given positions in a loop and writes what it got, from known lines."""
    builder = GraphBuilder()
    w = builder.variable(Type((), dtypes.int64), "w")
    positions = builder.input(Type((3,), dtypes.int64))
    limit = builder.input(Type((), dtypes.int64))
    one = {"shape": (), "value": 1, "dtype": dtypes.int64}
    builder.add_node("write", [w, builder.add("full", [], one, w.type)], {}, [])
    body = builder.region()
    index = body.input(Type((), dtypes.int64))
    taken = body.add("take", [positions, index], {"axis": 0}, w.type, Site("agent.py", 41))
    again = body.add("take", [positions, taken], {"axis": 0}, w.type, Site("agent.py", 42))
    body.add_node("write", [w, again], {}, [])
    builder.add_node("loop", [limit], {}, [], [body.build_region([])])
    graph = builder.build([])
    verify(graph, OPERATIONS)
    memory = np.array(0)
    return lambda: execute(graph, [np.array(position), np.array(3)], variables=[memory]), memory


def test_exactly_the_writes_before_an_error_are_visible():
    start, memory = failing_at([1, 0, 7])
    with pytest.raises(IndexError, match="take: position 7 is out of range") as caught:
        start()
    assert memory == 1  # turn 0 wrote 0, turn 1 wrote 1
    assert caught.value.__notes__ == ["in take, from agent.py:42"]
    start, memory = failing_at([5, 0, 0])
    with pytest.raises(IndexError) as caught:
        start()
    assert memory == 1  # the write before the loop
    assert caught.value.__notes__ == ["in take, from agent.py:42"]


def test_a_place_is_told_once_and_only_where_it_is_known():
    x = Value(Type((), dtypes.bool_))
    node = Node("exp", (), {}, (x,), (), 1)
    sites = [Site("a.py", 1), Site("b.py", 20)]
    error = ValueError("bad")
    at_place(error, node, sites)
    at_place(error, node, sites)
    assert error.__notes__ == ["in exp, from b.py:20"]
    unknown = ValueError("bad")
    at_place(unknown, Node("exp", (), {}, (x,), (), NO_SITE), sites)
    assert not hasattr(unknown, "__notes__")


# --- random programs ------------------------------------------------------------------------


@given(programs(fused=True, errors=True))
def test_a_run_has_no_memory_of_earlier_ones(program):
    same_run(program.run(), program.run())


@given(programs(errors=True, channels=True))
def test_results_share_no_memory(program):
    variables = [np.array(x) for x in program.variables]
    inputs = [np.array(x) for x in program.inputs]
    try:
        outputs = execute(program.graph, inputs, variables=variables, host=program.host())
    except (IndexError, ValueError):  # a position, an exponent
        return
    for number, x in enumerate(outputs):
        assert x.flags.c_contiguous
        for other in (*inputs, *variables, *outputs[:number]):
            assert not np.shares_memory(x, other)


def test_an_empty_graph_gives_nothing():
    assert execute(Graph((), (), ()), []) == []
