"""Products of matrices, vectors and labelled axes: every rank that NumPy knows, and derivatives to second order."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, ShapeError
from pullback.ops.contraction import plan_einsum

rng = np.random.default_rng(0)


def drawn(*shapes):
    return [rng.normal(size=shape)[()] for shape in shapes]


def expect_derivatives(f, xs):
    """First and second order, both modes, of the sum of squares of ``f``, against differences."""
    vs = [rng.normal(size=np.shape(x)) for x in xs]
    ws = [rng.normal(size=np.shape(x)) for x in xs]

    def loss(*xs):
        return np.sum(f(*xs) ** 2)

    def inner(gs):
        total = 0.0
        for g, w in zip(gs, ws, strict=True):
            total = total + np.sum(g * w)
        return total

    def turned(*xs):
        return inner(pb.grads(loss)(list(xs)))

    for h in (loss, turned):
        up, down = ([x + s * v for x, v in zip(xs, vs, strict=True)] for s in (1e-5, -1e-5))
        want = (h(*up) - h(*down)) / 2e-5
        gradients = pb.grads(h)(xs)
        for x, g in zip(xs, gradients, strict=True):
            assert np.shape(g) == np.shape(x)
        got = sum(float(np.sum(g * v)) for g, v in zip(gradients, vs, strict=True))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(pb.jvp(h, xs, vs)[1], want, rtol=1e-5, atol=1e-5)


MATRICES = [
    ((2, 3), (3, 4)), ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)),
    ((3,), (2, 5, 3, 4)), ((2, 5, 2, 3), (3,)), ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)), ((2, 1, 2, 3), (1, 5, 3, 4)), ((2, 3), (2, 1, 3, 4)), ((1, 1), (1, 1)), ((1, 3), (3, 1)),
]  # fmt: skip
NOTHING = [((2, 0), (0, 3)), ((0, 3), (3, 2)), ((0,), (0,)), ((0,), (0, 2)), ((4, 0, 3), (3, 2))]


@pytest.mark.parametrize(("a", "b"), MATRICES + NOTHING)
def test_matmul_ranks(a, b):
    x, y = drawn(a, b)
    want = np.matmul(x, y)
    for got in (
        pb.matmul(x, y),
        pb.tensor(x) @ y,
        x @ pb.tensor(y),
        np.matmul(pb.tensor(x), pb.tensor(y)),
        pb.mat_mul(x, y),
    ):
        assert got.shape == want.shape
        np.testing.assert_allclose(np.asarray(got), want)
    expect_derivatives(lambda x, y: x @ y, [x, y])
    expect_derivatives(lambda x: x @ y, [x])
    expect_derivatives(lambda y: x @ y, [y])


@pytest.mark.parametrize("batch", [(), (5,), (2, 1)])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_mat_mul_transposes(batch, transpose_a, transpose_b):
    x, y = drawn((3, 2) if transpose_a else (2, 3), batch + ((4, 3) if transpose_b else (3, 4)))
    a, b = x.T if transpose_a else x, np.swapaxes(y, -1, -2) if transpose_b else y
    np.testing.assert_allclose(pb.mat_mul(x, y, transpose_a, transpose_b), a @ b)
    np.testing.assert_allclose(pb.tensor(x).mat_mul(y, transpose_a, transpose_b), a @ b)
    np.testing.assert_allclose(pb.mat_mul(x.tolist(), y, transpose_a, transpose_b), a @ b, rtol=1e-5, atol=1e-6)
    expect_derivatives(lambda x, y: pb.mat_mul(x, y, transpose_a, transpose_b), [x, y])


def test_strided_and_read_only_operands():
    x, y = drawn((4, 6), (6, 8))
    x.flags.writeable = y.flags.writeable = False
    expect_derivatives(lambda x, y: x[::2, ::-2] @ y[::2, 1::3], [x, y])
    expect_derivatives(lambda x, y: x @ y, [x[::-1, ::2], np.asfortranarray(y)[1::2]])


@pytest.mark.parametrize("n", [1, 200])
def test_matmul_of_large_matrices_with_short_axis(n):
    x, y = drawn((200, n), (n, 200))
    got = pb.grads(lambda x, y: pb.sum(pb.square(x @ y)))([x, y])
    np.testing.assert_allclose(got[0], 2 * (x @ y) @ y.T)
    np.testing.assert_allclose(got[1], 2 * x.T @ (x @ y))


@pytest.mark.parametrize(
    ("left", "right", "out"),
    [
        ("f4", "f4", "f4"),
        ("f8", "f8", "f8"),
        ("f4", "f8", "f8"),
        ("i4", "f4", "f4"),
        ("f4", "i8", "f4"),
        ("?", "f8", "f8"),
        ("i4", "i4", "i4"),
    ],
)
@pytest.mark.parametrize(
    "f",
    [pb.matmul, pb.dot, pb.outer, pb.inner, lambda x, y: pb.einsum("ij,jk", x, y), lambda x, y: pb.tensordot(x, y, 1)],
)
def test_contraction_dtypes(f, left, right, out):
    x, y = np.array([[1, 2], [0, 1]], left), np.array([[3, 0], [1, 1]], right)
    assert f(pb.tensor(x), pb.tensor(y)).dtype == np.dtype(out)
    if np.dtype(out).kind == "f":
        gradients = pb.grads(lambda x, y: pb.sum(f(x, y)))([x, y])
        assert [g.dtype for g in gradients] == [
            np.dtype(d) if np.dtype(d).kind == "f" else np.dtype(out) for d in (left, right)
        ]


DOTS = [((3,), (3,)), ((2, 3), (3, 4)), ((2, 3), (3,)), ((3,), (3, 2)), ((), (3,)), ((2, 3), ()), ((), ()),
        ((2, 3), (5, 3, 4)), ((2, 2, 3), (3,)), ((2, 2, 3), (3, 4)), ((3,), (2, 3, 2)), ((2, 0), (0, 3))]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), DOTS)
def test_dot(a, b):
    x, y = drawn(a, b)
    np.testing.assert_allclose(pb.dot(x, y), np.dot(x, y))
    np.testing.assert_allclose(pb.tensor(x).dot(y), np.dot(x, y))
    expect_derivatives(pb.dot, [x, y])


@pytest.mark.parametrize(
    ("a", "b"), [((3,), (3,)), ((2, 3), (4, 3)), ((2, 3), (3,)), ((), (2, 3)), ((2, 4, 3), (5, 3))]
)
def test_inner(a, b):
    x, y = drawn(a, b)
    np.testing.assert_allclose(pb.inner(x, y), np.inner(x, y))
    expect_derivatives(pb.inner, [x, y])


@pytest.mark.parametrize(("a", "b"), [((3,), (2,)), ((2, 2), (3,)), ((), (2,)), ((0,), (2,))])
def test_outer_product(a, b):
    x, y = drawn(a, b)
    np.testing.assert_allclose(pb.outer_product(x, y), np.outer(x, y))
    expect_derivatives(pb.outer, [x, y])


def test_vdot():
    x, y = drawn((2, 3), (6,))
    np.testing.assert_allclose(pb.vdot(x, y), np.vdot(x, y))
    expect_derivatives(pb.vdot, [x, y])


TENSORDOTS = [
    ((2, 3, 4), (3, 4, 5), 2), ((2, 3), (3, 4), 1), ((2, 3), (4,), 0), ((2, 3), (2, 3), 2), ((2, 3), (4, 2), (0, 1)),
    ((2, 3, 4), (4, 5, 2), ([0, 2], [2, 0])), ((2, 3, 4), (4, 3), ((-1, -2), (0, 1))), ((2, 0), (0, 3), 1),
    ((), (2,), 0),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "axes"), TENSORDOTS)
def test_tensordot(a, b, axes):
    x, y = drawn(a, b)
    want = np.tensordot(x, y, axes)
    assert pb.tensordot(x, y, axes).shape == want.shape
    np.testing.assert_allclose(pb.tensordot(x, y, axes), want)
    expect_derivatives(lambda x, y: pb.tensordot(x, y, axes), [x, y])


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("kj,ji", (2, 3), (3, 4)), ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iij->j", (3, 3, 2)), ("iii->i", (2, 2, 2)), ("ij->", (2, 3)), ("ij->ji", (2, 3)), ("ba", (2, 3)), ("i->i", (3,)),
    ("...ij,...jk->...ik", (2, 1, 2, 3), (4, 3, 2)), ("i...->...i", (2, 3, 4)), ("...,...", (2, 3), (3,)),
    ("...", (2, 2)),
    ("...ii->...i", (2, 3, 3)), ("... , ->...", (2, 3), ()), ("i..., i... -> ...", (2, 3), (2, 3)),
    ("...ij,j", (2, 2, 3), (3,)),
    ("ij,ij->ij", (1, 3), (2, 3)), ("ij,ij->", (1, 3), (2, 1)), ("i,i->", (3,), (1,)), ("i,i->i", (1,), (1,)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)), ("ij,jk,kl,lm->mi", (2, 3), (3, 4), (4, 2), (2, 3)),
    ("i,i,i->i", (3,), (3,), (3,)),
    ("bhqd,bhkd->bhqk", (2, 2, 3, 2), (2, 2, 4, 2)), ("ijk,ijl->kl", (2, 3, 4), (2, 3, 2)),
    ("bi,bi->b", (3, 2), (3, 2)),
    (",i->i", (), (3,)), (",", (), ()), ("->", ()), ("ii,jj->ij", (2, 2), (3, 3)), ("iji,jk->k", (2, 3, 2), (3, 4)),
    ("abc,cd,ade,be->a", (2, 3, 2), (2, 3), (2, 3, 2), (3, 2)), ("ij,kl->ljik", (2, 3), (2, 2)), ("i,j", (2,), (3,)),
    ("ij,ij,jk->ik", (2, 3), (2, 3), (3, 4)), ("ij,jk->ik", (2, 0), (0, 3)), ("i,i->", (0,), (0,)),
    ("ij,k->i", (2, 3), (4,)),
]  # fmt: skip


@pytest.mark.parametrize(("equation", "shapes"), [(equation, shapes) for equation, *shapes in EINSUMS])
def test_einsum(equation, shapes):
    xs = drawn(*shapes)
    want = np.einsum(equation, *xs)
    for got in (
        pb.einsum(equation, *xs),
        pb.einsum(equation, *map(pb.tensor, xs)),
        pb.einsum(equation, pb.tensor(xs[0]), *xs[1:]),
    ):
        assert got.shape == want.shape
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-10, atol=1e-12)
    expect_derivatives(lambda *xs: pb.einsum(equation, *xs), xs)


def test_einsum_multiplies_matrix_and_vector_first():
    _, pairs, _ = plan_einsum("ij,jk,k->i", ((300, 200), (200, 100), (100,)))
    assert [pair[:2] for pair in pairs] == [(1, 2), (0, 3)]


def test_einsum_of_one_tensor_with_itself():
    (x,) = drawn((3, 3))
    expect_derivatives(lambda x: pb.einsum("ij,jk,ki->", x, x, x), [x])


def test_einsum_of_lists_numbers_and_strided_arrays():
    (x,) = drawn((4, 6))
    np.testing.assert_allclose(pb.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 1]), [3, 7])
    np.testing.assert_allclose(pb.einsum("i,->i", np.array([1.0, 2.0]), 0.1), [0.1, 0.2], rtol=1e-15)
    assert pb.einsum("i,->i", np.ones(2, np.float32), 0.1).dtype == np.float32
    assert pb.dot(0.1, np.ones(2, np.float32)).dtype == np.float32
    np.testing.assert_allclose(pb.einsum("ij,kj->ik", x[::-2, ::3], x.T[:4, ::2]), x[::-2, ::3] @ x.T[:4, ::2].T)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: x @ np.ones((2, 3)),
            ShapeError,
            r"matmul: got shapes \(2, 3\) and \(2, 3\); axis 'k' .* is 3 in one and 2",
        ),
        (
            lambda x: x @ np.ones(2),
            ShapeError,
            r"matmul: got shapes \(2, 3\) and \(2,\); axis 'k' .* is 3 in one and 2",
        ),
        (lambda x: np.ones(3) @ x, ShapeError, r"matmul: got shapes \(3,\) and \(2, 3\)"),
        (lambda x: x @ 2.0, ShapeError, r"matmul: got shapes \(2, 3\) and \(\)"),
        (
            lambda x: np.ones((4, 2, 2)) @ (x[None] * np.ones((5, 1, 1))),
            ShapeError,
            r"matmul: shapes \(4, 2, 2\) and \(5, 2, 3\) do not",
        ),
        (
            lambda x: pb.mat_mul(np.ones(2), x, True),
            ShapeError,
            r"mat_mul: a has shape \(2,\); only a matrix can be transposed",
        ),
        (
            lambda x: pb.mat_mul(x, np.ones(3), False, True),
            ShapeError,
            r"mat_mul: b has shape \(3,\).*drop transpose_b",
        ),
        (lambda x: pb.dot(x, np.ones(2)), ShapeError, r"dot: shapes \(2, 3\) and \(2,\); the inner lengths 3 and 2"),
        (lambda x: pb.inner(x, np.ones(2)), ShapeError, r"inner: shapes \(2, 3\) and \(2,\)"),
        (lambda x: pb.vdot(x, np.ones(2)), ShapeError, r"vdot: shapes \(2, 3\) and \(2,\) have different numbers"),
        (lambda x: pb.tensordot(x, np.ones(2), 3), ShapeError, r"tensordot: axes=3 with shapes \(2, 3\) and \(2,\)"),
        (
            lambda x: pb.tensordot(x, x, 1),
            ShapeError,
            r"tensordot: axes \(1,\) of shape \(2, 3\) do not match axes \(0,\)",
        ),
        (lambda x: pb.tensordot(x, x, ([0, 1], [0])), ShapeError, "as many axes of a as of b"),
        (lambda x: pb.tensordot(x, x, ([5], [0])), ShapeError, "tensordot: axes of a: axis 5 is out of range"),
        (lambda x: pb.tensordot(x, x, "ab,c"), ArgumentError, "tensordot: axes must be a number or two lists"),
        (lambda x: pb.einsum(x, x), ArgumentError, "einsum.*the equation must be text, got Tensor"),
        (lambda x: pb.einsum("ij,jk", x), ArgumentError, "einsum: 'ij,jk' is for 2 operands, got 1"),
        (lambda x: pb.einsum("ijk", x), ShapeError, "einsum: operand 1 of 'ijk' is 'ijk', but has rank 2"),
        (lambda x: pb.einsum("i", x), ShapeError, "einsum: operand 1 of 'i' is 'i', but has rank 2"),
        (
            lambda x: pb.einsum("ij,jk", x, x),
            ShapeError,
            r"einsum: shapes \(2, 3\) and \(2, 3\) do not fit 'ij,jk': 'j' is 3 and 2",
        ),
        (lambda x: pb.einsum("ii", x), ShapeError, "'i' is 3 and 2|'i' is 2 and 3"),
        (lambda x: pb.einsum("ij->ii", x), ArgumentError, "the result 'ii' of 'ij->ii' repeats a label"),
        (lambda x: pb.einsum("ij->k", x), ArgumentError, "has one of no operand"),
        (lambda x: pb.einsum("i1", x), ArgumentError, "einsum: 'i1' in 'i1'; a term is letters"),
        (lambda x: pb.einsum("...j->j", x), ArgumentError, "needs '...' for the axes that are not named"),
    ],
)
def test_contraction_bad_input_raises(call, error, message):
    with pytest.raises(error, match=message):
        call(pb.tensor(np.ones((2, 3))))


class Words(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint32 * 8192)]


FIVES = {
    "matrix and column": (pb.matmul, (6, 5), (5, 1)),
    "matrix and vector": (pb.matmul, (6, 5), (5,)),
    "row and transposed matrix": (lambda x, y: pb.matmul(x, y.T), (1, 5), (6, 5)),
    "vector and transposed matrix": (lambda x, y: pb.matmul(x, y.T), (5,), (6, 5)),
    "cotangent of a row": (lambda x, y: pb.grad(lambda x: (x @ y).sum())(x), (1, 6), (6, 5)),
    "dot": (pb.dot, (6, 5), (5,)),
    "sum of rows": (lambda x, y: pb.sum(x, 1), (6, 5), ()),
    "sum of columns": (lambda x, y: pb.sum(x.T, 0), (6, 5), ()),
    "sum of last axis": (lambda x, y: pb.sum(x, -1), (2, 3, 5), ()),
}


@pytest.mark.parametrize("name", FIVES)
def test_products_of_five_float32_do_not_warn_of_uninitialised_memory(name):
    f, *shapes = FIVES[name]
    x, y = (np.linspace(-1, 1, int(np.prod(shape)), dtype="f4").reshape(shape) for shape in shapes)
    expected = f(x, y)
    call = ctypes.pythonapi["Py_IsInitialized"]
    call.argtypes = [Words]
    call(Words((ctypes.c_uint32 * 8192)(*[0x7FA00001] * 8192)))  # signalling NaNs are left on the stack
    np.testing.assert_array_equal(f(x, y), expected)
