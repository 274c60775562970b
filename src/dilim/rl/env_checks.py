"""`check_env`: does an environment keep to the rules that agents rely on?"""

from __future__ import annotations

import copy
import math
from typing import Any, Final, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence

from dilim.errors import DilimError, EnvironmentContractError
from dilim.rl import adapters, tensor_checks
from dilim.rl.envs.base import TensorEnvironment

_EPISODES: Final = 3
_STEPS: Final = 200


class Shown(NamedTuple):
    """What one call showed, copied at once.

    Attributes:
        call: such as "step 3 of episode 2", for the reader.
        is_reset: whether it was a reset.
        values: observation, and after a step reward, terminated and truncated.
    """

    call: str
    is_reset: bool
    values: tuple[Any, ...]


class Findings:
    """What is wrong, in order, each thing once."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.advice: list[str] = []

    def error(self, text: str) -> None:
        """Something that makes training wrong."""
        if text not in self.errors:
            self.errors.append(text)

    def advise(self, text: str) -> None:
        """Something that works, but could be better."""
        if text not in self.advice:
            self.advice.append(text)

    def settle(self, kind: str) -> list[str]:
        """The advice, if there is no error."""
        if not self.errors:
            return self.advice
        lines = [f"error: {text}" for text in self.errors] + [f"note: {x}" for x in self.advice]
        raise EnvironmentContractError("\n  ".join([f"check_env({kind}):", *lines]))


def check_env(env: Any, *, seed: int = 0) -> list[str]:
    """Check an environment: play it, twice with the same seed, and see what does not fit.

    Looked for are: results of another form than Gymnasium's; observations and rewards that are not
    finite or not in their space; runs that differ although their seed and actions are the same,
    with the call that began it; episodes that repeat themselves; observations that are changed
    after they were given; states that `set_state` does not take over; of environments written in
    tensors also rules that treat many environments otherwise than one, that give other bits when
    compiled, and lines that cannot be compiled.

    Args:
        env: an environment; it is reset, and left somewhere in an episode.
        seed: of the runs.

    Returns:
        Advice: things that work but could be better. An empty list is the best result.

    Raises:
        EnvironmentContractError: there are errors; the text lists what to mend, the errors first.

    Example:
        >>> import dilim.rl
        >>> dilim.rl.check_env(dilim.rl.CartPole())
        []
    """
    findings = Findings()
    _check_spaces(env, findings)
    if not findings.errors:
        try:
            _check_runs(env, findings, seed)
        except DilimError as error:
            findings.error(str(error))
    if not findings.errors and isinstance(env, TensorEnvironment):
        tensor_checks.check_rules(env, findings, seed)
    if not findings.errors:
        _check_state(env, findings, seed)
    return findings.settle(type(getattr(env, "unwrapped", env)).__name__)


def _check_spaces(env: Any, findings: Findings) -> None:
    for name in ("observation_space", "action_space"):
        space = getattr(env, name, None)
        if not isinstance(space, spaces.Space):
            module = type(space).__module__
            findings.error(
                f"{name} is {module}.{type(space).__name__}; set it to a space of gymnasium.spaces"
                " in __init__ (an environment of the old Gym API: dilim.rl.from_old_gym(env))"
            )
    observed, actions = getattr(env, "observation_space", None), getattr(env, "action_space", None)
    if isinstance(observed, spaces.Space) and not isinstance(observed, spaces.Box):
        findings.advise(
            f"observation_space is {type(observed).__name__}; agents take a Box: wrap it with "
            "gymnasium.wrappers.FlattenObservation"
        )
    if isinstance(actions, spaces.Space) and not isinstance(actions, spaces.Discrete | spaces.Box):
        findings.advise(
            f"action_space is {type(actions).__name__}; agents take a Discrete or a Box"
        )


# --- playing --------------------------------------------------------------------------------


def _check_runs(env: Any, findings: Findings, seed: int) -> None:
    first = _play(env, findings, seed)
    if findings.errors:
        return
    second = _play(env, findings, seed)
    difference = _first_difference(first, second)
    if difference is not None:
        findings.error(difference)
        return
    starts = [shown.values[0] for shown in first if shown.is_reset]
    other, _ = env.reset(seed=seed + 1)
    repeats = len(starts) > 1 and _same(starts[0], starts[1]) and not _same(starts[0], other)
    if repeats and not isinstance(env, TensorEnvironment):
        findings.error(
            "reset() without a seed begins the same episode again; give the seed to a generator "
            "once, in `super().reset(seed=seed)`, and draw from self.np_random"
        )


def _play(env: Any, findings: Findings, seed: int) -> list[Shown]:
    """Some episodes with random actions, the first reset with the seed."""
    env.action_space.seed(seed)
    run: list[Shown] = []
    ended = False
    for episode in range(1, _EPISODES + 1):
        given = seed if episode == 1 else None
        if given is None:
            observation, info = adapters.check_reset(env.reset())
        else:
            adapters.reset(env, given)
            observation, info = adapters.check_reset(env.reset(seed=given))
        call = f"reset of episode {episode}"
        _check_observation(env, observation, findings, "reset()")
        run.append(Shown(call, True, (copy.deepcopy(observation),)))
        for step in range(1, _STEPS + 1):
            before, kept = observation, run[-1].values[0]
            result = adapters.check_step(env.step(_action(env, info)))
            observation, reward, terminated, truncated, info = result
            if not _same(before, kept):
                findings.error(
                    "step() changes the observation that was given before; return a copy, such as "
                    "`self._observation.copy()`"
                )
            _check_outcome(env, result, findings)
            values = (copy.deepcopy(observation), reward, bool(terminated), bool(truncated))
            run.append(Shown(f"step {step} of episode {episode}", False, values))
            if findings.errors:
                return run
            if terminated or truncated:
                ended = True
                break
    if not ended and _limit(env) is None:
        findings.advise(
            f"no episode ended within {_STEPS} steps; see that there is a time limit, such as "
            "dilim.rl.time_limit(env, 1000)"
        )
    return run


def _limit(env: Any) -> int | None:
    """The steps after which an episode is cut, as far as it says so."""
    limit: int | None = getattr(getattr(env, "spec", None), "max_episode_steps", None)
    return limit or getattr(env, "max_steps", None)


def _action(env: Any, info: dict[str, Any]) -> Any:
    mask = info.get("action_mask")
    if mask is not None and isinstance(env.action_space, spaces.Discrete):
        return env.action_space.sample(mask=np.asarray(mask, np.int8))
    return env.action_space.sample()


def _check_observation(env: Any, observation: Any, findings: Findings, call: str) -> None:
    space = env.observation_space
    if space.contains(observation):
        if isinstance(observation, np.ndarray) and observation.dtype.kind == "f":
            if not np.isfinite(observation).all():
                findings.error(f"{call} returned an observation that is not finite: {observation}")
        return
    received = type(observation).__name__
    if isinstance(observation, np.ndarray) and isinstance(space, spaces.Box):
        if observation.shape != space.shape:
            received = f"shape {observation.shape}"
        elif observation.dtype != space.dtype:
            received = f"dtype {observation.dtype}: add .astype(np.{space.dtype})"
        else:
            place = int(np.argmax(~((observation >= space.low) & (observation <= space.high))))
            received = f"{observation.reshape(-1)[place]} at position {place}"
    findings.error(f"{call} returned an observation outside {space}: {received}")


def _check_outcome(env: Any, result: tuple[Any, ...], findings: Findings) -> None:
    observation, reward, terminated, truncated, info = result
    _check_observation(env, observation, findings, "step()")
    try:
        number = float(reward)
    except (TypeError, ValueError):
        findings.error(f"step() returned the reward {reward!r:.60}; return a float")
    else:
        if not math.isfinite(number):
            findings.error(f"step() returned the reward {number}; it has to be finite")
    for name, value in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(value, bool | np.bool_):
            findings.error(f"step() returned {name}={value!r:.60}; return a bool")
    if not isinstance(info, dict):
        findings.error(f"step() returned {type(info).__name__} as info; return a dict")


def _first_difference(first: list[Shown], second: list[Shown]) -> str | None:
    """Where two runs part that should be alike, and what to do."""
    for one, other in zip(first, second, strict=False):
        if _same(one.values, other.values):
            continue
        if one.call == "reset of episode 1":
            return (
                "reset(seed=...) gives another start each time; draw from self.np_random only, "
                "after `super().reset(seed=seed)`"
            )
        if one.is_reset:
            return (
                f"two runs with one seed differ at the {one.call}: reset() without a seed draws "
                "from something that the seed does not reach (random, np.random, a new generator);"
                " draw from self.np_random"
            )
        return (
            f"two runs with one seed and the same actions differ at {one.call}: step() draws from "
            "something that the seed does not reach, or keeps something from the run before; draw "
            "from self.np_random, and set all that changes in reset()"
        )
    return None


def _same(one: Any, other: Any) -> bool:
    return bool(data_equivalence(one, other, exact=True))


def _check_state(env: Any, findings: Findings, seed: int) -> None:
    """Whether `get_state` and `set_state`, where there are such, hold all that matters."""
    if not (hasattr(env, "get_state") and hasattr(env, "set_state")):
        if not isinstance(env, gymnasium.Wrapper):
            findings.advise(
                "there is no get_state() and set_state(arrays); with them, training resumes "
                "exactly also within an episode"
            )
        return
    env.action_space.seed(seed)
    _, info = env.reset(seed=seed)
    for _ in range(5):
        *_, terminated, truncated, info = env.step(_action(env, info))
        if terminated or truncated:
            _, info = env.reset()
    kept, first = env.get_state(), info
    runs = []
    for _ in range(2):
        env.set_state(kept)
        env.action_space.seed(seed)
        run: list[tuple[Any, ...]] = []
        info = first
        for _ in range(30):
            observation, reward, terminated, truncated, info = env.step(_action(env, info))
            run.append((copy.deepcopy(observation), reward, terminated, truncated))
            if terminated or truncated:
                observation, info = env.reset()
                run.append((copy.deepcopy(observation),))
        runs.append(run)
    if not _same(*runs):
        findings.error(
            "after set_state(get_state()) the same actions give other results; get_state() has to "
            "hold all that changes, the random numbers too"
        )
