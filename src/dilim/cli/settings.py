"""What to train, where, and with which settings: names and texts turned into values."""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Mapping
from typing import Any

import gymnasium

from dilim.cli.messages import CommandError, unknown_name
from dilim.errors import DilimError
from dilim.rl.agents.base import Agent
from dilim.rl.agents.table import AGENTS
from dilim.rl.envs.table import ENVIRONMENTS
from dilim.rl.presets import default_agent
from dilim.rl.runs import RunConfig
from dilim.rl.session import make, new_agent

_GIVEN_ELSEWHERE = frozenset({"self", "observation_size", "action_count", "action_start", "seed"})


def chosen_environment(name: str) -> str:
    """The full name of an environment.

    Raises:
        CommandError: there is none of this name; the nearest is suggested.
    """
    plain = name.lower().replace("-", "").replace("_", "")
    if plain in ENVIRONMENTS:
        return plain
    if name in gymnasium.registry:
        return name
    near = difflib.get_close_matches(name, gymnasium.registry, n=1, cutoff=0.75)
    if near and not difflib.get_close_matches(plain, ENVIRONMENTS, n=1, cutoff=0.75):
        raise CommandError(f"unknown environment {name!r}; did you mean {near[0]!r}?")
    raise CommandError(unknown_name("environment", name, ENVIRONMENTS))


def chosen_agent(environment: str, name: str | None) -> str:
    """The name of an agent: by default the one that is known to be best, or the first.

    Raises:
        CommandError: there is none of this name; the nearest is suggested.
    """
    if name is None:
        try:
            return default_agent(environment)
        except DilimError:
            return next(iter(AGENTS))
    if name.lower() not in AGENTS:
        raise CommandError(unknown_name("agent", name, AGENTS))
    return name.lower()


def chosen_options(
    agent: str,
    tuned: Mapping[str, Any],
    learning_rate: float | None,
    gamma: float | None,
    hidden_sizes: str | None,
    pairs: list[str],
) -> dict[str, Any]:
    """The settings of the agent: those given, and for the rest those that were tuned.

    Args:
        agent: its name.
        tuned: what is not given.
        learning_rate: if given.
        gamma: if given.
        hidden_sizes: numbers divided by commas, if given.
        pairs: ``name=value`` each, the value in JSON or plain text.

    Raises:
        CommandError: a setting is unknown or cannot be read.
    """
    options = dict(tuned)
    if learning_rate is not None:
        options["learning_rate"] = learning_rate
    if gamma is not None:
        options["gamma"] = gamma
    if hidden_sizes is not None:
        options["hidden_sizes"] = _sizes(hidden_sizes)
    known = _known_options(AGENTS[agent])
    for pair in pairs:
        name, sign, text = (part.strip() for part in pair.partition("="))
        if not sign:
            raise CommandError(f"--option: expected such as batch_episodes=4, got {pair!r}")
        if name not in known:
            raise CommandError(f"--option: {unknown_name(f'setting of {agent}', name, known)}")
        options[name] = _value(text)
    return options


def _sizes(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise CommandError(f"--hidden-sizes: expected such as 32 or 64,64, got {text!r}")
    return [int(part) for part in parts]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _known_options(agent: type[Agent]) -> set[str]:
    """Keyword arguments of an agent and of its base classes."""
    names: set[str] = set()
    for kind in agent.__mro__:
        if issubclass(kind, Agent):
            parameters = inspect.signature(kind.__init__).parameters.values()
            names |= {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}
    return names - _GIVEN_ELSEWHERE


def build_agent(config: RunConfig, teacher: Agent | None = None) -> Agent:
    """A new agent with these settings.

    Args:
        config: see `RunConfig`.
        teacher: whose parts it begins with.

    Raises:
        CommandError: a setting has a value that it cannot have.
        DilimError: the agent and the environment do not fit.
    """
    try:
        return new_agent(config, make(config.environment), teacher)
    except DilimError:
        raise
    except ValueError as error:
        raise CommandError(str(error)) from error
    except TypeError as error:
        raise CommandError(f"a setting of {config.agent} cannot be used: {error}") from error
