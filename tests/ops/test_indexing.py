"""Indexing, assignment and gathering: hard points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differences import gradient, slope

import pullback as pb
from pullback.errors import ArgumentError, ShapeError, VariableError

X = np.array([1.0, 2.0, 3.0])
M = np.arange(1.0, 13.0).reshape(3, 4)


# ------------------------------------------------------------------ x[...]

PICKS = {
    "int": 1,
    "negative": -1,
    "numpy integer": np.int32(1),
    "slices": (slice(1, None), slice(None, None, -2)),
    "new axis": (None, ..., 2),
    "list": [2, 0, 2],
    "list of lists": [[0, 1], [1, 1]],
    "empty list": [],
    "array twice": (np.array([0, 2, 0]), np.array([3, 1, 3])),
    "array and slice": (slice(None), np.array([1, 1, 0])),
    "apart": (np.array([0, 1]), None, np.array([1, 2])),
    "mask": M > 4,
    "mask of rows": np.array([True, False, True]),
    "mask and int": (np.array([True, False, True]), 1),
    "True": True,
    "False": False,
    "True and int": (True, 1),
    "True and axis": (None, True, ..., 0),
    "tensor": pb.tensor([2, 0, 2], dtype="int32"),
    "scalar tensor": pb.scalar(1, "int32"),
    "tensor mask": pb.tensor(M) > 4,
    "tensors in a tuple": (pb.tensor([0, 2], dtype="int32"), slice(1, 3)),
    "tensors in a list": [pb.scalar(1, "int32"), 2],
}


def arrays(index: Any) -> Any:
    """The same index for NumPy."""
    if isinstance(index, tuple | list):
        return type(index)(arrays(i) for i in index)
    return index.numpy() if isinstance(index, pb.Tensor) else index


@pytest.mark.parametrize("name", PICKS)
def test_getitem(name: str) -> None:
    index = PICKS[name]
    want = M[arrays(index)]
    got = pb.tensor(M)[index]
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.numpy(), want)

    def f(x: Any) -> Any:
        y = x[index]
        return (y * y).sum() + x[index].sum() + x.sum()  # twice: the second goes into the first one's cotangent

    np.testing.assert_allclose(pb.grad(f)(M), gradient(f, M), rtol=1e-6)
    np.testing.assert_allclose(pb.grad(lambda x: pb.grad(f)(x).sum())(M), 2 * np.bincount(
        np.arange(12).reshape(3, 4)[arrays(index)].ravel(), minlength=12).reshape(3, 4), rtol=1e-12)  # fmt: skip
    np.testing.assert_allclose(pb.jvp(f, [M], [M])[1], (gradient(f, M) * M).sum(), rtol=1e-6)


def test_getitem_with_traced_index() -> None:
    def f(x: Any, i: Any) -> Any:
        return (x[i][:2] * x[i > 1]).sum()

    gradient = pb.grads(f, unconnected="zero")([X, np.array([2, 1, 2])])[0]
    assert gradient.tolist() == [3.0, 3.0, 1.0 + 2.0]


def test_getitem_gradient_does_not_modify_cotangent() -> None:
    dy = np.ones(3)
    pb.grad(lambda x: pb.concat([x[:1] + x[1:2], x[:2]]) + x[0])(X, dy)
    assert dy.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (3, "out of bounds"),
        ((0, 0), "too many indices"),
        ([5], "index 5 is out of bounds"),
        (np.array([0.5]), "integer"),
        ("a", "only integers"),
        (np.array([True, False]), "boolean index did not match"),
    ],
)
@pytest.mark.parametrize("traced", [False, True])
def test_getitem_bad_index_raises(index: Any, message: str, traced: bool) -> None:
    with pytest.raises(ShapeError, match=message):
        pb.grad(lambda x: x[index].sum())(X) if traced else pb.tensor(X)[index]


def test_integer_that_became_a_float_as_index_raises() -> None:
    with pytest.raises(IndexError, match=r"tensor of float.*argnums=0"):
        pb.grads(lambda x, i: x[i] * 2)([X, 1])
    assert pb.grad(lambda x, i: x[i] * 2, argnums=0)(X, 1).tolist() == [0, 2, 0]


# ------------------------------------------------------------------ x[...] = v


def before_and_after(x: Any) -> Any:
    y = x * 2.0
    a = (y * y).sum()
    y[0] = 5.0
    return a + (y * y * x).sum()


def running(x: Any) -> Any:
    y = x * 1.0
    for i in range(1, 3):
        y[i] = y[i - 1] * x[i] + y[i]
    return (y * y).sum()


def filled(x: Any) -> Any:
    y = pb.zeros(3, "float64")
    for i in range(3):
        y[i] = x[i] ** 2
    return (y * y).sum()


def from_itself(x: Any) -> Any:
    y = x * x
    y[1:] = y[:2]
    y[:] = y * y
    return (y * x).sum()


def whole(x: Any) -> Any:
    y = x * x
    y[...] = y
    return (y * x).sum()


def several(x: Any) -> Any:
    y = x * x
    y[[0, 0, 2]] = x * 3.0  # the second value for place 0 stays
    y[y > 8.0] = x[0]
    return (y * x).sum()


def joined(x: Any) -> Any:
    y = x * 2.0
    a = pb.concat([y, x, y])
    y[1] = x[0] * x[1]
    b = pb.stack([y, x])
    y[2] = 0.0
    return (a * a).sum() + (b * b).sum() + y.sum()


def under_two_names(x: Any) -> Any:
    y = x * 2.0
    z = y
    y[0] = x[1]
    return (z * z).sum()


def inside(x: Any) -> Any:
    """An inner gradient holds ``y``, by value and in lists, when it changes."""
    y = x * x

    def inner(z: Any) -> Any:
        w, both = z * y, pb.concat([z * y, y])
        y[0] = x[1]
        return (w * z).sum() + (both * both).sum() + (y * z).sum()

    return pb.grad(inner)(X).sum() + (y * y).sum()


def on_the_inner_tape(x: Any) -> Any:
    def inner(z: Any) -> Any:
        y = z * x
        y[0] = x[1] * z[1]
        return (y * y * y).sum()

    return pb.grad(inner)(x).sum()


def through_forward_mode(x: Any) -> Any:
    return pb.jvp(filled, [x], [X])[1] * pb.jvp(running, [x], [X])[1]


CHANGES = [
    before_and_after, running, filled, from_itself, whole, several, joined, under_two_names, inside, on_the_inner_tape,
    through_forward_mode,
]  # fmt: skip


@pytest.mark.parametrize("f", CHANGES, ids=lambda f: f.__name__)
def test_setitem_after_recording(f: Any) -> None:
    x = X + 0.25
    np.testing.assert_allclose(pb.grad(f)(x), gradient(f, x), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(pb.jvp(f, [x], [np.ones(3)])[1], gradient(f, x).sum(), rtol=1e-6)

    def first(x: Any) -> Any:
        return (pb.grad(f)(x) * pb.tensor([1.0, 2.0, 3.0])).sum()

    np.testing.assert_allclose(pb.grad(first)(x), gradient(first, x), rtol=1e-5, atol=1e-5)


def test_setitem_of_big_arrays() -> None:
    x = np.linspace(-1.0, 1.0, 80_000)

    def f(x: Any) -> Any:
        y = x * 2.0
        a = (y * y).sum()
        y[:2] = x[2:4] * x[2:4]
        b = pb.zeros(80_000, "float64")
        b[40_000:] = y[:40_000]
        return a + (y * b).sum()

    found = pb.grad(f)(x)
    for i in (0, 1, 2, 3, 77, 39_999, 40_000, 40_001, 79_999):
        unit = np.zeros_like(x)
        unit[i] = 1
        near = slope(lambda x: f(pb.tensor(x)).item(), x, unit, 1e-6)
        assert found[i] == pytest.approx(near, rel=1e-4, abs=1e-4)


def test_setitem_of_a_constant() -> None:
    t = u = pb.tensor([1.0, 2.0, 3.0])
    before = t * 1.0
    t[[0, 2]] = [7, 8]
    t[pb.tensor([False, True, False])] = 0
    assert (u.tolist(), before.tolist()) == ([7.0, 0.0, 8.0], [1.0, 2.0, 3.0])
    assert t.dtype == np.float32
    t += 1
    assert (t.tolist(), u.tolist()) == ([8.0, 1.0, 9.0], [8.0, 1.0, 9.0])


def test_gradient_tensor_is_writable() -> None:
    x = pb.tensor(X)
    g = pb.grad(lambda x: (x * x).sum())(x)
    g[0] = 0
    assert g.tolist() == [0.0, 4.0, 6.0]


def test_setitem_on_gradient_tape() -> None:
    x = pb.variable(X)
    with pb.GradientTape() as tape:
        y = x * x
        z = (y * y).sum()
    with pytest.raises(ArgumentError, match=r"on a GradientTape .* x\.copy"):
        y[0] = 5.0
    assert tape.gradient(z, x).tolist() == (4 * X**3).tolist()
    y[0] = 5.0  # the tape has answered, and let go of it
    assert y.tolist() == [5.0, 4.0, 9.0]


def setting(x: Any, index: Any, value: Any) -> Any:
    x[index] = value
    return x


SETTING_REFUSED = {
    "input": (lambda: pb.grad(lambda x: setting(x, 0, 1.0))(X), ArgumentError, r"input of the function.*x\.copy"),
    "big input": (lambda: pb.grad(lambda x: setting(x, 0, 1.0))(np.ones(80_000)), ArgumentError, r"x\.copy"),
    "variable": (
        lambda: setting(pb.variable([1.0], name="w"), 0, 1),
        VariableError,
        r"x\[...\] = value: w is .*use assign",
    ),
    "int": (
        lambda: setting(pb.tensor([1], dtype="int32"), 0, 1.5),
        ArgumentError,
        "holds int32 and cannot hold float64",
    ),
    "int from float": (lambda: setting(pb.zeros(1, "int32"), 0, pb.scalar(1.0)), ArgumentError, "cast x first"),
    "shape": (
        lambda: setting(pb.tensor(X), slice(2), X),
        ShapeError,
        r"shape \(2,\), .* shape \(3,\) does not broadcast",
    ),
    "range": (lambda: setting(pb.tensor(X), 3, 1), ShapeError, "index 3 is out of bounds"),
}


@pytest.mark.parametrize("name", SETTING_REFUSED)
def test_setitem_bad_input_raises(name: str) -> None:
    call, error, message = SETTING_REFUSED[name]
    with pytest.raises(error, match=message):
        call()


def test_refused_setitem_changes_nothing() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        with pytest.raises(ShapeError):
            y[7] = 1.0
        return (y * y).sum()

    assert pb.grad(f)(X).tolist() == (8 * X).tolist()


# ------------------------------------------------------------------ gathering

IDS = np.array([[2, 0, 2], [1, 1, 0]])

GATHERED = {
    "gather": (lambda x: pb.gather(x, [2, 0, 2, 2]), lambda x: x[[2, 0, 2, 2]]),
    "gather axis": (lambda x: pb.gather(x, IDS, 1), lambda x: x[:, IDS]),
    "gather a tensor": (lambda x: x.gather(pb.tensor([1], dtype="int32"), -1), lambda x: x[:, [1]]),
    "gather axis left out": (lambda x: pb.gather(x, [1], None, None), lambda x: x[[1]]),
    "gather negative": (lambda x: pb.gather(x, [-1, 2]), lambda x: x[[-1, 2]]),
    "gather one": (lambda x: pb.gather(x, 1), lambda x: x[1]),
    "gather none": (lambda x: pb.gather(x, []), lambda x: x[:0]),
    "batches": (lambda x: pb.gather(x[:2], IDS, 1, 1), lambda x: np.take_along_axis(x[:2], IDS, 1)),
    "nd": (lambda x: pb.gather_nd(x, [[0, 1], [2, 3], [0, 1]]), lambda x: x[[0, 2, 0], [1, 3, 1]]),
    "nd rows": (lambda x: pb.gather_nd(x, [[[2]], [[-1]]]), lambda x: x[[[2], [2]]]),
    "scatter": (
        lambda x: pb.scatter_nd([[3], [1], [3]], x, [5, 4]),
        lambda x: np.array([0 * x[0], x[1], 0 * x[0], x[0] + x[2], 0 * x[0]]),
    ),
    "update": (
        lambda x: pb.tensor_scatter_update(x, [[0, 0], [1, 1], [0, 0]], x[:, 3] * x[:, 2]),
        lambda x: np.where(
            np.arange(12).reshape(3, 4) == 0,
            x[2, 3] * x[2, 2],
            np.where(np.arange(12).reshape(3, 4) == 5, x[1, 3] * x[1, 2], x),
        ),
    ),
    "take": (lambda x: pb.take(x, [11, 0, 0]), lambda x: x.ravel()[[11, 0, 0]]),
    "take axis": (lambda x: x.take([1, 1], 1), lambda x: x[:, [1, 1]]),
    "along 0": (
        lambda x: pb.take_along_axis(x, [[2, 0, 1, 2]], 0),
        lambda x: np.take_along_axis(x, np.array([[2, 0, 1, 2]]), 0),
    ),
    "along broadcast": (lambda x: pb.take_along_axis(x, [[3, 3]], 1), lambda x: x[:, [3, 3]]),
    "repeat": (lambda x: pb.repeat(x, [2, 0, 1], 0), lambda x: np.repeat(x, [2, 0, 1], 0)),
    "repeat flat": (lambda x: x.repeat(2), lambda x: np.repeat(x, 2)),
    "mask": (lambda x: pb.boolean_mask(x, [True, False, True]), lambda x: x[[0, 2]]),
    "mask axis": (lambda x: x.boolean_mask(pb.tensor([True, False, True, True]), 1), lambda x: x[:, [0, 2, 3]]),
    "mask of all": (lambda x: pb.boolean_mask(x, M > 6), lambda x: x[M > 6]),
    "topk": (lambda x: pb.topk(x * [1, -1, 1, -1], 2).values, lambda x: x[:, [2, 0]]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gather_twice_from_one_table(dtype: Any) -> None:
    x = np.random.default_rng(0).normal(size=(50, 4)).astype(dtype)
    indices = [np.array([3, 3, -1]), np.array([[0, 7], [7, 3]]), np.array(5), np.array([], int)]

    def f(x: Any, *at: Any) -> Any:
        return sum(np.sum(pb.gather(x, i)) * (k + 1.0) for k, i in enumerate(at)) + np.sum(x * x)

    want = 2 * x
    for k, i in enumerate(indices):
        np.add.at(want, i, k + 1.0)
    compiled = pb.compile(lambda x, *at: pb.grad(lambda x: f(x, *at))(x))
    for made in (pb.grad(lambda x: f(x, *indices))(x), compiled(x, *indices)):
        np.testing.assert_allclose(made, want, rtol=1e-6)


WIDE = np.random.default_rng(0).normal(size=(300, 64))
SHORT = {
    "gather": (lambda x, i: pb.gather(x, i), lambda x, i: x[i]),
    "index": (lambda x, i: x[i], lambda x, i: x[i]),
    "nd": (lambda x, i: pb.gather_nd(x, i[:, None]), lambda x, i: x[i]),
    "along": (lambda x, i: pb.take_along_axis(x, np.tile(i[:, None], (1, 64)), 0), lambda x, i: x[i]),
    "batches": (lambda x, i: pb.gather(x.T, np.tile(i, (64, 1)), 1, 1), lambda x, i: x.T[:, i]),
}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint64])
@pytest.mark.parametrize("name", SHORT)
def test_gather_short_integer_indices(name: str, dtype: Any) -> None:
    ours, numpys = SHORT[name]
    i = np.array([3, 100, 3, 0], dtype)
    np.testing.assert_array_equal(ours(pb.tensor(WIDE), i).numpy(), numpys(WIDE, i))
    want = np.zeros_like(WIDE)
    np.add.at(want, i.astype(int), 2 * WIDE[i])
    np.testing.assert_array_equal(pb.grad(lambda x: (ours(x, i) ** 2).sum())(WIDE), want)


@pytest.mark.parametrize("name", GATHERED)
def test_gather(name: str) -> None:
    ours, numpys = GATHERED[name]
    want = numpys(M)
    got = ours(pb.tensor(M))
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.numpy(), want)
    weights = np.arange(1.0, want.size + 1).reshape(want.shape)

    def f(x: Any) -> Any:
        y = ours(x)
        return (y * y * weights).sum()

    np.testing.assert_allclose(pb.grad(f)(M), gradient(f, M), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(pb.jvp(f, [M], [M])[1], (gradient(f, M) * M).sum(), rtol=1e-6)
    v = pb.tensor(M / 10)
    np.testing.assert_allclose(
        pb.grad(lambda x: (pb.grad(f)(x) * v).sum())(M),
        gradient(lambda x: (pb.grad(f)(x) * v).sum(), M),
        rtol=1e-5,
        atol=1e-5,
    )


def test_one_hot() -> None:
    assert pb.one_hot([0, 2], 3).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert pb.one_hot(pb.tensor([5, -1], dtype="int32"), 2).tolist() == [[0, 0], [0, 0]]
    made = pb.one_hot(np.array([1]), 2, 0.9, 0.1)
    assert (made.dtype, made.tolist()) == (np.float32, [[np.float32(0.1), np.float32(0.9)]])
    assert pb.one_hot([1], 2, None, None, "bool").tolist() == [[False, True]]


def test_topk_ties() -> None:
    values, indices = pb.topk(pb.tensor([1.0, 3.0, 3.0, 2.0]), 3)
    assert (values.tolist(), indices.tolist(), indices.dtype) == ([3.0, 3.0, 2.0], [1, 2, 3], np.int32)
    assert pb.grad(lambda x: (pb.topk(x, 2).values * [5.0, 7.0]).sum())(np.array([1.0, 3.0, 3.0])).tolist() == [0, 5, 7]
    assert pb.topk(np.array([[1, 2], [4, 3]], "u1")).values.tolist() == [[2], [4]]


GATHER_REFUSED = {
    "range": (lambda: pb.gather(X, [0, 5]), ShapeError, "gather: the index 5 is out of range for axis 0 of length 3"),
    "below": (lambda: pb.gather(X, [-4]), ShapeError, "the index -4 is out of range"),
    "floats": (
        lambda: pb.gather(X, pb.tensor([1.0])),
        ArgumentError,
        r"gather: indices must be integers, got float32 of shape \(1,\)",
    ),
    "halves": (lambda: pb.gather(X, [0.5]), ArgumentError, "must be integers"),
    "axis": (lambda: pb.gather(X, [0], 1), ShapeError, "axis 1 is out of range for rank 1"),
    "scalar": (lambda: pb.gather(pb.scalar(1.0), [0]), ShapeError, "rank 0"),
    "batches": (
        lambda: pb.gather(M, IDS, 1, 1),
        ShapeError,
        r"\(3, 4\) and indices have shape \(2, 3\); the first 1 axes",
    ),
    "nd range": (
        lambda: pb.gather_nd(M, [[0, 4]]),
        ShapeError,
        "gather_nd: the index 4 is out of range for axis 1 of length 4",
    ),
    "nd depth": (lambda: pb.gather_nd(X, [[0, 0]]), ShapeError, r"at most 1; indices have shape \(1, 2\)"),
    "scatter range": (lambda: pb.scatter_nd([[4]], [1.0], [4]), ShapeError, "scatter_nd: the index 4 is out of range"),
    "scatter shape": (
        lambda: pb.scatter_nd([[0]], X, [4]),
        ShapeError,
        r"updates have shape \(3,\); .* must have \(1,\)",
    ),
    "update shape": (
        lambda: pb.tensor_scatter_update(X, [[0]], X),
        ShapeError,
        "tensor_scatter_update: updates have shape",
    ),
    "along": (lambda: pb.take_along_axis(M, [0], 0), ShapeError, "the ranks must agree"),
    "depth": (lambda: pb.one_hot([0], 0), ArgumentError, "depth must be at least 1, got 0"),
    "one_hot": (lambda: pb.one_hot([0.5], 2), ArgumentError, "one_hot: indices must be integers"),
    "mask": (lambda: pb.boolean_mask(M, [True]), ShapeError, r"mask has shape \(1,\); from axis 0 on they must agree"),
    "no mask": (lambda: pb.boolean_mask(M, [1.0, 0.0]), ArgumentError, "mask must be bools"),
    "topk": (lambda: pb.topk(X, 4), ShapeError, r"got k=4 for shape \(3,\)"),
}


@pytest.mark.parametrize("name", GATHER_REFUSED)
@pytest.mark.parametrize("kind", ["plain", "traced"])
def test_gather_bad_input_raises(name: str, kind: str) -> None:
    call, error, message = GATHER_REFUSED[name]
    with pytest.raises(error, match=message):
        call() if kind == "plain" else pb.grad(lambda _: call())(1.0)


# ------------------------------------------------------------------ the gradient of gather by adding rows


def test_gather_large_tables() -> None:
    rng = np.random.default_rng(0)
    table, ids = rng.normal(size=(2000, 64)), rng.integers(0, 2000, 3000)
    want = np.zeros_like(table)
    np.add.at(want, ids, 2 * table[ids])
    for f in (lambda x: (pb.gather(x, ids) ** 2).sum(), lambda x: (x[ids] ** 2).sum()):
        np.testing.assert_allclose(pb.grad(f)(table), want, rtol=1e-12)


@pytest.mark.parametrize("mode", ["wrap", "clip"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_take_of_indices_out_of_range(mode: Any, axis: Any) -> None:
    at = np.array([[7, -9], [2, 0]])
    np.testing.assert_array_equal(pb.tensor(M).take(at, axis, mode=mode), M.take(at, axis, mode=mode))
    weights = np.cos(np.arange(float(M.take(at, axis, mode=mode).size)))
    found = pb.grad(lambda x: np.sum(x.take(at, axis, mode=mode).reshape(-1) * weights))(M)
    expected = gradient(lambda x: np.sum(x.take(at, axis, mode=mode).ravel() * weights), M)
    np.testing.assert_allclose(found, expected, 1e-6)


def test_gather_of_empty_float_indices() -> None:
    for at in (np.zeros(0), [], pb.tensor([])):
        assert pb.gather(M, at).shape == (0, 4)
        np.testing.assert_array_equal(pb.grad(lambda x, at=at: np.sum(pb.gather(x, at)))(M), np.zeros((3, 4)))
    with pytest.raises(ArgumentError, match="indices must be integers, got float64"):
        pb.gather(M, np.zeros(1))


@pytest.mark.parametrize("at", [(np.arange(3), np.arange(3)), (np.arange(3)[:, None], np.arange(3)[:, None], [0, 1])])
def test_index_by_several_arrays_over_axes_of_equal_length(at: Any) -> None:
    x = np.arange(36.0).reshape(3, 3, 4) ** 1.5
    np.testing.assert_array_equal(pb.tensor(x)[at], x[at])
    np.testing.assert_array_equal(pb.compile(lambda x: x[at])(x), x[at])
    found = pb.grad(lambda x: np.sum(x[at] ** 2))(x)
    expected = np.zeros_like(x)
    expected[at] = 2 * x[at]
    np.testing.assert_allclose(found, expected)
