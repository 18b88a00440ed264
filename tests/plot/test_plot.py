"""``pb.plot``: what is drawn, on which axes, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import pullback as pb

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def labels(picture) -> list[str]:
    return [e.text or "" for e in ET.fromstring(picture.svg).iter("{http://www.w3.org/2000/svg}text")]


def test_plot_function_draws_exact_derivatives() -> None:
    ax = pb.plot.function(lambda x: x**3, -1.0, 1.0, derivatives=2, points=5)
    x = np.linspace(-1.0, 1.0, 5)
    for line, y in zip(ax.get_lines(), [x**3, 3 * x**2, 6 * x], strict=True):
        np.testing.assert_allclose(line.get_ydata(), y, atol=1e-12)


def test_plot_function_leaves_gaps_at_non_finite_values() -> None:
    ax = pb.plot.function(np.log, -1.0, 1.0, derivatives=0, points=5)
    np.testing.assert_array_equal(np.isfinite(ax.get_lines()[0].get_ydata()), [False, False, False, True, True])


def test_plot_functions_draw_on_given_axes() -> None:
    _, ax = plt.subplots()
    assert pb.plot.function(np.sin, 0.0, 1.0, ax=ax) is ax
    assert pb.plot.field(lambda x, y: x * y, (-1, 1), (-1, 1), ax=ax) is ax
    assert pb.plot.weights({"w": np.ones(3)}, ax=ax) is ax
    assert pb.plot.confusion([0, 1], [[0.9, 0.1], [0.2, 0.8]], ax=ax) is ax


def test_plot_gradients_marks_vanishing_and_exploding() -> None:
    ax = pb.plot.gradients({"a": [1.0, 1e-9], "b": [1e6, np.nan]})
    assert len(ax.collections) == 3  # vanishing, exploding, not finite
    steps = [{"w": np.array([3.0, 4.0])}, {"w": None}]
    np.testing.assert_array_equal(pb.plot.gradients(steps).get_lines()[0].get_ydata(), [5.0, np.nan])


def test_plot_confusion_shows_counts_and_shares() -> None:
    ax = pb.plot.confusion([0, 0, 1, 2], [0, 1, 1, 2])
    np.testing.assert_array_equal(ax.images[0].get_array(), [[1, 1, 0], [0, 1, 0], [0, 0, 1]])
    with pytest.raises(pb.errors.ArgumentError, match="one length"):
        pb.plot.confusion([0, 1], [0])


def test_plot_filters_takes_layers_and_arrays() -> None:
    model = pb.sequential([pb.layers.conv2d(3, 2, input_shape=[4, 4, 2])])
    assert len(pb.plot.filters(model.layers[0])) == 3
    _, ax = plt.subplots()
    assert pb.plot.filters(model.layers[0], columns=2, ax=ax) is ax
    assert ax.images[0].get_array().shape == (2 * (2 + 1), 2 * (2 + 1))  # 3 filters of 2 × 2 in rows of 2, with lines
    with pytest.raises(pb.errors.ArgumentError, match="height, width"):
        pb.plot.filters(np.ones((3, 3)))


def test_plot_graph_shows_ops_shapes_and_gradients(tmp_path: Path) -> None:
    picture = pb.plot.graph(lambda x, w: np.sum(np.tanh(x @ w)), np.ones((2, 3)), np.ones((3, 2)))
    assert {"x", "w", "matmul", "tanh", "sum"} <= {*labels(picture)}
    assert any(label.startswith("float64[2, 2] |g| ") for label in labels(picture))
    picture.save(tmp_path / "graph.svg")
    assert ET.parse(tmp_path / "graph.svg").getroot().tag.endswith("svg")


def test_plot_graph_marks_non_finite_values() -> None:
    assert any("not finite" in label for label in labels(pb.plot.graph(np.log, 0.0)))


def test_plot_model_shows_branches() -> None:
    x = pb.input([4])
    a, b = pb.layers.dense(3, name="left")(x), pb.layers.dense(2, name="right")(x)
    picture = pb.plot.model(pb.model(x, pb.layers.concatenate(name="join")(a, b)))
    found = labels(picture)
    assert "left (dense)" in found
    assert "(batch, 3) · 15 parameters" in found
    assert picture.svg.count("data-edge") == 4
    with pytest.raises(pb.errors.ArgumentError, match="expected a model"):
        pb.plot.model(3)


def test_plot_model_shows_layers_that_are_not_built() -> None:
    picture = pb.plot.model(pb.sequential([pb.layers.dense(3, name="first")]))
    assert [label for label in labels(picture) if label] == ["input", "first (dense)", "not built yet"]
    assert repr(picture) == f"<picture, {len(picture.svg)} characters of SVG>"


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: pb.plot.function(np.sin, 0, 1, derivatives=-1), "ArgumentError", "must be 0 or more, got -1"),
        (lambda: pb.plot.field(np.add, (0, 1), (0, 1), path=[1.0, 2.0]), "ArgumentError", r"an array of shape \(2,\)"),
        (lambda: pb.plot.graph(3), "ArgumentError", "f must be a function, got int"),
        (lambda: pb.plot.history(3), "ArgumentError", "expected what fit returned, got int"),
        (lambda: pb.plot.gradients([]), "DataError", "there is no gradient to draw"),
        (lambda: pb.plot.weights({}), "DataError", "there are no weights; build the model first"),
    ],
)  # fmt: skip
def test_plot_rejects_wrong_arguments(call, kind: str, message: str) -> None:
    with pytest.raises(getattr(pb.errors, kind), match=message):
        call()


def test_missing_matplotlib_error_names_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(pb.errors.MissingPackageError, match=r"plot.function needs matplotlib.*pullback\[plot\]"):
        pb.plot.function(np.sin, 0.0, 1.0)


def test_plot_confusion_numbers_contrast_with_cells() -> None:
    ax = pb.plot.confusion([0] * 10 + [1] * 18, [0] * 6 + [1] * 4 + [0] * 10 + [1] * 8)
    (image,) = ax.images
    for text in ax.texts:
        x, y = map(int, text.get_position())
        back = image.cmap(image.norm(image.get_array()[y, x]))[:3]
        assert abs(sum(matplotlib.colors.to_rgb(text.get_color())) - sum(back)) > 1.0


def test_plot_confusion_rejects_invalid_classes() -> None:
    for labels, predictions in (([0, -1], [0, 1]), ([0, 1], [0.2, 0.9])):
        with pytest.raises(pb.errors.ArgumentError, match="must be whole numbers of 0 or more"):
            pb.plot.confusion(labels, predictions)
    with pytest.raises(pb.errors.ArgumentError, match="more classes than the 2 names"):
        pb.plot.confusion([0, 2], [0, 1], classes=["cat", "dog"])
