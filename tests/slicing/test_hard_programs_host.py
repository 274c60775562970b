"""Hard programs for a slicer, from reports about other compilers: host values, state, errors."""

import dataclasses
import time

import pytest

import dilim
from slicing.comparing import Call, check


def test_an_attribute_of_an_object_counts_each_call():
    seen = check(
        """
        class Holder:
            def __init__(self):
                self.value = 0

        O = Holder()

        def f(x, o):
            o.value += 1
            return x * 2
        """,
        *[Call("[dilim.ones(2), O]")] * 5,
        sends=0,
        receives=0,
        variants=1,
    )
    assert seen.value("O.value") == "int 5"


def test_numbers_are_inputs_and_never_stale():
    program = """
    def f(a, b, t=4.0):
        return a + b + t
    """
    seen = check(
        program,
        *[Call(f"[dilim.ones(2), dilim.ones(2), {t}]") for t in (8.0, 4.0, 2.0, 1.0)],
        Call("[dilim.ones(2), dilim.ones(2)]"),
        Call("[dilim.ones(2), dilim.ones(2)]", "{'t': 0.5}"),
        Call("[dilim.ones(2), dilim.ones(2)]", before="original.__defaults__ = (7.0,)"),
        sends=0,
        receives=0,
        variants=1,
    )
    for call, value in enumerate((10.0, 6.0, 4.0, 3.0, 6.0, 2.5, 9.0), 1):
        assert f"[{value}, {value}]" in seen.value(f"result of call {call}")


def test_values_of_classes_modules_and_globals_are_those_of_the_call():
    seen = check(
        """
        class Cfg:
            factor = 1.0

        SCALE = 1.0

        def helper(x):
            return x

        def other(x):
            return -x

        def f(x):
            return helper(x * Cfg.factor) * SCALE
        """,
        Call("[dilim.tensor(4.0)]"),
        Call("[dilim.tensor(4.0)]", before="Cfg.factor = 10.0"),
        Call("[dilim.tensor(4.0)]", before="SCALE = 3"),
        Call("[dilim.tensor(4.0)]", before="helper = other"),
        Call("[dilim.tensor(4.0)]", before="Cfg.factor = dilim.tensor(2.0)"),
        receives=0,
    )
    for call, value in enumerate((4.0, 40.0, 120.0, -120.0, -24.0), 1):
        assert f"() {value}" in seen.value(f"result of call {call}")


def test_a_global_that_is_rebound_between_calls_of_the_region():
    seen = check(
        """
        import dataclasses

        @dataclasses.dataclass
        class State:
            h: object

        STATE = None

        def region():
            return STATE.h + 1

        def f(h, n):
            global STATE
            for _ in range(n):
                STATE = State(h)
                h = region()
            return h
        """,
        Call("[dilim.tensor(0), 2]"),
        Call("[dilim.tensor(0), 5]"),
        Call("[0, 2]"),
        Call("[dilim.tensor(0), 2]"),
        may_leave=True,
    )
    assert "() 2" in seen.value("result of call 1")
    assert seen.value("result of call 3") == "int 2"


@dataclasses.dataclass
class _State:
    h: object


_HELD = None


def test_a_compiled_region_reads_a_global_that_its_caller_rebinds():
    global _HELD

    @dilim.compile(backend="reference", compile_after=0)
    def region(x):
        return x + _HELD.h + 1

    h = dilim.tensor(0)
    for _ in range(4):
        _HELD = _State(h)
        h = region(dilim.tensor(0))
    assert h.item() == 4
    assert region.statistics.native_calls == 4
    assert region.statistics.variants == 1


def test_a_list_shuffled_with_python_s_random():
    seen = check(
        """
        def f(x):
            order = list(range(5))
            random.shuffle(order)
            return x * order[0], order
        """,
        Call("[dilim.ones(2)]", before="random.seed(0)"),
        Call("[dilim.ones(2)]", after="print(random.random())"),
        Call("[dilim.ones(2)]"),
        sends=0,
        receives=1,
    )
    orders = [
        [int(seen.value(f"result of call {call}[1][{k}]").split()[1]) for k in range(5)]
        for call in (1, 2)
    ]
    assert orders == [[2, 1, 0, 4, 3], [0, 2, 1, 3, 4]]
    assert seen.printed(2) == [repr(0.9677999949201714)]


def test_a_class_made_in_the_function():
    seen = check(
        """
        import contextlib

        LOG = []
        STATE = {"n": 0}

        @contextlib.contextmanager
        def noted(name):
            LOG.append(name)
            yield
            LOG.append("end of " + name)

        def make(state):
            def f(x):
                class Counter:
                    def count(self):
                        state["n"] += 1
                        LOG.append(state["n"])

                with noted("counting"):
                    Counter().count()
                return x * state["n"]
            return f

        f = make(STATE)
        """,
        *[Call("[dilim.ones(2)]")] * 5,  # what the host changes is found out in the first ones
        sends=0,
        receives=1,
    )
    assert "'n'" in seen.value("STATE")
    assert seen.value("STATE['n']") == "int 5"
    assert seen.value("LOG") == "list of 15"


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_results_are_never_overwritten_by_a_later_call(backend):
    seen = check(
        """
        def f(x):
            return x.sum(), x, x[:1], x * 1
        """,
        *[Call(f"[dilim.full(2, {k}.0)]") for k in (1, 2, 3)],
        sends=0,
        receives=0,
        backend=backend,
    )
    for call in (1, 2, 3):
        assert f"() {2.0 * call}" in seen.value(f"result of call {call}[0]", 3)


def test_a_key_of_a_module_is_split_at_each_call():
    seen = check(
        """
        KEY = dilim.Generator(0)

        def f(n):
            global KEY
            KEY, mine = KEY.split(2)
            return mine.normal((3,))
        """,
        *[Call("[0]")] * 4,
        may_leave=True,
    )
    results = {seen.value(f"result of call {call}") for call in (1, 2, 3, 4)}
    assert len(results) == 4
    assert seen.value("KEY.state")


ESCAPE = """
def f(re, im, c, d, limit):
    for i in range(limit):
        re, im = re * re - im * im + c, 2.0 * re * im + d
        if re * re + im * im > 4.0:
            return i
    return limit
"""


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_an_escape_count_returns_from_within_its_loop(backend):
    points = [(-0.75, 0.1, 10), (-0.75, 0.1, 100), (1.0, 0.0, 100), (0.0, 0.0, 100)]
    zero = "dilim.tensor(0.0, 'float64')"
    seen = check(
        ESCAPE,
        *[
            Call(
                f"[{zero}, {zero}, dilim.tensor({c}, 'float64'), dilim.tensor({d}, 'float64'), {n}]"
            )
            for c, d, n in points
        ],
        sends=0,
        receives=0,
        variants=1,
        backend=backend,
    )
    counts = [seen.value(f"result of call {k}") for k in (1, 2, 3, 4)]
    assert counts == ["int 10", "int 32", "int 2", "int 100"]


def test_an_escape_count_in_complex_numbers_of_python():
    seen = check(
        """
        def f(c, limit, t):
            z = 0j
            for i in range(limit):
                z = z * z + c
                if abs(z) > 2:
                    return i, t * 2
            return limit, t * 2
        """,
        *[
            Call(f"[{c}, {n}, dilim.ones(2)]")
            for c, n in [("-0.75 + 0.1j", 10), ("-0.75 + 0.1j", 100), ("1 + 0j", 100), ("0j", 100)]
        ],
    )
    assert [seen.value(f"result of call {k}[0]") for k in (1, 2, 3, 4)] == [
        "int 10", "int 32", "int 2", "int 100",
    ]  # fmt: skip


def test_programs_do_not_grow_with_numbers():
    seen = check(
        """
        def f(x, n):
            return (x * n).sum() + n
        """,
        *[Call(f"[dilim.ones(4), {n}]") for n in range(20)],
        sends=0,
        receives=0,
        variants=1,
    )
    assert "() 95.0" in seen.value("result of call 20")


def test_programs_of_many_lengths_are_told_of():
    @dilim.compile(backend="reference", compile_after=0)
    def f(x, n):
        return (x * n).sum() + n

    with pytest.warns(UserWarning, match=r"x.*shape|shape.*x"):
        results = [f(dilim.ones(length), 2).item() for length in range(1, 21)]
    assert results == [2.0 * length + 2 for length in range(1, 21)]
    assert f.statistics.variants == 8


def test_results_that_nobody_uses():
    check(
        """
        def f(a, b):
            return a + b
        """,
        *[Call("[dilim.ones(2), dilim.ones(2)]")] * 5,
        *[Call("[dilim.ones(2), dilim.ones(2)]", after="print(result.tolist())")] * 5,
        sends=0,
        receives=0,
        variants=1,
    )


def test_a_small_network_is_soon_not_slower_than_eager():
    model = dilim.nn.MLP(8, [32, 32, 2], generator=dilim.Generator(0))

    def f(x):
        return dilim.softmax(model(x))

    compiled = dilim.compile(f, compile_after=0)
    x = dilim.Generator(1).normal((4, 8))
    with dilim.no_grad():
        wanted = f(x).tolist()
        assert compiled(x).tolist() == wanted
        eager, native = _fastest(f, x), _fastest(compiled, x)
        assert compiled(x).tolist() == wanted
    assert native < eager
    assert compiled.statistics.native_calls == compiled.statistics.calls
    assert compiled.statistics.compile_seconds > 0.0


def _fastest(f, x):
    times = []
    for _ in range(100):
        started = time.perf_counter()
        f(x)
        times.append(time.perf_counter() - started)
    return min(times)


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_an_own_generator_and_the_global_one(backend):
    check(
        """
        OWN = dilim.Generator(42)

        def f(n):
            return OWN.uniform((2,)), dilim.default_generator().uniform((2,)), OWN.normal((3,))
        """,
        Call("[0]", before="dilim.seed(42)"),
        Call("[0]"),
        Call("[0]"),
        sends=0,
        receives=0,
        backend=backend,
    )


def test_prints_of_a_loop_come_at_each_call():
    seen = check(
        """
        def f(x):
            for i in range(3):
                x = x + 1
                print("step", i)
            return x
        """,
        *[Call("[dilim.ones(2)]")] * 2,
        sends=0,
        receives=0,
    )
    assert seen.printed(1) == seen.printed(2) == ["step 0", "step 1", "step 2"]
