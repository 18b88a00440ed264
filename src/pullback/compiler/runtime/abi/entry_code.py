"""The machine code of the native entry (see ``entry``), as LLVM text with a few macros.

``%x = word P I`` and ``%x = pointer P I`` load element I of an array of integers or pointers at P; ``%x = field T P N``
loads a T that lies N bytes from P; ``%x = at P N`` is N bytes from P.  ``L: drop N of P after A then B`` is the loop L
that releases the first N references of an array at P; control comes from block A and goes on to B.
"""

from __future__ import annotations

import re

from pullback.compiler.runtime.abi.c_api import declare_functions
from pullback.compiler.runtime.abi.entry_body import ENTRY
from pullback.compiler.runtime.abi.layout import OFFSETS, TUPLE_HAS_HASH
from pullback.compiler.runtime.abi.memory_pool import CODE as POOL

# A tuple that stores its hash has -1 there until it is computed.
HASH_AT = OFFSETS["TUPLE_ITEMS"] - 8
UNHASHED = f"%hash = at %typed {HASH_AT}\n  store i64 -1, ptr %hash" if TUPLE_HAS_HASH else ""
NAMES = {"UNHASHED": UNHASHED, **{name: str(offset) for name, offset in OFFSETS.items()}}

DROP = r"""\1:
  %\1.i = phi i64 [0, \4], [%\1.next, %\1.each]
  %\1.more = icmp slt i64 %\1.i, \2
  br i1 %\1.more, label %\1.each, label \5
\1.each:
  %\1.object = pointer \3 %\1.i
  call void @Py_DecRef(ptr %\1.object)
  %\1.next = add i64 %\1.i, 1
  br label %\1"""

MACROS = (
    (r"([\w.]+): drop (\S+) of (\S+) after (\S+) then (\S+)", DROP),
    (r"(%[\w.]+) = word (\S+) (\S+)", r"\1.a = getelementptr i64, ptr \2, i64 \3\n  \1 = load i64, ptr \1.a"),
    (r"(%[\w.]+) = pointer (\S+) (\S+)", r"\1.a = getelementptr ptr, ptr \2, i64 \3\n  \1 = load ptr, ptr \1.a"),
    (r"(%[\w.]+) = field (\S+) (\S+) (\S+)", r"\1.a = getelementptr i8, ptr \3, i64 \4\n  \1 = load \2, ptr \1.a"),
    (r"(%[\w.]+) = at (\S+) (\S+)", r"\1 = getelementptr i8, ptr \2, i64 \3"),
)


def expand_macros(text: str) -> str:
    """Return the text with every macro replaced by the LLVM instructions that it stands for."""
    for pattern, instructions in MACROS:
        text = re.sub(pattern, instructions, text)
    return text


CALLED = (  # functions of CPython's and NumPy's C API
    "PyArray_NewFromDescr",
    "PyArray_Scalar",
    "PyFloat_FromDouble",
    "PyTuple_New",
    "PyType_GenericAlloc",
    "PyList_New",
    "PyDict_New",
    "PyDict_SetItem",
    "PyDict_GetItemWithError",
    "PyLong_AsLongLong",
    "PyErr_Occurred",
    "PyErr_Clear",
    "PyErr_NoMemory",
    "PyObject_Vectorcall",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "Py_IncRef",
    "Py_DecRef",
)
DECLARED = f"""
@ndarray = external global i8
@list_type = external global i8
@tuple_type = external global i8
@dict_type = external global i8
{declare_functions(CALLED)}declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

# One check of an argument (see ``entry._describe_arguments``).  An array must be exactly an ndarray, of the right dtype
# and shape, in C order and aligned (flags 1 and 256); one without axes may be a scalar.  The address of its elements
# goes to the table of slots, the object itself to the list of those that are held while the program runs.
TAKE = """
define internal i1 @take(ptr %t, ptr %containers, ptr %slots, ptr %kept, ptr %number) {
start:
  %kind = word %t 0
  %container.index = word %t 1
  %container = pointer %containers %container.index
  %key = pointer %t 3
  %slot = word %t 4
  %object = pointer %t 5
  %count = word %t 6
  %by.place = icmp eq ptr %key, null
  br i1 %by.place, label %placed, label %named
placed:
  %index = word %t 2
  %item = pointer %container %index
  br label %have
named:
  %found = call ptr @PyDict_GetItemWithError(ptr %container, ptr %key)
  %absent = icmp eq ptr %found, null
  br i1 %absent, label %wrong, label %have
have:
  %x = phi ptr [%item, %placed], [%found, %named]
  %type = field ptr %x TYPE
  %its = icmp eq ptr %type, %object
  switch i64 %kind, label %array
    [i64 1, label %scalar i64 2, label %list i64 3, label %tuple i64 4, label %dict i64 5, label %same
     i64 6, label %whole]

array:
  %is.array = icmp eq ptr %type, @ndarray
  br i1 %is.array, label %looks, label %other
other:
  %alone = pointer %t 8
  %is.alone = icmp eq ptr %type, %alone
  br i1 %is.alone, label %inside, label %no
looks:
  %flags = field i32 %x ARRAY_FLAGS
  %two = and i32 %flags, 257
  %good = icmp eq i32 %two, 257
  %axes = field i32 %x ARRAY_RANK
  %rank = word %t 7
  %rank.32 = trunc i64 %rank to i32
  %ranked = icmp eq i32 %axes, %rank.32
  %both = and i1 %good, %ranked
  br i1 %both, label %typed, label %no
typed:
  %dtype = field ptr %x ARRAY_DTYPE
  %same.dtype = icmp eq ptr %dtype, %object
  br i1 %same.dtype, label %shaped, label %equal
equal:
  %order = field i8 %dtype DTYPE_ORDER
  %native = icmp ne i8 %order, 62
  %theirs = field i32 %dtype DTYPE_NUMBER
  %ours = trunc i64 %count to i32
  %equal.dtype = icmp eq i32 %theirs, %ours
  %is.equal = and i1 %native, %equal.dtype
  br i1 %is.equal, label %shaped, label %no
shaped:
  %lengths = field ptr %x ARRAY_SHAPE
  br label %axis
axis:
  %i = phi i64 [0, %shaped], [%i.next, %length]
  %more = icmp slt i64 %i, %rank
  br i1 %more, label %length, label %memory
length:
  %has = word %lengths %i
  %i.at = add i64 %i, 9
  %must = word %t %i.at
  %i.next = add i64 %i, 1
  %fits = icmp eq i64 %has, %must
  br i1 %fits, label %axis, label %no
memory:
  %data = field ptr %x ARRAY_DATA
  br label %put

scalar:
  br i1 %its, label %inside, label %no
inside:
  %within = at %x NUMBER
  br label %put
whole:
  br i1 %its, label %read, label %no
read:
  %value = call i64 @PyLong_AsLongLong(ptr %x)
  store i64 %value, ptr %number
  %odd = icmp eq i64 %value, -1
  br i1 %odd, label %converted, label %put
converted:
  %error = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %wrong, label %put
put:
  %where = phi ptr [%data, %memory], [%within, %inside], [%number, %read], [%number, %converted]
  %into = getelementptr ptr, ptr %slots, i64 %slot
  store ptr %where, ptr %into
  store ptr %x, ptr %kept
  ret i1 true

list:
  %is.list = icmp eq ptr %type, @list_type
  br i1 %is.list, label %long, label %no
long:
  %listed = field ptr %x LIST_ITEMS
  br label %sized
tuple:
  %items = at %x TUPLE_ITEMS
  br i1 %its, label %sized, label %no
dict:
  %is.dict = icmp eq ptr %type, @dict_type
  br i1 %is.dict, label %sized, label %no
sized:
  %opened = phi ptr [%listed, %long], [%items, %tuple], [%x, %dict]
  %size = field i64 %x SIZE
  %container.to = getelementptr ptr, ptr %containers, i64 %slot
  store ptr %opened, ptr %container.to
  store ptr null, ptr %kept
  %right = icmp eq i64 %size, %count
  ret i1 %right
same:
  store ptr null, ptr %kept
  %is.same = icmp eq ptr %x, %object
  ret i1 %is.same
wrong:
  call void @PyErr_Clear()
  ret i1 false
no:
  ret i1 false
}
"""

TEXT = expand_macros(re.sub(rf"\b({'|'.join(NAMES)})\b", lambda found: NAMES[found[0]], DECLARED + TAKE + POOL + ENTRY))
