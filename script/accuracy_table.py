"""Write docs/accuracy.md: the largest error found of every function on lanes, on more points than tests look at."""

from __future__ import annotations

import math
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import lanes  # noqa: E402

PAGE = ROOT / "docs" / "accuracy.md"
ROUNDS, MANY = 8, 40_000
HEAD = f"""\
# Accuracy of compiled functions

How accurate the functions of compiled programs (`pb.compile`) are, in float32 and float64. `script/accuracy_table.py`
measures the errors and writes this page; a test fails when a function is missing here or is less accurate than the
page says.

Compiled programs use vector functions of their own, the same on every processor except where noted below. The table
has the largest error found, in units in the last place (ulp) of the exact result; 0.5 ulp is the best possible. The
bounds are {lanes.BOUND["f4"]} ulp for float32 and {lanes.BOUND["f8"]} ulp for float64 over the whole range: arguments
of every exponent, and subnormal results.

Signed zeros, infinities and NaN are as NumPy gives them.
"""
FOOT = f"""\
Exact, for all dtypes for which NumPy has the function: {", ".join(f"`{n}`" for n in lanes.EXACT)}.

- **`logaddexp` and `logaddexp2`** add the larger argument and a logarithm, which cancel near 0, in NumPy too. Where
  these terms are larger than the result, the error is measured in ulps of the terms.
- **For large arguments the C library is called**, lane by lane: `sin`, `cos` and `tan` beyond 1e5 (float32) and 1e9
  (float64), `arcsinh` and `arccosh` beyond 1e18 and 1e150, `power` where the base or the result is zero, subnormal or
  not finite, `fmod` and similar functions where the quotient has more digits than a float. Everything else is
  computed in vectors.
- **Powers** with an exponent that is known at compile time are computed by products, roots and quotients if it is a
  whole number from -64 to 64, 0.5, -0.5 or 1.5, within the same bounds. As in NumPy, `x ** 0.5` is the square root
  for -0 and -inf too.
- **Special functions** (`gammaln`, `digamma`, `polygamma` of order 1, `betaln`, `erfc`, `ndtr`, `log_ndtr`, `erfinv`,
  `ndtri`, `i0`, `i0e`, `i1`, `i1e`) are within 8 ulp for positive arguments. For negative arguments this holds for
  all but the first four, of which `digamma` is as accurate where it is not near a zero. Where `betaln` is less than
  1, its error is measured in ulps of 1. At infinities and poles the results are SciPy's.
- **Fused multiply-add.** A product that is followed by a sum may be rounded once instead of twice.
- **Without fused multiply-add** in the processor (before 2013) functions are within the same bounds, and take up to
  three times as long.
"""


def measure_error(name: str, dtype: str) -> float:
    samples = [(0, 4000), *((seed, MANY) for seed in range(ROUNDS))]  # the first are those of the tests
    width = lanes.WIDTHS[dtype][-1]
    return max(lanes.error(name, dtype, width, *lanes.arguments(name, dtype, *which))[0] for which in samples)


def write_page() -> str:
    rows = []
    for name in lanes.ROUNDED:
        found = [measure_error(name, dtype) for dtype in lanes.BOUND]
        print(name, *(f"{e:.3f}" for e in found), flush=True)
        rows.append(f"| `{name}` | " + " | ".join(f"{math.ceil(e * 100) / 100:.2f}" for e in found) + " |")
    table = "\n".join(["| Function | float32 | float64 |", "|---|---|---|", *rows])
    return f"{HEAD}\n{table}\n\n{FOOT}"


if __name__ == "__main__":
    PAGE.write_text(write_page(), "utf-8")
