"""Derivatives as functions: `grad`, `value_and_grad`, `vjp`, `jvp`, `jacobian`, `hessian`.

Each takes a function of tensors; none touches the ``grad`` of any tensor; all nest, so that
derivatives of any order can be taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dilim.errors import DtypeError, ShapeError
from dilim.ops.table import OPERATIONS
from dilim.tensors import manipulation as m
from dilim.tensors.backward import depends_on_others, gradients
from dilim.tensors.creation import zeros, zeros_like
from dilim.tensors.dispatch import apply
from dilim.tensors.tape import enable_grad, mode
from dilim.tensors.tensor import Tensor

Positions = int | Sequence[int]


def _fresh(x: Any, operation: str) -> Tensor:
    """A tensor equal to x, to differentiate with respect to; linked to x's own tape if it has one.

    Raises:
        DtypeError: x is not a floating tensor.
    """
    if not isinstance(x, Tensor) or not x.dtype.is_floating:
        kind = x.dtype.name if isinstance(x, Tensor) else type(x).__name__
        raise DtypeError(
            f"{operation}: expected floating tensors to differentiate by, received {kind}; "
            "choose other arguments with argnums="
        )
    if x.requires_grad and mode.recording:
        linked: Tensor = apply(OPERATIONS["identity"], x)
        return linked
    return x.detach().requires_grad_()


def _positions(argnums: Positions) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


def value_and_grad(
    function: Callable[..., Tensor], argnums: Positions = 0
) -> Callable[..., tuple[Tensor, Any]]:
    """A function that gives both the value of ``function`` and its gradient.

    Args:
        function: from tensors to a tensor with one element.
        argnums: position, or positions, of the arguments to differentiate by.

    Returns:
        A function with the same arguments that gives (value, gradient); for several positions a
        tuple of gradients.

    Raises:
        ShapeError: the value has more than one element.
    """
    numbers = _positions(argnums)

    def evaluate(*args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
        inner = list(args)
        for number in numbers:
            inner[number] = _fresh(args[number], "grad")
        wanted = [inner[number] for number in numbers]
        with enable_grad():
            value = function(*inner, **kwargs)
        if not isinstance(value, Tensor) or value.size != 1:
            what = f"shape {value.shape}" if isinstance(value, Tensor) else type(value).__name__
            raise ShapeError(
                f"grad: expected a function with a single number as result, received {what}; "
                "use jacobian or vjp for others"
            )
        shared = depends_on_others(value, wanted)
        outer = mode.recording and shared
        if not value.requires_grad:
            found = [zeros_like(x) for x in wanted]
        else:
            # a tape that reaches beyond the arguments may be walked again by somebody else
            found = gradients([value], wanted, create_graph=outer, retain_graph=shared)
        result = value if outer else value.detach()
        return result, found[0] if isinstance(argnums, int) else tuple(found)

    return evaluate


def grad(function: Callable[..., Tensor], argnums: Positions = 0) -> Callable[..., Any]:
    """A function that gives the gradient of ``function``; arguments as `value_and_grad`.

    Example:
        >>> import dilim
        >>> cube = lambda x: (x * x * x).sum()
        >>> dilim.grad(dilim.grad(cube))(dilim.tensor(2.0)).item()
        12.0
    """
    both = value_and_grad(function, argnums)

    def evaluate(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return evaluate


def vjp(
    function: Callable[..., Tensor], *primals: Tensor
) -> tuple[Tensor, Callable[[Tensor], Any]]:
    """The value at ``primals`` and the function v -> v^T J.

    Args:
        function: from tensors to a tensor.
        primals: where to evaluate.

    Returns:
        (value, pull): ``pull(v)`` takes a tensor of the value's shape and gives one gradient, or
        a tuple of them for several primals. It can be called many times.
    """
    inputs = [_fresh(x, "vjp") for x in primals]
    with enable_grad():
        value = function(*inputs)
    outer = mode.recording and depends_on_others(value, inputs)

    def pull(vector: Tensor) -> Any:
        recording = mode.recording and (outer or vector.requires_grad)
        if value.requires_grad:
            found = gradients([value], inputs, [vector], create_graph=recording, retain_graph=True)
        else:
            found = [zeros_like(x) for x in inputs]
        return found[0] if len(found) == 1 else tuple(found)

    return value if outer else value.detach(), pull


def jvp(
    function: Callable[..., Tensor], primals: Sequence[Tensor], tangents: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """The value at ``primals`` and the directional derivative J t.

    The pull-back is linear in its vector, so that differentiating it once more gives the
    push-forward: no second set of rules is needed.

    Args:
        function: from tensors to a tensor.
        primals: where to evaluate.
        tangents: one direction per primal, of its shape and dtype.

    Raises:
        ShapeError: a tangent does not have the type of its primal.
    """
    for x, t in zip(primals, tangents, strict=True):
        if x.shape != t.shape or x.dtype is not t.dtype:
            raise ShapeError(
                f"jvp: expected a tangent of shape {x.shape} and dtype {x.dtype.name}, received "
                f"{t.shape} and {t.dtype.name}"
            )
    recording = mode.recording
    inputs = [_fresh(x, "jvp") for x in primals]
    with enable_grad():
        value = function(*inputs)
        outer = recording and (
            depends_on_others(value, inputs) or any(t.requires_grad for t in tangents)
        )
        if not value.requires_grad:
            return value, zeros_like(value)
        vector = zeros_like(value).requires_grad_()
        rows = gradients([value], inputs, [vector], create_graph=True)
        live = [(row, t) for row, t in zip(rows, tangents, strict=True) if row.requires_grad]
        if not live:
            return value if outer else value.detach(), zeros_like(value)
        tangent = gradients(
            [row for row, _ in live],
            [vector],
            [t for _, t in live],
            create_graph=outer,
            retain_graph=outer,
        )[0]
    return value if outer else value.detach(), tangent


def jacobian(function: Callable[..., Tensor], argnums: Positions = 0) -> Callable[..., Any]:
    """A function that gives the matrix of all first derivatives.

    Returns:
        A function whose result has the shape of the value followed by that of the argument; a
        tuple for several positions.
    """
    numbers = _positions(argnums)

    def evaluate(*args: Any, **kwargs: Any) -> Any:
        def chosen(*selected: Tensor) -> Tensor:
            full = list(args)
            for number, x in zip(numbers, selected, strict=True):
                full[number] = x
            return function(*full, **kwargs)

        value, pull = vjp(chosen, *(args[number] for number in numbers))
        if not value.dtype.is_floating:
            raise DtypeError(
                f"jacobian: expected a function with a floating result, received {value.dtype.name}"
            )
        rows: list[tuple[Any, ...]] = []
        for position in range(value.size):
            unit = zeros(value.size, dtype=value.dtype, device=value.device)
            unit[position] = 1.0
            found = pull(unit.reshape(value.shape))
            rows.append(found if isinstance(found, tuple) else (found,))
        result = tuple(
            _stacked([row[k] for row in rows], value, args[number])
            for k, number in enumerate(numbers)
        )
        return result[0] if isinstance(argnums, int) else result

    return evaluate


def _stacked(rows: list[Tensor], value: Tensor, argument: Tensor) -> Tensor:
    shape = (*value.shape, *argument.shape)
    if not rows:
        return zeros(shape, dtype=argument.dtype)
    return m.reshape(m.stack(rows), shape)


def hessian(function: Callable[..., Tensor], argnum: int = 0) -> Callable[..., Tensor]:
    """A function that gives the matrix of all second derivatives with respect to one argument."""
    return jacobian(grad(function, argnum), argnum)
