"""Small programs that write down a list for host code, which keeps or changes it.

See `small_programs`.
"""

from slicing.small_programs import Small

_HOST = """
import random

KEPT = []
STATE = {}

class Ending:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        print("end of", self.name)

def keep(values):
    KEPT.append(values)
    values.append(len(KEPT))
    return len(values)

def spoil(values):
    values.clear()
    raise ValueError("spoiled")

def first(table):
    table["more"] = 1
    return table.pop("a")
"""
"""Host code that keeps and changes the lists that it is given."""
_CALLS = ("[dilim.ones(2)]", "[dilim.ones(2) * 2]", "[dilim.ones(2) * 3]")
_BODIES = {
    "is kept, and what is in it is written": """
    y = x * 2
    n = keep([x, y, 1.5])
    y += 1
    return y * n, KEPT
""",
    "is kept in each turn": """
    for k in range(9):
        x = x * 0.5
        n = keep([x, k])
        if n != 3:
            return n
    return x, KEPT
""",
    "is kept on one path": """
    if x.sum() > 3:
        keep([x, x * 2])
    else:
        x = x + 1
    return x * 3, KEPT
""",
    "is spoiled before an error": """
    y = x + 1
    try:
        spoil([y, x])
    except ValueError as error:
        print(error, y)
    return y * 2
""",
    "is a dict": """
    y = first({"a": x * 2, "b": 1})
    return y + x
""",
    "is in another": """
    keep([[x], x])
    x += 1
    return KEPT, x
""",
    "is shuffled, and numbers are drawn": """
    random.seed(3)
    random.shuffle([x, 1, 2])
    return x * random.random() * max([x.sum(), 2.0])
""",
    "has what ends right after": """
    STATE["e"] = Ending("e")
    print(len(KEPT))
    keep([x]) if STATE is None else id([x, STATE["e"]])
    STATE["e"] = None
    print("after")
    return x + 1
""",
}

PROGRAMS = {
    f"a list for host code: {name}": Small(f"{_HOST}\ndef f(x):{body}", _CALLS, None, None)
    for name, body in _BODIES.items()
}
