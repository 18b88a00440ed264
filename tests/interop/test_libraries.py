"""Libraries of arrays, tables and plots beside tensors; each test is skipped where its library is not installed."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import PullbackError

X = np.array([1.0, 2.0, 3.0])
M = np.arange(6.0).reshape(2, 3)


def check(f: Callable[[Any], Any], x: Any = X) -> None:
    """Compare a gradient with finite differences, and the value with that of the plain array."""
    found = pb.grad(lambda t: np.sum(f(t)))(x)
    flat = np.empty(x.size)
    for i in range(x.size):
        step = np.zeros(x.size)
        step[i] = 1e-6
        up, down = (float(np.sum(np.asarray(f(x + s * step.reshape(x.shape))))) for s in (1, -1))
        flat[i] = (up - down) / 2e-6
    assert np.allclose(found, flat.reshape(x.shape), atol=1e-6)


# ---- pandas and xarray


def test_pandas_operators_give_tensors() -> None:
    pd = pytest.importorskip("pandas")
    s, df = pd.Series(X), pd.DataFrame({"a": X, "b": X + 3})
    t = pb.tensor(X)
    for z in (s * t, t * s, s + t, t - s, s / t, s**t, df.T * t, df * t[0]):
        assert type(z) is pb.Tensor
    assert pd.Series(t).dtype == np.float64
    for f in (lambda t: s.values * t, lambda t: np.dot(s, t), lambda t: np.where(s.values > 1, t, 0.0)):
        check(f)
    assert np.allclose(pb.grad(lambda t: np.sum(s * t))(X), X)
    assert np.allclose(pb.grad(lambda t: np.sum(df.T @ t))(X), df.sum(axis=1))
    with pytest.raises(PullbackError, match="lose its gradient"):
        pb.grad(lambda t: pd.Series(t).sum())(X)


def test_xarray_wraps_tensors() -> None:
    xr = pytest.importorskip("xarray")

    def wrap(t: Any) -> Any:
        return xr.DataArray(t, dims="x", coords={"x": [0, 1, 2]})

    assert type(xr.DataArray(pb.tensor(X)).data) is pb.Tensor
    for f in (
        lambda t: (wrap(t) * wrap(X)).data,
        lambda t: wrap(t).mean("x").data,
        lambda t: wrap(t).std().data,
        lambda t: wrap(t).sel(x=1).data ** 2,
        lambda t: wrap(t).isel(x=slice(1, 3)).sum().data ** 2,
        lambda t: (wrap(t) * xr.DataArray(X, dims="y")).transpose("y", "x").data,
        lambda t: (xr.Dataset({"a": ("x", t)})["a"] ** 2).sum().data,
        lambda t: xr.concat([wrap(t), wrap(t)], "x").sum().data,
        lambda t: np.exp(wrap(t)).where(wrap(X) > 1, 0.0).data,
        lambda t: xr.dot(wrap(t), wrap(X)).data,
        lambda t: wrap(t).cumsum().diff("x").data ** 2,
        lambda t: wrap(t).copy(deep=True).clip(1.5, 2.5).data,
    ):
        check(f)
    with pytest.raises(PullbackError, match="lose its gradient"):
        pb.grad(lambda t: wrap(t).values.sum())(X)


# ---- matplotlib


@pytest.mark.filterwarnings("ignore::DeprecationWarning:matplotlib")  # older ones call an older pyparsing
def test_matplotlib_plots_untraced_tensors() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    t = pb.tensor(X)
    figure, axes = plt.subplots()
    axes.plot(t, t**2)
    axes.scatter(t, t, c=t)
    axes.hist(t)
    axes.imshow(t[:, None] * t)
    axes.axhline(t[0])
    axes.plot(pb.variable(X))
    figure.savefig(io.BytesIO(), format="png")
    for draw in (lambda t: axes.plot(t), lambda t: axes.axhline(t[0])):
        with pytest.raises(PullbackError, match="stop_gradient"):
            pb.grad(lambda t, draw=draw: (draw(t), np.sum(t))[1])(X)
    plt.close(figure)


# ---- einops, autoray, opt_einsum


def test_einops_operations_on_tensors() -> None:
    einops = pytest.importorskip("einops")
    for f in (
        lambda t: einops.rearrange(t, "a (b c) -> b a c", c=3) ** 2,
        lambda t: einops.reduce(t, "a b -> a", "mean") ** 2,
        lambda t: einops.reduce(t, "a b -> b", "max"),
        lambda t: einops.repeat(t, "a b -> a b c", c=2) ** 2,
        lambda t: einops.einsum(t, M, "a b, c b -> a c") ** 2,
        lambda t: einops.pack([t, t], "* b")[0] ** 2,
        lambda t: einops.rearrange([t, t], "k a b -> a b k") ** 2,
    ):
        check(f, M + 1)
        assert np.allclose(pb.compile(f)(M), f(M))
    assert type(einops.asnumpy(pb.tensor(M))) is np.ndarray
    with pytest.raises(PullbackError):
        pb.grad(lambda t: einops.asnumpy(t).sum())(M)


def test_autoray_calls_numpy_functions() -> None:
    autoray = pytest.importorskip("autoray")
    do = autoray.do
    for f in (
        lambda t: do("linalg.norm", t),
        lambda t: do("stack", [t, t]) ** 2,
        lambda t: do("einsum", "i,i->", t, t),
        lambda t: do("cumsum", do("reshape", t, (3, 1))),
        lambda t: do("eye", 3, like=t) @ t,
    ):
        check(f)
    assert autoray.infer_backend(pb.tensor(X)) == "pullback"
    assert int(do("argmax", pb.tensor(M))) == 5
    assert type(autoray.to_numpy(pb.tensor(X))) is np.ndarray


@pytest.mark.parametrize("first", ["einops", "pullback"])
def test_einops_and_autoray_take_tensors_in_any_import_order(first: str) -> None:
    pytest.importorskip("einops")
    second = {"einops": "pullback", "pullback": "einops"}[first]
    code = f"import {first}, {second}, gc; gc.collect(); import pullback as pb, einops\n"
    code += "assert einops.rearrange(pb.tensor([[1.0, 2.0]]), 'a b -> b a').shape == (2, 1)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_opt_einsum_contract_of_tensors() -> None:
    oe = pytest.importorskip("opt_einsum")
    for backend in ("auto", "numpy"):
        check(lambda t, b=backend: oe.contract("ij,jk,kl->il", t, M.T, M if t is M else t, backend=b), M)
    check(lambda t: oe.contract_expression("ij,jk->ik", (2, 3), (3, 2))(t, M.T), M)
    assert type(oe.contract("ij,jk,kl->il", pb.tensor(M), M.T, M)) is pb.Tensor


# ---- pickle and joblib


def square(x: Any) -> Any:
    return np.sum(x**2)


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "vmap", "jacobian", "hessian", "compile", "checkpoint"])
def test_wrapped_functions_pickle(name: str) -> None:
    wrap = getattr(pb, name)
    again = pickle.loads(pickle.dumps(wrap(square)))
    assert pickle.dumps(again(M)) == pickle.dumps(wrap(square)(M))


def test_joblib_keeps_tensors_and_variables() -> None:
    joblib = pytest.importorskip("joblib")
    for given in (pb.tensor(X), pb.variable(X, name="kept"), {"w": pb.tensor(M)}):
        file = io.BytesIO()
        joblib.dump(given, file)
        file.seek(0)
        again = joblib.load(file)
        assert type(again) is type(given)
        one, other = (g["w"] if isinstance(g, dict) else g for g in (given, again))
        assert np.array_equal(np.asarray(one), np.asarray(other))
    assert joblib.hash(pb.tensor(X)) == joblib.hash(pb.tensor(X)) != joblib.hash(pb.tensor(X + 1))
