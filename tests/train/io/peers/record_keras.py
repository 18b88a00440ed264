"""Record models of Keras in its files, with inputs and predictions, for tests that read them without Keras.

KERAS_BACKEND=torch PYTHON_WITH_KERAS record_keras.py FOLDER: writes keras_models.zip.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")
import keras
import numpy as np

L = keras.layers


def stack(shape: list[Any], *layers: Any) -> Any:
    return keras.Sequential([keras.Input(shape), *layers])


def make_models() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["dense"] = stack(
        [3],
        L.Dense(4, activation="gelu", kernel_regularizer="l2"),
        L.BatchNormalization(),
        L.Dense(2, activation="softmax"),
    )
    made["dense"].compile("adam", "categorical_crossentropy", metrics=["accuracy"])
    made["image"] = stack(
        [8, 8, 2], L.Conv2D(3, 3, padding="same", activation="relu"), L.MaxPooling2D(), L.DepthwiseConv2D(2),
        L.SeparableConv2D(2, 2, activation="silu"), L.UpSampling2D(2), L.ZeroPadding2D(1),
        L.Conv2DTranspose(2, 2, strides=2), L.AveragePooling2D(3), L.LayerNormalization(), L.GlobalAveragePooling2D(),
    )  # fmt: skip
    made["image"].compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
    made["sequence"] = stack(
        [6, 2], L.Conv1D(3, 2, padding="causal"), L.Bidirectional(L.LSTM(2, return_sequences=True), merge_mode="ave"),
        L.GRU(3, return_sequences=True), L.TimeDistributed(L.Dense(3)), L.SimpleRNN(2, return_sequences=True),
        L.Dropout(0.5), L.GaussianNoise(0.1), L.AveragePooling1D(2), L.Permute([2, 1]), L.Flatten(), L.RepeatVector(2),
        L.Reshape([-1, 3]), L.GlobalMaxPooling1D(),
    )  # fmt: skip
    words = keras.Input([5], dtype="int32", name="words")
    h = L.Embedding(7, 4)(words)
    h = L.Add()([h, L.MultiHeadAttention(2, 3, name="heads")(h, h, use_causal_mask=True)])
    h = L.Add()([h, L.Attention()([h, h])])
    made["attention"] = keras.Model(words, L.Dense(2)(L.GlobalAveragePooling1D()(h)))
    inner = keras.Sequential([keras.Input([3]), L.Dense(2, name="hidden"), L.BatchNormalization()], name="inner")
    z = keras.Input([3])
    graph = keras.Model(z, [L.Dense(2)(z), L.Dense(3)(z)], name="graph")
    x, y = keras.Input([3], name="x"), keras.Input([3], name="y")
    shared = L.Dense(3, activation="tanh", name="shared")
    a, b = shared(x), shared(y)
    left, right = graph(b)
    made["branches"] = keras.Model(
        [x, y],
        [L.Concatenate(name="both")([a, b, right]), L.Subtract()([inner(a), left]), L.Dot(-1, normalize=True)([a, b])],
    )
    made["branches"].compile("rmsprop", ["mse", "mae", "mse"])
    s = keras.Input([4, 2])
    y, h, c = L.LSTM(3, return_sequences=True, return_state=True)(s)
    made["states"] = keras.Model(s, [L.LSTM(3)(y, initial_state=[h, c]), L.Maximum()([h, c])])
    return made


def main(folder: Path) -> None:
    rng = np.random.default_rng(0)
    with (
        zipfile.ZipFile(folder / "keras_models.zip", "w", zipfile.ZIP_DEFLATED) as archive,
        tempfile.TemporaryDirectory() as there,
    ):
        for name, model in make_models().items():
            model.set_weights([
                rng.uniform(0.2, 1, w.shape) if "variance" in v.path else rng.normal(size=w.shape) / 2
                for v, w in zip(model.weights, model.get_weights(), strict=True)
            ])  # fmt: skip
            inputs = [
                rng.integers(0, 7, (2, *x.shape[1:])) if x.dtype == "int32" else rng.normal(size=(2, *x.shape[1:]))
                for x in model.inputs
            ]
            inputs = [x.astype(np.int32 if x.dtype.kind == "i" else np.float32) for x in inputs]
            made = model.predict(inputs if len(inputs) > 1 else inputs[0], verbose=0)
            arrays = {f"x{i}": x for i, x in enumerate(inputs)}
            arrays |= {f"y{i}": y for i, y in enumerate(made if isinstance(made, list | tuple) else [made])}
            target = io.BytesIO()
            np.savez(target, **arrays)
            archive.writestr(f"{name}.npz", target.getvalue())
            for end in (".keras", ".h5", ".weights.h5"):
                path = Path(there) / f"{name}{end}"
                (model.save_weights if end == ".weights.h5" else model.save)(path)
                archive.write(path, path.name)
        archive.writestr("version.json", json.dumps({"keras": keras.__version__}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
