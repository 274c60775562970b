"""`TensorEnvironment`: an environment written as pure functions of tensors."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from dilim.dtypes import int64
from dilim.errors import EnvironmentContractError
from dilim.rl.envs import states, tensor_loop
from dilim.rl.envs.states import State
from dilim.rl.envs.tensor_loop import Running
from dilim.runtime.files import Arrays
from dilim.tensors.creation import asarray, zeros
from dilim.tensors.random import Generator
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

_NAMELESS = ("self", "generator", "shape")


class TensorEnvironment(gymnasium.Env[np.ndarray, Any]):
    """Base of environments: the rules as pure functions, and from them a Gymnasium environment.

    A subclass sets the spaces and writes the rules in the shape of Gymnasium's functional API::

        initial(generator, shape)             -> state
        transition(state, action, generator)  -> next state
        observation(state)                    -> what the agent sees
        reward(state, action, next_state)     -> float32
        terminal(state)                       -> bool: the episode has ended by the rules
        truncation(state)                     -> bool: it is cut short (optional)

    A state is one tensor, or a tuple of tensors. The functions work on one environment and on
    many at once: all leading axes of a state are environments. They read nothing but their
    arguments and the numbers set in ``__init__``, and draw from nothing but the generator.

    From that text come the Gymnasium environment of this class, and `start` and `advance`, which
    run as many environments as wanted in a loop of tensors, eagerly or compiled. Two more functions
    draw a single state: `draw_text` and `draw_frame`.

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

    # --- the rules ------------------------------------------------------------------------

    def initial(self, generator: Generator, shape: tuple[int, ...] = ()) -> State:
        """A state to start from.

        Args:
            generator: the only source of randomness.
            shape: sizes of the leading axes: () for one environment, (N,) for N of them.

        A subclass may add keyword arguments with defaults: they are what ``reset(options=...)``
        takes.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define initial()")

    def transition(self, state: State, action: Tensor, generator: Generator) -> State:
        """The state after an action: int64, or what a Box of actions holds; one per environment."""
        raise NotImplementedError(f"{type(self).__name__} does not define transition()")

    def observation(self, state: State) -> Tensor:
        """What the agent sees of a state."""
        raise NotImplementedError(f"{type(self).__name__} does not define observation()")

    def reward(self, state: State, action: Tensor, next_state: State) -> Tensor:
        """The reward of a step, float32."""
        raise NotImplementedError(f"{type(self).__name__} does not define reward()")

    def terminal(self, state: State) -> Tensor:
        """Whether the rules end the episode in this state, bool."""
        raise NotImplementedError(f"{type(self).__name__} does not define terminal()")

    def truncation(self, state: State) -> Tensor:
        """Whether the episode is cut short in this state, bool; never, unless a subclass says so.

        Nothing has ended by the rules then: an agent goes on to count what would have followed.
        ``max_steps`` needs no rule of its own.
        """
        return asarray(False)

    def draw_text(self, state: Any) -> str:
        """A drawing of one state in lines of text."""
        raise NotImplementedError(f"{type(self).__name__} does not define draw_text()")

    def draw_frame(self, state: Any) -> np.ndarray:
        """A picture of one state: uint8, (height, width, 3)."""
        raise NotImplementedError(f"{type(self).__name__} does not define draw_frame()")

    # --- in a loop of tensors -------------------------------------------------------------

    def start(self, generator: Generator, shape: tuple[int, ...] = ()) -> tuple[Running, Tensor]:
        """Begin episodes of as many environments as wanted; for a loop of tensors.

        Args:
            generator: the only source of randomness.
            shape: () for one environment, (N,) for N of them.

        Returns:
            What `advance` goes on from (the state, and the steps of each episode), and the
            observation.

        Example:
            >>> import dilim, dilim.rl
            >>> env = dilim.rl.CartPole()
            >>> generator = dilim.Generator(0)
            >>> running, observation = env.start(generator, (8,))
            >>> for _ in range(100):
            ...     action = (observation[..., 2] > 0).astype("int64")
            ...     running, observation, reward, terminated, truncated, following = env.advance(
            ...         running, action, generator
            ...     )
            >>> observation.shape, reward.shape
            ((8, 4), (8,))
        """
        state = self.initial(generator, shape)
        return (state, zeros(shape, dtype=int64)), self.observation(state)

    def advance(
        self, running: Running, action: Tensor, generator: Generator
    ) -> tuple[Running, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """One step of each environment; where an episode ends, the next one begins at once.

        Args:
            running: as `start` or the last step gave it.
            action: one per environment. They are not checked.
            generator: the only source of randomness. Starts are drawn only in steps in which an
                episode ends, for all environments at once; so a single environment draws what it
                draws under `reset` and `step`.

        Returns:
            What to go on from; the observation, of the next episode where one has ended; reward,
            terminated and truncated as `step` gives them, one per environment; and the observation
            that the step led to, before the next episode: the one to estimate from what a cut
            took away.
        """
        running, seen, reward, terminated, truncated = tensor_loop.moved(
            self, running, action, generator
        )
        observation = seen
        ended = terminated | truncated
        if ended.any():
            running = tensor_loop.renewed(self, running, ended, generator)
            observation = self.observation(running[0])
        return running, observation, reward, terminated, truncated, seen

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
        if seed is not None:
            self._generator = Generator(seed)
        elif self._generator is None:
            self._generator = Generator(int(self.np_random.integers(2**63)))
        given = options or {}
        check_options(self, given)
        with no_grad():
            self._state = self.initial(self._generator, **given)
            self.steps = 0
            self._ended = False
            return self._observed(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Act.

        Args:
            action: an element of `action_space`. Numbers for a Box may lie beyond its bounds; what
                that means is up to the rules.

        Returns:
            Observation (a copy), reward, terminated, truncated, and an empty dict. At the step that
            reaches ``max_steps``, ``truncated`` is True unless the rules end the episode too.

        Raises:
            EnvironmentContractError: the action is not one, or no episode is running.
        """
        if self._state is None or self._ended or self._generator is None:
            raise EnvironmentContractError(self._not_running())
        chosen = self._checked_action(action)
        with no_grad():
            state = self._state
            self._state = self.transition(state, chosen, self._generator)
            reward = float(self.reward(state, chosen, self._state))
            terminated = bool(self.terminal(self._state))
            self.steps += 1
            cut = self.steps == self.max_steps or bool(self.truncation(self._state))
            truncated = cut and not terminated
            self._ended = terminated or truncated
            return self._observed(), reward, terminated, truncated, {}

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
        return self._state

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
        self._state = states.taken(kind, self.initial(Generator(0)), arrays)
        self.steps = int(arrays["steps"])
        self._ended = bool(arrays["ended"])
        self._generator = states.generator_from(arrays)

    def __repr__(self) -> str:
        limit = "" if self.max_steps is None else f"max_steps={self.max_steps}"
        return f"{type(self).__name__}({limit})"

    # --- inside ---------------------------------------------------------------------------

    def _observed(self) -> np.ndarray:
        result: np.ndarray = self.observation(self._state).numpy(copy=True)
        return result

    def _checked_action(self, action: Any) -> Tensor:
        """An action as a tensor."""
        space = self.action_space
        if isinstance(space, spaces.Discrete) and space.contains(action):
            return asarray(int(action), dtype=int64)
        if isinstance(space, spaces.Box):
            array = np.asarray(action)
            if array.shape == space.shape and array.dtype.kind in "biuf":
                return asarray(array.astype(space.dtype))
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
