"""Functions whose results carry gradients through branches and loops of the graph.

They are called by `test_gradients_outside`, which walks back from what they give.
"""

import dilim

W = dilim.tensor([1.0, -2.0, 3.0], requires_grad=True)
KEPT = []


def opaque(*values):
    KEPT.extend(values)


def penalty():
    return eval("(W * 0.1).sum() + (W * 0.3).sum()")


def factor():
    return eval("1.5 + len(KEPT)")


def either_side(x):
    if x.sum() > 0:
        y = W * x
    else:
        y = (W + x).tanh()
    return y, (y * y).sum()


def one_side(x):
    y = x
    if x.sum() > 0:
        y = W * x
    return y, y.requires_grad, y * 2


def one_side_makes_another(x):
    y = x * 2
    if x.sum() > 0:
        y = y * W
    else:
        y = y + 1
    z = y * 3
    return z, y, y.requires_grad


def nested_sides(x):
    y = W
    if x.sum() > 0:
        z = W * x
        y = z.exp() if z.sum() > 1 else z.tanh()
    return y


def several_results(x):
    u = W * x
    if u.sum() > 0:
        a, b = u * 2, u.exp()
    else:
        a, b = u.tanh(), W * W
    return a, b, u


def long_loop(x):
    h = x
    for _ in range(150):
        h = dilim.tanh(h * W * 0.5 + x)
    return h


def no_turn(x):
    h = W * x
    for _ in range(int(x[1].item()) - 1):
        h = h * W
    return h


def unknown_count(x):
    h = W * x
    while h.sum() < 40:
        h = h * 1.5 + 1
    return h


def loop_in_a_loop(x):
    h = x
    for i in range(70):
        for j in range(i % 4):
            h = dilim.tanh(h * W + j)
        h = h / (1 + i)
    return h.sum()


def branches_in_a_loop(x):
    total = dilim.zeros(3)
    for i in range(80):
        term = W * x * i
        if term.sum() > 40:
            total = total * 0.5 + term
        else:
            total = total + W.detach() * 0.1
    return total


def plain_in_the_first_turn(x):
    a, b = x, x * 2
    for _ in range(90):
        a, b = b * 0.5, a * W * 0.5
    return a, b


def used_before_in_and_after(x):
    before = (W * x * 0.7).sum()
    if x.sum() > 0:
        y = (W * 0.3 + W * W).sum()
    else:
        y = (W * 0.1).exp().sum()
    return before + y + (W * 0.9).sum() * before


def prints_in_a_branch(x):
    y = W * x
    if x.sum() > 0:
        y = y * W
        print(y.sum().item())
        y = y + W * 0.3
    return y * W


def host_code_in_a_branch(x):
    y = W * x
    if x.sum() > 0:
        y = y * W * 0.7
        opaque(penalty())
        y = (y + W * 0.3) * W
    return y * W + (sum(KEPT) if KEPT else 0)


def host_number_in_a_branch(x):
    y = W * x
    if x.sum() > 0:
        y = y * factor()
        y = y * W
    return y


def random_in_a_branch(x):
    generator = dilim.Generator(3)
    y = W * x
    if x.sum() > 0:
        y = y * generator.uniform((3,)) * generator.uniform((3,))
    return y


def detached_in_a_loop(x):
    v = (W * 2).detach()
    h = W * x
    for _ in range(70):
        with dilim.no_grad():
            v = v * W * 0.5
        h = h * 0.5 + v * W
    return h


def given_then_used_up(x):
    y = W * x
    if x.sum() > 0:
        y = y * W
    else:
        y = y + W
    total = y.sum()
    opaque(total, y)
    total.backward()
    return total.item()


def given_and_kept(x):
    y = W * x
    if x.sum() > 0:
        y = y * W
    else:
        y = y + W
    total = y.sum()
    opaque(total)
    total.backward(retain_graph=True)
    return total


def view_from_a_branch(x):
    if x.sum() > 0:
        y = W[1:] * 2
    else:
        y = (W[:2] * x[:2]).reshape((2, 1)).T[0]
    return y, y * y


def from_before_a_loop(x):
    y = W * x
    z = y * 2
    for i in range(40):
        if x[i % 3] > 0:
            opaque(z)
        x = x * 0.9
    return y, z


def on_either_path_then_again(x):
    y = W * x
    if x.sum() > 0:
        opaque(y)
    opaque(y * 2, y)
    return y.sum() + (W * 0.3).sum()


def out_of_order(x):
    for i in range(30):
        y = (W * x * 0.7).sum()
        z = (W * (0.1 * i)).exp().sum()
        if x[i % 3] > 0:
            opaque(z * y)
            opaque(penalty() * 0.5)
        if i % 7 < 2:
            opaque(y)
    return sum(KEPT) * 0.1


def in_loops_of_loops(x):
    a = (W * 0.3).sum()
    for i in range(5):
        b = (W * x * (i + 0.7)).sum() * a
        for j in range(20):
            c = (W * (0.1 * j)).sum() * b
            if j % 4 == i:
                opaque(c)
            if j == 17:
                opaque(b, penalty())
    return sum(KEPT) * a


def used_up_after_a_loop(x):
    total = (W * W * x).sum()
    for i in range(30):
        if i == 11:
            opaque(total)
    total.backward()
    return total.item()


def a_branch_in_each_turn(x):
    for i in range(30):
        y = W * x
        if x[i % 3] > 0:
            y = y * W
            opaque(penalty())
            y = y * 0.1 + W
        opaque(y.sum() * (W * 0.1).sum())
    return sum(KEPT)


def printed_and_left(x):
    for i in range(12):
        y = (W * x * i).sum()
        print(i, repr(y))
        KEPT.append(y)
    return len(KEPT)


THROUGH_REGIONS = (
    either_side, one_side, one_side_makes_another, nested_sides, several_results, long_loop,
    loop_in_a_loop, branches_in_a_loop, plain_in_the_first_turn, used_before_in_and_after,
    prints_in_a_branch, host_code_in_a_branch, host_number_in_a_branch, random_in_a_branch,
    detached_in_a_loop, given_then_used_up, given_and_kept, view_from_a_branch,
    from_before_a_loop, on_either_path_then_again, out_of_order, in_loops_of_loops,
    used_up_after_a_loop, a_branch_in_each_turn, printed_and_left,
)  # fmt: skip
