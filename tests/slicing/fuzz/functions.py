"""Random inner functions, comprehensions, classes, and steps of training."""

from slicing.fuzz.control import blocks, branch, run_block, write_steps
from slicing.fuzz.scope import FLOATS, INT, tensor
from slicing.fuzz.statements import bind, target


@blocks(2)
def inner_function(writer, scope, e, first, second):
    """A function inside the function, that reads its variables, and a call of it."""
    name, argument = scope.shared.fresh("g"), scope.shared.fresh("a")
    captured = [x for x in scope.names() if scope.places[x].kind == tensor()]
    if not scope.shared.admits_any:
        captured = [x for x in captured if scope.places[x].constant]
    free = f" + {e.use(e.picks.one(captured))}" if captured and e.picks.number(2) else ""
    option = e.picks.number(3)
    if option == 0:
        with writer.block(f"def {name}({argument}, k={e.real(0)}):"):
            if e.picks.number(2):
                with writer.block(f"if {argument}.sum() > 0:"):
                    writer.line(f"return -{argument}")
            writer.line(f"return {argument} * k{free}")
    elif option == 1:
        writer.line(f"{name} = lambda {argument}: {argument} * 0.5{free}")
    else:
        with writer.block(f"def {name}({argument}):"):
            writer.line(f'print("in {name}", {argument})')
            writer.line(f"return {argument} * {e.whole(0)}{free}")
    result = target(scope, e.picks, tensor(), fresh=bool(free))
    bind(writer, scope, result, f"{name}({e.tensor()})", tensor(), e.tracked)


@blocks(2)
def derived(writer, scope, e, first, second):
    """A loss, its derivative, and what is done with it."""
    leaves = [x for x, place in scope.places.items() if place.leaf and place.kind == tensor()]
    leaf = leaves[0] if leaves else "PARAMETER"
    loss = scope.shared.fresh("t")
    value = e.tensor()
    if not scope.recording or e.picks.number(3) == 2:
        untracked = f"({value}).detach()" if e.tracked else value
        function = f"lambda v, w={untracked}: (v * v * w).sum()"
        result = scope.shared.fresh("t")
        bind(writer, scope, result, f"dilim.grad({function})({leaf}.detach())", tensor())
        return
    writer.line(f"{loss} = ({leaf} * {value} + {leaf} ** 2).mean()")
    writer.line(f"{loss}.backward()")
    after = (
        f"print({leaf}.grad)",
        f"with dilim.no_grad():\n    {leaf}.sub_(0.1 * {leaf}.grad)",
        f"{leaf}.zero_grad()",
        f"print({loss})",
    )
    writer.add(e.picks.one(after).split("\n"))
    scope.bind(loss, tensor(()), tracked=True)


@blocks(2)
def trained(writer, scope, e, first, second):
    """A few steps of an optimiser."""
    if not scope.recording:
        return
    step, loss = scope.shared.fresh("i"), scope.shared.fresh("t")
    inputs, wanted = e.tensor((2, 3)), e.tensor((2, 3))
    if e.tracked:
        inputs, wanted = f"({inputs}).detach()", f"({wanted}).detach()"
    measures = (
        f"((MODEL({inputs}) - {wanted}) ** 2).mean()",
        f"nn.losses.mse(MODEL({inputs}), {wanted})",
        f"nn.losses.huber(MODEL(dilim.tanh({inputs})), {wanted})",
    )
    body = scope.loop()
    with writer.block(f"for {step} in range({1 + e.picks.number(4)}):"):
        writer.line(f"{loss} = {e.picks.one(measures)}")
        writer.add(["OPTIMIZER.zero_grad()", f"{loss}.backward()", "OPTIMIZER.step()"])
        option = e.picks.number(3)
        if option == 1:
            writer.line(f"print({step}, {loss}.item())")
        elif option == 2:
            with writer.block(f"if {step} % 2 == 0:"):
                writer.line(f'print(f"{{{step}}}: {{float({loss}):.5f}}")')
        body.bind(step, INT, rebindable=False)
        body.bind(loss, tensor(()), tracked=True)
        write_steps(writer, body, first)
    scope.join(scope.inner(), body)


@blocks(1)
def matched(writer, scope, e, first, second):
    """``match`` on a number."""
    if not scope.shared.admits("match"):
        return branch(writer, scope, e, first, second)
    ends = []
    with writer.block(f"match {e.whole(1)} % 3:"):
        for head, steps in (("case 0:", first), ("case _:", second)):
            inner = scope.inner(guarded=True)
            if run_block(writer, inner, head, steps):
                ends.append(inner)
    if not ends:
        return "ends"
    scope.join(*ends)
    return None


@blocks(1)
def collected(writer, scope, e, first, second):
    """A comprehension with conditions, or a dictionary of results."""
    choose = e.picks.ahead()
    value = e.tensor()
    options = (
        (f"[v + 1 for v in ({value}, {e.tensor()})]", None),
        (f"{{str(v): {value} * v for v in range(2)}}", "dict comprehension"),
        (f"[float(v) for v in {value}]", None),
        (f"[v * w for v in range(2) for w in ({value},) if v > 0]", None),
        (f"sum(float(v.sum()) for v in ({value},))", "generator"),
    )
    text, feature = choose(options)
    if feature and not scope.shared.admits(feature):
        text = options[0][0]
    name = scope.shared.fresh("c")
    writer.line(f"{name} = {text}")
    writer.line(f"print({name})")


@blocks(1)
def inner_class(writer, scope, e, first, second):
    """A class defined inside, with a method that changes a captured list."""
    if not scope.shared.admits("class"):
        return inner_function(writer, scope, e, first, second)
    name, held = scope.shared.fresh("C"), scope.shared.fresh("us")
    writer.line(f"{held} = [0.0]")
    with writer.block(f"class {name}:"), writer.block("def add(self, value):"):
        writer.line(f"{held}.append(value)")
        writer.line("return value * 2")
    writer.line(f"{name}().add({e.real(1)})")
    scope.bind(held, FLOATS)
    return None
