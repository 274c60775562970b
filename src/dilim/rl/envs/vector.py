"""`VectorEnvironment`: many environments of one kind, stepped at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from dilim.dtypes import int64
from dilim.errors import EnvironmentContractError, StateError
from dilim.rl.envs import states, tensor_loop
from dilim.rl.envs.base import TensorEnvironment, check_options
from dilim.runtime.files import Arrays
from dilim.tensors.creation import asarray, zeros
from dilim.tensors.random import Generator
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

Batch = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]


class VectorEnvironment(gymnasium.vector.VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many environments of one kind as one `gymnasium.vector.VectorEnv`.

    All are stepped at once on the rules of ``env``, as machine code when that pays. They share one
    stream of random numbers.

    What happens after the end of an episode is the mode, which is declared in ``metadata``:

    ============= ============================================================================
    mode          after a step that ends an episode
    ============= ============================================================================
    ``NEXT_STEP`` the next step resets this environment: its action is not looked at, the reward
                  is 0. That step is no transition to learn from.
    ``SAME_STEP`` the same step resets it; ``info["final_obs"]`` has the observation at the end,
                  ``info["_final_obs"]`` says where there is one.
    ``DISABLED``  ``reset(options={"reset_mask": ended})`` has to come before the next step.
    ============= ============================================================================

    Args:
        env: the rules; its own episode is not touched.
        num_envs: how many.
        autoreset_mode: a mode, or its value such as "NextStep".
        compile_after: see `dilim.compile`.

    Attributes:
        env: see above.
        steps: int64 (num_envs,): the steps of the running episodes.

    Example:
        >>> import dilim.rl
        >>> envs = dilim.rl.VectorEnvironment(dilim.rl.CartPole(), 16)
        >>> observations, info = envs.reset(seed=0)
        >>> observations, rewards, terminated, truncated, info = envs.step(
        ...     envs.action_space.sample()
        ... )
        >>> observations.shape, rewards.shape
        ((16, 4), (16,))
    """

    def __init__(
        self,
        env: TensorEnvironment,
        num_envs: int,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        compile_after: float | None = None,
    ) -> None:
        if not isinstance(env, TensorEnvironment):
            raise EnvironmentContractError(
                "VectorEnvironment: expected an environment written in tensors "
                f"(dilim.rl.TensorEnvironment), received {type(env).__name__}; for others there is "
                "gymnasium.vector.SyncVectorEnv"
            )
        if num_envs < 1:
            raise EnvironmentContractError(
                f"VectorEnvironment: expected num_envs >= 1, received {num_envs}"
            )
        from dilim.slicing.api import compile  # takes time to import

        self.env = env
        self.num_envs = num_envs
        self.mode = AutoresetMode(autoreset_mode)
        self.metadata = {**env.metadata, "autoreset_mode": self.mode}
        self.render_mode = env.render_mode
        self.single_observation_space = env.observation_space
        self.single_action_space = env.action_space
        self.observation_space = batch_space(env.observation_space, num_envs)
        self.action_space = batch_space(env.action_space, num_envs)
        self._running: tensor_loop.Running | None = None
        self._ended = np.zeros(num_envs, np.bool_)
        self._generator: Generator | None = None
        steps: dict[AutoresetMode, Callable[..., Any]] = {
            AutoresetMode.NEXT_STEP: tensor_loop.moved_or_renewed,
            AutoresetMode.SAME_STEP: TensorEnvironment.advance,
            AutoresetMode.DISABLED: tensor_loop.moved,
        }
        self._step = compile(steps[self.mode], compile_after=compile_after)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin episodes.

        Args:
            seed: starts the stream of random numbers anew; give it at the first reset only.
            options: keyword arguments of the rules' `initial`, and ``reset_mask``: a NumPy array
                of bool that says which environments to reset, by default all.

        Returns:
            The observations, and an empty dict.
        """
        super().reset(seed=seed)
        if self._generator is None:
            drawn = int(self.np_random.integers(2**63)) if seed is None else seed
            self._generator = Generator(drawn)
        elif seed is not None:
            self._generator.state = Generator(seed).state  # programs draw from this memory
        known = dict(options or {})
        mask = self._checked_mask(known.pop("reset_mask", None))
        check_options(self.env, known)
        with no_grad():
            fresh = self.env.initial(self._generator, (self.num_envs,), **known)
            steps = zeros((self.num_envs,), dtype=int64)
            if self._running is not None:
                flags = asarray(mask)
                old, old_steps = self._running
                fresh = states.chosen(flags, fresh, old)
                steps = states.chosen(flags, steps, old_steps)
            self._running = fresh, steps
            self._ended = self._ended & ~mask
            return self.env.observation(fresh).numpy(copy=True), self._masked()

    def step(self, actions: Any) -> Batch:
        """Act in every environment.

        Args:
            actions: an element of `action_space`: one action per environment. Numbers for a Box
                may lie beyond its bounds; what that means is up to the rules.

        Returns:
            Observations (a copy), rewards (float64), terminated, truncated, and a dict: with
            ``SAME_STEP`` ``final_obs`` and ``final_info`` as in `gymnasium.vector`, and
            ``action_mask`` where the rules have one.

        Raises:
            EnvironmentContractError: the actions are not such, `reset` was never called, or, with
                ``DISABLED``, an episode has ended.
        """
        chosen = self._checked_actions(actions)
        self._refuse_masked(chosen)
        if self._running is None:
            raise EnvironmentContractError(
                "VectorEnvironment.step: no episodes are running; call reset() first"
            )
        if self.mode is AutoresetMode.DISABLED and self._ended.any():
            raise EnvironmentContractError(
                f"VectorEnvironment.step: {self._ended.sum()} episodes have ended; call "
                'reset(options={"reset_mask": terminated | truncated}) before the next step'
            )
        given: tuple[Any, ...] = (self.env, self._running, chosen, self._generator)
        if self.mode is AutoresetMode.NEXT_STEP:
            given = (self.env, self._running, asarray(self._ended), chosen, self._generator)
        with no_grad():
            self._running, observation, reward, terminated, truncated, *rest = self._step(*given)
        shown = observation.numpy(copy=True)
        ends, cuts = terminated.numpy(copy=True), truncated.numpy(copy=True)
        self._ended = ends | cuts
        info: dict[str, Any] = {}
        if self.mode is AutoresetMode.SAME_STEP:
            info = self._final(rest[0].numpy(copy=True), self._ended)
            self._ended = np.zeros(self.num_envs, np.bool_)
        info |= self._masked()
        return shown, reward.numpy().astype(np.float64), ends, cuts, info

    def render(self) -> tuple[Any, ...] | None:
        """What each environment draws, as `TensorEnvironment.render` does."""
        if self.render_mode is None:
            return None
        if self._running is None:
            raise EnvironmentContractError(
                "VectorEnvironment.render: nothing to draw yet; call reset() first"
            )
        draw = self.env.draw_text if self.render_mode == "ansi" else self.env.draw_frame
        state, _ = self._running
        tensors = states.parts(state).values()
        return tuple(
            draw(states.like(state, [x[k] for x in tensors])) for k in range(self.num_envs)
        )

    # --- taking and giving the state ------------------------------------------------------

    @property
    def state(self) -> states.State:
        """The states of the running episodes, in the first axis; None before the first `reset`."""
        return None if self._running is None else self._running[0]

    @property
    def steps(self) -> np.ndarray:
        """See the class."""
        if self._running is None:
            return np.zeros(self.num_envs, np.int64)
        return self._running[1].numpy(copy=True)

    def get_state(self) -> Arrays:
        """All that the future depends on: arrays by name, copies; see `set_state`."""
        arrays = {"steps": self.steps, "ended": self._ended.copy()}
        if self._generator is not None:
            arrays["generator"] = self._generator.state.numpy(copy=True)
        for name, x in states.parts(self.state).items():
            arrays[f"state.{name}"] = x.numpy(copy=True)
        return arrays

    def set_state(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from what `get_state` of another one of the same kind and number gave.

        Raises:
            StateError: it belongs to another kind, or another number; nothing was changed.
        """
        pattern = self.env.initial(Generator(0), (self.num_envs,))
        state = states.taken(type(self).__name__, pattern, arrays)
        if np.shape(arrays["steps"]) != (self.num_envs,):
            raise StateError(
                f"VectorEnvironment.set_state: expected {self.num_envs} environments, received "
                f"steps of shape {np.shape(arrays['steps'])}"
            )
        steps = asarray(np.asarray(arrays["steps"], np.int64).copy())
        self._running = None if state is None else (state, steps)
        self._ended = np.asarray(arrays["ended"], np.bool_).copy()
        given = states.generator_from(arrays)
        if given is None or self._generator is None:
            self._generator = given
        else:
            self._generator.state = given.state

    def __repr__(self) -> str:
        return f"VectorEnvironment({self.env!r}, {self.num_envs}, {self.mode.value})"

    # --- inside ---------------------------------------------------------------------------

    def _checked_actions(self, actions: Any) -> Tensor:
        given, space = np.asarray(actions), self.action_space
        if isinstance(space, spaces.Box):
            fits = given.shape == space.shape and given.dtype.kind in "biuf"
        else:
            fits = given.dtype.kind in "iu" and space.contains(given.astype(np.int64))
        if not fits:
            raise EnvironmentContractError(
                f"VectorEnvironment.step: expected actions in {space}, received {actions!r:.200}"
            )
        return asarray(given.astype(space.dtype))

    def _checked_mask(self, mask: Any) -> np.ndarray:
        if mask is None or self._running is None:
            return np.ones(self.num_envs, np.bool_)
        given = np.asarray(mask)
        if given.shape != (self.num_envs,) or given.dtype != np.bool_ or not given.any():
            raise EnvironmentContractError(
                f"VectorEnvironment.reset: expected reset_mask as {self.num_envs} bools, at least "
                f"one of them True, received {mask!r:.200}"
            )
        return given

    def _mask(self) -> np.ndarray | None:
        with no_grad():
            mask = None if self._running is None else self.env.action_mask(self._running[0])
            return None if mask is None else mask.numpy(copy=True)

    def _masked(self) -> dict[str, Any]:
        """The ``info`` of environments with a mask, as `gymnasium.vector` has it."""
        mask = self._mask()
        if mask is None:
            return {}
        stuck = np.flatnonzero(~mask.any(axis=1) & ~self._ended)
        if stuck.size:
            raise EnvironmentContractError(
                f"VectorEnvironment: environment {stuck[0]} allows no action, and its episode goes "
                "on; let the rules end it, or allow an action"
            )
        return {"action_mask": mask, "_action_mask": np.ones(self.num_envs, np.bool_)}

    def _refuse_masked(self, chosen: Tensor) -> None:
        mask = self._mask()
        if mask is None:
            return
        allowed = mask[np.arange(self.num_envs), chosen.numpy()] | self._ended
        if not allowed.all():
            k = int(np.argmin(allowed))
            raise EnvironmentContractError(
                f"VectorEnvironment.step: environment {k}: the action {int(chosen[k])} is not "
                f"allowed; its mask is {mask[k].tolist()}"
            )

    def _final(self, seen: np.ndarray, ended: np.ndarray) -> dict[str, Any]:
        """The ``info`` of a step in which episodes have ended."""
        if not ended.any():
            return {}
        final = np.full(self.num_envs, None, dtype=object)
        for k in np.flatnonzero(ended):
            final[k] = seen[k]
        return {
            "final_obs": final,
            "_final_obs": ended.copy(),
            "final_info": {},
            "_final_info": ended.copy(),
        }
