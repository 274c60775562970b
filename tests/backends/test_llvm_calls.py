"""Python builtins that call native code."""

import ctypes
import functools
import gc
import itertools
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from dilim import dtypes
from dilim.backends.llvm import calls
from dilim.backends.llvm.binding import emit_object, host_target, link
from dilim.backends.llvm.calls import (
    Array,
    Caller,
    Holder,
    Number,
    Signature,
    builtin,
    fast_calls,
    write_caller,
)

pytestmark = pytest.mark.skipif(not fast_calls(), reason="needs CPython with a GIL")

LINK, SLOTS = 8, 64


def run_text(body, result="0"):
    """A program that has the addresses of its slots in %p0, %p1, ..."""
    slots = [
        f"  %q{i} = getelementptr i8, ptr %activation, i64 {SLOTS + 8 * i}\n"
        f"  %p{i} = load ptr, ptr %q{i}\n"
        for i in range(6)
    ]
    return f"define i32 @run(ptr %activation) {{\n{''.join(slots)}{body}  ret i32 {result}\n}}\n"


ADD = run_text(
    "  %a = load float, ptr %p0\n  %b = load float, ptr %p1\n"
    "  %s = fadd float %a, %b\n  store float %s, ptr %p2\n"
)


class Box:
    __slots__ = ("other", "secret", "value")

    def __init__(self, value, secret=None):
        self.value, self.secret, self.other = value, secret, 0


class Calls:
    """A caller and its surroundings."""

    def __init__(self, signature, text, makers=(), on_status=None, activations=1, **more):
        self.code = write_caller(signature)
        target = host_target()
        self.library = link([emit_object(self.code.text, target), emit_object(text, target)])
        self.activations = [np.zeros(1024, np.uint8) for _ in range(activations)]
        self.numbers = np.zeros(6)
        self.seen = []
        self.caller = Caller(
            signature,
            self.code,
            self.library,
            self.library.address("run"),
            self.slow,
            on_status or self.on_status,
            makers,
            **more,
        )
        for activation in self.activations:
            slots = activation[SLOTS : SLOTS + 48].view(np.uint64)
            slots[:] = self.numbers.ctypes.data + 8 * np.arange(6, dtype=np.uint64)
            self.caller.add(activation.ctypes.data)

    def slow(self, *args, **kwargs):
        self.seen.append((args, kwargs))
        return "slow"

    def on_status(self, status, activation, args, outputs):
        self.seen.append((status, activation, args, outputs))
        return "status"

    def __call__(self, *args, **kwargs):
        return self.caller.function(*args, **kwargs)


def adding(shape=(), release_gil=False, **more):
    array = functools.partial(Array, dtypes.float32, shape)
    signature = Signature(
        (array(0), array(1)), (array(2),), LINK, SLOTS, release_gil=release_gil, **more
    )
    return signature, ADD, [functools.partial(np.zeros, shape, np.dtype(np.float32))]


def float32(*values):
    return np.array(values, np.float32)


# --- what is taken --------------------------------------------------------------------------


def test_arrays_go_in_and_a_new_array_comes_out():
    call = Calls(*adding((3,)))
    first, second = (
        call(float32(1, 2, 3), float32(10, 0, 0)),
        call(float32(2, 0, 0), float32(5, 0, 0)),
    )
    assert first.tolist() == [11, 0, 0]
    assert second.tolist() == [7, 0, 0]
    assert call.seen == []


def load(what, write):
    code = write()
    return link([emit_object(code.text, host_target())]), code.name


@pytest.mark.parametrize("release_gil", [False, True])
def test_shape_of_rank_zero(release_gil):
    call = Calls(*adding((), release_gil))
    result = call(np.array(1.5, np.float32), np.array(2.0, np.float32))
    assert result.shape == ()
    assert result == 3.5


def test_holders_are_taken_in_place_of_arrays():
    call = Calls(*adding((1,)), holder=Holder(Box, "value"))
    assert call(Box(float32(1)), float32(2)).tolist() == [3]
    assert call(float32(1), Box(float32(4))).tolist() == [5]
    assert call.seen == []


def test_a_maker_may_give_holders():
    signature, text, _ = adding((1,))
    makers = [lambda: Box(np.zeros(1, np.float32))]
    call = Calls(signature, text, makers, holder=Holder(Box, "value"))
    result = call(float32(1), Box(float32(2)))
    assert type(result) is Box
    assert result.value.tolist() == [3]


def test_required_attributes_of_holders_are_compared():
    signature, text, makers = adding((1,), requirements=2)
    holder = Holder(Box, "value", {"secret": None, "other": 0})
    call = Calls(signature, text, makers, holder=holder)
    assert call(Box(float32(1)), float32(2)).tolist() == [3]
    assert call(Box(float32(1), secret="x"), float32(2)) == "slow"


class Special(np.ndarray):
    pass


NOT_TAKEN = {
    "a Python number": 1.0,
    "None": None,
    "a list": [1.0, 2.0],
    "a NumPy scalar": np.float32(1),
    "another dtype": np.zeros(2),
    "an integer of this size": np.zeros(2, np.int32),
    "another byte order": np.zeros(2, np.dtype(np.float32).newbyteorder()),
    "another size": np.zeros(3, np.float32),
    "another rank": np.zeros((1, 2), np.float32),
    "strided": np.zeros(4, np.float32)[::2],
    "reversed": np.zeros(2, np.float32)[::-1],
    "unaligned": np.zeros(9, np.uint8)[1:].view(np.float32),
    "a subclass": np.zeros(2, np.float32).view(Special),
    "a holder of nothing": Box.__new__(Box),
    "a holder of something else": Box(3),
    "a holder of another shape": Box(np.zeros(3, np.float32)),
}


@pytest.mark.parametrize("value", NOT_TAKEN.values(), ids=NOT_TAKEN.keys())
@pytest.mark.parametrize("place", [0, 1])
def test_anything_else_goes_to_the_slow_path_as_it_is(value, place):
    call = Calls(*adding((2,)), holder=Holder(Box, "value"))
    arguments = [float32(1, 2), float32(3, 4)]
    assert call(*arguments).tolist() == [4, 0]
    arguments[place] = value
    assert call(*arguments) == "slow"
    ((args, kwargs),) = call.seen
    assert [id(arg) for arg in args] == [id(arg) for arg in arguments]
    assert kwargs == {}
    arguments[place] = float32(5, 6)
    assert isinstance(call(*arguments), np.ndarray)  # the activation is back in the pool


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_arguments_goes_to_the_slow_path(count):
    call = Calls(*adding((1,)))
    assert call(*[float32(1)] * count) == "slow"
    assert len(call.seen[0][0]) == count


def test_keywords_go_to_the_slow_path():
    call = Calls(*adding((1,)))
    assert call(float32(1), y=float32(2)) == "slow"
    ((args, kwargs),) = call.seen
    assert args == (float32(1),)
    assert kwargs == {"y": float32(2)}


def test_an_array_that_is_written_must_be_writeable():
    arguments = (Array(dtypes.float32, (1,), 0), Array(dtypes.float32, (1,), 1, written=True))
    signature = Signature(arguments, (), LINK, SLOTS)
    call = Calls(signature, run_text("  store float 7.0, ptr %p1\n"))
    read_only, target = float32(1), float32(2)
    read_only.flags.writeable = False
    assert call(read_only, target) is None
    assert target == 7
    assert call(target, read_only) == "slow"
    assert read_only == 1


# --- numbers --------------------------------------------------------------------------------

INTEGERS = [*dtypes.SIGNED, *dtypes.UNSIGNED]
MEMORY = {dtype: f"i{8 * dtype.itemsize}" for dtype in INTEGERS} | {
    dtypes.bool_: "i8",
    dtypes.float32: "float",
    dtypes.float64: "double",
}


def copying(dtype):
    kind = MEMORY[dtype]
    text = run_text(f"  %x = load {kind}, ptr %p0\n  store {kind} %x, ptr %p1\n")
    return Calls(Signature((Number(dtype, 0),), (Number(dtype, 1),), LINK, SLOTS), text)


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.name)
def test_integers_in_range_go_through(dtype):
    call = copying(dtype)
    limits = np.iinfo(dtype.numpy)
    largest = min(limits.max, 2**63 - 1)
    for value in (limits.min, largest, 0, 1, 100):
        assert call(value) == value
        assert type(call(value)) is int
    assert call.seen == []
    for value in (limits.min - 1, largest + 1, 2**70, -(2**70), True, 1.0, np.int64(1)):
        assert call(value) == "slow"


def test_the_largest_unsigned_result_is_positive():
    call = copying(dtypes.uint64)
    call.numbers.view(np.uint64)[0] = 2**64 - 1
    signature = Signature((), (Number(dtypes.uint64, 0),), LINK, SLOTS)
    outer = Calls(signature, run_text("  store i64 -1, ptr %p0\n"))
    assert outer() == 2**64 - 1


@pytest.mark.parametrize("dtype", dtypes.FLOATING, ids=lambda dtype: dtype.name)
def test_floats_go_through(dtype):
    call = copying(dtype)
    for value in (0.1, -0.0, float("inf"), 1e300, float("nan")):
        with np.errstate(over="ignore"):
            expected = float(dtype.numpy.type(value))
        assert repr(call(value)) == repr(expected)
    for value in (1, True, np.float64(1.0), "1"):
        assert call(value) == "slow"


def test_booleans_go_through():
    call = copying(dtypes.bool_)
    assert call(True) is True
    assert call(False) is False
    assert call(1) == "slow"


# --- results --------------------------------------------------------------------------------


def test_no_result_is_none():
    assert Calls(Signature((), (), LINK, SLOTS), run_text(""))() is None


def test_several_results_are_a_tuple():
    results = (
        Number(dtypes.int32, 0),
        Array(dtypes.float64, (2,), 1),
        Number(dtypes.float64, 2),
        Number(dtypes.bool_, 3),
    )
    body = (
        "  store i32 -5, ptr %p0\n  store double 2.5, ptr %p1\n"
        "  store double 0.5, ptr %p2\n  store i8 1, ptr %p3\n"
    )
    signature = Signature((), results, LINK, SLOTS, single=False)
    call = Calls(signature, run_text(body), [functools.partial(np.zeros, 2)])
    first, second, third, fourth = call()
    assert (first, second.tolist(), third, fourth) == (-5, [2.5, 0], 0.5, True)


def test_a_tuple_of_one():
    signature = Signature((), (Number(dtypes.int64, 0),), LINK, SLOTS, single=False)
    assert Calls(signature, run_text("  store i64 9, ptr %p0\n"))() == (9,)


def test_results_are_not_shared_between_calls():
    call = Calls(*adding((1,)))
    results = [call(float32(value), float32(1)) for value in range(50)]
    assert [float(result[0]) for result in results] == [value + 1 for value in range(50)]


# --- errors ---------------------------------------------------------------------------------


def test_an_exception_of_the_slow_path_comes_through():
    call = Calls(*adding((1,)))

    def fail(*args, **kwargs):
        raise TypeError("expected two arrays")

    caller = Caller(*adding((1,))[:1], call.code, call.library, 0, fail, fail, [lambda: float32(0)])
    with pytest.raises(TypeError, match="expected two arrays"):
        caller.function(1, 2)


def test_an_exception_of_a_maker_comes_through_and_gives_the_activation_back():
    signature, text, makers = adding((1,))
    array = Array(dtypes.float32, (1,), 3)
    signature = Signature(signature.arguments, (array, *signature.results), LINK, SLOTS, False)
    failing = False

    def make():
        if failing:
            raise MemoryError("no room")
        return np.zeros(1, np.float32)

    call = Calls(signature, text, [*makers, make])
    arguments = float32(1), float32(2)
    failing = True
    for _ in range(3):
        with pytest.raises(MemoryError, match="no room"):
            call(*arguments)
    failing = False
    assert call(*arguments)[1].tolist() == [3]
    assert call.seen == []


def test_a_status_goes_to_its_handler_with_all_that_it_needs():
    array = Array(dtypes.float32, (1,), 0)
    signature = Signature((array,), (Array(dtypes.float32, (1,), 1),), LINK, SLOTS)
    body = "  store float 3.0, ptr %p1\n"
    call = Calls(signature, run_text(body, "-7"), [functools.partial(np.zeros, 1, np.float32)])
    given = float32(1)
    assert call(given) == "status"
    ((status, activation, args, outputs),) = call.seen
    assert status == -7
    assert activation == call.activations[0].ctypes.data
    assert args[0] is given
    assert [output.tolist() for output in outputs] == [[3]]
    assert call(given) == "status"  # the activation is back in the pool


def test_a_handler_may_raise():
    def refuse(*_):
        raise IndexError("take: position 7 of 5")

    array = Array(dtypes.float32, (1,), 0)
    call = Calls(Signature((array,), (), LINK, SLOTS), run_text("", "2"), on_status=refuse)
    for _ in range(3):
        with pytest.raises(IndexError, match="position 7 of 5"):
            call(float32(1))
    assert call.seen == []


def test_a_handler_may_run_the_program_again():
    # Comes back with status 1 until the number in slot 5 is zero.
    body = (
        "  %n = load i64, ptr %p5\n  %m = sub i64 %n, 1\n  store i64 %m, ptr %p5\n"
        "  %x = load float, ptr %p0\n  store float %x, ptr %p1\n"
        "  %done = icmp sle i64 %n, 1\n  %status = select i1 %done, i32 0, i32 1\n"
    )
    runs = []

    def again(status, activation, args, outputs):
        runs.append(status)
        assert builtin(call.library.address("run"), load)(activation) in (0, 1)
        return (
            outputs[0]
            if call.numbers.view(np.int64)[5] <= 0
            else again(1, activation, args, outputs)
        )

    array = Array(dtypes.float32, (1,), 0)
    signature = Signature((array,), (Array(dtypes.float32, (1,), 1),), LINK, SLOTS)
    makers = [functools.partial(np.zeros, 1, np.float32)]
    call = Calls(signature, run_text(body, "%status"), makers, on_status=again)
    call.numbers.view(np.int64)[5] = 4
    assert call(float32(6)).tolist() == [6]
    assert runs == [1, 1, 1]


# --- the pool -------------------------------------------------------------------------------


def test_an_empty_pool_goes_to_the_slow_path():
    call = Calls(*adding((1,)), activations=2)
    taken = [call.caller.take() for _ in range(2)]
    assert sorted(taken) == sorted(a.ctypes.data for a in call.activations)
    assert call.caller.take() == 0
    assert call(float32(1), float32(2)) == "slow"
    call.caller.add(taken[0])
    assert call(float32(1), float32(2)).tolist() == [3]


def test_a_recursive_call_takes_another_activation():
    signature, text, _ = adding((1,))
    depth = itertools.count()
    inner = []

    def make():
        if armed and next(depth) < 3:
            inner.append(call(float32(5), float32(5)))
        return np.zeros(1, np.float32)

    armed = False
    call = Calls(signature, text, [make], activations=2)
    armed = True
    assert call(float32(1), float32(2)).tolist() == [3]
    assert [x if isinstance(x, str) else x.tolist() for x in inner] == ["slow", [10]]


@pytest.mark.parametrize("release_gil", [False, True])
def test_threads_may_call_one_function_at_once(release_gil):
    signature, text, makers = adding((1,), release_gil)
    lock = threading.Lock()

    def slow(x, y):
        with lock:
            slow_calls.append(1)
        activation = call.caller.take()  # another thread may have given one back by now
        if activation:
            call.caller.add(activation)
        return x + y

    slow_calls, wrong = [], []
    call = Calls(signature, text, makers, activations=2)
    call.caller = Caller(
        signature,
        call.code,
        call.library,
        call.library.address("run"),
        slow,
        call.on_status,
        makers,
    )
    for activation in call.activations:
        call.caller.add(activation.ctypes.data)

    def work(number):
        x = float32(number)
        for k in range(5000):
            y = np.float32(k)
            if call(x, y.reshape(1)) != x + y:
                wrong.append((number, k))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switch)
    assert wrong == []
    found = {call.caller.take() for _ in range(2)}
    assert found == {a.ctypes.data for a in call.activations}
    assert call.caller.take() == 0


def test_other_threads_run_meanwhile_if_the_gil_is_released():
    waiting = """
    define i32 @run(ptr %activation) {
    entry:
      br label %again
    again:
      %flag = getelementptr i8, ptr %activation, i64 32
      %seen = load atomic i32, ptr %flag acquire, align 4
      %done = icmp ne i32 %seen, 0
      br i1 %done, label %out, label %again
    out:
      ret i32 0
    }
    """
    call = Calls(Signature((), (), LINK, SLOTS, release_gil=True), waiting)
    thread = threading.Thread(target=call)
    thread.start()
    assert thread.is_alive()
    call.activations[0][32] = 1
    thread.join(10)
    assert not thread.is_alive()


# --- references -----------------------------------------------------------------------------


def counts(objects):
    return [sys.getrefcount(item) for item in objects]


def cases_of_references():
    good, other = float32(1), float32(2)
    box, bad = Box(float32(3)), np.zeros(2, np.float32)
    return [(good, other), (good, box), (box, box), (good, bad), (bad, good), (box, 1), (good,)]


@pytest.mark.parametrize("release_gil", [False, True])
def test_references_are_counted_exactly(release_gil):
    call = Calls(*adding((1,), release_gil), holder=Holder(Box, "value"))
    call.caller.function(float32(1), float32(2))
    for arguments in cases_of_references():
        inner = [a.value for a in arguments if type(a) is Box]
        # small ints are shared by the whole process
        own = [x for x in (*arguments, *inner, call.slow) if type(x) is not int]
        shared = [None, True, float, int, np.ndarray]
        before, before_shared = counts(own), counts(shared)
        for _ in range(1000):
            call(*arguments)
        call.seen.clear()
        assert counts(own) == before
        # The rest of the process uses these too, but not a thousand times in this moment.
        assert np.allclose(counts(shared), before_shared, rtol=0, atol=500)


def test_references_are_counted_exactly_when_the_status_is_not_zero():
    array = Array(dtypes.float32, (1,), 0)
    signature = Signature((array,), (Array(dtypes.float32, (1,), 1),), LINK, SLOTS)
    made = []

    def make():
        made.append(np.zeros(1, np.float32))
        return made[-1]

    call = Calls(signature, run_text("", "1"), [make], holder=Holder(Box, "value"))
    box = Box(float32(1))
    before = counts([box, box.value])
    for _ in range(50):
        assert call(box) == "status"
    call.seen.clear()
    assert counts([box, box.value]) == before
    assert set(counts(made)) == {3}  # the list, the loop variable and the argument


def test_a_result_has_one_reference():
    call = Calls(*adding((1,)))
    assert sys.getrefcount(call(float32(1), float32(2))) == 1 + (sys.version_info < (3, 14))


def resident():
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_calls():
    results = (Number(dtypes.int64, 3), Array(dtypes.float32, (1,), 2), Number(dtypes.float64, 4))
    signature, _, makers = adding((1,))
    signature = Signature(signature.arguments, results, LINK, SLOTS, False)
    body = "  store i64 123456789012, ptr %p3\n  store double 0.1, ptr %p4\n"
    call = Calls(signature, run_text(body), makers)
    x, y, function = float32(1), float32(2), call.caller.function
    for _ in range(10_000):
        function(x, y)
    before = resident()
    for _ in range(1_000_000):
        function(x, y)
    assert resident() - before < 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_callers():
    signature, text, makers = adding((1,))
    call = Calls(signature, text, makers)
    run = call.library.address("run")

    def make_and_drop(times):
        for _ in range(times):
            caller = Caller(
                signature, call.code, call.library, run, call.slow, call.on_status, makers
            )
            caller.add(call.activations[0].ctypes.data)
            caller.function(float32(1), float32(2))

    make_and_drop(500)
    gc.collect()
    before = resident()
    make_and_drop(3000)
    gc.collect()
    assert resident() - before < 1 << 20


def test_a_function_keeps_its_code_and_lets_go_of_it():
    call = Calls(*adding((1,)))
    function = call.caller.function
    call.caller = None
    gc.collect()
    assert function(float32(1), float32(2)).tolist() == [3]
    before = sys.getrefcount(call.library)
    del function
    gc.collect()
    after = sys.getrefcount(call.library)
    assert after == before - 1


# --- other ways -----------------------------------------------------------------------------


def test_a_callable_says_its_name():
    call = Calls(*adding((1,)), name="step", documentation="One step.")
    assert call.caller.function.__name__ == "step"
    assert call.caller.function.__doc__ == "One step."


def test_a_maker_that_gives_the_wrong_array_is_found_early():
    signature, text, _ = adding((1,))
    with pytest.raises(AssertionError, match="maker: expected an array"):
        Calls(signature, text, [lambda: np.zeros(2, np.float32)])
    with pytest.raises(AssertionError, match="maker: expected the dtype"):
        Calls(signature, text, [lambda: np.zeros(1)])


ANSWER = """
define i32 @run(ptr %p) {
  %x = load i32, ptr %p
  ret i32 %x
}
"""


@pytest.mark.parametrize("release_gil", [False, True])
@pytest.mark.parametrize("fast", [False, True])
def test_a_builtin_takes_an_address(monkeypatch, release_gil, fast):
    library = link([emit_object(ANSWER, host_target())])
    if not fast:
        monkeypatch.setattr(calls, "fast_calls", lambda: False)
    function = builtin(library.address("run"), load, release_gil=release_gil, keep=(library,))
    number = ctypes.c_int(-12)
    assert function(ctypes.addressof(number)) == -12


def test_a_builtin_refuses_what_is_no_address():
    library = link([emit_object(ANSWER, host_target())])
    function = builtin(library.address("run"), load)
    with pytest.raises(TypeError):
        function("x")
    with pytest.raises(ValueError, match="expected the address of an activation, received 0"):
        function(0)


def test_without_fast_calls_the_slow_path_is_the_callable(monkeypatch):
    monkeypatch.setattr(calls, "fast_calls", lambda: False)
    call = Calls(*adding((1,)), activations=2)
    assert call.caller.function == call.slow
    taken = [call.caller.take() for _ in range(3)]
    assert taken[2] == 0
    assert sorted(taken[:2]) == sorted(a.ctypes.data for a in call.activations)


def test_another_layout_of_arrays_is_noticed(monkeypatch):
    assert calls._arrays_are_as_expected()
    monkeypatch.setattr("dilim.backends.llvm.calls_signature.RANK", 28)
    assert not calls._arrays_are_as_expected()
