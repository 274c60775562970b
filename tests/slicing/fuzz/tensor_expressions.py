"""Random expressions that give a tensor of a wanted shape and dtype."""

from slicing.fuzz.scope import FLOATING, tensor

UNARY = (
    "({} * 0.5)", "dilim.tanh({})", "({} + 1)", "(-{})", "dilim.relu({})", "{}.sigmoid()",
    "dilim.sin({})", "{}.abs().sqrt()", "dilim.exp(-abs({}))", "dilim.log1p(dilim.square({}))",
    "dilim.clip({}, -2.0, 2.0)", "dilim.softplus({})", "dilim.floor({})", "dilim.sign({})",
    "dilim.cos({})", "({} ** 2)", "(1.0 - {})", "{}.clone()", "{}.detach()",
)  # fmt: skip
ALONG = (
    "dilim.softmax({}, axis=-1)", "dilim.cumulative_sum({}, axis=-1)", "dilim.sort({}, axis=-1)",
    "dilim.flip({}, axis=-1)", "dilim.roll({}, 1, axis=-1)", "dilim.log_softmax({}, axis=-1)",
    "({0} - {0}.mean(axis=-1, keepdims=True))", "({0} / (1.0 + {0}.norm()))",
)  # fmt: skip
BINARY = (
    "({} + {})", "({} * {})", "({} - {})", "dilim.maximum({}, {})", "dilim.minimum({}, {})",
    "({} / (1.5 + abs({})))", "dilim.hypot({}, {})", "dilim.atan2({}, {})",
)  # fmt: skip
WHOLE_UNARY = ("({} + 1)", "({} * 2)", "(-{})", "abs({})", "({} % 3)", "({} // 2)", "{}.clone()")
WHOLE_BINARY = (
    "({} + {})", "({} * {})", "({} - {})", "dilim.maximum({}, {})", "({} % {})", "({} // {})",
    "({} & {})", "({} ^ {})",
)  # fmt: skip
COMPARISONS = ("({} > {})", "({} < {})", "({} >= {})", "({} == {})", "({} != {})", "({} <= {})")
REDUCTIONS = ("sum", "mean", "max", "min", "prod")
NUMBERS = ("0.5", "2.0", "-1.0", "0.1", "1.5", "-0.25", "3.0")
LARGER = {
    (): ((3,), (2, 3), (4,), (3, 3)),
    (3,): ((2, 3), (3, 3)),
}
PRODUCTS = {
    (): (((3,), (3,)), ((4,), (4,))),
    (3,): (((3,), (3, 3)), ((3, 3), (3,))),
    (2, 3): (((2, 3), (3, 3)),),
    (3, 3): (((3, 2), (2, 3)), ((3, 3), (3, 3))),
    (3, 2): (((3, 3), (3, 2)),),
}
PARTS = {
    (): (((3,), "{}[{i}]", 3), ((2, 3), "{}[{i}, 1]", 2), ((4,), "{}[-1]", 1)),
    (3,): (((2, 3), "{}[{i}]", 2), ((3, 3), "{}[:, {i}]", 3), ((4,), "{}[1:]", 1),
           ((3, 3), "{}[{i}]", 3)),
    (2, 3): (((3, 2), "{}.T", 1), ((3, 3), "{}[:2]", 1), ((3, 2), "{}.reshape(2, 3)", 1)),
    (3, 3): (((3, 3), "{}.T", 1), ((3,), "{}.expand(3, 3)", 1)),
    (3, 2): (((2, 3), "{}.T", 1), ((3, 3), "{}[:, 1:]", 1), ((2, 3), "{}.reshape((3, 2))", 1)),
}  # fmt: skip
JOINED = {
    (3,): "dilim.stack([{}, {}, {}])",
    (4,): "dilim.stack([{}, {}, {}, {}])",
    (2, 3): "dilim.stack([{}, {}])",
    (3, 3): "dilim.stack([{}, {}, {}])",
}


class TensorExpressions:
    """The part of `Expressions` that writes tensors."""

    def tensor(self, shape=(3,), dtype="float32", depth=2):
        """An expression for a tensor of this shape and dtype."""
        found = self.scope.having(tensor(shape, dtype))
        if depth <= 0 or self.picks.number(4) == 0:
            return self.use(self.picks.one(found)) if found else self._derived(shape, dtype)
        return self.picks.one(self._writers(dtype))(shape, dtype, depth - 1)

    def tensor_like(self, kind, depth=2):
        return self.tensor(kind.shape, kind.dtype, depth)

    def _writers(self, dtype):
        if dtype == "bool":
            return (self._compared, self._logical, self._random_bits, self._item)
        own = (self._unary, self._binary, self._with_number, self._part)
        shared = (self._chosen, self._cast, self._reduced, self._drawn, self._item, self._either)
        if dtype == "int64":
            return (*own, *shared, self._positions)
        more = (self._product, self._called, self._along, self._joined, self._from_numbers)
        return (*own, *more, *shared)

    # --- operations ---------------------------------------------------------------------

    def _unary(self, shape, dtype, depth):
        options = UNARY if dtype in FLOATING else WHOLE_UNARY
        return self.picks.one(options).format(self.tensor(shape, dtype, depth))

    def _along(self, shape, dtype, depth):
        operation = self.picks.one(ALONG[:7] if shape else ALONG[7:])
        return operation.format(self.tensor(shape, dtype, depth))

    def _binary(self, shape, dtype, depth):
        options = BINARY if dtype in FLOATING else WHOLE_BINARY
        other = self.picks.one(((), shape[-1:], shape)) if self.picks.chance(5) else shape
        left = self.tensor(shape, dtype, depth)
        return self.picks.one(options).format(left, self.tensor(other, dtype, depth))

    def _with_number(self, shape, dtype, depth):
        value = self.tensor(shape, dtype, depth)
        if dtype in FLOATING:
            number = self.real(1) if self.picks.number(3) else self.whole(1)
        else:
            number = self.whole(1)
        return self.picks.one(("({} * {})", "({} + {})", "({1} - {0})")).format(value, number)

    def _product(self, shape, dtype, depth):
        options = PRODUCTS.get(shape, ())
        if not options:
            return self._unary(shape, dtype, depth)
        left, right = self.picks.one(options)
        return f"({self.tensor(left, dtype, depth)} @ {self.tensor(right, dtype, depth)})"

    def _reduced(self, shape, dtype, depth):
        options = LARGER.get(shape, ())
        if not options:
            return self._binary(shape, dtype, depth)
        value = self.tensor(self.picks.one(options), dtype, depth)
        names = REDUCTIONS if dtype in FLOATING else ("sum", "max", "min")
        axis = "" if not shape else "axis=0"
        return f"{value}.{self.picks.one(names)}({axis})"

    def _part(self, shape, dtype, depth):
        options = PARTS.get(shape, ())
        if not options:
            return self._unary(shape, dtype, depth)
        larger, text, size = self.picks.one(options)
        value = self.tensor(larger, dtype, depth)
        return text.replace("{}", value).replace("{i}", self.position(size))

    def _joined(self, shape, dtype, depth):
        if shape not in JOINED:
            return self._unary(shape, dtype, depth)
        parts = [self.tensor(shape[1:], dtype, depth - 1) for _ in range(shape[0])]
        return JOINED[shape].format(*parts)

    def _chosen(self, shape, dtype, depth):
        condition = self._untracked(self.tensor, shape, "bool", depth)
        parts = [self.tensor(shape, dtype, depth) for _ in range(2)]
        return f"dilim.where({condition}, {parts[0]}, {parts[1]})"

    def _cast(self, shape, dtype, depth):
        others = [x for x in ("float32", "float64", "int64", "bool") if x != dtype]
        other = self.picks.one(others)
        value = self.tensor(shape, other, depth)
        if dtype == "int64" and other != "bool":
            value = f"dilim.clip({value}, -9.0, 9.0)"
        return f"{value}.astype(dilim.{dtype})"

    def _positions(self, shape, dtype, depth):
        if shape == ():
            return f"{self._untracked(self.tensor, (4,), 'float32', depth)}.argmax()"
        if len(shape) == 1:
            return f"dilim.argsort({self._untracked(self.tensor, shape, 'float32', depth)})"
        return self._unary(shape, dtype, depth)

    # --- truth values -------------------------------------------------------------------

    def _compared(self, shape, dtype, depth):
        of = self.picks.one(("float32", "float32", "int64", "float64"))
        left = self._untracked(self.tensor, shape, of, depth)
        if self.picks.chance(6):
            right = self._untracked(self.tensor, shape, of, depth)
        else:
            right = self.picks.one(NUMBERS if of != "int64" else ("0", "1", "2"))
        return self.picks.one(COMPARISONS).format(left, right)

    def _logical(self, shape, dtype, depth):
        left, right = (self.tensor(shape, "bool", depth) for _ in range(2))
        return self.picks.one(("({} & {})", "({} | {})", "({} ^ {})", "(~{})")).format(left, right)

    def _random_bits(self, shape, dtype, depth):
        return f"({self._drawn(shape, 'float32', depth)} > 0.5)"

    # --- from elsewhere -----------------------------------------------------------------

    def _drawn(self, shape, dtype, depth):
        source = self.picks.one(("dilim.default_generator()", "GENERATOR"))
        if dtype == "int64":
            return f"{source}.integers(0, 5, {shape})"
        draw = self.picks.one(("normal", "uniform"))
        return f"{source}.{draw}({shape}, dtype=dilim.{dtype})"

    def _item(self, shape, dtype, depth):
        """An element of a list, or an entry of a dictionary."""
        lists = [x for x in self.scope.having("tensors") if self._fits(x, shape, dtype)]
        if not lists:
            if dtype == "bool":
                return self._compared(shape, dtype, depth)
            return self._unary(shape, dtype, depth)
        chosen = self.picks.one(lists)
        length = self.scope.places[chosen].length
        return f"{self.use(chosen)}[{self.position(length)}]"

    def _fits(self, text, shape, dtype):
        place = self.scope.places[text]
        return (place.kind.shape, place.kind.dtype) == (shape, dtype) and place.length > 0

    def _called(self, shape, dtype, depth):
        """A call of a helper."""
        usable = [
            name
            for name, kind in self.scope.shared.helpers.items()
            if kind is None or (kind.shape, kind.dtype) == (shape, dtype)
        ]
        if not usable:
            return self._unary(shape, dtype, depth)
        value = self.tensor(shape, dtype, depth)
        return self.helper_call(self.picks.one(usable), value)

    def _either(self, shape, dtype, depth):
        condition = self.condition(1)
        parts = [self.tensor(shape, dtype, depth) for _ in range(2)]
        return f"({parts[0]} if {condition} else {parts[1]})"

    def _from_numbers(self, shape, dtype, depth):
        kind = f"dtype=dilim.{dtype}"
        if shape in ((3,), (4,)) and self.picks.chance(8):
            numbers = ", ".join(self.real(1) for _ in range(shape[0]))
            return f"dilim.tensor([{numbers}], {kind})"
        if self.picks.chance(6):
            value = self._untracked(self.tensor, shape, dtype, depth)
            return f"dilim.asarray(np.tanh({value}.numpy()))"
        return f"dilim.full({shape}, {self.real(1)}, {kind})"

    def _derived(self, shape, dtype):
        """From a tensor of another shape or dtype, where there is one."""
        found = [x for x in self.scope.having("tensor") if self.scope.places[x].kind.shape]
        if not found or self.picks.chance(2):
            return self.constant(shape, dtype)
        name = self.use(self.picks.one(found))
        kind = self.scope.places[name].kind
        text = f"({name} > 0.25)" if dtype == "bool" and kind.dtype in FLOATING else name
        if dtype != kind.dtype and text == name:
            text = f"{name}.astype(dilim.{dtype})"
        if shape == kind.shape:
            return text
        if dtype == "bool":
            return f"({self.constant(shape, dtype)} & {text}.any())"
        if shape == ():
            return f"{text}.{self.picks.one(('sum', 'max', 'min'))}()"
        if shape == kind.shape[1:]:
            return f"{text}[{self.position(kind.shape[0])}]"
        part = text if shape[1:] == kind.shape else f"{text}.max()"
        return f"({self.constant(shape, dtype)} + {part})"

    def constant(self, shape, dtype):
        if dtype == "bool":
            return f"(dilim.zeros({shape}) < {self.picks.one(('1.0', '0.0'))})"
        maker = self.picks.one(("ones", "zeros", "full"))
        number = self.picks.one(NUMBERS) if dtype in FLOATING else str(self.picks.number(4))
        middle = f", {number}" if maker == "full" else ""
        return f"dilim.{maker}({shape}{middle}, dtype=dilim.{dtype})"

    def _untracked(self, write, *given):
        """Write something whose derivative goes nowhere."""
        before = self.tracked
        text = write(*given)
        self.tracked = before
        return text
