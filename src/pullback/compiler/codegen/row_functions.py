"""Kernels of functions of whole rows: positions of the largest elements, and binary search in a sorted row."""

from __future__ import annotations

from collections.abc import Callable

from pullback.compiler.builder import TYPES, Code, Value, code_of, splat, vector
from pullback.compiler.codegen.kernel_code import RANGE, KernelCode, make_kernel
from pullback.compiler.schedule.rows import RowsPlan


def emit_rows(plan: RowsPlan) -> KernelCode:
    """Return the kernel of a function of rows; its arrays are the arguments and the result."""
    code = Code()
    KERNELS[plan.node.data[0].lower.symbol](code, plan)
    arrays = [f"ptr noalias %a{i}" for i in range(len(plan.node.args))]
    return make_kernel(code, *arrays, "ptr noalias %z", *RANGE)


# ---- the largest elements


class LargestWriter:
    """Emits the search for the positions of the k largest elements of each row; of equal elements the first is first.

    The k largest so far are kept sorted in scratch memory: their keys (see ``_make_key``), and their positions.  A
    vector of which no element is larger than the last of them is skipped.
    """

    def __init__(self, code: Code, plan: RowsPlan) -> None:
        (x,) = plan.node.args
        self.code, self.size = code, x.dtype.itemsize
        self.length, self.k = x.shape[-1], plan.node.shape[-1]
        self.width = max(1, plan.target.vector_bytes // self.size)
        self.dtype = "u1" if x.dtype == bool else code_of(x.dtype)
        self.type = TYPES[self.dtype]
        self.keys, self.positions = "%scratch", code.at("i8", "%scratch", 8 * self.k)

    def write(self) -> None:
        """Emit the loop over rows."""
        code, k = self.code, self.k
        with code.loop("%lo", "%hi") as u:
            row = code.at(self.type, "%a0", code.times(u, self.length))
            with code.loop("0", k) as i:
                self._insert(row, i, i)
            whole = k + (self.length - k) // self.width * self.width
            if whole > k:
                with code.loop(str(k), whole, self.width) as i:
                    self._insert_from_vector(row, i)
            if whole < self.length:
                with code.loop(str(whole), self.length) as i:
                    self._insert_if_larger(row, i)
            out = code.at("i32", "%z", code.times(u, k))
            with code.loop("0", k) as i:
                code.store("i32", code.op(f"trunc i64 {code.load('i64', self.positions, i)} to i32"), out, i)

    def _insert_from_vector(self, row: str, i: str) -> None:
        """Insert those elements of the vector from ``i`` on that are larger than the smallest of the k largest."""
        code, width, bits = self.code, self.width, f"i{self.width}"
        smallest = code.load(self.type, row, code.load("i64", self.positions, str(self.k - 1)))
        worst = Value(code, splat(code, smallest, self.type, width), self.dtype, width)
        address = code.at(self.type, row, i)
        v = Value(
            code, code.op(f"load {vector(self.type, width)}, ptr {address}, align {self.size}"), self.dtype, width
        )
        larger = v.compare("ugt", worst)  # NaN counts as the largest
        mask = larger.name if width == 1 else code.op(f"bitcast {larger.type} {larger.name} to {bits}")
        left = code.keep(bits, mask)  # a bit for each lane that is still to be inserted
        with code.loop_while(lambda: code.op(f"icmp ne {bits} {code.load(bits, left)}, 0")):
            some = code.load(bits, left)
            lane = code.call(f"llvm.cttz.{bits}", bits, [(bits, some), ("i1", "true")])
            lane = code.op(f"zext {bits} {lane} to i64") if width < 64 else lane
            rest = code.op(f"and {bits} {some}, {code.op(f'sub {bits} {some}, 1')}")
            code.store(bits, rest, left)
            self._insert_if_larger(row, code.add(i, lane))

    def _insert_if_larger(self, row: str, i: str) -> None:
        """Insert an element in the place of the smallest of the k largest, if it is larger."""
        code, last = self.code, str(self.k - 1)
        key = _make_key(Value(code, code.load(self.type, row, i), self.dtype, 1))
        with code.when(code.op(f"icmp sgt i64 {key}, {code.load('i64', self.keys, last)}")):
            self._insert(row, i, last)

    def _insert(self, row: str, i: str, last: str) -> None:
        """Insert an element into the sorted largest ones, of which the one at ``last`` is overwritten."""
        code = self.code
        key = _make_key(Value(code, code.load(self.type, row, i), self.dtype, 1))
        at = code.keep("i64", last)

        def is_smaller_before() -> str:
            j = code.load("i64", at)
            before = code.op(f"sub i64 {j}, 1")
            clamped = code.maximum(before, 0)
            smaller = code.op(f"icmp slt i64 {code.load('i64', self.keys, clamped)}, {key}")
            return code.op(f"select i1 {code.op(f'icmp sgt i64 {j}, 0')}, i1 {smaller}, i1 false")

        with code.loop_while(is_smaller_before):
            j = code.load("i64", at)
            before = code.op(f"sub i64 {j}, 1")
            for base in (self.keys, self.positions):
                code.store("i64", code.load("i64", base, before), base, j)
            code.store("i64", before, at)
        code.store("i64", key, self.keys, code.load("i64", at))
        code.store("i64", i, self.positions, code.load("i64", at))


def _make_key(x: Value) -> str:
    """Return a 64-bit integer with the order of the number: that of -0 is that of 0, and NaN is the largest."""
    code = x.code
    if x.kind != "f":
        wide = x.cast("i8")
        return wide.name if x.dtype != "u8" else code.op(f"xor i64 {wide.name}, {-(2**63)}")
    bits = (x + 0.0).as_bits()  # -0 becomes 0
    top = 8 * int(x.dtype[1]) - 1
    ordered = (bits ^ ((bits >> top) & (2**top - 1))).cast("i8")
    is_nan = x.compare("uno", x)
    return code.op(f"select i1 {is_nan.name}, i64 {2**63 - 1}, i64 {ordered.name}")


# ---- sorted rows


def _emit_search_sorted(code: Code, plan: RowsPlan) -> None:
    """Emit a binary search for each value in a sorted row, in which NaN come last."""
    sequence, values = plan.node.args
    length, each = sequence.shape[-1], values.shape[-1] if values.shape else 1
    dtype = "u1" if values.dtype == bool else code_of(values.dtype)
    one, is_right = TYPES[dtype], plan.node.data[1]["side"] == "right"
    with code.loop("%lo", "%hi") as u:
        v = Value(code, code.load(one, "%a1", u), dtype, 1)
        start = code.times(code.op(f"udiv i64 {u}, {each}"), length) if len(sequence.shape) > 1 else "0"
        row = code.at(one, "%a0", start)
        found = _bisect(code, (row, dtype, length), lambda s: s.compare("ole" if is_right else "olt", v))
        place = code.keep("i64", found)
        if v.kind == "f":
            with code.when(v.compare("uno", v).name, unlikely=True):  # before or after all NaN of the row
                first = str(length) if is_right else _bisect(code, (row, dtype, length), lambda s: s.compare("ord", s))
                code.store("i64", first, place)
        code.store("i32", code.op(f"trunc i64 {code.load('i64', place)} to i32"), "%z", u)


def _bisect(code: Code, where: tuple[str, str, int], emit_is_before: Callable[[Value], Value]) -> str:
    """Return how many elements of a sorted row satisfy ``emit_is_before``, by a binary search without branches."""
    row, dtype, left = where
    found = "0"
    while left:
        half = max(left // 2, 1)
        s = Value(code, code.load(TYPES[dtype], row, code.add(found, str(half - 1))), dtype, 1)
        taken = code.op(f"sext i1 {emit_is_before(s).name} to i64")  # all bits set, or none
        # Through an empty instruction, as LLVM would make a branch of a choice, which is mispredicted half of the time.
        taken = code.op(f'call i64 asm "", "=r,0"(i64 {taken})')
        found = code.add(found, code.op(f"and i64 {taken}, {half}"))
        left -= half
    return found


KERNELS: dict[str, Callable[[Code, RowsPlan], None]] = {
    "largest": lambda code, plan: LargestWriter(code, plan).write(),
    "search sorted": _emit_search_sorted,
}
