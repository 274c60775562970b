"""Small programs with gradients, optimisers and random numbers; see `small_programs`."""

from slicing.comparing import Call
from slicing.small_programs import VECTOR, Small

WEIGHT = """
W = dilim.tensor([1.0, 2.0], requires_grad=True)
OPT = {optimizer}
"""
ADAM = WEIGHT.replace("{optimizer}", "optim.Adam([W], 0.1)")
SGD = WEIGHT.replace("{optimizer}", "optim.SGD([W], 0.1)")
STEPS = ("[2]", "[8]", "[7]")
NUMBERS = """
OWN = dilim.Generator(42)
"""

GRADIENTS = {
    "gradients add up over calls": Small(
        SGD + "def f(x):\n    (W * x).sum().backward()\n    return W.grad", VECTOR
    ),
    "two times backward": Small(
        SGD
        + """
def f(x):
    loss = (W * x).sum()
    loss.backward()
    (W * W).sum().backward()
    return W.grad, W.grad.sum(), loss.detach()
""",
        VECTOR,
    ),
    "writes into tensors from outside, on one path": Small(
        """
P = dilim.tensor([0.5, -1.0], requires_grad=True)
W = dilim.ones(2)

def f(x, w, n):
    if x.sum() > n:
        w.mul_(2.0)
        x += W
    elif x.sum() > n - 1:
        with dilim.no_grad():
            P.mul_(0.5)
    return w.sum() + (P * P).sum()
""",
        tuple(
            Call(f"[dilim.ones(2), P * {n}, {n}]", after="result.backward()") for n in (3, 1, 2.5)
        ),
        None,
        None,
        may_leave=True,
    ),
    "a loss that is printed after its loop": Small(
        SGD
        + """
def f(n):
    for _ in range(n):
        OPT.zero_grad()
        loss = (W * W).mean()
        loss.backward()
        OPT.step()
    print(loss)
    if n > 8:
        loss = (W * W).prod()
        loss.backward()
    print(loss)
""",
        ("[2]", "[9]", "[7]"),
        None,
        None,
        may_leave=True,
    ),
    "a loop that begins with a parameter": Small(
        """
P = dilim.tensor([0.5, -1.0], requires_grad=True)

def f(x, n):
    w = P
    for i in range(12):
        w = w * x
    u = x
    for i in range(n):
        u = P if i == 2 else u * 0.5
    (w.sum() + u.sum()).backward()
    v = P * 2
    for i in range(11):
        v = v * x
    return v, P.grad
""",
        ("[dilim.ones(2), 4]", "[dilim.ones(2) * 0.5, 12]", "[dilim.ones(2), 0]"),
        None,
        None,
    ),
    "a loop that begins with a tensor that was recorded": Small(
        """
P = dilim.tensor([0.5, -1.0], requires_grad=True)

def f(w):
    while abs(w).sum() > 0.1:
        w = w * 0.5
    return w
""",
        ("[P]", "[P * 2]", "[P.detach()]"),
        None,
    ),
    "a gradient of an argument": Small(
        "def f(x):\n    (x * x).sum().backward()\n    return x.grad",
        ("[dilim.tensor([1.0, 2.0], requires_grad=True)]",) * 3,
    ),
    "backward outside": Small(SGD + "def f(x):\n    return (W * x).sum() + (W * W).prod()", VECTOR),
    "gradients that no step clears at the end": Small(
        SGD
        + """
def f(n):
    global W
    for k in range(n):
        loss = (W * W).sum()
        loss.backward()
        with dilim.no_grad():
            W -= 0.1 * W.grad
        W.grad = None
    return n
""",
        STEPS,
    ),
    "a loop from no gradient": Small(
        SGD
        + """
def f(n):
    for _ in range(n):
        W.grad = None
        loss = (W * W).sum()
        loss.backward()
        with dilim.no_grad():
            for w in [W]:
                w -= 0.1 * w.grad
    return W.detach().clone()
""",
        STEPS,
    ),
}

LOOP = """
def f(n):
    for k in range(n):
        OPT.zero_grad()
        loss = (W * W).sum()
        loss.backward()
        OPT.step()
"""
PRINT = """        if k % 3 == 0:
            print(k, loss.item())
"""
OPTIMIZERS = {
    "Adam in a loop": Small(ADAM + LOOP, STEPS),
    "SGD in a loop": Small(SGD + LOOP, STEPS),
    "Adam in a loop, with prints": Small(
        ADAM + LOOP + PRINT + "    return loss.item()\n", STEPS, 3
    ),
    "SGD in a loop, with prints": Small(SGD + LOOP + PRINT + "    return loss.item()\n", STEPS, 3),
    "SGD, one step": Small(
        SGD
        + """
def f(n):
    OPT.zero_grad()
    loss = (W * W).sum()
    loss.backward()
    OPT.step()
    print(loss.item())
""",
        STEPS,
        1,
    ),
    "a learning rate that is read, and set on some paths": Small(
        SGD
        + """
def f(n):
    for k in range(n):
        OPT.zero_grad()
        (W * W).sum().backward()
        OPT.step()
        if k % 3 == 2:
            OPT.learning_rate = OPT.learning_rate * 0.5
        elif k > 3:
            OPT.learning_rate *= 1.25
        if k == 7:
            print(OPT.learning_rate, OPT.current_learning_rate)
    return W.detach().clone(), OPT.learning_rate, OPT.state_dict()
""",
        ("[2]", "[9]", "[9]", "[1]", "[20]"),
        None,
        None,
        may_leave=True,
    ),
    "a learning rate that is refused": Small(
        SGD
        + """
def f(n):
    for k in range(n):
        OPT.learning_rate = 0.5 - k * 0.1
        OPT.zero_grad()
        (W * W).sum().backward()
        OPT.step()
    return W.detach().clone()
""",
        ("[3]", "[9]", "[4]", "[4]"),
        None,
        None,
        raises=(2,),
        may_leave=True,
    ),
    "a schedule that becomes a number": Small(
        SGD
        + """
def f(n):
    OPT.learning_rate = optim.ExponentialDecay(0.1, 0.5) if n > 3 else 0.3
    for k in range(n):
        OPT.zero_grad()
        (W * W).sum().backward()
        OPT.step()
        if k == 1:
            OPT.learning_rate = 0.01
    return W.detach().clone(), OPT.current_learning_rate
""",
        ("[3]", "[9]", "[1]", "[4]"),
        None,
        None,
        may_leave=True,
    ),
    "a learning rate that the function changes": Small(
        SGD
        + """
def f(n):
    for k in range(n):
        OPT.learning_rate = 0.1 / (k + 1)
        OPT.zero_grad()
        (W * W).sum().backward()
        OPT.step()
    return W.detach().clone()
""",
        STEPS,
    ),
}

RANDOM = {
    "a generator": Small(NUMBERS + "def f(x):\n    return OWN.uniform((2,)) + x", VECTOR),
    "the default generator": Small(
        "def f(x):\n    return dilim.default_generator().uniform((2,)) * x", VECTOR
    ),
    "two generators": Small(
        NUMBERS
        + "def f(x):\n    return OWN.uniform((2,)), dilim.default_generator().uniform((2,)) + x",
        VECTOR,
    ),
    "all that a generator draws": Small(
        NUMBERS
        + """
def f(x):
    places = OWN.categorical(dilim.zeros((2, 3)))
    return x, OWN.integers(0, 5, (3,)), OWN.permutation(4), OWN.choice(5, (2,)), places
""",
        VECTOR,
    ),
    "a generator in a loop on a tensor": Small(
        NUMBERS
        + """
def f(x):
    n = 0
    while x.sum() < 9:
        x = x + OWN.uniform((2,))
        n += 1
    return x, n
""",
        VECTOR,
    ),
}

PROGRAMS = {**GRADIENTS, **OPTIMIZERS, **RANDOM}
