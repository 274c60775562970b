"""A training run as a folder that can be looked at, killed and resumed.

::

    runs/cartpole-1/
      config.json                what was asked for, and with which versions on which machine
      metrics.jsonl              a line of JSON per finished episode; null for no number
      curve.png                  returns over episodes
      run.lock                   locked while a process trains here
      checkpoints/
        episode-000125.safetensors   the last three
        best.safetensors             that with the highest evaluation

Every file but `metrics.jsonl` is written whole or not at all. Metrics are appended; a line that a
killed process left unfinished is dropped when the run is opened again.
"""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from dilim._version import __version__
from dilim.errors import DilimError, FileFormatError
from dilim.rl.agents.base import Agent
from dilim.rl.run_checks import check_settings, episode_from, gaps
from dilim.rl.run_lock import RunLock
from dilim.runtime.files import write_atomic

KEPT_CHECKPOINTS: Final = 3

_FORMAT: Final = 1
_CONFIG: Final = "config.json"
_METRICS: Final = "metrics.jsonl"
_CHECKPOINTS: Final = "checkpoints"
_BEST: Final = "best.safetensors"
_PACKAGES: Final = ("numpy", "gymnasium", "safetensors")

METRICS: Final = {
    "episode": "number, from 1",
    "steps": "steps of all episodes so far",
    "length": "steps of this episode",
    "return": "sum of its rewards",
    "average": "running average of returns",
    "loss": "of the last update",
    "evaluation": "mean return of the evaluation after it",
    "seconds": "of training so far",
}
"""What the line of an episode holds; null where there is no number."""

Metrics = dict[str, Any]
"""One episode by the names of `METRICS`."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """What a run was asked to do.

    Attributes:
        environment: name in the registry of environments.
        agent: name in the registry of agents.
        seed: covers environment, network, sampling and evaluation.
        episodes: the limit.
        until: mean return of an evaluation at which training stops; None trains to the limit.
        evaluate_every: episodes between two evaluations.
        evaluation_episodes: fresh starts per evaluation.
        options: the agent's own settings.
        num_envs: environments that are stepped at once.
    """

    environment: str
    agent: str
    seed: int
    episodes: int
    until: float | None
    evaluate_every: int
    evaluation_episodes: int
    options: dict[str, Any] = field(default_factory=dict)
    num_envs: int = 1


@dataclass(frozen=True, slots=True)
class Summary:
    """How far a run has come, by its metrics.

    Attributes:
        episodes: finished ones.
        steps: of finished episodes.
        seconds: of training.
        average: running average of returns, None before the first episode has ended.
        best: (episode, mean return) of the highest evaluation, the later of equal ones, or None.
        last: the same of the last evaluation.
        reached: whether the last evaluation is at or above the goal of the run.
    """

    episodes: int
    steps: int
    seconds: float
    average: float | None
    best: tuple[int, float] | None
    last: tuple[int, float] | None
    reached: bool


class Run:
    """A run on disk.

    Attributes:
        folder: where it is.
        config: what it was asked to do.
        lock: ``with run.lock:`` keeps every other process from training here.
    """

    def __init__(self, folder: Path, config: RunConfig) -> None:
        self.folder = folder
        self.config = config
        self.lock = RunLock(folder)

    def __repr__(self) -> str:
        return f"<run {self.name} in {self.folder}>"

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    # --- beginning ----------------------------------------------------------------------------

    @classmethod
    def create(cls, folder: str | os.PathLike[str], config: RunConfig) -> Run:
        """Makes the folder of a new run.

        Args:
            folder: must not exist; the folders above it are made.
            config: what the run shall do.

        Raises:
            FileExistsError: there is something under this name; it is left as it is.
            OSError: the folder cannot be made.
        """
        run = cls(Path(folder), config)
        run.folder.mkdir(parents=True)
        try:
            (run.folder / _CHECKPOINTS).mkdir()
            (run.folder / _METRICS).touch()
            run._write_config({"created": datetime.now(UTC).isoformat(timespec="seconds")})
        except BaseException:  # Ctrl-C too leaves nothing half made
            shutil.rmtree(run.folder, ignore_errors=True)
            raise
        return run

    def remove_if_empty(self) -> bool:
        """Removes the folder if nothing was learned yet; whether it did."""
        metrics, checkpoints = self.folder / _METRICS, self.folder / _CHECKPOINTS
        has_lines = metrics.exists() and metrics.stat().st_size > 0
        if has_lines or any(checkpoints.glob("*.safetensors")):
            return False
        shutil.rmtree(self.folder, ignore_errors=True)
        return True

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Run:
        """Opens the folder of a run.

        Raises:
            FileNotFoundError: there is no run.
            FileFormatError: its configuration is damaged or was written by a newer dilim.
        """
        path = Path(folder) / _CONFIG
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            if stored["format"] > _FORMAT:
                raise FileFormatError(
                    f"run: {path} has format {stored['format']}, this dilim reads up to {_FORMAT}; "
                    "upgrade dilim"
                )
            stored.setdefault("num_envs", 1)  # files of before have none
            settings = {entry.name: stored[entry.name] for entry in fields(RunConfig)}
            check_settings(settings)
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, FileFormatError):
                raise
            what = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise FileFormatError(f"run: {path} is damaged: {what}") from error
        return cls(Path(folder), RunConfig(**settings))

    def change(self, **changes: Any) -> None:
        """Replaces settings, in `config` and on disk: ``run.change(episodes=2000)``."""
        stored = json.loads((self.folder / _CONFIG).read_text(encoding="utf-8"))
        self.config = replace(self.config, **changes)
        self._write_config({"created": stored.get("created")})

    def _write_config(self, extra: Mapping[str, Any]) -> None:
        versions = {name: metadata.version(name) for name in _PACKAGES}
        stored = {
            "format": _FORMAT,
            **asdict(self.config),
            **extra,
            "versions": {"dilim": __version__, "python": platform.python_version(), **versions},
            "platform": platform.platform(),
        }
        text = json.dumps(stored, indent=2, allow_nan=False) + "\n"
        write_atomic(self.folder / _CONFIG, text.encode())

    # --- metrics ------------------------------------------------------------------------------

    def append(self, metrics: Metrics) -> None:
        """Adds the line of one episode; a number that is not finite becomes null."""
        clean = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in metrics.items()
        }
        with (self.folder / _METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(clean) + "\n")

    def _flush_metrics(self) -> None:
        """On the disk before a checkpoint that counts on them."""
        with (self.folder / _METRICS).open("a", encoding="utf-8") as file:
            os.fsync(file.fileno())

    def metrics(self) -> list[Metrics]:
        """All finished episodes in order.

        Raises:
            FileFormatError: a line is damaged or out of order; it is named.
        """
        return list(self._read_metrics())

    def _read_metrics(self) -> Iterator[Metrics]:
        path = self.folder / _METRICS
        if not path.exists():
            return
        lines = path.read_text(encoding="utf-8").split("\n")
        # What follows the last line break is empty, or what a killed process left unfinished.
        before = 0
        for number, line in enumerate(lines[:-1], 1):
            try:
                metrics = episode_from(line)
                if metrics["episode"] <= before:
                    raise ValueError(f"episode {metrics['episode']} comes after {before}")
                before = metrics["episode"]
            except (ValueError, TypeError) as error:
                raise FileFormatError(
                    f"run: {path}, line {number} is damaged: {error}; mend or remove this line"
                ) from error
            yield metrics

    def keep_metrics(self, episode: int) -> None:
        """Drops what came after an episode, and an unfinished last line."""
        lines = [json.dumps(line) for line in self._read_metrics() if line["episode"] <= episode]
        write_atomic(self.folder / _METRICS, "".join(f"{line}\n" for line in lines).encode())

    @property
    def has_checkpoint_folder(self) -> bool:
        """Whether the folder of checkpoints exists; every new run has one."""
        return (self.folder / _CHECKPOINTS).is_dir()

    def missing_metrics(self, episode: int) -> list[tuple[int, int]]:
        """The stretches (first, last) of episodes up to this one that have no line."""
        return gaps((line["episode"] for line in self._read_metrics()), episode)

    def best_evaluation(self) -> float | None:
        """What the agent in `best.safetensors` reached; None if there is none to be read."""
        try:
            return Agent.load(self.folder / _CHECKPOINTS / _BEST).last_evaluation
        except (DilimError, OSError):
            return None

    def summary(self) -> Summary:
        """How far the run has come.

        Raises:
            FileFormatError: a line of the metrics is damaged.
        """
        lines = self.metrics()
        last = lines[-1] if lines else {}
        evaluations = [
            (line["episode"], line["evaluation"])
            for line in lines
            if line["evaluation"] is not None
        ]
        until = self.config.until
        return Summary(
            episodes=last.get("episode", 0),
            steps=last.get("steps", 0),
            seconds=last.get("seconds", 0.0),
            average=last.get("average"),
            best=max(evaluations, key=lambda pair: pair[::-1], default=None),
            last=evaluations[-1] if evaluations else None,
            reached=until is not None and bool(evaluations) and evaluations[-1][1] >= until,
        )

    def write_picture(self, png: bytes) -> Path:
        """Writes `curve.png`; returns its path."""
        path = self.folder / "curve.png"
        write_atomic(path, png)
        return path

    # --- checkpoints --------------------------------------------------------------------------

    def save_checkpoint(self, agent: Agent, *, best: bool = False) -> Path:
        """Writes the agent with its environment's state, and then removes all but the last three.

        `Agent.load` reads the file.

        Args:
            agent: who is trained in this run.
            best: also keep it as the best.

        Returns:
            The path of the new file.
        """
        self._flush_metrics()
        folder = self.folder / _CHECKPOINTS
        path = folder / f"episode-{agent.episodes:06d}.safetensors"
        if best:
            agent.save(folder / _BEST)
        agent.save(path)
        for old in self.checkpoints()[KEPT_CHECKPOINTS:]:
            old.unlink(missing_ok=True)
        return path

    def checkpoints(self) -> list[Path]:
        """The files of checkpoints but the best, the latest first."""
        folder = self.folder / _CHECKPOINTS
        # By number: a million episodes need a seventh digit.
        return sorted(
            folder.glob("episode-*.safetensors"),
            key=lambda path: (len(path.name), path.name),
            reverse=True,
        )

    def latest(self) -> tuple[Agent | None, list[str]]:
        """The agent of the latest checkpoint that can be read; its `source` is the file.

        Returns:
            The agent, None if no checkpoint was made yet; and what was wrong with each newer file.

        Raises:
            FileFormatError: there are files, and none can be read.
        """
        return self._first_readable(self.checkpoints())

    def best(self) -> tuple[Agent | None, list[str]]:
        """The agent with the highest evaluation, or the latest where there is none.

        Returns and raises as `latest` does.
        """
        best = self.folder / _CHECKPOINTS / _BEST
        return self._first_readable([*([best] if best.exists() else []), *self.checkpoints()])

    def _first_readable(self, paths: list[Path]) -> tuple[Agent | None, list[str]]:
        broken: list[str] = []
        for path in paths:
            try:
                return Agent.load(path), broken
            except (DilimError, OSError) as error:
                broken.append(str(error))
        if broken:
            raise FileFormatError(
                f"run {self.name}: no checkpoint can be read: {'; '.join(broken)}"
            )
        return None, broken


def find_runs(folder: str | os.PathLike[str]) -> list[Path]:
    """The folders of runs inside `folder`, that changed last first."""
    configs = Path(folder).glob(f"*/{_CONFIG}")
    return [
        path.parent
        for path in sorted(configs, key=lambda path: _last_change(path.parent), reverse=True)
    ]


def _last_change(folder: Path) -> float:
    return max(
        path.stat().st_mtime for path in (folder / _METRICS, folder / _CONFIG) if path.exists()
    )


def free_name(folder: str | os.PathLike[str], stem: str) -> str:
    """``stem-1``, or the first such name that is not taken in `folder`."""
    number = 1
    while (Path(folder) / f"{stem}-{number}").exists():
        number += 1
    return f"{stem}-{number}"
