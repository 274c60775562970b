"""Small programs that read and write tensors at positions that are tensors."""

from slicing.small_programs import Small

MATRIX = "dilim.arange(12.0).reshape((4, 3)) * 1"
INSIDE = tuple(f"[{MATRIX}, dilim.tensor({i}), dilim.tensor({j})]" for i, j in ((1, 2), (-1, 0)))
PLACES = ((1, 2), (13, 0), (0, -4), (13, 14), (-5, 1), (3, 3))
OUTSIDE = tuple(f"[{MATRIX}, dilim.tensor({i}), dilim.tensor({j})]" for i, j in PLACES)
LISTS = ((0, [0, 1]), (13, [0, 1]), (0, [0, 9]), (13, [9, 0]), (-1, [-5, 5]))
BESIDE = tuple(f"[{MATRIX}, dilim.tensor({i}), dilim.tensor({p})]" for i, p in LISTS)
WRONG = ((0, 1), (0, 9), (0, -9), (-1, 1))
VECTORS = tuple(
    f"[dilim.arange(4.0).requires_grad_({g}) * 1, dilim.tensor([{i}, {j}])]"
    for g in (False, True)
    for i, j in WRONG
)


def _inside(body, *calls, sends=None):
    return Small(f"def f(x, i, j):\n{body}", calls or INSIDE, sends, 0)


def _outside(body, calls=OUTSIDE, raises=(2, 3, 4, 5, 6)):
    return Small(f"def f(x, i, j):\n{body}", calls, None, None, raises)


PROGRAMS = {
    "a row at a tensor is a view": _inside("    a = x[i]\n    a[0] = 99\n    return x, a"),
    "an element at tensors is a view": _inside("    a = x[i, j]\n    a += 9\n    return x, a"),
    "a column at a tensor is a view": _inside("    a = x[..., j]\n    a[1:] = 9\n    return x, a"),
    "a view at a tensor sees what is written": _inside(
        "    a = x[i]\n    x[0] = 7\n    x[-1] = 8\n    return a * 1"
    ),
    "a view at a tensor that changes stays where it is": _inside(
        "    k = i * 1\n    a = x[k]\n    k += 1\n    a[0] = 99\n    x[k - 1] += 1\n    return x, a"
    ),
    "a view at a tensor of a loop": _inside(
        "    for k in range(2):\n        a = x[(i + k) % 4]\n        a[j] = 99\n        a += 1\n"
        "    return x"
    ),
    "a view at a tensor with a new axis": _inside(
        "    a = x[i, None]\n    b = x[None, :, j]\n    a += 1\n    b += 1\n    return x, a, b"
    ),
    "what is added at a tensor": _inside("    x[i] += 1\n    x[i, j] += x[j, i % 3]\n    return x"),
    "views at tensors say what made them": _inside(
        "    a = x[i] * 1\n    print(a, x[i], x[:, j], x[i, None])\n    return a",
        *(call.replace(" * 1", ".requires_grad_() * 1", 1) for call in INSIDE),
    ),
    "a row at a tensor that is not there": _outside("    return x[i]", raises=(2, 4, 5)),
    "a column at a tensor that is not there": _outside("    return x[1:, j]", raises=(3, 4, 6)),
    "elements at tensors that are not there": _outside("    return x[i, j]"),
    "a write at a tensor that is not there": _outside(
        "    x[i] = x[0] * 2\n    return x", raises=(2, 4, 5)
    ),
    "writes at tensors that are not there": _outside("    x[i, j] += 1\n    return x"),
    "a view at a tensor of a view": _outside("    return x[1:][i][j]", raises=(2, 3, 4, 5, 6)),
    "a place of a loop that is not there": _outside(
        "    for k in range(3):\n        x[i + k, 0] = k\n    return x", raises=(2, 4, 5, 6)
    ),
    "a tensor and a number that are not there": Small(
        "def f(x, i, n):\n    return x[i, n], x[n, i]",
        tuple(f"[{MATRIX}, dilim.tensor({i}), {n}]" for i, n in PLACES),
        None,
        None,
        raises=(2, 3, 4, 5, 6),
    ),
    "positions beside a tensor that are not there": _outside(
        "    return x[j, i]", BESIDE, raises=(2, 3, 4, 5)
    ),
    "writes at positions beside a tensor": _outside(
        "    x[j, i] = 1\n    return x", BESIDE, raises=(2, 3, 4, 5)
    ),
    "writes at positions that are not there": Small(
        "def f(x, v):\n    x[v] = 1\n    return x",
        VECTORS,
        None,
        None,
        raises=(2, 3, 6, 7),
    ),
    "pairs of positions that are not there": Small(
        "def f(x, v):\n    y = x.reshape((2, 2))\n    y[v, v] = y[v, v] + 3\n    return x",
        VECTORS[:4],
        None,
        None,
        raises=(2, 3),
    ),
    "one of two kinds, at a position of a list": Small(
        """
def f(x, n):
    made = [x, x + 1, x + 2]
    made[n % 3] = x * 2 if n > 1 else None
    picked = made[n % 2]
    return made, picked
""",
        ("[dilim.ones(2), 3]", "[dilim.ones(2), 0]", "[dilim.ones(2), 4]"),
        None,
        None,
        may_leave=True,
    ),
}
