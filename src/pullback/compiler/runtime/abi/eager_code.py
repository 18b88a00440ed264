"""The module of machine code that performs small eager ops and runs the backward pass; ``eager_ops`` loads it.

Its functions are written by ``eager_loops``, ``eager_forward``, ``eager_matrices``, ``eager_indexing``,
``eager_broadcasts`` and ``eager_backward``; the records that they read are described in ``eager_records``.
"""

from __future__ import annotations

from collections.abc import Mapping

from pullback.compiler.runtime.abi.c_api import declare_functions, declare_globals
from pullback.compiler.runtime.abi.eager_backward import BACKWARD
from pullback.compiler.runtime.abi.eager_forward import FORWARD
from pullback.compiler.runtime.abi.eager_loops import LOOPS
from pullback.compiler.runtime.abi.eager_matrices import MATRICES
from pullback.compiler.runtime.abi.eager_writer import TensorWriter

EXPORTS = ("unary", "binary", "reflected", "product", "walk", "walk_again", "run_program", "run_blocks")

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
TYPES = ("ndarray", "tensor_type", "meta_type", "bytes_type", "float_type", "int_type", "slice_type", "tuple_type")
CALLBACKS = ("warn_of_sum", "walk_node", "prepare", "fit", "walk_node_again")  # variables with Python functions
GLOBALS = declare_globals((*TYPES, "none", "blas", "scratch", "sums", *CALLBACKS))
DECLARED = f"""
{GLOBALS}{declare_functions(CALLED)}declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare float @llvm.fabs.f32(float)
declare double @llvm.fabs.f64(double)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @fetestexcept(i32)
declare i32 @feclearexcept(i32)
"""


def write_code(slots: Mapping[str, int]) -> str:
    """Return the text of the module; ``slots`` has the offset, in bytes, of each slot of tensors, metas and steps."""
    TensorWriter.slots = slots
    return DECLARED + "".join(write() for write in (*LOOPS, *FORWARD, *MATRICES, *BACKWARD))
