"""GridWorld, FrozenLake and Snake against plain Python that plays the same games."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dilim
from dilim.errors import EnvironmentContractError
from dilim.rl import FrozenLake, GridWorld, Snake
from dilim.rl.envs.frozen_lake import LAKES

UP, RIGHT, DOWN, LEFT = range(4)
AHEAD, TURN_RIGHT, TURN_LEFT = range(3)


def total(env, actions):
    """The return of an episode, and how it ended."""
    env.reset(seed=0)
    rewards = []
    for action in actions:
        _, reward, terminated, truncated, _ = env.step(action)
        rewards.append(reward)
        if terminated or truncated:
            return sum(rewards), terminated, truncated, len(rewards)
    return sum(rewards), False, False, len(rewards)


# --- GridWorld ------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "best", "worst"), [(8, 0.87, -1.37), (4, 0.95, -0.41)])
def test_best_and_worst_returns(size, best, worst):
    shortest = [RIGHT, DOWN] * (size - 1)
    assert total(GridWorld(size), shortest) == (pytest.approx(best), True, False, 2 * size - 2)
    standing = [UP] * 1000
    assert total(GridWorld(size), standing) == (pytest.approx(worst), False, True, 2 * size**2)


def test_the_goal_at_the_last_moment_is_no_timeout():
    env = GridWorld(4, timeout=6)
    assert total(env, [RIGHT, DOWN] * 3) == (pytest.approx(0.95), True, False, 6)
    assert total(env, [UP] * 6) == (pytest.approx(-0.15), False, True, 6)


def test_moves_edges_and_observations():
    env = GridWorld(3)
    env.reset(seed=0)
    seen = [env.step(action)[0].tolist() for action in (LEFT, DOWN, DOWN, DOWN, RIGHT, UP, LEFT)]
    assert seen == [[0, 0], [0.5, 0], [1, 0], [1, 0], [1, 0.5], [0.5, 0.5], [0.5, 0]]
    observation, _ = env.reset(options={"row": 1, "column": 2})
    assert observation.tolist() == [0.5, 1.0]


def test_obstacles_are_in_the_way():
    env = GridWorld(3, obstacles=[(0, 1), (1, 1)])
    env.reset(seed=0)
    seen = [env.step(action)[0].tolist() for action in (RIGHT, DOWN, RIGHT, DOWN, RIGHT)]
    assert seen == [[0, 0], [0.5, 0], [0.5, 0], [1, 0], [1, 0.5]]
    assert env.draw_text(env.state) == ". # .\n. # .\n. @ G"


def test_grids_that_cannot_be_are_refused():
    with pytest.raises(EnvironmentContractError, match="no way leads from the upper left corner"):
        GridWorld(3, obstacles=[(0, 1), (1, 0)])
    with pytest.raises(EnvironmentContractError, match="no way leads"):
        GridWorld(3, obstacles=[(2, 2)])
    with pytest.raises(EnvironmentContractError, match=r"\(3, 0\) is outside the grid of 3 x 3"):
        GridWorld(3, obstacles=[(3, 0)])
    with pytest.raises(EnvironmentContractError, match="expected size >= 2 and timeout >= 1"):
        GridWorld(1)


# --- FrozenLake -----------------------------------------------------------------------------


@pytest.mark.parametrize("lake", sorted(LAKES))
def test_every_step_on_firm_ice_is_that_of_gymnasium(lake):
    theirs = gymnasium.make("FrozenLake-v1", map_name=lake, is_slippery=False).unwrapped
    env = FrozenLake(lake, slippery=False)
    for cell, moves in theirs.P.items():
        for action, [(_, expected, reward, ends)] in moves.items():
            before = dilim.tensor(cell)
            after = env.transition(before, dilim.tensor(action), dilim.Generator(0))
            assert int(after) == expected
            assert bool(env.terminal(after)) == ends
            if cell != expected:
                assert float(env.reward(before, dilim.tensor(action), after)) == reward


@pytest.mark.parametrize("rate", [1 / 3, 0.8])
def test_slips_are_as_likely_as_gymnasiums(rate):
    theirs = gymnasium.make("FrozenLake-v1", success_rate=rate).unwrapped
    env = FrozenLake(success_rate=rate)
    generator = dilim.Generator(0)
    count = 4000
    for cell, moves in theirs.P.items():
        for action, outcomes in moves.items():
            expected = np.zeros(16)
            for chance, place, _, _ in outcomes:
                expected[place] += chance
            cells = dilim.full((count,), cell, dtype="int64")
            after = env.transition(cells, dilim.full((count,), action, dtype="int64"), generator)
            seen = np.bincount(after.numpy(), minlength=16) / count
            assert ((seen > 0) == (expected > 0)).all()
            assert np.abs(seen - expected).max() < 0.04


def test_lakes_are_checked():
    for lake in (["SF", "F"], ["SF", "FF"], ["FF", "FG"], ["SX", "FG"], ["SS", "FG"]):
        with pytest.raises(EnvironmentContractError, match="expected rows of one length"):
            FrozenLake(lake)
    with pytest.raises(EnvironmentContractError, match="unknown lake '5x5'; there are 4x4, 8x8"):
        FrozenLake("5x5")
    with pytest.raises(EnvironmentContractError, match="success_rate between 0 and 1"):
        FrozenLake(success_rate=2.0)
    env = FrozenLake(["SFG"], slippery=False)
    env.reset(seed=0)
    assert env.step(2)[:3][0].tolist() == [0.0, 1.0, 0.0]
    assert env.step(2)[1:3] == (1.0, True)


# --- Snake ----------------------------------------------------------------------------------


class PlainSnake:
    """The rules with lists; the food comes from the environment."""

    MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))

    def __init__(self, size, food):
        middle = size // 2
        self.size = size
        self.body = [(middle, middle - k) for k in range(3)]  # head first
        self.heading = RIGHT
        self.food = food
        self.hunger = 0

    def ahead(self, turn):
        down, right = self.MOVES[(self.heading + turn) % 4]
        row, column = self.body[0]
        return row + down, column + right

    def is_deadly(self, place, body):
        return place in body or not all(0 <= x < self.size for x in place)

    def step(self, action, next_food):
        """Reward, terminated, truncated."""
        turn = (0, 1, -1)[action]
        place = self.ahead(turn)
        self.heading = (self.heading + turn) % 4
        eats = place == self.food
        self.hunger = 0 if eats else self.hunger + 1
        rest = self.body if eats else self.body[:-1]
        if self.is_deadly(place, rest):
            return -10.0, True, False
        self.body = [place, *rest]
        if eats:
            self.food = next_food
            return 10.0, len(self.body) == self.size**2, False
        hungry = self.hunger >= self.size**2
        return (-5.0 if hungry else -0.01), False, hungry

    def features(self):
        danger = [self.is_deadly(self.ahead(turn), self.body[:-1]) for turn in (0, 1, -1)]
        heading = [self.heading == k for k in range(4)]
        (row, column), food = self.body[0], self.food or self.body[0]
        seen = [food[0] < row, food[1] > column, food[0] > row, food[1] < column]
        return [float(x) for x in (*danger, *heading, *seen)]

    def image(self):
        planes = np.zeros((3, self.size, self.size), np.float32)
        for k, place in enumerate(self.body):
            planes[0][place] = np.float32(len(self.body) - k) / np.float32(len(self.body))
        planes[1][self.body[0]] = 1.0
        if self.food:
            planes[2][self.food] = 1.0
        return planes


def food_of(env):
    cell = env.state[3].item()
    return None if cell < 0 else divmod(cell, env.size)


def greedy(plain, numbers):
    """Towards the food and away from danger, mostly: gets long enough to meet its body."""
    shown = plain.features()
    actions = [a for a in range(3) if not shown[a]] or [AHEAD]
    if numbers.random() < 0.2:
        return int(numbers.choice(actions))
    row, column = plain.food or (0, 0)

    def distance(action):
        y, x = plain.ahead((0, 1, -1)[action])
        return abs(y - row) + abs(x - column)

    return min(actions, key=distance)


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**20), size=st.integers(4, 6), sight=st.sampled_from(["features", "image"])
)
def test_snake_plays_by_the_rules(seed, size, sight):
    env = Snake(size, sight=sight)
    observation, _ = env.reset(seed=seed)
    plain = PlainSnake(size, food_of(env))
    numbers = np.random.default_rng(seed)
    for _ in range(120):
        expected = plain.features() if sight == "features" else plain.image()
        np.testing.assert_array_equal(observation, expected)
        assert food_of(env) not in plain.body
        action = greedy(plain, numbers) if numbers.random() < 0.97 else int(numbers.integers(3))
        observation, *outcome, _ = env.step(action)
        reward, terminated, truncated = plain.step(action, food_of(env))
        assert outcome == [pytest.approx(reward), terminated, truncated]
        if terminated or truncated:
            return


def at(env, body, heading, food, hunger=0):
    """Put a snake (cells, head first) on the board."""
    env.reset(seed=0)
    board = np.zeros(env.size**2, np.int32)
    for k, (row, column) in enumerate(body):
        board[row * env.size + column] = len(body) - k
    arrays = env.get_state()
    values = (board, body[0], heading, food[0] * env.size + food[1], len(body), hunger, False)
    for k, value in enumerate(values):
        name = f"state.{k}"
        arrays[name] = np.asarray(value, arrays[name].dtype)
    env.set_state(arrays)


def test_the_cell_that_the_tail_leaves_is_free():
    env = Snake(4)
    at(env, [(0, 0), (0, 1), (1, 1), (1, 0)], LEFT, food=(3, 3))
    assert env.observation(env.state)[:3].tolist() == [1.0, 1.0, 0.0]  # left is where the tail is
    assert env.step(TURN_LEFT)[1:3] == (pytest.approx(-0.01), False)
    at(env, [(0, 0), (0, 1), (1, 1), (1, 0), (2, 0)], LEFT, food=(3, 3))
    assert env.step(TURN_LEFT)[1:3] == (-10.0, True)


def test_a_full_board_is_won():
    cells = [
        (row, column) for row in range(4) for column in (range(4) if row % 2 else range(3, -1, -1))
    ]
    env = Snake(4)
    at(env, cells[1:], RIGHT, food=cells[0])
    assert cells[0] == (0, 3)
    observation, reward, terminated, truncated, _ = env.step(AHEAD)
    assert (reward, terminated, truncated) == (10.0, True, False)
    assert observation[7:].tolist() == [0.0] * 4
    assert env.state[3].item() == -1
    assert "*" not in env.draw_text(env.state)


def test_hunger_is_a_cut():
    env = Snake(4)
    at(env, [(1, 1), (1, 0), (0, 0)], RIGHT, food=(3, 3), hunger=15)
    assert env.step(AHEAD)[1:4] == (-5.0, False, True)
    at(env, [(1, 1), (1, 0), (0, 0)], RIGHT, food=(1, 2), hunger=15)
    assert env.step(AHEAD)[1:4] == (10.0, False, False)
    assert env.state[5].item() == 0


def test_walls_are_deadly_and_the_picture_stays_whole():
    env = Snake(4, sight="image")
    at(env, [(0, 3), (0, 2), (0, 1)], RIGHT, food=(3, 3))
    before = env.observation(env.state).tolist()
    observation, reward, terminated, _, _ = env.step(AHEAD)
    assert (reward, terminated) == (-10.0, True)
    assert observation.tolist() == before
    assert env.draw_text(env.state).splitlines()[1] == "# oo@#"


def test_food_falls_on_every_free_cell_alike():
    env = Snake(4)
    foods = env.initial(dilim.Generator(0), (13_000,))[3].numpy()
    counts = np.bincount(foods, minlength=16)
    body = np.flatnonzero(env.initial(dilim.Generator(0))[0].numpy())
    assert (counts[body] == 0).all()
    free = np.delete(counts, body)
    assert len(free) == 13
    assert np.abs(free - 1000).max() < 150


def test_snakes_that_cannot_be_are_refused():
    with pytest.raises(EnvironmentContractError, match="expected size >= 4 and sight 'features'"):
        Snake(3)
    with pytest.raises(EnvironmentContractError, match="received 10 and 'sound'"):
        Snake(sight="sound")
