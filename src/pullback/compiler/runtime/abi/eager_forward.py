"""LLVM text of the functions that perform small eager ops: check the operands, call NumPy's loops, make the node.

No object is changed before everything is computed.  Where an operand has an unexpected type or layout, or where a loop
set a floating-point flag, so that NumPy may have to warn, the result is dropped and Python performs the op instead.
"""

from __future__ import annotations

from pullback.compiler.runtime.abi.eager_loops import set_temporaries
from pullback.compiler.runtime.abi.eager_records import ARRAY, NESTED, OP, OUT, PROGRAM, REGISTERS, SCALAR
from pullback.compiler.runtime.abi.eager_writer import TensorWriter
from pullback.compiler.runtime.abi.layout import OFFSETS


def write_new_node() -> str:
    """Return ``new_node(v, m, record, step, x, y)``, which makes a tensor and appends it to the tape as a node.

    It takes over the reference to the value ``v``.  It gives None, and Python performs the op, if the meta changed
    meanwhile: making an object may run finalizers.
    """
    w = TensorWriter("ptr", "new_node", "ptr v", "ptr m", "ptr record", "ptr step", "ptr x", "ptr y")
    r = w.call("ptr", "@PyType_GenericAlloc", "ptr @tensor_type", "i64 0")
    w.jump_if(w.compare("eq", r, "null"), "failed")
    w.require(w.compare("eq", w.slot("%m", "record"), "%record"), "changed")
    w.set_slot(r, "value", "%v", hold=False)
    w.set_slot(r, "meta", "%m")
    w.set_slot(r, "via", "%step")
    w.set_slot(r, "g", "@none")
    fields = w.at("%record", OFFSETS["BYTES_DATA"])
    nodes = w.meta_field(fields, "nodes", "ptr")
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


class ComputeWriter(TensorWriter):
    """Writes ``compute(op, m, record, step, x, y, vx, vy)``, which performs an op and makes the node of its result.

    ``op`` are the words of the op's record, ``m`` is the meta of the result and ``record`` its record.  ``x`` and ``y``
    are what the node keeps as its operands; ``vx`` and ``vy`` are the values of the op's inputs, ``vy`` null if it has
    one.
    """

    def __init__(self) -> None:
        parameters = [f"ptr {name}" for name in ("op", "m", "record", "step", "x", "y", "vx", "vy")]
        super().__init__("ptr", "compute", *parameters)
        (self.memory, self.strides), self.own = self.allocate_registers(), self.allocate("[2 x i64]")

    def write(self) -> str:
        """Return the text of the function."""
        self.fields = self.at("%record", OFFSETS["BYTES_DATA"])
        self.kind = self.meta_field(self.fields, "kind")
        self.jump_if(self.compare("eq", self.kind, NESTED, "i64"), "nested")
        self._find_program()
        self._find_inputs()
        set_temporaries(self, self.fields, self.memory, self.strides, range(OUT, REGISTERS))
        self.branch(self.is_scalar, "scalar", "array")
        self._compute_scalar()
        v = self._compute_array()
        self._compute_nested()
        self.label("flagged")  # NumPy may have to warn
        self.decref(v)
        self.label("unfit", falls=True)
        self.decref("%m")
        self.label("python", falls=True)
        self.ret_none()
        self.label("failed")
        self.decref("%m")
        self.ret("ptr", "null")
        return self.text()

    def _find_program(self) -> None:
        """Find the op's program for the dtype; one for scalars must give what NumPy's scalars would."""
        dtype = self.meta_field(self.fields, "dtype")
        self.program = self.word(self.at("%op", OP["single"], "i64"), dtype, "ptr")
        self.require(self.compare("ne", self.program, "null"), "python")
        self.is_scalar = self.compare("eq", self.kind, SCALAR, "i64")
        allowed = self.compare("ne", self.word(self.program, PROGRAM["fits_scalars"]), 0, "i64")
        self.require(self.either(allowed, self.compare("eq", self.kind, ARRAY, "i64")), "python")

    def _find_inputs(self) -> None:
        """Set the registers of the inputs; from here on the meta is held."""
        self.incref("%m")
        self.set_word(self.find_elements("%vx", self.fields, self.strides, "unfit"), self.memory, 0, "ptr")
        self.jump_if(self.compare("eq", "%vy", "null"), "ready")
        second = self.find_elements("%vy", self.fields, self.at(self.strides, 16), "unfit")
        self.set_word(second, self.memory, 1, "ptr")
        self.label("ready", falls=True)

    def _compute_scalar(self) -> None:
        self.label("scalar")
        self.set_word(self.own, self.memory, OUT, "ptr")
        self._run("unfit")
        single = self.call_pointers("ptr", "@new_scalar", self.own, self.fields)
        self.jump_if(self.compare("eq", single, "null"), "failed")
        self._return_node(single)

    def _compute_array(self) -> str:
        """Compute an array, which is returned."""
        self.label("array")
        v = self.call_pointers("ptr", "@new_array", self.fields)
        self.jump_if(self.compare("eq", v, "null"), "failed")
        self.set_word(self.load("ptr", v, OFFSETS["ARRAY_DATA"]), self.memory, OUT, "ptr")
        self._run("flagged")
        self._return_node(v)
        return v

    def _compute_nested(self) -> None:
        """Call the op's function on values that are tensors of another tape."""
        self.label("nested")
        given = self.allocate("[2 x ptr]")
        self.incref("%m")
        self.set_word("%vx", given, 0, "ptr")
        self.set_word("%vy", given, 1, "ptr")
        self.incref("%vx")
        has_one = self.compare("eq", "%vy", "null")
        count = self.select(has_one, "i64", 1, 2)
        held = self.select(has_one, "ptr", "@none", "%vy")
        self.incref(held)
        function = self.word("%op", OP["function"], "ptr")
        passed = f"ptr {function}", f"ptr {given}", f"i64 {count}", "ptr null"
        beneath = self.call("ptr", "@PyObject_Vectorcall", *passed)
        self.decref("%vx")
        self.decref(held)
        self.jump_if(self.compare("eq", beneath, "null"), "failed")
        self._return_node(beneath)

    def _run(self, flagged: str) -> None:
        """Run the program; jump to a label if it sets a floating-point flag."""
        flags = self.run_program(self.program, self.memory, self.strides, self.fields, repeatable=True)
        self.require(self.compare("eq", flags, 0, "i32"), flagged)

    def _return_node(self, v: str) -> None:
        """Return the node of a value, and release the meta."""
        made = self.call_pointers("ptr", "@new_node", v, "%m", "%record", "%step", "%x", "%y")
        self.decref("%m")
        self.ret("ptr", made)


def write_find_record() -> str:
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
    f.label("known", falls=True)
    f.ret("ptr", f.slot("%m", "record"))
    f.label("none")
    f.ret("ptr", "@none")
    f.label("failed")
    f.ret("ptr", "null")
    return w.text() + f.text()


class OpWriter(TensorWriter):
    """A writer of the functions of ops, which are built-in functions; they give None if Python must perform the op.

    Their ``self`` is a tuple that begins with the op's record.
    """

    def __init__(self, name: str) -> None:
        super().__init__("ptr", name, "ptr self", "ptr args", "i64 given", internal=False)

    def begin(self, x: str) -> None:
        """Write the beginning: read the op's record, and the meta of the tensor ``x`` with its value and record."""
        self.op = self.at(self.load("ptr", "%self", OFFSETS["TUPLE_ITEMS"]), OFFSETS["BYTES_DATA"])
        self.require_type(x, "@tensor_type", "python")
        self.m = self.slot(x, "meta")
        self.require(self.compare("ne", self.m, "null"), "python")
        self.require_type(self.m, "@meta_type", "python")
        self.record = self.slot(self.m, "record")
        self.require_type(self.record, "@bytes_type", "unprepared")
        self.value = self.read_value(x)

    def read_value(self, x: str) -> str:
        """Return the value of a tensor."""
        v = self.slot(x, "value")
        self.require(self.compare("ne", v, "null"), "python")
        return v

    def read_step(self, name: str) -> str:
        """Return one of the op's steps."""
        return self.word(self.op, OP[name], "ptr")

    def compute(self, step: str, x: str, y: str, vx: str, vy: str, held: tuple[str, ...] = ()) -> None:
        """Write a call of ``compute`` and return its result; ``held`` are objects that are released after the call."""
        self.compute_like(self.m, self.record, step, x, y, vx, vy, held)

    def compute_like(
        self, m: str, record: str, step: str, x: str, y: str, vx: str, vy: str, held: tuple[str, ...] = ()
    ) -> None:
        """Write the same for a result with another meta than the first operand's."""
        made = self.call_pointers("ptr", "@compute", self.op, m, record, step, x, y, vx, vy)
        for v in held:
            self.decref(v)
        self.ret("ptr", made)

    def find_constant(self, number: str) -> str:
        """Return a Python number as the meta keeps it among its constants, held."""
        kind = self.type_of(number)
        is_number = self.either(self.compare("eq", kind, "@float_type"), self.compare("eq", kind, "@int_type"))
        self.require(is_number, "python")
        found = self.call_pointers("ptr", "@PyDict_GetItemWithError", self.slot(self.m, "constants"), number)
        self.jump_if(self.compare("ne", found, "null"), "known")
        error = self.call("ptr", "@PyErr_Occurred")
        self.branch(self.compare("ne", error, "null"), "failed", "python")
        self.label("known")
        self.incref(found)  # making a node may run finalizers, and these may empty the dict
        return found

    def end(self) -> str:
        """Write the end, the labels for what the function does not perform and for errors, and return the text."""
        self.label("unprepared")
        self.ret("ptr", self.call("ptr", "@prepare_meta", f"ptr {self.m}"))
        self.label("failed")
        self.ret("ptr", "null")
        self.label("python")
        self.ret_none()
        return self.text()


def write_unary() -> str:
    """Return ``unary(x)``, the function of an op of one input."""
    w = OpWriter("unary")
    x = w.load("ptr", "%args")
    w.begin(x)
    size = w.meta_field(w.at(w.record, OFFSETS["BYTES_DATA"]), "size")
    w.require(w.compare("sle", size, w.word(w.op, OP["max_size"]), "i64"), "python")
    w.compute(w.read_step("step"), x, "@none", w.value, "null")
    return w.end()


class BinaryWriter(OpWriter):
    """Writes ``binary(x, y)``, the function of an op of a tensor ``x`` and a tensor, a Python number or an array."""

    def __init__(self) -> None:
        super().__init__("binary")

    def write(self) -> str:
        """Return the text of the function."""
        self.x, self.y = self.load("ptr", "%args"), self.load("ptr", "%args", 8)
        self.begin(self.x)
        self.require_type(self.y, "@tensor_type", "other")
        q = self.slot(self.y, "meta")
        vy = self.read_value(self.y)
        self.require(self.compare("eq", q, self.m), "broadcast")
        self.compute(self.read_step("step"), self.x, self.y, self.value, vy)
        self._compute_broadcast(q, vy)
        self.label("other")
        self.jump_if(self.compare("eq", self.type_of(self.y), "@ndarray"), "array")
        self.require(self.compare("eq", self.word(self.op, OP["has_shortcuts"]), 0, "i64"), "python")
        c = self.find_constant(self.y)
        self.compute(self.read_step("left"), self.x, c, self.value, c, (c,))
        self._compute_with_array()
        return self.end()

    def _compute_broadcast(self, q: str, vy: str) -> None:
        """Compute a result with the meta of the larger tensor; if the other does not fit it, Python performs the op."""
        self.label("broadcast")
        self.require_type(q, "@meta_type", "python")
        second = self.slot(q, "record")
        self.require_type(second, "@bytes_type", "second_unprepared")
        fields, other = (self.at(record, OFFSETS["BYTES_DATA"]) for record in (self.record, second))
        for its in (fields, other):
            self.require(self.compare("ne", self.meta_field(its, "kind"), NESTED, "i64"), "python")
        for name in ("dtype", "nodes"):
            same = self.compare("eq", self.meta_field(fields, name), self.meta_field(other, name), "i64")
            self.require(same, "python")
        size, other_size = (self.meta_field(its, "size") for its in (fields, other))
        rank, other_rank = (self.meta_field(its, "rank") for its in (fields, other))
        larger = self.compare("sgt", size, other_size, "i64")
        as_large = self.compare("eq", size, other_size, "i64")
        first = self.either(larger, self.both(as_large, self.compare("sgt", rank, other_rank, "i64")))
        m, record = self.select(first, "ptr", self.m, q), self.select(first, "ptr", self.record, second)
        step = self.select(first, "ptr", self.read_step("fit_y"), self.read_step("fit_x"))
        self.compute_like(m, record, step, self.x, self.y, self.value, vy)
        self.label("second_unprepared")
        self.ret("ptr", self.call("ptr", "@prepare_meta", f"ptr {q}"))

    def _compute_with_array(self) -> None:
        """Compute with the caller's array, who may change it later: a node whose rules read it keeps a copy."""
        self.label("array")
        fields = self.at(self.record, OFFSETS["BYTES_DATA"])
        self.require(self.compare("eq", self.meta_field(fields, "kind"), ARRAY, "i64"), "python")
        self.find_elements(self.y, fields, self.allocate("[2 x i64]"), "python")
        self.require(self.compare("ne", self.word(self.op, OP["keeps_y"]), 0, "i64"), "unread")
        held = self.m, self.record, self.value  # NumPy lets other threads run while it copies
        for v in held:
            self.incref(v)
        copy = self.call("ptr", "@PyArray_NewCopy", f"ptr {self.y}", "i32 0")
        self.jump_if(self.compare("eq", copy, "null"), "uncopied")
        self.compute(self.read_step("left"), self.x, copy, self.value, copy, (copy, *held))
        self.label("uncopied")
        for v in held:
            self.decref(v)
        self.jump("failed")
        self.label("unread")
        self.compute(self.read_step("left"), self.x, self.y, self.value, self.y)


def write_reflected() -> str:
    """Return ``reflected(y, x)``, the function of an op whose first input is a Python number ``x``."""
    w = OpWriter("reflected")
    y, x = w.load("ptr", "%args"), w.load("ptr", "%args", 8)
    w.begin(y)
    c = w.find_constant(x)
    w.compute(w.read_step("right"), y, c, c, w.value, (c,))
    return w.end()


# The functions of the module, in the order of their calls.
FORWARD = (
    write_new_node, lambda: ComputeWriter().write(), write_find_record, write_unary, lambda: BinaryWriter().write(),
    write_reflected,
)  # fmt: skip
