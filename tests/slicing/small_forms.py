"""More small programs: forms of Python; see `small_programs`."""

from slicing.comparing import Call
from slicing.small_programs import MATRIX, Small

LAYERS = """
LAYERS = [nn.Dense(3, 3, generator=dilim.Generator(k)) for k in range(3)]
"""
BREAK = """
    for i in range(n):
        if t.sum() > 40:
            if verbose:
                print("break at", i, t.sum())
            break"""
BREAKS = tuple(
    f"[dilim.ones(2), {n}, {v}]" for n, v in [(10, 0), (2, 1), (80, 0), (80, 1), (90, 1)]
)

FORMS = {
    "dict comprehension": Small(
        'def f(x):\n    return {f"row{i}": x[i] for i in range(2)}', MATRIX
    ),
    "dict comprehension over enumerate": Small(
        """
def f(x):
    parts = [x, x * 2]
    return {i: p.sum() for i, p in enumerate(parts) if i != 2}
""",
        MATRIX,
    ),
    "list comprehension with a condition": Small(
        "def f(x):\n    return [p.sum() for i, p in enumerate([x, x * 2]) if i != 1]", MATRIX
    ),
    "set, lambda and max": Small(
        """
def f(x):
    y = x * 2
    best = max([y.sum(), x.sum()], key=lambda t: float(t))
    return sorted({1, 2}), (lambda t: t + y)(x), best
""",
        MATRIX,
        None,
        None,
    ),
    "generator expressions": Small(
        "def f(x):\n    return sum(x[i] * i for i in range(3)), any(float(v) > 0.5 for v in x[0])",
        MATRIX,
    ),
    "walrus, star and del": Small(
        """
def f(x):
    while (s := x.sum()) < 30:
        x = x * 2
    a, *b = [x, s, x + 1]
    del s
    return a, b
""",
        MATRIX,
    ),
    "match": Small(
        """
def f(x, how):
    match how:
        case "double":
            x = x * 2
        case ("add", n):
            x = x + n
        case _:
            x = -x
    return x
""",
        ("[dilim.ones(2), 'double']", "[dilim.ones(2), ('add', 3)]", "[dilim.ones(2), None]"),
    ),
    "rows of a tensor": Small(
        """
def f(x):
    total = 0.0
    for v in x:
        total = total + v
    for i, row in enumerate(x):
        total = total + row.sum() * i
    return total
""",
        MATRIX,
    ),
    "zip of tensors and numbers": Small(
        """
def f(x, tensors, scales):
    for t, s in zip(tensors, scales):
        x = x + t * s
    return x
""",
        tuple(
            f"[dilim.ones((2, 3)), [dilim.ones(3), dilim.ones(1)], [{s}, 2.0]]"
            for s in (1.0, 3.0, 4.0)
        ),
    ),
    "layers, the result with its gradient": Small(
        LAYERS + "def f(x):\n    for layer in LAYERS:\n        x = layer(x)\n    return x",
        ("[dilim.ones((2, 3))]",) * 2,
    ),
    "layers without gradient": Small(
        LAYERS
        + """
def f(x):
    with dilim.no_grad():
        for number, layer in enumerate(LAYERS):
            x = dilim.tanh(layer(x)) + number
    return x
""",
        ("[dilim.ones((2, 3))]",) * 2,
    ),
    "an int that grows": Small(
        """
def f(t, n):
    total = 0
    for i in range(n):
        total += i
        t = t + 1
    return t, total
""",
        ("[dilim.ones(2), 10]", "[dilim.ones(2), 20]"),
    ),
    "an int beyond 64 bits": Small(
        """
def f(t, n):
    total = 1
    for i in range(n):
        total *= 3
        t = t + 1
    return t, total
""",
        ("[dilim.ones(2), 10]", "[dilim.ones(2), 50]", "[dilim.ones(2), 100]"),
        None,
        None,
        may_leave=True,
    ),
    "print at a break, and a counter": Small(
        f"""
def f(t, n, verbose):{BREAK}
        if i % 3 == 1:
            t = t + 1
            continue
        t = t + 0.25
    return t
""",
        BREAKS,
        1,
    ),
    "print at a break, and an inner loop": Small(
        f"""
def f(t, n, verbose):{BREAK}
        k = 0
        while t.max() < 4 and k < 3:
            t = t * 1.5
            k += 1
        t = t + 1
    return t
""",
        BREAKS,
        1,
    ),
    "print at a break, and an else": Small(
        f"""
def f(t, n, verbose):{BREAK}
        t = t + 0.5
    else:
        t = -t
    return t
""",
        BREAKS,
        1,
    ),
    "match in a loop": Small(
        """
def f(x, n):
    for i in range(n):
        match i % 5:
            case 0:
                x = x + 1
            case 1 | 2:
                x = x * 2
            case 3 if x.sum() > 5:
                x = x - 1
            case k if k > 3:
                x = x * k
            case _:
                x = x * 0.5
    return x
""",
        ("[dilim.ones(2), 3]", "[dilim.ones(2), 12]", "[dilim.ones(2), 30]"),
    ),
    "match of words, and a name that no case binds": Small(
        """
def f(x, how):
    match how:
        case "up":
            y = x + 1
        case None | "none":
            y = x
        case True:
            y = x * 5
        case 1 as k:
            y = x * k * 7
        case -1:
            return -x
    return y
""",
        tuple(f"[dilim.ones(2), {x!r}]" for x in ("up", None, True, 1, 2, -1, "none", "up")),
        None,
        None,
        raises=(5,),
    ),
    "match of what compares in its own way": Small(
        """
class Odd:
    def __eq__(self, other):
        print("asked", other)
        if other == "c":
            raise KeyError(other)
        return other == N

N = "b"

def f(x):
    match Odd():
        case "a":
            return x
        case "b":
            return x * 2
        case "c":
            return x * 3
""",
        ("[dilim.ones(2)]", Call("[dilim.ones(2)]", before="N = 3"), "[dilim.ones(2)]"),
        None,
        None,
        raises=(2, 3),
    ),
    "match of a tensor": Small(
        """
def f(x):
    match x:
        case 1.0:
            return "one"
        case 2.0:
            return "two"
    return x
""",
        ("[dilim.ones(())]", "[dilim.full((), 2.0)]", "[dilim.zeros(())]", "[dilim.ones(2)]"),
        0,
        None,
        raises=(4,),
        fallback="the truth of a tensor of several elements",
    ),
}
