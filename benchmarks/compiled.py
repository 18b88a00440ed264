"""Programs as machine code: pb.compile against jax.jit, torch and torch.compile.

A ratio is the peer's time divided by ours: above 1, pullback is quicker; the bar is what jax.jit's must reach.  Every
contestant's numbers are compared with those of pullback op by op in float64 before anything is timed: WRONG fails the
run.  One core, one thread, process CPU time, medians of the ratios within a round; with --threads 2 wall time.  The
limit is the time in which this machine can move the bytes of arguments and results, or do the matrix products.
"""

from __future__ import annotations

import sys

from comparison import Suite, main  # before NumPy: it says how many threads a BLAS may use
from programs import list_programs

if __name__ == "__main__":
    sys.exit(main(Suite(__doc__, [*list_programs()])))
