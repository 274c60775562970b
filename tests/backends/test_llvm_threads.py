"""Threads that share the chunks of a kernel."""

import ctypes
import re
import threading
import time

import numpy as np
import pytest

from dilim.backends.llvm import threads as module
from dilim.backends.llvm.binding import emit_assembly, emit_object, host_target, link
from dilim.backends.llvm.calls import fast_calls
from dilim.backends.llvm.targets import Target
from dilim.backends.llvm.threads import MAX_WORKERS, Pool, write_threads

pytestmark = pytest.mark.skipif(not fast_calls(), reason="needs CPython with a GIL")

# Adds 1 to a counter of every chunk and of its own memory; then waits for as many turns as asked.
# The arguments: counters, turns, the status to give for chunk 0.
KERNEL = """
declare i32 @dilim_parallel(ptr, ptr, ptr, i64, ptr, i64, i64)

define i32 @kernel(ptr %args, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %counters = load ptr, ptr %args
  %turns.at = getelementptr i8, ptr %args, i64 8
  %turns = load i64, ptr %turns.at
  %status.at = getelementptr i8, ptr %args, i64 16
  %asked = load i64, ptr %status.at
  br label %chunk
chunk:
  %i = phi i64 [ %begin, %entry ], [ %i.next, %rested ]
  %place = getelementptr i64, ptr %counters, i64 %i
  %count = load i64, ptr %place
  %more = add i64 %count, 1
  store i64 %more, ptr %place
  %own = load i64, ptr %scratch
  %own.more = add i64 %own, 1
  store i64 %own.more, ptr %scratch
  br label %rest
rest:
  %turn = phi i64 [ 0, %chunk ], [ %turn.next, %rest ]
  %turn.next = add i64 %turn, 1
  %again = icmp slt i64 %turn.next, %turns
  br i1 %again, label %rest, label %rested
rested:
  %i.next = add i64 %i, 1
  %left = icmp slt i64 %i.next, %end
  br i1 %left, label %chunk, label %done
done:
  %first = icmp eq i64 %begin, 0
  %chosen = select i1 %first, i64 %asked, i64 0
  %status = trunc i64 %chosen to i32
  ret i32 %status
}

define i32 @many(ptr %pool, ptr %args, i64 %chunks, ptr %scratch, i64 %threads, i64 %times) {
entry:
  br label %call
call:
  %i = phi i64 [ 0, %entry ], [ %next, %call ]
  %status = call i32 @dilim_parallel(ptr %pool, ptr @kernel, ptr %args, i64 %chunks, ptr %scratch,
                                     i64 128, i64 %threads)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %call, label %done
done:
  ret i32 %status
}

; Each chunk asks for threads again.
define i32 @outer(ptr %args, i64 %begin, i64 %end, ptr %scratch) {
  %pool.at = getelementptr i8, ptr %args, i64 24
  %pool = load ptr, ptr %pool.at
  %status = call i32 @dilim_parallel(ptr %pool, ptr @kernel, ptr %args, i64 4, ptr %scratch,
                                     i64 0, i64 4)
  ret i32 %status
}

define i32 @nested(ptr %pool, ptr %args, i64 %chunks, ptr %scratch, i64 %threads, i64 %times) {
  %status = call i32 @dilim_parallel(ptr %pool, ptr @outer, ptr %args, i64 %chunks, ptr %scratch,
                                     i64 128, i64 %threads)
  ret i32 %status
}
"""
SIGNATURE = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64),
    *(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64),
)


class Work:
    """Calls kernels on a pool."""

    def __init__(self, pool):
        self.pool = pool
        self.library = link([emit_object(KERNEL, host_target())], pool.symbols)

    def __call__(self, chunks, threads=4, times=1, turns=1, status=0, entry="many"):
        """Counters per chunk, counters per thread, and the status."""
        counters, scratch = np.zeros(max(chunks, 8), np.int64), np.zeros((256, 16), np.int64)
        arguments = np.array([counters.ctypes.data, turns, status, self.pool.address], np.int64)
        function = SIGNATURE(self.library.address(entry))
        result = function(
            *(self.pool.address, arguments.ctypes.data, chunks),
            *(scratch.ctypes.data, threads, times),
        )
        return counters, scratch[:, 0], result


@pytest.fixture(scope="module")
def library():
    return link([emit_object(write_threads(host_target().architecture), host_target())])


@pytest.fixture
def pool(library):
    made = Pool(library)
    yield made
    made.stop()


@pytest.fixture
def work(pool):
    pool.resize(3)
    return Work(pool)


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("chunks", [1, 2, 3, 4, 7, 64, 1000])
def test_every_chunk_is_run_once(pool, workers, chunks):
    pool.resize(workers)
    assert pool.workers == workers
    counters, own, status = Work(pool)(chunks, times=200)
    assert counters[:chunks].tolist() == [200] * chunks
    assert own.sum() == 200 * chunks
    assert not own[workers + 1 :].any()
    assert status == 0


def test_workers_take_part(work):
    _, own, _ = work(chunks=8, threads=2, times=400, turns=20_000)
    assert own[1] > 100


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_no_more_threads_take_part_than_there_is_memory_for(work, threads):
    _, own, _ = work(chunks=8, threads=threads, times=300, turns=3000)
    assert own.sum() == 8 * 300
    assert not own[threads:].any()


def test_the_status_of_a_kernel_is_the_result(work):
    assert work(chunks=4, times=1, status=7)[2] == 7
    assert work(chunks=1, status=-3)[2] == -3
    assert work(chunks=4)[2] == 0


def test_a_kernel_that_asks_for_threads_runs_all_itself(work):
    counters, _, _ = work(chunks=1, entry="nested")
    assert counters[:4].tolist() == [1, 1, 1, 1]
    work.pool.resize(1)
    counters, own, _ = work(chunks=2, threads=2, turns=1000, entry="nested")
    assert own.sum() == 8


def test_python_threads_may_use_one_pool_at_once(work):
    wrong = []

    def use(number):
        for turn in range(40):
            chunks = 1 + (number + turn) % 9
            counters, _, _ = work(chunks, threads=3, times=50, turns=20)
            if counters[:chunks].tolist() != [50] * chunks:
                wrong.append((number, turn))

    users = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join(60)
    assert not any(user.is_alive() for user in users)
    assert wrong == []


def test_workers_that_are_parked_are_woken(work):
    for _ in range(20):
        time.sleep(0.003)
        counters, _, _ = work(chunks=4, times=3)
        assert counters[:4].tolist() == [3] * 4
    time.sleep(0.01)
    wake = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(work.pool.symbols["dilim_wake"])
    wake(work.pool.address)
    wake(work.pool.address)
    assert work(chunks=4)[0].sum() == 4


def test_workers_are_there_again_after_a_rest(work):
    time.sleep(0.02)
    _, own, _ = work(chunks=8, threads=2, times=400, turns=20_000)
    assert own[1] > 100


def test_idle_workers_take_no_time(work):
    work(chunks=8, times=100)
    time.sleep(0.01)
    started = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - started < 0.05


def test_the_number_of_workers_can_change(pool):
    work = Work(pool)
    for workers in (0, 3, 1, 0, 2):
        pool.resize(workers)
        assert pool.workers == workers
        counters, own, _ = work(chunks=6, times=100, turns=200)
        assert counters[:6].tolist() == [100] * 6
        assert not own[workers + 1 :].any()


def test_a_stopped_pool_still_works(work):
    threads = list(work.pool._threads)
    work.pool.stop()
    assert not any(thread.is_alive() for thread in threads)
    counters, own, _ = work(chunks=5)
    assert counters[:5].tolist() == [1] * 5
    assert own[0] == 5
    work.pool.resize(2)
    assert work.pool.workers == 0


def test_where_no_thread_can_be_started_there_are_fewer(pool, monkeypatch):
    class Refused(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module.threading, "Thread", Refused)
    pool.resize(3)
    assert pool.workers == 0
    assert Work(pool)(chunks=3)[0].sum() == 3


def test_there_is_an_end_to_the_number_of_workers(pool):
    pool._threads = [threading.current_thread()] * MAX_WORKERS
    pool.resize(MAX_WORKERS + 5)
    assert pool.workers == MAX_WORKERS
    pool._threads = []
    pool.resize(0)


def test_without_fast_calls_there_are_no_workers(library, monkeypatch):
    monkeypatch.setattr(module, "fast_calls", lambda: False)
    pool = Pool(library)
    pool.resize(3)
    assert pool.workers == 0
    assert Work(pool)(chunks=3)[0].sum() == 3


@pytest.mark.parametrize(
    ("triple", "pause"),
    [
        ("x86_64-unknown-linux-gnu", "pause"),
        ("aarch64-unknown-linux-gnu", "yield"),
        ("riscv64-unknown-linux-gnu", None),
    ],
)
def test_the_code_exists_for_other_processors(triple, pause):
    cpu = {"x86_64": "x86-64", "aarch64": "generic", "riscv64": "generic-rv64"}
    target = Target(
        cpu[triple.partition("-")[0]],
        "+a" if triple.startswith("riscv") else "",
        triple,
    )
    assembly = emit_assembly(write_threads(target.architecture), target)
    assert "dilim_parallel:" in assembly
    assert pause is None or re.search(rf"^\s+{pause}$", assembly, re.M)
