"""Blocks of matrix products: a few rows of the left matrix times a few columns of the right one.

The sums of a block stay in registers during the loop over the shared axis.  Lengths and strides are parameters, so that
all products of a program whose blocks have the same size call one function: each takes milliseconds to compile.
"""

from __future__ import annotations

from pullback.compiler.builder import FLOATS, Code, Helpers, define_function, first_lanes, vector
from pullback.compiler.ir.products import Product
from pullback.compiler.target import Target


def multiply_add(target: Target, size: int, width: int) -> str:
    """Return the name of LLVM's intrinsic for x * y + z: rounded once if the CPU has an instruction for it."""
    type_ = f"f{size * 8}" if width == 1 else f"v{width}f{size * 8}"
    return f"llvm.{'fma' if target.has_fma else 'fmuladd'}.{type_}"


class Block:
    """Emits the function of a block and calls of it.

    is_padded: whether the vectors of the right matrix may be read as a whole, also beyond its columns.
    """

    def __init__(self, p: Product, rows: int, columns: int, width: int, target: Target, is_padded: bool) -> None:
        self.p, self.rows, self.width, self.target = p, rows, width, target
        self.type, self.size = FLOATS[p.dtype], int(p.dtype[1])
        self.vector = vector(self.type, width)
        self.counts = [min(width, columns - at) for at in range(0, columns, width)]
        self.is_masked = not is_padded and columns % width != 0
        self.code = Code()
        layout = f"{'1' if p.a.row == 1 else 'm'}{'1' if p.a.column == 1 else 'n'}"
        self.name = f"block_{self.type}{width}_{rows}x{columns}_{layout}{'_masked' if self.is_masked else ''}"

    def call(self, code: Code, a: str, b: str, b_row: int, depth: int, z: str, before: str, flag: str) -> None:
        """Emit a call; ``before`` has the sums that those of the block are added to if the flag is set."""
        code.add_helper(self.name, self._write)
        arguments = [f"ptr {a}", f"ptr {b}", f"ptr {z}", f"i64 {b_row}", f"i64 {depth}", f"i64 {self.p.n}"]
        strides = zip(("row", "column"), self.p.a, strict=True)
        arguments += [f"i64 {stride}" for _, stride in strides if stride != 1]
        code.call_helper(self.name, ", ".join([*arguments, f"ptr {before}", f"i1 {flag}"]))

    def _write(self) -> Helpers:
        code, p = self.code, self.p
        params = ["ptr noalias %a", "ptr noalias %b", "ptr %z", "i64 %b.row", "i64 %deep", "i64 %z.row"]
        params += [f"i64 %a.{name}" for name, stride in zip(("row", "column"), p.a, strict=True) if stride != 1]
        params += ["ptr %before", "i1 %adds"]
        places = [(r, v * self.width, count) for r in range(self.rows) for v, count in enumerate(self.counts)]
        sums = self._multiply()
        code.branch("%adds", "add", "store")
        code.begin("add")
        before = self._find_rows("%before")
        both = [self._add(x, before[r], at, count) for x, (r, at, count) in zip(sums, places, strict=True)]
        code.jump("store")
        code.begin("store")
        for i, (x, y) in enumerate(zip(sums, both, strict=True)):
            code.line(f"%total{i} = phi {self.vector} [{x}, %summed], [{y}, %add]")
        z = self._find_rows("%z")
        for i, (r, at, count) in enumerate(places):
            pointer, mask = code.at(self.type, z[r], str(at)), first_lanes(count, self.width)
            code.write(f"%total{i}", pointer, self.type, self.size, self.width, mask)
        head = f"define internal void @{self.name}({', '.join(params)}) noinline {{"
        return {self.name: define_function(head, code.body)}, code.declared

    def _multiply(self) -> list[str]:
        """Emit the loop along the shared axis; return the sums, row by row."""
        code, p, many = self.code, self.p, range(len(self.counts))
        fma = multiply_add(self.target, self.size, self.width)
        code.declared.add(f"declare {self.vector} @{fma}({', '.join([self.vector] * 3)})")
        apart = [str(r) if p.a.row == 1 else code.times("%a.row", r) for r in range(self.rows)]
        code.jump("along")
        code.begin("along")
        code.line("%k = phi i64 [0, %entry], [%k.next, %along]")
        code.line("%left = phi ptr [%a, %entry], [%left.next, %along]")
        code.line("%right = phi ptr [%b, %entry], [%right.next, %along]")
        for r in range(self.rows):
            for v in many:
                code.line(f"%sum{r}.{v} = phi {self.vector} [zeroinitializer, %entry], [%next{r}.{v}, %along]")
        right = [self._read(code.at(self.type, "%right", v * self.width), self.counts[v]) for v in many]
        zeros = f"<{self.width} x i32> zeroinitializer"
        for r in range(self.rows):
            one = code.load(self.type, "%left", apart[r])
            lane = code.op(f"insertelement {self.vector} poison, {self.type} {one}, i64 0")
            left = code.op(f"shufflevector {self.vector} {lane}, {self.vector} poison, {zeros}")
            for v in many:
                operands = ", ".join(f"{self.vector} {x}" for x in (left, right[v], f"%sum{r}.{v}"))
                code.line(f"%next{r}.{v} = call {self.vector} @{fma}({operands})")
        code.line(f"%left.next = getelementptr {self.type}, ptr %left, i64 {'1' if p.a.column == 1 else '%a.column'}")
        code.line(f"%right.next = getelementptr {self.type}, ptr %right, i64 %b.row")
        code.line("%k.next = add nuw nsw i64 %k, 1")
        code.branch(code.op("icmp slt i64 %k.next, %deep"), "along", "summed")
        code.begin("summed")
        return [f"%next{r}.{v}" for r in range(self.rows) for v in many]

    def _read(self, pointer: str, count: int) -> str:
        mask = first_lanes(count, self.width) if self.is_masked else None
        return self.code.read(pointer, self.type, self.size, self.width, mask)

    def _add(self, total: str, before: str, at: int, count: int) -> str:
        """Add what a row of ``before`` has to a sum."""
        old = self.code.read(
            self.code.at(self.type, before, at), self.type, self.size, self.width, first_lanes(count, self.width)
        )
        return self.code.op(f"fadd {self.vector} {old}, {total}")

    def _find_rows(self, base: str) -> list[str]:
        """Return the addresses of all rows of an array with the layout of the result."""
        found = [base]
        for _ in range(1, self.rows):
            found.append(self.code.at(self.type, found[-1], "%z.row"))
        return found
