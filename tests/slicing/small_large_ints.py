"""Small programs with ints that are large from the start; see `small_programs`."""

from slicing.small_programs import Small

CALLS = ("[dilim.ones(2), 3]", "[dilim.ones(2), 12]", "[dilim.ones(2), 30]")
HOST = {"native": 0, "fallback": "64 bits|60 bits"}


def _small(source, **how):
    return Small(source, CALLS, None, None, **how)


PROGRAMS = {
    "a literal that is multiplied": _small(
        """
def f(x, n):
    k = 2**62
    for i in range(n):
        x = x * 0.5
        k = k * 3
    return k, x
""",
    ),
    "a literal made by a shift": _small(
        """
def f(x, n):
    k = 1 << 62
    for i in range(n):
        x = x * 0.5
        k = k * 3
    return k, x
""",
    ),
    "the largest int that is counted on": _small(
        """
def f(x, n):
    k = 9223372036854775807
    for i in range(n):
        x = x * 0.5
        k = k + 1
    return k, x
""",
    ),
    "the smallest but one": _small(
        """
def f(x, n):
    k = -9223372036854775807
    for i in range(n):
        x = x * 0.5
        k -= 1
    return k, x
""",
    ),
    "the smallest that is negated": _small(
        """
def f(x, n):
    k = -2**63
    for i in range(n):
        x = x * 0.5
        k = -k
    return k, x
""",
    ),
    "a literal of more than 64 bits": _small(
        """
def f(x, n):
    k = 2**70
    for i in range(n):
        x = x * 0.5
        k = k + 1
    return k, x
""",
    ),
    "a large literal in a while loop": _small(
        """
def f(x, n):
    k = 2**62
    i = 0
    while i < n:
        x = x * 0.5
        k = k * 2
        i += 1
    return k, x
""",
    ),
    "a large literal beside a condition on tensors": _small(
        """
def f(x, n):
    k = 2**62 - 5
    while x.sum() > 0.01:
        x = x * 0.5
        k = k + k
    return k, x
""",
    ),
    "a condition on a large int": _small(
        """
def f(x, n):
    k = 2**62 - 5
    while k < 2**63:
        x = x * 0.5
        k = k + 2**61
    return k, x
""",
    ),
    "a large literal that a turn makes": _small(
        """
def f(x, n):
    k = 1
    for i in range(n):
        x = x + k
        k = k * 3
        x = x * 0.5
        k = 2**62
    return k, x
""",
    ),
    "a large literal that some turns make": _small(
        """
def f(x, n):
    k = 1
    for i in range(n):
        k = k * 3
        x = x * 0.5
        if x.sum() < 0.5:
            k = 2**62
    return k, x
""",
        may_leave=True,
    ),
    "a large literal on one path": _small(
        """
def f(x, n):
    if x.sum() > 0:
        k = 2**62
    else:
        k = 3
    for i in range(n):
        k = k * 3
        x = x * 0.5
    return k, x
""",
    ),
    "a large literal in a tuple": _small(
        """
def f(x, n):
    p = (2**62, 1)
    for i in range(n):
        x = x * 0.5
        p = (p[0] * 3, p[1] + 1)
    return p, x
""",
    ),
    "a large literal in a dict": _small(
        """
def f(x, n):
    p = {"a": 2**62}
    for i in range(n):
        x = x * 0.5
        p["a"] = p["a"] + 2**62
    return p, x
""",
    ),
    "a large default of a helper": _small(
        """
def g(x, n, k=2**62):
    for i in range(n):
        x = x * 0.5
        k = k * 3
    return k, x
def f(x, n):
    return g(x, n)
""",
    ),
    "a product of literals": _small(
        """
def f(x, n):
    a = 2**31
    b = 2**31
    k = a * b
    for i in range(n):
        x = x * 0.5
        k = k * 3
    return k, x
""",
    ),
    "a large number of the host": _small(
        """
def h(n):
    print("h")
    return 2**62 + n
def f(x, n):
    k = h(n)
    for i in range(n):
        x = x * 0.5
        k = k * 3
    return k, x
""",
    ),
    "a large int in nested loops": _small(
        """
def f(x, n):
    k = 1
    for i in range(n):
        j = 2**62
        for m in range(n):
            j = j * 3
            x = x * 0.5
        k = k + j
    return k, x
""",
    ),
    "a large int and an early return": _small(
        """
def f(x, n):
    k = 2**62
    for i in range(n):
        x = x * 0.5
        k = k * 3
        if x.sum() < 0.01:
            return k
    return k, x
""",
    ),
    "a large int after the first turn": _small(
        """
def f(x, n):
    k = 0.5
    for i in range(n):
        x = x * 0.5
        k = 2**62 if i == 0 else k * 3
    return k, x
""",
    ),
    "a large int instead of None": _small(
        """
def f(x, n):
    k = None
    for i in range(n):
        x = x * 0.5
        if k is None:
            k = 2**62
        else:
            k = k * 3
    return k, x
""",
        may_leave=True,
    ),
    "a large int beside floats": _small(
        """
def f(x, n):
    s = 0.0
    k = 2**62 + 1
    for i in range(n):
        x = x * 0.5
        s = s + k
        k = k + 1
    return s, x, k
""",
    ),
    "large ints that change places": _small(
        """
def f(x, n):
    a, b = 2**62, 1
    for i in range(n):
        x = x * 0.5
        a, b = b, a
        b = b * 2
    return a, b, x
""",
    ),
    "a large int in an endless loop": _small(
        """
def f(x, n):
    k = 2**62
    i = 0
    while True:
        x = x * 0.5
        k = k * 3
        i += 1
        if i >= n:
            break
    return k, x
""",
    ),
    "a range of large ints": _small(
        """
def f(x, n):
    s = 0
    for i in range(2**62, 2**62 + n):
        x = x * 0.5
        s = i * 2
    return s, x, i
""",
        **HOST,
    ),
    "a range from beyond 64 bits": _small(
        """
def f(x, n):
    s = 0
    for i in range(2**63, 2**63 + n):
        x = x * 0.5
        s = i * 2
    return s, x, i
""",
    ),
    "a range of large steps": _small(
        """
def f(x, n):
    s = 0
    for i in range(0, 2**66, 2**62):
        x = x * 0.5
        s = i * 2
    return s, x, i
""",
    ),
    "the least of some, from the largest int on": Small(
        """
import sys

def f(x, n):
    best, worst = sys.maxsize, -sys.maxsize
    for i in range(n):
        x = x * 0.5
        for j in range(n):
            k = (i * 7 + j * 5) % 11 + 3
            if k < best:
                best = k
            if k > worst:
                worst = k
    return best, worst, x
""",
        CALLS,
    ),
    "ints of more than 64 bits that are divided, and compared": _small(
        """
def f(x, n):
    k = n
    for i in range(n):
        x = x * 0.5
        k = (k + 2**64 % (k + 1)) % 1000003
        if k < 2**64 and -(2**70) < k:
            k = k + 1
        k = k - 2**66 // (k + 2) // 2**60
    return k, x
""",
    ),
}
