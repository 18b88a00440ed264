"""The user's arrays that a tape saves for its rules: a gradient must see them as they were when they were used.

A small array is copied.  Of a large one a sample of elements is saved and compared before the backward pass: if the
array was changed in place meanwhile, an error is raised.  A change of single elements outside the sample is not seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.source import find_user_line
from pullback.errors import GradientError

if TYPE_CHECKING:
    from pullback.core.tape import Tape
    from pullback.typing import Array

MAX_COPIED_BYTES = 32 * 1024  # up to this size a copy takes a microsecond or two
SAMPLE_ELEMENTS = 127  # elements, spread evenly
MUTABLE = frozenset({list, np.ndarray})  # types of parameters that the caller can change


def copy_parameter(p: Any) -> Any:
    """Return a copy of a parameter of an op, such as a list of axes, that later changes by the caller do not affect.

    >>> copy_parameter([[0, 1], 2])
    [[0, 1], 2]
    """
    return p.copy() if type(p) is np.ndarray else [copy_parameter(i) if type(i) in MUTABLE else i for i in p]


def capture(a: Array, tape: Tape) -> Any:
    """Return what a tape saves of a user's array: a copy if it is small, else the array itself, to be checked later."""
    if a.nbytes <= MAX_COPIED_BYTES:
        return a.copy()
    tape.captured.append((a, _sample(a), find_user_line()))
    return a


def check_captured(captured: list[tuple[Any, bytes, str]]) -> None:
    """Raise an error if an array was changed after it was captured."""
    for a, before, line in captured:
        if _sample(a) != before:
            raise GradientError(
                f"an array of shape {a.shape} was changed in place after it was used ({line}) and before the gradient "
                "was computed, which needs its old values. Use a copy there: a.copy()."
            )


def _sample(a: Array) -> bytes:
    step = a.size // SAMPLE_ELEMENTS
    picked = a.reshape(-1)[::step] if a.flags.c_contiguous else a[np.unravel_index(range(0, a.size, step), a.shape)]
    sample: bytes = picked.tobytes()
    return sample
