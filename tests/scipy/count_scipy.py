"""Print how many calls of SciPy's functions have right gradients, are refused, or are wrong.

    python tests/scipy/count_scipy.py             all three ways
    python tests/scipy/count_scipy.py array_api   SciPy's own functions, with SCIPY_ARRAY_API=1
    python tests/scipy/count_scipy.py ours        the functions of pb.scipy
    python tests/scipy/count_scipy.py installed   SciPy's own functions after pb.scipy.install()

``--list`` prints what is not right; ``--every N`` takes one call of N.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

WAYS = ("array_api", "ours", "installed")


def count(way: str, every: int = 1, listed: bool = False) -> Counter[str]:
    """Return how many calls are right, refused and wrong."""
    import scipy_calls

    import pullback as pb

    calls = scipy_calls.FIRST if way == "array_api" else [*scipy_calls.FIRST, *scipy_calls.SECOND]
    plain = scipy_calls.load_scipy()
    if way == "installed":
        pb.scipy.install()
    modules = scipy_calls.load_ours() if way == "ours" else scipy_calls.load_scipy()
    total: Counter[str] = Counter(right=0, refused=0, wrong=0)
    for call in calls[::every]:
        verdict, why = scipy_calls.judge(call, modules, plain)
        total[verdict] += 1
        if verdict == "wrong" or (listed and verdict != "right"):
            print(f"{verdict}: {call}\n    {why}")
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", nargs="?", choices=WAYS)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.way is None:
        rest = sys.argv[1:]
        return max(subprocess.call([sys.executable, __file__, way, *rest]) for way in WAYS)
    if options.way == "array_api" and os.environ.get("SCIPY_ARRAY_API") != "1":
        return subprocess.call([sys.executable, *sys.argv], env={**os.environ, "SCIPY_ARRAY_API": "1"})
    sys.path.insert(0, str(Path(__file__).parent))
    total = count(options.way, options.every, options.list)
    print(f"{options.way}: {total.total()} calls, {', '.join(f'{n} {verdict}' for verdict, n in total.items())}")
    return int(total["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
