"""Small programs with forms that training code uses; see `small_programs`."""

from slicing.small_programs import VECTOR, Small

HANDED = {
    "an action that the host is told twice": Small(
        """
LOG = []
REWARDS = {0: 0.5, 1: 0.25}

def f(x):
    action = int(x.argmax())
    reward = REWARDS.get(action)
    LOG.append((action, reward))
    return x * 2
""",
        VECTOR,
        1,
    ),
    "a number that changes between two looks at it": Small(
        """
def f(x, n):
    k = int(x.argmax())
    for i in range(n):
        print(k)
        if i % 2 == 0:
            k = k + 1
        print(k)
    return k
""",
        ("[dilim.ones(3), 4]",) * 3,
        8,
    ),
    "a text that is made in two parts": Small(
        """
def f(x, n):
    for i in range(n):
        x = x * 0.5
        print(f"turn {i}: {x.sum().item():.3f}, {x.max().item()!r}")
    return x
""",
        ("[dilim.ones(3), 4]", "[dilim.ones(3), 12]"),
        12,
    ),
    "a text that cannot be made": Small(
        """
W = dilim.ones(3)

def f(x, n):
    for i in range(n):
        text = f"{i:{'y' if i > 2 else 'd'}} {x.sum().item()}"
        W.add_(x)
        print(text)
    return x
""",
        ("[dilim.ones(3), 2]", "[dilim.ones(3), 4]", "[dilim.ones(3), 12]"),
        None,
        raises=(2, 3),
    ),
}

STATE = {
    "an attribute that the host sees on one path": Small(
        """
class Box:
    scale = 0.5

BOX = Box()
BOX.scale = 2.0

def f(x):
    BOX.scale += 2.0
    if x.sum() > 0:
        y = x + 1
    else:
        print(x.tolist())
        y = x
    return y
""",
        ("[dilim.ones(2)]", "[-dilim.ones(2)]") * 2,
        None,
    ),
}

PROGRAMS = {**HANDED, **STATE}
