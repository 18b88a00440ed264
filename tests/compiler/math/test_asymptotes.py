"""Functions with an asymptote reach it exactly, and so do their derivatives, on both sides and for every width."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import inf, pi
from typing import Any, NamedTuple

import numpy as np
import pytest
from isas import RUNNABLE

import pullback as pb
from pullback.compiler.runtime.llvm import llvm_available
from pullback.compiler.target import MAX_ISA

ISAS = RUNNABLE if llvm_available() else []
X = "x"  # the limit is the argument itself
SELU, SELU_DEPTH = 1.0507009873554805, 1.7580993408473766


class Limits(NamedTuple):
    """What a function and its derivative are, far below and far above 0, and from where on."""

    function: Callable[..., Any]
    low: Any
    high: Any
    slope_low: float
    slope_high: float
    begin: float = 1e3


LIMITS = {
    "tanh": Limits(np.tanh, -1, 1, 0, 0, 30),
    "sigmoid": Limits(pb.sigmoid, 0, 1, 0, 0),
    "expit": Limits(pb.special.expit, 0, 1, 0, 0),
    "log_sigmoid": Limits(pb.log_sigmoid, X, 0, 1, 0),
    "log_expit": Limits(pb.special.log_expit, X, 0, 1, 0),
    "softplus": Limits(pb.softplus, 0, X, 0, 1),
    "logaddexp": Limits(lambda x: np.logaddexp(x, np.zeros((), x.dtype)), 0, X, 0, 1),
    "erf": Limits(pb.erf, -1, 1, 0, 0, 40),
    "erfc": Limits(pb.special.erfc, 2, 0, 0, 0, 40),
    "ndtr": Limits(pb.special.ndtr, 0, 1, 0, 0, 50),
    "arctan": Limits(np.arctan, -pi / 2, pi / 2, 0, 0, 1e160),
    "exp": Limits(np.exp, 0, inf, 0, inf),
    "exp2": Limits(lambda x: 2.0**x, 0, inf, 0, inf, 2e3),
    "expm1": Limits(np.expm1, -1, inf, 0, inf),
    "elu": Limits(pb.elu, -1, X, 0, 1),
    "selu": Limits(pb.selu, -SELU_DEPTH, None, 0, SELU),
    "relu6": Limits(pb.relu6, 0, 6, 0, 0),
    "gelu": Limits(pb.gelu, 0, X, 0, 1),
    "gelu by tanh": Limits(lambda x: pb.gelu(x, approximate=True), 0, X, 0, 1),
    "swish": Limits(pb.swish, 0, X, 0, 1),
}


def floats_of_every_size(dtype: str) -> Any:
    """Some numbers of every exponent, the largest one, and zeros, of both signs."""
    limits = np.finfo(dtype)
    powers = np.exp2(np.arange(limits.minexp, limits.maxexp, dtype="f8"))
    parts = [powers * m for m in (1.0, 1.1875, 1.5, 1.9375)]
    sizes = np.concatenate([*parts, [0.0, limits.max]])
    return np.concatenate([sizes, -sizes]).astype(dtype)


@lru_cache
def compute(name: str, isa: str, dtype: str) -> tuple[Any, Any, Any]:
    """Return numbers, and a function and its derivative there: op by op, or compiled for an instruction set."""
    f, x = LIMITS[name].function, floats_of_every_size(dtype)
    both = lambda x: (f(x), pb.grad(lambda x: pb.sum(f(x)))(x))
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        if isa:
            patch.setenv(MAX_ISA, isa)
            both = pb.compile(both, backend="llvm", cache=False)
        return x, *both(x)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("isa", ["", *ISAS])
@pytest.mark.parametrize("name", LIMITS)
def test_function_and_gradient_limits_at_infinity_are_exact(name: str, isa: str, dtype: str) -> None:
    about = LIMITS[name]
    x, value, slope = compute(name, isa, dtype)
    begin = min(about.begin, float(np.finfo(dtype).max) ** 0.75)
    for side, limit, slope_limit in (
        (x <= -begin, about.low, about.slope_low),
        (x >= begin, about.high, about.slope_high),
    ):
        if limit is not None:
            np.testing.assert_array_equal(value[side], x[side] if limit is X else np.full(side.sum(), limit, dtype))
        np.testing.assert_array_equal(slope[side], np.full(side.sum(), slope_limit, dtype))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", LIMITS)
def test_compiled_functions_match_eager_for_every_binary_exponent(name: str, isa: str, dtype: str) -> None:
    _, got, _ = compute(name, isa, dtype)
    _, want, _ = compute(name, "", dtype)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(got, want, rtol=64 * eps, atol=64 * eps)


@pytest.mark.parametrize("isa", ISAS)
def test_gradient_of_saturated_tanh_is_zero(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_ISA, isa)
    x = np.array([19.5, 25.0, -30.0, 1e80])
    assert pb.compile(np.tanh)(x).tolist() == [1.0, 1.0, -1.0, 1.0]
    assert pb.compile(pb.grad(lambda x: pb.sum(np.tanh(x))))(x).tolist() == [0.0] * 4
    assert pb.compile(lambda x: pb.gelu(x, approximate=True))(np.array([-1e80])).tolist() == [0.0]
