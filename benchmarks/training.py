"""How fast agents train in CartPole, in fresh processes, with empty and with filled caches.

*Steps a second* are counted after a warm-up, the loop being one native program; in the cases named
``python`` Gymnasium's own CartPole is stepped by Python, in those named ``workers`` in processes of
their own. *Solved* goes from the start of the process to the first mean greedy return of 475 over
20 episodes, evaluations included; medians over seeds 0 to 4, the cache of compiled code being empty
(``cold``) or filled (``warm``).

    python benchmarks/training.py [--quick] [--only dqn_small,solved] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import SOURCE, UNSET, Row, writer

PPO: dict[str, Any] = {"agent": "PPO", "options": {"learning_rate": 1e-3}}
SMALL: dict[str, Any] = {"hidden_sizes": [64, 64], "batch_size": 32}
CASES: dict[str, dict[str, Any]] = {
    "dqn_small": {"agent": "DQN", "options": SMALL},
    "dqn_zoo": {
        "agent": "DQN",
        "options": {
            "hidden_sizes": [256, 256],
            "batch_size": 64,
            "learning_rate": 2.3e-3,
            "buffer_capacity": 100_000,
            "learning_starts": 1000,
            "target_update_frequency": 10,
            "train_frequency": 256,
            "gradient_steps": 128,
        },
    },
    "dqn": {
        "agent": "DQN",
        "options": {
            "hidden_sizes": [64, 64],
            "learning_rate": 2e-3,
            "buffer_capacity": 50_000,
            "batch_size": 64,
            "target_update_frequency": 200,
            "epsilon_schedule": {
                "schedule": "LinearDecay",
                "start": 1.0,
                "end": 0.02,
                "steps": 3000,
            },
            "double": True,
            "n_step": 3,
        },
    },
    "ppo_4": {**PPO, "envs": 4, "options": {**PPO["options"], "rollout_length": 128}},
    "ppo_64": {**PPO, "envs": 64, "options": {**PPO["options"], "rollout_length": 32}},
    "ppo_512": {**PPO, "envs": 512, "options": {**PPO["options"], "rollout_length": 32}},
    "dqn_python": {"agent": "DQN", "env": "CartPole-v1", "options": SMALL},
    "ppo_4_python": {**PPO, "env": "CartPole-v1", "envs": 4},
    "ppo_4_workers": {**PPO, "env": "CartPole-v1", "envs": 4, "workers": 2},
    "reinforce": {
        "agent": "REINFORCE",
        "options": {"hidden_sizes": [64], "activation": "tanh", "learning_rate": 0.007},
    },
}
SOLVERS = ("reinforce", "ppo_64", "dqn")
SEEDS = range(5)


# ------------------------------------------------------------------ in the fresh process
def child(case: str, seed: int, until: float | None) -> Row:
    """Steps a second of training, or what it took to solve CartPole."""
    import gymnasium

    import dilim.rl

    settings = CASES[case]
    env, envs = dilim.rl.CartPole(), settings.get("envs", 1)
    how: dict[str, Any] = {"num_envs": envs}
    if "env" in settings:
        env = gymnasium.make(settings["env"])
        how["num_workers"] = settings.get("workers", 0)
    agent = getattr(dilim.rl, settings["agent"]).for_env(env, seed=seed, **settings["options"])
    if until is not None:
        agent.train(env, steps=2_000_000 // envs * envs, num_envs=envs, until=until)
        return {"steps": agent.steps, "evaluation": agent.last_evaluation}
    block = 512 * 32
    agent.train(env, steps=2 * block, **how)  # by then it is compiled
    counts, started = 0, time.perf_counter()
    while time.perf_counter() - started < 3.0:
        agent.train(env, steps=block, **how)
        counts += block
    return {"steps_per_s": counts / (time.perf_counter() - started)}


# ------------------------------------------------------------------ outside
def run_child(cache: Path, *arguments: Any) -> Row:
    environment = {**os.environ, "DILIM_CACHE": str(cache), "PYTHONPATH": str(SOURCE)}
    for name in (*UNSET, "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    command = [sys.executable, __file__, "--child", json.dumps(arguments)]
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1][:300]}
    answer: Row = json.loads(done.stdout.splitlines()[-1])
    return answer | {"seconds": time.perf_counter() - started}


def rates(case: str, cache: Path, rounds: int) -> Row:
    """The median of some processes."""
    row = {"benchmark": "training", "case": f"{case}, steps a second", "peer": "dilim"}
    answers = [run_child(cache, case, 1000 + k, None) for k in range(rounds)]
    failed = [answer for answer in answers if "error" in answer]
    if failed:
        return row | failed[0]
    return row | {"median": statistics.median(answer["steps_per_s"] for answer in answers)}


def solved(case: str, state: str, seeds: range) -> Row:
    """Seconds to solve CartPole, of the whole process."""
    row: Row = {"benchmark": "training", "case": f"{case}, solved, {state}, s", "peer": "dilim"}
    answers = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            if state == "warm":
                run_child(Path(folder), case, seed, 475.0)
            answers.append(run_child(Path(folder), case, seed, 475.0))
        if "error" in answers[-1]:
            return row | answers[-1]
    seconds = [answer["seconds"] for answer in answers]
    reached = sum(answer["evaluation"] >= 475.0 for answer in answers)
    return row | {
        "median": statistics.median(seconds),
        "all": [round(x, 2) for x in seconds],
        "solved": f"{reached} of {len(answers)}",
        "steps": statistics.median(answer["steps"] for answer in answers),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="one process and one seed each")
    parser.add_argument("--only", default=",".join((*CASES, "solved")), help="default: %(default)s")
    parser.add_argument("--out", type=Path, help="append the JSON lines to this file")
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(*json.loads(options.child))))
        return
    emit = writer(options.out)
    with tempfile.TemporaryDirectory() as folder:
        for case in options.only.split(","):
            if case in CASES:
                emit(rates(case, Path(folder), 1 if options.quick else 3))
    if "solved" in options.only.split(","):
        for case in SOLVERS:
            for state in ("cold", "warm"):
                emit(solved(case, state, SEEDS[:1] if options.quick else SEEDS))


if __name__ == "__main__":
    main()
