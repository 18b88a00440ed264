"""Factorizations and linear equations by calls of the LAPACK in NumPy's package, one matrix after the other.

LAPACK's matrices are in column order, so that what it calls the upper triangle is here the lower one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pullback.compiler.builder import FLOATS, Code, code_of, literal
from pullback.compiler.codegen.gemm.small import get_letter
from pullback.compiler.codegen.kernel_code import RANGE, KernelCode, make_kernel
from pullback.compiler.codegen.matrices.places import find_matrix_offset
from pullback.compiler.ir.matrices import CHOLESKY, EIGH, LU, MULTIPLY, PIVOTS, QR, SUBSTITUTE, SVD, TRIANGULAR
from pullback.compiler.schedule.matrices import LAPACK_WORK, MatricesPlan

LETTERS = {letter: str(ord(letter)) for letter in "LUVS"}
ROWS, NOT_TRANSPOSED, TRANSPOSED = 101, 111, 112  # CblasRowMajor, CblasNoTrans and CblasTrans
UPPER, LOWER, NOT_UNIT, UNIT, LEFT, RIGHT = 121, 122, 131, 132, 141, 142
SOLVE = "trsm", "trsv"
ROUTINES = {CHOLESKY: ("potrf",), LU: ("getrf",), TRIANGULAR: SOLVE, SUBSTITUTE: SOLVE, MULTIPLY: ("trmm",), PIVOTS: ()}
ROUTINES |= {EIGH: ("syevd",), SVD: ("gesdd",), QR: ("geqrf", "orgqr")}
SIGNATURES = {
    "potrf": "ptr, ptr, ptr, ptr, ptr, i64",
    "getrf": "ptr, ptr, ptr, ptr, ptr, ptr",
    "trsm": "i32, i32, i32, i32, i32, i64, i64, {}, ptr, i64, ptr, i64",
    "trmm": "i32, i32, i32, i32, i32, i64, i64, {}, ptr, i64, ptr, i64",
    "syevd": f"{', '.join(['ptr'] * 11)}, i64, i64",
    "gesdd": f"{', '.join(['ptr'] * 14)}, i64",
    "geqrf": ", ".join(["ptr"] * 8),
    "orgqr": ", ".join(["ptr"] * 9),
    "trsv": "i32, i32, i32, i32, i64, ptr, i64, ptr, i64",
}


def list_routines(plan: MatricesPlan) -> list[str]:
    """Return the names of the library functions that a plan calls."""
    return [get_letter(code_of(plan.node.dtype)) + name for name in ROUTINES[plan.node.data.name]]


def emit_lapack(plan: MatricesPlan) -> KernelCode:
    """Return the kernel of a batch; its arrays are the matrices and the result.

    For equations the result is a copy of the right-hand sides before, for a Cholesky factorization one of the matrix.
    """
    writer = LapackWriter(plan)
    code = writer.code
    with code.loop("%lo", "%hi") as u:
        writer.write(u)
    arrays = ["ptr noalias %z"] if plan.node.data.name == CHOLESKY else ["ptr noalias %a", "ptr noalias %z"]
    return make_kernel(code, *arrays, *RANGE)


class LapackWriter:
    """Emits the calls for one matrix of a batch."""

    def __init__(self, plan: MatricesPlan) -> None:
        self.plan, self.node, self.routine, self.code = plan, plan.node, plan.node.data, Code()
        self.dtype = code_of(plan.node.dtype)
        self.type = FLOATS[self.dtype]
        self.n = plan.order

    def write(self, u: str) -> None:
        """Emit the computation for the matrix with number ``u``."""
        code, shape, name = self.code, self.node.shape, self.routine.name
        each = shape[-1] if name in (PIVOTS, EIGH, SVD, QR) else shape[-2] * shape[-1]
        z = code.at(self.type, "%z", code.times(u, each))
        if name == CHOLESKY:
            self._factor_symmetric(z)
            return
        a = code.at(self.type, "%a", find_matrix_offset(code, self.plan, u))
        emit: dict[str, Callable[[str, str], None]] = {
            LU: self._factor,
            TRIANGULAR: self._substitute,
            MULTIPLY: self._multiply,
            SUBSTITUTE: self._solve,
            PIVOTS: self._list_pivots,
            EIGH: self._find_eigenvectors,
            SVD: self._find_singular_vectors,
            QR: self._orthogonalize,
        }
        emit[name](a, z)

    # ---- factorizations

    def _factor_symmetric(self, z: str) -> None:
        code, n = self.code, self.n
        order, uplo, info = self._keep(n), code.keep("i8", LETTERS["U"]), self._keep(0)
        self._call("potrf", [("ptr", uplo), ("ptr", order), ("ptr", z), ("ptr", order), ("ptr", info), ("i64", "1")])
        if n > 1:
            with code.loop("0", n - 1) as i:  # LAPACK leaves what is above the diagonal unchanged: set it to zero
                row = code.at(self.type, z, code.add(code.times(i, n + 1), "1"))
                count = code.op(f"mul i64 {code.op(f'sub i64 {n - 1}, {i}')}, {self.node.dtype.itemsize}")
                code.clear_bytes(row, count)
        with code.when(code.op(f"icmp ne i64 {code.load('i64', info)}, 0"), unlikely=True):
            self._fill_with_nan(z, n * n)

    def _factor(self, a: str, z: str) -> None:
        code, n = self.code, self.n
        code.copy_bytes(z, a, n * n * self.node.dtype.itemsize)
        order, info = self._keep(n), self._keep(0)
        self._call("getrf", [("ptr", p) for p in (order, order, z, order, "%scratch", info)])
        with code.loop("0", n) as k:
            pivot = code.op(f"sitofp i64 {code.load('i64', '%scratch', k)} to {self.type}")
            code.store(self.type, pivot, z, code.add(k, str(n * n)))

    def _list_pivots(self, a: str, z: str) -> None:
        """Write the diagonal of U, with the sign changed where rows were exchanged."""
        code, n = self.code, self.n
        with code.loop("0", n) as k:
            own = code.op(f"uitofp i64 {code.add(k, '1')} to {self.type}")
            moved = code.op(f"fcmp une {self.type} {own}, {code.load(self.type, a, code.add(k, str(n * n)))}")
            x = code.load(self.type, a, code.times(k, n + 1))
            signed = code.op(f"select i1 {moved}, {self.type} {code.op(f'fneg {self.type} {x}')}, {self.type} {x}")
            code.store(self.type, signed, z, k)

    # ---- decompositions

    def _copy(self, source: str, to: str) -> None:
        size = self.node.args[0].shape[-2] * self.n * self.node.dtype.itemsize
        self.code.copy_bytes(to, source, size)

    def _arrange_work(self) -> tuple[list[str], list[str]]:
        """Return the addresses of LAPACK's work arrays of floats and of integers, each with that of its length."""
        rows, columns = self.node.args[0].shape[-2:]
        floats, integers = LAPACK_WORK[self.routine.name](rows, columns)
        start = rows * columns * self.node.dtype.itemsize  # after a copy of the matrix
        after = -(-(start + floats * self.node.dtype.itemsize) // 8) * 8
        work, more = (self.code.at("i8", "%scratch", at) for at in (start, after))
        return [work, self._keep(floats)], [more, self._keep(integers)]

    def _find_eigenvectors(self, a: str, z: str) -> None:
        """Write the eigenvalues, and the eigenvectors as rows."""
        code, n = self.code, self.n
        vectors = code.at(self.type, z, n)
        self._copy(a, vectors)
        job, uplo = (code.keep("i8", LETTERS[x]) for x in ("V", "L" if self.routine.lower else "U"))
        order, info = self._keep(n), self._keep(0)
        work, integers = self._arrange_work()
        arguments = [job, uplo, order, vectors, order, z, *work, *integers, info]
        self._call("syevd", [*(("ptr", p) for p in arguments), ("i64", "1"), ("i64", "1")])
        self._fill_if_failed(info, z)

    def _find_singular_vectors(self, a: str, z: str) -> None:
        """Write U by columns, the singular values, and V by rows."""
        code, (columns, rows) = self.code, self.node.args[0].shape[-2:]
        least = min(rows, columns)
        self._copy(a, "%scratch")
        values = code.at(self.type, z, rows * least)
        right = code.at(self.type, z, (rows + 1) * least)
        m, n, k, info = self._keep(rows), self._keep(columns), self._keep(least), self._keep(0)
        work, (integers, _) = self._arrange_work()
        arguments = [code.keep("i8", LETTERS["S"]), m, n, "%scratch", m, values, z, m, right, k, *work, integers, info]
        self._call("gesdd", [*(("ptr", p) for p in arguments), ("i64", "1")])
        self._fill_if_failed(info, z)

    def _orthogonalize(self, a: str, z: str) -> None:
        """Write Q by columns, and under it R by columns, with zeros."""
        code, (n, m) = self.code, self.node.args[0].shape[-2:]
        self._copy(a, z)
        rows, columns, info = self._keep(m), self._keep(n), self._keep(0)
        (work, count), _ = self._arrange_work()
        blocks = code.at(self.type, work, n)
        code.store("i64", str(LAPACK_WORK[QR](n, m)[0] - n), count)
        self._call("geqrf", [("ptr", p) for p in (rows, columns, z, rows, work, blocks, count, info)])
        r = code.at(self.type, z, m * n)
        with code.loop("0", n) as j, code.loop("0", n) as i:
            x = code.load(self.type, z, code.add(code.times(j, m), i))
            below = code.op(f"icmp sgt i64 {i}, {j}")
            kept = code.op(f"select i1 {below}, {self.type} {literal(0.0, self.dtype, 1)}, {self.type} {x}")
            code.store(self.type, kept, r, code.add(code.times(j, n), i))
        self._call("orgqr", [("ptr", p) for p in (rows, columns, columns, z, rows, work, blocks, count, info)])

    def _fill_if_failed(self, info: str, z: str) -> None:
        with self.code.when(self.code.op(f"icmp ne i64 {self.code.load('i64', info)}, 0"), unlikely=True):
            self._fill_with_nan(z, self.node.shape[-1])

    # ---- equations

    def _substitute(self, a: str, z: str) -> None:
        self._unless_singular(a, z, lambda: self._solve_triangle(a, z, self.routine.lower, self.routine.trans, False))

    def _solve(self, a: str, z: str) -> None:
        """Solve with both factors of LU; LAPACK's are in column order, so each is transposed here."""

        def solve() -> None:
            if self.routine.trans:
                self._solve_triangle(a, z, True, False, False)
                self._solve_triangle(a, z, False, False, True)
                self._exchange_rows(a, z, True)
            else:
                self._exchange_rows(a, z, False)
                self._solve_triangle(a, z, False, True, True)
                self._solve_triangle(a, z, True, True, False)

        self._unless_singular(a, z, solve)

    def _multiply(self, a: str, z: str) -> None:
        self._call_with_triangle("trmm", a, z, self.routine.lower, self.routine.trans, False)

    def _solve_triangle(self, a: str, z: str, lower: bool, trans: bool, unit: bool) -> None:
        others = self.node.shape[-2] if self.routine.right else self.plan.columns  # the number of right-hand sides
        self._call_with_triangle("trsv" if others == 1 else "trsm", a, z, lower, trans, unit)

    def _call_with_triangle(self, name: str, a: str, z: str, lower: bool, trans: bool, unit: bool) -> None:
        n, right = self.n, self.routine.right
        others = self.node.shape[-2] if right else self.plan.columns
        is_one = name == "trsv"
        turned = trans != right if is_one else trans
        triangle, how = LOWER if lower else UPPER, TRANSPOSED if turned else NOT_TRANSPOSED
        side = [] if is_one else [RIGHT if right else LEFT]
        flags = [("i32", str(flag)) for flag in (ROWS, *side, triangle, how, UNIT if unit else NOT_UNIT)]
        matrix = [("ptr", a), ("i64", str(self.plan.leading)), ("ptr", z)]
        if is_one:
            self._call(name, [*flags, ("i64", str(n)), *matrix, ("i64", "1")])
            return
        rows, columns = (("i64", str(i)) for i in ((others, n) if right else (n, others)))
        self._call(name, [*flags, rows, columns, (self.type, literal(1.0, self.dtype, 1)), *matrix, columns])

    def _exchange_rows(self, a: str, z: str, backward: bool) -> None:
        code, n, row = self.code, self.n, self.plan.columns
        with code.loop("0", n) as i:
            k = code.op(f"sub i64 {n - 1}, {i}") if backward else i
            pivot = code.op(f"fptosi {self.type} {code.load(self.type, a, code.add(k, str(n * n)))} to i64")
            other = code.op(f"sub i64 {pivot}, 1")
            with code.when(code.op(f"icmp ne i64 {other}, {k}")):
                first, second = (code.at(self.type, z, code.times(r, row)) for r in (k, other))
                with code.loop("0", row) as j:
                    x, y = code.load(self.type, first, j), code.load(self.type, second, j)
                    code.store(self.type, y, first, j)
                    code.store(self.type, x, second, j)

    def _unless_singular(self, a: str, z: str, solve: Callable[[], None]) -> None:
        """Emit the solution of equations, or, if the diagonal has a zero, NaN as the result."""
        code = self.code
        found = code.keep("i1", "false")
        with code.loop("0", self.n) as k:
            x = code.load(self.type, a, code.times(k, self.plan.leading + 1))
            zero = code.op(f"fcmp oeq {self.type} {x}, {literal(0.0, self.dtype, 1)}")
            code.store("i1", code.op(f"or i1 {code.load('i1', found)}, {zero}"), found)
        singular, regular, after = code.block("singular"), code.block("regular"), code.block("after")
        code.branch(code.load("i1", found), singular, regular, unlikely=True)
        code.begin(singular)
        self._fill_with_nan(z, self.node.shape[-2] * self.node.shape[-1])
        code.jump(after)
        code.begin(regular)
        solve()
        code.jump(after)
        code.begin(after)

    # ---- pieces

    def _keep(self, value: int) -> str:
        return self.code.keep("i64", str(value))

    def _fill_with_nan(self, z: str, count: int) -> None:
        with self.code.loop("0", count) as i:
            self.code.store(self.type, literal(float("nan"), self.dtype, 1), z, i)

    def _call(self, name: str, args: Sequence[tuple[str, str]]) -> None:
        function = get_letter(self.dtype) + name
        self.code.declared.add(f"declare void @{function}({SIGNATURES[name].format(self.type)})")
        self.code.line(f"call void @{function}({', '.join(f'{t} {v}' for t, v in args)})")
