"""ONNX as the library that runs a graph: its functions write the nodes of an ONNX graph.

An array of this library is a value of the ONNX graph: a name, a shape and a dtype.  The only module that imports onnx.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from pullback.compiler.backends.library import Ints, Library
from pullback.compiler.backends.nodes import GraphRunner
from pullback.compiler.ir.graph import Graph, Node
from pullback.compiler.ir.kinds import PIECES
from pullback.compiler.ir.structured import Loop, RunBody, Structure
from pullback.errors import CompileError
from pullback.names.packages import import_package
from pullback.numerics.dtypes import make_dtype
from pullback.numerics.windows import Windows

OPSET = 18
IR_VERSION = 9  # of the file: the one of the first runtimes with this opset
# Functions of NumPy's names that are one node.
NODES = {
    "abs": "Abs", "absolute": "Abs", "negative": "Neg", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin",
    "cos": "Cos", "tan": "Tan", "arcsin": "Asin", "arccos": "Acos", "arctan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
    "tanh": "Tanh", "arcsinh": "Asinh", "arccosh": "Acosh", "arctanh": "Atanh", "floor": "Floor", "ceil": "Ceil",
    "rint": "Round", "sign": "Sign", "reciprocal": "Reciprocal", "expit": "Sigmoid", "erf": "Erf", "maximum": "Max",
    "minimum": "Min", "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "power": "Pow",
    "isnan": "IsNaN", "isinf": "IsInf", "greater": "Greater", "greater_equal": "GreaterOrEqual", "less": "Less",
    "less_equal": "LessOrEqual", "equal": "Equal", "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor",
    "logical_not": "Not",
}  # fmt: skip
TO_BOOL = {
    "IsNaN", "IsInf", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "And", "Or", "Xor", "Not",
}  # fmt: skip
REDUCTIONS = {"sum": "ReduceSum", "prod": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin"}
SMALL_X = 0.5  # below it, log(1 + x) loses digits


Operand: TypeAlias = "OnnxValue | float"


class OnnxValue:
    """A value of an ONNX graph; operators write nodes."""

    def __init__(self, lib: Onnx, name: str, shape: Sequence[int], dtype: DTypeLike, number: Any = None) -> None:
        self.lib, self.name, self.shape, self.dtype = lib, name, tuple(shape), make_dtype(dtype)
        self.number = number  # if all elements are this one: such a value is written when it is used
        self.source: OnnxValue | None = None  # what it is a reshape of

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __getitem__(self, index: Any) -> Any:
        return self.lib.slice(self, index)

    def __add__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("Add", self, y)

    def __radd__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("Add", y, self)

    def __sub__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("Sub", self, y)

    def __rsub__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("Sub", y, self)

    def __mul__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("Mul", self, y)

    def __rmul__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("Mul", y, self)

    def __truediv__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("Div", self, y)

    def __rtruediv__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("Div", y, self)

    def __pow__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("Pow", self, y)

    def __neg__(self) -> OnnxValue:
        return self.lib.apply("Neg", self)

    def __gt__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("Greater", self, y)

    def __ge__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("GreaterOrEqual", self, y)

    def __lt__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("Less", self, y)

    def __le__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("LessOrEqual", self, y)

    def __eq__(self, y: Operand) -> OnnxValue:  # type: ignore[override]
        return self.lib.apply("Equal", self, y)

    def __ne__(self, y: Operand) -> OnnxValue:  # type: ignore[override]
        return self.lib.apply("Not", self.lib.apply("Equal", self, y))

    __hash__ = object.__hash__

    def __and__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("And" if self.dtype.kind == "b" else "BitwiseAnd", self, y)

    def __or__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("Or" if self.dtype.kind == "b" else "BitwiseOr", self, y)

    def __xor__(self, y: Operand) -> OnnxValue:
        return self.lib.apply("Xor" if self.dtype.kind == "b" else "BitwiseXor", self, y)

    def __invert__(self) -> OnnxValue:
        return self.lib.apply("Not" if self.dtype.kind == "b" else "BitwiseNot", self)


class Onnx(Library):
    """Writes the nodes of one ONNX graph."""

    name = "onnx"

    def __init__(self) -> None:
        super().__init__(None)
        self.onnx = import_package("onnx", "ONNX files need onnx", "pullback[onnx]")
        self.xp = self
        self.written: list[Any] = []  # nodes
        self.stored: dict[Any, tuple[str, Any]] = {}  # constants, by their bytes
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        if name not in NODES:
            raise AttributeError(name)
        return lambda *xs: self.apply(NODES[name], *xs)

    # ---- nodes

    def write(
        self, op: str, inputs: Sequence[OnnxValue], shape: Sequence[int], dtype: DTypeLike, **attributes: Any
    ) -> OnnxValue:
        """Write a node with one output; return that."""
        result = self.make_value(shape, dtype)
        names = [self.materialize(x).name for x in inputs]
        self.written.append(self.onnx.helper.make_node(op, names, [result.name], **attributes))
        return result

    def make_value(self, shape: Sequence[int], dtype: DTypeLike) -> OnnxValue:
        """Return a value with a new name."""
        self.count += 1
        return OnnxValue(self, f"v{self.count}", shape, dtype)

    def apply(self, op: str, *xs: Operand, **attributes: Any) -> OnnxValue:
        """Write an elementwise node of values and numbers, which are cast to one dtype."""
        values = [x for x in xs if isinstance(x, OnnxValue)]
        floats = [x for x in xs if isinstance(x, float | np.floating)]
        dtype = np.result_type(*{x.dtype for x in values})
        dtype = np.dtype(np.float64) if dtype.kind in "iu" and floats else dtype
        operands = [self.astype(x, dtype) if isinstance(x, OnnxValue) else self.full((), x, dtype) for x in xs]
        shape = np.broadcast_shapes(*(x.shape for x in operands))
        return self.write(op, operands, shape, np.bool_ if op in TO_BOOL else dtype, **attributes)

    def enter(self, x: Any) -> OnnxValue:
        """Return an array as a constant of the graph."""
        x = np.ascontiguousarray(x).reshape(np.shape(x))
        key = (x.dtype.str, x.shape, x.tobytes())
        if key not in self.stored:
            self.stored[key] = f"c{len(self.stored)}", x
        return OnnxValue(self, self.stored[key][0], x.shape, x.dtype)

    def enter_named(self, x: Any, name: str) -> OnnxValue:
        """Return an array as a constant of this name."""
        self.stored[name] = name, np.ascontiguousarray(x).reshape(np.shape(x))
        return OnnxValue(self, name, np.shape(x), x.dtype)

    def materialize(self, x: OnnxValue) -> OnnxValue:
        """Return a value that is in the graph: one of equal elements is written now."""
        if x.number is None:
            return x
        one = self.enter(np.full((), x.number, x.dtype))
        return one if not x.shape else self.expand(one, x.shape)

    def expand(self, x: OnnxValue, shape: Ints) -> OnnxValue:
        return self.write("Expand", [x, self.enter(np.array(shape, np.int64))], shape, x.dtype)

    # ---- arrays

    def is_own(self, x: Any) -> bool:
        return isinstance(x, OnnxValue)

    def get_dtype(self, x: OnnxValue) -> np.dtype[Any]:
        dtype: np.dtype[Any] = x.dtype
        return dtype

    def astype(self, x: OnnxValue, dtype: DTypeLike) -> Any:
        if x.dtype == dtype:
            return x
        to = self.onnx.helper.np_dtype_to_tensor_dtype(make_dtype(dtype))
        return self.write("Cast", [x], x.shape, dtype, to=to)

    def full(self, shape: Ints, fill: Any, dtype: DTypeLike) -> OnnxValue:
        return OnnxValue(self, "", shape, dtype, np.asarray(fill, dtype)[()])

    def select(self, condition: Any, x: Any, y: Any) -> OnnxValue:
        dtype = np.result_type(*{v.dtype for v in (x, y) if isinstance(v, OnnxValue)} or {np.dtype(np.float64)})
        x, y = (self.astype(v, dtype) if isinstance(v, OnnxValue) else self.full((), v, dtype) for v in (x, y))
        shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
        return self.write("Where", [self.astype(condition, np.bool_), x, y], shape, dtype)

    where = select

    def reduce(self, name: str, x: OnnxValue, axes: Ints) -> Any:
        if name in ("all", "any") or x.dtype.kind == "b":
            small = self.reduce({"all": "min", "any": "max"}.get(name, name), self.astype(x, np.int32), axes)
            return self.astype(small, np.bool_)
        shape = [n for i, n in enumerate(x.shape) if i not in axes]
        return self.write(REDUCTIONS[name], [x, self.enter(np.array(axes, np.int64))], shape, x.dtype, keepdims=0)

    def scan(self, name: str, x: OnnxValue, axis: int) -> OnnxValue:
        if name != "cumsum":
            raise AttributeError(name)
        return self.write("CumSum", [x, self.enter(np.array(axis, np.int64))], x.shape, x.dtype)

    def matmul(self, x: OnnxValue, y: OnnxValue) -> OnnxValue:
        shape = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        return self.write("MatMul", [x, y], (*shape, x.shape[-2], y.shape[-1]), x.dtype)

    def reshape(self, x: OnnxValue, shape: Any) -> Any:
        size = math.prod(x.shape)
        known = -math.prod(shape)
        shape = tuple(size // known if n == -1 else n for n in shape)
        x = x.source or x
        if x.shape == shape:
            return x
        result = self.write("Reshape", [x, self.enter(np.array(shape, np.int64))], shape, x.dtype, allowzero=1)
        result.source = x
        return result

    def transpose(self, x: OnnxValue, order: Ints) -> Any:
        if tuple(order) == tuple(range(x.ndim)):
            return x
        return self.write("Transpose", [x], [x.shape[i] for i in order], x.dtype, perm=list(order))

    def swapaxes(self, x: OnnxValue, i: int, j: int) -> Any:
        order = list(range(x.ndim))
        order[i], order[j] = order[j], order[i]
        return self.transpose(x, tuple(order))

    def moveaxis(self, x: OnnxValue, i: int, j: int) -> Any:
        order = [k for k in range(x.ndim) if k != i % x.ndim]
        order.insert(j % x.ndim, i % x.ndim)
        return self.transpose(x, tuple(order))

    def broadcast_to(self, x: OnnxValue, shape: Ints) -> Any:
        return x if x.shape == tuple(shape) else self.expand(x, tuple(shape))

    def concatenate(self, xs: Sequence[Any], axis: int = 0) -> OnnxValue:
        shape = list(xs[0].shape)
        shape[axis] = sum(x.shape[axis] for x in xs)
        return self.write("Concat", xs, shape, xs[0].dtype, axis=axis)

    def stack(self, xs: Sequence[Any]) -> OnnxValue:
        return self.concatenate([self.reshape(x, (1, *x.shape)) for x in xs], 0)

    def slice(self, x: OnnxValue, index: Any) -> Any:
        """Return a part of a value: slices, whole numbers, None and an ellipsis."""
        bounds, kept = _read_index(index if isinstance(index, tuple) else (index,), x.shape)
        left = x.shape[len(bounds) :]
        shape = (*(len(range(*one)) for one in bounds), *left)
        result = x
        if shape != x.shape or any(step != 1 for *_, step in bounds):
            first = [begin for begin, *_ in bounds]
            last = [end if end >= 0 else -(n + 1) for (_, end, _), n in zip(bounds, x.shape, strict=False)]
            steps = [step for *_, step in bounds]
            parts = [self.enter(np.array(one, np.int64)) for one in (first, last, range(len(bounds)), steps)]
            result = self.write("Slice", [x, *parts], shape, x.dtype)
        return self.reshape(result, (*kept, *left))

    def flip(self, x: OnnxValue, axes: Ints) -> Any:
        return self.slice(x, tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim)))

    def take(self, x: OnnxValue, rows: Any) -> OnnxValue:
        return self.write("Gather", [x, self.astype(rows, np.int64)], (*rows.shape, *x.shape[1:]), x.dtype, axis=0)

    def put(self, x: OnnxValue, index: Any, y: OnnxValue) -> OnnxValue:
        """Return ``x`` with ``y`` at an index: padded, where ``x`` is one number; by places in general."""
        if isinstance(index[0], OnnxValue):
            places = self.reshape(self.astype(index[0], np.int64), (*index[0].shape, 1))
            return self.write("ScatterND", [x, places, y], x.shape, x.dtype)
        bounds = [i.indices(n) for i, n in zip((*index, *(slice(None),) * x.ndim), x.shape, strict=False)]
        if any(step != 1 for *_, step in bounds):
            grid = np.stack(np.meshgrid(*(range(*one) for one in bounds), indexing="ij"), -1).astype(np.int64)
            return self.write("ScatterND", [x, self.enter(grid), y], x.shape, x.dtype)
        padded = self.pad(
            y, [(begin, n - end) for (begin, end, _), n in zip(bounds, x.shape, strict=True)], x.number or 0
        )
        if x.number is not None:
            return padded
        inside = np.ones((), bool)
        for axis, ((begin, end, _), n) in enumerate(zip(bounds, x.shape, strict=True)):
            if end - begin < n:
                positions = np.arange(n)
                inside = inside & ((positions >= begin) & (positions < end)).reshape(
                    [-1 if i == axis else 1 for i in range(x.ndim)]
                )
        return self.select(self.enter(inside), padded, x)

    def pad(self, x: OnnxValue, widths: Sequence[tuple[int, int]], fill: Any = 0) -> OnnxValue:
        """Return a value padded with a number; negative widths cut."""
        if not any(n for pair in widths for n in pair):
            return x
        shape = [n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)]
        pads = self.enter(np.array([a for a, _ in widths] + [b for _, b in widths], np.int64))
        return self.write("Pad", [x, pads, self.enter(np.asarray(fill, x.dtype))], shape, x.dtype, mode="constant")

    def add_at(self, x: OnnxValue, index: Any, y: OnnxValue) -> OnnxValue:
        places = self.reshape(self.astype(index[0], np.int64), (*index[0].shape, 1))
        return self.write("ScatterND", [x, places, y], x.shape, x.dtype, reduction="add")

    def argmax(self, x: OnnxValue, axis: int, op: str = "ArgMax") -> OnnxValue:
        shape = [n for i, n in enumerate(x.shape) if i != axis % x.ndim]
        ordered = self.astype(x, np.int32) if x.dtype.kind == "b" else x
        return self.write(op, [ordered], shape, np.int64, axis=axis, keepdims=0)

    def argmin(self, x: OnnxValue, axis: int) -> OnnxValue:
        return self.argmax(x, axis, "ArgMin")

    def sort_positions(self, x: OnnxValue, axis: int, descending: bool) -> OnnxValue:
        length = self.enter(np.array([x.shape[axis]], np.int64))
        values, places = self.make_value(x.shape, x.dtype), self.make_value(x.shape, np.int64)
        names = [self.materialize(x).name, length.name]
        node = self.onnx.helper.make_node(
            "TopK", names, [values.name, places.name], axis=axis, largest=int(descending), sorted=1
        )
        self.written.append(node)
        return places

    # ---- functions of scalars

    def expm1(self, x: OnnxValue) -> OnnxValue:
        return self.apply("Tanh", x * 0.5) * (self.apply("Exp", x) + 1.0)  # exp(x) - 1 loses digits near 0

    def log1p(self, x: OnnxValue) -> OnnxValue:
        near = self.apply("Atanh", x / (x + 2.0)) * 2.0
        return self.select(self.apply("Abs", x) < SMALL_X, near, self.apply("Log", x + 1.0))

    def logaddexp(self, x: OnnxValue, y: Operand) -> OnnxValue:
        low, high = self.apply("Min", x, y), self.apply("Max", x, y)
        apart = self.select(low == high, 0.0, low - high)  # equal infinities have no difference
        return high + self.log1p(self.apply("Exp", apart))

    def log2(self, x: OnnxValue) -> OnnxValue:
        return self.apply("Log", x) * (1 / math.log(2))

    def log10(self, x: OnnxValue) -> OnnxValue:
        return self.apply("Log", x) * (1 / math.log(10))

    def exp2(self, x: OnnxValue) -> OnnxValue:
        return self.apply("Exp", x * math.log(2))

    def cbrt(self, x: OnnxValue) -> OnnxValue:
        root = self.apply("Sign", x) * self.apply("Abs", x) ** (1 / 3)
        better = root - (root - x / (root * root)) / 3.0  # one step of Newton's: the power is off by a few ulp
        return self.select(self.isfinite(better), better, root)

    def hypot(self, x: OnnxValue, y: OnnxValue) -> OnnxValue:
        x, y = self.apply("Abs", x), self.apply("Abs", y)
        low, high = self.apply("Min", x, y), self.apply("Max", x, y)
        ratio = low / self.select(high > 0.0, high, 1.0)  # squares of the numbers may overflow
        is_far = self.apply("Or", self.apply("IsInf", x), self.apply("IsInf", y))
        return self.select(is_far, math.inf, high * self.apply("Sqrt", ratio * ratio + 1.0))

    def not_equal(self, x: OnnxValue, y: Operand) -> OnnxValue:
        return self.apply("Not", self.apply("Equal", x, y))

    def isfinite(self, x: OnnxValue) -> OnnxValue:
        return self.apply("Not", self.apply("Or", self.apply("IsNaN", x), self.apply("IsInf", x)))

    def invert(self, x: OnnxValue) -> Any:
        return ~x

    def bitwise_and(self, x: OnnxValue, y: Operand) -> Any:
        return x & y

    def bitwise_or(self, x: OnnxValue, y: Operand) -> Any:
        return x | y

    def bitwise_xor(self, x: OnnxValue, y: Operand) -> Any:
        return x ^ y

    def floor_divide(self, x: OnnxValue, y: Operand) -> OnnxValue:
        quotient = self.apply("Div", x, y)
        if quotient.dtype.kind == "f":
            return self.apply("Floor", quotient)
        rest = self.apply("Sub", x, quotient * y)  # ONNX rounds quotients of whole numbers towards zero
        sign = self.apply("Less", self.apply("Mul", rest, y), 0)
        return self.select(sign, quotient - 1, quotient)

    def fmod(self, x: OnnxValue, y: OnnxValue) -> OnnxValue:
        return self.apply("Mod", x, y, fmod=1)

    def remainder(self, x: OnnxValue, y: OnnxValue) -> OnnxValue:
        rest = self.fmod(x, y)  # with the sign of x
        return self.select((rest != 0) & ((rest < 0) ^ (y < 0)), rest + y, rest)

    # ---- windows, joins and loops

    def correlate(self, x: OnnxValue, filter: OnnxValue, windows: Windows, group: int = 1) -> Any:
        """Return the convolution of images (batch, *space, channels) with a filter (*size, channels, filters)."""
        axes = len(windows.size)
        framed = self.moveaxis(self._frame(x, windows), -1, 1)
        kernel = self.transpose(filter, (axes + 1, axes, *range(axes)))
        shape = (x.shape[0], kernel.shape[0], *windows.out)
        attributes = {"strides": list(windows.strides), "dilations": list(windows.dilations), "group": group}
        return self.moveaxis(self.write("Conv", [framed, kernel], shape, x.dtype, **attributes), 1, -1)

    def _frame(self, x: OnnxValue, windows: Windows) -> OnnxValue:
        widths = [
            (before, reach - before - n)
            for before, reach, n in zip(windows.before, windows.reach, x.shape[1:-1], strict=True)
        ]
        return self.pad(x, [(0, 0), *widths, (0, 0)])

    def convolve_apart(self, node: Node, x: OnnxValue, filter: OnnxValue, windows: Windows) -> Any:
        """Return the depthwise convolution: each channel has filters of its own."""
        *size, channels, depth = filter.shape
        flat = self.reshape(filter, (*size, 1, channels * depth))
        return self.correlate(x, flat, windows, channels)

    def transpose_convolution(
        self, node: Node, y: OnnxValue, filter: OnnxValue, windows: Windows, shape: Ints
    ) -> OnnxValue:
        """Return the adjoint of a convolution: each element adds a filter to the result."""
        axes = len(windows.size)
        kernel = self.transpose(filter, (axes + 1, axes, *range(axes)))
        out = (y.shape[0], shape[-1], *windows.reach)
        attributes = {"strides": list(windows.strides), "dilations": list(windows.dilations)}
        result = self.moveaxis(
            self.write("ConvTranspose", [self.moveaxis(y, -1, 1), kernel], out, y.dtype, **attributes), 1, -1
        )
        widths = [
            (-before, n + before - reach)
            for before, reach, n in zip(windows.before, windows.reach, shape[1:-1], strict=True)
        ]
        return self.pad(result, [(0, 0), *widths, (0, 0)])

    def find_own(self, node: Node) -> Callable[..., Any] | None:
        if node.kind is PIECES and (axis := _find_joined_axis(node)) is not None:
            return lambda *xs: self.concatenate(xs, axis)
        op = node.kind.get_op(node)
        own = WINDOWS.get(op.name) if op is not None and node.kind.has_params else None
        return None if own is None else lambda *xs: own(self, node, *xs, **node.data[1])

    def run_structure(self, data: Structure, run: RunBody, values: Sequence[Any], runs_all: bool) -> list[Any]:
        """Write a loop of a known number of steps as a Scan; its body takes constants from outside."""
        if not isinstance(data, Loop):
            raise CompileError(
                "save_onnx: while loops and branches that depend on values cannot be written to an ONNX file."
            )
        constants, rest = values[: data.constants], values[data.constants :]
        xs = values[data.xs :]
        outside, self.written = self.written, []
        inner = [self.make_value(x.shape, x.dtype) for x in rest[: data.carry]]
        inner += [self.make_value(x.shape[1:], x.dtype) for x in xs]
        results = [self.copy(self.materialize(x)) for x in run(data.body, [*constants, *inner])]
        body = self.make_graph("body", inner, results)
        self.written = outside
        ends = [self.make_value(x.shape, x.dtype) for x in results[: data.carry]]
        ends += [self.make_value((data.length, *x.shape), x.dtype) for x in results[data.carry :]]
        directions = {"scan_input_directions": [int(data.reverse)] * len(xs)}
        if len(results) > data.carry:
            directions["scan_output_directions"] = [int(data.reverse)] * (len(results) - data.carry)
        self.written.append(self.onnx.helper.make_node(
            "Scan", [self.materialize(x).name for x in rest], [x.name for x in ends], body=body,
            num_scan_inputs=len(xs), **directions,
        ))  # fmt: skip
        return ends

    def copy(self, x: OnnxValue) -> OnnxValue:
        """Return a value of its own, as results of a graph must be."""
        return self.write("Identity", [x], x.shape, x.dtype)

    def make_graph(self, name: str, inputs: Sequence[OnnxValue], outputs: Sequence[OnnxValue], stored: Any = ()) -> Any:
        """Return the nodes written so far as a graph."""
        helper = self.onnx.helper

        def describe(x: OnnxValue) -> Any:
            return helper.make_tensor_value_info(x.name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)

        return helper.make_graph(self.written, name, [*map(describe, inputs)], [*map(describe, outputs)], list(stored))


# Ops of windows that are one node of ONNX.
WINDOWS: dict[str, Callable[..., Any]] = {
    "depthwise": Onnx.convolve_apart,
    "convolve_input": Onnx.transpose_convolution,
}


def _find_joined_axis(node: Node) -> int | None:
    """Return the axis along which arrays are joined side by side, without gaps; None if they are not."""
    starts, shapes = node.data.starts, [a.shape for a in node.args]
    axes = {i for one in starts for i, start in enumerate(one) if start}
    if len(axes) != 1:
        return None
    (axis,) = axes
    ends = 0
    for start, shape in zip(starts, shapes, strict=True):
        whole = all(n == m for i, (n, m) in enumerate(zip(shape, node.shape, strict=True)) if i != axis)
        if start[axis] != ends or not whole:
            return None
        ends += shape[axis]
    return axis if ends == node.shape[axis] else None


def encode_graph(graph: Graph, constants: Sequence[tuple[str, Any]], name: str, producer: str) -> bytes:
    """Return an ONNX file of a graph, whose last inputs are constants with these names and values."""
    lib = Onnx()
    runner = GraphRunner(lib, graph)
    if runner.host_ops:
        raise CompileError(f"save_onnx: {', '.join(dict.fromkeys(runner.host_ops))} cannot be written to an ONNX file.")
    count = len(graph.inputs) - len(constants)
    inputs = [OnnxValue(lib, f"input_{i}", n.shape, n.dtype) for i, n in enumerate(graph.inputs[:count])]
    weights = [lib.enter_named(x, called) for called, x in constants]
    try:
        results = runner([*inputs, *weights])
    except AttributeError as error:
        raise CompileError(f"save_onnx: {error} cannot be written to an ONNX file.") from error
    outputs = []
    for i, x in enumerate(results):
        y = OnnxValue(lib, f"output_{i}", x.shape, x.dtype)
        lib.written.append(lib.onnx.helper.make_node("Identity", [lib.materialize(x).name], [y.name]))
        outputs.append(y)
    used = {one for node in lib.written for one in _list_inputs(node)}
    stored = [lib.onnx.numpy_helper.from_array(x, called) for called, x in lib.stored.values() if called in used]
    described = lib.make_graph(name, inputs, outputs, stored)
    opset = lib.onnx.helper.make_opsetid("", OPSET)
    model = lib.onnx.helper.make_model(described, opset_imports=[opset], producer_name=producer, ir_version=IR_VERSION)
    lib.onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data


def _list_inputs(node: Any) -> list[str]:
    """Return the names that a node takes, those in its bodies too."""
    inner = [one for a in node.attribute if a.HasField("g") for n in a.g.node for one in _list_inputs(n)]
    return [*node.input, *inner]


def _read_index(index: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Return start, stop and step for each indexed axis, and the lengths of the axes that the index makes of them."""
    if (at := next((k for k, i in enumerate(index) if i is Ellipsis), None)) is not None:
        rest = len(shape) - sum(i is not None and i is not Ellipsis for i in index)
        index = (*index[:at], *(slice(None),) * rest, *index[at + 1 :])
    bounds: list[tuple[int, int, int]] = []
    lengths: list[int] = []
    for i in index:
        if i is None:
            lengths.append(1)
            continue
        place = slice(i, i + 1 or None) if isinstance(i, int) else i
        bounds.append(place.indices(shape[len(bounds)]))
        lengths += [] if isinstance(i, int) else [len(range(*bounds[-1]))]
    return bounds, lengths
