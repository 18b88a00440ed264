"""Eager ops with much to do, by machine code: the numbers of NumPy's kernels, and the same ones in every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.core import accelerate
from pullback.settings import MECHANISMS, SAFE

random = np.random.default_rng(0)
IMAGES = random.normal(size=(4, 24, 24, 16)).astype("f4")
FILTER = random.normal(size=(3, 3, 16, 24)).astype("f4")
BY_CHANNEL = random.normal(size=(3, 3, 16, 1)).astype("f4")


@pytest.fixture(autouse=True)
def forget_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every test decide anew who runs what."""
    monkeypatch.setattr(accelerate, "_programs", {})
    for variable in (SAFE, *MECHANISMS.values()):
        monkeypatch.delenv(variable, raising=False)


def run_by_numpy(f: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a function while machine code is switched off."""
    with monkeypatch.context() as patch:
        patch.setenv("PULLBACK_EAGER_KERNELS", "0")
        patch.setattr(accelerate, "_programs", {})
        return f()


def gradients(f: Callable[..., Any], *args: Any) -> Callable[[], list[Any]]:
    """Return a function that gives the value and the gradients of a program of two arrays."""

    def weighted(*xs: Any) -> Any:
        z = f(*xs)
        return pb.sum(z * np.cos(np.arange(z.size, dtype=z.dtype)).reshape(z.shape))

    def run() -> list[Any]:
        value, found = pb.value_and_grads(weighted)(list(args))
        return [f(*args), value, *found]

    return run


PROGRAMS = {
    "conv2d same": gradients(lambda x, w: pb.conv2d(x, w, 1, "same"), IMAGES, FILTER),
    "conv2d strided": gradients(lambda x, w: pb.conv2d(x, w, 2, "same"), IMAGES, FILTER),
    "conv2d dilated": gradients(lambda x, w: pb.conv2d(x, w, 1, "valid", dilations=2), IMAGES, FILTER),
    "conv2d float64": gradients(lambda x, w: pb.conv2d(x, w), IMAGES.astype("f8"), FILTER.astype("f8")),
    "conv2d channels first": gradients(
        lambda x, w: pb.conv2d(x, w, 1, "same", data_format="NCHW"), IMAGES.transpose(0, 3, 1, 2), FILTER
    ),
    "conv2d sliced": gradients(lambda x, w: pb.conv2d(x, w, 1, 1), IMAGES[:, ::2, 1:], FILTER[::-1]),
    "depthwise_conv2d": gradients(lambda x, w: pb.depthwise_conv2d(x, w, 1, "same"), IMAGES, BY_CHANNEL),
    "max_pool": gradients(lambda x: pb.max_pool(x, 3, 2, "same"), IMAGES),
    "avg_pool": gradients(lambda x: pb.avg_pool(x, 3, 2, "same"), IMAGES),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code_agrees_with_numpy_and_with_itself(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, again = PROGRAMS[name](), PROGRAMS[name]()
    assert accelerate._programs
    expected = run_by_numpy(PROGRAMS[name], monkeypatch)
    for x, y, z in zip(first, again, expected, strict=True):
        np.testing.assert_array_equal(x, y)
        np.testing.assert_allclose(x, z, rtol=1e-4, atol=1e-4 * np.max(np.abs(z)))


@pytest.mark.parametrize("kind", ["nan", "inf", "ties"])
def test_max_pool_of_unusual_elements_is_exactly_numpys(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = IMAGES.copy()
    x.flat[::7] = {"nan": np.nan, "inf": -np.inf, "ties": 0.5}[kind]
    if kind == "ties":
        x = np.round(x)
    run = gradients(lambda x: pb.max_pool(x, 2, 2), x)
    for got, want in zip(run(), run_by_numpy(run, monkeypatch), strict=True):
        np.testing.assert_array_equal(got, want)  # NaN is equal to NaN here


def test_value_is_the_same_with_and_without_gradient() -> None:
    f = lambda x: pb.sum(pb.conv2d(x, FILTER))
    assert float(f(IMAGES)) == float(pb.value_and_grad(f)(IMAGES).value)


def test_results_do_not_depend_on_number_of_threads() -> None:
    before, found = pb.get_num_threads(), []
    try:
        for n in (1, 2):
            pb.set_num_threads(n)
            found.append(PROGRAMS["conv2d same"]())
    finally:
        pb.set_num_threads(before)
    for x, y in zip(*found, strict=True):
        np.testing.assert_array_equal(x, y)


def test_small_and_integer_images_are_left_to_numpy() -> None:
    pb.conv2d(IMAGES[:1, :6, :6], FILTER)
    pb.max_pool(IMAGES.astype("i4"), 2, 2)
    assert not accelerate._programs


def test_many_signatures_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerate, "MOST", 1)
    for size in (2, 3):
        want = run_by_numpy(lambda: pb.max_pool(IMAGES, size), monkeypatch)  # noqa: B023
        np.testing.assert_array_equal(pb.max_pool(IMAGES, size), want)
    assert len(accelerate._programs) == 1


def test_without_compiler_numpy_runs_large_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerate, "load_compiler", lambda: lambda op, inputs, params: None)
    got = pb.conv2d(IMAGES, FILTER)
    np.testing.assert_array_equal(got, run_by_numpy(lambda: pb.conv2d(IMAGES, FILTER), monkeypatch))
