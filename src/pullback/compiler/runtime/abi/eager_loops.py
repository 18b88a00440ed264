"""LLVM text of what ops and rules have in common: to find the elements of a value, and to call NumPy's inner loops."""

from __future__ import annotations

from collections.abc import Callable

from pullback.compiler.runtime.abi.code_writer import Writer
from pullback.compiler.runtime.abi.eager_records import CALL, FLAGS, META, PROGRAM, REGISTERS, SCALAR, SCRATCH
from pullback.compiler.runtime.abi.eager_writer import TensorWriter
from pullback.compiler.runtime.abi.layout import ALIGNED, C_CONTIGUOUS, OFFSETS


class FindElementsWriter(TensorWriter):
    """Writes ``find_elements(v, fields, strides)``: the address of a value's elements, null if it does not fit a meta.

    A value fits if it has the meta's dtype and is an array that broadcasts to its shape as a matrix, with strides that
    are not negative and larger from row to row than from column to column, or a scalar.  Its two strides are stored,
    first that from column to column.  Other layouts are left to Python: NumPy's results have another order there.
    """

    def __init__(self) -> None:
        super().__init__("ptr", "find_elements", "ptr v", "ptr fields", "ptr strides")

    def write(self) -> str:
        """Return the text of the function."""
        kind = self.type_of("%v")
        self.require(self.compare("eq", kind, "@ndarray"), "scalar")
        self._read_array()
        self._fit_same_shape()
        self.label("fits")
        self.ret("ptr", self.data)
        self._fit_row()
        self._fit_broadcast_matrix()
        self._fit_strided()
        self._check_strides()
        self.label("scalar")  # NumPy's, of the same dtype
        self.require(self.compare("eq", kind, self.meta_field("%fields", "scalar_type", "ptr")), "python")
        self._clear_strides()
        self.ret("ptr", self.at("%v", OFFSETS["NUMBER"]))
        self.label("python")
        self.ret("ptr", "null")
        return self.text()

    def _clear_strides(self) -> None:
        self.set_word(0, "%strides", 0)
        self.set_word(0, "%strides", 1)

    def _read_array(self) -> None:
        """Read the fields of an array, which must have the meta's dtype; one without axes fits."""
        dtype = self.load("ptr", "%v", OFFSETS["ARRAY_DTYPE"])
        self.require(self.compare("eq", dtype, self.meta_field("%fields", "dtype_object", "ptr")), "python")
        self.flags = self.load("i32", "%v", OFFSETS["ARRAY_FLAGS"])
        self.require(self.compare("ne", self.let(f"and i32 {self.flags}, {ALIGNED}"), 0, "i32"), "python")
        self.rank = self.let(f"sext i32 {self.load('i32', '%v', OFFSETS['ARRAY_RANK'])} to i64")
        self.data = self.load("ptr", "%v", OFFSETS["ARRAY_DATA"])
        self._clear_strides()
        self.jump_if(self.compare("eq", self.rank, 0, "i64"), "fits")
        self.shape = self.load("ptr", "%v", OFFSETS["ARRAY_SHAPE"])
        self.steps = self.load("ptr", "%v", OFFSETS["ARRAY_STRIDES"])
        self.lengths = self.at("%fields", META["shape"], "i64")
        self.wanted_rank = self.meta_field("%fields", "rank")
        self.columns = self.meta_field("%fields", "columns")

    def _fit_same_shape(self) -> None:
        """Fit an array with the meta's shape, in C order."""
        self.require(self.compare("eq", self.rank, self.wanted_rank, "i64"), "row")
        i = self.loop("lengths", self.rank)
        self.require(self.compare("eq", self.word(self.shape, i), self.word(self.lengths, i), "i64"), "broadcast")
        self.end_loop("lengths")
        self.require(self.compare("ne", self.let(f"and i32 {self.flags}, {C_CONTIGUOUS}"), 0, "i32"), "strided")
        item = self.meta_field("%fields", "itemsize")
        self.set_word(item, "%strides", 0)
        self.set_word(self.let(f"mul i64 {item}, {self.columns}"), "%strides", 1)
        self.jump("fits")

    def _fit_row(self) -> None:
        """Fit an array with one axis to a matrix: a row of it, or a single element."""
        self.label("row")
        self.require(self.compare("eq", self.rank, 1, "i64"), "python")
        self.require(self.compare("eq", self.wanted_rank, 2, "i64"), "python")
        length = self.word(self.shape, 0)
        self.jump_if(self.compare("eq", length, 1, "i64"), "fits")
        self.require(self.compare("eq", length, self.columns, "i64"), "python")
        along = self.word(self.steps, 0)
        self.require(self.compare("sge", along, 0, "i64"), "python")
        self.set_word(along, "%strides", 0)
        self.jump("fits")

    def _fit_broadcast_matrix(self) -> None:
        """Fit a matrix with one row or one column."""
        self.label("broadcast")
        self.require(self.compare("eq", self.rank, 2, "i64"), "python")
        for axis, name in ((0, "down"), (1, "across")):
            has, must = self.word(self.shape, axis), self.word(self.lengths, axis)
            self.jump_if(self.compare("eq", has, 1, "i64"), name)
            self.require(self.compare("eq", has, must, "i64"), "python")
            step = self.word(self.steps, axis)
            self.require(self.compare("sge", step, 0, "i64"), "python")
            self.set_word(step, "%strides", 1 - axis)
            self.jump(name)
            self.label(name)
        self.jump("ordered")

    def _fit_strided(self) -> None:
        """Fit an array with the meta's shape that is not in C order; with more than two axes, one repeated number."""
        self.label("strided")
        self.jump_if(self.compare("eq", self.rank, 1, "i64"), "line")
        self.jump_if(self.compare("eq", self.rank, 2, "i64"), "plane")
        j = self.loop("steps", self.rank)
        self.require(self.compare("eq", self.word(self.steps, j), 0, "i64"), "python")
        self.end_loop("steps")
        self.jump("fits")
        self.label("line")
        self.set_word(self.word(self.steps, 0), "%strides", 0)
        self.jump("ordered")
        self.label("plane")
        self.set_word(self.word(self.steps, 1), "%strides", 0)
        self.set_word(self.word(self.steps, 0), "%strides", 1)
        self.jump("ordered")

    def _check_strides(self) -> None:
        """Check that no stride is negative, and that the one from row to row is larger, or 0."""
        self.label("ordered")
        inner, outer = self.word("%strides", 0), self.word("%strides", 1)
        self.require(self.compare("sge", inner, 0, "i64"), "python")
        self.require(self.compare("sge", outer, 0, "i64"), "python")
        self.jump_if(self.compare("eq", outer, 0, "i64"), "fits")
        self.require(self.compare("sge", outer, inner, "i64"), "python")
        self.jump("fits")


def write_clear_flags() -> str:
    """Return ``clear_flags()``, which clears the floating-point flags.

    Most often none is set, and testing is quicker than clearing.  Both is done by the C library, which knows both sets
    of flags of x86, of SSE and of the older x87 unit: it sets some, such as overflow, in the latter.
    """
    w = Writer("void", "clear_flags")
    w.require(w.compare("ne", w.call("i32", "@fetestexcept", f"i32 {FLAGS}"), 0, "i32"), "unset")
    w.call("i32", "@feclearexcept", f"i32 {FLAGS}")
    w.ret_void()
    w.label("unset")
    w.ret_void()
    return w.text()


class RunLoopsWriter(TensorWriter):
    """Writes ``run_loops(program, memory, strides, fields)``, which calls the inner loops of a program.

    ``fields`` are those of a meta whose shape the arrays have, ``memory`` has the address of each register,
    ``strides`` two strides of each.  A loop is called once if every array has one stride for all its elements, else for
    each row.  The result is the floating-point flags that are set; they are read after every loop, because some of
    NumPy's loops clear them.
    """

    def __init__(self) -> None:
        super().__init__("i32", "run_loops", "ptr program", "ptr memory", "ptr strides", "ptr fields")
        self.seen = self.allocate("i32")  # the flags so far
        # What an inner loop is called with, for the inputs and then the output: addresses, and strides along a row;
        # and by how much these addresses differ from row to row.
        self.given, self.steps, self.outer = (self.allocate(f"[3 x {kind}]") for kind in ("ptr", "i64", "i64"))
        self.length = self.allocate("i64")  # elements of one call
        self.one_row = self.allocate("i1")  # whether one call computes all rows

    def write(self) -> str:
        """Return the text of the function."""
        self.store("i32", 0, self.seen)
        self.item, self.rows, self.columns = (self.meta_field("%fields", n) for n in ("itemsize", "rows", "columns"))
        self.has_one_row = self.compare("eq", self.rows, 1, "i64")
        first = self.at("%program", PROGRAM["calls"], "i64")
        i = self.loop("calls", self.word("%program", PROGRAM["length"]))
        self.loop_call = self.at(first, self.let(f"mul i64 {i}, {len(CALL)}"), "i64")
        self._set_places()
        self._call_loop()
        self.end_loop("calls")
        self.ret("i32", self.load("i32", self.seen))
        return self.text()

    def _set_places(self) -> None:
        """Set the addresses and strides that a loop is called with."""
        inputs = self.word(self.loop_call, CALL["inputs"])
        self.store("i1", 1, self.one_row)
        j = self.loop("inputs", inputs)
        which = self.word(self.at(self.loop_call, CALL["first"], "i64"), j)
        is_register = self.compare("ult", which, REGISTERS, "i64")  # else it is the address of a constant
        register = self.select(is_register, "i64", which, 0)
        own = self.word("%memory", register, "ptr")
        place = self.select(is_register, "ptr", own, self.let(f"inttoptr i64 {which} to ptr"))
        pair = self.at("%strides", self.let(f"mul i64 {register}, 2"), "i64")
        self._set_place(j, place, *(self.select(is_register, "i64", self.word(pair, k), 0) for k in range(2)))
        self.end_loop("inputs")
        out = self.word(self.loop_call, CALL["out"])
        pair = self.at("%strides", self.let(f"mul i64 {out}, 2"), "i64")
        # To NumPy's loops a result without a stride is a sum of elements; that of a single one may be 0.
        along, across = (
            self.select(self.compare("eq", stride, 0, "i64"), "i64", self.item, stride)
            for stride in (self.word(pair, 0), self.word(pair, 1))
        )
        self._set_place(inputs, self.word("%memory", out, "ptr"), along, across)

    def _set_place(self, number: str, place: str, along: str, across: str) -> None:
        """Set one address that a loop is called with and its strides, and note whether rows follow each other there."""
        self.set_word(place, self.given, number, "ptr")
        self.set_word(along, self.steps, number)
        self.set_word(across, self.outer, number)
        goes_on = self.compare("eq", across, self.let(f"mul i64 {along}, {self.columns}"), "i64")
        before = self.load("i1", self.one_row)
        self.store("i1", self.both(before, self.either(goes_on, self.has_one_row)), self.one_row)

    def _call_loop(self) -> None:
        """Call a loop, for all elements at once or row by row, and collect its flags."""
        loop, data = self.word(self.loop_call, CALL["loop"], "ptr"), self.word(self.loop_call, CALL["data"], "ptr")
        at_once = self.load("i1", self.one_row)
        self.store("i64", self.select(at_once, "i64", self.meta_field("%fields", "size"), self.columns), self.length)
        self.loop("rows", self.select(at_once, "i64", 1, self.rows))
        self.call_void(loop, f"ptr {self.given}", f"ptr {self.length}", f"ptr {self.steps}", f"ptr {data}")
        flags = self.call("i32", "@fetestexcept", f"i32 {FLAGS}")
        self.store("i32", self.let(f"or i32 {self.load('i32', self.seen)}, {flags}"), self.seen)
        for k in range(3):
            next_row = self.at(self.word(self.given, k, "ptr"), self.word(self.outer, k))
            self.set_word(next_row, self.given, k, "ptr")
        self.end_loop("rows")


def write_run_program() -> str:
    """Return two functions that call ``run_loops``.

    ``run_program`` clears the floating-point flags before.  ``run_repeatable`` calls ``run_program`` only if a flag is
    set afterwards, which is rare and may come from elsewhere; so its program must not write to what it reads.
    """
    passed = [f"ptr %{name}" for name in ("program", "memory", "strides", "fields")]
    parameters = [p.replace("%", "") for p in passed]
    w = TensorWriter("i32", "run_program", *parameters, internal=False)
    w.call_void("@clear_flags")
    w.ret("i32", w.call("i32", "@run_loops", *passed))
    n = TensorWriter("i32", "run_repeatable", *parameters)
    n.require(n.compare("ne", n.call("i32", "@run_loops", *passed), 0, "i32"), "silent")
    n.ret("i32", n.call("i32", "@run_program", *passed))
    n.label("silent")
    n.ret("i32", 0)
    return w.text() + n.text()


def write_new_array() -> str:
    """Return ``new_array(fields)``, which makes an array like a meta, and ``new_scalar(memory, fields)``."""
    w = TensorWriter("ptr", "new_array", "ptr fields")
    dtype = w.meta_field("%fields", "dtype_object", "ptr")
    w.incref(dtype)  # which the array takes over
    rank = w.let(f"trunc i64 {w.meta_field('%fields', 'rank')} to i32")
    shape = w.at("%fields", META["shape"], "i64")
    made = w.call(
        "ptr", "@PyArray_NewFromDescr", "ptr @ndarray", f"ptr {dtype}", f"i32 {rank}", f"ptr {shape}", "ptr null",
        "ptr null", "i32 0", "ptr null",
    )  # fmt: skip
    w.ret("ptr", made)
    n = TensorWriter("ptr", "new_scalar", "ptr memory", "ptr fields")
    dtype = n.meta_field("%fields", "dtype_object", "ptr")
    n.ret("ptr", n.call_pointers("ptr", "@PyArray_Scalar", "%memory", dtype, "null"))
    return w.text() + n.text()


def set_temporaries(w: TensorWriter, fields: str, memory: str, strides: str, registers: range) -> None:
    """Write the code that gives registers memory for temporaries, in C order."""
    is_number = w.compare("eq", w.meta_field(fields, "kind"), SCALAR, "i64")
    along = w.select(is_number, "i64", 0, w.meta_field(fields, "itemsize"))
    across = w.let(f"mul i64 {along}, {w.meta_field(fields, 'columns')}")
    for place, i in enumerate(registers):
        w.set_word(w.at("@scratch", place * SCRATCH), memory, i, "ptr")
        w.set_word(along, strides, 2 * i)
        w.set_word(across, strides, 2 * i + 1)


# The functions of the module, in the order of their calls.
LOOPS: tuple[Callable[[], str], ...] = (
    lambda: FindElementsWriter().write(), write_clear_flags, lambda: RunLoopsWriter().write(), write_run_program,
    write_new_array,
)  # fmt: skip
