"""The loop of training over environments that Python steps: native but for the steps themselves."""

import os
import signal
import traceback

import numpy as np
import pytest
from rl_agents import every_agent, fit, gym_cart_pole, made, same_state
from rl_worlds import Broken, Corridor

import dilim
from dilim.errors import NonFiniteError
from dilim.rl import DQN, PPO, Agent, Interrupted
from dilim.rl.evaluation import play_out
from dilim.rl.loop import play
from dilim.rl.training import enter

SMALL = {"hidden_sizes": [8], "batch_size": 8}


def cart_pole(kind=DQN):
    return gym_cart_pole(kind, max_episode_steps=40)


def compiled_agent(kind, env, **options):
    """An agent whose loop is compiled before its first turn."""
    agent = made(kind, env, seed=3, **options)
    agent.loop = dilim.compile(play, compile_after=0)
    return agent


def eager_agent(kind, env, **options):
    agent = made(kind, env, seed=3, **options)
    agent.loop = play
    return agent


# --- one send and one receive a step --------------------------------------------------------


@every_agent
def test_the_bits_are_those_of_eager(kind):
    agents = []
    for loop in (play, dilim.compile(play, compile_after=0, strict=True)):
        env = cart_pole(kind)
        agent = made(kind, env, seed=3)
        world = enter(agent, env, None)
        for steps in (120, 1, 79, 300):
            loop(agent, world, steps, 1000)
        agents.append(agent)
    eager, native = agents
    assert eager.updates > 2
    assert eager.log.finished == native.log.finished > 0
    assert eager.log.returns.tolist() == native.log.returns.tolist()
    assert same_state(eager, native)


def test_a_step_takes_one_send_and_one_receive():
    env = cart_pole()
    agent = compiled_agent(DQN, env, **SMALL)
    world = enter(agent, env, None)
    agent.loop(agent, world, 500, 1000)
    explanation = agent.loop.explain()
    often = [x for x in explanation.transfers if x.runs > 250]
    assert [(x.to_host, x.types, x.runs) for x in often] == [
        (True, ("int64[1]",), 500),
        (False, ("float32[1,8]",), 500),
    ]
    assert not explanation.fallbacks
    assert "self._step(actions)" in agent.slices()


def test_training_again_needs_no_other_program():
    agent = compiled_agent(DQN, cart_pole(), **SMALL)
    env = cart_pole()
    for _ in range(12):  # it stops within episodes and at their ends
        agent.train(env, episodes=1)
        agent.train(env, steps=7)
    assert str(agent.loop.explain()).count("1 program made") == 1


@pytest.mark.parametrize("kind", [DQN, PPO])
def test_every_episode_is_told_in_order(kind):
    seen = {}
    for make in (eager_agent, compiled_agent):
        env = cart_pole()
        agent = make(kind, env)
        episodes = seen[make] = []
        returns = agent.train(env, episodes=20, on_episode=episodes.append)
        assert [x.episode for x in episodes] == list(range(1, 21))
        assert [x.reward for x in episodes] == returns
        assert episodes[-1].steps == agent.steps == sum(x.length for x in episodes)
    assert seen[eager_agent] == seen[compiled_agent]


@pytest.mark.parametrize("start", [0, -3])
def test_actions_are_python_ints_counted_from_where_the_space_begins(start):
    env = Corridor(start=start)
    agent = compiled_agent(DQN, env, **SMALL)
    agent.train(env, steps=50)
    assert {type(action) for action in env.actions} == {int}
    assert set(env.actions[1:]) == {start, start + 1}


@pytest.mark.parametrize("cut", [False, True])
def test_cuts_are_told_apart_and_what_was_seen_last_is_kept(cut):
    eager, native = (
        make(DQN, Corridor(cut=cut), **SMALL) for make in (eager_agent, compiled_agent)
    )
    for agent in (eager, native):
        agent.train(Corridor(cut=cut), steps=120)
    assert native.replay.terminated[:120].astype("int64").sum().item() == (0 if cut else 30)
    assert same_state(eager, native)


def test_evaluations_are_native_but_for_the_steps():
    env = cart_pole()
    agent = compiled_agent(DQN, env, **SMALL)
    agent.train(env, steps=300)
    agent.trial_loop = play_out
    expected = agent.evaluate(env, 5, seed=1)
    agent.trial_loop = dilim.compile(play_out, compile_after=0, strict=True)
    assert agent.evaluate(env, 5, seed=1) == expected
    often = [x for x in agent.trial_loop.explain().transfers if x.runs > 5]
    assert [(x.to_host, x.runs) for x in often] == [(True, sum(expected)), (False, sum(expected))]


def test_bad_numbers_in_an_evaluation_are_told_with_their_place():
    env = Broken(at=10, reward=np.nan, size=2)
    agent = DQN(2, [8], 2, seed=0)
    agent.trial_loop = dilim.compile(play_out, compile_after=0)
    with pytest.raises(NonFiniteError, match="evaluation, episode 3: the reward is nan"):
        agent.evaluate(env, 5)


# --- several --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DQN, PPO])
def test_several_are_stepped_one_after_the_other(kind):
    agents = []
    for make in (eager_agent, compiled_agent):
        env = cart_pole()
        agent = make(kind, env)
        agent.train(env, steps=400, num_envs=4)
        agent.train(env, steps=600, num_envs=4)
        agents.append(agent)
    eager, native = agents
    assert eager.updates > 2
    assert native.steps == 1000
    assert native.log.lengths.shape == (4,)
    assert same_state(eager, native)


def test_each_of_several_has_a_seed_of_its_own():
    env = cart_pole()
    agent = compiled_agent(PPO, env)
    agent.train(env, steps=4, num_envs=4)
    seen = agent.rollout.observations[0].numpy()
    assert len({tuple(row) for row in seen}) == 4


def test_several_go_on_from_a_file_with_new_episodes(tmp_path):
    agent = eager_agent(PPO, cart_pole(), hidden_sizes=[8])
    agent.train(cart_pole(), steps=400, num_envs=4)
    agent.save(tmp_path / "agent")
    resumed = Agent.load(tmp_path / "agent")
    with pytest.warns(UserWarning, match="cannot take over a state .Python steps several of it"):
        resumed.train(cart_pole(), steps=400)
    assert (resumed.steps, resumed.log.lengths.shape) == (800, (4,))


# --- errors ---------------------------------------------------------------------------------


class Fragile(Corridor):
    """Raises at one step of its life."""

    def __init__(self, at):
        super().__init__()
        self.at, self.count = at, 0

    def step(self, action):
        self.count += 1
        if self.count == self.at:
            raise RuntimeError(f"the belt came off at {self.count}")
        return super().step(action)


@every_agent
def test_an_error_of_the_environment_keeps_its_place_and_the_agent_stays_whole(kind):
    env = fit(kind, Fragile)(at=51)  # one step more: the check of `for_env` makes one
    agent = compiled_agent(kind, env)
    twin_env = fit(kind, Corridor)()
    twin = eager_agent(kind, twin_env)
    with pytest.raises(RuntimeError, match="the belt came off at 51") as caught:
        agent.train(env, steps=1000)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert (frames[-1].name, frames[-1].filename) == ("step", __file__)
    assert "raise RuntimeError" in frames[-1].line
    twin.train(twin_env, steps=49)
    assert agent.steps == 49
    assert agent.episodes == twin.episodes == 12
    weights, others = agent.network.state_dict(), twin.network.state_dict()
    assert all(np.array_equal(weights[name].numpy(), others[name].numpy()) for name in weights)
    # the running episode is gone, and training goes on with a new one
    assert agent.log.lengths.tolist() == [0]
    agent.train(env, episodes=2)
    assert agent.steps == 49 + 8


class WrongOnReset(Corridor):
    """One of its episodes begins with a bad number."""

    def reset(self, **options):
        observation, info = super().reset(**options)
        if len(self.resets) == 5:
            observation = np.array([np.inf, 0.0])
        return observation, info


def test_bad_numbers_at_the_beginning_of_an_episode_are_told_with_their_place():
    env = WrongOnReset()
    agent = compiled_agent(DQN, env, **SMALL)  # a reset for the check
    place = r"environment 0, episode 4, step 1 \(13 in all\): observation\[0\] is inf"
    with pytest.raises(NonFiniteError, match=place):
        agent.train(env, steps=100)
    assert agent.steps == 12
    agent.train(env, steps=8)
    assert agent.episodes == 5


def test_bad_numbers_of_one_of_several_name_it():
    class Third(Corridor):
        made = 0

        def __deepcopy__(self, memory):
            Third.made += 1
            made = Third()
            made.is_third = Third.made == 2
            return made

        def step(self, action):
            observation, reward, *rest = super().step(action)
            bad = getattr(self, "is_third", False) and len(self.actions) == 6
            return observation, float("nan") if bad else reward, *rest

    env = Third()
    agent = compiled_agent(PPO, env)
    place = r"environment 2, episode 5, step 2 \(\d+ in all\): the reward is nan"
    with pytest.raises(NonFiniteError, match=place):
        agent.train(env, steps=400, num_envs=4)
    assert agent.steps == 20
    agent.train(env, steps=400, num_envs=4)
    assert agent.steps == 420


# --- interrupts -----------------------------------------------------------------------------


class Interrupting(Corridor):
    """Ctrl-C in the middle of a step."""

    def __init__(self, at, times=1):
        super().__init__()
        self.at, self.times, self.count = at, times, 0

    def step(self, action):
        self.count += 1
        if self.count == self.at:
            for _ in range(self.times):
                os.kill(os.getpid(), signal.SIGINT)
        return super().step(action)


@pytest.fixture
def python_handles_interrupts():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("python_handles_interrupts")
def test_an_interrupt_stops_the_native_loop_after_the_step():
    env, twin_env = Interrupting(at=138), Interrupting(at=-1)
    agent, twin = compiled_agent(DQN, env, **SMALL), eager_agent(DQN, twin_env, **SMALL)
    with pytest.raises(Interrupted):
        agent.train(env, steps=1000)
    assert agent.steps == 137
    twin.train(twin_env, steps=137)
    assert same_state(agent, twin)
    assert agent.train(env, steps=300) == twin.train(twin_env, steps=300)


@pytest.mark.usefixtures("python_handles_interrupts")
def test_a_second_interrupt_stops_at_once_and_drops_the_episode():
    env = Interrupting(at=139, times=2)
    agent = compiled_agent(DQN, env, **SMALL)
    with pytest.raises(KeyboardInterrupt):
        agent.train(env, steps=1000)
    assert agent.steps == 137
    assert agent.log.lengths.tolist() == [0]
    assert agent.train(env, episodes=1) != []
    assert agent.steps == 141


# --- environments that know the agent -------------------------------------------------------


class SelfPlay(Corridor):
    """Rewards depend on what the agent's network says now, and on how long it has trained."""

    agent = None

    def step(self, action):
        observation, reward, *rest = super().step(action)
        if self.agent is not None:
            score = self.agent.network(dilim.ones((1, 2)))[0, 0].item()
            reward = score + self.agent.steps
        return observation, reward, *rest


def test_an_environment_that_uses_the_agent_sees_it_as_it_is():
    agents = []
    for make in (eager_agent, compiled_agent):
        env = SelfPlay()
        agent = env.agent = make(DQN, env, **SMALL)
        agent.train(env, steps=100)
        agents.append(agent)
    eager, native = agents
    assert same_state(eager, native)
