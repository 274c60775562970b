"""Small programs that a long search among random ones has found; see `small_programs`."""

from slicing.small_programs import Small

_P = """
P = dilim.tensor([0.5, 0.2], requires_grad=True)
"""

_SEEN = {
    "a gradient that a loop without a turn does not give": Small(
        _P
        + """
def f(n, w):
    for i in range(n):
        w = P
    print(w - 1)
""",
        tuple(f"[{n}, dilim.ones(2)]" for n in (0, 2, 0)),
        None,
        None,
    ),
    "a gradient that the first turn gives": Small(
        _P
        + """
def f(n, w):
    for i in range(n):
        z = w * 2
        print(z)
        w = z * P
    print(w + 1)
""",
        tuple(f"[{n}, dilim.ones(2)]" for n in (0, 3, 1, 2)),
        None,
        None,
    ),
    "a gradient that the first turn takes away": Small(
        _P
        + """
def f(n, w):
    w = P * w
    for i in range(n):
        print(w * 2)
        w = (w + 1).detach()
    print(w + 1)
""",
        tuple(f"[{n}, dilim.ones(2)]" for n in (0, 3, 1, 2)),
        None,
        None,
    ),
    "made before a branch, or in it": Small(
        _P
        + """
def f(x):
    y = (P * x).sum()
    if y > 1:
        y = y + 1
    print(y)
""",
        ("[dilim.ones(2)]", "[dilim.ones(2) * 9]"),
        None,
        None,
    ),
}

PROGRAMS = {
    **_SEEN,
}
