"""Pendulum, MountainCar and Acrobot against Gymnasium's, number by number."""

import math

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dilim
from dilim.rl import Acrobot, MountainCar, Pendulum

NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def near(limit):
    return st.floats(-limit, limit).map(lambda x: float(np.float32(x)))


def step_of_gymnasium(name, state, action):
    """What one step gives: state, observation, reward, terminated."""
    env = gymnasium.make(name).unwrapped
    env.reset(seed=0)
    env.state = np.asarray(state, np.float64)
    with np.errstate(all="ignore"):
        observation, reward, terminated, _, _ = env.step(action)
    return np.asarray(env.state, np.float64), observation, float(reward), terminated


def step_of_ours(env, state, action):
    before = dilim.tensor(np.asarray(state, np.float32))
    chosen = dilim.tensor(action)
    after = env.transition(before, chosen, dilim.Generator(0))
    return (
        after.numpy(),
        env.observation(after).numpy(),
        float(env.reward(before, chosen, after)),
        bool(env.terminal(after)),
    )


def agree(ours, theirs):
    """To 2 float32 ulp, or 1e-6 near zero."""
    ours, theirs = np.atleast_1d(np.asarray(ours)), np.atleast_1d(np.asarray(theirs))
    with np.errstate(over="ignore", invalid="ignore"):
        theirs = theirs.astype(np.float32)
        apart = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        allowed = np.maximum(2 * np.spacing(np.abs(theirs)).astype(np.float64), 1e-6)
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    assert (same | (apart <= allowed)).all(), (ours, theirs)


def on_circle(angle):
    return np.array([np.cos(angle), np.sin(angle)])


@settings(max_examples=150, deadline=None)
@given(
    angle=NUMBERS | near(10.0),
    speed=NUMBERS | near(8.0),
    torque=NUMBERS | near(3.0),
    gravity=st.sampled_from([10.0, 9.81]),
)
def test_pendulum(angle, speed, torque, gravity):
    action = np.array([torque], np.float32)
    env = gymnasium.make("Pendulum-v1", g=gravity).unwrapped
    env.reset(seed=0)
    env.state = np.array([angle, speed], np.float64)
    with np.errstate(all="ignore"):
        _, reward, _, _, _ = env.step(action.astype(np.float64))
    after, observation, ours, ended = step_of_ours(
        Pendulum(gravity=gravity), [angle, speed], action
    )
    agree(after, env.state)
    agree(ours, reward)
    assert not ended
    with np.errstate(all="ignore"):
        exact = after.astype(np.float64)
        agree(observation, [*on_circle(exact[0]), exact[1]])


@settings(max_examples=150, deadline=None)
@given(
    position=NUMBERS | near(1.2) | st.sampled_from([-1.2, 0.5, 0.6]),
    velocity=NUMBERS | near(0.07),
    action=st.integers(0, 2),
)
def test_mountain_car(position, velocity, action):
    state = np.array([position, velocity], np.float32).astype(np.float64)
    expected, observation, reward, terminated = step_of_gymnasium("MountainCar-v0", state, action)
    after, seen, ours, ended = step_of_ours(MountainCar(), state, action)
    agree(after, expected)
    agree(seen, observation)
    assert ours == reward == -1.0
    if abs(expected[0] - 0.5) > 1e-6 and abs(expected[1]) > 1e-9:
        assert ended == terminated


# from wilder states than these Gymnasium folds angles for ever
@settings(max_examples=150, deadline=None)
@given(
    angles=st.tuples(near(4.0), near(4.0)),
    speeds=st.tuples(near(50.0), near(100.0)) | st.tuples(near(1.0), near(1.0)),
    action=st.integers(0, 2),
)
def test_acrobot(angles, speeds, action):
    state = np.array([*angles, *speeds], np.float32).astype(np.float64)
    expected, observation, reward, terminated = step_of_gymnasium("Acrobot-v1", state, action)
    after, seen, ours, ended = step_of_ours(Acrobot(), state, action)
    agree(after[2:], expected[2:])
    for k in range(2):  # pi is also -pi
        apart = abs(float(after[k]) - expected[k])
        assert min(apart, abs(apart - 2 * math.pi)) < 1e-6
        assert abs(after[k]) <= np.float32(math.pi)
    agree(seen, observation)
    height = -math.cos(expected[0]) - math.cos(expected[0] + expected[1])
    if abs(height - 1.0) > 1e-5:
        assert (ours, ended) == (reward, terminated)


@pytest.mark.parametrize(
    ("ours", "name"),
    [(Pendulum, "Pendulum-v1"), (MountainCar, "MountainCar-v0"), (Acrobot, "Acrobot-v1")],
)
def test_spaces_and_limits_are_those_of_gymnasium(ours, name):
    theirs = gymnasium.make(name)
    env = ours()
    assert env.observation_space == theirs.observation_space
    assert env.action_space == theirs.action_space
    assert env.max_steps == theirs.spec.max_episode_steps
    assert env.metadata["render_fps"] == theirs.metadata["render_fps"]


def test_starts_lie_in_their_ranges():
    generator = dilim.Generator(0)
    pendulum = Pendulum().initial(generator, (2000,)).numpy()
    assert np.abs(pendulum).max(axis=0) == pytest.approx([math.pi, 1.0], abs=0.01)
    car = MountainCar().initial(generator, (2000,)).numpy()
    assert (car[:, 1] == 0).all()
    assert [car[:, 0].min(), car[:, 0].max()] == pytest.approx([-0.6, -0.4], abs=0.001)
    acrobot = Acrobot().initial(generator, (2000,)).numpy()
    assert [acrobot.min(), acrobot.max()] == pytest.approx([-0.1, 0.1], abs=0.001)
    env = Pendulum()
    env.reset(seed=0, options={"angle": 0.0, "speed": 0.0})
    assert env.state.tolist() == [0.0, 0.0]


def test_a_car_at_rest_against_the_left_end_stays_at_rest():
    after, _, _, _ = step_of_ours(MountainCar(), [-1.2, -0.07], 0)
    assert after.tolist() == [np.float32(-1.2), 0.0]


def test_the_goal_may_need_speed():
    assert step_of_ours(MountainCar(), [0.49, 0.03], 2)[3]
    assert not step_of_ours(MountainCar(goal_velocity=0.05), [0.49, 0.03], 2)[3]


def test_torques_beyond_the_bounds_count_as_the_bounds():
    env = Pendulum()
    for torque, taken in ((5.0, 2.0), (-5.0, -2.0)):
        expected = step_of_ours(env, [1.0, 0.0], np.array([taken], np.float32))
        received = step_of_ours(env, [1.0, 0.0], np.array([torque], np.float32))
        assert expected[0].tolist() == received[0].tolist()
        assert expected[2] == received[2]
    env.reset(seed=0)
    env.step(np.array([5.0]))
    env.step([1])


def test_a_swinging_car_reaches_the_goal():
    env = MountainCar()
    observation, _ = env.reset(seed=0)
    terminated = False
    while not terminated:
        observation, _, terminated, truncated, _ = env.step(2 if observation[1] >= 0 else 0)
        assert not truncated
    assert 80 < env.steps < 150


@pytest.mark.parametrize(
    ("env", "states"),
    [
        (Pendulum(), [(0.0, 0.0), (math.pi / 2, 0.0)]),
        (MountainCar(), [(-0.5, 0.0), (0.3, 0.01)]),
        (Acrobot(), [(0.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0)]),
    ],
)
def test_drawings_show_the_state(env, states):
    tensors = [dilim.tensor(np.array(state, np.float32)) for state in states]
    first, second = (env.draw_text(x) for x in tensors)
    assert first != second
    first, second = (env.draw_frame(x) for x in tensors)
    assert first.shape == second.shape
    assert (first != second).any()


def test_an_upright_pendulum_is_drawn_upright():
    lines = Pendulum().draw_text(dilim.tensor([0.0, 0.0])).splitlines()
    columns = {line.index("#") for line in lines[:-1] if "#" in line}
    assert columns == {16}
    assert lines[7][16] == "o"
    assert lines[-1] == "angle +0.000 rad, +0.000 rad/s"
