"""Small programs that show when objects end: in the calls, before and after what else is printed.

See `small_programs`.
"""

from slicing.small_programs import Small

ENDING = """
import contextlib

class Ending:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        print("end of", self.name)
    def __enter__(self):
        return self
    def __exit__(self, *error):
        print("left", self.name)

def rows(x):
    try:
        for i in range(3):
            yield x[i]
    finally:
        print("closed")

def helped(x):
    own = Ending("local of helper")
    y = x * 2
    print("in helper")
    return y
"""
CALLS = ("[dilim.tensor([1.0, 2.0, 3.0])]",) * 3
"""The first call does not know of what types the host's values are; the others do."""

BODIES = {
    "a generator left by break": """
    for a in rows(x):
        if a > 1:
            break
    print("after")
    return a
""",
    "a generator left where the graph decides": """
    for k in range(2):
        for a in rows(x):
            x = x + a
            if x.sum() > 20:
                break
        print("after", x)
    return x
""",
    "a generator left by return": """
    for a in rows(x):
        x = x + a
        if x.sum() > 20:
            return x
""",
    "a generator left by an error": """
    try:
        for a in rows(x):
            x = x + a
            if x.sum() > 20:
                raise ValueError(3)
    except ValueError:
        print("caught")
    print("after")
    return x
""",
    "a generator that has a name": """
    g = rows(x)
    for a in g:
        x = x + a
        if x.sum() > 20:
            break
    print("here")
    g = None
    print("after")
    return x
""",
    "generators in a list": """
    for a in iter([rows(x), rows(x)]):
        x = x + next(a)
        print("turn")
    print("here")
    del a
    print("after")
    return x
""",
    "a name bound in each turn": """
    for i in range(3):
        own = Ending(i)
        x = x + own.name
        print("turn", i)
    print("after")
    return x
""",
    "a name bound in each turn of a loop of the graph": """
    i = 0
    while x.sum() < 20:
        own = Ending(i)
        i += 1
        x = x + i
        if x.sum() > 15:
            print("big")
    print("after")
    return x
""",
    "items of a list": """
    held = [Ending(8)]
    i = 0
    while x.sum() < 20:
        held[0] = Ending(i)
        i += 1
        x = x + i
        if x.sum() > 15:
            print("big")
    print("here")
    held.pop()
    print("after")
    return x
""",
    "a list that is emptied": """
    held = [Ending(8), Ending(9)]
    for one in held:
        x = x + one.name
        print(x)
    held.clear()
    print("cleared")
    del one
    print("after")
    return x
""",
    "a list that is used up": """
    held = [Ending(8), Ending(9)]
    while held:
        x = x + held.pop().name
        print(x)
    print("after")
    return x
""",
    "locals of a function": """
    y = helped(x)
    print("back")
    for i in range(3):
        y = helped(y)
        print("back", i)
    return y
""",
    "locals of a function in a loop of the graph": """
    n = 0
    while x.sum() < 100:
        x = helped(x)
        n += 1
    print("after", n)
    return x
""",
    "values that nobody binds": """
    Ending(5)
    print("a")
    x + Ending(6).name
    print("b")
    y = [Ending(1), Ending(2)]
    y = x
    print("c")
    return y
""",
    "a name that the graph binds anew": """
    own = Ending(5)
    for i in range(2):
        print("in")
        own = Ending(i)
        x = x * 2
    else:
        print("else")
    own = x
    print("after")
    return own
""",
    "a name that the graph binds anew in a branch": """
    own = Ending(5)
    if x.sum() > 0:
        own = x * 2
        print("then")
    else:
        print("else")
    print("after")
    return own
""",
    "a name that is unbound, then bound in a branch": """
    own = Ending(5)
    if x.sum() > 0:
        y = x * 2
    else:
        y = x
    print("here")
    own = y
    print("after")
    return own
""",
    "names that are of no more use": """
    own = Ending(1)
    own = None
    print("here")
    own = Ending(2)
    y = x * 2
    del own
    print("after")
    return y
""",
    "an error that is caught": """
    try:
        own = Ending(4)
        y = x * 2
        raise ValueError(own)
    except ValueError:
        print("caught")
        own = None
    print("after")
    return y
""",
    "an inner function": """
    def inner():
        own = Ending(1)
        return x * 2
    y = inner()
    inner = Ending(9)
    print("here")
    inner = None
    print("after")
    return y
""",
    "an item that a loop binds last": """
    for own in [Ending(0), Ending(1)]:
        x = x * 2
        print("turn")
    else:
        print("else")
    print("here")
    own = x
    print("after")
    return own
""",
    "an argument": """
    def given(own):
        print("in", own.name)
        return x * 2
    y = given(Ending("argument"))
    print("after")
    return y
""",
}
PROGRAMS = {
    name: Small(
        f"{ENDING}\ndef f(x):{body}",
        CALLS,
        sends=None,
        receives=None,
        may_leave=True,
    )
    for name, body in BODIES.items()
}
