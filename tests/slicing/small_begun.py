"""Small programs with names that are the host's and that some turns begin; see `small_programs`."""

from slicing.small_programs import Small

CALLS = ("[dilim.ones(2), 3]", "[dilim.ones(2), 12]", "[dilim.ones(2), 30]")


PROGRAMS = {
    "a text that the first turn begins": Small(
        """
def f(x, n):
    for i in range(n):
        x = x * 0.5
        if i == 0:
            k = "a"
        k = f"{k}{i}"
    return k, x
""",
        CALLS,
        None,
        None,
    ),
    "an int of the host that the first turn begins": Small(
        """
import math
def f(x, n):
    for i in range(n):
        x = x * 0.5
        if i == 0:
            k = 7
        k = math.gcd(k, i + 3)
    return k, x
""",
        CALLS,
        None,
        None,
    ),
    "an int of the host that begins where a flag says so": Small(
        """
import math
def f(x, n):
    first = True
    for i in range(n):
        x = x * 0.5
        if first:
            k = 7
            first = False
        k = math.gcd(k, i + 3)
    return k, x
""",
        CALLS,
        None,
        None,
    ),
    "an int of the host that the first turn of a while loop begins": Small(
        """
import math
def f(x, n):
    i = 0
    while i < n:
        x = x * 0.5
        if i == 0:
            k = 7
        k = math.gcd(k, i + 3)
        i += 1
    return k, x
""",
        CALLS,
        None,
        None,
    ),
}
