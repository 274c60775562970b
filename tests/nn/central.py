"""Central differences in float64, for tests of gradients."""

import numpy as np

import dilim


def numeric_gradient(function, x, step=1e-6):
    """Gradient of ``function()`` (a float) with respect to the tensor ``x``, element by element."""
    found = np.zeros(x.shape)
    array = np.array(x.numpy())
    with dilim.no_grad():
        for index in np.ndindex(*x.shape):
            values = []
            for sign in (1.0, -1.0):
                moved = array.copy()
                moved[index] += sign * step
                x.copy_(dilim.tensor(moved))
                values.append(function())
            found[index] = (values[0] - values[1]) / (2.0 * step)
        x.copy_(dilim.tensor(array))
    return found
