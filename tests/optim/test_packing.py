import numpy as np

import dilim
from dilim.optim import packing
from dilim.optim.packing import PACK_SIZE, make_packs


def make(*shapes, dtype="float32"):
    return [dilim.ones(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def positions(packs):
    return [pack.positions for pack in packs]


def test_small_parameters_go_together_and_large_ones_alone(monkeypatch):
    monkeypatch.setattr(packing, "PACK_SIZE", 10)
    parameters = make((4,), (11,), (2, 2), (3,), (5, 5), (1,))
    packs = make_packs(parameters, [0] * 6, ["m"])
    assert positions(packs) == [[0, 2], [1], [3, 5], [4]]
    assert [pack.slots["m"].shape for pack in packs] == [(8,), (11,), (4,), (5, 5)]


def test_keys_and_dtypes_separate():
    parameters = make((2,), (2,), (2,)) + make((2,), dtype="float64")
    assert positions(make_packs(parameters, ["a", "b", "a", "a"], [])) == [[0, 2], [1], [3]]
    assert PACK_SIZE > 2


def test_gradient_value_and_subtraction_follow_the_parameters():
    parameters = make((2, 2), (), (3,))
    for number, p in enumerate(parameters):
        p.grad = dilim.full(p.shape, float(number))
    (pack,) = make_packs(parameters, [0] * 3, [])
    assert pack.gradient().tolist() == [0.0] * 4 + [1.0] + [2.0] * 3
    assert pack.value().tolist() == [1.0] * 8
    with dilim.no_grad():
        pack.subtract(dilim.arange(8, dtype="float32"))
    assert [p.tolist() for p in parameters] == [
        [[1.0, 0.0], [-1.0, -2.0]],
        -3.0,
        [-4.0, -5.0, -6.0],
    ]


def test_parts_are_views_of_a_slot():
    (pack,) = make_packs(make((2, 2), (3,)), [0, 0], ["m"])
    matrix, vector = pack.parts(pack.slots["m"])
    matrix[1, 1] = 5.0
    vector[0] = 7.0
    np.testing.assert_array_equal(pack.slots["m"].numpy(), [0, 0, 0, 5, 7, 0, 0])


def test_recorded_gradients_are_taken_without_their_tape():
    for shapes in ([(2,)], [(2,), (3,)]):
        parameters = make(*shapes)
        loss = sum((p**3).sum() for p in parameters)
        loss.backward(create_graph=True)
        assert all(p.grad.requires_grad for p in parameters)
        (pack,) = make_packs(parameters, [0] * len(shapes), [])
        with dilim.no_grad():
            gradient = pack.gradient()
            assert not gradient.requires_grad
            assert not any(part.requires_grad for part in pack.parts(gradient))
        assert all(row._node is None for rows in pack._rows.values() for row in rows.parts)
