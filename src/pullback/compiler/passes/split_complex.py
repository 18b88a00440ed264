"""Split complex numbers into real and imaginary parts, which are floats and fuse with other ops.

Complex arrays remain as inputs and outputs of programs and of host ops.  Results are those of NumPy except for
rounding, with the signs of zeros that choose a side of a branch cut.  A real operand has no imaginary part, so that its
product with an infinity is not NaN where NumPy's, with an imaginary part of 0, is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.compiler.ir.graph import Graph, Node, View, broadcast, compute_strides
from pullback.compiler.ir.kinds import (
    CAST,
    CONSTANT,
    INPUT,
    JOIN,
    MAP,
    OPAQUE,
    PIECES,
    PRODUCT,
    SPLIT,
    VIEW,
    Kind,
)
from pullback.compiler.passes.fourier import TRANSFORMS, lower_fourier
from pullback.compiler.passes.simplify import remove_dead_nodes
from pullback.compiler.target import Options

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


def split_complex(graph: Graph, options: Options) -> Graph:
    """Return an equivalent graph in which no kernel computes with complex numbers."""
    if not any(_is_complex(n.dtype) for n in graph.nodes):
        return graph
    return ComplexSplitter(graph, options).split()


class RealNode:
    """A node of real numbers, with the operators that make other nodes."""

    __slots__ = ("graph", "node")

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self.node = graph, node

    def apply(self, kernel: Callable[..., Any], *others: Any, dtype: DTypeLike | None = None) -> RealNode:
        """Return the node of an elementwise op of this and others."""
        x, nodes = self.node, [self.lift(y).node for y in others]
        if kernel is np.negative and x.kind is MAP and x.data[0].kernel is np.negative:
            return RealNode(self.graph, x.args[0])
        return RealNode(self.graph, self.graph.add_op(kernel, x, *nodes, dtype=dtype, line=x.line))

    def lift(self, x: Any) -> RealNode:
        return x if isinstance(x, RealNode) else RealNode(self.graph, self.graph.add_constant(x, self.node.dtype))

    def choose(self, x: Any, y: Any) -> RealNode:
        """Return x where this is true, else y."""
        x, y = (x, x.lift(y)) if isinstance(x, RealNode) else (y.lift(x), y)
        return self.apply(np.where, x, y, dtype=x.node.dtype)

    def compare(self, kernel: Callable[..., Any], other: Any) -> RealNode:
        return self.apply(kernel, other, dtype=bool)

    def __add__(self, x: Any) -> RealNode:
        return self.apply(np.add, x)

    def __sub__(self, x: Any) -> RealNode:
        return self.apply(np.subtract, x)

    def __mul__(self, x: Any) -> RealNode:
        return self.apply(np.multiply, x)

    def __truediv__(self, x: Any) -> RealNode:
        return self.apply(np.divide, x)

    def __neg__(self) -> RealNode:
        return self.apply(np.negative)

    def __abs__(self) -> RealNode:
        return self.apply(np.absolute)


Pair = tuple[RealNode, RealNode | None]  # real and imaginary parts; the latter None for a real number, whose part is +0


# ---- formulas of ops, by their NumPy kernels


def _find_imag(x: Pair) -> RealNode:
    return x[0].lift(0.0) if x[1] is None else x[1]


def _find_zero(x: RealNode) -> RealNode:
    """Return the product of +0 and a finite number: a zero with its sign."""
    return x.compare(np.less, 0.0).choose(x.lift(-0.0), 0.0)


def _add(x: Pair, y: Pair) -> Pair:
    is_real = x[1] is None and y[1] is None
    return x[0] + y[0], None if is_real else _find_imag(x) + _find_imag(y)


def _negate(x: Pair) -> Pair:
    return -x[0], -_find_imag(x)


def _subtract(x: Pair, y: Pair) -> Pair:
    is_real = x[1] is None and y[1] is None
    return x[0] - y[0], None if is_real else _find_imag(x) - _find_imag(y)


def _multiply(x: Pair, y: Pair) -> Pair:
    (a, b), (c, d) = x, y
    if b is not None and d is not None:
        return a * c - b * d, a * d + b * c
    if b is None and d is None:
        return a * c, None
    return a * c, a * d + _find_zero(c) if b is None else b * c + _find_zero(a)


def _divide(x: Pair, y: Pair) -> Pair:
    """Divide by the larger part of the divisor first, as NumPy does (Smith's algorithm)."""
    (a, b), (c, d) = x, y
    if d is None:
        re = a / c
        return re, (_find_imag(x) - _find_zero(re)) / c
    swaps = abs(c).compare(np.less, abs(d))
    large, small = swaps.choose(d, c), swaps.choose(c, d)
    ratio = small / large
    ratio = large.compare(np.equal, 0.0).choose(0.0, ratio)  # by 0: infinities, or NaN
    scale = large.lift(1.0) / (large + small * ratio)
    if b is None:
        re, im = swaps.choose(a * ratio, a), a.lift(0.0) - swaps.choose(a, a * ratio)
    else:
        re, im = swaps.choose(a * ratio + b, a + b * ratio), swaps.choose(b * ratio - a, b - a * ratio)
    return re * scale, im * scale


def _conjugate(x: Pair) -> Pair:
    return x[0], -_find_imag(x)


def _magnitude(x: Pair) -> RealNode:
    return abs(x[0]) if x[1] is None else x[0].apply(np.hypot, x[1])


def _absolute(x: Pair) -> Pair:
    return _magnitude(x), None


def _get_real(x: Pair) -> Pair:
    return x[0], None


def _get_imag(x: Pair) -> Pair:
    return _find_imag(x), None


def _angle(x: Pair) -> Pair:
    return _find_imag(x).apply(np.arctan2, x[0]), None


def _exp(x: Pair) -> Pair:
    e = x[0].apply(np.exp)
    return (e, None) if x[1] is None else (e * x[1].apply(np.cos), e * x[1].apply(np.sin))


def _log(x: Pair) -> Pair:
    return _magnitude(x).apply(np.log), _angle(x)[0]


def _square(x: Pair) -> Pair:
    return _multiply(x, x)


def _reciprocal(x: Pair) -> Pair:
    return _divide((x[0].lift(1.0), x[0].lift(-0.0)), x)


def _sqrt(x: Pair) -> Pair:
    """Return the root with a real part that is not negative, without a difference of nearly equal numbers."""
    a, b = x[0], _find_imag(x)
    root = ((abs(a) + a.apply(np.hypot, b)) * 0.5).apply(np.sqrt)
    other = root.compare(np.equal, 0.0).choose(0.0, abs(b) / (root * 2.0))
    right = a.compare(np.greater_equal, 0.0)
    size = right.choose(other, root)
    below = b.compare(np.less, 0.0).apply(np.logical_or, (b.lift(1.0) / b).compare(np.less, 0.0))  # and -0
    return right.choose(root, other), below.choose(-size, size)


def _sign(x: Pair) -> Pair:
    size = _magnitude(x)
    is_zero = size.compare(np.equal, 0.0)
    re, im = (None if part is None else is_zero.choose(0.0, part / size) for part in x)
    assert re is not None
    return re, im


def _turn(re: Any, im: Any, other_re: Any, other_im: Any, sign: float) -> Callable[[Pair], Pair]:
    """Return a function whose parts are products of one of the real and one of the imaginary part."""

    def formula(x: Pair) -> Pair:
        a, b = x[0], _find_imag(x)
        return a.apply(re) * b.apply(im), a.apply(other_re) * b.apply(other_im) * sign

    return formula


def _equal(x: Pair, y: Pair) -> Pair:
    same = x[0].compare(np.equal, y[0])
    if x[1] is None and y[1] is None:
        return same, None
    im, other = (x[1], 0.0 if y[1] is None else y[1]) if x[1] is not None else (y[1], 0.0)
    assert im is not None
    return same.apply(np.logical_and, im.compare(np.equal, other)), None


def _not_equal(x: Pair, y: Pair) -> Pair:
    return _equal(x, y)[0].apply(np.logical_not), None


def _join_truths(kernel: Callable[..., Any], junction: Any) -> Callable[[Pair], Pair]:
    """Return a predicate of complex numbers that holds if it holds for both parts, or for either."""

    def formula(x: Pair) -> Pair:
        re, im = (None if part is None else part.apply(kernel, dtype=bool) for part in x)
        assert re is not None
        return (re if im is None else re.apply(junction, im)), None

    return formula


def _where(condition: Pair, x: Pair, y: Pair) -> Pair:
    if x[1] is None and y[1] is None:
        return condition[0].choose(x[0], y[0]), None
    im, other = (0.0 if part is None else part for part in (x[1], y[1]))
    return condition[0].choose(x[0], y[0]), condition[0].choose(im, other)


def _join(x: Pair, y: Pair) -> Pair:
    return x[0], y[0]


FORMULAS: dict[Any, Callable[..., Pair]] = {
    np.add: _add, np.subtract: _subtract, np.multiply: _multiply, np.divide: _divide, np.negative: _negate,
    np.conjugate: _conjugate, np.absolute: _absolute, np.real: _get_real, np.imag: _get_imag, np.angle: _angle,
    np.exp: _exp, np.log: _log, np.sqrt: _sqrt, np.square: _square,
    np.equal: _equal, np.not_equal: _not_equal, np.where: _where, np.copy: lambda x: x,
    np.isnan: _join_truths(np.isnan, np.logical_or), np.isinf: _join_truths(np.isinf, np.logical_or),
    np.isfinite: _join_truths(np.isfinite, np.logical_and),
    np.sin: _turn(np.sin, np.cosh, np.cos, np.sinh, 1.0), np.cos: _turn(np.cos, np.cosh, np.sin, np.sinh, -1.0),
    np.sinh: _turn(np.sinh, np.cos, np.cosh, np.sin, 1.0), np.cosh: _turn(np.cosh, np.cos, np.sinh, np.sin, 1.0),
}  # fmt: skip
NAMED: dict[str, Callable[..., Pair]] = {
    "complex": _join,
    "sign": _sign,
    "reciprocal": _reciprocal,
}  # ops with a kernel of their own
POWERS = {2: _square, -1: _reciprocal, 1: lambda x: x}


class ComplexSplitter:
    """Makes the new graph, node by node."""

    def __init__(self, graph: Graph, options: Options) -> None:
        self.old, self.options = graph, options
        self.new, self.new_nodes = graph.copy_inputs()  # the new nodes of real ones, and complex ones that are arrays
        self.parts: dict[int, Pair] = {}  # of complex nodes

    def split(self) -> Graph:
        """Return the new graph."""
        for n in self.old.nodes:
            if n.kind is not INPUT:
                self._add(n)
        self.new.outputs = [self._find_array(o) for o in self.old.outputs]
        return remove_dead_nodes(self.new)

    def _add(self, n: Node) -> None:
        if not any(_is_complex(x.dtype) for x in (n, *n.args)):
            self.new_nodes[n.number] = self._keep(n)
            return
        found = self._split_node(n)
        if found is None:
            self.new_nodes[n.number] = self._keep(n)
        elif _is_complex(n.dtype):
            self.parts[n.number] = found
        else:
            self.new_nodes[n.number] = self._fit(found[0], n)

    def _keep(self, n: Node) -> Node:
        return self.new.copy_node(n, [self._find_array(a) for a in n.args])

    # ---- arguments

    def _find_array(self, n: Node) -> Node:
        """Return a node as one array, in which complex numbers are joined."""
        if n.number not in self.new_nodes:
            re, im = self.parts[n.number]
            parts = [self._fit(x, n) for x in (re, _find_imag((re, im)))]
            self.new_nodes[n.number] = self.new.add(JOIN, parts, n.shape, n.dtype, None, n.line)
        return self.new_nodes[n.number]

    def _find_parts(self, n: Node) -> Pair:
        if not _is_complex(n.dtype):
            return RealNode(self.new, self.new_nodes[n.number]), None
        if n.number not in self.parts:
            self.parts[n.number] = self._split_array(n)
        return self.parts[n.number]

    def _split_array(self, n: Node) -> Pair:
        g = self.new
        if n.kind is CONSTANT:
            is_real = not (n.data.imag.any() or np.signbit(n.data.imag).any())
            im = None if is_real else RealNode(g, g.add_constant(n.data.imag))
            return RealNode(g, g.add_constant(n.data.real)), im
        both = g.add(SPLIT, (self.new_nodes[n.number],), (2, *n.shape), _get_float(n.dtype), None, n.line)
        return self._take_parts(both, n.shape)

    def _take_parts(self, both: Node, shape: tuple[int, ...]) -> Pair:
        size = both.size // 2
        re, im = (
            RealNode(
                self.new, self.new.add(VIEW, (both,), shape, both.dtype, View(at, compute_strides(shape)), both.line)
            )
            for at in (0, size)
        )
        return re, im

    def _fit(self, x: RealNode, n: Node) -> Node:
        """Return a part in the shape and dtype of its node."""
        node, kind = x.node, _get_float(n.dtype)
        if node.dtype != kind:
            node = self.new.add(CAST, (node,), node.shape, kind, None, n.line)
        return node if node.shape == n.shape else broadcast(self.new, node, n.shape, n.line)

    # ---- nodes

    def _split_node(self, n: Node) -> Pair | None:
        """Return the parts of a node with complex operands; None if it must compute with complex arrays."""
        if n.kind.is_partwise(n):
            return self._split_partwise(n)
        split = SPLIT_KINDS.get(n.kind)
        return None if split is None else split(self, n)

    def _cast(self, n: Node) -> Pair | None:
        (x,) = n.args
        if n.dtype.kind not in "fc":
            return None
        re, im = self._find_parts(x)
        return self._cast_parts((re, im if _is_complex(n.dtype) else None), n)

    def _cast_parts(self, pair: Pair, n: Node) -> Pair:
        """Return parts in the dtype of those of a node."""
        kind = _get_float(n.dtype)
        re, im = (
            part
            if part is None or part.node.dtype == kind
            else RealNode(self.new, self.new.add(CAST, (part.node,), part.node.shape, kind, None, n.line))
            for part in pair
        )
        assert re is not None
        return re, im

    def _apply_formula(self, n: Node) -> Pair | None:
        op = n.data[0]
        kernel = getattr(op, "kernel", None)
        if kernel in TRANSFORMS:
            return self._transform(n)
        formula = FORMULAS.get(kernel) or NAMED.get(op.name)
        args = [*n.args]
        if kernel is np.power and args[1].kind is CONSTANT and args[1].size == 1:
            formula = POWERS.get(args[1].data.item())
            args = args[:1]
        if formula is None or any(a.dtype.kind not in "fcb" or a.dtype.itemsize not in (1, 4, 8, 16) for a in args):
            return None
        parts = formula(*map(self._find_parts, args))
        return parts if not _is_complex(n.dtype) else self._cast_parts(parts, n)

    def _multiply_matrices(self, n: Node) -> Pair:
        kind = _get_float(n.dtype)

        def find_parts(x: Node) -> Pair:
            re, im = (None if part is None else RealNode(self.new, self._fit(part, x)) for part in self._find_parts(x))
            assert re is not None
            return re, im

        def multiply(x: RealNode, y: RealNode) -> RealNode:
            return RealNode(self.new, self.new.add(PRODUCT, (x.node, y.node), n.shape, kind, n.data, n.line))

        (a, b), (c, d) = map(find_parts, n.args)
        if b is not None and d is not None:
            return multiply(a, c) - multiply(b, d), multiply(a, d) + multiply(b, c)
        im = multiply(a, d) if d is not None else multiply(b, c) if b is not None else None
        return multiply(a, c), im

    def _split_partwise(self, n: Node) -> Pair:
        """Return the same node applied to the real and to the imaginary parts."""
        which = [_is_complex(a.dtype) for a in n.args]
        pairs = [self._find_parts(a) for a in n.args]
        kind = _get_float(n.dtype)
        parts: list[RealNode] = []
        for part in range(2):
            if part and all(pair[1] is None for pair, own in zip(pairs, which, strict=True) if own):
                return parts[0], None
            args = []
            for a, pair, own in zip(n.args, pairs, which, strict=True):
                x = pair[part if own else 0]
                like = Node(a.kind, (), a.shape, _get_float(a.dtype), None, 0, a.line)
                args.append(self._fit(_find_imag(pair) if x is None else x, like) if own else self.new_nodes[a.number])
            data = n.data._replace(fill=0.0 if part else n.data.fill) if n.kind is PIECES else n.data
            parts.append(RealNode(self.new, self._view(n, args[0], kind) if n.kind is VIEW else self.new.add(
                n.kind, args, n.shape, kind, data, n.line
            )))  # fmt: skip
        return parts[0], parts[1]

    def _view(self, n: Node, x: Node, kind: Any) -> Node:
        """Return a view of one part, of the array that has both parts if it is in one."""
        data = n.data
        if x.kind is VIEW and x.data.strides == compute_strides(x.shape):
            x, data = x.args[0], View(x.data.offset + n.data.offset, n.data.strides)
        return self.new.add(VIEW, (x,), n.shape, kind, data, n.line)

    def _transform(self, n: Node) -> Pair | None:
        (x,), kind = n.args, _get_float(n.dtype)
        if x.dtype.kind not in "fc" or not self.options.is_enabled("Fourier transforms"):
            return None
        re, im = self._find_parts(x)
        if im is None and n.data[0].kernel is np.fft.irfft:
            im = re.lift(0.0)
        like = Node(x.kind, (), x.shape, kind, None, 0, n.line)
        result = lower_fourier(self.new, n, [self._fit(part, like) for part in (re, im) if part is not None])
        if result is None:
            return None
        first, *others = (RealNode(self.new, part) for part in result)
        return first, others[0] if others else None


def _is_complex(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is complex with parts that have machine code."""
    return bool(dtype.kind == "c" and dtype.itemsize <= 16)


def _get_float(dtype: np.dtype[Any]) -> Any:
    """Return the dtype of the parts of complex numbers."""
    return np.dtype(f"f{dtype.itemsize // 2}") if _is_complex(dtype) else dtype


# How the nodes of a kind whose parts depend on each other are split.
SPLIT_KINDS: dict[Kind, Callable[[ComplexSplitter, Node], Pair | None]] = {
    CONSTANT: ComplexSplitter._split_array,
    CAST: ComplexSplitter._cast,
    MAP: ComplexSplitter._apply_formula,
    OPAQUE: ComplexSplitter._apply_formula,
    PRODUCT: ComplexSplitter._multiply_matrices,
}
