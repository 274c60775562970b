import json
import math

import numpy as np
import pytest

import dilim
from dilim import optim
from dilim.errors import StateError
from dilim.optim.schedules import SCHEDULES, as_schedule, from_dict

# schedule, and its values at some steps, worked out by hand
CASES = {
    "Constant": (optim.Constant(0.3), {0: 0.3, 99: 0.3}),
    "LinearDecay": (optim.LinearDecay(1.0, 0.2, 8), {0: 1.0, 2: 0.8, 8: 0.2, 50: 0.2}),
    "ExponentialDecay": (optim.ExponentialDecay(1.0, 0.5, 0.1), {0: 1.0, 3: 0.125, 4: 0.1}),
    "CosineDecay": (optim.CosineDecay(2.0, 1.0, 4), {0: 2.0, 2: 1.5, 4: 1.0, 9: 1.0}),
    "StepDecay": (optim.StepDecay(1.0, 0.5, 3), {0: 1.0, 2: 1.0, 3: 0.5, 8: 0.25}),
    "Warmup": (
        optim.Warmup(4, optim.LinearDecay(1.0, 0.0, 10)),
        {0: 0.25, 1: 0.5, 3: 1.0, 4: 1.0, 9: 0.5, 14: 0.0},
    ),
}


def test_every_schedule_has_a_case():
    assert set(CASES) == set(SCHEDULES)


@pytest.mark.parametrize("name", SCHEDULES)
def test_values_as_numbers_and_as_tensors(name):
    schedule, values = CASES[name]
    for step, wanted in values.items():
        got = schedule(step)
        assert type(got) is float
        assert got == pytest.approx(wanted, rel=1e-12, abs=1e-15)
        as_tensor = schedule(dilim.tensor(step, dtype="float64"))
        assert (as_tensor.shape, as_tensor.dtype) == ((), dilim.float64)
        assert as_tensor.item() == pytest.approx(wanted, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", SCHEDULES)
def test_plain_data_comes_back(name):
    schedule, _ = CASES[name]
    data = json.loads(json.dumps(schedule.to_dict()))
    assert data["schedule"] == name
    assert from_dict(data) == schedule


def test_defaults_of_exploration_schedules():
    # at its end a line is exactly there
    linear, exponential = optim.LinearDecay(), optim.ExponentialDecay()
    assert (linear(0), linear(1000), linear(5000)) == (1.0, 0.01, 0.01)
    assert exponential(1) == 0.995
    assert exponential(918) > 0.01 == exponential(919)


def test_warmup_takes_a_number():
    schedule = optim.Warmup(2, 0.5)
    assert [schedule(step) for step in range(4)] == [0.25, 0.5, 0.5, 0.5]
    assert as_schedule(0.5) == optim.Constant(0.5)


def test_cosine_between():
    schedule = optim.CosineDecay(1.0, 0.0, 10)
    wanted = [(1.0 + math.cos(math.pi * step / 10)) / 2 for step in range(11)]
    np.testing.assert_allclose([schedule(step) for step in range(11)], wanted, atol=1e-15)


@pytest.mark.parametrize(
    ("act", "error", "match"),
    [
        (lambda: optim.LinearDecay(1.0, 0.0, 0), ValueError, "LinearDecay: expected steps >= 1"),
        (lambda: optim.StepDecay(1.0, steps=-1), ValueError, "StepDecay: expected steps >= 1"),
        (lambda: optim.Warmup(0, 1.0), ValueError, "Warmup: expected steps >= 1, received 0"),
        (lambda: optim.ExponentialDecay(factor=0.0), ValueError, "factor above 0, received 0.0"),
        (lambda: from_dict({"schedule": "Cosine"}), StateError, "received 'Cosine'"),
        (lambda: from_dict({"schedule": "Constant", "x": 1}), StateError, "does not take"),
        (lambda: optim.Schedule()(1), NotImplementedError, "does not define formula"),
    ],
)
def test_bad_schedules_are_refused(act, error, match):
    with pytest.raises(error, match=match):
        act()
