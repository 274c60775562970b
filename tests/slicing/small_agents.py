"""Small programs as agents and worlds are written; see `small_programs`."""

from slicing.small_programs import Small

_REPLAY = """
import dilim

class Replay:
    def __init__(self, capacity):
        self.values, self.capacity, self.count = dilim.zeros((capacity,)), capacity, 0

    def add(self, value):
        self.values[self.count % self.capacity] = value
        self.count += 1

    def sample(self, generator, size):
        positions = generator.integers(0, min(self.count, self.capacity), (size,))
        return self.values[positions]

class Agent:
    def __init__(self):
        self.generator, self.replay = dilim.Generator(3), Replay(5)
        self.steps, self.loss, self.size = 0, dilim.tensor(0.0), 4

    def epsilon(self):
        return max(0.05, 1.0 - self.steps * 1e-2)

    def learn(self):
        self.loss = self.replay.sample(self.generator, self.size).mean()

A = Agent()
"""

PROGRAMS = {
    "a replay that is drawn from once it is filled": Small(
        _REPLAY
        + """
def f(x, n):
    for k in range(n):
        A.replay.add(x.sum() * k)
        A.steps += 1
        if A.steps >= 3:
            A.learn()
    return A.loss, A.replay.values, A.steps, A.generator.uniform((2,))
""",
        ("[dilim.ones(2), 10]", "[dilim.ones(2), 3]", "[dilim.ones(2) * 2, 10]"),
    ),
    "drawing from nothing": Small(
        _REPLAY
        + """
def f(x, n):
    for k in range(n):
        A.steps += 1
        if A.steps >= 3:
            A.learn()
        A.replay.add(x.sum())
    return A.loss
""",
        ("[dilim.ones(2), 10]", "[dilim.ones(2), 1]"),
    ),
    "drawing before anything is there": Small(
        _REPLAY
        + """
def f(x, n):
    for k in range(n):
        A.steps += 1
        A.learn()
    return A.loss
""",
        ("[dilim.ones(2), 10]", "[dilim.ones(2), 10]"),
        sends=None,
        receives=None,
        raises=(1, 2),
    ),
    "a chance that falls with the steps": Small(
        _REPLAY
        + """
def f(x, n):
    for k in range(n):
        A.steps += 1
        if A.generator.uniform(()) < A.epsilon():
            x = x + 1
        else:
            x = x * 0.5
    return x, A.steps
""",
        ("[dilim.ones(2), 70]", "[dilim.ones(2), 90]", "[dilim.ones(2), 5]"),
    ),
    "categories whose logits end as NaN": Small(
        """
import dilim
G = dilim.Generator(1)
class Box: pass
B = Box()
B.last = dilim.tensor(0)

def f(x, n):
    for k in range(n):
        if k > 1:
            B.last = G.categorical(x)
        x = x * 1e10
    return B.last
""",
        ("[dilim.ones(3), 3]", "[dilim.ones(3), 3]", "[dilim.ones(3), 9]", "[dilim.ones(3), 2]"),
        raises=(3,),
    ),
    "a world of dilim's, stepped and begun again": Small(
        """
import dilim
from dilim.rl import CartPole
E, G = CartPole(), dilim.Generator(4)

def f(x, n):
    state, ends, total = E.initial(G), 0, dilim.tensor(0.0)
    for k in range(n):
        action = G.integers(0, 2, ())
        following = E.transition(state, action, G)
        total = total + E.reward(state, action, following)
        if E.terminal(following):
            ends += 1
            state = E.initial(G)
        else:
            state = following
    return E.observation(state), ends, total
""",
        ("[dilim.ones(2), 70]", "[dilim.ones(2), 60]"),
    ),
    "numbers of the program as tensors and bounds": Small(
        """
import dilim
G = dilim.Generator(4)

def f(x, n):
    for k in range(n):
        made = dilim.tensor(k, dtype=dilim.float32)
        x = dilim.maximum(x, k * 0.25) + made + dilim.where(x > 3, k, x).clip(0, k + 1)
        made += 1
        drawn = G.integers(k, high=k + 3, shape=(2,))
        x = x + drawn.astype(dilim.float32) * made
    return x, dilim.tensor(n), dilim.tensor(n * 0.5), dilim.asarray(n > 3)
""",
        ("[dilim.ones(2), 10]", "[dilim.ones(2), 3]", "[dilim.ones(2) * 2, 10]"),
    ),
    "ints and floats that meet": Small(
        """
def f(x, n):
    k = n
    for i in range(5):
        k = k + 2**52
        if k * 1.0 < 9007199254740993.5:
            x = x + 1
        if 9007199254740993 > i * 1e18:
            x = x + k * 0.5
        x = x * (k / 3.0)
    return x, k < 9007199254740993.0, k * 0.1
""",
        ("[dilim.ones(2), 10]", "[dilim.ones(2), 3]", "[dilim.ones(2), -(2**60)]"),
        sends=None,
        receives=None,
    ),
    "a share of steps that a counter has made": Small(
        """
class Box: pass
B = Box()
B.steps = 0

def f(x, n, start):
    B.steps = start
    for i in range(n):
        B.steps += 1
        part = min(1.0, B.steps / 50)
        x = x * part
        if B.steps > 2.5:
            x = x + B.steps / (i + 1)
    return x, B.steps, B.steps / 3
""",
        ("[dilim.ones(2), 10, 0]", "[dilim.ones(2), 60, 3]", "[dilim.ones(2), 3, 2**40]"),
    ),
    "a counter beyond all floats": Small(
        """
class Box: pass
B = Box()

def f(x, n, start):
    B.steps = start
    for i in range(n):
        B.steps += 1
        x = x + B.steps / 3 + (1.0 if B.steps > 9007199254740992.0 else 0.5)
    return x, B.steps / 7
""",
        ("[dilim.ones(2, dtype=dilim.float64), 3, 2**53 - 2]",) * 3
        + ("[dilim.ones(2, dtype=dilim.float64), 3, 5]",),
        sends=None,
        receives=None,
        may_leave=True,
    ),
    "drawn before a function that calls itself gives a gradient on one path": Small(
        """
import dilim
G = dilim.Generator(1)

def deep(t, n):
    if n <= 0:
        return t
    return deep(t * 0.5, n)

class Box: pass
B = Box()
B.p, B.n = dilim.tensor([0.2, 0.1], requires_grad=True), 0

def f(x, flag):
    drawn = G.uniform(())
    first, second = deep(B.p, B.n % 4)
    return x * first + second * drawn
""",
        ("[dilim.ones(2), True]",) * 3,
        sends=None,
        receives=None,
    ),
    "bounds that meet": Small(
        """
import dilim
G = dilim.Generator(4)

def f(x, low, high):
    drawn = G.integers(low, high, (3,)), G.integers(low, high, (0,))
    for i in range(high):
        x = x + G.integers(i + low, high, ())
    return x, drawn
""",
        ("[dilim.zeros(2, dtype=dilim.int64), -2, 3]",) * 2
        + ("[dilim.zeros(2, dtype=dilim.int64), 1, 3]", "[dilim.ones(2), 3, 3]"),
        sends=None,
        receives=None,
        raises=(3, 4),
        may_leave=True,
    ),
}
