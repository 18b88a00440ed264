"""Tracing: the function is run once on Symbols, which record every op as a node of a graph.

A Symbol is a tensor without values, of the lowest level in the program: gradients, tangents and batches are levels
above it, so that a trace records the ops that these transforms perform, not the transforms themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any, cast

import numpy as np

from pullback.compiler.frontend.host_ops import (
    DivisorCheck,
    OnHost,
    RangeCheck,
    RerunCheck,
    make_integer_cast,
)
from pullback.compiler.frontend.indexing import (
    find_block,
    find_constant_lines,
    find_last_places,
    find_positions,
    lower_assignment,
    lower_gather,
    lower_gather_nd,
    lower_segments,
    place_elements,
    place_view,
    put_along_lines,
    put_last_places,
    scatter_rows,
    take_last_places,
    take_rows,
)
from pullback.compiler.frontend.result_inference import (
    infer_dtype,
    infer_result,
    make_example,
)
from pullback.compiler.frontend.small_matrices import SMALL_MATRICES, lower_small_matrices
from pullback.compiler.frontend.symbol import BY_KIND, GIVEN, PYTHON_NUMBERS, Symbol, note_source, separate
from pullback.compiler.ir.graph import (
    Fold,
    Graph,
    Node,
    Pieces,
    Shape,
    View,
    compute_strides,
    find_start,
    make_bytes_like,
)
from pullback.compiler.ir.kinds import (
    CAST,
    CONSTANT,
    FOLD,
    LOOP,
    MAP,
    OPAQUE,
    PART,
    PIECES,
    PRODUCT,
    RESULT,
    ROWS,
    SCAN,
    SWITCH,
    VIEW,
    WHILE,
    Kind,
)
from pullback.compiler.ir.params import NO_PARAMS, FrozenParams
from pullback.compiler.ir.structured import Loop, Switch, While
from pullback.core.axes import together
from pullback.core.convert import as_value
from pullback.core.interpreter import new_level
from pullback.core.lowering import call, fold, made_of, matrices, pieces, position, rows, scalar, scan, view, windows
from pullback.core.source import LineFinder, find_user_line
from pullback.core.tensor import BY_KERNEL, RAW, Tensor
from pullback.core.variable import Variable
from pullback.core.writes import HELD, INPUT, freeze, make_alias
from pullback.errors import SymbolValueError, VariableError
from pullback.numerics.axis_arguments import resolve_reduced_axes
from pullback.numerics.positions import pick_lines

# Functions whose results for Python numbers are Python numbers, which do not widen arrays.
OPERATORS = frozenset({
    np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.power, np.negative, np.absolute,
})  # fmt: skip


# Functions that lower gathers, scatters and the like, by the symbol of the lowering.
INDEXING = {
    "take": lower_gather,
    "scatter": lower_gather,
    "take at": lower_gather_nd,
    "put at": lower_gather_nd,
    "segments": lower_segments,
    "largest of segments": lower_segments,
    "smallest of segments": lower_segments,
    "spread": lower_segments,
    "set": lower_assignment,
}


class TransformedArgument(Exception):  # noqa: N818
    """An argument is a tensor that a transform follows: the function must run uncompiled."""


class Trace:
    """The trace of one function."""

    writes = True  # assignments to variables are traced too
    result_kind = GIVEN

    def __init__(self) -> None:
        self.level = new_level()
        self.graph = Graph()
        self.finished = False
        self.lines = LineFinder()
        self.line = ""  # the user's line of the op that is performed; empty if there is none
        self.lists: dict[int, Node] = {}  # nodes that are Python lists, and the same as float64
        self.tensors: set[int] = set()  # constants that are tensors
        self.weak_arrays: set[int] = set()  # results of Python numbers, and of integers that may be arrays
        self.given_back: set[int] = set()  # results of the kind of the program's arguments
        self.reads: dict[int, tuple[Variable, Node]] = {}
        self.assigned: dict[int, tuple[Variable, Any]] = {}
        self.written_rows: dict[int, tuple[Variable, Any, Any]] = {}  # variable, indices, rows
        self.checks: list[Any] | None = None  # whether each check fails; None where a host op has to raise
        self.checked: dict[tuple[int, Any], Any] = {}  # by node and op: positions that a check has resolved
        # what was computed before, as most ops of a loop are those of the step before:
        self.views: dict[Any, Any] = {}  # offsets and strides of views
        self.blocks: dict[Any, Any] = {}  # dtypes and shapes of concatenated arrays, and the places of their pieces
        self.maps: dict[Any, Any] = {}  # dtypes and shapes of elementwise ops
        self.numbers: dict[Any, Node] = {}  # constants of Python's floats
        self.order = self.as_symbol(np.zeros(()))
        self.latest = self.order.node  # the latest node among those whose order matters, such as random draws
        self.keeps_latest = False  # whether it is computed even if no result needs it
        self.reads_layout = False  # whether it was asked how NumPy's arrays lie in memory

    def add_argument(self, shape: Shape, dtype: Any, weak: Any, strides: tuple[int, ...] | None = None) -> Symbol:
        """Add an argument: an array, a number (``weak`` is its type), or a list (the dtype that it has as a tensor).

        strides: those of an array that is not in C order, in elements.
        """
        node = self.graph.add_input(shape, dtype)
        if not isinstance(weak, np.dtype):
            symbol = Symbol(self, node, weak)
            symbol.source = strides
            return cast("Symbol", freeze(symbol, INPUT))
        narrow = self.cast(node, weak)
        self.lists[narrow.number] = node
        return cast("Symbol", freeze(Symbol(self, narrow), INPUT))

    # ---- the methods that variables call when they are read and assigned to

    def on_read(self, v: Variable, value: Any) -> Any:
        if id(v) in self.written_rows:  # the rows are written first: a read must see them
            _, at, rows = self.written_rows.pop(id(v))
            self.assign(v, self._replace_rows(v, at, rows))
        if id(v) in self.assigned:
            return self.assigned[id(v)][1]
        if id(v) not in self.reads:
            self.reads[id(v)] = v, self.graph.add_input(v.shape, v.dtype)
        return freeze(Symbol(self, self.reads[id(v)][1]), HELD)

    def assign(self, v: Variable, value: Any) -> None:
        """Trace an assignment: later reads see the new value, and the variable holds it after the call."""
        if isinstance(value, Tensor):
            value = make_alias(value.read())
        if isinstance(value, Symbol) and value.weak:
            value = Symbol(self, self.as_node(value, v.dtype))
        new = value if isinstance(value, Tensor) else self.as_symbol(np.asarray(value, v.dtype))
        if new.shape != v.shape or new.dtype != v.dtype:
            raise VariableError(
                f"{v.name}.assign: expected {v.dtype} of shape {v.shape}, got {new.dtype} of shape {new.shape}."
            )
        self.written_rows.pop(id(v), None)
        self.assigned[id(v)] = v, new

    def assign_rows(self, v: Variable, at: Any, rows: Any) -> None:
        """Trace an assignment to rows, which are written into the variable's own array after the program has run."""
        if id(v) in self.assigned or id(v) in self.written_rows:
            self.assign(v, self._replace_rows(v, at, rows))
        else:
            self.written_rows[id(v)] = v, at, self.as_symbol(rows)

    def _replace_rows(self, v: Variable, at: Any, rows: Any) -> Any:
        """Return the value of a variable with these rows at the positions ``at``."""
        whole: Any = self.on_read(v, None)
        return whole.tensor_scatter_update(np.expand_dims(at, -1), rows)

    def finish(self) -> None:
        """Refuse ops from now on: the function has returned."""
        self.finished = True
        self.lines.forget()

    def find_line(self) -> str:
        """Return the user's line of the op that is performed."""
        return self.line or find_user_line()

    # ---- nodes

    def as_symbol(self, x: Any) -> Symbol:
        return Symbol(self, self.as_node(x))

    def make_symbol(self, node: Node) -> Symbol:
        return Symbol(self, node)

    def as_node(self, x: Any, dtype: Any = None) -> Node:
        """Return the node of an argument: a symbol's own, a constant for anything else."""
        x = x.read() if isinstance(x, Tensor) and not isinstance(x, Symbol) else x  # of integers and a Python float
        if isinstance(x, Symbol) and x.traced_by is self:
            own: Node = x.node
            if x.weak is int and dtype is not None and dtype.kind in "iu" and dtype != own.dtype:
                own = self.add_host_op(make_integer_cast(dtype), [Symbol(self, own)], {}).node
            return own if dtype is None else self.cast(own, dtype)
        if isinstance(x, Tensor):
            return self._add_tensor(x, dtype)
        if type(x) is float:
            key = x.hex(), dtype  # 0.0 and -0.0 are not the same
            return self.numbers.get(key) or self.numbers.setdefault(key, self.graph.add_constant(x, dtype))
        return self.graph.add_constant(x if isinstance(x, RAW) or type(x) in PYTHON_NUMBERS else as_value(x), dtype)

    def _add_tensor(self, x: Tensor, dtype: Any) -> Node:
        if x.level and x.shape is not None:  # a selection by a mask has no shape, and raises
            raise TransformedArgument
        node = self.graph.add_constant(x.value, dtype)
        self.tensors.add(node.number)
        return node

    def find_weak_dtype(self, x: Any, strong: list[Any]) -> Any:
        """Return the dtype that a Python number gets among arrays; None for anything else, and if it is alone."""
        kind = _get_kind(x)
        return None if isinstance(kind, np.dtype) or not strong else np.result_type(*strong, make_example(kind))

    def cast(self, x: Node, dtype: Any) -> Node:
        return x if x.dtype == dtype else self.graph.add(CAST, (x,), x.shape, dtype, None, self.find_line())

    def add_view(self, x: Node, shape: Shape, offset: int, strides: Sequence[int]) -> Node:
        return self.graph.add(VIEW, (x,), shape, x.dtype, View(offset, tuple(strides)), self.find_line())

    def reshape_node(self, x: Node, shape: Shape) -> Node:
        return x if x.shape == shape else self.add_view(x, shape, 0, compute_strides(shape))

    def get_order_symbol(self) -> Symbol:
        """Return a symbol that orders random draws: they are done in every call, one after the other."""
        return self.order

    def add_supply(self, make: Callable[[], Any], shape: Shape, dtype: Any) -> Symbol | None:
        """Return a symbol for what ``make`` returns before every run; None if it must be called during the run."""
        return None

    def stop(self, x: Symbol) -> Symbol:
        """Return the symbol itself: no transform is below it."""
        return x

    def strip(self, x: Symbol) -> Symbol:
        return x

    def add_check(self, node: Node, op: Any, wrong: Any) -> None:
        """Let ``op`` raise for the value of ``node``, after the program has run, if ``wrong`` is true anywhere."""
        if self.checks is not None:
            self.checks.append(self.perform(BY_KERNEL[np.any], [wrong], {"axis": None, "keepdims": False}))
            self.graph.checks.append((node, op))

    def join_checks(self) -> Node:
        """Return whether any check fails; what is checked twice counts once."""
        return self.as_node(reduce(np.logical_or, {x.node.number: x for x in self.checks or ()}.values()))

    # ---- ops

    def perform(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Record ``op``, and return the symbol of its result."""
        if self.finished:
            raise SymbolValueError(
                f"{op.name} ({find_user_line()}) was given a tensor that is left over from a function that was "
                "compiled. "
                "There are values only in what the function returns: return it."
            )
        if op.custom and op.is_structured:
            return op.lower(self, args)
        if op.custom:
            return tuple(self.as_symbol(z) for z in op.run_checked([self.as_symbol(a) for a in args]).values)
        try:
            result = self._perform(op, args, params)
        except OverflowError as error:
            raise op.translate_error(op, error, args, params) from None
        return note_source(result, op, args, params)

    def _perform(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        lower = op.lower
        if isinstance(lower, made_of) and not any(map(_is_rare_float, args)):
            result = lower.formula(*([args] if op.variadic else args), **params)
            return self.as_symbol(result) if isinstance(result, RAW) else separate(result)
        if op.name in SMALL_MATRICES and (result := lower_small_matrices(self, op, args, params)) is not None:
            return result
        is_square = op.kernel is np.power and type(args[1]) is int and args[1] == 2
        if is_square and _get_kind(args[0]) in (bool, np.dtype(bool)):
            return self.perform(BY_KERNEL[np.square], args[:1], {})  # as NumPy: other dtypes
        add = LOWERINGS.get(type(lower))
        return self.add_host_op(op, args, params) if add is None else add(self, op, args, params)

    def lower_call(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Add a gather or scatter, a matrix product or a cast, by the symbol of the op; a host op for any other."""
        symbol = op.lower.symbol
        if symbol in INDEXING:
            return separate(INDEXING[symbol](self, op, args, params))
        if symbol == "gemm":
            dtype = self.infer_dtype(op, args, params)
            op.acts.shape(op.name, [_get_shape(a) for a in args], params)  # which raises the error
            return self.add_product(*(self.as_node(a, dtype) for a in args))
        if symbol == "cast":
            return Symbol(self, self.cast(self.as_node(args[0]), params["dtype"]))
        return self.add_host_op(op, args, params)

    def infer_dtype(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Return the dtype of the result of an op."""
        return infer_dtype(op, tuple(map(_get_kind, args)), FrozenParams(params) if params else NO_PARAMS)

    def lower_windows(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Add an op on windows of floats, whose shape is inferred without running its kernel."""
        nodes = [self.as_node(a) for a in args]
        kinds, ranks = {n.dtype for n in nodes}, {len(n.shape) for n in nodes}
        if len(kinds) > 1 or len(ranks) > 1 or next(iter(kinds)).kind != "f":
            return self.add_host_op(op, args, params)
        shape = tuple(op.acts.shape(op.name, [n.shape for n in nodes], params))
        return Symbol(self, self.graph.add(OPAQUE, nodes, shape, nodes[0].dtype, (op, params), self.find_line()))

    def lower_matrices(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Add a function of matrices of floats, and check its result, NaN where the kernel does something else."""
        nodes = [self.as_node(a) for a in args]
        kinds = {n.dtype for n in nodes}
        flags = all(type(p) in (bool, str) for p in params.values())
        if len(kinds) > 1 or next(iter(kinds)).char not in "fd" or not all(n.size for n in nodes) or not flags:
            return self.add_host_op(op, args, params)
        if op.lower.fails and self.checks is None:
            return self.add_host_op(OnHost(op), args, params)
        shape = tuple(op.acts.shape(op.name, [n.shape for n in nodes], params))
        factors = Symbol(self, self.graph.add(OPAQUE, nodes, shape, nodes[0].dtype, (op, params), self.find_line()))
        if op.lower.fails:
            is_vector = len(nodes[-1].shape) == 1
            failed = np.any(np.isnan(factors[..., 0] if is_vector else factors[..., 0, 0]))
            self.add_check(self.as_node(failed), RerunCheck(), failed)
        return factors

    def lower_map(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Symbol:
        dtypes, shapes = tuple([_get_kind(a) for a in args]), tuple([_get_shape(a) for a in args])
        key = op, dtypes, shapes
        found = None if params else self.maps.get(key)
        if found is None:
            found = self._infer_map(op, args, dtypes, shapes, params)
            if not params and found[1].kind != "b":  # in which dtype numbers are compared depends on their values
                self.maps[key] = found
        shape, dtype, wanted, weak = found
        if wanted is None:
            return cast("Symbol", self.add_host_op(op, [self.as_symbol(a) for a in args], params))
        nodes = [self.as_node(a, w) for a, w in zip(args, wanted, strict=True)]
        result = Symbol(self, self.graph.add(MAP, nodes, shape, dtype, (op, params), self.find_line()), weak)
        if weak is int and self.checks is not None:
            self._check_integer(op, nodes, result.node)
        return result

    def _check_integer(self, op: Any, args: Sequence[Node], result: Node) -> None:
        """Let the program raise if Python's integers would give a result of more than 64 bits, or raise an error."""
        double = np.dtype(np.float64)
        if op.kernel in (np.floor_divide, np.remainder):
            is_zero: Any = Symbol(self, args[1]) == 0
            self.add_check(is_zero.node, DivisorCheck(), is_zero)
        # A result that was wrapped differs by a multiple of 2**64, that of floats by a rounding error.
        expected = self.graph.add(MAP, [self.cast(a, double) for a in args], (), double, (op, {}), self.find_line())
        wrong: Any = np.abs(Symbol(self, expected) - Symbol(self, self.cast(result, double))) > 2.0**63
        self.add_check(wrong.node, RangeCheck(op.name), wrong)

    def _infer_map(self, op: Any, args: Sequence[Any], dtypes: Any, shapes: Any, params: dict[str, Any]) -> Any:
        """Return shape and dtype of an elementwise result, those to which arguments are cast, and its Python type.

        Instead of the dtypes of the arguments None if the kernel chooses them, and instead of one that stays as it is.
        """
        dtype = infer_dtype(op, dtypes, FrozenParams(params) if params else NO_PARAMS)
        shape = op.acts.shape(op.name, shapes, params)
        if "c" in {np.dtype(d).kind for d in dtypes}:
            common = np.result_type(*map(_make_typical, args))  # the result may be its real or imaginary part
        else:
            common = dtype if dtype.kind != "b" else self.find_compared_dtype(op, args, dtypes)
        if common is None:
            return shape, dtype, None, None
        wanted = [
            common if mixes and not (isinstance(d, np.dtype) and d == common) else None
            for mixes, d in zip(op.mixing, dtypes, strict=False)
        ]
        number = op.kernel in OPERATORS and not any(isinstance(d, np.dtype) for d in dtypes)
        return shape, dtype, wanted, BY_KIND[dtype.kind] if number else None

    def find_compared_dtype(self, op: Any, args: Sequence[Any], dtypes: Any) -> Any:
        """Return the dtype in which arguments are compared; None if the kernel chooses it."""
        mixed = [(a, d) for a, d, mixes in zip(args, dtypes, op.mixing, strict=False) if mixes]
        if not mixed:
            return np.dtype(bool)
        kinds = [d for _, d in mixed if isinstance(d, np.dtype)]
        floats = [d for d in kinds if d.kind == "f"]
        if floats:
            return np.result_type(*floats, *(make_example(d) for _, d in mixed if d is float))
        found = np.result_type(*kinds, *(_find_example(a, d, kinds) for a, d in mixed if d not in kinds))
        are_whole = {d for _, d in mixed} <= {int, bool, *kinds}
        return None if are_whole and found.kind == "f" else found  # int64 with uint64: no common dtype holds both

    def lower_fold(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Symbol:
        (x,), dtype = args, self.infer_dtype(op, args, params)
        source = self.as_node(x, dtype)
        if not source.size and abs(op.lower.start) == np.inf:  # the kernel raises
            return cast("Symbol", self.add_host_op(op, [x], params))
        axes = resolve_reduced_axes(len(source.shape), params["axis"], op.name)
        left = tuple(n for i, n in enumerate(source.shape) if i not in axes)
        node = self.graph.add(FOLD, (source,), left, dtype, Fold(op, axes), self.find_line()) if axes else source
        return Symbol(self, self.reshape_node(node, op.acts.shape(op.name, [source.shape], params)))

    def lower_view(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Add a view; its kernel, run on an array with the layout of the argument, gives its offset and strides."""
        source = self.as_node(args[0])
        looks = (op, source.shape, *((source.args[0].size, source.data) if source.kind is VIEW else ()))
        key = looks, FrozenParams(params)
        found = self.views.get(key)
        if found is None:
            found = self.views[key] = self._find_view(op, source, params)
        whole, shape, where = found
        if not prod(shape):
            return Symbol(self, self.graph.add_constant(np.zeros(shape, source.dtype)))
        if where is None:
            return self.pick_elements(op, source, params)
        base = source.args[0] if source.kind is VIEW and not whole else source
        return Symbol(self, self.add_view(base, shape, *where))

    def _find_view(self, op: Any, source: Node, params: dict[str, Any]) -> tuple[bool, Shape, Any]:
        """Return whether it is a view of the node itself, its shape, and its offset and strides if it is a view."""
        whole, base = make_bytes_like(source)
        view = np.asarray(op.run_guarded(lambda: op.run(whole, *params.values()), [source], params))
        if not view.shape and not np.may_share_memory(view, whole):  # one element
            at, _ = find_positions(source.shape, lambda along: op.run(along, *params.values()))
            steps = zip(np.unravel_index(int(at), source.shape), whole.strides, strict=True)
            offset = sum(int(i) * step for i, step in steps)
            return base is source, (), (offset + (source.data.offset if base is not source else 0), ())
        if view.size and not np.may_share_memory(view, whole) and source.kind is VIEW:
            base = source  # a view of the elements in C order
            whole = np.zeros(source.shape, np.int8)
            view = np.asarray(op.run(whole, *params.values()))
        if not view.size or not np.may_share_memory(view, whole):
            return True, view.shape, None
        begin = find_start(whole, source if base is not source else None)
        return base is source, view.shape, (view.__array_interface__["data"][0] - begin, view.strides)

    def pick_elements(self, op: Any, source: Node, params: dict[str, Any]) -> Any:
        """Return picked elements of an input that are no view; the kernel, run on element numbers, says which."""
        lines = find_constant_lines(params["index"], source.shape) if "index" in params else None
        if lines is not None:
            return pick_lines(Symbol(self, source), lines)
        places = find_last_places(params["index"], source.shape) if "index" in params else None
        if places is not None and source.size:
            return take_last_places(self, source, places)
        at, kept = find_positions(source.shape, lambda along: op.run(along, *params.values()))
        return take_rows(self, self.make_symbol(source), at, kept)

    def lower_pieces(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Add an array that is concatenated from its arguments, if their places are blocks; else a host op."""
        key = op, tuple([_get_kind(a) for a in args]), tuple([_get_shape(a) for a in args]), FrozenParams(params)
        known = self.blocks.get(key)
        if known is None:
            known = self.blocks[key] = self._find_blocks(*key)
        dtype, shape, found = known
        nodes = [self.as_node(a, dtype) for a in args]
        if found == [None] and op.lower.fill == 0:
            return self.place_strided(op, nodes[0], params, shape)
        if any(block is None for block in found) or not nodes:
            return self.add_host_op(op, args, params)
        kept = [
            (start, self.reshape_node(self.broadcast_node(n, thin), block))
            for (start, block, thin), n in zip(found, nodes, strict=True)
            if prod(block)
        ]
        fill = params[op.lower.fill] if isinstance(op.lower.fill, str) else op.lower.fill
        data = Pieces(tuple(start for start, _ in kept), fill)
        return Symbol(self, self.graph.add(PIECES, [n for _, n in kept], shape, dtype, data, self.find_line()))

    def _find_blocks(self, op: Any, dtypes: Any, shapes: Any, params: FrozenParams) -> tuple[Any, Shape, list[Any]]:
        """Return dtype and shape of a concatenated array, and the place of each argument; None if it is no block."""
        shape = tuple(op.acts.shape(op.name, shapes, params))
        return infer_dtype(op, dtypes, params), shape, [find_block(i, shape) for i in op.lower.places(shapes, **params)]

    def lower_scan(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Add a scan or a search along an axis; a host op for a search in complex or empty arrays."""
        dtype = self.infer_dtype(op, args, params)
        if isinstance(op.lower, position) and any(np.dtype(_get_kind(a)).kind == "c" for a in args):
            return self.add_host_op(op, args, params)
        nodes = [self.as_node(a, dtype if isinstance(op.lower, scan) else None) for a in args]
        shape = tuple(op.acts.shape(op.name, [n.shape for n in nodes], params))
        if any(not n.size for n in nodes) or any(n.shape != nodes[0].shape for n in nodes):
            return self.add_host_op(op, args, params)
        return Symbol(self, self.graph.add(SCAN, nodes, shape, dtype, (op, params), self.find_line()))

    def lower_rows(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Add a function of the rows of arrays of one dtype; a host op where there is no machine code for it."""
        dtype = np.result_type(*map(_make_typical, args))
        shapes = [_get_shape(a) for a in args]
        shape = tuple(op.acts.shape(op.name, shapes, params))
        has_elements = all(map(prod, (*shapes, shape)))
        known = dtype.kind in "biuf" and has_elements and not any(map(_is_rare_float, args))
        if not known or not op.lower.fits(shapes, **params):
            return self.add_host_op(op, args, params)
        nodes = [self.as_node(a, dtype) for a in args]
        return Symbol(self, self.graph.add(ROWS, nodes, shape, op.lower.dtype, (op, params), self.find_line()))

    def place_strided(self, op: Any, x: Node, params: dict[str, Any], shape: Shape) -> Any:
        """Return zeros with one piece whose elements are not contiguous."""
        (index,) = op.lower.places([x.shape], **params)
        result = place_view(self, x, shape, index) if x.size else None
        if result is not None:
            return result
        parts = index if type(index) is tuple else (index,)
        if not x.size or x.dtype == bool:
            return self.add_host_op(op, [Symbol(self, x)], params)
        if any(isinstance(i, np.ndarray) and i.dtype == bool for i in parts):
            return place_elements(self, Symbol(self, x), np.zeros((), x.dtype), shape, index)
        lines = find_constant_lines(index, shape)
        if lines is not None:
            return put_along_lines(self, Symbol(self, x), shape, lines)
        places = find_last_places(index, shape)
        if places is not None and len({*places}) == len(places):
            return put_last_places(self, x, places, shape)
        at, kept = find_positions(shape, lambda along: along[index])
        return scatter_rows(self, Symbol(self, x), at, shape, kept)

    def add_product(self, a: Node, b: Node) -> Symbol:
        row, column = len(a.shape) == 1, len(b.shape) == 1
        if row:
            a = self.reshape_node(a, (1, *a.shape))
        if column:
            b = self.reshape_node(b, (*b.shape, 1))
        loop = together(a.shape[:-2], b.shape[:-2])
        a, b = self.broadcast_node(a, (*loop, *a.shape[-2:])), self.broadcast_node(b, (*loop, *b.shape[-2:]))
        shape = (*loop, a.shape[-2], b.shape[-1])
        z = self.graph.add(PRODUCT, (a, b), shape, a.dtype, None, self.find_line())
        kept = shape[:-2] + (() if row else shape[-2:-1]) + (() if column else shape[-1:])
        return Symbol(self, self.reshape_node(z, kept))

    def broadcast_node(self, x: Node, shape: Shape) -> Node:
        """Broadcast to ``shape``."""
        if x.shape == shape:
            return x
        whole, base = make_bytes_like(x)
        offset = x.data.offset if base is not x else 0
        return self.add_view(base, shape, offset, np.broadcast_to(whole, shape).strides)

    def trace_body(self, body: Any, checked: bool = False) -> Graph:
        """Return the graph of the body of a loop or a branch.

        If positions are ``checked`` in it, its last outputs are whether any is out of range, and the positions.
        """
        inner = Trace()
        inner.checks = [] if checked and self.checks is not None else None
        inputs = [Symbol(inner, inner.graph.add_input(like.shape, like.dtype), like.weak) for like in body.input_likes]
        inner.graph.outputs = [inner.as_node(z) for z in body(inputs)]
        if inner.checks:
            inner.graph.outputs += [inner.join_checks(), *(n for n, _ in inner.graph.checks)]
        inner.finish()
        return inner.graph

    def add_structure(self, kind: Kind, data: Any, args: Sequence[Any]) -> tuple[Symbol, ...]:
        """Add a loop or branches, and return the symbols of the results."""
        nodes = [self.as_node(a, dtype) for a, (_, dtype) in zip(args, data.operand_likes, strict=True)]
        whole = self.graph.add(kind, nodes, (), np.dtype(bool), data, self.find_line())
        likes = enumerate(data.result_likes)
        return tuple(Symbol(self, self.graph.add(RESULT, (whole,), shape, dtype, i)) for i, (shape, dtype) in likes)

    def add_loop(self, body: Any, constants: int, carry: int, length: int, reverse: bool, args: Sequence[Any]) -> Any:
        """Add a loop with a known number of steps."""
        graph = self.trace_body(body, checked=True)
        outputs = self.add_structure(LOOP, Loop(graph, constants, carry, length, reverse), args)
        results, checks = outputs[: len(body.outputs)], outputs[len(body.outputs) :]
        if checks and self.checks is not None:
            self.checks.append(np.any(checks[0]))
            self.graph.checks += [(z.node, op) for z, (_, op) in zip(checks[1:], graph.checks, strict=True)]
        return results

    def add_while(self, condition: Any, body: Any, constants: int, args: Sequence[Any]) -> Any:
        """Add a loop that ends when its condition does not hold."""
        return self.add_structure(WHILE, While(self.trace_body(condition), self.trace_body(body), constants), args)

    def add_switch(self, branches: Sequence[Any], args: Sequence[Any]) -> Any:
        """Add branches; the first operand selects one of them."""
        return self.add_structure(SWITCH, Switch(tuple(map(self.trace_body, branches))), args)

    def add_host_op(self, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Return the symbol of an op that NumPy runs; its shape and dtype are found by running it once, now."""
        strong = [d for d in map(_get_kind, args) if isinstance(d, np.dtype)]
        nodes = [self.latest if a is self.order else self.as_node(a, self.find_weak_dtype(a, strong)) for a in args]
        likes = infer_result(
            op,
            tuple((n.shape, n.dtype) for n in nodes),
            [n.data if n.kind is CONSTANT else None for n in nodes],
            params,
        )
        if isinstance(likes, list):
            whole = self.graph.add(OPAQUE, nodes, (), np.dtype(bool), (op, params), self.find_line())
            return tuple(
                Symbol(self, self.graph.add(PART, (whole,), shape, dtype, i)) for i, (shape, dtype) in enumerate(likes)
            )
        shape, dtype = likes
        node = self.graph.add(OPAQUE, nodes, shape, dtype, (op, params), self.find_line())
        if any(a is self.order for a in args):
            self.latest = node
        return Symbol(self, node)


# How the ops with each kind of lowering are added to a trace; those of any other kind are host ops.
LOWERINGS: dict[type, Callable[[Trace, Any, Sequence[Any], dict[str, Any]], Any]] = {
    scalar: Trace.lower_map,
    fold: Trace.lower_fold,
    view: Trace.lower_view,
    pieces: Trace.lower_pieces,
    scan: Trace.lower_scan,
    position: Trace.lower_scan,
    rows: Trace.lower_rows,
    windows: Trace.lower_windows,
    matrices: Trace.lower_matrices,
    call: Trace.lower_call,
}


def _get_kind(a: Any) -> Any:
    """Return the dtype of an argument; for a Python number its type."""
    if isinstance(a, Symbol):
        return a.weak or a.node.dtype
    return type(a) if type(a) in PYTHON_NUMBERS else a.dtype


def _make_typical(a: Any) -> Any:
    """Return the dtype of an argument, or an example of a Python number, which does not widen other dtypes."""
    kind = _get_kind(a)
    return kind if isinstance(kind, np.dtype) else make_example(kind)


def _is_rare_float(a: Any) -> bool:
    """Return whether a float dtype has no machine code, such as float16, for which NumPy computes with wider floats."""
    dtype = getattr(a, "dtype", None)
    return dtype is not None and dtype.kind == "f" and dtype.itemsize not in (4, 8)


def _get_shape(a: Any) -> Shape:
    if isinstance(a, Symbol):
        shape: Shape = a.node.shape
        return shape
    return () if type(a) in PYTHON_NUMBERS else np.shape(a)


def _find_example(a: Any, kind: Any, kinds: list[Any]) -> Any:
    """Return an example or dtype for a Python number that is compared, whose value may not fit ``kinds``."""
    return np.int64 if kind is int and _may_not_fit(a, kinds) else make_example(kind)


def _may_not_fit(a: Any, kinds: list[Any]) -> bool:
    """Return whether a Python integer may be out of the range of the integer dtypes ``kinds``."""
    if isinstance(a, Symbol):
        return True
    held = [np.iinfo(d) for d in kinds if d.kind in "iu"]
    return any(not i.min <= a <= i.max for i in held)
