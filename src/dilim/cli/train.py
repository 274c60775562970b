"""`dilim train` and `dilim resume`."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path

import typer
from rich.console import Console

from dilim.cli.find import DEFAULT_FOLDER, command, open_run, shown
from dilim.cli.many import train_all
from dilim.cli.messages import INTERRUPTED, CommandError, output, program
from dilim.cli.options import (
    AgentName,
    AgentSettings,
    EnvironmentName,
    Episodes,
    EvaluateEvery,
    Gamma,
    HiddenSizes,
    LearningRate,
    NewGoal,
    NewLimit,
    NewName,
    NumEnvs,
    RunName,
    RunsFolder,
    Seeds,
    Teacher,
    TrainingSeed,
    Until,
)
from dilim.cli.picture import draw_curve, outcome
from dilim.cli.progress import Progress, clock
from dilim.cli.settings import build_agent, chosen_agent, chosen_environment, chosen_options
from dilim.rl.presets import preset
from dilim.rl.runs import Run, RunConfig, Summary, free_name
from dilim.rl.session import Session
from dilim.rl.training import Interrupted


def train(
    environment: EnvironmentName,
    agent: AgentName = None,
    seed: TrainingSeed = 0,
    episodes: Episodes = None,
    until: Until = None,
    evaluate_every: EvaluateEvery = None,
    num_envs: NumEnvs = None,
    seeds: Seeds = None,
    learning_rate: LearningRate = None,
    gamma: Gamma = None,
    hidden_sizes: HiddenSizes = None,
    option: AgentSettings = None,
    name: NewName = None,
    teacher: Teacher = None,
    runs_dir: RunsFolder = DEFAULT_FOLDER,
) -> None:
    """Train an agent. Ctrl-C saves it, so that it can be resumed.

    What is not given is as it was tuned for the environment.

    Example:  dilim train cartpole --seed 1
    """
    world = chosen_environment(environment)
    source = None if teacher is None else open_run(teacher, runs_dir)
    if source is not None and agent is None:
        agent = source.config.agent
    learner = chosen_agent(world, agent)
    tuned = preset(world, learner)
    known = tuned.options if source is None else source.config.options
    options = chosen_options(learner, known, learning_rate, gamma, hidden_sizes, option or [])
    config = RunConfig(
        environment=world,
        agent=learner,
        seed=seed,
        episodes=tuned.episodes if episodes is None else episodes,
        until=tuned.until if until is None else _goal(until),
        evaluate_every=tuned.evaluate_every if evaluate_every is None else evaluate_every,
        evaluation_episodes=tuned.evaluation_episodes,
        options=options,
        num_envs=tuned.num_envs if num_envs is None else num_envs,
    )
    learned = None if source is None else source.best()[0]
    build_agent(config, learned)  # so that a mistake in the settings leaves no folder behind
    new_name = world.replace("/", "-")
    if seeds is not None:
        if source is not None:
            raise CommandError("--seeds begins agents anew; leave out --from")
        base = runs_dir / (name or free_name(runs_dir, new_name))
        train_all(base, config, seeds)
        return
    run = _create(_new_folder(runs_dir, name, new_name), config)
    try:
        with run.lock:
            _begin(Session(run, teacher=learned))
    finally:
        run.remove_if_empty()


def _begin(session: Session) -> None:
    run, config = session.run, session.run.config
    limit = f"{config.episodes:,} episodes"
    goal = "" if config.until is None else f" or an evaluation of {config.until:g}"
    console = output()
    console.print(
        f"Training {config.agent} on {config.environment}, seed {config.seed}, up to {limit}{goal}."
    )
    console.print(f"The run is {run.folder}. Ctrl-C saves and stops.", soft_wrap=True)
    _go(session, console)


def resume(
    run: RunName = None,
    episodes: NewLimit = None,
    until: NewGoal = None,
    runs_dir: RunsFolder = DEFAULT_FOLDER,
) -> None:
    """Go on with a run, exactly as if it had not been interrupted.

    Example:  dilim resume cartpole-1 --episodes +500
    """
    opened = open_run(run, runs_dir)
    with opened.lock:
        _resume(opened, episodes, until)


def _resume(opened: Run, episodes: str | None, until: str | None) -> None:
    session = Session(opened)
    done = session.agent.episodes
    limit = opened.config.episodes if episodes is None else _limit(episodes, done)
    goal = opened.config.until if until is None else _goal(until)
    if (limit, goal) != (opened.config.episodes, opened.config.until):
        opened.change(episodes=limit, until=goal)
    summary = opened.summary()
    if episodes is None and (done >= limit or summary.reached):
        raise CommandError(_nothing_to_do(opened, summary))
    console = output()
    for problem in session.passed_over:
        console.print(f"Passed over: {problem}", soft_wrap=True)
    for note in session.notes:
        console.print(f"Note: {note}", soft_wrap=True)
    source = session.agent.source or "its beginning: there is no checkpoint yet"
    console.print(
        f"Run {opened.name} goes on after episode {done:,}, step {session.agent.steps:,}, from "
        f"{source}",
        soft_wrap=True,
    )
    _go(session, console)


def _go(session: Session, console: Console) -> None:
    """Train, show how it goes, and say what was reached and what to type next."""
    run, agent = session.run, session.agent
    progress = Progress(
        console,
        agent,
        limit=run.config.episodes,
        evaluation=agent.last_evaluation,
        seconds=run.summary().seconds,
    )
    try:
        with progress:
            summary = session.train(progress.on_episode)
    except Interrupted:
        summary = run.summary()
        if not (summary.reached or summary.episodes >= run.config.episodes):
            console.print(f"Stopped by Ctrl-C and saved: {outcome(run, summary)}.", soft_wrap=True)
            _print_commands(console, ("go on", command("resume", run)))
            _draw(run)
            raise typer.Exit(INTERRUPTED) from None
    except KeyboardInterrupt:
        if run.checkpoints():
            console.print("Stopped at once. The last checkpoint is whole.")
            _print_commands(console, ("go on from it", command("resume", run)))
        else:
            console.print("Stopped at once, before the first checkpoint.")
        raise typer.Exit(INTERRUPTED) from None
    if summary.reached:
        what = f"Reached the goal of {run.config.until:g}"
    elif run.config.until is None:
        what = "Done"
    else:
        what = f"Did not reach the goal of {run.config.until:g}"
    console.print(f"{what}: {outcome(run, summary)}, {clock(summary.seconds)}.", soft_wrap=True)
    console.print(_draw(run), soft_wrap=True)
    next_steps = [
        ("watch it", command("play", run)),
        ("test it on new episodes", command("evaluate", run)),
    ]
    if not summary.reached:
        next_steps.append(("train on", command("resume", run, "--episodes", "+500")))
    _print_commands(console, *next_steps)


def _draw(run: Run) -> str:
    """Draw the curve; says where it is, or why there is none."""
    try:
        return f"The curve is {draw_curve(run)}"
    except CommandError as error:
        return str(error)


def _print_commands(console: Console, *commands: tuple[str, str]) -> None:
    width = max(len(words) for words, _ in commands) + 1
    for words, text in commands:
        console.print(f"  {words + ':':<{width}} ", end="")
        console.print(text, style="bold", soft_wrap=True)


def _goal(text: str) -> float | None:
    if text.lower() == "none":
        return None
    try:
        goal = float(text)
    except ValueError:
        goal = math.nan
    if not math.isfinite(goal):
        raise CommandError(f"--until: expected a mean return, such as 475, or none; got {text!r}")
    return goal


def _limit(text: str, done: int) -> int:
    if not re.fullmatch(r"\+?[0-9]{1,18}", text):
        raise CommandError(f"--episodes: expected such as 2000 or +500, got {text!r}")
    if text.startswith("+") and int(text) == 0:
        raise CommandError(f"--episodes: expected at least +1 more, got {text!r}")
    limit = int(text) + (done if text.startswith("+") else 0)
    if limit <= done:
        raise CommandError(
            f"--episodes {text}: the run has {done:,} episodes already; to add some write +{text}"
        )
    return limit


def _new_folder(runs_dir: Path, name: str | None, stem: str) -> Path:
    if name is None:
        return runs_dir / free_name(runs_dir, stem)
    if name in ("", ".", "..") or Path(name).name != name:
        raise CommandError(
            f"--name: expected one name, got {name!r}; another folder is chosen by --runs-dir"
        )
    folder = runs_dir / name
    if (folder / "config.json").is_file():
        old = Run.open(folder)
        raise CommandError(
            f"the run {name!r} exists ({outcome(old, old.summary())}) and is not overwritten\n"
            f"{_ways(old, old.summary())}"
        )
    if folder.exists():
        raise CommandError(f"{folder} exists and is no run; choose another --name")
    return folder


def _create(folder: Path, config: RunConfig) -> Run:
    try:
        return Run.create(folder, config)
    except OSError as error:
        raise CommandError(
            f"cannot make the folder {folder}: {error.strerror}; choose another with --runs-dir"
        ) from error


def _nothing_to_do(run: Run, summary: Summary) -> str:
    goal = run.config.until
    why = f"goal of {goal:g}" if summary.reached else f"limit of {run.config.episodes:,} episodes"
    return (
        f"the run {run.name!r} has reached its {why} ({outcome(run, summary)})\n"
        f"{_ways(run, summary)}"
    )


def _ways(run: Run, summary: Summary) -> str:
    """The two commands that go on from a run."""
    options: list[str] = []
    if summary.reached:
        options = ["--until", "none", "--episodes", "+500"]
    elif summary.episodes >= run.config.episodes:
        options = ["--episodes", "+500"]
    anew = shlex.join([program(), "train", run.config.environment, "--from", shown(run)])
    return (
        f"  to train it on:             {command('resume', run, *options)}\n"
        f"  to begin a new run with it: {anew}"
    )
