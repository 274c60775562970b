"""Runs each function below until Ctrl-C comes; tells what there is then. See `test_interrupts`."""

import contextlib
import json
import os
import signal
import threading
import time
import traceback

import dilim

FOREVER = 1 << 30


class State:
    def __init__(self):
        self.x = dilim.zeros(2, dtype=dilim.float64)
        self.turns = 0
        self.items = [0]
        self.seen = None


class Noting:
    def __init__(self, state):
        self.state = state

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.state.seen = str(kind), self.state.turns


def attributes(state, n):
    for _ in range(n):
        state.x = state.x + 1
        state.turns += 1


def an_item(state, n):
    while state.items[0] < n:
        state.items[0] += 1
        state.x = state.x + 1
        state.turns += 1


def a_loop_in_a_loop(state, n):
    for _ in range(n):
        for _ in range(100):
            state.x = state.x + 1
            state.turns += 1


def a_loop_after_what_was_set(state, n):
    state.turns = 7
    y = state.x
    for _ in range(n):
        y = y * 0.5
    state.x = y + 7


def prints(state, n):
    for k in range(n):
        state.x = state.x + 1
        state.turns += 1
        if k % 10_000 == 0:
            print(end="")


def a_list_that_grows(state, n):
    for k in range(n):
        state.x = state.x + 1
        state.turns += 1
        state.items.append(k)


def called(state, n):
    state.items = [n]
    attributes(state, n)


def in_a_context(state, n):
    with Noting(state):
        attributes(state, n)


def swallowed(state, n):
    with contextlib.suppress(KeyboardInterrupt):
        for _ in range(n):
            state.x = state.x + 1
            state.turns += 1
    state.seen = "after"


def gradients(state, n):
    w = state.w
    for _ in range(n):
        w.grad = None
        (w * w).sum().backward()
        state.x = state.x + 1
        state.turns += 1


FUNCTIONS = (
    attributes, an_item, a_loop_in_a_loop, a_loop_after_what_was_set, prints, a_list_that_grows,
    called, in_a_context, swallowed, gradients,
)  # fmt: skip


WHILE_RUNNING = (attributes, a_list_that_grows, swallowed)


def fresh():
    state = State()
    state.w = dilim.ones(2, requires_grad=True)
    return state


def before_it_runs(function):
    """What there is after Ctrl-C in a compiled function that has run before."""
    compiled = dilim.compile(function, compile_after=0)
    compiled(fresh(), 3)
    compiled(fresh(), 0)
    return interrupted(compiled, 0.2)


def interrupted(compiled, seconds):
    """What there is after Ctrl-C in a compiled function."""
    state = fresh()
    before = signal.getsignal(signal.SIGINT)
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
    started, raised, lines = time.monotonic(), False, []
    try:
        compiled(state, FOREVER)
    except KeyboardInterrupt as error:
        raised = True
        lines = [x.name for x in traceback.extract_tb(error.__traceback__)]
        lines += [] if error.__context__ is None else [repr(error.__context__)]
    return {
        "raised": raised,
        "lines": lines,
        "seconds": time.monotonic() - started,
        "x": state.x.tolist(),
        "turns": state.turns,
        "item": state.items[0],
        "items": len(state.items),
        "seen": state.seen,
        "grad": None if state.w.grad is None else state.w.grad.tolist(),
        "put back": signal.getsignal(signal.SIGINT) is before,
        "native": compiled.statistics.native_calls,
    }


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for function in FUNCTIONS:
        print(json.dumps({function.__name__: before_it_runs(function)}), flush=True)
    for function in WHILE_RUNNING:
        found = interrupted(dilim.compile(function, compile_after=0.01), 1.0)
        print(json.dumps({f"{function.__name__}, running": found}), flush=True)
