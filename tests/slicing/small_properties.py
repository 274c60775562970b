"""Small programs with properties of the user's classes; see `small_programs`."""

from slicing.comparing import Call
from slicing.small_programs import SIGNS, VECTOR, Small

_HEAD = """
class Box:
    def __init__(self):
        self.w = dilim.ones(2)
        self.n = 0

    @property
    def total(self):
        return self.w.sum()

    @property
    def checked(self):
        if self.n > 3:
            raise ValueError(f"{self.n} is too much")
        return self.w * self.n

    @property
    def shown(self):
        print("asked", self.n)
        return self.w * 2

    @property
    def counted(self):
        self.n += 1
        return self.w * self.n

class Lid(Box):
    @property
    def total(self):
        return super().total * 2

class Lenient(Box):
    @property
    def missing(self):
        return self.nothing * 2

    def __getattr__(self, name):
        return 7.0

BOX, LID, LENIENT = Box(), Lid(), Lenient()
"""

PROPERTIES = {
    "a property": Small(
        _HEAD
        + """
def f(x):
    BOX.w = BOX.w * 0.5 + x
    if BOX.total > 1:
        x = x + BOX.total
    return x * BOX.total
""",
        SIGNS,
    ),
    "a property in a loop": Small(
        _HEAD
        + """
def f(x, n):
    for _ in range(n):
        BOX.w = BOX.w * 0.5 + x * BOX.total
    return BOX.total
""",
        ("[dilim.ones(2), 90]", "[dilim.ones(2), 70]"),
    ),
    "a property that raises": Small(
        _HEAD
        + """
def f(x):
    BOX.n += 1
    return x + BOX.checked
""",
        VECTOR * 2,
        None,
        None,
        raises=(4, 5, 6),
    ),
    "a property that prints": Small(
        _HEAD + "def f(x):\n    BOX.n += 1\n    return x + BOX.shown", VECTOR, None, None
    ),
    "a property that counts": Small(
        _HEAD + "def f(x):\n    return x + BOX.counted + BOX.counted", VECTOR
    ),
    "a property of a class that is replaced": Small(
        _HEAD + "def f(x):\n    return x * BOX.total",
        (
            Call("[dilim.ones(2)]"),
            Call("[dilim.ones(2)]", before="Box.total = property(lambda self: self.w.max())"),
            Call("[dilim.ones(2)]", before="del Box.total; BOX.total = 3.0"),
        ),
    ),
    "properties where attributes that are missing are made up": Small(
        _HEAD + "def f(x):\n    return x * LENIENT.missing + LENIENT.total", VECTOR, None, None
    ),
    "a property of a base class": Small(
        _HEAD + "def f(x):\n    return x * LID.total", VECTOR, None, None
    ),
}
