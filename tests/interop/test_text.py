"""Text of traced values, and comparison with ``pytest.approx``."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, BatchedValueError, SymbolValueError, TracedValueError

TEXTS = {
    "f-string": (lambda x: f"{x:.2f}", "2.47"),
    "f-string with a width": (lambda x: f"{x:8.3e}", "2.469e+00"),
    "format": (lambda x: "{:.1f}".format(x), "2.5"),  # noqa: UP032
    "percent": (lambda x: "%.3f" % x, "2.469"),  # noqa: UP031
    "percent of a tuple": (lambda x: "%d and %5.1f" % (x, x), "2 and   2.5"),  # noqa: UP031
    "percent of a dict": (lambda x: "%(a).2f" % {"a": x}, "2.47"),  # noqa: UP031
    "bytes": (lambda x: (b"%.1f" % x).decode(), "2.5"),
    "plain": (lambda x: f"{x}", "Tensor\n    2.469134"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_str_of_traced_number(name: str) -> None:
    write, expected = TEXTS[name]
    texts: list[str] = []

    def f(x: Any) -> Any:
        texts.append(write(x * 2))
        return x * x

    assert pb.grad(f)(1.234567) == 2 * 1.234567
    pb.grad(pb.grad(f))(1.234567)
    pb.jvp(f, [1.234567], [1.0])
    v = pb.variable(np.float64(1.234567))
    pb.variable_grads(lambda: f(v))
    assert texts == [expected] * 4


def test_log_message_with_a_traced_number(caplog: Any) -> None:
    with caplog.at_level(logging.INFO):
        pb.grad(lambda x: logging.info("loss %.3f", x) or x * x)(3.0)
    assert caplog.messages == ["loss 3.000"]


@pytest.mark.parametrize("spec", ["", ".2f"])
def test_f_string_under_vmap_and_compile(spec: str) -> None:
    texts: list[str] = []

    def f(x: Any) -> Any:
        texts.append(f"{x:{spec}}")
        return x * x

    pb.vmap(f)(np.array([1.0, 2.0]))
    pb.vmap(pb.grad(f))(np.array([1.0, 2.0]))
    pb.compile(f, backend="numpy")(1.0)
    pb.compile(pb.grad(f), backend="numpy")(1.0)
    assert texts[0] == "<2 examples of shape (): array([1., 2.])>"
    assert texts[1] == f"Tensor({texts[0]})"
    assert texts[2].startswith("<symbol")
    assert texts[3].startswith("Tensor(<symbol")


def test_percent_format_under_vmap_and_compile_raises() -> None:
    with pytest.raises(BatchedValueError, match=r"text % x: .*An f-string"):
        pb.vmap(lambda x: ("%.3f" % x, x)[1])(np.ones(2))  # noqa: UP031
    with pytest.raises(SymbolValueError, match=r"text % x: .*An f-string"):
        pb.compile(lambda x: ("%.3f" % x, x)[1])(np.ones(()))  # noqa: UP031


def test_format_of_array_raises() -> None:
    with pytest.raises(ArgumentError, match=r"f'\{x:.2f\}': a tensor of shape \(2,\) has no one number to write"):
        f"{pb.tensor([1.0, 2.0]):.2f}"


def test_float_of_traced_tensor_raises() -> None:
    with pytest.raises(TracedValueError, match=r"float\(\) of a traced tensor .*test_text.py:\d+"):
        pb.grad(lambda x: 5 % float(x))(3.0)
    with pytest.raises(TracedValueError, match=r"np\.sin for math\.sin"):
        pb.grad(math.sin)(3.0)
    assert pb.grad(lambda x: 5 % x)(3.0) == -1.0


def test_math_floor_ceil_trunc_of_traced_number() -> None:
    def f(x: Any) -> Any:
        assert (math.floor(x), math.ceil(x), math.trunc(-x)) == (2, 3, -2)
        return x * math.floor(x)

    assert pb.grad(f)(2.5) == 2.0


# ---- pytest.approx


def test_tensor_equals_approx() -> None:
    t, v = pb.tensor(4.0), pb.tensor([1.0, 2.0])
    assert t == pytest.approx(4.0)
    assert pytest.approx(4.0) == t
    assert t != pytest.approx(5.0)
    assert v == pytest.approx([1.0, 2.0])
    assert pytest.approx([1.0, 2.0]) == v
    assert v == pytest.approx(np.array([1.0, 2.0]))
    assert pytest.approx(np.array([1.0, 2.0])) == v
    assert [t, t] == pytest.approx([4.0, 4.0])
    assert {"a": t} == pytest.approx({"a": 4.0})
    assert np.array([t, t]) == pytest.approx([4.0, 4.0])
    assert pb.variable(4.0) == pytest.approx(4.0)


def test_traced_tensor_equals_approx() -> None:
    def f(x: Any) -> Any:
        assert x[0] == pytest.approx(4.0)
        assert pytest.approx(4.0) == x[0]
        assert x[0] != pytest.approx(5.0)
        assert [x[0], x[1]] == pytest.approx([4.0, 5.0])
        assert np.array([x[0], x[1]]) == pytest.approx([4.0, 5.0])
        return x.sum()

    pb.grad(f)(np.array([4.0, 5.0]))


def test_tensor_compared_with_non_numbers() -> None:
    t = pb.tensor([1.0, 2.0])
    assert (t == "a") is False
    assert (t != object()) is True
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \*: 'Tensor' and 'ApproxScalar'"):
        t * pytest.approx(3.0)
    with pytest.raises(ValueError, match="mul: expected numbers or nested lists of numbers, got ApproxScalar"):
        pb.mul(t, pytest.approx(3.0))
