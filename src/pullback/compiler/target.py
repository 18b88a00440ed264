"""The CPU that code is compiled for: the one module that finds out what it has.

``PULLBACK_MAX_ISA`` lowers it: with ``avx2``, programs on a CPU with AVX-512 use what a CPU with AVX2 has.
"""

from __future__ import annotations

import ctypes
import os
import platform
from functools import lru_cache
from itertools import takewhile
from math import log2
from typing import Any, NamedTuple

import numpy as np

from pullback.errors import CompileError

MAX_ISA = "PULLBACK_MAX_ISA"
USUAL_SECOND_CACHE = 1024 * 1024  # bytes, where the system does not report them
LINE_BYTES = 64  # of a cache line, to which memory is aligned
CACHE_SETS = 64  # of the first-level cache
CONFLICT_BYTES = 1024  # lines at a multiple of this distance are often in few sets of the first-level cache


class Target(NamedTuple):
    """What code is compiled for: an instruction set, and what the compiler uses of it."""

    isa: str
    vector_bytes: int  # of a vector register
    registers: int  # vector registers
    has_fma: bool  # else a fused multiply-add is a call of the C library
    has_masked_stores: bool  # and masked loads; else lanes are loaded and stored one by one
    cpu: str = ""  # as LLVM names it; empty: the one that this runs on, with all that it has
    features: str = ""  # that LLVM may use besides
    triple: str = ""  # empty: the platform that this runs on
    first_cache: int = 32 * 1024  # bytes for data: x86 CPUs have as many, or half as many again
    second_cache: int = USUAL_SECOND_CACHE  # bytes of each core's
    has_blas: bool = True  # OpenBLAS is in NumPy's own package; else all matrix products are code of ours

    def __str__(self) -> str:
        return f"{self.isa}, {self.vector_bytes * 8} bits, {self.registers} registers"


class Options(NamedTuple):
    """Options of a compilation: threads, checks for tests, slow paths, and the mechanisms that are switched off."""

    threads: int = 1  # at most; a negative number: exactly, whatever is set for all programs
    guarded: bool = False  # every value between guard pages, for tests
    separate_steps: bool = False  # every step a function of its own, which can be timed
    has_slow_paths: bool = False  # for rare arguments; else code tells that it needs them, and is compiled again
    disabled: tuple[str, ...] = ()  # mechanisms of ``pullback.settings`` that are switched off

    def is_enabled(self, mechanism: str) -> bool:
        """Return whether the code may use a mechanism."""
        return mechanism not in self.disabled


# In order: a CPU that has one has those before it.
X86 = (
    Target("sse2", 16, 16, False, False, "x86-64"),
    Target("sse4", 16, 16, False, False, "x86-64-v2"),
    Target("avx", 16, 16, False, True, "x86-64-v2", "+avx"),  # its integers have 128 bits
    Target("avx2", 32, 16, True, True, "x86-64-v3"),
    Target("avx512", 64, 32, True, True, "x86-64-v4"),
)
ARM = (Target("neon", 16, 32, True, False, "generic", "+neon"),)
CPUINFO = "/proc/cpuinfo"
SECOND_CACHE = "/sys/devices/system/cpu/cpu0/cache/index2/size"  # such as "1280K"; always of the first core
MIN_SECOND_CACHE, MAX_SECOND_CACHE = 2**18, 2**21  # bytes; larger ones are shared by several cores
SAME_FOR_ALL = ("vendor_id", "cpu family", "model", "stepping", "flags", "CPU ", "Features")  # lines of /proc/cpuinfo
ROUTINES = {  # of OpenBLAS in NumPy's package: their names, and their symbols for a letter
    **{name: f"scipy_cblas_{{}}{name}64_" for name in ("gemm", "gemv", "trmm", "trsm", "trsv")},
    **{
        name: f"scipy_{{}}{name}_64_"
        for name in ("potrf", "getrf", "getri", "getrs", "syevd", "gesdd", "geqrf", "orgqr")
    },
}
FEATURE = {"sse4": "SSE42", "avx": "AVX", "avx2": "AVX2", "avx512": "AVX512F"}  # as NumPy names them


def get_machine() -> str:
    """Return the CPU architecture, as Python names it."""
    return platform.machine().lower()


def is_arm() -> bool:
    """Return whether this is an ARM CPU of 64 bits."""
    return get_machine() in ("aarch64", "arm64")


def is_x86() -> bool:
    """Return whether this is an x86 CPU of 64 bits."""
    return get_machine() in ("x86_64", "amd64")


def read_cpuinfo() -> str:
    """Return what Linux reports of the first core, as of all cores of one machine; empty where it does not."""
    try:
        with open(CPUINFO) as file:
            first = "".join(takewhile(str.strip, file))
    except OSError:
        return ""
    return "\n".join(line for line in first.splitlines() if line.startswith(SAME_FOR_ALL))


@lru_cache(4)
def read_second_cache(path: str) -> int:
    """Return the bytes of the second-level cache as Linux reports them, rounded down to a power of two; else 1 MB."""
    try:
        with open(path) as file:
            size = 1024 * int(file.read().strip().removesuffix("K"))
    except (OSError, ValueError):
        return USUAL_SECOND_CACHE
    return min(max(1 << int(log2(max(size, 1))), MIN_SECOND_CACHE), MAX_SECOND_CACHE)


def get_cpu_features() -> frozenset[str]:
    """Return the features of the CPU that NumPy found; LLVM finds them too, but takes longer to import."""
    found: dict[str, bool] = getattr(np._core._multiarray_umath, "__cpu_features__", {})  # type: ignore[attr-defined]
    return frozenset(name for name, is_present in found.items() if is_present)


def has_numpy_avx512() -> bool:
    """Return whether NumPy has functions in machine code for AVX-512, and may use them."""
    return "AVX512_SKX" in get_cpu_features()


def find_llvm_cpu(target: Target, llvm: Any) -> tuple[str, str]:
    """Return the name of a target's CPU and its features, as LLVM names them; ``llvm`` is ``llvmlite.binding``."""
    if target.cpu:
        return target.cpu, target.features
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def list_targets(machine: str = "", features: Any = None) -> list[Target]:
    """Return the targets whose code this CPU can run, in order; the last one is the CPU itself.

    >>> [t.isa for t in list_targets("x86_64", {"SSE42", "AVX", "AVX2", "FMA3"})]
    ['sse2', 'sse4', 'avx', 'avx2']
    """
    machine = machine or get_machine()
    features = get_cpu_features() if features is None else features
    known = ARM if machine in ("aarch64", "arm64") else X86
    *others, own = [t for t in known if t.isa not in FEATURE or FEATURE[t.isa] in features]
    fma = own.has_fma if known is ARM else bool({"FMA3", "AVX512F"} & {*features})
    cache = read_second_cache(SECOND_CACHE)
    return [t._replace(second_cache=cache) for t in (*others, own._replace(has_fma=fma, cpu="", features=""))]


def get_own_target() -> Target:
    """Return the target for this CPU with all that it has."""
    return list_targets()[-1]


def list_isa_names() -> list[str]:
    """Return what ``PULLBACK_MAX_ISA`` may be on this architecture."""
    return [t.isa for t in (ARM if is_arm() else X86)]


def get_target() -> Target:
    """Return the target of programs that are compiled now: this CPU, or less if ``PULLBACK_MAX_ISA`` is set."""
    return _cap(os.environ.get(MAX_ISA, ""))._replace(has_blas=bool(find_blas()))


@lru_cache(8)
def _cap(isa: str) -> Target:
    runnable, names = list_targets(), list_isa_names()
    if isa and isa.lower() not in names:
        raise CompileError(f"{MAX_ISA}={isa} is not known here: choose one of {', '.join(names)}, or unset it.")
    most = names.index(isa.lower()) if isa else len(names)
    return [t for t in runnable if names.index(t.isa) <= most][-1]


@lru_cache(1)
def find_blas() -> dict[str, int]:
    """Return the addresses of the routines of NumPy's own OpenBLAS; empty if they cannot be found."""
    package = os.path.dirname(np.__file__)
    for folder in (os.path.join(os.path.dirname(package), "numpy.libs"), os.path.join(package, ".dylibs")):
        for file in os.listdir(folder) if os.path.isdir(folder) else []:
            if "openblas" not in file:
                continue
            try:
                found = {}
                loaded = ctypes.CDLL(os.path.join(folder, file))
                for letter in "sd":
                    for name, symbol in ROUTINES.items():
                        function: Any = getattr(loaded, symbol.format(letter))
                        found[f"{letter}{name}"] = ctypes.cast(function, ctypes.c_void_p).value or 0
                return found
            except (OSError, AttributeError):
                continue
    return {}
