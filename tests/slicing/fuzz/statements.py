"""Random statements without blocks of their own that bind names, print, call and fail."""

from dataclasses import replace

from slicing.fuzz.scope import (
    BOOL,
    FLOAT,
    FLOATING,
    FLOATS,
    INT,
    OTHER,
    STR,
    tensor,
)

PREFIXES = {
    "tensor": "t", "int": "n", "float": "u", "bool": "ok", "str": "s", "tensors": "ts",
    "floats": "us", "dict": "d", "other": "o",
}  # fmt: skip
STATEMENTS = {}
"""Name -> (weight, function of a writer, a scope and expressions)."""


def statement(weight):
    """Register a function as a kind of statement that is chosen so often."""

    def register(function):
        STATEMENTS[function.__name__] = (weight, function)
        return function

    return register


def target(scope, picks, kind, fresh=False):
    """A name to bind to a value of this kind: a new one, or one that has held such a value."""
    found = [x for x in scope.having(kind) if scope.places[x].rebindable]
    if found and not fresh and picks.number(8) < 5:
        return picks.one(found)
    if not fresh and picks.chance(1):
        others = [x for x in scope.names() if scope.places[x].rebindable and x not in scope.kept]
        if others:
            return picks.one(others)
    return scope.shared.fresh(PREFIXES[kind.name])


def bind(writer, scope, name, text, kind, tracked=False, length=0):
    """``name = text``, and what is known of it from here on."""
    writer.line(f"{name} = {text}")
    scope.bind(name, kind, tracked, length=length)


# --- names ----------------------------------------------------------------------------------


@statement(10)
def assign(writer, scope, e):
    text, kind = e.anything()
    bind(writer, scope, target(scope, e.picks, kind), text, kind, e.tracked)


@statement(4)
def assign_again(writer, scope, e):
    """A tensor as a function of itself: what loops carry."""
    found = [x for x in scope.having("tensor") if scope.places[x].rebindable]
    if not found:
        return assign(writer, scope, e)
    name = e.picks.one(found)
    kind = scope.places[name].kind
    if kind.dtype not in FLOATING:
        bind(writer, scope, name, e.tensor_like(kind, 3), kind, e.tracked)
        return None
    text = e.picks.one(("{} * 0.5 + {}", "{} - 0.25 * {}", "dilim.tanh({} + {})", "{} + {}"))
    e.use(name)
    bind(writer, scope, name, text.format(name, e.tensor_like(kind)), kind, e.tracked)
    return None


@statement(3)
def count(writer, scope, e):
    """Arithmetic on a number in place."""
    found = [x for x in scope.having(INT, FLOAT) if scope.places[x].rebindable]
    if not found:
        name = scope.shared.fresh("n")
        return bind(writer, scope, name, e.whole(), INT)
    name = e.picks.one(found)
    if scope.places[name].kind == INT:
        writer.line(f"{name} {e.picks.one(('+=', '-='))} {e.whole(1)}")
    else:
        writer.line(f"{name} {e.picks.one(('+=', '-=', '*='))} {e.real(1)}")
    return None


@statement(1)
def truth(writer, scope, e):
    bind(writer, scope, target(scope, e.picks, BOOL), f"bool({e.condition()})", BOOL)


@statement(1)
def text(writer, scope, e):
    some = e.picks.one(scope.having("tensor", "int", "float") or ["1"])
    written = e.picks.one((f'f"<{{{some}}}>"', f"str({e.real(1)})", "str(MODE)", '"plain"'))
    bind(writer, scope, target(scope, e.picks, STR), written, STR)


@statement(2)
def alias(writer, scope, e):
    """Another name for the same object, or a view of its memory."""
    found = scope.having("tensor", "tensors", "floats")
    if not found:
        return assign(writer, scope, e)
    name = e.picks.one(found)
    place = scope.places[name]
    fresh = scope.shared.fresh(PREFIXES[place.kind.name])
    options = [(name, place.kind)]
    if place.kind.name == "tensor":
        shape, dtype = place.kind.shape, place.kind.dtype
        options += [(f"{name}.detach()", place.kind)]
        if len(shape) == 2:
            options += [
                (f"{name}[{e.position(shape[0])}]", tensor(shape[1:], dtype)),
                (f"{name}.T", tensor(shape[::-1], dtype)),
                (f"{name}.reshape({shape[1]}, {shape[0]})", tensor(shape[::-1], dtype)),
            ]
        if len(shape) == 1:
            options += [(f"{name}[{e.position(shape[0])}]", tensor((), dtype))]
            options += [(f"{name}[:]", place.kind), (f"{name}[::-1]", place.kind)]
    text, kind = e.picks.one(options)
    e.use(name)
    return bind(writer, scope, fresh, text, kind, e.tracked, length=place.length)


@statement(1)
def swap(writer, scope, e):
    names = [x for x in scope.having("tensor") if scope.places[x].rebindable]
    first = e.picks.one(names) if names else ""
    alike = [x for x in names if scope.places[x].kind == scope.places[first].kind and x != first]
    if not alike:
        return unpack(writer, scope, e)
    second = e.picks.one(alike)
    writer.line(f"{first}, {second} = {second}, {first}")
    tracked = scope.places[first].tracked or scope.places[second].tracked
    for name in (first, second):
        scope.places[name] = replace(scope.places[name], tracked=tracked)
    return None


@statement(1)
def unpack(writer, scope, e):
    choose = e.picks.ahead()
    names = [scope.shared.fresh("t") for _ in range(2)]
    parts = [e.tensor() for _ in range(2)]
    options = [f"{', '.join(parts)}", f"dilim.stack([{parts[0]}, {parts[1]}])"]
    options.append(f"[v * 2 for v in ({parts[0]}, {parts[1]})]")
    writer.line(f"{names[0]}, {names[1]} = {choose(options)}")
    for name in names:
        scope.bind(name, tensor(), e.tracked)


@statement(1)
def delete(writer, scope, e):
    found = [x for x in scope.names() if scope.places[x].rebindable and x not in scope.kept]
    if found and e.picks.number(2):
        name = e.picks.one(found)
        writer.line(f"del {name}")
        del scope.places[name]


@statement(7)
def show(writer, scope, e):
    ending = ', end=" "' if e.picks.chance(2) else ""
    writer.line(f"print({e.printable()}{ending})")


# --- calls, exits ---------------------------------------------------------------------------


@statement(3)
def call(writer, scope, e):
    """For what it does."""
    choose = e.picks.ahead()
    untracked = [x for x in scope.having(tensor()) if not scope.places[x].tracked]
    texts = [f"score({e.real(1)})", "draw()", "count()", f"print(loud({e.tensor()}))"]
    if scope.may_grow:
        texts += [f"note({e.real(1)})"]
    if untracked:
        texts += [f"touch({e.picks.one(untracked)})"]
    lists = [x for x in scope.having(FLOATS)]
    if lists and scope.may_grow:
        texts += [f"random.shuffle({lists[0]})", f"{lists[0]}.sort()"]
    chosen = choose(texts)
    if chosen == "count()" or chosen.startswith("note"):
        return bind(writer, scope, target(scope, e.picks, INT, fresh=True), chosen, INT)
    return writer.line(chosen)


@statement(1)
def check(writer, scope, e):
    message = e.picks.one(('"too large"', f'f"found {{{e.real(0)}}}"'))
    writer.line(f"assert not ({e.condition(rare=True)}), {message}")


@statement(1)
def fail(writer, scope, e):
    choose = e.picks.ahead()
    error = choose(("ValueError", "KeyError", "RuntimeError"))
    with writer.block(f"if {e.condition(rare=True)}:"):
        writer.line(f'raise {error}(f"stopped at {{{e.real(0)}}}")')


@statement(1)
def mistake(writer, scope, e):
    """Something that Python or dilim refuses, sometimes."""
    choose = e.picks.ahead()
    texts = [
        f"print(1.0 / {e.whole(1)})",
        f"{scope.shared.fresh('t')} = {e.tensor((2, 3))} @ {e.tensor((4,))}",
        f"print({e.tensor((3,))}[{e.whole(1)} + 1])",
        f"print({e.tensor((3,))} + {e.tensor((4,))})",
        'print({"a": 1}["b"])',
        f"print({e.tensor((3,), 'int64')} + 0.5)",
        f"int({e.tensor((4,))})",
    ]
    if e.picks.number(2) or not scope.shared.admits("mistake"):
        return show(writer, scope, e)
    return writer.line(choose(texts))


@statement(3)
def perhaps_unbound(writer, scope, e):
    """A use of a name that some path does not bind."""
    found = scope.having("tensor", "int", "float", uncertain=True)
    found = [x for x in found if not scope.places[x].certain]
    if not found:
        return assign(writer, scope, e)
    name = e.picks.one(found)
    if e.picks.number(2):
        return writer.line(f"print({name})")
    kind = scope.places[name].kind
    return bind(writer, scope, target(scope, e.picks, kind), name, kind, scope.places[name].tracked)


@statement(1)
def masked(writer, scope, e):
    """A tensor whose shape depends on numbers."""
    if not scope.shared.admits("data-dependent shape"):
        return assign(writer, scope, e)
    value = e.tensor()
    name = target(scope, e.picks, tensor(()))
    text = e.picks.one(
        (f"({value})[{value} > 0].sum()", f"dilim.unique_values(({value}).detach()).sum()")
    )
    return bind(writer, scope, name, text, tensor(()), e.tracked)


@statement(1)
def global_write(writer, scope, e):
    shared = scope.shared
    if "LIMIT" in scope.places or not shared.entry or "global statement" in shared.features:
        return show(writer, scope, e)
    if not shared.admits("global statement"):
        return count(writer, scope, e)
    writer.line("global LIMIT")
    return writer.line("LIMIT += 1")


@statement(1)
def keep_other(writer, scope, e):
    """A name for something that is only handed on."""
    choose = e.picks.ahead()
    texts = (f"({e.tensor()}, {e.whole(1)})", "None", f"[({e.real(1)}, {e.tensor()})]")
    bind(writer, scope, target(scope, e.picks, OTHER), choose(texts), OTHER, e.tracked)
