"""One core and one thread for every library.  Imported before NumPy, whose BLAS counts the cores when it is loaded."""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[_name] = "1"
_flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
if _flags not in os.environ.get("XLA_FLAGS", ""):  # a child process inherits them
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_flags}".strip()
os.environ["JAX_PLATFORMS"] = "cpu"

CORE: int | None = None  # which one; None where the system cannot tell
if hasattr(os, "sched_setaffinity"):
    CORE = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {CORE})
