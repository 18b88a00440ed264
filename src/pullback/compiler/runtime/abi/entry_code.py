"""LLVM text of the native entry (see ``entry``): one function, from the arguments to the result, and their check.

``entry`` checks the arguments (``check_argument``), makes arrays for the results, runs the program, without the
interpreter's lock if it is a long one, makes scalars of numbers, and builds the result on a stack.  If something fails,
everything that was made is released.  While the lock is not held, another thread may take an argument out of its list,
so all arguments are held until nothing reads them any more.
"""

from __future__ import annotations

from pullback.compiler.runtime.abi.c_api import declare_functions, declare_globals
from pullback.compiler.runtime.abi.code_writer import ObjectWriter
from pullback.compiler.runtime.abi.entry_records import (
    BUILD,
    CHECK,
    DICT,
    IDENTICAL,
    INTEGER,
    LIST,
    MAKE_DICT,
    MAKE_LIST,
    MAKE_OTHER_TUPLE,
    MAKE_TUPLE,
    OBJECT,
    OUTPUT,
    PLAN,
    SCALAR,
    TUPLE,
)
from pullback.compiler.runtime.abi.layout import ALIGNED, C_CONTIGUOUS, OFFSETS, TUPLE_HAS_HASH
from pullback.compiler.runtime.abi.memory_pool import write_pool

CALLED = (  # functions of CPython's and NumPy's C API
    "PyArray_NewFromDescr",
    "PyArray_Scalar",
    "PyFloat_FromDouble",
    "PyTuple_New",
    "PyType_GenericAlloc",
    "PyList_New",
    "PyDict_New",
    "PyDict_SetItem",
    "PyDict_Next",
    "PyLong_AsLongLong",
    "PyErr_Occurred",
    "PyErr_Clear",
    "PyErr_NoMemory",
    "PyObject_RichCompareBool",
    "PyObject_Vectorcall",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "Py_IncRef",
    "Py_DecRef",
)
GLOBALS = declare_globals(("ndarray", "list_type", "tuple_type", "dict_type"))
DECLARED = f"""
{GLOBALS}{declare_functions(CALLED)}declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
EQUAL = 2  # Py_EQ
NOTHING = """define i64 @nothing(ptr %slots, ptr %arena) {
  ret i64 0
}
"""  # the program of an entry that has nothing to run


def write_code() -> str:
    """Return the text of the module."""
    return DECLARED + write_pool() + CheckWriter().write() + NOTHING + EntryWriter().write()


def write_switch(w: ObjectWriter, kind: str, otherwise: str, labels: dict[int, str]) -> None:
    """Write the jump to a label by the number of a kind."""
    cases = " ".join(f"i64 {number}, label %{label}" for number, label in labels.items())
    w.do(f"switch i64 {kind}, label %{otherwise} [{cases}]")


class CheckWriter(ObjectWriter):
    """Writes ``check_argument(t, containers, slots, kept, number)``: whether an argument passes the check ``t``.

    An array must be exactly an ndarray, of the right dtype and shape, in C order and aligned; one without axes may be a
    scalar.  The address of its elements goes to the table of slots, the object itself to ``kept``, null for others.
    ``t`` is the record of the check (``CHECK``), ``number`` memory for the value of a Python int.
    """

    def __init__(self) -> None:
        pointers = [f"ptr {name}" for name in ("t", "containers", "slots", "kept", "number")]
        super().__init__("i1", "check_argument", *pointers)

    def write(self) -> str:
        """Return the text of the function."""
        container = self.word("%containers", self.word("%t", CHECK["container"]), "ptr")
        self.slot, self.number = self.word("%t", CHECK["slot"]), self.word("%t", CHECK["count"])
        self.wanted = self.word("%t", CHECK["object"], "ptr")
        self.place = self.allocate("ptr")
        self.position, self.key = self.allocate("i64"), self.allocate("ptr")
        self.x = self.word(container, self.word("%t", CHECK["index"]), "ptr")
        self.kind = self.type_of(self.x)
        self.has_type = self.compare("eq", self.kind, self.wanted)
        kinds = {SCALAR: "scalar", LIST: "list", TUPLE: "tuple", DICT: "dict", IDENTICAL: "same", INTEGER: "integer"}
        write_switch(self, self.word("%t", CHECK["kind"]), "array", kinds)
        self._check_array()
        self._check_number()
        self._check_container()
        self.label("same")
        self.store("ptr", "null", "%kept")
        self.ret("i1", self.compare("eq", self.x, self.wanted))
        self.label("wrong")
        self.call_void("@PyErr_Clear")
        self.label("no", falls=True)
        self.ret("i1", 0)
        return self.text()

    def _check_array(self) -> None:
        """Check type, layout, dtype and shape of an array."""
        self.label("array")
        self.require(self.compare("eq", self.kind, "@ndarray"), "other")
        usual, rank = C_CONTIGUOUS | ALIGNED, self.word("%t", CHECK["rank"])
        flags = self.let(f"and i32 {self.load('i32', self.x, OFFSETS['ARRAY_FLAGS'])}, {usual}")
        axes = self.let(f"zext i32 {self.load('i32', self.x, OFFSETS['ARRAY_RANK'])} to i64")
        self.require(self.both(self.compare("eq", flags, usual, "i32"), self.compare("eq", axes, rank, "i64")), "no")
        dtype = self.load("ptr", self.x, OFFSETS["ARRAY_DTYPE"])
        self.jump_if(self.compare("eq", dtype, self.wanted), "typed")
        is_native = self.compare("ne", self.load("i8", dtype, OFFSETS["DTYPE_ORDER"]), ord(">"), "i8")
        number = self.let(f"sext i32 {self.load('i32', dtype, OFFSETS['DTYPE_NUMBER'])} to i64")
        self.require(self.both(is_native, self.compare("eq", number, self.number, "i64")), "no")
        self.label("typed", falls=True)
        has, must = self.load("ptr", self.x, OFFSETS["ARRAY_SHAPE"]), self.at("%t", CHECK["shape"], "i64")
        i = self.loop("lengths", rank)
        self.require(self.compare("eq", self.word(has, i), self.word(must, i), "i64"), "no")
        self.end_loop("lengths")
        self.store("ptr", self.load("ptr", self.x, OFFSETS["ARRAY_DATA"]), self.place)
        self.jump("put")

    def _check_number(self) -> None:
        """Check a scalar in place of an array, a Python float or a Python int; store the address of the value."""
        self.label("other")
        self.require(self.compare("eq", self.kind, self.word("%t", CHECK["scalar_type"], "ptr")), "no")
        self.jump("inside")
        self.label("scalar")
        self.require(self.has_type, "no")
        self.label("inside", falls=True)
        self.store("ptr", self.at(self.x, OFFSETS["NUMBER"]), self.place)
        self.jump("put")
        self.label("integer")
        self.require(self.has_type, "no")
        value = self.call("i64", "@PyLong_AsLongLong", f"ptr {self.x}")
        self.store("i64", value, "%number")
        self.store("ptr", "%number", self.place)
        self.require(self.compare("eq", value, -1, "i64"), "put")
        self.require(self.compare("eq", self.call("ptr", "@PyErr_Occurred"), "null"), "wrong")
        self.label("put", falls=True)
        self.set_word(self.load("ptr", self.place), "%slots", self.slot, "ptr")
        self.store("ptr", self.x, "%kept")
        self.ret("i1", 1)

    def _check_container(self) -> None:
        """Check type and length of a list, tuple or dict, and store where its items are.

        A dict must have its keys in the same order, in which the function may have read them.
        """
        self.label("list")
        self.require(self.compare("eq", self.kind, "@list_type"), "no")
        self.store("ptr", self.load("ptr", self.x, OFFSETS["LIST_ITEMS"]), self.place)
        self.jump("sized")
        self.label("tuple")
        self.require(self.has_type, "no")
        self.store("ptr", self.at(self.x, OFFSETS["TUPLE_ITEMS"]), self.place)
        self.jump("sized")
        self.label("dict")
        self.require(self.compare("eq", self.kind, "@dict_type"), "no")
        self.require(self.compare("eq", self.load("i64", self.x, OFFSETS["SIZE"]), self.number, "i64"), "no")
        values = self.at("%containers", self.word("%t", CHECK["values"]), "ptr")
        self.store("ptr", values, self.place)
        self._read_items(values)
        self.label("sized", falls=True)
        self.set_word(self.load("ptr", self.place), "%containers", self.slot, "ptr")
        self.store("ptr", "null", "%kept")
        self.ret("i1", self.compare("eq", self.load("i64", self.x, OFFSETS["SIZE"]), self.number, "i64"))

    def _read_items(self, values: str) -> None:
        """Check the keys of a dict, and store its values one after the other."""
        self.store("i64", 0, self.position)
        i = self.loop("keys", self.number)
        self.call_pointers("i32", "@PyDict_Next", self.x, self.position, self.key, self.at(values, i, "ptr"))
        has, must = self.load("ptr", self.key), self.word(self.at(self.wanted, OFFSETS["TUPLE_ITEMS"]), i, "ptr")
        self.jump_if(self.compare("eq", has, must), "keys")
        self.require_type(has, self.type_of(must), "no")  # so that no Python code runs
        equal = self.call("i32", "@PyObject_RichCompareBool", f"ptr {has}", f"ptr {must}", f"i32 {EQUAL}")
        self.require(self.compare("eq", equal, 1, "i32"), "wrong")
        self.end_loop("keys")


class EntryWriter(ObjectWriter):
    """Writes ``entry(self, args, given, names)``, the built-in function of all programs.

    ``self`` is a tuple: the plan, the function for other arguments, the one for leaves that are handed over.
    """

    def __init__(self) -> None:
        super().__init__("ptr", "entry", "ptr self", "ptr args", "i64 given", "ptr names", internal=False)
        self.known, self.held, self.height = (self.allocate("i64") for _ in range(3))  # what a failure must release
        self.flag = self.allocate("i64")  # the truth value of ``PLAN["flag"]``

    def write(self) -> str:
        """Return the text of the function."""
        for cell in (self.known, self.held, self.height, self.flag):
            self.store("i64", 0, cell)
        self.plan = self.at(self.load("ptr", "%self", OFFSETS["TUPLE_ITEMS"]), OFFSETS["BYTES_DATA"])
        self.checks, self.results, self.steps = (self._read(name) for name in ("checks", "results", "steps"))
        self.slot_count = self._read("slots")
        self.containers = self._allocate_row("ptr", self._read("containers"))
        self.slots = self._allocate_row("ptr", self.slot_count)
        self.kept, self.numbers = self._allocate_row("ptr", self.checks), self._allocate_row("i64", self.checks)
        self.objects, self.memories = (self._allocate_row("ptr", self.results) for _ in range(2))
        self.scalars = self._allocate_row("[2 x i64]", self.results)
        self.stack = self._allocate_row("ptr", self.steps)
        self._check_arguments()
        self._make_results()
        self._run_program()
        self._make_numbers()
        self._build_tree()
        self._end()
        return self.text()

    def _read(self, name: str, kind: str = "i64") -> str:
        return self.word(self.plan, PLAN[name], kind)

    def _allocate_row(self, kind: str, count: str) -> str:
        return self.let(f"alloca {kind}, i64 {count}, align 16")

    def _begin_rows(self, name: str, row: str, count: str) -> tuple[str, str, str]:
        """Begin a loop over records of varying length; return the number of one, its address, and where that is."""
        cell = self.allocate("i64")
        self.store("i64", self._read(row), cell)
        i = self.loop(name, count)
        return i, self.at(self.plan, self.load("i64", cell), "i64"), cell

    def _end_rows(self, name: str, cell: str, fields: dict[str, int], record: str) -> None:
        """End such a loop: the next record comes after the lengths of this one."""
        rank = self.word(record, fields["rank"])
        lengths_at = self.let(f"add i64 {self.load('i64', cell)}, {fields['shape']}")
        self.store("i64", self.let(f"add i64 {lengths_at}, {rank}"), cell)
        self.end_loop(name)

    def _drop(self, name: str, count: str, row: str) -> None:
        """Write the loop that releases the first ``count`` references of a row."""
        self.decref(self.word(row, self.loop(name, count), "ptr"))
        self.end_loop(name)

    def _call_own(self, place: int, arguments: str, count: str, names: str) -> None:
        """Write the call of a function in ``self``, and return its result."""
        function = self.word(self.at("%self", OFFSETS["TUPLE_ITEMS"]), place, "ptr")
        given = f"ptr {function}", f"ptr {arguments}", f"i64 {count}", f"ptr {names}"
        self.ret("ptr", self.call("ptr", "@PyObject_Vectorcall", *given))

    def _copy(self, to: str, source: str, nbytes: str) -> None:
        self.call_void("@llvm.memcpy.p0.p0.i64", f"ptr {to}", f"ptr {source}", f"i64 {nbytes}", "i1 false")

    def _check_arguments(self) -> None:
        is_counted = self.compare("eq", "%given", self._read("arguments"), "i64")
        is_off = self.compare("eq", self.load("i64", self._read("switch", "ptr")), 0, "i64")
        is_unnamed = self.compare("eq", "%names", "null")
        self.require(self.both(self.both(is_counted, is_off), is_unnamed), "otherwise")
        self.store("ptr", "%args", self.containers)
        first = self.at(self.plan, self._read("slots_at"), "i64")
        self._copy(self.slots, first, self.let(f"shl i64 {self.slot_count}, 3"))
        self.set_word(self.flag, self.slots, self._read("flag"), "ptr")
        i, record, cell = self._begin_rows("check", "checks_at", self.checks)
        given = record, self.containers, self.slots, self.at(self.kept, i, "ptr"), self.at(self.numbers, i, "i64")
        self.require(self.call("i1", "@check_argument", *(f"ptr {v}" for v in given)), "otherwise")
        self._end_rows("check", cell, CHECK, record)
        self.jump_if(self.compare("ne", self._read("forwards"), 0, "i64"), "forward")

    def _make_results(self) -> None:
        """Write the code that makes the arrays of results, and places on the stack for those that are numbers."""
        memory = self.allocate("ptr")
        i, about, cell = self._begin_rows("make", "results_at", self.results)
        self.set_word("null", self.objects, i, "ptr")
        self.store("i64", self.let(f"add i64 {i}, 1"), self.known)
        self.store("ptr", self.at(self.scalars, i, "[2 x i64]"), memory)
        self.require(self.compare("ne", self.word(about, OUTPUT["rank"]), 0, "i64"), "placed")
        array = self.call("ptr", "@pooled_array", f"ptr {about}")
        self.require(self.compare("ne", array, "null"), "failed")
        self.set_word(array, self.objects, i, "ptr")
        self.store("ptr", self.load("ptr", array, OFFSETS["ARRAY_DATA"]), memory)
        self.label("placed", falls=True)
        self.set_word(self.load("ptr", memory), self.memories, i, "ptr")
        slot, last = self.word(about, OUTPUT["slot"]), self.let(f"sub i64 {self.slot_count}, 1")
        place = self.select(self.compare("slt", slot, 0, "i64"), "i64", last, slot)
        self.set_word(self.load("ptr", memory), self.slots, place, "ptr")
        self._end_rows("make", cell, OUTPUT, about)

    def _run_program(self) -> None:
        arena, again = self.allocate("ptr"), self.allocate("i64")
        self.store("ptr", "null", arena)
        arena_from, size = self._read("arena_from"), self._read("arena")
        is_lent = self.compare("sge", arena_from, 0, "i64")
        self.jump_if(is_lent, "lent")
        self.require(self.compare("ne", size, 0, "i64"), "run")
        taken = self.call("ptr", "@pool_allocate", f"i64 {size}")
        self.store("ptr", taken, arena)
        self.jump_if(self.compare("ne", taken, "null"), "run")
        self.call("ptr", "@PyErr_NoMemory")
        self.jump("failed")
        self.label("lent")
        above = self.let(f"add i64 {self.word(self.slots, arena_from)}, 63")
        self.store("ptr", self.let(f"inttoptr i64 {self.let(f'and i64 {above}, -64')} to ptr"), arena)
        self.label("run", falls=True)
        code = self.load("ptr", self._read("run", "ptr"))
        given = f"ptr {self.slots}", f"ptr {self.load('ptr', arena)}"
        self.require(self.compare("ne", self._read("release"), 0, "i64"), "locked")
        self.incref(self.word(self.kept, self.loop("hold", self.checks), "ptr"))
        self.end_loop("hold")
        self.store("i64", self.checks, self.held)
        thread = self.call("ptr", "@PyEval_SaveThread")
        self.store("i64", self.call("i64", code, *given), again)
        self.call_void("@PyEval_RestoreThread", f"ptr {thread}")
        self.jump("ran")
        self.label("locked")
        self.store("i64", self.call("i64", code, *given), again)
        self.label("ran", falls=True)
        self.jump_if(is_lent, "checked")
        self.call_void("@pool_release", f"ptr {self.load('ptr', arena)}")
        self.label("checked", falls=True)
        flags = self.let(f"or i64 {self.load('i64', self.flag)}, {self.load('i64', again)}")
        self.require(self.compare("eq", flags, 0, "i64"), "wrong")

    def _make_numbers(self) -> None:
        """Write the code that copies results that the program does not write itself, and makes scalars of numbers."""
        number = self.allocate("ptr")
        i, about, cell = self._begin_rows("give", "results_at", self.results)
        memory, source = self.word(self.memories, i, "ptr"), self.word(about, OUTPUT["copied"])
        self.require(self.compare("sge", source, 0, "i64"), "whole")
        self._copy(memory, self.word(self.slots, source, "ptr"), self.word(about, OUTPUT["bytes"]))
        self.label("whole", falls=True)
        self.require(self.compare("eq", self.word(about, OUTPUT["rank"]), 0, "i64"), "next_result")
        dtype = self.word(about, OUTPUT["dtype"], "ptr")
        self.require(self.compare("ne", dtype, "null"), "float")
        self.store("ptr", self.call("ptr", "@PyArray_Scalar", f"ptr {memory}", f"ptr {dtype}", "ptr null"), number)
        self.jump("number")
        self.label("float")
        self.store("ptr", self.call("ptr", "@PyFloat_FromDouble", f"double {self.load('double', memory)}"), number)
        self.label("number", falls=True)
        self.set_word(self.load("ptr", number), self.objects, i, "ptr")
        self.require(self.compare("ne", self.load("ptr", number), "null"), "failed")
        self.label("next_result", falls=True)
        self._end_rows("give", cell, OUTPUT, about)
        self._drop("release", self.load("i64", self.held), self.kept)
        self.store("i64", 0, self.held)

    def _build_tree(self) -> None:
        """Write the steps that build the returned tree on the stack."""
        new, base = self.allocate("ptr"), self.allocate("i64")
        first = self.at(self.plan, self._read("steps_at"), "i64")
        i = self.loop("build", self.steps)
        step = self.at(first, self.let(f"mul i64 {i}, {BUILD['words']}"), "i64")
        count, about = self.word(step, BUILD["count"]), self.word(step, BUILD["object"], "ptr")
        height = self.load("i64", self.height)
        below = self.let(f"sub i64 {height}, {count}")
        parts, nbytes = self.at(self.stack, below, "ptr"), self.let(f"shl i64 {count}, 3")
        self.store("i64", below, base)
        containers = {MAKE_TUPLE: "tuple", MAKE_OTHER_TUPLE: "other_tuple", MAKE_LIST: "list", MAKE_DICT: "dict"}
        write_switch(self, self.word(step, BUILD["kind"]), "result", containers | {OBJECT: "object"})
        self.label("result")
        self.store("ptr", self.word(self.objects, count, "ptr"), new)
        self.set_word("null", self.objects, count, "ptr")
        self.store("i64", height, base)
        self.jump("push")
        self.label("object")
        self.incref(about)
        self.store("ptr", about, new)
        self.store("i64", height, base)
        self.jump("push")
        self.label("tuple")
        self.store("ptr", self.call("ptr", "@PyTuple_New", f"i64 {count}"), new)
        self.jump_if(self.compare("eq", self.load("ptr", new), "null"), "failed")
        self.jump("fill")
        self.label("other_tuple")
        typed = self.call("ptr", "@PyType_GenericAlloc", f"ptr {about}", f"i64 {count}")
        self.store("ptr", typed, new)
        self.jump_if(self.compare("eq", typed, "null"), "failed")
        if TUPLE_HAS_HASH:  # -1 until it is computed
            self.store("i64", -1, typed, OFFSETS["TUPLE_ITEMS"] - 8)
        self.label("fill", falls=True)
        self._copy(self.at(self.load("ptr", new), OFFSETS["TUPLE_ITEMS"]), parts, nbytes)
        self.jump("push")
        self.label("list")
        made = self.call("ptr", "@PyList_New", f"i64 {count}")
        self.store("ptr", made, new)
        self.jump_if(self.compare("eq", made, "null"), "failed")
        self._copy(self.load("ptr", made, OFFSETS["LIST_ITEMS"]), parts, nbytes)
        self.jump("push")
        self._make_dict(new, parts, count, about)
        self.label("push")
        at = self.load("i64", base)
        self.set_word(self.load("ptr", new), self.stack, at, "ptr")
        self.store("i64", self.let(f"add i64 {at}, 1"), self.height)
        self.end_loop("build")
        self.ret("ptr", self.load("ptr", self.stack))

    def _make_dict(self, new: str, parts: str, count: str, keys: str) -> None:
        """Write the step that makes a dict of parts on the stack, which it holds itself then."""
        self.label("dict")
        made = self.call("ptr", "@PyDict_New")
        self.store("ptr", made, new)
        self.jump_if(self.compare("eq", made, "null"), "failed")
        names = self.at(keys, OFFSETS["TUPLE_ITEMS"])
        i = self.loop("items", count)
        given = f"ptr {made}", f"ptr {self.word(names, i, 'ptr')}", f"ptr {self.word(parts, i, 'ptr')}"
        self.require(self.compare("sge", self.call("i32", "@PyDict_SetItem", *given), 0, "i32"), "spoiled")
        self.end_loop("items")
        self._drop("parts", count, parts)
        self.jump("push")
        self.label("spoiled")
        self.decref(made)
        self.jump("failed")

    def _end(self) -> None:
        """Write the ends of the function: an error, arguments that are passed on, and leaves that are handed over."""
        self.label("failed")
        self._drop("let_go", self.load("i64", self.held), self.kept)
        self._drop("clean", self.load("i64", self.known), self.objects)
        self._drop("unstack", self.load("i64", self.height), self.stack)
        self.ret("ptr", "null")
        self.label("wrong")
        self._drop("drop_results", self.results, self.objects)
        self._drop("drop_arguments", self.load("i64", self.held), self.kept)
        self.label("otherwise", falls=True)
        self._call_own(1, "%args", "%given", "%names")
        self.label("forward")
        count = self.allocate("i64")
        self.store("i64", 0, count)
        leaf, n = self.word(self.kept, self.loop("collect", self.checks), "ptr"), self.load("i64", count)
        self.set_word(leaf, self.numbers, n, "ptr")
        is_leaf = self.let(f"zext i1 {self.compare('ne', leaf, 'null')} to i64")
        self.store("i64", self.let(f"add i64 {n}, {is_leaf}"), count)
        self.end_loop("collect")
        self._call_own(2, self.numbers, self.load("i64", count), "null")
