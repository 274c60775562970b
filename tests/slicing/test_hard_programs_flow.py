"""Hard programs for a slicer: control flow."""

import pytest

from slicing.comparing import Call, check


def test_a_print_and_a_host_function_in_straight_code():
    seen = check(
        """
        def magic(t):
            return random.randint(3, 3) * 1.0

        def linear(x, w, b):
            tmp = dilim.matmul(x, w)
            tmp2 = tmp + b
            print(tmp2)
            tmp3 = tmp2 * magic(tmp2)
            return tmp3
        f = linear
        """,
        *[Call("[dilim.tensor([[1.0, 2.0]]), dilim.tensor([[3.0], [4.0]]), dilim.ones(1)]")] * 3,
        sends=1,
        receives=1,
    )
    assert "12." in seen.printed(1)[0]


def test_a_host_function_whose_result_depends_on_what_was_sent():
    seen = check(
        """
        def magic(t):
            print("magic", t.shape)
            return float(np.asarray(t.numpy()).max()) + 0.5

        def f(x, w):
            y = x @ w
            print(y)
            z = y * magic(y)
            return z.sum()
        """,
        *[Call(f"[dilim.ones((2, 2)), dilim.full((2, 2), {k}.0)]") for k in range(1, 5)],
        sends=1,
        receives=1,
    )
    assert "magic" in seen.printed(4)[-1]


BRANCH = """
def f(x, y):
    print(y)
    if x.sum() > 100:
        y = x
    else:
        y = x @ x
    return y
"""


def test_a_shape_error_comes_at_its_line_after_what_was_printed():
    call = Call("[dilim.ones((2, 3)), dilim.zeros(1)]")
    seen = check(BRANCH, call, call, sends=0, receives=0, raises=(1, 2))
    assert seen.printed(1)
    assert seen.error(1).startswith("ShapeError")
    assert seen.line(1) == 6


def test_both_branches_of_the_same_program_with_a_shape_that_fits():
    seen = check(
        BRANCH,
        Call("[dilim.ones((2, 2)), dilim.zeros(1)]"),
        Call("[dilim.full((2, 2), 50.0), dilim.zeros(1)]"),
        Call("[dilim.ones((2, 2)), dilim.zeros(1)]"),
        sends=0,
        receives=0,
        variants=1,
    )
    assert "[[50.0, 50.0], [50.0, 50.0]]" in seen.value("result of call 2")


def test_the_shape_error_of_a_branch_that_is_not_taken_is_none():
    check(
        BRANCH,
        Call("[dilim.full((2, 3), 50.0), dilim.zeros(1)]"),
        Call("[dilim.ones((2, 3)), dilim.zeros(1)]"),
        Call("[dilim.full((2, 3), 60.0), dilim.zeros(1)]"),
        sends=0,
        receives=0,
        raises=(2,),
    )


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_pure_tensor_code_has_no_transfer(backend):
    check(
        """
        def f(x, w, b):
            return dilim.relu(x @ w + b).sum()
        """,
        *[Call("[dilim.ones((4, 3)), dilim.full((3, 2), 0.5), dilim.tensor([-1.0, 2.0])]")] * 3,
        sends=0,
        receives=0,
        variants=1,
        backend=backend,
    )


NEWTON = """
def step(t):
    return 0.5 * (t + 2.0 / t)

def err(t):
    return dilim.abs(t * t - 2.0).max()

def f(t):
    n = 0
    while err(t) > 1e-6:
        t = step(t)
        n += 1
        SHOW
    return t, n
"""


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_a_loop_on_a_tensor_never_leaves_the_graph(backend):
    check(
        NEWTON.replace("        SHOW\n", ""),
        Call("[dilim.tensor([100.0, 3.0], 'float64')]"),
        Call("[dilim.tensor([1e6, 3.0], 'float64')]"),
        Call("[dilim.tensor([2.0 ** 0.5] * 2, 'float64')]"),
        Call("[dilim.tensor([1e6, 3.0], 'float64')]"),
        sends=0,
        receives=0,
        variants=1,
        backend=backend,
    )


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_a_print_in_each_tenth_pass_sends_in_each_tenth_pass(backend):
    seen = check(
        """
        def f(t):
            n = 0
            while dilim.abs(t).max() > 1e-6:
                t = t * 0.75
                n += 1
                if n % 10 == 0:
                    print(n, float(dilim.abs(t).max()))
            return t, n
        """,
        *[Call("[dilim.tensor([3.0, -2.0])]")] * 2,
        sends=5,
        receives=0,
        backend=backend,
    )
    assert len(seen.printed(2)) == 5
    assert seen.printed(2)[0].startswith("10 0.16")


def test_a_range_of_an_argument_compiles_once():
    seen = check(
        """
        def f(t, h):
            for i in range(h):
                t = t * i
                t = t + 1
            return t
        """,
        *[Call(f"[dilim.tensor([2.0, 3.0]), {h}]") for h in (3, 5, 0, 40, 1, -2, 3)],
        sends=0,
        receives=0,
        variants=1,
    )
    assert "[5.0, 5.0]" in seen.value("result of call 1")


def test_ranges_with_start_and_step_are_those_of_python():
    check(
        """
        def f(t, a, b, c):
            n = 0
            for i in range(a, b, c):
                t = t + i
                n = n * 10 + i
            else:
                n -= 1
            return t, n
        """,
        *[
            Call(f"[dilim.ones(2), {a}, {b}, {c}]")
            for a, b, c in [(0, 7, 2), (7, 0, -3), (3, 3, 1), (0, 5, -1), (2, 9, 3)]
        ],
        Call("[dilim.ones(2), 0, 5, 0]"),
        Call("[dilim.ones(2), 0, 7, 2]"),
        sends=0,
        receives=0,
        raises=(6,),
    )


def test_a_random_choice_of_the_host_is_drawn_once():
    seen = check(
        """
        def a(t):
            return t * 2.0

        def b(t):
            return t - 1.0

        def f(t, n):
            for _ in range(n):
                if random.random() < 0.5:
                    t = a(t)
                else:
                    t = b(t)
            return t
        """,
        *[Call("[dilim.tensor([1.0, 3.0]), 8]", before="random.seed(5)")] * 3,
        sends=0,
        receives=8,
        variants=1,
    )
    assert seen.value("random state")


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_random_numbers_in_a_loop_on_a_tensor(backend):
    check(
        """
        GENERATOR = dilim.Generator(3)

        def f(t):
            n = 0
            while t.sum() < 20.0:
                t = t + dilim.abs(GENERATOR.normal((2, 3)))
                t = t + dilim.default_generator().uniform((3,))
                n += 1
            return t, n
        """,
        *[Call("[dilim.zeros((2, 3))]")] * 3,
        sends=0,
        receives=0,
        variants=1,
        backend=backend,
    )


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_a_return_in_one_branch_of_a_tensor(backend):
    seen = check(
        """
        def f(t):
            if t.sum() > 0:
                return t * 2
            t = t - 1
            if t.max() > -3:
                return t.sum()
        """,
        Call("[dilim.tensor([1.0, 2.0])]"),
        Call("[dilim.tensor([-1.0, -2.0])]"),
        Call("[dilim.tensor([-5.0, -2.5])]"),
        Call("[dilim.tensor([1.0, 2.0])]"),
        sends=0,
        receives=0,
        variants=1,
        backend=backend,
    )
    assert seen.value("result of call 3") == "NoneType None"


def test_returns_of_other_kinds_in_branches():
    check(
        """
        def f(t, k):
            for i in range(k):
                if t.sum() > 10:
                    return {"t": t, "i": i}
                if t.min() < 0:
                    return "below", i
                t = t + i
            return t, None
        """,
        Call("[dilim.tensor([1.0, 2.0]), 9]"),
        Call("[dilim.tensor([1.0, -2.0]), 9]"),
        Call("[dilim.tensor([1.0, 2.0]), 2]"),
        sends=0,
        receives=0,
    )


def test_a_deep_recursion_does_not_explode():
    seen = check(
        """
        def p(t, n):
            return t if n == 0 else p(t @ t, n - 1)
        f = p
        """,
        Call("[dilim.eye(2) * 1.0, 50]"),
        Call("[dilim.tensor([[0.6, -0.8], [0.8, 0.6]]), 50]"),
        Call("[dilim.eye(2) * 1.0, 3]"),
        Call("[dilim.eye(2) * 1.0, 0]"),
        sends=0,
        receives=0,
    )
    assert seen.compiled.statistics.compile_seconds < 5.0


def test_a_recursion_on_a_tensor():
    check(
        """
        def f(t, depth=0):
            if t.sum() > 50 or depth >= 20:
                return t, depth
            return f(t * 1.5, depth + 1)
        """,
        Call("[dilim.tensor([1.0, 2.0])]"),
        Call("[dilim.tensor([100.0, 2.0])]"),
        Call("[dilim.tensor([-1.0, -2.0])]"),
        receives=0,
    )


def test_generators_and_coroutines_run_as_they_are():
    seen = check(
        """
        def f(t, n):
            for i in range(n):
                t = t * 2
                yield t
        """,
        Call("[dilim.ones(2), 3]", after="print([x.tolist() for x in result])"),
        native=0,
        fallback="yield|generator",
    )
    assert seen.printed(1) == ["[[2.0, 2.0], [4.0, 4.0], [8.0, 8.0]]"]
    check(
        """
        async def f(t):
            return t * 2
        """,
        Call(
            "[dilim.ones(2)]",
            after="import asyncio\nprint(asyncio.run(result))",
        ),
        native=0,
        fallback="async|coroutine",
    )


def test_an_argument_that_is_a_generator():
    check(
        """
        def numbers(n):
            for i in range(n):
                print("give", i)
                yield i * 0.5

        def f(t, steps):
            for s in steps:
                t = t * 0.5 + s
            return t
        """,
        Call("[dilim.ones(2), numbers(3)]"),
        Call("[dilim.ones(2), numbers(5)]"),
        Call("[dilim.ones(2), numbers(0)]"),
        Call("[dilim.ones(2), numbers(5)]"),
    )


def test_a_tensor_that_grows():
    seen = check(
        """
        def f(t, n):
            for i in range(n):
                r = t[-1:] * 0.5 + i
                t = dilim.concat([t, r])
            return t, t.shape[0], t.sum()
        """,
        Call("[dilim.ones(2), 3]"),
        Call("[dilim.ones(2), 6]"),
        Call("[dilim.ones(2), 6]"),
        may_leave=True,
    )
    assert "(8,)" in seen.value("result of call 2[0]")
