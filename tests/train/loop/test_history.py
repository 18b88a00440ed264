"""History: numbers and plots; and model summaries."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import pullback as pb
from pullback.errors import DataError, MissingPackageError
from pullback.train.loop.history import History
from pullback.train.nn.summary import format_summary


def made(*names):
    history = History(steps=20, seconds=1.25)
    for epoch in range(3):
        history.add(epoch, {name: np.float32(1 / (epoch + 1 + i)) for i, name in enumerate(names)})
    return history


def test_history_add():
    history = made("loss", "val_loss")
    assert history.epochs == [0, 1, 2]
    assert history.history["loss"] == pytest.approx([1, 1 / 2, 1 / 3])
    assert {type(value) for value in history.history["val_loss"]} == {float}
    history.add(3, {"loss": 0.25, "acc": 1.0})
    assert history.history["acc"] == [1.0]  # as in Keras: an epoch without it has no entry
    assert len(history.history["val_loss"]) == 3


def test_history_repr():
    assert repr(made("loss")) == "History(3 epochs, 20 steps, 1.2 s; loss 1 → 0.3333)"
    history = History(stopped="Ctrl-C")
    assert repr(history) == "History(0 epochs, 0 steps, 0.0 s; stopped: Ctrl-C)"
    history.add(0, {"loss": 0.5})
    assert repr(history) == "History(1 epoch, 0 steps, 0.0 s; loss 0.5; stopped: Ctrl-C)"


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def drawn(ax):
    return {
        line.get_label(): (line.get_linestyle(), list(line.get_xdata()), line.get_color()) for line in ax.get_lines()
    }


def test_history_plot_has_every_number(pyplot, tmp_path):
    ax = made("loss", "acc", "val_loss", "val_acc").plot()
    left, right = (drawn(one) for one in ax.figure.axes)
    assert {name: style for name, (style, _, _) in left.items()} == {"loss": "-", "val_loss": "--"}
    assert {name: style for name, (style, _, _) in right.items()} == {"acc": "-", "val_acc": "--"}
    assert left["loss"][1] == [1, 2, 3]
    assert left["loss"][2] == left["val_loss"][2] != right["acc"][2]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["loss", "val_loss", "acc", "val_acc"]
    ax.figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000


def test_history_plot_in_given_axes(pyplot):
    ax = pyplot.figure().subplots()
    assert made("loss", "val_loss").plot(ax) is ax
    assert list(drawn(ax)) == ["loss", "val_loss"]
    assert len(ax.figure.axes) == 1
    assert list(drawn(made("acc").plot())) == ["acc"]


def test_history_plot_errors(monkeypatch):
    with pytest.raises(DataError, match="there is no epoch to draw yet"):
        History().plot()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'pullback\[plot\]'"):
        made("loss").plot()


# ---- summaries


def table(model):
    """Return the rows of the summary: name and kind, shape, parameters."""
    lines = format_summary(model).splitlines()
    cut = lines[1].index("Output shape")
    return [(line[:cut].strip(), *line[cut:].rsplit(maxsplit=1)) for line in lines[3:-2]], lines[-1]


def in_words(rows):
    return [(name, shape.strip(), count) for name, shape, count in rows]


def test_summary_sequential():
    model = pb.sequential([pb.layers.flatten(input_shape=[28, 28]), pb.layers.dense(256), pb.layers.dense(10)])
    model.layers[1].trainable = False
    rows, totals = table(model)
    assert in_words(rows) == [
        ("flatten_1 (flatten)", "(batch, 784)", "0"),
        ("dense_1 (dense)", "(batch, 256)", "200,960"),
        ("dense_2 (dense)", "(batch, 10)", "2,570"),
    ]
    assert totals == "Parameters: 203,530, of which trainable 2,570, not trainable 200,960"


def test_summary_functional_counts_shared_layers_once():
    x, shared = pb.input([3]), pb.layers.dense(3, name="shared")
    model = pb.model(x, pb.layers.dense(1)(shared(shared(x))), name="twice")
    rows, totals = table(model)
    assert in_words(rows) == [("shared (dense)", "(batch, 3)", "12"), ("dense_2 (dense)", "(batch, 1)", "4")]
    assert totals.startswith("Parameters: 16,")
    assert format_summary(model).startswith("Model 'twice' (functional)\n")


class Own(pb.Model):
    def __init__(self, **more):
        super().__init__(name="own", **more)
        self.inner = pb.sequential([pb.layers.dense(4), pb.layers.dropout(0.5)])
        self.scale = pb.variable([2.0, 2.0, 2.0, 2.0])
        self.outer = pb.layers.dense(1)

    def call(self, x, training=False):
        return self.outer(self.inner(x, training=training) * self.scale)


def test_summary_custom_model():
    model = Own(input_shape=[3])
    model(np.ones((1, 3)))
    rows, totals = table(model)
    assert in_words(rows) == [
        ("inner (sequential)", "(batch, 4)", "16"),
        ("scale (variable)", "(4,)", "4"),
        ("outer (dense)", "(batch, 1)", "5"),
    ]
    assert totals.startswith("Parameters: 25,")
    assert "call" not in vars(model.inner)
    without = Own()
    without(np.ones((1, 3)))
    assert table(without)[0] == rows  # it was built for the input


def test_summary_counts_shared_variables_once():
    model = Own()
    model(np.ones((1, 3)))
    model.again = pb.sequential([*model.inner.layers, model.outer])
    model.again(np.ones((1, 3)))
    rows, totals = table(model)
    assert [(name, count) for name, _, count in rows][1:] == [
        ("scale (variable)", "4"),
        ("outer (dense)", "5"),
        ("again (sequential)", "0"),
    ]
    assert totals.startswith("Parameters: 25,")


@pytest.mark.parametrize("model", [pb.sequential([pb.layers.dense(2), pb.layers.dense(1)]), Own()])
def test_summary_of_unbuilt_model(model):
    rows, totals = table(model)
    assert in_words(rows)[0][1:] == in_words(rows)[-1][1:] == ("?", "?")
    assert totals == "Not built yet: parameters are made for the first input. Give input_shape, or call it once."
