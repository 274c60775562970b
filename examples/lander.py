"""An environment from nothing: a lander, checked, and trained in one compiled loop.

See docs/environment-tutorial.md. Run it with ``python examples/lander.py``.
"""

import numpy as np
from gymnasium import spaces

import dilim
from dilim.rl import TensorEnvironment, check_env

STEP_S = 0.1
GRAVITY = 1.62
MAIN_ENGINE = 4.0
SIDE_ENGINE = 1.5


class Lander(TensorEnvironment):
    """Set a lander down softly on a pad on the moon.

    **State**: float32, shape (4,): the place x, y in m, with the pad at 0, 0, and the velocity in
    m/s.

    **Observation**: the state divided by 5 m, 10 m, 2 m/s and 4 m/s.

    **Action**: Discrete(4): 0 nothing, 1 the main engine (upwards), 2 push to the left, 3 to the
    right.

    **Start**: 10 m up, up to 3 m to the side, nearly at rest.

    **Reward**: -0.02 for a step with an engine on; in the step that touches the ground also
    10 - 4 speed - 2 |x|, or -10 where that is less; -10 for leaving.

    **End**: terminated on the ground, or more than 10 m aside or 15 m up; truncated after
    ``max_steps`` steps.
    """

    def __init__(self, *, max_steps: int | None = 150, render_mode: str | None = None) -> None:
        super().__init__(max_steps=max_steps, render_mode=render_mode)
        self.observation_space = spaces.Box(-20.0, 20.0, (4,), dtype=np.float32)
        self.action_space = spaces.Discrete(4)
        self._scale = dilim.tensor([5.0, 10.0, 2.0, 4.0])

    def initial(self, generator, shape=()):
        """High up, nearly at rest."""
        x = generator.uniform(shape, -3.0, 3.0)
        speed = generator.uniform((*shape, 2), -0.5, 0.5)
        place = dilim.stack([x, dilim.full(shape, 10.0)], axis=-1)
        return dilim.concat([place, speed], axis=-1)

    def transition(self, state, action, generator):
        """A tenth of a second."""
        x, y, vx, vy = state[..., 0], state[..., 1], state[..., 2], state[..., 3]
        aside = (action == 3).astype("float32") - (action == 2).astype("float32")
        up = (action == 1).astype("float32")
        vx = vx + SIDE_ENGINE * STEP_S * aside
        vy = vy + (MAIN_ENGINE * up - GRAVITY) * STEP_S
        return dilim.stack([x + vx * STEP_S, y + vy * STEP_S, vx, vy], axis=-1)

    def observation(self, state):
        """The state in handy units."""
        return state / self._scale

    def reward(self, state, action, next_state):
        """The cost of fuel, and what the landing is worth."""
        fuel = (action > 0).astype("float32") * -0.02
        vx, vy = next_state[..., 2], next_state[..., 3]
        speed = dilim.sqrt(vx * vx + vy * vy)
        landing = 10.0 - 4.0 * speed - 2.0 * abs(next_state[..., 0])
        worth = dilim.where(next_state[..., 1] <= 0.0, dilim.maximum(landing, -10.0), -10.0)
        return fuel + dilim.where(self.terminal(next_state), worth, 0.0)

    def terminal(self, state):
        """Whether it is on the ground, or gone."""
        x, y = state[..., 0], state[..., 1]
        return (y <= 0.0) | (y > 15.0) | (abs(x) > 10.0)

    def draw_text(self, state):
        """The sky in 12 lines, the lander and the pad."""
        x, y, _, _ = state.tolist()
        rows = [[" "] * 41 for _ in range(12)]
        row = min(max(11 - round(y), 0), 11)
        rows[row][min(max(20 + round(2 * x), 0), 40)] = "A"
        return "\n".join(
            ["".join(line).rstrip() for line in rows] + ["-" * 18 + "=====" + "-" * 18]
        )


POLICIES = 1024


def play(env, weights, generator):
    """The return of one episode for each of many linear policies, (N, 5, 4)."""
    count = weights.shape[0]
    running, observation = env.start(generator, (count,))
    returns, going = dilim.zeros((count,)), dilim.ones((count,))
    for _ in range(150):
        seen = dilim.concat([observation, dilim.ones((count, 1))], axis=1)
        action = (seen[:, None, :] @ weights)[:, 0, :].argmax(axis=1)
        running, observation, reward, terminated, truncated, _ = env.advance(
            running, action, generator
        )
        returns = returns + going * reward
        going = going * (1.0 - (terminated | truncated).astype("float32"))
    return returns


def train(env, generator, rounds):
    """The cross-entropy method: draw policies, keep the best, draw around them."""
    mean, spread = dilim.zeros((5, 4)), dilim.ones((5, 4))
    for _ in range(rounds):
        weights = mean + spread * generator.normal((POLICIES, 5, 4))
        returns = play(env, weights, generator)
        best = dilim.take(weights, dilim.argsort(returns)[-128:], axis=0)
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.1
    return mean


def mean_return(env, policy, seed):
    """Of a policy, over 200 starts."""
    weights = dilim.zeros((200, 5, 4)) + policy
    return float(play(env, weights, dilim.Generator(seed)).mean())


def main(steps: int = 150) -> None:
    """Check the environment, train in it, and show a landing.

    Args:
        steps: rounds of training.
    """
    env = Lander(render_mode="ansi")
    for advice in check_env(env):
        print(advice)
    fast = dilim.compile(train, compile_after=0)
    policy = fast(env, dilim.Generator(0), steps)
    print(f"untrained {mean_return(env, dilim.zeros((5, 4)), 1):.2f}")
    print(f"after {steps} rounds {mean_return(env, policy, 1):.2f}")
    observation, _ = env.reset(seed=3)
    ended = False
    while not ended:
        seen = dilim.concat([dilim.tensor(observation), dilim.ones((1,))])
        action = int((seen @ policy).argmax())
        observation, _, terminated, truncated, _ = env.step(action)
        ended = terminated or truncated
    print(env.render())


if __name__ == "__main__":
    main()
