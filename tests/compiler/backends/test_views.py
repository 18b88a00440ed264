"""Views by strides as reshapes, slices, flips, transposes and broadcasts."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.backends.library import Library
from pullback.compiler.backends.views import decompose_view


def make_view(rng: np.random.Generator) -> tuple[Any, Any]:
    """Return an array and a view of it that is made in a few random steps."""
    whole = np.arange(int(np.prod(shape := rng.integers(1, 6, rng.integers(0, 4))))).reshape(shape)
    view = whole
    for _ in range(rng.integers(0, 4) if view.ndim else 0):
        axis = int(rng.integers(view.ndim))
        begin, step = int(rng.integers(view.shape[axis])), int(rng.integers(1, 4))
        index = (*[slice(None)] * axis, slice(begin, None, step))
        repeated = np.broadcast_to(view, (int(rng.integers(1, 4)), *view.shape))
        changed = (view.transpose(rng.permutation(view.ndim)), view[index], np.flip(view, axis), repeated)
        view = changed[rng.integers(4)]
    return whole, view


def test_view_equals_numpy_view_for_random_slices_flips_transposes_broadcasts() -> None:
    rng = np.random.default_rng(0)
    decomposed = 0
    for _ in range(400):
        whole, view = make_view(rng)
        step = whole.itemsize
        offset = (view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]) // step
        given = view.shape, offset, tuple(s // step for s in view.strides)
        np.testing.assert_array_equal(Library().view(whole, *given), view)
        decomposed += decompose_view(whole.size, *given) is not None
    assert decomposed > 390  # the others are gathered


def test_view_of_overlapping_windows_is_gathered() -> None:
    assert decompose_view(10, (8, 3), 0, (1, 1)) is None
    x = np.arange(10.0)
    np.testing.assert_array_equal(Library().view(x, (8, 3), 0, (1, 1)), np.lib.stride_tricks.sliding_window_view(x, 3))
