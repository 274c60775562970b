"""Sessions call handlers at channel points, on both back ends, with other memory at each run."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from dilim.backends.reference.executor import by_recipe
from dilim.errors import GraphError, ShapeError
from dilim.ir.text import from_text
from dilim.ops.table import OPERATIONS
from dilim.runtime import sessions
from dilim.runtime.programs import compile_graph
from dilim.runtime.sessions import Session
from ir.programs import Run, programs, same_run

KNOWN = [name for name, operation in OPERATIONS.items() if operation.recipe is not None]
FEW = settings(
    max_examples=40,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)

STEPS = """graph(%n: int64[]; %total: float32[2]) {
  %start: float32[2] = read(%total)
  send[channel='start'](%start)
  %end: float32[2] = loop(%n, %start) (%i: int64[], %x: float32[2]) {
    %x1: float32[2] = receive[channel='more']()
    %y: float32[2] = add(%x, %x1)
    write(%total, %y)
    %big: float32[] = sum[axis=(0,), keepdims=False](%y)
    %ten: float32[] = full[shape=(), value=10.0, dtype=float32]()
    %is_big: bool[] = greater(%big, %ten)
    %z: float32[2] = if(%is_big) () {
      send[channel='big'](%i, %y)
      %w: float32[2] = receive[channel='smaller']()
      yield %w
    } () {
      yield %y
    }
    yield %z
  }
  send[channel='end'](%end)
  return %end, %start
}"""


@pytest.fixture(params=["llvm", "poisoned", "plain", "reference"])
def kind(request, monkeypatch):
    """Machine code, where memory is poisoned too, without fast calls, and NumPy."""
    if request.param == "plain":
        monkeypatch.setattr(sessions, "fast_calls", lambda: False)
    return request.param


def make(kind, graph, handlers, **options):
    graph = from_text(graph) if isinstance(graph, str) else graph
    backend = "reference" if kind == "reference" else "llvm"
    program = compile_graph(graph, backend=backend, poison=kind == "poisoned")
    return Session(program, handlers, check=True, **options)


def f32(*values):
    return np.array(values, np.float32)


def count(n):
    return np.array(n, np.int64)


class Steps:
    """Handlers for `STEPS`, and what they saw."""

    def __init__(self):
        self.seen = []
        self.trouble = None

    def handlers(self):
        return {
            channel: getattr(self, channel)
            for channel in ("start", "more", "big", "smaller", "end")
        }

    def note(self, channel, views):
        self.seen.append((channel, *(view.tolist() for view in views)))
        if self.trouble is not None and self.trouble(channel):
            raise EOFError(channel)

    def start(self, views):
        self.note("start", views)

    def more(self, views):
        views[0][...] = [len(self.seen), 1]
        self.note("more", views)

    def big(self, views):
        self.note("big", views)

    def smaller(self, views):
        views[0][...] = self.seen[-1][2]
        views[0][...] /= 2
        self.note("smaller", views)

    def end(self, views):
        self.note("end", views)


SEEN = [
    ("start", [0, 0]),
    ("more", [1, 1]),
    ("more", [2, 1]),
    ("more", [3, 1]),
    ("more", [4, 1]),
    ("big", 3, [10, 4]),
    ("smaller", [5, 2]),
    ("more", [7, 1]),
    ("big", 4, [12, 3]),
    ("smaller", [6, 1.5]),
    ("end", [6, 1.5]),
]


# --- values and order -----------------------------------------------------------------------


def test_handlers_are_called_in_order_with_their_values(kind):
    host = Steps()
    session = make(kind, STEPS, host.handlers())
    total = f32(0, 0)
    end, start = session.run([count(5)], [total])
    assert host.seen == SEEN
    assert (end.tolist(), start.tolist(), total.tolist()) == ([6, 1.5], [0, 0], [12, 3])
    assert session.served() == {"start": 1, "more": 5, "big": 2, "smaller": 2, "end": 1}
    host.seen.clear()
    session.run([count(0)], [f32(7, 8)])
    assert host.seen == [("start", [7, 8]), ("end", [7, 8])]
    assert session.served() == {"start": 2, "more": 5, "big": 2, "smaller": 2, "end": 2}


def result_of(session, program, host):
    variables = [np.array(x) for x in program.variables]
    host.sent.clear()
    try:
        outputs, error = session.run([np.array(x) for x in program.inputs], variables), None
    except Exception as caught:
        outputs, error = [], caught
    return Run(outputs, variables, list(host.sent), error)


@FEW
@given(program=programs(operations=KNOWN, errors=True))
def test_all_programs_do_as_the_reference(kind, program):
    """Twice: the second run has other memory, and begins after an error like the first."""
    want = program.run(by_recipe)
    box = []

    def receive(channel, views):
        for view, value in zip(views, box[-1].receive(channel), strict=True):
            view[...] = value

    handlers = {}
    for channel in channels(program.graph, "send"):
        handlers[channel] = lambda views, channel=channel: box[-1].send(channel, views)
    for channel in channels(program.graph, "receive"):
        handlers[channel] = lambda views, channel=channel: receive(channel, views)
    session = make(kind, program.graph, handlers)
    for _ in range(2):
        box.append(program.host())
        got = result_of(session, program, box[-1])
        same_run(got, want)
        if want.error is not None:
            assert str(got.error) == str(want.error)
            assert getattr(got.error, "__notes__", []) == getattr(want.error, "__notes__", [])


def channels(graph, operation):
    return {node.params["channel"] for node in sessions.walk(graph) if node.op == operation}


@pytest.mark.parametrize(
    ("dtype", "values"),
    [("bool", [True, False]), ("int8", [-3, 4]), ("uint64", [1, 2**64 - 1]), ("float64", [0.1, 2])],
)
@pytest.mark.parametrize("shape", ["", "2", "0,3"])
def test_every_type_can_cross(kind, dtype, values, shape):
    text = f"""graph(%x: {dtype}[{shape}]) {{
  send[channel='out'](%x, %x)
  %a: {dtype}[{shape}], %b: {dtype}[{shape}] = receive[channel='in']()
  return %b, %a
}}"""
    sent = []

    def fill(views):
        views[0][...], views[1][...] = sent[0], values[0]

    x = np.zeros([int(size) for size in shape.split(",") if size], dtype)
    if x.size:
        x[...] = values[: x.size] if x.ndim else values[1]
    handlers = {"out": lambda views: sent.extend(map(np.array, views)), "in": fill}
    b, a = make(kind, text, handlers).run([x], [])
    for array in (*sent, a):
        assert (array.dtype, array.shape, array.tolist()) == (x.dtype, x.shape, x.tolist())
    assert b.tolist() == np.full(x.shape, values[0], dtype).tolist()


# --- exceptions -----------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["start", "more", "big", "smaller", "end"])
def test_an_exception_of_a_handler_passes_through_and_the_session_lives_on(kind, where):
    host = Steps()
    session = make(kind, STEPS, host.handlers())
    host.trouble = lambda channel: channel == where
    total = f32(0, 0)
    with pytest.raises(EOFError) as caught:
        session.run([count(5)], [total])
    assert caught.value.args == (where,)
    assert caught.traceback[-1].name == "note"
    first = next(k for k, entry in enumerate(SEEN) if entry[0] == where)
    assert host.seen == SEEN[: first + 1]
    written = {"start": [0, 0], "more": [0, 0], "end": [12, 3]}
    assert total.tolist() == written.get(where, [10, 4])
    host.trouble = None
    host.seen.clear()
    end, _ = session.run([count(5)], [f32(0, 0)])
    assert host.seen == SEEN
    assert end.tolist() == [6, 1.5]


def test_a_failed_operation_keeps_what_was_written_and_the_session_lives_on(kind):
    text = """graph(%x: float32[3], %i: int64[]; %v: float32[]) {
  %one: float32[] = full[shape=(), value=1.0, dtype=float32]()
  write(%v, %one)
  send[channel='a'](%i)
  %y: float32[] = take[axis=0](%x, %i)
  write(%v, %y)
  send[channel='b'](%y)
  return
}"""
    seen = []
    note = lambda views: seen.append(views[0].item())  # noqa: E731
    session = make(kind, text, {"a": note, "b": note})
    v = np.array(0, np.float32)
    with pytest.raises(IndexError, match="position 3"):
        session.run([f32(5, 6, 7), count(3)], [v])
    assert (v.item(), seen) == (1, [3])
    assert session.run([f32(5, 6, 7), count(2)], [v]) == []
    assert (v.item(), seen) == (7, [3, 2, 7])


COUNTING = """graph(%n: int64[]; %total: float64[]) {
  %start: float64[] = read(%total)
  %end: float64[] = loop(%n, %start) (%i: int64[], %x: float64[]) {
    %one: float64[] = full[shape=(), value=1.0, dtype=float64]()
    %next: float64[] = add(%x, %one)
    write(%total, %next)SEND
    yield %next
  }
  return %end
}"""


@pytest.mark.parametrize("send", ["", "\n    send[channel='a'](%next)"])
def test_a_long_loop_comes_back_at_safepoints_and_can_be_stopped(kind, send):
    total = np.array(0.0)
    visits, sent = [], []
    session = make(
        kind, COUNTING.replace("SEND", send), {"a": lambda views: sent.append(views[0].item())}
    )

    def stop():
        visits.append(total.item())
        if len(visits) == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.run([count(10**12)], [total], at_safepoint=stop)
    assert visits == sorted(visits)
    assert 12 <= total.item() < 10**12
    assert len(sent) == (total.item() if send else 0)
    before = total.item()
    (end,) = session.run([count(1000)], [total])
    assert end == total == before + 1000


# --- several runs at once -------------------------------------------------------------------

TREE = """graph(%n: int64[]) {
  %zero: int64[] = full[shape=(), value=0, dtype=int64]()
  %deep: bool[] = greater(%n, %zero)
  %sum: int64[] = if(%deep) () {
    %s: int64[] = loop(%n, %n) (%i: int64[], %c: int64[]) {
      send[channel='below'](%i)
      %r: int64[] = receive[channel='above']()
      %d: int64[] = add(%c, %r)
      yield %d
    }
    yield %s
  } () {
    yield %n
  }
  return %sum
}"""


def test_a_handler_may_run_its_session(kind):
    def below(views):
        (result,) = session.run([np.array(views[0])], [])
        results.append(result)

    def above(views):
        views[0][...] = results.pop()

    results = []
    session = make(kind, TREE, {"below": below, "above": above})

    def want(n):
        return n + sum(map(want, range(n)))

    for n in (0, 1, 3, 6):
        assert session.run([count(n)], [])[0] == want(n)


def test_endless_recursion_is_an_error_like_any_other(kind):
    text = "graph(%x: float32[]) {\n  send[channel='a'](%x)\n  return %x\n}"
    depth = []

    def again(views):
        depth.append(1)
        if endless:
            session.run([views[0].copy()], [])

    endless = True
    session = make(kind, text, {"a": again})
    with pytest.raises(RecursionError):
        session.run([np.array(1, np.float32)], [])
    assert len(depth) > 50
    endless = False
    assert session.run([np.array(2, np.float32)], [])[0] == 2


def test_two_threads_are_in_one_session_at_once(kind):
    host = threading.local()
    both = threading.Barrier(2)
    text = """graph(%x: float32[]; %v: float32[]) {
  %n: int64[] = full[shape=(), value=100, dtype=int64]()
  %end: float32[] = loop(%n, %x) (%i: int64[], %a: float32[]) {
    send[channel='out'](%i, %a)
    %b: float32[] = receive[channel='in']()
    %c: float32[] = add(%a, %b)
    write(%v, %c)
    yield %c
  }
  return %end
}"""

    def out(views):
        host.step, host.value = views[0].item(), views[1].item()
        if host.step < 3:
            both.wait(20)

    def back(views):
        views[0][...] = host.value % 7 + host.step

    session = make(kind, text, {"out": out, "in": back})
    wrong, steps = [], []

    def work(first):
        want = np.float32(first)
        for step in range(100):
            want = want + np.float32(want.item() % 7 + step)
        v = np.array(0, np.float32)
        (end,) = session.run([np.array(first, np.float32)], [v])
        steps.append(host.step)
        if end.tobytes() != want.tobytes() or v.tobytes() != want.tobytes():
            wrong.append((first, end, v, want))

    workers = [threading.Thread(target=work, args=(k + 0.3,)) for k in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert (wrong, steps) == ([], [99, 99])
    assert session.served() == {"out": 200, "in": 200}


# --- memory ---------------------------------------------------------------------------------


def test_variables_may_lie_elsewhere_at_each_run(kind):
    host = Steps()
    session = make(kind, STEPS, host.handlers())
    kept = []
    for first in range(5):
        memory = np.full(8, -1, np.float32)
        total = memory[2 * (first % 3) : 2 * (first % 3) + 2]
        total[:] = first
        host.seen.clear()
        _, start = session.run([count(1)], [total])
        kept.append((start, total, memory))
    for first, (start, total, memory) in enumerate(kept):
        assert start.tolist() == [first, first]
        assert total.tolist() == [first + 1, first + 1]
        assert np.count_nonzero(memory == -1) == 6


def test_handlers_see_what_was_written_before(kind):
    total = f32(0, 0)
    host = Steps()
    seen = []
    handlers = host.handlers() | {"big": lambda views: seen.append((views[1].copy(), total.copy()))}
    handlers["smaller"] = lambda views: views[0].fill(0)
    make(kind, STEPS, handlers).run([count(9)], [total])
    assert len(seen) > 1
    for sent, memory in seen:
        assert sent.tolist() == memory.tolist()


def test_results_never_share_memory_with_a_later_run(kind):
    text = """graph(%x: float32[2]; %v: float32[2]) {
  %r: float32[2] = read(%v)
  send[channel='a'](%r)
  %y: float32[2] = receive[channel='b']()
  write(%v, %x)
  return %x, %r, %y, %y
}"""
    session = make(kind, text, {"a": lambda views: None, "b": lambda views: views[0].fill(3)})
    x, v = f32(1, 2), f32(5, 6)
    first = session.run([x], [v])
    want = [[1, 2], [5, 6], [3, 3], [3, 3]]
    assert [array.tolist() for array in first] == want
    x[:], v[:] = 7, 8
    second = session.run([x], [v])
    assert [array.tolist() for array in first] == want
    assert [array.tolist() for array in second] == [[7, 7], [8, 8], [3, 3], [3, 3]]
    arrays = [*first, *second, x, v]
    for k, array in enumerate(arrays):
        assert not any(np.may_share_memory(array, other) for other in arrays[k + 1 :])


def test_results_go_where_they_are_wanted(kind):
    host = Steps()
    outputs = f32(-1, -1), f32(-1, -1)
    results = make(kind, STEPS, host.handlers()).run([count(5)], [f32(0, 0)], outputs)
    assert results[0] is outputs[0]
    assert results[1] is outputs[1]
    assert [array.tolist() for array in outputs] == [[6, 1.5], [0, 0]]


def test_what_is_sent_cannot_be_written(kind):
    def scribble(views):
        views[0][...] = 1

    text = "graph(%x: float32[]) {\n  send[channel='a'](%x)\n  return\n}"
    with pytest.raises(ValueError, match="read-only"):
        make(kind, text, {"a": scribble}).run([np.array(1, np.float32)], [])


def test_nothing_is_kept_of_what_handlers_give_back(kind):
    class Result:
        pass

    made = []

    def handler(views):
        result = Result()
        made.append(weakref.ref(result))
        return result

    def run():
        text = "graph(%x: float32[]) {\n  send[channel='a'](%x)\n  return\n}"
        session = make(kind, text, {"a": lambda views: handler(views) and session and None})
        session.run([np.array(1, np.float32)], [])
        session = make(kind, text, {"a": handler})
        session.run([np.array(1, np.float32)], [])
        return weakref.ref(session)

    ended = run()
    assert [reference() for reference in made] == [None, None]
    gc.collect()
    assert ended() is None


def test_handlers_have_the_error_state_of_the_caller(kind):
    states = []
    text = "graph(%x: float32[]) {\n  send[channel='a'](%x)\n  return\n}"
    session = make(kind, text, {"a": lambda views: states.append(np.geterr()["divide"])})
    with np.errstate(divide="raise"):
        session.run([np.array(1, np.float32)], [])
    assert states == ["raise"]


# --- mistakes -------------------------------------------------------------------------------


def test_every_channel_needs_a_handler(kind):
    with pytest.raises(GraphError, match=r"a receive at channel 'more': .*handlers for 'start'$"):
        make(kind, STEPS, {"start": print})


@pytest.mark.parametrize("name", ["llvm", "plain"])
def test_machine_code_gets_arrays_and_as_many_as_it_needs(name, monkeypatch):
    if name == "plain":
        monkeypatch.setattr(sessions, "fast_calls", lambda: False)
    session = Session(compile_graph(from_text(STEPS)), Steps().handlers())
    wrong = [[], [count(1), count(1)], [5], [np.int64(5)], [np.array(5).view(np.recarray)]]
    for inputs in wrong:
        with pytest.raises(TypeError, match=r"session: expected one numpy\.ndarray per input"):
            session.run(inputs, [f32(0, 0)])
    assert session.run([count(0)], [f32(2, 3)])[0].tolist() == [2, 3]


def read_only(array):
    array.flags.writeable = False
    return array


def unaligned():
    return np.zeros(9, np.uint8)[1:].view(np.float32)


@pytest.mark.parametrize(
    ("inputs", "variables", "outputs", "match"),
    [
        ([], [f32(0, 0)], None, "expected 1 inputs, received 0"),
        ([count(1)], [], None, "expected 1 variables, received 0"),
        ([count(1)], [f32(0, 0)], [], "expected 2 outputs, received 0"),
        (
            [f32(1)],
            [f32(0, 0)],
            None,
            r"input 0 'n' as a numpy.ndarray of type int64\[\], .*\(1,\)",
        ),
        ([1], [f32(0, 0)], None, "input 0 'n' .*received a int of shape"),
        ([count(1)], [f32(0, 0, 0)], None, "variable 0 'total'"),
        ([count(1)], [f32(0, 0, 0, 0)[::2]], None, "row-major order, received strides of .8,. by"),
        ([count(1)], [unaligned()], None, "variable 0 'total' aligned"),
        ([count(1)], [read_only(f32(0, 0))], None, "variable 0 'total' is written, but"),
        ([count(1)], [f32(0, 0)], [f32(0, 0), read_only(f32(0, 0))], "output 1 'start' is written"),
        ([count(1)], [f32(0, 0)], [f32(0, 0), f32(0)], "output 1"),
    ],
)
def test_a_careful_session_looks_at_its_arrays(kind, inputs, variables, outputs, match):
    session = make(kind, STEPS, Steps().handlers())
    with pytest.raises(ShapeError, match=match):
        session.run(inputs, variables, outputs)


def test_a_careful_session_finds_shared_memory(kind):
    session = make(kind, STEPS, Steps().handlers())
    x = f32(0, 0, 0)
    with pytest.raises(ShapeError, match="variable 0 'total' and output 1 'start' with some"):
        session.run([count(1)], [x[:2]], [f32(0, 0), x[1:]])


# --- who may run meanwhile ------------------------------------------------------------------


@pytest.mark.skipif(not sessions.fast_calls(), reason="needs CPython with a GIL")
@pytest.mark.parametrize(
    ("send", "pause", "want"),
    [("", 0.0, [True]), ("a", 0.0, [False]), ("a", 0.0003, [False, True])],
    ids=["no points", "short stretches", "long stretches"],
)
def test_other_threads_may_run_where_points_are_far_apart(monkeypatch, send, pause, want):
    class Noting(sessions.Runner):
        __slots__ = ()

        def grant(self, turns, release_gil):
            releases.append(release_gil)
            super().grant(turns, release_gil)

    releases = []
    monkeypatch.setattr(sessions, "Runner", Noting)
    graph = COUNTING.replace("SEND", "\n    send[channel='a'](%next)" if send else "")
    session = make("llvm", graph, {"a": lambda views: time.sleep(pause) if pause else None})
    session.run([count(300)], [np.array(0.0)])
    assert list(dict.fromkeys(releases)) == want
    assert len(releases) > 1
