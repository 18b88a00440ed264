"""LLVM text of the machine code that performs small eager ops and runs the backward pass; ``eager_ops`` loads it.

The code reads four records, rows of 64-bit words that ``eager_ops`` writes: of a meta (``META``), of an op (``OP``), of
a step of the tape (``STEP``), and of a backward pass over large arrays (``JOB`` and ``PART``).  They hold the addresses
of programs (``PROGRAM`` and ``CALL``), which ``eager_programs`` writes: a program is a list of calls of NumPy's own
inner loops, whose operands and results are numbered registers.

No object is changed before everything is computed.  Where an operand has an unexpected type or layout, or where a loop
set a floating-point flag, so that NumPy may have to warn, the result is dropped and Python performs the op instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from pullback.compiler.runtime.abi.code_writer import Writer
from pullback.compiler.runtime.abi.layout import OFFSETS

__all__ = ["CALL", "BLOCK", "EXPORTS", "META", "OP", "OUT", "REGISTERS", "SCRATCH", "STEP", "write_code"]

EXPORTS = ("unary", "binary", "reflected", "walk", "run", "run_blocks")
SCRATCH = 32 * 1024  # bytes of the largest array that an op computes here, and of each buffer for temporaries
BLOCK = 2048  # elements of large arrays that are computed at a time: dozens of such buffers fit into the cache
REUSED = 4096  # largest cotangent, in bytes, that is copied into the memory of its node's own cotangent

# The records: the names of their fields, with the position of each in words.

# Of a meta (the shape, dtype and tape that tensors share), written by ``Machine.prepare`` into ``Meta.record``.
ARRAY, SCALAR, NESTED = range(3)  # what the values of its tensors are; nested: tensors of another tape
META = {
    "kind": 0,  # ARRAY, SCALAR or NESTED
    "dtype": 1,  # 0 for float32, 1 for float64
    "item": 2,  # bytes of an element
    "count": 3,  # number of elements
    "nodes": 4,  # address of the list that new nodes are appended to, 0 where nothing is recorded
    "descr": 5,  # address of the dtype object
    "rank": 6,
    "number": 7,  # address of the type of NumPy's scalars of this dtype
    "rows": 8,  # an array is computed as a matrix: the product of all lengths but the last
    "columns": 9,  # the last length
    "shape": 10,  # the first of ``rank`` lengths
}
# Of an op, written by ``Machine.make_op``; the first word is not used.
OP = {
    "single": 1,  # address of the program for float32
    "double": 2,  # the same for float64
    "function": 3,  # address of the op's function in Python, which performs it on tensors of another tape
    "step": 4,  # address of the step (``tape.Step``) of a node whose inputs are all on the tape
    "left": 5,  # the same where only the first of two inputs is on the tape
    "right": 6,  # the same where only the second is
    "has_shortcuts": 7,  # whether Python performs the op in another way for some numbers
    "fit_x": 8,  # the step where both inputs are on the tape and the first was broadcast
    "fit_y": 9,  # the same where the second was
    "keeps_y": 10,  # whether the rules of ``left`` read the second input
}
# Of a step, written by ``Machine.describe_step`` into ``Step.step_record``.
STEP = {
    "two": 0,  # whether both operands have a rule
    "single": 1,  # addresses of the programs of the first operand's rule: for float32, then for float64
    "second_single": 3,  # the same for the second operand's
    "numbers": 5,  # whether the programs also give what NumPy's scalars would
    "fitted": 6,  # which operand (1 or 2) was broadcast, so that its cotangent is summed by ``fit``; 0 for none
}
# Of a backward pass over several nodes with large values, written by ``Machine.pull_large`` and read by ``run_blocks``.
JOB = {
    "count": 0,  # elements of each array
    "item": 1,  # bytes of an element
    "sum": 2,  # address of the program that adds two cotangents
    "scratch": 3,  # address of memory for temporaries
    "parts": 4,  # number of parts
    "block": 5,  # the block that is being computed; ``run_blocks`` counts it up
    "part": 6,  # the part that is next in this block; ``run_blocks`` counts it up
    "first": 7,  # the first part; the others follow
}
# One part of a job for each operand of each node: the rule that computes the operand's cotangent.  A place is three
# words: an address, the stride from element to element, and by how many bytes per element the address of the next
# block lies further on, which is 0 for a single number and for a buffer that every block uses again.
PART = {
    "program": 0,  # address of the program of the rule
    "inputs": 1,  # four places: the cotangent, the result and the operands of the node
    "before": 13,  # the place of a cotangent that the new one is added to; all 0 for none
    "out": 16,  # the place where the cotangent is written
    "reported": 19,  # floating-point flags that ``run_blocks`` does not return: ignored by the user, or known already
    "words": 20,  # no field: the length of a part
}
# A program, written by ``eager_programs``.
PROGRAM = {
    "length": 0,  # number of calls
    "numbers": 1,  # whether NumPy computes its scalars by the same loops
    "reads": 2,  # bit i is set if input register i is read
    "calls": 3,  # the first call; the others follow
}
CALL = {
    "loop": 0,  # address of NumPy's inner loop
    "data": 1,  # address of the data that it is called with
    "inputs": 2,  # their number, 1 or 2
    "first": 3,  # an input: a register, or the address of a constant where the number is not below REGISTERS
    "second": 4,
    "out": 5,  # the register of the result
}
C_CONTIGUOUS, OWNS_DATA, ALIGNED, WRITEABLE = 1, 4, 256, 1024  # NumPy's flags of arrays

# Registers 0 to 3 are inputs: of a rule the cotangent, the result and the two operands of a node, of an op its inputs.
# Register 4 (OUT) is the result, the others are temporaries.
INPUTS, OUT, REGISTERS = 4, 4, 8
FLAGS = 0x1D  # of floating-point arithmetic: invalid (1), division by zero (4), overflow (8), underflow (16)
SUM_OF_SCALARS = 0x100  # added to the flags of a sum of cotangents if these are scalars, not arrays
SUM_SHIFT = 8  # bits by which ``run_blocks`` shifts the flags of a sum, to return them beside those of the rule

DECLARED = """
@ndarray = external global i8
@tensor_type = external global i8
@meta_type = external global i8
@bytes_type = external global i8
@float_type = external global i8
@int_type = external global i8
@none = external global i8
@scratch = external global i8
@sums = external global i8
@fit = external global i8
@warn_of_sum = external global i8
@walk_node = external global i8
@prepare = external global i8
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @PyArray_Scalar(ptr, ptr, ptr)
declare ptr @PyArray_NewCopy(ptr, i32)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare i32 @PyList_Append(ptr, ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyNumber_Add(ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyLong_FromLong(i64)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @fetestexcept(i32)
declare i32 @feclearexcept(i32)
"""


class ObjectWriter(Writer):
    """A writer of functions that read and fill the slots of tensors, metas and steps."""

    slots: Mapping[str, int] = {}  # the offset of each slot, in bytes, which ``write_code`` sets

    def slot(self, x: str, name: str) -> str:
        """Return what a slot of an object refers to, without a new reference."""
        return self.load("ptr", x, self.slots[name])

    def type_of(self, x: str) -> str:
        return self.load("ptr", x, OFFSETS["TYPE"])

    def require_type(self, x: str, kind: str, otherwise: str) -> None:
        self.require(self.compare("eq", self.type_of(x), kind), otherwise)

    def incref(self, x: str) -> None:
        """Take a reference to an object."""
        self.call_void("@Py_IncRef", f"ptr {x}")

    def decref(self, x: str) -> None:
        """Release a reference to an object."""
        self.call_void("@Py_DecRef", f"ptr {x}")

    def set_slot(self, r: str, name: str, x: str, hold: bool = True) -> None:
        """Store an object in an empty slot; without ``hold`` the slot takes over the caller's reference."""
        if hold:
            self.incref(x)
        self.store("ptr", x, r, self.slots[name])

    def replace_slot(self, r: str, name: str, x: str) -> None:
        """Store an object in a slot, which takes over the caller's reference, and release what was there."""
        before = self.slot(r, name)
        self.store("ptr", x, r, self.slots[name])
        self.decref(before)

    def allocate_registers(self) -> tuple[str, str]:
        """Return the addresses of two arrays for ``run``: the address, and the two strides, of each register."""
        return self.allocate(f"[{REGISTERS} x ptr]"), self.allocate(f"[{2 * REGISTERS} x i64]")

    def run_program(self, program: str, memory: str, strides: str, code: str) -> str:
        """Return the floating-point flags that the loops of a program set (see ``write_run``)."""
        return self.call("i32", "@run", *(f"ptr {v}" for v in (program, memory, strides, code)))

    def refcount(self, x: str) -> str:
        return self.load("i32", x)

    def is_none(self, x: str) -> str:
        return self.compare("eq", x, "@none")

    def ret_none(self) -> None:
        self.incref("@none")
        self.ret("ptr", "@none")


def write_operand() -> str:
    """Return ``operand(v, code, strides)``: the address of a value's elements, null if the value does not fit a meta.

    A value fits if it has the meta's dtype and is an array that broadcasts to its shape as a matrix, with strides that
    are not negative and larger from row to row than from column to column, or a scalar.  Its two strides are stored,
    first that from column to column.  Other layouts are left to Python: NumPy's results have another order there.
    """
    w = ObjectWriter("ptr", "operand", "ptr v", "ptr code", "ptr strides")
    kind = w.type_of("%v")
    w.require(w.compare("eq", kind, "@ndarray"), "number")
    dtype = w.load("ptr", "%v", OFFSETS["ARRAY_DTYPE"])
    w.require(w.compare("eq", dtype, w.word("%code", META["descr"], "ptr")), "odd")
    flags = w.load("i32", "%v", OFFSETS["ARRAY_FLAGS"])
    w.require(w.compare("ne", w.let(f"and i32 {flags}, {ALIGNED}"), 0, "i32"), "odd")
    rank = w.let(f"sext i32 {w.load('i32', '%v', OFFSETS['ARRAY_RANK'])} to i64")
    data = w.load("ptr", "%v", OFFSETS["ARRAY_DATA"])
    w.set_word(0, "%strides", 0)
    w.set_word(0, "%strides", 1)
    w.jump_if(w.compare("eq", rank, 0, "i64"), "fits")
    shape = w.load("ptr", "%v", OFFSETS["ARRAY_SHAPE"])
    steps = w.load("ptr", "%v", OFFSETS["ARRAY_STRIDES"])
    lengths = w.at("%code", META["shape"], "i64")
    wanted = w.word("%code", META["rank"])
    columns = w.word("%code", META["columns"])
    w.require(w.compare("eq", rank, wanted, "i64"), "lower")
    i = w.loop("lengths", rank)
    w.require(w.compare("eq", w.word(shape, i), w.word(lengths, i), "i64"), "unlike")
    w.end_loop("lengths")
    w.require(w.compare("ne", w.let(f"and i32 {flags}, {C_CONTIGUOUS}"), 0, "i32"), "strided")
    item = w.word("%code", META["item"])
    w.set_word(item, "%strides", 0)
    w.set_word(w.let(f"mul i64 {item}, {columns}"), "%strides", 1)
    w.jump("fits")
    w.label("fits")
    w.ret("ptr", data)

    w.label("lower")  # one axis less: a row of a matrix, or a single element
    w.require(w.compare("eq", rank, 1, "i64"), "odd")
    w.require(w.compare("eq", wanted, 2, "i64"), "odd")
    length = w.word(shape, 0)
    w.jump_if(w.compare("eq", length, 1, "i64"), "fits")
    w.require(w.compare("eq", length, columns, "i64"), "odd")
    along = w.word(steps, 0)
    w.require(w.compare("sge", along, 0, "i64"), "odd")
    w.set_word(along, "%strides", 0)
    w.jump("fits")

    w.label("unlike")  # other lengths: a matrix with one row or one column, which is broadcast
    w.require(w.compare("eq", rank, 2, "i64"), "odd")
    for axis, name in ((0, "down"), (1, "across")):
        has, must = w.word(shape, axis), w.word(lengths, axis)
        w.jump_if(w.compare("eq", has, 1, "i64"), name)
        w.require(w.compare("eq", has, must, "i64"), "odd")
        step = w.word(steps, axis)
        w.require(w.compare("sge", step, 0, "i64"), "odd")
        w.set_word(step, "%strides", 1 - axis)
        w.jump(name)
        w.label(name)
    w.jump("ordered")

    w.label("strided")  # the same lengths, but not in C order
    w.jump_if(w.compare("eq", rank, 1, "i64"), "line")
    w.jump_if(w.compare("eq", rank, 2, "i64"), "plane")
    j = w.loop("steps", rank)  # more axes: one number that is repeated
    w.require(w.compare("eq", w.word(steps, j), 0, "i64"), "odd")
    w.end_loop("steps")
    w.jump("fits")
    w.label("line")
    w.set_word(w.word(steps, 0), "%strides", 0)
    w.jump("ordered")
    w.label("plane")
    w.set_word(w.word(steps, 1), "%strides", 0)
    w.set_word(w.word(steps, 0), "%strides", 1)
    w.jump("ordered")
    w.label("ordered")  # the strides must not be negative, and larger from row to row
    inner, outer = w.word("%strides", 0), w.word("%strides", 1)
    w.require(w.compare("sge", inner, 0, "i64"), "odd")
    w.require(w.compare("sge", outer, 0, "i64"), "odd")
    w.jump_if(w.compare("eq", outer, 0, "i64"), "fits")
    w.require(w.compare("sge", outer, inner, "i64"), "odd")
    w.jump("fits")

    w.label("number")  # a NumPy scalar of the same dtype
    w.require(w.compare("eq", kind, w.word("%code", META["number"], "ptr")), "odd")
    w.set_word(0, "%strides", 0)
    w.set_word(0, "%strides", 1)
    w.ret("ptr", w.at("%v", OFFSETS["NUMBER"]))
    w.label("odd")
    w.ret("ptr", "null")
    return w.text()


def write_clear_flags() -> str:
    """Return ``clear_flags()``, which clears the floating-point flags.

    Most often none is set, and testing is quicker than clearing.  Both are done by the C library, which knows both sets
    of flags of x86, of SSE and of the older x87 unit: it sets some, such as overflow, in the latter.
    """
    w = Writer("void", "clear_flags")
    w.require(w.compare("ne", w.call("i32", "@fetestexcept", f"i32 {FLAGS}"), 0, "i32"), "clear")
    w.call("i32", "@feclearexcept", f"i32 {FLAGS}")
    w.ret_void()
    w.label("clear")
    w.ret_void()
    return w.text()


def write_run() -> str:
    """Return ``run(program, memory, strides, code)``, which calls the inner loops of a program, on arrays like a meta.

    ``memory`` has the address of each register, ``strides`` two strides of each.  A loop is called once if every
    operand has one stride for the whole array, else for each row.  The result is the floating-point flags that were
    set; they are read after every loop, because some of NumPy's loops clear them.
    """
    w = ObjectWriter("i32", "run", "ptr program", "ptr memory", "ptr strides", "ptr code", internal=False)
    seen = w.allocate("i32")
    w.store("i32", 0, seen)
    w.call_void("@clear_flags")
    given = w.allocate("[3 x ptr]")  # the addresses that an inner loop is called with: of inputs, then of the output
    steps, outer = w.allocate("[3 x i64]"), w.allocate("[3 x i64]")  # their strides along a row, and from row to row
    count = w.allocate("i64")
    one_row = w.allocate("i1")
    item, rows, columns = (w.word("%code", META[name]) for name in ("item", "rows", "columns"))
    has_one_row = w.compare("eq", rows, 1, "i64")
    row_bytes = w.let(f"mul i64 {item}, {columns}")
    first = w.at("%program", PROGRAM["calls"], "i64")
    i = w.loop("calls", w.word("%program", PROGRAM["length"]))
    call = w.at(first, w.let(f"mul i64 {i}, {len(CALL)}"), "i64")
    inputs = w.word(call, CALL["inputs"])
    w.store("i1", 1, one_row)
    j = w.loop("inputs", inputs)
    which = w.word(w.at(call, CALL["first"], "i64"), j)
    is_register = w.compare("ult", which, REGISTERS, "i64")
    number = w.select(is_register, "i64", which, 0)
    pair = w.at("%strides", w.let(f"mul i64 {number}, 2"), "i64")
    own, inner, between = w.word("%memory", number, "ptr"), w.word(pair, 0), w.word(pair, 1)
    w.set_word(w.select(is_register, "ptr", own, w.let(f"inttoptr i64 {which} to ptr")), given, j, "ptr")
    along = w.select(is_register, "i64", inner, 0)
    w.set_word(along, steps, j)
    across = w.select(is_register, "i64", between, 0)
    w.set_word(across, outer, j)
    goes_on = w.compare("eq", across, w.let(f"mul i64 {along}, {columns}"), "i64")
    before = w.load("i1", one_row)
    w.store("i1", w.both(before, w.either(goes_on, has_one_row)), one_row)
    w.end_loop("inputs")
    w.set_word(w.word("%memory", w.word(call, CALL["out"]), "ptr"), given, inputs, "ptr")
    w.set_word(item, steps, inputs)
    w.set_word(row_bytes, outer, inputs)
    loop, data = w.word(call, CALL["loop"], "ptr"), w.word(call, CALL["data"], "ptr")
    at_once = w.load("i1", one_row)
    w.store("i64", w.select(at_once, "i64", w.word("%code", META["count"]), columns), count)
    w.loop("rows", w.select(at_once, "i64", 1, rows))
    w.call_void(loop, f"ptr {given}", f"ptr {count}", f"ptr {steps}", f"ptr {data}")
    flags = w.call("i32", "@fetestexcept", f"i32 {FLAGS}")
    w.store("i32", w.let(f"or i32 {w.load('i32', seen)}, {flags}"), seen)
    for k in range(3):
        further = w.at(w.word(given, k, "ptr"), w.word(outer, k))
        w.set_word(further, given, k, "ptr")
    w.end_loop("rows")
    w.end_loop("calls")
    w.ret("i32", w.load("i32", seen))
    return w.text()


def write_fresh() -> str:
    """Return ``fresh(code)``, which makes a new array like a meta, and ``number(memory, code)``, for a NumPy scalar."""
    w = ObjectWriter("ptr", "fresh", "ptr code")
    descr = w.word("%code", META["descr"], "ptr")
    w.incref(descr)  # which the array takes over
    rank = w.let(f"trunc i64 {w.word('%code', META['rank'])} to i32")
    shape = w.at("%code", META["shape"], "i64")
    made = w.call(
        "ptr", "@PyArray_NewFromDescr", "ptr @ndarray", f"ptr {descr}", f"i32 {rank}", f"ptr {shape}", "ptr null",
        "ptr null", "i32 0", "ptr null",
    )  # fmt: skip
    w.ret("ptr", made)
    n = ObjectWriter("ptr", "number", "ptr memory", "ptr code")
    descr = n.word("%code", META["descr"], "ptr")
    n.ret("ptr", n.call("ptr", "@PyArray_Scalar", "ptr %memory", f"ptr {descr}", "ptr null"))
    return w.text() + n.text()


def write_node() -> str:
    """Return ``node(v, m, record, step, x, y)``, which makes a tensor and appends it to the tape as a node.

    It takes over the reference to the value ``v``.  It gives None, and Python performs the op, if the meta changed
    meanwhile: making an object may run finalizers.
    """
    w = ObjectWriter("ptr", "node", "ptr v", "ptr m", "ptr record", "ptr step", "ptr x", "ptr y")
    r = w.call("ptr", "@PyType_GenericAlloc", "ptr @tensor_type", "i64 0")
    w.jump_if(w.compare("eq", r, "null"), "failed")
    w.require(w.compare("eq", w.slot("%m", "record"), "%record"), "changed")
    w.set_slot(r, "value", "%v", hold=False)
    w.set_slot(r, "meta", "%m")
    w.set_slot(r, "via", "%step")
    w.set_slot(r, "g", "@none")
    code = w.at("%record", OFFSETS["BYTES_DATA"])
    nodes = w.word(code, META["nodes"], "ptr")
    w.jump_if(w.compare("eq", nodes, "null"), "constant")
    w.set_slot(r, "x", "%x")
    w.set_slot(r, "y", "%y")
    status = w.call("i32", "@PyList_Append", f"ptr {nodes}", f"ptr {r}")
    w.jump_if(w.compare("slt", status, 0, "i32"), "refused")
    w.ret("ptr", r)
    w.label("constant")
    w.set_slot(r, "x", "@none")
    w.set_slot(r, "y", "@none")
    w.ret("ptr", r)
    w.label("changed")
    w.decref(r)
    w.decref("%v")
    w.ret_none()
    w.label("refused")
    w.decref(r)
    w.ret("ptr", "null")
    w.label("failed")
    w.decref("%v")
    w.ret("ptr", "null")
    return w.text()


def write_compute() -> str:
    """Return ``compute(plan, m, record, step, x, y, vx, vy)``, which performs an op and makes the node of its result.

    ``plan`` is the record of the op, ``m`` the meta of the result and ``record`` its record.  ``x`` and ``y`` are what
    the node keeps as its operands; ``vx`` and ``vy`` are the values of the op's inputs, ``vy`` null if there is one.
    """
    w = ObjectWriter(
        "ptr", "compute", "ptr plan", "ptr m", "ptr record", "ptr step", "ptr x", "ptr y", "ptr vx", "ptr vy",
    )  # fmt: skip
    (memory, strides), own = w.allocate_registers(), w.allocate("[2 x i64]")
    code = w.at("%record", OFFSETS["BYTES_DATA"])
    kind = w.word(code, META["kind"])
    w.jump_if(w.compare("eq", kind, NESTED, "i64"), "above")
    dtype = w.word(code, META["dtype"])
    program = w.word(w.at("%plan", OP["single"], "i64"), dtype, "ptr")
    w.require(w.compare("ne", program, "null"), "odd")
    is_number = w.compare("eq", kind, SCALAR, "i64")
    allowed = w.compare("ne", w.word(program, PROGRAM["numbers"]), 0, "i64")
    w.require(w.either(allowed, w.compare("eq", kind, ARRAY, "i64")), "odd")
    w.incref("%m")
    first = w.call("ptr", "@operand", "ptr %vx", f"ptr {code}", f"ptr {strides}")
    w.require(w.compare("ne", first, "null"), "unfit")
    w.set_word(first, memory, 0, "ptr")
    w.jump_if(w.compare("eq", "%vy", "null"), "ready")
    second = w.call("ptr", "@operand", "ptr %vy", f"ptr {code}", f"ptr {w.at(strides, 16)}")
    w.require(w.compare("ne", second, "null"), "unfit")
    w.set_word(second, memory, 1, "ptr")
    w.jump("ready")
    w.label("ready")
    set_temporaries(w, code, memory, strides, range(OUT + 1, REGISTERS))
    w.branch(is_number, "number", "array")
    w.label("number")
    w.set_word(own, memory, OUT, "ptr")
    flags = w.run_program(program, memory, strides, code)
    w.require(w.compare("eq", flags, 0, "i32"), "unfit")
    single = w.call("ptr", "@number", f"ptr {own}", f"ptr {code}")
    w.jump_if(w.compare("eq", single, "null"), "failed")
    made = w.call(
        "ptr", "@node", f"ptr {single}", "ptr %m", "ptr %record", "ptr %step", "ptr %x", "ptr %y"
    )  # fmt: skip
    w.decref("%m")
    w.ret("ptr", made)
    w.label("array")
    v = w.call("ptr", "@fresh", f"ptr {code}")
    w.jump_if(w.compare("eq", v, "null"), "failed")
    w.set_word(w.load("ptr", v, OFFSETS["ARRAY_DATA"]), memory, OUT, "ptr")
    flags = w.run_program(program, memory, strides, code)
    w.require(w.compare("eq", flags, 0, "i32"), "flagged")
    made = w.call("ptr", "@node", f"ptr {v}", "ptr %m", "ptr %record", "ptr %step", "ptr %x", "ptr %y")
    w.decref("%m")
    w.ret("ptr", made)

    w.label("above")  # the values are tensors of another tape: call the op's function on them
    given = w.allocate("[2 x ptr]")
    w.incref("%m")
    w.set_word("%vx", given, 0, "ptr")
    w.set_word("%vy", given, 1, "ptr")
    w.incref("%vx")
    has_one = w.compare("eq", "%vy", "null")
    count = w.select(has_one, "i64", 1, 2)
    held = w.select(has_one, "ptr", "@none", "%vy")
    w.incref(held)
    function = w.word("%plan", OP["function"], "ptr")
    beneath = w.call("ptr", "@PyObject_Vectorcall", f"ptr {function}", f"ptr {given}", f"i64 {count}", "ptr null")
    w.decref("%vx")
    w.decref(held)
    w.jump_if(w.compare("eq", beneath, "null"), "failed")
    made = w.call("ptr", "@node", f"ptr {beneath}", "ptr %m", "ptr %record", "ptr %step", "ptr %x", "ptr %y")
    w.decref("%m")
    w.ret("ptr", made)

    w.label("flagged")
    w.decref(v)
    w.jump("unfit")
    w.label("unfit")
    w.decref("%m")
    w.jump("odd")
    w.label("odd")
    w.ret_none()
    w.label("failed")
    w.decref("%m")
    w.ret("ptr", "null")
    return w.text()


def set_temporaries(w: ObjectWriter, code: str, memory: str, strides: str, registers: range) -> None:
    """Write the code that gives registers memory for temporaries, in C order."""
    is_number = w.compare("eq", w.word(code, META["kind"]), SCALAR, "i64")
    along = w.select(is_number, "i64", 0, w.word(code, META["item"]))
    across = w.let(f"mul i64 {along}, {w.word(code, META['columns'])}")
    for place, i in enumerate(registers):
        w.set_word(w.at("@scratch", place * SCRATCH), memory, i, "ptr")
        w.set_word(along, strides, 2 * i)
        w.set_word(across, strides, 2 * i + 1)


def begin_op(w: ObjectWriter, x: str) -> tuple[str, str, str]:
    """Write the beginning of an op's function; return the op's record, the meta of ``x`` and the meta's record.

    The labels ``odd`` and ``unprepared`` are written by ``end_op``.
    """
    plan = w.at(w.load("ptr", "%self", OFFSETS["TUPLE_ITEMS"]), OFFSETS["BYTES_DATA"])
    w.require_type(x, "@tensor_type", "odd")
    m = w.slot(x, "meta")
    w.require(w.compare("ne", m, "null"), "odd")
    w.require_type(m, "@meta_type", "odd")
    record = w.slot(m, "record")
    w.require_type(record, "@bytes_type", "unprepared")
    return plan, m, record


def write_prepare() -> str:
    """Return ``prepare_meta(m)``, which has Python write the record of a meta that has none; null for an error.

    It gives None, so that Python performs this op; the next one finds the record.
    """
    w = ObjectWriter("ptr", "prepare_meta", "ptr m")
    w.require(w.is_none(w.slot("%m", "record")), "known")
    given = w.allocate("ptr")
    w.store("ptr", "%m", given)
    prepare = w.load("ptr", "@prepare")
    w.ret("ptr", w.call("ptr", "@PyObject_Vectorcall", f"ptr {prepare}", f"ptr {given}", "i64 1", "ptr null"))
    w.label("known")
    w.ret_none()
    return w.text()


def end_op(w: ObjectWriter, m: str) -> None:
    """Write the end of an op's function: the labels for what it does not perform and for errors."""
    w.label("unprepared")
    w.ret("ptr", w.call("ptr", "@prepare_meta", f"ptr {m}"))
    w.label("failed")
    w.ret("ptr", "null")
    w.label("odd")
    w.ret_none()


def call_compute(
    w: ObjectWriter, plan: str, m: str, record: str, step: str, held: tuple[str, ...] = (), **values: str
) -> None:
    """Write a call of ``compute`` and return its result; ``held`` are objects that are released after the call."""
    given = [f"ptr {values[name]}" for name in ("x", "y", "vx", "vy")]
    made = w.call("ptr", "@compute", f"ptr {plan}", f"ptr {m}", f"ptr {record}", f"ptr {step}", *given)
    for v in held:
        w.decref(v)
    w.ret("ptr", made)


def write_unary() -> str:
    """Return ``unary(x)``, the function of an op of one input; it gives None if Python must perform the op."""
    w = ObjectWriter("ptr", "unary", "ptr self", "ptr args", "i64 given", internal=False)
    x = w.load("ptr", "%args")
    plan, m, record = begin_op(w, x)
    v = w.slot(x, "value")
    w.require(w.compare("ne", v, "null"), "odd")
    call_compute(w, plan, m, record, w.word(plan, OP["step"], "ptr"), x=x, y="@none", vx=v, vy="null")
    end_op(w, m)
    return w.text()


def find_constant(w: ObjectWriter, m: str, number: str) -> str:
    """Write the lookup of a Python number among the constants that a meta keeps; return the constant, held."""
    kind = w.type_of(number)
    w.require(w.either(w.compare("eq", kind, "@float_type"), w.compare("eq", kind, "@int_type")), "odd")
    found = w.call("ptr", "@PyDict_GetItemWithError", f"ptr {w.slot(m, 'constants')}", f"ptr {number}")
    w.jump_if(w.compare("ne", found, "null"), "known")
    error = w.call("ptr", "@PyErr_Occurred")
    w.branch(w.compare("ne", error, "null"), "failed", "odd")
    w.label("known")
    w.incref(found)  # making a node may run finalizers, and these may empty the dict
    return found


def write_binary() -> str:
    """Return ``binary(x, y)``, the function of an op of a tensor ``x`` and a tensor, a Python number or an array.

    It gives None if Python must perform the op.
    """
    w = ObjectWriter("ptr", "binary", "ptr self", "ptr args", "i64 given", internal=False)
    x, y = w.load("ptr", "%args"), w.load("ptr", "%args", 8)
    plan, m, record = begin_op(w, x)
    vx = w.slot(x, "value")
    w.require(w.compare("ne", vx, "null"), "odd")
    w.require_type(y, "@tensor_type", "other")
    q, vy = w.slot(y, "meta"), w.slot(y, "value")
    w.require(w.compare("ne", vy, "null"), "odd")
    w.require(w.compare("eq", q, m), "broadcast")
    call_compute(w, plan, m, record, w.word(plan, OP["step"], "ptr"), x=x, y=y, vx=vx, vy=vy)

    w.label("broadcast")  # the result has the meta of the larger one; if the other does not fit it, Python performs it
    w.require_type(q, "@meta_type", "odd")
    second = w.slot(q, "record")
    w.require_type(second, "@bytes_type", "second")
    code, other = w.at(record, OFFSETS["BYTES_DATA"]), w.at(second, OFFSETS["BYTES_DATA"])
    for its in (code, other):
        w.require(w.compare("ne", w.word(its, META["kind"]), NESTED, "i64"), "odd")
    for name in ("dtype", "nodes"):
        w.require(w.compare("eq", w.word(code, META[name]), w.word(other, META[name]), "i64"), "odd")
    size, other_size = (w.word(its, META["count"]) for its in (code, other))
    rank, other_rank = (w.word(its, META["rank"]) for its in (code, other))
    larger = w.compare("sgt", size, other_size, "i64")
    as_large = w.compare("eq", size, other_size, "i64")
    first = w.either(larger, w.both(as_large, w.compare("sgt", rank, other_rank, "i64")))
    its_meta, its_record = w.select(first, "ptr", m, q), w.select(first, "ptr", record, second)
    step = w.select(first, "ptr", w.word(plan, OP["fit_y"], "ptr"), w.word(plan, OP["fit_x"], "ptr"))
    call_compute(w, plan, its_meta, its_record, step, x=x, y=y, vx=vx, vy=vy)

    w.label("second")
    w.ret("ptr", w.call("ptr", "@prepare_meta", f"ptr {q}"))

    w.label("other")
    w.jump_if(w.compare("eq", w.type_of(y), "@ndarray"), "array")
    w.require(w.compare("eq", w.word(plan, OP["has_shortcuts"]), 0, "i64"), "odd")
    c = find_constant(w, m, y)
    call_compute(w, plan, m, record, w.word(plan, OP["left"], "ptr"), (c,), x=x, y=c, vx=vx, vy=c)

    w.label("array")  # the caller may change it later, so a node whose rules read it keeps a copy
    code = w.at(record, OFFSETS["BYTES_DATA"])
    w.require(w.compare("eq", w.word(code, META["kind"]), ARRAY, "i64"), "odd")
    fits = w.call("ptr", "@operand", f"ptr {y}", f"ptr {code}", f"ptr {w.allocate('[2 x i64]')}")
    w.require(w.compare("ne", fits, "null"), "odd")
    w.require(w.compare("ne", w.word(plan, OP["keeps_y"]), 0, "i64"), "unread")
    held = m, record, vx  # NumPy lets other threads run while it copies
    for v in held:
        w.incref(v)
    copy = w.call("ptr", "@PyArray_NewCopy", f"ptr {y}", "i32 0")
    w.jump_if(w.compare("eq", copy, "null"), "uncopied")
    call_compute(w, plan, m, record, w.word(plan, OP["left"], "ptr"), (copy, *held), x=x, y=copy, vx=vx, vy=copy)
    w.label("uncopied")
    for v in held:
        w.decref(v)
    w.jump("failed")
    w.label("unread")
    call_compute(w, plan, m, record, w.word(plan, OP["left"], "ptr"), x=x, y=y, vx=vx, vy=y)
    end_op(w, m)
    return w.text()


def write_reflected() -> str:
    """Return ``reflected(y, x)``, the function of an op whose first input is a Python number ``x``."""
    w = ObjectWriter("ptr", "reflected", "ptr self", "ptr args", "i64 given", internal=False)
    y, x = w.load("ptr", "%args"), w.load("ptr", "%args", 8)
    plan, m, record = begin_op(w, y)
    vy = w.slot(y, "value")
    w.require(w.compare("ne", vy, "null"), "odd")
    c = find_constant(w, m, x)
    call_compute(w, plan, m, record, w.word(plan, OP["right"], "ptr"), (c,), x=y, y=c, vx=c, vy=vy)
    end_op(w, m)
    return w.text()


def write_run_blocks() -> str:
    """Return ``run_blocks(job)``, which runs the parts of a job (see ``JOB``); it gives 0 when all is done.

    All parts run on one block, then on the next, so that what they read, the cotangents between them and temporaries
    stay in the cache.  Where an operand has a cotangent already, the new one is added to it.  If a part sets
    floating-point flags that were not reported before, the call ends and returns them, for NumPy to warn of them; the
    next call goes on with the part after.
    """
    w = ObjectWriter("i32", "run_blocks", "ptr job", internal=False)
    memory, strides = w.allocate_registers()
    (sides, steps), code = w.allocate_registers(), w.allocate("[12 x i64]")
    seen = w.allocate("i32")
    count, item = w.word("%job", JOB["count"]), w.word("%job", JOB["item"])
    scratch, total = w.word("%job", JOB["scratch"], "ptr"), w.word("%job", JOB["sum"], "ptr")
    w.set_word(ARRAY, code, META["kind"])
    w.set_word(item, code, META["item"])
    w.set_word(1, code, META["rows"])
    for i in range(2 * REGISTERS):
        w.set_word(0 if i % 2 else item, strides, i)
        w.set_word(0 if i % 2 else item, steps, i)
    for i in range(OUT + 1, REGISTERS):
        w.set_word(w.at(scratch, (i - OUT) * 8 * BLOCK), memory, i, "ptr")
    w.label("block", falls=True)
    b = w.word("%job", JOB["block"])
    start = w.let(f"mul i64 {b}, {BLOCK}")
    w.require(w.compare("slt", start, count, "i64"), "done")
    left = w.let(f"sub i64 {count}, {start}")
    size = w.select(w.compare("slt", left, BLOCK, "i64"), "i64", left, BLOCK)
    w.set_word(size, code, META["count"])
    w.set_word(size, code, META["columns"])
    w.label("part", falls=True)
    k = w.word("%job", JOB["part"])
    w.require(w.compare("slt", k, w.word("%job", JOB["parts"]), "i64"), "next")
    w.set_word(w.let(f"add i64 {k}, 1"), "%job", JOB["part"])
    part = w.at(w.at("%job", JOB["first"], "i64"), w.let(f"mul i64 {k}, {PART['words']}"), "i64")

    def find(at: int) -> str:
        return w.at(w.word(part, at, "ptr"), w.let(f"mul i64 {start}, {w.word(part, at + 2)}"))

    for i in range(INPUTS):
        w.set_word(find(PART["inputs"] + 3 * i), memory, i, "ptr")
        w.set_word(w.word(part, PART["inputs"] + 3 * i + 1), strides, 2 * i)
    program, out = w.word(part, PART["program"], "ptr"), find(PART["out"])
    is_first = w.compare("eq", w.word(part, PART["before"], "ptr"), "null")
    w.set_word(w.select(is_first, "ptr", out, scratch), memory, OUT, "ptr")
    flags = w.run_program(program, memory, strides, code)
    w.store("i32", flags, seen)
    w.jump_if(is_first, "look")
    w.set_word(find(PART["before"]), sides, 0, "ptr")
    w.set_word(w.word(part, PART["before"] + 1), steps, 0)
    passes = w.compare("eq", w.word(program, PROGRAM["length"]), 0, "i64")
    w.set_word(w.select(passes, "ptr", w.load("ptr", memory), scratch), sides, 1, "ptr")
    w.set_word(w.select(passes, "i64", w.load("i64", strides), item), steps, 2)
    w.set_word(out, sides, OUT, "ptr")
    of_sum = w.run_program(total, sides, steps, code)
    of_sum = w.let(f"shl i32 {of_sum}, {SUM_SHIFT}")
    w.store("i32", w.let(f"or i32 {flags}, {of_sum}"), seen)
    w.jump("look")
    w.label("look")
    wide = w.let(f"zext i32 {w.load('i32', seen)} to i64")
    told = w.word(part, PART["reported"])
    new = w.let(f"and i64 {wide}, {w.let(f'xor i64 {told}, -1')}")
    w.jump_if(w.compare("eq", new, 0, "i64"), "part")
    w.set_word(w.let(f"or i64 {told}, {new}"), part, PART["reported"])
    w.ret("i32", w.let(f"trunc i64 {new} to i32"))
    w.label("next")
    w.set_word(0, "%job", JOB["part"])
    w.set_word(w.let(f"add i64 {b}, 1"), "%job", JOB["block"])
    w.jump("block")
    w.label("done")
    w.ret("i32", 0)
    return w.text()


def write_is_own() -> str:
    """Return ``is_own(v, code)``: whether a value is an array like a meta that has one reference and is writeable."""
    w = ObjectWriter("i1", "is_own", "ptr v", "ptr code")
    w.require_type("%v", "@ndarray", "no")
    w.require(w.compare("eq", w.refcount("%v"), 1, "i32"), "no")
    w.require(w.compare("eq", w.load("ptr", "%v", OFFSETS["ARRAY_BASE"]), "null"), "no")
    flags = w.load("i32", "%v", OFFSETS["ARRAY_FLAGS"])
    usual = C_CONTIGUOUS | OWNS_DATA | ALIGNED | WRITEABLE
    w.require(w.compare("eq", w.let(f"and i32 {flags}, {usual}"), usual, "i32"), "no")
    w.require(w.compare("eq", w.load("ptr", "%v", OFFSETS["ARRAY_DTYPE"]), w.word("%code", META["descr"], "ptr")), "no")
    rank = w.let(f"sext i32 {w.load('i32', '%v', OFFSETS['ARRAY_RANK'])} to i64")
    w.require(w.compare("ne", rank, 0, "i64"), "no")  # NumPy's result would be a number
    w.require(w.compare("eq", rank, w.word("%code", META["rank"]), "i64"), "no")
    shape, lengths = w.load("ptr", "%v", OFFSETS["ARRAY_SHAPE"]), w.at("%code", META["shape"], "i64")
    i = w.loop("lengths", rank)
    w.require(w.compare("eq", w.word(shape, i), w.word(lengths, i), "i64"), "no")
    w.end_loop("lengths")
    w.ret("i1", 1)
    w.label("no")
    w.ret("i1", 0)
    return w.text()


def write_object() -> str:
    """Return ``as_object(memory, code)``, which makes a new array or scalar like a meta of elements in memory."""
    w = ObjectWriter("ptr", "as_object", "ptr memory", "ptr code")
    is_number = w.compare("eq", w.word("%code", META["kind"]), SCALAR, "i64")
    w.branch(is_number, "number", "array")
    w.label("number")
    w.ret("ptr", w.call("ptr", "@number", "ptr %memory", "ptr %code"))
    w.label("array")
    v = w.call("ptr", "@fresh", "ptr %code")
    w.require(w.compare("ne", v, "null"), "failed")
    size = w.let(f"mul i64 {w.word('%code', META['count'])}, {w.word('%code', META['item'])}")
    data = w.load("ptr", v, OFFSETS["ARRAY_DATA"])
    w.call_void("@llvm.memcpy.p0.p0.i64", f"ptr {data}", "ptr %memory", f"i64 {size}", "i1 false")
    w.ret("ptr", v)
    w.label("failed")
    w.ret("ptr", "null")
    return w.text()


def write_add() -> str:
    """Return ``add(x, d, at, strides, code, r)``, which adds to the cotangent of a node; false for an error.

    What is added are the elements at an address; ``d`` is the object that they are in, null if there is none.  If the
    node has no cotangent yet and ``d`` is null, the elements are copied into the cotangent of ``r`` where nothing else
    refers to it, else into a new object.
    """
    w = ObjectWriter("i1", "add", "ptr x", "ptr d", "ptr at", "ptr strides", "ptr code", "ptr r")
    e = w.slot("%x", "g")
    count = w.word("%code", META["count"])
    size = w.let(f"mul i64 {count}, {w.word('%code', META['item'])}")
    memory, steps = w.allocate_registers()
    w.require(w.is_none(e), "more")

    w.jump_if(w.compare("eq", "%d", "null"), "new")
    w.incref("%d")
    w.replace_slot("%x", "g", "%d")
    w.ret("i1", 1)
    w.label("new")  # the first cotangent, in memory only
    w.require(w.compare("sle", size, REUSED, "i64"), "fresh")
    w.require(w.compare("eq", w.refcount("%r"), 1, "i32"), "fresh")
    g = w.slot("%r", "g")
    w.require(w.call("i1", "@is_own", f"ptr {g}", "ptr %code"), "fresh")
    data = w.load("ptr", g, OFFSETS["ARRAY_DATA"])
    w.call_void("@llvm.memcpy.p0.p0.i64", f"ptr {data}", "ptr %at", f"i64 {size}", "i1 false")
    w.incref(g)
    w.replace_slot("%x", "g", g)
    w.ret("i1", 1)
    w.label("fresh")  # into a new object
    made = w.call("ptr", "@as_object", "ptr %at", "ptr %code")
    w.require(w.compare("ne", made, "null"), "failed")
    w.replace_slot("%x", "g", made)
    w.ret("i1", 1)

    w.label("more")  # a further cotangent: the sum is written over the one before if nothing else refers to that
    mine = w.call("ptr", "@operand", f"ptr {e}", "ptr %code", f"ptr {steps}")
    w.require(w.compare("ne", mine, "null"), "general")
    w.set_word(mine, memory, 0, "ptr")
    w.set_word("%at", memory, 1, "ptr")
    for i in range(2):
        w.set_word(w.word("%strides", i), steps, 2 + i)
    sums = w.at("@sums", w.word("%code", META["dtype"]), "i64")
    own = w.call("i1", "@is_own", f"ptr {e}", "ptr %code")
    into = w.select(own, "ptr", mine, w.at("@scratch", 4 * SCRATCH))
    w.set_word(into, memory, OUT, "ptr")
    flags = w.run_program(w.load("ptr", sums), memory, steps, "%code")
    w.jump_if(own, "added")
    total = w.call("ptr", "@as_object", f"ptr {into}", "ptr %code")
    w.require(w.compare("ne", total, "null"), "failed")
    w.replace_slot("%x", "g", total)
    w.jump("added")
    w.label("added")  # NumPy warns of flags that the sum set
    w.require(w.compare("ne", flags, 0, "i32"), "silent")
    number = w.allocate("ptr")
    of_number = w.compare("eq", w.word("%code", META["kind"]), SCALAR, "i64")
    told = w.let(f"or i32 {flags}, {w.select(of_number, 'i32', SUM_OF_SCALARS, 0)}")
    flag = w.call("ptr", "@PyLong_FromLong", f"i64 {w.let(f'zext i32 {told} to i64')}")
    w.require(w.compare("ne", flag, "null"), "failed")
    w.store("ptr", flag, number)
    warn = w.load("ptr", "@warn_of_sum")
    told = w.call("ptr", "@PyObject_Vectorcall", f"ptr {warn}", f"ptr {number}", "i64 1", "ptr null")
    w.decref(flag)
    w.require(w.compare("ne", told, "null"), "failed")
    w.decref(told)
    w.jump("silent")
    w.label("silent")
    w.ret("i1", 1)

    w.label("general")  # the cotangent before does not fit: Python adds
    w.incref(e)
    w.jump_if(w.compare("ne", "%d", "null"), "held")
    object_made = w.call("ptr", "@as_object", "ptr %at", "ptr %code")
    w.jump_if(w.compare("eq", object_made, "null"), "let_go")
    both = w.call("ptr", "@PyNumber_Add", f"ptr {e}", f"ptr {object_made}")
    w.decref(object_made)
    w.decref(e)
    w.require(w.compare("ne", both, "null"), "failed")
    w.replace_slot("%x", "g", both)
    w.ret("i1", 1)
    w.label("held")
    both = w.call("ptr", "@PyNumber_Add", f"ptr {e}", "ptr %d")
    w.decref(e)
    w.require(w.compare("ne", both, "null"), "failed")
    w.replace_slot("%x", "g", both)
    w.ret("i1", 1)
    w.label("let_go")
    w.decref(e)
    w.jump("failed")
    w.label("failed")
    w.ret("i1", 0)
    return w.text()


def write_add_fitted() -> str:
    """Return ``add_fitted(x, d, at, code)``: ``add`` for an operand that was broadcast, summed by ``fit`` in Python."""
    w = ObjectWriter("i1", "add_fitted", "ptr x", "ptr d", "ptr at", "ptr code")
    given = w.allocate("[2 x ptr]")
    w.jump_if(w.compare("eq", "%d", "null"), "new")
    w.incref("%d")
    w.set_word("%d", given, 0, "ptr")
    w.jump("fit")
    w.label("new")
    made = w.call("ptr", "@as_object", "ptr %at", "ptr %code")
    w.require(w.compare("ne", made, "null"), "failed")
    w.set_word(made, given, 0, "ptr")
    w.jump("fit")
    w.label("fit")
    whole, value = w.load("ptr", given), w.slot("%x", "value")
    w.incref(value)
    w.set_word(value, given, 1, "ptr")
    fit = w.load("ptr", "@fit")
    d = w.call("ptr", "@PyObject_Vectorcall", f"ptr {fit}", f"ptr {given}", "i64 2", "ptr null")
    w.decref(whole)
    w.decref(value)
    w.require(w.compare("ne", d, "null"), "failed")
    e = w.slot("%x", "g")
    w.require(w.is_none(e), "more")
    w.replace_slot("%x", "g", d)
    w.ret("i1", 1)
    w.label("more")
    w.incref(e)
    total = w.call("ptr", "@PyNumber_Add", f"ptr {e}", f"ptr {d}")
    w.decref(e)
    w.decref(d)
    w.require(w.compare("ne", total, "null"), "failed")
    w.replace_slot("%x", "g", total)
    w.ret("i1", 1)
    w.label("failed")
    w.ret("i1", 0)
    return w.text()


class PullWriter(ObjectWriter):
    """Writes ``pull(r, other)``, which adds to the cotangents of a node's operands by the rules of its step.

    It gives 1 if that is done, 0 if Python must do it, -1 for an error.  The second cotangent is computed in ``other``,
    memory of the caller: adding the first may run Python, and with it other threads and backward passes, which use the
    common memory for temporaries.
    """

    def __init__(self) -> None:
        super().__init__("i32", "pull", "ptr r", "ptr other")
        self.memory, self.strides = self.allocate_registers()

    def write(self) -> str:
        """Return the text of the function."""
        self._check_records()
        self._check_operands()
        self._find_inputs()
        self._run_rules()
        self._add_cotangents()
        self.label("odd")
        self.ret("i32", 0)
        self.label("failed")
        self.decref(self.record)
        self.ret("i32", -1)
        return self.text()

    def _check_records(self) -> None:
        """Read the records of the step and of the meta, and find the programs of the rules."""
        step_record = self.slot(self.slot("%r", "via"), "step_record")
        self.require_type(step_record, "@bytes_type", "odd")
        self.meta = self.slot("%r", "meta")
        self.record = self.slot(self.meta, "record")
        self.require_type(self.record, "@bytes_type", "odd")
        self.code, self.step = self.at(self.record, OFFSETS["BYTES_DATA"]), self.at(step_record, OFFSETS["BYTES_DATA"])
        kind = self.word(self.code, META["kind"])
        self.jump_if(self.compare("eq", kind, NESTED, "i64"), "odd")
        dtype = self.word(self.code, META["dtype"])
        self.first = self.word(self.at(self.step, STEP["single"], "i64"), dtype, "ptr")
        self.require(self.compare("ne", self.first, "null"), "odd")
        self.second = self.word(self.at(self.step, STEP["second_single"], "i64"), dtype, "ptr")
        self.two = self.compare("ne", self.word(self.step, STEP["two"]), 0, "i64")
        is_array = self.compare("eq", kind, ARRAY, "i64")
        self.require(self.either(is_array, self.compare("ne", self.word(self.step, STEP["numbers"]), 0, "i64")), "odd")

    def _check_operands(self) -> None:
        """Check that operands with a rule are tensors with the node's meta, unless they were broadcast."""
        self.x, self.y = self.slot("%r", "x"), self.slot("%r", "y")
        self.require_type(self.x, "@tensor_type", "odd")
        fitted = self.word(self.step, STEP["fitted"])
        self.was_broadcast = [self.compare("eq", fitted, number, "i64") for number in (1, 2)]
        has_meta = self.compare("eq", self.slot(self.x, "meta"), self.meta)
        self.require(self.either(self.was_broadcast[0], has_meta), "odd")
        self.second_value = self.allocate("ptr")  # of the second operand, which is no tensor if it has no rule
        self.store("ptr", self.y, self.second_value)
        self.require(self.two, "one")
        self.require_type(self.y, "@tensor_type", "odd")
        has_meta = self.compare("eq", self.slot(self.y, "meta"), self.meta)
        self.require(self.either(self.was_broadcast[1], has_meta), "odd")
        self.require(self.compare("ne", self.second, "null"), "odd")
        self.store("ptr", self.slot(self.y, "value"), self.second_value)
        self.jump("one")
        self.label("one")

    def _find_inputs(self) -> None:
        """Set the registers of the cotangent, the result and the operands, of those that a program reads."""
        reads_first = self.word(self.first, PROGRAM["reads"])
        either = self.allocate("i64")
        self.store("i64", reads_first, either)
        self.require(self.two, "known")
        self.store("i64", self.let(f"or i64 {reads_first}, {self.word(self.second, PROGRAM['reads'])}"), either)
        self.jump("known")
        self.label("known")
        reads = self.load("i64", either)
        values = self.slot("%r", "g"), self.slot("%r", "value"), self.slot(self.x, "value")
        for i, v in enumerate((*values, self.load("ptr", self.second_value))):
            self.require(self.compare("ne", self.let(f"and i64 {reads}, {1 << i}"), 0, "i64"), f"unread{i}")
            self.require(self.compare("ne", v, "null"), "odd")
            at = self.call("ptr", "@operand", f"ptr {v}", f"ptr {self.code}", f"ptr {self.at(self.strides, 16 * i)}")
            self.require(self.compare("ne", at, "null"), "odd")
            self.set_word(at, self.memory, i, "ptr")
            self.jump(f"unread{i}")
            self.label(f"unread{i}")

    def _run_rules(self) -> None:
        """Run the programs of both rules; no object is changed until they are done."""
        set_temporaries(self, self.code, self.memory, self.strides, range(OUT, REGISTERS))
        flags = self.run_program(self.first, self.memory, self.strides, self.code)
        self.require(self.compare("eq", flags, 0, "i32"), "odd")
        self.require(self.two, "computed")
        self.set_word("%other", self.memory, OUT, "ptr")
        flags = self.run_program(self.second, self.memory, self.strides, self.code)
        self.require(self.compare("eq", flags, 0, "i32"), "odd")
        self.jump("computed")
        self.label("computed")

    def _add_cotangents(self) -> None:
        """Add what the rules computed to the cotangents of the operands."""
        self.incref(self.record)
        for number, (program, node, result) in enumerate(
            ((self.first, self.x, "@scratch"), (self.second, self.y, "%other"))
        ):
            if number:
                self.require(self.two, "done")
            g = self.slot("%r", "g")
            passes = self.compare("eq", self.word(program, PROGRAM["length"]), 0, "i64")  # the rule returns g itself
            d = self.select(passes, "ptr", g, "null")
            at = self.select(passes, "ptr", self.load("ptr", self.memory), result)
            steps = self.select(passes, "ptr", self.strides, self.at(self.strides, 16 * OUT))
            last = (
                "%r" if number else self.select(self.two, "ptr", "@none", "%r")
            )  # no rule reads its cotangent any more
            self.jump_if(self.was_broadcast[number], f"fit{number}")
            arguments = [f"ptr {v}" for v in (node, d, at, steps, self.code, last)]
            self.require(self.call("i1", "@add", *arguments), "failed")
            self.jump(f"added{number}")
            self.label(f"fit{number}")
            arguments = [f"ptr {v}" for v in (node, d, at, self.code)]
            self.require(self.call("i1", "@add_fitted", *arguments), "failed")
            self.jump(f"added{number}")
            self.label(f"added{number}")
        self.jump("done")
        self.label("done")
        self.decref(self.record)
        self.ret("i32", 1)


def write_pull_in_python() -> str:
    """Return ``pull_in_python(r)``, which does as ``pull`` by calling the rules in Python; false for an error.

    It does what ``Tape.walk`` does.
    """
    w = ObjectWriter("i1", "pull_in_python", "ptr r")
    given = w.allocate("[4 x ptr]")
    s = w.slot("%r", "via")
    dx, dy = w.slot(s, "dx"), w.slot(s, "dy")
    w.jump_if(w.is_none(dx), "back")
    x, y = w.slot("%r", "x"), w.slot("%r", "y")
    two = w.compare("ne", dy, "@none")
    w.require_type(x, "@tensor_type", "unusual")
    value = w.allocate("ptr")
    w.store("ptr", y, value)
    w.require(two, "ready")
    w.require_type(y, "@tensor_type", "unusual")
    w.store("ptr", w.slot(y, "value"), value)
    w.jump("ready")
    w.label("ready")
    held = [w.slot("%r", "g"), w.slot("%r", "value"), w.slot(x, "value"), w.load("ptr", value)]
    for i, v in enumerate(held):
        w.require(w.compare("ne", v, "null"), "unusual")
        w.set_word(v, given, i, "ptr")
    held = [*held, x, y, s]
    for v in held:
        w.incref(v)
    for number, (rule, node) in enumerate(((dx, x), (dy, y))):
        if number:
            w.require(two, "done")
        d = w.call("ptr", "@PyObject_Vectorcall", f"ptr {rule}", f"ptr {given}", "i64 4", "ptr null")
        w.require(w.compare("ne", d, "null"), "failed")
        e = w.slot(node, "g")
        w.require(w.is_none(e), f"more{number}")
        w.replace_slot(node, "g", d)
        w.jump(f"added{number}")
        w.label(f"more{number}")
        w.incref(e)
        total = w.call("ptr", "@PyNumber_Add", f"ptr {e}", f"ptr {d}")
        w.decref(e)
        w.decref(d)
        w.require(w.compare("ne", total, "null"), "failed")
        w.replace_slot(node, "g", total)
        w.jump(f"added{number}")
        w.label(f"added{number}")
    w.jump("done")
    w.label("done")
    for v in held:
        w.decref(v)
    w.ret("i1", 1)
    w.label("failed")
    for v in held:
        w.decref(v)
    w.ret("i1", 0)

    w.label("back")  # this function of a step reads reference counts to see what it may write to: hold nothing
    own = w.allocate("ptr")
    w.store("ptr", "%r", own)
    back = w.slot(s, "back")
    told = w.call("ptr", "@PyObject_Vectorcall", f"ptr {back}", f"ptr {own}", "i64 1", "ptr null")
    w.jump_if(w.compare("eq", told, "null"), "raised")
    w.decref(told)
    w.ret("i1", 1)
    w.label("unusual")
    w.store("ptr", "%r", given)
    walk_node = w.load("ptr", "@walk_node")
    told = w.call("ptr", "@PyObject_Vectorcall", f"ptr {walk_node}", f"ptr {given}", "i64 1", "ptr null")
    w.jump_if(w.compare("eq", told, "null"), "raised")
    w.decref(told)
    w.ret("i1", 1)
    w.label("raised")
    w.ret("i1", 0)
    return w.text()


def write_walk() -> str:
    """Return ``walk(nodes)``, the backward pass over a list of nodes, which is emptied."""
    w = ObjectWriter("ptr", "walk", "ptr self", "ptr nodes", internal=False, attributes='"probe-stack"="inline-asm"')
    other = w.allocate(f"[{SCRATCH} x i8]")
    w.label("next", falls=True)
    count = w.load("i64", "%nodes", OFFSETS["SIZE"])
    w.require(w.compare("sgt", count, 0, "i64"), "done")
    last = w.let(f"sub i64 {count}, 1")
    r = w.word(w.load("ptr", "%nodes", OFFSETS["LIST_ITEMS"]), last, "ptr")
    w.store("i64", last, "%nodes", OFFSETS["SIZE"])  # its reference is ours now
    w.require_type(r, "@tensor_type", "unusual")
    w.jump_if(w.is_none(w.slot(r, "g")), "clear")
    status = w.call("i32", "@pull", f"ptr {r}", f"ptr {other}")
    w.jump_if(w.compare("sgt", status, 0, "i32"), "clear")
    w.jump_if(w.compare("slt", status, 0, "i32"), "failed")
    w.require(w.call("i1", "@pull_in_python", f"ptr {r}"), "failed")
    w.jump("clear")
    w.label("clear")
    w.jump_if(w.compare("eq", w.refcount(r), 1, "i32"), "drop")
    for name in ("x", "y"):  # whoever still holds this tensor does not hold the graph behind it
        w.incref("@none")
        w.replace_slot(r, name, "@none")
    w.jump("drop")
    w.label("drop")
    w.decref(r)
    w.jump("next")
    w.label("unusual")
    given = w.allocate("ptr")
    w.store("ptr", r, given)
    walk_node = w.load("ptr", "@walk_node")
    told = w.call("ptr", "@PyObject_Vectorcall", f"ptr {walk_node}", f"ptr {given}", "i64 1", "ptr null")
    w.jump_if(w.compare("eq", told, "null"), "failed")
    w.decref(told)
    w.jump("drop")
    w.label("failed")
    w.decref(r)
    w.ret("ptr", "null")
    w.label("done")
    w.ret_none()
    return w.text()


def write_code(slots: Mapping[str, int]) -> str:
    """Return the text of the module; ``slots`` has the offset, in bytes, of each slot of tensors, metas and steps."""
    ObjectWriter.slots = slots
    parts = (
        write_operand, write_clear_flags, write_run, write_fresh, write_node, write_compute, write_prepare, write_unary,
        write_binary, write_reflected, write_run_blocks, write_is_own, write_object, write_add, write_add_fitted,
        PullWriter().write, write_pull_in_python, write_walk,
    )  # fmt: skip
    return DECLARED + "".join(part() for part in parts)
