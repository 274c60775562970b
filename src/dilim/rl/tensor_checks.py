"""What `check_env` asks of environments that are written in tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from gymnasium import spaces

from dilim.dtypes import bool_, float32
from dilim.errors import DilimError, PerformanceWarning
from dilim.rl.envs import states
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.envs.states import State
from dilim.tensors.creation import zeros
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor

_MANY: Final = 5
_STEPS: Final = 25


class Findings(Protocol):
    """Where findings go."""

    def error(self, text: str) -> None:
        """Something that makes training wrong."""

    def advise(self, text: str) -> None:
        """Something that works, but could be better."""


def check_rules(env: TensorEnvironment, findings: Findings, seed: int) -> None:
    """See that one, many and compiled environments follow the same rules."""
    try:
        state, following, action = _step_of_many(env, findings, seed)
        if state is not None:
            _check_rows(env, state, following, action, findings, seed)
            _check_compiled(env, findings, seed)
    except (DilimError, TypeError, ValueError, IndexError) as error:
        findings.error(
            f"the rules fail for {_MANY} environments at once ({error}); all leading axes of a "
            "state are environments: work on the last axes, such as state[..., 0]"
        )


def _actions(env: TensorEnvironment, generator: Generator, shape: tuple[int, ...]) -> Tensor:
    space = env.action_space
    if isinstance(space, spaces.Discrete):
        return generator.integers(0, int(space.n), shape)
    low, high = np.maximum(space.low, -1e3), np.minimum(space.high, 1e3)  # type: ignore[attr-defined]
    across = generator.uniform((*shape, *low.shape))
    return across * Tensor((high - low).astype(np.float32)) + Tensor(low.astype(np.float32))


def _step_of_many(
    env: TensorEnvironment, findings: Findings, seed: int
) -> tuple[State, State, Tensor]:
    """A step of many environments, if what the rules give is of the right form."""
    generator = Generator(seed)
    shape = (_MANY,)
    state = env.initial(generator, shape)
    action = _actions(env, generator, shape)
    following = env.transition(state, action, generator)
    before, after = states.parts(state), states.parts(following)
    if {k: (x.dtype, x.shape) for k, x in before.items()} != {
        k: (x.dtype, x.shape) for k, x in after.items()
    }:
        findings.error(
            f"transition() gives a state of another form than initial(): {_form(after)}, not "
            f"{_form(before)}; a loop needs the same dtypes and shapes"
        )
        return None, None, action
    seen = (*shape, *(env.observation_space.shape or ()))
    expected: list[tuple[str, Tensor, tuple[int, ...], Any]] = [
        ("observation", env.observation(following), seen, None),
        ("reward", env.reward(state, action, following), shape, float32),
        ("terminal", env.terminal(following), shape, bool_),
        ("truncation", env.truncation(following) | zeros(shape, dtype=bool_), shape, bool_),
    ]
    is_right = True
    for name, value, wanted, dtype in expected:
        if value.shape != wanted or (dtype is not None and value.dtype is not dtype):
            kind = f" as {dtype.name}" if dtype is not None else ""
            is_right = False
            findings.error(
                f"{name}() of {_MANY} environments: expected shape {wanted}{kind}, received "
                f"{value.shape} as {value.dtype.name}"
            )
    return (state, following, action) if is_right else (None, None, action)


def _form(tensors: dict[str, Tensor]) -> str:
    return ", ".join(f"{name} {x.dtype.name}{list(x.shape)}" for name, x in tensors.items())


def _check_rows(
    env: TensorEnvironment,
    state: State,
    following: State,
    action: Tensor,
    findings: Findings,
    seed: int,
) -> None:
    """Whether each environment of many goes the way that it goes alone."""
    generator = Generator(seed)
    before = generator.state.tolist()
    env.transition(state, action, generator)
    if generator.state.tolist() != before:  # each has its own share of the numbers
        alone = env.transition(_row(state, 0), action[0], Generator(seed))
        many = env.transition(state, action, Generator(seed))
        rows = [(0, alone, _row(many, 0))]
    else:
        rows = [
            (k, env.transition(_row(state, k), action[k], generator), _row(following, k))
            for k in range(_MANY)
        ]
    for k, alone, among in rows:
        pairs = zip(states.parts(alone).items(), states.parts(among).values(), strict=True)
        for (name, x), y in pairs:
            if x.numpy().tobytes() != y.numpy().tobytes():
                findings.error(
                    f"transition() gives environment {k} of {_MANY} another state ({name}) than "
                    "when it is alone; nothing may mix the leading axes"
                )
                return


def _row(state: State, k: int) -> State:
    return states.like(state, [x[k] for x in states.parts(state).values()])


def _check_compiled(env: TensorEnvironment, findings: Findings, seed: int) -> None:
    from dilim.slicing.api import compile  # takes time to import

    plain = _played(env, _loop, seed)
    compiled = compile(_loop, compile_after=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PerformanceWarning)
        received = _played(env, compiled, seed)
    if plain != received:
        findings.error(
            "the rules give other numbers when they are compiled; they may read nothing but their "
            "arguments and what __init__ has set"
        )
        return
    told = compiled.explain()
    if told.fallbacks or any(transfer.in_loop for transfer in told.transfers):
        if hasattr(env.initial(Generator(seed)), "_fields"):
            findings.advise(
                "the state is a named tuple, which Python makes at each step, also in a loop that "
                "is compiled; make it a plain tuple"
            )
            return
        rules = _on_host(env, seed)
        if not rules:
            findings.advise(
                "a loop of the rules that is compiled still runs in Python at each step, although "
                "each rule alone would not; see that the observation is no view of the state"
            )
            return
        findings.advise(
            f"in a loop that is compiled, {', '.join(rules)} would still run in Python at each "
            "step; write it in operations of dilim, without numpy(), tolist() and item()"
        )


def _on_host(env: TensorEnvironment, seed: int) -> list[str]:
    """The rules that cannot be compiled; found by compiling a loop of each alone."""
    from dilim.slicing.api import compile

    generator = Generator(seed)
    state = env.initial(generator, (_MANY,))
    action = _actions(env, generator, (_MANY,))
    following = env.transition(state, action, generator)
    loops: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "initial": (_initials, (env, generator)),
        "transition": (_transitions, (env, state, action, generator)),
        "observation": (_observations, (env, state)),
        "reward": (_rewards, (env, state, action, following)),
        "terminal": (_terminals, (env, state)),
        "truncation": (_truncations, (env, state)),
    }
    found = []
    for rule, (loop, given) in loops.items():
        compiled = compile(loop, compile_after=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PerformanceWarning)
            compiled(*given)
        told = compiled.explain()
        marks = [mark for (file, _), mark in told.marks.items() if file == __file__]
        if told.fallbacks or any(mark != "graph" for mark in marks):
            places = [f"{Path(file).name}:{line}: {why}" for file, line, why in told.reasons]
            places = [place for place in places if not place.startswith(Path(__file__).name)]
            found.append(f"{rule}()" + (f" ({'; '.join(places)})" if places else ""))
    return found


def _initials(env: TensorEnvironment, generator: Generator) -> State:
    state = env.initial(generator, (_MANY,))
    for _ in range(3):
        state = env.initial(generator, (_MANY,))
    return state


def _transitions(
    env: TensorEnvironment, state: State, action: Tensor, generator: Generator
) -> State:
    for _ in range(3):
        state = env.transition(state, action, generator)
    return state


def _observations(env: TensorEnvironment, state: State) -> Tensor:
    total = zeros(())
    for _ in range(3):
        total = total + env.observation(state).astype(float32).sum()
    return total


def _rewards(env: TensorEnvironment, state: State, action: Tensor, following: State) -> Tensor:
    total = zeros(())
    for _ in range(3):
        total = total + env.reward(state, action, following).sum()
    return total


def _terminals(env: TensorEnvironment, state: State) -> Tensor:
    total = zeros(())
    for _ in range(3):
        total = total + env.terminal(state).astype(float32).sum()
    return total


def _truncations(env: TensorEnvironment, state: State) -> Tensor:
    total = zeros(())
    for _ in range(3):
        total = total + env.truncation(state).astype(float32).sum()
    return total


def _loop(
    env: TensorEnvironment, generator: Generator, actions: Tensor
) -> tuple[State, Tensor, Tensor]:
    running, observation = env.start(generator, (_MANY,))
    total = zeros((_MANY,))
    for step in range(_STEPS):
        running, observation, reward, _, _, _ = env.advance(running, actions[step], generator)
        total = total * 0.5 + reward
    return running[0], observation, total


def _played(env: TensorEnvironment, loop: Callable[..., Any], seed: int) -> list[bytes]:
    actions = _actions(env, Generator(seed + 1), (_STEPS, _MANY))
    state, observation, total = loop(env, Generator(seed), actions)
    return [x.numpy().tobytes() for x in (*states.parts(state).values(), observation, total)]
