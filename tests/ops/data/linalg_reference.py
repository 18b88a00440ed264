"""Answers of PyTorch and JAX for tests/ops/test_linalg.py: ``python linalg_reference.py > linalg.json``.

Each case is a scalar made of a decomposition that does not depend on signs, its gradient by both libraries (which must
agree), and by JAX the gradient of ``sum(gradient * cos(x))``, the second order.
"""

from __future__ import annotations

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(7)
SQUARE, TALL, WIDE, BATCH = (rng.normal(size=s).round(3) for s in ((3, 3), (4, 3), (2, 4), (2, 3, 3)))
LOW_RANK = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])


def t(xp: Any, x: Any) -> Any:
    return xp.swapaxes(x, -1, -2)


def weights(xp: Any, x: Any) -> Any:
    """As many different numbers as ``x`` has elements."""
    n = int(np.prod(x.shape))
    made = np.cos(np.arange(1.0, 1.0 + n)).reshape(tuple(x.shape))
    return torch.tensor(made) if xp is torch else made


def weighed(xp: Any, *xs: Any) -> Any:
    return sum((weights(xp, x) * x).sum() for x in xs)


def definite(xp: Any, x: Any) -> Any:
    eye = np.eye(x.shape[-1])
    return x @ t(xp, x) + (torch.tensor(eye) if xp is torch else eye)


def qr(xp: Any, x: Any) -> Any:
    q, r = xp.linalg.qr(x)
    sign = xp.sign(xp.diagonal(r, 0, -2, -1))
    return weighed(xp, q * sign[..., None, :], r * sign[..., :, None])


def eigh(xp: Any, x: Any) -> Any:
    w, v = xp.linalg.eigh((x + t(xp, x)) / 2)
    return weighed(xp, w, (v * xp.exp(w)[..., None, :]) @ t(xp, v), v * v)


def svd(xp: Any, x: Any) -> Any:
    u, s, v = xp.linalg.svd(x, full_matrices=False)
    return weighed(xp, s, (u * xp.sin(s)[..., None, :]) @ v, u * u, v * v)


CASES: dict[str, tuple[Any, Any]] = {
    "qr, square": (qr, SQUARE), "qr, tall": (qr, TALL), "qr, wide": (qr, WIDE), "qr, batch": (qr, BATCH),
    "eigh": (eigh, SQUARE), "eigh, batch": (eigh, BATCH),
    "svd, square": (svd, SQUARE), "svd, tall": (svd, TALL), "svd, wide": (svd, WIDE), "svd, batch": (svd, BATCH),
    "cholesky": (lambda xp, x: weighed(xp, xp.linalg.cholesky(definite(xp, x))), SQUARE),
    "cholesky, batch": (lambda xp, x: weighed(xp, xp.linalg.cholesky(definite(xp, x))), BATCH),
    "inv": (lambda xp, x: weighed(xp, xp.linalg.inv(x)), BATCH),
    "solve": (lambda xp, x: weighed(xp, xp.linalg.solve(x, x[..., :2] * x[..., 1:])), BATCH),
    "det": (lambda xp, x: weighed(xp, xp.linalg.det(x)), BATCH),
    "slogdet": (lambda xp, x: weighed(xp, xp.linalg.slogdet(x)[1]), BATCH),
    "pinv, tall": (lambda xp, x: weighed(xp, xp.linalg.pinv(x)), TALL),
    "pinv, wide": (lambda xp, x: weighed(xp, xp.linalg.pinv(x)), WIDE),
    "lstsq": (lambda xp, x: weighed(xp, xp.linalg.lstsq(x, x[:, :2] ** 2)[0]), TALL),
    "matrix_power": (lambda xp, x: weighed(xp, xp.linalg.matrix_power(x, -3)), BATCH),
    "nuclear norm": (lambda xp, x: xp.linalg.norm(x, "nuc"), TALL),
    "spectral norm": (lambda xp, x: xp.linalg.norm(x, 2), TALL),
    "det of a singular matrix": (lambda xp, x: xp.linalg.det(x), LOW_RANK),
}  # fmt: skip
ONE_ORDER = {"det of a singular matrix"}


def by_torch(f: Any, x: Any) -> Any:
    leaf = torch.tensor(x, requires_grad=True)
    value = f(torch, leaf)
    (d,) = torch.autograd.grad(value, leaf)
    return value.item(), d.numpy()


def by_jax(f: Any, x: Any) -> Any:
    value, d = jax.value_and_grad(lambda a: f(jnp, a))(x)
    second = jax.grad(lambda a: (jax.grad(lambda b: f(jnp, b))(a) * jnp.cos(a)).sum())(x)
    return float(value), np.asarray(d), np.asarray(second)


def main() -> None:
    answers = {}
    for name, (f, x) in CASES.items():
        value, d = by_torch(f, x)
        other, e, second = by_jax(f, x)
        np.testing.assert_allclose(other, value, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(e, d, rtol=1e-7, atol=1e-9)
        answers[name] = {"x": x.tolist(), "value": value, "grad": d.tolist()}
        if name not in ONE_ORDER:
            answers[name]["second"] = second.tolist()
    print(json.dumps(answers, indent=None, separators=(",", ":")).replace('},"', '},\n"'))


if __name__ == "__main__":
    main()
