"""The functions of CPython's and NumPy's C API that machine code calls: their declarations and their addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from pullback.compiler.runtime.abi.layout import Method, numpy_functions

# Calling conventions: METH_FASTCALL, METH_FASTCALL | METH_KEYWORDS and METH_O.
FASTCALL, FASTCALL_WITH_NAMES, ONE_ARGUMENT = 0x80, 0x82, 0x08

# For each function the type of its result and those of its parameters, as LLVM writes them.
SIGNATURES = {
    "PyArray_CopyInto": ("i32", "ptr, ptr"),
    "PyArray_NewCopy": ("ptr", "ptr, i32"),
    "PyArray_NewFromDescr": ("ptr", "ptr, ptr, i32, ptr, ptr, ptr, i32, ptr"),
    "PyArray_Scalar": ("ptr", "ptr, ptr, ptr"),
    "PyDict_GetItemWithError": ("ptr", "ptr, ptr"),
    "PyDict_New": ("ptr", ""),
    "PyDict_Next": ("i32", "ptr, ptr, ptr, ptr"),
    "PyDict_SetItem": ("i32", "ptr, ptr, ptr"),
    "PyErr_Clear": ("void", ""),
    "PyErr_NoMemory": ("ptr", ""),
    "PyErr_Occurred": ("ptr", ""),
    "PyEval_RestoreThread": ("void", "ptr"),
    "PyEval_SaveThread": ("ptr", ""),
    "PyFloat_FromDouble": ("ptr", "double"),
    "PyList_Append": ("i32", "ptr, ptr"),
    "PyList_New": ("ptr", "i64"),
    "PyLong_AsLongLong": ("i64", "ptr"),
    "PyLong_FromLong": ("ptr", "i64"),
    "PyNumber_Add": ("ptr", "ptr, ptr"),
    "PyObject_GetItem": ("ptr", "ptr, ptr"),
    "PyObject_SetItem": ("i32", "ptr, ptr, ptr"),
    "PyObject_RichCompareBool": ("i32", "ptr, ptr, i32"),
    "PyObject_Vectorcall": ("ptr", "ptr, ptr, i64, ptr"),
    "PyTuple_New": ("ptr", "i64"),
    "PyTuple_SetItem": ("i32", "ptr, i64, ptr"),
    "PyType_GenericAlloc": ("ptr", "ptr, i64"),
    "Py_DecRef": ("void", "ptr"),
    "Py_IncRef": ("void", "ptr"),
}
NUMPY_NUMBERS = {  # in the table of NumPy's API
    "PyArray_CopyInto": 50,
    "PyArray_Scalar": 60,
    "PyArray_NewCopy": 85,
    "PyArray_NewFromDescr": 94,
}


def declare_functions(names: Iterable[str]) -> str:
    """Return the declarations of functions as LLVM text.

    >>> declare_functions(["PyList_New"])
    'declare ptr @PyList_New(i64)\\n'
    """
    return "".join(f"declare {SIGNATURES[name][0]} @{name}({SIGNATURES[name][1]})\n" for name in names)


def declare_globals(names: Iterable[str]) -> str:
    """Return the declarations of objects and variables of which only the address is used, as LLVM text.

    >>> declare_globals(["none"])
    '@none = external global i8\\n'
    """
    return "".join(f"@{name} = external global i8\n" for name in names)


def find_functions(names: Iterable[str]) -> dict[str, int]:
    """Return the addresses of functions by name."""
    return {
        name: numpy_functions()[NUMPY_NUMBERS[name]] if name in NUMPY_NUMBERS else _find_address(name) for name in names
    }


def make_builtin(method: Method, own: object) -> Any:
    """Return a built-in function in machine code whose ``self`` is ``own``; the caller keeps its record, ``method``."""
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new(ctypes.addressof(method), own, None)


def _find_address(name: str) -> int:
    function: Any = getattr(ctypes.pythonapi, name)
    return ctypes.cast(function, ctypes.c_void_p).value or 0
