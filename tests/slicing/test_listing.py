import ast
import math
import runpy
import textwrap

import dilim
from slicing.showing import slices

X = [1.0, 2.0]


def same(text, expected):
    assert text.splitlines() == textwrap.dedent(expected).strip().splitlines()


# --- straight code ---------------------------------------------------------------------------


def scaled(x, w, b):
    """A docstring."""
    tmp = x @ w
    tmp2 = tmp + b  # a comment
    print(tmp2)
    tmp3 = tmp2 * math.cosh(tmp2.sum().item())
    return tmp3  # noqa: RET504


def test_statements_are_code_on_their_side_and_comments_on_the_other():
    shown = slices(scaled, dilim.tensor([X]), dilim.tensor([[0.1], [0.2]]), dilim.tensor([0.5]))
    same(
        shown.graph,
        """
        def scaled(x, w, b):
            tmp = x @ w
            tmp2 = tmp + b
            send(tmp2)
            # host: print(tmp2)
            send(tmp2.sum().item())
            tmp3 = tmp2 * receive()
            return tmp3
        """,
    )
    same(
        shown.host,
        """
        def scaled(x, w, b):
            start_graph()
            # graph: tmp = x @ w
            # graph: tmp2 = tmp + b
            tmp2 = receive()
            print(tmp2)
            send(math.cosh(receive()))
            # graph: tmp3 = tmp2 * math.cosh(tmp2.sum().item())
            return receive()
        """,
    )


def test_str_shows_both_with_their_place():
    shown = str(slices(scaled, dilim.tensor([X]), dilim.tensor([[1.0], [2.0]]), dilim.tensor(0.5)))
    first, *_ = shown.splitlines()
    line = scaled.__code__.co_firstlineno
    assert first.startswith("# The graph program of scaled, ")
    assert first.endswith(f"test_listing.py:{line}")
    assert "\n\n\n# The host program of scaled\ndef scaled(x, w, b):\n    start_graph()\n" in shown


def handed_back(x):
    rate = math.cosh(x.sum().item())
    text = f"rate {rate:.2f}"
    print(
        text,
        x.max().item(),
    )
    return x * rate


def test_a_host_value_is_received_before_it_is_used():
    shown = slices(handed_back, dilim.tensor(X))
    assert "    rate = receive()\n    return x * rate" in shown.graph
    assert "    send(rate)\n    return receive()" in shown.host
    assert "    rate = math.cosh(receive())\n" in shown.host


def test_long_statements_keep_their_lines():
    shown = slices(handed_back, dilim.tensor(X))
    assert "    print(\n        text,\n        receive(),\n    )\n" in shown.host
    comment = [line for line in shown.graph.splitlines() if line.startswith("    #")]
    assert comment[-4:] == [
        "    # host: print(",
        "    #           text,",
        "    #           x.max().item(),",
        "    #       )",
    ]


# --- control flow ----------------------------------------------------------------------------


def early(x, n):
    for i in range(n):
        x = x * 2.0
        if x.sum() > 100.0:
            print("stop at", i)
            return x * 0.0
        if i == 3:
            continue
        if math.cosh(x.max().item()) > 1e30:
            break
    else:
        print("ended")
    return x


def test_control_flow_stands_where_it_has_work():
    shown = slices(early, dilim.tensor(X), 30)
    same(
        shown.graph,
        """
        def early(x, n):
            for i in range(n):
                x = x * 2.0
                if x.sum() > 100.0:
                    send(i)
                    # host: print("stop at", i)
                    return x * 0.0
                if i == 3:
                    continue
                send(x.max().item())
                if receive():
                    break
            else:
                # host: print("ended")
                pass
            return x
        """,
    )
    same(
        shown.host,
        """
        def early(x, n):
            start_graph()
            for i in range(n):  # the graph decides
                # graph: x = x * 2.0
                if x.sum() > 100.0:  # the graph decides
                    i = receive()
                    print("stop at", i)
                    return receive()
                # graph: if i == 3:
                    # graph: continue
                if send(math.cosh(receive()) > 1e30):
                    break
            else:
                print("ended")
            return receive()
        """,
    )


def chosen(x, mode):
    if mode == "twice":
        y = x * 2.0
    elif mode == "half":
        y = x / 2.0
    else:
        y = x
    if y.sum() > 100.0:
        print("large", y)
    elif y.sum() < -100.0:
        y = y + 1.0
    else:
        y = y - 1.0
    return y


def test_what_cannot_be_reached_is_a_comment():
    shown = slices(chosen, dilim.tensor(X), "half")
    same(
        shown.graph,
        """
        def chosen(x, mode):
            if mode == "twice":
                # not reached: y = x * 2.0
                pass
            elif mode == "half":
                y = x / 2.0
            else:
                # not reached: y = x
                pass
            if y.sum() > 100.0:
                send(y)
                # host: print("large", y)
            elif y.sum() < -100.0:
                y = y + 1.0
            else:
                y = y - 1.0
            return y
        """,
    )
    assert '    # graph: elif mode == "half":\n        # graph: y = x / 2.0\n' in shown.host
    assert (
        "    elif y.sum() < -100.0:  # the graph decides\n        # graph: y = y + 1.0\n"
        in shown.host
    )
    assert "twice" in shown.host
    assert "not reached" not in shown.host


def while_large(x):
    turns = 0
    while math.cosh(x.sum().item()) > 2.0:
        x = x * 0.5
        turns += 1
    return x, turns


def test_what_a_while_hands_over_is_handed_over_in_each_turn():
    shown = slices(while_large, dilim.tensor(X))
    assert (
        "    while True:\n"
        "        send(x.sum().item())\n"
        "        if not receive():\n"
        "            break\n"
        "        x = x * 0.5\n"
    ) in shown.graph
    assert "    while send(math.cosh(receive()) > 2.0):\n" in shown.host


def over_lines(x, path):
    for line in path.read_text().splitlines():
        x = x + 1.0
        print(line)
    return x


def test_a_loop_over_what_the_host_has(tmp_path):
    path = tmp_path / "lines"
    path.write_text("a\nb\n")
    shown = slices(over_lines, dilim.tensor(X), path)
    head = "for line in path.read_text().splitlines()"
    assert f"    while receive():  # {head}\n        x = x + 1.0\n" in shown.graph
    assert f"    {head}:\n        send(True)\n        # graph: x = x + 1.0\n" in shown.host
    assert "        print(line)\n    send(False)\n" in shown.host


def guarded(x):
    with dilim.no_grad():
        x = x + 1.0
        try:
            print(x.sum())
        except ValueError:
            print("never")
    return x


def test_a_try_is_a_whole_on_the_host():
    shown = slices(guarded, dilim.tensor(X))
    assert "    with dilim.no_grad():\n        x = x + 1.0\n" in shown.graph
    assert "        # host: try:\n        #           print(x.sum())\n" in shown.graph
    assert "        try:\n            print(x.sum())\n        except ValueError:\n" in shown.host


def test_an_assertion_stands_on_both_sides(tmp_path):
    path = tmp_path / "sure.py"
    path.write_text(
        "def sure(x, limit):\n    assert x.sum() < limit, 'large'\n    return x * 2.0\n"
    )
    shown = slices(runpy.run_path(str(path))["sure"], dilim.tensor(X), 100.0)
    line = "    assert x.sum() < limit, 'large'"
    assert f"{line}\n    return x * 2.0" in shown.graph
    assert f"{line}  # the graph decides\n    return receive()" in shown.host


# --- functions -------------------------------------------------------------------------------


def told(y):
    z = y * 2.0
    print("told", z)
    return z


def quiet(y):
    return y - 1.0


def calls(x):
    for _ in range(2):
        x = told(x)
    return quiet(x)


def test_functions_that_are_called_follow():
    shown = slices(calls, dilim.tensor(X))
    same(
        shown.graph,
        """
        def calls(x):
            for _ in range(2):
                x = told(x)
            return quiet(x)


        def told(y):
            z = y * 2.0
            send(z)
            # host: print("told", z)
            return z


        def quiet(y):
            return y - 1.0
        """,
    )
    same(
        shown.host,
        """
        def calls(x):
            start_graph()
            for _ in range(2):
                x = told(x)
            return receive()


        def told(y):
            # graph: z = y * 2.0
            z = receive()
            print("told", z)
            # graph: return z
        """,
    )


class Counter:
    def __init__(self):
        self.total = dilim.zeros(())

    @dilim.compile(backend="reference", compile_after=0)
    def add(self, x: dilim.Tensor) -> dilim.Tensor:
        self.total = self.total + x.sum()
        print("added", x)
        return self.total


def test_a_method(capsys):
    counter = Counter()
    counter.add(dilim.tensor(X))
    counter.add(dilim.tensor(X))
    shown = counter.add.slices()
    ast.parse(shown.graph)
    assert shown.graph.startswith("def add(self, x):\n    self.total = self.total + x.sum()\n")
    assert '    print("added", x)\n' in shown.host


def test_a_lambda():
    shown = slices(lambda x: x * 2.0 + 1.0, dilim.tensor(X))
    assert shown.graph == "def lambda_(x):\n    return x * 2.0 + 1.0"
    assert shown.host == "def lambda_(x):\n    start_graph()\n    return receive()"


def slow(x, n):
    print("begin")
    for i in range(n):
        x = x * 0.99
        if i % 500 == 0:
            print(i, x.sum().item())
    print("end")
    return x


def test_a_loop_that_was_compiled_while_it_ran(capsys):
    compiled = dilim.compile(slow, backend="reference", compile_after=0.001)
    compiled(dilim.tensor(X), 2000)
    shown = compiled.slices()
    ast.parse(shown.graph)
    ast.parse(shown.host)
    assert shown.graph.startswith("def slow(x, n):\n    for i in range(n):\n        x = x * 0.99\n")
    assert "begin" not in shown.graph
    assert shown.host.startswith(
        'def slow(x, n):\n    print("begin")\n    start_graph()\n    for i in range(n):'
    )
    assert shown.host.endswith('    print("end")\n    return x')


class Source:
    """What only the host can ask."""

    def __init__(self):
        self.seen = []

    def next(self, x):
        self.seen.append(x)
        exec("0")
        return len(self.seen)


SOURCE = Source()


def picked(x, n):
    value = SOURCE.next(0)
    for k in range(n):
        x = x * 0.5
        value = SOURCE.next(k) if x.sum() > 1e-3 else value
    return x, value


def test_a_choice_between_host_values_is_one_statement_of_the_host():
    shown = slices(picked, dilim.tensor(X), 20)
    assert "    # host: value = SOURCE.next(k) if x.sum() > 1e-3 else value" in shown.graph
    line = "value = SOURCE.next(k) if x.sum() > 1e-3 else value  # the graph decides"
    assert f"\n        {line}\n" in shown.host


def decided(x, n):
    best = None
    for k in range(n):
        x = x * 0.5
        if SOURCE.next(k) % 2 == 0 or x.sum() > 1.0:
            best = x
            print(k)
    return best


def test_what_the_host_knows_of_a_condition_is_sent_once():
    shown = slices(decided, dilim.tensor(X), 20)
    assert shown.host.count("send(") == 1
    assert "send(send(" not in shown.host
