"""Functions without host code, which are called directly: as plain, whatever changes between calls.

Two worlds are made from the same numbers; in one the function is compiled. The same things happen
in both, and all that can be seen has to be the same.
"""

import threading
import weakref

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dilim
from dilim import nn, optim


class World:
    """A small model with its optimiser, and functions over them."""

    def __init__(self, compile):
        random = np.random.default_rng(1)

        def numbers(*shape):
            return dilim.asarray(random.standard_normal(shape).astype(np.float32))

        self.model = nn.Sequential(nn.Dense(3, 3), nn.Tanh(), nn.Dense(3, 1))
        for x in self.model.parameters():
            with dilim.no_grad():
                x.copy_(numbers(*x.shape))
        self.optimizer = optim.Adam(self.model.parameters(), learning_rate=0.1)
        self.inputs = [numbers(3, 3) for _ in range(4)]
        self.targets = [numbers(3, 1) for _ in range(4)]
        self.memory = numbers(3, 3)
        self.kept = []
        self.seen = []
        model, optimizer, memory = self.model, self.optimizer, self.memory

        def update(x, y):
            loss = ((model(x) - y) * (model(x) - y)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.detach()

        def predict(x, y):
            with dilim.no_grad():
                return model(x), y

        def blend(x, y):
            x += memory * 0.5
            memory.mul_(0.5)
            return x.sum(), x[0]

        def pick(x, y):
            optimizer.zero_grad()
            rows = dilim.take(model(x), dilim.astype(y[0], dilim.int64), axis=0)
            rows.sum().backward()
            return rows.detach().sum()

        functions = {"update": update, "predict": predict, "blend": blend, "pick": pick}
        self.functions = {
            name: dilim.compile(f, compile_after=0) if compile else f
            for name, f in functions.items()
        }

    def state(self):
        """What can be seen."""
        parameters = self.model.parameters()
        held = [x for x in self.kept if isinstance(x, dilim.Tensor)]
        return {
            "parameters": [x.numpy().tobytes() for x in parameters],
            "gradients": [None if x.grad is None else x.grad.numpy().tobytes() for x in parameters],
            "own gradients": [x.grad is y for x in parameters for y in held],
            "inputs": [x.numpy().tobytes() for x in (*self.inputs, *self.targets, self.memory)],
            "moments": self.optimizer.state_dict()["first_moment.0"].tolist(),
            "kept": [x.numpy().tobytes() for x in held],
            "names": [None if x.grad is None else x.grad.name for x in parameters],
            "seen": self.seen,
        }


def call(name):
    def event(world, k):
        try:
            result = world.functions[name](world.inputs[k], world.targets[k])
        except Exception as error:
            world.seen.append((type(error), str(error)))
            return
        parts = result if isinstance(result, tuple) else (result,)
        world.seen.append([(x.shape, x.dtype, x.numpy().tobytes(), x.requires_grad) for x in parts])
        world.seen.append([x is world.inputs[k] or x is world.targets[k] for x in parts])
        world.kept += parts

    return event


def given_to(change):
    """What is given at the next calls is something else."""

    def event(world, k):
        world.inputs[k] = change(world, world.inputs[k])

    return event


def first(world):
    return world.model.parameters()[0]


def replaced(world, k):
    dense = world.model[2 if k % 2 else 0]
    dense.weight = dilim.asarray(dense.weight.numpy() * 0.5).requires_grad_()


def frozen(world, k):
    dense = world.model[0]
    dense.bias.requires_grad_(not dense.bias.requires_grad)


def other_rate(world, k):
    world.optimizer.learning_rate = 0.05 * (k + 1)


def kept_gradients(world, k):
    world.kept += [x.grad for x in world.model.parameters()][: k + 1]


def changed_gradient(world, k):
    grad = first(world).grad
    if grad is not None:
        grad.mul_(2.0)
        grad.name = f"name {k}"


def no_gradient(world, k):
    world.model.parameters()[k].grad = None


def own_gradient(world, k):
    x = world.model.parameters()[k]
    x.grad = dilim.ones(x.shape)


def aliased(world, k):
    if k % 2:
        world.targets[k] = world.inputs[k][:, :1]
    else:
        world.inputs[k] = world.inputs[(k + 1) % 4]


def dropped(world, k):
    world.kept.clear()


def written(world, k):
    world.inputs[k].fill_(0.25)
    if world.kept and k % 2:
        world.kept[-1].detach().fill_(3.0)


EVENTS = {
    "update": call("update"),
    "again": call("update"),
    "predict": call("predict"),
    "blend": call("blend"),
    "pick": call("pick"),
    "its memory": given_to(lambda world, x: world.memory),
    "a view of its memory": given_to(lambda world, x: world.memory[:]),
    "a parameter": given_to(lambda world, x: first(world).detach()),
    "another layout": given_to(lambda world, x: dilim.asarray(x.numpy().T.copy()).T),
    "another dtype": given_to(lambda world, x: x.astype(dilim.float64)),
    "another shape": given_to(lambda world, x: dilim.ones((2, 3))),
    "a copy": given_to(lambda world, x: x.clone()),
    "with gradient": given_to(lambda world, x: x.clone().requires_grad_()),
    "on the tape": given_to(lambda world, x: x.clone().requires_grad_() * 2.0),
    "replaced": replaced,
    "frozen": frozen,
    "other rate": other_rate,
    "kept gradients": kept_gradients,
    "changed gradient": changed_gradient,
    "no gradient": no_gradient,
    "own gradient": own_gradient,
    "aliased": aliased,
    "dropped": dropped,
    "written": written,
}
STORIES = st.lists(st.tuples(st.sampled_from(list(EVENTS)), st.integers(0, 3)), max_size=12)


def happens(world, name, k):
    try:
        EVENTS[name](world, k)
    except Exception as error:  # the same in both worlds
        world.seen.append((type(error), str(error)))


@pytest.mark.filterwarnings("ignore::dilim.errors.PerformanceWarning")  # of many programs
@settings(max_examples=25, deadline=None)
@given(STORIES)
@example([("a parameter", 2)])
@example([("its memory", 3)])
@example([("a view of its memory", 3)])
@example([("replaced", 0), ("update", 0), ("predict", 1)])
@example([("frozen", 0), ("update", 0), ("frozen", 0), ("update", 1)])
@example([("kept gradients", 3), ("update", 0), ("kept gradients", 3), ("update", 1)])
def test_as_plain_whatever_happens(story):
    plain, compiled = World(compile=False), World(compile=True)
    start = [("update", 0), ("update", 1), ("predict", 0), ("blend", 0)]
    for name, k in (*start, *story, ("update", 2), ("blend", 3)):
        happens(plain, name, k)
        happens(compiled, name, k)
        assert plain.state() == compiled.state(), name


def compiled(function):
    return dilim.compile(function, compile_after=0)


def test_what_was_done_before_an_operation_failed():
    def world(make):
        w = dilim.ones(3, requires_grad=True)
        w.grad = dilim.ones(3)
        total = dilim.zeros(())

        def f(x, places):
            total.add_(1.0)
            w.grad = None
            loss = (dilim.take(x, places, axis=0) * w).sum()
            loss.backward()
            return loss.detach()

        return make(f), w, total

    plain, w, total = world(lambda f: f)
    fast, fast_w, fast_total = world(compiled)
    x, good, bad = dilim.ones((4, 3)), dilim.tensor([1, 2]), dilim.tensor([1, 7])
    for places in (good, good, bad, good, bad):
        results = []
        for f in (plain, fast):
            try:
                results.append(f(x, places).item())
            except IndexError as error:
                results.append(str(error))
        assert results[0] == results[1]
        assert total.item() == fast_total.item()
        assert (w.grad is None) == (fast_w.grad is None)
        assert w.grad is None or w.grad.tolist() == fast_w.grad.tolist()
        w.grad, fast_w.grad = dilim.ones(3), dilim.ones(3)
    assert fast.statistics.native_calls == fast.statistics.calls == 5
    assert fast._variants[0].direct is not None


def test_a_write_is_counted_after_an_error_too():
    total = dilim.zeros(3)

    @compiled
    def f(x, places):
        total.add_(1.0)
        return dilim.take(x, places, axis=0)

    f(dilim.ones(3), dilim.tensor([1]))
    x = dilim.ones(3, requires_grad=True)
    y = (x * total).sum()
    with pytest.raises(IndexError):
        f(dilim.ones(3), dilim.tensor([5]))
    with pytest.raises(dilim.errors.GradientError, match="written in place"):
        y.backward()


def test_results_are_fresh():
    f = compiled(lambda x: (x + 1.0, x + 1.0, x * 2.0))
    x = dilim.ones(3)
    first = f(x)
    values = [y.tolist() for y in first]
    second = f(x)
    memory = [y.numpy() for y in (*first, *second, x)]
    assert not any(np.may_share_memory(a, b) for k, a in enumerate(memory) for b in memory[:k])
    second[0].fill_(7.0)
    f(x)
    assert [y.tolist() for y in first] == values


def test_a_result_dies_when_it_is_dropped():
    f = compiled(lambda x: x + 1.0)
    f(dilim.ones(3))
    result = f(dilim.ones(3))
    seen = weakref.ref(result)
    del result
    assert seen() is None


@pytest.mark.filterwarnings("ignore:f. 5 programs:dilim.errors.PerformanceWarning")
def test_numbers_and_objects_among_the_arguments():
    class Box:
        scale = 2.0

    def f(x, k, box, word):
        return (x * k + box.scale) if word == "go" else x, k, box, word

    fast, box = compiled(f), Box()
    x = dilim.ones(3)
    for arguments in [
        (x, 1, box, "go"),
        (x, 2, box, "go"),
        (x, 2.5, box, "go"),
        (x, 2, box, "no"),
        (x, 2**40, box, "go"),
        (x, 3, box, "go"),
    ]:
        y, *rest = fast(*arguments)
        z, *others = f(*arguments)
        assert y.tolist() == z.tolist()
        assert rest == others
        assert [type(a) for a in rest] == [type(a) for a in others]
        assert rest[1] is box
    box.scale = 5.0
    assert fast(x, 1, box, "go")[0].tolist() == [6.0] * 3


def test_several_threads_at_once():
    w = dilim.ones((64, 64))

    @compiled
    def f(x):
        for _ in range(20):
            x = x @ w * (1.0 / 64.0)
        return x

    inputs = [dilim.full((64, 64), float(k)) for k in range(4)]
    wanted = [f(x).numpy().tobytes() for x in inputs]
    found = [[] for _ in inputs]

    def work(k):
        for _ in range(50):
            found[k].append(f(inputs[k]).numpy().tobytes() == wanted[k])

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [len(each) for each in found] == [50] * 4
    assert all(map(all, found))


def training(make):
    w = dilim.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def f(x):
        w.grad = None
        loss = (w * x * x).sum()
        loss.backward()
        return loss.detach()

    return make(f), w


HOLDS = {
    "the tensor": lambda g: g,
    "an alias": lambda g: g.detach(),
    "a view": lambda g: g[1:],
    "its array": lambda g: g.numpy(),
    "a view of its array": lambda g: g.numpy()[1:],
    "a buffer": lambda g: memoryview(g.numpy()),
    "an import": lambda g: np.from_dlpack(g),
    "its memory": lambda g: g._storage,
}


@pytest.mark.parametrize("how", HOLDS)
def test_a_gradient_that_somebody_has_is_not_used_again(how):
    f, w = training(compiled)
    for k in range(8):
        f(dilim.full(3, float(k)))
    held = []
    for k in range(8, 16):
        f(dilim.full(3, float(k)))
        held.append(HOLDS[how](w.grad))
    for k in range(16, 24):
        f(dilim.full(3, float(k)))
    for k, each in enumerate(held, 8):
        assert set(np.asarray(getattr(each, "buffer", each)).tolist()) == {float(k * k)}


def test_a_gradient_that_nobody_has_is_used_again():
    f, w = training(compiled)
    seen = []
    for k in range(20):
        f(dilim.full(3, float(k)))
        seen.append(w.grad.numpy().ctypes.data)
    assert len(set(seen[-10:])) == 2
    assert len(set(seen[-10::2])) == 1


CHANGES = {
    "name": lambda g: setattr(g, "name", "mine"),
    "numbers": lambda g: g.mul_(2.0),
    "flag": lambda g: g.requires_grad_(),
    "its own gradient": lambda g: setattr(g, "grad", g),
    "identity": lambda g: g.uid,
    "writeable": lambda g: setattr(g._data.flags, "writeable", False),
    "type": lambda g: g.move_("cpu"),
    "shape": lambda g: setattr(g._data, "shape", (1, 3)),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_changed_gradient_is_new_in_the_next_call(how):
    f, w = training(compiled)
    uids = set()
    for k in range(12):
        f(dilim.full(3, float(k)))
        grad = w.grad
        assert grad.name is None
        assert grad.grad is None
        assert not grad.requires_grad
        assert grad.tolist() == [float(k * k)] * 3
        assert grad._data.flags.writeable
        assert grad._data.shape == (3,)
        if k > 5:
            CHANGES[how](grad)
            assert grad.uid not in uids
            uids.add(grad.uid)
        del grad


def test_references_to_gradients_end_with_them():
    f, w = training(compiled)
    for k in range(8):
        f(dilim.full(3, float(k)))
    for k in range(8):
        grad = weakref.ref(w.grad)
        f(dilim.full(3, float(k)))
        assert grad() is None or grad() is not w.grad


def test_threads_that_train_together_do_not_mix_gradients():
    w = dilim.ones((64, 64), requires_grad=True)

    @compiled
    def f(x):
        w.grad = None
        (w * x).sum().backward()
        grad = w.grad
        return grad.sum()

    inputs = [dilim.full((64, 64), float(k)) for k in range(1, 5)]
    for _ in range(3):
        f(inputs[0])  # as plain Python, one thread would take another's gradient away
    wrong = []

    def work(x, expected):
        for _ in range(200):
            f(x)
            grad = w.grad
            if grad is None:  # another thread has just begun
                continue
            found = set(np.unique(grad.numpy()).tolist())
            if len(found) != 1:  # another thread's may have been added, but to the whole of it
                wrong.append(found)

    workers = [threading.Thread(target=work, args=(x, k)) for k, x in enumerate(inputs, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
