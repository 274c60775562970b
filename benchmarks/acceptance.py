"""Does the agent of ``dilim train cartpole`` learn? Every seed is reported.

    python benchmarks/acceptance.py                    # about 10 minutes; writes docs/results
    python benchmarks/acceptance.py --seeds 1000-1009 --no-literal --output /tmp/results

Per seed, with the settings that ship: train until the first evaluation (every 25 episodes, 20 fresh
starts, greedy) with a mean return of 475, save, load, and play 100 new episodes greedily.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean, median
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

ROOT = Path(__file__).parent.parent
THRESHOLD = 475.0
TEST_EPISODES = 100
LITERAL_EPISODES = 1000

Result = dict[str, Any]


# ------------------------------------------------------------------ one seed
def with_preset(seed: int) -> Result:
    """Train with the settings that ship, then test the saved agent."""
    from dilim.rl import REINFORCE, CartPole, preset

    settings = preset("cartpole", "reinforce")
    env = CartPole()
    agent = REINFORCE.for_env(env, seed=seed, **settings.options)
    evaluations: list[tuple[int, float]] = []
    began = time.perf_counter()
    returns = agent.train(
        env,
        episodes=settings.episodes,
        until=settings.until,
        evaluate_every=settings.evaluate_every,
        evaluation_episodes=settings.evaluation_episodes,
        on_episode=lambda e: note(evaluations, e),
    )
    seconds = time.perf_counter() - began
    return {
        "what": "preset",
        "seed": seed,
        "stopped": bool(evaluations and evaluations[-1][1] >= THRESHOLD),
        "episodes": len(returns),
        "steps": agent.steps,
        "seconds": round(seconds, 2),
        "test": tested(agent, seed),
        "returns": returns,
        "evaluations": evaluations,
    }


def literal(seed: int) -> Result:
    """The plain call with nothing tuned, and how it ends."""
    from dilim.rl import REINFORCE, CartPole

    env = CartPole()
    agent = REINFORCE(
        observation_size=4,
        hidden_sizes=[32],
        action_count=2,
        learning_rate=1e-3,
        gamma=0.99,
        seed=seed,
    )
    began = time.perf_counter()
    returns = agent.train(env, episodes=LITERAL_EPISODES)
    seconds = time.perf_counter() - began
    return {
        "what": "literal",
        "seed": seed,
        "episodes": len(returns),
        "steps": agent.steps,
        "seconds": round(seconds, 2),
        "last_100": fmean(returns[-100:]),
        "test": tested(agent, seed),
        "returns": returns,
    }


def note(evaluations: list[tuple[int, float]], episode: Any) -> None:
    if episode.evaluation is not None:
        evaluations.append((episode.episode, episode.evaluation))


def tested(agent: Any, seed: int) -> float:
    """Mean greedy return of the saved agent over new episodes."""
    from dilim.rl import Agent, CartPole

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.safetensors"
        agent.save(path)
        loaded = Agent.load(path)
    return fmean(loaded.evaluate(CartPole(), TEST_EPISODES, seed=1_000_000 + seed))


def work(task: tuple[str, int]) -> Result:
    name, seed = task
    runs: dict[str, Callable[[int], Result]] = {"preset": with_preset, "literal": literal}
    return runs[name](seed)


def all_results(tasks: list[tuple[str, int]], processes: int) -> Iterator[Result]:
    """Results as they come, with a line each."""
    began = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for number, result in enumerate(pool.imap_unordered(work, tasks), 1):
            print(
                f"[{number}/{len(tasks)}, {time.perf_counter() - began:.0f} s] {result['what']} "
                f"seed {result['seed']}: {result['episodes']} episodes, {result['steps']:,} steps, "
                f"{result['seconds']:.1f} s, test {result['test']:.1f}",
                flush=True,
            )
            yield result


# ------------------------------------------------------------------ the report
def passed(result: Result) -> bool:
    return result["stopped"] and result["test"] >= THRESHOLD


def page(presets: list[Result], literals: list[Result], facts: dict[str, Any]) -> str:
    """The Markdown page."""
    good = sum(map(passed, presets))
    lines = [
        "# CartPole: what REINFORCE reaches",
        "",
        "Made by `python benchmarks/acceptance.py`; every seed that was run is here. The settings",
        "were tuned on seeds from 1000 on, never on these.",
        "",
        "![Returns over episodes, one thin line per seed](cartpole.png)",
        "",
        "## With the settings of `dilim train cartpole`",
        "",
        "Training stops at the first evaluation (after every 25 episodes; 20 fresh starts, greedy)",
        "with a mean return of at least 475. The agent is saved and loaded, and plays 100 new",
        "episodes greedily: the column *test*, which shall be at least 475 too. The limit is 1,500",
        "episodes; the best possible return is 500.",
        "",
        f"**{good} of {len(presets)} seeds pass.** Episodes to the stop: median "
        f"{median(r['episodes'] for r in presets):.0f}, at most "
        f"{max(r['episodes'] for r in presets)}. Seconds: median "
        f"{median(r['seconds'] for r in presets):.1f}, at most "
        f"{max(r['seconds'] for r in presets):.1f}.",
        "",
        "| seed | episodes | steps | seconds | evaluation | test | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for r in presets:
        last = r["evaluations"][-1][1] if r["evaluations"] else float("nan")
        lines.append(
            f"| {r['seed']} | {r['episodes']} | {r['steps']:,} | {r['seconds']:.1f} | {last:.1f} | "
            f"{r['test']:.1f} | {'passes' if passed(r) else 'fails'} |"
        )
    if literals:
        lines += [
            "",
            "## The plain call",
            "",
            "    agent = REINFORCE(observation_size=4, hidden_sizes=[32], action_count=2,",
            "                      learning_rate=1e-3, gamma=0.99)",
            "    rewards = agent.train(env, episodes=1000)",
            "",
            "Nothing is tuned, nothing stops it early. *Last 100* is the mean return of its last",
            "100 training episodes, which still explore; *test* as above.",
            "",
            "| seed | steps | seconds | last 100 | test |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [
            f"| {r['seed']} | {r['steps']:,} | {r['seconds']:.1f} | {r['last_100']:.1f} | "
            f"{r['test']:.1f} |"
            for r in literals
        ]
    lines += [
        "",
        "## Settings and machine",
        "",
        "```json",
        json.dumps(facts, indent=2),
        "```",
        "",
        "Seconds are those of eager execution, with as many processes side by side as named above.",
        "The numbers of all curves are in [cartpole.json](cartpole.json).",
        "",
    ]
    return "\n".join(lines)


def picture(presets: list[Result], literals: list[Result], path: Path) -> None:
    """Running averages over ten episodes, one line per seed."""
    from matplotlib.figure import Figure

    groups = [("settings of dilim train cartpole", presets), ("plain call", literals)]
    groups = [group for group in groups if group[1]]
    figure = Figure(figsize=(5.5 * len(groups), 4), dpi=120, layout="constrained")
    for number, (title, results) in enumerate(groups):
        axes: Any = figure.add_subplot(1, len(groups), number + 1)
        for result in results:
            averages = running_averages(result["returns"], 10)
            axes.plot(range(1, len(averages) + 1), averages, linewidth=0.9, alpha=0.7)
            if result.get("stopped"):
                axes.plot(len(averages), averages[-1], "o", color="black", markersize=3)
        axes.axhline(THRESHOLD, color="#4d7c4d", linewidth=1, linestyle="--")
        axes.set(title=f"{title}, {len(results)} seeds", xlabel="episode", ylim=(0, 510))
        axes.set_ylabel("return while exploring, average of 10")
        axes.grid(alpha=0.25)
    figure.savefig(path)


def one_curve(result: Result) -> bytes:
    """The curve of one seed, drawn as `dilim train` draws it."""
    from dilim.rl.plots import curve_png

    return curve_png(
        result["returns"],
        running_averages(result["returns"], 100),
        title=f"CartPole, REINFORCE, seed {result['seed']}",
        evaluations=[tuple(pair) for pair in result["evaluations"]],
        threshold=THRESHOLD,
    )


def running_averages(values: list[float], window: int) -> list[float]:
    return [fmean(values[max(0, i + 1 - window) : i + 1]) for i in range(len(values))]


# ------------------------------------------------------------------ the command
def seeds_of(text: str) -> list[int]:
    """``"0-4,100"`` to 0, 1, 2, 3, 4, 100."""
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds.extend(range(int(first), int(last or first) + 1))
    return seeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0-4,100-119", type=seeds_of)
    parser.add_argument("--literal-seeds", default="0-4", type=seeds_of)
    parser.add_argument("--no-literal", action="store_true")
    parser.add_argument("--report-only", action="store_true", help="from the numbers on disk")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "results")
    options = parser.parse_args()

    numbers = options.output / "cartpole.json"
    if options.report_only:
        stored = json.loads(numbers.read_text())
    else:
        stored = measured(options)
        options.output.mkdir(parents=True, exist_ok=True)
        numbers.write_text(json.dumps(stored) + "\n")
    results = stored["results"]
    presets = [r for r in results if r["what"] == "preset"]
    literals = [r for r in results if r["what"] == "literal"]
    (options.output / "cartpole.md").write_text(page(presets, literals, stored["facts"]))
    picture(presets, literals, options.output / "cartpole.png")
    (options.output / "cartpole-curve.png").write_bytes(one_curve(presets[0]))
    print(f"{sum(map(passed, presets))} of {len(presets)} seeds pass; see {options.output}")


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Train everything that was asked for."""
    from dilim.rl import preset

    tasks = [("preset", seed) for seed in options.seeds]
    if not options.no_literal:
        tasks += [("literal", seed) for seed in options.literal_seeds]
    results = sorted(all_results(tasks, options.processes), key=lambda r: r["seed"])
    facts = {
        "settings": preset("cartpole", "reinforce").options,
        "processes": options.processes,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }
    return {"facts": facts, "results": results}


if __name__ == "__main__":
    main()
