"""What do the agents of ``dilim train pendulum`` learn? Every seed is reported.

    python benchmarks/pendulum.py                    # some minutes; writes docs/results/pendulum.md
    python benchmarks/pendulum.py --seeds 1000-1002 --output /tmp/pendulum.md

Per agent and seed, with the settings that ship: train for all episodes, then play 100 new episodes
greedily. One after the other, each in a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import time
from pathlib import Path
from statistics import fmean
from typing import Any

from acceptance import ROOT, seeds_of

AGENTS = ("sac", "td3", "ppo")
TEST_EPISODES = 100

HEAD = """# Pendulum: what SAC, TD3 and PPO reach

Made by `python benchmarks/pendulum.py`; every seed that was run is here. The settings are those of
`dilim train pendulum --agent ...`, and were tuned on seeds from 1000 on, never on these. *Test* is
the mean return of 100 new episodes, greedily, after the last one of training; a good controller has
about -150. *Seconds* are those of training alone, slicing and compiling included, one process on
{cores} cores, which other programs used as well.

| agent | seed | episodes | steps | seconds | steps per second | test |
| --- | --- | --- | --- | --- | --- | --- |
"""


def trained(case: tuple[str, int]) -> dict[str, Any]:
    """One agent with one seed."""
    from dilim.rl import AGENTS, Pendulum, preset

    name, seed = case
    settings = preset("pendulum", name)
    agent = AGENTS[name].for_env(Pendulum(), seed=seed, **settings.options)
    began = time.perf_counter()
    agent.train(Pendulum(), episodes=settings.episodes)
    seconds = time.perf_counter() - began
    test = fmean(agent.evaluate(Pendulum(), TEST_EPISODES, seed=10_000 + seed))
    row = {"agent": name, "seed": seed, "episodes": agent.episodes, "steps": agent.steps}
    return {**row, "seconds": seconds, "test": test}


def line(row: dict[str, Any]) -> str:
    return (
        f"| {row['agent']} | {row['seed']} | {row['episodes']} | {row['steps']:,} | "
        f"{row['seconds']:.1f} | {row['steps'] / row['seconds']:,.0f} | {row['test']:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0-4", type=seeds_of)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "results" / "pendulum.md")
    options = parser.parse_args()
    cases = [(agent, seed) for agent in AGENTS for seed in options.seeds]
    rows = []
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for row in pool.imap(trained, cases):
            rows.append(row)
            print(line(row), flush=True)
    means = [
        f"- {agent}: mean {fmean(r['test'] for r in rows if r['agent'] == agent):.1f}"
        for agent in AGENTS
    ]
    text = HEAD.format(cores=os.cpu_count()) + "\n".join(map(line, rows))
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}."
    options.output.write_text("\n".join([text, "", *means, "", machine, ""]))


if __name__ == "__main__":
    main()
