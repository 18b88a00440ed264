"""Answers of PyTorch and JAX for tests/ops/test_complex.py: ``python complex_reference.py > complex.json``.

Each case is an expression with a real value, its gradient by both libraries (JAX's is the conjugate), and by PyTorch
the gradient of ``sum(real(gradient * w))``, the second order.
"""

from __future__ import annotations

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(5)
REAL = rng.normal(size=(2, 3)).round(3)
COMPLEX = REAL + 1j * rng.normal(size=(2, 3)).round(3)

OF_COMPLEX = """
np.sum(np.abs(z))
np.sum(np.real(z * z * (1 + 2j)))
np.sum(np.imag(np.exp(z) / z))
np.sum(np.angle(z) * np.abs(z))
np.sum(np.abs(np.conj(z) * z + z) ** 2)
np.sum(np.real(np.log(z) * np.sqrt(z)))
np.sum(np.real(np.sin(z) * np.tanh(z)))
np.sum(np.abs(z ** 3 + z ** 1.5))
np.sum(np.abs(z ** (0.5 + 1j)))
np.sum(np.abs(np.sum(z * z, 0)))
np.sum(np.abs(np.mean(z, 1)) ** 3)
np.abs(np.prod(z))
np.linalg.norm(z)
np.sum(np.real(z) ** 2 * np.imag(z))
np.sum(np.abs(np.matmul(np.conj(z.T), z)))
np.sum(np.abs(np.einsum("ij,kj->ik", z, np.conj(z))))
np.sum(np.abs(np.fft.fft(z)) ** 3)
np.sum(np.abs(np.fft.ifft(z, 6, 0, "ortho")) ** 3)
np.sum(np.abs(np.fft.fft(z, 2)) ** 3)
np.sum(np.fft.irfft(z) ** 3)
np.sum(np.fft.irfft(z, 5, 0, "forward") ** 3)
np.sum(np.fft.irfft(z, 9) ** 3)
np.sum(np.fft.hfft(z) ** 3)
np.sum(np.abs(np.fft.fftn(z)) ** 3)
np.sum(np.abs(np.fft.ifft2(z, (2, 5))) ** 3)
np.sum(np.fft.irfftn(z) ** 3)
"""
OF_REAL = """
np.sum(np.abs(np.fft.rfft(z)) ** 3)
np.sum(np.abs(np.fft.rfft(z, 7, 0, "ortho")) ** 3)
np.sum(np.abs(np.fft.rfft(z, 2)) ** 3)
np.sum(np.abs(np.fft.fft(z)) ** 3)
np.sum(np.abs(np.fft.rfftn(z)) ** 3)
np.sum(np.abs(np.fft.ihfft(z)) ** 3)
np.sum(np.fft.irfft(z) ** 3)
np.sum(np.abs(np.exp(z * 1j) + z) ** 3)
np.sum(np.real((z + 2j) ** 3 * (1 - 1j)))
"""
W = np.cos(np.arange(6.0)).reshape(2, 3) + 1j * np.sin(np.arange(6.0) ** 2).reshape(2, 3)


def by_torch(f: Any, x: Any) -> Any:
    leaf = torch.tensor(x, requires_grad=True)
    value = f(torch, leaf)
    (d,) = torch.autograd.grad(value, leaf, create_graph=True)
    (second,) = torch.autograd.grad(torch.sum(torch.real(d * torch.tensor(W))), leaf)
    return value.item(), d.detach().resolve_conj().numpy(), second.resolve_conj().numpy()


def by_jax(f: Any, x: Any) -> Any:
    value, d = jax.value_and_grad(lambda a: f(jnp, a))(x)
    return float(value), np.conj(np.asarray(d))


def pairs(x: Any) -> Any:
    parts = np.stack([np.real(x), np.imag(x)]) if np.iscomplexobj(x) else x
    return np.vectorize(lambda n: float(f"{n:.12g}"))(parts).tolist()


def main() -> None:
    answers = []
    for x, expressions in ((COMPLEX, OF_COMPLEX), (REAL, OF_REAL)):
        for expression in expressions.strip().splitlines():
            f = eval(f"lambda np, z: {expression}", {})
            value, d, second = by_torch(f, x)
            other, e = by_jax(f, x)
            np.testing.assert_allclose(other, value, rtol=1e-9)
            np.testing.assert_allclose(e, d, rtol=1e-7, atol=1e-9)
            answers.append({"f": expression, "z": pairs(x), "value": value, "grad": pairs(d), "second": pairs(second)})
    print("[" + ",\n".join(json.dumps(a, separators=(",", ":")) for a in answers) + "]")


if __name__ == "__main__":
    main()
