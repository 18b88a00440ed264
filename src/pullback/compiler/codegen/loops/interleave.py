"""Elements at small strides as whole vectors: ``x[::2]`` and ``x[1::2]`` are loaded together and taken apart.

That is done by shuffles.  A gather of as many elements takes several times as long.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.compiler.builder import Code


def pick_lanes(code: Code, type_: str, vectors: Sequence[str], lanes: int, place: int) -> str:
    """Return every n-th element of n neighbouring vectors, from the one at ``place`` on."""
    step = len(vectors)
    if step == 1:
        return vectors[0]
    if step % 2 == 0:
        every = range(place % 2, 2 * lanes, 2)
        halves = [code.shuffle(type_, a, b, every) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
        return pick_lanes(code, type_, halves, lanes, place // 2)
    # The lanes of these elements differ, as ``step`` is odd and the number of lanes a power of two.
    places = [i * step + place for i in range(lanes)]
    owner = {p % lanes: p // lanes for p in places}
    both = _blend(code, type_, vectors, [owner[lane] for lane in range(lanes)])
    return code.shuffle(type_, both, "poison", [p % lanes for p in places])


def interleave(code: Code, type_: str, parts: Sequence[str], lanes: int) -> list[str]:
    """Return as many vectors as there are parts, with an element of each part in turn."""
    step = len(parts)
    if step == 1 or lanes == 1:
        return [*parts]
    if step % 2 == 0:
        even, odd = (interleave(code, type_, parts[i::2], lanes) for i in (0, 1))
        halves = [[i // 2 + lanes * (i % 2) for i in range(first, first + lanes)] for first in (0, lanes)]
        return [code.shuffle(type_, a, b, half) for a, b in zip(even, odd, strict=True) for half in halves]
    moved = []
    for place, part in enumerate(parts):
        source = {(i * step + place) % lanes: i for i in range(lanes)}
        moved.append(code.shuffle(type_, part, "poison", [source[lane] for lane in range(lanes)]))
    return [
        _blend(code, type_, moved, [(first * lanes + lane) % step for lane in range(lanes)]) for first in range(step)
    ]


def rotate(code: Code, type_: str, v: str, lanes: int, by: int) -> str:
    """Return a vector whose first lane is the one at ``by``."""
    return code.shuffle(type_, v, "poison", [(lane + by) % lanes for lane in range(lanes)]) if by else v


def _blend(code: Code, type_: str, vectors: Sequence[str], owner: list[int]) -> str:
    """Return each lane from the vector that ``owner`` has for it."""
    lanes, used = len(owner), sorted({*owner})
    found = vectors[used[0]]
    for number in used[1:]:
        chosen = [lane + lanes * (owner[lane] == number) for lane in range(lanes)]
        found = code.shuffle(type_, found, vectors[number], chosen)
    return found
