import ast
import sys
import traceback

import pytest
from plain_running import load

from dilim.slicing.fragments import EXHAUSTED, Fragments
from dilim.slicing.source import function_of


def pieces(text, name="f"):
    """The normal form of a function, and its fragments."""
    f = load(text)[name]
    function = function_of(f)
    return function, Fragments(function, f)


def test_a_piece_reads_binds_and_deletes_variables_of_the_frame():
    function, fragments = pieces(
        "\ndef f(a, b):\n    c = a + b\n    a = c * 2\n    del b\n    return c\n"
    )
    frame = {"a": 1, "b": 2}
    assert fragments.run(function.body[:3])(frame) is None
    assert frame == {"a": 6, "c": 3}
    assert fragments.run(function.body[-1:])(frame) == ("return", 3)


def test_made_names_stay_inside_a_piece_unless_others_need_them():
    function, fragments = pieces("\ndef f(a):\n    return (a + 1) * (a + 2)\n")
    frame = {"a": 1}
    fragments.run(function.body[:1])(frame)
    assert frame == {"a": 1, "%1": 2}
    fragments.run(function.body[1:2])(frame)
    assert fragments.run(function.body[2:])(frame) == ("return", 6)
    frame = {"a": 1}
    assert fragments.run(function.body)(frame) == ("return", 6)
    assert frame == {"a": 1}


def test_an_unbound_variable_raises_as_in_the_function():
    function, fragments = pieces("\ndef f(a):\n    b = a\n    return b\n")
    with pytest.raises(UnboundLocalError, match="local variable 'b' where it is not associated"):
        fragments.run(function.body[1:])({"a": 1})
    function, fragments = pieces("\ndef f(x):\n    del x\n    del x\n")
    with pytest.raises(UnboundLocalError, match="local variable 'x'"):
        fragments.run(function.body)({"x": 1})


def test_what_was_bound_before_an_error_is_kept():
    function, fragments = pieces(
        "\ndef f(a):\n    b = a\n    c = b\n    del a\n    fails()\n    c = 5\n"
    )
    frame = {"a": 1, "c": 0, "d": 4}
    with pytest.raises(ValueError, match="no 0"):
        fragments.run(function.body)(frame)
    assert frame == {"b": 1, "c": 1, "d": 4}


def test_a_piece_tells_how_it_was_left():
    function, fragments = pieces(
        "\ndef f(a):\n    while a:\n        if a == 1: break\n        if a == 2: continue\n"
        "        if a == 3: return 'three'\n        try:\n            if a == 4: break\n"
        "        finally:\n            a = 0\n"
    )
    run = fragments.run(function.body[0].body)
    ends = {}
    for a in range(1, 6):
        frame = {"a": a}
        ends[a] = (run(frame), frame["a"])
    assert ends == {
        1: (("break", None), 1),
        2: (("continue", None), 2),
        3: (("return", "three"), 3),
        4: (("break", None), 0),
        5: (None, 0),
    }


def test_a_piece_decides():
    function, fragments = pieces("\ndef f(a):\n    if a > 1 and a: return a\n    return 0\n")
    branch = function.body[-2]
    decide = fragments.decide(function.body[:-2], branch.test, branch.at)
    assert [decide({"a": a}) for a in (0, 1, 2)] == [False, False, True]


def test_a_loop_in_turns():
    function, fragments = pieces(
        "\ndef f(xs):\n    for x in xs:\n        y = x * 2\n    return y\n"
    )
    loop = function.body[0]
    frame = {"xs": [1, 2]}
    fragments.begin(loop)(frame)
    turn = fragments.turn(loop, loop.body)
    seen = [(turn(frame), frame["x"], frame["y"]) for _ in range(3)]
    assert seen == [(None, 1, 2), (None, 2, 4), (EXHAUSTED, 2, 4)]


def test_a_context_in_parts():
    function, fragments = pieces("\ndef f(a):\n    with a as b: pass\n    return b\n")
    statement = function.body[0]
    calls = []

    class Context:
        def __enter__(self):
            return "entered"

        def __exit__(self, *error):
            calls.append(error[:2])
            return error[0] is KeyError

    frame = {"a": Context()}
    fragments.enter(statement)(frame)
    assert frame["b"] == "entered"
    error = KeyError(1)
    assert fragments.leave(statement)(dict(frame), error) is True
    assert fragments.leave(statement)(frame, None) is False
    assert calls == [(KeyError, error), (None, None)]
    assert statement.manager not in frame


def test_values_of_calls_are_shown():
    f = load("\ndef f(a):\n    return len(a) + abs(a[0])\n")["f"]
    function = function_of(f)
    shown = []
    fragments = Fragments(function, f, lambda step, value: shown.append((step.line, value)))
    fragments.run(function.body)({"a": [-3, 4]})
    assert shown == []
    fragments.run(function.body, observed=True)({"a": [-3, 4]})
    line = f.__code__.co_firstlineno + 1
    assert shown == [(line, 2), (line, 3)]


def test_code_looks_like_that_of_the_function():
    text = """
def outer(k):
    class C:
        def f(self, a):
            b = a + k
            g = lambda: (b, __class__)
            return sys._getframe(0), g
    return C
import sys
C = outer(2)
f = C.f
"""
    namespace = load(text)
    f = namespace["f"]
    function = function_of(f)
    piece = Fragments(function, f).run(function.body[1:])
    frame = {"self": namespace["C"](), "a": 1, "b": 3}
    (_, (inside, g)), plain = piece(frame), f(namespace["C"](), 1)
    code, real = inside.f_code, plain[0].f_code
    for what in ("co_name", "co_qualname", "co_filename", "co_firstlineno"):
        assert getattr(code, what) == getattr(real, what)
    assert inside.f_lineno == plain[0].f_lineno
    assert inside.f_globals is f.__globals__
    assert g.__qualname__ == plain[1].__qualname__ == "outer.<locals>.C.f.<locals>.<lambda>"
    assert g() == (3, namespace["C"])


def test_cells_are_those_of_the_function_object():
    namespace = load(
        "\ndef outer(k):\n    def f():\n        nonlocal k\n        k += 1\n        return k\n"
        "    return f, lambda: k\nf = outer(2)[0]\n"
    )
    for start in (5, 7):
        f, now = namespace["outer"](start)
        function = function_of(f)
        assert Fragments(function, f).run(function.body)({}) == ("return", start + 1)
        assert now() == start + 1


def test_the_place_of_an_error_is_the_users():
    f = load("\ndef f(a):\n    return (a\n            .b\n            .c(1))\n")["f"]
    function = function_of(f)

    class Broken:
        def c(self, value):
            raise ValueError(value)

    class Owner:
        b = Broken()

    texts = []
    for run in (f, lambda a: Fragments(function, f).run(function.body)({"a": a})):
        with pytest.raises(ValueError, match="1") as error:
            run(Owner())
        entries = traceback.extract_tb(error.value.__traceback__)
        texts.append(
            [(entry.lineno, entry.colno, entry.end_colno) for entry in entries if entry.name == "f"]
        )
    assert texts[0] == texts[1]


def test_statements_are_compiled_once_for_all_function_objects():
    namespace = load("\ndef make(k):\n    def f(): return k\n    return f\nf = make(1)\n")
    first, second = namespace["make"](1), namespace["make"](2)
    function = function_of(first)
    one, two = (Fragments(function, f).run(function.body) for f in (first, second))
    assert one.__code__ is two.__code__
    assert (one({}), two({})) == (("return", 1), ("return", 2))


def test_old_values_end_when_they_are_bound_anew():
    function, fragments = pieces("\ndef f(a, make):\n    a = make(1)\n    make(2)\n    return a\n")
    log = []

    class Noisy:
        def __init__(self, name):
            self.name = name
            log.append(f"made {name}")

        def __del__(self):
            log.append(f"gone {self.name}")

    frame = {"a": Noisy(0), "make": Noisy}
    fragments.run(function.body[:-1])(frame)
    assert log == ["made 0", "made 1", "gone 0", "made 2", "gone 2"]


def test_a_fragment_can_be_traced_line_by_line():
    f = load("\ndef f(a):\n    b = a + 1\n    c = [k for k in (b, a)]\n    return c\n")["f"]
    function = function_of(f)
    run = Fragments(function, f).run(function.body)
    lines = []

    def tracer(frame, event, value):
        if frame.f_code is run.__code__ and event == "line":
            lines.append(frame.f_lineno - f.__code__.co_firstlineno)
        return tracer

    sys.settrace(tracer)
    try:
        run({"a": 1})
    finally:
        sys.settrace(None)
    assert list(dict.fromkeys(lines)) == [1, 2, 3]


def test_syntax_of_the_user_is_not_changed():
    f = load("\ndef f(a):\n    while a:\n        try: return a\n        finally: break\n")["f"]
    function = function_of(f)
    unit = function.body[0].body[0]
    before = ast.dump(unit.node)
    Fragments(function, f).run(function.body[0].body)
    assert ast.dump(unit.node) == before
