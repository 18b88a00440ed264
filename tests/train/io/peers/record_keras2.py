"""Record models of Keras 2 in its files, with inputs and predictions: PYTHON_WITH_TF_KERAS record_keras2.py FOLDER."""

from __future__ import annotations

import io
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import tf_keras as keras

L = keras.layers


def make_models() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["dense"] = keras.Sequential([
        L.Dense(4, activation="relu", input_shape=(3,)), L.BatchNormalization(), L.Dense(2, activation="softmax"),
    ])  # fmt: skip
    made["dense"].compile("adam", "categorical_crossentropy", metrics=["accuracy"])
    made["image"] = keras.Sequential([
        L.InputLayer([8, 8, 2]), L.Conv2D(3, 3, padding="same", activation="hard_sigmoid"), L.BatchNormalization(),
        L.MaxPooling2D(), L.DepthwiseConv2D(2), L.SeparableConv2D(2, 2), L.UpSampling2D(2), L.ZeroPadding2D(1),
        L.Conv2DTranspose(2, 2, strides=2), L.LayerNormalization(), L.GlobalAveragePooling2D(),
    ])  # fmt: skip
    made["sequence"] = keras.Sequential([
        L.InputLayer([6, 2]), L.Bidirectional(L.LSTM(2, return_sequences=True)), L.GRU(3, return_sequences=True),
        L.TimeDistributed(L.Dense(3)), L.SimpleRNN(2, return_sequences=True), L.Dropout(0.5), L.Flatten(),
    ])  # fmt: skip
    words = keras.Input([5], name="words")
    h = L.Embedding(7, 4)(words)
    h = L.Add()([h, L.MultiHeadAttention(2, 3)(h, value=h)])
    made["attention"] = keras.Model(words, L.Dense(2)(L.GlobalAveragePooling1D()(h)))
    inner = keras.Sequential([L.InputLayer([3]), L.Dense(2, name="hidden"), L.BatchNormalization()], name="inner")
    z = keras.Input([3])
    graph = keras.Model(z, [L.Dense(2)(z), L.Dense(3)(z)], name="graph")
    x, y = keras.Input([3], name="x"), keras.Input([3], name="y")
    shared = L.Dense(3, activation="tanh", name="shared")
    a, b = shared(x), shared(y)
    left, right = graph(b)
    made["branches"] = keras.Model([x, y], [L.Concatenate()([a, b, right]), L.Subtract()([inner(a), left])])
    return made


def main(folder: Path) -> None:
    rng = np.random.default_rng(0)
    target = folder / "keras2_models.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive, tempfile.TemporaryDirectory() as there:
        for name, model in make_models().items():
            values = zip(model.weights, model.get_weights(), strict=True)
            model.set_weights([
                rng.uniform(0.2, 1, w.shape) if "variance" in v.name else rng.normal(size=w.shape) / 2
                for v, w in values
            ])  # fmt: skip
            shapes = [(2, *x.shape[1:]) for x in model.inputs]
            xs = [rng.integers(0, 7, n) if name == "attention" else rng.normal(size=n) for n in shapes]
            xs = [x.astype(np.float32) for x in xs]
            made = model.predict(xs if len(xs) > 1 else xs[0], verbose=0)
            arrays = {f"x{i}": x for i, x in enumerate(xs)}
            arrays |= {f"y{i}": y for i, y in enumerate(made if isinstance(made, list) else [made])}
            content = io.BytesIO()
            np.savez(content, **arrays)
            archive.writestr(f"{name}.npz", content.getvalue())
            for end in (".keras", ".h5", ".weights.h5"):
                path = Path(there) / f"{name}{end}"
                (model.save_weights if end == ".weights.h5" else model.save)(path)
                archive.write(path, path.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
