import json
import math

import numpy as np
import pytest

from dilim.errors import NonFiniteError
from dilim.rl import RewardTracker, discounted_returns


def test_no_finished_episode_yet():
    tracker = RewardTracker()
    assert tracker.window_size == 100
    assert tracker.total_episodes == 0
    assert (tracker.last_reward, tracker.running_average, tracker.best_reward) == (None,) * 3
    assert str(tracker) == "no finished episode yet"
    assert "nan" not in json.dumps(tracker.state_dict()).lower()


def test_the_window_forgets_and_the_best_does_not():
    tracker = RewardTracker(window_size=3)
    for reward in (-1.0, 9.0, 2.0, 3.0, 4.0):
        tracker.add(reward)
    assert tracker.total_episodes == 5
    assert tracker.last_reward == 4.0
    assert tracker.running_average == 3.0
    assert tracker.best_reward == 9.0
    assert str(tracker) == "episode 5: last 4.0, average 3.0, best 9.0"


def test_the_best_may_be_negative():
    tracker = RewardTracker()
    tracker.add(-5.0)
    assert tracker.best_reward == -5.0


def test_the_state_goes_through_json():
    tracker = RewardTracker(window_size=2)
    for reward in (0.1, 0.7, 1 / 3):
        tracker.add(reward)
    other = RewardTracker()
    other.load_state_dict(json.loads(json.dumps(tracker.state_dict())))
    for each in (tracker, other):
        each.add(5.0)
    assert other.state_dict() == tracker.state_dict()
    assert other.running_average == (5.0 + 1 / 3) / 2


def test_bad_numbers_are_refused():
    tracker = RewardTracker()
    with pytest.raises(NonFiniteError, match="expected a finite return, received nan"):
        tracker.add(math.nan)
    assert tracker.total_episodes == 0
    with pytest.raises(ValueError, match="expected window_size >= 1, received 0"):
        RewardTracker(0)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.99, 1.0])
def test_returns_are_the_discounted_sums(gamma):
    rewards = np.random.default_rng(0).normal(size=30)
    expected = [sum(gamma**k * r for k, r in enumerate(rewards[t:])) for t in range(30)]
    np.testing.assert_allclose(discounted_returns(rewards, gamma), expected, rtol=1e-12)


def test_returns_of_little():
    assert discounted_returns([], 0.9).tolist() == []
    assert discounted_returns([2.0], 0.9).tolist() == [2.0]
    rewards = np.array([1.0, 1.0])
    assert discounted_returns(rewards, 0.5).tolist() == [1.5, 1.0]
    assert rewards.tolist() == [1.0, 1.0]
