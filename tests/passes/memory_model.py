"""Runs a graph as the permissions of `in_place` allow, in real memory, element by element.

Results lie in variables, carried values and inputs wherever that is permitted, and kernels make one
element after the other, each written before the next is made. So a permission that is not earned
changes the results.
"""

import numpy as np

from dilim.backends.reference.executor import by_recipe, execute
from dilim.ir.graph import Graph
from dilim.ir.structure import FUSED, IF, LOOP, READ, RECEIVE, SEND, WRITE


class Machine:
    """Memory of one run; ``run`` gives the outputs and writes the variables."""

    def __init__(self, graph, variables, host, backwards=False):
        self.graph = graph
        self.host = host
        self.backwards = backwards
        self.memory = dict(zip(graph.variables, variables, strict=True))

    def run(self, inputs):
        self.memory.update(zip(self.graph.inputs, map(np.array, inputs), strict=True))
        return [np.array(x) for x in self.block(self.graph, {})]

    def block(self, graph, targets):
        """The outputs; ``targets`` are the places at which values are to be made."""
        memory = self.memory
        targets = dict(targets)
        for node in graph.nodes:
            if node.op == WRITE and node.params.get("in_place"):
                self.aim(graph, node.inputs[1], memory[node.inputs[0]], targets)
        for node in graph.nodes:
            operands = [memory[x] for x in node.inputs]
            if node.op == READ:
                copied = node.params.get("copy")
                memory[node.results[0]] = np.array(operands[0]) if copied else operands[0]
            elif node.op == WRITE:
                if node.params.get("in_place"):
                    assert _same_place(operands[1], operands[0])
                else:
                    operands[0][...] = np.array(operands[1])
            elif node.op == IF:
                memory.update(
                    zip(node.results, self.branch(node, operands[0], targets), strict=True)
                )
            elif node.op == LOOP:
                memory.update(zip(node.results, self.loop(node, operands), strict=True))
            elif node.op == SEND:
                self.host.send(node.params["channel"], [np.array(x) for x in operands])
            elif node.op == RECEIVE:
                given = map(np.array, self.host.receive(node.params["channel"]))
                memory.update(zip(node.results, given, strict=True))
            else:
                assert node.op == FUSED
                self.kernel(node, operands, targets)
        return [memory[x] for x in graph.outputs]

    def aim(self, graph, value, place, targets):
        """Let a value be made at a place, and before it what it lies over there."""
        makers = {x: node for node in graph.nodes if node.op == FUSED for x in node.results}
        targets[value] = place
        while value in makers:
            node = makers[value]
            source = dict(node.params.get("alias", ())).get(node.results.index(value))
            if source is None or node.inputs[source] not in makers:
                return
            value = node.inputs[source]
            targets[value] = place.reshape(value.shape)

    def branch(self, node, truth, targets):
        number = 0 if truth else 1
        region, places = node.regions[number], {}
        for k, result in enumerate(node.results):
            if (number, k) in node.params.get("in_place", ()):
                self.aim(region, region.outputs[k], targets[result], places)
        outputs = self.block(region, places)
        kept = [np.array(x) for x in outputs]
        for k, result in enumerate(node.results):
            if result not in targets:
                continue
            if (number, k) in node.params.get("in_place", ()):
                assert _same_place(outputs[k], targets[result])
            else:
                targets[result][...] = kept[k].reshape(targets[result].shape)
            kept[k] = targets[result].reshape(result.shape)
        return kept

    def loop(self, node, operands):
        limit, *initial = operands
        *condition, body = node.regions
        reuse, in_place = node.params.get("reuse", ()), node.params.get("in_place", ())
        carried = [x if k in reuse else np.array(x) for k, x in enumerate(initial)]
        for index in range(int(limit)):
            for region in node.regions:
                given = [np.asarray(index, np.int64), *carried]
                self.memory.update(zip(region.inputs, given, strict=True))
            if condition and not self.block(condition[0], {})[0]:
                break
            places = {}
            for k in in_place:
                self.aim(body, body.outputs[k], carried[k], places)
            outputs = self.block(body, places)
            moved = [x if k in in_place else np.array(x) for k, x in enumerate(outputs)]
            for k, (place, value) in enumerate(zip(carried, moved, strict=True)):
                if k in in_place:
                    assert _same_place(value, place)
                else:
                    place[...] = value
        return carried

    def kernel(self, node, operands, targets):
        alias = dict(node.params.get("alias", ()))
        places = []
        for number, result in enumerate(node.results):
            place = targets.get(result)
            if number in alias:
                over = operands[alias[number]]
                assert place is None or _same_place(place, over)
                place = over.reshape(result.shape)  # a view: all memory is in row-major order
            if place is None:
                place = np.empty(result.shape, result.dtype.numpy)
            places.append(place)
        if alias:
            self.elements(node, operands, places, set(alias.values()))
        else:
            for place, value in zip(places, self.results(node, operands), strict=True):
                place[...] = value
        self.memory.update(zip(node.results, places, strict=True))

    def results(self, node, operands):
        (region,) = node.regions
        whole = Graph(region.inputs, region.nodes, region.outputs, (), self.graph.sites)
        return execute(whole, [np.array(x) for x in operands], by_recipe)

    def elements(self, node, operands, places, aliased):
        """Make one element of all results after the other."""
        (region,) = node.regions
        if _starts_from_base(region):
            places[0][...] = self.results(node, operands)[0]
            return
        size = node.results[0].type.size
        first = [np.array(x) for x in operands]
        self.results(node, first)  # all that is checked is checked before anything is written
        for number in reversed(range(size)) if self.backwards else range(size):
            try:
                values = self.results(node, operands)
            except (IndexError, ValueError):  # of an element that was written already
                values = self.results(node, first)
            for place, value in zip(places, values, strict=True):
                place.reshape(-1)[number] = value.reshape(-1)[number]


def _same_place(x, y):
    return x.size == y.size and x.ctypes.data == y.ctypes.data


def _starts_from_base(region: Graph):
    return any(
        n.op in ("index_add", "index_update", "index_write", "add_along_axis") for n in region.nodes
    )
