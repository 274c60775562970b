"""The picture of several runs."""

import numpy as np

from dilim.rl.comparison import comparison_png, curve, quartiles


def test_the_curve_of_a_run_leaves_gaps_out():
    lines = [
        {"steps": 10, "average": 1.0},
        {"steps": 30, "average": None},
        {"steps": 40, "average": 2.5},
    ]
    assert curve(lines) == ([10, 40], [1.0, 2.5])


def test_quartiles_of_curves_that_end_at_different_steps():
    curves = [([0, 100], [0.0, 10.0]), ([0, 50], [4.0, 4.0]), ([50, 100], [2.0, 8.0])]
    steps, (low, middle, high) = quartiles(curves)
    assert steps[0] == 0.0
    assert steps[-1] == 100.0
    assert (low[0], middle[0], high[0]) == (1.0, 2.0, 3.0)  # of 0, 4, 2
    assert (low[-1], middle[-1], high[-1]) == (6.0, 8.0, 9.0)  # of 10, 4, 8
    near = np.searchsorted(steps, 50.0)
    assert abs(middle[near] - 4.0) < 0.2  # of 5, 4, 2


def test_a_picture_of_runs_that_have_nothing_yet():
    for groups in ({}, {"a": [([], [])]}, {"a": [([1, 5], [0.0, 1.0])], "b": [([], [])]}):
        assert comparison_png(groups, "t").startswith(b"\x89PNG")
