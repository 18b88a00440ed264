"""LLVM text of the backward pass of a sum or a mean of all elements, whose cotangent is one number for each element."""

from __future__ import annotations

from pullback.compiler.runtime.abi.eager_records import SCALAR, STEP
from pullback.compiler.runtime.abi.eager_writer import TensorWriter
from pullback.compiler.runtime.abi.layout import OFFSETS

SMALLEST_NORMAL = (("float", "0x3810000000000000"), ("double", "0x0010000000000000"))  # by type of element


def write_pull_spread() -> str:
    """Return ``pull_spread(r, step_fields, fields)``, which gives the operand of a sum or mean its cotangent.

    ``step_fields`` are those of the record of the node's step, ``fields`` those of its meta.  As ``pull``, it gives 1
    if that is done, 0 if Python must do it, -1 for an error.
    """
    w = TensorWriter("i32", "pull_spread", "ptr r", "ptr step_fields", "ptr fields")
    strides = w.allocate("[2 x i64]")
    w.require(w.compare("eq", w.meta_field("%fields", "kind"), SCALAR, "i64"), "python")  # so all axes were reduced
    x = w.slot("%r", "x")
    w.require_type(x, "@tensor_type", "python")
    _, operand_fields = w.find_array_record(w.slot(x, "meta"), "failed", "python")
    dtype = w.meta_field("%fields", "dtype")
    w.require(w.compare("eq", w.meta_field(operand_fields, "dtype"), dtype, "i64"), "python")
    g = w.find_elements(w.slot("%r", "g"), "%fields", strides, "python")
    number, count = w.allocate("double"), w.meta_field(operand_fields, "size")
    is_mean = w.compare("ne", w.word("%step_fields", STEP["is_mean"]), 0, "i64")
    w.branch(w.compare("eq", dtype, 0, "i64"), *(kind for kind, _ in SMALLEST_NORMAL))
    for kind, smallest in SMALLEST_NORMAL:
        w.label(kind)
        whole = w.load(kind, g)
        part = w.let(f"fdiv {kind} {whole}, {w.let(f'sitofp i64 {count} to {kind}')}")
        size = w.call(kind, f"@llvm.fabs.{'f32' if kind == 'float' else 'f64'}", f"{kind} {part}")
        is_normal = w.let(f"fcmp oge {kind} {size}, {smallest}")  # the others may set flags, of which NumPy warns
        w.require(w.either(w.let(f"xor i1 {is_mean}, 1"), is_normal), "python")
        w.store(kind, w.select(is_mean, kind, part, whole), number)
        w.jump("fill")
    w.label("fill")
    made = w.call("ptr", "@new_array", f"ptr {operand_fields}")
    w.require(w.compare("ne", made, "null"), "failed")
    data, item = w.load("ptr", made, OFFSETS["ARRAY_DATA"]), w.meta_field(operand_fields, "itemsize")
    total = w.let(f"mul i64 {count}, {item}")
    w.call_void("@llvm.memcpy.p0.p0.i64", f"ptr {data}", f"ptr {number}", f"i64 {item}", "i1 0")
    done = w.allocate("i64")
    w.store("i64", item, done)
    w.label("double_filled", falls=True)  # what is filled is copied behind itself
    filled = w.load("i64", done)
    left = w.let(f"sub i64 {total}, {filled}")
    w.require(w.compare("sgt", left, 0, "i64"), "filled")
    more = w.select(w.compare("slt", left, filled, "i64"), "i64", left, filled)
    w.call_void("@llvm.memcpy.p0.p0.i64", f"ptr {w.at(data, filled)}", f"ptr {data}", f"i64 {more}", "i1 0")
    w.store("i64", w.let(f"add i64 {filled}, {more}"), done)
    w.jump("double_filled")
    w.label("filled")
    added = w.call("i1", "@add_array", f"ptr {x}", f"ptr {made}", f"ptr {operand_fields}")
    w.decref(made)
    w.require(added, "failed")
    w.ret("i32", 1)
    w.label("python")
    w.ret("i32", 0)
    w.label("failed")
    w.ret("i32", -1)
    return w.text()


SPREADS = (write_pull_spread,)
