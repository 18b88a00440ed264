"""Names that users write: converted to snake case, and the nearest known name for error messages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

MIN_SIMILARITY = 0.5  # names that are less alike are no help


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a sentence that proposes up to three names, to be added to a message; nothing if none is like ``name``.

    >>> did_you_mean("mean_square_eror", ["mean_squared_error", "hinge"])
    " Did you mean 'mean_squared_error'?"
    >>> did_you_mean("xyz", ["mean_squared_error", "hinge"])
    ''
    """
    if not isinstance(name, str):
        return ""
    likeness = {other: _likeness(name.lower(), other.lower()) for other in known}
    near = [other for other in likeness if likeness[other] > MIN_SIMILARITY]
    near = sorted(near, key=lambda other: -likeness[other])[:3]
    best = [other for other in near if likeness[other] > 0.8 * likeness[near[0]]]
    return f" Did you mean {' or '.join(map(repr, best))}?" if best else ""


@lru_cache(1024)
def snake_case(name: str) -> str:
    """Return a name in snake case.

    >>> snake_case("meanSquaredError")
    'mean_squared_error'
    """
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def _likeness(name: str, other: str) -> float:
    """Return 1 minus the share of letters that must be changed to get from one name to the other."""
    a, b = (n.replace("_", "").replace(" ", "") for n in (name, other))
    before, last = list(range(len(b) + 1)), list(range(len(b) + 1))
    for i in range(1, len(a) + 1):
        row = [i]
        for j in range(1, len(b) + 1):
            best = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                best = min(best, before[j - 2] + 1)
            row.append(best)
        before, last = last, row
    return 1 - last[-1] / max(len(a), len(b), 1)
