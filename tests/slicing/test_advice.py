"""What a compiled function tells unasked."""

import contextlib
import warnings

import pytest

import dilim
from dilim.errors import PerformanceWarning
from dilim.slicing import advice


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
        with contextlib.ExitStack():  # the function as a whole is plain Python
            x = x + 1.0
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
