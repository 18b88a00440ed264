"""LLVM text of the backward pass of ``x[index]``, where the index is made of integers and slices.

The cotangent is written, or added, into the part of the operand's that the index picks, by way of the view that NumPy
gives of it.  Python takes microseconds for what is a copy of a few rows.
"""

from __future__ import annotations

from pullback.compiler.runtime.abi.eager_records import OUT, SCALAR
from pullback.compiler.runtime.abi.eager_writer import TensorWriter
from pullback.compiler.runtime.abi.layout import OFFSETS


def write_is_basic() -> str:
    """Return ``is_basic(index)``: whether an index is an integer, a slice, or a tuple of these and None."""
    w = TensorWriter("i1", "is_basic", "ptr index")

    def is_one(i: str) -> str:
        kind = w.type_of(i)
        number = w.either(w.compare("eq", kind, "@int_type"), w.compare("eq", kind, "@slice_type"))
        return w.either(number, w.is_none(i))

    w.require_type("%index", "@tuple_type", "single")
    items = w.at("%index", OFFSETS["TUPLE_ITEMS"])
    i = w.loop("items", w.load("i64", "%index", OFFSETS["SIZE"]))
    w.require(is_one(w.word(items, i, "ptr")), "no")
    w.end_loop("items")
    w.ret("i1", 1)
    w.label("single")
    w.ret("i1", is_one("%index"))
    w.label("no")
    w.ret("i1", 0)
    return w.text()


def write_new_zeros() -> str:
    """Return ``new_zeros(fields)``, which makes a new array of zeros like a meta; null for an error."""
    w = TensorWriter("ptr", "new_zeros", "ptr fields")
    made = w.call("ptr", "@new_array", "ptr %fields")
    w.require(w.compare("ne", made, "null"), "failed")
    size = w.let(f"mul i64 {w.meta_field('%fields', 'size')}, {w.meta_field('%fields', 'itemsize')}")
    data = w.load("ptr", made, OFFSETS["ARRAY_DATA"])
    w.call_void("@llvm.memset.p0.i64", f"ptr {data}", "i8 0", f"i64 {size}", "i1 0")
    w.ret("ptr", made)
    w.label("failed")
    w.ret("ptr", "null")
    return w.text()


class PickWriter(TensorWriter):
    """Writes ``pull_pick(r, fields)``, which gives the operand of a node ``x[index]`` its cotangent.

    ``fields`` are those of the node's meta.  As ``pull``, it gives 1 if that is done, 0 if Python must do it, -1 for an
    error.
    """

    def __init__(self) -> None:
        super().__init__("i32", "pull_pick", "ptr r", "ptr fields")
        self.memory, self.strides = self.allocate_registers()

    def write(self) -> str:
        """Return the text of the function."""
        self.x = self.slot("%r", "x")
        self.require_type(self.x, "@tensor_type", "python")
        y = self.slot("%r", "y")
        self.require_type(y, "@tuple_type", "python")
        self.index = self.load("ptr", y, OFFSETS["TUPLE_ITEMS"])
        self.require(self.call("i1", "@is_basic", f"ptr {self.index}"), "python")
        _, self.operand_fields = self.find_array_record(self.slot(self.x, "meta"), "failed", "python")
        self.g = self.slot("%r", "g")
        self.is_number = self.compare("eq", self.meta_field("%fields", "kind"), SCALAR, "i64")
        at = self.find_elements(self.g, "%fields", self.at(self.strides, 16), "python")
        self.set_word(at, self.memory, 1, "ptr")
        self.before = self.slot(self.x, "g")
        self.require(self.is_none(self.before), "more")
        self._begin()
        self._add()
        self.label("python")
        self.ret("i32", 0)
        self.label("failed")
        self.ret("i32", -1)
        return self.text()

    def _begin(self) -> None:
        """Write the operand's first cotangent: zeros, and in them the node's."""
        made = self.call("ptr", "@new_zeros", f"ptr {self.operand_fields}")
        self.require(self.compare("ne", made, "null"), "failed")
        status = self.allocate("i32")
        self.branch(self.is_number, "set_number", "set_array")
        self.label("set_number")
        self.store("i32", self.call_pointers("i32", "@PyObject_SetItem", made, self.index, self.g), status)
        self.jump("set")
        self.label("set_array")
        part = self.call_pointers("ptr", "@PyObject_GetItem", made, self.index)
        self.jump_if(self.compare("eq", part, "null"), "unset")
        self.store("i32", self.call_pointers("i32", "@PyArray_CopyInto", part, self.g), status)
        self.decref(part)
        self.label("set", falls=True)
        self.jump_if(self.compare("slt", self.load("i32", status), 0, "i32"), "unset")
        self.replace_slot(self.x, "g", made)
        self.ret("i32", 1)
        self.label("unset")
        self.decref(made)
        self.jump("failed")

    def _add(self) -> None:
        """Add the node's cotangent into the operand's, to which nothing else refers."""
        self.label("more")
        own = self.call_pointers("i1", "@is_own", self.before, self.operand_fields)
        self.require(own, "python")
        self.incref(self.before)
        part = self.call_pointers("ptr", "@PyObject_GetItem", self.before, self.index)
        self.jump_if(self.compare("eq", part, "null"), "unpicked")
        self.branch(self.is_number, "add_number", "add_array")

        self.label("add_number")
        total = self.call_pointers("ptr", "@PyNumber_Add", part, self.g)
        self.decref(part)
        self.jump_if(self.compare("eq", total, "null"), "unpicked")
        status = self.call_pointers("i32", "@PyObject_SetItem", self.before, self.index, total)
        self.decref(total)
        self.decref(self.before)
        self.jump_if(self.compare("slt", status, 0, "i32"), "failed")
        self.ret("i32", 1)

        self.label("add_array")
        at = self.call_pointers("ptr", "@find_elements", part, "%fields", self.strides)
        self.jump_if(self.compare("eq", at, "null"), "unlike")
        self.set_word(at, self.memory, 0, "ptr")
        self.set_word(at, self.memory, OUT, "ptr")
        for i in range(2):
            self.set_word(self.word(self.strides, i), self.strides, 2 * OUT + i)
        sums = self.at("@sums", self.meta_field("%fields", "dtype"), "i64")
        flags = self.run_program(self.load("ptr", sums), self.memory, self.strides, "%fields")
        self.decref(part)
        self.decref(self.before)
        self.require(self.call("i1", "@report_sum", f"i32 {flags}", "ptr %fields"), "failed")
        self.ret("i32", 1)

        self.label("unlike")
        self.decref(part)
        self.decref(self.before)
        self.jump("python")
        self.label("unpicked")
        self.decref(self.before)
        self.jump("failed")


# The functions of the module, in the order of their calls.
PICKS = (write_is_basic, write_new_zeros, lambda: PickWriter().write())
