"""An agent's state as arrays and JSON: gathered, put back, written, read."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dilim.errors import StateError
from dilim.rl.worlds import HostWorld, TensorWorld, World
from dilim.runtime.files import Arrays, Header, load_arrays, save_arrays
from dilim.tensors.creation import asarray
from dilim.tensors.tensor import Tensor

KIND: Final = "agent"
_ENVIRONMENT: Final = "environment."

_COMMON: Final = ("steps", "updates", "last_evaluation", "_environments")
"""Numbers that every agent has."""
_PARTS: Final = ("log",)
"""Parts that every agent has."""


@dataclass(frozen=True)
class EnvironmentState:
    """The state of the environment that an agent was trained in.

    Attributes:
        name: its class.
        arrays: what its ``get_state`` gave, or None if it has none.
        np_random: the state of its NumPy generator as JSON, or None.
        running: whether an episode was running.
        observation: what was seen in it, where Python steps the environment.
    """

    name: str
    arrays: dict[str, np.ndarray] | None
    np_random: dict[str, Any] | None
    running: bool
    observation: np.ndarray | None

    @classmethod
    def of(cls, world: TensorWorld | HostWorld) -> EnvironmentState:
        """What can be known of the environment of a world."""
        env, name = world.env, type(world.env).__name__
        if not isinstance(world, HostWorld):
            return cls(name, world.get_state(), None, True, None)
        if world.count > 1:
            return cls(name, None, None, True, None)
        seen = world.observation.numpy(copy=True) if world.is_running else None
        if hasattr(env, "get_state") and hasattr(env, "set_state"):
            arrays = {name: np.array(x) for name, x in env.get_state().items()}
            return cls(name, arrays, None, world.is_running, seen)
        return cls(name, None, _np_random_state(env), world.is_running, seen)

    def restore(self, world: World) -> bool:
        """Bring a new world into this state; whether its episode goes on."""
        env = world.env
        if self.arrays is not None:
            taker = env if isinstance(world, HostWorld) else world
            if not hasattr(taker, "set_state"):
                raise StateError(
                    f"train: this agent goes on in a {self.name} whose state was saved; "
                    f"{type(env).__name__} cannot take it, it has no set_state(); pass seed= to "
                    "begin a new episode instead"
                )
            taker.set_state(self.arrays)
            if isinstance(world, HostWorld) and self.observation is not None:
                world.go_on(self.observation)
            return True
        generator = _np_random(env)
        if self.np_random is not None and generator is not None:
            generator.bit_generator.state = self.np_random
            if not self.running:
                return True
        reason = "it has no set_state" if world.count == 1 else "Python steps several of it"
        warnings.warn(
            f"train: {type(env).__name__} cannot take over a state ({reason}), so that "
            "training goes on with a new episode and not exactly as it would have",
            stacklevel=5,
        )
        return False

    def to_parts(self) -> tuple[Arrays, Header]:
        """Arrays by name, and plain JSON."""
        arrays = {f"{_ENVIRONMENT}{name}": x for name, x in (self.arrays or {}).items()}
        if self.observation is not None:
            arrays["observation"] = self.observation
        header = {
            "name": self.name,
            "has_state": self.arrays is not None,
            "np_random": self.np_random,
            "running": self.running,
        }
        return arrays, header

    @classmethod
    def from_parts(
        cls, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]
    ) -> EnvironmentState:
        """From what `to_parts` gave."""
        saved = _under(_ENVIRONMENT, arrays) if header["has_state"] else None
        seen = np.array(arrays["observation"]) if "observation" in arrays else None
        return cls(header["name"], saved, header["np_random"], header["running"], seen)


def _np_random(env: Any) -> np.random.Generator | None:
    found = getattr(getattr(env, "unwrapped", env), "np_random", None)
    return found if isinstance(found, np.random.Generator) else None


def _np_random_state(env: Any) -> dict[str, Any] | None:
    generator = _np_random(env)
    if generator is None:
        return None
    state = dict(generator.bit_generator.state)
    try:
        return state if json.loads(json.dumps(state)) == state else None
    except (TypeError, ValueError):
        return None  # Gymnasium's own PCG64 is plain JSON; others may hold arrays


# --- agents ---------------------------------------------------------------------------------


def gather(agent: Any) -> tuple[Arrays, Header]:
    """See `Agent.state`."""
    arrays: Arrays = {
        "generator": agent.generator.state.numpy(copy=True),
        "loss": agent.loss.numpy(copy=True),
    }
    plain: Header = {}
    for part in (*_PARTS, *agent.parts):
        plain[part] = {}
        for name, value in getattr(agent, part).state_dict().items():
            if hasattr(value, "shape"):
                is_tensor = isinstance(value, Tensor)
                arrays[f"{part}.{name}"] = value.numpy(copy=True) if is_tensor else value
            else:
                plain[part][name] = value
    if agent._pending is not None:
        arrays["pending"] = agent._pending[0].copy()
        arrays["pending_action"] = agent._pending[1].numpy(copy=True)
    environment = agent._environment_state
    if environment is None and agent._world is not None:
        environment = EnvironmentState.of(agent._world)
    saved = None
    if environment is not None:
        more, saved = environment.to_parts()
        arrays.update(more)
    header = {
        "agent": type(agent).__name__,
        "options": agent.options,
        "parts": plain,
        "numbers": {name: getattr(agent, name) for name in (*_COMMON, *agent.numbers)},
        "tracker": agent.tracker.state_dict(),
        "environment": saved,
    }
    return arrays, header


def restore(agent: Any, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
    """See `Agent.load_state`."""
    kind = type(agent).__name__
    if header.get("agent") != kind:
        raise StateError(f"{kind}.load_state: the state is that of {header.get('agent')!r}")
    try:
        numbers = {name: header["numbers"][name] for name in (*_COMMON, *agent.numbers)}
        plain = {part: header["parts"][part] for part in (*_PARTS, *agent.parts)}
        generator, loss, tracker, environment = (
            arrays["generator"],
            arrays["loss"],
            header["tracker"],
            header["environment"],
        )
    except KeyError as error:
        raise StateError(f"{kind}.load_state: the state lacks {error.args[0]!r}") from error
    for part in (*_PARTS, *agent.parts):
        own = _under(f"{part}.", arrays)
        try:
            getattr(agent, part).load_state_dict({**own, **plain[part]})
        except KeyError as error:
            raise StateError(
                f"{kind}.load_state: the state lacks '{part}.{error.args[0]}'"
            ) from error
    for name, value in numbers.items():
        setattr(agent, name, value)
    agent.generator.state = generator
    agent.loss = asarray(np.array(loss))
    agent.tracker.load_state_dict(tracker)
    action = arrays.get("pending_action")
    agent._pending = (
        None if action is None else (arrays["pending"].copy(), agent.actions.tensor(action))
    )
    agent._world = None
    agent._environment_state = (
        None if environment is None else EnvironmentState.from_parts(arrays, environment)
    )


def save(agent: Any, path: str | os.PathLike[str]) -> None:
    """See `Agent.save`."""
    arrays, header = gather(agent)
    save_arrays(path, arrays, {"kind": KIND, **header})


def read(path: str | os.PathLike[str]) -> tuple[Arrays, Header]:
    """What `save` wrote."""
    return load_arrays(path, kind=KIND)


def _under(prefix: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
    """Copies of the arrays whose name begins so, without that beginning."""
    return {
        name.removeprefix(prefix): np.array(x)
        for name, x in arrays.items()
        if name.startswith(prefix)
    }
