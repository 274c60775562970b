"""Small programs whose loops have a world of the host in them; see `small_programs`."""

from slicing.small_programs import Small

_WORLD = """
Q = nn.Dense(3, 2, generator=dilim.Generator(1))
OPT = optim.SGD(Q.parameters(), learning_rate=0.1)

class World:
    def __init__(self):
        self.grads = []

    def step(self, action):
        return eval("self.go(action)", {}, {"self": self, "action": action})

    def go(self, action):
        self.look()
        return np.ones(3, np.float32) * (action + 1)

    def look(self):
        grad = Q.weight.grad
        print(None if grad is None else grad.tolist())
        if not (self.grads and self.grads[-1] is grad):
            self.grads.append(grad)

WORLD = World()

def learn(x):
    loss = (Q(x) ** 2).mean()
    OPT.zero_grad()
    loss.backward()
    OPT.step()
"""

PROGRAMS = {
    "a world that sees the gradients, which few turns change": Small(
        _WORLD
        + """
def f(n):
    x = dilim.ones(3)
    for i in range(n):
        x = dilim.tensor(WORLD.step(int(Q(x).argmax())))
        if i % 5 == 2:
            learn(x)
    return len(WORLD.grads)
""",
        ("[20]",) * 3,
        20 + 4,
        20,
    ),
    "a world, and gradients that are there at entry": Small(
        _WORLD
        + """
learn(dilim.ones(3))

def f(n):
    x = dilim.ones(3)
    for i in range(n):
        x = dilim.tensor(WORLD.step(int(Q(x).argmax())))
        if i % 5 == 2:
            learn(x)
    return len(WORLD.grads)
""",
        ("[600]",) * 3,
        600 + 120,
        600,
    ),
    "a world that sees a count, which few turns change": Small(
        _WORLD
        + """
class Box:
    count = 0

BOX = Box()
BOX.count = 0

def look():
    print(BOX.count)

WORLD.look = look

def f(n):
    x = dilim.ones(3)
    for i in range(n):
        x = dilim.tensor(WORLD.step(int(Q(x).argmax())))
        if x.sum() > 4:
            BOX.count += 1
        for j in range(n):
            if i + j == 9:
                BOX.count += 1
                x = dilim.tensor(WORLD.step(2))
    return x
""",
        ("[10]",) * 3,
        None,
        None,
    ),
    "a world, and a gradient that the program keeps": Small(
        _WORLD
        + """
KEPT = []

def f(n):
    x = dilim.ones(3)
    for i in range(n):
        x = dilim.tensor(WORLD.step(int(Q(x).argmax())))
        if i % 5 == 2:
            learn(x)
        if i > 4:
            KEPT.append(Q.weight.grad)
    return [x is y for x, y in zip(KEPT, KEPT[1:])], KEPT[-1] is Q.weight.grad
""",
        ("[12]",) * 3,
        None,
        None,
        may_leave=True,
    ),
    "a world in a loop that ends early, and another one": Small(
        _WORLD
        + """
def f(n, m):
    x = dilim.ones(3)
    for i in range(n):
        x = dilim.tensor(WORLD.step(int(Q(x).argmax())))
        if i % 5 == 2:
            learn(x)
        if i == m:
            break
    else:
        learn(x)
    while n > 0:
        n -= 2
        WORLD.step(n)
        if n < 4:
            Q.weight.grad = None
    return len(WORLD.grads)
""",
        ("[12, 3]", "[12, 30]", "[12, 3]", "[12, 2]", "[9, 20]"),
        None,
        None,
        fallback="a value of several kinds is carried through a loop",
    ),
    "a tensor that a turn makes None": Small(
        """
def f(x, n):
    best = x
    for i in range(n):
        print(i)
        if best is not None and i % 3 == 2:
            best = best + 1 if best.sum() < 9 else None
        elif best is None:
            x = x + 1
    return best, x
""",
        ("[dilim.ones(2), 20]", "[dilim.ones(2), 7]", "[dilim.ones(2), 1]", "[dilim.ones(2), 30]"),
        None,
        None,
    ),
}
