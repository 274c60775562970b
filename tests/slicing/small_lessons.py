"""Programs as lessons on training have them, in small; see `small_programs`."""

from slicing.small_programs import Small

_HELPERS = "\n".join(
    f"""
def add{i}(row):
    ROWS.append(row)
    return len(ROWS) + {i}
"""
    for i in range(70)
)
_CALLS = "\n".join(f"    k = add{i}(k)" for i in range(70))

HOST = {
    "many functions that turn out to be the host's": Small(
        f"""
from collections import deque

ROWS = deque(maxlen=3)
{_HELPERS}
def f(x, k):
{_CALLS}
    return x * k
""",
        ("[dilim.ones(2), 1]",) * 3,
        None,
        1,
    ),
    "what a function left to the host has looked at is not relied on": Small(
        """
from collections import deque

class Memory:
    def __init__(self):
        self.rows = deque(maxlen=3)
        self.last = None

    def __call__(self, row):
        if self.last is None or self.last != row:
            self.last = row
        self.rows.append(row)
        return self.last

MEMORY = Memory()

def f(x, k):
    y = x + 1
    return y * MEMORY(k)
""",
        ("[dilim.ones(2), 1]", "[dilim.ones(2), 2]", "[dilim.ones(2), 2]", "[dilim.ones(2), 3]"),
        None,
        None,
    ),
}

PROGRAMS = {**HOST}
