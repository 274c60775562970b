"""`ENVIRONMENTS`: the built-in environments, and their names in Gymnasium."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import Any, Final

import gymnasium

from dilim.errors import EnvironmentContractError
from dilim.rl.envs.bandit import Bandit
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.envs.cart_pole import CartPole


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


ENVIRONMENTS: Final = {
    "bandit": Entry(Bandit, "dilim/Bandit-v0"),
    "cartpole": Entry(CartPole, "dilim/CartPole-v1", limit=500, options={"max_steps": None}),
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


def register_with_gymnasium() -> None:
    """Make the built-in environments known to ``gymnasium.make``; calling it again is harmless."""
    for entry in ENVIRONMENTS.values():
        if entry.gymnasium_id not in gymnasium.registry:
            gymnasium.register(
                entry.gymnasium_id,
                entry_point=f"{entry.kind.__module__}:{entry.kind.__name__}",
                max_episode_steps=entry.limit,
                kwargs=entry.options,
            )
