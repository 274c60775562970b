"""What generated programs are made of: numbers that choose, places that hold values, lines."""

from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ir.scope import Picks as ShortPicks

SHAPES = ((3,), (), (2, 3), (3, 3), (4,), (3, 2))
FLOATING = ("float32", "float64")
DTYPES = ("float32", "float32", "float32", "float32", "float64", "int64", "bool")

HOST_ONLY = frozenset(
    {
        "class",
        "data-dependent shape",
        "dict comprehension",
        "generator",
        "global statement",
        "growing shape",
        "match",
        "mistake",
        "rebound capture",
        "try",
    }
)
"""Features of programs that need not be sliced as a whole."""


class Picks(ShortPicks):
    """A few numbers that stand for choices; 0, the simplest, for ever when they are used up."""

    def ahead(self):
        """A function that chooses among options to come, by the number that is next now."""
        number = next(self._numbers, 0)
        return lambda options: options[number % len(options)]

    def chance(self, sixteenths):
        """True so often; False for the simplest choice."""
        return self.number(16) >= 16 - sixteenths


@dataclass(frozen=True)
class Kind:
    """What a place holds.

    Attributes:
        name: tensor, int, float, bool, str, tensors or floats (lists), dict, or other.
        shape: of a tensor, or of each tensor of a list.
        dtype: likewise.
    """

    name: str
    shape: tuple = ()
    dtype: str = ""


INT, FLOAT, BOOL, STR, FLOATS, DICT, OTHER = (
    Kind(name) for name in ("int", "float", "bool", "str", "floats", "dict", "other")
)


def tensor(shape=(3,), dtype="float32"):
    return Kind("tensor", shape, dtype)


def tensors(shape=(3,), dtype="float32"):
    return Kind("tensors", shape, dtype)


@dataclass(frozen=True)
class Place:
    """Something that can stand in an expression: a name, an attribute, an element.

    Attributes:
        kind: what it holds.
        tracked: whether it may require a gradient.
        certain: whether it is bound whatever happens.
        rebindable: whether ``place = ...`` may be written.
        leaf: whether it is a parameter that is trained, so that it stays a leaf.
        constant: whether it is a local name that is bound once.
        length: the least length of a list.
    """

    kind: Kind
    tracked: bool = False
    certain: bool = True
    rebindable: bool = True
    leaf: bool = False
    constant: bool = False
    length: int = 0


@dataclass
class Shared:
    """What all scopes of a function have in common.

    Attributes:
        features: what the program uses so far, of `HOST_ONLY`.
        admits_any: whether it may use them.
        helpers: name -> the kind of the tensors that it takes and gives; None: any.
        entry: whether it is the function that is compiled.
    """

    features: set = field(default_factory=set)
    admits_any: bool = True
    helpers: dict = field(default_factory=dict)
    entry: bool = True
    _count: int = 0

    def admits(self, feature):
        """Whether something that need not be sliced may be written; then it is noted."""
        if self.admits_any:
            self.features.add(feature)
        return self.admits_any

    def fresh(self, prefix):
        self._count += 1
        return f"{prefix}{self._count}"


@dataclass
class Scope:
    """What is known at a point of a function.

    Attributes:
        shared: see `Shared`.
        places: text -> what it holds.
        recording: False inside ``no_grad()``.
        in_loop: whether ``break`` may be written.
        guarded: whether an exit would leave a branch, so that code after it can be reached.
        may_grow: whether lists may grow: not while one is iterated.
        kept: places whose kind must stay, for they are used again in the next turn of a loop.
        returns: the kind that must be returned; None for anything.
        depth: of nested blocks.
    """

    shared: Shared
    places: dict = field(default_factory=dict)
    recording: bool = True
    in_loop: bool = False
    guarded: bool = False
    may_grow: bool = True
    kept: frozenset = frozenset()
    returns: Kind | None = None
    depth: int = 0

    def inner(self, **changes):
        """A scope for a block, that begins with all that is known here."""
        changes = {"depth": self.depth + 1, "places": dict(self.places), **changes}
        return replace(self, **changes)

    def loop(self, **changes):
        """A scope for the body of a loop."""
        settings = {"in_loop": True, "guarded": False, "kept": frozenset(self.places), **changes}
        return self.inner(**settings)

    def bind(self, text, kind, tracked=False, **more):
        self.places[text] = Place(kind, tracked, **more)

    def having(self, *names, uncertain=False):
        """Texts of places of some kinds (by their name, or whole), the newest first."""
        return [
            text
            for text, place in reversed(self.places.items())
            if (place.kind in names or place.kind.name in names) and (place.certain or uncertain)
        ]

    def join(self, *others):
        """Go on after one of some blocks: what all of them bind alike is certain."""
        every = dict.fromkeys(text for scope in others for text in scope.places)
        self.places = {text: _merged([s.places.get(text) for s in others]) for text in every}

    def names(self):
        """Local names that are bound for sure."""
        return [x for x, place in self.places.items() if place.certain and x.isidentifier()]


def _merged(found):
    present = [place for place in found if place is not None]
    first = present[0]
    kind = first.kind if all(place.kind == first.kind for place in present) else OTHER
    return replace(
        first,
        kind=kind,
        tracked=any(place.tracked for place in present),
        certain=len(present) == len(found) and all(place.certain for place in present),
        rebindable=all(place.rebindable for place in present),
        length=min(place.length for place in present),
    )


class Writer:
    """Lines of a program with their indentation."""

    def __init__(self, depth=0):
        self.lines = []
        self._depth = depth

    def line(self, text):
        self.lines.append("    " * self._depth + text)

    def add(self, texts: Iterable[str]):
        for text in texts:
            self.line(text)

    @contextmanager
    def block(self, head):
        """The lines of a block; ``pass`` if there are none."""
        self.line(head)
        self._depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self._depth -= 1
