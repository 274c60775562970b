"""Gradients back through loops of which it is not known how many turns they make."""

import pytest

from dilim.slicing import kept_turns
from slicing.comparing import Call, check

HEAD = """
W = dilim.tensor([1.0, 2.0], requires_grad=True)
V = dilim.tensor([0.5, -0.3], requires_grad=True)
STATE = dilim.zeros(2)
DRAWS = dilim.Generator(3)

class Box:
    pass

BOX = Box()
BOX.w = dilim.ones(2)
BOX.count = 0
"""
KEPT = 3
COUNTS = (2, 0, 1, KEPT, KEPT + 1, 2 * KEPT, 50, 2)


def _counted(turn, start="h = x * V"):
    return _program(start, "for i in range(n):", turn)


def _open(turn, start="h = x * V", test="i < n"):
    return _program(f"{start}\n    i = 0", f"while {test}:", f"{turn}\ni += 1")


def _program(start, loop, turn):
    lines = "\n        ".join(turn.splitlines())
    return f"""
def f(x, n):
    W.grad = V.grad = None
    k = (V * 3).sum()
    {start}
    {loop}
        {lines}
    (h.sum() * k * V[0]).backward()
    return h.detach(), W.grad, V.grad
"""


PROGRAMS = {
    "counted": _counted("h = dilim.tanh(h * W + i)"),
    "a sum that begins as a number": _counted("h = h + (W * x).sum() * V[1]", "h = V[1] * 0.0"),
    "open": _open("h = dilim.tanh(h * W + x)"),
    "a loop without end, until a break": _open(
        "h = dilim.tanh(h * W + x)\nif i >= n:\n    break", test="True"
    ),
    "a counted loop with a break": _counted("h = h * W\nif h.sum().item() > 30:\n    break"),
    "memory that is written": _open(
        "h = dilim.tanh(h * W + x)\nwith dilim.no_grad():\n    STATE[0] += h[0]"
    ),
    "memory that a counted loop writes": _counted(
        "h = dilim.tanh(h * W + x)\nwith dilim.no_grad():\n    STATE.add_(i * x)"
    ),
    "draws": _open("h = dilim.tanh(h * W + DRAWS.normal((2,)))"),
    "attributes": _open("h = dilim.tanh(h * W)\nBOX.count += 1\nBOX.w = BOX.w * 0.5 + h.detach()"),
    "a tensor at an attribute": """
def f(x, n):
    W.grad = None
    BOX.w = W
    i = 0
    while i < n:
        BOX.w = BOX.w * 0.5
        i += 1
    BOX.w.sum().backward()
    return BOX.w.requires_grad, BOX.w.detach(), W.grad
""",
    "one in another, of a known length": """
def f(x, n):
    W.grad = None
    h = x * V.detach()
    for i in range(3):
        for j in range(9):
            h = dilim.tanh(h * W + i)
        k = 0
        while k < n:
            h = dilim.tanh(h * W + i)
            k += 1
    h.sum().backward()
    return W.grad
""",
    "one after another": """
def f(x, n):
    W.grad = V.grad = None
    h = x * V
    for i in range(n):
        h = dilim.tanh(h * W + i)
    a = x * W
    i = 0
    while i < n + 1:
        a = dilim.tanh(a * V + h)
        i += 1
    (a + h).sum().backward()
    return W.grad, V.grad
""",
    "a helper that returns from its loop": """
def wave(h, n):
    i = 0
    while i < n:
        h = dilim.tanh(h * W[0])
        i += 1
        if h.sum() < 1e-3:
            return h
    return h

def f(x, n):
    W.grad = None
    h = wave(x * W, n) + wave(x, n + 1)
    h.sum().backward()
    return W.grad
""",
    "steps of training": """
def f(x, n):
    losses = []
    for epoch in range(3):
        W.grad = None
        h = x * V.detach()
        i = 0
        while i < n:
            h = dilim.tanh(h * W + i)
            i += 1
        loss = (h * W).sum()
        loss.backward()
        with dilim.no_grad():
            W.sub_(0.1 * W.grad)
        print(loss.item())
        losses.append(loss.item())
    return losses
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_turns_that_are_kept(name, monkeypatch):
    monkeypatch.setattr(kept_turns, "FIRST_BYTES", 1)
    monkeypatch.setattr(kept_turns, "FEWEST", KEPT)
    calls = [Call(f"[dilim.ones(2), {n}]") for n in COUNTS]
    check(HEAD + PROGRAMS[name], *calls, may_leave=True, native=None)


def test_that_more_turns_are_kept_after_a_run_with_more(monkeypatch):
    monkeypatch.setattr(kept_turns, "FIRST_BYTES", 1)
    monkeypatch.setattr(kept_turns, "FEWEST", KEPT)
    counts = (2, KEPT + 1, 4 * KEPT, 4 * KEPT + 1, 16 * KEPT)
    found = check(
        HEAD + PROGRAMS["open"],
        *(Call(f"[dilim.ones(2), {n}]") for n in counts),
        variants=1,
        sends=0,
    )
    left = found.compiled.statistics.left
    assert left == {"a loop makes more turns than are kept for its derivative": 2}


def test_that_a_loop_of_the_host_is_left_to_it():
    check(
        HEAD
        + """
def f(x, n):
    W.grad = None
    h = x
    i = 0
    while i < n:
        h = dilim.tanh(h * W)
        print(h.sum().item())
        i += 1
    h.sum().backward()
    return W.grad
""",
        *(Call(f"[dilim.ones(2), {n}]") for n in (2, 4, 3)),
        fallback="in which the host acts",
    )
