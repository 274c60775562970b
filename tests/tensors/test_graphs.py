"""`dilim.Graph`: built first, run afterwards."""

import sys

import numpy as np
import pytest

import dilim
from dilim.errors import GraphError, ShapeError, UnsupportedError
from dilim.ir.text import from_text, to_text
from dilim.ir.verify import verify
from dilim.ops.table import OPERATIONS
from dilim.tensors.dispatch import apply

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


@pytest.fixture
def graph():
    return dilim.Graph()


def test_nothing_is_computed_before_the_run(graph):
    x = graph.input((2, 3), name="x")
    y = x @ x.T
    assert repr(y) == "tensor(symbolic, shape=(2, 2), dtype=float32)"
    with pytest.raises(GraphError, match="numbers are not known"):
        y.tolist()
    assert graph.run({x: X}, fetch=y).tolist() == [[14.0, 32.0], [32.0, 77.0]]


@pytest.mark.parametrize("feed", [X, X.tolist(), dilim.tensor(X), X.T.copy().T])
def test_what_can_be_fed(graph, feed):
    x = graph.input((2, 3))
    assert graph.run({x: feed}, fetch=[x.sum(), x[0]])[1].tolist() == [1.0, 2.0, 3.0]


def test_only_the_inputs_that_are_needed_are_fed(graph):
    x, unused = graph.input((), name="x"), graph.input((), name="unused")
    y, z = x + 1.0, x * unused
    assert graph.run({x: 2.0}, fetch=y).item() == 3.0
    with pytest.raises(GraphError, match=r"run: input 'unused' of type float32\[\] is needed"):
        graph.run({x: 2.0}, fetch=z)


def test_feeds_that_do_not_fit_are_refused(graph):
    x = graph.input((2,), name="x")
    y = x + x
    with pytest.raises(ShapeError, match=r"input 'x' of type float32\[2\], received float64\[2\]"):
        graph.run({x: np.zeros(2)}, fetch=y)
    with pytest.raises(ShapeError, match=r"received float32\[3\]"):
        graph.run({x: [1.0, 2.0, 3.0]}, fetch=y)
    with pytest.raises(GraphError, match="is none of this graph"):
        graph.run({y: [1.0, 2.0]}, fetch=y)


def test_a_variable_is_the_memory_of_a_tensor(graph):
    w = dilim.tensor([1.0, 2.0])
    symbol = graph.variable(w, name="w")
    y = symbol * 10.0
    symbol += 1.0
    z = symbol * 10.0
    assert w.tolist() == [1.0, 2.0]
    assert [t.tolist() for t in graph.run({}, fetch=[y, z])] == [[10.0, 20.0], [20.0, 30.0]]
    assert w.tolist() == [2.0, 3.0]
    w[0] = 5.0
    assert [t.tolist() for t in graph.run({}, fetch=[y, z])] == [[50.0, 30.0], [60.0, 40.0]]
    assert w.tolist() == [6.0, 4.0]


def test_without_effects_state_stays_unless_a_fetched_value_depends_on_it(graph):
    w = dilim.tensor([1.0])
    symbol = graph.variable(w)
    before = symbol * 1.0
    symbol *= 2.0
    after = symbol * 1.0
    fetched = graph.run({}, fetch=[before, after], effects=False)
    assert [x.item() for x in fetched] == [1.0, 2.0]
    assert w.item() == 1.0

    def increase(index):
        symbol.add_(1.0)

    assert graph.loop(3, None, increase) is None
    assert graph.run({}, fetch=symbol, effects=False).item() == 5.0


def test_eager_tensors_that_meet_a_symbolic_one_are_variables(graph):
    offset = dilim.tensor([1.0, 2.0])
    x = graph.input((2,))
    y = x + offset
    offset.fill_(7.0)
    assert graph.run({x: [0.0, 0.0]}, fetch=y).tolist() == [7.0, 7.0]
    offset += y
    graph.run({x: [1.0, 2.0]})
    assert offset.tolist() == [15.0, 16.0]


def test_a_constant_is_copied(graph):
    array = np.arange(3.0, dtype=np.float32)
    y = graph.constant(array) * 2.0
    array[0] = 9.0
    assert graph.run(fetch=y).tolist() == [0.0, 2.0, 4.0]
    assert graph.run(fetch=graph.constant(2.5)).item() == 2.5


def test_a_compiled_graph_is_a_function(graph):
    x, y = graph.input((2,), name="x"), graph.input((2,), name="y")
    f = graph.compile([y, x], [x - y, (x * y).sum()], backend="reference", as_numbers=True)
    difference, product = f([1.0, 2.0], np.array([5, 7], np.float32))
    assert difference.tolist() == [4.0, 5.0]
    assert product == 19.0
    assert type(product) is float
    assert graph.compile(outputs=x, backend="reference")([1.0, 2.0], [0.0, 0.0]).tolist() == [1, 2]
    with pytest.raises(ShapeError, match="expected 2 inputs, received 1"):
        f([1.0, 2.0])
    with pytest.raises(GraphError, match=r"input 'x' .* is needed, but is not among the inputs"):
        graph.compile([y], x)
    with pytest.raises(GraphError, match=r"expected backend in .*, received 'abacus'"):
        graph.compile([x], x, backend="abacus")


def test_an_operation_without_machine_code_is_refused_with_the_line_of_the_user(graph):
    mask = graph.input((3,), "bool")
    places = apply(OPERATIONS["nonzero"], mask, count=2)
    line = sys._getframe().f_lineno - 1
    with pytest.raises(UnsupportedError, match=r"nonzero: .*; compile the graph with") as it:
        graph.compile([mask], places)
    assert it.value.__notes__ == [f"in nonzero, from {__file__}:{line}"]
    compiled = graph.compile([mask], places, backend="reference")
    assert compiled([True, False, True]).tolist() == [0, 2]


@pytest.mark.parametrize("backend", ["llvm", "reference"])
def test_a_negative_exponent_of_an_integer_names_the_line_of_the_user(graph, backend):
    x, y = graph.input((2,), "int64"), graph.input((2,), "int64")
    power, line = x**y, sys._getframe().f_lineno
    compiled = graph.compile([x, y], power, backend=backend)
    assert compiled([2, 3], [0, 3]).tolist() == [1, 27]
    with pytest.raises(ValueError, match=r"^pow: .* received -2; cast") as caught:
        compiled([2, 3], [1, -2])
    assert caught.value.__notes__ == [f"in pow, from {__file__}:{line}"]


@pytest.mark.parametrize("backend", ["llvm", "reference"])
def test_read_only_arrays_can_be_state_that_is_only_read(backend):
    array = np.arange(3, dtype=np.float32)
    array.flags.writeable = False
    w = dilim.asarray(array)
    assert np.shares_memory(w.numpy(), array)
    compiled = dilim.Graph.from_function(lambda x: x + w, dilim.zeros(3)).compile(backend=backend)
    assert compiled([1.0, 1.0, 1.0]).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("limit", [0, -3])
@pytest.mark.parametrize("backend", ["llvm", "reference"])
def test_a_loop_without_turns_gives_what_it_is_given(backend, limit):
    def turns(x):
        return dilim.loop(limit, x, lambda index, y: y * y)

    def slope(x):
        return dilim.grad(lambda x: turns(x).sum())(x)

    def given(x, count):
        return dilim.loop(count, x, lambda index, y: y * y)

    x, count = dilim.tensor([3.0, 4.0]), dilim.tensor(limit)
    for function, arguments, wanted in (
        (turns, (x,), [3.0, 4.0]),
        (slope, (x,), [1.0, 1.0]),
        (given, (x, count), [3.0, 4.0]),
    ):
        compiled = dilim.Graph.from_function(function, *arguments).compile(backend=backend)
        assert function(*arguments).tolist() == compiled(*arguments).tolist() == wanted


def test_results_never_share_memory_with_a_later_call(graph):
    x = graph.input((2,))
    f = graph.compile([x], [x, x], backend="reference")
    first = f([1.0, 2.0])
    f([3.0, 4.0])
    first[0][0] = 8.0
    assert first[1].tolist() == [1.0, 2.0]


def test_the_text_reads_back(graph):
    x = graph.input((2, 3), name="x")
    w = graph.variable(dilim.ones(3, name="layer.w"))
    w -= (x * w).sum(axis=0)
    text = str(graph)
    assert text.splitlines()[0] == "graph(%x: float32[2,3]; %layer_w: float32[3]) {"
    assert to_text(from_text(text)) == text
    assert repr(graph) == "<dilim.Graph of 5 nodes, 1 inputs, 1 variables>"


def test_nodes_know_the_line_of_the_user(graph):
    x = graph.input((3,))
    i = graph.input((), "int64")
    f = graph.compile([x, i], x[i], backend="reference")
    (site,) = {f.graph.sites[node.site] for node in f.graph.nodes}
    assert site.file == __file__
    with pytest.raises(IndexError, match="position 3 is out of range") as caught:
        f([1.0, 2.0, 3.0], 3)
    assert any(f"{__file__}:{site.line}" in note for note in caught.value.__notes__)


def test_what_is_sent_and_received_passes_the_host(graph):
    class Host:
        seen = []

        def send(self, channel, arrays):
            self.seen.append((channel, [x.tolist() for x in arrays]))

        def receive(self, channel, types=()):
            return [np.array(3.0, np.float32)]

    x = graph.input(())
    graph.send("progress", x, x * 2.0)
    factor = graph.receive("factor", ())
    f = graph.compile([x], x * factor, backend="reference")
    assert f(5.0, host=Host()).item() == 15.0
    assert Host.seen == [("progress", [5.0, 10.0])]
    with pytest.raises(GraphError, match="meets its host at channel 'progress'"):
        f(5.0)


def test_backward_on_symbolic_tensors_adds_nodes(graph):
    w = dilim.tensor([1.0, -2.0], requires_grad=True)
    x = graph.input((2,))
    loss = (graph.variable(w) * x).sum() + (x * w).sum()
    loss.backward()
    assert graph.run({x: [3.0, 4.0]}, fetch=w.grad).tolist() == [3.0, 4.0]


def test_tensors_of_two_graphs_do_not_meet(graph):
    with pytest.raises(GraphError, match="belongs to another graph"):
        graph.input((2,)) + dilim.Graph().input((2,))


# ----- from functions -----------------------------------------------------------------------------


def test_a_function_keeps_the_form_of_its_results():
    def f(x, y):
        return {"sum": x + y, "parts": (x, [y])}

    got = dilim.Graph.from_function(f, X, dilim.tensor(X)).compile(backend="reference")(X, 2 * X)
    assert got["sum"].tolist() == (3 * X).tolist()
    assert isinstance(got["parts"], tuple)
    assert got["parts"][1][0].tolist() == (2 * X).tolist()
    nothing = dilim.Graph.from_function(lambda: None)
    assert nothing.compile(backend="reference")() is None
    with pytest.raises(GraphError, match=r"expected a function that returns tensors.*received str"):
        dilim.Graph.from_function(lambda: "text")


def test_every_graph_is_well_formed():
    graph = dilim.Graph.from_function(lambda x: dilim.std(x @ x.T).exp(), X)
    verify(graph.compile(backend="reference").graph, OPERATIONS)


@pytest.mark.parametrize("shape", [(-1,), (2, -3)])
def test_negative_sizes_are_refused(graph, shape):
    with pytest.raises(ShapeError, match="expected sizes >= 0"):
        graph.input(shape)
    with pytest.raises(ShapeError, match="expected sizes >= 0"):
        graph.receive("channel", shape)


def test_a_vector_may_be_a_number(graph):
    assert graph.input(3).shape == graph.receive("channel", 3).shape == (3,)


def test_results_come_in_the_form_that_was_asked_for(graph):
    x = graph.input(2)
    y = {"double": x * 2.0, "pair": (x, [x + 1.0])}
    for given in (graph.compile([x], y)([1.0, 2.0]), graph.run({x: [1.0, 2.0]}, fetch=y)):
        assert given["double"].tolist() == [2.0, 4.0]
        first, (second,) = given["pair"]
        assert first.tolist() == [1.0, 2.0]
        assert second.tolist() == [2.0, 3.0]
    with pytest.raises(GraphError, match=r"compile: outputs: expected tensors, .* received str"):
        graph.compile([x], {"y": "text"})


def test_an_input_that_is_there_twice_is_refused(graph):
    x = graph.input(2, name="x")
    with pytest.raises(GraphError, match=r"each input once, received input 'x' of .* twice"):
        graph.compile([x, x], x + 1.0)


def test_a_list_of_symbolic_tensors_is_not_a_tensor():
    with pytest.raises(GraphError, match=r"whose numbers are not known .* use dilim.stack"):
        dilim.Graph.from_function(lambda x: dilim.tensor([x[0], x[1]]), dilim.ones(2))


@pytest.mark.parametrize("backend", ["llvm", "reference"])
def test_what_a_host_may_give(graph, backend):
    class Host:
        given = None

        def receive(self, channel):
            return self.given

    y = graph.receive("numbers", 2)
    f = graph.compile([], y * 2.0, backend=backend)
    host = Host()
    vector = np.array([1.0, 2.0], np.float32)
    for host.given in (vector, [vector], (vector,), dilim.tensor(vector), [dilim.tensor(vector)]):
        assert f(host=host).tolist() == [2.0, 4.0]
    for host.given, received in (
        ([vector, vector], "2 values from the host"),
        ([1.0, 2.0], "2 values from the host"),
        (None, r"shape \(\) and dtype object"),
        (np.zeros(2), r"shape \(2,\) and dtype float64"),
    ):
        match = rf"receive 'numbers': expected float32\[2\], received {received}"
        with pytest.raises(ShapeError, match=match):
            f(host=host)


@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.parametrize(
    "turn",
    [lambda x: x.T, lambda x: dilim.flip(x), lambda x: x[1:, ::-2], lambda x: x.T.reshape(-1)[1:]],
)
def test_views_of_memory_that_was_reshaped(graph, backend, turn):
    flat = np.arange(6, dtype=np.float32)
    for root in (dilim.tensor(flat).reshape(2, 3), dilim.asarray(flat[::-1]).reshape(2, 3)):
        view = turn(root)
        x = graph.input(view.shape)
        f = graph.compile([x], x + view, backend=backend)
        assert f(dilim.ones(view.shape)).tolist() == (view + 1.0).tolist()


# ----- corners of the language --------------------------------------------------------------------


def power(e):
    return 2**e, 3**e, (-1) ** e


def nothing_inside(x):
    return dilim.reshape(x, (3, 0)) @ x, dilim.sum(x, axis=0) + 1.0


def signs(x):
    nan = dilim.mean(x[:0])
    return dilim.signbit(nan), dilim.copysign(x, nan), dilim.signbit(x - x), dilim.signbit(-x / 0.0)


@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.parametrize(
    ("function", "x"),
    [
        (power, np.array([0, 1, 5, 62, 63, 64, 2**40])),
        (nothing_inside, np.zeros((0, 3), np.float32)),
        (signs, np.array([np.inf, -1.0, 0.0, -0.0, np.nan], np.float32)),
    ],
    ids=["power", "nothing", "signs"],
)
def test_corners_are_as_eager(function, x, backend):
    compiled = dilim.Graph.from_function(function, x).compile(backend=backend)
    for got, want in zip(compiled(x), function(dilim.tensor(x)), strict=True):
        np.testing.assert_array_equal(np.array(got), np.array(want), strict=True)
        if want.dtype.is_floating:
            assert dilim.signbit(got).tolist() == dilim.signbit(want).tolist()


def test_nan_has_no_sign():
    nan = dilim.tensor([float("nan")])
    for x in (nan, -nan):
        assert dilim.signbit(x).tolist() == [False]
        assert dilim.copysign(dilim.tensor([-2.0]), x).tolist() == [2.0]
