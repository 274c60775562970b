"""Small programs with ints that may grow, and what is asked of numbers; see `small_programs`."""

from slicing.comparing import Call
from slicing.small_programs import Small


def _calls(*arguments):
    return tuple(f"[dilim.ones(2), {x}]" for x in arguments)


PROGRAMS = {
    "a generator of numbers": Small(
        """
def f(x, s, n):
    for i in range(n):
        s = (s * 1103515245 + 12345) % 2**31
        x = x * 0.5 + s / 2147483648
    return x, s
""",
        _calls("7, 5", "12345, 100", "2**31 - 1, 50", "3, 2"),
    ),
    "a generator of numbers in an object": Small(
        """
class Generator:
    def __init__(self, seed):
        self.state = seed

    def draw(self):
        self.state = (self.state * 1103515245 + 12345) % 2**31
        return self.state / 2**31

G = Generator(5)

def f(x, n):
    for i in range(n):
        if G.draw() < 0.5:
            x = x * 0.5
        else:
            x = x + G.draw()
    return x
""",
        _calls(5, 100, 3),
    ),
    "digits, at first few": Small(
        """
def f(x, n):
    k = 0
    for i in range(n):
        k = k * 10 + i
        x = x + i
    return x, k
""",
        _calls(5, 17, 9),
    ),
    "digits, and too many of them": Small(
        """
def f(x, n):
    k = 0
    for i in range(n):
        k = k * 10 + i
        x = x + i
    return x, k
""",
        _calls(5, 18, 19, 20, 60, 5),
        None,
        may_leave=True,
    ),
    "a factorial in a loop, sums and products at the limit": Small(
        """
def f(x, n, a, b):
    r = 1
    for i in range(1, n + 1):
        r *= i
        x = x * 1.5
    return x, r, a * b * a, -a * b * b, a * a * 4 + b * b, a * a * 4 - b * b
""",
        _calls(
            "5, 3, 4",
            "20, 2**20, 2**21",
            "21, 2**30, 2**30",
            "30, 2**30 + 1, 2**30",
            "6, -5, 2**30",
        ),
        None,
        may_leave=True,
    ),
    "int of a float": Small(
        """
def f(x, n):
    k = int(x.max()) + int(x.sum() / 2) + int(-x[0] * 1.9)
    for i in range(n):
        k += int(i * 0.75)
    return x * k, k
""",
        ("[dilim.tensor([1.75, 2.5]), 9]", "[dilim.tensor([-1.0, 7e9]), 2]", _calls(5)[0]),
    ),
    "int of a float that is no number": Small(
        """
def f(x):
    x = x / x
    print("before")
    return int(x.sum())
""",
        ("[dilim.ones(2)]", "[dilim.zeros(2)]", "[dilim.full((2,), math.inf)]", "[dilim.ones(3)]"),
        None,
        raises=(2, 3),
        may_leave=True,
    ),
    "int of a large float": Small(
        "def f(x):\n    return int(x.max()), x + 1",
        ("[dilim.ones(2)]", "[dilim.full((2,), 1e30)]", "[-dilim.full((2,), 2.0**61)]"),
        None,
        may_leave=True,
    ),
    "properties": Small(
        """
class Box:
    def __init__(self):
        self.w = dilim.ones(2)
        self.count = 0

    @property
    def size(self):
        return self.w.sum()

    @property
    def next(self):
        self.count += 1
        return self.count

BOX = Box()

def f(x, n):
    for i in range(n):
        BOX.w = BOX.w * 0.5 + x
        if BOX.size > 3:
            x = x * BOX.next
    return x, BOX.size
""",
        _calls(5, 9, 3),
    ),
    "a property that raises, and one that is replaced": Small(
        """
class Box:
    @property
    def scale(self):
        if LIMIT[0] > 2:
            raise ValueError("too large")
        return LIMIT[0]

LIMIT = [1]
BOX = Box()

def f(x):
    y = x + 1
    LIMIT[0] += 1
    return y * BOX.scale
""",
        (
            "[dilim.ones(2)]",
            "[dilim.ones(2)]",
            Call("[dilim.ones(2)]", before="Box.scale = property(lambda self: 7)"),
            Call("[dilim.ones(2)]", before="BOX = None; BOX = Box()"),
        ),
        None,
        None,
        raises=(2,),
    ),
    "hasattr": Small(
        """
class Box:
    kind = "box"

    def call(self):
        return 2

class Open:
    def __getattr__(self, name):
        print("asked for", name)
        raise AttributeError(name)

BOX = Box()
OPEN = Open()

def f(x, n):
    for i in range(n):
        if hasattr(BOX, "scale"):
            x = x * BOX.scale
        if hasattr(x, "relu") and not hasattr(x, "other") and hasattr(BOX, "kind"):
            x = x + 1
    return x, hasattr(BOX, "call")
""",
        (
            *_calls(12, 3),
            Call(_calls(12)[0], before="BOX.scale = 0.5"),
            Call(_calls(12)[0], before="del Box.kind"),
            Call(_calls(12)[0], before="del Box.call"),
            Call(_calls(12)[0], before="Box.__getattr__ = lambda self, name: 3"),
            *_calls(12),
        ),
        None,
        None,
    ),
    "hasattr of objects that answer themselves": Small(
        """
class Open:
    def __getattr__(self, name):
        print("asked for", name)
        if name == "scale":
            return 3
        raise AttributeError(name)

OPEN = Open()

def f(x):
    if hasattr(OPEN, "scale") and not hasattr(OPEN, "other"):
        return x * 2
    return x
""",
        ("[dilim.ones(2)]",) * 3,
        None,
        None,
    ),
    "what is asked of numbers": Small(
        """
def f(x, n):
    for i in range(n):
        if isinstance(i, (int, str)) and not isinstance(n, float) and type(n) is int:
            x = x + i
        if type(x.sum().item()) == float:
            x = x * 0.5
    return x
""",
        _calls(12, 3, 20),
    ),
    "dtypes that are compared": Small(
        """
def f(x, y):
    if x.dtype == y.dtype:
        return x + y
    if y.dtype != dilim.float64:
        return x * y.astype(x.dtype)
    return y
""",
        ("[dilim.ones(2), dilim.ones(2)]", "[dilim.ones(2), dilim.ones(2, dtype=dilim.int64)]") * 2,
    ),
    "a function that calls itself": Small(
        """
def power(x, n):
    if n == 0:
        return dilim.ones(2)
    half = power(x, n // 2)
    return half * half * x if n % 2 else half * half

def f(x, n):
    return power(x + 1, n)
""",
        _calls(3, 9, 9),
    ),
    "the count of an optimiser": Small(
        """
W = dilim.ones(2, requires_grad=True)
OPT = optim.Adam([W], 0.1)

def f(n):
    for i in range(n):
        OPT.zero_grad()
        (W * W).sum().backward()
        OPT.step()
        if OPT.step_count % 3 == 0:
            print(OPT.step_count)
    return OPT.step_count
""",
        ("[4]", "[5]", "[6]"),
        2,
    ),
    "the least and the largest beside constants that are no numbers, or large": Small(
        """
def f(x, n):
    v, k = x.sum().item(), n * 3
    first = max(-math.inf, v), min(v, math.inf), max(v, math.nan), max(math.nan, v)
    for i in range(n):
        x = x * 0.5
        v = v * 0.5
        last = max(k + i, 10**18), max(v, -math.inf), min(math.nan, v)
    return x, first, last, max(k, 2**70), min(k, -(2**63), 5)
""",
        _calls(3, 12, 30),
        None,
        None,
    ),
}
