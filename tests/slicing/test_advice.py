"""What a compiled function tells unasked."""

import contextlib
import io
import random
import time
import warnings

import pytest

import dilim
from dilim.errors import PerformanceWarning, UnsupportedError
from dilim.slicing import advice, meters
from dilim.slicing.region import Region

MANY = (0,) * 1001


def compiled(f, **options):
    return dilim.compile(f, **{"backend": "reference", "compile_after": 0} | options)


def told(calls):
    """The warnings of some calls: (message, line from the head of this function's caller)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calls()
    assert all(w.category is PerformanceWarning for w in caught)
    assert all(w.filename == __file__ for w in caught)
    return [(str(w.message), w.lineno) for w in caught]


class Settings:
    def __init__(self):
        self.weight = dilim.ones(1)


SETTINGS = Settings()


def test_what_changes_is_named_wherever_it_is_found():
    hidden = dilim.ones(1)

    def f(x, word, n=2):
        return x * SETTINGS.weight.sum() * n + hidden.sum()

    line = f.__code__.co_firstlineno

    def other_words():
        g = compiled(f)
        for word in "abcdefghijk":
            g(dilim.ones(2), word)

    outcomes = (
        "Each takes time to compile, and after 8 of them other calls run as plain Python.",
        "No more are made: what they do not fit runs as plain Python.",
    )
    assert told(other_words) == [
        (
            "f: 5 programs were made for it, because argument 'word' had 5 values ('a', 'b', 'c', "
            f"'d', 'e'). {outcomes[0]}",
            line,
        ),
        (
            "f: 8 programs were made for it, because argument 'word' had 8 values ('a', 'b', 'c', "
            f"'d', ..., 'h'). {outcomes[1]}",
            line,
        ),
    ]

    def other_attributes():
        g = compiled(f)
        for size in range(1, 7):
            SETTINGS.weight = dilim.ones(size, dtype="float64" if size == 3 else "float32")
            g(dilim.ones(2), "a")

    [(message, _)] = told(other_attributes)
    assert "global 'SETTINGS.weight' had 5 shapes ((1,), (2,), (3,), (4,), (5,)) and" in message
    assert "global 'SETTINGS.weight' had 2 dtypes (float32, float64)." in message

    def other_variables():
        nonlocal hidden
        g = compiled(f)
        for size in range(1, 7):
            hidden = dilim.ones(size)
            g(dilim.ones(2), "a")

    [(message, _)] = told(other_variables)
    assert "variable 'hidden' had 5 shapes" in message


def test_numbers_and_a_few_shapes_are_no_news():
    def f(x, n):
        return x * n

    g = compiled(f)

    def calls():
        for n in range(20):
            g(dilim.ones(2 + n % 3), n)

    assert told(calls) == []


def test_programs_of_a_loop_are_told_of_at_its_line():
    def f(x, n):
        for _ in MANY:  # the function as a whole is plain Python
            pass
        for _ in range(n):
            x = x * 0.5
        return x

    g = compiled(f)

    def calls():
        for size in range(1, 7):
            g(dilim.ones(size), 20)

    line = f.__code__.co_firstlineno + 3
    assert told(calls) == [
        (
            f"f: 5 programs were made for its loop at line {line}, because variable 'x' had 5 "
            "shapes ((1,), (2,), (3,), (4,), (5,)). Each takes time to compile, and after 8 of "
            "them other calls run as plain Python.",
            line,
        )
    ]


def test_long_compiling_is_told_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(advice, "SAY_AFTER", 0.0)
    compiled(abs_of_sum)(dilim.ones(2))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("dilim: slicing and compiling abs_of_sum (")
    assert f"test_advice.py:{abs_of_sum.__code__.co_firstlineno}) took " in printed.err
    assert printed.err.count("\n") == 1


def abs_of_sum(x):
    return abs(x.sum())


def test_only_functions_are_taken():
    with pytest.raises(dilim.errors.UnsupportedError, match="expected a function"):
        dilim.compile(print)


# --- transfers in loops ---------------------------------------------------------------------


class Meter:
    """What only the host can use."""

    def __init__(self):
        self.seen = []

    def add(self, value):
        self.seen += [value]
        exec("0")
        return 0.5

    def __len__(self):
        return len(self.seen)


METER = Meter()
RATES = [0.5] * 1000
WEIGHTS = {"a": 0.5}


def appended(x, n):
    found = []
    for _ in range(n):
        x = x * 0.5
        found.append(float(x.sum()))
    return found


def appended_now_and_then(x, n):
    found = []
    for i in range(n):
        x = x * 0.5
        if i % 100 == 0:
            found.append(x.sum().item())
    return found


def indexed(x, n):
    for i in range(n):
        x = x * RATES[i]
    return x


def listed(x, n):
    for _ in range(n):
        x = x * 0.5
        row = x.tolist()
        x = x + row[0]
    return x


def printed(x, n):
    for i in range(n):
        x = x * 0.5
        total = x.sum().item()
        text = f"{i} {total:.3f}"
        print(text, total)
    return x


def called(x, n):
    for _ in range(n):
        x = x * METER.add(float(x.sum()))
    return x


def chosen(x, n):
    for _ in range(n):
        number = random.random()
        if number < 0.5:
            x = x * 0.5
    return x


IMPLICIT = {
    appended: ("float(x.sum()) is sent to the host in each turn", 4),
    indexed: ("i is sent to the host in each turn", 2),
    listed: ("x is sent to the host in each turn", 3),
}
EXPLICIT = (printed, called, chosen)


def quietly(f, *arguments):
    with contextlib.redirect_stdout(io.StringIO()):
        return f(*arguments)


@pytest.mark.parametrize("f", IMPLICIT)
def test_a_transfer_that_nobody_asked_for_is_told_of_once(f, monkeypatch):
    monkeypatch.setattr(meters, "TRANSFER", 1.0)  # so that no time decides
    g = compiled(f)
    assert told(lambda: [g(dilim.ones(2), 20) for _ in range(4)]) == []
    [(message, line)] = told(lambda: [g(dilim.ones(2), 400) for _ in range(3)])
    text, row = IMPLICIT[f]
    assert message.startswith(f"{f.__name__}: {text} of a loop, 400 times in this call")
    assert line == f.__code__.co_firstlineno + row


@pytest.mark.parametrize("f", EXPLICIT)
def test_what_was_asked_for_is_not_told_of(f, monkeypatch):
    monkeypatch.setattr(meters, "TRANSFER", 1.0)
    g = compiled(f)
    assert told(lambda: [quietly(g, dilim.ones(2), 400) for _ in range(4)]) == []
    assert g.statistics.fallbacks == []


def test_a_transfer_that_costs_little_is_not_told_of(monkeypatch):
    monkeypatch.setattr(meters, "TRANSFER", 0.0)
    g = compiled(appended)
    assert told(lambda: [g(dilim.ones(2), 400) for _ in range(3)]) == []


@pytest.mark.parametrize("f", IMPLICIT)
def test_strict_refuses_a_transfer_in_each_turn(f):
    g = compiled(f, strict=True)
    text, row = IMPLICIT[f]
    line = f.__code__.co_firstlineno + row
    with pytest.raises(dilim.errors.UnsupportedError) as caught:
        # the first calls may show types that are not known before
        [g(dilim.ones(2), 20) for _ in range(3)]
    assert str(caught.value).startswith(f"compile: {text} of a loop of {f.__name__} (")
    assert f"test_advice.py:{line}): " in str(caught.value)


@pytest.mark.parametrize("f", [*EXPLICIT, appended_now_and_then])
def test_strict_allows_what_was_asked_for(f):
    g = compiled(f, strict=True)
    for _ in range(4):
        quietly(g, dilim.ones(2), 20)
    assert g.statistics.native_calls == 4


# --- plain Python where it is quicker --------------------------------------------------------


def doubled(x):
    return x * 2.0


def slow(seconds, function):
    def slower(*arguments):
        time.sleep(seconds)
        return function(*arguments)

    return slower


def test_plain_python_is_kept_where_it_is_quicker(monkeypatch):
    monkeypatch.setattr(Region, "run", slow(0.005, Region.run))
    g = compiled(doubled, compile_after=1e-9)
    for _ in range(60):
        assert g(dilim.ones(2)).tolist() == [2.0, 2.0]
    assert 3 <= g.statistics.native_calls <= 20
    assert "as it stands, " in str(g.explain())
    assert "ms as two programs" in str(g.explain())
    ran = g.statistics.native_calls
    assert g(dilim.ones(3)).tolist() == [2.0, 2.0, 2.0]  # of its own kind, and tried anew
    assert g.statistics.native_calls == ran + 1


def test_two_programs_are_kept_where_they_are_quicker(monkeypatch):
    monkeypatch.setattr("dilim.slicing.likeness.called", slow(0.05, lambda f, values: f(*values)))
    g = compiled(doubled, compile_after=1e-9)
    for _ in range(60):
        assert g(dilim.ones(2)).tolist() == [2.0, 2.0]
    assert g.statistics.calls - g.statistics.native_calls <= 5
    assert "Plain Python" not in str(g.explain())


def test_whoever_wants_it_at_once_has_it_however_slow(monkeypatch):
    monkeypatch.setattr(Region, "run", slow(0.001, Region.run))
    g = compiled(doubled)
    for _ in range(40):
        g(dilim.ones(2))
    assert g.statistics.native_calls == 40


def test_a_function_without_source_is_told_of_where_it_is_compiled():
    space = {"dilim": dilim}
    with pytest.warns(
        PerformanceWarning, match=r"f: runs as plain Python, because its source \(<typed>\)"
    ):
        exec(compile("@dilim.compile\ndef f(x): return x + 1", "<typed>", "exec"), space)
    assert space["f"](dilim.tensor([1.0])).tolist() == [2.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "gpu"}, "expected backend='llvm' or 'reference', received 'gpu'"),
        ({"numerics": "exact"}, "expected numerics='strict' or 'fast', received 'exact'"),
        ({"strict": "yes"}, "expected strict=False or True, received 'yes'"),
        ({"compile_after": -1}, "expected compile_after >= 0"),
        ({"compile_after": float("nan")}, "expected compile_after >= 0"),
        ({"compile_after": "soon"}, "expected compile_after=None or a number of seconds"),
        ({"compile_afer": 0}, "no option 'compile_afer'.* did you mean compile_after"),
    ],
)
def test_options_are_checked_where_they_are_given(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        dilim.compile(lambda x: x, **options)
    with pytest.raises((TypeError, ValueError), match=message):
        dilim.compile(**options)


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_the_order_of_decorators_is_told(kind):
    with pytest.raises(UnsupportedError, match=f"below @{kind.__name__}"):
        dilim.compile(kind(lambda x: x))
