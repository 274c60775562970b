"""Small programs with derivatives through control flow, layers and draws; see `small_programs`."""

from slicing.small_programs import VECTOR, Small

W = """
W = dilim.tensor([1.0, 2.0], requires_grad=True)
"""
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Dense(2, 4, generator=dilim.Generator(1))
        self.b = nn.Dense(4, 1, generator=dilim.Generator(2))
        self.count = 0

    def forward(self, x):
        self.count += 1
        return self.b(dilim.relu(self.a(x)))

NET = Net()
"""

DERIVATIVES = {
    "grad of a lambda in a loop": Small(
        """
def f(n):
    w = dilim.tensor([1.0, 2.0])
    for k in range(n):
        g = dilim.grad(lambda v: (v * v).sum())(w)
        w = w - 0.1 * g
    return w
""",
        ("[2]", "[5]", "[4]"),
    ),
    "value and grad": Small(
        W
        + """
def loss(w, x):
    return dilim.square(x * w).mean()

def f(x):
    v, g = dilim.value_and_grad(loss)(W, x)
    with dilim.no_grad():
        W.add_(-0.1 * g)
    if v > 0.5:
        print(v.item())
    return v
""",
        VECTOR,
        1,
    ),
    "backward through a branch": Small(
        W
        + """
def f(x):
    W.grad = None
    y = (W * x).sum()
    if x.sum() > 0:
        y = y * 2
    else:
        y = (W * W).sum()
    y.backward()
    return W.grad, y.item()
""",
        (*VECTOR, "[-dilim.ones(2)]"),
        fallback="a gradient that a branch gives on one path only",
    ),
    "backward through a branch, the same on both paths": Small(
        W
        + """
def f(x):
    W.grad = None
    y = (W * x).sum()
    if x.sum() > 0:
        y = y * 2
    else:
        y = y * y
    y.backward()
    return W.grad, y.item()
""",
        (*VECTOR, "[-dilim.ones(2)]"),
    ),
    "one of two parameters": Small(
        W
        + """
V = dilim.tensor([3.0, 4.0], requires_grad=True)

def f(x):
    V.grad = W.grad = None
    chosen = W if x.sum() > 0 else V
    (chosen * x).sum().backward()
    return W.grad, V.grad
""",
        (*VECTOR, "[-dilim.ones(2)]"),
        fallback="a gradient that a branch gives on one path only",
    ),
    "backward through a loop": Small(
        W
        + """
def f(x, n):
    W.grad = None
    h = x
    for i in range(n):
        h = dilim.tanh(h * W + i)
    h.sum().backward()
    return W.grad
""",
        ("[dilim.ones(2), 1]", "[dilim.ones(2), 3]", "[dilim.ones(2), 4]"),
    ),
    "a target that follows": Small(
        W
        + """
T = dilim.tensor([0.0, 0.0])

def f(x, n):
    for i in range(n):
        W.grad = None
        with dilim.no_grad():
            target = (T * x).sum() + 1
        loss = dilim.square((W * x).sum() - target)
        loss.backward()
        with dilim.no_grad():
            W[...] = W - 0.05 * W.grad
            if i % 2 == 0:
                T[...] = W
    return loss.item()
""",
        ("[dilim.ones(2), 1]", "[dilim.ones(2), 3]", "[dilim.ones(2), 4]"),
    ),
    "Adam with a limit, and its count": Small(
        W
        + """
OPT = optim.Adam([W], 0.1, clip_norm=1.0)

def f(x):
    OPT.zero_grad()
    loss = (W * W * x).sum()
    loss.backward()
    OPT.step()
    return loss.item(), OPT.step_count
""",
        VECTOR,
    ),
    "a module that counts": Small(
        NET + "def f(x):\n    with dilim.no_grad():\n        return NET(x), NET.count", VECTOR
    ),
    "dropout": Small(
        "D = nn.Dropout(0.5)\n\ndef f(x, training):\n    D.train(training)\n    return D(x)",
        tuple(f"[dilim.ones(8), {b}]" for b in (True, False, True, True)),
    ),
    "draws of actions": Small(
        """
def f(logits, n):
    out = []
    for i in range(n):
        a = dilim.sample_categorical(logits)
        out.append(int(a))
        logits = logits + dilim.one_hot(a, 3) * 0.1
    return out
""",
        tuple(f"[dilim.zeros(3), {n}]" for n in (2, 5, 5)),
        None,
    ),
    "a leaf from outside through a loop": Small(
        """
class Box:
    pass

BOX = Box()
P = dilim.tensor([0.3, 0.2], requires_grad=True)

def f(y, n):
    BOX.w = P
    for _ in range(n):
        y = y * 0.5
        BOX.w = BOX.w * 0.5
    (y.sum() + BOX.w.sum()).backward()
    return y, BOX.w, P.grad
""",
        ("[P, 10]", "[P, 12]", "[P, 12]"),
        None,
        may_leave=True,
    ),
    "a tensor with a gradient from outside through a loop": Small(
        """
class Box:
    pass

BOX = Box()
P = dilim.tensor([0.3, 0.2], requires_grad=True)
BOX.w = P * 2

def f(y, n):
    for _ in range(n):
        y = y * 0.5
        BOX.w = BOX.w * 0.5
    return y, BOX.w
""",
        ("[P * 2, 10]", "[P * 3, 12]", "[P, 12]", "[P * 2, 0]"),
    ),
    "a loss that begins as none, in a tuple, and as a number": Small(
        """
P = dilim.tensor([0.3, 0.2], requires_grad=True)

def f(x):
    loss, pair, last = None, (dilim.zeros(()), 0), dilim.zeros(())
    for k in range(10):
        P.grad = None
        last = ((P - x) ** 2).sum() / 3
        last.backward()
        loss = last
        pair = (last, k)
    print(loss, pair, last)
    return loss, pair, last.requires_grad
""",
        ("[dilim.ones(2)]",) * 3,
        None,
    ),
    "a used-up tensor or a plain one": Small(
        """
P = dilim.tensor([0.3, 0.2], requires_grad=True)

def f(x):
    y = P * 2
    y.sum().backward()
    if x.sum() > 0:
        z = y
    else:
        z = x * 3
    print(z)
    return z, z.requires_grad
""",
        ("[dilim.ones(2)]", "[-dilim.ones(2)]") * 2,
        None,
    ),
}

BOX = """
class Box:
    pass

BOX = Box()
BOX.loss = dilim.zeros(())
P = dilim.tensor([0.3, 0.2], requires_grad=True)
"""
COUNTS = tuple(f"[dilim.ones(2), {n}]" for n in (0, 3, 1, 4))

EARLIER_TURNS = {
    "whether a loop of no turn has used up a loss": Small(
        BOX
        + """
def f(x, n):
    for k in range(n):
        P.grad = None
        loss = ((P - x) ** 2).sum() / 3
        loss.backward()
        BOX.loss = loss
    return BOX.loss.requires_grad, BOX.loss.is_leaf
""",
        COUNTS,
    ),
    "a used-up loss at two places that had tensors of other shapes": Small(
        BOX
        + """
BOX.loss = dilim.zeros(2)
LOSSES = {"last": dilim.zeros(3)}

def f(x, n):
    for k in range(n):
        P.grad = None
        loss = ((P - x) ** 2).sum() / 3
        loss.backward()
        BOX.loss = loss
        LOSSES["last"] = loss
    print(BOX.loss, LOSSES["last"], BOX.loss is LOSSES["last"])
    return BOX.loss.requires_grad
""",
        COUNTS,
        None,
        None,
    ),
    "whether the turn before has used up a loss": Small(
        BOX
        + """
def f(x, n):
    loss = x.sum()
    for k in range(n):
        print(loss.requires_grad)
        P.grad = None
        loss = (P * x).sum()
        loss.backward()
    return loss.item()
""",
        COUNTS,
        None,
    ),
    "a sum with what the turn before has used up": Small(
        BOX
        + """
def f(x, n):
    loss, total = x.sum(), x.sum()
    for k in range(n):
        P.grad = None
        total = total + loss * 2
        loss = (P * x).sum()
        loss.backward()
    return total
""",
        COUNTS,
        None,
        None,
    ),
    "a loss of what the turn before has used up": Small(
        BOX
        + """
def f(x, n):
    loss = x.sum()
    for k in range(n):
        P.grad = None
        total = (P * x + loss).sum()
        total.backward()
        loss = total
    return loss
""",
        COUNTS,
        None,
        None,
        raises=(2, 4),
        may_leave=True,
    ),
}
DERIVATIVES |= EARLIER_TURNS
