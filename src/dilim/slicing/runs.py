"""The host's side of one run of a region: what the code of its actions finds and calls as ``R``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from dilim.ir.types import Type
from dilim.runtime.devices import Storage
from dilim.slicing.host_tensors import memory_of, part_of, past_gradient, view_of, with_gradient
from dilim.slicing.learning import kind_of, merged
from dilim.slicing.leaving import Leaving, Level
from dilim.slicing.numbers import SMALL
from dilim.slicing.recorder import Recorder
from dilim.slicing.values import UNBOUND, Array, is_old
from dilim.tensors.layouts import Step
from dilim.tensors.tensor import Tensor

Leaves: TypeAlias = tuple[tuple[str, int], ...]


def _unknown(taped: tuple[str, ...] | None, lists: tuple[int, ...], leaves: Leaves) -> bool:
    raise RuntimeError("a check in a region that has none")


class Run(Leaving, Recorder):
    """The host's side of one run at a time.

    Attributes:
        frames: the frames of the functions of the region.
        objects: what was made, by number.
        lent: tensors that were handed over, by number; ``lent_at`` has their memory, and its
            version at that moment.
        slots: what was found at entry.
        memories: path of memory -> tensor.
        made: lists and dicts that the region made, by number.
        items: what they hold, as the program believes.
        valid: whether all is as the program believes; the arguments: paths of the memory that a
            tape at hand uses, which must not have been written, or None if there is none; which
            lists and dicts of the region matter; and where tensors of the region are that have
            gradients of their own.
    """

    def __init__(self, count: int, is_loop: bool = False) -> None:
        super().__init__(is_loop)
        self.forget_tape()
        self.frames = [{} for _ in range(count)]
        self.objects: dict[int, Tensor] = {}
        self.views: dict[int, Tensor | None] = {}
        self.lent: dict[int, Tensor] = {}
        self.lent_at: dict[int, tuple[Storage, int]] = {}
        self.slots: tuple[Any, ...] = ()
        self.made: dict[int, Any] = {}
        self.functions: dict[int, Any] = {}
        self.differing: dict[Any, Any] = {}
        self.items: dict[int, tuple[Any, ...]] = {}
        self.memories: dict[str, Any] = {}
        self.given: list[tuple[Any, Any]] = []
        self.young: list[Tensor] = []
        self.now: dict[tuple[int, Any], tuple[Any, Any]] = {}
        self.versions: dict[int, int] = {}
        self.expected: dict[str, int] = {}
        self.grads: list[tuple[Tensor, Any]] = []
        self.valid: Callable[[tuple[str, ...] | None, tuple[int, ...], Leaves], bool] = _unknown
        self.result: Any = None
        self.is_stopped = False

    def reset(self) -> None:
        """Forget what belongs to the last run."""
        self.result = None
        self.is_stopped = False
        self.forget_places()
        self.slots = ()
        self.objects.clear()
        self.views.clear()
        self.lent.clear()
        self.lent_at.clear()
        self.forget_tape()
        self.made.clear()
        self.functions.clear()
        self.differing = {}
        self.decided.clear()
        self.items.clear()
        self.now.clear()
        self.versions.clear()
        self.expected = {}
        self.memories = {}
        self.given = []
        self.young = []
        self.grads = []
        self.valid = _unknown
        self.frames[0] = {}  # the old one is the caller's
        for frame in self.frames[1:]:
            frame.clear()

    def expect(self) -> None:
        """Take memory for what it is now: what comes next is computed from it."""
        memories = self.memories.items()
        self.expected = {path: holder._storage.version for path, holder in memories}
        held = (*self.memories.values(), *self.slots)
        self.given = [(x, x._node) for x in held if x.__class__ is Tensor]
        self.young = [x for x, _ in self.given if x._is_view and not is_old(x)]

    def written(self, paths: tuple[str, ...]) -> list[str]:
        """Those of some paths of memory that somebody else has written."""
        return [
            path
            for path in paths
            if path in self.expected and self.memories[path]._storage.version != self.expected[path]
        ]

    def recorded_memory(self) -> tuple[str, ...]:
        """The paths of those tensors from outside that the tape knows the makers of."""
        found = ((path, x) for path, x in self.memories.items() if x.__class__ is Tensor)
        return tuple(path for path, x in found if x._node is not None)

    def are_as_given(self) -> bool:
        """Whether nobody has written tensors from outside, or past their views, with a gradient."""
        return all(x._node is node for x, node in self.given) and not any(map(is_old, self.young))

    def recorded_since(self) -> tuple[str, ...]:
        """The paths of those tensors from outside of which that is not so."""
        changed = {id(x) for x, node in self.given if x._node is not node}
        changed.update(id(x) for x in self.young if is_old(x))
        return tuple(path for path, x in self.memories.items() if id(x) in changed)

    def disturbed(self) -> dict[Storage, int]:
        """Memory that somebody else has written, with the version that the program believes in."""
        known = [(self.memories[path]._storage, at) for path, at in self.expected.items()]
        known += [(self.objects[number]._storage, at) for number, at in self.versions.items()]
        known += self.lent_at.values()
        return {storage: at for storage, at in known if storage.version != at}

    def is_untouched(self, lists: tuple[int, ...], leaves: Leaves) -> bool:
        """Whether nobody but the program has changed what it made or set, these among it."""
        for number, version in self.versions.items():  # asked often, and so written out
            if self.objects[number]._storage.version != version:
                return False
        now = self.now
        for (_, key), (owner, value) in now.items():
            found = owner.grad if owner.__class__ is Tensor else found_at(owner, key)
            if found is not value:
                return False
        for leaf, before in self.grads:
            if leaf.grad is not before and (id(leaf), "grad") not in now:
                return False
        if lists and self.refilled(lists):
            return False
        return all(self._has_same_grad(getattr(self, table).get(k)) for table, k in leaves)

    def has_spent(self) -> bool:
        """Whether somebody has used up recorded operations that the program has handed out."""
        return any(node.inputs is None for node in self.nodes.values())

    def _has_same_grad(self, leaf: Any) -> bool:
        """Whether a tensor of the region has the gradient that the program has given it."""
        known: Any = self.now.get((id(leaf), "grad"), (leaf, None))[1]
        return leaf is None or leaf.grad is known

    def refilled(self, lists: tuple[int, ...]) -> list[int]:
        """Those of some lists and dicts, by number, that somebody else has changed."""
        known = ((number, self.items[number]) for number in lists if number in self.items)
        return [
            number for number, items in known if not _are_same(_items_of(self.made[number]), items)
        ]

    def note(self, number: int) -> None:
        """Take note of what a list or dict of the region holds."""
        self.items[number] = _items_of(self.made[number])

    def refill(self, number: int, items: Any) -> None:
        """Put other items into a list or dict of the region."""
        container = self.made[number]
        container.clear()
        (container.extend if container.__class__ is list else container.update)(items)
        self.note(number)

    def same_grads(self) -> list[bool]:
        """Per leaf, whether its gradient is what the program believes."""
        return [
            leaf.grad is self.now.get((id(leaf), "grad"), (leaf, before))[1]
            for leaf, before in self.grads
        ]

    def touched(self) -> list[tuple[str, Any]]:
        """Class and key of the places of the heap that somebody else has changed."""
        return [
            (type(owner).__qualname__, key)
            for (_, key), (owner, value) in self.now.items()
            if not isinstance(owner, Tensor) and found_at(owner, key) is not value
        ]

    def learn(self, statement: Any, value: Any) -> None:
        """Take note of the type of a value of the host."""
        kind = kind_of(value)
        known = self.learned.setdefault(statement, kind)
        if known != kind:
            self.learned[statement] = merged(known, kind)

    def differs(self, statement: Any, value: Any) -> None:
        """Take note of a value of the host that is of another type than expected."""
        self.differing[statement] = kind_of(value)

    def bind(self, frame: dict[str, Any], name: str, value: Any) -> None:
        """Bind a name, or unbind it."""
        if value is UNBOUND:
            frame.pop(name, None)
        else:
            frame[name] = value

    def function(self, number: int, make: Callable[[], Any]) -> Any:
        """A function that the region makes, once in a run."""
        if number not in self.functions:
            self.functions[number] = make()
        return self.functions[number]

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute that the program keeps."""
        setattr(owner, name, value)
        self.now[id(owner), name] = owner, value

    def know(self, places: Iterable[tuple[Any, Any]]) -> None:
        """Take note of what is at places that the program is going to change."""
        self.now |= {(id(owner), key): (owner, found_at(owner, key)) for owner, key in places}

    def put(self, owner: Any, key: Any, value: Any) -> None:
        """Put an item that the program keeps into a list or dict."""
        owner[key] = value
        self.now[id(owner), key] = owner, value

    def count_writes(self, paths: tuple[str, ...]) -> None:
        """Count writes into memory."""
        for path in paths:
            self.memories[path]._storage.version += 1
            if path in self.expected:
                self.expected[path] += 1

    def next(self, frame: dict[str, Any], iterator: str, target: str) -> bool:
        """Bind the target to the next item, if there is one; whether there is."""
        try:
            frame[target] = next(frame[iterator])
        except StopIteration:
            del frame[iterator]
            return False
        return True

    def resumed(self, kind: Any, args: tuple[Any, ...], position: int | None) -> Iterator[Any]:
        """An iterator that goes on where one of the program is.

        Args:
            kind: what makes it.
            args: of that.
            position: where it is, as its own ``__reduce__`` tells.
        """
        iterator = kind(*args)
        if hasattr(iterator, "__setstate__"):
            if position is not None:
                iterator.__setstate__(position)
        else:  # of a dict
            for _ in range(position or 0):
                next(iterator)
        return iterator  # type: ignore[no-any-return]

    def window(self, start: int, length: int) -> slice:
        """A slice from a position on."""
        return slice(start, start + length)

    def is_kind(self, value: Any, kind: Any) -> bool:
        """Whether a value of the host is of this kind."""
        return bool(kind_of(value) == kind)

    def received_float(self, value: Any, place: np.ndarray) -> bool:
        """Take a float of the host; whether it is one."""
        if value.__class__ is not float:
            return False
        place[()] = value
        return True

    def received_int(self, value: Any, place: np.ndarray) -> bool:
        """Take an int of the host; whether it is one, and not too large."""
        if value.__class__ is not int or not -SMALL < value < SMALL:
            return False
        place[()] = value
        return True

    def received_bool(self, value: Any, place: np.ndarray) -> bool:
        """Take a bool of the host; whether it is one."""
        if value.__class__ is not bool:
            return False
        place[()] = value
        return True

    def received_tensor(self, value: Any, place: np.ndarray, kind: Type) -> bool:
        """Take a tensor of the host; whether it is one of this type, without gradient."""
        if kind_of(value) != kind:
            return False
        place[...] = value._data
        return True

    def lend(self, number: int, value: Any) -> None:
        """Keep a tensor that was handed over: it is what the tape refers to."""
        if isinstance(value, Tensor):
            self.lent[number] = value
            self.lent_at[number] = value._storage, value._storage.version

    def received_array(self, value: Any, place: np.ndarray, kind: Array) -> bool:
        """Take the numbers of a NumPy array of the host; whether it is one of this type."""
        type_ = kind.type
        if value.__class__ is not np.ndarray or value.shape != type_.shape:
            return False
        if value.dtype != type_.dtype.numpy:
            return False
        place[...] = value
        return True

    def tensor(self, number: int, array: np.ndarray) -> Tensor:
        """A new tensor with the numbers of an array."""
        made = self.objects[number] = Tensor._from_array(array.copy())
        self.versions[number] = made._storage.version
        return made

    def refresh(self, number: int, array: np.ndarray) -> Tensor:
        """New numbers in a tensor that the host has."""
        x = self.objects[number]
        x._data[...] = array
        x._storage.version += 1
        self.versions[number] = x._storage.version
        return x

    def with_gradient(self, x: Tensor, maker: str = "identity") -> Tensor:
        """See `with_gradient`."""
        return with_gradient(x, maker)

    def past_gradient(self, x: Tensor) -> Tensor:
        """See `past_gradient`."""
        return past_gradient(x)

    def view(self, number: int, base: Tensor | None, steps: Sequence[Step]) -> Tensor | None:
        """A view of a tensor; of None, which stands for one that another path has got, None."""
        with self.as_it_was():
            made = self.views[number] = None if base is None else view_of(base, steps)
        return made

    def part(self, number: int, base: Tensor, index: Any) -> Tensor:
        """A view of a tensor at an index."""
        with self.as_it_was():
            made = self.views[number] = part_of(base, index)
        return made

    def interrupt(self, levels: Sequence[Level] = ()) -> None:
        """Ctrl-C was pressed, and all is as the host should see it.

        Args:
            levels: where plain Python goes on if a context swallows that.

        Raises:
            KeyboardInterrupt: always.
        """
        self.is_stopped = True
        self.levels = list(levels)
        raise KeyboardInterrupt

    def memory(self, path: str) -> Tensor:
        """A tensor over the memory of a variable."""
        return memory_of(self.memories[path])


def found_at(owner: Any, key: Any) -> Any:
    """What is at a place of the heap."""
    if owner.__class__ is dict:
        return owner.get(key)
    if owner.__class__ is list:
        return owner[key] if key < len(owner) else None
    try:
        return getattr(owner, key, None)
    except ValueError:  # an empty cell
        return None


def _items_of(container: Any) -> tuple[Any, ...]:
    return tuple(container) if container.__class__ is list else (*container, *container.values())


def _are_same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
