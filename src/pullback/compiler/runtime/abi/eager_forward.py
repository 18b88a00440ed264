"""LLVM text of the functions that perform small eager ops: check the operands, call NumPy's loops, make the node.

No object is changed before everything is computed.  Where an operand has an unexpected type or layout, or where a loop
set a floating-point flag, so that NumPy may have to warn, the result is dropped and Python performs the op instead.
"""

from __future__ import annotations

from pullback.compiler.runtime.abi.code_writer import Writer
from pullback.compiler.runtime.abi.eager_records import (
    ARRAY,
    CALL,
    FLAGS,
    META,
    NESTED,
    OP,
    OUT,
    PROGRAM,
    REGISTERS,
    SCALAR,
    SCRATCH,
)
from pullback.compiler.runtime.abi.eager_writer import TensorWriter
from pullback.compiler.runtime.abi.layout import ALIGNED, C_CONTIGUOUS, OFFSETS


def write_operand() -> str:
    """Return ``operand(v, code, strides)``: the address of a value's elements, null if the value does not fit a meta.

    A value fits if it has the meta's dtype and is an array that broadcasts to its shape as a matrix, with strides that
    are not negative and larger from row to row than from column to column, or a scalar.  Its two strides are stored,
    first that from column to column.  Other layouts are left to Python: NumPy's results have another order there.
    """
    w = TensorWriter("ptr", "operand", "ptr v", "ptr code", "ptr strides")
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


def write_run() -> str:
    """Return ``run_loops(program, memory, strides, code)``, which calls the inner loops of a program.

    ``code`` is the record of a meta whose shape the arrays have, ``memory`` has the address of each register,
    ``strides`` two strides of each.  A loop is called once if every array has one stride for all its elements, else for
    each row.  The result is the floating-point flags that are set; they are read after every loop, because some of
    NumPy's loops clear them.

    Two functions call it.  ``run`` clears the flags before.  ``run_anew`` calls ``run`` only if a flag is set
    afterwards, which is rare and may come from elsewhere; so its program must not write to what it reads.
    """
    w = TensorWriter("i32", "run_loops", "ptr program", "ptr memory", "ptr strides", "ptr code")
    seen = w.allocate("i32")
    w.store("i32", 0, seen)
    given = w.allocate("[3 x ptr]")  # the addresses that an inner loop is called with: of inputs, then of the output
    steps, outer = w.allocate("[3 x i64]"), w.allocate("[3 x i64]")  # their strides along a row, and from row to row
    count = w.allocate("i64")
    one_row = w.allocate("i1")
    item, rows, columns = (w.word("%code", META[name]) for name in ("item", "rows", "columns"))
    has_one_row = w.compare("eq", rows, 1, "i64")

    def set_place(j: str, own: str, along: str, across: str) -> None:
        """Set an address that the loop is called with, and its strides."""
        w.set_word(own, given, j, "ptr")
        w.set_word(along, steps, j)
        w.set_word(across, outer, j)
        goes_on = w.compare("eq", across, w.let(f"mul i64 {along}, {columns}"), "i64")
        before = w.load("i1", one_row)
        w.store("i1", w.both(before, w.either(goes_on, has_one_row)), one_row)

    first = w.at("%program", PROGRAM["calls"], "i64")
    i = w.loop("calls", w.word("%program", PROGRAM["length"]))
    call = w.at(first, w.let(f"mul i64 {i}, {len(CALL)}"), "i64")
    inputs = w.word(call, CALL["inputs"])
    w.store("i1", 1, one_row)
    j = w.loop("inputs", inputs)
    which = w.word(w.at(call, CALL["first"], "i64"), j)
    is_register = w.compare("ult", which, REGISTERS, "i64")
    number = w.select(is_register, "i64", which, 0)
    own = w.select(is_register, "ptr", w.word("%memory", number, "ptr"), w.let(f"inttoptr i64 {which} to ptr"))
    pair = w.at("%strides", w.let(f"mul i64 {number}, 2"), "i64")
    set_place(j, own, *(w.select(is_register, "i64", w.word(pair, k), 0) for k in range(2)))
    w.end_loop("inputs")
    out = w.word(call, CALL["out"])
    pair = w.at("%strides", w.let(f"mul i64 {out}, 2"), "i64")
    # To NumPy's loops a result without a stride is a sum of elements; that of a single one may be 0.
    ways = [w.select(w.compare("eq", way, 0, "i64"), "i64", item, way) for way in (w.word(pair, 0), w.word(pair, 1))]
    set_place(inputs, w.word("%memory", out, "ptr"), *ways)
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

    passed = [f"ptr %{name}" for name in ("program", "memory", "strides", "code")]
    c = TensorWriter("i32", "run", *(p.replace("%", "") for p in passed), internal=False)
    c.call_void("@clear_flags")
    c.ret("i32", c.call("i32", "@run_loops", *passed))

    n = TensorWriter("i32", "run_anew", *(p.replace("%", "") for p in passed))
    n.require(n.compare("ne", n.call("i32", "@run_loops", *passed), 0, "i32"), "silent")
    n.ret("i32", n.call("i32", "@run", *passed))
    n.label("silent")
    n.ret("i32", 0)
    return w.text() + c.text() + n.text()


def write_fresh() -> str:
    """Return ``fresh(code)``, which makes a new array like a meta, and ``number(memory, code)``, for a NumPy scalar."""
    w = TensorWriter("ptr", "fresh", "ptr code")
    descr = w.word("%code", META["descr"], "ptr")
    w.incref(descr)  # which the array takes over
    rank = w.let(f"trunc i64 {w.word('%code', META['rank'])} to i32")
    shape = w.at("%code", META["shape"], "i64")
    made = w.call(
        "ptr", "@PyArray_NewFromDescr", "ptr @ndarray", f"ptr {descr}", f"i32 {rank}", f"ptr {shape}", "ptr null",
        "ptr null", "i32 0", "ptr null",
    )  # fmt: skip
    w.ret("ptr", made)
    n = TensorWriter("ptr", "number", "ptr memory", "ptr code")
    descr = n.word("%code", META["descr"], "ptr")
    n.ret("ptr", n.call("ptr", "@PyArray_Scalar", "ptr %memory", f"ptr {descr}", "ptr null"))
    return w.text() + n.text()


def write_node() -> str:
    """Return ``node(v, m, record, step, x, y)``, which makes a tensor and appends it to the tape as a node.

    It takes over the reference to the value ``v``.  It gives None, and Python performs the op, if the meta changed
    meanwhile: making an object may run finalizers.
    """
    w = TensorWriter("ptr", "node", "ptr v", "ptr m", "ptr record", "ptr step", "ptr x", "ptr y")
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
    w = TensorWriter(
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
    set_temporaries(w, code, memory, strides, range(OUT, REGISTERS))
    w.branch(is_number, "number", "array")
    w.label("number")
    w.set_word(own, memory, OUT, "ptr")
    flags = w.run_program(program, memory, strides, code, anew=True)
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
    flags = w.run_program(program, memory, strides, code, anew=True)
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


def set_temporaries(w: TensorWriter, code: str, memory: str, strides: str, registers: range) -> None:
    """Write the code that gives registers memory for temporaries, in C order."""
    is_number = w.compare("eq", w.word(code, META["kind"]), SCALAR, "i64")
    along = w.select(is_number, "i64", 0, w.word(code, META["item"]))
    across = w.let(f"mul i64 {along}, {w.word(code, META['columns'])}")
    for place, i in enumerate(registers):
        w.set_word(w.at("@scratch", place * SCRATCH), memory, i, "ptr")
        w.set_word(along, strides, 2 * i)
        w.set_word(across, strides, 2 * i + 1)


def begin_op(w: TensorWriter, x: str) -> tuple[str, str, str]:
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

    It gives None, so that Python performs this op; the next one finds the record.  And ``find_record(m)``, which gives
    the record, written first if need be, without a reference: bytes where machine code may go on; null for an error.
    """
    w = TensorWriter("ptr", "prepare_meta", "ptr m")
    w.require(w.is_none(w.slot("%m", "record")), "known")
    given = w.allocate("ptr")
    w.store("ptr", "%m", given)
    prepare = w.load("ptr", "@prepare")
    w.ret("ptr", w.call("ptr", "@PyObject_Vectorcall", f"ptr {prepare}", f"ptr {given}", "i64 1", "ptr null"))
    w.label("known")
    w.ret_none()
    f = TensorWriter("ptr", "find_record", "ptr m")
    f.require(f.compare("ne", "%m", "null"), "none")
    f.require_type("%m", "@meta_type", "none")
    f.require(f.is_none(f.slot("%m", "record")), "known")
    told = f.call("ptr", "@prepare_meta", "ptr %m")
    f.require(f.compare("ne", told, "null"), "failed")
    f.decref(told)
    f.jump("known")
    f.label("known")
    f.ret("ptr", f.slot("%m", "record"))
    f.label("none")
    f.ret("ptr", "@none")
    f.label("failed")
    f.ret("ptr", "null")
    return w.text() + f.text()


def end_op(w: TensorWriter, m: str) -> None:
    """Write the end of an op's function: the labels for what it does not perform and for errors."""
    w.label("unprepared")
    w.ret("ptr", w.call("ptr", "@prepare_meta", f"ptr {m}"))
    w.label("failed")
    w.ret("ptr", "null")
    w.label("odd")
    w.ret_none()


def call_compute(
    w: TensorWriter, plan: str, m: str, record: str, step: str, held: tuple[str, ...] = (), **values: str
) -> None:
    """Write a call of ``compute`` and return its result; ``held`` are objects that are released after the call."""
    given = [f"ptr {values[name]}" for name in ("x", "y", "vx", "vy")]
    made = w.call("ptr", "@compute", f"ptr {plan}", f"ptr {m}", f"ptr {record}", f"ptr {step}", *given)
    for v in held:
        w.decref(v)
    w.ret("ptr", made)


def write_unary() -> str:
    """Return ``unary(x)``, the function of an op of one input; it gives None if Python must perform the op."""
    w = TensorWriter("ptr", "unary", "ptr self", "ptr args", "i64 given", internal=False)
    x = w.load("ptr", "%args")
    plan, m, record = begin_op(w, x)
    v = w.slot(x, "value")
    w.require(w.compare("ne", v, "null"), "odd")
    count = w.word(w.at(record, OFFSETS["BYTES_DATA"]), META["count"])
    w.require(w.compare("sle", count, w.word(plan, OP["most"]), "i64"), "odd")
    call_compute(w, plan, m, record, w.word(plan, OP["step"], "ptr"), x=x, y="@none", vx=v, vy="null")
    end_op(w, m)
    return w.text()


def find_constant(w: TensorWriter, m: str, number: str) -> str:
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
    w = TensorWriter("ptr", "binary", "ptr self", "ptr args", "i64 given", internal=False)
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
    w = TensorWriter("ptr", "reflected", "ptr self", "ptr args", "i64 given", internal=False)
    y, x = w.load("ptr", "%args"), w.load("ptr", "%args", 8)
    plan, m, record = begin_op(w, y)
    vy = w.slot(y, "value")
    w.require(w.compare("ne", vy, "null"), "odd")
    c = find_constant(w, m, x)
    call_compute(w, plan, m, record, w.word(plan, OP["right"], "ptr"), (c,), x=y, y=c, vx=c, vy=vy)
    end_op(w, m)
    return w.text()


# The functions of the module, in the order of their calls.
FORWARD = (
    write_operand, write_clear_flags, write_run, write_fresh, write_node, write_compute, write_prepare, write_unary,
    write_binary, write_reflected,
)  # fmt: skip
