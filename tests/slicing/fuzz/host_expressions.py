"""Random expressions of Python's own: numbers, conditions, texts, calls."""

from slicing.fuzz.scope import BOOL, DICT, FLOAT, FLOATS, INT, SHAPES, STR, tensor
from slicing.fuzz.tensor_expressions import NUMBERS, TensorExpressions

REALS = (
    "({} + {})", "({} * {})", "({} - {})", "({} / (1.0 + abs({})))", "max({}, {})", "min({}, {})",
)  # fmt: skip
WHOLES = ("({} + {})", "({} - {})", "({} * {} % 5)", "max({}, {})", "({} // ({} % 3 + 1))")


class HostExpressions:
    """The part of `Expressions` that writes Python numbers, conditions and texts."""

    # --- numbers ------------------------------------------------------------------------

    def real(self, depth=2):
        """An expression for a float."""
        found = self.scope.having(FLOAT)
        if depth <= 0 or self.picks.number(4) == 0:
            if found and self.picks.number(4) != 3:
                return self.use(self.picks.one(found))
            return self.picks.one(NUMBERS)
        writers = (
            self._real_of_tensor, self._real_pair, self._real_call, self._real_random,
            self._real_either, self._real_of_list, self._real_of_tensor,
        )  # fmt: skip
        return self.picks.one(writers)(depth - 1)

    def _real_of_tensor(self, depth):
        texts = (
            "float({}.sum())", "{}.mean().item()", "float({}.max())", "{}.tolist()[0]",
            "float(np.sum({}.numpy()))", "float({}[0])",
        )  # fmt: skip
        value = self._untracked(self.tensor, self.picks.one(((3,), (4,))), "float32", depth)
        return self.picks.one(texts).format(value)

    def _real_pair(self, depth):
        return self.picks.one(REALS).format(self.real(depth), self.real(depth))

    def _real_call(self, depth):
        options = ("score({})", "math.tanh({})", "round({}, 2)", "abs({})", "float(np.tanh({}))")
        return self.picks.one(options).format(self.real(depth))

    def _real_random(self, depth):
        options = (
            "random.random()", "random.uniform(-1.0, 1.0)", "float(np.random.rand())", "draw()",
            "random.choice([0.5, 1.5, -1.0])",
        )  # fmt: skip
        return self.picks.one(options)

    def _real_either(self, depth):
        return f"({self.real(depth)} if {self.condition(1)} else {self.real(depth)})"

    def _real_of_list(self, depth):
        found = self.scope.having(FLOATS)
        if not found:
            return f"float({self.whole(depth)})"
        return f"sum({self.use(self.picks.one(found))})"

    def whole(self, depth=2):
        """An expression for a small int."""
        found = self.scope.having(INT)
        if depth <= 0 or self.picks.number(4) == 0:
            if found and self.picks.number(4) != 3:
                return self.use(self.picks.one(found))
            return str(self.picks.number(4))
        writers = (
            self._whole_pair, self._whole_of_shape, self._whole_of_tensor, self._whole_random,
            self._whole_either,
        )  # fmt: skip
        return self.picks.one(writers)(depth - 1)

    def _whole_pair(self, depth):
        return self.picks.one(WHOLES).format(self.whole(depth), self.whole(depth))

    def _whole_of_shape(self, depth):
        lists = self.scope.having("tensors", FLOATS)
        if lists and self.picks.chance(8):
            return f"len({self.use(self.picks.one(lists))})"
        found = [x for x in self.scope.having("tensor") if self.scope.places[x].kind.shape]
        if not found:
            return "2"
        texts = ("{}.shape[0]", "len({})", "{}.ndim", "{}.size", "{}.shape[-1]")
        return self.picks.one(texts).format(self.picks.one(found))

    def _whole_of_tensor(self, depth):
        texts = ("int({}.argmax())", "int(({} > 0).sum())", "{}.argmin().item()")
        value = self._untracked(self.tensor, (3,), "float32", depth)
        return self.picks.one(texts).format(value)

    def _whole_random(self, depth):
        options = ("random.randint(0, 3)", "int(np.random.randint(4))", "random.randrange(3)")
        return self.picks.one((*options, "int(dilim.default_generator().integers(0, 4))"))

    def _whole_either(self, depth):
        return f"({self.whole(depth)} if {self.condition(1)} else {self.whole(depth)})"

    def position(self, size):
        """An index into an axis of this size."""
        found = self.scope.having(INT)
        if found and size > 1 and self.picks.number(2):
            return f"{self.picks.one(found)} % {size}"
        return str(self.picks.number(size))

    # --- conditions ---------------------------------------------------------------------

    def condition(self, depth=2, rare=False):
        """An expression for the test of a branch or loop.

        Args:
            depth: how deep.
            rare: whether it should hold seldom.
        """
        before = self.tracked
        if rare:
            text = self._rare_condition()
        else:
            simple = (self._on_tensor, self._on_host, self._on_sent)
            more = (*simple, self._on_tensor, self._mixed, self._on_chance, self._on_shape,
                    self._chained)  # fmt: skip
            text = self.picks.one(more if depth > 1 else simple)(depth)
        self.tracked = before
        return text

    def _on_tensor(self, depth):
        choose = self.picks.ahead()
        shape = self.picks.one(SHAPES[:5])
        value = self.tensor(shape, "float32", depth - 1)
        number = self.picks.one(NUMBERS)
        options = (
            f"{value}.sum() > {number}",
            f"({value} > {number}).any()",
            f"({value} < {number}).all()",
            f"{value}.mean() <= {number}",
            f"dilim.max({value}) > {number}",
        )
        return choose(options)

    def _on_host(self, depth):
        choose = self.picks.ahead()
        options = [f"{self.whole(depth - 1)} {self.picks.one(('>', '<', '==', '!='))} 1"]
        options.append(f"{self.real(depth - 1)} < {self.picks.one(NUMBERS)}")
        options += [f"{x}" for x in self.scope.having(BOOL)[:2]]
        options += [f"len({x}) > 2" for x in self.scope.having("tensors", FLOATS)[:1]]
        options += [f"{x} == 'plain'" for x in self.scope.having(STR)[:1]]
        return choose(options)

    def _on_sent(self, depth):
        return f"float({self.tensor((3,), 'float32', depth - 1)}.sum()) > {self.real(0)}"

    def _on_chance(self, depth):
        return self.picks.one(
            ("random.random() < 0.5", "np.random.rand() < 0.5", "draw() > 0.5", "toss()")
        )

    def _on_shape(self, depth):
        found = self.scope.having("tensor")
        if not found:
            return self._on_host(depth)
        name = self.picks.one(found)
        options = (
            f"{name}.ndim > 1",
            f"{name}.dtype == dilim.float32",
            f"isinstance({name}, dilim.Tensor)",
            f"{name} is {self.picks.one(found)}",
            f"{name}.requires_grad",
        )
        return self.picks.one(options)

    def _mixed(self, depth):
        parts = [self._on_host(1), self._on_tensor(1)]
        if self.picks.number(2):
            parts.reverse()
        options = ("{} and {}", "{} or {}", "not {} and {}", "not ({} and {})")
        return f"({self.picks.one(options).format(*parts)})"

    def _chained(self, depth):
        value = f"{self.tensor((3,), 'float32', 1)}.sum()"
        if self.picks.number(2):
            value = self.real(1)
        return f"-1.0 < {value} < {self.picks.one(('2.0', '0.5', '6.0'))}"

    def _rare_condition(self):
        choose = self.picks.ahead()
        value = self.tensor((3,), "float32", 1)
        options = (
            f"{self.whole(0)} == 3",
            f"{value}.sum() > 6.0",
            f"float({value}.max()) > 2.5",
            f"{self.real(0)} > 2.0",
            f"{value}.mean() < -2.0",
        )
        return choose(options)

    # --- texts and calls ----------------------------------------------------------------

    def printable(self):
        """Something for ``print``."""
        choose = self.picks.ahead()
        places = [x for x in self.scope.having("tensor", "int", "float", "str", "bool")]
        some = self.use(self.picks.one(places)) if places else "0"
        options = [
            some,
            f'f"{{{some}}}"',
            self.real(1),
            f"{self.tensor((3,), 'float32', 1)}",
            f"{self.whole(1)}",
            f'"at", {some}',
            f'f"{{{self.real(1)}:.4f}} and {{{some}}}"',
            f'"%s" % ({some},)',
        ]
        options += [f"{x}.shape, {x}.dtype" for x in self.scope.having("tensor")[:1]]
        options += [f"{x}.tolist()" for x in self.scope.having("tensor")[:1]]
        options += self.scope.having("tensors", FLOATS, DICT, "other")[:3]
        options += [f"*{x}" for x in self.scope.having("tensors", FLOATS)[:1]]
        return choose(options)

    def helper_call(self, name, value):
        """A call of a helper that takes and gives a tensor; see `surroundings.HELPERS`."""
        forms = {
            "scaled": ("{v}", "{v}, {r}", "{v}, k={r}", "{v}, shift={r}", "*[{v}]",
                       "{v}, **dict(k={r})"),
            "deep": ("{v}, 2", "{v}, {w} % 4", "t={v}, n=1"),
        }  # fmt: skip
        text = self.picks.one(forms.get(name, ("{v}",)))
        if name.startswith("helper"):
            text = self.picks.one(("{v}, {w}", "{v}, {w}, {r}", "{v}, n={w}, u={r}", "{v}"))
        written = text.replace("{r}", self.real(0)).replace("{w}", self.whole(0))
        return f"{name}({written.replace('{v}', value)})"


class Expressions(TensorExpressions, HostExpressions):
    """Writes expressions for one statement.

    Attributes:
        scope: what can be used.
        picks: what chooses.
        tracked: whether what was written so far may require a gradient.
    """

    def __init__(self, scope, picks):
        self.scope = scope
        self.picks = picks
        self.tracked = False

    def use(self, text):
        """A place, as part of an expression."""
        self.tracked |= self.scope.places[text].tracked and self.scope.recording
        return text

    def anything(self):
        """An expression of some kind, and that kind."""
        option = self.picks.number(8)
        if option == 6:
            return self.real(), FLOAT
        if option == 7:
            return self.whole(), INT
        shape = self.picks.one((*SHAPES[:1], *SHAPES))
        dtype = self.picks.one(("float32", "float32", "float32", "float64", "int64", "bool"))
        return self.tensor(shape, dtype), tensor(shape, dtype)
