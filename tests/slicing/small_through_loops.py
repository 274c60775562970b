"""Small programs whose gradients go back through loops: what has one, and what has none."""

from slicing.small_programs import Small

HEAD = """
W = dilim.tensor([1.0, 2.0], requires_grad=True)
V = dilim.tensor([0.5, -0.3], requires_grad=True)
Z = dilim.tensor([0.0, 0.0], requires_grad=True)
"""
CALLS = ("[dilim.ones(2), 3]", "[-dilim.ones(2), 0]", "[0.1 * dilim.ones(2), 4]")
ONE_PATH = r"a gradient that a branch gives on one path only|handed out"


def _recurrence(start, turn, result, kept="W, V, Z", **more):
    """A function that goes through ten turns and differentiates what comes out."""
    lines = "\n        ".join(turn.splitlines())
    source = f"""
def f(x, n):
    W.grad = V.grad = Z.grad = None
    {start}
    for i in range(10):
        {lines}
    {result}.sum().backward()
    return W.grad, V.grad, Z.grad
"""
    return Small(HEAD + source, CALLS, **more)


PROGRAMS = {
    "a state that matters only to the next turn": _recurrence(
        "h, c = x * W, x * V",
        "g = dilim.sigmoid(h * V + x)\nc = c * g + dilim.tanh(x * W + h)\nh = g * dilim.tanh(c)",
        "h",
    ),
    "a state that leads nowhere, with an endless gradient": _recurrence(
        "a, b = x, x", "a = a + W * x\nb = dilim.sqrt(Z * W)", "a"
    ),
    "states that change places": _recurrence("a, b = W * 1, V * 1", "a, b = b * x, a", "a"),
    "three states that change places": _recurrence(
        "a, b, c = W * 1, V * 1, Z * 1", "a, b, c = b * x, c, a * x", "a"
    ),
    "states beside each other": _recurrence("a, b = V * 2, W * 2", "a, b = a * 2, b * 2", "a"),
    "a state that is bound anew": _recurrence("a = V", "a = W * x * i", "a"),
    "a state made of another": _recurrence("a, b = V * 2, W * 2", "a, b = a * 2, a * 3", "b"),
    "states in a branch, of which one matters": _recurrence(
        "a, b = x, x",
        "if x.sum() > i:\n    a, b = a * W * x, b + V * x\nelse:\n    a, b = a + W * 2, b * V * 3",
        "a",
    ),
    "a state of a loop inside": _recurrence(
        "a, b = x, x",
        "for j in range(9):\n    a, b = a * W * 0.5, b + V * x\nb = x * V",
        "a",
    ),
    "what a turn takes on one path": _recurrence(
        "a = Z.sum()", "if x.sum() * i > n:\n    a = a + (W * x).sum()", "a", fallback=ONE_PATH
    ),
    "what a turn takes on either path": _recurrence(
        "a = x",
        "if x.sum() * i > n:\n    a = a + W * x\nelse:\n    a = a + V * x",
        "a",
        fallback=ONE_PATH,
    ),
    "states that change places until a break": _recurrence(
        "a, b = W * 1, V * 1",
        "a, b = b * x, a\nif a.sum() * i > n:\n    break",
        "a",
        fallback=ONE_PATH,
    ),
    "results of a branch, of which one matters": Small(
        HEAD
        + """
def f(x, n):
    W.grad = V.grad = None
    if x.sum() > n:
        a, b = W * x, V * x
    else:
        a, b = W * 2, V * 3
    a.sum().backward()
    return W.grad, V.grad
""",
        CALLS,
    ),
}


def _shown(*lines, **expected):
    """A function that shows a tensor of a loop or branch, before its gradients are asked for."""
    body = "\n    ".join(lines)
    return Small(
        f"{HEAD}\ndef f(x, n):\n    h = x * V\n    {body}\n    return h.detach()\n",
        CALLS,
        None,
        None,
        **expected,
    )


PROGRAMS |= {
    "a tensor with a gradient, shown where turns begin": _shown(
        "for i in range(10):", "    print(h)", "    h = dilim.tanh(h * W)"
    ),
    "one shown where turns end, and later": _shown(
        "for i in range(10):",
        "    h = dilim.tanh(h * W)",
        "    print(h)",
        "h.sum().backward()",
        "print(h)",
    ),
    "one of a loop, shown when it is used up": _shown(
        "for i in range(12):", "    h = dilim.tanh(h * W)", "h.sum().backward()", "print(h)"
    ),
    "one of different operations, shown": _shown(
        "if x.sum() > 0:",
        "    h = h + 1",
        "print(h)",
        "h.sum().backward()",
        "print(h)",
        native=0,
        fallback="has used up is made on several paths",
    ),
    "a part of a loop after backward() has used another": Small(
        """
P = dilim.tensor([0.1, -0.2, 0.3], requires_grad=True)

def f(x):
    t1 = t3 = P
    k = 0
    while k < 3:
        k += 1
        t3 = t3 * 0.5
        t1 = dilim.tanh(t1 + t3)
    (P * dilim.sort(t3)).mean().backward()
    if t1.sum() > x.sum():
        return t1
    return t3
""",
        ("[dilim.ones(3)]", "[-dilim.ones(3)]", "[dilim.ones(3)]"),
        None,
        None,
        fallback="has used up another result of a branch or loop",
    ),
}
