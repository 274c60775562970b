"""Small programs about names: bound on one path, deleted, absent."""

from slicing.small_programs import SIGNS, Small

BOUND = {
    "a name that is only deleted after a branch": Small(
        """
def f(x):
    n = 2
    if x.sum() > 0:
        x = x * 2
        if x.sum() > 100:
            return x
    del n
    return x
""",
        SIGNS,
    ),
    "a gradient that may be there, through many branches": Small(
        """
P = dilim.tensor([1.0, 2.0], requires_grad=True)

def f(x, rows):
    for row in rows:
        if row.sum() > 0:
            P.grad = None
        if row.sum() > 1:
            (P * row).sum().backward()
        if row.sum() > 2:
            print(row.sum().item())
    return x
""",
        ("[dilim.ones(2), dilim.ones((12, 2))]",) * 2,
        None,
        None,
        may_leave=True,
    ),
}

ATTRIBUTES = {
    "an attribute that only a failing branch shows": Small(
        """
class Box:
    pass

B = Box()

def f(x):
    B.w = "kept"
    return x if x.sum() > 0 else undefined
""",
        SIGNS,
        raises=(2, 4),
    ),
}

PROGRAMS = {**BOUND, **ATTRIBUTES}
