"""Forms of plain Python that have to be sliced, not merely survived."""

import pytest

from slicing.comparing import Call, check


def test_host_and_tensor_conditions_nested_with_break_continue_and_else():
    seen = check(
        """
        def f(t, n, verbose):
            for i in range(n):
                if t.sum() > 40:
                    if verbose:
                        print("break at", i, t.sum())
                    break
                if i % 3 == 1:
                    t = t + 1
                    continue
                k = 0
                while t.max() < 4 and k < 3:
                    t = t * 1.5
                    k += 1
                else:
                    t = t + 0.25
            else:
                t = -t
            return t
        """,
        *[
            Call(f"[dilim.tensor([1.0, {x}]), {n}, {verbose}]")
            for x, n, verbose in [
                (2.0, 10, False),
                (2.0, 2, False),
                (2.0, 80, False),
                (-3.0, 0, True),
                (3.0, 80, True),
            ]
        ],
        sends=1,
        receives=0,
        variants=2,
    )
    assert seen.printed(5)[0].startswith("break at")


def test_names_that_one_branch_binds():
    seen = check(
        """
        def f(t, u):
            if t.sum() > 0:
                a = t * 2
                b = 1
            if u.sum() > 0:
                a = u
            return a, b
        """,
        Call("[dilim.ones(2), dilim.ones(2)]"),
        Call("[dilim.ones(2), -dilim.ones(2)]"),
        Call("[-dilim.ones(2), dilim.ones(2)]"),
        Call("[-dilim.ones(2), -dilim.ones(2)]"),
        Call("[dilim.ones(2), -dilim.ones(2)]"),
        variants=1,
        receives=0,
        raises=(3, 4),
    )
    assert seen.error(3).startswith("UnboundLocalError: cannot access local variable 'b'")
    assert seen.error(4).startswith("UnboundLocalError: cannot access local variable 'a'")


def test_loops_over_lists_of_tensors_and_of_layers():
    check(
        """
        LAYERS = [nn.Dense(3, 3, generator=dilim.Generator(k)) for k in range(3)]

        def f(x, tensors, scales):
            with dilim.no_grad():
                for number, layer in enumerate(LAYERS):
                    x = dilim.tanh(layer(x)) + number
            for t, s in zip(tensors, scales):
                x = x + t * s
            for name, t in {"a": x, "b": -x}.items():
                x = x + t if name == "a" else x * t
            return x
        """,
        *[
            Call(f"[dilim.ones((2, 3)), [dilim.ones(3), dilim.ones(1)], [{s}, 2.0]]")
            for s in (1.0, 3.0)
        ],
        Call("[dilim.ones((2, 3)), [dilim.ones(3)], [0.5, 2.0]]"),
        Call("[dilim.ones((2, 3)), [dilim.ones(3), dilim.ones(1)], [0.5, 2.0]]"),
        sends=0,
        receives=0,
        variants=2,
    )


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_thousands_of_turns_in_one_call(backend):
    check(
        """
        def f(t, n):
            total = 0
            for i in range(n):
                t = t * 0.999 + 0.001
                if i % 7 == 3:
                    total += i
            return t, total, i
        """,
        *[Call(f"[dilim.tensor([2.0, 3.0]), {n}]") for n in (3000, 2000)],
        sends=0,
        receives=0,
        variants=1,
        backend=backend,
    )


def test_closures_methods_nested_functions_and_defaults():
    check(
        """
        class Model:
            def __init__(self):
                self.w = dilim.tensor([[0.5, -1.0], [2.0, 0.25]])
                self.steps = 0

            def forward(self, x, *, scale=1.0):
                self.steps += 1
                return dilim.tanh(x @ self.w) * scale

            def __call__(self, x, **options):
                return self.forward(x, **options)

        MODEL = Model()

        def make(bias):
            def f(x, k=2, *more, scale=0.5, **options):
                def inner(y, times=k):
                    for _ in range(times):
                        y = y + bias
                    return y

                x = inner(MODEL(x, scale=scale))
                for extra in more:
                    x = x - extra
                return {"x": x, "names": sorted(options), "more": len(more)}

            def set_bias(value):
                nonlocal bias
                bias = value

            return f, set_bias

        f, set_bias = make(dilim.tensor([1.0, 2.0]))
        """,
        Call("[dilim.ones((1, 2))]"),
        Call("[dilim.ones((1, 2)), 3]", "{'scale': 2.0}"),
        Call("[dilim.ones((1, 2)), 3, dilim.ones(2), 0.5]", "{'u': 1}"),
        Call("[dilim.ones((1, 2))]", before="set_bias(dilim.tensor([5.0, 0.0]))"),
        Call("[dilim.ones((1, 2))]", before="set_bias(7.0)"),
        Call("[dilim.ones((1, 2))]", before="MODEL.w = MODEL.w * 2"),
        sends=0,
        receives=0,
    )


def test_a_compiled_method():
    check(
        """
        class Counter:
            def __init__(self):
                self.total = dilim.zeros(2)
                self.calls = 0

            def f(self, x, times=1):
                for _ in range(times):
                    self.total = self.total + x
                    self.calls += 1
                return self.total.sum()

        ONE, TWO = Counter(), Counter()
        """,
        Call("[dilim.ones(2)]"),
        Call("[dilim.ones(2), 5]"),
        Call("[dilim.ones(2), 5]", before="ONE = TWO"),
        Call("[dilim.ones(2), 0]", before="ONE.total = ONE.total - 1"),
        owner="Counter",
        callee="ONE.f",
        sends=0,
        receives=0,
    )


def test_tensors_changed_in_place_with_their_views():
    check(
        """
        def f(x, y, n):
            row = x[0]
            x[1] = y
            row += 10.0
            for i in range(n):
                x[i % 2] += y
                row *= 0.5
            y[...] = x.sum()
            x[:, 1:] = x[:, :-1] * 2
            return row, x[1], x.T
        """,
        Call("[dilim.ones((2, 3)), dilim.tensor([1.0, 2.0, 3.0]), 3]"),
        Call("[X, X[0], 3]", before="X = dilim.ones((2, 3))"),
        Call("[X, Y, 5]", before="X = dilim.ones((2, 3)); Y = dilim.ones(3)"),
        Call("[X, Y, 5]"),
        sends=0,
        receives=0,
    )


def test_attributes_with_tensors_through_loops():
    check(
        """
        class Running:
            def __init__(self):
                self.mean = dilim.zeros(2)
                self.count = 0

            def add(self, x):
                self.count += 1
                self.mean += (x - self.mean) / self.count

        R = Running()

        def f(rows, n):
            for _ in range(n):
                R.add(rows[0])
                R.add(rows[1])
                if R.mean.sum() > 4:
                    R.mean = R.mean - 1
            return R.mean
        """,
        *[Call(f"[dilim.tensor([[1.0, 2.0], [3.0, 5.0]]), {n}]") for n in (1, 4, 0, 9)],
        sends=0,
        receives=0,
    )


def test_strings_numbers_and_shapes():
    seen = check(
        """
        def f(x):
            n, m = x.shape
            total = float(x.sum())
            label = f"{n}x{m}: {total:.3f} {x.ndim}"
            flag = bool(x.sum() > 3)
            parts = [x[i] * i for i in range(len(x))]
            named = {f"row{i}": p.sum() for i, p in enumerate(parts) if i != 1}
            print(label, flag, f"{x.mean().item():.2f}")
            return parts, named, (n * m, int(x.max()), label), x.reshape(m, -1).mean(axis=0)
        """,
        *[Call("[dilim.ones((3, 2))]")] * 2,
        Call("[dilim.full((3, 2), 0.25)]"),
        sends=3,  # for the first text, for what is printed, for the text that is returned
        receives=0,
    )
    assert seen.printed(3) == ["3x2: 1.500 2 False 0.25"]


def test_no_grad_and_gradients():
    check(
        """
        W = dilim.tensor([[0.5], [-1.0]], requires_grad=True)

        def loss_of(x, w):
            return dilim.square(x @ w - 1.0).mean()

        def f(x, steps):
            for _ in range(steps):
                W.grad = None
                loss = loss_of(x, W)
                loss.backward()
                with dilim.no_grad():
                    W.sub_(0.1 * W.grad) if hasattr(W, "sub_") else W.add_(-0.1 * W.grad)
            with dilim.no_grad():
                final = loss_of(x, W)
            return final, dilim.grad(loss_of, 1)(x, dilim.tensor([[0.25], [0.5]]))
        """,
        *[Call(f"[dilim.tensor([[1.0, 2.0], [0.5, -1.0]]), {n}]") for n in (1, 3, 3)],
        sends=0,
        receives=0,
    )


def test_an_optimiser_step_written_out_with_clipping_and_weights_of_its_own():
    check(
        """
        MODEL = nn.MLP(2, [4, 1], "tanh", generator=dilim.Generator(4))
        OPTIMIZER = optim.SGD(MODEL.parameters(), 0.1, momentum=0.9)

        def f(x, y):
            OPTIMIZER.zero_grad()
            loss = nn.losses.mse(MODEL(x), y)
            loss.backward()
            norm = optim.clip_grad_norm(MODEL.parameters(), 0.5)
            OPTIMIZER.step()
            return loss.detach(), norm
        """,
        *[Call("[dilim.ones((3, 2)), dilim.zeros((3, 1))]")] * 4,
        sends=0,
        receives=0,
    )


def test_a_shape_that_depends_on_data():
    check(
        """
        def f(x):
            y = x * 2
            kept = y[y > 1]
            z = kept * 3
            return z.sum(), kept.shape[0], dilim.exp(y)
        """,
        *[Call(f"[dilim.tensor([1.0, -2.0, {k}])]") for k in (0.1, 0.2, 3.0, 4.0)],
    )


@pytest.mark.parametrize("rare", [True, False])
def test_a_value_of_the_host_that_is_of_another_type_rarely_or_often(rare):
    numbers = [0.5, 1.5, 0.5, 1.5, 0.5, 2, 0.5] if rare else [0.5, 0.5, 2, 0.5, 2, 1, 0.5]
    check(
        """
        import json

        def f(x, values):
            v = json.loads(values.pop())
            return x * v + v
        """,
        *[Call(f"[dilim.ones(2), ['{number}']]") for number in numbers],
        sends=0 if rare else None,
        receives=1 if rare else 0,
    )


@pytest.mark.parametrize("form", ["while True", "for i in range(10**9)"])
def test_loops_that_only_a_break_ends(form):
    check(
        f"""
        def f(t):
            n = 0
            {form}:
                t = t * 0.5
                n += 1
                if t.max() < 0.01:
                    break
            return t, n
        """,
        *[Call(f"[dilim.tensor([{x}, 2.0])]") for x in (100.0, 1.0, 0.0)],
        sends=0,
        receives=0,
        variants=1,
    )


def test_a_host_condition_that_is_computed_from_what_was_sent():
    check(
        """
        SEEN = []

        def good(value):
            SEEN.append(value)
            return value < 3.0 or len(SEEN) % 5 == 0

        def f(t):
            while good(float(t.sum())):
                t = t * 1.25
                print(len(SEEN))
            return t
        """,
        *[Call("[dilim.tensor([0.5, 0.5])]")] * 3,
    )


def test_backward_through_a_loop_of_unknown_length():
    check(
        """
        W = dilim.tensor([1.0, 2.0], requires_grad=True)

        def f(x):
            W.grad = None
            h = x
            while h.sum() < 20:
                h = h * W + 1
            h.sum().backward()
            return W.grad
        """,
        *[Call("[dilim.ones(2)]")] * 3,
        sends=0,
    )
