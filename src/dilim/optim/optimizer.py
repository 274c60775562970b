"""`Optimizer`: what all optimisers share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from dilim import dtypes
from dilim.errors import DtypeError, GradientError, StateError
from dilim.optim.clipping import check_limit, check_no_nan, factor, global_norm, limited, name_of
from dilim.optim.packing import Pack, make_packs
from dilim.optim.schedules import Schedule, as_schedule, from_dict
from dilim.tensors.creation import asarray, zeros
from dilim.tensors.dispatch import has_numbers
from dilim.tensors.state import copy_into
from dilim.tensors.tape import eagerly, no_grad
from dilim.tensors.tensor import Tensor

Rate = float | Tensor


class Optimizer:
    """Changes parameters against their gradients, so that a loss falls.

    A subclass names its state in `slots`, its numbers in `options`, and overrides `change`.

    Args:
        parameters: a module; or tensors that require gradients, such as ``model.parameters()``; or
            (name, tensor) pairs.
        learning_rate: a number >= 0, or a `Schedule` of the number of steps made.
        clip_norm: largest common norm of all gradients (see `clip_grad_norm`); None for no limit.
        clip_value: largest absolute value of each element of a gradient, applied first; None for
            no limit. The tensors in ``grad`` are not changed by either.

    Attributes:
        parameters: the tensors, a list.
        clip_norm: see above.
        clip_value: see above.

    Raises:
        ValueError: no parameters, one of them twice, or a number outside its range.
        GradientError: a tensor cannot be trained.
    """

    slots: tuple[str, ...] = ()
    """Names of the tensors of state per parameter."""
    options: tuple[str, ...] = ()
    """Attributes with the numbers of this kind."""

    def __init__(
        self,
        parameters: Any,
        learning_rate: float | Schedule,
        *,
        clip_norm: float | None = None,
        clip_value: float | None = None,
    ) -> None:
        self._names, self.parameters = _checked(type(self).__name__, parameters)
        self._learning_rate: float | Schedule = 0.0
        for name, limit in (("clip_norm", clip_norm), ("clip_value", clip_value)):
            if limit is not None:
                check_limit(f"{type(self).__name__}: {name}", limit)
        self.clip_norm = clip_norm
        self.clip_value = clip_value
        self._step_count = zeros((), dtype=dtypes.int64)
        self._rate_state = zeros((), dtype=dtypes.float64)
        self._packs = make_packs(self.parameters, [0] * len(self.parameters), self.slots)
        self.learning_rate = learning_rate

    def change(self, pack: Pack, gradient: Tensor, rate: Rate) -> Tensor:
        """What to subtract from the parameters of a pack; updates its slots.

        Args:
            pack: the parameters and their state; ``pack.steps`` counts this step already.
            gradient: their gradients, shaped as the slots.
            rate: the learning rate: a float, or float64 ().
        """
        raise NotImplementedError(f"{type(self).__name__} does not define change()")

    # --- the learning rate --------------------------------------------------------------

    @property
    def learning_rate(self) -> float | Schedule:
        """What was given: a number or a schedule. Assign another one at any time."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float | Schedule) -> None:
        if not isinstance(value, Schedule):
            value = float(value)
            if not 0.0 <= value < math.inf:
                raise ValueError(
                    f"{type(self).__name__}: expected learning_rate >= 0, received {value!r}"
                )
            with eagerly():  # seen by programs that are compiled already
                self._rate_state.fill_(value)
        self._learning_rate = value

    @property
    def current_learning_rate(self) -> float:
        """The number that the next step uses."""
        return as_schedule(self._learning_rate)(self.step_count)

    @property
    def step_count(self) -> int:
        """How many steps were made."""
        return int(self._step_count)

    # --- stepping -----------------------------------------------------------------------

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters (``grad`` becomes None)."""
        for x in self.parameters:
            x.grad = None

    def step(self) -> None:
        """Move each parameter that has a gradient; one without is left as it is.

        In a graph the parameters, the state, and the learning rate if it is a number, are
        variables: assigning another number later changes what the compiled step does. A schedule
        is part of the graph.

        Raises:
            GradientError: no parameter has a gradient, or one has another shape or dtype.
            NonFiniteError: with ``clip_norm`` or ``clip_value``: a gradient has a NaN (or, for the
                norm, an infinity). Nothing was changed.
        """
        with no_grad():
            packs = self._ready()
            in_graph = any(not has_numbers(x.grad) for x in self.parameters if x.grad is not None)
            parts = [pack.separate() if in_graph else [pack] for pack in packs]
            flat = [part for group in parts for part in group]
            gradients = iter(self._clipped(flat, [part.gradient() for part in flat]))
            rate = self._rate(in_graph)
            self._step_count.add_(1)
            for group in parts:
                group[0].steps.add_(1)
                for part in group:
                    part.subtract(self.change(part, next(gradients), rate))

    def _rate(self, in_graph: bool) -> Rate:
        rate = self._learning_rate
        if isinstance(rate, Schedule):
            return rate(self._step_count.astype(dtypes.float64))
        return self._rate_state if in_graph else rate

    def _ready(self) -> list[Pack]:
        """The packs to update: regrouped, where only some parameters of one have a gradient."""
        ready = []
        for candidate in self._packs:
            present = [x.grad is not None for x in candidate.parameters]
            if not any(present):
                continue
            if not all(present) or not candidate.fits():
                self._regroup()
                return self._ready()
            ready.append(candidate)
        if not ready:
            raise GradientError(
                f"{type(self).__name__}.step: no parameter has a gradient; call loss.backward() "
                "after zero_grad() and before step()"
            )
        return ready

    def _clipped(self, packs: list[Pack], gradients: list[Tensor]) -> list[Tensor]:
        operation = f"{type(self).__name__}.step"
        named = list(zip(self._names, self.parameters, strict=True))
        if self.clip_value is not None:
            for gradient in gradients:
                check_no_nan(operation, gradient, named)
            gradients = [limited(operation, gradient, self.clip_value) for gradient in gradients]
        if self.clip_norm is not None:
            # one sum per parameter, so that bits do not depend on the packing
            each = [x for pack, g in zip(packs, gradients, strict=True) for x in pack.parts(g)]
            scale = factor(global_norm(operation, each, named), self.clip_norm)
            gradients = [gradient * scale.astype(gradient.dtype) for gradient in gradients]
        return gradients

    # --- state --------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that another optimiser of this kind needs to go on exactly.

        Returns:
            Tensors (copies) and plain values, for `dilim.save`: ``optimizer`` (the kind),
            ``learning_rate``, ``clip_norm``, ``clip_value``, the numbers of this kind,
            ``step_count``; per parameter ``steps``, ``group`` and, by position, slots such as
            ``first_moment.0``.
        """
        rate = self._learning_rate
        plain = {name: getattr(self, name) for name in (*self.options, "clip_norm", "clip_value")}
        return {
            "optimizer": type(self).__name__,
            "learning_rate": rate.to_dict() if isinstance(rate, Schedule) else rate,
            **{k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()},
            **{name: x.detach().clone() for name, x in self._state().items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave, also after `dilim.save` and `dilim.load`.

        Raises:
            StateError: it is of another kind of optimiser, or does not fit the parameters; all that
                does not fit is named, and nothing was changed.
        """
        operation = f"{type(self).__name__}.load_state_dict"
        kind = state.get("optimizer")
        if kind != type(self).__name__:
            raise StateError(f"{operation}: the state is that of optimizer {kind!r}")
        plain = ("learning_rate", "clip_norm", "clip_value", *self.options)
        missing = [name for name in plain if name not in state]
        if missing:
            raise StateError(f"{operation}: the state lacks {', '.join(missing)}")
        fresh = {name: x.detach().clone() for name, x in self._state().items()}
        saved = {name: x for name, x in state.items() if name not in (*plain, "optimizer")}
        rate = state["learning_rate"]
        rate = from_dict(rate) if isinstance(rate, Mapping) else rate
        copy_into(operation, fresh, saved)
        self.learning_rate = rate
        for name in plain[1:]:
            value = state[name]
            setattr(self, name, tuple(value) if isinstance(value, list) else value)
        with no_grad():
            self._step_count.copy_(fresh["step_count"])
            self._restore(fresh["group"].tolist(), fresh)

    def _state(self) -> dict[str, Tensor]:
        """All tensors of state by name; those of slots are views."""
        count = len(self.parameters)
        steps, group = [0] * count, [0] * count
        parts = {}
        for number, owner in enumerate(self._packs):
            for position in owner.positions:
                steps[position], group[position] = int(owner.steps), number
            for name, slot in owner.slots.items():
                for position, part in zip(owner.positions, owner.parts(slot), strict=True):
                    parts[f"{name}.{position}"] = part
        return {
            "step_count": self._step_count,
            "steps": asarray(steps, dtype=dtypes.int64),
            "group": asarray(group, dtype=dtypes.int64),
            **{f"{name}.{i}": parts[f"{name}.{i}"] for name in self.slots for i in range(count)},
        }

    def _restore(self, keys: list[Any], state: Mapping[str, Tensor]) -> None:
        """Packs of parameters with equal keys, filled from tensors of state."""
        self._packs = make_packs(self.parameters, keys, self.slots)
        steps = state["steps"].tolist()
        for owner in self._packs:
            owner.steps.fill_(steps[owner.positions[0]])
            for name, slot in owner.slots.items():
                for position, part in zip(owner.positions, owner.parts(slot), strict=True):
                    saved = state[f"{name}.{position}"]
                    part.copy_(saved.to(owner.device).astype(owner.dtype))

    def _regroup(self) -> None:
        """Separate parameters with a gradient from those without, for good."""
        with eagerly():
            state = self._state()
            groups = state["group"].tolist()
            present = [x.grad is not None for x in self.parameters]
            self._restore(list(zip(groups, present, strict=True)), state)

    def __repr__(self) -> str:
        names = ("learning_rate", *self.options)
        numbers = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        size = sum(x.size for x in self.parameters)
        return f"{type(self).__name__}({size:,} parameters, {numbers}, step {self.step_count})"


def _checked(kind: str, parameters: Any) -> tuple[list[str], list[Tensor]]:
    """Names and tensors that can be trained."""
    given = parameters.named_parameters() if hasattr(parameters, "named_parameters") else parameters
    if isinstance(given, Tensor) or not isinstance(given, Iterable):
        raise DtypeError(f"{kind}: expected a list of tensors, received {type(given).__name__}")
    names: list[str] = []
    tensors: list[Tensor] = []
    for position, item in enumerate(given):
        name, x = item if isinstance(item, tuple) else (None, item)
        if not isinstance(x, Tensor):
            raise DtypeError(f"{kind}: expected tensors, received {type(x).__name__}")
        name = name or name_of(position, x)
        if not x.is_leaf:
            raise GradientError(
                f"{kind}: {name!r} is the result of an operation and cannot be trained; give the "
                "tensors that it was made from"
            )
        if not x.requires_grad:
            raise GradientError(
                f"{kind}: {name!r} does not require a gradient; create it with requires_grad=True"
            )
        if any(x is other for other in tensors):
            raise ValueError(f"{kind}: {name!r} was given twice")
        names.append(name)
        tensors.append(x)
    if not tensors:
        raise ValueError(f"{kind}: expected parameters to train, received none")
    return names, tensors


def check_share(what: str, value: float) -> float:
    """``value`` as a float.

    Raises:
        ValueError: it is not from 0 to below 1.
    """
    if not 0.0 <= value < 1.0:
        raise ValueError(f"{what}: expected a number from 0 to below 1, received {value!r}")
    return float(value)


def check_not_negative(what: str, value: float) -> float:
    """``value`` as a float.

    Raises:
        ValueError: it is below 0 or not finite.
    """
    if not 0.0 <= value < math.inf:
        raise ValueError(f"{what}: expected a number >= 0, received {value!r}")
    return float(value)


def times(x: Tensor, rate: Rate) -> Tensor:
    """x rate, in the dtype of x."""
    return x * (rate if isinstance(rate, float) else rate.astype(x.dtype))
