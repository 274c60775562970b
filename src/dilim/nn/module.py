"""`Module`: something with parameters that maps tensors to tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from dilim.dtypes import DType
from dilim.errors import GradientError, ShapeError
from dilim.nn.graphs import add_backward, add_forward, is_building, named_after
from dilim.nn.summary import table
from dilim.runtime.devices import Device
from dilim.tensors.creation import zeros
from dilim.tensors.state import copy_into
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor
from dilim.tensors.transfer import convert

if TYPE_CHECKING:
    from dilim.tensors.graphs import Graph

Update = Callable[[Tensor, Tensor], Tensor | None]
Watcher = Callable[["Module", Any], None]

_watchers: list[Watcher] = []


class Module:
    """Base of layers and models: override `forward`, keep tensors and modules as attributes.

    Parameters are the tensors with ``requires_grad=True`` among the attributes, and among those of
    the modules held in attributes, lists, tuples and dicts, to any depth. Tensors without gradient
    are *buffers*: they are saved, but not trained. Results of recorded operations are neither.
    Nothing has to be registered, and a forgotten ``super().__init__()`` does no harm.

    Attributes:
        training: whether the model is being trained; `Dropout` looks at it. Set by `train` and
            `eval`.
        name: free text for errors; None to go by the class.

    Example:
        >>> import dilim
        >>> class Scale(dilim.nn.Module):
        ...     def __init__(self):
        ...         self.factor = dilim.tensor(2.0, requires_grad=True)
        ...     def forward(self, x):
        ...         return self.factor * x
        >>> model = Scale()
        >>> model(dilim.tensor([1.0, 3.0])).tolist()
        [2.0, 6.0]
        >>> [name for name, _ in model.named_parameters()]
        ['factor']
    """

    training: bool = True
    name: str | None = None

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Compute the outputs; called by ``model(...)``."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward()")

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """``model(x)`` is ``model.forward(x)``."""
        if is_building():
            with named_after(self):
                result = self.forward(*inputs, **options)
        else:
            result = self.forward(*inputs, **options)
        for watcher in _watchers:
            watcher(self, result)
        return result

    # --- in a graph that is built by hand -------------------------------------------------

    def add_forward_to_graph(self, graph: Graph, x: Tensor) -> Tensor:
        """Add the nodes of ``forward(x)`` to a graph.

        Values are named after the layer and the operation, such as ``hidden_matmul_out``; two
        layers of one name are told apart by a number. Parameters and buffers become variables.

        Args:
            graph: a `dilim.Graph`.
            x: a tensor of the graph.

        Returns:
            The output, a tensor of the graph.

        Raises:
            ShapeError, DtypeError: as `forward`.
        """
        return add_forward(self, graph, x)

    def add_backward_to_graph(
        self, graph: Graph, grad: Tensor, x: Tensor, y: Tensor
    ) -> Tensor | None:
        """Add the nodes of the derivative of ``y = add_forward_to_graph(graph, x)``.

        The gradient of each parameter becomes its ``grad``, a tensor of the graph that can be
        fetched, and that ``optimizer.step()`` uses. It is *added* to one of the same graph that is
        there already (a layer that is used twice), and *replaces* anything else. In every run it is
        computed anew; nothing is carried over from the run before.

        Args:
            graph: the same graph.
            grad: gradient of the output, of its shape and dtype.
            x: the input that was given to `add_forward_to_graph`.
            y: the output that it gave.

        Returns:
            The gradient of x, to be handed to the layer before; None for an input of integers.

        Raises:
            GraphError: y is not what this layer gave for x.
            ShapeError: the gradient has another type than y.
        """
        return add_backward(self, graph, grad, x, y)

    # --- what is inside -----------------------------------------------------------------

    def named_modules(self) -> list[tuple[str, Module]]:
        """This module (under the name ``""``) and all inside it, with dotted paths, each once."""
        inside = [(path, x) for path, x in _walk(self, "", {id(self)}) if isinstance(x, Module)]
        return [("", self), *inside]

    def named_parameters(self) -> list[tuple[str, Tensor]]:
        """Names such as ``layers.0.weight`` and the tensors to train, in order, each once."""
        return [(path, x) for path, x in _tensors(self) if x.requires_grad]

    def parameters(self) -> list[Tensor]:
        """The tensors to train, always in the same order, each once."""
        return [x for _, x in self.named_parameters()]

    def named_buffers(self) -> list[tuple[str, Tensor]]:
        """Names and tensors that are saved but not trained."""
        return [(path, x) for path, x in _tensors(self) if not x.requires_grad]

    def buffers(self) -> list[Tensor]:
        """The tensors that are saved but not trained."""
        return [x for _, x in self.named_buffers()]

    # --- modes and places ---------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Switch this module and all inside to training (or not); returns the module."""
        for _, module in self.named_modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Switch this module and all inside to evaluation; returns the module."""
        return self.train(False)

    def to(self, target: Device | DType | str) -> Self:
        """Move parameters and buffers to a device, or cast the floating ones, in place.

        The tensors stay the same objects, so that an optimiser still holds them.

        Args:
            target: a device, its name, or a floating dtype.

        Returns:
            The module.
        """
        for _, x in _tensors(self):
            convert(x, target)
        return self

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters (``grad`` becomes None)."""
        for x in self.parameters():
            x.grad = None

    # --- state --------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of all parameters and buffers by name; training on does not change them."""
        with no_grad():
            return {path: x.detach().clone() for path, x in _tensors(self)}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Copy numbers into the existing parameters and buffers; all of them or none.

        Args:
            state: tensors or arrays by name, as from `state_dict` or `dilim.load`.
            strict: whether every entry must be there, and no other.

        Raises:
            StateError: entries are missing, not expected, or of another shape or dtype (this even
                without ``strict``); all of them are named.
        """
        copy_into(f"{type(self).__name__}.load_state_dict", dict(_tensors(self)), state, strict)

    # --- updates by hand ----------------------------------------------------------------

    def update(self, function: Update) -> None:
        """Change each parameter that has a gradient, by a function of both.

        Args:
            function: called with (parameter, gradient) without recording. What it returns becomes
                the parameter's value; it may also write into the parameter and return None.

        Raises:
            GradientError: no parameter has a gradient.

        Example:
            >>> import dilim
            >>> model = dilim.nn.Dense(2, 1)
            >>> model(dilim.ones((3, 2))).sum().backward()
            >>> model.update(lambda parameter, gradient: parameter - 0.1 * gradient)
        """
        pairs = [(x, x.grad) for x in self.parameters() if x.grad is not None]
        if not pairs:
            raise GradientError(
                f"{type(self).__name__}.update: no parameter has a gradient; call loss.backward() "
                "first, or update_parameters(gradients, function)"
            )
        _update(pairs, function)

    def update_parameters(
        self, gradients: Sequence[Tensor] | Mapping[str, Tensor], function: Update
    ) -> None:
        """Change parameters by a function of each and a gradient given here; see `update`.

        Args:
            gradients: one per parameter in the order of `parameters`, or some of them by name.
            function: see `update`.

        Raises:
            ShapeError: the number of gradients, a name or a shape does not fit.
        """
        operation = f"{type(self).__name__}.update_parameters"
        named = dict(self.named_parameters())
        if not isinstance(gradients, Mapping):
            if len(gradients) != len(named):
                raise ShapeError(
                    f"{operation}: expected {len(named)} gradients, one per parameter, received "
                    f"{len(gradients)}"
                )
            gradients = dict(zip(named, gradients, strict=True))
        for name, gradient in gradients.items():
            if name not in named:
                raise ShapeError(f"{operation}: there is no parameter {name!r}; see parameters()")
            if gradient.shape != named[name].shape:
                raise ShapeError(
                    f"{operation}: expected a gradient of shape {named[name].shape} for {name!r}, "
                    f"received {gradient.shape}"
                )
        _update([(named[name], gradient) for name, gradient in gradients.items()], function)

    # --- looks --------------------------------------------------------------------------

    @property
    def described(self) -> str:
        """How errors call this module: its `repr`, with its name where it has one."""
        return f"{self._title()} named {self.name!r}" if self.name else self._title()

    def _title(self) -> str:
        text = repr(self)
        return type(self).__name__ if "\n" in text else text

    def __repr__(self) -> str:
        children = [
            (path, x) for path, x in _held(vars(self).items(), "", set()) if isinstance(x, Module)
        ]
        lines = [f"{path}: {child!r}".replace("\n", "\n  ") for path, child in children]
        inner = "".join(f"\n  {line}" for line in lines)
        return f"{type(self).__name__}({inner}\n)" if lines else f"{type(self).__name__}()"

    def summary(
        self, input_shape: Sequence[int] | None = None, *, dtype: DType | str = "float32"
    ) -> str:
        """A table of all layers: name, output shape, number of parameters.

        Args:
            input_shape: the whole shape of an input, with its batch axis; one pass over zeros then
                shows the output shapes.
            dtype: dtype of that input; ``"int64"`` for a model that begins with an `Embedding`.

        Returns:
            Text to print.
        """
        modules = self.named_modules()
        shapes: dict[int, Any] = {}
        if input_shape is not None:
            modes = [(module, module.training) for _, module in modules]
            self.eval()
            try:
                with no_grad(), _watching(lambda module, y: shapes.update({id(module): y.shape})):
                    self(zeros(input_shape, dtype=dtype))
            finally:
                for module, training in modes:
                    module.training = training
        rows = [(path, x._title(), shapes.get(id(x)), _own_parameters(x)) for path, x in modules]
        return table(rows, self.parameters(), self.buffers())


@contextmanager
def _watching(watcher: Watcher) -> Iterator[None]:
    """A context in which ``watcher(module, result)`` is called after each module's forward."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def _held(items: Iterable[tuple[Any, Any]], prefix: str, seen: set[int]) -> Iterator[Any]:
    """(path, module or tensor) directly held, going through containers but not into modules."""
    for key, value in items:
        if not isinstance(value, (Module, Tensor, list, tuple, dict, set, frozenset)):
            continue
        if id(value) in seen:
            continue
        seen.add(id(value))
        path = f"{prefix}{key}"
        if isinstance(value, (Module, Tensor)):
            yield path, value
        elif isinstance(value, dict):
            yield from _held(value.items(), f"{path}.", seen)
        elif isinstance(value, (list, tuple)):
            yield from _held(enumerate(value), f"{path}.", seen)
        elif any(isinstance(x, (Module, Tensor)) for x in value):
            raise TypeError(
                f"Module: attribute {path!r} is a set of modules or tensors; a set has no order, "
                "so its parameters cannot be named; use a list"
            )


def _walk(module: Module, prefix: str, seen: set[int]) -> Iterator[tuple[str, Module | Tensor]]:
    """All modules and tensors inside, depth first, each once, with dotted paths."""
    for path, value in _held(vars(module).items(), prefix, seen):
        yield path, value
        if isinstance(value, Module):
            yield from _walk(value, f"{path}.", seen)


def _tensors(module: Module) -> list[tuple[str, Tensor]]:
    """Parameters and buffers by name.

    Raises:
        ValueError: two of them have the same name.
    """
    found = [
        (path, x)
        for path, x in _walk(module, "", {id(module)})
        if isinstance(x, Tensor) and x.is_leaf
    ]
    names = [path for path, _ in found]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"Module: two tensors have the name {twice!r}; rename a key or attribute")
    return found


def _own_parameters(module: Module) -> int:
    """Elements of the parameters that the module holds itself, not inside another module."""
    held = _held(vars(module).items(), "", set())
    return sum(x.size for _, x in held if isinstance(x, Tensor) and x.is_leaf and x.requires_grad)


def _update(pairs: Iterable[tuple[Tensor, Tensor]], function: Update) -> None:
    with no_grad():
        for parameter, gradient in pairs:
            value = function(parameter, gradient)
            if value is not None and value is not parameter:
                parameter.copy_(value)
