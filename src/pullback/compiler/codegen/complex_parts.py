"""Functions that split arrays of complex numbers into real and imaginary parts, and join them again."""

from __future__ import annotations

from collections.abc import Callable

from pullback.compiler.builder import FLOATS, Code, code_of, vector
from pullback.compiler.codegen.kernel_code import Function, make_function
from pullback.compiler.ir.graph import Node
from pullback.compiler.target import Target


def emit_split(n: Node, target: Target) -> tuple[Function, frozenset[str]]:
    """Return the function that writes the real parts of complex numbers, and after them the imaginary parts."""
    copier = PartsCopier(n.args[0].size, code_of(n.dtype), target)
    copier.emit(copier.split)
    return make_function(copier.code.body, "ptr noalias %x", "ptr noalias %z"), frozenset(copier.code.declared)


def emit_join(n: Node, target: Target) -> tuple[Function, frozenset[str]]:
    """Return the function that makes complex numbers of two arrays of real and imaginary parts."""
    copier = PartsCopier(n.size, code_of(n.args[0].dtype), target)
    copier.emit(copier.join)
    params = "ptr noalias %x", "ptr noalias %y", "ptr noalias %z"
    return make_function(copier.code.body, *params), frozenset(copier.code.declared)


class PartsCopier:
    """Emits a loop over vectors of complex numbers, and one over the numbers that remain."""

    def __init__(self, count: int, dtype: str, target: Target) -> None:
        self.code, self.count, self.type, self.size = Code(), count, FLOATS[dtype], int(dtype[1])
        self.width = max(1, target.vector_bytes // self.size)

    def emit(self, copy: Callable[[str, int], None]) -> None:
        """Emit the copy of all numbers; ``copy(i, width)`` emits that of one vector from index ``i`` on."""
        whole = self.count // self.width * self.width
        for start, stop, width in ((0, whole, self.width), (whole, self.count, 1)):
            if start < stop:
                with self.code.loop(str(start), stop, width) as i:
                    copy(i, width)

    def split(self, i: str, width: int) -> None:
        """Copy real parts to the first half of ``%z``, and imaginary parts to the second."""
        both = self._load("%x", self.code.times(i, 2), 2 * width)
        for part in range(2):
            some = self._shuffle(both, both, 2 * width, [*range(part, 2 * width, 2)])
            self._store(some, "%z", self.code.add(i, str(part * self.count)), width)

    def join(self, i: str, width: int) -> None:
        """Copy a real part from ``%x`` and an imaginary part from ``%y`` to neighbours in ``%z``."""
        if width == 1:
            for part, base in enumerate(("%x", "%y")):
                self._store(self._load(base, i, 1), "%z", self.code.add(self.code.times(i, 2), str(part)), 1)
            return
        re, im = (self._load(base, i, width) for base in ("%x", "%y"))
        lanes = [place for k in range(width) for place in (k, width + k)]
        self._store(self._shuffle(re, im, width, lanes), "%z", self.code.times(i, 2), 2 * width)

    def _shuffle(self, x: str, y: str, width: int, lanes: list[int]) -> str:
        type_ = vector(self.type, width)
        if len(lanes) == 1:
            return self.code.op(f"extractelement {type_} {x}, i64 {lanes[0]}")
        return self.code.shuffle(type_, x, y, lanes)

    def _load(self, base: str, place: str, width: int) -> str:
        return self.code.read(self.code.at(self.type, base, place), self.type, self.size, width, None)

    def _store(self, value: str, base: str, place: str, width: int) -> None:
        self.code.write(value, self.code.at(self.type, base, place), self.type, self.size, width, None)
