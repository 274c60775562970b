"""Compiled functions that several threads call at once."""

import threading

import dilim
from dilim import nn, optim


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.losses.mse(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def losses(function, seed):
    model = nn.Dense(3, 1, generator=dilim.Generator(seed))
    optimizer = optim.Adam(model, learning_rate=0.01)
    generator = dilim.Generator(seed)
    found = []
    for _ in range(30):
        x = generator.normal((4, 3))
        found.append(function(model, optimizer, x, x[:, :1]).item())
    return found


def test_threads_train_models_of_their_own_as_they_would_alone():
    expected = {seed: losses(step, seed) for seed in range(4)}
    for _ in range(4):
        compiled = dilim.compile(step, compile_after=0, backend="reference")
        found = {}

        def job(seed, compiled=compiled, found=found):
            found[seed] = losses(compiled, seed)

        threads = [threading.Thread(target=job, args=(seed,)) for seed in expected]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == expected


def test_threads_that_call_at_once_make_one_program():
    for _ in range(4):
        compiled = dilim.compile(lambda x, n: (x * n).sum() + n, compile_after=0)
        begin = threading.Barrier(6)

        def job(n, compiled=compiled, begin=begin):
            begin.wait()
            compiled(dilim.ones(3), n)

        threads = [threading.Thread(target=job, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(compiled.programs) == 1
