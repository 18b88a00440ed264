"""Environment variables that switch hand-written mechanisms off; each has a portable path beside it.

``docs/design-notes.md`` describes what each mechanism does, what it gains and what it assumes.
"""

from __future__ import annotations

import os

__all__ = ["MECHANISMS", "SAFE", "is_enabled", "list_disabled"]

SAFE = "PULLBACK_SAFE"  # set to 1: everything is off that is not set to 1 itself
OFF = ("0", "off", "no", "false")

# the variable of each mechanism
MECHANISMS = {
    "native entry": "PULLBACK_NATIVE_ENTRY",
    "memory pool": "PULLBACK_MEMORY_POOL",
    "object loader": "PULLBACK_OBJECT_LOADER",
    "thread pool": "PULLBACK_THREAD_POOL",
    "matrix products": "PULLBACK_MATRIX_PRODUCTS",
    "Winograd convolutions": "PULLBACK_WINOGRAD",
    "loop rolling": "PULLBACK_LOOP_ROLLING",
    "deferred slow paths": "PULLBACK_DEFERRED_SLOW_PATHS",
    "compiled draws": "PULLBACK_COMPILED_DRAWS",
    "Fourier transforms": "PULLBACK_FOURIER_TRANSFORMS",
    "eager kernels": "PULLBACK_EAGER_KERNELS",
    "native ops": "PULLBACK_NATIVE_OPS",
    "fused runs": "PULLBACK_FUSED_RUNS",
    "buffer recycling": "PULLBACK_BUFFER_RECYCLING",
    "kept memory": "PULLBACK_KEPT_MEMORY",
    "lazy ops": "PULLBACK_LAZY_OPS",
    "disk cache": "PULLBACK_CACHE",
}


def is_enabled(mechanism: str) -> bool:
    """Return whether a mechanism may be used.

    >>> is_enabled("eager kernels") or "PULLBACK_EAGER_KERNELS" in os.environ or "PULLBACK_SAFE" in os.environ
    True
    """
    value = os.environ.get(MECHANISMS[mechanism], "").lower()
    return value not in OFF and (value != "" or not _is_safe())


def list_disabled() -> tuple[str, ...]:
    """Return the mechanisms that are switched off."""
    values = [(name, os.environ.get(variable, "").lower()) for name, variable in MECHANISMS.items()]
    safe = _is_safe()
    return tuple([name for name, value in values if value in OFF or (safe and not value)])


def _is_safe() -> bool:
    """Return whether everything is off that is not set to 1 itself."""
    return (os.environ.get(SAFE) or "0").lower() not in OFF


def __dir__() -> list[str]:
    return sorted(__all__)
