"""Whether a tensor requires a gradient, set in a compiled function."""

import pytest

from slicing.comparing import Call, check

STEPS = tuple(Call(f"[dilim.ones(2), {n}]") for n in (3, 4, 0, 12))
SIGNS = (Call("[dilim.ones(2)]"), Call("[-dilim.ones(2)]")) * 2
NATIVE = {
    "a name": """
        def f(x, n):
            w = x * 2
            w.requires_grad = True
            for _ in range(n):
                w.grad = None
                (w * x).sum().backward()
                with dilim.no_grad():
                    w = w - 0.1 * w.grad
                w.requires_grad = True
            return w, w.grad
        """,
    "an item": """
        P = {"w": dilim.ones(2, requires_grad=True)}

        def f(x, n):
            for _ in range(n):
                P["w"].grad = None
                (P["w"] * x).sum().backward()
                with dilim.no_grad():
                    P["w"] = P["w"] - 0.1 * P["w"].grad
                P["w"].requires_grad = True
            return P["w"]
        """,
    "an argument": """
        def f(x, n):
            x.requires_grad_()
            (x * x).sum().backward()
            return x, x.grad
        """,
    "a global": """
        W = dilim.ones(2)

        def f(x, n):
            y = W * x
            W.requires_grad_()
            return y, W * x
        """,
    "a detached argument": """
        def f(x, n):
            w = x.detach().requires_grad_()
            (w * w).sum().backward()
            return w, x
        """,
    "a leaf that the host uses": """
        def f(x, n):
            w = dilim.tensor(x, requires_grad=True)
            v = dilim.zeros(2, requires_grad=True)
            (x * w + v).sum().backward()
            return w.grad, v.grad, w.grad is v.grad
        """,
}


@pytest.mark.parametrize("name", NATIVE)
def test_as_plain(name):
    check(NATIVE[name], *STEPS, may_leave=True)


@pytest.mark.parametrize("how", ["w.requires_grad_()", "w.requires_grad = True"])
def test_of_a_tensor_that_the_host_has(how):
    check(
        f"""
        L = []

        def f(x, n):
            w = x * 2
            L.append(w)
            {how}
            return x
        """,
        *STEPS,
        fallback="whether a tensor requires a gradient is set where others have it",
    )


def test_on_one_path():
    check(
        """
        def f(x):
            w = x * 2
            if x.sum() > 0:
                w.requires_grad_()
            return w, w * 2
        """,
        *SIGNS,
        fallback="whether a tensor requires a gradient is set where others have it",
    )


@pytest.mark.parametrize(
    "how",
    [
        "w.requires_grad = False\n            loss = h.sum()",
        "loss = h.sum()\n            w.requires_grad_(False)\n            loss.backward()",
        "w.requires_grad = False\n            w.requires_grad = True\n            loss = h.sum()",
    ],
)
def test_of_a_leaf_that_was_used_before(how):
    leaf = Call("[dilim.ones(2, requires_grad=True), dilim.ones(2)]")
    check(
        f"""
        def f(w, x):
            h = x * w
            {how}
            return h, loss, w, w.grad
        """,
        *(leaf, leaf, leaf),
        fallback="whether a tensor requires a gradient is set after it was used",
    )
