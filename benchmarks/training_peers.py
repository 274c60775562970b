"""How fast Stable-Baselines3 and SBX train in CartPole, with the settings of `training.py`.

*Steps a second* are counted after the first steps, which compile or fill the memory; one thread of
PyTorch. Both need ``pip install stable-baselines3 sbx-rl``.

    python benchmarks/training_peers.py [--only dqn_small,dqn_zoo,ppo_4] [--seconds 10] [--out FILE]
"""

from __future__ import annotations

import argparse
import importlib
import time
from pathlib import Path
from typing import Any

import gymnasium
from harness import writer

PEERS = {"Stable-Baselines3": "stable_baselines3", "SBX": "sbx"}
SMALL = {"batch_size": 32, "train_freq": 1, "gradient_steps": 1, "learning_starts": 32}
ZOO = {
    "batch_size": 64,
    "learning_rate": 2.3e-3,
    "buffer_size": 100_000,
    "learning_starts": 1000,
    "target_update_interval": 10,
    "train_freq": 256,
    "gradient_steps": 128,
}
CASES: dict[str, tuple[str, list[int], dict[str, Any], int]] = {
    "dqn_small": ("DQN", [64, 64], {**SMALL, "buffer_size": 10_000}, 1),
    "dqn_zoo": ("DQN", [256, 256], ZOO, 1),
    "ppo_4": ("PPO", [64, 64], {"n_steps": 128, "batch_size": 128, "n_epochs": 4}, 4),
}


def rate(module: Any, case: str, seconds: float) -> float:
    """Steps a second."""
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    name, sizes, options, count = CASES[case]

    class Clock(BaseCallback):
        """Counts from when some of the time is over."""

        began = first = 0.0

        def _on_step(self) -> bool:
            now = time.perf_counter()
            self.began = self.began or now
            if now - self.began > 0.3 * seconds and not self.first:
                self.first, self.steps = now, self.num_timesteps
            return now - self.began < 1.3 * seconds

    env = make_vec_env("CartPole-v1", n_envs=count) if count > 1 else gymnasium.make("CartPole-v1")
    agent = getattr(module, name)(
        "MlpPolicy", env, policy_kwargs={"net_arch": sizes}, seed=0, device="cpu", **options
    )
    clock = Clock()
    agent.learn(10_000_000, callback=clock)
    return (clock.num_timesteps - clock.steps) / (time.perf_counter() - clock.first)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(CASES), help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path, help="append the JSON lines to this file")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    emit = writer(options.out)
    for case in options.only.split(","):
        for peer, name in PEERS.items():
            row: dict[str, Any] = {"benchmark": "training", "case": f"{case}, steps a second"}
            try:
                found = rate(importlib.import_module(name), case, options.seconds)
                emit({**row, "peer": peer, "median": found})
            except Exception as error:
                emit({**row, "peer": peer, "error": f"{type(error).__name__}: {error}"[:200]})


if __name__ == "__main__":
    main()
