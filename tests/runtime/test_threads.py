"""How many threads compiled code uses."""

import os
import subprocess
import sys
import textwrap

import pytest

import dilim
from dilim.errors import DeviceError
from dilim.runtime import threads

KERNEL = """
    import ctypes, os, sys, time
    import numpy as np
    from dilim.backends.llvm.binding import emit_object, host_target, link
    from dilim.runtime import threads

    TEXT = '''
    declare i32 @dilim_parallel(ptr, ptr, ptr, i64, ptr, i64, i64)
    define i32 @kernel(ptr %args, i64 %begin, i64 %end, ptr %scratch) {
      %count = sub i64 %end, %begin
      %own = load i64, ptr %scratch
      %sum = add i64 %own, %count
      store i64 %sum, ptr %scratch
      ret i32 0
    }
    define i32 @run(ptr %pool, ptr %scratch) {
      %s = call i32 @dilim_parallel(ptr %pool, ptr @kernel, ptr null, i64 16, ptr %scratch, i64 128,
                                    i64 8)
      ret i32 %s
    }
    '''
    library = link([emit_object(TEXT, host_target())], threads.symbols())
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(
        library.address("run")
    )
    def run():
        scratch = np.zeros((8, 16), np.int64)
        for _ in range(1000):
            function(threads.native_pool(), scratch.ctypes.data)
        return int(scratch.sum())
    def workers():
        return threads._threads.pool().workers
"""


def python(text, **variables):
    """The lines that a program printed; it must end well and in time."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "DILIM_CACHE": "off", **variables},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def with_kernel(text, **variables):
    return python(textwrap.dedent(KERNEL) + textwrap.dedent(text), **variables)


@pytest.fixture
def restored():
    before = dilim.get_num_threads()
    yield
    dilim.set_num_threads(before)


@pytest.mark.usefixtures("restored")
def test_the_number_can_be_chosen():
    dilim.set_num_threads(3)
    assert dilim.get_num_threads() == 3
    dilim.set_num_threads(1)
    assert dilim.get_num_threads() == 1


@pytest.mark.parametrize("count", [0, -1, 257, 1.0, True, "2", None])
def test_what_is_no_number_of_threads_is_an_error(count):
    before = dilim.get_num_threads()
    with pytest.raises(DeviceError, match="set_num_threads: expected a number from 1 to 256, rec"):
        dilim.set_num_threads(count)
    assert dilim.get_num_threads() == before


def test_the_default_is_the_number_of_cores():
    (line,) = python("import dilim; print(dilim.get_num_threads())", DILIM_THREADS="")
    assert int(line) == threads.usable_cores()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs sched_setaffinity")
def test_only_cores_that_may_be_used_count():
    text = """
        import os, dilim
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(dilim.get_num_threads())
    """
    assert python(text, DILIM_THREADS="") == ["1"]


def test_the_environment_chooses():
    assert python("import dilim; print(dilim.get_num_threads())", DILIM_THREADS="5") == ["5"]


@pytest.mark.parametrize("text", ["0", "many", "-2", "1000"])
def test_a_number_in_the_environment_that_is_none_is_an_error(monkeypatch, text):
    monkeypatch.setenv("DILIM_THREADS", text)
    with pytest.raises(DeviceError, match=f"DILIM_THREADS: expected .* received '{text}'"):
        threads._default_count()


@pytest.mark.parametrize("text", ["many", "-2"])
def test_it_is_an_error_also_where_no_thread_is_needed(text):
    code = """
        import dilim
        try:
            dilim.Graph.from_function(lambda x: x + 1.0, dilim.ones(3)).compile()
        except dilim.errors.DeviceError as error:
            print(error)
    """
    (line,) = python(code, DILIM_THREADS=text)
    assert f"received '{text}'" in line


def test_asking_for_the_number_does_not_load_llvm():
    text = "import sys, dilim; dilim.set_num_threads(2); print('llvmlite' in sys.modules)"
    assert python(text) == ["False"]


def test_the_pool_has_as_many_workers():
    text = """
        print(threads.native_pool() == threads.native_pool(), workers(), run())
        threads.set_num_threads(4)
        print(workers(), run())
        threads.set_num_threads(1)
        print(workers(), run())
    """
    lines = with_kernel(text, DILIM_THREADS="2")
    assert lines == ["True 1 16000", "3 16000", "0 16000"]


def test_the_pool_is_read_from_the_cache_the_second_time(tmp_path):
    for is_read in ("False", "True"):
        text = """
            from dilim.runtime.cache import cache
            threads.native_pool()
            print(cache().misses == 0)
        """
        assert python(
            "from dilim.runtime import threads\n" + textwrap.dedent(text),
            DILIM_CACHE=str(tmp_path),
        ) == [is_read]


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "time.sleep(0.01)", "os._exit(0)"])
def test_the_process_ends_at_once_and_cleanly(end):
    assert with_kernel(f"print(run(), flush=True)\n{end}", DILIM_THREADS="4") == ["16000"]


def test_the_process_ends_cleanly_while_threads_work():
    text = """
        import threading
        def forever():
            while True:
                run()
        for _ in range(3):
            threading.Thread(target=forever, daemon=True).start()
        time.sleep(0.05)
        print("end")
    """
    assert with_kernel(text, DILIM_THREADS="3") == ["end"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_its_own_workers():
    text = """
        print(run(), flush=True)
        for _ in range(5):
            child = os.fork()
            if child == 0:
                right = run() == 16000 and workers() == 2
                os._exit(0 if right else 1)
            print(os.waitpid(child, 0)[1], flush=True)
        print(run())
    """
    assert with_kernel(text, DILIM_THREADS="3") == ["16000", *"00000", "16000"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_another_thread_works():
    text = """
        import threading
        stop = False
        def work():
            while not stop:
                run()
        thread = threading.Thread(target=work)
        thread.start()
        codes = []
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0 if run() == 16000 else 1)
            codes.append(os.waitpid(child, 0)[1])
        stop = True
        thread.join()
        print(set(codes), run())
    """
    assert with_kernel(text, DILIM_THREADS="3") == ["{0} 16000"]
