"""Small programs whose loops carry words; see `small_programs`."""

from slicing.small_programs import Small

_CALLS = tuple(f"[dilim.ones(2), {n}]" for n in (7, 200, 3, 12, 39, 200))

PROGRAMS = {
    "a mode": Small(
        """
def f(x, n):
    mode = "a"
    for i in range(n):
        if x.sum() > 5:
            mode = "b"
        x = x + (1 if mode == "a" else 2)
    return x, mode
""",
        _CALLS,
        0,
    ),
    "a reason for the end": Small(
        """
def f(x, n):
    why = "limit"
    for i in range(n):
        x = x * 0.9 + 1
        if x.sum() > 15:
            why = "large"
            break
        if i == 37:
            why = None
            break
    return x, why, i
""",
        _CALLS,
        0,
    ),
    "three phases": Small(
        """
def f(x, n):
    phase = "explore"
    while n > 0:
        n -= 1
        if phase == "explore":
            x = x + 1
            if x.sum() > 9:
                phase = "exploit"
        elif phase == "exploit":
            x = x * 0.5
            if x.sum() < 4:
                phase = "rest"
        else:
            phase = "explore"
        if n == 3:
            print(phase)
    return x, phase
""",
        _CALLS,
        1,
    ),
    "a word or None": Small(
        """
def f(x, n):
    last = None
    for i in range(n):
        if last != "up":
            x = x + 1
        if x.sum() > 7 and last is None:
            last = "up"
        elif last == "up":
            last = None
            x = x * 0
    return x, last
""",
        _CALLS,
        0,
    ),
    "two words that change places": Small(
        """
def f(x, n):
    a, b = "l", "r"
    for i in range(n):
        a, b = b, a
        if a == "r":
            x = x + i
        if a == b:
            x = x * 0
        if a:
            x = x + 1
    return x, a + b
""",
        _CALLS,
        None,
    ),
    "a word in an attribute": Small(
        """
class Box:
    phase = None

BOX = Box()
BOX.phase = "x"

def f(x, n):
    BOX.phase = "a"
    for i in range(n):
        if BOX.phase == "a" and i % 3 == 2:
            BOX.phase = "b"
        elif BOX.phase == "b":
            x = x * 2
            BOX.phase = "c" if x.sum() > 30 else "a"
        x = x + 1
        if BOX.phase == "c":
            break
    return x, BOX.phase
""",
        _CALLS,
        0,
    ),
    "words that are printed": Small(
        """
def f(x, n):
    mode = "a"
    for i in range(n):
        if i % 2:
            mode = "b" if mode == "a" else "a"
        print(mode)
        x = x + 1
    return f"{mode}!", x
""",
        _CALLS,
        200 + 1,
    ),
    "a word that each turn sets": Small(
        """
def f(x, n):
    for i in range(n):
        name = "even" if i % 2 == 0 else "odd"
        x = x + (1 if name == "odd" else 2)
    return x, name
""",
        _CALLS,
        0,
    ),
    "texts of what is known": Small(
        """
def f(x):
    kind = "row"
    named = {f"{kind}{i:02d}": p.sum() for i, p in enumerate((x, x * 2))}
    sizes = f"{len(x.shape)!r:>3}|{kind!r}|{x.shape}|{1.5:{len(kind)}.1f}"
    return named, sizes, named[f"row{0:02d}"]
""",
        ("[dilim.ones(2)]",) * 2,
        0,
    ),
    "a text with a wrong form": Small(
        """
def f(x):
    y = x * 2
    print("before")
    return f"{1.5:d}", y
""",
        ("[dilim.ones(2)]",) * 2,
        None,
        None,
        raises=(1, 2),
    ),
}
