"""Agents that act with numbers: in a Box, in many environments, and what they learn."""

import gymnasium
import numpy as np
import pytest
from rl_agents import IN_A_BOX, SEVERAL, made, same_state
from target_world import Target

import dilim
from dilim.errors import EnvironmentContractError
from dilim.rl import A2C, PPO, SAC, TD3, Agent, CartPole, Pendulum
from dilim.rl.loop import play
from dilim.rl.training import enter

every_box_agent = pytest.mark.parametrize("kind", IN_A_BOX)


@every_box_agent
@pytest.mark.parametrize("count", [1, 4])
def test_all_of_it_is_one_native_program_with_the_same_bits(kind, count):
    agents = []
    for loop in (play, dilim.compile(play, compile_after=0, strict=True)):
        agent = made(kind, Target(), seed=3, hidden_sizes=[8])
        world = enter(agent, Target(), None, count)
        for steps in (170, 1, 99):
            loop(agent, world, steps, 1000)
        agents.append(agent)
    assert agents[0].updates > 0
    assert same_state(*agents)


@every_box_agent
def test_resumed_is_uninterrupted(kind, tmp_path):
    whole, agent = (made(kind, Pendulum(), seed=1, hidden_sizes=[8]) for _ in range(2))
    returns = agent.train(Pendulum(), steps=320, num_envs=2)
    agent.save(tmp_path / "agent")
    agent = Agent.load(tmp_path / "agent")
    returns += agent.train(Pendulum(), steps=480, num_envs=2)
    assert returns == whole.train(Pendulum(), steps=800, num_envs=2)
    assert same_state(agent, whole)


@every_box_agent
def test_every_action_is_in_the_box(kind):
    env = gymnasium.make("Pendulum-v1")
    agent = made(kind, env, seed=0, hidden_sizes=[8])
    agent.train(env, steps=150)
    for explore in (True, False):
        action = agent.act([1.0, 0.0, 0.0], explore=explore)
        assert env.action_space.contains(action)
        assert action is not agent.act([1.0, 0.0, 0.0], explore=explore)
    assert len(agent.evaluate(env, 2, seed=0)) == 2


class Recording(Pendulum):
    """Keeps the actions that it gets."""

    def __init__(self):
        super().__init__()
        self.actions = []

    def step(self, action):
        self.actions.append(action.copy())
        return super().step(action)


@pytest.mark.parametrize("kind", [A2C, PPO])
def test_actions_are_clipped_for_the_environment_and_learned_from_as_they_were_drawn(kind):
    env = Recording()
    agent = kind.for_env(env, seed=0, hidden_sizes=[4], rollout_length=64)
    with dilim.no_grad():
        agent.network.actor.log_std.fill_(1.0)
    agent.train(env, steps=50)
    drawn, got = agent.rollout.actions[:50, 0].numpy(), np.array(env.actions)
    assert np.abs(drawn).max() > 1.5
    np.testing.assert_array_equal(got, np.clip(2.0 * drawn, -2.0, 2.0))


@every_box_agent
def test_an_action_that_awaits_its_outcome_is_saved(kind, tmp_path):
    agent = made(kind, Target(), seed=0)
    agent.act([0.5, 0.5])
    agent.save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent")
    for each in (agent, loaded):
        each.observe(1.0, [0.0, 0.0], terminated=False)
    assert same_state(agent, loaded)


@every_box_agent
def test_another_box_is_refused_before_training(kind):
    agent = made(kind, Pendulum(), seed=0)
    other = Pendulum()
    other.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
    with pytest.raises(
        EnvironmentContractError,
        match=r"has a Box of shape \(1,\) from -2 to 2, Pendulum has a Box of shape \(1,\) from -1",
    ):
        agent.train(other, steps=1)


@pytest.mark.parametrize("kind", [kind for kind in IN_A_BOX if kind not in SEVERAL])
def test_those_that_need_a_box_say_so(kind):
    message = f"{kind.__name__}: expected a Box of actions, .* received 2 actions from 0"
    with pytest.raises(EnvironmentContractError, match=f"{message} in CartPole"):
        kind.for_env(CartPole())
    with pytest.raises(EnvironmentContractError, match=message):
        kind(4)


# --- learning -------------------------------------------------------------------------------

_FEW = {"hidden_sizes": [32], "learning_rate": 3e-3}
LEARNING = {
    SAC: ({**_FEW, "batch_size": 64}, 1500, 1),
    TD3: ({**_FEW, "batch_size": 64, "learning_starts": 100}, 1500, 1),
    PPO: ({**_FEW, "gamma": 0.9, "rollout_length": 16}, 16_000, 16),
    A2C: ({**_FEW, "gamma": 0.9}, 32_000, 16),
}
"""Settings, steps, and environments at once."""


@pytest.mark.parametrize("kind", LEARNING)
def test_a_target_is_hit(kind):
    options, steps, count = LEARNING[kind]
    found = []
    for seed in range(3):
        agent = kind.for_env(Target(), seed=seed, **options)
        agent.train(Target(), steps=steps, num_envs=count)
        found.append(np.mean(agent.evaluate(Target(), 50, seed=7)) / 10)
    assert np.mean(found) > -0.06  # per step; at the beginning it is below -1
