"""LLVM text of the backward pass: the walk over the nodes of a tape, the rules of a node, and sums of cotangents.

Where a rule has no program, an operand has an unexpected type or layout, or a loop set a floating-point flag, the rules
of the node are called in Python instead.  ``run_blocks`` is the pass over several nodes with large values at once.
"""

from __future__ import annotations

from collections.abc import Callable

from pullback.compiler.runtime.abi.eager_broadcasts import SPREADS
from pullback.compiler.runtime.abi.eager_indexing import PICKS
from pullback.compiler.runtime.abi.eager_loops import set_temporaries
from pullback.compiler.runtime.abi.eager_matrices import PULL_PRODUCT
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
from pullback.compiler.runtime.abi.eager_writer import TensorWriter
from pullback.compiler.runtime.abi.layout import ALIGNED, C_CONTIGUOUS, OFFSETS, OWNS_DATA, WRITEABLE


class BlocksWriter(TensorWriter):
    """Writes ``run_blocks(job)``, which runs the parts of a job (see ``JOB``); it gives 0 when all is done.

    All parts run on one block, then on the next, so that what they read, the cotangents between them and temporaries
    stay in the cache.  Where an operand has a cotangent already, the new one is added to it.  If a part sets
    floating-point flags that were not reported before, the call ends and returns them, for NumPy to warn of them; the
    next call goes on with the part after.
    """

    def __init__(self) -> None:
        super().__init__("i32", "run_blocks", "ptr job", internal=False)
        self.memory, self.strides = self.allocate_registers()  # of the program of a rule
        (self.sides, self.steps), self.fields = self.allocate_registers(), self.allocate("[12 x i64]")  # of the sum
        self.flags = self.allocate("i32")  # of a part

    def write(self) -> str:
        """Return the text of the function."""
        self._begin()
        self.label("block", falls=True)
        block = self.word("%job", JOB["block"])
        self._measure_block(block)
        self.label("part", falls=True)
        self._find_part()
        self._run_rule()
        self._add_before()
        self._report()
        self.label("next")
        self.set_word(0, "%job", JOB["part"])
        self.set_word(self.let(f"add i64 {block}, 1"), "%job", JOB["block"])
        self.jump("block")
        self.label("done")
        self.ret("i32", 0)
        return self.text()

    def _begin(self) -> None:
        """Set what is the same for all blocks: fields of a meta, strides and the memory of temporaries."""
        self.size, self.item = self.word("%job", JOB["count"]), self.word("%job", JOB["item"])
        self.scratch, self.sum = self.word("%job", JOB["scratch"], "ptr"), self.word("%job", JOB["sum"], "ptr")
        self.set_word(ARRAY, self.fields, META["kind"])
        self.set_word(self.item, self.fields, META["itemsize"])
        self.set_word(1, self.fields, META["rows"])
        for i in range(2 * REGISTERS):
            self.set_word(0 if i % 2 else self.item, self.strides, i)
            self.set_word(0 if i % 2 else self.item, self.steps, i)
        for i in range(OUT + 1, REGISTERS):
            self.set_word(self.at(self.scratch, (i - OUT) * 8 * BLOCK), self.memory, i, "ptr")

    def _measure_block(self, block: str) -> None:
        """Find where a block begins and how many elements it has."""
        self.start = self.let(f"mul i64 {block}, {BLOCK}")
        self.require(self.compare("slt", self.start, self.size, "i64"), "done")
        left = self.let(f"sub i64 {self.size}, {self.start}")
        size = self.select(self.compare("slt", left, BLOCK, "i64"), "i64", left, BLOCK)
        self.set_word(size, self.fields, META["size"])
        self.set_word(size, self.fields, META["columns"])

    def _find_part(self) -> None:
        """Find the next part, and count it."""
        k = self.word("%job", JOB["part"])
        self.require(self.compare("slt", k, self.word("%job", JOB["parts"]), "i64"), "next")
        self.set_word(self.let(f"add i64 {k}, 1"), "%job", JOB["part"])
        first = self.at("%job", JOB["first"], "i64")
        self.part = self.at(first, self.let(f"mul i64 {k}, {PART['words']}"), "i64")

    def _find_place(self, at: int) -> str:
        """Return the address of this block's elements at one of the part's places."""
        return self.at(
            self.word(self.part, at, "ptr"), self.let(f"mul i64 {self.start}, {self.word(self.part, at + 2)}")
        )

    def _run_rule(self) -> None:
        """Run the program of the part's rule: into its place, or into memory if the result is added to another."""
        for i in range(INPUTS):
            self.set_word(self._find_place(PART["inputs"] + 3 * i), self.memory, i, "ptr")
            self.set_word(self.word(self.part, PART["inputs"] + 3 * i + 1), self.strides, 2 * i)
        self.program, self.out = self.word(self.part, PART["program"], "ptr"), self._find_place(PART["out"])
        is_first = self.compare("eq", self.word(self.part, PART["before"], "ptr"), "null")
        self.set_word(self.select(is_first, "ptr", self.out, self.scratch), self.memory, OUT, "ptr")
        self.rule_flags = self.run_program(self.program, self.memory, self.strides, self.fields)
        self.store("i32", self.rule_flags, self.flags)
        self.jump_if(is_first, "report")

    def _add_before(self) -> None:
        """Add the result of the rule to the cotangent before; a rule without calls passes its own cotangent on."""
        self.set_word(self._find_place(PART["before"]), self.sides, 0, "ptr")
        self.set_word(self.word(self.part, PART["before"] + 1), self.steps, 0)
        passes = self.compare("eq", self.word(self.program, PROGRAM["length"]), 0, "i64")
        self.set_word(self.select(passes, "ptr", self.load("ptr", self.memory), self.scratch), self.sides, 1, "ptr")
        self.set_word(self.select(passes, "i64", self.load("i64", self.strides), self.item), self.steps, 2)
        self.set_word(self.out, self.sides, OUT, "ptr")
        of_sum = self.run_program(self.sum, self.sides, self.steps, self.fields)
        of_sum = self.let(f"shl i32 {of_sum}, {SUM_SHIFT}")
        self.store("i32", self.let(f"or i32 {self.rule_flags}, {of_sum}"), self.flags)
        self.jump("report")

    def _report(self) -> None:
        """Go on with the next part, or return flags that were not reported before."""
        self.label("report")
        flags = self.let(f"zext i32 {self.load('i32', self.flags)} to i64")
        known = self.word(self.part, PART["reported"])
        new = self.let(f"and i64 {flags}, {self.let(f'xor i64 {known}, -1')}")
        self.jump_if(self.compare("eq", new, 0, "i64"), "part")
        self.set_word(self.let(f"or i64 {known}, {new}"), self.part, PART["reported"])
        self.ret("i32", self.let(f"trunc i64 {new} to i32"))


def write_is_own() -> str:
    """Return ``is_own(v, fields)``: whether a value is an array like a meta that has one reference and is writeable."""
    w = TensorWriter("i1", "is_own", "ptr v", "ptr fields")
    w.require_type("%v", "@ndarray", "no")
    w.require(w.compare("eq", w.refcount("%v"), 1, "i32"), "no")
    w.require(w.compare("eq", w.load("ptr", "%v", OFFSETS["ARRAY_BASE"]), "null"), "no")
    flags = w.load("i32", "%v", OFFSETS["ARRAY_FLAGS"])
    usual = C_CONTIGUOUS | OWNS_DATA | ALIGNED | WRITEABLE
    w.require(w.compare("eq", w.let(f"and i32 {flags}, {usual}"), usual, "i32"), "no")
    w.require(
        w.compare("eq", w.load("ptr", "%v", OFFSETS["ARRAY_DTYPE"]), w.meta_field("%fields", "dtype_object", "ptr")),
        "no",
    )
    rank = w.let(f"sext i32 {w.load('i32', '%v', OFFSETS['ARRAY_RANK'])} to i64")
    w.require(w.compare("ne", rank, 0, "i64"), "no")  # NumPy's result would be a number
    w.require(w.compare("eq", rank, w.meta_field("%fields", "rank"), "i64"), "no")
    shape, lengths = w.load("ptr", "%v", OFFSETS["ARRAY_SHAPE"]), w.at("%fields", META["shape"], "i64")
    i = w.loop("lengths", rank)
    w.require(w.compare("eq", w.word(shape, i), w.word(lengths, i), "i64"), "no")
    w.end_loop("lengths")
    w.ret("i1", 1)
    w.label("no")
    w.ret("i1", 0)
    return w.text()


def write_new_object() -> str:
    """Return ``new_object(memory, fields)``, which makes a new array or scalar like a meta of elements in memory."""
    w = TensorWriter("ptr", "new_object", "ptr memory", "ptr fields")
    is_number = w.compare("eq", w.meta_field("%fields", "kind"), SCALAR, "i64")
    w.branch(is_number, "number", "array")
    w.label("number")
    w.ret("ptr", w.call("ptr", "@new_scalar", "ptr %memory", "ptr %fields"))
    w.label("array")
    v = w.call("ptr", "@new_array", "ptr %fields")
    w.require(w.compare("ne", v, "null"), "failed")
    size = w.let(f"mul i64 {w.meta_field('%fields', 'size')}, {w.meta_field('%fields', 'itemsize')}")
    data = w.load("ptr", v, OFFSETS["ARRAY_DATA"])
    w.call_void("@llvm.memcpy.p0.p0.i64", f"ptr {data}", "ptr %memory", f"i64 {size}", "i1 false")
    w.ret("ptr", v)
    w.label("failed")
    w.ret("ptr", "null")
    return w.text()


def write_report_sum() -> str:
    """Return ``report_sum(flags, fields)``: NumPy warns of the flags of a sum of cotangents; false for an error."""
    w = TensorWriter("i1", "report_sum", "i32 flags", "ptr fields")
    w.require(w.compare("ne", "%flags", 0, "i32"), "silent")
    number = w.allocate("ptr")
    of_number = w.compare("eq", w.meta_field("%fields", "kind"), SCALAR, "i64")
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


class AddElementsWriter(TensorWriter):
    """Writes ``add_elements(x, d, at, strides, fields, r)``, which adds to the cotangent of a node; false for an error.

    What is added are the elements at an address; ``d`` is the object that they are in, null if there is none.  If the
    node has no cotangent yet and ``d`` is null, the elements are copied into the cotangent of ``r`` where nothing else
    refers to it, else into a new object.
    """

    def __init__(self) -> None:
        parameters = [f"ptr {name}" for name in ("x", "d", "at", "strides", "fields", "r")]
        super().__init__("i1", "add_elements", *parameters)

    def write(self) -> str:
        """Return the text of the function."""
        self.before = self.slot("%x", "g")
        size = self.meta_field("%fields", "size")
        nbytes = self.let(f"mul i64 {size}, {self.meta_field('%fields', 'itemsize')}")
        self.memory, self.steps = self.allocate_registers()
        self.require(self.is_none(self.before), "more")
        self._set_first(nbytes)
        self._add_more()
        self._add_in_python()
        self.label("failed")
        self.ret("i1", 0)
        return self.text()

    def _set_first(self, nbytes: str) -> None:
        """Make the elements the first cotangent: the object itself, or a copy of what is in memory only."""
        self.jump_if(self.compare("eq", "%d", "null"), "copy")
        self.incref("%d")
        self.replace_slot("%x", "g", "%d")
        self.ret("i1", 1)
        self.label("copy")
        self.require(self.compare("sle", nbytes, REUSED, "i64"), "new")
        self.require(self.compare("eq", self.refcount("%r"), 1, "i32"), "new")
        g = self.slot("%r", "g")
        self.require(self.call_pointers("i1", "@is_own", g, "%fields"), "new")
        data = self.load("ptr", g, OFFSETS["ARRAY_DATA"])
        self.call_void("@llvm.memcpy.p0.p0.i64", f"ptr {data}", "ptr %at", f"i64 {nbytes}", "i1 false")
        self.incref(g)
        self.replace_slot("%x", "g", g)
        self.ret("i1", 1)
        self.label("new")
        made = self.call_pointers("ptr", "@new_object", "%at", "%fields")
        self.require(self.compare("ne", made, "null"), "failed")
        self.replace_slot("%x", "g", made)
        self.ret("i1", 1)

    def _add_more(self) -> None:
        """Add to the cotangent before; the sum is written over that if nothing else refers to it."""
        self.label("more")
        mine = self.find_elements(self.before, "%fields", self.steps, "general")
        self.set_word(mine, self.memory, 0, "ptr")
        self.set_word("%at", self.memory, 1, "ptr")
        for i in range(2):
            self.set_word(self.word("%strides", i), self.steps, 2 + i)
        sums = self.at("@sums", self.meta_field("%fields", "dtype"), "i64")
        own = self.call_pointers("i1", "@is_own", self.before, "%fields")
        into = self.select(own, "ptr", mine, self.at("@scratch", 4 * SCRATCH))
        self.set_word(into, self.memory, OUT, "ptr")
        item = self.meta_field("%fields", "itemsize")
        self.set_word(item, self.steps, 2 * OUT)
        self.set_word(self.let(f"mul i64 {item}, {self.meta_field('%fields', 'columns')}"), self.steps, 2 * OUT + 1)
        flags = self.run_program(self.load("ptr", sums), self.memory, self.steps, "%fields")
        self.jump_if(own, "added")
        total = self.call_pointers("ptr", "@new_object", into, "%fields")
        self.require(self.compare("ne", total, "null"), "failed")
        self.replace_slot("%x", "g", total)
        self.label("added", falls=True)
        self.ret("i1", self.call("i1", "@report_sum", f"i32 {flags}", "ptr %fields"))

    def _add_in_python(self) -> None:
        """Add to a cotangent that does not fit the meta, as Python's objects."""
        self.label("general")
        self.jump_if(self.compare("ne", "%d", "null"), "held")
        made = self.call_pointers("ptr", "@new_object", "%at", "%fields")
        self.require(self.compare("ne", made, "null"), "failed")
        self.ret("i1", self.call_pointers("i1", "@add_object", "%x", made))
        self.label("held")
        self.incref("%d")
        self.ret("i1", self.call_pointers("i1", "@add_object", "%x", "%d"))


def write_add_array() -> str:
    """Return ``add_array(x, d, fields)``: ``add_elements`` for a new array in C order that is like ``x``'s meta."""
    w = TensorWriter("i1", "add_array", "ptr x", "ptr d", "ptr fields")
    strides = w.allocate("[2 x i64]")
    item = w.meta_field("%fields", "itemsize")
    w.set_word(item, strides, 0)
    w.set_word(w.let(f"mul i64 {item}, {w.meta_field('%fields', 'columns')}"), strides, 1)
    at = w.load("ptr", "%d", OFFSETS["ARRAY_DATA"])
    w.ret(
        "i1",
        w.call("i1", "@add_elements", "ptr %x", "ptr %d", f"ptr {at}", f"ptr {strides}", "ptr %fields", "ptr @none"),
    )
    return w.text()


def write_add_fitted() -> str:
    """Return ``add_fitted(x, d, at, fields)``: ``add_elements`` for an operand that was broadcast.

    The rows of a matrix are summed here, anything else by ``fit`` in Python.
    """
    w = TensorWriter("i1", "add_fitted", "ptr x", "ptr d", "ptr at", "ptr fields")
    given = w.allocate("[2 x ptr]")
    _, row_fields = w.find_record(w.slot("%x", "meta"), "failed", "other")
    w.jump_if(w.compare("eq", "%d", "null"), "sum")
    w.require_type("%d", "@ndarray", "other")  # of the whole shape, and in C order
    flags = w.load("i32", "%d", OFFSETS["ARRAY_FLAGS"])
    w.require(w.compare("ne", w.let(f"and i32 {flags}, {C_CONTIGUOUS}"), 0, "i32"), "other")
    w.require(w.compare("eq", w.load("i32", "%d", OFFSETS["ARRAY_RANK"]), 2, "i32"), "other")
    lengths = w.load("ptr", "%d", OFFSETS["ARRAY_SHAPE"])
    for axis, name in enumerate(("rows", "columns")):
        w.require(w.compare("eq", w.word(lengths, axis), w.meta_field("%fields", name), "i64"), "other")
    w.label("sum", falls=True)
    row = w.call("ptr", "@sum_rows", "ptr %at", "ptr %fields", f"ptr {row_fields}")
    w.jump_if(w.compare("eq", row, "null"), "unsummed")
    fine = w.call("i1", "@add_array", "ptr %x", f"ptr {row}", f"ptr {row_fields}")
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
    made = w.call("ptr", "@new_object", "ptr %at", "ptr %fields")
    w.require(w.compare("ne", made, "null"), "failed")
    w.set_word(made, given, 0, "ptr")
    w.label("fit", falls=True)
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
    w.label("failed", falls=True)
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
        self.ret("i32", self.call("i32", "@pull_pick", "ptr %r", f"ptr {self.fields}"))
        self.label("product")
        self.ret("i32", self.call("i32", "@pull_product", "ptr %r", f"ptr {self.step_fields}"))
        self.label("spread")
        self.ret("i32", self.call("i32", "@pull_spread", "ptr %r", f"ptr {self.step_fields}", f"ptr {self.fields}"))
        self.label("python")
        self.ret("i32", 0)
        self.label("failed")
        self.decref(self.record)
        self.label("raised", falls=True)
        self.ret("i32", -1)
        return self.text()

    def _check_records(self) -> None:
        """Read the records of the step and of the meta, and find the programs of the rules."""
        step_record = self.slot(self.slot("%r", "via"), "step_record")
        self.require_type(step_record, "@bytes_type", "python")
        self.meta = self.slot("%r", "meta")
        self.record, self.fields = self.find_record(self.meta, "raised", "python")
        self.step_fields = self.at(step_record, OFFSETS["BYTES_DATA"])
        kind = self.meta_field(self.fields, "kind")
        self.jump_if(self.compare("eq", kind, NESTED, "i64"), "python")
        way = self.word(self.step_fields, STEP["kind"])
        self.jump_if(self.compare("eq", way, BY_PICKING, "i64"), "pick")
        self.jump_if(self.compare("eq", way, BY_PRODUCTS, "i64"), "product")
        self.jump_if(self.compare("eq", way, BY_SPREADING, "i64"), "spread")
        dtype = self.meta_field(self.fields, "dtype")
        self.first = self.word(self.at(self.step_fields, STEP["single"], "i64"), dtype, "ptr")
        self.require(self.compare("ne", self.first, "null"), "python")
        self.second = self.word(self.at(self.step_fields, STEP["second_single"], "i64"), dtype, "ptr")
        self.has_second_rule = self.compare("ne", self.word(self.step_fields, STEP["has_second_rule"]), 0, "i64")
        is_array = self.compare("eq", kind, ARRAY, "i64")
        self.require(
            self.either(is_array, self.compare("ne", self.word(self.step_fields, STEP["fits_scalars"]), 0, "i64")),
            "python",
        )

    def _check_operands(self) -> None:
        """Check that operands with a rule are tensors with the node's meta, unless they were broadcast."""
        self.x, self.y = self.slot("%r", "x"), self.slot("%r", "y")
        self.require_type(self.x, "@tensor_type", "python")
        fitted = self.word(self.step_fields, STEP["fitted"])
        self.was_broadcast = [self.compare("eq", fitted, number, "i64") for number in (1, 2)]
        has_meta = self.compare("eq", self.slot(self.x, "meta"), self.meta)
        self.require(self.either(self.was_broadcast[0], has_meta), "python")
        self.second_value = self.allocate("ptr")  # of the second operand, which is no tensor if it has no rule
        self.store("ptr", self.y, self.second_value)
        self.require(self.has_second_rule, "one")
        self.require_type(self.y, "@tensor_type", "python")
        has_meta = self.compare("eq", self.slot(self.y, "meta"), self.meta)
        self.require(self.either(self.was_broadcast[1], has_meta), "python")
        self.require(self.compare("ne", self.second, "null"), "python")
        self.store("ptr", self.slot(self.y, "value"), self.second_value)
        self.label("one", falls=True)

    def _find_inputs(self) -> None:
        """Set the registers of the cotangent, the result and the operands, of those that a program reads."""
        reads_first = self.word(self.first, PROGRAM["reads"])
        either = self.allocate("i64")
        self.store("i64", reads_first, either)
        self.require(self.has_second_rule, "known")
        self.store("i64", self.let(f"or i64 {reads_first}, {self.word(self.second, PROGRAM['reads'])}"), either)
        self.label("known", falls=True)
        reads = self.load("i64", either)
        values = self.slot("%r", "g"), self.slot("%r", "value"), self.slot(self.x, "value")
        for i, v in enumerate((*values, self.load("ptr", self.second_value))):
            self.require(self.compare("ne", self.let(f"and i64 {reads}, {1 << i}"), 0, "i64"), f"unread{i}")
            self.require(self.compare("ne", v, "null"), "python")
            at = self.find_elements(v, self.fields, self.at(self.strides, 16 * i), "python")
            self.set_word(at, self.memory, i, "ptr")
            self.label(f"unread{i}", falls=True)

    def _run_rules(self) -> None:
        """Run the programs of both rules; no object is changed until they are done."""
        set_temporaries(self, self.fields, self.memory, self.strides, range(OUT, REGISTERS))
        flags = self.run_program(self.first, self.memory, self.strides, self.fields, repeatable=True)
        self.require(self.compare("eq", flags, 0, "i32"), "python")
        self.require(self.has_second_rule, "computed")
        self.set_word("%other", self.memory, OUT, "ptr")
        flags = self.run_program(self.second, self.memory, self.strides, self.fields, repeatable=True)
        self.require(self.compare("eq", flags, 0, "i32"), "python")
        self.label("computed", falls=True)

    def _add_cotangents(self) -> None:
        """Add what the rules computed to the cotangents of the operands."""
        self.incref(self.record)
        for number, (program, node, result) in enumerate(
            ((self.first, self.x, "@scratch"), (self.second, self.y, "%other"))
        ):
            if number:
                self.require(self.has_second_rule, "done")
            g = self.slot("%r", "g")
            passes = self.compare("eq", self.word(program, PROGRAM["length"]), 0, "i64")  # the rule returns g itself
            d = self.select(passes, "ptr", g, "null")
            at = self.select(passes, "ptr", self.load("ptr", self.memory), result)
            steps = self.select(passes, "ptr", self.strides, self.at(self.strides, 16 * OUT))
            # no rule reads its cotangent any more
            last = "%r" if number else self.select(self.has_second_rule, "ptr", "@none", "%r")
            self.jump_if(self.was_broadcast[number], f"fit{number}")
            arguments = [f"ptr {v}" for v in (node, d, at, steps, self.fields, last)]
            self.require(self.call("i1", "@add_elements", *arguments), "failed")
            self.jump(f"added{number}")
            self.label(f"fit{number}")
            arguments = [f"ptr {v}" for v in (node, d, at, self.fields)]
            self.require(self.call("i1", "@add_fitted", *arguments), "failed")
            self.label(f"added{number}", falls=True)
        self.label("done", falls=True)
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
    w.label("ready", falls=True)
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
    w.label("done", falls=True)
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
    w.label("clear", falls=True)
    w.jump_if(w.compare("eq", w.refcount(r), 1, "i32"), "drop")
    for name in ("x", "y"):  # whoever still holds this tensor does not hold the graph behind it
        w.incref("@none")
        w.replace_slot(r, name, "@none")
    w.label("drop", falls=True)
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
    w.require(w.compare("eq", w.slot(step, "original"), step), "unusual")
    status = w.call("i32", "@pull", f"ptr {r}", f"ptr {other}")
    w.jump_if(w.compare("sgt", status, 0, "i32"), "next")
    w.jump_if(w.compare("slt", status, 0, "i32"), "failed")
    w.label("unusual", falls=True)
    w.store("ptr", r, given)
    w.call_back("@walk_node_again", given, "failed")
    w.label("next", falls=True)
    w.decref(r)
    w.end_loop("each")
    w.ret_none()
    w.label("failed")
    w.decref(r)
    w.ret("ptr", "null")
    return w.text()


# The functions of the module, in the order of their calls.
BACKWARD: tuple[Callable[[], str], ...] = (
    lambda: BlocksWriter().write(), write_is_own, write_new_object, write_report_sum, write_add_object,
    lambda: AddElementsWriter().write(), write_add_array, write_add_fitted, *PICKS, *PULL_PRODUCT, *SPREADS,
    lambda: PullWriter().write(), write_pull_in_python, write_walk, write_walk_again,
)  # fmt: skip
