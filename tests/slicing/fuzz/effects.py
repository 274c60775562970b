"""Random statements that have effects: prints, lists, dictionaries, memory, attributes."""

from dataclasses import replace

from slicing.fuzz.scope import DICT, FLOATING, FLOATS, INT, tensor, tensors
from slicing.fuzz.statements import assign, bind, show, statement, target

# --- containers -----------------------------------------------------------------------------


@statement(2)
def make_list(writer, scope, e):
    choose = e.picks.ahead()
    if e.picks.number(3) == 2:
        texts = ["[]", f"[{e.real(1)}, {e.real(1)}]", f"[{e.real(1)} for _ in range(2)]"]
        name = target(scope, e.picks, FLOATS)
        return bind(writer, scope, name, choose(texts), FLOATS)
    first, second = e.tensor(), e.tensor()
    variable = scope.shared.fresh("i")
    texts = [
        (f"[{first}, {second}]", 2),
        ("[]", 0),
        (f"[{first} * {variable} for {variable} in range(3)]", 3),
        (f"[{first}] * 2", 2),
        (f"[v for v in [{first}, {second}] if v.sum() > 0]", 0),
        (f"[{first}] + [{second}]", 2),
    ]
    text, length = choose(texts)
    name = scope.shared.fresh("ts")
    return bind(writer, scope, name, text, tensors(), e.tracked, length=length)


@statement(5)
def append(writer, scope, e):
    found = scope.having("tensors", FLOATS)
    if not found or not scope.may_grow:
        return make_list(writer, scope, e)
    name = e.picks.one(found)
    place = scope.places[name]
    value = e.real(2) if place.kind == FLOATS else e.tensor_like(place.kind)
    texts = (
        "{}.append({})", "{}.append({})", "{}.extend([{}])", "{}.insert(0, {})", "{} += [{}]",
    )  # fmt: skip
    text = e.picks.one(texts if place.rebindable else texts[:4])
    writer.line(text.format(name, value))
    scope.places[name] = replace(place, tracked=place.tracked or e.tracked, length=place.length + 1)
    return None


@statement(2)
def set_item(writer, scope, e):
    """Into a list."""
    found = [x for x in scope.having("tensors") if scope.places[x].length]
    if not found:
        return make_list(writer, scope, e)
    name = e.picks.one(found)
    place = scope.places[name]
    value = e.tensor_like(place.kind)
    writer.line(f"{name}[{e.position(place.length)}] = {value}")
    scope.places[name] = replace(place, tracked=place.tracked or e.tracked)
    return None


@statement(2)
def make_dict(writer, scope, e):
    choose = e.picks.ahead()
    value = e.tensor()
    texts = (f'{{"a": {value}, "n": {e.whole(1)}}}', f"dict(a={value}, n={e.whole(1)})")
    name = scope.shared.fresh("d")
    writer.line(f"{name} = {choose(texts)}")
    scope.bind(name, DICT)
    scope.bind(f"{name}['a']", tensor(), e.tracked)
    scope.bind(f"{name}['n']", INT)


@statement(2)
def change_dict(writer, scope, e):
    choose = e.picks.ahead()
    found = scope.having(DICT)
    if not found:
        return make_dict(writer, scope, e)
    name = e.picks.one(found)
    if not scope.may_grow:
        return writer.line(f"print({name}.get('n', 0), sorted({name}))")
    value = e.tensor() if e.picks.number(2) else e.real(1)
    texts = (
        f"{name}['more'] = {value}",
        f"{name}.setdefault('more', {value})",
        f"{name}.update(more={value})",
        f"{name}.pop('more', None)",
        f"print({name}.get('n', 0), len({name}))",
    )
    return writer.line(choose(texts))


# --- memory ---------------------------------------------------------------------------------


@statement(6)
def in_place(writer, scope, e):
    """Into a tensor's memory."""
    choose = e.picks.ahead()
    found = [x for x in scope.having("tensor") if scope.places[x].kind.dtype != "bool"]
    found = [x for x in found if not (scope.places[x].tracked and scope.recording)]
    if not found:
        return assign(writer, scope, e)
    name = e.picks.one(found)
    kind = scope.places[name].kind
    value = e.tensor_like(kind)
    if e.tracked:
        value = f"({value}).detach()"
    operator = e.picks.one(("+=", "*=", "-="))
    method = e.picks.one(("add_", "mul_", "sub_", "copy_"))
    texts = [f"{name}.{method}({value})", f"{name}[...] = {value}", f"{name}.fill_({e.whole(0)})"]
    if scope.places[name].rebindable:
        texts[:0] = [f"{name} {operator} {value}", f"{name} {operator} {e.whole(0)}"]
    if len(kind.shape) == 1:
        number = e.whole(0) if kind.dtype not in FLOATING else e.real(1)
        texts.insert(1, f"{name}[{e.position(kind.shape[0])}] = {number}")
        texts.append(f"{name}[1:] = {value}[:-1]")
        texts.append(f"{name}[0] += 1")
        texts.append(f"{name}[::2] *= 2")
    if len(kind.shape) == 2:
        texts.insert(1, f"{name}[{e.position(kind.shape[0])}] = {value}[0]")
        texts.append(f"{name}[:, 1] = {e.whole(0)}")
        texts.append(f"{name}.T[0] += 1")
    return writer.line(choose(texts))


@statement(3)
def attribute(writer, scope, e):
    """Of an object."""
    choose = e.picks.ahead()
    owners = sorted({x.split(".")[0] for x in scope.places if "." in x})
    if not owners:
        return show(writer, scope, e)
    owner = e.picks.one(owners)
    value = e.tensor()
    untracked = f"({value}).detach()" if e.tracked else value
    texts = [
        f"{owner}.n += 1",
        f"{owner}.w = {untracked}",
        f"{owner}.scale = {e.real(1)}",
        f"{owner}.latest = {value}",
        f"print({owner}.total, {owner}.n)",
        f"{owner}.w.mul_(0.5)",
    ]
    if scope.may_grow:
        texts += [f"{owner}.log.append({e.real(1)})", f"{owner}.record({e.real(1)})"]
        texts += [f"{owner}.parts.append({untracked})"]
    chosen = choose([*texts, None])
    if chosen is not None:
        return writer.line(chosen)
    name = target(scope, e.picks, tensor())
    return bind(writer, scope, name, f"{owner}.advance({untracked})", tensor())
