"""Small programs with views of memory that was written past them, with a gradient.

Plain Python refuses to compute with them, as soon as their gradient would matter.
"""

from slicing.comparing import Call
from slicing.small_programs import Small

HEAD = """
w = dilim.ones((2, 2), requires_grad=True)
base = view = None

class Box:
    pass

box = Box()
items = [None]
"""
HOST = (
    HEAD
    + """
class Writer:
    writes = False

    def __str__(self):
        global base
        if self.writes:
            base += w
        return "writer"

writer = Writer()
"""
)
VIEWS = {
    "a row": "base[0]",
    "a column": "base[:, 0]",
    "a transposed matrix": "base.T",
    "a reshaped one": "base.reshape(4)",
    "a flipped one": "base.flip(0)",
    "a detached one": "base.detach()",
    "a stretched one": "base[0].expand((3, 2))",
}
BODIES = {
    "used": "    return {view} * 2.0",
    "used in a loop": """
    s = 0.0
    for i in range(12):
        s = s + ({view} * 2.0).sum()
    return s
""",
    "used after a print": """
    y = ({view} * 2.0).sum()
    print(y.item())
    return y + ({view} + 1.0).sum()
""",
    "handed back": "    return {view}, w * 2.0",
    "used without gradients": """
    with dilim.no_grad():
        y = {view} * 2.0
    return y, (w * w).sum()
""",
    "looked through": """
    s = 0.0
    for row in {view}:
        s = s + (row * 2.0).sum()
    return s
""",
}
PLACES = {
    "an argument": ("view", "[view]", "view"),
    "a global": ("view", "[]", ""),
    "an attribute": ("box.view", "[box]", "box"),
    "an item": ("items[0]", "[]", ""),
}
WRITES = {
    "fresh": "",
    "old": "; base += w",
    "counted": "\nwith dilim.no_grad():\n    base += w",
}


def _calls(arguments, view, kinds, place="view"):
    begin = f"base = dilim.ones((2, 2)); view = {view}; {place} = view"
    return tuple(Call(arguments, before=begin + WRITES[kind]) for kind in kinds)


def _small(body, place, view):
    name, arguments, parameters = PLACES[place]
    raises = () if body in ("handed back", "used without gradients") else (2, 5)
    source = f"{HEAD}\ndef f({parameters}):\n" + BODIES[body].format(view=name)
    calls = _calls(arguments, view, ("fresh", "old", "fresh", "counted", "old"), name)
    if body == "looked through":  # each turn makes views
        return Small(source, calls, None, None, raises, native=3, fallback="past its gradient")
    return Small(source, calls, None, None, raises)


def _written_by_host(body, raises=(2, 4)):
    begin = "base = dilim.ones((2, 2)); view = base[0]; writer.writes = "
    calls = [Call("[dilim.ones(2), view]", before=begin + x) for x in ("False", "True") * 2]
    return Small(f"{HOST}\n{body}", tuple(calls), None, None, raises, may_leave=True)


PROGRAMS = {
    **{f"{k}, old, {b}": _small(b, "an argument", v) for k, v in VIEWS.items() for b in BODIES},
    **{f"a row in {p}, old, {b}": _small(b, p, "base[0]") for p in PLACES for b in BODIES},
    **{f"a column in {p}, old, {b}": _small(b, p, "base[:, 0]") for p in PLACES for b in BODIES},
    "a view that the host makes old": _written_by_host("""
def f(x, view):
    y = (view * 2.0).sum()
    print(writer)
    return y, (view * x).sum()
"""),
    "a view that the host makes old before it is looked at": _written_by_host("""
def f(x, view):
    y = x * 2.0
    print(writer)
    return y, (view * x).sum()
"""),
    "a view that the host makes old in a loop": _written_by_host("""
def f(x, view):
    for i in range(12):
        y = (view * x).sum()
        if i == 5:
            print(writer)
        x = x + y
    return y, x
"""),
    "a view of the program's that the host makes old": _written_by_host("""
def f(x, view):
    row = base[1]
    y = (row * x).sum()
    print(writer)
    return y, (row * x).sum()
"""),
    "a view that the function makes old": Small(
        HEAD
        + """
def f(base, view):
    y = (view * 2.0).sum()
    base += w
    return y, (view * 2.0).sum()
""",
        _calls("[base, view]", "base[0]", ("fresh",) * 3),
        None,
        None,
        (1, 2, 3),
        may_leave=True,
    ),
    "a view kept beside what it shows": Small(
        HEAD
        + """
box.base = dilim.zeros((2, 2))
box.view = box.base[0]

def f(x):
    y = (box.view * x).sum()
    box.base += w * 0.5
    return y
""",
        ("[dilim.ones(2)]",) * 4,
        None,
        None,
        (2, 3, 4),
        may_leave=True,
    ),
}
