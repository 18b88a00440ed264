"""Machine code for small eager ops and for the backward pass: what ``core.native`` loads and ops then call.

In Python, calling a ufunc costs some hundred nanoseconds before it computes anything, and making the node as much
again.  Here a built-in function does both: it checks that the operands are arrays or numbers of known layout, calls
NumPy's own inner loop, so that results are equal to NumPy's bit by bit, fills in the node and appends it to the tape.
For any other operands it returns None, and Python performs the op.  The backward pass runs the rules of such ops
likewise.  The machine code is written by ``eager_code``; this module loads it and writes the records that it reads.
"""

from __future__ import annotations

import ctypes
import operator
import struct
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.compiler.runtime.abi.c_api import FASTCALL, ONE_ARGUMENT, find_functions, make_builtin
from pullback.compiler.runtime.abi.eager_blocks import MOST_NODES, NodeRun, find_run
from pullback.compiler.runtime.abi.eager_code import CALLBACKS, CALLED, EXPORTS, TYPES, write_code
from pullback.compiler.runtime.abi.eager_fused import FusedRuns
from pullback.compiler.runtime.abi.eager_programs import is_ufunc_known, trace_program
from pullback.compiler.runtime.abi.eager_records import (
    ARRAY,
    BLOCK,
    BOTH,
    BY_PICKING,
    BY_PRODUCTS,
    BY_PROGRAMS,
    BY_SPREADING,
    JOB,
    LEFT,
    MAX_SUMMED_ROWS,
    NESTED,
    OP,
    OUT,
    PROGRAM,
    REGISTERS,
    RIGHT,
    SCALAR,
    SCRATCH,
    STEP,
    SUM_OF_SCALARS,
    SUM_SHIFT,
)
from pullback.compiler.runtime.abi.layout import Method, is_layout_known, read_address
from pullback.compiler.runtime.disk_cache import get_default_cache
from pullback.compiler.runtime.llvm import get_code, llvm_available, load_code, make_code_key
from pullback.compiler.target import find_blas, is_x86
from pullback.core import native
from pullback.core.axes import elementwise1, elementwise2
from pullback.core.fitting import fit
from pullback.core.memory import SOLE, TRUSTED
from pullback.core.tape import Meta, Step, forget, walk_node, walk_node_again
from pullback.core.tensor import Tensor

if TYPE_CHECKING:
    from pullback.core.op import Op

FLAG_OF = {"invalid": 0x01, "divide": 0x04, "over": 0x08, "under": 0x10}  # floating-point flags by NumPy's names
BUFFERS = 5  # of SCRATCH bytes each: the result of a program, its temporaries, and a sum of cotangents
MOST_ELEMENTS = 4096  # of an array; ops may compute larger ones by another formula
SLOTS = {
    "g": Tensor, "meta": Tensor, "value": Tensor, "via": Tensor, "x": Tensor, "y": Tensor, "record": Meta,
    "constants": Meta, "dtype": Meta, "tape": Meta, "step_record": Step, "dx": Step, "dy": Step, "back": Step,
    "original": Step,
}  # fmt: skip
MOST_RECORDS = 4096  # of metas that are kept for others like them
# Kernels of ops of one input whose cotangent is not computed by programs, with fields of the records of their steps.
OTHER_STEPS: dict[Any, dict[str, int]] = {
    operator.getitem: {"kind": BY_PICKING},
    np.sum: {"kind": BY_SPREADING},
    np.mean: {"kind": BY_SPREADING, "is_mean": 1},
}
ELEMENTS = 11  # of the example on which a program is compared with its formula


def load(compiles: bool) -> Machine | None:
    """Return the machine code from the disk cache, or compile it if ``compiles``; None if it cannot run here."""
    if not is_x86() or not is_layout_known() or not llvm_available():
        return None
    slots = {name: _find_offset(kind, name) for name, kind in SLOTS.items()}
    missing = next((name for name, offset in slots.items() if not offset), None)
    if missing is not None:
        _warn(f"the slot {missing} of a {SLOTS[missing].__name__}")
        return None
    if not all(map(is_ufunc_known, (np.add, np.exp, np.multiply, np.negative, np.arctan2))):
        _warn("the inner loops of a ufunc")
        return None
    text, cache = write_code(slots), get_default_cache()
    machine = Machine()
    if compiles:
        code = get_code(text, [*EXPORTS], machine.imports, cache, effort=1)[0]
    else:
        found = load_code(make_code_key(text, cache, 1), [*EXPORTS], machine.imports, cache)
        if found is None:
            return None
        code = found
    code.keep()
    machine.addresses = code.addresses
    machine.run_blocks = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(machine.addresses["run_blocks"])
    machine.walk = machine.make_function("walk", None, ONE_ARGUMENT)
    machine.walk_again = machine.make_function("walk_again", None, ONE_ARGUMENT)
    if not machine.has_same_counts():
        _warn("as many references to an object that machine code passes on")
        return None
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(machine))  # also while the interpreter ends, and with it this module
    return machine


def _warn(subject: str) -> None:
    """Warn that an object of CPython or NumPy has another layout than this code assumes."""
    warnings.warn(
        f"Python {sys.version.split()[0]} with NumPy {np.__version__} does not have {subject} where it should be: "
        "small ops are run in Python, which is right but slower.",
        RuntimeWarning,
        stacklevel=2,
    )


def _find_offset(kind: type, name: str) -> int:
    """Return the offset of a slot of a class, in bytes; 0 if it is not found."""
    x: Any = object.__new__(kind)
    mark = object()
    setattr(x, name, mark)
    words = (ctypes.c_int64 * (kind.__basicsize__ // 8)).from_address(id(x))
    places = [i for i, word in enumerate(words) if word == id(mark)]
    return 8 * places[0] if len(places) == 1 else 0


class Machine:
    """The machine code and the records that it reads; both are kept as long as the process runs."""

    addresses: dict[str, int]  # of the functions that ``EXPORTS`` names
    walk: Any = None  # the backward pass over a list of nodes, as a built-in function
    walk_again: Any = None  # the same over nodes that stay as they are
    run_blocks: Any = None  # the one over large arrays; ctypes calls it without the interpreter's lock

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.records: dict[Any, tuple[Any, Any]] = {}  # those of metas, by what is in them, with their dtypes
        scratch = np.empty(BUFFERS * SCRATCH + 64, np.uint8)
        sums = [trace_program(np.add, range(2), char) for char in "fd"]
        programs = (ctypes.c_int64 * 2)(*map(ctypes.addressof, sums))
        callbacks = warn_of_sum, walk_node, self.prepare, fit, walk_node_again  # in the order of CALLBACKS
        called = (ctypes.c_int64 * len(callbacks))(*map(id, callbacks))
        types = np.ndarray, Tensor, Meta, bytes, float, int, slice, tuple  # in the order of TYPES
        self.sums, self.copies = sums, [trace_program(np.positive, range(1), char) for char in "fd"]
        self.buffers: list[Any] = []  # memory of earlier calls of ``pull_large``, to be used again
        self.fused = FusedRuns()
        self.kept += [scratch, programs, callbacks, called]
        self.imports = {
            **find_functions(CALLED),
            **{name: id(kind) for name, kind in zip(TYPES, types, strict=True)},
            **{name: ctypes.addressof(called) + 8 * i for i, name in enumerate(CALLBACKS)},
            "none": id(None),
            "blas": self._make_blas_table(),
            "scratch": -(-scratch.ctypes.data // 64) * 64,
            "sums": ctypes.addressof(programs),
        }

    def _make_blas_table(self) -> int:
        """Return the address of the table of routines of BLAS (``BLAS``)."""
        found = find_blas()
        ones = [np.ones(MAX_SUMMED_ROWS, char) for char in "fd"]
        routines = [found.get(letter + name, 0) for name in ("gemm", "gemv") for letter in "sd"]
        table = (ctypes.c_int64 * 6)(*routines, *(v.ctypes.data for v in ones))  # in the order of BLAS
        self.kept += [ones, table]
        return ctypes.addressof(table)

    def make_function(self, name: str, own: Any, flags: int = FASTCALL) -> Any:
        """Return a function of the machine code as a built-in function whose ``self`` is ``own``."""
        method = Method(name.encode(), self.addresses[name], flags, None)
        self.kept += [method, own]
        return make_builtin(method, own)

    def has_same_counts(self) -> bool:
        """Return whether reference counts are the same in a function that ``walk`` calls as in one that Python calls.

        Such functions write into arrays to which there is no other reference.
        """
        seen: list[bool] = []
        node = Tensor()
        node.g, node.x, node.y, node.via = (
            True,
            None,
            None,
            Step(None, back=lambda r: seen.append(sys.getrefcount(r) == SOLE)),
        )
        held, nodes = node, [node]
        self.walk(nodes)
        nodes.append(node)
        del held, node
        self.walk(nodes)
        return not TRUSTED or seen == [False, True]

    # ---- large arrays

    def pull_large(self, r: Any) -> list[Any]:
        """Run the rules of a node with large values together with those of the nodes before it on the tape.

        Return the nodes whose rules were run, which are off the tape; an empty list, with nothing run, if Python must.
        """
        rules = find_run(r)
        if not rules:
            return []
        meta = r.meta
        which = "fd".index(meta.dtype.char)
        try:
            memory = self.buffers.pop()
        except IndexError:  # not "if self.buffers": another thread may take the last one in between
            memory = np.empty((2 * MOST_NODES + 5) * 8 * BLOCK, np.uint8)
        start = -(-read_address(memory) // 64) * 64
        ignored = sum(FLAG_OF[name] for name, mode in np.geterr().items() if mode == "ignore")
        run = NodeRun(
            rules, ctypes.addressof(self.copies[which]), start + 4 * 8 * BLOCK, ignored | ignored << SUM_SHIFT
        )
        run.write_parts()
        size, item = meta.size, meta.dtype.itemsize
        done = self.fused.run_parts(run.parts, size, item, ignored, start)
        if done * BLOCK < size:
            words = (
                size, item, ctypes.addressof(self.sums[which]), start, len(run.parts), done, 0,
                *chain.from_iterable(run.parts),
            )  # fmt: skip
            job = np.array(words, np.int64)
            address = read_address(job)
            while flags := self.run_blocks(address):
                run.warn(flags, int(job[JOB["part"]]) - 1, int(job[JOB["block"]]))
                warn_of_sum(flags >> SUM_SHIFT)
        self.buffers.append(memory)
        return [rule.node for rule in rules]

    # ---- records

    def prepare(self, m: Meta) -> None:
        """Set the record of a meta; it is False if Python must perform the ops of its tensors."""
        nodes = _find_nodes(m)
        key = m.shape, id(m.dtype), m.raw, m.small, nodes
        found = self.records.get(key)
        if found is None:  # a GradientTape has new metas, of the same shapes as those of the one before
            if len(self.records) > MOST_RECORDS:
                self.records.clear()
            found = self.records[key] = _write_record(m, nodes), m.dtype
        m.record = found[0]

    def describe_step(self, step: Any, fitted: int = 0) -> None:
        """Write the record of a step if all its rules have programs.

        ``fitted`` is the number of the operand that was broadcast, 1 or 2, or 0 for none.
        """
        if step is None or not step.positional_rules or step.step_record is not None:
            return
        rules = step.loose.positional_rules  # without the sum over broadcast axes
        domain = step.op.domain
        programs = [self._trace(rule, range(4), char, domain) for rule in rules for char in "fd"]
        if any(program is None for program in programs):
            return
        at = [ctypes.addressof(program) for program in programs]
        numbers = int(all(program[PROGRAM["fits_scalars"]] for program in programs))
        words = (int(step.has_two_operands), *at, *[0] * (4 - len(at)), numbers, fitted, BY_PROGRAMS, 0, 0)
        step.step_record = struct.pack(f"<{_count_words(STEP)}q", *words)  # in the order of STEP
        if not fitted:  # for ``read_rules``: addresses for each dtype, which inputs the two programs read, the rules
            reads = [program[PROGRAM["reads"]] for program in programs]
            step.programs = [(at[i::2], reads[i] | reads[i - 2], rules) for i in range(2)]

    def _trace(self, formula: Callable[..., Any], inputs: Sequence[int], char: str, domain: Sequence[Any]) -> Any:
        """Return the program of a formula; None if it has none, or if the two differ on an example."""
        made = trace_program(formula, inputs, char)
        if made is None or (made[0] and not self._is_right(formula, made, len(inputs), char, domain)):
            return None
        self.kept.append(made)
        return made

    def _is_right(
        self, formula: Callable[..., Any], program: Any, count: int, char: str, domain: Sequence[Any]
    ) -> bool:
        """Return whether a program gives the same numbers as its formula on an example, bit by bit."""
        low, high = domain
        given = [np.linspace(low, high, ELEMENTS).astype(char)[::way].copy() for way in (1, -1, -1, 1)[-count:]]
        results = [np.empty(ELEMENTS, char) for _ in range(OUT, REGISTERS)]
        unread = [np.zeros(ELEMENTS, char)] * (OUT - count)
        memory = (ctypes.c_void_p * REGISTERS)(*(v.ctypes.data for v in (*given, *unread, *results)))
        strides = (ctypes.c_int64 * (2 * REGISTERS))(*[given[0].itemsize, 0] * REGISTERS)
        fields = (ctypes.c_int64 * 10)(ARRAY, 0, given[0].itemsize, ELEMENTS, 0, 0, 1, 0, 1, ELEMENTS)  # of META
        with np.errstate(all="ignore"):
            wanted = formula(*given)
            ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)(self.addresses["run_program"])(
                ctypes.addressof(program), ctypes.addressof(memory), ctypes.addressof(strides), ctypes.addressof(fields)
            )
        return type(wanted) is np.ndarray and wanted.tobytes() == results[0].tobytes()

    def make_op(self, op: Op) -> tuple[Any, Any] | None:
        """Return an op's built-in function, and the one for a number as first input; None if it has no program.

        The second is None for an op of one input.
        """
        if op.kernel in OTHER_STEPS:
            self._describe_other_step(op.one, **OTHER_STEPS[op.kernel])
        if op.kernel is np.matmul:
            return self._make_product(op)
        count = 1 if op.acts is elementwise1 else 2 if op.acts is elementwise2 else 0
        if not _is_plain_formula(op, count):
            return None
        programs = [self._trace(op.run, range(count), char, op.domain) for char in "fd"]
        return None if any(p is None or not p[0] for p in programs) else self._make_elementwise(op, count, programs)

    def _make_elementwise(self, op: Op, count: int, programs: list[Any]) -> tuple[Any, Any]:
        """Return the built-in functions of an elementwise op of ``count`` inputs."""
        words = dict.fromkeys(range(_count_words(OP)), 0)
        words |= {1 + i: ctypes.addressof(program) for i, program in enumerate(programs)}
        words |= {OP["function"]: id(op.function), OP["has_shortcuts"]: int(bool(op.shortcuts))}
        words[OP["max_size"]] = getattr(op.run, "largest", MOST_ELEMENTS)
        steps = {"step": op.one} if count == 1 else {"step": op.both, "left": op.left, "right": op.right}
        if count == 2:
            steps |= {"fit_x": op.fit_x, "fit_y": op.fit_y}
            words[OP["keeps_y"]] = int(op.left.needs[1])
        for name, step in steps.items():
            self.describe_step(step, {"fit_x": 1, "fit_y": 2}.get(name, 0))
            words[OP[name]] = id(step)
        own = (struct.pack(f"<{len(words)}q", *(words[i] for i in range(len(words)))), op.function, steps)
        if count == 1:
            return self.make_function("unary", own), None
        return self.make_function("binary", own), self.make_function("reflected", own)

    @staticmethod
    def _describe_other_step(step: Any, kind: int, **fields: int) -> None:
        """Write the record of a step whose cotangents are not computed by programs."""
        words = dict.fromkeys(range(_count_words(STEP)), 0) | {STEP["kind"]: kind}
        words |= {STEP[name]: value for name, value in fields.items()}
        step.step_record = struct.pack(f"<{len(words)}q", *words.values())

    def _make_product(self, op: Op) -> tuple[Any, Any]:
        """Return the built-in function of the product of matrices."""
        steps = {"step": (op.both, BOTH), "left": (op.left, LEFT), "right": (op.right, RIGHT)}
        words = dict.fromkeys(range(_count_words(OP)), 0)
        for name, (step, product) in steps.items():
            self._describe_other_step(step, BY_PRODUCTS, product=product)
            words[OP[name]] = id(step)
        own = (struct.pack(f"<{len(words)}q", *words.values()), op.function, steps)
        return self.make_function("product", own), native.give_nothing


def _count_words(record: Mapping[str, int]) -> int:
    """Return the number of words of a record; some of its fields are more than one word."""
    return max(record.values()) + 1


def _is_plain_formula(op: Op, count: int) -> bool:
    """Return whether an op is a formula of this library of one or two inputs, without parameters."""
    if op.params or op.arity != count or not op.flows or op.kernel in (np.power, np.floor_divide):
        return False
    if not str(op.function.__module__).startswith("pullback."):
        return False  # a function of the user's may compute something else at each call
    return bool(op.one if count == 1 else op.both and op.left and op.right)


def _write_record(m: Meta, nodes: int | None) -> Any:
    """Return the record of a meta whose tensors are appended to the list ``nodes``; False if Python must treat them."""
    if nodes is None or not m.small or not m.dtype.isnative:
        return False
    if not m.raw:
        return struct.pack("<5q", NESTED, 0, 0, 0, nodes)
    if m.dtype.char not in "fd" or not 0 < m.size <= MOST_ELEMENTS or m.size * m.dtype.itemsize > SCRATCH:
        return False
    words = (
        ARRAY if m.shape else SCALAR, "fd".index(m.dtype.char), m.dtype.itemsize, m.size, nodes, id(m.dtype),
        m.ndim, id(m.dtype.type), m.size // (m.shape or (1,))[-1], (m.shape or (1,))[-1], *m.shape,
    )  # fmt: skip
    return struct.pack(f"<{len(words)}q", *words)


def _find_nodes(m: Meta) -> int | None:
    """Return the address of the list that a meta's tensors are appended to; 0 if they are not recorded.

    None if they are recorded in any other way than by ``list.append``.
    """
    if not m.tape.level:
        return 0 if m.push is forget else None
    nodes = getattr(m.push, "__self__", None)
    return id(nodes) if type(nodes) is list and m.push == nodes.append and nodes is m.tape.nodes else None


def warn_of_sum(flags: int) -> None:
    """Have NumPy warn of, or raise an error for, the floating-point flags that a sum of cotangents set.

    The sums here set the same flags.
    """
    large, infinite = np.array([np.finfo(float).max]), np.array([np.inf])
    if flags & SUM_OF_SCALARS:
        large, infinite = large[0], infinite[0]
    if flags & 1:
        infinite + -infinite
    if flags & 8:
        large + large
