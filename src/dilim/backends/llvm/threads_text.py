"""The LLVM text of the pool of threads; `dilim.backends.llvm.threads` says what it does.

The *ticket* is the state of a job in one word: its number, and how many chunks nobody has taken
yet. Who swaps it for one with fewer left holds these chunks; that succeeds only while the job is
open, and only then are the fields of the job what was read before. So nobody has to wait for a
worker that is late, only for those that hold chunks. A worker without work looks at the ticket for
a while, then parks in a lock of Python's C interface, which needs no GIL.
"""

from __future__ import annotations

from typing import Final

LINE: Final = 128  # bytes; two cache lines, since some processors fetch them in pairs
PLACES: Final = {
    "TICKET": 0,
    "LIMIT": LINE,  # workers that may take part
    "SPINS": LINE + 8,
    "STOP": LINE + 16,
    "ACQUIRE": LINE + 24,
    "RELEASE": LINE + 32,
    "YIELD": LINE + 40,
    "KERNEL": 2 * LINE,
    "ARGUMENTS": 2 * LINE + 8,
    "CHUNKS": 2 * LINE + 16,
    "SCRATCH": 2 * LINE + 24,
    "STRIDE": 2 * LINE + 32,
    "THREADS": 2 * LINE + 40,
    "DONE": 3 * LINE,  # chunks
    "STATUS": 3 * LINE + 8,
    "BUSY": 4 * LINE,
    "SLEEPERS": 5 * LINE,
    "WORKERS": 6 * LINE,  # of each: whether it is parked, and 8 bytes later its lock
}
"""Where things are in the memory of a pool."""

_PAUSES: Final = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}

_TEXT: Final = """
$DECLARATION

define i32 @dilim_parallel(ptr %pool, ptr %kernel, ptr %args, i64 %chunks, ptr %scratch,
                           i64 %stride, i64 %threads) #0 {
entry:
  %limit.at = getelementptr i8, ptr %pool, i64 $LIMIT
  %limit = load atomic i64, ptr %limit.at monotonic, align 8
  %others = add i64 %threads, -1
  %rest = add i64 %chunks, -1
  %fewer = call i64 @llvm.smin.i64(i64 %others, i64 %rest)
  %workers = call i64 @llvm.smin.i64(i64 %fewer, i64 %limit)
  %alone = icmp sle i64 %workers, 0
  br i1 %alone, label %serial, label %claim
claim:
  %busy.at = getelementptr i8, ptr %pool, i64 $BUSY
  %claimed = cmpxchg ptr %busy.at, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %claimed, 1
  br i1 %mine, label %publish, label %serial
publish:
  %kernel.at = getelementptr i8, ptr %pool, i64 $KERNEL
  %args.at = getelementptr i8, ptr %pool, i64 $ARGUMENTS
  %chunks.at = getelementptr i8, ptr %pool, i64 $CHUNKS
  %scratch.at = getelementptr i8, ptr %pool, i64 $SCRATCH
  %stride.at = getelementptr i8, ptr %pool, i64 $STRIDE
  %threads.at = getelementptr i8, ptr %pool, i64 $THREADS
  %done.at = getelementptr i8, ptr %pool, i64 $DONE
  %status.at = getelementptr i8, ptr %pool, i64 $STATUS
  %members = add i64 %workers, 1
  store atomic ptr %kernel, ptr %kernel.at monotonic, align 8
  store atomic ptr %args, ptr %args.at monotonic, align 8
  store atomic i64 %chunks, ptr %chunks.at monotonic, align 8
  store atomic ptr %scratch, ptr %scratch.at monotonic, align 8
  store atomic i64 %stride, ptr %stride.at monotonic, align 8
  store atomic i64 %members, ptr %threads.at monotonic, align 8
  store atomic i64 0, ptr %done.at monotonic, align 8
  store atomic i32 0, ptr %status.at monotonic, align 8
  %old = load atomic i64, ptr %pool monotonic, align 8
  %number = lshr i64 %old, 32
  %next = add i64 %number, 1
  %high = shl i64 %next, 32
  %ticket = or i64 %high, %chunks
  store atomic i64 %ticket, ptr %pool seq_cst, align 8
  %sleepers.at = getelementptr i8, ptr %pool, i64 $SLEEPERS
  %sleepers = load atomic i64, ptr %sleepers.at seq_cst, align 8
  %awake = icmp eq i64 %sleepers, 0
  br i1 %awake, label %work, label %rouse
rouse:
  call void @rouse(ptr %pool, i64 %workers)
  br label %work
work:
  %taken = call i64 @share(ptr %pool, i64 0)
  br label %wait
wait:
  %spins = phi i64 [ 0, %work ], [ %spins.next, %again ]
  %done = load atomic i64, ptr %done.at acquire, align 8
  %complete = icmp eq i64 %done, %chunks
  br i1 %complete, label %finish, label %more
more:
  $PAUSE
  %spins.next = add i64 %spins, 1
  %turn = and i64 %spins.next, 1023
  %long = icmp eq i64 %turn, 0
  br i1 %long, label %let, label %again
let:  ; whoever holds the rest may be waiting for this core
  %yield.at = getelementptr i8, ptr %pool, i64 $YIELD
  %yield = load ptr, ptr %yield.at
  %absent = icmp eq ptr %yield, null
  br i1 %absent, label %again, label %yielding
yielding:
  %ignored = call i32 %yield()
  br label %again
again:
  br label %wait
finish:
  %status = load atomic i32, ptr %status.at monotonic, align 8
  store atomic i32 0, ptr %busy.at release, align 4
  ret i32 %status
serial:
  %result = call i32 %kernel(ptr %args, i64 0, i64 %chunks, ptr %scratch)
  ret i32 %result
}

; Takes and runs chunks as long as there are any for this thread; how many.
define internal i64 @share(ptr %pool, i64 %me) #0 {
entry:
  br label %look
look:
  %taken = phi i64 [ 0, %entry ], [ %taken, %try ], [ %taken.next, %ran ]
  %ticket = load atomic i64, ptr %pool acquire, align 8
  %left = and i64 %ticket, 4294967295
  %none = icmp eq i64 %left, 0
  br i1 %none, label %out, label %open
open:
  %threads.at = getelementptr i8, ptr %pool, i64 $THREADS
  %threads = load atomic i64, ptr %threads.at monotonic, align 8
  %member = icmp slt i64 %me, %threads
  br i1 %member, label %try, label %out
try:
  %kernel.at = getelementptr i8, ptr %pool, i64 $KERNEL
  %args.at = getelementptr i8, ptr %pool, i64 $ARGUMENTS
  %chunks.at = getelementptr i8, ptr %pool, i64 $CHUNKS
  %scratch.at = getelementptr i8, ptr %pool, i64 $SCRATCH
  %stride.at = getelementptr i8, ptr %pool, i64 $STRIDE
  %kernel = load atomic ptr, ptr %kernel.at monotonic, align 8
  %args = load atomic ptr, ptr %args.at monotonic, align 8
  %chunks = load atomic i64, ptr %chunks.at monotonic, align 8
  %scratch = load atomic ptr, ptr %scratch.at monotonic, align 8
  %stride = load atomic i64, ptr %stride.at monotonic, align 8
  %double = shl i64 %threads, 1
  %part = udiv i64 %left, %double
  %batch = call i64 @llvm.umax.i64(i64 %part, i64 1)
  %fewer = sub i64 %ticket, %batch
  %swapped = cmpxchg ptr %pool, i64 %ticket, i64 %fewer acq_rel monotonic
  %held = extractvalue { i64, i1 } %swapped, 1
  br i1 %held, label %run, label %look
run:
  %begin = sub i64 %chunks, %left
  %end = add i64 %begin, %batch
  %offset = mul i64 %stride, %me
  %own = getelementptr i8, ptr %scratch, i64 %offset
  %status = call i32 %kernel(ptr %args, i64 %begin, i64 %end, ptr %own)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %ran, label %failed
failed:
  %status.at = getelementptr i8, ptr %pool, i64 $STATUS
  %first = cmpxchg ptr %status.at, i32 0, i32 %status monotonic monotonic
  br label %ran
ran:
  %taken.next = add i64 %taken, %batch
  %done.at = getelementptr i8, ptr %pool, i64 $DONE
  %before = atomicrmw add ptr %done.at, i64 %batch release
  br label %look
out:
  ret i64 %taken
}

; Wakes those of the first so many workers that are parked.
define internal void @rouse(ptr %pool, i64 %count) #0 {
entry:
  %release.at = getelementptr i8, ptr %pool, i64 $RELEASE
  %release = load ptr, ptr %release.at
  %sleepers.at = getelementptr i8, ptr %pool, i64 $SLEEPERS
  br label %look
look:
  %worker = phi i64 [ 0, %entry ], [ %next, %done ]
  %more = icmp slt i64 %worker, %count
  br i1 %more, label %one, label %out
one:
  %scaled = mul i64 %worker, $LINE
  %place = add i64 %scaled, $WORKERS
  %parked.at = getelementptr i8, ptr %pool, i64 %place
  %seen = load atomic i32, ptr %parked.at monotonic, align 4
  %asleep = icmp ne i32 %seen, 0
  br i1 %asleep, label %claim, label %done
claim:
  %parked = atomicrmw xchg ptr %parked.at, i32 0 seq_cst
  %mine = icmp ne i32 %parked, 0
  br i1 %mine, label %wake, label %done
wake:
  %before = atomicrmw sub ptr %sleepers.at, i64 1 seq_cst
  %lock.at = getelementptr i8, ptr %parked.at, i64 8
  %lock = load ptr, ptr %lock.at
  call void %release(ptr %lock)
  br label %done
done:
  %next = add i64 %worker, 1
  br label %look
out:
  ret void
}

define void @dilim_wake(ptr %pool) #0 {
entry:
  %sleepers.at = getelementptr i8, ptr %pool, i64 $SLEEPERS
  %sleepers = load atomic i64, ptr %sleepers.at monotonic, align 8
  %awake = icmp eq i64 %sleepers, 0
  br i1 %awake, label %out, label %rouse
rouse:
  %limit.at = getelementptr i8, ptr %pool, i64 $LIMIT
  %limit = load atomic i64, ptr %limit.at monotonic, align 8
  call void @rouse(ptr %pool, i64 %limit)
  br label %out
out:
  ret void
}

; The life of a worker, until the pool is stopped.
define void @dilim_worker(ptr %pool, i64 %worker) #0 {
entry:
  %me = add i64 %worker, 1
  %scaled = mul i64 %worker, $LINE
  %place = add i64 %scaled, $WORKERS
  %parked.at = getelementptr i8, ptr %pool, i64 %place
  %lock.at = getelementptr i8, ptr %parked.at, i64 8
  %sleepers.at = getelementptr i8, ptr %pool, i64 $SLEEPERS
  %stop.at = getelementptr i8, ptr %pool, i64 $STOP
  %patience.at = getelementptr i8, ptr %pool, i64 $SPINS
  br label %look
look:
  %spins = phi i64 [ 0, %entry ], [ %spins.next, %idle ], [ 0, %again ]
  %taken = call i64 @share(ptr %pool, i64 %me)
  %stop = load atomic i32, ptr %stop.at monotonic, align 4
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %out, label %stay
stay:
  %worked = icmp ne i64 %taken, 0
  br i1 %worked, label %again, label %idle
idle:
  $PAUSE
  %spins.next = add i64 %spins, 1
  %patience = load i64, ptr %patience.at
  %patient = icmp slt i64 %spins.next, %patience
  br i1 %patient, label %look, label %park
park:  ; say so first, then look once more: whoever publishes does it the other way round
  store atomic i32 1, ptr %parked.at seq_cst, align 4
  %before = atomicrmw add ptr %sleepers.at, i64 1 seq_cst
  %late = call i64 @share(ptr %pool, i64 %me)
  %stop.late = load atomic i32, ptr %stop.at seq_cst, align 4
  %stopped.late = icmp ne i32 %stop.late, 0
  %worked.late = icmp ne i64 %late, 0
  %needed = or i1 %stopped.late, %worked.late
  br i1 %needed, label %back, label %sleep
back:
  %parked = atomicrmw xchg ptr %parked.at, i32 0 seq_cst
  %own = icmp ne i32 %parked, 0
  br i1 %own, label %up, label %sleep
up:
  %down = atomicrmw sub ptr %sleepers.at, i64 1 seq_cst
  br label %again
sleep:
  %acquire.at = getelementptr i8, ptr %pool, i64 $ACQUIRE
  %acquire = load ptr, ptr %acquire.at
  %lock = load ptr, ptr %lock.at
  %acquired = call i32 %acquire(ptr %lock, i32 1)
  br label %again
again:
  br label %look
out:
  ret void
}

; Ends the lives of all of so many workers.
define void @dilim_stop(ptr %pool, i64 %count) #0 {
  %stop.at = getelementptr i8, ptr %pool, i64 $STOP
  store atomic i32 1, ptr %stop.at seq_cst, align 4
  call void @rouse(ptr %pool, i64 %count)
  ret void
}

define void @dilim_pause(i64 %count) #0 {
entry:
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %next, %look ]
  $PAUSE
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %look, label %out
out:
  ret void
}

declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
attributes #0 = { nounwind "no-builtins" }
"""


def write_threads(architecture: str) -> str:
    """The LLVM module of the pool.

    Args:
        architecture: the first part of the target's triple; it decides how a thread is told to be
            patient.
    """
    declaration, pause = _PAUSES.get(architecture, ("", ""))
    text = _TEXT.replace("$DECLARATION", declaration).replace("$PAUSE", pause)
    places = PLACES | {"LINE": LINE}
    for name in sorted(places, key=len, reverse=True):
        text = text.replace(f"${name}", str(places[name]))
    return text
