"""Small programs that write into what host code has; see `small_programs`."""

from slicing.small_programs import Small

_BOX = """
class Box:
    pass

BOX = Box()
BOX.w, BOX.parts = dilim.zeros(3), []

"""
_CALLS = ("[dilim.ones(3), 3]", "[dilim.ones(3), 0]", "[dilim.ones(3) * 2, 4]")
_FREE = {"sends": None, "receives": None}

PROGRAMS = {
    "made, shown and written in a branch": Small(
        _BOX
        + """
def f(x, n):
    if n > 1:
        BOX.w = 0.25 * x
        BOX.parts.append(n)
        BOX.w *= n
    return BOX.w
""",
        _CALLS,
        **_FREE,
    ),
    "made, kept by the host and written in a branch": Small(
        _BOX
        + """
def f(x, n):
    if n > 1:
        made = 0.25 * x
        BOX.parts.append(made)
        made[0] = n
    elif n < 1:
        made = x + 1
        BOX.parts.append(made)
        made -= n
        return made
    return x
""",
        _CALLS,
        **_FREE,
    ),
    "made, kept by the host and written in each turn": Small(
        _BOX
        + """
def f(x, n):
    for i in range(n):
        made = 0.25 * x
        BOX.parts.append(made)
        made *= i
        if i % 2:
            made += 1
    return x
""",
        _CALLS,
        **_FREE,
    ),
    "made, kept by the host and written in a branch of a turn": Small(
        _BOX
        + """
def f(x, n):
    for i in range(n):
        if i % 2:
            made = 0.25 * x
            BOX.parts.append(made)
            made *= i
            BOX.w = made
        x = x + BOX.w
    return x
""",
        _CALLS,
        **_FREE,
    ),
    "made before, kept by the host and written in a branch": Small(
        _BOX
        + """
def f(x, n):
    made = 0.25 * x
    BOX.parts.append(made)
    if n > 1:
        made *= n
        if n > 3:
            made[0] = 7.0
    return x
""",
        _CALLS,
        **_FREE,
    ),
    "a view of it is written in a branch": Small(
        _BOX
        + """
def f(x, n):
    if n > 1:
        made = 0.25 * x
        BOX.parts.append(made)
        part = made[1:]
        BOX.parts.append(part)
        part *= n
    return x
""",
        _CALLS,
        **_FREE,
    ),
    "one tensor in a tuple and beside it, in each turn": Small(
        _BOX
        + """
def f(x, n):
    BOX.run, BOX.seen = (x, 0), x
    for k in range(n):
        made = BOX.run[0] + 1
        BOX.run, BOX.seen = (made, k), made
        if made.sum().item() > 8:
            BOX.parts.append(1.0)
    print(BOX.seen is BOX.run[0])
    BOX.seen[0] = 99
    return BOX.run[0]
""",
        _CALLS,
        **_FREE,
        may_leave=True,
    ),
    "a tuple of a tensor that the host has, carried by a name": Small(
        _BOX
        + """
def f(x, n):
    pair = (x, 0)
    for k in range(n):
        made = pair[0] + 1
        pair = made, k
        if made.sum().item() > 8:
            BOX.parts.append(made)
    print(any(pair[0] is y for y in BOX.parts))
    return pair[0]
""",
        _CALLS,
        **_FREE,
        may_leave=True,
    ),
}
