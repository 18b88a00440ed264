"""Models used as in Keras: dicts of inputs and outputs, the order of layers, parts of models, hooks of callbacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, CheckpointError

pytest.importorskip("safetensors")
layers = pb.layers
X = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=(6, 2)).astype(np.float32)


def make_dict_model() -> Any:
    a, b = pb.input([3], name="a"), pb.input([2], name="b")
    total = layers.dense(1, name="total")(layers.concatenate()([a, b]))
    return pb.model({"x": a, "y": b}, {"sum": total, "double": layers.dense(2, name="d")(a)})


# ---- dicts


def test_model_of_dicts_keeps_keys() -> None:
    model, x = make_dict_model(), {"y": Y, "x": X}
    assert list(model(x)) == list(model.predict(x)) == ["sum", "double"]
    model.compile("sgd", {"sum": "mse", "double": "mae"}, metrics={"double": ["mae"]})
    y = {"double": Y, "sum": X[:, :1]}
    history = model.fit(x, y, verbose=0).history
    assert list(history) == ["loss", "sum_loss", "double_loss", "double_mae"]
    assert model.input["x"].name == "a"
    assert model.output["double"].shape == (2,)
    with pytest.raises(ArgumentError, match="there is no 'b'; there are x, y"):
        model.fit({"x": X, "b": Y}, y)
    with pytest.raises(ArgumentError, match="there is no array for 'y'"):
        model.fit({"x": X}, y)


def test_nested_model_of_dicts() -> None:
    inner, u, v = make_dict_model(), pb.input([3]), pb.input([2])
    outer = pb.model([u, v], inner({"x": u, "y": v})["sum"] * 2.0)
    np.testing.assert_allclose(outer.predict([X, Y]), 2 * inner.predict({"x": X, "y": Y})["sum"], rtol=1e-6)


@pytest.mark.parametrize("end", ["keras", "h5", "safetensors", "json"])
def test_save_and_load_model_of_dicts(end: str, tmp_path: Any) -> None:
    model, x = make_dict_model(), {"x": X, "y": Y}
    model.compile("sgd", {"sum": "mse", "double": "mae"}, metrics={"double": ["mae"]})
    model.save(tmp_path / f"model.{end}")
    again = pb.load_layers_model(tmp_path / f"model.{end}")
    made = again.predict([X, Y] if end == "json" else x)  # TensorFlow.js has lists alone
    listed = made if end == "json" else list(made.values())
    for y, expected in zip(listed, model.predict(x).values(), strict=True):
        np.testing.assert_array_equal(y, expected)
    assert len(again.metrics_names) == 4


def test_model_of_several_inputs_takes_dict_by_name() -> None:
    a, b = pb.input([3], name="a"), pb.input([2], name="b")
    assert pb.model([a, b], layers.concatenate()([a, b]))({"b": Y, "a": X}).shape == (6, 5)


# ---- the order of layers


def make_branches() -> Any:
    x = pb.input([3])
    short = layers.dense(3, name="short")(x)
    long = layers.dense(3, name="late")(layers.dense(3, name="early")(x))
    return pb.model(x, layers.add(name="both")([short, long]))


def test_functional_layers_have_order_of_keras() -> None:
    assert [layer.name for layer in make_branches().layers] == ["early", "short", "late", "both"]
    a, b = pb.input([2]), pb.input([2])  # a shared layer counts where it is farthest from the output
    shared = layers.dense(2, name="shared")
    deep = layers.dense(2, name="deep")(shared(layers.dense(2, name="first")(a)))
    model = pb.model([a, b], layers.add(name="both")([deep, shared(layers.dense(2, name="second")(b))]))
    assert [layer.name for layer in model.layers] == ["first", "shared", "second", "deep", "both"]


@pytest.mark.parametrize("end", ["keras", "h5", "weights.h5"])
def test_branch_weights_roundtrip_to_their_layers(end: str, tmp_path: Any) -> None:
    pytest.importorskip("h5py")
    model = make_branches()
    if end == "weights.h5":
        again = make_branches()
        model.save_weights(tmp_path / f"model.{end}")
        again.load_weights(tmp_path / f"model.{end}")
    else:
        model.save(tmp_path / f"model.{end}")
        again = pb.load_layers_model(tmp_path / f"model.{end}")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


# ---- parts and tables


def test_input_and_output_of_a_model() -> None:
    model = pb.sequential([layers.dense(4, name="h", input_shape=[3]), layers.dense(2)])
    assert pb.model(model.input, model.get_layer("h").output).predict(X).shape == (6, 4)
    assert pb.model(model.input, layers.dense(1)(model.output)).predict(X).shape == (6, 1)
    assert make_branches().output.shape == (3,)

    class Own(pb.Model):
        def call(self, x: Any) -> Any:
            return x

    with pytest.raises(ArgumentError, match="class of your own"):
        _ = Own().output


def test_get_layer_by_name_or_index() -> None:
    model = make_branches()
    assert model.get_layer(name="late") is model.get_layer(index=2) is model.get_layer(2)
    with pytest.raises(ArgumentError, match="either the name of a layer or its index"):
        model.get_layer()


def test_summary_with_columns_and_nested_layers() -> None:
    inner = pb.sequential([layers.dense(2, input_shape=[3])], name="inner")
    inner.trainable = False
    lines: list[str] = []
    pb.sequential([inner, layers.dense(1)]).summary(print_fn=lines.append, expand_nested=True, show_trainable=True)
    assert lines[1].endswith("Trainable")
    assert lines[4].startswith("  dense_1 (dense)")
    assert lines[4].rstrip().endswith("no")


def test_model_call_with_inputs_keyword() -> None:
    model = pb.sequential([layers.dense(2, input_shape=[3])])
    np.testing.assert_array_equal(np.asarray(model(inputs=X)), np.asarray(model(X)))


# ---- hooks


class Recorder(pb.callbacks.Callback):
    """Writes down which hooks are called, and the losses that they are given."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.losses: list[float] = []

    def on_test_begin(self, logs: Any = None) -> None:
        self.calls.append("test begins")

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self.calls.append(f"tested {batch}")
        self.losses.append(logs["loss"])

    def on_test_end(self, logs: Any = None) -> None:
        self.calls.append("test ends")

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.calls.append(f"trained {batch}")
        self.losses.append(logs["loss"])

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        self.calls.append(f"predicted {batch}: {len(logs['outputs'])}")


def test_callback_hooks_of_evaluate_and_predict() -> None:
    model = pb.sequential([layers.dense(2, input_shape=[3])])
    model.compile(pb.train.sgd(0.0), "mse")
    seen = Recorder()
    whole = model.evaluate(X, Y, batch_size=4, callbacks=[seen])
    model.predict(X, batch_size=4, callbacks=seen)
    assert seen.calls == ["test begins", "tested 0", "tested 1", "test ends", "predicted 0: 4", "predicted 1: 2"]
    assert seen.losses[-1] == whole
    fitted = Recorder()
    model.fit(X, Y, batch_size=4, shuffle=False, callbacks=fitted, validation_data=(X[:2], Y[:2]), verbose=0)
    assert fitted.calls == ["trained 0", "trained 1", "test begins", "tested 0", "test ends"]
    np.testing.assert_allclose(fitted.losses[1], whole, rtol=1e-6)  # of the epoch up to now, as in Keras
    both = []
    model.fit(X, Y, batch_size=4, callbacks={"onBatchEnd": lambda batch, logs: both.append(logs["size"])}, verbose=0)
    assert both == [4, 2]


# ---- merging


@pytest.mark.parametrize(
    ("name", "formula"),
    [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("maximum", np.maximum)],
)
def test_merge_layers_broadcast_inputs_of_fewer_axes(name: str, formula: Any) -> None:
    x, y = np.arange(12.0).reshape(2, 2, 3), np.arange(6.0).reshape(2, 3) * 10  # as many steps as examples
    np.testing.assert_array_equal(np.asarray(getattr(layers, name)()([x, y])), formula(x, y[:, None]))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("maximum", [5.0, 7.0, 3.0, 4.0]), ("minimum", [1.0, 7.0, 3.0, 4.0]), ("multiply", [5.0, 7.0, 3.0, 0.0])],
)
def test_merge_layers_ignore_masked_steps(name: str, expected: list[float]) -> None:
    # recorded from Keras 3.15
    x, y = np.array([[[1.0], [2.0], [3.0], [4.0]]]), np.array([[[5.0], [7.0], [6.0], [8.0]]])
    masks = [np.array([[True, False, True, False]]), np.array([[True, True, False, False]])]
    merged = getattr(layers, name)()([x, y], mask=masks)
    np.testing.assert_array_equal(np.asarray(merged).ravel(), expected)


# ---- operators in files


@pytest.mark.parametrize("end", ["keras", "h5", "json"])
def test_operators_on_symbolic_tensors_are_saved_as_layers(end: str, tmp_path: Any) -> None:
    pytest.importorskip("h5py")
    x = pb.input([3])
    h = np.tanh(layers.dense(3)(x)) + x
    h = 1.0 - (2.0 * h * x - 1.0) / 4.0
    model = pb.model(x, pb.relu(-h) + np.maximum(h, x))
    model.save(tmp_path / f"model.{end}")
    again = pb.load_layers_model(tmp_path / f"model.{end}")
    assert {layer.kind for layer in again.layers} == {"dense", "activation", "add", "multiply", "rescaling", "maximum"}
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-6, atol=1e-6)


def test_operators_without_a_layer_or_after_masks_raise(tmp_path: Any) -> None:
    x, steps = pb.input([3]), layers.masking()(pb.input([4, 3]))
    for made in (pb.model(x, x[:, :1]), pb.model(steps.inputs[0], steps + steps)):  # a layer would pass the mask on
        with pytest.raises(CheckpointError, match="ApplyFunction"):
            made.save(tmp_path / "model.keras")


# ---- further names


def test_execute_returns_outputs_of_layers() -> None:
    model = make_branches()
    short, late = model.execute(X, ["short", "late"])
    np.testing.assert_allclose(np.asarray(short + late), model.predict(X), rtol=1e-5, atol=1e-6)
    assert model.execute([X], "early").shape == (6, 3)


def test_model_loss_metrics_and_history_attributes() -> None:
    model = pb.sequential([layers.input_layer(shape=[3]), layers.dense(2)])
    assert (model.loss, model.metrics, model.history) == (None, [], None)
    model.compile("sgd", "mse", metrics=["mae"])
    history = model.fit(X, Y, verbose=0)
    assert (model.loss, model.metrics) == ("mse", ["mae"])
    assert model.history is history


def test_merging_layer_given_tensors_as_arguments_error() -> None:
    x = pb.input([3])
    with pytest.raises(ArgumentError, match=r"pb.layers.add\(\)\(\[x, y\]\)"):
        layers.add([x, x])
