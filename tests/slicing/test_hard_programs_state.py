"""Hard programs for a slicer: lists, objects, errors in the middle, variants, training."""

import warnings

import numpy as np
import pytest

import dilim
from slicing.comparing import Call, check


def test_tensors_appended_in_a_loop_are_handles():
    seen = check(
        """
        def f(t, n):
            log = []
            for i in range(n):
                t = t * 0.5 + i
                log.append(t)
            return log
        """,
        *[Call(f"[dilim.ones(2), {n}]") for n in (3, 5, 5)],
        receives=0,
    )
    assert seen.transfers[-1][0] in (0, 5)
    assert seen.value("result of call 3") == "list of 5"


def test_a_tensor_appended_again_and_again_is_one_object():
    check(
        """
        def f(t):
            log = []
            for i in range(4):
                if i % 2 == 0:
                    t = t + 1
                log.append(t)
                log[0] += 10
            return log, t
        """,
        *[Call("[dilim.ones(2)]")] * 3,
        receives=0,
    )


LOG = """
def f(t, n):
    log = []
    for i in range(n):
        t = t * 0.5
        log.append(float(t.sum()))
    return log
"""


def test_numbers_appended_in_a_loop_are_sent_once_per_pass():
    check(LOG, *[Call(f"[dilim.ones(2), {n}]") for n in (3, 7, 7)], sends=7, receives=0)


def test_mutations_before_a_host_exception_are_seen_later_ones_not():
    seen = check(
        """
        class Box:
            def __init__(self):
                self.w = dilim.tensor([1.0, 2.0])
                self.n = 0

        def look(k):
            if k > 2:
                raise KeyError(f"too many: {k}")
            return k * 0.5

        def f(box, notes, names, k):
            notes.append(box.w)
            box.w = box.w * 2.0
            names["first"] = box.w.sum()
            box.n += 1
            scale = look(k)
            box.w = box.w * scale
            names["second"] = box.w
            notes.append(k)
            return box.w
        """,
        *[
            Call(f"[BOX, NOTES, NAMES, {k}]", before="BOX, NOTES, NAMES = Box(), [], {}")
            for k in (1, 2, 3, 1, 3)
        ],
        receives=0,
        raises=(3, 5),
    )
    assert seen.error(5) == "KeyError: 'too many: 3'"
    assert seen.value("NOTES") == "list of 1"
    assert seen.value("BOX.n") == "int 1"


def test_a_try_is_of_the_host_and_the_rest_of_the_graph():
    seen = check(
        """
        def check(y):
            if y > 3:
                raise ValueError("above 3")

        def f(t):
            t = t * 2
            try:
                y = float(t.sum())
                check(y)
            except ValueError:
                t = -t
            t = t + 1
            return dilim.exp(t * 0.1)
        """,
        *[Call(f"[dilim.full(2, {k})]") for k in (0.5, 1.0, 0.25, 1.5)],
    )
    assert seen.compiled.statistics.tensor_operations_native >= 4


def test_a_failed_assert_in_the_middle_and_the_next_call():
    seen = check(
        """
        def f(y):
            y = y * 2
            print("before", y)
            assert y.mean() > 0, "bad"
            print("after")
            return y + 1
        """,
        Call("[dilim.ones(2)]"),
        Call("[-dilim.ones(2)]"),
        Call("[dilim.ones(2)]"),
        sends=1,
        receives=0,
        variants=1,
        raises=(2,),
    )
    assert seen.error(2) == "AssertionError: bad"
    assert seen.line(2) == 4
    assert len(seen.printed(2)) == 1
    assert len(seen.printed(3)) == 2


def test_other_dtypes_shapes_and_flags_are_other_variants():
    check(
        """
        def f(t, twice=False, mode="sum"):
            if twice:
                t = t * 2
            return t.sum() if mode == "sum" else t.max()
        """,
        Call("[dilim.ones(3)]"),
        Call("[dilim.ones(3, dtype='float64')]"),
        Call("[dilim.ones((2, 2))]"),
        Call("[dilim.ones(3), True]"),
        Call("[dilim.ones(3)]", "{'mode': 'max'}"),
        Call("[dilim.ones(3)]", "{'mode': 'max', 'twice': True}"),
        Call("[dilim.ones(3)]"),
        sends=0,
        receives=0,
        variants=6,
    )


def test_after_eight_variants_the_rest_is_eager_with_one_warning():
    def f(t):
        return (t * 2).sum()

    compiled = dilim.compile(f, backend="reference", compile_after=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in [*range(1, 13), *range(1, 13)]:
            assert compiled(dilim.ones(n)).item() == 2.0 * n
    statistics = compiled.statistics
    assert statistics.variants == 8
    assert statistics.native_calls == 16
    assert any("shape" in str(w.message) and "'t'" in str(w.message) for w in caught)
    assert len(caught) <= 2  # that it compiles often, and that it gives up


def test_a_number_sent_in_each_pass_is_warned_of_once(monkeypatch):
    monkeypatch.setattr("dilim.slicing.meters.TRANSFER", 1.0)  # so that no time decides
    compiled = dilim.compile(_logged, backend="reference", compile_after=0)
    with pytest.warns(UserWarning, match=r"(sent|host).*loop") as caught:
        results = [compiled(dilim.ones(2), 400) for _ in range(3)]
    assert results == [_logged(dilim.ones(2), 400)] * 3
    assert len(caught) == 1


def _logged(t, n):
    log = []
    for _ in range(n):
        t = t * 0.5
        log.append(float(t.sum()))
    return log


TRAINING = """
RNG = dilim.Generator(0)
X = RNG.normal((16, 3))
Y = (X @ dilim.tensor([[1.0], [-2.0], [0.5]])) + 0.25
MODEL = nn.MLP(3, [8, 1], "tanh", generator=RNG)
OPTIMIZER = optim.Adam(MODEL.parameters(), 0.01)

def f(steps):
    for step in range(1, steps + 1):
        OPTIMIZER.zero_grad()
        loss = nn.losses.mse(MODEL(X), Y)
        loss.backward()
        OPTIMIZER.step()
        if step % 10 == 0:
            print(step, loss.item())
    return loss.item()
"""


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_a_training_loop_sends_only_where_it_prints(backend):
    seen = check(
        TRAINING,
        *[Call(f"[{steps}]") for steps in (20, 5, 40)],
        sends=4,
        receives=0,
        backend=backend,
    )
    assert len(seen.printed(3)) == 4


STEP = """
RNG = dilim.Generator(0)
MODEL = nn.MLP(3, [8, 1], generator=RNG)
OPTIMIZER = optim.Adam(MODEL.parameters(), 0.01)
COUNT = 0

def f(x, y):
    global COUNT
    prediction = MODEL(x)
    loss = nn.losses.mse(prediction, y)
    OPTIMIZER.zero_grad()
    loss.backward()
    OPTIMIZER.step()
    COUNT += 1
    if COUNT % 3 == 0:
        print(f"{COUNT}: {loss.item():.6f}")
    return loss.detach()
"""


def test_a_training_step_is_one_program():
    seen = check(
        STEP,
        *[Call("[RNG.normal((4, 3)), RNG.normal((4, 1))]")] * 7,
        sends=0,
        receives=0,
    )
    assert len(seen.printed(6)) == 1
    assert seen.value("COUNT") == "int 7"


CLASSIFIER = """
X = dilim.tensor([[1.0, 0.2 * k, (k * 7 % 11) / 11] for k in range(20)])
LABELS = dilim.tensor([[float(k % 3 == 0)] for k in range(20)])
RATE = 0.05

def f(w, epochs, each):
    for epoch in range(epochs):
        y = X @ w
        h = dilim.sigmoid(y)
        w = w + RATE * (X.T @ (LABELS - h))
        if epoch % each == 0:
            loss = (dilim.softplus(y) - LABELS * y).mean()
            print(f"epoch: {epoch}, LogLoss v2: {loss.item()}")
    return w
"""


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_the_linear_classifier(backend):
    seen = check(
        CLASSIFIER,
        Call("[dilim.zeros((3, 1)), 30, 1]"),
        Call("[dilim.zeros((3, 1)), 301, 100]"),
        Call("[dilim.zeros((3, 1)), 301, 100]", before="RATE = 0.01"),
        sends=4,
        receives=0,
        variants=1,
        backend=backend,
    )
    assert len(seen.printed(1)) == 30
    assert seen.value("result of call 2") != seen.value("result of call 3")


ROLLOUT = """
class Corridor:
    def __init__(self, length=6):
        self.length = length
        self.rng = random.Random(3)
        self.place = 0

    def reset(self):
        self.place = self.rng.randrange(2)
        return np.array([self.place, self.length - self.place], np.float32)

    def step(self, action):
        self.place += 1 if action == 1 else -1
        self.place = max(0, self.place)
        done = self.place >= self.length
        obs = np.array([self.place, self.length - self.place], np.float32)
        return obs, float(done) - 0.01, done

ENV = Corridor()
Q = nn.MLP(2, [8, 2], generator=dilim.Generator(2))
TARGET = nn.MLP(2, [8, 2], generator=dilim.Generator(3))
REPLAY = []

def f(steps):
    obs = ENV.reset()
    total = 0.0
    for step in range(steps):
        action = int(Q(dilim.tensor(obs)).argmax())
        following, reward, done = ENV.step(action)
        REPLAY.append((obs, action, reward, following, done))
        total += reward
        obs = ENV.reset() if done else following
        if step % 10 == 0:
            TARGET.load_state_dict(Q.state_dict())
    return total
"""


def test_a_rollout_sends_the_action_and_receives_the_observation():
    # beside the observation: whether the episode is over, for the graph decides what comes next
    seen = check(ROLLOUT, *[Call("[25]")] * 3, sends=25, receives=25 + 25)
    assert seen.value("REPLAY") == "list of 75"


def test_results_of_a_rollout_are_those_of_numpy_rows():
    seen = check(
        """
        def f(rows, w):
            best = []
            for row in rows:
                scores = dilim.tensor(row) @ w
                best.append(int(scores.argmax()))
            return best
        """,
        *[Call("[np.eye(3, dtype=np.float32), dilim.tensor([[1., 2.], [4., 3.], [0., 0.]])]")] * 3,
    )
    assert seen.value("result of call 1[1]") == "int 0"
    assert np.eye(3).shape == (3, 3)
