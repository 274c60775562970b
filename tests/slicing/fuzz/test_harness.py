"""The fuzzer finds nothing where there is nothing, and every compiler that is wrong on purpose."""

import ast
import functools
import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import dilim
from slicing.fuzz import run, wrong_sources
from slicing.fuzz.breakers import BREAKERS
from slicing.fuzz.captures import rebinds_captured
from slicing.fuzz.compare import assert_same, compare, compare_recordings, plain
from slicing.fuzz.describing import Description
from slicing.fuzz.programs import Program, programs, random_program
from slicing.fuzz.reduction import reduce
from slicing.fuzz.running import record
from slicing.fuzz.scenarios import Call
from slicing.fuzz.workers import difference_of, loaded, saved, tally_of

MOST = 300  # programs within which a wrong compiler has to be found

program = functools.cache(random_program)


@functools.cache
def expected(seed):
    return record(program(seed), plain)


# --- programs -------------------------------------------------------------------------------

CONSTRUCTS = (
    "while ", "for i1 in range(", "enumerate(", "zip(", "break", "continue", "else:", "elif ",
    "return ", "try:", "raise ", "assert ", "with dilim.no_grad():", ".append(", "+= ", "[...] = ",
    "lambda ", "def g", "print(f", "float(", "int(", "bool(", "len(", ".shape", "random.random()",
    "np.random.", "default_generator()", "GENERATOR.", ".backward()", "OPTIMIZER.step()",
    "dilim.grad(", "optim.Adam", "optim.SGD", "@", "dilim.where(", "box.n += 1", "self.n += 1",
    "nonlocal ", "deep(", "*[", "**dict(", " for v in ", "set_bias(", "parts_of(", "class C",
    "match ", "global LIMIT", "del ", " is ", " if ", "float64", "int64", ".T", "reshape(",
)  # fmt: skip


def test_programs_use_all_that_they_should():
    text = "\n".join(repr(program(seed)) for seed in range(MOST))
    assert [x for x in CONSTRUCTS if x not in text] == []


def test_most_programs_must_be_sliced_and_most_do_not_raise():
    assert sum(program(seed).sliceable for seed in range(MOST)) > 0.75 * MOST
    raising = [any(moment.error for moment in expected(seed).moments) for seed in range(100)]
    assert 2 <= sum(raising) <= 20


def test_what_is_marked_sliceable_has_nothing_of_the_host_only():
    for seed in range(MOST):
        if program(seed).sliceable:
            source = program(seed).source
            assert not re.search(r"\b(try|match|global|parts_of)\b", source)
            assert "class C" not in source


# --- no false alarms ------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [range(60), range(1000, 1060)], ids=str)
def test_a_function_does_not_differ_from_itself(seeds):
    for seed in seeds:
        found = compare_recordings(expected(seed), record(program(seed), plain))
        assert found is None, f"seed {seed}: {found}"


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_programs_from_hypothesis(drawn):
    assert_same(drawn, plain)


# --- every wrong compiler is found ----------------------------------------------------------

KINDS = {
    "prints_late": {"printed", "raised"},
    "prints_at_the_end": {"printed"},
    "raises_elsewhere": {"line"},
    "raises_from_outside": {"line"},
    "changes_the_last_bit": {"result"},
    "reuses_memory": {"result", "memory"},
    "bakes_closures_in": {"result", "state", "printed", "raised"},
}


@pytest.mark.parametrize("name", wrong_sources.BREAKERS)
def test_wrong_compiler_is_found(name):
    for seed in range(MOST):
        found = compare(program(seed), BREAKERS[name], expected(seed))
        if found is not None:
            assert found.kind in KINDS.get(name, {found.kind})
            return
    pytest.fail(f"{name} was not found in {MOST} programs")


def handmade(body, *calls, before=""):
    source = f"import random\nimport dilim\n{before}\ndef f(x):\n" + "".join(
        f"    {line}\n" for line in body.split("\n")
    )
    return Program(source, calls or (Call("[dilim.tensor([1.0, -0.0])]"),))


@pytest.mark.parametrize(
    ("body", "wrong", "kind"),
    [
        ("return x", "return x.clone()", "result"),
        ("return x * 1", "return x + 0.0", "result"),
        ("return [x + 1] * 2", "return [x + 1, x + 1]", "result"),
        ("return x[::-1]", "return x[::-1].clone()", "memory"),
        ("return 1", "return True", "result"),
        ("return 0.0", "return -0.0", "result"),
        ("x += 1", "x = x + 1", "state"),
        ("LOG.append(x)", "LOG.append(x.clone())", "state"),
        ("return {1: 2, 3: 4}", "return {3: 4, 1: 2}", "result"),
        ("random.random()", "pass", "random"),
        ("dilim.default_generator().normal(2)", "pass", "random"),
        ("x.requires_grad_()", "pass", "state"),
        ("print(x)", "print(x, end='')", "printed"),
        ("raise KeyError(1)", "raise KeyError(2)", "raised"),
        ("\nraise KeyError(1)", "raise KeyError(1)", "line"),
        ("raise KeyError(1) from None", "raise KeyError(1) from OSError()", "line"),
    ],
)
def test_small_differences(body, wrong, kind):
    before = "LOG = []"
    right, other = handmade(body, before=before), handmade(wrong, before=before)
    found = compare_recordings(record(right, plain), record(other, plain))
    assert found is not None
    assert found.kind == kind


def test_nan_equals_nan_whatever_its_bits():
    bits = np.array([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32)
    texts = []
    for number in bits:
        description = Description("program")
        description.add("x", [dilim.asarray(np.array([number])), float(number)])
        texts.append(description.finish())
    assert texts[0] == texts[1]


@pytest.mark.parametrize("show", ["print(g)", "raise KeyError(g)", "return str(g)"])
def test_addresses_are_no_differences(show):
    both = [
        handmade(f"{more}def g():\n    pass\n{show}") for more in ("pass\n", "a = [object()]\n")
    ]
    assert compare_recordings(*(record(each, plain) for each in both)) is None
    other = handmade(f"pass\ndef h():\n    pass\n{show.replace('g', 'h')}")
    assert compare_recordings(record(both[0], plain), record(other, plain)) is not None


def test_an_endless_call_is_a_difference(monkeypatch):
    monkeypatch.setattr("slicing.fuzz.running.LIMIT", 0.2)
    found = compare(handmade("return x"), lambda f: lambda x: [0 for _ in iter(int, 1)])
    assert found.kind == "raised"
    assert "no end" in found.compiled


def test_writes_into_an_earlier_result_are_seen():
    found = compare(
        handmade("return x + 1", *[Call("[dilim.tensor([1.0])]"), Call("[dilim.tensor([2.0])]")]),
        BREAKERS["reuses_memory"],
    )
    assert found.call == 2
    assert found.path == "result of call 1"


def test_counts_of_many_programs():
    counted = tally_of(range(12), plain)
    assert (counted.programs, counted.sliceable) == (
        12,
        sum(program(s).sliceable for s in range(12)),
    )
    with pytest.raises(AssertionError, match=r"(?s)seed \d+\n.*append.*differs"):
        tally_of(range(MOST), BREAKERS["drops_appends"])


def test_a_fault_of_the_compiler_is_a_difference():
    class Faulty:
        statistics = SimpleNamespace(fallbacks=[("a fault in dilim: KeyError: 7", "file", 3)])

        def __call__(self, x):
            return x

    found = compare(handmade("return x"), lambda f: Faulty())
    assert (found.kind, found.compiled) == ("fault", "a fault in dilim: KeyError: 7")


# --- smaller programs -----------------------------------------------------------------------


def test_findings_are_made_small():
    compiler = BREAKERS["drops_appends"]
    seed = next(s for s in range(MOST) if compare(program(s), compiler, expected(s)))
    group = compare(program(seed), compiler).group

    def fails(candidate):
        found = compare(candidate, compiler)
        return found is not None and found.group == group

    smaller = reduce(program(seed), fails, seconds=5.0)
    assert fails(smaller)
    assert ".append(" in smaller.source
    assert len(smaller.source.splitlines()) < 12
    assert len(smaller.calls) == 1


@pytest.mark.parametrize(
    ("source", "rebinds"),
    [
        ("def f(x):\n    g = lambda: x\n    x = 1", True),
        ("def f(x):\n    x = 1\n    g = lambda: x", False),
        ("def f(x):\n    for i in x:\n        y = i\n        def g():\n            return y", True),
        ("def f(x):\n    g = lambda x: x\n    x = 1", False),
    ],
)
def test_captures_that_are_bound_anew(source, rebinds):
    assert rebinds_captured(ast.parse(source)) is rebinds


# --- the command ----------------------------------------------------------------------------


def test_saved_programs_are_the_same():
    assert loaded(saved(program(5))) == program(5)
    assert loaded(saved(program(5))).features == program(5).features


def test_command_counts_and_keeps(capfd, tmp_path):
    status = run.main(["--programs", "3", "--backend", "plain", "--seed", "7"])
    assert status == 0
    assert re.search(r"programs +3 .*\n.*differences +0", capfd.readouterr().out)
    options = ["--programs", "2", "--backend", "crashing", "--keep", str(tmp_path)]
    assert run.main(options) == 1
    assert "crash: the process ended with" in capfd.readouterr().out
    kept = tmp_path / "0.json"
    assert run.main(["--replay", str(kept), "--backend", "plain"]) == 0
    assert capfd.readouterr().out.strip() == "no difference"
    assert difference_of(loaded(kept.read_text(encoding="utf-8")), plain)[2] is None
