"""The CPU that code is compiled for: the one place that knows what it has.

``PULLBACK_MAX_ISA`` caps it: with ``avx2`` a CPU that has AVX-512 is given code that runs, and can be tested, where
there is only AVX2.
"""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pullback.errors import CompileError

__all__ = [
    "ALIGN", "MAX_ISA", "Options", "Target", "cpu_features", "get_target", "isa_names", "list_targets", "own_target",
]  # fmt: skip

MAX_ISA = "PULLBACK_MAX_ISA"
ALIGN = 64  # bytes of a cache line, to which memory is aligned


class Target(NamedTuple):
    """What code is compiled for."""

    isa: str
    vector_bytes: int  # in a register
    registers: int  # for vectors
    has_fma: bool  # else a product and a sum rounded once are a call of the C library
    has_masked_stores: bool  # else lanes are stored one by one
    cpu: str = ""  # as LLVM names it; none: the one that this runs on, with all that it has
    features: str = ""  # what it has besides
    triple: str = ""  # none: the platform that this runs on

    def __str__(self) -> str:
        return f"{self.isa}, {self.vector_bytes * 8} bits, {self.registers} registers"


class Options(NamedTuple):
    """What else code depends on, besides the program and the target."""

    threads: int = 1  # at most; a negative number: exactly, whatever is set for all programs
    guarded: bool = False  # every value between guard pages, for tests


# In order: who has one has those before it.
X86 = (
    Target("sse2", 16, 16, False, False, "x86-64"),
    Target("sse4", 16, 16, False, False, "x86-64-v2"),
    Target("avx", 16, 16, False, True, "x86-64-v2", "+avx"),  # its integers have 128 bits
    Target("avx2", 32, 16, True, True, "x86-64-v3"),
    Target("avx512", 64, 32, True, True, "x86-64-v4"),
)
ARM = (Target("neon", 16, 32, True, False, "generic", "+neon"),)
FEATURE = {"sse4": "SSE42", "avx": "AVX", "avx2": "AVX2", "avx512": "AVX512F"}  # as NumPy names them


def cpu_features() -> frozenset[str]:
    """What NumPy found that the CPU has; LLVM knows it too, but its import takes longer than loading a program."""
    found: dict[str, bool] = getattr(np._core._multiarray_umath, "__cpu_features__", {})  # type: ignore[attr-defined]
    return frozenset(name for name, there in found.items() if there)


def list_targets(machine: str = "", features: Any = None) -> list[Target]:
    """The targets whose code this CPU can run, the widest one, which is the CPU itself, last.

    >>> [t.isa for t in list_targets("x86_64", {"SSE42", "AVX", "AVX2", "FMA3"})]
    ['sse2', 'sse4', 'avx', 'avx2']
    """
    machine = (machine or platform.machine()).lower()
    features = cpu_features() if features is None else features
    known = ARM if machine in ("aarch64", "arm64") else X86
    *others, own = [t for t in known if t.isa not in FEATURE or FEATURE[t.isa] in features]
    fma = own.has_fma if known is ARM else bool({"FMA3", "AVX512F"} & {*features})
    return [*others, own._replace(has_fma=fma, cpu="", features="")]


def own_target() -> Target:
    """This CPU with all that it has."""
    return list_targets()[-1]


def isa_names() -> list[str]:
    """What ``PULLBACK_MAX_ISA`` may be on this kind of CPU."""
    return [t.isa for t in (ARM if platform.machine().lower() in ("aarch64", "arm64") else X86)]


def get_target() -> Target:
    """The target of programs that are compiled now: this CPU, or less if ``PULLBACK_MAX_ISA`` says so."""
    return _cap(os.environ.get(MAX_ISA, ""))


@lru_cache(8)
def _cap(isa: str) -> Target:
    here, names = list_targets(), isa_names()
    if isa and isa.lower() not in names:
        raise CompileError(f"{MAX_ISA}={isa} is not known here: choose one of {', '.join(names)}, or unset it.")
    most = names.index(isa.lower()) if isa else len(names)
    return [t for t in here if names.index(t.isa) <= most][-1]
