"""Small programs that switch modules between training and evaluation; see `small_programs`."""

from slicing.comparing import Call
from slicing.small_programs import Small

_NET = """
dilim.seed(0)

class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Dense(2, 3)

    def forward(self, x):
        y = self.layer(x)
        return y * 2 if self.training else y

NET = nn.Sequential(Noisy(), nn.Dropout(0.5), nn.Dense(3, 1))
OPT = optim.SGD(NET.parameters(), 0.125)
X = dilim.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

def modes():
    return [m.training for _, m in NET.named_modules()]
"""
_X = "[X]", "[X * 2]", "[X]", "[X]"
_BOTH = tuple(
    Call(f"[X, {n}]", before=f"NET.{mode}()")
    for n in (2, 0, 3)
    for mode in ("train", "eval", "train")
)


def _with(text, calls=_X, sends=None, receives=None, **more):
    return Small(_NET + text, calls, sends, receives, **more)


PROGRAMS = {
    "a step in training and a look in evaluation": _with(
        """
def f(x, n):
    scores = []
    for i in range(n):
        NET.train()
        OPT.zero_grad()
        loss = (NET(x) ** 2).mean()
        loss.backward()
        OPT.step()
        NET.eval()
        with dilim.no_grad():
            scores.append(NET(x).sum().item())
    return scores, modes()
""",
        _BOTH,
    ),
    "a function that evaluates": _with(
        """
def evaluate(model, x):
    was = model.training
    model.eval()
    with dilim.no_grad():
        y = model(x).mean()
    model.train(was)
    return y.item()

def f(x, n):
    total = 0.0
    for i in range(n):
        total += evaluate(NET, x + i)
        x = x + NET(x).sum() * 0.125
    print(NET.training, NET[0].training)
    return total, x
""",
        _BOTH,
    ),
    "evaluation on one path": _with(
        """
def f(x, n):
    with dilim.no_grad():
        if x.sum() > n:
            NET.eval()
            y = NET(x)
        else:
            y = NET(x) + 1
        print(modes())
        z = NET(x)
        NET.train()
        return y, z, NET(x)
""",
        tuple(
            Call(f"[X, {n}]", before=f"NET.{mode}()")
            for n in (2, 99, 3)
            for mode in ("train", "eval", "train")
        ),
    ),
    "a part of a model in evaluation": _with(
        """
def f(x):
    NET[0].eval()
    y = NET(x)
    print(modes())
    NET[0].train()
    return y, modes()
""",
        may_leave=True,
    ),
    "a layer in evaluation": _with(
        """
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.drop = nn.Dense(2, 2), nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.first(x))

BOTH = Both()

def f(x, n):
    for i in range(n):
        BOTH.drop.eval()
        y = BOTH(x)
        BOTH.train()
        x = x + BOTH(x) + y
    return x, BOTH.drop.training
""",
        tuple(Call(f"[X, {n}]", before=f"BOTH.{m}()") for n in (2, 0) for m in ("train", "eval")),
    ),
    "a mode that is an argument": _with(
        """
def f(x, flag):
    found = NET.train(flag)
    return NET(x), found is NET, NET.training
""",
        tuple(f"[X, {flag}]" for flag in (True, False, True, False, True)),
    ),
    "a mode that is a number": _with(
        """
def f(x, flag):
    NET.train(flag)
    with dilim.no_grad():
        return NET(x), NET.training
""",
        tuple(f"[X, {flag}]" for flag in (1, 0, True, 0)),
        may_leave=True,
    ),
    "an error in evaluation": _with(
        """
def f(x, rows):
    NET.eval()
    y = NET(x[rows])
    NET.train()
    return y
""",
        tuple(f"[X, dilim.tensor([{k}])]" for k in (0, 1, 9, 1, 9)),
        raises=(3, 5),
    ),
    "host code that looks at the mode, and host code that sets it": _with(
        """
LOG = []

def look(k):
    LOG.append((k, modes()))
    if k == 3:
        exec("NET[1].training = True", {"NET": NET})
    return len(LOG)

def f(x, k):
    NET.eval()
    look(k)
    y = NET(x)
    look(0)
    NET.train()
    return y, NET(x), LOG[-1]
""",
        tuple(f"[X, {k}]" for k in (1, 2, 3, 2, 2)),
        may_leave=True,
    ),
    "a module that sets its mode in a way of its own": _with(
        """
class Loud(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Dropout(0.5)
        self.count = 0

    def train(self, mode=True):
        print("train", mode)
        self.count += 1
        return super().train(mode)

    def forward(self, x):
        return self.inner(x)

LOUD = Loud()

def f(x):
    LOUD.eval()
    y = LOUD(x)
    LOUD.train()
    return y, LOUD(x), LOUD.count
""",
        may_leave=True,
    ),
    "modes of a while": _with(
        """
def f(x, n):
    k = 0
    while k < n:
        if k % 2 == 0:
            NET.eval()
        else:
            NET.train()
        x = x + NET(x).sum() * 0.125
        k += 1
    return x, modes()
""",
        _BOTH,
        may_leave=True,
    ),
}
