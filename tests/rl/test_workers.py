"""Environments in processes of their own."""

import os
import signal
import subprocess
import sys
import time
import traceback

import gymnasium
import numpy as np
import pytest
from rl_agents import gym_cart_pole, made
from rl_worlds import Corridor

import dilim
from dilim.errors import EnvironmentContractError, NonFiniteError
from dilim.rl import A2C, DQN, SAC, CartPole, Interrupted
from dilim.rl.processes import ProcessTraceback
from dilim.rl.workers import Workers

SMALL = {"hidden_sizes": [8], "rollout_length": 5}


def cart_pole():
    return gymnasium.make("CartPole-v1", max_episode_steps=40)


class Changing(Corridor):
    """The last of some copies does something else at one step of its life."""

    def __init__(self, what, copies, at=20):
        super().__init__()
        self.what, self.at, self.count, self.own = what, at, 0, None
        self.seed = int(np.random.SeedSequence(1).generate_state(copies)[-1])

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.own = seed
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.count += 1
        observation, reward, terminated, truncated, info = super().step(action)
        if self.count == self.at and self.own == self.seed:
            if self.what == "raise":
                raise LookupError("no such corridor", self.count)
            if self.what == "odd error":
                raise Odd("one", "two")
            if self.what == "exit":
                os._exit(7)
            if self.what == "nan":
                reward = float("nan")
            if self.what == "print":
                print("a line in between")
        return observation, reward, terminated, truncated, info


class Odd(Exception):
    """An error that cannot be made again from its arguments."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def agent_for(env, **options):
    return A2C.for_env(env, seed=1, **{**SMALL, **options})


def state_of(agent):
    arrays, header = agent.state()
    return {name: x.tolist() for name, x in arrays.items()}, header


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_bits_do_not_depend_on_the_workers(workers):
    states = []
    for count in (0, workers):
        env = cart_pole()
        agent = agent_for(env)
        returns = agent.train(env, steps=300, num_envs=3, num_workers=count)
        returns += agent.train(env, steps=300)
        assert agent._world.workers == count
        states.append((returns, state_of(agent)))
    assert states[0] == states[1]
    assert len(states[0][0]) > 5


def test_actions_that_are_numbers_arrive_as_arrays():
    returns = []
    for count in (0, 1):
        env = gym_cart_pole(SAC, max_episode_steps=40)
        agent = made(SAC, env, seed=1)
        returns.append(agent.train(env, steps=200, num_workers=count))
    assert returns[0] == returns[1]
    assert len(returns[0]) > 3


def test_a_step_takes_one_send_and_one_receive():
    env = cart_pole()
    agent = agent_for(env)
    agent.loop = dilim.compile(agent.loop.__wrapped__, compile_after=0)
    agent.train(env, steps=200, num_envs=2, num_workers=2)
    often = [x for x in agent.loop.explain().transfers if x.runs > 50]
    assert [(x.to_host, x.runs) for x in often] == [(True, 100), (False, 100)]


def test_an_error_is_that_of_the_environment_with_its_own_traceback():
    env = Changing("raise", 4)
    agent = agent_for(env)
    with pytest.raises(LookupError) as caught:
        agent.train(env, steps=400, num_envs=4, num_workers=2)
    assert caught.value.args == ("no such corridor", 20)
    assert isinstance(caught.value.__cause__, ProcessTraceback)
    text = "".join(traceback.format_exception(caught.value))
    assert 'raise LookupError("no such corridor", self.count)' in text
    assert agent.steps == 19 * 4 - 4  # the check of `for_env` makes a step that is copied
    assert agent.log.lengths.tolist() == [0] * 4
    agent.train(env, steps=400)  # with new episodes in all of them
    assert agent.steps == 18 * 4 + 400
    assert agent.log.lengths.tolist() == [0] * 4
    assert set(agent.log.ended_lengths[: agent.log.finished].tolist()) <= {4}


def test_an_error_that_cannot_be_sent_is_told_as_text():
    env = Changing("odd error", 4)
    with pytest.raises(RuntimeError, match="Odd: one and two") as caught:
        agent_for(env).train(env, steps=400, num_envs=4, num_workers=4)
    assert 'raise Odd("one", "two")' in str(caught.value.__cause__)


def test_bad_numbers_are_told_with_their_place():
    env = Changing("nan", 4)
    place = r"environment 3, episode \d+, step 3 \(\d+ in all\): the reward is nan"
    with pytest.raises(NonFiniteError, match=place):
        agent_for(env).train(env, steps=400, num_envs=4, num_workers=2)


def test_a_process_that_ends_is_told_and_replaced():
    env = Changing("exit", 4)
    agent = agent_for(env)
    with pytest.raises(RuntimeError, match=r"environments 2 to 3 ended by itself \(exit code 7"):
        agent.train(env, steps=400, num_envs=4, num_workers=2)
    steps = agent.steps
    agent.train(env, steps=40)
    assert agent.steps == steps + 40


def test_what_an_environment_prints_is_no_answer(capfd):
    env = Changing("print", 2)
    agent_for(env).train(env, steps=200, num_envs=2, num_workers=2)
    assert "a line in between" in capfd.readouterr().err


def test_processes_end_with_the_world():
    workers = Workers(cart_pole(), 2, 2)
    assert workers.begin([1, 2]).shape == (2, 4)
    processes = [x._process for x in workers._processes]
    assert all(x.poll() is None for x in processes)
    del workers
    deadline = time.monotonic() + 5.0
    while any(x.poll() is None for x in processes) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert all(x.poll() == 0 for x in processes)


def test_the_first_interrupt_is_taken_between_two_steps():
    class Interrupting(Corridor):
        def step(self, action):
            if self._step == 2:
                os.kill(int(os.environ["TEST_PARENT"]), signal.SIGINT)
            return super().step(action)

    env = Interrupting()
    agent = A2C(2, [8], 2, seed=1, rollout_length=5)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["TEST_PARENT"] = str(os.getpid())
    try:
        with pytest.raises(Interrupted):
            agent.train(env, steps=400, num_envs=1, num_workers=1)
    finally:
        signal.signal(signal.SIGINT, before)
        del os.environ["TEST_PARENT"]
    assert 3 <= agent.steps <= 4


SCRIPT = """
import gymnasium, numpy as np
from dilim.rl import A2C

class Own(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 5
        return self.np_random.random(2, np.float32), {}

    def step(self, action):
        self.left -= 1
        return self.np_random.random(2, np.float32), 1.0, self.left == 0, False, {}

agent = A2C.for_env(Own(), seed=0, hidden_sizes=[4])
print(agent.train(Own(), steps=20, num_envs=2, num_workers=2))
"""


def test_a_plain_script_with_an_environment_of_its_own_works(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, "[5.0, 5.0, 5.0, 5.0]\n")
    # a busy machine says that compiling took long
    assert not [x for x in done.stderr.splitlines() if not x.startswith("dilim: slicing")]


# --- what cannot be -------------------------------------------------------------------------


def test_what_cannot_be_is_refused():
    env = cart_pole()
    with pytest.raises(ValueError, match="num_workers from 0 to the 2 of num_envs, received 3"):
        agent_for(env).train(env, steps=10, num_envs=2, num_workers=3)
    with pytest.raises(
        ValueError, match=r"CartPole is written in tensor operations.*num_workers=2"
    ):
        agent_for(env).train(CartPole(), steps=10, num_envs=2, num_workers=2)


def test_an_environment_that_cannot_be_sent_is_named():
    env = Corridor()
    env.handle = (x for x in [1])
    with pytest.raises(EnvironmentContractError, match="cannot send Corridor to another process"):
        agent_for(env).train(env, steps=10, num_envs=2, num_workers=2)
    with pytest.raises(EnvironmentContractError, match="needs copies of Corridor"):
        agent_for(env).train(env, steps=10, num_envs=2)


@pytest.mark.parametrize("workers", [0, 2])
def test_copies_of_an_environment_that_uses_the_agent_are_refused(workers):
    env = Corridor()
    agent = env.agent = DQN(2, [8], 2, seed=1)
    with pytest.raises(ValueError, match="Corridor uses the agent or a part of it"):
        agent.train(env, steps=10, num_envs=2, num_workers=workers)


def test_settings_of_an_environment_are_copied():
    env = cart_pole()
    env.unwrapped.force_mag = 0.0
    env.reset(seed=0)
    workers = Workers(env, 1, 1)
    seen = workers.begin([5]).copy()
    env.reset(seed=5)
    expected = env.step(1)[0]
    rows = workers.step(dilim.asarray([1]))
    assert seen.shape == (1, 4)
    assert rows[0, 4:].tolist() == expected.tolist()
    workers.close()
