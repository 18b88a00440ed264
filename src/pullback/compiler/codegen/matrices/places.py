"""Where the matrices of a batch are in memory."""

from __future__ import annotations

from pullback.compiler.builder import Code
from pullback.compiler.schedule.matrices import MatricesPlan


def find_matrix_offset(code: Code, plan: MatricesPlan, u: str) -> str:
    """Return the offset of the matrix with number ``u``, in elements."""
    place, left = "0", u
    for i in reversed(range(len(plan.batch))):
        length = plan.batch[i]
        at = code.op(f"urem i64 {left}, {length}") if i else left
        left = code.op(f"udiv i64 {left}, {length}") if i else left
        place = code.add(place, code.times(at, plan.strides[i]))
    return place
