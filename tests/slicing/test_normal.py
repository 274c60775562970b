import __future__

import ast
import gc
import linecache

import pytest
from plain_running import load

from dilim.slicing.errors import Unsliceable
from dilim.slicing.program import Branch, Exit, For, Step, Unit, While, With
from dilim.slicing.scopes import reads, writes
from dilim.slicing.source import _may_have_private_names, function_of


def form(block):
    """The normal form as nested lists of text, with made names numbered anew."""
    lines = []
    for statement in block:
        match statement:
            case Step(node=node):
                lines.append(ast.unparse(node))
            case Unit():
                lines.append(f"host: {ast.unparse(statement.node)}")
            case Exit():
                value = statement.value
                lines.append(statement.kind + (f" {ast.unparse(value)}" if value else ""))
            case Branch():
                test = ast.unparse(statement.test)
                lines += [f"if {test}", form(statement.then), form(statement.otherwise)]
            case While():
                test = ast.unparse(statement.test)
                lines += ["while", form(statement.before), test, form(statement.body)]
                lines.append(form(statement.otherwise))
            case For():
                head = f"for {statement.target} in {ast.unparse(statement.items)}"
                lines += [head, form(statement.body), form(statement.otherwise)]
            case With():
                head = f"with {ast.unparse(statement.context)} as {statement.target}"
                lines += [head, form(statement.body)]
    return lines


def body(text):
    return function_of(load(text)["f"])


def lines(statements):
    """The form of a function of some parameters with these statements."""
    text = "\n    ".join(statements.strip().splitlines())
    return form(body(f"\ndef f(a, b, c, *args, **kw):\n    {text}\n").body)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a + b * c", ["%1 = b * c", "x = a + %1"]),
        ("x = a.y(b)[c, 1:a]", ["%1 = a.y", "%2 = %1(b)", "x = %2[c, 1:a]"]),
        ("g(h(a))", ["%1 = g", "%2 = h(a)", "%3 = %1(%2)"]),
        ("g(a, h)", ["%1 = g(a, h)"]),
        ("a.x = b.y", ["%1 = b.y", "a.x = %1"]),
        ("a[g()] = b", ["%1 = g()", "a[%1] = b"]),
        ("a[b] += c", ["%1 = a[b]", "%1 += c", "a[b] = %1"]),
        ("a += b.c", ["%1 = a", "%2 = b.c", "%1 += %2", "a = %1"]),
        ("a += 1", ["a += 1"]),
        ("a, b = b, a", ["%1 = b", "%2 = a", "a = %1", "b = %2"]),
        ("a, *b = c", ["a, *b = c"]),
        ("a = b = c", ["a = c", "b = c"]),
        ("x = a + (a := 3)", ["%1 = a", "a = 3", "x = %1 + a"]),
        ("x = y + (a := 3)", ["%1 = y", "a = 3", "x = %1 + a"]),
        ("x = not a", ["x = not a"]),
        ("x = a and b", ["%1 = a", "if %1", ["%1 = b"], [], "x = %1"]),
        ("x = a if b else c", ["if b", ["x = a"], ["x = c"]]),
        ("x = (-1, (2, 'a')), -a", ["%1 = -a", "x = ((-1, (2, 'a')), %1)"]),
        ("if a: return b", ["if a", ["return b"], []]),
        ("return", ["return"]),
        ("x = f'{a}{g(b)}'", ["%1 = f'{a}'", "%2 = g(b)", "x = f'{%1}{%2}'"]),
        ("x: int = a\ny: int", ["x = a"]),
        ("del a, b[0]", ["del a", "del b[0]"]),
        ("assert a, b", ["if a", [], ["assert False, b"]]),
        ("raise a from b", ["raise a from b"]),
        ("'text'\n3\npass", []),
        ("return a\nb = 1", ["return a"]),
        ("for a in b: continue", ["for a in b", ["continue"], []]),
        ("while a: break\nelse: b = 1", ["while", [], "a", ["break"], ["b = 1"]]),
        ("with a as b, c: pass", ["with a as b", ["with c as None", []]]),
        ("import os.path as p", ["host: import os.path as p"]),
    ],
)
def test_form(source, expected):
    assert lines(source) == expected


def test_a_list_comprehension_is_a_loop_over_a_name_of_its_own():
    assert lines("a = [b * a for a, b in c if a]") == [
        "%list1 = []",
        "for %item4 in c",
        [
            "%a2, %b3 = %item4",
            "if %a2",
            ["%5 = %b3 * %a2", "%6 = %list1.append", "%7 = %6(%5)"],
            [],
        ],
        [],
        "a = %list1",
    ]


def test_a_comprehension_whose_variable_is_kept_stays_whole():
    assert lines("x = [lambda: k for k in a]") == ["x = [lambda: k for k in a]"]


def test_generators_read_their_free_names_and_are_used_up_by_builtins():
    function = body(
        """
def f(xs, w):
    for x in xs:
        w = sum(x * k * w for k in xs)
    return w
"""
    )
    [total] = function.body[0].body
    assert set(total.reads) == {"xs", "x", "w"}
    assert (function.captured, function.builtins) == (frozenset(), {"sum"})


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "sum(k * b for k in a if k)",
            [
                "%1 = 0",
                "for %k2 in a",
                ["if %k2", ["%3 = %k2 * b", "%1 = %1 + %3"], []],
                [],
                "x = %1",
            ],
        ),
        (
            "any(k > x for k in a)",
            [
                "%1 = False",
                "for %k2 in a",
                ["%3 = %k2 > x", "if %3", ["%1 = True", "break"], []],
                [],
                "x = %1",
            ],
        ),
        (
            "tuple(b for _ in a)",
            [
                "%list1 = []",
                "for %_2 in a",
                ["%3 = %list1.append", "%4 = %3(b)"],
                [],
                "x = tuple(%list1)",
            ],
        ),
    ],
)
def test_a_call_that_goes_over_a_generator_has_a_loop_beside_it(call, expected):
    [step] = body(f"def f(a, b, x):\n    x = {call}\n    return x").body[:1]
    assert form(step.summary.block) == expected


def test_calls_whose_generator_is_no_loop():
    calls = [
        "sum((lambda: k)() for k in a)",
        "any(k for m in a for k in m)",
        "min((k for k in a), b)",
    ]
    for call in [*calls, "max((k for k in a), key=len)", "set(k for k in a)"]:
        function = body(f"def f(a, b):\n    x = {call}\n    return x")
        assert all(getattr(step, "summary", None) is None for step in function.body)


def test_what_is_said_of_a_function():
    namespace = load(
        """
def outer(u, v):
    class C:
        def f(self, a, /, b, *c, d=1, **e):
            nonlocal v
            global G
            import os
            try:
                x = u + a
                return lambda: x
            except ValueError as error:
                G = v = error
    return C.f
f = outer(1, 2)
"""
    )
    function = function_of(namespace["f"])
    assert function.name == "f"
    assert function.qualified_name == "outer.<locals>.C.f"
    assert function.parameters == ("self", "a", "b", "d", "c", "e")
    assert function.cells == ("u", "v")
    assert function.locals == {*function.parameters, "os", "x", "error"}
    assert function.captured == {"x"}
    assert (function.globals_written, function.cells_written) == ({"G"}, {"v"})
    kept, first = function.lines
    assert kept[0].strip() == "def f(self, a, /, b, *c, d=1, **e):"
    assert first == namespace["f"].__code__.co_firstlineno
    unit = function.body[1]
    assert unit.exits
    assert unit.reason == "try runs on the host"
    assert {"a", "x"} <= set(unit.reads)
    assert set(unit.writes) == {"x", "error"}


def test_reads_and_writes_of_what_is_nested():
    function = body(
        "\ndef f(a, b):\n    for i in a:\n        if b: c = i\n        else:\n"
        "            with b as d: return d\n"
    )
    loop = function.body[0]
    assert list(reads(loop)) == ["a", "b", "i", "d"]
    assert list(writes(loop)) == ["i", "c", "d"]


@pytest.mark.parametrize(
    ("source", "reason", "line"),
    [
        ("def f():\n    yield 1", "generators and async", 1),
        ("async def f(): pass", "generators and async", 1),
        ("def f(a):\n    return eval('a')", r"eval\(\) looks at the names", 2),
        ("def f(a):\n    return a, vars()", r"vars\(\) looks at", 2),
        ("def f(a):\n    g = lambda: a\n    a = 2\n    return g", "a changes after", 2),
        ("def f(xs):\n    for x in xs:\n        print(lambda: x)", "x changes after", 3),
        ("def f(a):\n    g = (k + a for k in [1])\n    a = 2\n    return g", "a changes after", 2),
        (
            "def f(a):\n    def g():\n        nonlocal a\n        a = 1\n    g()",
            "changes its variable a",
            2,
        ),
    ],
)
def test_what_is_refused(source, reason, line):
    f = load(f"\n{source}\n")["f"]
    first = f.__code__.co_firstlineno
    with pytest.raises(Unsliceable, match=reason) as refusal:
        function_of(f)
    assert refusal.value.line == first - 1 + line


def test_a_consumer_that_is_not_the_builtin_may_keep_its_generator():
    text = "\ndef f(a):\n    b = sum(k + a for k in [1])\n    a = 2\n    return a, b\n"
    assert body(text).builtins == {"sum"}
    with pytest.raises(Unsliceable, match="a changes after"):
        body("\ndef sum(x): return x" + text)


def test_vars_of_an_object_is_no_reason():
    assert form(body("\ndef f(a):\n    return vars(a)\n").body) == ["%1 = vars(a)", "return %1"]


def test_a_builtin_has_no_source():
    with pytest.raises(
        Unsliceable, match="builtin_function_or_method objects have no Python source"
    ):
        function_of(len)


def test_a_function_without_a_file_is_refused():
    namespace = {}
    exec("def f(): return 1", namespace)
    with pytest.raises(Unsliceable, match="the source of <string> is not at hand"):
        function_of(namespace["f"])


def test_a_file_that_was_edited_is_noticed():
    namespace = load("\ndef f(a):\n    return a + 1\n")
    filename = namespace["f"].__code__.co_filename
    size, time, text, name = linecache.cache[filename]
    edited = [line.replace("a + 1", "a + 2") for line in text]
    linecache.cache[filename] = (size, time, edited, name)
    with pytest.raises(Unsliceable, match="is not that of its code"):
        function_of(namespace["f"])


def test_each_lambda_of_a_line_is_found():
    text = (
        "\nfs = [lambda a: a + 1, lambda a: a + 2, lambda: (lambda a: a + 3)]\nfs.append(fs[2]())\n"
    )
    found = [form(function_of(f).body)[0] for f in load(text)["fs"]]
    assert found[0] == "%1 = a + 1"
    assert found[1] == "%1 = a + 2"
    assert found[2] == "%1 = lambda a: a + 3"
    assert found[3] == "%1 = a + 3"


def test_a_normal_form_is_made_once():
    namespace = load("\ndef make(k):\n    def f(a): return a + k\n    return f\nf = make(1)\n")
    assert function_of(namespace["f"]) is function_of(namespace["make"](2))


def test_equal_code_of_another_file_is_another_function():
    first, second = (load("\ndef f(a): return a\n")["f"] for _ in range(2))
    assert first.__code__ == second.__code__
    forms = [function_of(f) for f in (first, second, first)]
    assert forms[0].filename != forms[1].filename
    assert forms[0] is forms[2]


def test_a_normal_form_is_kept_while_an_equal_one_goes():
    first, second = (load("\ndef f(a): return a\n")["f"] for _ in range(2))
    function_of(first)
    known = function_of(second)
    del first
    gc.collect()
    assert function_of(second) is known


def test_switches_of_the_compiler_are_kept():
    namespace = load("\ndef f(): pass\n")
    code = namespace["f"].__code__
    flag = __future__.annotations.compiler_flag
    namespace["f"].__code__ = code.replace(co_flags=code.co_flags | flag)
    assert function_of(namespace["f"]).flags == flag


@pytest.mark.parametrize(
    ("text", "may_have"),
    [
        ("self.__x = 1", True),
        ("self.__x_ = 1", True),
        ("super().__init__(a__b, _c, __file__)", False),
        ("__ = ___ = ____ = 1", False),
        ("self.\uff3f\uff3fx = 1", True),  # Python reads it as __x
    ],
)
def test_functions_are_copied_only_if_they_may_have_private_names(text, may_have):
    assert _may_have_private_names(text) is may_have
