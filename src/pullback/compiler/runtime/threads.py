"""Kernels by several threads: every thread that is free claims the next part.

The parts of a kernel and the order in which their sums are added are fixed when it is compiled, so the numbers do not
depend on how many threads there are, nor on which of them computes what.  The calling thread takes part; it waits only
for parts that another thread has begun.  One kernel at a time uses the threads; a second one that is called meanwhile,
by another thread of the interpreter, computes all its parts itself.

The state of the pool is one word, ``how many may take part`` and ``how many parts are left``: a thread that lowers it
by one has a part.  Threads that have had nothing to do for a while sleep until the ``ticket`` changes (a futex, so this
is for Linux; elsewhere the parts are computed one after the other).  Waking a thread takes longer than many kernels, so
short kernels use only threads that are awake, and a program that is long enough wakes all when it begins (``rouse``).
They are threads of the system, not of the interpreter: they hold none of its locks, and it can end while they sleep.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from functools import lru_cache
from typing import Any

from pullback.compiler.runtime.disk_cache import get_default_cache
from pullback.compiler.runtime.guard_pages import Guards
from pullback.compiler.runtime.llvm import get_code
from pullback.compiler.target import Options, get_machine
from pullback.errors import ArgumentError
from pullback.settings import is_enabled, list_disabled

MAX_THREADS = 255  # they must fit in the word with the parts
SPIN = 2000  # looks at the ticket before a thread goes to sleep
FUTEX = {"x86_64": 202, "aarch64": 98}
PAUSE = {"x86_64": "call void @llvm.x86.sse2.pause()", "aarch64": "call void @llvm.aarch64.hint(i32 1)"}
DECLARED_PAUSE = {"x86_64": "declare void @llvm.x86.sse2.pause()", "aarch64": "declare void @llvm.aarch64.hint(i32)"}

# Each on a cache line of its own: work, done, ticket, sleepers, busy; then the job, and how many threads are wanted.
STATE = (ctypes.c_int64 * 72)()
_BASE = -(-ctypes.addressof(STATE) // 64) * 64
PLACES = {
    "work": 0, "done": 64, "ticket": 128, "sleepers": 192, "busy": 256, "task": 320, "context": 328, "parts": 336,
    "wanted": 384, "started": 392,
}  # fmt: skip

TEXT = """
@pool = external global i8
declare i64 @syscall(i64, ...)
declare i32 @sched_yield()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
DECLARED_PAUSE

define internal void @claim(i64 %me) noinline {
start:
  ADDRESSES
  br label %look
look:
  %word = load atomic i64, ptr %work acquire, align 8
  %left = and i64 %word, 4294967295
  %may = lshr i64 %word, 32
  %some = icmp ne i64 %left, 0
  %mine = icmp ult i64 %me, %may
  %both = and i1 %some, %mine
  br i1 %both, label %try, label %out
try:
  %less = sub i64 %word, 1
  %tried = cmpxchg ptr %work, i64 %word, i64 %less acq_rel acquire
  %won = extractvalue {i64, i1} %tried, 1
  br i1 %won, label %do, label %look
do:
  %function = load ptr, ptr %task
  %argument = load ptr, ptr %context
  %all = load i64, ptr %parts
  %part = sub i64 %all, %left
  call void %function(ptr %argument, i64 %part, i64 %me)
  %before = atomicrmw add ptr %done, i64 1 acq_rel
  br label %look
out:
  ret void
}

define internal ptr @worker(ptr %number) {
start:
  ADDRESSES
  %me = ptrtoint ptr %number to i64
  br label %ready
ready:
  %seen = load atomic i32, ptr %ticket seq_cst, align 4
  call void @claim(i64 %me)
  br label %watch
watch:
  %k = phi i32 [0, %ready], [%k.next, %again]
  %now = load atomic i32, ptr %ticket acquire, align 4
  %changed = icmp ne i32 %now, %seen
  br i1 %changed, label %ready, label %again
again:
  PAUSE
  %k.next = add i32 %k, 1
  %awake = icmp ult i32 %k.next, SPIN
  br i1 %awake, label %watch, label %sleep
sleep:
  %more = atomicrmw add ptr %sleepers, i64 1 seq_cst
  %slept = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %ticket, i64 128, i32 %seen, ptr null)
  %fewer = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  br label %ready
}

define internal void @start_workers(i64 %wanted.now) noinline {
start:
  ADDRESSES
  %thread = alloca i64
  %none = alloca [128 x i8], align 8
  %old = alloca [128 x i8], align 8
  %there = load i64, ptr %started
  %enough = icmp sge i64 %there, %wanted.now
  br i1 %enough, label %out, label %begin
begin:
  call void @llvm.memset.p0.i64(ptr %none, i8 -1, i64 128, i1 false)
  %masked = call i32 @pthread_sigmask(i32 2, ptr %none, ptr %old)
  br label %next
next:
  %n = phi i64 [%there, %begin], [%n.next, %made]
  %all = icmp sge i64 %n, %wanted.now
  br i1 %all, label %end, label %make
make:
  %n.next = add i64 %n, 1
  %number = inttoptr i64 %n.next to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %number)
  %bad = icmp ne i32 %failed, 0
  br i1 %bad, label %end, label %made
made:
  store i64 %n.next, ptr %started
  %id = load ptr, ptr %thread
  %alone = call i32 @pthread_detach(ptr %id)
  br label %next
end:
  %unmasked = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  br label %out
out:
  ret void
}

define void @rouse(i64 %most) {
start:
  ADDRESSES
  %asleep = load atomic i64, ptr %sleepers seq_cst, align 8
  %all.awake = icmp eq i64 %asleep, 0
  br i1 %all.awake, label %out, label %look
look:
  %requested = load i64, ptr %wanted
  %own = icmp slt i64 %most, 0
  %negative = sub i64 0, %most
  %setting = select i1 %own, i64 %negative, i64 %requested
  %helpers = sub i64 %setting, 1
  %some = icmp sgt i64 %helpers, 0
  br i1 %some, label %wake, label %out
wake:
  %was = atomicrmw add ptr %ticket, i32 1 seq_cst
  %woken = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %ticket, i64 129, i64 %helpers)
  br label %out
out:
  ret void
}

define void @parallel(ptr %function, ptr %argument, i64 %count, i64 %most, i1 %waking) {
start:
  ADDRESSES
  %requested = load i64, ptr %wanted
  %own = icmp slt i64 %most, 0
  %negative = sub i64 0, %most
  %bound = select i1 %own, i64 %negative, i64 %most
  %setting = select i1 %own, i64 %bound, i64 %requested
  %less = icmp slt i64 %setting, %bound
  %limit.1 = select i1 %less, i64 %setting, i64 %bound
  %few = icmp slt i64 %count, %limit.1
  %limit = select i1 %few, i64 %count, i64 %limit.1
  %single = icmp sle i64 %limit, 1
  br i1 %single, label %alone, label %shared
shared:
  %got = cmpxchg ptr %busy, i64 0, i64 1 acq_rel acquire
  %free = extractvalue {i64, i1} %got, 1
  br i1 %free, label %open, label %alone
open:
  %helpers = sub i64 %limit, 1
  call void @start_workers(i64 %helpers)
  store ptr %function, ptr %task
  store ptr %argument, ptr %context
  store i64 %count, ptr %parts
  store atomic i64 0, ptr %done release, align 8
  %high = shl i64 %limit, 32
  %word = or i64 %high, %count
  store atomic i64 %word, ptr %work seq_cst, align 8
  %was = atomicrmw add ptr %ticket, i32 1 seq_cst
  %asleep = load atomic i64, ptr %sleepers seq_cst, align 8
  %some.asleep = icmp ne i64 %asleep, 0
  %are.woken = and i1 %some.asleep, %waking
  br i1 %are.woken, label %wake, label %mine
wake:
  %woken = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %ticket, i64 129, i64 %helpers)
  br label %mine
mine:
  call void @claim(i64 0)
  br label %wait
wait:
  %k = phi i32 [0, %mine], [%k.next, %again], [0, %yield]
  %finished = load atomic i64, ptr %done acquire, align 8
  %complete = icmp eq i64 %finished, %count
  br i1 %complete, label %close, label %again
again:
  PAUSE
  %k.next = add i32 %k, 1
  %patient = icmp ult i32 %k.next, 500
  br i1 %patient, label %wait, label %yield
yield:
  %yielded = call i32 @sched_yield()
  br label %wait
close:
  store atomic i64 0, ptr %busy release, align 8
  ret void

alone:
  %i = phi i64 [0, %start], [0, %shared], [%i.next, %alone]
  call void %function(ptr %argument, i64 %i, i64 0)
  %i.next = add i64 %i, 1
  %left = icmp slt i64 %i.next, %count
  br i1 %left, label %alone, label %over
over:
  ret void
}
"""


def write_text(machine: str) -> str:
    """Return the LLVM module of the pool for a kind of CPU."""
    addresses = "\n  ".join(f"%{name} = getelementptr i8, ptr @pool, i64 {at}" for name, at in PLACES.items())
    words = {"DECLARED_PAUSE": DECLARED_PAUSE[machine], "PAUSE": PAUSE[machine], "ADDRESSES": addresses,
             "FUTEX": str(FUTEX[machine]), "SPIN": str(SPIN)}  # fmt: skip
    return re.sub(r"\b[A-Z_]{4,}\b", lambda found: words[found[0]], TEXT)


def has_threads() -> bool:
    """Return whether compiled programs can use threads here."""
    return is_enabled("thread pool") and sys.platform == "linux" and get_machine() in FUTEX


@lru_cache(1)
def get_pool() -> dict[str, int]:
    """Return the addresses of the functions that run the parts of a kernel, and that wake threads."""
    loaded, _ = get_code(write_text(get_machine()), ["parallel", "rouse"], {"pool": _BASE}, get_default_cache())
    # Threads may be in this code, and look at the state, when everything else is gone: both must be there for ever.
    loaded.keep()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(STATE))
    os.register_at_fork(after_in_child=_forget)
    _set_word("wanted", get_num_threads())
    return loaded.addresses


def _set_word(name: str, value: int) -> None:
    ctypes.c_int64.from_address(_BASE + PLACES[name]).value = value


def _forget() -> None:
    """Forget the threads after a fork: the new process has none of them, and starts its own when needed."""
    for name in ("work", "done", "sleepers", "busy", "started"):
        _set_word(name, 0)


def count_usable_cpus() -> int:
    """Return how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, min(len(os.sched_getaffinity(0)), MAX_THREADS))
    return max(1, min(os.cpu_count() or 1, MAX_THREADS))


_chosen: list[int] = []


def get_num_threads() -> int:
    """Return how many threads a compiled program may use: OMP_NUM_THREADS, or all processors, unless it was set.

    >>> pb.get_num_threads() >= 1
    True
    """
    if _chosen:
        return _chosen[-1]
    setting = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(int(setting), MAX_THREADS) if setting.isdigit() and int(setting) else count_usable_cpus()


def set_num_threads(n: int) -> None:
    """Let compiled programs use ``n`` threads.  The numbers they give are the same for any ``n``.

    BLAS has a setting of its own, which is left alone.

    >>> before = pb.get_num_threads()
    >>> pb.set_num_threads(1)
    >>> pb.get_num_threads()
    1
    >>> pb.set_num_threads(before)
    """
    _chosen[:] = [check_thread_count("set_num_threads(n): n", n)]
    _set_word("wanted", n)


def check_thread_count(subject: str, n: Any) -> int:
    """Return a number of threads, or raise ArgumentError if it is none."""
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MAX_THREADS:
        raise ArgumentError(f"{subject} must be a whole number from 1 to {MAX_THREADS}, got {n!r}.")
    return n


def choose_options(threads: int | None) -> Options:
    """Return the options of programs that are compiled now, for ``threads`` threads, or as many as are set."""
    wanted = -threads if threads is not None else max(count_usable_cpus(), get_num_threads())
    guarded, disabled = Guards().on, list_disabled()
    slow = guarded or "deferred slow paths" in disabled
    return Options(wanted if has_threads() else 1, guarded, has_slow_paths=slow, disabled=disabled)
