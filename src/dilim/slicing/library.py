"""Calls of dilim's own code, which is written to be traced."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dilim.ir.types import Type
from dilim.slicing import attributes, contents, rates, received, splits
from dilim.slicing.attributes import is_module
from dilim.slicing.errors import OnHost, attempted
from dilim.slicing.fingerprints import Kept
from dilim.slicing.number_calls import with_tensors
from dilim.slicing.values import Array, Host, holds_host, is_among, is_tuple, known, owner_of
from dilim.tensors.creation import asarray, from_dlpack, from_numpy, tensor
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

_TAKE_DATA: Final = (Tensor, tensor, asarray, from_numpy, from_dlpack)
"""Functions of dilim that make tensors of numbers."""
_COPIES: Final = (Tensor, tensor)
"""Those that copy the numbers of an array."""


def prepare(
    slicer: Slicer, function: Any, node: ast.Call, args: list[Any], keywords: dict[str, Any]
) -> Callable[[], Any]:
    """How to carry out a call of dilim's own code.

    Raises:
        OnHost: the host has to.
    """
    received.refuse_old(slicer, owner_of(function))
    args, keywords = with_tensors(function, args, keywords)
    names: list[Any] = [getattr(x, "id", None) for x in node.args]
    names += [getattr(x.value, "id", None) for x in node.keywords]
    given = [*args, *keywords.values()]
    for x, name in zip(given, names, strict=False):
        if x.__class__ is Host and (name is None or len(given) != len(names)):
            raise OnHost("a host value is given to a tensor operation")
        if x.__class__ is not Host and holds_host(x):
            raise OnHost("a host value is given to a tensor operation")
        splits.tell_apart(slicer, name, x)
        if x.__class__ is Host and not isinstance(known(x.kind), Type):
            if isinstance(known(x.kind), Array) and len(given) == 1 and is_among(function, _COPIES):
                return lambda: _copied(slicer, name, x.kind)
            raise OnHost("a host value is given to a tensor operation")

    if isinstance(owner_of(function), Tensor) and function.__name__ == "requires_grad_":
        flag = next(iter(given), True)
        attributes.refuse_mark(slicer, owner_of(function), flag)

    if isinstance(owner_of(function), Tensor) and function.__name__ == "detach":
        x = owner_of(function)
        if not slicer.trace.owns(x):
            slicer.entry.guard(f"{slicer.entry.path(x)}.name == {x.name!r}")
            if x.name is not None:
                raise OnHost("a tensor that has a name, which goes with it")
            return lambda: _detached(slicer, x)

    def compute() -> Any:
        taken_in: list[Tensor] = []

        def taken(x: Any, name: Any) -> Any:
            if x.__class__ is not Host:
                return x
            taken_in.append(slicer.receive(name, x.kind))
            return taken_in[-1]

        positional = [taken(x, n) for x, n in zip(args, names, strict=False)]
        positional += args[len(positional) :]
        pairs = zip(keywords.items(), names[len(args) :], strict=False)
        named = {k: taken(x, n) for (k, x), n in pairs}
        result = _called(slicer, function, positional, named)
        copies = {x._data.cell for x in taken_in} | received.cells_of(
            slicer, owner_of(function), *args
        )
        if _is_view(result, copies):
            raise OnHost("a view of a tensor of the host")
        return result

    return compute


def _detached(slicer: Slicer, x: Tensor) -> Tensor:
    """What ``detach()`` gives of a tensor from outside."""
    result = slicer.trace.tensor(slicer.trace.handle(x))
    result._storage, result._born, result._is_view = x._storage, x._storage.version, True
    return result


def _copied(slicer: Slicer, name: str, kind: Array) -> Tensor:
    """A new tensor with the numbers of an array of the host."""
    given = slicer.receive(name, kind)
    return slicer.trace.symbol(slicer.trace.value(given._data))


def _is_view(result: Any, cells: set[Any]) -> bool:
    """Whether a result is, or holds, a tensor over some memory."""
    if result.__class__ is list or is_tuple(result):
        return any(_is_view(x, cells) for x in result)
    return isinstance(result, Tensor) and getattr(result._data, "cell", None) in cells


def _called(slicer: Slicer, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    is_data = is_among(function, _TAKE_DATA)
    how = {"is_data": is_data, "only_walks": _only_walks(function)}
    args = [contents.argument(slicer, x, **how) for x in args]
    keywords = {k: contents.argument(slicer, x, **how) for k, x in keywords.items()}
    owner = owner_of(function)
    if owner is None:
        owner = function
    clears = getattr(function, "__name__", "") == "zero_grad"
    contents.rely_on(slicer, owner, only_walks=clears or _only_walks(function))
    rates.refuse_other_uses(slicer, owner, getattr(function, "__name__", ""))
    for x in (*args, *keywords.values()):
        slicer.know_leaves(x)
        rates.refuse_other_uses(slicer, x, "")
    if clears:
        for leaf in [owner] if isinstance(owner, Tensor) else _leaves_of(owner):
            slicer.clear_grad(leaf)
    elif _looks_at_gradients(owner):
        for x in (owner, *args):
            for leaf in _leaves_of(x):
                slicer.use_grad(leaf)
    found = slicer.relied.get(id(owner)) if is_module(type(owner)) else None
    before = None if found is None else Kept(found)
    result = attempted(function, *args, **keywords)
    if before is not None and before.put_back():
        raise OnHost("a method that sets attributes of a module")
    return slicer.in_graph(result)


def _only_walks(function: Any) -> bool:
    """Whether a function looks for what a module holds, and runs none of it."""
    name = getattr(function, "__name__", "")
    return getattr(function, "__module__", "") == "dilim.nn.module" and name != "summary"


def _looks_at_gradients(owner: Any) -> bool:
    module = getattr(owner, "__module__", None) or type(owner).__module__
    return str(module).startswith("dilim.optim")


def _leaves_of(x: Any) -> list[Tensor]:
    found = getattr(x, "parameters", None) if not isinstance(x, list | tuple) else x
    items = found() if callable(found) else found
    return [leaf for leaf in items or () if isinstance(leaf, Tensor)]
