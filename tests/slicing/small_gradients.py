"""Small programs on what gradients there are, at entry and later; see `small_programs`."""

from slicing.comparing import Call
from slicing.small_programs import Small

_HEAD = """
W = dilim.tensor([1.0, 2.0], requires_grad=True)
X = dilim.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
"""


def _calls(*arguments):
    """Each twice: where there is no gradient, where there is one, and where there is another."""
    befores = ("W.grad = None", "W.grad = dilim.tensor([7.0, 8.0])", "")
    return tuple(Call(x, before=before) for x in arguments for before in befores)


AT_ENTRY = {
    "a gradient of before is shown, and kept": Small(
        _HEAD
        + """
KEPT = []

def f(x):
    print(W.grad)
    KEPT.append(W.grad)
    (W * x).sum().backward()
    return KEPT[-1] is W.grad
""",
        ("[dilim.ones(2)]",) * 5,
        None,
        None,
    ),
    "host code writes into memory that no gradient needs": Small(
        _HEAD
        + """
def poke(t):
    t += random.randint(5, 5)

def f(x, y):
    loss = (W * x).sum()
    poke(y)
    return loss, y * 2
""",
        ("[dilim.ones(2), dilim.ones(2)]",),
        None,
        None,
    ),
    "host code writes into memory before it is used": Small(
        _HEAD
        + """
def f(x):
    x[1] = random.randint(3, 3)
    loss = (W * x).sum()
    x.sum().tolist()
    print(loss)
    return loss
""",
        ("[dilim.ones(2)]",) * 2,
        None,
        None,
    ),
    "host code writes into memory that a gradient needs": Small(
        _HEAD
        + """
import json

def poke(t):
    t += json.loads("5")

def f(x, y):
    loss = (W * x).sum() + y.sum()
    poke(x)
    loss.backward()
    return W.grad
""",
        ("[dilim.ones(2), dilim.ones(2)]",),
        None,
        None,
        raises=(1,),
        may_leave=True,
    ),
    "a gradient that a branch clears": Small(
        _HEAD
        + """
def f(x):
    if x.sum() > 0:
        W.grad = None
    return x * 2
""",
        _calls("[dilim.ones(2)]", "[-dilim.ones(2)]", "[dilim.ones(2)]"),
        None,
    ),
    "a gradient of a branch": Small(
        _HEAD
        + """
def f(x):
    if x.sum() > 0:
        W.grad = None
        (W * x).sum().backward()
    return x * 2
""",
        _calls("[dilim.ones(2)]", "[-dilim.ones(2)]", "[dilim.ones(2)]"),
        None,
    ),
    "a gradient of either side": Small(
        _HEAD
        + """
def f(x):
    if x.sum() > 0:
        W.grad = None
        (W * x).sum().backward()
    elif x[0] < -1:
        W.grad = None
    return x * 2
""",
        _calls("[dilim.ones(2)]", "[-dilim.ones(2)]", "[-2 * dilim.ones(2)]", "[dilim.ones(2)]"),
        None,
    ),
    "a gradient of a branch, and a print after it": Small(
        _HEAD
        + """
def f(x):
    if x.sum() > 0:
        W.grad = None
        (W * x).sum().backward()
    print(W.grad is None)
    print(None if W.grad is None else W.grad.tolist())
    return x * 2
""",
        _calls("[dilim.ones(2)]", "[-dilim.ones(2)]", "[dilim.ones(2)]"),
        None,
    ),
    "a gradient that is added to on one side": Small(
        _HEAD
        + """
def f(x):
    if x.sum() > 0:
        (W * x).sum().backward()
    else:
        W.grad = None
    return x * 2
""",
        _calls("[dilim.ones(2)]", "[-dilim.ones(2)]", "[dilim.ones(2)]"),
        None,
    ),
    "a gradient of a loop that may have no turn": Small(
        _HEAD
        + """
def f(n):
    total = 0.0
    for i in range(n):
        W.grad = None
        loss = (W * X[i]).sum()
        loss.backward()
        total += loss.item()
    return total
""",
        _calls("[0]", "[2]", "[0]", "[3]"),
        0,
    ),
    "a gradient that is cleared in some turns": Small(
        _HEAD
        + """
def f(n, k):
    for i in range(n):
        if X[i].sum() > k:
            W.grad = None
            (W * X[i]).sum().backward()
    return k
""",
        _calls("[3, 20.0]", "[3, 4.0]", "[0, 0.0]", "[3, 12.0]"),
        None,
    ),
    "a gradient that is cleared before each turn ends": Small(
        _HEAD
        + """
def f(n):
    for i in range(n):
        W.grad = None
        (W * X[i]).sum().backward()
        with dilim.no_grad():
            W.sub_(W.grad * 0.125)
        W.grad = None
    return n
""",
        _calls("[0]", "[2]", "[0]", "[3]"),
        None,
    ),
    "a loop that is left before its first step": Small(
        _HEAD
        + """
OPT = optim.SGD([W], 0.25)

def f(limit, n):
    for i in range(n):
        loss = (W * X[i % 3]).sum()
        if loss > limit:
            break
        OPT.zero_grad()
        loss.backward()
        OPT.step()
    return i
""",
        _calls("[-100.0, 3]", "[100.0, 3]", "[-100.0, 2]", "[4.0, 9]"),
        None,
    ),
    "a step that fails before the gradient is cleared": Small(
        _HEAD
        + """
def f(x, rows):
    if x.sum() > 0:
        loss = (W * X[rows]).sum()
        W.grad = None
        loss.backward()
    return x
""",
        _calls(
            "[dilim.ones(2), dilim.tensor([0, 1])]",
            "[dilim.ones(2), dilim.tensor([0, 9])]",
            "[-dilim.ones(2), dilim.tensor([0, 9])]",
        ),
        None,
        raises=(4, 5, 6),
    ),
    "a gradient of a while": Small(
        _HEAD
        + """
def f(x):
    while x.sum() > 1:
        W.grad = None
        loss = (W * x).sum()
        loss.backward()
        x = x * 0.5
    return x
""",
        _calls("[dilim.ones(2)]", "[-dilim.ones(2)]", "[dilim.ones(2) * 8]"),
        None,
    ),
    "gradients of two, one of which is cleared on one path": Small(
        _HEAD
        + """
V = dilim.tensor([3.0, 4.0], requires_grad=True)

def f(x):
    if x.sum() > 0:
        for p in (W, V):
            p.grad = None
        (W * x * V).sum().backward()
    else:
        V.grad = None
        (V * x).sum().backward()
    return x
""",
        _calls("[dilim.ones(2)]", "[-dilim.ones(2)]", "[dilim.ones(2)]"),
        None,
    ),
}

_SIZES = ("[dilim.ones(2), 2]", "[dilim.ones(2), 4]", "[dilim.ones(2), 4]", "[dilim.ones(2), 0]")

OBJECTS = {
    "a gradient in a list, and what is added to it": Small(
        _HEAD
        + """
def f(x, n):
    found = []
    for i in range(n):
        (W * x * i).sum().backward()
        if W.grad.sum() > 2:
            found.append(W.grad)
            W.grad = None
    return found
""",
        _SIZES,
        None,
    ),
    "a gradient that is given in the next turn": Small(
        _HEAD
        + """
def f(x, n):
    found = []
    for i in range(n):
        if i > 0:
            found.append(W.grad)
        W.grad = None
        (W * x * i).sum().backward()
        found.append(W.grad)
    return found
""",
        _SIZES,
        None,
        may_leave=True,
    ),
    "the best of a loop in a list": Small(
        """
from collections import deque

LOG = deque(maxlen=3)

def f(x, n):
    best = None
    for i in range(n):
        y = x * (i % 3)
        if best is None or y.sum() > best.sum():
            best = y
        LOG.append(best)
    return best, LOG
""",
        _SIZES,
        None,
        may_leave=True,
    ),
    "an attribute of a loop in a list": Small(
        """
from collections import deque

class Box:
    last = None

BOX, LOG = Box(), deque(maxlen=3)
BOX.last = None

def f(x, n):
    for i in range(n):
        BOX.last = x * i
        LOG.append(BOX.last)
    return BOX.last, LOG
""",
        _SIZES,
        None,
        may_leave=True,
    ),
}

USED_UP = {
    "a tape that both paths have used up": Small(
        _HEAD
        + """
def f(x, again):
    W.grad = None
    if x.sum() > 0:
        loss = (W * x).sum()
        loss.backward()
    else:
        loss = (W * x * 2).sum()
        loss.backward()
    print(loss.item(), loss.requires_grad)
    if again:
        loss.backward()
    return loss
""",
        tuple(f"[{x}dilim.ones(2), {k}]" for k in (False, True, False) for x in ("", "-")),
        None,
        raises=(3, 4),
        may_leave=True,
    ),
    "a tape that a turn has used up, on one path or another": Small(
        _HEAD
        + """
def f(x, n, again):
    loss = None
    for i in range(n):
        W.grad = None
        if x.sum() > 0:
            loss = (W * x).sum()
            loss.backward()
        else:
            loss = (W * x * 2).mean()
            loss.backward()
        x = x * -0.5
    if again:
        loss.backward()
    return loss
""",
        tuple(f"[dilim.ones(2), {n}, {k}]" for k in (False, True, False) for n in (1, 3)),
        None,
        raises=(3, 4),
        may_leave=True,
    ),
}

USED_UP["a tensor of an earlier turn whose tape is used up"] = Small(
    _HEAD
    + """
def f(x, n):
    for i in range(n):
        for k in range(1 - i):
            loss = (W * x * 2).mean()
            loss.backward()
        print(loss, loss.requires_grad)
    return loss
""",
    ("[dilim.ones(2), 1]", "[dilim.ones(2), 3]", "[dilim.ones(2), 4]"),
    None,
    may_leave=True,
)

USED_UP["gradients through items that a builtin of the host gives"] = Small(
    _HEAD
    + """
PARTS = [dilim.ones(2), dilim.zeros(2)]

def f(x):
    W.grad = None
    for part, w in zip(PARTS, dilim.stack([W * x, x])):
        loss = (part + w).sum()
        if loss.requires_grad:
            loss.backward(retain_graph=True)
        print(loss, W.grad)
    PARTS.extend([])
    whole = abs(W * x)
    return whole
""",
    ("[dilim.ones(2)]", "[dilim.full(2, 2.0)]", "[dilim.ones(2)]"),
    None,
    None,
    may_leave=True,
)

USED_UP["what a branch computes from something used up"] = Small(
    _HEAD
    + """
def f(x):
    if x.sum() > 0:
        h = W * x
        h.sum().backward()
        y = h * x
    else:
        y = W * x
    return y, W.grad
""",
    _calls("[dilim.ones(2)]", "[-dilim.ones(2)]"),
    None,
    None,
    fallback="was used up|has used up",
)

PROGRAMS = {**USED_UP, **AT_ENTRY, **OBJECTS}
