"""Convolution over chosen axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pullback.typing import Value

Axes = tuple[Sequence[int], Sequence[int]]


def convolve(A: Value, B: Value, axes: Axes | None = None, dot_axes: Axes | None = None, mode: str = "full") -> Any:
    """Return the convolution of two arrays over some axes, summed over others.

    A, B: the arrays.
    axes: the axes of A and those of B that are convolved with each other; all of them if not given.
    dot_axes: the axes of A and those of B that are multiplied and summed.
    mode: "full", "valid" or "same", the size of A.

    The axes of the result are the others of A, the others of B, and the convolved ones.

    >>> convolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0]))
    array([1., 3., 5., 3.])
    """
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"convolve: mode must be 'full', 'valid' or 'same', got {mode!r}.")
    A, B = (x if hasattr(x, "ndim") else np.asarray(x) for x in (A, B))
    own, other = axes if axes is not None else (range(A.ndim), range(A.ndim))
    own_dot, their_dot = dot_axes if dot_axes is not None else ((), ())
    _check_valid(A, B, own, other, mode)
    lengths = [B.shape[j] for j in other]
    pads = _find_pads(A.shape, own, lengths, mode)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(A, pads), tuple(lengths), tuple(own))
    a_names, b_names = list(range(A.ndim)), list(range(A.ndim, A.ndim + B.ndim))
    for i, j in zip(own_dot, their_dot, strict=True):
        b_names[j] = a_names[i]
    kept = [a_names[i] for i in range(A.ndim) if i not in own and i not in own_dot]
    kept += [b_names[j] for j in range(B.ndim) if j not in other and j not in their_dot]
    operands: list[Any] = [windows, a_names + [b_names[j] for j in other], np.flip(B, tuple(other)), b_names]
    return np.einsum(*operands, kept + [a_names[i] for i in own])


def _find_pads(shape: Sequence[int], axes: Sequence[int], lengths: Sequence[int], mode: str) -> list[tuple[int, int]]:
    """Return how many zeros go before and after each axis."""
    pads = [(0, 0)] * len(shape)
    for i, b in zip(axes, lengths, strict=True):
        first, length = _find_window(shape[i], b, mode)
        left = b - 1 - first
        pads[i] = left, length - shape[i] - left + b - 1
    return pads


def _find_window(a: int, b: int, mode: str) -> tuple[int, int]:
    """Return the first place of the full convolution that is kept, and how many are."""
    if mode == "full":
        return 0, a + b - 1
    if mode == "same":
        return (b - 1) // 2, a
    return min(a, b) - 1, abs(a - b) + 1


def _check_valid(A: Value, B: Value, own: Sequence[int], other: Sequence[int], mode: str) -> None:
    longer = [A.shape[i] - B.shape[j] for i, j in zip(own, other, strict=True)]
    if mode == "valid" and any(d > 0 for d in longer) and any(d < 0 for d in longer):
        raise ValueError("One array must be larger than the other along all convolved dimensions")
