import numpy as np
import pytest

import dilim
from dilim.errors import EnvironmentContractError
from dilim.rl import Bandit


def pulls(env, arm, count):
    rewards = []
    env.reset(seed=1)
    for _ in range(count):
        observation, reward, terminated, truncated, _ = env.step(arm)
        assert observation.tolist() == [0.0]
        assert terminated
        assert not truncated
        rewards.append(reward)
        env.reset()
    return np.array(rewards)


def test_payouts_have_the_mean_and_spread_of_their_arm():
    env = Bandit([0.1, 0.5, 0.9], std=0.1)
    assert env.best_arm == 2
    for arm, mean in enumerate(env.means):
        rewards = pulls(env, arm, 800)
        assert rewards.mean() == pytest.approx(mean, abs=0.012)
        assert rewards.std() == pytest.approx(0.1, abs=0.01)
    assert (pulls(Bandit([0.25, 1.0], std=0.0), 0, 5) == 0.25).all()


def test_no_payout_is_infinite():
    env = Bandit([0.0], std=1.0)
    start = env.initial(dilim.Generator(0), (200_000,))
    payouts, _ = env.transition(
        start, dilim.zeros((200_000,), dtype=dilim.int64), dilim.Generator(1)
    )
    assert float(abs(payouts).max()) < 5.78  # the logarithm is never that of 0


def test_ten_arms_by_default_that_belong_to_the_task():
    env = Bandit()
    assert len(env.means) == 10
    assert env.std == 1.0
    assert all(0.0 <= mean < 1.0 for mean in env.means)
    env.reset(seed=5)
    assert Bandit().means == env.means
    assert Bandit(arms_seed=1).means != env.means


@pytest.mark.parametrize("options", [{"means": []}, {"means": [float("nan")]}, {"std": -1.0}])
def test_impossible_arms_are_refused(options):
    with pytest.raises(EnvironmentContractError, match="expected at least one finite mean"):
        Bandit(**options)


def test_the_drawing_names_arms_and_payout():
    env = Bandit([0.5, 1.0], std=0.0, render_mode="ansi")
    env.reset(seed=0)
    assert env.render().splitlines()[-1] == "not pulled yet"
    env.step(1)
    first, second, last = env.render().splitlines()
    assert first.count("#") * 2 == second.count("#") == 40
    assert last == "paid 1.000"
