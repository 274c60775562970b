"""`Learner`: what each agent defines for itself."""

from __future__ import annotations

from typing import ClassVar

from dilim.rl.actions import Actions, DiscreteActions
from dilim.tensors.tensor import Tensor


class Learner:
    """A network that says what to do, and how it learns; base class of `Agent`.

    All of it works on tensors, with a leading axis of N environments or B steps. Actions are as
    `dilim.rl.actions` has them within an agent.
    """

    takes: ClassVar[tuple[type[Actions], ...]] = (DiscreteActions,)
    """The kinds of actions that it can learn."""

    def scores(self, observations: Tensor) -> Tensor:
        """(..., F) to (..., K): what the network says; of each action a number, where K is A."""
        raise NotImplementedError(f"{type(self).__name__} does not define scores()")

    def best(self, scores: Tensor) -> Tensor:
        """(N, K) to the best actions; by default (N,), those with the highest scores."""
        return scores.argmax(axis=-1)

    def explore(self, scores: Tensor) -> Tensor:
        """(N, K) to actions, drawn with `generator`: (N,), 0 .. A - 1, or (N, A) for a Box."""
        raise NotImplementedError(f"{type(self).__name__} does not define explore()")

    def remember(
        self,
        observations: Tensor,
        actions: Tensor,
        rewards: Tensor,
        following: Tensor,
        terminated: Tensor,
        truncated: Tensor,
    ) -> None:
        """Keep a step of N environments to learn from, and learn when it is time.

        Args:
            observations: what the agent saw, float32 (N, F).
            actions: what it did, as `explore` gave it, (N,) or (N, A).
            rewards: what that brought, float32 (N,).
            following: what it saw then, also at an end, (N, F).
            terminated: whether the rules ended the episode with this step, bool (N,).
            truncated: whether it was cut after this step, bool (N,).
        """
        raise NotImplementedError(f"{type(self).__name__} does not define remember()")

    def learn(self) -> None:
        """Update now from what is remembered, if that is enough."""
        raise NotImplementedError(f"{type(self).__name__} does not define learn()")
