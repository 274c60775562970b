"""`TensorEnvironment`: an environment written as pure functions of tensors."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from numbers import Integral
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium import spaces

from dilim.errors import EnvironmentContractError
from dilim.rl.envs import states, stepping
from dilim.rl.envs.rules import Rules
from dilim.rl.envs.states import State
from dilim.runtime.files import Arrays
from dilim.tensors.random import Generator
from dilim.tensors.tape import no_grad

PROGRAM_AFTER: Final = 1000
"""Steps after which the rules of an environment are compiled; the numbers stay the same."""

_NAMELESS: Final = ("self", "generator", "shape")
_RUNNING: Final = frozenset(
    {"steps", "max_steps", "render_mode", "spec", "_state", "_ended", "_generator", "_np_random",
     "_np_random_seed", "_usual_actions", "_eager_steps", "_may_be_compiled", "_candidate",
     "_program", "_mask"}
)  # fmt: skip
"""Attributes that the rules do not depend on."""
_NO_PROGRAM: Final = {
    "_program": None, "_candidate": None, "_may_be_compiled": True, "_eager_steps": 0,
    "_usual_actions": 0,
}  # fmt: skip
_TRIALS: Final = 8
"""Steps for which a program and the rules have to agree."""


class TensorEnvironment(Rules, gymnasium.Env[np.ndarray, Any]):
    """Base of environments: the rules as pure functions, and from them a Gymnasium environment.

    A subclass sets the spaces and writes the rules in the shape of Gymnasium's functional API::

        initial(generator, shape)             -> state
        transition(state, action, generator)  -> next state
        observation(state)                    -> what the agent sees
        reward(state, action, next_state)     -> float32
        terminal(state)                       -> bool: the episode has ended by the rules
        truncation(state)                     -> bool: it is cut short (optional)
        action_mask(state)                    -> bool: which actions are allowed (optional)

    A state is one tensor, or a tuple of tensors. The functions work on one environment and on
    many at once: all leading axes of a state are environments. They read nothing but their
    arguments and attributes of the environment, and draw from nothing but the generator.

    From that text come the Gymnasium environment of this class, and `start` and `advance`, which
    run as many environments as wanted in a loop of tensors, eagerly or compiled. Two more functions
    draw a single state: `draw_text` and `draw_frame`.

    After a thousand steps the rules of a single environment are compiled. That changes no bit of
    what is shown; an attribute that is set later is followed.

    Args:
        max_steps: an episode is cut after so many steps (``truncated``); None for no limit.
        render_mode: "ansi" for text, "rgb_array" for frames, None for neither.

    Attributes:
        observation_space: a Box.
        action_space: a Discrete from 0 on, or a Box.
        max_steps: see above.
        steps: how many steps the running episode has.

    Example:
        >>> import dilim.rl
        >>> env = dilim.rl.CartPole()
        >>> obs, info = env.reset(seed=0)
        >>> obs, reward, terminated, truncated, info = env.step(1)
        >>> obs.shape, reward, terminated, truncated
        ((4,), 1.0, False, False)
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 50}

    def __init__(self, *, max_steps: int | None = None, render_mode: str | None = None) -> None:
        kind = type(self).__name__
        if max_steps is not None and (not isinstance(max_steps, Integral) or max_steps < 1):
            raise EnvironmentContractError(
                f"{kind}: expected max_steps to be an integer >= 1, received {max_steps!r}"
            )
        modes = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            raise EnvironmentContractError(
                f"{kind}: expected render_mode {' or '.join(map(repr, modes))} or None, received "
                f"{render_mode!r}; windows are not opened here"
            )
        self.max_steps = max_steps
        self.render_mode = render_mode
        self.steps = 0
        self._state: Any = None
        self._ended = False
        self._generator: Generator | None = None
        self._mask: np.ndarray | None = None
        self._usual_actions = 0
        self._eager_steps = 0
        self._may_be_compiled = True
        self._candidate: stepping.Program | None = None
        self._program: stepping.Program | None = None

    # --- Gymnasium's API ------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: starts the stream of random numbers anew; give it at the first reset only. An
                environment that never got one is seeded by the system.
            options: keyword arguments of `initial`.

        Returns:
            The observation, and an empty dict.

        Raises:
            EnvironmentContractError: `initial` does not know an option.
        """
        super().reset(seed=seed)
        if self._generator is None:
            drawn = int(self.np_random.integers(2**63)) if seed is None else seed
            self._generator = Generator(drawn)
        elif seed is not None:
            self._generator.state = Generator(seed).state  # in place, where a program draws from
        given = options or {}
        check_options(self, given)
        with no_grad():
            if self._program is not None and not given and self._program.fits(self):
                observation = self._program.begin()
                self._enter(self._program.state)
            else:
                self._enter(self.initial(self._generator, **given))
                observation = self.observation(self._state).numpy(copy=True)
        self.steps = 0
        self._ended = False
        return observation, {} if self._mask is None else self._masked()

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Act.

        Args:
            action: an element of `action_space`. Numbers for a Box may lie beyond its bounds; what
                that means is up to the rules.

        Returns:
            Observation (a copy), reward, terminated, truncated, and a dict, which is empty unless
            there is an `action_mask`. At the step that reaches ``max_steps``, ``truncated`` is True
            unless the rules end the episode too.

        Raises:
            EnvironmentContractError: the action is not one, or is not allowed, or no episode is
                running, or it goes on with no action that is allowed.
        """
        if self._state is None or self._ended or self._generator is None:
            raise EnvironmentContractError(self._not_running())
        if action.__class__ is not int or not 0 <= action < self._usual_actions:
            action = self._checked_action(action)
        if self._mask is not None and not self._mask[action]:
            raise EnvironmentContractError(
                f"{type(self).__name__}.step: the action {action} is not allowed; "
                f'info["action_mask"] is {self._mask.tolist()}'
            )
        call = self._eager_step if self._program is None else self._program.call
        observation, reward, terminated, cut = call(action)
        self.steps = steps = self.steps + 1
        truncated = (cut or steps == self.max_steps) and not terminated
        if terminated or truncated:
            self._ended = True
        if self._mask is None:
            return observation, reward, terminated, truncated, {}
        self._mask = self._new_mask()
        return observation, reward, terminated, truncated, self._masked()

    def render(self) -> Any:
        """The running episode as text ("ansi") or as a frame ("rgb_array")."""
        if self._state is None:
            raise EnvironmentContractError(
                f"{type(self).__name__}.render: nothing to draw yet; call reset() first"
            )
        if self.render_mode == "ansi":
            return self.draw_text(self._state)
        return self.draw_frame(self._state) if self.render_mode == "rgb_array" else None

    # --- taking and giving the state ------------------------------------------------------

    @property
    def state(self) -> State:
        """The state of the running episode; None before the first `reset`."""
        if self._program is None or self._state is None:
            return self._state
        return states.like(self._state, [x.clone() for x in states.parts(self._state).values()])

    def get_state(self) -> Arrays:
        """All that the future of this environment depends on: arrays by name, copies.

        With `set_state` another environment of the same kind goes on exactly from here.
        """
        arrays = {"steps": np.array(self.steps), "ended": np.array(self._ended)}
        if self._generator is not None:
            arrays["generator"] = self._generator.state.numpy(copy=True)
        for name, x in states.parts(self._state).items():
            arrays[f"state.{name}"] = x.numpy(copy=True)
        return arrays

    def set_state(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what `get_state` gave.

        Raises:
            StateError: it belongs to another kind of environment; nothing was changed.
        """
        kind = type(self).__name__
        state = states.taken(kind, self.initial(Generator(0)), arrays)
        given = states.generator_from(arrays)
        if given is None or self._generator is None:
            self._generator, self._program = given, None
        else:
            self._generator.state = given.state
        self._enter(state)
        self.steps = int(arrays["steps"])
        self._ended = bool(arrays["ended"])

    def __repr__(self) -> str:
        limit = "" if self.max_steps is None else f"max_steps={self.max_steps}"
        return f"{type(self).__name__}({limit})"

    # --- inside ---------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        """Setting a number of the rules begins them anew, without the program made of them."""
        object.__setattr__(self, name, value)
        if name not in _RUNNING:
            self.__dict__.update(_NO_PROGRAM)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, **_NO_PROGRAM}

    def _enter(self, state: State) -> None:
        """Go on from a state."""
        space = self.action_space
        is_usual = isinstance(space, spaces.Discrete) and space.start == 0
        self._usual_actions = int(space.n) if is_usual else 0  # type: ignore[attr-defined]
        if self._program is not None and not self._program.fits(self):
            self._program = None
        if self._program is not None and state is not None:
            if state is not self._program.state:
                self._program.load(state)
            state = self._program.state
        self._state = state
        self._mask = None if state is None else self._new_mask()

    def _new_mask(self) -> np.ndarray | None:
        with no_grad():
            mask = self.action_mask(self._state)
            return None if mask is None else mask.numpy(copy=True)

    def _masked(self) -> dict[str, Any]:
        """The ``info`` of environments with a mask."""
        mask: Any = self._mask
        if not mask.any() and not self._ended:
            raise EnvironmentContractError(
                f"{type(self).__name__}: no action is allowed after step {self.steps}, and the "
                "episode goes on; let the rules end it, or allow an action"
            )
        return {"action_mask": mask.copy()}

    def _eager_step(self, action: Any) -> stepping.Outcome:
        """One step, operation by operation; after many of them a program is made and tried."""
        generator: Any = self._generator
        trial = None
        if self._eager_steps >= PROGRAM_AFTER and self._may_be_compiled:
            if self._candidate is None:
                self._candidate = stepping.program_of(self, self._state, generator)
            if self._candidate is not None:
                trial = stepping.tried(self._candidate, self._state, action, generator)
        self._state, outcome = stepping.eager(self, self._state, action, generator)
        self._eager_steps += 1
        if self._eager_steps > PROGRAM_AFTER and self._may_be_compiled:
            self._judge(trial, outcome)
        return outcome

    def _judge(self, trial: Any, outcome: stepping.Outcome) -> None:
        """Take the program if it does for some steps what the rules do, else never."""
        program, generator = self._candidate, self._generator
        if program is None or trial is None or generator is None:
            self._may_be_compiled = False
        elif not stepping.same(trial, outcome, program, self._state):
            self._may_be_compiled, self._candidate = False, None
        elif self._eager_steps == PROGRAM_AFTER + _TRIALS:
            self._may_be_compiled, self._candidate = False, None
            if stepping.begins_alike(program, self, generator):
                self._program = program
                self._enter(self._state)

    def _checked_action(self, action: Any) -> Any:
        """An action as a number, or as an array of the space's dtype."""
        space = self.action_space
        if isinstance(space, spaces.Discrete) and space.contains(action):
            return int(action)
        if isinstance(space, spaces.Box):
            array = np.asarray(action)
            if array.shape == space.shape and array.dtype.kind in "biuf":
                return array.astype(space.dtype)
        raise EnvironmentContractError(
            f"{type(self).__name__}.step: expected an action in {space}, received {action!r}"
        )

    def _not_running(self) -> str:
        kind = type(self).__name__
        if self._state is None:
            return f"{kind}.step: no episode is running; call reset() first"
        return f"{kind}.step: the episode has ended; call reset() before the next step"


def check_options(env: TensorEnvironment, options: Mapping[str, Any]) -> None:
    """Refuse options of `reset` that `initial` does not know.

    Raises:
        EnvironmentContractError: there is one; the known ones are named.
    """
    if not options:
        return
    known = [name for name in inspect.signature(env.initial).parameters if name not in _NAMELESS]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise EnvironmentContractError(
            f"{type(env).__name__}.reset: unknown option {unknown[0]!r}; there are "
            f"{', '.join(known) or 'none'}"
        )
