"""Deep Q-learning on a cart and a pole, all of it in tensors: the world, the memory, learning.

Nothing here needs the host, so the whole training is one native program.
"""

import dilim
from dilim import nn, optim
from dilim.nn import losses

CART, POLE, LENGTH, GRAVITY, FORCE, TAU = 1.0, 0.1, 0.5, 9.8, 10.0, 0.02


def transition(state, action):
    x, v, angle, spin = state[0], state[1], state[2], state[3]
    force = dilim.where(action == 1, FORCE, -FORCE)
    cos, sin = dilim.cos(angle), dilim.sin(angle)
    total = CART + POLE
    temp = (force + POLE * LENGTH * spin * spin * sin) / total
    acc_angle = (GRAVITY * sin - cos * temp) / (LENGTH * (4.0 / 3.0 - POLE * cos * cos / total))
    acc = temp - POLE * LENGTH * acc_angle * cos / total
    return dilim.stack([x + TAU * v, v + TAU * acc, angle + TAU * spin, spin + TAU * acc_angle])


def failed(state):
    return (dilim.abs(state[0]) > 2.4) | (dilim.abs(state[2]) > 0.2095)


class Replay:
    def __init__(self, capacity, size):
        self.observations = dilim.zeros((capacity, size))
        self.following = dilim.zeros((capacity, size))
        self.actions = dilim.zeros((capacity,), dtype=dilim.int64)
        self.rewards = dilim.zeros((capacity,))
        self.ends = dilim.zeros((capacity,))
        self.capacity = capacity
        self.count = 0

    def add(self, observation, action, reward, following, end):
        place = self.count % self.capacity
        self.observations[place] = observation
        self.following[place] = following
        self.actions[place] = action
        self.rewards[place] = reward
        self.ends[place] = end
        self.count += 1

    def sample(self, generator, size):
        filled = min(self.count, self.capacity)
        index = (generator.uniform((size,)) * filled).astype(dilim.int64)
        return (
            self.observations[index],
            self.actions[index],
            self.rewards[index],
            self.following[index],
            self.ends[index],
        )


class Agent:
    def __init__(self, seed=0):
        g = dilim.Generator(seed)
        self.generator = g
        self.online = nn.MLP(4, [64, 64, 2], "relu", generator=g)
        self.target = nn.MLP(4, [64, 64, 2], "relu", generator=g)
        self.optimizer = optim.Adam(self.online, 1e-3)
        self.replay = Replay(10_000, 4)
        self.steps = 0
        self.episodes = 0
        self.epsilon = 1.0

    def act(self, observation):
        if self.generator.uniform(()) < self.epsilon:
            return self.generator.integers(0, 2, ())
        return self.online(observation).argmax()

    def learn(self):
        observations, actions, rewards, following, ends = self.replay.sample(self.generator, 32)
        with dilim.no_grad():
            wanted = rewards + 0.99 * (1 - ends) * self.target(following).max(axis=1)
        chosen = dilim.take_along_axis(self.online(observations), actions[:, None], axis=1)[:, 0]
        loss = losses.huber(chosen, wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def sync(self):
        for a, b in zip(self.target.parameters(), self.online.parameters(), strict=False):
            with dilim.no_grad():
                a[...] = b

    def train(self, steps):
        state = self.generator.uniform((4,), -0.05, 0.05)
        _total, length = dilim.tensor(0.0), 0
        for step in range(steps):
            action = self.act(state)
            following = transition(state, action)
            end = failed(following)
            self.replay.add(state, action, 1.0, following, end.astype(dilim.float32))
            length += 1
            self.epsilon = max(0.05, self.epsilon - 1e-4)
            if step >= 100:
                self.learn()
            if step % 200 == 0:
                self.sync()
            if end or length >= 500:
                self.episodes += 1
                state = self.generator.uniform((4,), -0.05, 0.05)
                length = 0
            else:
                state = following
        return self.episodes


agent = Agent()


def f(steps):
    episodes = agent.train(steps)
    return (
        episodes,
        agent.replay.count,
        agent.epsilon,
        agent.online.layers[0].weight,
        agent.replay.rewards,
    )
