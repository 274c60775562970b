"""`ENVIRONMENTS`: the built-in environments, and their names in Gymnasium."""

from __future__ import annotations

import difflib
import functools
from dataclasses import dataclass, field
from typing import Any, Final

import gymnasium

from dilim.errors import EnvironmentContractError
from dilim.rl.envs.acrobot import Acrobot
from dilim.rl.envs.bandit import Bandit
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.envs.cart_pole import CartPole
from dilim.rl.envs.frozen_lake import FrozenLake
from dilim.rl.envs.grid_world import GridWorld
from dilim.rl.envs.mountain_car import MountainCar
from dilim.rl.envs.pendulum import Pendulum
from dilim.rl.envs.snake import Snake
from dilim.rl.envs.vector import VectorEnvironment


@dataclass(frozen=True)
class Entry:
    """A built-in environment.

    Attributes:
        kind: the class.
        gymnasium_id: its name for ``gymnasium.make``.
        limit: steps after which ``gymnasium.make`` cuts an episode, with its own wrapper, so that
            ``gymnasium.make(..., max_episode_steps=N)`` is the only limit.
        options: arguments of the class for ``gymnasium.make``.
    """

    kind: type[TensorEnvironment]
    gymnasium_id: str
    limit: int | None = None
    options: dict[str, Any] = field(default_factory=dict)


_NO_LIMIT: Final = {"max_steps": None}

ENVIRONMENTS: Final = {
    "acrobot": Entry(Acrobot, "dilim/Acrobot-v1", limit=500, options=_NO_LIMIT),
    "bandit": Entry(Bandit, "dilim/Bandit-v0"),
    "cartpole": Entry(CartPole, "dilim/CartPole-v1", limit=500, options=_NO_LIMIT),
    "frozenlake": Entry(FrozenLake, "dilim/FrozenLake-v1", limit=100, options=_NO_LIMIT),
    "gridworld": Entry(GridWorld, "dilim/GridWorld-v0"),
    "mountaincar": Entry(MountainCar, "dilim/MountainCar-v0", limit=200, options=_NO_LIMIT),
    "pendulum": Entry(Pendulum, "dilim/Pendulum-v1", limit=200, options=_NO_LIMIT),
    "snake": Entry(Snake, "dilim/Snake-v0"),
}
"""All built-in environments by the name that the command line uses; tests walk over them."""


def make_environment(name: str, **options: Any) -> TensorEnvironment:
    """A built-in environment by name, such as ``make_environment("cartpole")``.

    Args:
        name: a key of `ENVIRONMENTS`; case, "-" and "_" do not matter.
        options: arguments of its class.

    Raises:
        EnvironmentContractError: there is none of that name; the nearest one is suggested.
    """
    wanted = name.lower().replace("-", "").replace("_", "")
    if wanted not in ENVIRONMENTS:
        near = difflib.get_close_matches(wanted, ENVIRONMENTS, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise EnvironmentContractError(
            f"unknown environment {name!r}{hint} (there are: {', '.join(ENVIRONMENTS)})"
        )
    return ENVIRONMENTS[wanted].kind(**options)


def make_vector(
    name: str,
    num_envs: int,
    *,
    max_episode_steps: int | None = None,
    autoreset_mode: str = "NextStep",
    **options: Any,
) -> VectorEnvironment:
    """Many built-in environments at once, as ``gymnasium.make_vec`` asks for them.

    Args:
        name: as for `make_environment`.
        num_envs: how many.
        max_episode_steps: steps after which an episode is cut.
        autoreset_mode: see `VectorEnvironment`.
        options: arguments of the class.
    """
    env = make_environment(name, **options)
    if max_episode_steps is not None:
        env.max_steps = max_episode_steps
    return VectorEnvironment(env, num_envs, autoreset_mode=autoreset_mode)


def __getattr__(attribute: str) -> Any:
    """``vector_cartpole`` and so on: `make_vector` of one environment.

    Gymnasium's registry takes the place of a function as text.
    """
    what, _, name = attribute.partition("_")
    if what != "vector" or name not in ENVIRONMENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {attribute!r}")
    return functools.partial(make_vector, name)


def register_with_gymnasium() -> None:
    """Make the built-in environments known to ``gymnasium.make`` and ``gymnasium.make_vec``.

    Calling it again is harmless.
    """
    for name, entry in ENVIRONMENTS.items():
        if entry.gymnasium_id not in gymnasium.registry:
            gymnasium.register(
                entry.gymnasium_id,
                entry_point=f"{entry.kind.__module__}:{entry.kind.__name__}",
                vector_entry_point=f"{__name__}:vector_{name}",
                max_episode_steps=entry.limit,
                kwargs=entry.options,
            )
