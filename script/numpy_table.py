"""Write the table of NumPy's functions into docs/numpy.md, from calls that are judged by finite differences.

With ``--check``, only say whether it has a row for every function that NumPy has.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "interop"))

import numpy_calls  # noqa: E402

PAGE = ROOT / "docs" / "numpy.md"
BEGIN, END = "<!-- begin: written by script/numpy_table.py -->", "<!-- end -->"
# What to write instead of what is refused; NumPy does not let a tensor take part in these.
INSTEAD = {
    "np.array": "`np.stack`, `pb.array`; of traced numbers it works",
    "np.asarray": "`pb.asarray`",
    "np.asanyarray": "`pb.asarray`",
    "np.ascontiguousarray": "leave it out",
    "np.asfortranarray": "leave it out",
    "np.asarray_chkfinite": "`pb.asarray`",
    "np.arange": "`start + step * np.arange(n)`",
    "np.tri": "`np.tril(np.ones(...))`",
    "np.kaiser": "`np.i0(beta * np.sqrt(1 - r**2)) / np.i0(beta)`",
    **dict.fromkeys(["np.tril_indices", "np.triu_indices", "np.diag_indices"], "a number of rows is an integer"),
    "np.polynomial": "`np.polyval`, `np.polyfit`, or sums of powers; values `x` may be tensors",
}


def judge_names() -> dict[str, Counter[str]]:
    """Return how many calls of each function, method and ufunc are right, refused and so on."""
    found: dict[str, Counter[str]] = {}
    for call in numpy_calls.derive_calls():
        found.setdefault(call.name, Counter())[numpy_calls.judge(call)[0]] += 1
    return found


def describe(name: str, counts: Counter[str]) -> str:
    """Return what a program can expect of a function, in a few words."""
    right, refused = counts["right"] + counts["no gradient"], counts["refused"] + counts["broken"]
    cure = INSTEAD.get(name) or next((v for k, v in INSTEAD.items() if name.startswith(f"{k}.")), "")
    if refused and not right:
        return f"refused: {cure}" if cure else "refused"
    if not counts["right"] and not refused:
        return "no gradient: the result does not depend on values continuously"
    return "right" if not refused else "right, unusual arguments refused"


def write_table() -> str:
    """Return the section with the table, in groups of functions of which the same is said."""
    groups: dict[str, list[str]] = {}
    for name, counts in judge_names().items():
        groups.setdefault(describe(name, counts), []).append(f"`{name}`")
    rows = [f"| {what} | {', '.join(names)} |" for what, names in sorted(groups.items())]
    return "\n".join([BEGIN, "", "| gradients | functions |", "|---|---|", *rows, "", END])


def list_missing() -> list[str]:
    """Return the functions of NumPy that the page does not name."""
    names = {name for name, _ in numpy_calls.list_functions() if name.count(".") == 1 and name.startswith("np.")}
    page = PAGE.read_text("utf-8")
    absent = [name for name in sorted(names) if f"`{name}`" not in page]
    return [name for name in absent if any(call.name == name for call in numpy_calls.derive_calls(name))]


def main() -> int:
    if "--check" in sys.argv:
        missing = list_missing()
        print("\n".join(missing) or "up to date")
        return 1 if missing else 0
    page = PAGE.read_text("utf-8")
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: write_table(), page, flags=re.DOTALL), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
