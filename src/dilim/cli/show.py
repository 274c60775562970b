"""`dilim play`, `dilim evaluate`, `dilim runs` and `dilim plot`."""

from __future__ import annotations

import os
import statistics
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from dilim.cli.find import DEFAULT_FOLDER, command, open_run
from dilim.cli.messages import CommandError, output, program, table_text
from dilim.cli.options import (
    Count,
    Latest,
    Picture,
    RunName,
    RunNames,
    RunsFolder,
    StartSeed,
    StepsPerSecond,
)
from dilim.cli.picture import draw_comparison, draw_curve, outcome
from dilim.cli.progress import clock
from dilim.errors import DilimError
from dilim.rl.adapters import Environment, check_fits
from dilim.rl.agents.base import Agent
from dilim.rl.runs import Run, find_runs
from dilim.rl.session import check_agent, make

_EVALUATION_SEED = 1_000_000  # added to the run's seed: starts that training has not seen


def play(
    run: RunName = None,
    episodes: Count = 1,
    fps: StepsPerSecond = None,
    seed: StartSeed = None,
    latest: Latest = False,
    runs_dir: RunsFolder = DEFAULT_FOLDER,
) -> None:
    """Watch the agent of a run in the terminal.

    Example:  dilim play cartpole-1 --episodes 3
    """
    opened = open_run(run, runs_dir)
    console = output()
    agent = _load(opened, latest, console)
    env = _drawable(opened.config.environment)
    check_fits(env, agent)
    rate = fps or float(env.metadata.get("render_fps") or 30)
    first = _start_seed(opened, seed)
    observation = env.reset(seed=first)[0]
    for number in range(1, episodes + 1):
        if number > 1:
            observation = env.reset()[0]
        words = _play_episode(agent, env, observation, number, rate, console)
        console.print(words)
    if console.is_terminal:
        console.print("Measure it on many episodes:", command("evaluate", opened))


def _play_episode(
    agent: Agent, env: Environment, observation: Any, number: int, rate: float, console: Console
) -> str:
    """Show one episode; returns how it went."""
    total, steps, ended = 0.0, 0, False
    following = time.monotonic()
    live = Live(console=console, auto_refresh=False) if console.is_terminal else None
    with live or nullcontext():
        while not ended:
            action = agent.act(observation, explore=False)
            observation, reward, terminated, truncated, _ = env.step(action)
            total += float(reward)
            steps += 1
            ended = bool(terminated or truncated)
            if live is not None:
                picture = f"{env.render()}\nepisode {number}  step {steps}  return {total:g}"
                live.update(Text(picture, no_wrap=True, overflow="crop"), refresh=True)
                following += 1 / rate
                time.sleep(max(following - time.monotonic(), 0.0))
    if live is None:
        console.print(env.render(), soft_wrap=True)
    why = "the rules ended it" if terminated else "the limit of steps was reached"
    return f"episode {number}: return {total:g} in {steps} steps; {why}"


def _drawable(name: str) -> Environment:
    """The environment, ready to be drawn as text."""
    if "ansi" not in (make(name).metadata.get("render_modes") or ()):
        raise CommandError(f"the environment {name!r} cannot be drawn as text")
    return make(name, render_mode="ansi")


def evaluate(
    run: RunName = None,
    episodes: Count = 100,
    seed: StartSeed = None,
    latest: Latest = False,
    runs_dir: RunsFolder = DEFAULT_FOLDER,
) -> None:
    """Measure the agent of a run on new episodes, always taking its best action.

    Example:  dilim evaluate cartpole-1 --episodes 100
    """
    opened = open_run(run, runs_dir)
    console = output()
    agent = _load(opened, latest, console)
    start = _start_seed(opened, seed)
    returns = agent.evaluate(make(opened.config.environment), episodes, start)
    mean = statistics.fmean(returns)
    console.print(f"mean return {mean:.1f} over {episodes:,} new episodes", style="bold")
    console.print(
        f"lowest {min(returns):.1f}, median {statistics.median(returns):.1f}, highest "
        f"{max(returns):.1f}, standard deviation {statistics.pstdev(returns):.1f}; seed {start}"
    )
    goal = opened.config.until
    if goal is not None:
        console.print(f"goal {goal:g}: {'reached' if mean >= goal else 'not reached'}")


def _start_seed(run: Run, seed: int | None) -> int:
    return (run.config.seed + _EVALUATION_SEED) % 2**64 if seed is None else seed


def _load(run: Run, latest: bool, console: Console) -> Agent:
    """The agent to show, after saying which it is."""
    agent, passed_over = run.latest() if latest else run.best()
    for problem in passed_over:
        console.print(f"Passed over: {problem}", soft_wrap=True)
    if agent is None:
        hint = f"; go on with: {command('resume', run)}" if run.has_checkpoint_folder else ""
        raise CommandError(f"the run {run.name!r} has no checkpoint yet{hint}")
    check_agent(run, agent)
    console.print(
        f"{run.config.agent} of run {run.name} after {agent.episodes:,} episodes, "
        f"{agent.steps:,} steps, from {agent.source}",
        soft_wrap=True,
    )
    return agent


def runs(runs_dir: RunsFolder = DEFAULT_FOLDER) -> None:
    """List the runs, the last changed first.

    Example:  dilim runs
    """
    found = find_runs(runs_dir)
    console = output()
    if not found:
        console.print(f"No run in {runs_dir}{os.sep} yet. Begin with: {program()} train cartpole")
        return
    headings = ["name", "environment", "agent", "seed", "episodes", "average", "best", "time", "is"]
    rows = [_row(path) for path in found]
    right = ["seed", "episodes", "average", "best", "time"]
    console.print(table_text(headings, rows, console.width, right), soft_wrap=True)


def _row(folder: Path) -> list[str]:
    try:
        run = Run.open(folder)
        summary = run.summary()
    except (DilimError, OSError) as error:
        return [folder.name, *["-"] * 7, f"broken: {error}"]
    config = run.config
    state = "can be resumed"
    if summary.reached:
        state = "goal reached"
    elif summary.episodes >= config.episodes:
        state = "limit reached"
    return [
        run.name,
        config.environment,
        config.agent,
        str(config.seed),
        f"{summary.episodes:,}",
        "-" if summary.average is None else f"{summary.average:.1f}",
        "-" if summary.best is None else f"{summary.best[1]:.1f}",
        clock(summary.seconds),
        state,
    ]


def plot(run: RunNames = None, out: Picture = None, runs_dir: RunsFolder = DEFAULT_FOLDER) -> None:
    """Draw the curve of a run anew, also while it trains; or several runs in one picture.

    Runs that differ in their seed only are one curve, with its spread.

    Example:  dilim plot cartpole-1

    Example:  dilim plot gridworld-1-seed*
    """
    if run is not None and len(run) > 1:
        path = draw_comparison([open_run(name, runs_dir) for name in run], out)
        output().print(f"The curves are {path}", soft_wrap=True)
        return
    if out is not None:
        raise CommandError("--out is for several runs; that of one is in its folder")
    opened = open_run(run[0] if run else None, runs_dir)
    path = draw_curve(opened)
    console = output()
    console.print(f"{opened.name}: {outcome(opened, opened.summary())}", soft_wrap=True)
    console.print(f"The curve is {path}", soft_wrap=True)
