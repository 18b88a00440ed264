"""The module of machine code that performs small eager ops and runs the backward pass; ``eager_ops`` loads it.

Its functions are written by ``eager_forward``, ``eager_matrices``, ``eager_picks``, ``eager_spreads`` and
``eager_backward``; the records that they read are described in ``eager_records``.
"""

from __future__ import annotations

from collections.abc import Mapping

from pullback.compiler.runtime.abi.c_api import declare_functions
from pullback.compiler.runtime.abi.eager_backward import BACKWARD
from pullback.compiler.runtime.abi.eager_forward import FORWARD
from pullback.compiler.runtime.abi.eager_matrices import MATRICES
from pullback.compiler.runtime.abi.eager_writer import TensorWriter

EXPORTS = ("unary", "binary", "reflected", "product", "walk", "walk_again", "run", "run_blocks")

CALLED = (  # functions of CPython's and NumPy's C API
    "PyArray_NewFromDescr",
    "PyArray_Scalar",
    "PyArray_NewCopy",
    "PyArray_CopyInto",
    "PyType_GenericAlloc",
    "PyList_Append",
    "PyDict_GetItemWithError",
    "PyErr_Occurred",
    "PyNumber_Add",
    "PyObject_GetItem",
    "PyObject_SetItem",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyObject_Vectorcall",
    "PyLong_FromLong",
    "Py_IncRef",
    "Py_DecRef",
)
DECLARED = f"""
@ndarray = external global i8
@tensor_type = external global i8
@meta_type = external global i8
@bytes_type = external global i8
@float_type = external global i8
@int_type = external global i8
@slice_type = external global i8
@tuple_type = external global i8
@blas = external global i8
@none = external global i8
@scratch = external global i8
@sums = external global i8
@fit = external global i8
@warn_of_sum = external global i8
@walk_node = external global i8
@walk_node_again = external global i8
@prepare = external global i8
{declare_functions(CALLED)}declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare float @llvm.fabs.f32(float)
declare double @llvm.fabs.f64(double)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @fetestexcept(i32)
declare i32 @feclearexcept(i32)
"""


def write_code(slots: Mapping[str, int]) -> str:
    """Return the text of the module; ``slots`` has the offset, in bytes, of each slot of tensors, metas and steps."""
    TensorWriter.slots = slots
    return DECLARED + "".join(write() for write in (*FORWARD, *MATRICES, *BACKWARD))
