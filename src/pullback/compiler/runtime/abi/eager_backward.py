"""LLVM text of the backward pass: the walk over the nodes of a tape, the rules of a node, and sums of cotangents.

Where a rule has no program, an operand has an unexpected type or layout, or a loop set a floating-point flag, the rules
of the node are called in Python instead.  ``run_blocks`` is the pass over several nodes with large values at once.
"""

from __future__ import annotations

from pullback.compiler.runtime.abi.eager_forward import set_temporaries
from pullback.compiler.runtime.abi.eager_matrices import PULL_PRODUCT
from pullback.compiler.runtime.abi.eager_picks import PICKS
from pullback.compiler.runtime.abi.eager_records import (
    ARRAY,
    BLOCK,
    BY_PICKING,
    BY_PRODUCTS,
    BY_SPREADING,
    INPUTS,
    JOB,
    META,
    NESTED,
    OUT,
    PART,
    PROGRAM,
    REGISTERS,
    REUSED,
    SCALAR,
    SCRATCH,
    STEP,
    SUM_OF_SCALARS,
    SUM_SHIFT,
)
from pullback.compiler.runtime.abi.eager_spreads import SPREADS
from pullback.compiler.runtime.abi.eager_writer import TensorWriter
from pullback.compiler.runtime.abi.layout import ALIGNED, C_CONTIGUOUS, OFFSETS, OWNS_DATA, WRITEABLE


def write_run_blocks() -> str:
    """Return ``run_blocks(job)``, which runs the parts of a job (see ``JOB``); it gives 0 when all is done.

    All parts run on one block, then on the next, so that what they read, the cotangents between them and temporaries
    stay in the cache.  Where an operand has a cotangent already, the new one is added to it.  If a part sets
    floating-point flags that were not reported before, the call ends and returns them, for NumPy to warn of them; the
    next call goes on with the part after.
    """
    w = TensorWriter("i32", "run_blocks", "ptr job", internal=False)
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
    w = TensorWriter("i1", "is_own", "ptr v", "ptr code")
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
    w = TensorWriter("ptr", "as_object", "ptr memory", "ptr code")
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


def write_report_sum() -> str:
    """Return ``report_sum(flags, code)``: NumPy warns of the flags that a sum of cotangents set; false for an error."""
    w = TensorWriter("i1", "report_sum", "i32 flags", "ptr code")
    w.require(w.compare("ne", "%flags", 0, "i32"), "silent")
    number = w.allocate("ptr")
    of_number = w.compare("eq", w.word("%code", META["kind"]), SCALAR, "i64")
    told = w.let(f"or i32 %flags, {w.select(of_number, 'i32', SUM_OF_SCALARS, 0)}")
    flag = w.call("ptr", "@PyLong_FromLong", f"i64 {w.let(f'zext i32 {told} to i64')}")
    w.require(w.compare("ne", flag, "null"), "failed")
    w.store("ptr", flag, number)
    w.call_back("@warn_of_sum", number, "raised")
    w.decref(flag)
    w.jump("silent")
    w.label("raised")
    w.decref(flag)
    w.jump("failed")
    w.label("silent")
    w.ret("i1", 1)
    w.label("failed")
    w.ret("i1", 0)
    return w.text()


def write_add_object() -> str:
    """Return ``add_object(x, d)``, which adds an object to the cotangent of a node in Python; false for an error.

    It takes over the reference to ``d``.
    """
    w = TensorWriter("i1", "add_object", "ptr x", "ptr d")
    e = w.slot("%x", "g")
    w.require(w.is_none(e), "more")
    w.replace_slot("%x", "g", "%d")
    w.ret("i1", 1)
    w.label("more")
    w.incref(e)
    total = w.call("ptr", "@PyNumber_Add", f"ptr {e}", "ptr %d")
    w.decref(e)
    w.decref("%d")
    w.require(w.compare("ne", total, "null"), "failed")
    w.replace_slot("%x", "g", total)
    w.ret("i1", 1)
    w.label("failed")
    w.ret("i1", 0)
    return w.text()


def write_add() -> str:
    """Return ``add(x, d, at, strides, code, r)``, which adds to the cotangent of a node; false for an error.

    What is added are the elements at an address; ``d`` is the object that they are in, null if there is none.  If the
    node has no cotangent yet and ``d`` is null, the elements are copied into the cotangent of ``r`` where nothing else
    refers to it, else into a new object.
    """
    w = TensorWriter("i1", "add", "ptr x", "ptr d", "ptr at", "ptr strides", "ptr code", "ptr r")
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
    item = w.word("%code", META["item"])
    w.set_word(item, steps, 2 * OUT)
    w.set_word(w.let(f"mul i64 {item}, {w.word('%code', META['columns'])}"), steps, 2 * OUT + 1)
    flags = w.run_program(w.load("ptr", sums), memory, steps, "%code")
    w.jump_if(own, "added")
    total = w.call("ptr", "@as_object", f"ptr {into}", "ptr %code")
    w.require(w.compare("ne", total, "null"), "failed")
    w.replace_slot("%x", "g", total)
    w.jump("added")
    w.label("added")
    w.ret("i1", w.call("i1", "@report_sum", f"i32 {flags}", "ptr %code"))

    w.label("general")  # the cotangent before does not fit: Python adds
    w.jump_if(w.compare("ne", "%d", "null"), "held")
    object_made = w.call("ptr", "@as_object", "ptr %at", "ptr %code")
    w.require(w.compare("ne", object_made, "null"), "failed")
    w.ret("i1", w.call("i1", "@add_object", "ptr %x", f"ptr {object_made}"))
    w.label("held")
    w.incref("%d")
    w.ret("i1", w.call("i1", "@add_object", "ptr %x", "ptr %d"))
    w.label("failed")
    w.ret("i1", 0)
    return w.text()


def write_add_array() -> str:
    """Return ``add_array(x, d, code)``: ``add`` for a new array in C order that is like the meta of ``x``."""
    w = TensorWriter("i1", "add_array", "ptr x", "ptr d", "ptr code")
    strides = w.allocate("[2 x i64]")
    item = w.word("%code", META["item"])
    w.set_word(item, strides, 0)
    w.set_word(w.let(f"mul i64 {item}, {w.word('%code', META['columns'])}"), strides, 1)
    at = w.load("ptr", "%d", OFFSETS["ARRAY_DATA"])
    w.ret("i1", w.call("i1", "@add", "ptr %x", "ptr %d", f"ptr {at}", f"ptr {strides}", "ptr %code", "ptr @none"))
    return w.text()


def write_add_fitted() -> str:
    """Return ``add_fitted(x, d, at, code)``: ``add`` for an operand that was broadcast.

    The rows of a matrix are summed here, anything else by ``fit`` in Python.
    """
    w = TensorWriter("i1", "add_fitted", "ptr x", "ptr d", "ptr at", "ptr code")
    given = w.allocate("[2 x ptr]")
    _, row_code = w.find_record(w.slot("%x", "meta"), "failed", "other")
    w.jump_if(w.compare("eq", "%d", "null"), "sum")
    w.require_type("%d", "@ndarray", "other")  # of the whole shape, and in C order
    flags = w.load("i32", "%d", OFFSETS["ARRAY_FLAGS"])
    w.require(w.compare("ne", w.let(f"and i32 {flags}, {C_CONTIGUOUS}"), 0, "i32"), "other")
    w.require(w.compare("eq", w.load("i32", "%d", OFFSETS["ARRAY_RANK"]), 2, "i32"), "other")
    lengths = w.load("ptr", "%d", OFFSETS["ARRAY_SHAPE"])
    for axis, name in enumerate(("rows", "columns")):
        w.require(w.compare("eq", w.word(lengths, axis), w.word("%code", META[name]), "i64"), "other")
    w.jump("sum")
    w.label("sum")
    row = w.call("ptr", "@sum_rows", "ptr %at", "ptr %code", f"ptr {row_code}")
    w.jump_if(w.compare("eq", row, "null"), "unsummed")
    fine = w.call("i1", "@add_array", "ptr %x", f"ptr {row}", f"ptr {row_code}")
    w.decref(row)
    w.ret("i1", fine)
    w.label("unsummed")
    error = w.call("ptr", "@PyErr_Occurred")
    w.branch(w.compare("eq", error, "null"), "other", "failed")

    w.label("other")
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
    d = w.call_python(w.load("ptr", "@fit"), given, 2, "unfitted")
    w.decref(whole)
    w.decref(value)
    w.ret("i1", w.call("i1", "@add_object", "ptr %x", f"ptr {d}"))
    w.label("unfitted")
    w.decref(whole)
    w.decref(value)
    w.jump("failed")
    w.label("failed")
    w.ret("i1", 0)
    return w.text()


class PullWriter(TensorWriter):
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
        self.label("pick")
        self.ret("i32", self.call("i32", "@pull_pick", "ptr %r", f"ptr {self.code}"))
        self.label("product")
        self.ret("i32", self.call("i32", "@pull_product", "ptr %r", f"ptr {self.step}"))
        self.label("spread")
        self.ret("i32", self.call("i32", "@pull_spread", "ptr %r", f"ptr {self.step}", f"ptr {self.code}"))
        self.label("odd")
        self.ret("i32", 0)
        self.label("failed")
        self.decref(self.record)
        self.jump("raised")
        self.label("raised")
        self.ret("i32", -1)
        return self.text()

    def _check_records(self) -> None:
        """Read the records of the step and of the meta, and find the programs of the rules."""
        step_record = self.slot(self.slot("%r", "via"), "step_record")
        self.require_type(step_record, "@bytes_type", "odd")
        self.meta = self.slot("%r", "meta")
        self.record, self.code = self.find_record(self.meta, "raised", "odd")
        self.step = self.at(step_record, OFFSETS["BYTES_DATA"])
        kind = self.word(self.code, META["kind"])
        self.jump_if(self.compare("eq", kind, NESTED, "i64"), "odd")
        way = self.word(self.step, STEP["kind"])
        self.jump_if(self.compare("eq", way, BY_PICKING, "i64"), "pick")
        self.jump_if(self.compare("eq", way, BY_PRODUCTS, "i64"), "product")
        self.jump_if(self.compare("eq", way, BY_SPREADING, "i64"), "spread")
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
        flags = self.run_program(self.first, self.memory, self.strides, self.code, anew=True)
        self.require(self.compare("eq", flags, 0, "i32"), "odd")
        self.require(self.two, "computed")
        self.set_word("%other", self.memory, OUT, "ptr")
        flags = self.run_program(self.second, self.memory, self.strides, self.code, anew=True)
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
            # no rule reads its cotangent any more
            last = "%r" if number else self.select(self.two, "ptr", "@none", "%r")
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
    w = TensorWriter("i1", "pull_in_python", "ptr r")
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
        d = w.call_python(rule, given, 4, "failed")
        w.require(w.call("i1", "@add_object", f"ptr {node}", f"ptr {d}"), "failed")
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
    w.decref(w.call_python(w.slot(s, "back"), own, 1, "raised"))
    w.ret("i1", 1)
    w.label("unusual")
    w.store("ptr", "%r", given)
    w.call_back("@walk_node", given, "raised")
    w.ret("i1", 1)
    w.label("raised")
    w.ret("i1", 0)
    return w.text()


def write_walk() -> str:
    """Return ``walk(nodes)``, the backward pass over a list of nodes, which is emptied."""
    w = TensorWriter("ptr", "walk", "ptr self", "ptr nodes", internal=False, attributes='"probe-stack"="inline-asm"')
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
    w.call_back("@walk_node", given, "failed")
    w.jump("drop")
    w.label("failed")
    w.decref(r)
    w.ret("ptr", "null")
    w.label("done")
    w.ret_none()
    return w.text()


def write_walk_again() -> str:
    """Return ``walk_again(nodes)``, a backward pass over a list of nodes that stay as they are.

    The variant of a step for small values is the step itself; a node with any other step is left to Python.
    """
    attributes = '"probe-stack"="inline-asm"'
    w = TensorWriter("ptr", "walk_again", "ptr self", "ptr nodes", internal=False, attributes=attributes)
    other, given = w.allocate(f"[{SCRATCH} x i8]"), w.allocate("ptr")
    count = w.load("i64", "%nodes", OFFSETS["SIZE"])
    i = w.loop("each", count)
    place = w.let(f"sub i64 {w.let(f'sub i64 {count}, 1')}, {i}")
    w.require(w.compare("slt", place, w.load("i64", "%nodes", OFFSETS["SIZE"]), "i64"), "each")
    r = w.word(w.load("ptr", "%nodes", OFFSETS["LIST_ITEMS"]), place, "ptr")
    w.incref(r)
    w.require_type(r, "@tensor_type", "unusual")
    w.jump_if(w.is_none(w.slot(r, "g")), "next")
    step = w.slot(r, "via")
    w.require(w.compare("eq", w.slot(step, "plain"), step), "unusual")
    status = w.call("i32", "@pull", f"ptr {r}", f"ptr {other}")
    w.jump_if(w.compare("sgt", status, 0, "i32"), "next")
    w.jump_if(w.compare("slt", status, 0, "i32"), "failed")
    w.jump("unusual")
    w.label("unusual")
    w.store("ptr", r, given)
    w.call_back("@walk_node_again", given, "failed")
    w.jump("next")
    w.label("next")
    w.decref(r)
    w.end_loop("each")
    w.ret_none()
    w.label("failed")
    w.decref(r)
    w.ret("ptr", "null")
    return w.text()


# The functions of the module, in the order of their calls.
BACKWARD = (
    write_run_blocks, write_is_own, write_object, write_report_sum, write_add_object, write_add, write_add_array,
    write_add_fitted, *PICKS, *PULL_PRODUCT, *SPREADS, lambda: PullWriter().write(), write_pull_in_python, write_walk,
    write_walk_again,
)  # fmt: skip
