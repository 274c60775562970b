"""Saved, copied and resumed agents go on exactly."""

import copy
import json

import numpy as np
import pytest
from rl_agents import SEVERAL, bare, every_agent, fit, gym_cart_pole, made
from rl_worlds import Corridor

from dilim.errors import FileFormatError, StateError
from dilim.rl import REINFORCE, Agent, Bandit, CartPole
from dilim.runtime.files import load_arrays, save_arrays


def final(agent):
    arrays, header = agent.state()
    return {name: x.tobytes() for name, x in arrays.items()}, header


@every_agent
@pytest.mark.parametrize("at", [0, 1, 40, 333])
def test_resumed_is_uninterrupted_bit_for_bit(kind, at, tmp_path):
    options = {"seed": 5, "batch_episodes": 3} if kind is REINFORCE else {"seed": 5}
    env, whole_env = fit(kind, CartPole)(), fit(kind, CartPole)()
    whole = made(kind, whole_env, **options)
    first = made(kind, env, **options)
    returns = first.train(env, steps=at)
    first.save(tmp_path / "agent.safetensors")
    del first
    second = Agent.load(tmp_path / "agent.safetensors")
    assert type(second) is kind
    returns += second.train(fit(kind, CartPole)(), steps=800 - at)
    assert returns == whole.train(whole_env, steps=800)
    assert final(second) == final(whole)


@every_agent
def test_at_the_end_of_an_episode_too(kind):
    env, whole_env = fit(kind, CartPole)(), fit(kind, CartPole)()
    whole = made(kind, whole_env, seed=1)
    agent = made(kind, env, seed=1)
    saved = []
    agent.train(
        env, episodes=5, on_episode=lambda e: saved.append(agent.state()) if e.episode == 3 else 0
    )
    resumed = kind.from_state(*saved[0])
    assert whole.train(whole_env, episodes=9)[3:] == resumed.train(
        fit(kind, CartPole)(), episodes=6
    )
    assert final(whole) == final(resumed)


@every_agent
def test_saving_twice_without_training_is_the_same_file(kind, tmp_path):
    env = fit(kind, CartPole)()
    agent = made(kind, env, seed=1)
    agent.train(env, steps=50)
    agent.save(tmp_path / "first")
    Agent.load(tmp_path / "first").save(tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


@every_agent
def test_a_copy_goes_its_own_way(kind):
    env = fit(kind, CartPole)()
    agent = made(kind, env, seed=2)
    agent.train(env, steps=100)
    copied = copy.deepcopy(agent)
    before = final(agent)
    returns = copied.train(fit(kind, CartPole)(), steps=300)
    assert final(agent) == before
    assert agent.train(env, steps=300) == returns
    assert final(agent) == final(copied)


@every_agent
def test_the_file_says_what_it_holds(kind, tmp_path):
    env = fit(kind, Corridor)(start=5)
    agent = made(kind, env, seed=3)
    agent.train(env, episodes=10)
    path = tmp_path / "agent.safetensors"
    agent.save(path)
    _, header = load_arrays(path, kind="agent")
    assert header["agent"] == kind.__name__
    assert header["numbers"]["steps"] == 40
    assert json.loads(json.dumps(header)) == header
    loaded = Agent.load(path)
    sizes = "2 -> 2" if kind in SEVERAL else "2 -> 1"
    assert loaded.actions.options == agent.actions.options
    assert loaded.act(np.zeros(2), explore=False) == agent.act(np.zeros(2), explore=False)
    assert repr(loaded) == f"<{kind.__name__}({sizes}), 10 episodes, 40 steps, seed 3, from {path}>"
    assert repr(agent) == f"<{kind.__name__}({sizes}), 10 episodes, 40 steps, seed 3>"


@every_agent
@pytest.mark.parametrize("part", ["generator", "network", "loss", "log.totals"])
def test_a_missing_part_is_an_error(kind, part, tmp_path):
    env = fit(kind, CartPole)()
    agent = made(kind, env, seed=1)
    agent.train(env, steps=30)
    agent.save(tmp_path / "agent")
    arrays, header = load_arrays(tmp_path / "agent")
    if part == "network":
        part = next(name for name in arrays if name.startswith("network.") and "weight" in name)
    del arrays[part]
    save_arrays(tmp_path / "less", arrays, header)
    with pytest.raises(StateError, match=part.split(".", 1)[-1].replace(".", r"\.")):
        Agent.load(tmp_path / "less")


@every_agent
def test_other_files_and_agents_are_refused(kind, tmp_path):
    agent = bare(kind, 4, 2)
    agent.save(tmp_path / "agent")
    arrays, header = load_arrays(tmp_path / "agent")
    save_arrays(tmp_path / "strange", arrays, {**header, "agent": "SARSA"})
    with pytest.raises(StateError, match="the state of an agent of kind 'SARSA'"):
        Agent.load(tmp_path / "strange")
    save_arrays(tmp_path / "weights", arrays, {"kind": "weights"})
    with pytest.raises(FileFormatError, match="holds 'weights', expected 'agent'"):
        Agent.load(tmp_path / "weights")
    options = {**header["options"], "wings": 2}
    save_arrays(tmp_path / "options", arrays, {**header, "options": options})
    with pytest.raises(StateError, match=r"the saved options do not fit: .*wings"):
        Agent.load(tmp_path / "options")
    with pytest.raises(StateError, match=r"load_state: the state is that of 'SARSA'"):
        agent.load_state(arrays, {**header, "agent": "SARSA"})
    with pytest.raises(StateError, match=r"load_state: the state lacks 'tracker'"):
        agent.load_state(arrays, {k: v for k, v in header.items() if k != "tracker"})


@every_agent
def test_another_size_is_refused(kind):
    with pytest.raises(StateError, match="weight: expected float32"):
        bare(kind, 5, 2).load_state(*bare(kind, 4, 2).state())


# --- environments that cannot give their state ----------------------------------------------


@every_agent
def test_between_episodes_gymnasium_environments_resume_exactly(kind):
    whole_env, env = gym_cart_pole(kind), gym_cart_pole(kind)
    whole, agent = made(kind, whole_env, seed=7), made(kind, env, seed=7)
    returns = agent.train(env, episodes=5)
    resumed = kind.from_state(*agent.state())
    returns += resumed.train(gym_cart_pole(kind), episodes=5)
    assert whole.train(whole_env, episodes=10) == returns


@every_agent
def test_within_an_episode_they_begin_a_new_one_and_say_so(kind):
    env = fit(kind, Corridor)()
    agent = made(kind, env, seed=7)
    agent.train(env, steps=6)
    resumed = kind.from_state(*agent.state())
    fresh = fit(kind, Corridor)()
    with pytest.warns(UserWarning, match="Corridor cannot take over a state .* not exactly"):
        assert len(resumed.train(fresh, episodes=2)) == 2
    assert resumed.steps == 6 + 8
    assert fresh.resets[0] is not None
    assert fresh.resets[1:] == [None]


@every_agent
def test_a_saved_environment_state_is_not_dropped_in_silence(kind):
    env = fit(kind, CartPole)()
    agent = made(kind, env, seed=7)
    agent.train(env, steps=6)
    resumed = kind.from_state(*agent.state())
    other = gym_cart_pole(kind)
    with pytest.raises(StateError, match=r"it has no set_state\(\); pass seed= to begin a new"):
        resumed.train(other, steps=5)
    assert resumed.train(other, steps=5, seed=0) == []
    assert resumed.steps == 11


@every_agent
def test_an_agent_that_was_never_trained_has_no_environment(kind):
    agent = made(kind, fit(kind, Bandit)(), seed=0)
    _, header = agent.state()
    assert header["environment"] is None
    assert header["tracker"]["best_reward"] is None
