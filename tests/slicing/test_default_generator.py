"""The default generator is one per thread, in compiled functions too."""

import threading

import dilim


def drawn(x):
    return dilim.default_generator().uniform((2,)) + dilim.sample_categorical(x).astype(x.dtype)


def test_each_thread_draws_from_its_own():
    compiled = dilim.compile(drawn, backend="reference", compile_after=0)
    x = dilim.ones(5)
    dilim.seed(0)
    expected = [drawn(x).tolist() for _ in range(6)]
    found = []

    def draw():
        found.append([compiled(x).tolist() for _ in range(3)])

    dilim.seed(0)
    for _ in range(2):
        draw()
        thread = threading.Thread(target=draw)
        thread.start()
        thread.join()
    assert found == [expected[:3], expected[:3], expected[3:], expected[:3]]
