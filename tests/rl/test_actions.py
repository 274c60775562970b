"""What agents can do, within them and at the door of an environment."""

import numpy as np
import pytest
from gymnasium import spaces

import dilim
from dilim.errors import EnvironmentContractError, ShapeError
from dilim.rl import REINFORCE, Pendulum
from dilim.rl.actions import BoxActions, DiscreteActions, actions_from, actions_of, single


class Acting:
    """An environment, as far as its actions go."""

    def __init__(self, space):
        self.action_space = space


def test_several_actions_are_counted_from_where_the_environment_begins():
    actions = actions_of(Acting(spaces.Discrete(3, start=5)))
    assert (actions.count, actions.shape) == (3, ())
    assert actions.outward(dilim.asarray([0, 2])).tolist() == [5, 7]
    assert actions.options == {"action_count": 3, "action_start": 5}
    taken = single(actions.outward(actions.tensor([1])))
    assert (taken, type(taken)) == (6, int)


def test_a_box_reaches_from_minus_one_to_one_and_is_clipped():
    low, high = np.float32([[0.0, -3.0]]), np.float32([[1.0, 5.0]])
    actions = actions_of(Acting(spaces.Box(low, high)))
    assert (actions.count, actions.shape) == (2, (2,))
    given = dilim.tensor([[-1.0, 1.0], [0.0, 0.5], [7.0, -7.0]])
    assert actions.outward(given).tolist() == [[[0.0, 5.0]], [[0.5, 3.0]], [[1.0, -3.0]]]
    taken = single(actions.outward(given[:1]))
    assert (taken.shape, taken.dtype) == ((1, 2), np.float32)
    again = actions_from(None, 0, **{n.removeprefix("action_"): x for n, x in
                                     actions.options.items()})  # fmt: skip
    assert again.options == actions.options == {"action_low": [[0, -3]], "action_high": [[1, 5]]}


def test_bounds_that_float32_does_not_have_are_not_passed():
    space = spaces.Box(0.1, 0.3, (1,), dtype=np.float64)
    actions = actions_of(Acting(space))
    for number in (-9.0, 9.0):
        taken = single(actions.outward(dilim.tensor([[number]])))
        assert space.contains(taken.astype(np.float64))
        assert abs(taken[0] - np.clip(number, 0.1, 0.3)) < 1e-7


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ([-np.inf], [1.0], r"Acting: expected finite action_low <= action_high, received .*inf"),
        ([-3e38], [3e38], "expected finite action_low <= action_high"),
    ],
)
def test_a_box_without_bounds_is_refused(low, high, message):
    with pytest.raises(EnvironmentContractError, match=message):
        actions_of(Acting(spaces.Box(np.float32(low), np.float32(high))))


def test_other_actions_are_refused():
    with pytest.raises(
        EnvironmentContractError, match=r"a Discrete, or a Box of floats, received Box\(0, 9, "
    ):
        actions_of(Acting(spaces.Box(0, 9, (2,), dtype=np.int64)))
    with pytest.raises(EnvironmentContractError, match=r"received MultiDiscrete\(\[2 3\]\)"):
        actions_of(Acting(spaces.MultiDiscrete([2, 3])))
    with pytest.raises(ShapeError, match=r"of one shape .* received \(1,\) and \(2,\)"):
        BoxActions([0.0], [1.0, 2.0])
    with pytest.raises(ShapeError, match="at least one number"):
        BoxActions([], [])
    with pytest.raises(ValueError, match="expected finite action_low <= action_high"):
        BoxActions([1.0], [0.0])
    with pytest.raises(ShapeError, match="expected action_count >= 1, received 0"):
        DiscreteActions(0)
    with pytest.raises(ValueError, match="expected action_count, or action_low and action_high"):
        actions_from(2, 0, [0.0], [1.0])


def test_an_agent_refuses_actions_that_it_cannot_learn():
    message = r"REINFORCE: expected a Discrete .*, received a Box of shape \(1,\) from -2 to 2"
    with pytest.raises(EnvironmentContractError, match=f"{message} in Pendulum; in a Box act SAC"):
        REINFORCE.for_env(Pendulum())
    with pytest.raises(EnvironmentContractError, match=f"{message};"):
        REINFORCE(3, action_count=None, action_low=[-2.0], action_high=[2.0])
    with pytest.raises(
        EnvironmentContractError, match=r"has 2 actions from 0, Pendulum has a Box of shape \(1,\)"
    ):
        REINFORCE(3).train(Pendulum(), steps=1)
