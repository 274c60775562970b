"""Small programs in which views, gradients and host code meet, as random ones have found them."""

from slicing.comparing import Call
from slicing.small_programs import Small

HEAD = """
w = dilim.tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True)

class State:
    pass

s = State()
s.base = dilim.ones((2, 2))
s.view = s.base[0]
s.same = s.base

class Loud:
    replaces = False

    def __str__(self):
        if self.replaces:
            s.view = s.base[0]
        return "loud"

loud = Loud()
"""
X = "[dilim.ones((2, 2)), 10]"
WRITTEN = Call(X, before="s.base += w")


def _small(body, calls=(X, X, X), raises=(), fallback=None, native=None):
    return Small(f"{HEAD}\ndef f(x, n):{body}", calls, None, None, raises, True, native, fallback)


PROGRAMS = {
    "a tensor with its gradient, and an old view of it": _small(
        """
    b, v = s.base, s.view
    return b * 2.0, (v * 0.5).sum()
""",
        (WRITTEN, X, X),
        raises=(1, 2, 3),
    ),
    "an old view in one branch": _small(
        """
    b, v, y = s.base, s.view, x.sum()
    if n > 3:
        y = y + (v * 2.0).sum()
        v *= 0.5
    return b, y
""",
        (WRITTEN, X),
        raises=(1, 2),
    ),
    "a tensor with its gradient that the host writes, and an old view of it": _small(
        """
    b, v = s.base, s.view
    y = (s.same * 1.5).sum()
    s.base += w
    return b, y
""",
        (WRITTEN, X, X),
    ),
    "an error before a tensor is written": _small(
        """
    y = x.sum() + (s.view * 0.5).sum()
    with dilim.no_grad():
        s.base += 1.5
    return y
""",
        (WRITTEN, WRITTEN, WRITTEN),
        raises=(1, 2, 3),
    ),
    "a write with a gradient into one of two tensors": _small("""
    a, c = x * 2.0, x * 3.0
    b = a
    if x.sum() > 5.0:
        b = c
    b += w
    (a.sum() + 2.0 * c.sum()).backward()
    g = w.grad
    w.grad = None
    return g
"""),
    "a write with a gradient into a tensor from outside or another": _small("""
    b = s.base
    if x.sum() > 5.0:
        b = dilim.ones((2, 2))
    b += w
    return x * 2.0
"""),
    "an item with a gradient, of a tensor from outside or another": _small("""
    b = s.base
    if x.sum() > 5.0:
        b = dilim.ones((2, 2))
    b[0] = w[0]
    return b.detach()
"""),
    "a tensor that is written between two loops of the host": _small("""
    s.base = s.base * 0.5
    for i in range(n):
        print(loud)
    s.base += 1.0
    for i in range(n):
        print(loud)
"""),
    "a tensor that is written between a loop of the host and a write with a gradient": _small("""
    s.base = s.base * 0.5
    with dilim.no_grad():
        for i in range(n):
            print(loud)
        s.base += w
    for i in range(n):
        x += w
"""),
    "a view that the host replaces before it is written": _small(
        """
    s.base = s.base * 0.5
    print(loud)
    s.view *= 1.5
    return s.base.sum()
""",
        (X, Call(X, before="loud.replaces = True"), X, Call(X, before="loud.replaces = False")),
    ),
    "a view of what the host goes on writing, with an attribute of another view": Small(
        HEAD
        + """
s.items = [s.base[:, 0]]

def f(x, n):
    b, v, y = s.base, s.view, x.sum() * 0.0
    s.items[0] = s.base[0]
    for i in range(9):
        s.base += w
        s.items[0] = s.base.T[0]
        s.items[0] += 1.5
""",
        (X, X, X),
        None,
        None,
        (1, 2, 3),
        may_leave=True,
    ),
    "a tensor and a view of it, given, in a tuple that a loop makes": _small("""
    b = s.base
    for i in range(n):
        s.pair = (b, s.view)
    return x * 2.0
"""),
    "a view and its tensor, given, in a tuple that a loop makes": _small("""
    v = s.view
    b = s.base
    for i in range(n):
        s.pair = (b, v)
    return x * 2.0, v
"""),
    "a view that is given, as the attribute of another one": _small("""
    b, y = s.base, x.sum()
    for i in range(n):
        y = y + (s.view * b).sum()
        s.other = s.view
    return y, s.other is s.view
"""),
    "attributes of which a turn takes a view for one, and keeps another": _small("""
    b = s.base
    for i in range(n):
        s.view = b[0]
        s.same = b
    return x * 2.0
"""),
    "a view that a turn takes, in a tuple with its tensor": _small("""
    b = s.base
    for i in range(n):
        s.view = b[0]
        s.pair = (b, s.view)
    return x * 2.0
"""),
    "a tensor that the host writes, with a gradient, before its attribute is set": _small("""
    b, v = s.base, s.view
    s.base += w
    s.view = b[1, :]
    return x * 2.0
"""),
    "a view that the host makes old before its attribute is set": _small(
        """
    b, y = s.base, x.sum()
    s.base += w
    y = y + (s.view * 2.0).sum()
    s.view = s.base[:, 1]
    return y
""",
        raises=(1, 2, 3),
    ),
    "a view that the host makes old in a branch, before its attribute is set": _small(
        """
    y = x.sum() * 0.0
    if x.sum() > -100.0:
        s.base += w
        y = y + (s.view * 2.0).sum()
    s.view = s.base[:, 1]
    return y
""",
        raises=(1, 2, 3),
    ),
    "a view of a detached base that the host makes old in a branch": _small(
        """
    y, s.view = x.sum() * 0.0, s.base.detach()[0]
    if x.sum() > -100.0:
        print("on the host")
        s.base += w
        y = y + (s.view * 2.0).sum()
    s.base = s.base.detach() * 1.0
    s.view = s.base[:, 1]
    return y
""",
        raises=(1, 2, 3),
    ),
}
