"""Print what pullback runs on: versions, CPU features, BLAS, threads."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from pullback import __version__
from pullback.compiler.runtime.disk_cache import describe_cache
from pullback.compiler.runtime.llvm import llvm_available
from pullback.compiler.runtime.threads import get_num_threads
from pullback.compiler.target import MAX_ISA, find_blas, get_target
from pullback.core.memory import TRUSTED
from pullback.core.op import list_ops
from pullback.errors import CompileError
from pullback.settings import list_disabled

THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def find_version(package: str) -> str:
    """Return the version of an installed package, or "absent".

    >>> find_version("no-such-package")
    'absent'
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def describe_target() -> str:
    """Return the instruction set that programs are compiled for, and what the CPU lacks."""
    try:
        target = get_target()
    except CompileError as error:
        return str(error)
    capped = f" (by {MAX_ISA})" if target.cpu else ""
    lacks = [] if target.has_fma else ["no FMA: functions take up to three times as long"]
    if not find_blas():
        lacks.append("no OpenBLAS in NumPy's package: large matrix products are slower")
    return "; ".join([f"{target}{capped}", *lacks])


def collect_facts() -> dict[str, str]:
    """Return everything that ``pullback info`` prints, by name.

    >>> collect_facts()["numpy"] == np.__version__
    True
    """
    config: Any = np.show_config(mode="dicts")
    simd = config.get("SIMD Extensions", {})
    blas = config.get("Build Dependencies", {}).get("blas", {})
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limits = [f"{name}={os.environ[name]}" for name in THREAD_LIMITS if name in os.environ]
    return {
        "pullback": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()}, {platform.system()})",
        "numpy": np.__version__,
        "llvmlite": find_version("llvmlite"),
        "scipy": find_version("scipy"),
        "ops": str(len(list_ops())),
        "cpu": platform.machine(),
        "cpu features": " ".join([*simd.get("baseline", ()), *simd.get("found", ())]) or "unknown",
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "threads": f"{usable} of {os.cpu_count()} cores usable; {', '.join(limits) or 'BLAS threads not limited'}",
        "compiled by": f"machine code, {get_num_threads()} threads" if llvm_available() else "NumPy: no llvmlite",
        "compiled for": describe_target() if llvm_available() else "nothing: no llvmlite",
        "compiled code": describe_cache(),
        "switched off": ", ".join(list_disabled()) or "nothing",
        "recycled buffers": "on" if TRUSTED else "off: this interpreter's reference counts cannot be trusted",
    }


def run() -> int:
    """Print the facts; return the exit status."""
    for name, fact in collect_facts().items():
        print(f"{name:<18}{fact}")
    return 0
