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


# ---- complex matrices: gradients as PyTorch gives them, of which JAX's are the conjugates

phases = np.random.default_rng(8)
C_SQUARE, C_TALL, C_WIDE, C_BATCH = (
    (phases.normal(size=s) + 1j * phases.normal(size=s)).round(3) for s in ((3, 3), (4, 3), (2, 4), (2, 3, 3))
)


def h(xp: Any, x: Any) -> Any:
    return t(xp, x).conj()


def real(xp: Any, *xs: Any) -> Any:
    """The real and imaginary parts, each element with a number of its own."""
    return weighed(xp, *(part for x in xs for part in (x.real, x.imag)))


def sized(xp: Any, *xs: Any) -> Any:
    return weighed(xp, *(xp.abs(x) ** 2 for x in xs))


def complex_eigh(xp: Any, x: Any) -> Any:
    w, v = xp.linalg.eigh((x + h(xp, x)) / 2)
    return weighed(xp, w) + real(xp, (v * xp.exp(w)[..., None, :]) @ h(xp, v)) + sized(xp, v)


def complex_svd(xp: Any, x: Any) -> Any:
    u, s, v = xp.linalg.svd(x, full_matrices=False)
    return weighed(xp, s) + real(xp, (u * xp.sin(s)[..., None, :]) @ v) + sized(xp, u, v)


def complex_qr(xp: Any, x: Any) -> Any:
    q, r = xp.linalg.qr(x)
    d = xp.diagonal(r, 0, -2, -1)
    sign = d / xp.abs(d)
    return real(xp, q * sign[..., None, :], r * sign.conj()[..., :, None])


def both_of_eig(xp: Any, x: Any) -> Any:
    if xp is torch:
        return torch.linalg.eig(x)
    return jax.lax.linalg.eig(x, compute_left_eigenvectors=False, enable_eigvec_derivs=True)


def eig(xp: Any, x: Any) -> Any:
    w, v = both_of_eig(xp, x)
    projected = (v * xp.exp(w)[..., None, :]) @ xp.linalg.inv(v)
    return real(xp, projected) + (xp.abs(w) ** 3).sum() + (xp.abs(v) ** 4).sum()


def slogdet(xp: Any, sign: Any, size: Any) -> Any:
    return real(xp, sign) + weighed(xp, size)


def complex_definite(xp: Any, x: Any) -> Any:
    eye = np.eye(x.shape[-1])
    return x @ h(xp, x) + (torch.tensor(eye) if xp is torch else eye)


CASES |= {
    "eig, real": (eig, SQUARE), "eig, real batch": (eig, BATCH), "eig, complex": (eig, C_SQUARE),
    "eigvals, real": (lambda xp, x: (xp.abs(both_of_eig(xp, x)[0]) ** 3).sum(), SQUARE),
    "eigvals, complex": (lambda xp, x: (xp.abs(both_of_eig(xp, x)[0]) ** 3).sum(), C_BATCH),
    "complex eigh": (complex_eigh, C_BATCH),
    "complex eigvalsh": (lambda xp, x: weighed(xp, xp.linalg.eigvalsh((x + h(xp, x)) / 2) ** 2), C_BATCH),
    "complex svd, square": (complex_svd, C_SQUARE), "complex svd, tall": (complex_svd, C_TALL),
    "complex svd, wide": (complex_svd, C_WIDE),
    "complex qr, square": (complex_qr, C_SQUARE), "complex qr, tall": (complex_qr, C_TALL),
    "complex qr, wide": (complex_qr, C_WIDE),
    "complex cholesky": (lambda xp, x: real(xp, xp.linalg.cholesky(complex_definite(xp, x))), C_BATCH),
    "complex inv": (lambda xp, x: real(xp, xp.linalg.inv(x)), C_BATCH),
    "complex solve": (lambda xp, x: real(xp, xp.linalg.solve(x, x[..., :2] * x[..., 1:])), C_BATCH),
    "complex det": (lambda xp, x: real(xp, xp.linalg.det(x)), C_BATCH),
    "complex slogdet": (lambda xp, x: slogdet(xp, *xp.linalg.slogdet(x)), C_BATCH),
    "complex pinv, tall": (lambda xp, x: real(xp, xp.linalg.pinv(x)), C_TALL),
    "complex pinv, wide": (lambda xp, x: real(xp, xp.linalg.pinv(x)), C_WIDE),
    "complex lstsq": (lambda xp, x: real(xp, xp.linalg.lstsq(x, x[:, :2] ** 2)[0]), C_TALL),
    "complex matrix_power": (lambda xp, x: real(xp, xp.linalg.matrix_power(x, -3)), C_BATCH),
    **{f"complex norm {p}": (lambda xp, x, p=p: xp.linalg.norm(x, p), C_TALL)
       for p in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf)},
    **{f"complex vector norm {p}": (lambda xp, x, p=p: xp.linalg.norm(x[0], p), C_TALL) for p in (1, 2, 3, np.inf)},
}  # fmt: skip


def by_torch(f: Any, x: Any) -> Any:
    leaf = torch.tensor(x, requires_grad=True)
    value = f(torch, leaf)
    (d,) = torch.autograd.grad(value, leaf)
    return value.item(), d.resolve_conj().numpy()


def by_jax(f: Any, x: Any) -> Any:
    value, d = jax.value_and_grad(lambda a: f(jnp, a))(x)
    first = lambda a: jnp.conj(jax.grad(lambda b: f(jnp, b))(a))
    second = jax.grad(lambda a: jnp.real(first(a) * jnp.cos(a)).sum())(x)
    return float(value), np.conj(d), np.conj(second)


def plain(x: Any) -> Any:
    """Complex numbers as their real parts and their imaginary parts."""
    return [x.real.tolist(), x.imag.tolist()] if np.iscomplexobj(x) else x.tolist()


def main() -> None:
    answers = {}
    for name, (f, x) in CASES.items():
        value, d = by_torch(f, x)
        other, e, second = by_jax(f, x)
        np.testing.assert_allclose(other, value, rtol=1e-9, atol=1e-12)
        if name not in ONE_ORDER:  # PyTorch 2.13 has a gradient of 0 there
            np.testing.assert_allclose(e, d, rtol=1e-7, atol=1e-9, err_msg=name)
        answers[name] = {"x": plain(x), "value": value, "grad": plain(e)}
        if name not in ONE_ORDER:
            answers[name]["second"] = plain(second)
    print(json.dumps(answers, indent=None, separators=(",", ":")).replace('},"', '},\n"'))


if __name__ == "__main__":
    main()
