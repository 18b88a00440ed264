"""``vmap`` of convolution, linear algebra, FFT, losses and random ops, against a Python loop over the examples."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, BatchedValueError, ShapeError

N = 3
rng = np.random.default_rng(11)


def normal(*shape: int) -> Any:
    return rng.normal(size=(N, *shape))


def positive(*shape: int) -> Any:
    return rng.uniform(0.5, 2.0, (N, *shape))


def whole(high: int, *shape: int) -> Any:
    return rng.integers(0, high, (N, *shape))


def square(n: int) -> Any:
    return normal(n, n) + np.eye(n) * np.arange(3, 3 + n)


def definite(n: int) -> Any:
    x = normal(n, n)
    return x @ x.swapaxes(-1, -2) + np.eye(n) * 2


BOXES = np.sort(rng.uniform(0.0, 1.0, (N, 2, 2, 2)), axis=2).reshape(N, 2, 4)
TURNS = np.array([1.0, 0.1, 0.2, -0.1, 0.9, 0.3, 0.01, 0.02]) + rng.uniform(0, 0.05, (N, 1, 8))
KNOTS = np.sort(normal(5), axis=-1)
WEIGHTS = np.array([[1.0, 0, 0, 2], [0] * 4, [1] * 4])
ONE_HOT = np.eye(4)[whole(4, 5)]

CASES: dict[str, tuple[Any, list[Any]]] = {
    # windows
    "conv1d": (lambda x, f: pb.conv1d(x, f), [normal(2, 5, 2), normal(3, 2, 2)]),
    "conv2d": (lambda x, f: pb.conv2d(x, f, 1, "same"), [normal(1, 4, 4, 2), normal(3, 3, 2, 2)]),
    "conv2d of one image": (lambda x, f: pb.conv2d(x, f, 2, 1, "NCHW"), [normal(2, 5, 4), normal(3, 2, 2, 1)]),
    "conv3d": (lambda x, f: pb.conv3d(x, f), [normal(1, 3, 3, 2, 1), normal(2, 2, 2, 1, 2)]),
    "conv2d_transpose": (
        lambda x, f: pb.conv2d_transpose(x, f, [2, 5, 5, 1], 2, "same"), [normal(2, 3, 3, 2), normal(2, 2, 1, 2)],
    ),
    "depthwise_conv2d": (lambda x, f: pb.depthwise_conv2d(x, f, 1, "same"), [normal(1, 4, 3, 2), normal(2, 2, 2, 2)]),
    "separable_conv2d": (
        lambda x, f, g: pb.separable_conv2d(x, f, g, 1, "valid"),
        [normal(1, 4, 3, 2), normal(2, 2, 2, 1), normal(1, 1, 2, 3)],
    ),
    "fused conv2d": (
        lambda x, f, b: pb.fused.conv2d(x, f, 1, "valid", bias=b, activation="elu"),
        [normal(1, 3, 3, 1), normal(2, 2, 1, 2), normal(2)],
    ),
    "max_pool": (lambda x: pb.max_pool(x, 2, 2, "same"), [normal(2, 5, 4, 2)]),
    "avg_pool": (lambda x: pb.avg_pool(x, [2, 3], 1, "same"), [normal(1, 4, 4, 2)]),
    "max_pool_with_argmax": (lambda x: pb.max_pool_with_argmax(x, 2, 2, "same", True), [normal(2, 4, 4, 2)]),
    "pool": (lambda x: pb.pool(x, 2, "avg", "same", 2), [normal(5, 5, 1)]),
    "dilation2d": (lambda x, f: pb.dilation2d(x, f, 1, "same"), [normal(1, 4, 4, 2), normal(2, 2, 2)]),
    # normalization, recurrence
    "batch_norm": (
        lambda x, m, v, o, s: pb.batch_norm(x, m, v, o, s),
        [normal(4, 2), normal(2), positive(2), normal(2), normal(2)],
    ),
    "layer_norm": (lambda x, o, s: pb.layer_norm(x, o, s), [normal(2, 4), normal(4), normal(4)]),
    "local_response_normalization": (lambda x: pb.local_response_normalization(x, 1), [normal(2, 2, 4)]),
    "basic_lstm_cell": (
        lambda k, b, x, c: pb.basic_lstm_cell(1.0, k, b, x, c, c),
        [normal(5, 8), normal(8), normal(1, 3), normal(1, 2)],
    ),
    "softmax": (lambda x: pb.softmax(x, 0), [normal(3, 2)]),
    "log_softmax": (lambda x: pb.log_softmax(x), [normal(3, 2)]),
    "leaky_relu": (lambda x: pb.leaky_relu(x, 0.3), [normal(3, 2)]),
    "gelu": (pb.gelu, [normal(3)]),
    # losses
    "huber_loss": (lambda x, y, w: pb.losses.huber_loss(x, y, w), [normal(4), normal(4), positive(4)]),
    "hinge_loss": (lambda x, y: pb.losses.hinge_loss(x, y), [whole(2, 4) * 1.0, normal(4)]),
    "log_loss": (lambda x, y: pb.losses.log_loss(x, y, reduction=2), [whole(2, 4) * 1.0, positive(4) / 3]),
    "cosine_distance": (lambda x, y: pb.losses.cosine_distance(x, y, 1), [normal(2, 4), normal(2, 4)]),
    "zero weights": (
        lambda x, w: pb.losses.compute_weighted_loss(x, w), [normal(4), WEIGHTS],
    ),
    "mean by weight": (
        lambda x, w: pb.losses.compute_weighted_loss(x, w, 1), [normal(2, 4), WEIGHTS],
    ),
    "sigmoid_cross_entropy": (lambda x, y: pb.losses.sigmoid_cross_entropy(x, y), [ONE_HOT, normal(5, 4)]),
    "softmax_cross_entropy": (lambda x, y: pb.losses.softmax_cross_entropy(x, y), [ONE_HOT, normal(5, 4)]),
    "sparse_softmax_cross_entropy": (
        lambda x, y: pb.losses.sparse_softmax_cross_entropy(x, y), [whole(4, 5), normal(5, 4)],
    ),
    # pictures
    "resize_bilinear": (lambda x: pb.image.resize_bilinear(x, [3, 5]), [normal(2, 4, 2, 1)]),
    "resize_nearest_neighbor": (lambda x: pb.image.resize_nearest_neighbor(x, [3, 5], True), [normal(4, 2, 1)]),
    "crop_and_resize": (
        lambda x, b, i: pb.image.crop_and_resize(x, b, i, [3, 2]), [normal(2, 5, 5, 1), BOXES, whole(2, 2)],
    ),
    "crop_and_resize nearest": (
        lambda x, b: pb.image.crop_and_resize(x, b, [0, 0], [3, 2], "nearest"), [normal(1, 5, 5, 1), BOXES],
    ),
    "transform": (lambda x, t: pb.image.transform(x, t, "bilinear"), [normal(1, 4, 5, 2), TURNS]),
    "transform reflect": (lambda x, t: pb.image.transform(x, t, "nearest", "reflect"), [normal(2, 4, 5, 1), TURNS * 2]),
    "flip_left_right": (pb.image.flip_left_right, [normal(1, 2, 3, 1)]),
    "grayscale_to_rgb": (pb.image.grayscale_to_rgb, [normal(2, 3, 1)]),
    "rgb_to_grayscale": (pb.image.rgb_to_grayscale, [normal(2, 2, 3)]),
    # matrices
    "inv": (pb.linalg.inv, [square(3)]),
    "det": (pb.linalg.det, [square(3)]),
    "slogdet": (pb.linalg.slogdet, [square(3)]),
    "pinv": (pb.linalg.pinv, [normal(4, 2)]),
    "cholesky": (pb.linalg.cholesky, [definite(3)]),
    "eigvalsh": (pb.linalg.eigvalsh, [definite(3)]),
    "eigh": (lambda x: (lambda w, v: (w, v * v))(*pb.linalg.eigh(x)), [definite(3)]),
    "svdvals": (pb.linalg.svdvals, [normal(3, 2)]),
    "svd": (lambda x: (lambda u, s, v: (u * u, s, v * v))(*pb.linalg.svd(x)), [normal(3, 2)]),
    "svd completed": (lambda x: pb.linalg.svd(x, full_matrices=True).U ** 2, [normal(3, 2)]),
    "qr": (pb.linalg.qr, [square(3)]),
    "qr completed": (lambda x: pb.linalg.qr(x, full_matrices=True).Q ** 2, [normal(3, 2)]),
    "gram_schmidt": (pb.linalg.gram_schmidt, [square(3)]),
    "solve a vector": (pb.linalg.solve, [square(3), normal(3)]),
    "solve columns": (pb.linalg.solve, [square(3), normal(3, 2)]),
    "solve many for one": (lambda x, y: pb.linalg.solve(np.stack([x, x + np.eye(3)]), y), [square(3), normal(3)]),
    "triangular_solve": (lambda x, y: pb.linalg.triangular_solve(x, y, False, True), [square(3), normal(3)]),
    "lstsq": (lambda a, b: pb.linalg.lstsq(a, b).x, [normal(4, 2), normal(4)]),
    "matrix_power": (lambda x: pb.linalg.matrix_power(x, -3), [square(2)]),
    "multi_dot": (lambda x, y, z: pb.linalg.multi_dot([x, y, z]), [normal(2), normal(2, 3), normal(3)]),
    "matrix_norm": (lambda x: pb.linalg.matrix_norm(x, "nuc"), [normal(3, 2)]),
    "cond": (pb.linalg.cond, [square(2)]),
    "matrix_rank": (pb.linalg.matrix_rank, [normal(3, 2)]),
    "trace": (pb.linalg.trace, [normal(3, 2)]),
    "band_part": (lambda x: pb.linalg.band_part(x, 1, 0), [normal(3, 4)]),
    "diag": (pb.diag, [normal(2, 2)]),
    "tensor_diag_part": (pb.linalg.tensor_diag_part, [normal(2, 3, 2, 3)]),
    "diag_embed": (lambda x: pb.linalg.diag_embed(x, 1), [normal(2, 2)]),
    # spectra, signals, complex numbers
    "fft": (lambda x: pb.spectral.fft(x, 5, 0), [normal(4, 2)]),
    "rfft and back": (lambda x: pb.spectral.irfft(pb.spectral.rfft(x) ** 2, 6), [normal(2, 6)]),
    "fftn": (lambda x: pb.spectral.fftn(x, None, (0, 2)), [normal(2, 3, 4)]),
    "irfft2": (lambda x: pb.spectral.irfft2(pb.spectral.rfft2(x)) ** 2, [normal(3, 4)]),
    "hfft": (pb.spectral.hfft, [normal(4)]),
    "fftshift": (pb.spectral.fftshift, [normal(5, 2)]),
    "frame": (lambda x: pb.signal.frame(x, 3, 2, True), [normal(2, 6)]),
    "overlap_and_add": (lambda x: pb.signal.overlap_and_add(x, 2), [normal(3, 3)]),
    "stft": (lambda x: pb.signal.stft(x, 4, 2), [normal(10)]),
    "complex": (lambda x, y: pb.abs(pb.complex(x, y)) * pb.angle(pb.complex(x, y)), [normal(3), normal(2, 1)]),
    # special functions and norms
    "digamma": (pb.special.digamma, [positive(3)]),
    "ive": (lambda x: pb.special.ive(2, x), [positive(3)]),
    "i0e, i1e": (lambda x: pb.special.i0e(x) * pb.special.i1e(x), [normal(3)]),
    "xlogy": (pb.special.xlogy, [normal(3), positive(2, 1)]),
    "polygamma": (pb.special.polygamma, [whole(3, 2) + 1, positive(2)]),
    "euclidean_norm": (lambda x: pb.norm(x, 2, 0), [normal(3, 2)]),
    "p_norm": (lambda x: pb.norm(x, 3), [normal(3)]),
    "abs, sign, relu": (lambda x: pb.abs(x) + np.sign(x) * pb.relu(x), [normal(3)]),
    "round": (lambda x: pb.round(x, 1) + x, [normal(3)]),
    # NumPy's names
    "np.linalg.svd": (lambda x: np.linalg.svd(x)[1], [normal(2, 3)]),
    "np.linalg.eigh": (lambda x: np.linalg.eigh(x)[0], [definite(3)]),
    "np.linalg.lstsq": (lambda a, b: np.linalg.lstsq(a, b)[:2], [normal(4, 2), normal(4)]),
    "np.linalg.norm": (lambda x: np.linalg.norm(x, 1, (0, 1)), [normal(3, 2)]),
    "np.interp": (lambda x, xp, fp: np.interp(x, xp, fp), [normal(4), KNOTS, normal(5)]),
    "np.convolve": (lambda x, y: np.convolve(x, y, "same"), [normal(5), normal(3)]),
    "np.correlate": (lambda x, y: np.correlate(x, y), [normal(3), normal(5)]),
    "np.einsum": (lambda x, y: np.einsum("iij,jk->ki", x, y), [normal(2, 2, 3), normal(3, 4)]),
    "np.einsum trace": (lambda x: np.einsum("ii", x), [normal(3, 3)]),
    "np.tensordot": (lambda x, y: np.tensordot(x, y, 1), [normal(2, 3), normal(3, 2)]),
    "np.kron": (lambda x, y: np.kron(x, y), [normal(2), normal(2, 2)]),
    "np.cross": (lambda x, y: np.cross(x, y), [normal(3), normal(2, 3)]),
    "np.polyval": (lambda p, x: np.polyval(p, x), [normal(3), normal(2)]),
    "np.vander": (lambda x: np.vander(x, 3), [normal(3)]),
    "np.maximum.accumulate": (lambda x: np.maximum.accumulate(x, 0), [normal(4, 2)]),
    "np.copysign": (lambda x, y: np.copysign(x, y) + y, [normal(3), normal(3)]),
    "np.ldexp": (lambda x, n: np.ldexp(x, n), [normal(3), whole(4, 3)]),
    "np.sinc": (lambda x: np.sinc(x), [normal(3)]),
    "np.fft.fft2": (lambda x: np.fft.fft2(x), [normal(2, 3)]),
}  # fmt: skip
CALLS = [
    pytest.param(f, args, on, id=f"{name} {''.join('.x'[b] for b in on)}")
    for name, (f, args) in CASES.items()
    for on in product((False, True), repeat=len(args))
    if any(on)
]


def parts(z: Any) -> list[Any]:
    return [*z] if isinstance(z, tuple | list) else [z]


def example(args: list[Any], on: Any, i: int) -> list[Any]:
    return [a[i if b else 0] for a, b in zip(args, on, strict=True)]


def select_args(args: list[Any], on: Any) -> list[Any]:
    return [a if b else a[0] for a, b in zip(args, on, strict=True)]


def axes(on: Any) -> list[Any]:
    return [0 if b else None for b in on]


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-9, atol=1e-10)


def weigh(z: Any) -> Any:
    """Return one real number that every element of every part enters differently."""
    total = 0.0
    for part in parts(z):
        if part.dtype.kind not in "fc":
            continue
        weights = np.cos(np.arange(1.0, 1 + part.size)).reshape(part.shape)
        total = total + np.sum(pb.real(part) * weights)
        if part.dtype.kind == "c":
            total = total + np.sum(pb.imag(part) * (weights + 1))
    return total


@pytest.mark.parametrize(("f", "args", "on"), CALLS)
def test_vmap_values_match_loop(f: Any, args: list[Any], on: Any) -> None:
    got = parts(pb.vmap(f, axes(on))(*select_args(args, on)))
    for i in range(N):
        want = parts(f(*example(args, on, i)))
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            assert g[i].shape == np.shape(w)
            assert g.dtype == getattr(w, "dtype", g.dtype)
            close(g[i], w)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("f", "args", "on"), [call for call in CALLS if "rank" not in str(call.id)])
def test_vmap_gradients_match_loop(f: Any, args: list[Any], on: Any) -> None:
    live = [i for i, a in enumerate(args) if a.dtype.kind == "f"]

    def slope(*all_of_it: Any) -> Any:
        def loss(*some: Any) -> Any:
            put = dict(zip(live, some, strict=True))
            return weigh(f(*(put.get(i, x) for i, x in enumerate(all_of_it))))

        return pb.grads(loss)([all_of_it[i] for i in live])

    want = [slope(*example(args, on, i)) for i in range(N)]
    got = pb.vmap(slope, axes(on))(*select_args(args, on))
    for k in range(len(live)):
        close(got[k], np.stack([w[k] for w in want]))

    def whole_loss(*some: Any) -> Any:
        put = dict(zip(live, some, strict=True))
        every = [put.get(i, x) for i, x in enumerate(select_args(args, on))]
        return np.sum(pb.vmap(lambda *xs: weigh(f(*xs)), axes(on))(*every))

    outside = pb.grads(whole_loss)([select_args(args, on)[i] for i in live])
    for k, i in enumerate(live):
        rows = np.stack([w[k] for w in want])
        close(outside[k], rows if on[i] else rows.sum(0))
    starts = [select_args(args, on)[i] for i in live]
    _, forward = pb.jvp(whole_loss, starts, [np.ones_like(x) for x in starts])
    close(forward, sum(np.sum(d) for d in outside))


# ---- chance

SEEDS = np.array([5, 0, 12])
ALPHAS = positive(2)
DRAWS: dict[str, tuple[Any, list[Any]]] = {
    "normal": (lambda s: pb.random.normal((3,), seed=s), [SEEDS]),
    "normal moved": (lambda s, m: pb.random.normal(None, m, 2.0, seed=s), [SEEDS, normal(2)]),
    "standard_normal": (lambda s: pb.random.standard_normal((2, 2), "float64", s), [SEEDS]),
    "truncated_normal": (lambda s: pb.random.truncated_normal((50,), seed=s), [SEEDS]),
    "uniform": (lambda s, x: pb.random.uniform((3,), 0, x, seed=s), [SEEDS, positive()]),
    "uniform of integers": (lambda s: pb.random.uniform((3,), 0, 9, "int32", s), [SEEDS]),
    "exponential": (lambda s, x: pb.random.exponential((3,), x, seed=s), [SEEDS, positive()]),
    "gamma": (lambda s, a: pb.random.gamma((4, 2), a, seed=s), [SEEDS, ALPHAS]),
    "gamma by rate": (lambda s, b: pb.random.gamma((4,), 2.0, b, seed=s), [SEEDS, positive()]),
    "uniform_int": (lambda s, high: pb.random.uniform_int((6,), 0, high, seed=s), [SEEDS, whole(9) + 1]),
    "bernoulli": (lambda s, p: pb.random.bernoulli((6,), p, seed=s), [SEEDS, rng.uniform(0, 1, N)]),
    "poisson": (lambda s, x: pb.random.poisson((6,), x, seed=s), [SEEDS, positive()]),
    "categorical": (lambda s, x: pb.random.categorical(x, 6, seed=s), [SEEDS, normal(2, 3)]),
    "multinomial": (lambda s, x: pb.multinomial(x, 6, s, True), [SEEDS, positive(3)]),
    "permutation": (lambda s: pb.random.permutation(6, s), [SEEDS]),
    "shuffle": (lambda s, x: pb.random.shuffle(x, 1, s), [SEEDS, normal(2, 6)]),
    "dropout": (lambda s, x: pb.dropout(x, 0.4, seed=s), [SEEDS, normal(6)]),
    "dropout by rate": (lambda s, r: pb.dropout(np.ones(9), r, [9], s), [SEEDS, np.array([0.1, 0.5, 0.9])]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("f", "args", "on"),
    [
        pytest.param(f, args, on, id=f"{name} {''.join('.x'[b] for b in on)}")
        for name, (f, args) in DRAWS.items()
        for on in product((False, True), repeat=len(args))
        if any(on)
    ],
)
def test_vmap_of_random_op_matches_loop_over_seeds(f: Any, args: list[Any], on: Any) -> None:
    got = pb.vmap(f, axes(on))(*select_args(args, on))
    for i in range(N):
        seed, *more = example(args, on, i)
        want = f(int(seed), *more)
        assert got.dtype == want.dtype
        close(got[i], want)


@pytest.mark.parametrize(
    "f",
    [
        lambda s, a: pb.random.gamma(None, a, seed=s),
        lambda s, a: pb.random.normal(None, a, a * a, seed=s),
        lambda s, a: pb.dropout(a, 0.3, seed=s),
        lambda s, a: pb.random.shuffle(a * a, seed=s),
    ],
)
def test_vmap_of_grad_of_random_op_matches_loop(f: Any) -> None:
    slope = lambda s, a: pb.grad(lambda a: weigh(f(s, a)))(a)
    want = np.stack([slope(int(s), a) for s, a in zip(SEEDS, ALPHAS, strict=True)])
    close(pb.vmap(slope)(SEEDS, ALPHAS), want)
    close(pb.grad(lambda a: np.sum(pb.vmap(lambda s, a: weigh(f(s, a)))(SEEDS, a)))(ALPHAS), want)


def test_vmap_of_random_op_without_seed() -> None:
    shared = pb.vmap(lambda x: x + pb.random.normal((4,), dtype="float64"))(np.zeros(N))
    assert np.array_equal(shared[0], shared[1])
    own = pb.vmap(lambda a: pb.random.gamma((4,), a))(np.ones(N))
    assert not np.array_equal(own[0], own[1])


# ---- further nestings, and what is refused


def test_nested_vmap_of_conv1d() -> None:
    x, f = rng.normal(size=(2, N, 1, 4, 2)), rng.normal(size=(2, N, 2, 2, 3))
    slope = lambda x, f: pb.grads(lambda x, f: weigh(pb.conv1d(x, f)))([x, f])
    got = pb.vmap(pb.vmap(slope))(x, f)
    for i, j in product(range(2), range(N)):
        for g, w in zip(got, slope(x[i, j], f[i, j]), strict=True):
            close(g[i, j], w)
    crossed = pb.vmap(pb.vmap(pb.conv1d, [None, 0]), [0, None])(x[:, 0], f[0])
    close(crossed[1, 2], pb.conv1d(x[1, 0], f[0, 2]))


@pytest.mark.parametrize("f", [pb.conv1d, lambda x, f: pb.depthwise_conv2d(x[:, None], f[None])])
def test_vmap_of_conv_with_zero_examples(f: Any) -> None:
    x, w = np.ones((0, 1, 4, 2)), np.ones((0, 2, 2, 3))
    assert pb.vmap(f)(x, w).shape == (0, *f(x[:0].sum(0), w[:0].sum(0)).shape)
    assert pb.vmap(f, [0, None])(x, np.ones((2, 2, 3))).shape[0] == 0


def test_vmap_of_random_op_with_zero_seeds() -> None:
    assert pb.vmap(lambda s: pb.random.normal((3,), seed=s))(np.arange(0)).shape == (0, 3)


def test_vmap_of_second_derivative_of_conv1d() -> None:
    x, f = normal(1, 4, 1), normal(2, 1, 2)
    bend = lambda x, f: pb.grad(lambda f: np.sum(pb.grad(lambda x: np.sum(pb.conv1d(x, f) ** 3))(x) ** 2))(f)
    close(pb.vmap(bend)(x, f), np.stack([bend(a, b) for a, b in zip(x, f, strict=True)]))


def test_vmap_of_non_max_suppression() -> None:
    boxes, scores = rng.uniform(0, 1, (N, 5, 4)), rng.uniform(0, 1, (N, 5))
    padded = lambda b, s: pb.image.non_max_suppression_padded(b, s, 4, 0.2, pad_to_max_output_size=True)
    got = pb.vmap(padded)(boxes, scores)
    for i in range(N):
        want = padded(boxes[i], scores[i])
        close(got.selected_indices[i], want.selected_indices)
        close(got.valid_outputs[i], want.valid_outputs)
    with pytest.raises(BatchedValueError, match="Use non_max_suppression_padded"):
        pb.vmap(lambda b, s: pb.image.non_max_suppression(b, s, 4))(boxes, scores)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: pb.vmap(lambda i: pb.losses.sparse_softmax_cross_entropy(i, np.ones((1, 3))))(np.array([[1], [7]])),
            ShapeError, "the label 7 is not one of the 3 classes",
        ),
        (
            lambda: pb.vmap(lambda i: pb.image.crop_and_resize(np.ones((1, 2, 2, 1)), BOXES[0, :1], i, [1, 1]))(
                np.array([[0], [4]])
            ),
            ArgumentError, "box_ind must be from 0 to 0",
        ),
        (lambda: pb.vmap(lambda p: pb.random.bernoulli((2,), p))(np.array([0.5, 1.5])), ArgumentError, "got 1.5"),
        (lambda: pb.vmap(lambda r: pb.dropout(np.ones(2), r))(np.array([0.5, 1.5])), ArgumentError, "less than 1"),
        (lambda: pb.vmap(lambda s: pb.random.normal((2,), seed=s))(np.array([0.5])), ArgumentError, "seed must be"),
        (lambda: pb.vmap(pb.linalg.gram_schmidt)(np.ones((2, 2, 2))), pb.errors.MatrixError, "linearly dependent"),
    ],
)  # fmt: skip
def test_vmap_of_bad_arguments_raises(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
