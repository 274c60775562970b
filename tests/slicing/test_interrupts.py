"""Ctrl-C in loops of compiled functions: what they have set is there, as it is after plain ones."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dilim
from slicing.interrupted import FUNCTIONS, WHILE_RUNNING, attributes, fresh, swallowed

NAMES = [function.__name__ for function in FUNCTIONS]


@pytest.fixture(scope="module")
def found():
    """What each function has left, from a process of its own."""
    script = Path(__file__).with_name("interrupted.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        found |= json.loads(line)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_what_was_set_is_there(found, name):
    state = found[name]
    assert state["native"] == 3
    assert state["put back"]
    assert state["raised"] is (name != "swallowed")
    assert state["seconds"] < 60
    if name == "a_loop_after_what_was_set":
        assert (state["turns"], state["x"]) == (7, [0.0, 0.0])
        return
    assert state["turns"] > 3
    assert state["x"] == [state["turns"]] * 2


@pytest.mark.parametrize("name", sorted({*NAMES} - {"swallowed"}))
def test_it_is_raised_at_the_line_of_the_loop(found, name):
    calls = {"called": ["called", "attributes"], "in_a_context": ["in_a_context", "attributes"]}
    assert found[name]["lines"] == ["interrupted", *calls.get(name, [name])]


@pytest.mark.parametrize("function", WHILE_RUNNING, ids=lambda function: function.__name__)
def test_a_loop_that_is_compiled_while_it_runs(found, function):
    state = found[f"{function.__name__}, running"]
    assert state["put back"]
    assert state["raised"] is (function is not swallowed)
    assert state["turns"] > 3
    assert state["x"][0] - state["turns"] in (0, 1)  # 1: between two statements of plain Python


def test_items_and_gradients(found):
    assert found["an_item"]["item"] == found["an_item"]["turns"]
    assert found["a_list_that_grows"]["items"] - found["a_list_that_grows"]["turns"] in (0, 1)
    assert found["gradients"]["grad"] == [2.0, 2.0]


def test_contexts_are_left(found):
    kind, turns = found["in_a_context"]["seen"]
    assert kind == "<class 'KeyboardInterrupt'>"
    assert turns == found["in_a_context"]["turns"]
    assert found["swallowed"]["seen"] == "after"


def test_short_calls_are_direct_all_the_same():
    compiled = dilim.compile(attributes, compile_after=0)
    state = fresh()
    for _ in range(5):
        compiled(state, 3)
    assert state.turns == 15
    (region,) = compiled._variants
    assert region.direct_runs == 5
