import contextlib
import io
import math
import random

import dilim

X = [1.0, 2.0]


def explained(function, *arguments, calls=3, **options):
    """The explanation after some calls."""
    options = {"backend": "reference", "compile_after": 0} | options
    compiled = dilim.compile(function, **options)
    with contextlib.redirect_stdout(io.StringIO()):
        for _ in range(calls):
            compiled(*arguments)
    return compiled.explain()


def marks(explanation, function):
    """The marks of the lines of a function, from its head."""
    code = function.__code__
    last = max(line for _, _, line in code.co_lines() if line)
    lines = range(code.co_firstlineno, last + 1)
    return [explanation.marks.get((code.co_filename, line), "") for line in lines]


def transfers(explanation):
    return [(x.to_host, x.values, x.types, x.bytes, x.in_loop) for x in explanation.transfers]


def mixed(x, n):
    """Prints each tenth."""
    for i in range(n):
        x = x * 0.5
        if i % 10 == 0:
            print("at", i, x.sum().item())
    rate = math.cosh(x.sum().item())
    return x * rate


def test_each_line_has_a_mark():
    explanation = explained(mixed, dilim.tensor(X), 30)
    assert marks(explanation, mixed) == [
        "", "", "graph", "graph", "graph", "both", "both", "graph",
    ]  # fmt: skip


def test_transfers_have_values_types_bytes_and_whether_they_are_in_a_loop():
    assert transfers(explained(mixed, dilim.tensor(X), 30)) == [
        (True, ("i", "x.sum().item()"), ("int64[]", "float64[]"), 16, True),
        (True, ("x.sum().item()",), ("float64[]",), 8, False),
        (False, ("rate",), ("float64[]",), 8, False),
        (True, ("the result",), ("float32[2]",), 8, False),
    ]


def test_transfers_are_counted_over_all_runs_of_the_program():
    compiled = dilim.compile(mixed, backend="reference", compile_after=0)
    with contextlib.redirect_stdout(io.StringIO()):
        for _ in range(2):
            compiled(dilim.tensor(X), 30)
        before = [transfer.runs for transfer in compiled.explain().transfers]
        compiled(dilim.tensor(X), 40)
    after = [transfer.runs for transfer in compiled.explain().transfers]
    assert [b - a for a, b in zip(before, after, strict=True)] == [4, 1, 1, 1]


def test_transfers_have_a_reason():
    print_, cosh, rate, result = explained(mixed, dilim.tensor(X), 30).transfers
    assert print_.reason == 'the host runs print("at", i, x.sum().item())'
    assert cosh.reason == "the host runs math.cosh(x.sum().item())"
    assert rate.reason == "the graph goes on with it"
    assert result.reason == "it is used after the graph program"
    first = mixed.__code__.co_firstlineno
    assert [x.line - first for x in (print_, cosh, rate, result)] == [5, 6, 7, 7]


def told(y):
    print(y)
    return y * 2.0


def laid_out(x):
    for _ in range(3):
        x = told(x + 1.0)
    return x


def test_a_loop_that_is_laid_out_is_one_transfer_in_several_places():
    explanation = explained(laid_out, dilim.tensor(X))
    sent = explanation.transfers[0]
    assert sent.values == ("y",)
    assert sent.points == 3
    assert sent.runs % 3 == 0
    assert marks(explanation, told) == ["", "host", "graph"]
    assert f"line {sent.line}  to the host: y\n      float32[2], 8 bytes, in 3 places, ran" in str(
        explanation
    )


def test_the_text():
    compiled = dilim.compile(laid_out, backend="reference", compile_after=0)
    with contextlib.redirect_stdout(io.StringIO()):
        compiled(dilim.tensor(X))
        compiled(dilim.tensor(X))
    text = str(compiled.explain()).splitlines()
    first = laid_out.__code__.co_firstlineno
    inner = told.__code__.co_firstlineno
    assert text[0] == "laid_out: a graph program and a host program"
    assert text[2].startswith("laid_out, ")
    assert text[2].endswith(f"test_explain.py:{first}")
    assert text[3:7] == [
        f"         {first} | def laid_out(x):",
        f"         {first + 1} |     for _ in range(3):",
        f"  both   {first + 2} |         x = told(x + 1.0)",
        f"         {first + 3} |     return x",
    ]
    assert f"  host   {inner + 1} |     print(y)" in text
    sections = [line for line in text if line and line[0] != " "]
    assert sections[3:] == ["Handed over", "On the host", "Counts"]
    assert f"  line {inner + 1}  to the host: y" in text
    assert "  2 calls, 2 native runs" in text
    assert text[-1].startswith("  1 program made, sliced and compiled in 0.")


def test_reasons_name_their_lines():
    reasons = explained(mixed, dilim.tensor(X), 30).reasons
    file, first = mixed.__code__.co_filename, mixed.__code__.co_firstlineno
    assert {(place, line - first) for place, line, _ in reasons} <= {(file, 5), (file, 6)}
    assert reasons


def test_pieces_found_in_the_cache_are_counted(monkeypatch, tmp_path):
    monkeypatch.setenv("DILIM_CACHE", str(tmp_path))

    def summed(x):
        return dilim.exp(x).sum() * 3.25

    counts = [
        str(explained(summed, dilim.tensor(X), calls=1, backend="llvm")).splitlines()[-1]
        for _ in range(2)
    ]
    assert "; 0 of " in counts[0]
    assert counts[1].endswith("; 1 of 1 piece of code found in the cache")


def tried(x, rows):
    x = x * 2.0
    try:
        y = rows[int(x.sum())]
    except IndexError:
        y = 0.5
    x = x * y
    random.seed(1)
    return x + 1.0


def test_each_line_of_a_block_on_the_host_is_marked_and_checks_are_no_work():
    explanation = explained(tried, dilim.tensor(X), [1.0], calls=4)
    assert marks(explanation, tried) == [
        "", "graph", "host", "host", "host", "host", "graph", "host", "graph",
    ]  # fmt: skip
    lines = [transfer.line for transfer in explanation.transfers]
    assert lines == sorted(lines)


def count():
    exec("STATE.n += 1", {"STATE": STATE})


def counted(x):
    x = x * STATE.n
    count()
    return x * STATE.n


class State:
    n = 0


STATE = State()


def test_runs_that_were_left_are_told_with_the_reason():
    STATE.n = 0
    compiled = dilim.compile(counted, backend="reference", compile_after=0)
    for k in range(4):
        assert compiled(dilim.ones(1)).item() == k * (k + 1.0)
    left = compiled.statistics.left
    text = str(compiled.explain())
    for reason, count in left.items():
        times = "once" if count == 1 else f"{count} times"
        assert f"  the rest of a run, {times}: {reason}" in text
    assert sum(left.values()) >= 1


def generator(x):
    yield x


def test_what_is_plain_python_is_named_with_its_line():
    compiled = dilim.compile(generator)
    [(file, line, reason)] = compiled.explain().fallbacks
    assert (file, line) == (generator.__code__.co_filename, generator.__code__.co_firstlineno)
    assert reason == "generators and async functions are not sliced"
    text = str(compiled.explain())
    assert "\n\nPlain Python\n" in text
    assert f"test_explain.py:{line}  {reason}\n" in text


def slow(x, n):
    for i in range(n):
        x = x * 0.99
        if i % 500 == 0:
            print(i)
    return x


def test_a_loop_that_was_compiled_while_it_ran():
    explanation = explained(slow, dilim.tensor(X), 2000, calls=1, compile_after=0.001)
    line = slow.__code__.co_firstlineno + 1
    assert str(explanation).startswith(
        f"slow: the loop at line {line} became a graph and a host program\n"
    )
    assert marks(explanation, slow) == ["", "graph", "graph", "graph", "host", ""]


# --- step by step ----------------------------------------------------------------------------


def steps(x, w, b):
    tmp = x @ w
    tmp2 = tmp + b
    print(tmp2)
    return tmp2 * math.cosh(tmp2.sum().item())


def test_trace_tells_the_run_in_numbered_steps(capsys):
    compiled = dilim.compile(steps, backend="reference", compile_after=0, trace=True)
    arguments = dilim.tensor([X]), dilim.tensor([[0.25], [0.125]]), dilim.tensor([-0.5])
    compiled(*arguments)
    capsys.readouterr()
    result = compiled(*arguments)
    out, err = capsys.readouterr()
    assert out == "tensor([[0.]])\n"
    assert result.tolist() == [[0.0]]
    line = steps.__code__.co_firstlineno
    assert err.splitlines() == [
        "   1  host   starts the graph program of steps",
        f"   2  graph  computes up to line {line + 3}",
        "   3  graph  sends tmp2: 0.0, float32[1,1]",
        f"   4  host   receives tmp2 and runs line {line + 3}: print(tmp2)",
        f"   5  graph  computes up to line {line + 4}",
        "   6  graph  sends tmp2.sum().item(): 0.0, float64[]",
        "   7  host   receives tmp2.sum().item() and runs "
        f"line {line + 4}: math.cosh(tmp2.sum().item())",
        "   8  host   sends math.cosh(tmp2.sum().item()): 1.0, float64[]",
        "   9  graph  receives it and computes to the end and sends the result: 0.0, float32[1,1]",
        "  10  host   returns from steps",
    ]


def test_trace_tells_of_each_turn(capsys):
    compiled = dilim.compile(mixed, backend="reference", compile_after=0, trace=True)
    compiled(dilim.tensor(X), 21)
    capsys.readouterr()
    compiled(dilim.tensor(X), 21)
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 3
    assert err.count("receives i, x.sum().item() and runs line") == 3
    assert "sends i, x.sum().item(): int64[], float64[], 16 bytes" in err


def test_without_trace_nothing_is_told(capsys):
    compiled = dilim.compile(steps, backend="reference", compile_after=0)
    compiled(dilim.tensor([X]), dilim.tensor([[0.25], [0.125]]), dilim.tensor([-0.5]))
    assert capsys.readouterr().err == ""
