"""The formulae of all optimisers again, in NumPy float64, one parameter at a time.

``rule = RULES[name](**options)`` for each parameter, then ``p = rule(p, g, rate)`` for each step.
"""

import numpy as np


def sgd(momentum=0.0, nesterov=False, weight_decay=0.0):
    velocity = None

    def rule(p, g, rate):
        nonlocal velocity
        g = g + weight_decay * p
        if momentum:
            velocity = g if velocity is None else momentum * velocity + g
            g = g + momentum * velocity if nesterov else velocity
        return p - rate * g

    return rule


def adam(betas=(0.9, 0.999), epsilon=1e-8, weight_decay=0.0):
    b1, b2 = betas
    m = v = 0.0
    t = 0

    def rule(p, g, rate):
        nonlocal m, v, t
        t += 1
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        p = p * (1.0 - rate * weight_decay)
        m_hat, v_hat = m / (1 - b1**t), v / (1 - b2**t)
        return p - rate * m_hat / (np.sqrt(v_hat) + epsilon)

    return rule


def adamw(weight_decay=0.01, **options):
    return adam(weight_decay=weight_decay, **options)


def rmsprop(decay=0.99, epsilon=1e-8, momentum=0.0):
    v = velocity = 0.0

    def rule(p, g, rate):
        nonlocal v, velocity
        v = decay * v + (1 - decay) * g * g
        velocity = momentum * velocity + g / (np.sqrt(v) + epsilon)
        return p - rate * velocity

    return rule


RULES = {"SGD": sgd, "Adam": adam, "AdamW": adamw, "RMSprop": rmsprop}
