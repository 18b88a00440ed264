"""Kernels of functions of whole rows: positions of the largest elements, and binary search in a sorted row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pullback.compiler.builder import TYPES, Code, Value, code_of, splat, vector
from pullback.compiler.codegen.kernel_code import KernelCode, make_function
from pullback.compiler.schedule.rows import RowsPlan

__all__ = ["emit_rows"]


def emit_rows(plan: RowsPlan) -> KernelCode:
    """Return the kernel of a function of rows; its arrays are the arguments and the result."""
    code = RowCode()
    KERNELS[plan.node.data[0].lower.symbol](code, plan)
    arrays = [f"ptr noalias %a{i}" for i in range(len(plan.node.args))]
    params = *arrays, "ptr noalias %z", "i64 %lo", "i64 %hi", "ptr %partial", "ptr noalias %scratch"
    return KernelCode(make_function(code, *params), plan.work, frozenset(code.declared))


class RowCode(Code):
    """A builder with variables, conditions and ``while`` loops."""

    def load(self, type_: str, base: str, place: str = "0") -> str:
        return self.op(f"load {type_}, ptr {self.at(type_, base, place)}")

    def store(self, type_: str, value: str, base: str, place: str = "0") -> None:
        self.line(f"store {type_} {value}, ptr {self.at(type_, base, place)}")

    def at(self, type_: str, base: str, place: str) -> str:
        return base if place == "0" else self.op(f"getelementptr {type_}, ptr {base}, i64 {place}")

    def keep(self, type_: str, value: str) -> str:
        """Return the address of a new variable with an initial value."""
        cell = self.allocate(type_, 8)
        self.store(type_, value, cell)
        return cell

    @contextmanager
    def when(self, condition: str, unlikely: bool = False) -> Iterator[None]:
        """Emit a ``with`` block that runs only if a condition holds."""
        yes, after = self.block("yes"), self.block("after")
        self.branch(condition, yes, after, unlikely)
        self.begin(yes)
        yield
        self.jump(after)
        self.begin(after)

    @contextmanager
    def loop_while(self, emit_condition: Callable[[], str]) -> Iterator[None]:
        """Emit a ``while`` loop with the ``with`` block as its body; ``emit_condition`` emits its condition."""
        top, body, after = self.block("while"), self.block("body"), self.block("after")
        self.jump(top)
        self.begin(top)
        self.branch(emit_condition(), body, after)
        self.begin(body)
        yield
        self.jump(top)
        self.begin(after)


# ---- the largest elements


def _emit_largest(code: RowCode, plan: RowsPlan) -> None:
    """Emit the search for the positions of the k largest elements of each row; of equal elements the first is first.

    The k largest so far are kept sorted.  A vector of which no element is larger than the last of them is skipped.
    """
    (x,) = plan.node.args
    length, k = x.shape[-1], plan.node.shape[-1]
    size, width = x.dtype.itemsize, max(1, plan.target.vector_bytes // x.dtype.itemsize)
    dtype = "u1" if x.dtype == bool else code_of(x.dtype)
    one, many, bits = TYPES[dtype], vector(TYPES[dtype], width), f"i{width}"
    keys, places = "%scratch", code.op(f"getelementptr i8, ptr %scratch, i64 {8 * k}")

    def insert(row: str, i: str, last: str) -> None:
        """Insert an element into the sorted largest ones, of which the one at ``last`` is overwritten."""
        element = code.load(one, row, i)
        key, at = _make_key(Value(code, element, dtype, 1)), code.keep("i64", last)

        def is_smaller_before() -> str:
            j = code.load("i64", at)
            before = code.op(f"sub i64 {j}, 1")
            clamped = code.call("llvm.smax.i64", "i64", [("i64", before), ("i64", "0")])
            smaller = code.op(f"icmp slt i64 {code.load('i64', keys, clamped)}, {key}")
            return code.op(f"select i1 {code.op(f'icmp sgt i64 {j}, 0')}, i1 {smaller}, i1 false")

        with code.loop_while(is_smaller_before):
            j = code.load("i64", at)
            before = code.op(f"sub i64 {j}, 1")
            for row_ in (keys, places):
                code.store("i64", code.load("i64", row_, before), row_, j)
            code.store("i64", before, at)
        code.store("i64", key, keys, code.load("i64", at))
        code.store("i64", i, places, code.load("i64", at))

    def is_larger(x: Value, worst: Value) -> Value:
        return x.compare("ugt", worst)  # NaN counts as the largest

    def find_worst() -> str:
        return code.load(one, row, code.load("i64", places, str(k - 1)))

    with code.loop("%lo", "%hi") as u:
        row = code.at(one, "%a0", code.times(u, length))
        with code.loop("0", k) as i:
            insert(row, i, i)
        whole = k + (length - k) // width * width
        if whole > k:
            with code.loop(str(k), whole, width) as i:
                worst = Value(code, splat(code, find_worst(), one, width), dtype, width)
                v = Value(code, code.op(f"load {many}, ptr {code.at(one, row, i)}, align {size}"), dtype, width)
                larger = is_larger(v, worst)
                mask = larger.name if width == 1 else code.op(f"bitcast {larger.type} {larger.name} to {bits}")
                left = code.keep(bits, mask)

                def has_more(left: str = left) -> str:
                    return code.op(f"icmp ne {bits} {code.load(bits, left)}, 0")

                with code.loop_while(has_more):
                    some = code.load(bits, left)
                    lane = code.call(f"llvm.cttz.{bits}", bits, [(bits, some), ("i1", "true")])
                    lane = code.op(f"zext {bits} {lane} to i64") if width < 64 else lane
                    rest = code.op(f"and {bits} {some}, {code.op(f'sub {bits} {some}, 1')}")
                    code.store(bits, rest, left)
                    _insert_if_larger(code, row, code.add(i, lane), (one, dtype), k, keys, insert)
        if whole < length:
            with code.loop(str(whole), length) as i:
                _insert_if_larger(code, row, i, (one, dtype), k, keys, insert)
        out = code.at("i32", "%z", code.times(u, k))
        with code.loop("0", k) as i:
            code.store("i32", code.op(f"trunc i64 {code.load('i64', places, i)} to i32"), out, i)


def _insert_if_larger(
    code: RowCode, row: str, i: str, kind: tuple[str, str], k: int, keys: str, insert: Callable[[str, str, str], None]
) -> None:
    one, dtype = kind
    key = _make_key(Value(code, code.load(one, row, i), dtype, 1))
    with code.when(code.op(f"icmp sgt i64 {key}, {code.load('i64', keys, str(k - 1))}")):
        insert(row, i, str(k - 1))


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


def _emit_search_sorted(code: RowCode, plan: RowsPlan) -> None:
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
            with code.when(
                v.compare("uno", v).name, unlikely=True
            ):  # its position is before or after all NaN of the row
                first = str(length) if is_right else _bisect(code, (row, dtype, length), lambda s: s.compare("ord", s))
                code.store("i64", first, place)
        code.store("i32", code.op(f"trunc i64 {code.load('i64', place)} to i32"), "%z", u)


def _bisect(code: RowCode, where: tuple[str, str, int], emit_is_before: Callable[[Value], Value]) -> str:
    """Return how many elements of a sorted row satisfy ``emit_is_before``, by a binary search without branches."""
    row, dtype, left = where
    found = "0"
    while left:
        half = max(left // 2, 1)
        s = Value(code, code.load(TYPES[dtype], row, code.add(found, str(half - 1))), dtype, 1)
        taken = code.op(f"sext i1 {emit_is_before(s).name} to i64")  # all bits set, or none
        found = code.add(found, code.op(f"and i64 {taken}, {half}"))
        left -= half
    return found


KERNELS = {"largest": _emit_largest, "search sorted": _emit_search_sorted}
