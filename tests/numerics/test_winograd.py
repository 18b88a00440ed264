"""Winograd convolution: equal to the definition at every size and padding, and precise in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.numerics.windows import Windows, plan_windows
from pullback.numerics.winograd import is_worthwhile, pair_convolve, pair_convolve_filter
from pullback.ops import convolution

RANDOM = np.random.default_rng(7)


def draw(*shape: int) -> Any:
    return RANDOM.normal(size=shape)


def by_definition(x: Any, f: Any, g: Any, pairs: Any) -> tuple[Any, Any, Any]:
    """The result, and the gradients of image and filter for the cotangent ``g``, element by element of the filter."""
    wide = np.pad(x, ((0, 0), *pairs, (0, 0)))
    z, to_wide, to_f = np.zeros_like(g), np.zeros_like(wide), np.zeros_like(f)
    for i, j in np.ndindex(f.shape[:2]):
        place = np.s_[:, i : i + g.shape[1], j : j + g.shape[2]]
        z += wide[place] @ f[i, j]
        to_wide[place] += g @ f[i, j].T
        to_f[i, j] = np.tensordot(wide[place], g, ((0, 1, 2), (0, 1, 2)))
    (above, _), (left, _) = pairs
    return z, to_wide[:, above : above + x.shape[1], left : left + x.shape[2]], to_f


def near(z: Any, expected: Any, tolerance: float = 1e-13) -> None:
    assert z.shape == expected.shape
    assert np.abs(z - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("pairs", [((0, 0), (0, 0)), ((1, 1), (1, 1)), ((2, 0), (0, 3)), ((0, 3), (4, 1))])
@pytest.mark.parametrize(
    ("images", "height", "width", "k", "channels", "depth"),
    [(2, 5, 6, 3, 2, 3), (3, 4, 3, 3, 1, 1), (1, 3, 5, 1, 2, 2), (2, 6, 7, 5, 3, 2), (5, 33, 30, 3, 20, 24),
     (2, 71, 64, 3, 32, 8)],
)  # fmt: skip
def test_pair_convolve_matches_definition(
    images: int, height: int, width: int, k: int, channels: int, depth: int, pairs: Any
) -> None:
    x, f = draw(images, height, width, channels), draw(3, k, channels, depth)
    windows = plan_windows("conv2d", (height, width), (3, k), 1, pairs)
    g = draw(images, *windows.out, depth)
    z, to_x, to_f = by_definition(x, f, g, pairs)
    near(pair_convolve(x, f, windows), z)
    near(pair_convolve_filter(x, g, windows), to_f)
    turned = pair_convolve(g, f[::-1, ::-1].swapaxes(2, 3), windows.adjoint((height, width)))
    near(turned, to_x)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    ("height", "width", "pad", "pairs"),
    [
        (46, 47, "same", ((1, 1), (1, 1))),
        (51, 50, "valid", ((0, 0), (0, 0))),
        (43, 45, 4, ((4, 4), (4, 4))),
        (48, 44, ((0, 3), (2, 0)), ((0, 3), (2, 0))),
    ],
)
def test_conv2d_and_gradients_of_large_images(height: int, width: int, pad: Any, pairs: Any, layout: str) -> None:
    x, f = draw(2, height, width, 64), draw(3, 3, 64, 68)
    windows = plan_windows("conv2d", (height, width), (3, 3), 1, pad)
    assert is_worthwhile(windows, 64, 68, x.dtype)
    g = draw(2, *windows.out, 68)
    expected, to_x, to_f = by_definition(x, f, g, pairs)

    def conv(x: Any, f: Any) -> Any:
        x = x if layout == "NHWC" else pb.moveaxis(x, -1, 1)
        z = pb.conv2d(x, f, 1, pad, layout)
        return z if layout == "NHWC" else pb.moveaxis(z, 1, -1)

    z, grads = pb.value_and_grads(lambda x, f: pb.sum(conv(x, f) * g))([x, f])
    near(conv(x, f), expected)
    near(np.asarray(z), np.sum(expected * g), 1e-11)
    near(np.asarray(grads[0]), to_x)
    near(np.asarray(grads[1]), to_f)


def test_float32_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    x, f, g = (a.astype("f4") for a in (draw(2, 45, 46, 64), draw(3, 3, 64, 72), draw(2, 45, 46, 72)))
    exact = by_definition(x.astype("f8"), f.astype("f8"), g.astype("f8"), ((1, 1), (1, 1)))

    def errors() -> list[Any]:
        z, back = pb.vjp(lambda x, f: pb.conv2d(x, f, 1, "same"), x, f)
        made = [np.asarray(a) for a in (z, *back(g))]
        assert {a.dtype for a in made} == {np.dtype("f4")}
        return [np.sqrt(np.mean((a - e) ** 2)) for a, e in zip(made, exact, strict=True)]

    pairs = errors()
    monkeypatch.setattr(convolution, "is_worthwhile", lambda *_: False)
    direct = errors()
    assert pairs != direct  # two ways
    assert all(a <= 2 * b for a, b in zip(pairs, direct, strict=True))


def test_nan_pixel_affects_only_its_windows() -> None:
    x, f = draw(1, 48, 48, 64), draw(3, 3, 64, 64)
    x[0, 20, 47] = np.nan
    z = pb.conv2d(x, f, 1, "same")
    assert np.isnan(z[0, 19:22, 46:]).all()
    assert np.isnan(z).sum() == 3 * 2 * 64


WINDOWS = Windows((3, 3), (1, 1), (1, 1), (1, 1), (56, 56))


@pytest.mark.parametrize(
    ("windows", "channels", "depth", "dtype"),
    [
        (WINDOWS._replace(strides=(1, 2)), 64, 64, "f4"),
        (WINDOWS._replace(dilations=(2, 1)), 64, 64, "f4"),
        (WINDOWS._replace(size=(3, 5)), 64, 64, "f4"),
        (WINDOWS._replace(size=(3,), strides=(1,), dilations=(1,), before=(1,), out=(4096,)), 64, 64, "f4"),
        (WINDOWS._replace(out=(14, 14)), 64, 64, "f4"),
        (WINDOWS._replace(out=(500, 10)), 64, 64, "f4"),
        (WINDOWS, 32, 64, "f4"),
        (WINDOWS._replace(out=(300, 300)), 16, 64, "f4"),
        (WINDOWS, 64, 512, "f4"),
        (WINDOWS, 64, 64, "i8"),
        (WINDOWS, 64, 64, "c16"),
    ],
)
def test_other_convolutions_use_direct_products(windows: Windows, channels: int, depth: int, dtype: str) -> None:
    assert is_worthwhile(WINDOWS, 64, 64, np.dtype("f4"))
    assert not is_worthwhile(windows, channels, depth, np.dtype(dtype))
