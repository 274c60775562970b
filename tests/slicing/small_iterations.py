"""Small programs that go over lists, dicts and iterators, some of which change meanwhile."""

from slicing.comparing import Call
from slicing.small_programs import SIGNS, VECTOR, Small

LISTS = {
    "a list that grows under its loop": Small(
        """
def f(x):
    todo = [x]
    for v in todo:
        x = x + v
        if len(todo) < 4:
            todo.append(v * 2)
    return x
""",
        VECTOR,
    ),
    "a list that grows under enumerate": Small(
        """
def f(x):
    todo = [x, x + 1]
    for k, v in enumerate(todo):
        x = x + v
        if k < 4:
            todo.append(v * 2)
    return x, todo
""",
        VECTOR,
    ),
    "an item replaced before its turn": Small(
        """
def f(x):
    parts = [x, x + 1]
    for k, v in enumerate(parts):
        x = x + v
        parts[1] = x * 7
    return x
""",
        VECTOR,
    ),
    "a list from outside that grows under its loop": Small(
        """
def f(x, parts):
    for v in parts:
        x = x + v
        if len(parts) < 4:
            parts.append(v * 2)
    return x
""",
        ("[dilim.ones(2), [dilim.ones(2)]]",) * 2,
        None,
        None,
    ),
    "reversed, over tensors of the program": Small(
        """
def f(x):
    made = [x.max(), x.min()]
    for v in reversed(made):
        last = {"a": v}
        x = x - v
        made.append(x)
    kept = {"a": 1.0}
    kept["a"] = last["a"]
    return x, kept
""",
        SIGNS,
    ),
    "starred items of a list from outside": Small(
        "def f(x, parts):\n    made = [*parts, x]\n    return made[0] + made[1]",
        (
            "[dilim.ones(2), [dilim.ones(2)]]",
            "[dilim.ones(2), [dilim.zeros(2)]]",
            "[dilim.ones(2), []]",
        ),
        raises=(3,),
    ),
}

DICTS = {
    "a dict from outside": Small(
        """
def f(x, scales):
    for name, v in scales.items():
        x = x * v
    for v in scales.values():
        x = x + v
    return x, list(scales), len(scales.keys())
""",
        (
            '[dilim.ones(2), {"a": dilim.ones(2), "b": 2.0}]',
            '[dilim.ones(2), {"a": dilim.zeros(2), "b": 3.0}]',
            '[dilim.ones(2), {"b": dilim.ones(2)}]',
            '[dilim.ones(2), {"b": dilim.ones(2)}]',
        ),
    ),
    "a dict whose values change under the loop": Small(
        """
def f(x):
    made = {"a": x, "b": x + 1}
    for name, v in made.items():
        made["b"] = x * 3
        x = x + v
    return x, made
""",
        VECTOR,
    ),
    "a dict that grows under its loop": Small(
        """
def f(x):
    made = {"a": x}
    for v in made:
        made["b"] = x
    return made
""",
        ("[dilim.ones(2)]",),
        None,
        None,
        raises=(1,),
    ),
    "views of dicts, printed": Small(
        """
def f(x):
    made = {"a": 1, "b": 2}
    print(made.items(), made.keys(), made.values())
    return x * len(made)
""",
        VECTOR,
        0,
        None,
    ),
}

ITERATORS = {
    "an iterator for two branches": Small(
        """
def f(x):
    pairs = enumerate([x, x * 2])
    if x.sum() > 0:
        for k, v in pairs:
            x = x + v * k
    else:
        for k, v in pairs:
            x = x - v
    return x
""",
        SIGNS,
        None,
        None,
    ),
    "an iterator that a loop begins and another ends": Small(
        """
def f(x, n):
    parts = zip([x, x * 2, x * 3], (1.0, 2.0, 3.0))
    for i in range(n):
        for v, k in parts:
            x = x + v * k
            break
    return x, list(parts)
""",
        ("[dilim.ones(2), 2]", "[dilim.ones(2), 1]"),
        None,
        None,
    ),
    "an iterator given to a function": Small(
        """
def total(pairs, t):
    for k, v in pairs:
        t = t + k * v
    return t

def f(x):
    return total(enumerate([x, x * 2, x * 3], 1), x)
""",
        VECTOR,
    ),
    "zip, strict": Small(
        """
def f(x, parts):
    for v, k in zip(parts, (1.0, 2.0), strict=True):
        x = x + v * k
    return x
""",
        (
            "[dilim.ones(2), [dilim.ones(2), dilim.ones(2)]]",
            "[dilim.ones(2), [dilim.ones(2)]]",
        ),
        None,
        None,
        raises=(2,),
        may_leave=True,
    ),
    "what is left of an iterator, on the host": Small(
        """
LOG = []
def note(v):
    LOG.append(v)
    return LOG

def f(x, parts):
    for k, (v, w) in enumerate(zip(reversed(parts), parts), 5):
        x = x + v * k
        note(k)
        parts.append(w)
        if k > 5:
            break
    return x
""",
        (
            "[dilim.ones(2), [dilim.ones(2), dilim.zeros(2)]]",
            Call("[dilim.ones(2), [dilim.ones(2), dilim.zeros(2)]]", before="note = LOG.append"),
            "[dilim.ones(2), [dilim.ones(2), dilim.ones(2)]]",
        ),
        None,
        None,
        may_leave=True,
    ),
}

BRANCHES = {
    "containers made on one side of a return": Small(
        """
def f(x):
    if x.max() > 3:
        return "first"
    else:
        made = [x * 2, [x * 3], {"a": x * 4}]
    if x.sum() > 1:
        made.append(x)
    return made, made[1]
""",
        ("[dilim.ones(2)]", "[dilim.ones(2) * 5]", "[-dilim.ones(2)]"),
        None,
        None,
    ),
}

ALIASES = {
    "the same detached parameter in each call": Small(
        """
P = dilim.tensor(0.3, requires_grad=True)
P.name = "p"

def f(x):
    return P.detach(), P.detach() * x, x.detach()
""",
        (*VECTOR, Call(VECTOR[0], before='P.name = "q"')),
        None,
        None,
    ),
}

GROWING = {
    "a list that grows under its loop, and host code that looks": Small(
        """
LOG = []
look = eval("lambda v: LOG.append(v.sum().item())")

def f(x):
    todo = [x]
    for v in todo:
        x = x + v
        look(v)
        if len(todo) < 5:
            todo.append(v * 2)
            todo.append(x)
    else:
        x = x + 100
    return x, todo
""",
        ("[dilim.ones(2)]", "[dilim.full((2,), 3.0)]", "[dilim.ones(2)]"),
        None,
    ),
    "a list that grows under its loop, where host code changes something": Small(
        """
STOP = [99]
change = eval("lambda k: STOP.__setitem__(0, k)")

def f(x, n):
    todo = [x]
    for v in todo:
        if STOP[0] < 5:
            x = x * 3
        x = x + v
        if len(todo) < 5:
            todo.append(v + 1)
        change(n)
        if v.sum() > 7:
            break
    return x, todo
""",
        tuple(f"[dilim.ones(2), {n}]" for n in (2, 9, 3, 3, 12)),
        None,
        None,
        may_leave=True,
    ),
    "lists that shrink under their loops, and are cleared": Small(
        """
def f(x):
    todo = [x, x + 1, x + 2, x + 3]
    out = []
    for v in todo:
        out.append(v)
        todo.pop(0)
    for v in out:
        x = x * v
        out.clear()
    return x, out, todo
""",
        ("[dilim.ones(2)]", "[dilim.full((2,), 3.0)]", "[dilim.ones(2)]"),
        None,
        None,
    ),
    "a tensor twice in a list that grows under its loop": Small(
        """
def f(x):
    ts = [x * 1, x * 2]
    for t in ts:
        t += 1
        if t is ts[-1] and len(ts) < 4:
            ts.append(t)
        print(t.sum().item())
    return ts, ts[-1] is ts[-2]
""",
        ("[dilim.ones(2)]", "[dilim.full((2,), 3.0)]", "[dilim.ones(2)]"),
        4,
    ),
}

PROGRAMS = {**LISTS, **DICTS, **ITERATORS, **BRANCHES, **ALIASES, **GROWING}
