"""Environments from elsewhere: what agents ask of them, and adapters for the old Gym API."""

from __future__ import annotations

import copy
import math
import operator
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces

from dilim.errors import EnvironmentContractError, ShapeError
from dilim.rl.actions import Actions, DiscreteActions, actions_of, single
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.envs.rules import Rules

if TYPE_CHECKING:
    from dilim.rl.agents.base import Agent

_CURE = (
    "if this is an environment of the old Gym API, wrap it: dilim.rl.from_old_gym(env); see "
    "https://gymnasium.farama.org/introduction/migration_guide/"
)

Environment = Any
"""A Gymnasium environment: `gymnasium.Env`, or anything with the same spaces and methods."""


def from_gymnasium(env: Environment) -> Environment:
    """Check that an environment speaks Gymnasium's API, and give it back unchanged.

    It is reset and stepped once to see what the calls return, except for environments of dilim. The
    next training begins with a reset of its own.

    Args:
        env: an environment with a Box of observations, and a Discrete or a Box of actions.

    Returns:
        The same object.

    Raises:
        EnvironmentContractError: a space is of another kind, or a call returns something else; the
            message says which, what was expected and what to do.

    Example:
        >>> import gymnasium
        >>> env = from_gymnasium(gymnasium.make("CartPole-v1"))
    """
    check_spaces(env)
    if not isinstance(env, TensorEnvironment):
        check_reset(env.reset())
        check_step(env.step(first_action(env)))
    return env


def first_action(env: Environment) -> Any:
    """The lowest action of a Discrete space, or the middle of a Box."""
    actions = actions_of(env)
    return single(actions.outward(actions.tensor(np.zeros((1, *actions.shape)))))


def check_spaces(env: Environment) -> None:
    """Refuse spaces that agents cannot use, by name.

    Raises:
        EnvironmentContractError: a space is missing or of another kind.
    """
    if isinstance(env, str | type):
        made, what = (
            (f"gymnasium.make({env!r})", f"the name {env!r}")
            if isinstance(env, str)
            else (f"{env.__name__}()", f"the class {env.__name__}")
        )
        raise EnvironmentContractError(
            f"expected an environment, received {what}; make one with {made}"
        )
    kind = type(env).__name__
    wanted = {"observation_space": (spaces.Box,), "action_space": (spaces.Discrete, spaces.Box)}
    for name, types in wanted.items():
        space = getattr(env, name, None)
        if isinstance(space, types):
            continue
        names = [each.__name__ for each in types]
        if space is None or not type(space).__module__.startswith("gymnasium."):
            raise EnvironmentContractError(
                f"{kind}: expected {name} to be a gymnasium.spaces.{' or '.join(names)}, received "
                f"{type(space).__module__}.{type(space).__name__}; {_CURE}"
            )
        raise EnvironmentContractError(
            f"{kind}: expected {name} to be a {' or a '.join(names)}, received {space}; agents "
            "take vectors of numbers, and one of several actions or numbers between bounds"
        )
    actions_of(env)


def check_kind(kind: type[Agent], actions: Actions, place: str | None = None) -> None:
    """Refuse actions that an agent cannot learn.

    Args:
        kind: of the agent.
        actions: see `dilim.rl.actions`.
        place: whose they are, for the error.

    Raises:
        EnvironmentContractError: it learns others only.
    """
    if isinstance(actions, kind.takes):
        return
    name, where = kind.__name__, "" if place is None else f" in {place}"
    if isinstance(actions, DiscreteActions):
        raise EnvironmentContractError(
            f"{name}: expected a Box of actions, that is action_low and action_high, received "
            f"{actions}{where}; for one of several actions there are DQN, PPO, A2C and REINFORCE"
        )
    raise EnvironmentContractError(
        f"{name}: expected a Discrete set of actions, received {actions}{where}; in a Box act SAC, "
        "TD3, PPO and A2C"
    )


def check_fits(env: Environment, agent: Agent) -> None:
    """Refuse an environment with other sizes than the agent's network has.

    Raises:
        EnvironmentContractError: it has other spaces or actions.
        ShapeError: its observations have another size.
    """
    check_spaces(env)
    kind, place = type(agent).__name__, type(env).__name__
    cure = f"make the agent with {kind}.for_env(env)"
    shape = env.observation_space.shape
    size = math.prod(shape)
    if size != agent.observation_size:
        raise ShapeError(
            f"{kind}: the network takes {agent.observation_size} numbers, the observation of "
            f"{place} has {size} (shape {shape}); {cure}"
        )
    actions = actions_of(env)
    if actions.options != agent.actions.options:
        raise EnvironmentContractError(
            f"{kind}: the agent has {agent.actions}, {place} has {actions}; {cure}"
        )
    if isinstance(env, TensorEnvironment) and type(env).action_mask is not Rules.action_mask:
        raise EnvironmentContractError(
            f"{kind}: {place} has an action_mask, which agents do not heed yet, so that they would "
            "take forbidden actions; leave action_mask out, and let the rules say what such an "
            "action does"
        )


def check_reset(result: Any) -> tuple[Any, dict[str, Any]]:
    """What `reset` returned, if it is (observation, info).

    Raises:
        EnvironmentContractError: it is something else.
    """
    if type(result) is tuple and len(result) == 2 and isinstance(result[1], dict):
        return result
    raise EnvironmentContractError(
        f"reset() returned {_described(result)}; expected (observation, info); {_CURE}"
    )


def check_step(result: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
    """What `step` returned, if it is (observation, reward, terminated, truncated, info).

    Raises:
        EnvironmentContractError: it is something else.
    """
    if type(result) is tuple and len(result) == 5:
        return result
    raise EnvironmentContractError(
        f"step() returned {_described(result)}; expected 5 values: observation, reward, "
        f"terminated, truncated, info; {_CURE}"
    )


def reset(env: Environment, seed: int | None = None) -> Any:
    """Begin an episode; the observation.

    Raises:
        EnvironmentContractError: `reset` takes no seed, or returned something unexpected.
    """
    if seed is None:
        return check_reset(env.reset())[0]
    try:
        result = env.reset(seed=seed)
    except TypeError as error:
        if "seed" not in str(error):
            raise
        raise EnvironmentContractError(
            f"reset(seed={seed}) failed ({error}); expected reset to take seed=; {_CURE}"
        ) from error
    return check_reset(result)[0]


def _described(result: Any) -> str:
    if type(result) is tuple:
        return f"{len(result)} values"
    shape = getattr(result, "shape", None)
    return type(result).__name__ + ("" if shape is None else f" of shape {tuple(shape)}")


# --- the old API ----------------------------------------------------------------------------


def from_old_gym(env: Any) -> gymnasium.Env[np.ndarray, Any]:
    """A Gymnasium environment from one of the old Gym API.

    =================================== ==========================================================
    the old environment                 the new one
    =================================== ==========================================================
    ``reset()`` returns an observation  (observation, {}); (observation, info) is passed on
    ``reset`` takes no seed             ``env.seed(seed)`` is called before, where there is one
    ``step()`` returns 4 values         done becomes truncated where
                                        ``info["TimeLimit.truncated"]`` is true, else terminated
    ``step()`` returns 5 values         passed on
    spaces of ``gym.spaces``            the same of ``gymnasium.spaces`` (Box and Discrete)
    =================================== ==========================================================

    Args:
        env: an environment with ``reset``, ``step`` and two spaces.

    Raises:
        EnvironmentContractError: a space cannot be translated.
    """
    return _FromOldGym(env)


class _FromOldGym(gymnasium.Env[np.ndarray, Any]):
    """See `from_old_gym`."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.metadata = {**(getattr(env, "metadata", None) or {})}
        self.render_mode = getattr(env, "render_mode", None)
        self.observation_space = _translated(env, "observation_space")
        self.action_space = _translated(env, "action_space")

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """See `from_old_gym`."""
        super().reset(seed=seed)
        result = self._seeded_reset(seed)
        if type(result) is tuple and len(result) == 2 and isinstance(result[1], dict):
            return result
        return result, {}

    def _seeded_reset(self, seed: int | None) -> Any:
        if seed is None:
            return self.env.reset()
        if hasattr(self.env, "seed"):
            self.env.seed(seed)
            return self.env.reset()
        try:
            return self.env.reset(seed=seed)
        except TypeError as error:
            if "seed" not in str(error):
                raise
            return self.env.reset()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """See `from_old_gym`."""
        result = self.env.step(action)
        if len(result) == 5:
            return check_step(tuple(result))
        if len(result) != 4:
            raise EnvironmentContractError(
                f"from_old_gym: step() returned {_described(result)}; expected 4 (observation, "
                "reward, done, info) or 5"
            )
        observation, reward, done, info = result
        cut = bool(done) and bool(info.get("TimeLimit.truncated", False))
        return observation, float(reward), bool(done) and not cut, cut, info

    def render(self) -> Any:
        """What the old environment draws."""
        return self.env.render()

    def close(self) -> None:
        """Close the old environment."""
        if hasattr(self.env, "close"):
            self.env.close()


def _translated(env: Any, name: str) -> spaces.Space[Any]:
    space: Any = getattr(env, name, None)
    if isinstance(space, spaces.Space):
        return space
    if hasattr(space, "low") and hasattr(space, "high"):
        low, high = np.asarray(space.low), np.asarray(space.high)
        return spaces.Box(low, high, dtype=low.dtype.type)
    if hasattr(space, "n"):
        return spaces.Discrete(operator.index(space.n), start=int(getattr(space, "start", 0)))
    raise EnvironmentContractError(
        f"from_old_gym: cannot translate {name} of type {type(space).__name__}; give the "
        "environment a gymnasium.spaces.Box of observations and a gymnasium.spaces.Discrete of "
        "actions"
    )


def environment_like(env: Environment) -> Environment:
    """Another environment of the same kind, to evaluate in while ``env`` is trained in.

    Raises:
        EnvironmentContractError: it can neither be made again nor copied.
    """
    if isinstance(env, TensorEnvironment):
        return env  # only its rules are used
    if getattr(env, "spec", None) is not None:
        try:
            return gymnasium.make(env.spec)
        except (gymnasium.error.Error, ValueError):
            pass  # a wrapper of the user's may not say how it is made
    try:
        return copy.deepcopy(env)
    except Exception as error:
        raise EnvironmentContractError(
            f"train: cannot make a second {type(env).__name__} to evaluate in ({error}); pass "
            "evaluation_env="
        ) from error


def copied(env: Environment) -> Environment:
    """Another environment of the same kind with the same settings.

    Raises:
        EnvironmentContractError: it can neither be copied nor made again.
    """
    try:
        return copy.deepcopy(env)
    except Exception as error:
        if getattr(env, "spec", None) is not None:
            return gymnasium.make(env.spec)
        raise EnvironmentContractError(
            f"train: num_envs= needs copies of {type(env).__name__}, which cannot be copied "
            f"({error}); give it a __deepcopy__"
        ) from error
