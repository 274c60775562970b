"""Programs as their authors would write them, compiled and plain: all the same."""

from pathlib import Path

import pytest

from slicing.comparing import Call, check_program
from slicing.fuzz.programs import Program

FOLDER = Path(__file__).parent / "real"


def check(name, *calls, **expectations):
    program = Program((FOLDER / f"{name}.py").read_text(encoding="utf-8"), calls)
    return check_program(program, **expectations)


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_the_moons_of_micrograd(backend):
    steps = 12
    seen = check("moons", Call("[3]"), Call(f"[{steps}]"), sends=steps, receives=0, backend=backend)
    lines = seen.printed(1) + seen.printed(2)
    losses = [float(line.split()[3].rstrip(",")) for line in lines]
    assert len(lines) == 3 + steps
    assert losses[-1] < losses[0]


def test_the_moons_of_micrograd_in_random_batches():
    seen = check("moons", *[Call("[6, 20]")] * 2, sends=6, receives=6)
    assert len(seen.printed(2)) == 6


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_pictures_in_minibatches(backend):
    seen = check("digits", *[Call("[2]")] * 3, backend=backend)
    first, *_, last = (line for call in (1, 2, 3) for line in seen.printed(call))
    assert float(last.split("accuracy ")[1].rstrip("%")) > 90.0
    assert float(first.split("loss ")[1].split(",")[0]) > 1.0
    sends, receives = seen.transfers[-1]
    assert receives == 2  # the order of each epoch
    assert sends <= 2 * (7 + 1)  # the loss of each batch, the score of each epoch


def test_pictures_with_a_last_batch_that_is_smaller():
    seen = check("digits", *[Call("[1, 50]")] * 2, Call("[1, 32]"), Call("[2, 60]"))
    assert [receives for _, receives in seen.transfers[1:]] == [1, 1, 2]


@pytest.mark.parametrize("backend", ["reference", "llvm"])
def test_deep_q_learning_on_cartpole(backend):
    seen = check("cartpole", *[Call("[120]")] * 3, backend=backend)
    assert any(line.startswith("losses/td_loss") for line in seen.printed(1))
    assert any("episodic_return" in line for line in seen.printed(1))
    sends, _ = seen.transfers[-1]
    assert sends <= 120 + 2 * 4


def test_deep_q_learning_in_tensors_is_one_program():
    seen = check("cartpole_in_tensors", *[Call("[130]")] * 3, sends=0, receives=0)
    assert seen.transfers[-1] == (0, 0)
