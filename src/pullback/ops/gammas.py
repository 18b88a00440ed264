"""Derivatives of gamma distributed random numbers by the shape parameter, for ``pb.random.gamma``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import Sample, elementwise2, moves
from pullback.core.calculus import partials
from pullback.core.convert import check_real
from pullback.core.op import op
from pullback.numerics.batching import broadcast_examples
from pullback.numerics.gammas import differentiate_cdf, differentiate_density

if TYPE_CHECKING:
    from pullback.typing import Array, TensorLike, Value

__all__: list[str] = []


class _Orders(moves):
    """How a function of two broadcast inputs and an order ``n`` acts."""

    def __init__(self) -> None:
        samples: list[Sample] = [
            (((), ()), {"n": 1}), (((3,), (3,)), {"n": 2}), (((0, 2), (2,)), {"n": 1}), (((2, 1), (3,)), {"n": 0}),
        ]  # fmt: skip
        super().__init__(lambda alpha, at, n: elementwise2.shape("gamma", (alpha, at), {}), samples, elementwise2.batch)


def _keep_dtype(compute: Callable[[Any, Any, int], Any]) -> Any:
    """Adapt a kernel to compute in float64 and return the dtype of the inputs."""

    def run(alpha: Array, at: Array, n: int) -> Any:
        check_real("gamma", alpha, "alpha")
        check_real("gamma", at)
        return compute(alpha, at, n).astype(np.result_type(alpha, at))

    return run


def _density_dalpha(g: Value, z: Value, alpha: Value, at: Value, n: int) -> Any:
    return g * (gamma_density_slope(alpha, at, n + 1) - z * gamma_density_slope(alpha, at, 1))


def _density_dat(g: Value, alpha: Value, at: Value, n: int) -> Any:
    return g * gamma_density_slope(alpha, at, n - 1) * n / at if n else g * 0.0


@op(
    _keep_dtype(differentiate_density),
    acts=_Orders(),
    d=partials(_density_dalpha, _density_dat),
    domain=(0.5, 3.0),
)
def gamma_density_slope(alpha: TensorLike, at: TensorLike, /, n: int) -> Any:
    """Return the derivative of order ``n`` by ``alpha`` of the density of Gamma(alpha, 1), divided by the density.

    >>> gamma_density_slope(pb.tensor([1.0]), [1.0], 1)
    Tensor([0.5772157], dtype=float32)
    """


def _share_dalpha(g: Value, z: Value, alpha: Value, at: Value, n: int) -> Any:
    return g * (gamma_share_slope(alpha, at, n + 1) - z * gamma_density_slope(alpha, at, 1))


@op(
    _keep_dtype(differentiate_cdf),
    acts=_Orders(),
    d=partials(
        _share_dalpha,
        lambda g, z, alpha, at, n: g * (gamma_density_slope(alpha, at, n) - z * ((alpha - 1) / at - 1)),
    ),
    domain=(0.5, 3.0),
)
def gamma_share_slope(alpha: TensorLike, at: TensorLike, /, n: int) -> Any:
    """Return the derivative of order ``n`` by ``alpha`` of the distribution function of Gamma(alpha, 1), by density.

    >>> gamma_share_slope(pb.tensor([1.0]), [1.0], 0)
    Tensor([1.7182819], dtype=float32)
    """


def _follow_quantile(alpha: Array, draw: Array, origin: Array) -> Any:
    """Integrate from ``origin`` to ``alpha`` along the curve of constant distribution function (Runge-Kutta)."""
    for x in (alpha, draw, origin):
        check_real("gamma", x)
    if np.array_equal(alpha, origin):
        return draw
    far = np.max(np.abs(alpha / origin - 1), initial=0.0)
    steps = 1 + int(16 * far)
    h, a, z = (alpha - origin) / steps, np.asarray(origin, np.float64), np.asarray(draw, np.float64)
    for _ in range(steps):
        k1 = -differentiate_cdf(a, z, 1)
        k2 = -differentiate_cdf(a + h / 2, z + h / 2 * k1, 1)
        k3 = -differentiate_cdf(a + h / 2, z + h / 2 * k2, 1)
        k4 = -differentiate_cdf(a + h, z + h * k3, 1)
        a, z = a + h, z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return z.astype(draw.dtype)


def _list_draw_samples() -> list[Sample]:
    alphas = [np.array(1.5), np.array([0.5, 1.0, 4.0]), np.array([[0.1], [20.0]]), np.zeros((0, 2))]
    draws = [np.array(0.7), np.array([0.3, 2.0, 3.0]), np.array([[0.2], [24.0]]), np.zeros((0, 2))]
    return [((alpha, draw, alpha), {}) for alpha, draw in zip(alphas, draws, strict=True)]


@op(
    _follow_quantile,
    acts=moves(
        lambda alpha, draw, origin: draw,
        _list_draw_samples(),
        lambda op, args, on, params: op.call(broadcast_examples(args, on), params),
    ),
    d=partials(lambda g, z, alpha: -(g * gamma_share_slope(alpha, z, 1)), None, None),
)
def gamma_draw(alpha: TensorLike, draw: TensorLike, origin: TensorLike, /) -> Any:
    """Return the number from Gamma(alpha, 1) at the same quantile as a draw from Gamma(origin, 1).

    So the derivative by ``alpha`` is minus that of the distribution function, divided by the density.

    >>> gamma_draw(pb.tensor(np.array([2.0])), np.array([1.0]), np.array([1.0]))
    Tensor([2.14619322], dtype=float64)
    """
