# ruff: noqa: NPY002
"""Deep Q-learning on CartPole in one file, after CleanRL's dqn.py."""

import random
from collections import deque
from dataclasses import dataclass

import gymnasium as gym
import numpy as np

import dilim
import dilim.nn as nn
import dilim.optim as optim


@dataclass
class Args:
    seed: int = 1
    learning_rate: float = 2.5e-4
    buffer_size: int = 10000
    gamma: float = 0.99
    tau: float = 1.0
    target_network_frequency: int = 50
    batch_size: int = 16
    start_e: float = 1.0
    end_e: float = 0.05
    exploration_fraction: float = 0.5
    learning_starts: int = 40
    train_frequency: int = 4


class QNetwork(nn.Module):
    def __init__(self, env):
        super().__init__()
        self.network = nn.Sequential(
            nn.Dense(int(np.prod(env.observation_space.shape)), 24),
            nn.ReLU(),
            nn.Dense(24, 16),
            nn.ReLU(),
            nn.Dense(16, int(env.action_space.n)),
        )

    def forward(self, x):
        return self.network(x)


def linear_schedule(start_e, end_e, duration, t):
    slope = (end_e - start_e) / duration
    return max(slope * t + start_e, end_e)


class ReplayBuffer:
    def __init__(self, size):
        self.rows = deque(maxlen=size)

    def add(self, obs, next_obs, action, reward, terminated):
        self.rows.append((obs, next_obs, action, reward, terminated))

    def sample(self, batch_size):
        rows = random.sample(self.rows, batch_size)
        obs, next_obs, actions, rewards, dones = zip(*rows, strict=True)
        return (
            dilim.tensor(np.stack(obs)),
            dilim.tensor(np.stack(next_obs)),
            dilim.tensor(np.array(actions, np.int64)),
            dilim.tensor(np.array(rewards, np.float32)),
            dilim.tensor(np.array(dones, np.float32)),
        )


args = Args()
random.seed(args.seed)
np.random.seed(args.seed)
dilim.seed(args.seed)

env = gym.make("CartPole-v1")
q_network = QNetwork(env)
optimizer = optim.Adam(q_network.parameters(), learning_rate=args.learning_rate)
target_network = QNetwork(env)
target_network.load_state_dict(q_network.state_dict())
rb = ReplayBuffer(args.buffer_size)


def train(total_timesteps):
    returns = []
    episode_return = 0.0
    obs, _ = env.reset(seed=args.seed)
    for global_step in range(total_timesteps):
        # the action: by chance, or the best
        epsilon = linear_schedule(
            args.start_e, args.end_e, args.exploration_fraction * total_timesteps, global_step
        )
        if random.random() < epsilon:
            action = random.randrange(2)
        else:
            q_values = q_network(dilim.tensor(obs))
            action = int(dilim.argmax(q_values))

        next_obs, reward, terminated, truncated, _ = env.step(action)
        episode_return += reward
        rb.add(obs, next_obs, action, reward, terminated)
        obs = next_obs
        if terminated or truncated:
            print(f"global_step={global_step}, episodic_return={episode_return}")
            returns.append(episode_return)
            episode_return = 0.0
            obs, _ = env.reset()

        # learning
        if global_step > args.learning_starts:
            if global_step % args.train_frequency == 0:
                observations, next_observations, actions, rewards, dones = rb.sample(
                    args.batch_size
                )
                with dilim.no_grad():
                    target_max = target_network(next_observations).max(axis=1)
                    td_target = rewards + args.gamma * target_max * (1 - dones)
                old_val = dilim.take_along_axis(
                    q_network(observations), actions[:, None], axis=1
                ).squeeze(axis=1)
                loss = nn.losses.mse(old_val, td_target)

                if global_step % 20 == 0:
                    print("losses/td_loss", global_step, loss.item())
                    print("losses/q_values", global_step, old_val.mean().item())

                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

            if global_step % args.target_network_frequency == 0:
                with dilim.no_grad():
                    for target_param, param in zip(
                        target_network.parameters(), q_network.parameters(), strict=True
                    ):
                        target_param[...] = args.tau * param + (1.0 - args.tau) * target_param
    return returns


f = train
