"""What to train, where, and with which settings: names and texts turned into values."""

from __future__ import annotations

import difflib
import inspect
import json
import re
from collections.abc import Mapping
from typing import Any

import gymnasium

from dilim.cli.messages import CommandError, unknown_name
from dilim.errors import DilimError
from dilim.rl.actions import BoxActions, actions_of
from dilim.rl.adapters import check_spaces
from dilim.rl.agents.base import Agent
from dilim.rl.agents.table import AGENTS
from dilim.rl.envs.table import ENVIRONMENTS
from dilim.rl.presets import default_agent
from dilim.rl.runs import RunConfig
from dilim.rl.session import make, new_agent

_GIVEN_ELSEWHERE = frozenset(
    {"self", "observation_size", "seed", "action_count", "action_start", "action_low"}
    | {"action_high"}
)

_IN_WORDS = {
    "int": "an integer",
    "float": "a number",
    "str": "a name",
    "bool": "true or false",
    "Sequence[int]": "a list of integers, such as [64,64]",
}


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
    """The name of an agent: by default the one that is known to be best, or the first that fits.

    Raises:
        CommandError: there is none of this name; the nearest is suggested.
        DilimError: there is none for this environment.
    """
    if name is None:
        try:
            return default_agent(environment)
        except DilimError:
            env = make(environment)
            check_spaces(env)
            return "sac" if isinstance(actions_of(env), BoxActions) else next(iter(AGENTS))
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
    sizes = None if hidden_sizes is None else _sizes(hidden_sizes)
    own = {"learning_rate": learning_rate, "gamma": gamma, "hidden_sizes": sizes}
    given = {name: value for name, value in own.items() if value is not None}
    known = _known_options(AGENTS[agent])
    for pair in pairs:
        name, sign, text = (part.strip() for part in pair.partition("="))
        if not sign:
            raise CommandError(f"--option: expected such as batch_episodes=4, got {pair!r}")
        if name not in known:
            raise CommandError(f"--option: {unknown_name(f'setting of {agent}', name, known)}")
        if name in given:
            raise CommandError(f"{name} is given twice: {given[name]} and {text}")
        given[name] = _value(text)
        if not _fits(given[name], known[name]):
            expected = _IN_WORDS.get(known[name], known[name])
            raise CommandError(f"--option {name}: expected {expected}, got {text!r}")
    return {**tuned, **given}


def _sizes(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"0*[1-9][0-9]{0,17}", part) for part in parts):
        raise CommandError(f"--hidden-sizes: expected such as 32 or 64,64, got {text!r}")
    return [int(part) for part in parts]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return float(text)  # also numbers that are none in JSON, such as .9
    except ValueError:
        return text


def _fits(value: Any, expected: str) -> bool:
    """Whether a value is of a kind; those that are not known here are left to the agent."""
    if isinstance(value, bool) and expected != "bool":
        return False
    if expected == "Sequence[int]":
        return isinstance(value, list) and all(_fits(size, "int") for size in value)
    if expected == "int" and isinstance(value, float):
        return False
    kinds: dict[str, Any] = {"int": int, "float": int | float, "str": str, "bool": bool}
    return isinstance(value, kinds.get(expected, object))


def _known_options(agent: type[Agent]) -> dict[str, str]:
    """Keyword arguments of an agent and of its base classes, with the kinds of their values."""
    found: dict[str, str] = {}
    for kind in agent.__mro__:
        if issubclass(kind, Agent):
            for parameter in inspect.signature(kind.__init__).parameters.values():
                if parameter.kind is not parameter.VAR_KEYWORD:
                    found.setdefault(parameter.name, str(parameter.annotation))
    return {name: kind for name, kind in found.items() if name not in _GIVEN_ELSEWHERE}


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
    except (ValueError, MemoryError) as error:
        # NumPy has a ValueError of its own for what no memory could hold.
        if isinstance(error, ValueError) and "array is too big" not in str(error):
            raise CommandError(str(error)) from error
        sizes = config.options.get("hidden_sizes")
        raise CommandError(f"there is not enough memory for hidden_sizes {sizes}") from error
    except TypeError as error:
        raise CommandError(f"a setting of {config.agent} cannot be used: {error}") from error
