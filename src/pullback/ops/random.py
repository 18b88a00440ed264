"""Chance: tensors of random numbers, differentiable in their parameters where the draw can be held fixed.

Underneath are NumPy's generators.  ``seed`` is ``None`` for the generator of the process (see ``seed``), an integer for
the same numbers every time, or a ``numpy.random.Generator``, which is used as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core.axes import Sample, elementwise2, moves, one_axis
from pullback.core.calculus import partials
from pullback.core.convert import as_dtype, as_shape, get_default_dtype
from pullback.core.gammas import density_slope, share_slope
from pullback.core.op import method, op, operand
from pullback.core.tape import TAPED, constant
from pullback.core.tensor import Tensor, concrete
from pullback.errors import ArgumentError, ShapeError

__all__ = [
    "bernoulli", "categorical", "dropout", "exponential", "gamma", "multinomial", "normal", "permutation", "poisson",
    "rand", "random_gamma", "random_normal", "random_standard_normal", "random_uniform", "random_uniform_int", "seed",
    "shuffle", "standard_normal", "truncated_normal", "uniform", "uniform_int",
]  # fmt: skip

Shape = tuple[int, ...]
_process: np.random.Generator | None = None  # made when it is first asked: importing NumPy's generators takes time


# ---- what the functions share


def seed(seed: Any = None) -> None:
    """Begin the generator of the process anew, from a number; ``None`` is a new beginning from chance.

    >>> pb.random.seed(7)
    >>> x = pb.random.normal([3])
    >>> pb.random.seed(7)
    >>> bool(pb.all(pb.random.normal([3]) == x))
    True
    """
    global _process
    _process = None if seed is None else _generator("seed", seed)


def _of_the_process() -> np.random.Generator:
    global _process
    if _process is None:
        _process = np.random.default_rng()
    return _process


def _generator(name: str, seed: Any) -> np.random.Generator:
    if seed is None:
        return _of_the_process()
    if isinstance(seed, np.random.Generator):
        return seed
    number = concrete(seed)
    whole = isinstance(number, int | np.integer) or (isinstance(number, float | np.floating) and number.is_integer())
    if isinstance(number, bool) or not whole:
        raise ArgumentError(f"{name}: seed must be None, an integer or a numpy.random.Generator, got {seed!r}.")
    n = int(number)
    return np.random.default_rng(n if n >= 0 else [-n, 1])  # NumPy's seeds have no sign


def _parameters(name: str, shape: Any, dtype: Any, **given: Any) -> tuple[Any, ...]:
    """The shape of the result, its dtype, and the parameters, all broadcast to that shape if it is not given."""
    made = {n: operand(x) for n, x in given.items()}
    wanted = None if shape is None else as_shape(name, shape)
    try:
        whole = np.broadcast_shapes(*[x.shape for x in made.values()])
        wanted = whole if wanted is None else wanted
        fits = np.broadcast_shapes(whole, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        listed = ", ".join(f"{n} of shape {x.shape}" for n, x in made.items())
        into = "one shape" if wanted is None else f"the shape {wanted} of the result"
        raise ShapeError(f"{name}: {listed} must broadcast to {into}.")
    floats = [x.dtype for n, x in made.items() if hasattr(given[n], "dtype") and x.dtype.kind == "f"]
    kind = as_dtype(dtype, name) if dtype is not None else np.result_type(*floats) if floats else get_default_dtype()
    return (wanted, kind, *made.values())


def _cut(name: str, x: Any) -> Any:
    """The plain value of a parameter in which the draw has no derivative."""
    x = operand(x)
    if type(x) in TAPED and x.level:
        x.meta.tape.cut(name)
    return concrete(x)


def _moved(noise: Any, scale: Any, shift: Any, kind: np.dtype[Any]) -> Any:
    """``noise * scale + shift`` as a tensor: with the noise held fixed it is differentiable in both."""
    float_kind = kind if kind.kind == "f" else np.dtype(np.float64)
    z = constant(noise.astype(float_kind, copy=False)) * _narrow(scale, float_kind) + _narrow(shift, float_kind)
    if kind.kind != "f":
        return constant(np.rint(_cut("astype", z)).astype(kind))
    return z if z.dtype == kind else z.astype(kind)


def _narrow(x: Any, kind: np.dtype[Any]) -> Any:
    """A parameter in the dtype of the result."""
    return x if x.dtype == kind else x.astype(kind)


def _checked(name: str, what: str, x: Any, low: float, high: float = math.inf, strict: bool = False) -> Any:
    """The plain values of a parameter, within their bounds."""
    x = np.asarray(concrete(x))
    bad = ~((x > low if strict else x >= low) & (x <= high))
    if bad.any():
        bounds = f"between {low:g} and {high:g}" if high < math.inf else f"{'above' if strict else 'at least'} {low:g}"
        raise ArgumentError(f"{name}: {what} must be {bounds}, got {x[bad].flat[0]:g}.")
    return x


# ---- continuous, and differentiable in their parameters


def _normal(generator: np.random.Generator, shape: Any, kind: np.dtype[Any]) -> Any:
    return np.asarray(generator.standard_normal(shape, np.float32 if kind == np.float32 else np.float64))


def normal(shape: Any = None, mean: Any = 0.0, std_dev: Any = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """Normally distributed numbers, differentiable in ``mean`` and ``std_dev``, which may be tensors.

    Without ``shape`` there is one number for each element of the parameters.

    >>> pb.random.normal([2, 3], seed=1).shape
    (2, 3)
    >>> pb.grad(lambda mean: pb.sum(pb.random.normal([4], mean)))(0.0)
    4.0
    """
    wanted, kind, mean, std_dev = _parameters("normal", shape, dtype, mean=mean, std_dev=std_dev)
    return _moved(_normal(_generator("normal", seed), wanted, kind), std_dev, mean, kind)


def standard_normal(shape: Any, dtype: Any = None, seed: Any = None) -> Any:
    """Normally distributed numbers of mean 0 and standard deviation 1.

    >>> pb.random.standard_normal([2], seed=1).shape
    (2,)
    """
    return normal(shape, dtype=dtype, seed=seed)


def truncated_normal(
    shape: Any = None, mean: Any = 0.0, std_dev: Any = 1.0, dtype: Any = None, seed: Any = None
) -> Any:
    """``normal`` without what is further than two standard deviations from the mean; that is drawn again.

    >>> bool(pb.all(pb.abs(pb.random.truncated_normal([1000], seed=1)) <= 2))
    True
    """
    wanted, kind, mean, std_dev = _parameters("truncated_normal", shape, dtype, mean=mean, std_dev=std_dev)
    generator = _generator("truncated_normal", seed)
    noise = _normal(generator, wanted, kind)
    while (far := np.abs(noise) > 2).any():
        noise[far] = _normal(generator, int(far.sum()), kind)
    return _moved(noise, std_dev, mean, kind)


def uniform(shape: Any = None, minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """Numbers equally likely between ``minval`` and ``maxval``, differentiable in both.

    >>> pb.random.uniform([2], 3, 4, seed=1) >= 3
    Tensor([True, True], dtype=bool)
    """
    wanted, kind, low, high = _parameters("uniform", shape, dtype, minval=minval, maxval=maxval)
    if kind.kind in "iu":
        return uniform_int(wanted, low, high, kind, seed)
    generator = _generator("uniform", seed)
    noise = generator.random(wanted, np.float32) if kind == np.float32 else generator.random(wanted)
    return _moved(np.asarray(noise), high - low, low, kind)


def exponential(shape: Any = None, scale: Any = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """Waiting times of mean ``scale``, differentiable in it.

    >>> bool(pb.all(pb.random.exponential([5], seed=1) >= 0))
    True
    """
    wanted, kind, scale = _parameters("exponential", shape, dtype, scale=scale)
    _checked("exponential", "scale", scale, 0)
    return _moved(np.asarray(_generator("exponential", seed).standard_exponential(wanted)), scale, np.zeros(()), kind)


# ---- gamma: implicit differentiation


class _Orders(moves):
    """Broadcasting of two inputs, with an order ``n``."""

    def __init__(self) -> None:
        samples: list[Sample] = [
            (((), ()), {"n": 1}), (((3,), (3,)), {"n": 2}), (((0, 2), (2,)), {"n": 1}), (((2, 1), (3,)), {"n": 0}),
        ]  # fmt: skip
        super().__init__(lambda alpha, at, n: elementwise2.shape("gamma", (alpha, at), {}), samples)


def _in_kind(compute: Callable[[Any, Any, int], Any]) -> Any:
    """The kernel of a slope: computed in float64, given in the dtype of the inputs."""

    def run(alpha: Any, at: Any, n: int) -> Any:
        return compute(alpha, at, n).astype(np.result_type(alpha, at))

    return run


def _density_by_alpha(g: Any, z: Any, alpha: Any, at: Any, n: int) -> Any:
    return g * (gamma_density_slope(alpha, at, n + 1) - z * gamma_density_slope(alpha, at, 1))


def _density_by_at(g: Any, alpha: Any, at: Any, n: int) -> Any:
    return g * gamma_density_slope(alpha, at, n - 1) * n / at if n else g * 0.0


@op(_in_kind(density_slope), acts=_Orders(), d=partials(_density_by_alpha, _density_by_at), domain=(0.5, 3.0))
def gamma_density_slope(alpha: Any, at: Any, /, n: int) -> Any:
    """The derivative of order ``n`` by ``alpha`` of the density of Gamma(alpha, 1), divided by the density.

    >>> pb.tensor([1.0]).gamma_density_slope([1.0], 1)
    Tensor([0.5772157], dtype=float32)
    """


def _share_by_alpha(g: Any, z: Any, alpha: Any, at: Any, n: int) -> Any:
    return g * (gamma_share_slope(alpha, at, n + 1) - z * gamma_density_slope(alpha, at, 1))


def _share_by_at(g: Any, z: Any, alpha: Any, at: Any, n: int) -> Any:
    return g * (gamma_density_slope(alpha, at, n) - z * ((alpha - 1) / at - 1))


@op(_in_kind(share_slope), acts=_Orders(), d=partials(_share_by_alpha, _share_by_at), domain=(0.5, 3.0))
def gamma_share_slope(alpha: Any, at: Any, /, n: int) -> Any:
    """The derivative of order ``n`` by ``alpha`` of the distribution function of Gamma(alpha, 1), by the density.

    >>> pb.tensor([1.0]).gamma_share_slope([1.0], 0)
    Tensor([1.7182819], dtype=float32)
    """


def _carried(alpha: Any, draw: Any, origin: Any) -> Any:
    """From ``origin`` to ``alpha`` along the curve on which the distribution function is constant (Runge-Kutta)."""
    if np.array_equal(alpha, origin):
        return draw
    far = np.max(np.abs(alpha / origin - 1), initial=0.0)
    steps = 1 + int(16 * far)
    h, a, z = (alpha - origin) / steps, np.asarray(origin, np.float64), np.asarray(draw, np.float64)
    for _ in range(steps):
        k1 = -share_slope(a, z, 1)
        k2 = -share_slope(a + h / 2, z + h / 2 * k1, 1)
        k3 = -share_slope(a + h / 2, z + h / 2 * k2, 1)
        k4 = -share_slope(a + h, z + h * k3, 1)
        a, z = a + h, z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return z.astype(draw.dtype)


def _draws() -> list[Sample]:
    alphas = [np.array(1.5), np.array([0.5, 1.0, 4.0]), np.array([[0.1], [20.0]]), np.zeros((0, 2))]
    draws = [np.array(0.7), np.array([0.3, 2.0, 3.0]), np.array([[0.2], [24.0]]), np.zeros((0, 2))]
    return [((alpha, draw, alpha), {}) for alpha, draw in zip(alphas, draws, strict=True)]


@op(
    _carried,
    acts=moves(lambda alpha, draw, origin: draw, _draws()),
    d=partials(lambda g, z, alpha: -(g * gamma_share_slope(alpha, z, 1)), None, None),
)
def gamma_draw(alpha: Any, draw: Any, origin: Any, /) -> Any:
    """What the draw from Gamma(origin, 1) would have been from Gamma(alpha, 1): its share below it is the same.

    So the derivative by ``alpha`` is minus that of the distribution function, divided by the density.

    >>> pb.tensor(np.array([2.0])).gamma_draw(np.array([1.0]), np.array([1.0]))
    Tensor([2.14619322], dtype=float64)
    """


def gamma(shape: Any = None, alpha: Any = 1.0, beta: Any = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """Gamma distributed numbers of shape parameter ``alpha`` and rate ``beta``, differentiable in both, to any order.

    >>> pb.random.gamma([3], 2.0, seed=1).shape
    (3,)
    >>> alpha = np.array([0.5, 2.0, 30.0])
    >>> pb.grad(lambda alpha: pb.random.gamma(None, alpha, seed=1))(alpha)  # on average 1, as the mean is alpha
    array([...])
    """
    wanted, kind, alpha, beta = _parameters("gamma", shape, dtype, alpha=alpha, beta=beta)
    origin = np.broadcast_to(_checked("gamma", "alpha", alpha, 0, strict=True), wanted)
    _checked("gamma", "beta", beta, 0, strict=True)
    if kind.kind != "f":
        raise ArgumentError(f"gamma: dtype must be a float, got {kind}.")
    origin = origin.astype(kind)
    draw = np.asarray(_generator("gamma", seed).standard_gamma(origin)).astype(kind)
    draw = np.maximum(draw, np.finfo(kind).tiny)[()]  # a shape parameter near 0 gives less than the least number
    if isinstance(alpha, Tensor):
        z = gamma_draw(np.broadcast_to(_narrow(alpha, kind), wanted), draw, origin[()])
    else:
        z = constant(draw)
    return z / _narrow(beta, kind) if isinstance(beta, Tensor) or not np.all(beta == 1) else z


# ---- whole numbers: no derivative


def uniform_int(shape: Any, minval: Any, maxval: Any, dtype: Any = "int32", seed: Any = None) -> Tensor:
    """Integers equally likely from ``minval`` up to but without ``maxval``.

    >>> bool(pb.all(pb.random.uniform_int([100], 3, 5, seed=1) < 5))
    True
    """
    low, high = (np.asarray(_cut("uniform_int", x)) for x in (minval, maxval))
    if not np.all(low < high):
        raise ArgumentError(f"uniform_int: minval must be less than maxval, got {minval} and {maxval}.")
    wanted = _parameters("uniform_int", shape, None, minval=low, maxval=high)[0]
    low, high = (np.ceil(x).astype(np.int64) for x in (low, high))
    made = _generator("uniform_int", seed).integers(low, high, wanted)
    return constant(np.asarray(made).astype(as_dtype(dtype, "uniform_int")))


def bernoulli(shape: Any = None, p: Any = 0.5, dtype: Any = None, seed: Any = None) -> Tensor:
    """1 with probability ``p``, else 0.

    >>> pb.random.bernoulli([4], 1.0)
    Tensor([1., 1., 1., 1.], dtype=float32)
    """
    wanted, kind, p = _parameters("bernoulli", shape, dtype, p=p)
    p = _checked("bernoulli", "p", _cut("bernoulli", p), 0, 1)
    return constant(np.asarray(_generator("bernoulli", seed).random(wanted) < p).astype(kind))


def poisson(shape: Any = None, lam: Any = 1.0, dtype: Any = None, seed: Any = None) -> Tensor:
    """How often what happens ``lam`` times on average has happened.

    >>> pb.random.poisson([3], 0.0)
    Tensor([0., 0., 0.], dtype=float32)
    """
    wanted, kind, lam = _parameters("poisson", shape, dtype, lam=lam)
    lam = _checked("poisson", "lam", _cut("poisson", lam), 0)
    return constant(np.asarray(_generator("poisson", seed).poisson(lam, wanted)).astype(kind))


def categorical(logits: Any, num_samples: int, dtype: Any = "int32", seed: Any = None) -> Tensor:
    """Classes drawn with the probabilities ``softmax(logits)`` over the last axis: ``num_samples`` for each row.

    >>> pb.random.categorical(np.array([[0.0, 100.0], [100.0, 0.0]]), 3)
    Tensor([[1, 1, 1], [0, 0, 0]], dtype=int32)
    """
    x = np.asarray(_cut("categorical", logits), np.float64)
    _classed("categorical", "logits", x)
    top = np.max(x, axis=-1, keepdims=True)
    if not np.isfinite(top).all():
        raise ArgumentError("categorical: every row of logits must have a largest one that is finite.")
    return _picked("categorical", np.exp(x - top), num_samples, dtype, seed)


def multinomial(logits: Any, num_samples: int, seed: Any = None, normalized: bool = False) -> Tensor:
    """``categorical`` as TensorFlow.js calls it; with ``normalized`` the logits are probabilities already.

    >>> pb.multinomial([0.0, 1.0], 4, normalized=True)
    Tensor([1, 1, 1, 1], dtype=int32)
    """
    if not normalized:
        return categorical(logits, num_samples, seed=seed)
    p = np.asarray(_cut("multinomial", logits), np.float64)
    _classed("multinomial", "logits", p)
    return _picked("multinomial", _checked("multinomial", "a probability", p, 0), num_samples, "int32", seed)


def _classed(name: str, what: str, x: Any) -> None:
    if not x.ndim or not x.shape[-1]:
        raise ShapeError(f"{name}: {what} must have a last axis of at least one class, got shape {x.shape}.")


def _picked(name: str, p: Any, num_samples: Any, dtype: Any, seed: Any) -> Tensor:
    """Positions along the last axis, as likely as ``p`` says, which need not add up to 1."""
    (n,) = as_shape(f"{name}: num_samples", [num_samples])
    rows, classes = math.prod(p.shape[:-1]), p.shape[-1]
    below = np.cumsum(p.reshape(rows, classes), axis=1)
    if not np.all(below[:, -1] > 0):
        raise ArgumentError(f"{name}: the probabilities of a row must not all be 0.")
    below /= below[:, -1:]
    share = _generator(name, seed).random((rows, n))
    made = np.empty((rows, n), np.int64)
    for i in range(rows):
        made[i] = np.searchsorted(below[i], share[i], side="right")
    return constant(made.reshape(*p.shape[:-1], n).astype(as_dtype(dtype, name)))


# ---- of tensors that are there


def permutation(n: int, seed: Any = None) -> Tensor:
    """The integers from 0 to ``n - 1`` in random order.

    >>> pb.sum(pb.random.permutation(5)).item()
    10
    """
    (n,) = as_shape("permutation: n", [n])
    return constant(_generator("permutation", seed).permutation(n).astype(np.int32))


def shuffle(x: Any, axis: int = 0, seed: Any = None) -> Any:
    """``x`` with its slices along ``axis`` in random order, differentiable in ``x``.

    >>> float(np.sum(pb.random.shuffle(np.array([1.0, 2.0, 3.0]))))
    6.0
    """
    x = operand(x)
    at = one_axis(len(x.shape), axis, "shuffle")
    return np.take(x, _generator("shuffle", seed).permutation(x.shape[at]), axis=at)


@method
def dropout(x: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Any:
    """``x`` with a share ``rate`` of its elements set to 0, and the others scaled up to keep the sum on average.

    ``noise_shape`` has length 1 (and ``None`` for the length of ``x``) along the axes that are dropped together.

    >>> pb.dropout(np.array([1.0, 2.0]), 0)
    array([1., 2.])
    >>> y = pb.dropout(np.ones(1000), 0.5, seed=1)
    >>> sorted({*y.tolist()})
    [0.0, 2.0]
    """
    x = operand(x)
    if x.dtype.kind != "f":
        raise ArgumentError(f"dropout: x must be of a float dtype, got {x.dtype}.")
    if not 0 <= rate < 1:
        raise ArgumentError(f"dropout: rate must be at least 0 and less than 1, got {rate}.")
    shape = x.shape
    if noise_shape is not None:
        given = list(noise_shape)
        if len(given) == len(shape):
            given = [n if m is None else m for m, n in zip(given, shape, strict=True)]
        if len(given) > len(shape) or any(m not in (1, n) for m, n in zip(given[::-1], shape[::-1], strict=False)):
            raise ShapeError(f"dropout: noise_shape {noise_shape} must broadcast to the shape {shape} of x.")
        shape = tuple(given)
    if not rate:
        return x
    keep = 1 - rate
    scale = np.asarray(_generator("dropout", seed).random(shape, np.float32) < keep) / np.array(keep, x.dtype)
    return x * scale


def rand(shape: Any, rand_function: Callable[[], float], dtype: Any = None) -> Tensor:
    """Numbers that come from calls of a function of yours.

    >>> pb.rand([2, 2], lambda: 0.5)
    Tensor([[0.5, 0.5], [0.5, 0.5]], dtype=float32)
    """
    wanted = as_shape("rand", shape)
    kind = get_default_dtype() if dtype is None else as_dtype(dtype, "rand")
    made = [rand_function() for _ in range(math.prod(wanted))]
    return constant(np.array(made, np.float64).reshape(wanted).astype(kind))


# ---- TensorFlow.js's names

random_normal = normal
random_standard_normal = standard_normal
random_uniform = uniform
random_uniform_int = uniform_int
random_gamma = gamma
