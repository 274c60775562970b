"""Compiled programs do what the reference executor does, bit for bit, and can be interrupted."""

import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from dilim.backends.llvm.targets import LEVELS
from dilim.backends.reference.executor import by_recipe
from dilim.errors import DeviceError, GraphError, ShapeError
from dilim.ir.text import from_text
from dilim.ops.table import OPERATIONS
from dilim.passes import memory
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
    fixed = number(0.0, np.float64)
    fixed.flags.writeable = False
    with pytest.raises(ShapeError, match="writable memory"):
        program.run([number(1)], [fixed])
