"""Records of node kinds."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Collection
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.codegen.module import CALLS
from pullback.compiler.ir import kinds
from pullback.compiler.ir.fourier import Fourier
from pullback.compiler.ir.graph import Graph, Node, Pieces, Scatter, View
from pullback.compiler.ir.kinds import KINDS, Kind
from pullback.compiler.ir.matrices import LU, TRIANGULAR, Routine
from pullback.compiler.ir.structured import Switch
from pullback.compiler.ir.windows import Pooling
from pullback.compiler.passes.legalize import LEGALIZE
from pullback.compiler.schedule.fuse import READS, STORED_BASES
from pullback.compiler.schedule.schedule import CALL_RULES
from pullback.core.tensor import BY_KERNEL
from pullback.errors import CompileError
from pullback.numerics.windows import Windows

X = np.arange(6.0).reshape(2, 3)
F8 = np.dtype("f8")


@pytest.mark.parametrize("kind", KINDS.values(), ids=repr)
def test_kind_is_pickled_and_copied_by_reference(kind: Kind) -> None:
    assert pickle.loads(pickle.dumps(kind)) is copy.deepcopy(kind) is KINDS[kind.name] is kind


@pytest.mark.parametrize("kind", KINDS.values(), ids=repr)
def test_kind_is_leaf_fused_call_or_view(kind: Kind) -> None:
    assert sum((kind.is_leaf, kind.fuses, kind.is_call, kind is kinds.VIEW)) == 1
    assert kind.is_call or not kind.runs_on_host


CALL_KINDS = {kind for kind in KINDS.values() if kind.is_call}
STRUCTURES = {kind for kind in KINDS.values() if kind.has_bodies}
TABLES: dict[str, tuple[Collection[Kind], set[Kind]]] = {
    "READS": (READS, {kind for kind in KINDS.values() if kind.fuses and kind.reads_memory}),
    "CALL_RULES": (CALL_RULES, CALL_KINDS - STRUCTURES - {kinds.RESULT}),
    "CALLS": (CALLS, {kind for kind in CALL_KINDS if not kind.runs_on_host} - {kinds.RESULT}),
}


@pytest.mark.parametrize(("table", "expected"), TABLES.values(), ids=TABLES)
def test_table_of_stage_has_all_kinds_that_reach_it(table: Collection[Kind], expected: set[Kind]) -> None:
    assert {*table} == expected


def test_tables_of_exceptions_have_only_kinds_that_reach_them() -> None:
    assert {*STORED_BASES} <= {kind for kind in KINDS.values() if kind.reads_memory}
    made_later = {kinds.STACK, kinds.MATRICES, kinds.WINDOWS}  # by the pass itself
    assert not {*LEGALIZE} & {kinds.INPUT, *made_later}


CASES: dict[str, tuple[Kind, list[Any], tuple[int, ...], Any, Any]] = {
    "cast": (kinds.CAST, [X + 0.5], (2, 3), None, X),
    "view": (kinds.VIEW, [X], (3, 2), View(0, (1, 3)), X.T),
    "pieces": (kinds.PIECES, [X[:1]], (2, 3), Pieces(((1, 0),), 7.0), [[7, 7, 7], [0, 1, 2]]),
    "take": (kinds.TAKE, [X, np.array([1, 1])], (2, 3), (3,), X[[1, 1]]),
    "scatter": (kinds.SCATTER, [X, np.array([1, 1])], (2, 3), Scatter((3,)), [[0, 0, 0], [3, 5, 7]]),
    "scatter_added": (kinds.SCATTER, [X[0], np.array([5, 5, 0]), X], (2, 3), Scatter(()), [[2, 1, 2], [3, 4, 6]]),
    "scatter_largest": (
        kinds.SCATTER,
        [X, np.array([1, 1])],
        (2, 3),
        Scatter((3,), "maximum", -9.0),
        [[-9, -9, -9], [3, 4, 5]],
    ),
    "spaced": (kinds.SPACED, [X[0]], (2, 3), View(1, (2,)), [[0, 0, 0], [1, 0, 2]]),
    "product": (kinds.PRODUCT, [X, X.T], (2, 2), None, X @ X.T),
    "product_added": (kinds.PRODUCT, [X, X.T, np.eye(2)], (2, 2), None, np.eye(2) + X @ X.T),
}


def node(kind: Kind, values: list[Any], shape: tuple[int, ...], data: Any) -> Node:
    graph = Graph()
    dtype = np.dtype(int) if kind is kinds.CAST else F8
    return graph.add(kind, [graph.add_constant(v) for v in values], shape, dtype, data)


@pytest.mark.parametrize(("kind", "values", "shape", "data", "expected"), CASES.values(), ids=CASES)
def test_kind_evaluates_node(kind: Kind, values: list[Any], shape: tuple[int, ...], data: Any, expected: Any) -> None:
    n = node(kind, values, shape, data)
    assert not kind.check(n)
    np.testing.assert_array_equal(kind.evaluate(n, *values), expected)


@pytest.mark.parametrize(
    ("name", "shape", "data"),
    [
        ("cast", (3, 2), None), ("view", (3, 2), View(4, (1, 3))), ("pieces", (1, 3), Pieces(((1, 0),), 0.0)),
        ("take", (2, 2), (3,)), ("scatter", (2, 2), Scatter((2,))), ("spaced", (2, 2), View(1, (2,))),
        ("product", (2, 3), None),
    ],
)  # fmt: skip
def test_kind_check_reports_wrong_shape(name: str, shape: tuple[int, ...], data: Any) -> None:
    kind, values, *_ = CASES[name]
    assert kind.check(node(kind, values, shape, data))


LEAVES = [kinds.INPUT, kinds.CONSTANT]
FOR_CODE = [kinds.STACK, kinds.SPLIT, kinds.JOIN, kinds.FOURIER, kinds.MATRICES, kinds.WINDOWS]


@pytest.mark.parametrize("kind", LEAVES + FOR_CODE, ids=repr)
def test_kind_without_value_raises(kind: Kind) -> None:
    reason = "is given, not computed" if kind in LEAVES else f"{kind.name} is made for code generation"
    with pytest.raises(TypeError, match=reason):
        kind.evaluate(Graph().add(kind, (), (), F8))


PAIRS = Pooling("sums", "f8", 2, (3,), 1, Windows((2,), (1,), (1,), (0,), (2,)))
TO_COMPLEX, TO_REAL = Fourier(1, 4, 4, False, 1.0, False), Fourier(1, 4, 4, True, 1.0, True)


@pytest.mark.parametrize(
    ("kind", "values", "right", "wrong", "data", "message"),
    [
        (kinds.STACK, [X, X], (2, 3, 2), (2, 3, 1), None, "are not stacked to"),
        (kinds.SPLIT, [X + 1j], (2, 2, 3), (2, 3), None, "one more axis"),
        (kinds.JOIN, [X, X], (2, 3), (3, 2), None, "its parts have other shapes"),
        (kinds.FOURIER, [X], (2, 2, 4), (2, 4), TO_COMPLEX, r"the transform of \(2, 3\) is \(2, 2, 4\)"),
        (kinds.FOURIER, [X], (2, 4), (2, 2, 4), TO_REAL, r"the transform of \(2, 3\) is \(2, 4\)"),
        (kinds.MATRICES, [X], (3, 3), (2, 3), Routine(LU), r"lu makes \(3, 3\)"),
        (kinds.MATRICES, [np.eye(2), X], (2, 3), (2, 2), Routine(TRIANGULAR), r"triangular makes \(2, 3\)"),
        (kinds.WINDOWS, [X[..., None]], (2, 2, 1), (2, 3, 1), PAIRS, r"makes \(2, 2, 1\)"),
        (kinds.WINDOWS, [X[..., None]], (2, 3, 1), (2, 2, 1), PAIRS._replace(symbol="spread"), r"makes \(2, 3, 1\)"),
        (kinds.PART, [X], None, (2, 3), 0, "%0 = constant.* is no host op"),
        (kinds.RESULT, [X], None, (2, 3), 0, r"%0 has the results \(\)"),
        (kinds.PRODUCT, [X, X.T, X], None, (2, 2), None, "what is added must have its shape"),
        (kinds.MAP, [X, X.T], None, (2, 3), (BY_KERNEL[np.add], {}), "do not broadcast"),
    ],
)  # fmt: skip
def test_graph_verify_reports_wrong_node(
    kind: Kind, values: list[Any], right: Any, wrong: Any, data: Any, message: str
) -> None:
    if right is not None:
        assert not kind.check(node(kind, values, right, data))
    graph = Graph()
    graph.outputs = [graph.add(kind, [graph.add_constant(v) for v in values], wrong, F8, data)]
    with pytest.raises(CompileError, match=f"the graph is wrong at .*{message}"):
        graph.verify()


def test_graph_verify_reports_wrong_result_of_branches() -> None:
    graph, branch = Graph(), Graph()
    branch.outputs = [branch.add_input((2, 3), F8)]
    whole = graph.add(
        kinds.SWITCH, [graph.add_constant(0), graph.add_constant(X)], (), np.dtype(bool), Switch((branch,))
    )
    for place, shape, is_right in ((0, (2, 3), True), (0, (3, 2), False), (1, (2, 3), False)):
        assert (not kinds.RESULT.check(graph.add(kinds.RESULT, (whole,), shape, F8, place))) == is_right


IMAGE, FILTER = np.zeros((2, 8, 8, 3), "f4"), np.zeros((3, 3, 3, 4), "f4")
PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "convolution": (pb.grads(lambda x, w: np.sum(pb.conv2d(x, w, 1, "same") ** 2)), ([IMAGE, FILTER],)),
    "strided convolution": (pb.grads(lambda x, w: np.sum(pb.conv2d(x, w, 2, "valid") ** 2)), ([IMAGE, FILTER],)),
    "gradients of examples": (
        pb.vmap(lambda x: pb.grad(lambda w: np.sum(pb.conv2d(x, w, 2, "same") ** 2))(FILTER)), (IMAGE[:, None],)
    ),
    "depthwise convolution": (
        pb.grads(lambda x, w: np.sum(pb.depthwise_conv2d(x, w, 1, "same") ** 2)), ([IMAGE, FILTER[..., :1]],)
    ),
    "pooling": (pb.grad(lambda x: np.sum(pb.max_pool(x, 2, 2) * pb.avg_pool(x, 2, 2))), (IMAGE,)),
    "equations": (pb.grads(lambda a, b: np.sum(np.linalg.solve(a, b)) + np.linalg.det(a)), ([np.eye(3), X.T],)),
    "factors": (lambda a: [np.linalg.cholesky(a), np.linalg.eigh(a), np.linalg.qr(a), np.linalg.svd(a)], (np.eye(3),)),
    "loop": (pb.grad(lambda x: np.sum(pb.scan(lambda c, y: (np.tanh(c + y), c), x, X)[0])), (X[0],)),
    "loop with host op": (lambda x: pb.scan(lambda c, y: (c + np.argsort(c * y), c.sum()), x, X), (X[0],)),
}  # fmt: skip


@pytest.mark.parametrize(("f", "args"), PROGRAMS.values(), ids=PROGRAMS)
def test_graph_of_every_stage_is_valid(f: Any, args: tuple[Any, ...]) -> None:
    stages = pb.compile(f, cache=False).lower(*args).stages
    for graph in (stages.traced, stages.simplified, stages.legalized):
        graph.verify()


def test_graph_verify_reports_order_and_foreign_outputs() -> None:
    graph = Graph()
    x = graph.add_constant(X)
    y = graph.add(kinds.CAST, (x,), x.shape, F8)
    graph.outputs = [y]
    graph.verify()
    graph.nodes.reverse()
    with pytest.raises(CompileError, match="the graph is not in order at"):
        graph.verify()
    graph.nodes.reverse()
    graph.outputs = [Graph().add_constant(X)]
    with pytest.raises(CompileError, match="an output of the graph is not in it"):
        graph.verify()
