"""HTML representations of tensors and variables in a notebook."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pullback.display.html import Markup, render_frame, render_text
from pullback.display.pictures import draw_elements
from pullback.typing import Array

MAX_SCANNED = 2**22  # elements whose range is computed: of larger arrays, that of a sample
MAX_LINES = 12  # of values


def show_array(title: object, facts: tuple[object, ...], x: Array) -> Markup:
    """Return HTML for an array: dtype, shape, range, counts of NaN and infinities, colours, and its values.

    >>> page = show_array("Tensor", (), np.array([1.0, np.nan]))
    >>> "float64" in page, "1 NaN" in page, "<svg" in page
    (True, True, True)
    """
    about = [f"{x.dtype}{list(x.shape)}", *facts, *_describe_elements(x)]
    picture = draw_elements(x.real) if x.dtype.kind in "fiubc" and x.size > 1 else ""
    return render_frame(title, about, picture, render_text(_format_values(x), wrap=False))


def _describe_elements(x: Array) -> Iterator[str]:
    """Iterate over the range of the finite elements and the counts of the others."""
    if x.dtype.kind not in "fiu" or x.size < 2:
        return
    sample = x.reshape(-1)[:: -(-x.size // MAX_SCANNED)]
    finite = np.isfinite(sample)
    if finite.any():
        low, high = np.min(sample[finite]), np.max(sample[finite])
        yield f"{'about ' * (sample.size < x.size)}{low:.4g} … {high:.4g}"
    for name, count in (("NaN", np.isnan(sample).sum()), ("infinite", np.isinf(sample).sum())):
        if count:
            yield f"{count} {name}"


def _format_values(x: Array) -> str:
    """Return the text of the elements, at most a dozen lines."""
    with np.printoptions(threshold=200, edgeitems=3, linewidth=100, precision=6):
        lines = str(x).splitlines()
    return "\n".join(lines if len(lines) <= MAX_LINES else [*lines[: MAX_LINES - 4], "...", *lines[-3:]])
