"""Links, returns of several steps and priorities against closed forms in NumPy."""

import numpy as np
import pytest

import dilim
from dilim.rl import ReplayBuffer
from dilim.rl.links import Links, returns_of_steps
from dilim.rl.priorities import LEAST_ERROR, Priorities, SumTree


class Played:
    """Steps of N environments, kept whole beside a buffer.

    The number of its step is the reward; what is seen is drawn from a few values, so that other
    episodes may begin with what was seen at an end.
    """

    def __init__(self, buffer, count=1, seed=0):
        self.buffer, self.count = buffer, count
        self.rng = np.random.default_rng(seed)
        self.steps = []  # of each: environment, observation, following, terminated, truncated
        self.seen = self.fresh(np.ones(count, bool), np.zeros((count, 2), np.float32))
        buffer.prepare_for(count)

    def fresh(self, where, seen):
        drawn = self.rng.integers(0, 4, seen.shape).astype(np.float32)
        return np.where(where[:, None], drawn, seen)

    def play(self, times, ends=0.1, cuts=0.1):
        everywhere = np.ones(self.count, bool)
        for _ in range(times):
            after = self.fresh(everywhere, self.seen)
            terminated = self.rng.random(self.count) < ends
            truncated = (self.rng.random(self.count) < cuts) & ~terminated
            numbers = len(self.steps) + np.arange(self.count)
            self.buffer.add(
                *map(dilim.asarray, (self.seen, numbers, numbers.astype(np.float32), after)),
                *map(dilim.asarray, (terminated, truncated)),
            )
            self.buffer.make_room()
            for k in range(self.count):
                self.steps.append((k, self.seen[k], after[k], terminated[k], truncated[k]))
            self.seen = self.fresh(terminated | truncated, after)

    def following(self, number):
        """The step after one in its episode, or None."""
        lane, _, _, terminated, truncated = self.steps[number]
        if terminated or truncated:
            return None
        later = range(number + 1, len(self.steps))
        return next((k for k in later if self.steps[k][0] == lane), None)


KINDS = {"linked": {"linked": True}, "saving": {"memory_saving": True}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "capacity"), [(1, 50), (3, 50), (4, 9), (5, 5), (1, 1)])
def test_several_steps_and_what_follows_them(kind, count, capacity):
    buffer = ReplayBuffer(capacity, 2, **KINDS[kind])
    played = Played(buffer, count)
    for times in (3, 40, 40):
        played.play(times)
        numbers = np.arange(len(played.steps))[-len(buffer) :]
        places = dilim.asarray(numbers % capacity)
        for n in (1, 2, 5):
            (observations, actions, rewards, following, terminated), discounts = buffer.returns(
                places, n, 0.5
            )
            assert actions.tolist() == numbers.tolist()
            for row, number in enumerate(numbers):
                last, total = number, float(number)
                for k in range(1, n):
                    after = played.following(last)
                    if after is None:
                        break
                    last, total = after, total + 0.5**k * after
                else:
                    k = n
                assert observations[row].tolist() == played.steps[number][1].tolist()
                assert rewards[row].item() == pytest.approx(total, rel=1e-6)
                assert discounts[row].item() == 0.5**k
                assert terminated[row].item() == played.steps[last][3]
                if not played.steps[last][3]:
                    assert following[row].tolist() == played.steps[last][2].tolist()


def test_the_table_of_cuts_grows_when_every_episode_is_cut():
    buffer = ReplayBuffer(2000, 2, memory_saving=True)
    played = Played(buffer, 3)
    played.play(900, ends=0.0, cuts=1.0)
    assert buffer.following.size == 0
    assert buffer.links.cuts.shape[0] > 2000
    numbers = np.arange(len(played.steps))[-2000:]
    after = buffer.at(dilim.asarray(numbers % 2000))[3]
    assert after.tolist() == [played.steps[k][2].tolist() for k in numbers]


def test_the_table_of_cuts_stays_small_where_few_are():
    buffer = ReplayBuffer(2000, 2, memory_saving=True)
    Played(buffer, 2).play(3000, ends=0.05, cuts=0.02)
    assert buffer.links.cuts.shape[0] == 257


def test_an_episode_that_is_left_is_not_linked_to_the_next():
    buffer = ReplayBuffer(20, 1, memory_saving=True)
    no = dilim.asarray([False])

    def step(seen, after):
        one = dilim.ones((1,))
        buffer.add(dilim.tensor([[seen]]), dilim.asarray([0]), one, dilim.tensor([[after]]), no, no)

    step(0.0, 1.0)
    step(1.0, 2.0)  # and its environment is reset: what comes next begins elsewhere
    step(0.0, 1.0)
    buffer.forget_episode()  # left, though the next one begins with what was seen last
    step(1.0, 5.0)
    assert buffer.links.next[:4].tolist() == [1, -2, -3, -1]
    assert buffer.at(dilim.arange(4))[3].tolist() == [[1.0], [2.0], [1.0], [5.0]]


def test_links_need_to_know_of_cuts():
    buffer = ReplayBuffer(4, 1, linked=True)
    one = dilim.ones((1, 1))
    with pytest.raises(ValueError, match="needs truncated="):
        buffer.add(one, dilim.asarray([0]), one[0], one, dilim.asarray([False]))


def test_saving_takes_half_the_memory(monkeypatch):
    monkeypatch.setattr("dilim.rl.replay._free_memory", lambda: 60_000)
    with pytest.raises(MemoryError, match=r"take 78\.1 KiB, 39\.1 KiB for what is seen before"):
        ReplayBuffer(10_000, 1)
    ReplayBuffer(10_000, 1, memory_saving=True)
    ReplayBuffer(10_000, 3, dtype=dilim.uint8, memory_saving=True)
    with pytest.raises(
        MemoryError, match=r"\(uint8\) take 97\.7 KiB; 58\.6 KiB are free\. At most"
    ):
        ReplayBuffer(10_000, 10, dtype=dilim.uint8, memory_saving=True)


def test_returns_of_one_long_episode():
    rewards = dilim.ones((100,))
    following = dilim.asarray([*range(1, 100), -1])
    total, last, discounts = returns_of_steps(rewards, following, dilim.asarray([0, 97]), 50, 0.9)
    assert total.tolist() == pytest.approx([(1 - 0.9**50) / 0.1, 1 + 0.9 + 0.81], rel=1e-5)
    assert last.tolist() == [49, 99]
    assert discounts.tolist() == pytest.approx([0.9**50, 0.9**3], rel=1e-5)


# --- priorities -----------------------------------------------------------------------------


@pytest.mark.parametrize("capacity", [1, 2, 5, 64, 100])
def test_a_sum_tree_finds_what_sums_from_the_left_say(capacity):
    rng = np.random.default_rng(0)
    tree, values = SumTree(capacity), np.zeros(capacity)
    for _ in range(20):
        places = rng.permutation(capacity)[: rng.integers(1, capacity + 1)]
        values[places] = np.where(rng.random(len(places)) < 0.3, 0.0, rng.random(len(places)))
        values[0] = 0.5
        tree.put(dilim.asarray(places), dilim.asarray(values[places]))
        tree.put(dilim.asarray([0]), dilim.asarray([0.5], dtype=dilim.float64))
        assert tree.total.item() == pytest.approx(values.sum(), rel=1e-12)
        points = np.concatenate([[0.0], rng.random(500) * tree.total.item()])
        found = tree.find(dilim.asarray(points)).numpy()
        assert (values[found] > 0.0).all()
        expected = np.searchsorted(np.cumsum(values), points, side="right")
        clear = np.abs(np.cumsum(values)[:, None] - points).min(axis=0) > 1e-9
        assert (found == expected)[clear].all()


def test_a_tree_finds_no_zero_where_sums_were_rounded():
    tree = SumTree(4)
    tree.put(dilim.arange(3), dilim.asarray([1e16, 1.0, 1.0], dtype=dilim.float64))
    points = dilim.asarray([0.0, 1e16, np.nextafter(tree.total.item(), 0)], dtype=dilim.float64)
    assert set(tree.find(points).tolist()) <= {0, 1, 2}


def test_steps_are_drawn_and_weighted_as_the_paper_says():
    alpha, beta, errors = 0.7, 0.4, np.array([0.1, 1.0, 3.0, 0.0, 2.0])
    priorities = Priorities(8, alpha)
    priorities.add(dilim.arange(5))
    assert priorities.tree.at(dilim.arange(8)).tolist() == [1.0] * 5 + [0.0] * 3
    priorities.rate(dilim.arange(5), dilim.asarray(-errors))
    p = (errors + LEAST_ERROR) ** alpha
    share = p / p.sum()
    places = priorities.draw(dilim.Generator(0), 20_000)
    drawn = np.bincount(places.numpy(), minlength=8) / 20_000
    assert drawn[:5] == pytest.approx(share, abs=2e-4)  # one from each part: hardly any noise
    weights = priorities.weights(dilim.asarray([1, 2, 4]), beta)
    expected = (5 * share[[1, 2, 4]]) ** -beta
    assert weights.tolist() == pytest.approx(expected / expected.max(), rel=1e-6)
    priorities.add(dilim.asarray([5]))  # a new one is drawn as soon as the best
    assert priorities.tree.at(dilim.asarray([5])).item() == pytest.approx(p.max())


def test_of_several_priorities_at_one_place_the_last_counts():
    tree = SumTree(4)
    tree.put(dilim.asarray([1, 1, 3]), dilim.asarray([5.0, 2.0, 1.0], dtype=dilim.float64))
    assert tree.sums.tolist() == [0.0, 3.0, 2.0, 1.0, 0.0, 2.0, 0.0, 1.0]


def test_links_of_nothing_are_saved():
    links = Links(4, 2, dilim.float32, keeps_cuts=True)
    again = Links(4, 2, dilim.float32, keeps_cuts=True)
    again.load_state_dict(links.state_dict(0))
    assert again.next.tolist() == [-1] * 4
