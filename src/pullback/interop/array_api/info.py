"""The inspection functions of the namespace: its devices and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.errors import ArgumentError
from pullback.interop.array_api.arguments import DEVICE, check_device
from pullback.interop.array_api.data_types import KINDS


class Info:
    """The dtypes, devices and capabilities that ``__array_namespace_info__`` returns."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """Return the capabilities: boolean indexing, shapes that depend on values, and arrays of 64 axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the device of new arrays."""
        return DEVICE

    def default_dtypes(self, *, device: object = None) -> dict[str, Any]:
        """Return the dtypes of new arrays without a dtype.

        device: ``"cpu"`` or None.
        """
        check_device("default_dtypes", device)
        return {
            "real floating": np.float64,
            "complex floating": np.complex128,
            "integral": np.int64,
            "indexing": np.int64,
        }

    def dtypes(self, *, device: object = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """Return the dtypes by their names.

        device: ``"cpu"`` or None.
        kind: one of the kinds of ``isdtype``, several as a tuple, or None for all.
        """
        check_device("dtypes", device)
        kinds = tuple(KINDS) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        unknown = [k for k in kinds if k not in KINDS]
        if unknown:
            raise ArgumentError(f"dtypes: kind must be one of {', '.join(KINDS)}, got {unknown[0]!r}.")
        return {name: dtype for k in kinds for name, dtype in KINDS[k].items()}

    def devices(self) -> tuple[str, ...]:
        """Return the devices."""
        return (DEVICE,)


def __array_namespace_info__() -> Info:  # noqa: N807
    """Return an object that lists what the namespace has: dtypes, devices and capabilities."""
    return Info()
