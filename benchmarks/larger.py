"""Larger programs as machine code: pb.compile against jax.jit, as their users write them.

Read as the table of compiled.py, which has the small ones.  Every result is compared with that of pullback op by op in
float64 before anything is timed.
"""

from __future__ import annotations

import sys

from comparison import JAX, Suite, main  # before NumPy: it says how many threads a BLAS may use
from larger_programs import list_programs

if __name__ == "__main__":
    sys.exit(main(Suite(__doc__, [*list_programs()], peers=(JAX,))))
