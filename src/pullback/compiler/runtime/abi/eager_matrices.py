"""LLVM text of products of small matrices, of their rules, and of sums over rows, by the BLAS that NumPy calls.

NumPy's ``dot`` takes as long to begin as BLAS takes for matrices of some dozen rows, and Python as long again to make
the node.  BLAS is called with the very arguments that ``dot`` calls it with, so that the numbers are the same.
"""

from __future__ import annotations

from pullback.compiler.runtime.abi.eager_records import (
    ARRAY,
    BLAS,
    LEFT,
    MAX_SUMMED_ROWS,
    META,
    OP,
    RIGHT,
    SCRATCH,
    STEP,
)
from pullback.compiler.runtime.abi.eager_writer import TensorWriter
from pullback.compiler.runtime.abi.layout import ALIGNED, C_CONTIGUOUS, F_CONTIGUOUS, OFFSETS

ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112  # what CBLAS calls orders and transposition
TYPES = ("float", "double")  # of elements, in the order of their numbers in records


def read_matrix(w: TensorWriter, v: str, turned: str) -> tuple[str, str, str, str, str]:
    """Write the checks of a matrix, which may be ``turned``; return what BLAS is given of it.

    These are the numbers of its rows and columns after turning it, whether BLAS is to turn it, its leading dimension,
    and the address of its elements.
    """
    w.require_type(v, "@ndarray", "python")
    dtype = w.load("ptr", v, OFFSETS["ARRAY_DTYPE"])
    same_dtype = w.compare("eq", dtype, w.meta_field("%fields", "dtype_object", "ptr"))
    w.require(w.both(same_dtype, w.compare("eq", w.load("i32", v, OFFSETS["ARRAY_RANK"]), 2, "i32")), "python")
    flags = w.load("i32", v, OFFSETS["ARRAY_FLAGS"])
    w.require(w.compare("ne", w.let(f"and i32 {flags}, {ALIGNED}"), 0, "i32"), "python")
    w.require(w.compare("ne", w.let(f"and i32 {flags}, {C_CONTIGUOUS | F_CONTIGUOUS}"), 0, "i32"), "python")
    in_c_order = w.compare("ne", w.let(f"and i32 {flags}, {C_CONTIGUOUS}"), 0, "i32")
    shape = w.load("ptr", v, OFFSETS["ARRAY_SHAPE"])
    first, second = w.word(shape, 0), w.word(shape, 1)
    for length in (first, second):
        w.require(w.compare("sgt", length, 1, "i64"), "python")
    rows, columns = w.select(turned, "i64", second, first), w.select(turned, "i64", first, second)
    way = w.select(w.compare("ne", in_c_order, turned, "i1"), "i32", PLAIN, TRANSPOSED)
    leading = w.select(in_c_order, "i64", second, first)
    return rows, columns, way, leading, w.load("ptr", v, OFFSETS["ARRAY_DATA"])


def write_multiply() -> str:
    """Return ``multiply(a, b, turn_a, turn_b, fields)``: a new array, the product of two matrices, each turned or not.

    It has the shape and dtype of a meta.  The result is null if the arrays do not fit that or each other, are not in C
    or Fortran order, or have a length of 1, for which ``dot`` calls other routines; then no error is set.
    """
    w = TensorWriter("ptr", "multiply", "ptr a", "ptr b", "i1 turn_a", "i1 turn_b", "ptr fields")
    routine = w.word(w.at("@blas", BLAS["gemm"], "i64"), w.meta_field("%fields", "dtype"), "ptr")
    w.require(w.compare("ne", routine, "null"), "python")
    w.require(w.compare("eq", w.meta_field("%fields", "rank"), 2, "i64"), "python")
    found = [read_matrix(w, v, turned) for v, turned in (("%a", "%turn_a"), ("%b", "%turn_b"))]
    (m, k, way_a, leading_a, a), (also_k, n, way_b, leading_b, b) = found
    shape = w.at("%fields", META["shape"], "i64")
    for length, wanted in ((k, also_k), (m, w.word(shape, 0)), (n, w.word(shape, 1))):
        w.require(w.compare("eq", length, wanted, "i64"), "python")
    w.require(w.compare("ne", a, b), "python")  # a matrix with itself: another routine
    made = w.call("ptr", "@new_array", "ptr %fields")
    w.require(w.compare("ne", made, "null"), "python")
    z = w.load("ptr", made, OFFSETS["ARRAY_DATA"])
    is_single = w.compare("eq", w.meta_field("%fields", "dtype"), 0, "i64")
    w.branch(is_single, *TYPES)
    for kind in TYPES:
        w.label(kind)
        w.call_void(
            routine, f"i32 {ROW_MAJOR}", f"i32 {way_a}", f"i32 {way_b}", f"i64 {m}", f"i64 {n}", f"i64 {k}",
            f"{kind} 1.0", f"ptr {a}", f"i64 {leading_a}", f"ptr {b}", f"i64 {leading_b}", f"{kind} 0.0",
            f"ptr {z}", f"i64 {n}",
        )  # fmt: skip
        w.ret("ptr", made)
    w.label("python")
    w.ret("ptr", "null")
    return w.text()


def write_sum_rows() -> str:
    """Return ``sum_rows(at, fields, row_fields)``: a new array, the sum of the rows of a matrix in C order in memory.

    ``fields`` are those of the matrix's meta, ``row_fields`` of the sum's.  It is null if these do not fit; then no
    error is set.
    """
    w = TensorWriter("ptr", "sum_rows", "ptr at", "ptr fields", "ptr row_fields")
    routine = w.word(w.at("@blas", BLAS["gemv"], "i64"), w.meta_field("%fields", "dtype"), "ptr")
    w.require(w.compare("ne", routine, "null"), "python")
    rows, columns = w.meta_field("%fields", "rows"), w.meta_field("%fields", "columns")
    for relation, length, limit in (("sgt", rows, 1), ("sgt", columns, 1), ("sle", rows, MAX_SUMMED_ROWS)):
        w.require(w.compare(relation, length, limit, "i64"), "python")
    pairs = (
        (w.meta_field("%fields", "rank"), 2), (w.meta_field("%row_fields", "rank"), 1),
        (w.meta_field("%row_fields", "size"), columns), (w.meta_field("%row_fields", "kind"), ARRAY),
        (w.meta_field("%row_fields", "dtype"), w.meta_field("%fields", "dtype")),
    )  # fmt: skip
    for found, wanted in pairs:
        w.require(w.compare("eq", found, wanted, "i64"), "python")
    made = w.call("ptr", "@new_array", "ptr %row_fields")
    w.require(w.compare("ne", made, "null"), "python")
    z = w.load("ptr", made, OFFSETS["ARRAY_DATA"])
    ones = w.word(w.at("@blas", BLAS["ones"], "i64"), w.meta_field("%fields", "dtype"), "ptr")
    w.branch(w.compare("eq", w.meta_field("%fields", "dtype"), 0, "i64"), *TYPES)
    for kind in TYPES:
        w.label(kind)
        w.call_void(
            routine, f"i32 {ROW_MAJOR}", f"i32 {TRANSPOSED}", f"i64 {rows}", f"i64 {columns}", f"{kind} 1.0",
            "ptr %at", f"i64 {columns}", f"ptr {ones}", "i64 1", f"{kind} 0.0", f"ptr {z}", "i64 1",
        )  # fmt: skip
        w.ret("ptr", made)
    w.label("python")
    w.ret("ptr", "null")
    return w.text()


def write_find_meta() -> str:
    """Return ``find_meta(m, rows, columns)``: the meta of matrices of the tape and dtype of a meta.

    It is null if the tape has none; an error may be set then.
    """
    w = TensorWriter("ptr", "find_meta", "ptr m", "i64 rows", "i64 columns")
    shape, key = (w.call("ptr", "@PyTuple_New", "i64 2") for _ in range(2))
    for made in (shape, key):  # an error here is that there is no memory; what was made is lost then
        w.require(w.compare("ne", made, "null"), "none")
    for place, length in enumerate(("%rows", "%columns")):
        number = w.call("ptr", "@PyLong_FromLong", f"i64 {length}")
        w.call("i32", "@PyTuple_SetItem", f"ptr {shape}", f"i64 {place}", f"ptr {number}")
    dtype = w.slot("%m", "dtype")
    w.incref(dtype)
    w.call("i32", "@PyTuple_SetItem", f"ptr {key}", "i64 0", f"ptr {shape}")
    w.call("i32", "@PyTuple_SetItem", f"ptr {key}", "i64 1", f"ptr {dtype}")
    found = w.call("ptr", "@PyDict_GetItemWithError", f"ptr {w.slot('%m', 'tape')}", f"ptr {key}")
    w.decref(key)
    w.ret("ptr", found)
    w.label("none")
    w.ret("ptr", "null")
    return w.text()


class ProductWriter(TensorWriter):
    """Writes ``product(x, y)``, the function of ``x @ y`` where both are tensors, or one an array, of rank 2.

    It gives None if Python must perform the op.
    """

    def __init__(self) -> None:
        super().__init__("ptr", "product", "ptr self", "ptr args", "i64 given", internal=False)

    def write(self) -> str:
        """Return the text of the function."""
        self.op = self.at(self.load("ptr", "%self", OFFSETS["TUPLE_ITEMS"]), OFFSETS["BYTES_DATA"])
        self.x, self.y = self.load("ptr", "%args"), self.load("ptr", "%args", 8)
        self.require_type(self.x, "@tensor_type", "right")
        self.require_type(self.y, "@tensor_type", "left")
        self._read(self.x)
        _, other = self._read(self.y)
        m, fields = self._read(self.x)  # again: to prepare a record runs Python, and may run other threads
        for name in ("dtype", "nodes"):
            self.require(
                self.compare("eq", self.meta_field(fields, name), self.meta_field(other, name), "i64"), "python"
            )
        self._compute(m, "step", self.x, self.y, self.slot(self.x, "value"), self.slot(self.y, "value"))

        self.label("left")
        self.require_type(self.y, "@ndarray", "python")
        m, _ = self._read(self.x)
        copy = self._copy(self.y)
        self._compute(m, "left", self.x, copy, self.slot(self.x, "value"), copy, copy)

        self.label("right")
        self.require_type(self.x, "@ndarray", "python")
        self.require_type(self.y, "@tensor_type", "python")
        m, _ = self._read(self.y)
        copy = self._copy(self.x)
        self._compute(m, "right", self.y, copy, copy, self.slot(self.y, "value"), copy)

        self.label("failed")
        self.ret("ptr", "null")
        self.label("python")
        self.ret_none()
        return self.text()

    def _read(self, x: str) -> tuple[str, str]:
        """Return the meta of a tensor and its record's data."""
        m = self.slot(x, "meta")
        return m, self.find_array_record(m, "failed", "python")[1]

    def _copy(self, v: str) -> str:
        """Return a copy of the caller's array, which may change later; Python treats those that it does not copy."""
        self.require(self.compare("eq", self.load("i32", v, OFFSETS["ARRAY_RANK"]), 2, "i32"), "python")
        shape = self.load("ptr", v, OFFSETS["ARRAY_SHAPE"])
        count = self.let(f"mul i64 {self.word(shape, 0)}, {self.word(shape, 1)}")
        self.require(self.compare("sle", count, SCRATCH // 8, "i64"), "python")
        flags = self.load("i32", v, OFFSETS["ARRAY_FLAGS"])
        self.require(self.compare("ne", self.let(f"and i32 {flags}, {C_CONTIGUOUS}"), 0, "i32"), "python")
        copy = self.call("ptr", "@PyArray_NewCopy", f"ptr {v}", "i32 0")
        self.require(self.compare("ne", copy, "null"), "failed")
        return copy

    def _compute(self, m: str, step: str, x: str, y: str, vx: str, vy: str, held: str | None = None) -> None:
        """Write the product of two values and the node with the operands ``x`` and ``y``; ``held`` is released."""
        name = f"{step}."
        self.incref(m)  # what is looked up may compare keys in Python
        rows, columns = self.allocate("i64"), self.allocate("i64")
        for v, axis, length in ((vx, 0, rows), (vy, 1, columns)):
            self.require_type(v, "@ndarray", f"{name}unfit")
            rank = self.load("i32", v, OFFSETS["ARRAY_RANK"])
            self.require(self.compare("eq", rank, 2, "i32"), f"{name}unfit")
            self.store("i64", self.word(self.load("ptr", v, OFFSETS["ARRAY_SHAPE"]), axis), length)
        lengths = f"i64 {self.load('i64', rows)}", f"i64 {self.load('i64', columns)}"
        q = self.call("ptr", "@find_meta", f"ptr {m}", *lengths)
        self.require(self.compare("ne", q, "null"), f"{name}unfit")
        record, fields = self.find_array_record(q, f"{name}unfit", f"{name}unfit")
        v = self.call("ptr", "@multiply", f"ptr {vx}", f"ptr {vy}", "i1 0", "i1 0", f"ptr {fields}")
        self.require(self.compare("ne", v, "null"), f"{name}unfit")
        placed = [f"ptr {p}" for p in (v, q, record, self.word(self.op, OP[step], "ptr"), x, y)]
        made = self.call("ptr", "@new_node", *placed)
        self._release(m, held)
        self.ret("ptr", made)
        self.label(f"{name}unfit")
        self._release(m, held)
        error = self.call("ptr", "@PyErr_Occurred")
        self.branch(self.compare("eq", error, "null"), "python", "failed")

    def _release(self, m: str, held: str | None) -> None:
        self.decref(m)
        if held is not None:
            self.decref(held)


class PullProductWriter(TensorWriter):
    """Writes ``pull_product(r, step_fields)``, which gives the operands of a node ``x @ y`` their cotangents.

    ``step_fields`` are those of the record of its step.  As ``pull``, it gives 1 if that is done, 0 if Python must do
    it, -1 for an error.  Nothing is changed until both cotangents are computed.
    """

    def __init__(self) -> None:
        super().__init__("i32", "pull_product", "ptr r", "ptr step_fields")

    def write(self) -> str:
        """Return the text of the function."""
        self.x, self.y, self.g = (self.slot("%r", name) for name in ("x", "y", "g"))
        inputs = self.word("%step_fields", STEP["product"])
        self.require_type(self.x, "@tensor_type", "python")
        # For each operand: the fields of its meta, and its new cotangent, which is null until it is computed.
        self.all_fields, self.cotangents = ([self.allocate("ptr") for _ in range(2)] for _ in range(2))
        for place in self.cotangents:
            self.store("ptr", "null", place)
        self._multiply_operands(inputs)
        self._add_cotangents()
        self._end()
        return self.text()

    def _multiply_operands(self, inputs: str) -> None:
        """Compute the cotangents of the operands that are on the tape: of both, or of the one that is in ``x``."""
        self._read(self.x, 0)
        self.jump_if(self.compare("eq", inputs, LEFT, "i64"), "left")
        self.jump_if(self.compare("eq", inputs, RIGHT, "i64"), "right")
        self.require_type(self.y, "@tensor_type", "python")
        self._read(self.y, 1)
        self._read(self.x, 0)  # again: to prepare a record runs Python
        self._multiply(self.g, self.slot(self.y, "value"), (0, 1), 0)
        self._multiply(self.slot(self.x, "value"), self.g, (1, 0), 1)
        self.jump("add")
        self.label("left")
        self._multiply(self.g, self.y, (0, 1), 0)
        self.jump("add")
        self.label("right")
        self._multiply(self.y, self.g, (1, 0), 0)
        self.jump("add")

    def _read(self, t: str, number: int) -> None:
        """Find the fields of the meta of an operand."""
        _, fields = self.find_array_record(self.slot(t, "meta"), "failed", "python")
        self.store("ptr", fields, self.all_fields[number])

    def _multiply(self, a: str, b: str, turns: tuple[int, int], number: int) -> None:
        """Compute the cotangent of an operand, the product of two matrices, each turned or not."""
        turned = [f"i1 {t}" for t in turns]
        fields = self.load("ptr", self.all_fields[number])
        d = self.call("ptr", "@multiply", f"ptr {a}", f"ptr {b}", *turned, f"ptr {fields}")
        self.store("ptr", d, self.cotangents[number])
        self.require(self.compare("ne", d, "null"), "unfit")

    def _add_cotangents(self) -> None:
        """Add what was computed to the cotangents of the operands."""
        self.label("add")
        for number, node in enumerate((self.x, self.y)):
            d = self.load("ptr", self.cotangents[number])
            self.jump_if(self.compare("eq", d, "null"), "done")
            fields = self.load("ptr", self.all_fields[number])
            fine = self.call_pointers("i1", "@add_array", node, d, fields)
            self.store("ptr", "null", self.cotangents[number])
            self.decref(d)
            self.require(fine, "lost")
        self.label("done", falls=True)
        self.ret("i32", 1)

    def _end(self) -> None:
        """Write the ends of the function at which cotangents that were computed are released."""
        self.label("unfit")
        for number in range(2):
            d = self.load("ptr", self.cotangents[number])
            self.jump_if(self.compare("eq", d, "null"), f"dropped{number}")
            self.decref(d)
            self.label(f"dropped{number}", falls=True)
        error = self.call("ptr", "@PyErr_Occurred")
        self.branch(self.compare("eq", error, "null"), "python", "failed")
        self.label("lost")
        d = self.load("ptr", self.cotangents[1])
        self.jump_if(self.compare("eq", d, "null"), "failed")
        self.decref(d)
        self.jump("failed")
        self.label("python")
        self.ret("i32", 0)
        self.label("failed")
        self.ret("i32", -1)


# The functions of the module, in the order of their calls; the last one calls some of ``eager_backward``.
MATRICES = (write_multiply, write_sum_rows, write_find_meta, lambda: ProductWriter().write())
PULL_PRODUCT = (lambda: PullProductWriter().write(),)
