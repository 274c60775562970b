"""`Program`: a step of one environment as machine code."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from dilim.dtypes import from_numpy, int64
from dilim.ir.types import Type
from dilim.rl.envs import states
from dilim.rl.envs.states import State
from dilim.tensors import compiled
from dilim.tensors.creation import asarray
from dilim.tensors.random import Generator
from dilim.tensors.symbolic import trace
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.rl.envs.base import TensorEnvironment

RULES = ("transition", "observation", "reward", "terminal", "truncation")

Outcome = tuple[np.ndarray, float, bool, bool]
"""Observation, reward, terminated, and whether the rules cut the episode."""
Call = Callable[[Any], Outcome]


class Program:
    """The rules of an environment, traced once and compiled, on memory that stays where it is.

    Tensors that the rules read are read at each step; numbers are constants, as they were.

    Args:
        begin: sets ``state`` to a start and gives the observation.
        call: from an action, as a number or an array, to observation, reward, terminated and
            whether the rules cut the episode. It moves ``state`` on.
        state: memory of the state.
        rules: the functions that were traced.
    """

    def __init__(
        self, begin: Callable[[], np.ndarray], call: Call, state: State, rules: tuple[Any, ...]
    ) -> None:
        self.begin = begin
        self.call = call
        self.state = state
        self._rules = rules

    def load(self, state: State) -> None:
        """Go on from another state, which is copied."""
        _write(self.state, state)

    def fits(self, env: TensorEnvironment) -> bool:
        """Whether the environment still has the rules that were traced."""
        return self._rules == _rules(env)


def program_of(env: TensorEnvironment, state: State, generator: Generator) -> Program | None:
    """The program of an environment; None where its rules need more than operations of tensors.

    Args:
        env: the rules.
        state: where it begins, copied.
        generator: whose numbers are drawn; its memory has to stay.
    """
    memory = states.like(state, [x.clone() for x in states.parts(state).values()])

    def begin() -> Tensor:
        fresh = env.initial(generator)
        observation = env.observation(fresh)
        _write(memory, fresh)
        return observation

    def step(action: Tensor) -> tuple[Tensor, ...]:
        following = env.transition(memory, action, generator)
        reward = env.reward(memory, action, following)
        terminated, cut = env.terminal(following), env.truncation(following)
        outcome = env.observation(following), reward, terminated, cut
        _write(memory, following)
        return outcome

    try:
        with no_grad():
            traced = trace(begin), trace(step, _type_of_action(env))
    except Exception:  # of any kind: the rules do something that works with numbers only
        return None
    calls = []
    for each in traced:
        arrays = each.arrays()
        pairs = zip(each.cells, arrays, strict=True)
        if not all(np.may_share_memory(array, cell.array) for cell, array in pairs):
            return None
        calls.append(_bound(each.graph, arrays))
    return Program(calls[0], calls[1], memory, _rules(env))


def _write(memory: State, state: State) -> None:
    for target, x in zip(states.parts(memory).values(), states.parts(state).values(), strict=True):
        target[...] = x


def eager(
    env: TensorEnvironment, state: State, action: Any, generator: Generator
) -> tuple[State, Outcome]:
    """One step, operation by operation: the next state, and the outcome."""
    with no_grad():
        given = asarray(action)
        after = env.transition(state, given, generator)
        return after, (
            env.observation(after).numpy(copy=True),
            float(env.reward(state, given, after)),
            bool(env.terminal(after)),
            bool(env.truncation(after)),
        )


def tried(program: Program, state: State, action: Any, generator: Generator) -> Outcome:
    """What a program gives from a state; the generator is put back."""
    before = generator.state
    program.load(state)
    outcome = program.call(action)
    generator.state = before
    return outcome


def same(one: Outcome, other: Outcome, program: Program, state: State) -> bool:
    """Whether two outcomes, and the states after them, are the same to the last bit."""
    numbers = (np.array(outcome[1:]).tobytes() for outcome in (one, other))
    return (
        one[0].tobytes() == other[0].tobytes()
        and len(set(numbers)) == 1
        and _bytes(program.state) == _bytes(state)
    )


def begins_alike(program: Program, env: TensorEnvironment, generator: Generator) -> bool:
    """Whether a program begins as the rules do; the generator is put back."""
    before = generator.state
    with no_grad():
        state = env.initial(generator)
        expected = env.observation(state).numpy().tobytes(), _bytes(state), _bytes(generator.state)
    generator.state = before
    received = program.begin().tobytes(), _bytes(program.state), _bytes(generator.state)
    generator.state = before
    return expected == received


def _bytes(state: State) -> list[bytes]:
    return [x.numpy().tobytes() for x in states.parts(state).values()]


def _rules(env: TensorEnvironment) -> tuple[Any, ...]:
    return tuple(getattr(type(env), name).__code__ for name in RULES)


def _type_of_action(env: TensorEnvironment) -> Type:
    space = env.action_space
    if isinstance(space, spaces.Discrete):
        return Type((), int64)
    return Type(space.shape or (), from_numpy(np.dtype(space.dtype)))


def _bound(graph: Any, variables: list[np.ndarray]) -> Callable[..., Any]:
    """A graph as a function from at most one argument to an array and numbers."""
    from dilim.runtime.bound import Bound, Face  # with the back end, which takes time to import

    inputs, [observation, *others] = graph.inputs, graph.outputs

    def convert(*given: Any) -> list[np.ndarray]:
        pairs = zip(given, inputs, strict=True)
        return [np.asarray(x, value.dtype.numpy).reshape(value.shape) for x, value in pairs]

    face = Face(
        convert=convert,
        wrap=tuple if others else lambda results: results[0],
        make=[functools.partial(np.empty, observation.shape, observation.dtype.numpy)],
        numbers=frozenset(range(1, len(graph.outputs))),
        taken=frozenset(k for k, value in enumerate(inputs) if not value.shape),
        name="step",
    )
    native = compiled.program_of(graph, "strict", "llvm").native
    return Bound(native, variables, face).function
