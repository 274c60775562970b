import functools
import inspect
import traceback

import pytest
from plain_running import load

import dilim
from dilim.slicing.fronts import called, front
from dilim.slicing.observers import Observer
from dilim.slicing.source import function_of
from dilim.slicing.tracebacks import called_from, users_view
from dilim.slicing.walker import Walker

TEXT = """
def helper(k):
    return 1 / k
class Context:
    def __enter__(self): return self
    def __exit__(self, *error): return False
def f(a, /, b=2, *rest, key=3, **more):
    "What f does."
    x = a + b
    try:
        helper(0)
    except ZeroDivisionError as e:
        if key == 4: raise KeyError(x) from e
        if key == 5: raise KeyError(x)
    with Context():
        for _ in range(1):
            y = [helper(k) for k in
                 range(key)] if key < 3 else helper(
                    key - 3) + undefined
    return (x, rest, more,
            y
             .real
             .foo(3))
def g(a): return [[1 / k for k in range(a)] for _ in range(2)]
"""


class Watching(Observer):
    def watches(self, loop):
        return True


# What a front calls belongs to the slicer, and stands in none of the user's files.
CALLS = """
def walk(f, function, observer, values):
    frame = dict(zip(function.parameters, values, strict=True))
    return Walker(function, f, observer).run(frame)
def run_plainly(f, values):
    return f(*values[:2], *values[3], key=values[2], **values[4])
"""
calls = {"Walker": Walker}
exec(compile(CALLS, "<dilim test>", "exec"), calls)


def fronted(f, observer=None):
    return front(f, functools.partial(calls["walk"], f, function_of(f), observer))


def text_of(f, args, keywords):
    try:
        f(*args, **keywords)
    except BaseException as error:
        return "".join(traceback.format_exception(error))
    return "no error"


@pytest.mark.parametrize("observer", [None, Watching()], ids=["in one piece", "loop by loop"])
@pytest.mark.parametrize(
    ("name", "args", "keywords"),
    [
        ("f", (1,), {}),
        ("f", (1,), {"key": 4}),
        ("f", (1,), {"key": 5}),
        ("f", (1,), {"key": 6}),
        ("f", (1,), {"key": 2}),
        ("f", (1,), {"key": 0}),
        ("f", (1, "x"), {}),
        ("f", (), {}),
        ("f", (), {"a": 1}),
        ("g", (1,), {}),
        ("g", (1, 2), {}),
    ],
)
def test_a_traceback_reads_as_that_of_the_plain_function(name, args, keywords, observer):
    f = load(TEXT)[name]
    plain = text_of(f, args, keywords)
    assert "Error" in plain
    assert text_of(fronted(f, observer), args, keywords) == plain


def test_values_come_in_the_order_of_the_parameters():
    f = load(TEXT)["f"]
    seen = front(f, lambda values: values)
    assert seen(1) == (1, 2, 3, (), {})
    assert seen(1, 4, 5, key=6, z=7) == (1, 4, 6, (5,), {"z": 7})


def test_defaults_are_those_of_the_function_at_the_call():
    f = load(TEXT)["f"]
    seen = front(f, lambda values: values)
    f.__defaults__ = (20,)
    f.__kwdefaults__["key"] = 30
    assert seen(1) == (1, 20, 30, (), {})
    f.__kwdefaults__ = {"key": 40}
    assert seen(1, key=seen) == (1, 20, seen, (), {})
    assert seen(1) == (1, 20, 40, (), {})


def test_a_function_is_called_with_the_values_that_its_front_gives():
    def f(a, /, b, *rest, key, **more):
        return a, b, rest, key, more

    def g(*, key=1):
        return key

    for function, args, keywords in ((f, (1, 2, 3), {"key": 4, "z": 5}), (g, (), {"key": 2})):
        made = front(function, functools.partial(called, function))
        assert made(*args, **keywords) == function(*args, **keywords)


def test_a_front_presents_itself_as_the_function():
    f = load(TEXT)["f"]
    f.mark = 5
    made = fronted(f)
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "mark"):
        assert getattr(made, name) == getattr(f, name)
    assert inspect.signature(made) == inspect.signature(f)
    assert made.__wrapped__ is f


def test_an_error_of_the_function_itself_passes_through():
    f = load(TEXT)["f"]
    made = front(f, functools.partial(calls["run_plainly"], f))
    for key in (0, 2, 4, 6):
        assert text_of(made, (1,), {"key": key}) == text_of(f, (1,), {"key": key})


def test_frames_of_the_slicer_are_taken_out_and_callers_put_in():
    def user():
        raise ValueError("here")

    try:
        user()
    except ValueError as error:
        inner = users_view(error, [("outer", "a.py", 3), ("middle", "b.py", 7)])
    entries = traceback.extract_tb(inner.__traceback__)
    places = [(entry.name, entry.filename, entry.lineno) for entry in entries[:2]]
    assert places == [("outer", "a.py", 3), ("middle", "b.py", 7)]
    assert entries[-1].name == "user"
    assert called_from(None, []) is None


METHODS = """
class Box:
    def __init__(self, k):
        self.k = k
    def halves(self, x, n=2):
        for i in range(n):
            x = x * 0.5
            if i == self.k: raise ValueError(
                f"at {i}")
        return helper(x)
def helper(x):
    return 1 / (x.sum().item()
                - 1.0)
"""


@pytest.mark.parametrize("after", [0, None], ids=["sliced", "plain"])
@pytest.mark.parametrize(
    ("args", "keywords"),
    [((), {}), ((1, 2, 3), {}), (("x",), {}), (("x", 3), {}), ((), {"y": 1})],
)
def test_a_traceback_of_a_compiled_method_shows_nothing_of_dilim(args, keywords, after):
    names = load(METHODS)
    args = tuple(dilim.full(2, 2.0) if x == "x" else x for x in args)
    for k in (0, 5):
        box = names["Box"](k)
        plain = text_of(box.halves, args, keywords)
        options = {"backend": "reference", "compile_after": after}
        compiled = dilim.compile(box.halves, **options)
        for _ in range(2):
            assert without_marks(text_of(compiled, args, keywords)) == without_marks(plain)


def without_marks(text):
    """Without the lines that underline a part of the source, which need not be the same."""
    return [line for line in text.splitlines() if set(line) - set(" ~^")]


def test_a_method_of_a_compiled_function_can_be_compiled():
    class Box:
        @dilim.compile(backend="reference", compile_after=0)
        def doubled(self, x):
            return x * 2.0

    again = dilim.compile(Box().doubled, backend="reference", compile_after=0)
    assert again(dilim.ones(2)).tolist() == [2.0, 2.0]
    assert again.statistics.native_calls == 1


def test_a_name_that_is_read_right_after_another_is_bound_is_unbound_at_its_own_line():
    text = "def h(n):\n    if n:\n        y = n\n    a = [n]\n    b = y\n    return a, b\n"
    h = load(text)["h"]
    outside = {}
    exec(compile("def run(f, values): return f(*values)", "<dilim test>", "exec"), outside)
    for _ in range(30):  # CPython puts instructions together once they have been run some times
        h(1)
    with pytest.raises(UnboundLocalError) as raised:
        front(h, functools.partial(outside["run"], h))(0)
    assert traceback.extract_tb(raised.value.__traceback__)[-1].line == "b = y"


def test_an_error_at_an_instruction_that_is_on_no_line():
    """An interrupt may be raised there."""

    def fail():
        raise KeyboardInterrupt

    fail.__code__ = fail.__code__.replace(co_linetable=b"")
    try:
        fail()
    except KeyboardInterrupt as error:
        last = users_view(error).__traceback__.tb_next
        assert (last.tb_frame.f_code.co_name, last.tb_lineno) == ("fail", None)
    else:
        raise AssertionError("nothing was raised")
