"""Agents that differ in their seed only, trained in processes of their own."""

import gymnasium
import numpy as np
import pytest
from rl_agents import same_state
from rl_worlds import Corridor

import dilim
from dilim.rl import DQN, REINFORCE, Bandit, GridWorld, SeedRun, SeedRuns, train_seeds

SMALL = {"hidden_sizes": [8], "batch_size": 8}


def test_each_has_the_bits_of_the_agent_alone_and_goes_on_like_it():
    env = GridWorld(4)
    runs = train_seeds(DQN, env, [5, 2, 9], options=SMALL, processes=2, episodes=12)
    assert [run.seed for run in runs] == [5, 2, 9]
    for run in runs:
        alone = DQN.for_env(env, seed=run.seed, **SMALL)
        assert alone.train(env, episodes=12) == run.returns
        assert alone.evaluate(env, 20) == run.evaluation
        assert same_state(alone, run.agent)
        assert alone.train(env, steps=50) == run.agent.train(GridWorld(4), steps=50)
        assert same_state(alone, run.agent)
    assert runs[0].returns != runs[1].returns


def test_an_environment_of_the_script_in_python_is_new_for_each_seed():
    class Wearing(Corridor):
        """Rewards fall over the life of an environment."""

        def step(self, action):
            self.wear = getattr(self, "wear", 0) + 1
            observation, reward, *rest = super().step(action)
            return observation, reward / self.wear, *rest

    runs = train_seeds(DQN, Wearing(), 3, options=SMALL, processes=1, episodes=4)
    for run in runs:
        env = Wearing()
        assert DQN.for_env(env, seed=run.seed, **SMALL).train(env, episodes=4) == run.returns


def test_environments_that_hold_tensors_are_sent():
    env = Bandit([0.1, 0.9])
    env.reset(seed=3)
    runs = train_seeds(REINFORCE, env, 2, processes=1, episodes=5)
    assert [len(run.returns) for run in runs] == [5, 5]


def test_runs_are_told_as_they_end_and_summed_up():
    told = []
    runs = train_seeds(
        DQN, GridWorld(3), 4, options=SMALL, processes=2, steps=64, on_run=told.append
    )
    assert sorted(run.seed for run in told) == [0, 1, 2, 3]
    assert runs.scores == [np.mean(run.evaluation) for run in runs]
    made = SeedRuns(
        [SeedRun(k, None, [], [x, x]) for k, x in enumerate([4.0, 1.0, 3.0, 2.0, 10.0])]
    )
    assert made.quartiles == (2.0, 3.0, 4.0)
    assert made.median == 3.0
    assert made.best.seed == 4
    assert repr(made) == "<SeedRuns of 5: median 3, half of them 2 to 4, all 1 to 10>"
    assert [run.seed for run in made[1:3]] == [1, 2]


class Breaking(Corridor):
    def step(self, action):
        if getattr(self, "count", 0) > 30:
            raise RuntimeError("the belt came off")
        self.count = getattr(self, "count", 0) + 1
        return super().step(action)


def test_an_error_is_told_with_the_place_where_it_was_raised():
    with pytest.raises(RuntimeError, match="the belt came off") as caught:
        train_seeds(DQN, Breaking(), 4, options=SMALL, processes=2, episodes=50)
    assert 'raise RuntimeError("the belt came off")' in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"seeds": 0}, ValueError, "a number of seeds from 1 on"),
        ({"seeds": [1, 1]}, ValueError, "different seeds"),
        ({"seeds": 2, "on_episode": print}, ValueError, "on_run="),
        ({"seeds": 2, "options": {"gamma": 2.0}}, ValueError, "expected gamma from 0 to 1"),
        ({"seeds": 1, "processes": 0}, ValueError, "processes"),
    ],
)
def test_mistakes_are_told_before_anything_runs(arguments, error, text):
    with pytest.raises(error, match=text):
        train_seeds(DQN, GridWorld(3), **{"steps": 5, **arguments})


def test_an_agent_or_a_seed_beside_the_seeds_is_refused():
    with pytest.raises(TypeError, match="a class of agents, such as DQN"):
        train_seeds(DQN(2, [4], 4, seed=1), GridWorld(3), 2, steps=1)
    with pytest.raises(TypeError, match=r"expected seeds=\[...\]"):
        train_seeds(DQN, GridWorld(3), 2, steps=1, seed=3)


def test_what_train_refuses_is_told():
    with pytest.raises(ValueError, match="expected episodes= or steps="):
        train_seeds(DQN, GridWorld(3), 1)
    with pytest.raises(dilim.errors.EnvironmentContractError):
        train_seeds(DQN, gymnasium.make("Pendulum-v1"), 2, steps=1)
