"""What every agent must do: the tests walk over the registry."""

import copy
import os
import signal
import threading
from statistics import fmean

import gymnasium
import numpy as np
import pytest
from rl_agents import SEVERAL, bare, every_agent, fit, gym_cart_pole, made, same_state
from rl_worlds import Broken, Corridor

import dilim
from dilim.errors import EnvironmentContractError, NonFiniteError, ShapeError
from dilim.rl import REINFORCE, Bandit, CartPole, Interrupted


def weights(agent):
    return [x.numpy(copy=True) for x in agent.network.parameters()]


def same_weights(first, second):
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


# --- counts, seeds, order -------------------------------------------------------------------


class Counting(CartPole):
    def __init__(self, **options):
        super().__init__(**options)
        self.calls = 0
        self.seeds = []

    def reset(self, *, seed=None, options=None):
        self.seeds.append(seed)
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.calls += 1
        return super().step(action)


@every_agent
def test_exactly_so_many_steps_and_episodes_are_made(kind):
    env = fit(kind, Counting)()
    agent = made(kind, env, seed=0)
    assert agent.train(env, steps=0) == []
    agent.train(env, steps=100)
    assert env.calls == agent.steps == 100
    before = agent.episodes
    returns = agent.train(env, episodes=7)
    assert len(returns) == 7
    assert agent.episodes == before + 7
    assert env.calls == agent.steps
    agent.train(env, episodes=1000, steps=3)
    assert env.calls == agent.steps


@every_agent
def test_only_the_first_reset_is_seeded(kind):
    env = fit(kind, Counting)()
    agent = made(kind, env, seed=11)
    agent.train(env, episodes=2)
    agent.train(env, episodes=2)
    assert env.seeds == [11, None, None, None]
    another = fit(kind, Counting)()
    agent.train(another, episodes=2)
    assert another.seeds[0] not in (11, None)
    assert another.seeds[1] is None


@every_agent
def test_one_seed_covers_everything(kind):
    def run(seed):
        env = fit(kind, CartPole)()
        agent = made(kind, env, seed=seed)
        return agent.train(env, steps=1500), weights(agent)

    returns, final = run(3)
    again, same = run(3)
    assert returns == again
    assert same_weights(final, same)
    other, different = run(4)
    assert returns != other
    assert not same_weights(final, different)


@every_agent
def test_the_default_seed_follows_the_default_generator(kind):
    dilim.seed(5)
    first = made(kind, fit(kind, CartPole)())
    second = made(kind, fit(kind, CartPole)())
    dilim.seed(5)
    assert made(kind, fit(kind, CartPole)()).seed == first.seed != second.seed


@every_agent
def test_a_seed_given_to_train_begins_anew(kind):
    def run(warm_up):
        env = fit(kind, Counting)()
        agent = made(kind, env, seed=0)
        if warm_up:
            agent.generator.uniform((100,))
            agent.generator.uniform((3,))
        returns = agent.train(env, steps=300, seed=21)
        return returns, env.seeds[0]

    assert run(False) == run(True)
    assert run(True)[1] == 21


@every_agent
def test_episodes_in_parts_are_episodes_in_one(kind):
    whole_env, parts_env = fit(kind, CartPole)(), fit(kind, CartPole)()
    whole = made(kind, whole_env, seed=2)
    parts = made(kind, parts_env, seed=2)
    returns = whole.train(whole_env, steps=900)
    pieces = [x for steps in (1, 7, 392, 500) for x in parts.train(parts_env, steps=steps)]
    assert returns == pieces
    assert same_state(whole, parts)


# --- callbacks ------------------------------------------------------------------------------


@every_agent
def test_the_episode_says_what_happened(kind):
    env = fit(kind, CartPole)(max_steps=30)
    agent = made(kind, env, seed=0, window_size=3)
    seen = []
    returns = agent.train(env, episodes=6, on_episode=seen.append)
    assert [e.episode for e in seen] == [1, 2, 3, 4, 5, 6]
    assert [e.reward for e in seen] == returns == [float(e.length) for e in seen]
    assert seen[-1].average == pytest.approx(fmean(returns[-3:]))
    assert [e.steps for e in seen] == np.cumsum(returns).tolist()
    assert all(e.truncated == (e.length == 30) != e.terminated for e in seen)
    assert all(e.evaluation is None for e in seen)
    agent.train(env, episodes=1, on_episode=seen.append)
    assert seen[-1].episode == 7


@every_agent
def test_a_callback_of_two_arguments_gets_number_and_return(kind):
    env = fit(kind, CartPole)()
    agent = made(kind, env, seed=0)
    seen = []
    returns = agent.train(env, episodes=3, on_episode=lambda episode, reward: seen.append(
        (episode, reward)
    ))  # fmt: skip
    assert seen == list(enumerate(returns, 1))
    seen.clear()
    agent.train(env, episodes=1, on_episode=lambda episode, extra=None: seen.append(episode))
    assert seen[0].episode == 4


@every_agent
def test_true_from_the_callback_stops_and_training_goes_on_later(kind):
    stopped_env, whole_env = fit(kind, CartPole)(), fit(kind, CartPole)()
    stopped = made(kind, stopped_env, seed=6)
    whole = made(kind, whole_env, seed=6)
    first = stopped.train(stopped_env, episodes=50, on_episode=lambda e: e.episode == 4)
    assert len(first) == 4
    assert stopped.train(stopped_env, episodes=1, on_episode=lambda e: 1) != []  # only True stops
    second = stopped.train(stopped_env, episodes=5)
    assert [*first, *stopped.train(stopped_env, episodes=0)] == first
    assert whole.train(whole_env, episodes=10)[:4] == first
    assert whole.train(whole_env, episodes=0) == []
    assert len(second) == 5
    assert same_state(stopped, whole)


@every_agent
def test_training_stops_at_the_first_evaluation_that_is_good_enough(kind):
    env = fit(kind, CartPole)()
    agent = made(kind, env, seed=0)
    seen = []
    agent.train(
        env, episodes=40, until=5.0, evaluate_every=7, evaluation_episodes=2, on_episode=seen.append
    )
    assert [e.evaluation is None for e in seen] == [True] * 6 + [False]
    assert agent.last_evaluation == seen[-1].evaluation >= 5.0
    seen.clear()
    agent.train(env, episodes=8, evaluate_every=5, evaluation_episodes=2, on_episode=seen.append)
    assert [e.episode for e in seen if e.evaluation is not None] == [10, 15]
    assert len(agent.train(env, episodes=30, until=1e9)) == 30


@every_agent
def test_evaluations_do_not_change_training(kind):
    def run(**options):
        env = fit(kind, CartPole)()
        agent = made(kind, env, seed=1)
        return agent.train(env, episodes=12, **options), weights(agent)

    plain, final = run()
    evaluated, same = run(evaluate_every=2, evaluation_episodes=3)
    assert plain == evaluated
    assert same_weights(final, same)


@every_agent
def test_impossible_plans_are_refused(kind):
    env = fit(kind, CartPole)()
    agent = made(kind, env)
    with pytest.raises(ValueError, match="expected episodes= or steps="):
        agent.train(env)
    with pytest.raises(ValueError, match="expected steps to be an integer >= 0, received -1"):
        agent.train(env, steps=-1)
    with pytest.raises(ValueError, match="expected evaluate_every to be an integer >= 1"):
        agent.train(env, steps=1, evaluate_every=0)
    with pytest.raises(ValueError, match="expected at least one episode, received 0"):
        agent.evaluate(env, 0)


# --- evaluation -----------------------------------------------------------------------------


@every_agent
def test_evaluating_leaves_the_agent_and_its_environment_alone(kind):
    env, twin_env = fit(kind, CartPole)(), fit(kind, CartPole)()
    agent, twin = made(kind, env, seed=0), made(kind, twin_env, seed=0)
    agent.train(env, steps=123)
    twin.train(twin_env, steps=123)
    returns = agent.evaluate(env, 3)
    assert returns == agent.evaluate(env, 3) == twin.evaluate(fit(kind, CartPole)(), 3)
    assert agent.evaluate(env, 3, seed=1) != agent.evaluate(env, 3, seed=2)
    assert same_state(agent, twin)
    assert agent.train(env, steps=400) == twin.train(twin_env, steps=400)


@every_agent
def test_all_episodes_at_once_are_the_episodes_one_by_one(kind):
    env = fit(kind, CartPole)(max_steps=400)
    agent = made(kind, env, seed=3)
    starts = env.initial(dilim.Generator(8), (12,)).numpy()
    one_by_one = []
    for start in starts:
        env.reset(seed=0)
        env.set_state({**env.get_state(), "state.value": start})
        total, ended, observation = 0.0, False, start
        while not ended:
            observation, reward, terminated, truncated, _ = env.step(
                agent.act(observation, explore=False)
            )
            total += reward
            ended = terminated or truncated
        one_by_one.append(total)
    assert agent.evaluate(fit(kind, CartPole)(max_steps=400), 12, seed=8) == one_by_one
    assert len(set(one_by_one)) > 1


@every_agent
def test_other_environments_are_evaluated_one_episode_after_the_other(kind):
    env = fit(kind, Corridor)()
    agent = made(kind, env, seed=0)
    agent.train(env, steps=6)
    other = fit(kind, Corridor)()
    assert len(agent.evaluate(other, 3, seed=9)) == 3
    assert other.resets == [9, None, None]
    # the environment of training is not touched: a copy of it is played in
    before = list(env.resets)
    assert len(agent.evaluate(env, 3, seed=9)) == 3
    assert env.resets == before


@every_agent
def test_training_in_gymnasium_evaluates_in_another_environment(kind):
    env = gym_cart_pole(kind)
    agent = made(kind, env, seed=0)
    seen = []
    agent.train(env, episodes=4, evaluate_every=2, evaluation_episodes=2, on_episode=seen.append)
    assert [e.evaluation is not None for e in seen] == [False, True, False, True]
    corridor = fit(kind, Corridor)()  # has no spec: a copy is taken
    agent = made(kind, corridor, seed=0)
    agent.train(corridor, episodes=2, evaluate_every=1, evaluation_episodes=1)
    assert corridor.resets == [None, 0, None]


# --- acting in a program of one's own -------------------------------------------------------


@every_agent
def test_acting_without_exploring_remembers_nothing(kind):
    env = fit(kind, CartPole)()
    agent = made(kind, env, seed=0)
    agent.train(env, steps=5)
    arrays, header = agent.state()
    for _ in range(10):
        agent.act([0.01, 0.0, -0.02, 0.0], explore=False)
    after, same = agent.state()
    assert header == same
    assert all(np.array_equal(arrays[name], after[name]) for name in arrays)


@every_agent
def test_an_outcome_needs_an_action(kind):
    agent = bare(kind, 4, 2)
    with pytest.raises(RuntimeError, match=r"no action awaits its outcome; call act\(observation"):
        agent.observe(1.0, [0.0] * 4, False)
    agent.act([0.0] * 4, explore=False)
    with pytest.raises(RuntimeError, match="no action awaits"):
        agent.observe(1.0, [0.0] * 4, False)
    agent.act([0.0] * 4)
    assert agent.observe(1.0, [0.0] * 4, False) is None
    agent.act([0.0] * 4)
    finished = agent.observe(2.0, [0.0] * 4, False, truncated=True)
    assert (finished.reward, finished.length, finished.truncated) == (3.0, 2, True)


@every_agent
def test_by_hand_is_as_by_train(kind):
    env, trained_env = fit(kind, CartPole)(), fit(kind, CartPole)()
    by_hand, trained = made(kind, env, seed=4), made(kind, trained_env, seed=4)
    observation, _ = env.reset(seed=4)
    returns = []
    while len(returns) < 6:
        action = by_hand.act(observation)
        observation, reward, terminated, truncated, _ = env.step(action)
        finished = by_hand.observe(reward, observation, terminated, truncated)
        if finished is not None:
            returns.append(finished.reward)
            observation, _ = env.reset()
    assert trained.train(trained_env, episodes=6) == returns
    assert same_weights(weights(by_hand), weights(trained))


@every_agent
def test_any_shape_and_dtype_of_observation_is_taken(kind):
    agent = bare(kind, 4, 3, seed=0)
    actions = {
        np.ravel(agent.act(x, explore=False)).tolist()[0]
        for x in (
            [1, 0, 2, 0],
            np.array([[1, 0], [2, 0]], np.uint8),
            np.array([1.0, 0.0, 2.0, 0.0]),
            dilim.tensor([1.0, 0.0, 2.0, 0.0]),
        )
    }
    assert len(actions) == 1
    with pytest.raises(
        ShapeError,
        match=r"environment 0, episode 1, step 1 \(1 in all\): the network takes 4 numbers, the "
        r"observation has 3 \(shape \(3,\)\)",
    ):
        agent.act([1.0, 2.0, 3.0])


@every_agent
def test_actions_begin_where_the_environment_begins(kind):
    env = fit(kind, Corridor)(start=5)
    agent = made(kind, env, seed=0)
    agent.train(env, episodes=20)
    assert {int(action) for action in env.actions[1:]} == {5, 6}
    copied = copy.deepcopy(agent)
    assert copied.actions.options == agent.actions.options
    if kind in SEVERAL:
        assert copied.actions.start == 5
        assert agent.act(np.zeros(2), explore=False) in (5, 6)
        assert set(map(int, agent.best_actions(dilim.zeros((3, 2))).tolist())) <= {5, 6}


# --- bad numbers ----------------------------------------------------------------------------


@every_agent
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"observation": np.nan}, r"observation\[2\] is nan; expected finite float32 numbers"),
        ({"observation": -np.inf}, r"observation\[2\] is -inf"),
        ({"reward": np.inf}, "the reward is inf; expected a finite number"),
        ({"reward": np.nan}, "the reward is nan"),
    ],
)
def test_bad_numbers_stop_training_and_nothing_is_learned_from_them(kind, bad, message):
    env = fit(kind, Broken)(at=138, **bad)  # one step more: the check of `for_env` makes one
    agent = made(kind, env, seed=0)
    twin_env = fit(kind, Corridor)(size=4)
    twin = made(kind, twin_env, seed=0)
    with pytest.raises(
        NonFiniteError,
        match=rf"environment 0, episode 35, step 1 \(137 in all\): {message}.*Nothing was learned",
    ):
        agent.train(env, steps=1000)
    twin.train(twin_env, episodes=34)
    assert agent.steps == 136
    assert same_weights(weights(agent), weights(twin))
    assert agent.episodes == 34
    # the broken episode is gone, and training can go on with a new one
    assert agent.train(env, episodes=2) != []
    assert agent.steps == 144


@every_agent
def test_a_number_beyond_float32_is_named_as_it_came(kind):
    agent = bare(kind, 2, 2)
    with pytest.raises(NonFiniteError, match=r"observation\[1\] is 1e\+300"):
        agent.act(np.array([0.0, 1e300]))
    with pytest.raises(NonFiniteError, match=r"observation\[0, 1\] is nan"):
        agent.act(np.array([[0.0, np.nan]], np.float32))


# --- interrupts -----------------------------------------------------------------------------


class Interrupting(CartPole):
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


@every_agent
@pytest.mark.usefixtures("python_handles_interrupts")
def test_an_interrupt_falls_between_two_steps(kind):
    env, twin_env = fit(kind, Interrupting)(at=57), fit(kind, Interrupting)(at=-1)
    agent, twin = made(kind, env, seed=0), made(kind, twin_env, seed=0)
    with pytest.raises(Interrupted):
        agent.train(env, steps=200)
    assert agent.steps == 57
    twin.train(twin_env, steps=57)
    assert same_state(agent, twin)
    assert agent.train(env, steps=300) == twin.train(twin_env, steps=300)


@every_agent
@pytest.mark.usefixtures("python_handles_interrupts")
def test_an_interrupt_in_the_last_step_is_not_lost(kind):
    env = fit(kind, Interrupting)(at=20)
    agent = made(kind, env, seed=0)
    with pytest.raises(Interrupted):
        agent.train(env, steps=20)
    assert agent.steps == 20


@every_agent
@pytest.mark.usefixtures("python_handles_interrupts")
def test_a_second_interrupt_stops_at_once(kind):
    env = fit(kind, Interrupting)(at=20, times=2)
    agent = made(kind, env, seed=0)
    with pytest.raises(KeyboardInterrupt) as caught:
        agent.train(env, steps=100)
    assert caught.type is KeyboardInterrupt
    assert agent.steps == 19


def test_a_program_that_handles_interrupts_itself_keeps_doing_so():
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        env = Interrupting(at=5)
        REINFORCE.for_env(env, seed=0).train(env, steps=10)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def test_training_works_in_another_thread():
    done = []
    env = Bandit()
    agent = REINFORCE.for_env(env, seed=0)
    thread = threading.Thread(target=lambda: done.append(agent.train(env, episodes=3)))
    thread.start()
    thread.join()
    assert len(done[0]) == 3


# --- mistakes of the caller -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episodes": 2.5}, r"episodes to be an integer >= 0, received 2\.5"),
        ({"steps": 2.5}, r"steps to be an integer >= 0, received 2\.5"),
        ({"episodes": 1, "until": "x"}, "until to be a number, received 'x'"),
        ({"episodes": 1, "until": float("nan")}, "until to be a number, received nan"),
        ({"episodes": 1, "evaluate_every": 2.5}, "evaluate_every to be an integer >= 1"),
    ],
)
def test_settings_of_training_are_checked(settings, message):
    agent = REINFORCE.for_env(CartPole(), seed=0)
    with pytest.raises(ValueError, match=message):
        agent.train(CartPole(), **settings)


def test_rewards_and_observations_must_be_numbers():
    agent = REINFORCE(4, seed=0)
    agent.act([0.0] * 4)
    with pytest.raises(EnvironmentContractError, match=r"expected a number as reward.*NoneType"):
        agent.observe(None, [0.0] * 4, False)
    with pytest.raises(EnvironmentContractError, match="expected an observation of numbers"):
        agent.act("abcd")


def test_a_diverged_network_says_so():
    agent = REINFORCE(4, seed=0)
    with dilim.no_grad():
        agent.network.parameters()[-1].fill_(float("nan"))
    for explore in (True, False):
        with pytest.raises(NonFiniteError, match=r"training has diverged.*learning_rate"):
            agent.act([0.0] * 4, explore=explore)
    with pytest.raises(NonFiniteError, match="evaluation: the network's output"):
        agent.evaluate(CartPole(), 2)


def test_an_action_that_awaits_its_outcome_is_saved(tmp_path):
    agent = REINFORCE(4, seed=0)
    agent.act([0.1, 0.2, 0.3, 0.4])
    agent.save(tmp_path / "agent.safetensors")
    others = [copy.deepcopy(agent), REINFORCE.load(tmp_path / "agent.safetensors")]
    results = [a.observe(1.0, [0.0] * 4, True).reward for a in (agent, *others)]
    assert results == [1.0, 1.0, 1.0]
    weights = [a.network.parameters()[0].tolist() for a in (agent, *others)]
    assert weights[0] == weights[1] == weights[2]


def test_evaluating_in_the_training_environment_changes_nothing():
    plain, watched = (REINFORCE(4, seed=3) for _ in range(2))
    envs = [gymnasium.make("CartPole-v1") for _ in range(2)]
    plain.train(envs[0], steps=37)
    watched.train(envs[1], steps=17)
    watched.evaluate(envs[1], 2)
    watched.train(envs[1], steps=20)
    assert plain.train(envs[0], episodes=2) == watched.train(envs[1], episodes=2)
