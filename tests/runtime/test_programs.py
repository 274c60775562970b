"""Compiled programs do what the reference executor does, bit for bit, and can be interrupted."""

import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from backends.single import one_node
from dilim import dtypes
from dilim.backends.llvm.targets import LEVELS
from dilim.backends.reference.executor import by_recipe
from dilim.errors import DeviceError, GraphError, ShapeError, UnsupportedError
from dilim.ir.graph import GraphBuilder, Site
from dilim.ir.text import from_text
from dilim.ir.types import Type
from dilim.ops.table import OPERATIONS
from dilim.passes import memory
from dilim.runtime import compiler
from dilim.runtime.programs import compile_graph
from ir.programs import programs, same_run
from runtime.native_runs import native_run

KNOWN = [name for name, operation in OPERATIONS.items() if operation.recipe is not None]
FEW = settings(
    max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

COUNTING = """graph(%n: int64[]; %total: float64[]) {
  %start: float64[] = read(%total)
  %end: float64[] = loop(%n, %start) (%i: int64[], %x: float64[]) {
    %one: float64[] = full[shape=(), value=1.0, dtype=float64]()
    %next: float64[] = add(%x, %one)
    write(%total, %next)
    yield %next
  }
  return %end
}"""


def number(value, dtype=np.int64):
    return np.array(value, dtype)


@FEW
@given(programs(operations=KNOWN))
def test_a_compiled_program_has_the_bits_of_the_reference(program):
    same_run(native_run(program), program.run(by_recipe))


@settings(FEW, max_examples=8)
@given(programs(operations=KNOWN))
def test_a_driver_that_is_made_in_less_time_gives_the_same_bits(program):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "LARGE_DRIVER", 0)
        patch.setenv("DILIM_CACHE", "off")
        got = native_run(program)
    same_run(got, program.run(by_recipe))


@FEW
@given(programs(operations=KNOWN, errors=True))
def test_errors_come_at_the_same_place_with_the_same_state(program):
    want = program.run(by_recipe)
    got = native_run(program)
    same_run(got, want)
    if want.error is not None:
        assert str(got.error) == str(want.error)
        assert got.error.__notes__ == want.error.__notes__


@pytest.mark.parametrize("cpu", LEVELS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(programs(operations=KNOWN))
def test_vectors_of_every_width_give_the_same_bits(cpu, program):
    try:
        got = native_run(program, cpu=cpu)
    except DeviceError as error:
        pytest.skip(str(error))
    same_run(got, program.run(by_recipe))


def test_a_plan_that_lets_values_overlap_is_found_out(monkeypatch):
    graph = from_text(
        """graph(%x: float32[8,8], %y: float32[8,8]) {
  %a: float32[8,8] = matmul(%x, %y)
  %b: float32[8,8] = matmul(%y, %x)
  %c: float32[8,8] = matmul(%a, %b)
  %d: float32[8,8] = matmul(%c, %a)
  return %d
}"""
    )
    inputs = list(np.random.default_rng(0).standard_normal((2, 8, 8)).astype(np.float32))
    (want,) = compile_graph(graph, backend="reference").run(inputs)
    (got,) = compile_graph(graph, poison=True).run(inputs)
    assert np.array_equal(got, want)

    def careless(blocks, base):
        for block in blocks:
            block.offset = base
        return base + max(block.size for block in blocks)

    monkeypatch.setattr(memory, "_pack", careless)
    monkeypatch.setenv("DILIM_CACHE", "off")
    (got,) = compile_graph(graph).run(inputs)
    assert not np.array_equal(got, want)


def test_a_long_loop_comes_back_at_safepoints_and_can_be_stopped():
    program = compile_graph(from_text(COUNTING))
    total = number(0.0, np.float64)
    visits = []

    def stop():
        visits.append(float(total))
        if len(visits) == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        program.run([number(10**12)], [total], at_safepoint=stop)
    assert visits == sorted(visits)
    assert 20 <= float(total) < 10**12
    before = float(total)
    (end,) = program.run([number(1000)], [total])
    assert end == total == before + 1000


def test_threads_call_one_program_at_once():
    graph = from_text(
        """graph(%x: float32[64,64]) {
  %a: float32[64,64] = matmul(%x, %x)
  %b: float32[64,64] = tanh(%a)
  %c: float32[64,64] = matmul(%b, %x)
  return %c
}"""
    )
    program = compile_graph(graph)
    inputs = [
        np.random.default_rng(i).standard_normal((64, 64)).astype(np.float32) for i in range(4)
    ]
    wanted = [program.run([x])[0] for x in inputs]
    wrong = []

    def work(index):
        for _ in range(200):
            (got,) = program.run([inputs[index]])
            if not np.array_equal(got, wanted[index]):
                wrong.append(index)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_channels_need_a_host_and_values_of_the_right_type():
    graph = from_text(
        """graph(%x: float32[2]) {
  send[channel='out'](%x)
  %y: float32[2] = receive[channel='in']()
  %z: float32[2] = add(%x, %y)
  return %z
}"""
    )
    program = compile_graph(graph)
    x = np.array([1, 2], np.float32)
    with pytest.raises(GraphError, match="'out' needs a host"):
        program.run([x])

    class Host:
        def __init__(self, answer):
            self.answer = answer
            self.sent = []

        def send(self, channel, values):
            self.sent.append((channel, values))

        def receive(self, channel):
            return [self.answer]

    host = Host(np.array([10, 20], np.float32))
    (z,) = program.run([x], host=host)
    assert z.tolist() == [11, 22]
    assert host.sent[0][1][0].tolist() == [1, 2]
    with pytest.raises(ShapeError, match=r"receive 'in': expected float32\[2\], received"):
        program.run([x], host=Host(np.zeros(3, np.float32)))
    (z,) = program.run([x], host=host)
    assert z.tolist() == [11, 22]


def test_wrong_arguments_are_refused():
    program = compile_graph(from_text(COUNTING))
    with pytest.raises(ShapeError, match="expected 1 inputs, received 0"):
        program.run([])
    with pytest.raises(ShapeError, match=r"input 'n' of type int64\[\]"):
        program.run([number(1, np.int32)], [number(0.0, np.float64)])
    with pytest.raises(ShapeError, match="expected 1 variables, received 0"):
        program.run([number(1)])
    with pytest.raises(ShapeError, match=r"variable 'total' of type float64\[\], received shape"):
        program.run([number(1)], [number(0.0, np.float32)])


@pytest.mark.parametrize("backend", ["llvm", "reference"])
def test_memory_that_is_written_must_not_be_read_only(backend):
    program = compile_graph(from_text(COUNTING), backend=backend)
    fixed = number(0.0, np.float64)
    fixed.flags.writeable = False
    with pytest.raises(ShapeError, match=r"'total' .* is read-only; pass a writable one, such as"):
        program.run([number(1)], [fixed])
    reading = """graph(; %v: float32[2,3]) {
  %x: float32[2,3] = read(%v)
  %y: float32[2,3] = add(%x, %x)
  return %y
}"""
    program = compile_graph(from_text(reading), backend=backend)
    fixed = np.ones((2, 3), np.float32)
    fixed.flags.writeable = False
    assert program.run([], [fixed])[0].tolist() == [[2] * 3] * 2
    with pytest.raises(ShapeError, match=r"'v' in row-major order, received strides of \(4, 8\)"):
        program.run([], [np.ones((3, 2), np.float32).T])


FORMS = {
    "cumulative_sum[axis=0]": "float32[3,{}]",
    "cumulative_sum[axis=1]": "float32[3,{}]",
    "argsort[axis=0, descending=False]": "int64[3,{}]",
    "argsort[axis=1, descending=True]": "int64[3,{}]",
    "argmax[axis=(0,), keepdims=False]": "int64[{}]",
    "sum[axis=(0,), keepdims=False]": "float32[{}]",
    "sum[axis=(1,), keepdims=False]": "float32[3]",
    "index_add[axis=0]": "float32[7,{}]",
}
TAKEN = """graph(%x: float32[{n},5], %i: int64[3], %y: float32[7,{n}]) {{
  %j: int64[3] = full[shape=(3,), value=1, dtype=int64]()
  %a: float32[{n},3] = take[axis=1](%x, %i)
  %p: float32[3,{n}] = permute[order=(1, 0)](%a)
  %b: float32[3,{n}] = exp(%p)
  %c: {type} = {form}({operands})
  return %c
}}"""


@pytest.mark.parametrize("columns", [0, 2])
@pytest.mark.parametrize("form", FORMS)
def test_a_position_is_tested_whatever_uses_the_element(form, columns):
    """Also where an element has no numbers, so that nothing is read at the position."""
    text = TAKEN.format(
        n=columns,
        type=FORMS[form].format(columns),
        form=form,
        operands="%y, %j, %b" if form.startswith("index_add") else "%b",
    )
    x, y = np.zeros((columns, 5), np.float32), np.zeros((7, columns), np.float32)
    for backend in ("reference", "llvm"):
        program = compile_graph(from_text(text), backend=backend)
        program.run([x, np.array([0, -5, 4]), y])
        with pytest.raises(IndexError, match="take: position 9 is out of range for an axis of si"):
            program.run([x, np.array([0, 9, 4]), y])


@pytest.mark.parametrize(
    ("name", "shapes"),
    [("index_add", ((7, 0), (3, 0))), ("index_update", ((7, 0), (3, 0)))],
)
def test_positions_of_rows_without_elements_are_tested(name, shapes):
    base, value = (np.zeros(shape) for shape in shapes)
    graph = one_node(name, base, np.zeros(3, np.int64), value, axis=0)
    for backend in ("reference", "llvm"):
        program = compile_graph(graph, backend=backend)
        assert program.run([base, np.array([0, -7, 6]), value])[0].shape == (7, 0)
        with pytest.raises(IndexError, match=": position 7 is out of range"):
            program.run([base, np.array([0, 7, 6]), value])


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_a_negative_exponent_of_an_integer_is_the_error_of_eager_execution(dtype):
    x, y = np.array([[2], [3]], dtype), np.array([2, -1, -3], dtype)
    with pytest.raises(ValueError, match=r"pow: .* received -1; cast to a floating") as eager:
        OPERATIONS["pow"].eager(x, y)
    for backend in ("reference", "llvm"):
        program = compile_graph(one_node("pow", x, y), backend=backend)
        assert program.run([x, np.abs(y)])[0].tolist() == [[4, 2, 8], [9, 3, 27]]
        with pytest.raises(ValueError, match="pow") as caught:
            program.run([x, y])
        assert (type(caught.value), str(caught.value)) == (ValueError, str(eager.value))


def test_an_operation_without_machine_code_is_named_with_its_place():
    builder = GraphBuilder()
    mask = builder.input(Type((3,), dtypes.bool_))
    found = builder.add(
        "nonzero", [mask], {"count": 2}, Type((2,), dtypes.INDEX), Site("user.py", 7)
    )
    graph = builder.build([builder.add("negative", [found], {}, found.type)])
    with pytest.raises(UnsupportedError, match=r"nonzero: .*backend='reference', or") as caught:
        compile_graph(graph)
    assert caught.value.__notes__ == ["in nonzero, from user.py:7"]
    assert compile_graph(builder.build([]), backend="llvm").run([np.ones(3, bool)]) == []


def test_of_two_operations_at_the_same_positions_the_first_is_named():
    builder = GraphBuilder()
    numbers = builder.input(Type((2,), dtypes.float32))
    positions = builder.input(Type((2,), dtypes.INDEX))
    for line, x in enumerate((numbers, positions), 5):
        last = builder.add("take", [x, positions], {"axis": 0}, x.type, Site("user.py", line))
    program = compile_graph(builder.build([last]))
    with pytest.raises(IndexError, match="position 7") as caught:
        program.run([np.zeros(2, np.float32), np.array([0, 7])])
    assert caught.value.__notes__ == ["in take, from user.py:5"]
