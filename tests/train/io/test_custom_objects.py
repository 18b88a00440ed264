"""Classes and functions of the user's in files: by their names, given in custom_objects or registered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, CheckpointError

pytest.importorskip("safetensors")
pytest.importorskip("h5py")
layers = pb.layers
X = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=(6, 2)).astype(np.float32)
ENDS = ["keras", "h5", "safetensors"]


def double(x: Any) -> Any:
    return 2.0 * x


def fourth(y: Any, p: Any) -> Any:
    return np.mean((y - p) ** 4, axis=-1)


def thirds(shape: Any, dtype: Any = None) -> Any:
    return np.full(shape, 1 / 3, dtype)


class Largest(pb.metrics.Metric):
    """The largest error times a factor."""

    def __init__(self, factor: float = 1.0, name: str = "largest") -> None:
        super().__init__(name=name)
        self.factor, self.worst = factor, 0.0

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.worst = max(self.worst, float(np.max(np.abs(y_true - y_pred))))

    def result(self) -> float:
        return self.factor * self.worst

    def reset_state(self) -> None:
        self.worst = 0.0

    def get_config(self) -> dict[str, Any]:
        return {"factor": self.factor, "name": self.name}


@pytest.mark.parametrize("end", ENDS)
def test_functions_are_saved_by_name_and_found_in_custom_objects(end: str, tmp_path: Any) -> None:
    path = tmp_path / f"model.{end}"
    model = pb.sequential([layers.dense(2, activation=double, kernel_initializer=thirds, input_shape=[3])])
    model.compile("sgd", fourth, metrics=[fourth, "mae"])
    model.fit(X, Y, verbose=0)
    model.save(path)
    again = pb.load_model(path, custom_objects={"double": double, "fourth": fourth, "thirds": thirds})
    assert again.evaluate(X, Y) == model.evaluate(X, Y)
    again.fit(X, Y, verbose=0)  # outside of the scope
    with pytest.raises(CheckpointError, match=r"double|thirds"):
        pb.load_model(path)
    plain = pb.load_model(path, {"double": double, "thirds": thirds}, compile=False)
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))


@pytest.mark.parametrize("end", ENDS)
def test_load_model_error_names_unknown_loss(end: str, tmp_path: Any) -> None:
    model = pb.sequential([layers.dense(2, input_shape=[3])])
    model.compile("sgd", fourth)
    model.save(tmp_path / f"model.{end}")
    with pytest.raises((ArgumentError, CheckpointError), match="fourth"):
        pb.load_model(tmp_path / f"model.{end}")


@pytest.mark.parametrize("end", ENDS)
def test_load_model_uses_classes_of_custom_objects(end: str, tmp_path: Any) -> None:
    class Gate(layers.Layer):
        def __init__(self, units: int, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.units = units

        def build(self, input_shape: Any) -> None:
            self.kernel = self.add_weight(name="kernel", shape=(input_shape[-1], self.units))

        def call(self, inputs: Any) -> Any:
            return inputs @ self.kernel

        def get_config(self) -> dict[str, Any]:
            return {**super().get_config(), "units": self.units}

    twofold = type("Gate", (Gate,), {"call": lambda self, inputs: 2.0 * Gate.call(self, inputs)})
    model = pb.sequential([Gate(2, input_shape=[3])])
    model.compile("sgd", "mse", metrics=[Largest(3.0)])
    expected = model.evaluate(X, Y)
    model.save(tmp_path / f"model.{end}")
    own = {"Gate": Gate, "Largest": Largest}
    assert pb.load_layers_model(tmp_path / f"model.{end}", custom_objects=own).evaluate(X, Y) == expected
    other = pb.load_model(tmp_path / f"model.{end}", {**own, "Gate": twofold})
    np.testing.assert_allclose(other.predict(X), 2 * model.predict(X), rtol=1e-6)


def test_registered_functions_are_found_without_custom_objects(tmp_path: Any) -> None:
    triple = pb.train.register_serializable("shop", "threefold")(lambda x: 3.0 * x)
    model = pb.sequential([layers.dense(2, activation=triple, input_shape=[3])])
    assert "shop>threefold" in model.to_json()
    np.testing.assert_array_equal(pb.model_from_json(model.to_json()).layers[0].activation(X), 3 * X)
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(pb.load_model(tmp_path / "model.keras").predict(X), model.predict(X))


def test_custom_object_scope() -> None:
    with pb.train.custom_object_scope({"double": double, "thirds": thirds}):
        layer = layers.dense(2, activation="double", kernel_initializer="thirds", input_shape=[3])
        with pb.train.custom_object_scope({"fourth": fourth}):
            model = pb.sequential([layer])
            model.compile("sgd", "fourth")
    np.testing.assert_allclose(model.predict(X), 2 * np.sum(X / 3, 1, keepdims=True).repeat(2, 1), rtol=1e-5)
    with pytest.raises(ArgumentError, match="activation must be a function or one of"):
        layers.dense(2, activation="double")
    with pytest.raises(ArgumentError, match="'double' is neither a class nor a function"):
        pb.load_model("anything.keras", {"double": 2.0})


def test_activation_made_by_exec_is_saved_by_name(tmp_path: Any) -> None:
    made: dict[str, Any] = {}
    exec("def halve(x): return x * 0.5", made)
    model = pb.sequential([layers.dense(2, activation=made["halve"], input_shape=[3])])
    model.save(tmp_path / "model.keras")
    again = pb.load_model(tmp_path / "model.keras", {"halve": made["halve"]})
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_to_json_rejects_lambda_activation() -> None:
    model = pb.sequential([layers.dense(2, activation=lambda x: x, input_shape=[3])])
    with pytest.raises(CheckpointError, match="cannot hold"):
        model.to_json()


def test_model_subclass_overrides_compute_loss() -> None:
    class Weighted(pb.Model):
        def __init__(self) -> None:
            super().__init__()
            self.inner = layers.dense(2, kernel_initializer="ones")

        def call(self, x: Any) -> Any:
            return self.inner(x)

        def compute_loss(
            self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
        ) -> Any:
            return 3.0 * super().compute_loss(x, y, y_pred, sample_weight, training) + np.mean(x**2)

    plain = pb.sequential([layers.dense(2, kernel_initializer="ones", input_shape=[3])])
    plain.compile(pb.train.sgd(0.3), "mse", metrics=["mae"])
    for eager in (False, True):
        model = Weighted()
        model.compile(pb.train.sgd(0.1), "mse", metrics=["mae"], eager=eager)
        loss, mae = model.evaluate(X, Y)
        expected = plain.evaluate(X, Y)
        np.testing.assert_allclose([loss, mae], [3 * expected[0] + np.mean(X**2), expected[1]], rtol=1e-5)
        model.fit(X, Y, batch_size=6, verbose=0)
        again = pb.sequential([layers.dense(2, kernel_initializer="ones", input_shape=[3])])
        again.compile(pb.train.sgd(0.3), "mse")
        again.fit(X, Y, batch_size=6, verbose=0)
        np.testing.assert_allclose(model.predict(X), again.predict(X), rtol=1e-5)
